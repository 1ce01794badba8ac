"""Raw motion, made ready to be followed in a physical world.

Files of motion capture begin with a pose that was put in, have noise that two derivatives turn into
forces, and stand a little above or below the ground. `load_ready` is what `load_clip`,
`poise track`, `poise balance` and the studio load clips with.

The motion is made ready on the skeleton that it was captured with, and retargeted then: there it is
noise that is filtered, and not what inverse kinematics made of it, and spikes are where they came
from. What depends on the body is done on it: limits of joints, and feet that clear the ground.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poise.characters import MOTIONS
from poise.errors import ClipError, PoiseError, shorten
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.fitting import on_same_body

if TYPE_CHECKING:
    from poise.motion.editing.reach import Nearer
    from poise.motion.retargeting.matching import MapLike

ADDED_POSE = 0.1
"""A clip that jumps within this time [s] begins with a pose that was put in."""

LEAST_RISE = 1e-3
"""Less is not worth telling [m]."""

MOST_CHANGE = 2.8
"""How far limits of joints may turn the links from where they were captured, in the mean over links
and frames [degrees]: it stays the motion that was captured."""

Prepared = Callable[[Any, tuple[str, ...]], None]

SMALL_CHANGE = 0.5
"""Where they turn the links by less than this, nobody looks [degrees]."""


def load_ready(
    source: str | os.PathLike[str] | Clip,
    character: Character | None = None,
    *,
    cutoff: float | str | None = None,
    ground: bool = True,
    firm_feet: bool = False,
    map: MapLike = None,
    progress: Callable[[float], None] | None = None,
    prepared: Prepared | None = None,
    **options: Any,
) -> Clip:
    """A motion on a character, ready to be followed; what was done to it is in its notes.

    Built-in clips, keyframes, and others that know their contacts are taken as they are.

    Args:
        source: The name of a built-in clip, a file, or a clip.
        character: Who follows it; None is the clip's own.
        cutoff: As of `made_ready`.
        ground: As of `made_ready`.
        firm_feet: Make the feet of raw motion level where they really stand, as balance needs it:
            `poise.motion.foot_contact.repair`.
        map: As of `load_clip`.
        progress: Called while retargeting with the share that is done, 0 to 1.
        prepared: Called with the source and the notes if raw motion was prepared.
        options: As of `load_clip`.
    """
    from poise.motion import on_character, taken

    clip, raw = taken(
        source, None if firm_feet and _has_skeleton(source) else character, map, options
    )
    ready = made_ready(clip, raw=raw, cutoff=cutoff, ground=ground, told_unit="unit" in options)
    if character is None:
        return _announced(ready, source, raw, prepared)
    if firm_feet and raw:
        from poise.motion.foot_contact.repair import on_firm_feet

        same = on_same_body(ready, character)
        return same or on_firm_feet(ready, character, progress, map=map)
    made = on_character(ready, character, source, map, progress)
    if not raw:
        return made
    captured = clip.with_frames(clip.frames[len(clip) - len(ready) :])
    made = _in_reach(made, lambda: on_character(captured, character, source, map), ground)
    return _announced(made, source, raw, prepared)


def _announced(clip: Clip, source: Any, raw: bool, prepared: Prepared | None) -> Clip:
    if raw and prepared is not None:
        prepared(source, clip.notes)
    return clip


def made_ready(
    clip: Clip,
    *,
    raw: bool,
    cutoff: float | str | None = None,
    ground: bool = True,
    told_unit: bool = False,
) -> Clip:
    """A clip without what a simulation stumbles over; what was done to it is in its notes.

    Args:
        clip: The motion.
        raw: Whether it is as somebody captured it: then a pose that was put in before its first
            frame is left out, and feet that stand come to the height of the ground.
        cutoff: What is slower passes [Hz]; "auto" finds it, 0 is off; None is "auto" for raw motion
            that is long enough, and off for other.
        ground: Whether there is a ground at height 0, on which its feet shall stand; a root that is
            not free stays where it is.
        told_unit: Whether the unit of its file was told, and not guessed.
    """
    notes: list[str] = []
    if raw:
        if not told_unit:
            _tell_unit(clip, notes)
        clip = _without_spikes(_without_added_pose(clip, notes), notes)
    if cutoff is not None:
        clip = _smoothed(clip, cutoff, notes)
    elif raw:
        clip = _smoothed_if_long(clip, notes)
    if raw and ground and clip.character.joints and clip.character.joints[0].kind == "free":
        clip = _on_ground(clip, notes)
    return _noted(clip, notes)


def _has_skeleton(source: str | os.PathLike[str] | Clip) -> bool:
    """Whether it is a file that tells its own skeleton, on which feet are best seen."""
    return not isinstance(source, Clip) and Path(source).suffix.lower() in MOTIONS


def _in_reach(clip: Clip, captured: Callable[[], Clip], ground: bool) -> Clip:
    """Raw motion on another body, within what its joints and feet can do.

    Args:
        clip: The motion.
        captured: The same motion as it was captured, on the same body; it may take a while.
        ground: Whether there is a ground.
    """
    from poise.motion.editing.reach import clear_swings

    notes: list[str] = []
    clip, beyond = _nearer_limits(clip, captured)
    if beyond:
        far = shorten((f"{joint} by {most:.0f} deg" for joint, most in beyond.items()), 4)
        notes.append(f"brought nearer to the limits of joints: {far}")
    if ground:
        clip, rise = clear_swings(clip)
        if rise:
            notes.append(f"swinging feet raised by up to {1e3 * rise:.0f} mm")
    return _noted(clip, notes)


def _nearer_limits(clip: Clip, captured: Callable[[], Clip]) -> Nearer:
    """The clip nearer to the limits of its joints, as far as it stays the motion of the capture."""
    from poise.motion.editing.reach import SHARE, nearer_limits

    half = nearer_limits(clip)
    if _apart(half.clip, clip) < SMALL_CHANGE:
        return half
    before = captured()
    least, most = _apart(clip, before), _apart(half.clip, before)
    if most <= MOST_CHANGE:
        return half
    return nearer_limits(clip, SHARE * (MOST_CHANGE - least) / max(most - least, 1e-9))


def _apart(one: Clip, other: Clip) -> float:
    """Angle between the links of two clips, in the mean over links and frames [degrees]."""
    from poise.measure import tracking_error

    return float(tracking_error(one.character, one.frames, other.frames).rotation.mean())


def _noted(clip: Clip, notes: list[str]) -> Clip:
    """The clip with more notes."""
    return clip._replace(notes=(*clip.notes, *notes)) if notes else clip


def _tell_unit(clip: Clip, notes: list[str]) -> None:
    """A BVH file does not say its unit; a wrong guess makes giants and dwarfs."""
    if clip.source is not None and clip.source.kind == "bvh":
        notes.append(f"the file's unit: {clip.source.unit:.5g} m, by the size of its skeleton")


def _without_added_pose(clip: Clip, notes: list[str]) -> Clip:
    from poise.motion.editing.smoothing import parts

    first, *others = parts(clip)
    if not others or first[1] > max(1, round(ADDED_POSE * clip.fps)):
        return clip
    notes.append(f"left out the first {first[1] / clip.fps:.3g} s: a pose that was put in")
    return clip.trimmed(first[1] / clip.fps)


def _without_spikes(clip: Clip, notes: list[str]) -> Clip:
    from poise.motion.editing.spikes import without_spikes

    made, joints, lost = without_spikes(clip)
    if joints:
        longest = sorted(joints.items(), key=lambda item: -item[1])
        which = shorten((f"{joint} for {time:.2g} s" for joint, time in longest), 4)
        what = (
            "the capture was lost, and stays as it is" if lost else "took out spikes of the capture"
        )
        notes.append(f"{what}: {which}")
    return made


def without_noise(clip: Clip, cutoff: float | str) -> tuple[Clip, str]:
    """A clip smoothed as an option asks, and what that did to it, for people; "" if nothing.

    Args:
        clip: The motion.
        cutoff: As of `read_cutoff`.
    """
    hertz = read_cutoff(cutoff)
    if hertz == 0.0:
        return clip, ""
    from poise.motion.editing.smoothing import residual_cutoff, smoothing_report

    hertz = residual_cutoff(clip) if hertz is None else hertz
    smooth = clip.smoothed(hertz)
    return smooth, f"smoothed at {hertz:.3g} Hz: {smoothing_report(clip, smooth)}"


def read_cutoff(cutoff: float | str) -> float | None:
    """The cutoff of an option [Hz]; 0 is off, None is to be found.

    Args:
        cutoff: What is slower passes [Hz], a number or its text; "auto" finds it.
    """
    if cutoff == "auto":
        return None
    try:
        return float(cutoff)
    except (TypeError, ValueError):
        wanted = "it must be auto, 0 or a number of Hz"
        raise PoiseError(f"cutoff is {cutoff!r:.40}; {wanted}") from None


def _smoothed(clip: Clip, cutoff: float | str, notes: list[str]) -> Clip:
    smooth, note = without_noise(clip, cutoff)
    notes += [note] if note else []
    return smooth


def _smoothed_if_long(clip: Clip, notes: list[str]) -> Clip:
    """Without its noise; nobody asked for it, so the clip may be too short for that."""
    try:
        return _smoothed(clip, "auto", notes)
    except ClipError:
        notes.append("not smoothed: it is too short")
        return clip


def _on_ground(clip: Clip, notes: list[str]) -> Clip:
    from poise.anatomy.feet import feet_of

    if not feet_of(clip.character):
        return clip
    stands = clip.grounded()
    rise = float(stands.frames[0, 2] - clip.frames[0, 2])
    if abs(rise) >= LEAST_RISE:
        notes.append(f"{'raised' if rise > 0 else 'lowered'} by {abs(rise):.3g} m, to stand on 0")
    return stands
