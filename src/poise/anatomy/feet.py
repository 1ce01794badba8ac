"""Feet: links that reach the ground in the rest pose, and the points by which they touch it.

A foot is a link that reaches the ground in the rest pose, with the toes that hang on it. It touches
by a few points of its sole: the corners of a box, the ends of a capsule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.anatomy.rest_pose import rest_pose
from poise.errors import ClipError, PoiseError
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character, Vector

SOLE = 0.015
"""Points this far above the lowest one still belong to the sole [m]."""

REACH = 0.012
"""A link whose lowest point lies this far above the ground, as a fraction of the character's
height, is no foot."""

LEAF_REACH = 0.08
"""The same for the last link of a chain: paws, of which some hang in the rest pose."""


class ContactPoint(NamedTuple):
    """A point of a sole.

    Attributes:
        foot: Name of the foot, the link that carries it.
        link: Name of the link it is fixed to: the foot, or a toe.
        pos: In the link's frame [m].
    """

    foot: str
    link: str
    pos: Vector


def feet_of(character: Character, also: Iterable[str] = ()) -> tuple[ContactPoint, ...]:
    """The points by which a character stands: those of its feet in the rest pose.

    Links whose lowest point is near the lowest of all are feet; a toe belongs to the foot above it.
    A character without a free root does not stand.

    Args:
        character: The character.
        also: Further links that may touch the ground, as the hands of a cartwheel: each by the
            outer end of its shapes.
    """
    tips = [point for name in also for point in tip_of(character, name)]
    rest = rest_pose(character)
    clouds = {link.name: rest.world_surface(link.name) for link in character.links if link.shapes}
    # a character fixed to the world does not stand
    if not clouds or not has_free_root(character):
        return tuple(tips)
    low = {name: float(cloud[:, 2].min()) for name, cloud in clouds.items()}
    ground, top = min(low.values()), max(float(cloud[:, 2].max()) for cloud in clouds.values())
    reach, far = (ground + part * (top - ground) for part in (REACH, LEAF_REACH))
    carriers = {link.parent for link in character.links if link.name in low}
    # a character that rests on its root has no feet with toes: every link touches by itself
    crawls = low.get(character.links[0].name, np.inf) <= reach
    feet: dict[str, str] = {}
    found: list[ContactPoint] = []
    for name, cloud in clouds.items():
        last = name not in carriers and not crawls
        if low[name] > (far if last else reach):
            continue
        feet[name] = name if crawls else feet.get(rest.parent[name] or "", name)
        sole = rest.surface(name)[cloud[:, 2] < low[name] + SOLE]
        corners = _corners(rotation.rotate(rest.orientation(name), sole))
        found += [ContactPoint(feet[name], name, tuple(sole[k].tolist())) for k in corners]
    return (*found, *tips)


def tip_of(character: Character, name: str) -> list[ContactPoint]:
    """The outer end of a link: up to four points farthest from where its joint is."""
    if not character.link(name).shapes:
        raise ClipError(f"link {name!r} of character {character.name!r} has no shape to stand on")
    points = rest_pose(character).surface(name)
    along = points.mean(axis=0)
    along /= max(float(np.linalg.norm(along)), 1e-12)
    far = points @ along
    end = points[far > far.max() - SOLE]
    turned = rotation.rotate(rotation.between(along, (0.0, 0.0, -1.0)), end)
    return [ContactPoint(name, name, tuple(end[k].tolist())) for k in _corners(turned)]


def tip_middle(character: Character, name: str) -> Vector:
    """The middle of a link's outer end, in its frame [m]."""
    return tuple(np.mean([point.pos for point in tip_of(character, name)], axis=0).tolist())


def positions(character: Character, points: Sequence[ContactPoint], q: ArrayLike) -> Floats:
    """Where points are in the world [m], shape (..., points, 3)."""
    p, R = dynamics.forward_kinematics(character, q)
    index = rest_pose(character).index
    at = [index[point.link] for point in points]
    local = np.array([point.pos for point in points]).reshape(-1, 3)
    placed: Floats = p[..., at, :] + rotation.rotate(R[..., at, :], local)
    return placed


def has_free_root(character: Character) -> bool:
    """Whether a character is free to move, and not fixed to the world by its root."""
    return [joint.kind for joint in character.links[0].joints] == ["free"]


def check_can_stand(character: Character) -> None:
    """Raises an error for a character that is fixed to the world, lies on it, or has no feet."""
    if not has_free_root(character):
        raise PoiseError(
            f"character {character.name!r} hangs on the world by its root; it cannot fall, and "
            "needs no balance: poise track"
        )
    feet = {point.link for point in feet_of(character)}
    if len(feet) > 1 and feet == {link.name for link in character.links if link.shapes}:
        raise PoiseError(
            f"character {character.name!r} lies on the ground with all its links, and has no feet; "
            "it cannot fall, and needs no balance: poise track"
        )
    if not feet:
        raise PoiseError(f"character {character.name!r} has no feet to stand on in its rest pose")


def _corners(level: Floats) -> list[int]:
    """Up to four of the points (k, 3): the outermost along both diagonals of the ground plane."""
    x, y = level[:, 0], level[:, 1]
    picked = [int(np.argmax(sx * x + sy * y)) for sx in (1.0, -1.0) for sy in (1.0, -1.0)]
    kept: list[int] = []
    for k in picked:
        if all(np.linalg.norm(level[k] - level[j]) > 0.005 for j in kept):
            kept.append(k)
    return kept
