"""Points of soles that are brought back to where they stand, after an edit has moved them.

An edit of joint angles moves the feet about. What it moved a standing point by is taken back by
inverse kinematics; in the air that correction fades.

Feet in a blend of two clips.

A blend of two poses moves feet that stand in both. They are brought back where that is not far;
a foot that stands elsewhere in the other clip slides, and does not count as standing then.
What is corrected is corrected smoothly: a filter takes what would jerk the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint, has_free_root, positions
from poise.anatomy.rest_pose import size_of
from poise.math.arrays import Floats, Mask, runs
from poise.math.filtering import lowpass
from poise.model.character import Character
from poise.motion import ik
from poise.motion.clip import Clip
from poise.motion.limits import excesses

FADE = 0.12
"""Time in which a correction fades in the air [s]."""


def move_points(
    character: Character,
    frames: Floats,
    points: Sequence[ContactPoint],
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
    desired = positions(character, points, frames) + offset
    goals = [ik.Place(x.link, desired[:, i], x.pos) for i, x in enumerate(points)]
    # a leg that is all but straight would bend its knee by centimetres for a millimetre of foot:
    # joints are held, the root may shift but not turn. Weights tuned on real clips
    posture = np.full(character.nv, joints)
    if has_free_root(character):
        posture[:3], posture[3:6] = root, 1.0
    return ik.solve(
        character,
        frames,
        goals,
        limits=limits,
        posture=posture,
        iterations=8 if limits else 4,
        tolerance=1e-4,
    )[0]


def lock_points(
    clip: Clip,
    frames: Floats,
    contacts: ContactSchedule,
    offset: Floats,
    *,
    cutoff: float | None = None,
    joints: float = 1e-2,
    root: float = 1e-2,
) -> Floats:
    """Poses (k, nq) whose standing points are moved by offsets, which fade in the air.

    Args:
        clip: A clip of the same character and rate.
        frames: Its poses after an edit, shape (k, nq).
        contacts: Which points stand.
        offset: By how much to move those that stand [m], shape (k, points, 3).
        cutoff: Low-pass cutoff of the offsets [Hz]; None disables filtering.
        joints: As of `move_points`.
        root: As of `move_points`.
    """
    offset = np.where(contacts.on[..., None], offset, 0.0)
    for i, on in enumerate(contacts.on.T):
        fade_offsets(offset[:, i], on, max(2, round(FADE * clip.fps)))
        if cutoff is not None:
            offset[:, i] = lowpass(offset[:, i], cutoff, clip.fps)
    return move_points(clip.character, frames, contacts.points, offset, joints=joints, root=root)


def fade_offsets(offset: Floats, on: Mask, fade: int) -> None:
    """Let offsets (k, 3) of frames that stand run out smoothly into those that do not, in place.

    Cubics that begin with the offset and its slope at the last frame that stands and end at zero,
    or at the next one that stands, whichever is nearer.
    """
    k = len(offset)
    for a, b in runs(~on):
        span = b - a + 1
        length = span if a > 0 and b < k and span <= 2 * fade else fade
        # forward from the frame before the gap, and backward from the one after it
        for edge, way, room in ((a - 1, 1, k - a + 1), (b, -1, b + 1)):
            if not 0 <= edge < k:
                continue
            i, before = np.arange(1, min(length, room)), edge - way
            slope = offset[edge] - offset[before] if 0 <= before < k and on[before] else 0.0
            u = i[:, None] / length
            offset[edge + way * i] += _hermite(u, offset[edge], slope * length)


def _hermite(u: Floats, value: Floats, slope: Floats | float) -> Floats:
    """The cubic with that value and slope at 0 that is 0 and level at 1.

    Slopes beyond three times the value are cut: there the cubic would swing out.
    """
    slope = np.clip(slope, -3.0 * np.abs(value), 3.0 * np.abs(value))
    out: Floats = (1 + 2 * u) * (1 - u) ** 2 * value + u * (1 - u) ** 2 * slope
    return out


# blends of two clips

NEAR = 0.03
"""In a blend a foot is kept in place if its places in both clips are this near, as a part of the
character's size."""

STEADY = 0.001
"""A point of a blend stands if it is this near to where it should [m]..."""

BLIP = 0.05
"""... for at least this time [s]."""

SLOW = 10.0
"""Corrections of feet in a blend have nothing faster than this, so that nothing jerks [Hz]..."""

JOINTS, ROOT = 1e-3, 1.0
"""... and cost this much of the joints and of the root's place [1/rad^2, 1/m^2]. Tuned on our own
gaits: with a lighter root the center of mass jolts."""

LEAST = 1e-5
"""Smaller corrections are none [m]."""


def lock_blended_feet(blend: Clip, before: Floats, after: Floats, first: int, n: int) -> Clip:
    """A blend whose feet are where they stand in the clips, or do not count as standing.

    Args:
        blend: The blend, with the contacts of the nearer clip in each frame.
        before: Frames of the clip before, shape (., nq).
        after: Frames of the clip after, placed, shape (., nq).
        first: At which frame the blend begins, and the clip after.
        n: How many frames it takes.
    """
    contacts = blend.contacts
    assert contacts is not None
    character, points = blend.character, contacts.points
    now, one, two = (positions(character, points, q) for q in (blend.frames, before, after))
    desired, on = _places(contacts, one, two, first, n, NEAR * size_of(character))
    offset = _offsets(contacts, desired - now, on, max(2, round(FADE * blend.fps)))
    # in the air: not below where it is in both
    part = slice(first, first + n + 1)
    floor = np.minimum(one[part], two[: n + 1])[..., 2] - now[part, :, 2]
    offset[part, :, 2] = np.where(
        on[part], offset[part, :, 2], np.maximum(offset[part, :, 2], floor)
    )
    flat = offset.reshape(len(blend), -1)
    offset = lowpass(flat, min(SLOW, 0.45 * blend.fps), blend.fps).reshape(offset.shape)
    frames = blend.frames.copy()
    moved = np.flatnonzero(np.abs(offset).max(axis=(1, 2)) > LEAST)
    if len(moved):
        part = slice(moved[0], moved[-1] + 1)
        kept = all(bound.value.max() < 1e-6 for bound in excesses(character, frames[part]))
        frames[part] = move_points(
            character, frames[part], points, offset[part], joints=JOINTS, root=ROOT, limits=kept
        )
    off = np.linalg.norm(positions(character, points, frames) - desired, axis=-1)
    stands = contacts.on & (off < STEADY)
    whole = set(contacts.point_phases())
    for i, a, b in replace(contacts, on=stands).point_phases():
        if b - a < BLIP * blend.fps and (i, a, b) not in whole:
            stands[a:b, i] = False
    return blend.with_frames(frames, contacts=replace(contacts, on=stands))


def _offsets(contacts: ContactSchedule, away: Floats, on: Mask, fade: int) -> Floats:
    """By how much to move the points of a blend [m], (k, points, 3).

    Args:
        contacts: Whose points they are.
        away: How far they are from where they stand [m], (k, points, 3).
        on: When they stand, (k, points).
        fade: In how many frames an offset fades in the air.
    """
    offset = np.where(on[..., None], away, 0.0)
    for foot in contacts.feet:
        own = contacts.of(foot)
        some = np.asarray(on[:, own].any(axis=1))
        # what is off the ground goes with the rest of its foot
        mean = offset[:, own].sum(axis=1) / np.maximum(on[:, own].sum(axis=1), 1)[:, None]
        for i in own:
            offset[some & ~on[:, i], i] = mean[some & ~on[:, i]]
            fade_offsets(offset[:, i], some, fade)
    return offset


def _places(
    contacts: ContactSchedule, one: Floats, two: Floats, first: int, n: int, near: float
) -> tuple[Floats, Mask]:
    """Where the points of a blend stand [m], (k, points, 3), and when, (k, points).

    A foot that stands across the middle of the blend stays where it stood before until it leaves,
    if that is near; else it does not stand inside of the blend.
    """
    half = first + n // 2
    desired = np.concatenate([one[:half], two[half - first :]])
    on = contacts.on.copy()
    across = [(i, a, b) for i, a, b in contacts.point_phases() if a < half < b]
    step = one[half] - two[half - first]
    for i, a, b in across:
        foot = contacts.of(contacts.points[i].foot)
        if max(np.linalg.norm(step[j]) for j, _, _ in across if j in foot) < near:
            desired[half:b, i] += step[i]
        else:
            on[max(a, first + 1) : min(b, first + n), i] = False
    return desired, on
