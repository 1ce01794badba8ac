"""Lateral undulation: how a snake slithers, as a motion that is computed rather than keyed.

The snake lies on a serpenoid curve (Hirose 1993, Biologically Inspired Robots), whose heading is
theta(s) = bend sin(2 pi s / wave) along its length s, and every joint runs along it. So each
segment follows the track of the one before, its belly slides along itself and not sideways, and
the ground pushes from the sides. Keyframes do not fit: all joints move all the time, and a track is
met exactly or not at all.

    python -m poise.motion.library snake-slither      writes the built-in clip
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.clip import Clip

NAME = "snake-slither"
SNAKE = "snake-72"
"""Its 2.3 m hold one wave and a half, so that some bend always pushes each way; the 1.2 m of
snake-36 do not hold one."""

FINE = 256
"""Points of the curve in one wave."""


def slither(
    character: Character,
    *,
    bend: float = 1.0,
    wave: float = 1.4,
    period: float = 2.0,
    cycles: int = 2,
    fps: float = 60.0,
) -> Clip:
    """Make a snake slither along +x.

    Args:
        character: A snake: a free head and a chain of ball joints.
        bend: Largest angle between the body and the way it goes [rad].
        wave: Length of one wave, along the body [m].
        period: Time in which it moves on by one wave [s].
        cycles: How many waves it moves on.
        fps: Frames per second.
    """
    spacing = _spacing(character)
    turn = 2.0 * np.pi * bend / wave * spacing
    most = min(joint.limits[0] for joint in character.joints[1:] if joint.limits)
    if turn > most:
        raise ClipError(
            f"slither: the joints would turn by {turn:.2f} rad, their limit is {most:.2f}; take "
            "less bend or a longer wave"
        )
    t = np.arange(round(cycles * period * fps) + 1) / fps
    curve = _curve(bend, wave, wave * cycles, spacing * (len(character.links) + 3))
    at = _placed(curve, wave / period * t, len(character.links), spacing)
    along = at[:, :-1] - at[:, 1:]
    heading = np.unwrap(np.arctan2(along[..., 1], along[..., 0]), axis=1)
    q = np.tile(character.rest_q, (len(t), 1))
    q[:, :2] = at[:, 0]
    yaw = np.diff(heading, axis=1, prepend=0.0)
    for i in range(len(character.links)):
        # the head's quaternion comes after its place, each other one after the one before
        q[:, 3 + 4 * i : 7 + 4 * i] = rotation.turn((0.0, 0.0, 1.0), yaw[:, i])
    belly = _belly(character, spacing)
    contacts = ContactSchedule(belly, np.ones((len(t), len(belly)), dtype=bool), sliding=True)
    return Clip(character, q, fps, name=NAME, contacts=contacts)


def _spacing(character: Character) -> float:
    """Distance of the joints [m]; refuses what is no snake."""
    offsets = np.array([link.pos for link in character.links[1:]]).reshape(-1, 3)
    kinds = [joint.kind for joint in character.joints]
    chain = all(
        link.parent == before.name
        for before, link in zip(character.links, character.links[1:], strict=False)
    )
    straight = len(offsets) > 0 and np.allclose(offsets, [offsets[0, 0], 0.0, 0.0])
    if kinds != ["free"] + ["ball"] * len(offsets) or not chain or not straight:
        raise ClipError(
            f"slither: {character.name!r} is no snake: a free head, and ball joints at equal "
            "distances along -x"
        )
    return float(-offsets[0, 0])


def _curve(bend: float, wave: float, ahead: float, behind: float) -> CubicSpline:
    """The serpenoid curve by its length, from behind to ahead of 0 [m]."""
    n = int(np.ceil((ahead + behind) / wave * FINE)) + 2
    s = np.linspace(-behind, ahead + wave / FINE, n)
    heading = bend * np.sin(2.0 * np.pi * s / wave)
    way = CubicSpline(s, np.stack([np.cos(heading), np.sin(heading)], axis=1)).antiderivative()
    return CubicSpline(s, way(s) - way(0.0))


def _placed(curve: CubicSpline, head: Floats, links: int, spacing: float) -> Floats:
    """Joints and the tail's end on the curve, `spacing` from each other, (k, links + 1, 2).

    Args:
        curve: Places by length.
        head: Where on the curve the head is, (k,).
        links: Number of links.
        spacing: Straight distance of one to the next [m].
    """
    s, at = head, [curve(head)]
    for _ in range(links):
        front, s = at[-1], s - spacing
        for _ in range(8):  # Newton's steps: the chord gets its length
            gap = curve(s) - front
            far = np.linalg.norm(gap, axis=1)
            slope = np.sum(gap * curve(s, 1), axis=1) / far
            s = s - (far - spacing) / slope
        at.append(curve(s))
    return np.stack(at, axis=1)


def _belly(character: Character, spacing: float) -> tuple[ContactPoint, ...]:
    """The middle of each segment, where it touches the ground: there it slides along itself."""
    height = character.links[0].pos[2]
    return tuple(
        ContactPoint(link.name, link.name, (-spacing / 2.0, 0.0, -height))
        for link in character.links
    )
