"""Points of soles that are brought back to where they stand, after an edit has moved them.

An edit of joint angles moves the feet about. What it moved a standing point by is taken back by
inverse kinematics; in the air that correction fades.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poise.anatomy.feet import Point, positions
from poise.math.arrays import Floats, Mask, runs
from poise.model.character import Character
from poise.motion import ik

FADE = 0.12
"""Time in which a correction fades in the air [s]."""


def held(
    character: Character,
    frames: Floats,
    points: Sequence[Point],
    offset: Floats,
    *,
    joints: float = 1e-2,
    root: float = 1e-2,
    limits: bool = False,
) -> Floats:
    """Poses (k, nq) whose points are moved by offsets.

    Args:
        character: The character.
        frames: Its poses, shape (k, nq).
        points: The points.
        offset: By how much to move them [m], shape (k, points, 3).
        joints: Weight of keeping the joints [1/rad^2].
        root: Weight of keeping the root's place [1/m^2].
        limits: Keep the joints' limits; only for poses that do.
    """
    wanted = positions(character, points, frames) + offset
    goals = [ik.Place(point.link, wanted[:, i], point.pos) for i, point in enumerate(points)]
    # a leg that is all but straight would bend its knee by centimetres for a millimetre of foot:
    # joints are held, the root may shift but not turn. Weights tuned on real clips
    posture = np.full(character.nv, joints)
    if character.joints[0].kind == "free":
        posture[:3], posture[3:6] = root, 1.0
    rounds = 8 if limits else 4
    found, _ = ik.solve(
        character, frames, goals, limits=limits, posture=posture, iterations=rounds, tolerance=1e-4
    )
    return found


def bridge(offset: Floats, on: Mask, fade: int) -> None:
    """Let offsets (k, 3) of frames that stand run out smoothly into those that do not, in place.

    Cubics that begin with the offset and its slope at the last frame that stands and end at zero,
    or at the next one that stands, whichever is nearer.
    """
    k = len(offset)
    for a, b in runs(~on):
        span = b - a + 1
        both = a > 0 and b < k and span <= 2 * fade
        if a > 0:
            length = span if both else fade
            n = min(length, k - a + 1)
            u = np.arange(1, n)[:, None] / length
            slope = (offset[a - 1] - offset[a - 2]) if a > 1 and on[a - 2] else 0.0
            offset[a : a + n - 1] += _hermite(u, offset[a - 1], slope * length)
        if b < k:
            length = span if both else fade
            n = min(length, b + 1)
            u = np.arange(1, n)[:, None] / length
            slope = (offset[b] - offset[b + 1]) if b + 1 < k and on[b + 1] else 0.0
            offset[b - n + 1 : b] += _hermite(u, offset[b], slope * length)[::-1]


def _hermite(u: Floats, value: Floats, slope: Floats | float) -> Floats:
    """The cubic with that value and slope at 0 that is 0 and level at 1.

    Slopes beyond three times the value are cut: there the cubic would swing out.
    """
    slope = np.clip(slope, -3.0 * np.abs(value), 3.0 * np.abs(value))
    out: Floats = (1 + 2 * u) * (1 - u) ** 2 * value + u * (1 - u) ** 2 * slope
    return out
