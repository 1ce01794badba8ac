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
from poise.errors import ClipError, PoiseError
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character, Vector
from poise.model.geometry import surface_points

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
    # a character fixed to the world does not stand
    if not low or [joint.kind for joint in character.links[0].joints] != ["free"]:
        return tuple(point for name in also for point in tip_of(character, name))
    ground = min(height)
    reach, far = (ground + part * (max(height) - ground) for part in (REACH, LEAF_REACH))
    carriers = {link.parent for link in character.links if link.name in low}
    # a character that rests on its root has no feet with toes: every link touches by itself
    root = character.links[0].name
    crawls = root in low and low[root][1].min() <= reach
    feet: dict[str, str] = {}
    found: list[ContactPoint] = []
    for i, link in enumerate(character.links):
        last = link.name not in carriers and not crawls
        if link.name not in low or low[link.name][1].min() > (far if last else reach):
            continue
        feet[link.name] = link.name if crawls else feet.get(link.parent or "", link.name)
        points, z = low[link.name]
        sole = points[z < z.min() + SOLE]
        level = rotation.rotate(R[i], sole)
        found += [
            ContactPoint(feet[link.name], link.name, tuple(sole[k].tolist()))
            for k in _corners(level)
        ]
    for name in also:
        found += tip_of(character, name)
    return tuple(found)


def tip_of(character: Character, name: str) -> list[ContactPoint]:
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
    return [ContactPoint(name, name, tuple(end[k].tolist())) for k in _corners(turned)]


def positions(character: Character, points: Sequence[ContactPoint], q: ArrayLike) -> Floats:
    """Where points are in the world [m], shape (..., points, 3)."""
    p, R = dynamics.forward_kinematics(character, q)
    where = {link.name: i for i, link in enumerate(character.links)}
    at = [where[point.link] for point in points]
    local = np.array([point.pos for point in points]).reshape(-1, 3)
    placed: Floats = p[..., at, :] + rotation.rotate(R[..., at, :], local)
    return placed


def check_can_stand(character: Character) -> None:
    """Raises an error for a character that is fixed to the world, lies on it, or has no feet."""
    if not character.joints or character.joints[0].kind != "free":
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
