"""Preprocessing of raw motion, so that a character can follow it in a physical world.

Files of motion capture begin with a pose that was put in, have noise that two derivatives turn into
forces, and stand a little above or below the ground. `load_preprocessed` is what `load_clip`,
`poise track`, `poise balance` and the studio load clips with.

The motion is preprocessed on the skeleton that it was captured with, and then retargeted: there the
filter sees the noise of the capture and not what inverse kinematics made of it, and spikes are
where they came from. Joint limits and ground clearance depend on the character and come last.

Joints stop at their limits, however far beyond a clip is: each degree is a degree of error, and a
servo that presses against a limit kicks the body when it comes free. People go beyond what tables
say, so limits are not exact either. `reduce_limit_excess` removes half of the excess, the least
squares between the two, and restores the places of standing feet.

A foot that swings a few millimetres above the ground, as that of a retargeted walk does, stubs at
the first push. `raise_swing_feet` lifts it to CLEAR, a little above the clearance of people: 13 mm
under the toes, in the mean (Winter, Physical Therapy 72, 1992, 45-53).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from poise.anatomy.feet import feet_of, has_free_root, positions
from poise.characters import MOTIONS
from poise.errors import ClipError, PoiseError, shorten
from poise.math.arrays import Floats, Mask, Progress
from poise.math.filtering import lowpass
from poise.measure import tracking_error
from poise.model import configuration
from poise.model.character import Character
from poise.motion import fit_to_character, read_motion
from poise.motion.clip import Clip
from poise.motion.editing.smoothing import (
    KEEP,
    displacement,
    remove_spikes,
    residual_cutoff,
    uncut_segments,
)
from poise.motion.foot_contact.locking import lock_points, move_points
from poise.motion.foot_contact.planting import frames_from
from poise.motion.foot_contact.repair import repair_foot_contact
from poise.motion.limits import clamp, largest_excesses

if TYPE_CHECKING:
    from poise.motion.retargeting.matching import MapLike


# joint limits and foot clearance

FRACTION = 0.5
"""Fraction of the excess beyond joint limits that is removed."""

BEYOND = 2.0
"""Smaller excess beyond a limit is ignored [degrees]."""

SLOW, FAST = 8.0, 12.0
"""Low-pass cutoffs of changes of joints, and of restored feet [Hz]."""

CLEAR = 0.02
"""Height of a swinging foot above the ground [m]."""

RISE = 0.1
"""Time after a foot has left the ground, and before it stands, in which it rises to CLEAR [s]."""

PATH = 1e3
"""Weight of the root's place while feet are lifted [1/m^2]."""


class ReducedExcess(NamedTuple):
    """A clip nearer to its joint limits, and the excess of each joint before [degrees]."""

    clip: Clip
    joints: dict[str, float]


def reduce_limit_excess(clip: Clip, fraction: float = FRACTION) -> ReducedExcess:
    """Removes a fraction of the excess beyond joint limits; standing feet stay in place.

    Args:
        clip: The motion.
        fraction: Of the excess, 0 to 1.
    """
    character = clip.character
    beyond = largest_excesses(character, clip.frames, BEYOND)
    if not beyond or len(clip) < 4 or fraction <= 0.0:
        return ReducedExcess(clip, {})
    step = configuration.difference(character, clamp(character, clip.frames), clip.frames)
    step = lowpass(fraction * step, min(SLOW, 0.4 * clip.fps), clip.fps)
    frames = configuration.integrate(character, clip.frames, step)
    contacts = clip.contacts
    if contacts is not None and contacts.on.any():
        stood, now = (positions(character, contacts.points, q) for q in (clip.frames, frames))
        cutoff = min(FAST, 0.4 * clip.fps)
        frames = lock_points(
            clip, frames, contacts, stood - now, cutoff=cutoff, joints=KEEP, root=KEEP
        )
    return ReducedExcess(clip.with_frames(frames, contacts=contacts), beyond)


def raise_swing_feet(clip: Clip) -> tuple[Clip, float]:
    """Raises swinging feet above the ground; returns the clip and the largest rise [m].

    Args:
        clip: The motion, its feet on the ground z = 0 where they stand.
    """
    contacts = clip.contacts
    if contacts is None or contacts.sliding or not contacts.on.any() or len(clip) < 4:
        return clip, 0.0
    height = positions(clip.character, contacts.points, clip.frames)[..., 2]
    offset = np.zeros((*height.shape, 3))
    for foot in contacts.feet:
        own = contacts.of(foot)
        profile = _swing_profile(contacts.standing(foot), RISE * clip.fps)
        rise = np.where(profile > 0.0, CLEAR * profile - height[:, own].min(axis=1), 0.0)
        slow = lowpass(np.maximum(rise, 0.0)[:, None], min(SLOW, 0.4 * clip.fps), clip.fps)
        offset[:, own, 2] = np.maximum(slow, 0.0)
    most = float(offset.max())
    if most < 1e-3:
        return clip, 0.0
    frames = move_points(
        clip.character, clip.frames, contacts.points, offset, joints=KEEP, root=PATH
    )
    return clip.with_frames(frames, contacts=contacts), most


def _swing_profile(stands: Mask, ramp: float) -> Floats:
    """0 where a foot stands, rising smoothly to 1 within so many frames from there, shape (k,)."""
    u = np.minimum(frames_from(stands) / max(ramp, 1.0), 1.0)
    return u * u * (3.0 - 2.0 * u)


# preprocessing

ADDED_POSE = 0.1
"""A clip that jumps within this time [s] begins with a pose that was put in."""

LEAST_RISE = 1e-3
"""Smaller shifts get no note [m]."""

MOST_CHANGE = 2.8
"""Largest change of link orientations against the capture by joint limits, mean over links and
frames [degrees]: it stays the captured motion."""

SMALL_CHANGE = 0.5
"""Changes below this are not compared with the capture [degrees]."""

OnPrepared = Callable[[Any, tuple[str, ...]], None]
"""Called with a source and the notes of its preparation."""


def load_preprocessed(
    source: str | os.PathLike[str] | Clip,
    character: Character | None = None,
    *,
    cutoff: float | str | None = None,
    ground: bool = True,
    repair_feet: bool = False,
    map: MapLike = None,
    progress: Progress | None = None,
    prepared: OnPrepared | None = None,
    **options: Any,
) -> Clip:
    """Loads a motion, preprocesses it and fits it to a character; its notes list the changes.

    Built-in clips, keyframes, and other clips with contacts are not changed.

    Args:
        source: The name of a built-in clip, a file, or a clip.
        character: The character that follows it; None is the clip's own.
        cutoff: As of `preprocess`.
        ground: As of `preprocess`.
        repair_feet: Level the feet of raw motion where they really stand, as balance needs it:
            `poise.motion.foot_contact.repair`.
        map: As of `load_clip`.
        progress: Called while retargeting with the finished fraction, 0 to 1.
        prepared: Called with the source and the notes if raw motion was prepared.
        options: As of `load_clip`.
    """
    clip, raw = read_motion(
        source, None if repair_feet and _has_skeleton(source) else character, map, options
    )
    ready = preprocess(clip, raw=raw, cutoff=cutoff, ground=ground, unit_given="unit" in options)
    if repair_feet and raw and character is not None:
        same = ready.with_character(character)
        return same or repair_foot_contact(ready, character, progress, map=map)
    made = fit_to_character(ready, character, source, map, progress)
    if raw and character is not None:
        captured = clip.with_frames(clip.frames[len(clip) - len(ready) :])
        made = _fit_joints_and_feet(
            made, lambda: fit_to_character(captured, character, source, map), ground
        )
    if raw and prepared is not None:
        prepared(source, made.notes)
    return made


def preprocess(
    clip: Clip,
    *,
    raw: bool,
    cutoff: float | str | None = None,
    ground: bool = True,
    unit_given: bool = False,
) -> Clip:
    """Removes added poses and spikes, smooths, and shifts to the ground; notes list the changes.

    Args:
        clip: The motion.
        raw: Whether it is an unprocessed capture: only then a pose that was put in before its first
            frame is left out, and standing feet come to the height of the ground.
        cutoff: Low-pass cutoff [Hz]; "auto" finds it, 0 disables filtering; None is "auto" for raw
            motion that is long enough, and 0 otherwise.
        ground: Whether there is a ground at height 0 for its feet; a root that is not free stays
            where it is.
        unit_given: Whether the unit of its file was given, and not guessed.
    """
    notes: list[str] = []
    if raw:
        if not unit_given:
            _note_unit(clip, notes)
        clip = _remove_spikes(_remove_added_pose(clip, notes), notes)
    if raw or cutoff is not None:
        clip = _smooth(clip, cutoff, notes)
    if raw and ground and has_free_root(clip.character):
        clip = _ground(clip, notes)
    return _with_notes(clip, notes)


def _has_skeleton(source: str | os.PathLike[str] | Clip) -> bool:
    """Whether it is a file with its own skeleton, on which feet are detected best."""
    return not isinstance(source, Clip) and Path(source).suffix.lower() in MOTIONS


def _fit_joints_and_feet(clip: Clip, captured: Callable[[], Clip], ground: bool) -> Clip:
    """Fits retargeted raw motion to joint limits and ground clearance.

    Args:
        clip: The motion.
        captured: Makes the same motion as it was captured, on the same body; may take a while.
        ground: Whether there is a ground.
    """

    notes: list[str] = []
    clip, beyond = _reduce_excess_near_capture(clip, captured)
    if beyond:
        far = shorten((f"{joint} by {most:.0f} deg" for joint, most in beyond.items()), 4)
        notes.append(f"brought nearer to the limits of joints: {far}")
    if ground:
        clip, rise = raise_swing_feet(clip)
        if rise:
            notes.append(f"swinging feet raised by up to {1e3 * rise:.0f} mm")
    return _with_notes(clip, notes)


def _reduce_excess_near_capture(clip: Clip, captured: Callable[[], Clip]) -> ReducedExcess:
    """Reduces the excess beyond joint limits as far as the clip stays close to the capture."""

    half = reduce_limit_excess(clip)
    if _mean_link_angle(half.clip, clip) < SMALL_CHANGE:
        return half
    before = captured()
    least, most = _mean_link_angle(clip, before), _mean_link_angle(half.clip, before)
    if most <= MOST_CHANGE:
        return half
    return reduce_limit_excess(clip, FRACTION * (MOST_CHANGE - least) / max(most - least, 1e-9))


def _mean_link_angle(one: Clip, other: Clip) -> float:
    """Angle between the links of two clips, in the mean over links and frames [degrees]."""
    return float(tracking_error(one.character, one.frames, other.frames).rotation.mean())


def _with_notes(clip: Clip, notes: list[str]) -> Clip:
    """The clip with more notes."""
    return clip.replace(notes=(*clip.notes, *notes)) if notes else clip


def _note_unit(clip: Clip, notes: list[str]) -> None:
    """A BVH file does not say its unit; a wrong guess makes giants and dwarfs."""
    if clip.source is not None and clip.source.kind == "bvh":
        notes.append(f"the file's unit: {clip.source.unit:.5g} m, by the size of its skeleton")


def _remove_added_pose(clip: Clip, notes: list[str]) -> Clip:
    first, *others = uncut_segments(clip)
    if not others or first[1] > max(1, round(ADDED_POSE * clip.fps)):
        return clip
    notes.append(f"left out the first {first[1] / clip.fps:.3g} s: a pose that was put in")
    return clip.trimmed(first[1] / clip.fps)


def _remove_spikes(clip: Clip, notes: list[str]) -> Clip:
    made, joints, lost = remove_spikes(clip)
    if joints:
        longest = sorted(joints.items(), key=lambda item: -item[1])
        which = shorten((f"{joint} for {time:.2g} s" for joint, time in longest), 4)
        what = (
            "the capture was lost, and stays as it is" if lost else "took out spikes of the capture"
        )
        notes.append(f"{what}: {which}")
    return made


def apply_cutoff(clip: Clip, cutoff: float | str) -> tuple[Clip, str]:
    """Smooths a clip; returns it and a note that describes the change, "" if there is none.

    Args:
        clip: The motion.
        cutoff: As of `parse_cutoff`.
    """
    hertz = parse_cutoff(cutoff)
    if hertz == 0.0:
        return clip, ""
    hertz = residual_cutoff(clip) if hertz is None else hertz
    smooth = clip.smoothed(hertz)
    return smooth, f"smoothed at {hertz:.3g} Hz: {displacement(clip, smooth)}"


def parse_cutoff(cutoff: float | str) -> float | None:
    """Parses the cutoff of an option [Hz]; 0 disables filtering, None finds the cutoff.

    Args:
        cutoff: Low-pass cutoff [Hz], a number or its text; "auto" finds it.
    """
    if cutoff == "auto":
        return None
    try:
        return float(cutoff)
    except (TypeError, ValueError):
        raise PoiseError(
            f"cutoff is {cutoff!r:.40}; it must be auto, 0 or a number of Hz"
        ) from None


def _smooth(clip: Clip, cutoff: float | str | None, notes: list[str]) -> Clip:
    """Smooths by a cutoff, or by default; then a clip that is too short stays as it is."""
    try:
        smooth, note = apply_cutoff(clip, "auto" if cutoff is None else cutoff)
    except ClipError:
        if cutoff is not None:
            raise
        smooth, note = clip, "not smoothed: it is too short"
    notes += [note] if note else []
    return smooth


def _ground(clip: Clip, notes: list[str]) -> Clip:
    if not feet_of(clip.character):
        return clip
    stands = clip.grounded()
    rise = float(stands.frames[0, 2] - clip.frames[0, 2])
    if abs(rise) >= LEAST_RISE:
        notes.append(f"{'raised' if rise > 0 else 'lowered'} by {abs(rise):.3g} m, to stand on 0")
    return stands
