"""Edits of one clip: cut it, place it, play it at another rate or speed.

Each takes a clip and gives a new one; the methods of `Clip` of the same names call them. Character,
name and source stay, so that the result still writes onto the file's own rig. Contacts go along;
where frames fall between the old ones, they are those of the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator

from poise.anatomy.body import root_yaw
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats, floats, number
from poise.motion.clip import Clip
from poise.motion.foot_contact.detect import detect_contacts, ground_height

UP = (0.0, 0.0, 1.0)

POINT = "three finite numbers x, y, z [m]"

MOST_FRAMES = 10_000_000
"""No edit makes a longer clip than this."""


# in time


def trim(clip: Clip, start: float = 0.0, end: float | None = None) -> Clip:
    """The part of a clip from start to end [s].

    Times between frames count: the first new frame is at start, the last at or before end.
    """
    start = number(start, "start", positive=False)
    end = clip.duration if end is None else number(end, "end", positive=False)
    slack = 1e-6 / clip.fps
    if not -slack <= start <= end <= clip.duration + slack:
        raise ClipError(
            f"cannot trim to {start:g} .. {end:g} s: start and end must lie in order in "
            f"0 .. {clip.duration:g} s, the time of the clip"
        )
    k = math.floor((end - start) * clip.fps + 1e-6) + 1
    return _at_times(clip, start + np.arange(k) / clip.fps, clip.fps)


def resample(clip: Clip, fps: float) -> Clip:
    """The same motion at another rate [1/s], from the clip's spline.

    Going down, what is faster than half the new rate folds back into the motion: smooth it first.
    """
    fps = number(fps, "fps", unit="1/s")
    grid = _grid(clip.duration, fps)
    if len(grid) < 2 <= len(clip):
        raise ClipError(
            f"at {fps:g} frames per second a clip of {clip.duration:g} s has a single frame; "
            f"fps is a rate, such as 60, and at least {1.0 / clip.duration:g} here"
        )
    return _at_times(clip, grid / fps, fps)


def change_speed(clip: Clip, factor: float) -> Clip:
    """The same motion `factor` times as fast, at the same rate."""
    factor = number(factor, "the factor of speed", unit="1")
    return _at_times(clip, _grid(clip.duration / factor, clip.fps) * (factor / clip.fps), clip.fps)


def warp_time(clip: Clip, times: ArrayLike, new_times: ArrayLike) -> Clip:
    """The same motion at another pace: what happened at `times` happens at `new_times`.

    In between a monotone cubic (PCHIP) goes through the pairs, so that time never runs backward.

    Args:
        clip: The motion.
        times: Times in the clip [s], increasing, shape (n,), n at least 2.
        new_times: Times in the result [s], increasing, shape (n,). Its first is where the new clip
            begins; it gets time 0.
    """
    old, new = floats(times, "times"), floats(new_times, "new_times")
    if old.ndim != 1 or old.shape != new.shape or len(old) < 2:
        raise ClipError(
            f"times {old.shape} and new_times {new.shape} must be of one shape (n,), n at least 2"
        )
    for name, row in (("times", old), ("new_times", new)):
        rises = np.isfinite(row).all() and (np.diff(row) > 0.0).all()
        if not rises:
            raise ClipError(f"{name} must be finite and increase, got {row.tolist()!s:.80}")
    slack = 1e-6 / clip.fps
    if old[0] < -slack or old[-1] > clip.duration + slack:
        raise ClipError(
            f"times go from {old[0]:g} to {old[-1]:g} s; the clip from 0 to {clip.duration:g} s"
        )
    grid = new[0] + _grid(new[-1] - new[0], clip.fps) / clip.fps
    return _at_times(clip, PchipInterpolator(new, old)(np.minimum(grid, new[-1])), clip.fps)


def _grid(duration: float, fps: float) -> Floats:
    """Numbers of the frames that a duration [s] holds."""
    count = duration * fps + 1e-6
    if not count < MOST_FRAMES:
        raise ClipError(
            f"{duration:g} s at {fps:g} fps are {count:g} frames, more than {MOST_FRAMES}"
        )
    return np.arange(math.floor(count) + 1, dtype=np.float64)


def _at_times(clip: Clip, t: Floats, fps: float) -> Clip:
    """A clip of the poses at these times [s]; those of frames are taken over bit for bit."""
    at = np.clip(np.round(t * clip.fps).astype(np.int64), 0, len(clip) - 1)
    frames = clip.q(np.clip(t, 0.0, clip.duration))
    exact = np.abs(t * clip.fps - at) < 1e-6
    frames[exact] = clip.frames[at[exact]]
    contacts = clip.contacts
    if contacts is not None:
        # between two frames a point stands if it does in both
        low = np.clip(np.floor(t * clip.fps + 1e-6).astype(np.int64), 0, len(clip) - 1)
        high = np.clip(np.ceil(t * clip.fps - 1e-6).astype(np.int64), 0, len(clip) - 1)
        contacts = replace(contacts, on=contacts.on[low] & contacts.on[high])
    return clip.with_frames(frames, fps=fps, contacts=contacts)


# in space


def translate(clip: Clip, by: Sequence[float]) -> Clip:
    """The clip shifted by x, y, z [m]."""
    shift = _vector(by, "by", POINT, 3)
    frames = clip.frames.copy()
    frames[:, _root(clip, "move")] += shift
    return clip.replace(q=frames)


def turn(clip: Clip, angle: float, about: Sequence[float] | None = None) -> Clip:
    """The clip turned about a vertical axis.

    Args:
        clip: The motion.
        angle: Counterclockwise from above [rad].
        about: A point of the axis [m], x, y and any z; None takes where the root starts.
    """
    angle = check_angle(angle, "angle")
    root = _root(clip, "turn")
    center = clip.frames[0, root] if about is None else _vector(about, "about", POINT, 3)
    return clip.replace(q=transform_frames(clip.frames, angle, center, center))


def place(
    clip: Clip, position: Sequence[float] | None = None, heading: float | None = None
) -> Clip:
    """The clip with its root starting at a place on the ground, looking along a heading.

    Args:
        clip: The motion.
        position: Where the root starts, x and y [m]; None leaves it where it is.
        heading: Which way the root looks at the start, from its rest pose counterclockwise [rad];
            None leaves it.
    """
    root = _root(clip, "place")
    here = clip.frames[0, root]
    there = here.copy()
    if position is not None:
        there[:2] = _vector(position, "position", "two finite numbers x, y [m]", 2, 3)[:2]
    turn = 0.0
    if heading is not None:
        heading = check_angle(heading, "heading")
        turn = heading - float(root_yaw(clip.character, clip.frames[0]))
    return clip.replace(q=transform_frames(clip.frames, turn, here, there))


def ground_clip(clip: Clip, ground: float = 0.0) -> Clip:
    """The clip shifted up or down so that its feet stand on the ground.

    The lowest point that stands, in the median of all frames, comes to the height `ground` [m].
    Contacts are found unless the clip has them; without any, the lowest point of all comes there.
    The floor of a capture that is not level stays so.
    """
    _root(clip, "ground")
    ground = number(ground, "ground", positive=False, unit="m")
    contacts = clip.contacts or detect_contacts(clip)
    rise = ground - ground_height(clip, contacts)
    return translate(clip, (0.0, 0.0, rise)).replace(contacts=contacts)


def transform_frames(frames: Floats, angle: float, here: Floats, there: Floats) -> Floats:
    """Poses (k, nq) of a free root, turned about the vertical at `here`, which goes to `there`."""
    out: Floats = frames.copy()
    turn = rotation.turn(UP, angle)
    out[:, :3] = there + rotation.rotate(turn, frames[:, :3] - here)
    out[:, 3:7] = rotation.multiply(turn, frames[:, 3:7])
    return out


def _root(clip: Clip, verb: str) -> slice:
    """Where the position of the free root is in q."""
    joint = clip.character.joints[0]
    if joint.kind != "free":
        raise ClipError(
            f"a clip of {clip.character.name!r} cannot {verb}: its root hangs on the world by "
            f"joint {joint.name!r}"
        )
    return slice(0, 3)


def check_angle(value: Any, name: str) -> float:
    """An angle [rad] of at most a full turn: a larger one was meant in degrees."""
    angle = number(value, name, positive=False, unit="rad")
    if abs(angle) > 2.0 * math.pi * (1.0 + 1e-9):
        raise ClipError(
            f"{name} is {angle:g} rad, more than a full turn; angles are in radians: "
            f"math.radians({angle:g}) = {math.radians(angle):.4g}"
        )
    return angle


def _vector(value: Any, name: str, what: str, *sizes: int) -> Floats:
    """Finite numbers, as many as one of the sizes; of a place on the ground z does not count."""
    array = floats(value, name)
    if array.shape not in [(size,) for size in sizes] or not np.isfinite(array).all():
        raise ClipError(f"{name} must be {what}, got {value!r:.80}")
    return array
