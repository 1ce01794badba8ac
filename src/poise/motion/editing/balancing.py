"""Clips made ready for balance: feet flat and still, the mass centre over them.

A captured or keyed motion stands by luck: the body it is put on has other masses, and soles that
are guessed. Three steps make it one that can be held:

1. Feet that stand (`firm_feet`) become level and still (`retargeting`, onto the character itself).
2. The mass centre is wanted over the supports while it moves slowly, and where the supports can
   catch it while it does not, by the smallest smooth shift (`shifting`).
3. All frames move together until the mass centre is there, joints are within their limits, and the
   ground explains the motion (`carrying`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import measure
from poise.anatomy.contact_schedule import Contacts
from poise.anatomy.feet import positions
from poise.errors import ClipError
from poise.math.arrays import Floats, Progress, runs
from poise.math.polygon import shrink
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.editing.carrying import carried
from poise.motion.editing.shifting import Pivots, least_shift
from poise.motion.foot_contact.repair import firm_contacts, steadied
from poise.motion.limits import excesses

MARGIN = 0.02
"""How far inside of the supports the mass centre is brought [m]."""

SLOW = 0.2
"""A mass centre that moves faster over the ground need not be over the feet [m/s]..."""

EDGE, FAST = 0.005, 1.2
"""... but must be caught by forces this far inside of the soles [m]. Who is still faster goes or
runs, and is left alone [m/s]."""

STILL = 2e-3
"""Standing points that stay within this are level and still [m]."""

ROUNDS = 4
"""In which frames it is slow is looked at this often."""

LACK = 1.5e-3
"""A shift that is less is not worth it [m]."""

FLAT = 0.95
"""A foot of which all points stand in this part of the time in which any does is flat."""

BEYOND = 0.035
"""Joints that go less beyond their limits are left alone [rad, m]."""

LEAST = 8
"""Frames that a clip must have to be moved."""

STRANGE, LONG = 0.1, 0.2
"""Told: more of the weight unexplained; a mass centre that is beside the feet for longer [s]."""


class Balanced(NamedTuple):
    """A clip that can be balanced, and what that took.

    Attributes:
        clip: The clip, with contacts.
        shift: How far the mass centre was moved [m], shape (k, 2).
        notes: What was done, for people to read.
    """

    clip: Clip
    shift: Floats
    notes: tuple[str, ...]


class Footing(NamedTuple):
    """How the mass centre of a clip lies over its supports.

    Attributes:
        margin: Distance to the edge of the support polygon [m], below zero outside; NaN in the
            air; shape (k,).
        speed: Of the mass centre over the ground [m/s], shape (k,).
    """

    margin: Floats
    speed: Floats


def footing_of(clip: Clip) -> Footing:
    """How the mass centre of a clip lies over the points that stand, by its own contacts.

    Args:
        clip: A clip with contacts.
    """
    support = measure.convex_hulls(*_standing(clip))
    center = measure.center_of_mass(clip.character, clip.frames)[:, :2]
    return Footing(measure.support_margin(support, center), _speed(center, clip.fps))


def made_balanced(
    clip: Clip, *, margin: float = MARGIN, progress: Progress | None = None
) -> Balanced:
    """A clip with level, still feet and its mass centre over them while it moves slowly.

    Args:
        clip: The motion, of a character with feet and a free root.
        margin: How far inside of the supports the mass centre is brought [m].
        progress: Called with the share that is done, 0 to 1.
    """
    tell = progress or (lambda share: None)
    notes: list[str] = []
    clip = _levelled(clip, notes, lambda share: tell(0.3 * share))
    contacts = _contacts(clip)
    if not np.any(contacts.on):
        raise ClipError(f"clip {clip.name!r}: nothing ever stands; there is nothing to balance on")
    center = measure.center_of_mass(clip.character, clip.frames)[:, :2]
    wanted, _ = _wanted(clip.character, contacts, clip.frames, clip.fps, margin)
    q = clip.frames
    off = np.abs(wanted - center).max() > LACK or beyond_limits(clip) > BEYOND
    if off and len(clip) < LEAST:
        notes.append(f"too short to be moved: {len(clip)} frames, it takes {LEAST}")
    elif off:

        def goal(q: Floats, fps: float) -> tuple[Floats, NDArray[np.bool_]]:
            return _wanted(clip.character, _at_rate(contacts, len(q)), q, fps, margin)

        q, left = carried(clip, contacts, goal, lambda share: tell(0.3 + 0.7 * share))
        if left > STRANGE:
            notes.append(f"the ground does not explain it all: {100.0 * left:.0f} % of the weight")
    moved = measure.center_of_mass(clip.character, q)[:, :2] - center
    notes.append(_told(clip, q, moved))
    tell(1.0)
    made = clip if q is clip.frames else clip.with_frames(q, contacts=clip.contacts)
    return Balanced(made, moved, (*notes, *_beside(made)))


def _wanted(
    character: Character, contacts: Contacts, q: Floats, fps: float, margin: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """Where the mass centre of frames should be [m], (k, 2), and when that counts, (k,)."""
    support = measure.convex_hulls(
        positions(character, contacts.points, q), np.asarray(contacts.on)
    )
    polygons = shrink(support, margin)
    com = measure.center_of_mass(character, q)
    center = com[:, :2]
    walks = _speed(center, fps) > FAST
    pivots = Pivots(shrink(support, EDGE), (polygons.size > 0) & ~walks, com[:, 2])
    asked = np.zeros(len(center), dtype=bool)
    shift = np.zeros_like(center)
    for _ in range(ROUNDS):
        # a shift may slow it down where it was fast
        slow = (polygons.size > 0) & (_speed(center + shift, fps) < SLOW)
        if not (slow & ~asked).any():
            break
        asked |= slow
        shift = least_shift(center, polygons, asked, fps, pivots)
    return center + shift, asked


def _at_rate(contacts: Contacts, count: int) -> Contacts:
    """The contacts at another number of frames over the same time."""
    at = np.rint(np.linspace(0.0, len(contacts.on) - 1.0, count)).astype(int)
    return replace(contacts, on=np.asarray(contacts.on)[at])


def _levelled(clip: Clip, notes: list[str], tell: Progress) -> Clip:
    """The clip with feet that are level and still while they stand."""
    contacts = firm_contacts(clip)
    same = clip.contacts is not None and (contacts.on == clip.contacts.on).all()
    if same and _is_level(clip):
        return clip
    if not _has_legs(clip.character, contacts):
        notes.append(f"feet are left as they are: {clip.character.name!r} has no pair of legs")
        return clip.with_frames(clip.frames, contacts=clip.contacts or contacts)
    from poise.motion.retargeting.retarget import retarget

    clip = steadied(clip, contacts)
    made = retarget(clip, clip.character, level_feet=True, keep_feet=True, progress=tell).clip
    flat = clip.with_frames(made.frames, contacts=made.contacts)
    away = np.abs(flat.frames[:, :3] - clip.frames[:, :3]).max()
    notes.append(f"feet that stand are level and still; hips moved by up to {1e3 * away:.0f} mm")
    return flat


def _has_legs(character: Character, contacts: Contacts) -> bool:
    """Whether anything that stands is at the end of a leg or an arm."""
    from poise.anatomy.body import body_of
    from poise.motion.retargeting.standing import ends_limb

    body = body_of(character)
    return any(ends_limb(body, foot) for foot in contacts.feet)


def _is_level(clip: Clip) -> bool:
    """Whether feet that stand are level and still, as they are in clips made with contacts."""
    contacts = clip.contacts
    if contacts is None or contacts.detected:
        return False
    for foot in contacts.feet:
        mine = contacts.on[:, contacts.of(foot)]
        if mine.all(axis=1).sum() < FLAT * mine.any(axis=1).sum():
            return False
    return unsteadiness(clip) < STILL


def beyond_limits(clip: Clip) -> float:
    """How far any joint of a clip goes beyond its limits [rad, m]: a world would hold it there."""
    each = excesses(clip.character, clip.frames)
    return max((float(one.value.max()) for one in each), default=0.0)


def unsteadiness(clip: Clip) -> float:
    """How far points that stand are from the ground, or from where they began to stand [m]."""
    at, on = _standing(clip)
    worst = float(np.abs(at[..., 2][on]).max(initial=0.0))
    for i in range(on.shape[1]):
        for a, b in runs(on[:, i]):
            worst = max(worst, float(np.abs(at[a:b, i] - at[a, i]).max()))
    return worst


def _standing(clip: Clip) -> tuple[Floats, NDArray[np.bool_]]:
    """Points of soles [m], shape (k, points, 3), and which stand."""
    contacts = _contacts(clip)
    return positions(clip.character, contacts.points, clip.frames), np.asarray(contacts.on)


def _contacts(clip: Clip) -> Contacts:
    if clip.contacts is None:
        raise ClipError(f"clip {clip.name!r} does not know when its feet stand")
    return clip.contacts


def _speed(center: Floats, fps: float) -> Floats:
    if len(center) < 2:
        return np.zeros(len(center))
    return np.asarray(np.linalg.norm(np.gradient(center, axis=0), axis=1) * fps)


def _told(clip: Clip, q: Floats, moved: Floats) -> str:
    """What was done to the mass centre."""
    far = float(np.linalg.norm(moved, axis=1).max())
    if far < 1e-4:
        return "the mass centre is over the feet already"
    turned = turned_by(clip, q)
    return (
        f"mass centre moved over the feet by up to {1e3 * far:.0f} mm; links turned by "
        f"{turned[0]:.1f} degrees on the average, {turned[1]:.1f} at most"
    )


def _beside(clip: Clip) -> list[str]:
    """When the mass centre is not over the feet for long: nobody balances there without a step."""
    away = runs(~(footing_of(clip).margin >= 0.0))
    long = [(a / clip.fps, (b - a) / clip.fps) for a, b in away if b - a > LONG * clip.fps]
    if not long:
        return []
    start, time = long[0]
    when = f"for {time:.2f} s from {start:.2f} s on"
    if len(long) > 1:
        when = f"{len(long)} times, first {when}, longest for {max(time for _, time in long):.2f} s"
    return [
        f"the mass centre is beside the feet {when}: balance takes no steps, and may fall there"
    ]


def turned_by(clip: Clip, q: Floats) -> tuple[float, float]:
    """By how much links are turned against those of a clip: mean and largest [degrees]."""
    error = measure.tracking_error(clip.character, q, clip.frames).rotation
    return float(error.mean()), float(error.max())
