"""Feet, and when they stand.

A foot is a link that reaches the ground in the rest pose, with the toes that hang on it. It touches
by a few points of its sole: the corners of a box, the ends of a capsule. A contact is a point that
stands: `Contacts` says for every frame which points do. Heel and toe come and go by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.errors import ClipError, unknown_name
from poise.math import rotation
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Shape, Vector

SOLE = 0.015
"""Points this far above the lowest one still belong to the sole [m]."""

REACH = 0.012
"""A link whose lowest point lies this far above the ground, as a fraction of the character's
height, is no foot."""

LEAF_REACH = 0.08
"""The same for the last link of a chain: paws, of which some hang in the rest pose."""


class Point(NamedTuple):
    """A point of a sole.

    Attributes:
        foot: Name of the foot, the link that carries it.
        link: Name of the link it is fixed to: the foot, or a toe.
        pos: In the link's frame [m].
    """

    foot: str
    link: str
    pos: Vector


class Phase(NamedTuple):
    """A time in which something stands: frames start to stop - 1."""

    what: str
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Contacts:
    """Which points stand on the ground, frame by frame.

    Args:
        points: The points.
        on: Whether they stand, shape (frames, points).
        sliding: Whether they slide while they touch, as the belly of a snake.
        detected: Whether they were found from the motion, and so begin and end while the foot still
            moves; others were made with it.
    """

    points: tuple[Point, ...]
    on: NDArray[np.bool_]
    sliding: bool = False
    detected: bool = False

    def __post_init__(self) -> None:
        on = np.array(self.on, dtype=bool)
        if on.ndim != 2 or on.shape[1] != len(self.points):
            raise ClipError(
                f"contacts: on has shape {on.shape}, expected (frames, {len(self.points)})"
            )
        on.flags.writeable = False
        object.__setattr__(self, "on", on)
        object.__setattr__(self, "points", tuple(Point(*point) for point in self.points))

    def check(self, character: Character, frames: int) -> None:
        """Refuse contacts that are not those of this character and number of frames."""
        if len(self.on) != frames:
            raise ClipError(f"contacts: there are {len(self.on)} frames, the clip has {frames}")
        for point in self.points:
            character.link(point.link)
            character.link(point.foot)

    @cached_property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet, in the order of their points."""
        return tuple(dict.fromkeys(point.foot for point in self.points))

    def of(self, foot: str) -> list[int]:
        """Which points belong to a foot."""
        if foot not in self.feet:
            raise ClipError(unknown_name("foot", foot, self.feet))
        return [i for i, point in enumerate(self.points) if point.foot == foot]

    def standing(self, foot: str) -> NDArray[np.bool_]:
        """Whether any point of a foot stands, shape (frames,)."""
        return np.asarray(self.on[:, self.of(foot)].any(axis=1))

    @cached_property
    def flight(self) -> NDArray[np.bool_]:
        """Whether nothing stands, shape (frames,)."""
        return np.asarray(~self.on.any(axis=1))

    def phases(self, foot: str) -> list[Phase]:
        """Times in which a foot stands."""
        return [Phase(foot, a, b) for a, b in runs(self.standing(foot))]

    def point_phases(self) -> list[tuple[int, int, int]]:
        """Times in which each point stands: its index, first frame, frame after the last."""
        return [(i, a, b) for i in range(len(self.points)) for a, b in runs(self.on[:, i])]


def runs(on: ArrayLike) -> list[tuple[int, int]]:
    """Stretches of true values: first index, index after the last."""
    padded = np.concatenate([[False], np.asarray(on, dtype=bool), [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def feet_of(character: Character, also: Iterable[str] = ()) -> tuple[Point, ...]:
    """The points by which a character stands: those of its feet in the rest pose.

    Links whose lowest point is near the lowest of all are feet; a toe belongs to the foot above it.
    A character without a free root does not stand.

    Args:
        character: The character.
        also: Further links that may touch the ground, as the hands of a cartwheel: each by the
            outer end of its shapes.
    """
    p, R = dynamics.forward_kinematics(character, character.rest_q)
    low, height = {}, []
    for i, link in enumerate(character.links):
        cloud = [surface_points(shape) for shape in link.shapes]
        if not cloud:
            continue
        points = np.concatenate(cloud)
        z = p[i, 2] + rotation.rotate(R[i], points)[:, 2]
        low[link.name] = (points, z)
        height += [z.min(), z.max()]
    # what hangs on the world does not stand
    if not low or [joint.kind for joint in character.links[0].joints] != ["free"]:
        return tuple(point for name in also for point in tip_of(character, name))
    ground = min(height)
    reach, far = (ground + part * (max(height) - ground) for part in (REACH, LEAF_REACH))
    carriers = {link.parent for link in character.links if link.name in low}
    # what lies on its root has no feet with toes: every link touches by itself
    root = character.links[0].name
    crawls = root in low and low[root][1].min() <= reach
    feet: dict[str, str] = {}
    found: list[Point] = []
    for i, link in enumerate(character.links):
        last = link.name not in carriers and not crawls
        if link.name not in low or low[link.name][1].min() > (far if last else reach):
            continue
        feet[link.name] = link.name if crawls else feet.get(link.parent or "", link.name)
        points, z = low[link.name]
        sole = points[z < z.min() + SOLE]
        level = rotation.rotate(R[i], sole)
        found += [
            Point(feet[link.name], link.name, tuple(sole[k].tolist())) for k in _corners(level)
        ]
    for name in also:
        found += tip_of(character, name)
    return tuple(found)


def tip_of(character: Character, name: str) -> list[Point]:
    """The outer end of a link: up to four points farthest from where its joint is."""
    link = character.link(name)
    if not link.shapes:
        raise ClipError(f"link {name!r} of character {character.name!r} has no shape to stand on")
    points = np.concatenate([surface_points(shape) for shape in link.shapes])
    along = points.mean(axis=0)
    along /= max(float(np.linalg.norm(along)), 1e-12)
    far = points @ along
    end = points[far > far.max() - SOLE]
    turned = rotation.rotate(rotation.between(along, (0.0, 0.0, -1.0)), end)
    return [Point(name, name, tuple(end[k].tolist())) for k in _corners(turned)]


def positions(character: Character, points: Sequence[Point], q: ArrayLike) -> Floats:
    """Where points are in the world [m], shape (..., points, 3)."""
    p, R = dynamics.forward_kinematics(character, q)
    where = {link.name: i for i, link in enumerate(character.links)}
    at = [where[point.link] for point in points]
    local = np.array([point.pos for point in points]).reshape(-1, 3)
    placed: Floats = p[..., at, :] + rotation.rotate(R[..., at, :], local)
    return placed


def surface_points(shape: Shape) -> Floats:
    """Points of a shape that may touch first, in the link's frame [m], shape (k, 3).

    Corners of boxes and meshes; of round shapes, the points of each end in 26 directions.
    """
    signs = np.array(
        [(x, y, z) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0) for z in (-1.0, 0.0, 1.0)]
    )
    turn = quat_matrix(shape.quat)
    if shape.kind == "mesh":
        local = np.array(shape.vertices)
    elif shape.kind == "box":
        local = signs[np.all(signs != 0.0, axis=1)] * shape.size
    elif shape.kind == "cylinder":
        angle = np.arange(8) * np.pi / 4.0
        r, half = shape.size
        ring = np.stack([r * np.cos(angle), r * np.sin(angle), np.zeros(8)], axis=1)
        local = np.concatenate([ring + (0.0, 0.0, half), ring - (0.0, 0.0, half)])
    else:
        # in directions of the link's frame, so that the lowest point of a level capsule is there
        r, half = (*shape.size, 0.0)[:2]
        sides = signs[np.any(signs != 0.0, axis=1)]
        sides = r * sides / np.linalg.norm(sides, axis=1, keepdims=True) @ turn
        ends = [(0.0, 0.0, half), (0.0, 0.0, -half)] if half else [(0.0, 0.0, 0.0)]
        local = np.concatenate([sides + end for end in ends])
    world: Floats = np.array(shape.pos) + local @ turn.T
    return world


def _corners(level: Floats) -> list[int]:
    """Up to four of the points (k, 3): the outermost along both diagonals of the ground plane."""
    x, y = level[:, 0], level[:, 1]
    picked = [int(np.argmax(sx * x + sy * y)) for sx in (1.0, -1.0) for sy in (1.0, -1.0)]
    kept: list[int] = []
    for k in picked:
        if all(np.linalg.norm(level[k] - level[j]) > 0.005 for j in kept):
            kept.append(k)
    return kept
