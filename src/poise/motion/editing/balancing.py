"""Clips made ready for balance: feet flat and still, the mass centre over them.

A captured or keyed motion stands by luck: the body it is put on has other masses, and soles that
are guessed. Two steps make it one that can be held:

1. Feet that stand become level and still, and joints stay within their limits (`retargeting`, onto
   the character itself).
2. The mass centre c(t), seen from above, is brought over the supports by the smallest smooth shift

       min  Σ_i |s_i|² + τ⁴ |s̈_i|²    such that   c_i + s_i ∈ P_i   while it moves slowly,

   P_i the support polygon less a margin. A fast mass centre is left alone: it is caught later. The
   problem is convex; ADMM alternates a banded solve with the nearest point of each polygon. The
   shift is then given to the hips while inverse kinematics keeps the feet where they are, and what
   the mass centre still lacks is given again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded

from poise import measure
from poise.character import Character
from poise.errors import ClipError
from poise.motion import ik, poses
from poise.motion.clip import Clip
from poise.motion.contacts import Contacts, positions, runs
from poise.motion.editing.polygons import Polygons, inside_by, nearest
from poise.motion.editing.smoothing import lowpass
from poise.motion.limits import excesses
from poise.motion.quaternions import Floats

MARGIN = 0.02
"""How far inside of the supports the mass centre is brought [m]."""

SLOW = 0.2
"""A mass centre that moves faster over the ground is left alone [m/s]."""

TIME = 0.25
"""τ, the time over which a shift grows and fades [s]."""

CALM = 6.0
"""Changes of joints that are faster than this go [Hz]."""

STILL = 2e-3
"""Standing points that stay within this are level and still [m]."""

STAND, SWING = 3e4, 1e3
"""Weights of a foot's points while it stands, and while it does not [1/m^2], of all its points."""

RAMP = 0.15
"""Time in which the weight of a foot rises before it stands [s]."""

PASSES, LACK = 5, 1.5e-3
"""Most rounds of shift and solve; what the mass centre may lack after them [m]."""

PLAY, LOW = 0.08, 0.04
"""A foot that stays within this distance and below this height has not made a step [m]."""

STRAYS = 0.25
"""A foot that floats in a capture comes down within this distance [m]."""

HOVERS = 0.02
"""A foot this much above another that stands hovers, if it does so half of the time [m]."""

FLAT = 0.95
"""A foot of which all points stand in this part of the time in which any does is flat."""

BEYOND = 0.035
"""Joints that go less beyond their limits are left alone [rad, m]."""

FIRM = 10.0
"""Weight of what is beyond a joint's limits [1/rad^2]: they give way a little, smoothly."""

LEAST = 30
"""Frames that a clip must have to be smoothed."""

SPLITS, RHO, RELAX = 300, 100.0, 1.6
"""Most rounds of ADMM, its weight and over-relaxation (Boyd 2011, 3.4.3)."""

CLOSE = 2e-5
"""ADMM ends when nothing is off or moves by more [m]."""

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
    polygons = inside_by(measure.polygon_of(at, on), margin)
    center = measure.center_of_mass(clip.character, clip.frames)[:, :2]
    asked = polygons.some & (_speed(center, clip.fps) < SLOW)
    shift = least_shift(center, polygons, asked, clip.fps)
    q = clip.frames
    if np.abs(shift).max() > LACK:
        q = _shifted(clip, center + shift, lambda share: tell(0.5 + 0.5 * share))
    moved = measure.center_of_mass(clip.character, q)[:, :2] - center
    notes.append(_told(clip, q, moved))
    tell(1.0)
    made = clip if q is clip.frames else clip.with_frames(q, contacts=clip.contacts)
    return Balanced(made, moved, tuple(notes))


def least_shift(center: Floats, polygons: Polygons, asked: NDArray[np.bool_], fps: float) -> Floats:
    """The smallest smooth shift that brings points into polygons, shape (k, 2) [m].

    Args:
        center: Points [m], shape (k, 2).
        polygons: Where they shall be.
        asked: In which frames, shape (k,).
        fps: Frames per second.
    """
    k = len(center)
    rho = np.where(asked, RHO, 0.0)
    factor = _factor(k, (TIME * fps) ** 4, rho)
    goal, miss, shift = np.zeros((3, k, 2))
    for _ in range(SPLITS):
        before = shift
        shift = cho_solve_banded((factor, True), rho[:, None] * (goal - miss))
        bold = RELAX * shift + (1.0 - RELAX) * goal
        goal = nearest(polygons, center + bold + miss) - center
        miss = miss + bold - goal
        far, moved = np.abs((shift - goal)[asked]), np.abs(shift - before)
        if max(far.max(initial=0.0), moved.max()) < CLOSE:
            break
    return shift


def _factor(k: int, stiff: float, rho: Floats) -> Floats:
    """Banded factor of 1 + rho + stiff D'D, D the second difference."""
    band = np.zeros((3, k))
    band[0] = 1.0 + rho
    for i, weight in enumerate((1.0, -2.0, 1.0)):
        band[0, i : k - 2 + i] += stiff * weight * weight
    if k > 2:
        band[1, : k - 2] += stiff * -2.0
        band[1, 1 : k - 1] += stiff * -2.0
        band[2, : k - 2] += stiff
    factor: Floats = cholesky_banded(band, lower=True)
    return factor


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
    """The points of all feet stay where they are."""
    from poise.motion.retargeting.footing import near

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
    return goals


def _levelled(clip: Clip, notes: list[str], tell: Progress) -> Clip:
    """The clip with feet that are level and still while they stand."""
    contacts = firm_contacts(clip)
    same = clip.contacts is not None and (contacts.on == clip.contacts.on).all()
    if same and _is_level(clip) and beyond_limits(clip) < BEYOND:
        return clip
    from poise.motion.retargeting.retarget import retarget

    clip = clip.with_frames(clip.frames, contacts=contacts)

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


def on_firm_feet(clip: Clip, character: Character, progress: Progress | None = None) -> Clip:
    """Raw motion on another body, its feet level where those of the capture really stand.

    What a foot does is best told on the skeleton that it was captured with.

    Args:
        clip: The motion, its feet on the ground z = 0 where they stand.
        character: Who shall have it.
        progress: Called with the share that is done, 0 to 1.
    """
    firm = clip.with_frames(clip.frames, contacts=firm_contacts(clip))
    return firm.retargeted(character, level_feet=True, progress=progress)


def firm_contacts(clip: Clip) -> Contacts:
    """When feet stand, as far as that can be told from how the whole body moves.

    A foot that hovers over the ground while another stands does not. One whose heel or toes rise
    for a while without a step does. Where nothing stands and yet nothing falls, the capture is
    wrong and not the body: feet that come down near where they were have stood.

    Args:
        clip: The motion, its feet on the ground z = 0 where they stand.
    """
    from poise.motion.detect import detect_contacts

    contacts = clip.contacts or detect_contacts(clip)
    at = positions(clip.character, contacts.points, clip.frames)
    on = _without_hovering(contacts, at)
    contacts = Contacts(contacts.points, on, contacts.sliding, contacts.detected)
    on = np.array(on)
    floats = _floating(clip, contacts)
    for foot in contacts.feet:
        mine = contacts.of(foot)
        middle, low = at[:, mine, :2].mean(axis=1), at[:, mine, 2].min(axis=1)
        for a, b in runs(~contacts.standing(foot)):
            if a == 0 or b == len(on):
                continue
            span = slice(a - 1, b + 1)
            away = np.linalg.norm(middle[span] - middle[a - 1], axis=1)
            near = away.max() < PLAY and low[span].max() < LOW
            if near or (away[-1] < STRAYS and floats[a:b].any()):
                on[a:b, mine] = True
    return Contacts(contacts.points, on, contacts.sliding, contacts.detected)


def _without_hovering(contacts: Contacts, at: Floats) -> NDArray[np.bool_]:
    """Standing points without those of feet that hover while another foot is on the ground."""
    on = np.array(contacts.on)
    low = {foot: at[:, contacts.of(foot), 2].min(axis=1) for foot in contacts.feet}
    for foot in contacts.feet:
        others = [low[other] for other in contacts.feet if other != foot]
        for _, a, b in contacts.phases(foot):
            below = min((float(np.median(other[a:b])) for other in others), default=np.inf)
            if float(np.median(low[foot][a:b])) > max(below, 0.0) + HOVERS:
                on[a:b, contacts.of(foot)] = False
    return on


def _floating(clip: Clip, contacts: Contacts) -> NDArray[np.bool_]:
    """When nothing stands although the mass centre does not fall freely, shape (k,)."""
    height = measure.center_of_mass(clip.character, clip.frames)[:, 2]
    out = np.zeros(len(height), dtype=bool)
    for a, b in runs(contacts.flight):
        if a > 1 and b < len(height) - 1:
            # the fall over the whole flight, from the speeds before and after it
            before, after = height[a] - height[a - 1], height[b] - height[b - 1]
            out[a:b] = (after - before) * clip.fps**2 / (b - a) > -0.5 * 9.81
    return out


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
