"""Jumps of a clip: steps from frame to frame that no body can follow.

A T-pose before the first frame, a cut, or the twist of a joint that flips by half a turn moves a
joint farther between two frames than muscles, or any motors, could.

A step is a jump if the joint is faster in it than FASTEST, and FACTOR times as fast as it is CLOSE
before and after: it would have to start and stop within that time. Limits of speed alone do not
tell a throw from a flip. The fastest limb that turns about one axis is the forearm of a pitcher,
2,300 to 2,600 degrees per second at the elbow (40 to 45 rad/s), and the shoulder's twist reaches
7,240 +- 1,090 (126 rad/s; Fleisig and others, Journal of Biomechanics 32, 1999, 1371-1375); but the
arm needs about 30 ms to get there. From rest to 40 rad/s and back within 17 ms on each side means
2,400 rad/s^2 twice, with opposite signs: 500 N·m at an outstretched arm of 0.2 kg m^2, where
shoulders have less than 150. Hips do not travel faster than a sprinter, 12.4 m/s.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.errors import UnfollowableTarget, warn_user
from poise.math.rotation import Floats
from poise.motion import poses

if TYPE_CHECKING:
    from poise.motion.clip import Clip

FASTEST, FASTEST_TRAVEL = 40.0, 15.0
"""Speeds of a joint that turns [rad/s] and of one that travels [m/s], above which a step may be a
jump."""

FACTOR = 5.0
"""A jump is this many times as fast as its joint shortly before and after."""

CLOSE = 1.0 / 60.0
"""What is shortly before and after [s], or one frame where frames are farther apart."""

LONGEST_STEP = 1.0 / 30.0
"""Targets this long after a jump command it [s]: steps of a world may be longer than frames."""


_SAID: WeakKeyDictionary[Clip, set[Jump]] = WeakKeyDictionary()
"""Jumps that were named, by clip."""


class Jump(NamedTuple):
    """A step between two frames that no body can follow.

    Attributes:
        time: Of the frame before it [s].
        joint: The joint that is farthest beyond what it can do.
        speed: Mean speed of that joint in the step [rad/s, or m/s if it travels].
        travels: Whether it is a distance that jumps, and not an angle.
    """

    time: float
    joint: str
    speed: float
    travels: bool = False


def find_jumps(clip: Clip) -> tuple[Jump, ...]:
    """The jumps of a clip, in time; steps of several joints, or one after the other, are one.

    Args:
        clip: The motion.
    """
    if len(clip) < 2:
        return ()
    speed, names, travels = _speeds(clip)
    limit = np.where(travels, FASTEST_TRAVEL, FASTEST)
    around = _around(speed, max(1, round(CLOSE * clip.fps)))
    excess = np.where(speed > FACTOR * around, speed / limit, 0.0)
    steps = np.flatnonzero(excess.max(axis=1, initial=0.0) > 1.0)
    found = []
    for together in np.split(steps, 1 + np.flatnonzero(np.diff(steps) > 1)):
        if len(together):
            row, column = np.unravel_index(excess[together].argmax(), excess[together].shape)
            at, joint = int(together[row]), int(column)
            name, fast = names[joint], float(speed[at, joint])
            found.append(Jump(at / clip.fps, name, fast, bool(travels[joint])))
    return tuple(found)


def warn_of_jumps(clip: Clip, time: ArrayLike) -> None:
    """Warn with `poise.UnfollowableTarget` of targets that follow a jump; once for each jump.

    Args:
        clip: The motion.
        time: Of the targets that a controller is about to command [s].
    """
    times = np.asarray(time)
    for jump in clip.jumps:
        after = times - jump.time
        near = (after > 0.0) & (after <= 1.0 / clip.fps + LONGEST_STEP)
        said = _SAID.setdefault(clip, set())
        if jump not in said and near.any():
            warn_user(_message(clip, jump), UnfollowableTarget)
            said.add(jump)


def _message(clip: Clip, jump: Jump) -> str:
    step = jump.speed / clip.fps
    if jump.travels:
        what = f"travels {step:.3g} m within one frame ({jump.speed:.0f} m/s)"
    else:
        what = (
            f"turns by {math.degrees(step):.0f} degrees within one frame ({jump.speed:.0f} rad/s)"
        )
    where = f"clip {clip.name!r}, {jump.time:.4g} s: joint {jump.joint!r}"
    return (
        f"{where} {what}; no body follows that. load_clip(path, character) prepares a file "
        "(without prepare=False); "
        f"clip.trimmed({jump.time + 1.0 / clip.fps:.4g}) begins after the jump"
    )


def _speeds(clip: Clip) -> tuple[Floats, list[str], NDArray[np.bool_]]:
    """Speeds of joints from frame to frame (k - 1, n), their names, and which of them travel."""
    step = poses.difference(clip.character, clip.frames[:-1], clip.frames[1:]) * clip.fps
    columns, names, travels = [], [], []
    for joint in clip.character.joints:
        own = step[:, clip.character.v_slice(joint)]
        parts = [(own[:, :3], True), (own[:, 3:], False)] if joint.kind == "free" else []
        for part, far in parts or [(own, joint.kind == "slide")]:
            columns.append(np.linalg.norm(part, axis=1))
            names.append(joint.name)
            travels.append(far)
    speed = np.stack(columns, axis=1) if columns else np.zeros((len(step), 0))
    return speed, names, np.array(travels, dtype=bool)


def _around(speed: Floats, frames: int) -> Floats:
    """The larger of the speeds so many steps before and after; none where the clip ends."""
    pad = np.zeros((frames, speed.shape[1]))
    before = np.concatenate([pad, speed])[: len(speed)]
    after = np.concatenate([speed, pad])[frames:]
    larger: Floats = np.maximum(before, after)
    return larger
