"""Clips one after another: loops that travel, and one motion that turns into the next.

A root that walks and turns starts its next round where the last one ended: each round is moved by
the step from the first to the last frame, a turn about the vertical and a shift over the ground. Of
a clip with contacts it is the step of the points that stand in both; of one in which a point stands
all the time there is none.
What is left at the seam (joints, height, tilt, and all velocities) is shared by both sides and
faded over a time: cubics take half of it from each. A seam that is closed, or no rougher than
what is near it, is left: of a gait that was made as a loop, footfalls are no flaw.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poise.anatomy.body import root_yaw
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import has_free_root, positions
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats, count, number, runs
from poise.model import configuration
from poise.motion.clip import Clip
from poise.motion.editing.cutting import UP, check_angle, resample, transform_frames
from poise.motion.foot_contact.locking import lock_blended_feet, lock_points

Travel = tuple[float, Floats, Floats]
"""A turn about the vertical [rad] at a place, and the place to which that goes [m]."""

SEAM, LONGEST_SEAM = 0.1, 0.5
"""Time on each side of a seam over which it is faded, by default [s]..."""

GENTLE = 0.15
"""... so that it accelerates the body by a few times this [m/s^2]."""

CLOSED, ARM = 1e-4, 0.3
"""A gap of less is none [m]; angles count by this arm [m]."""

NEAR = 0.3
"""What is near a seam [s]."""

BLEND = 0.2
"""Time of a blend, by default [s]."""

ROUGH = 1.5
"""A seam this much rougher than what is near it is faded, by default..."""

SMOOTH = 0.5
"""... if its accelerations are above this [rad/s^2, m/s^2]."""

BESIDE = 0.06
"""Feet that end this near to where their next round begins are brought together [m]."""

WIDE = 0.05
"""Points this far from their middle show how much a round turns [m]."""

SLOPE = 0.1
"""Time over which the velocity at a seam is taken [s]: single frames have too much noise."""


def loop(
    clip: Clip, cycles: int = 1, *, blend: float | None = None, turn: float | None = None
) -> Clip:
    """The clip again and again: its last frame becomes the first one of the next round.

    Args:
        clip: One round; its last pose should be near its first, up to where it has travelled.
        cycles: How many rounds. One gives a round that can be looped without a seam.
        blend: Time on each side of the seam over which its rest is faded [s]; at most half the
            clip. None takes 0.1 to 0.5 s, the longer the wider the gap, and leaves a seam as it is
            that is closed or no rougher than what is near it. 0 leaves every seam.
        turn: By how much the heading changes in a round [rad]; None takes what it does in the
            clip, 0 walks straight on.
    """
    cycles = count(cycles, "cycles", most=100_000)
    n = len(clip) - 1
    if n < 2:
        raise ClipError(f"a clip of {len(clip)} frames cannot be looped; it needs 3 or more")
    most = clip.duration / 2.0
    span = min(SEAM, most) if blend is None else number(blend, "blend", positive=False)
    if not 0.0 <= span <= most + 1e-9:
        raise ClipError(
            f"blend is {span:g} s; it must lie in 0 .. {most:g} s, half of the clip's time"
        )
    travel = _travel(clip, clip.frames[0], clip.frames[-1])
    travel = _travel_of_feet(clip, travel)
    if turn is not None:
        travel = (check_angle(turn, "turn"), *travel[1:])
    if blend is None:
        span = min(_fade_time(clip, travel), most)
    faded = round(span * clip.fps)
    one, contacts = _lock_seam_feet(clip, _close_seam(clip, faded, travel), travel, faded)
    rounds, frames = [one[:-1]], one
    for _ in range(cycles - 1):
        frames = _transform(clip, frames, travel)
        rounds.append(frames[:-1])
    if contacts is not None:
        on = contacts.on.copy()
        on[0] |= on[-1]
        contacts = replace(contacts, on=np.concatenate([np.tile(on[:-1], (cycles, 1)), on[:1]]))
    return clip.with_frames(np.concatenate([*rounds, frames[-1:]]), contacts=contacts)


def blend(clip: Clip, other: Clip, duration: float = BLEND, *, at: float | None = None) -> Clip:
    """A clip that turns into another one.

    The other is placed so that both roots meet in the middle of the blend: over the ground and in
    their heading. Height and tilt are blended like the joints. If both clips have contacts, feet
    that stand are kept in place, and soles out of the ground to some millimetres; a foot that would
    have to be in two places slides from one to the other, and its contact ends meanwhile.

    Args:
        clip: The motion before.
        other: The motion after, from its beginning; of the same character.
        duration: How long the blend takes [s].
        at: When it begins [s]; None blends at the end of the clip.
    """
    if not isinstance(other, Clip):
        raise ClipError(f"a clip is blended with a Clip, got {other!r:.80}; load_clip makes one")
    differ = clip.character.differences(other.character)
    if differ:
        raise ClipError(
            f"cannot blend a clip of {clip.character.name!r} with one of {other.character.name!r} "
            f"({differ[0]}); retarget it first"
        )
    duration = number(duration, "duration")
    shortest = min(clip.duration, other.duration)
    if duration > shortest:
        raise ClipError(
            f"a blend of {duration:g} s is longer than a clip: {clip.duration:g} s and "
            f"{other.duration:g} s"
        )
    last = clip.duration - duration
    start = last if at is None else number(at, "at", positive=False)
    if not 0.0 <= start <= last + 1e-9:
        raise ClipError(f"at is {start:g} s; a blend of {duration:g} s begins in 0 .. {last:g} s")
    after = other if other.fps == clip.fps else resample(other, clip.fps)
    first, n = min(round(start * clip.fps), len(clip) - 2), max(1, round(duration * clip.fps))
    n = min(n, len(clip) - 1 - first, len(after) - 1)
    meeting = _travel(clip, after.frames[n // 2], clip.frames[first + n // 2])
    frames = _transform(clip, after.frames, meeting)
    s = np.arange(n + 1)[:, None] / n
    s = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
    before = clip.frames[first : first + n + 1]
    step = configuration.difference(clip.character, frames[: n + 1], before)
    mixed = configuration.integrate(clip.character, before, s * step)
    joined = np.concatenate([clip.frames[:first], mixed, frames[n + 1 :]])
    contacts = _join_contacts(clip, after, first, n)
    blended = clip.with_frames(joined, contacts=contacts)
    if contacts is None or not _can_lock(clip) or not contacts.on.any():
        return blended
    return lock_blended_feet(blended, clip.frames, frames, first, n)


def _can_lock(clip: Clip) -> bool:
    """Whether the feet of a clip stand in places, in which they can be locked."""
    contacts = clip.contacts
    return contacts is not None and not contacts.sliding and has_free_root(clip.character)


def _transform(clip: Clip, frames: Floats, travel: Travel) -> Floats:
    """Poses (k, nq) after a travel; those of a root that is fixed stay."""
    return transform_frames(frames, *travel) if has_free_root(clip.character) else frames


def _fade_time(clip: Clip, travel: Travel) -> float:
    """How long a seam should be faded on each side [s]; 0 if it is closed, or smooth enough.

    Smooth enough: second differences of poses across the seam are no larger than near it.
    """
    # two frames before the last; the last itself gives way to the first of the next round
    ahead = _transform(clip, clip.frames[:2], travel)
    gap = configuration.difference(clip.character, ahead[0], clip.frames[-1])
    width = float(max(np.abs(gap[:3]).max(), ARM * np.abs(gap[3:]).max(initial=0.0)))
    if width < CLOSED:
        return 0.0
    near = max(3, round(NEAR * clip.fps))
    across = np.concatenate([clip.frames[-3:-1], ahead])
    seam, *sides = (
        np.abs(np.diff(configuration.difference(clip.character, q[1:], q[:-1]), axis=0)).max(axis=0)
        for q in (across, clip.frames[:near], clip.frames[-near:])
    )
    level = np.maximum(ROUGH * np.maximum(*sides), SMOOTH / clip.fps**2)
    if (seam <= level).all():
        return 0.0
    return float(np.clip(np.sqrt(width / GENTLE), SEAM, LONGEST_SEAM))


def _close_seam(clip: Clip, span: int, travel: Travel) -> Floats:
    """Frames of one round whose last pose and velocity are those of the first, moved on."""
    character, frames = clip.character, clip.frames.copy()
    turn, here, there = travel
    if span < 1:
        return np.asarray(frames)
    back = _transform(clip, frames, (-turn, there, here))
    u = np.arange(span + 1)[:, None] / span
    begin, end = frames[: span + 1], back[::-1][: span + 1]
    # first the pose: half of the gap from each side, level at the seam
    fade = 0.5 * (1.0 + 2.0 * u) * (1.0 - u) ** 2
    gap = configuration.difference(character, begin[0], end[0])
    begin, end = (
        configuration.integrate(character, x, y * gap) for x, y in ((begin, -fade), (end, fade))
    )
    # then the velocity, seen from the common pose; outward the end runs backward
    fade = 0.5 * u * (1.0 - u) ** 2 * span
    gap = _slope(clip, begin) + _slope(clip, end)
    begin, end = (configuration.integrate(character, x, -fade * gap) for x in (begin, end))
    frames[: span + 1] = begin
    frames[-span - 1 :] = _transform(clip, end[::-1], travel)
    return np.asarray(frames)


def _slope(clip: Clip, frames: Floats) -> Floats:
    """Step per frame at the first of these frames, (nv,): of a parabola through the first 0.1 s."""
    n = min(max(2, round(SLOPE * clip.fps)), len(frames) - 1)
    step = configuration.difference(clip.character, frames[1 : n + 1], frames[0])
    i = np.arange(1.0, n + 1.0)
    terms = np.stack([i, i * i], axis=1) if n > 1 else i[:, None]
    return np.asarray(np.linalg.lstsq(terms, step, rcond=None)[0][0])


def _travel(clip: Clip, a: Floats, b: Floats) -> Travel:
    """From pose a to pose b over the ground: turn [rad], and the place that goes to a place."""
    here, there = a[:3].copy(), b[:3].copy()
    if not has_free_root(clip.character):
        return 0.0, here, there
    there[2] = here[2]
    turn = float(root_yaw(clip.character, b) - root_yaw(clip.character, a))
    return turn, here, there


def _travel_of_feet(clip: Clip, travel: Travel) -> Travel:
    """The travel of a round as the points say that stand in its first and in its last frame."""
    contacts = clip.contacts
    if contacts is None or not _can_lock(clip):
        return travel
    turn, here, there = travel
    if contacts.on.all(axis=0).any():
        return 0.0, here, here
    both = contacts.on[0] & contacts.on[-1]
    if not both.any():
        return travel
    at = positions(clip.character, contacts.points, clip.frames[[0, -1]])[:, both]
    a, b = at[..., :2] - at[..., :2].mean(axis=1, keepdims=True)
    if np.linalg.norm(a, axis=1).max() > WIDE:
        turn = float(np.arctan2(np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]), np.sum(a * b)))
    here, there = at.mean(axis=1)
    there[2] = here[2]
    return turn, here, there


def _lock_seam_feet(
    clip: Clip, frames: Floats, travel: Travel, faded: int
) -> tuple[Floats, ContactSchedule | None]:
    """Frames of a round in which standing points are where they stood before its seam was faded.

    A foot that ends a little beside where its next round begins meets it half way; one that ends
    far from there slides while the seam is faded, and its contact ends meanwhile.
    """
    contacts = clip.contacts
    if not faded or contacts is None or not _can_lock(clip):
        return frames, contacts
    was, now = (positions(clip.character, contacts.points, q) for q in (clip.frames, frames))
    on, offset = contacts.on.copy(), np.where(contacts.on[..., None], was - now, 0.0)
    turn, here, there = travel
    spin = rotation.turn(UP, turn)
    beside = was[-1] - there - rotation.rotate(spin, was[0] - here)
    for i, column in enumerate(on.T):
        stands = runs(column)
        if not (column[0] and column[-1]) or len(stands) < 2:
            continue
        if np.linalg.norm(beside[i]) < BESIDE:
            offset[: stands[0][1], i] += rotation.rotate(rotation.conjugate(spin), 0.5 * beside[i])
            offset[stands[-1][0] :, i] -= 0.5 * beside[i]
        else:
            column[: faded + 1] = column[len(column) - faded - 1 :] = False
            offset[~column, i] = 0.0
    contacts = replace(contacts, on=on)
    if np.abs(offset).max() < 1e-4:
        return frames, contacts
    return lock_points(clip, frames, contacts, offset), contacts


def _join_contacts(clip: Clip, after: Clip, first: int, n: int) -> ContactSchedule | None:
    """Contacts of a blend: of the nearer clip; None if one has none or other points."""
    one, two = clip.contacts, after.contacts
    if one is None or two is None or one.points != two.points:
        return None
    half = n // 2
    on = np.concatenate([one.on[: first + half], two.on[half:]])
    return replace(one, on=on, detected=one.detected or two.detected)
