"""The index of a scene: its characters, and where each is in the arrays.

Made once for each scene, so that measures of many characters take a few calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics, measure
from poise.anatomy.body import body_of, head_of
from poise.anatomy.strength import MOMENTS
from poise.errors import PoiseError
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character, is_free_object
from poise.model.forest import KINDS, Part
from poise.model.scene import Scene
from poise.motion.checks.strength import JOINTS
from poise.simulation.contact import HeightField, Plane, default_projectiles
from poise.simulation.world_config import WorldConfig

Ints = NDArray[np.int64]

WEIGHT_ARM = 0.1
"""Lever arm of the weight for joints without a known torque, as a fraction of the size."""

_numbers = itertools.count(1)


class Group(NamedTuple):
    """Characters of a scene that are the same.

    Attributes:
        character: The character.
        rows: Numbers of the scene's characters, shape (k,).
        q: Where their positions are in those of the scene, shape (k, nq).
        v: Where their velocities are, shape (k, nv).
        links: Where their links are, shape (k, nl).
        stands: Whether it has a head and feet, so that a fall is defined.
    """

    character: Character
    rows: Ints
    q: Ints
    v: Ints
    links: Ints
    stands: bool


class SceneIndex:
    """Characters, objects, balls and ground of a scene.

    Args:
        settings: Of the world.
        scene: Its scene.

    Attributes:
        number: Different for every index.
        projectiles: The balls that can be thrown.
        names: Parts of the scene that are characters: all but free objects, if there are others.
        count: Number of characters.
        link_names: Names of all links of the scene.
        groups: Characters that are the same.
        character: The first character.
        owner: Number of the character that a link belongs to, shape (nl,); -1 is none.
        effort: Largest torque of each joint [N m], shape (bodies,); inf is none.
        scale: Torque for which its torque ratio is 1 [N m], shape (bodies,).
        width: Distance aside at which another scene is clear of this one [m].
    """

    def __init__(self, settings: WorldConfig, scene: Scene) -> None:
        self.number = next(_numbers)
        self.settings, self.scene = settings, scene
        self.projectiles = default_projectiles(settings.projectiles)
        parts = scene.forest.parts
        pairs = list(zip(parts.items(), scene.characters, strict=True))
        chosen = [pair for pair in pairs if not is_free_object(pair[1])] or pairs
        self.names = tuple(name for (name, _), _ in chosen)
        self.count, self.link_names = len(self.names), scene.forest.link_names
        self.groups = _groups([(part, character) for (_, part), character in chosen])
        self.character = self.groups[0].character
        self.owner: Ints = np.full(scene.nl, -1)
        for row, ((_, part), _) in enumerate(chosen):
            self.owner[part.links] = row
        self.effort, self.scale = _efforts(scene)
        self.width = max(2.0, 1.5 * max(size_of(character) for _, character in chosen))

    def part(self, character: int) -> Part:
        """Where a character is in the scene's arrays."""
        return self.scene.forest.parts[self.names[character]]

    def ground(self, x: Floats | float, y: Floats | float) -> Floats:
        """Height of the ground there [m]; 0 where there is none."""
        return ground_height(self.settings.ground, x, y)

    def point(self, q: Floats, link: int, place: ArrayLike) -> Floats:
        """Where a point of a link, given in its frame, is in the world [m], shape (3,)."""
        origin, turn = dynamics.forward_kinematics(self.scene, q)
        return np.asarray(origin[link] + rotation.rotate(turn[link], place))

    def point_in_link(self, q: Floats, link: int, point: ArrayLike) -> Floats:
        """A point of the world in a link's frame [m], shape (3,)."""
        origin, turn = dynamics.forward_kinematics(self.scene, q)
        away = np.asarray(point, dtype=float) - origin[link]
        return rotation.rotate(rotation.conjugate(turn[link]), away)

    def link_index(self, link: str | int) -> int:
        """Index of a link; a name without a character is one of the first character."""
        if isinstance(link, str) and link not in self.link_names:
            own = f"{self.names[0]}/{link}"
            link = own if own in self.link_names else link
        return self.scene.link_index(link)


@lru_cache(maxsize=64)
def size_of(character: Character) -> float:
    """Largest extent of its links at rest [m]."""
    place = dynamics.forward_kinematics(character, character.rest_q)[0]
    return max(0.2, float(np.ptp(place, axis=0).max(initial=0.0)))


def ground_height(
    ground: bool | Plane | HeightField, x: Floats | float, y: Floats | float
) -> Floats:
    """Height of a ground at places [m]; 0 where there is none."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if isinstance(ground, Plane):
        a, b, c = ground.normal
        return np.asarray((ground.height - a * x - b * y) / c if abs(c) > 1e-6 else 0.0 * x)
    if not isinstance(ground, HeightField):
        return np.asarray(0.0 * x)
    h, (dx, dy), (left, front) = ground.of_copy(0).heights, ground.spacing, ground.origin
    # places outside, and NaN, are at the edge
    u = np.clip(np.nan_to_num((x - left) / dx), 0.0, h.shape[1] - 1 - 1e-9)
    w = np.clip(np.nan_to_num((y - front) / dy), 0.0, h.shape[0] - 1 - 1e-9)
    i, j = w.astype(int), u.astype(int)
    s, t = u - j, w - i
    low, high = h[i, j] * (1 - s) + h[i, j + 1] * s, h[i + 1, j] * (1 - s) + h[i + 1, j + 1] * s
    return np.asarray(low * (1 - t) + high * t)


def _groups(parts: list[tuple[Part, Character]]) -> tuple[Group, ...]:
    found: dict[Character, list[int]] = {}
    for row, (_, character) in enumerate(parts):
        found.setdefault(character, []).append(row)
    return tuple(
        Group(
            character,
            np.array(rows),
            _indices(parts[row][0].q for row in rows),
            _indices(parts[row][0].v for row in rows),
            _indices(parts[row][0].links for row in rows),
            _stands(character),
        )
        for character, rows in found.items()
    )


def _indices(slices: Iterable[slice]) -> Ints:
    return np.array([np.arange(at.start, at.stop) for at in slices])


@lru_cache(maxsize=64)
def _stands(character: Character) -> bool:
    try:
        return bool(head_of(character) and measure.feet_links(character))
    except PoiseError:
        return False


def _efforts(scene: Scene) -> tuple[Floats, Floats]:
    """Largest torque of every body's joint, and its scale; inf for roots."""
    forest = scene.forest
    effort = np.minimum.reduceat(forest.effort, forest.v_adr)
    typical = np.concatenate([_typical_torque(one) for one in scene.characters])[forest.link]
    scale = np.where(np.isfinite(effort), np.maximum(effort, 1e-9), typical)
    root = forest.kind == KINDS["free"]
    return np.where(root, np.inf, effort), np.where(root, np.inf, scale)


@lru_cache(maxsize=64)
def _typical_torque(character: Character) -> Floats:
    """Typical torque of the joints of each link [N m], shape (nl,).

    Human strength where the anatomy is known; else a fraction of the weight.
    """
    other = WEIGHT_ARM * 9.81 * character.mass * size_of(character)
    try:
        body = body_of(character)
    except PoiseError:
        return np.full(len(character.links), max(other, 1e-9))
    found = []
    for link in character.links:
        role = body.where(link.name)
        joint = JOINTS.get(role[2]) if role else None
        found.append(max(MOMENTS[joint].values()) * character.mass if joint else other)
    return np.asarray(np.maximum(found, 1e-9))
