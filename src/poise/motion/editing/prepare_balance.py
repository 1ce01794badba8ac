"""Preparation of a clip for balance: feet flat and still, the center of mass over them.

A captured or keyed motion stands by luck: the character has other masses than the captured person,
and its soles are guessed. Three steps make it a motion that can be balanced:

1. Standing feet (`foot_contact.repair`) become level and still (`retargeting`, onto the character
   itself).
2. The desired center of mass lies over the supports while it moves slowly, and where the supports
   can catch it while it does not, by the smallest smooth shift.
3. All frames move together until the center of mass is there, joints are within their limits, and
   the ground explains the motion (`make_consistent`).

The shift: with c the center of mass seen from above, h its height, and s the shift, over all frames

    min  Σ |s|² + τ⁴ |s̈|²    such that   c + s ∈ P                        while it moves slowly,
                                          (c + s) - h/(g + ḧ) (c̈ + s̈) ∈ P'    while anything stands.

P is the support polygon less a margin. The second point is the zero moment point (ZMP) of the
cart-table model (Kajita 2003), where the ground would have to push if all the mass were in one
point: a fast center of mass that the feet can catch stays so, and one that they cannot is slowed.
The problem is convex. ADMM (Boyd 2011) alternates a banded solve with the nearest points of the
polygons:

    s ← (1 + τ⁴ D'D + ρ₁ + A'ρ₂A)⁻¹ (ρ₁ (z₁ - u₁) + A'ρ₂ (z₂ - u₂)),
    z ← nearest(x + u),   u ← u + x - z,   x the two points

with D the second difference and A s = s - h/(g + ḧ) s̈, both banded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from poise import measure
from poise.anatomy.body import body_of
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import positions
from poise.errors import ClipError
from poise.math.arrays import Floats, Mask, Progress, runs
from poise.math.polygon import Polygons, nearest_points, shrink
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.editing.dynamic_consistency import make_consistent
from poise.motion.foot_contact.repair import hold_standing_feet, repair_schedule
from poise.motion.limits import excesses
from poise.motion.retargeting.feet import is_on_limb
from poise.motion.retargeting.retarget import retarget

# shift of the center of mass

TIME = 0.1
"""τ, the time over which a shift grows and fades [s]."""

SPLITS, RHO, RELAX = 1000, (100.0, 0.1), 1.6
"""Most rounds of ADMM, weights of its two kinds of rows, and over-relaxation."""

CLOSE = (2e-5, 5e-4)
"""Tolerances of the center of mass and of the ZMP [m]."""

GRAVITY, LEAST_PULL = 9.81, 3.0
"""[m/s²]; in a fall faster than their difference the feet cannot steer the center of mass."""


class ZmpConstraint(NamedTuple):
    """Constraint of the zero moment point.

    Attributes:
        polygons: Where it may lie.
        required: In which frames it must lie there, shape (k,).
        height: Of the center of mass [m], shape (k,).
    """

    polygons: Polygons
    required: Mask
    height: Floats


def smallest_com_shift(
    center: Floats,
    polygons: Polygons,
    required: Mask,
    fps: float,
    zmp_constraint: ZmpConstraint | None = None,
) -> Floats:
    """The smallest smooth shift that brings points into polygons, shape (k, 2) [m].

    Args:
        center: Points [m], shape (k, 2).
        polygons: Where they must lie.
        required: In which frames, shape (k,).
        fps: Frames per second.
        zmp_constraint: Constraint of their ZMP; None is none.
    """
    k = len(center)
    if k < 3:
        return nearest_points(polygons, center) - center if required.all() else np.zeros((k, 2))
    lag = np.zeros(k)
    rho = np.zeros((2, k))
    rho[0, required] = RHO[0]
    if zmp_constraint is not None:
        lag = zmp_lag(zmp_constraint.height, fps)
        rho[1, zmp_constraint.required & (lag > 0.0)] = RHO[1]
    factor = _factor((TIME * fps) ** 4, lag, rho)
    places = (polygons, polygons if zmp_constraint is None else zmp_constraint.polygons)
    begin = (center, zmp(center, lag))
    goal, dual = np.zeros((2, 2, k, 2))
    shift = np.zeros((k, 2))
    for _ in range(SPLITS):
        pull = rho[:, :, None] * (goal - dual)
        shift = cho_solve_banded((factor, True), pull[0] + _zmp_transposed(pull[1], lag))
        now = (shift, zmp(shift, lag))
        for i in range(2):
            bold = RELAX * now[i] + (1.0 - RELAX) * goal[i]
            goal[i] = nearest_points(places[i], begin[i] + bold + dual[i]) - begin[i]
            dual[i] += bold - goal[i]
        off = [np.abs((now[i] - goal[i])[rho[i] > 0.0]).max(initial=0.0) for i in range(2)]
        if off[0] < CLOSE[0] and off[1] < CLOSE[1]:
            break
    return shift


def zmp_lag(height: Floats, fps: float) -> Floats:
    """h/(g + ḧ) in frames², shape (k,); 0 at the ends, where nothing is known of accelerations."""
    lag = np.zeros(len(height))
    rise = (height[2:] - 2.0 * height[1:-1] + height[:-2]) * fps**2
    lag[1:-1] = height[1:-1] / np.maximum(GRAVITY + rise, LEAST_PULL) * fps**2
    return lag


def zmp(x: Floats, lag: Floats) -> Floats:
    """A x = x - lag ẍ, shape (k, 2)."""
    out: Floats = x.copy()
    out[1:-1] -= lag[1:-1, None] * (x[2:] - 2.0 * x[1:-1] + x[:-2])
    return out


def _zmp_transposed(y: Floats, lag: Floats) -> Floats:
    """A' y, shape (k, 2)."""
    out: Floats = y.copy()
    pull = lag[1:-1, None] * y[1:-1]
    out[2:] -= pull
    out[1:-1] += 2.0 * pull
    out[:-2] -= pull
    return out


def _factor(stiff: float, lag: Floats, rho: Floats) -> Floats:
    """Banded factor of 1 + stiff D'D + ρ₁ + A'ρ₂A."""
    k = len(lag)
    band = np.zeros((3, k))
    band[0] = 1.0 + rho[0]
    for i, weight in enumerate((1.0, -2.0, 1.0)):
        band[0, i : k - 2 + i] += stiff * weight * weight
    band[1, : k - 2] += stiff * -2.0
    band[1, 1 : k - 1] += stiff * -2.0
    band[2, : k - 2] += stiff
    # rows of A: -lag, 1 + 2 lag, -lag
    side, middle = -lag, 1.0 + 2.0 * lag
    band[0] += rho[1] * middle**2
    band[0, :-1] += (rho[1] * side**2)[1:]
    band[0, 1:] += (rho[1] * side**2)[:-1]
    band[1, :-1] += (rho[1] * middle * side)[:-1] + (rho[1] * middle * side)[1:]
    band[2, :-2] += (rho[1] * side**2)[1:-1]
    factor: Floats = cholesky_banded(band, lower=True)
    return factor


# preparation

MARGIN = 0.02
"""Margin of the center of mass inside of the supports [m]."""

SLOW = 0.2
"""A center of mass that moves faster over the ground need not be over the feet [m/s]..."""

EDGE, FAST = 0.005, 1.2
"""... but its ZMP must lie this far inside of the soles [m]. A center of mass that is still faster
belongs to a walk or run and is not shifted [m/s]."""

STILL = 2e-3
"""Standing points that stay within this are level and still [m]."""

ROUNDS = 4
"""Iterations that find the frames in which it is slow."""

LACK = 1.5e-3
"""Smaller shifts are not made [m]."""

FLAT = 0.95
"""A foot of which all points stand in this part of the time in which any does is flat."""

BEYOND = 0.035
"""Joints that go less beyond their limits are left alone [rad, m]."""

LEAST = 8
"""Frames that a clip must have to be moved."""

STRANGE, LONG = 0.1, 0.2
"""Thresholds of notes: unexplained fraction of the weight; time without support [s]."""


class PreparedClip(NamedTuple):
    """A clip that can be balanced, and its changes.

    Attributes:
        clip: The clip, with contacts.
        shift: How far the center of mass was moved [m], shape (k, 2).
        notes: What was done, for people to read.
    """

    clip: Clip
    shift: Floats
    notes: tuple[str, ...]


class ComOverSupport(NamedTuple):
    """How the center of mass of a clip lies over its supports.

    Attributes:
        margin: Distance to the edge of the support polygon [m], below zero outside; NaN in the
            air; shape (k,).
        speed: Of the center of mass over the ground [m/s], shape (k,).
    """

    margin: Floats
    speed: Floats


def com_over_support(clip: Clip) -> ComOverSupport:
    """How the center of mass of a clip lies over the points that stand, by its own contacts.

    Args:
        clip: A clip with contacts.
    """
    support = measure.convex_hulls(*_standing(clip))
    center = measure.center_of_mass(clip.character, clip.frames)[:, :2]
    return ComOverSupport(measure.support_margin(support, center), _speed(center, clip.fps))


def prepare_balance(
    clip: Clip, *, margin: float = MARGIN, progress: Progress | None = None
) -> PreparedClip:
    """Levels standing feet and brings the center of mass over them while it moves slowly.

    Args:
        clip: The motion, of a character with feet and a free root.
        margin: Margin of the center of mass inside of the supports [m].
        progress: Called with the finished fraction, 0 to 1.
    """
    report = progress or (lambda fraction: None)
    notes: list[str] = []
    clip = _level_feet(clip, notes, lambda fraction: report(0.3 * fraction))
    contacts = _contacts(clip)
    if not np.any(contacts.on):
        raise ClipError(f"clip {clip.name!r}: nothing ever stands; there is nothing to balance on")
    center = measure.center_of_mass(clip.character, clip.frames)[:, :2]
    desired, _ = _desired_com(clip.character, contacts, clip.frames, clip.fps, margin)
    q = clip.frames
    off = np.abs(desired - center).max() > LACK or limit_excess(clip) > BEYOND
    if off and len(clip) < LEAST:
        notes.append(f"too short to be moved: {len(clip)} frames, it takes {LEAST}")
    elif off:

        def goal(q: Floats, fps: float) -> tuple[Floats, Mask]:
            return _desired_com(clip.character, _resample(contacts, len(q)), q, fps, margin)

        q, left = make_consistent(
            clip, contacts, goal, lambda fraction: report(0.3 + 0.7 * fraction)
        )
        if left > STRANGE:
            notes.append(f"the ground does not explain it all: {100.0 * left:.0f} % of the weight")
    moved = measure.center_of_mass(clip.character, q)[:, :2] - center
    notes.append(_describe_shift(clip, q, moved))
    report(1.0)
    made = clip if q is clip.frames else clip.replace(q=q)
    return PreparedClip(made, moved, (*notes, *_describe_unsupported(made)))


def _desired_com(
    character: Character, contacts: ContactSchedule, q: Floats, fps: float, margin: float
) -> tuple[Floats, Mask]:
    """Desired center of mass of frames [m], (k, 2), and when it counts, (k,)."""
    at = positions(character, contacts.points, q)
    support = measure.convex_hulls(at, np.asarray(contacts.on))
    polygons = shrink(support, margin)
    com = measure.center_of_mass(character, q)
    center = com[:, :2]
    walks = _speed(center, fps) > FAST
    zmp_constraint = ZmpConstraint(shrink(support, EDGE), (polygons.size > 0) & ~walks, com[:, 2])
    required = np.zeros(len(center), dtype=bool)
    shift = np.zeros_like(center)
    for _ in range(ROUNDS):
        # a shift may slow it down where it was fast
        slow = (polygons.size > 0) & (_speed(center + shift, fps) < SLOW)
        if not (slow & ~required).any():
            break
        required |= slow
        shift = smallest_com_shift(center, polygons, required, fps, zmp_constraint)
    return center + shift, required


def _resample(contacts: ContactSchedule, count: int) -> ContactSchedule:
    """The contacts at another number of frames over the same time."""
    at = np.rint(np.linspace(0.0, len(contacts.on) - 1.0, count)).astype(int)
    return replace(contacts, on=np.asarray(contacts.on)[at])


def _level_feet(clip: Clip, notes: list[str], progress: Progress) -> Clip:
    """The clip with feet that are level and still while they stand."""
    contacts = repair_schedule(clip)
    same = clip.contacts is not None and (contacts.on == clip.contacts.on).all()
    if same and _is_level(clip):
        return clip
    body = body_of(clip.character)
    if not any(is_on_limb(body, foot) for foot in contacts.feet):
        notes.append(f"feet are left as they are: {clip.character.name!r} has no pair of legs")
        return clip.replace(contacts=clip.contacts or contacts)
    clip = hold_standing_feet(clip, contacts)
    made = retarget(clip, clip.character, level_feet=True, keep_feet=True, progress=progress).clip
    flat = clip.with_frames(made.frames, contacts=made.contacts)
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
    return standing_drift(clip) < STILL


def limit_excess(clip: Clip) -> float:
    """How far any joint of a clip goes beyond its limits [rad, m]: a world would hold it there."""
    each = excesses(clip.character, clip.frames)
    return max((float(one.value.max()) for one in each), default=0.0)


def standing_drift(clip: Clip) -> float:
    """How far points that stand are from the ground, or from where they began to stand [m]."""
    at, on = _standing(clip)
    worst = float(np.abs(at[..., 2][on]).max(initial=0.0))
    for i in range(on.shape[1]):
        for a, b in runs(on[:, i]):
            worst = max(worst, float(np.abs(at[a:b, i] - at[a, i]).max()))
    return worst


def _standing(clip: Clip) -> tuple[Floats, Mask]:
    """Points of soles [m], shape (k, points, 3), and which stand."""
    contacts = _contacts(clip)
    return positions(clip.character, contacts.points, clip.frames), np.asarray(contacts.on)


def _contacts(clip: Clip) -> ContactSchedule:
    if clip.contacts is None:
        raise ClipError(f"clip {clip.name!r} does not know when its feet stand")
    return clip.contacts


def _speed(center: Floats, fps: float) -> Floats:
    if len(center) < 2:
        return np.zeros(len(center))
    return np.asarray(np.linalg.norm(np.gradient(center, axis=0), axis=1) * fps)


def _describe_shift(clip: Clip, q: Floats, moved: Floats) -> str:
    """What was done to the center of mass."""
    far = float(np.linalg.norm(moved, axis=1).max())
    if far < 1e-4:
        return "the center of mass is over the feet already"
    turned = link_rotation(clip, q)
    return (
        f"center of mass moved over the feet by up to {1e3 * far:.0f} mm; links turned by "
        f"{turned[0]:.1f} degrees on the average, {turned[1]:.1f} at most"
    )


def _describe_unsupported(clip: Clip) -> list[str]:
    """Note of the times in which the center of mass is not over the feet for long."""
    away = runs(~(com_over_support(clip).margin >= 0.0))
    long = [(a / clip.fps, (b - a) / clip.fps) for a, b in away if b - a > LONG * clip.fps]
    if not long:
        return []
    start, time = long[0]
    when = f"for {time:.2f} s from {start:.2f} s on"
    if len(long) > 1:
        when = f"{len(long)} times, first {when}, longest for {max(time for _, time in long):.2f} s"
    return [
        f"the center of mass is beside the feet {when}: balance takes no steps, and may fall there"
    ]


def link_rotation(clip: Clip, q: Floats) -> tuple[float, float]:
    """By how much links are turned against those of a clip: mean and largest [degrees]."""
    error = measure.tracking_error(clip.character, q, clip.frames).rotation
    return float(error.mean()), float(error.max())
