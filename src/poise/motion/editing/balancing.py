"""Clips made ready for balance: feet flat and still, the mass centre over them.

A captured or keyed motion stands by luck: the body it is put on has other masses, and soles that
are guessed. Two steps make it one that can be held:

1. Feet that stand (`firm_feet`) become level and still, and joints stay within their limits
   (`retargeting`, onto the character itself).
2. The mass centre is brought over the supports while it moves slowly, and to where the supports can
   catch it while it does not, by the smallest smooth shift (`shifting`). The shift is given to the
   hips while inverse kinematics keeps the feet where they are, and what the mass centre still lacks
   is given again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import measure
from poise.errors import ClipError
from poise.motion import ik, poses
from poise.motion.clip import Clip
from poise.motion.contacts import Contacts, positions, runs
from poise.motion.editing.firm_feet import firm_contacts, steadied
from poise.motion.editing.polygons import inside_by
from poise.motion.editing.shifting import Pivots, least_shift
from poise.motion.editing.smoothing import lowpass
from poise.motion.limits import excesses
from poise.motion.quaternions import Floats
from poise.motion.retargeting.footing import near

MARGIN = 0.02
"""How far inside of the supports the mass centre is brought [m]."""

SLOW = 0.2
"""A mass centre that moves faster over the ground need not be over the feet [m/s]..."""

EDGE, FAST = 0.005, 1.2
"""... but must be caught by forces this far inside of the soles [m]. Who is still faster goes or
runs, and is left alone [m/s]."""

CALM = 6.0
"""Changes of joints that are faster than this go [Hz]."""

STILL = 2e-3
"""Standing points that stay within this are level and still [m]."""

STAND, SWING = 3e4, 1e3
"""Weights of a foot's points while it stands, and while it does not [1/m^2], of all its points."""

RAMP = 0.15
"""Time in which the weight of a foot rises before it stands [s]."""

ROUNDS = 4
"""In which frames it is slow is looked at this often."""

PASSES, LACK = 5, 1.5e-3
"""Most rounds of shift and solve; what the mass centre may lack after them [m]."""

FLAT = 0.95
"""A foot of which all points stand in this part of the time in which any does is flat."""

BEYOND = 0.035
"""Joints that go less beyond their limits are left alone [rad, m]."""

FIRM = 10.0
"""Weight of what is beyond a joint's limits [1/rad^2]: they give way a little, smoothly."""

LEAST = 30
"""Frames that a clip must have to be smoothed."""

Progress = Callable[[float], None]


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
    support = measure.polygon_of(*_standing(clip))
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
    clip = _levelled(clip, notes, lambda share: tell(0.5 * share))
    at, on = _standing(clip)
    if not on.any():
        raise ClipError(f"clip {clip.name!r}: nothing ever stands; there is nothing to balance on")
    support = measure.polygon_of(at, on)
    polygons = inside_by(support, margin)
    com = measure.center_of_mass(clip.character, clip.frames)
    center = com[:, :2]
    walks = _speed(center, clip.fps) > FAST
    pivots = Pivots(inside_by(support, EDGE), polygons.some & ~walks, com[:, 2])
    asked = np.zeros(len(center), dtype=bool)
    shift = np.zeros_like(center)
    for _ in range(ROUNDS):
        # a shift may slow it down where it was fast
        slow = polygons.some & (_speed(center + shift, clip.fps) < SLOW)
        if not (slow & ~asked).any():
            break
        asked |= slow
        shift = least_shift(center, polygons, asked, clip.fps, pivots)
    q = clip.frames
    if np.abs(shift).max() > LACK:
        q = _shifted(clip, center + shift, lambda share: tell(0.5 + 0.5 * share))
    moved = measure.center_of_mass(clip.character, q)[:, :2] - center
    notes.append(_told(clip, q, moved))
    tell(1.0)
    made = clip if q is clip.frames else clip.with_frames(q, contacts=clip.contacts)
    return Balanced(made, moved, tuple(notes))


def _shifted(clip: Clip, wanted: Floats, tell: Progress) -> Floats:
    """Poses (k, nq) whose mass centre is as wanted (k, 2), feet as they are."""
    character, start = clip.character, clip.frames
    goals = _feet_goals(clip)
    keep = np.ones(character.nv)
    keep[:3], keep[3:6] = 100.0, 10.0
    root = wanted - measure.center_of_mass(character, start)[:, :2]
    q = start
    for done in range(PASSES):
        begin = start.copy()
        begin[:, :2] += root
        q, _ = ik.solve(
            character, begin, goals, limits=FIRM, posture=keep, iterations=10, tolerance=1e-4,
            near=True,
        )  # fmt: skip
        if done + 1 < PASSES:
            # solved one by one, frames jerk where a knee is stretched
            change = lowpass(poses.difference(character, start, q), _calm(clip.fps), clip.fps)
            q, _ = ik.solve(
                character, poses.move(character, start, change), goals, limits=FIRM,
                posture=100.0 * keep, iterations=6, tolerance=1e-4, near=True,
            )  # fmt: skip
        lack = wanted - measure.center_of_mass(character, q)[:, :2]
        tell((done + 1) / PASSES)
        if np.abs(lack).max() < LACK:
            break
        root = root + lack
    return q


def _calm(fps: float) -> float:
    return min(CALM, 0.4 * fps)


def _feet_goals(clip: Clip) -> list[ik.Goal]:
    """The points of all feet stay where they are, and above the ground."""
    contacts = _contacts(clip)
    at = positions(clip.character, contacts.points, clip.frames)
    goals: list[ik.Goal] = []
    for foot in contacts.feet:
        mine = contacts.of(foot)
        close = near(contacts.standing(foot), RAMP * clip.fps)
        weight = SWING * (STAND / SWING) ** close / len(mine)
        for i in mine:
            point = contacts.points[i]
            goals.append(ik.Place(point.link, at[:, i], point.pos, weight, name=foot))
            goals.append(ik.Above(point.link, (0.0,), point.pos, STAND, f"{foot} above"))
    return goals


def _levelled(clip: Clip, notes: list[str], tell: Progress) -> Clip:
    """The clip with feet that are level and still while they stand."""
    contacts = firm_contacts(clip)
    same = clip.contacts is not None and (contacts.on == clip.contacts.on).all()
    if same and _is_level(clip) and beyond_limits(clip) < BEYOND:
        return clip
    from poise.motion.retargeting.retarget import retarget

    clip = steadied(clip, contacts)

    made = retarget(
        clip, clip.character, level_feet=True, keep_feet=True, limits=True, progress=tell
    ).clip
    flat = clip.with_frames(made.frames, contacts=made.contacts)
    if len(flat) > LEAST:
        # joints that meet their limits stop at once
        flat = flat.smoothed(_calm(flat.fps))
    away = np.abs(flat.frames[:, :3] - clip.frames[:, :3]).max()
    notes.append(f"feet that stand are level and still; hips moved by up to {1e3 * away:.0f} mm")
    return flat


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
        f"{turned[0]:.2g} degrees on the average, {turned[1]:.2g} at most"
    )


def turned_by(clip: Clip, q: Floats) -> tuple[float, float]:
    """By how much links are turned against those of a clip: mean and largest [degrees]."""
    error = measure.tracking_error(clip.character, q, clip.frames).rotation
    return float(error.mean()), float(error.max())
