"""The one loop: a world, a controller and what it follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from poise.arrays import number
from poise.command import Command, Target
from poise.errors import PoiseError
from poise.world import World

ROWS = 64
"""Rows of target in one command, for controllers that take several."""


class Motion(Protocol):
    """Anything that knows where a character should be: a clip, or a function of time."""

    def target(self, t: float) -> Target:
        """The target at time t [s]."""

    def targets(self, t: float, dt: float, k: int) -> Target:
        """k rows of target: at t, t + dt, ..."""


def run(
    world: World,
    controller: Callable[[Any, Any], Command],
    clip: Any,
    duration: float,
    record: Any = None,
    progress: Callable[[float], None] | None = None,
    until: Callable[[], bool] | None = None,
) -> None:
    """Let a controller follow a motion for a while.

    Drives get chunks of target rows, other controllers are called every step, or every `hold`
    steps if they say so; what they command is held in between, whether it is recorded or not. Stops
    early when every copy has diverged.

    Args:
        world: The world, in its start state.
        controller: (state, target) -> Command.
        clip: A clip or another Motion, or a Target or State to hold.
        duration: How long [s], on the clock of the world's first copy.
        record: A Recording, or something with append(), called now and then every
            `record.interval` seconds, rounded to whole steps, and to whole times of `hold` if it
            is longer; or every step if it has no interval. If it has `takes_target`, append gets
            what the last step was asked to reach.
        progress: Called with the time done [s] after every chunk.
        until: Asked after every chunk whether this is the end already.
    """
    duration = number(duration, "duration")
    target_at, targets_at = _lookups(clip)
    rows = ROWS if getattr(controller, "takes_rows", False) else 1
    held = getattr(controller, "hold", 1) if rows == 1 else 1
    differs = getattr(controller, "takes_past", False) and hasattr(clip, "_past")
    dt, left = world.dt, round(duration / world.dt)
    if left < 1:
        raise PoiseError(f"duration is {duration:g} s, less than half a step of {dt:g} s")
    every, tells = 0, getattr(record, "takes_target", False)
    if record is not None:
        every = _steps(getattr(record, "interval", dt) / dt, held)
        record.append()
    start = float(world.time.flat[0])
    done = fresh = 0
    command, target = Command(), None
    while left > 0 and len(world.diverged) < world.n:
        k = min(max(rows, fresh or held), left, every - done % every if every else left)
        if not fresh:
            ahead = start + (done + 1) * dt
            if differs:
                target = clip.target(ahead, dt)
            else:
                target = target_at(ahead) if rows == 1 else targets_at(ahead, dt, k)
            command = controller(world.state, target)
            if not isinstance(command, Command):
                raise PoiseError(f"the controller gave {command!r:.80}, not a Command")
            fresh = held
        world.step(command, steps=k)
        fresh = max(fresh - k, 0)
        done, left = done + k, left - k
        if every and done % every == 0:
            if tells:
                record.append(_asked(command, target))
            else:
                record.append()
        if progress is not None:
            progress(done * dt)
        if until is not None and until():
            return


def _steps(interval: float, held: int) -> int:
    """Steps from one frame of a recording to the next; a frame within a hold starts no plan anew.

    Args:
        interval: What was asked for [steps].
        held: Steps of one command.
    """
    return max(1, round(interval)) if interval < held else held * round(interval / held)


def _asked(command: Command, target: Any) -> Target:
    """What the last step of a command was asked to reach: its drive's target, or the clip's.

    A drive without stiffness, as that of `Balance`, asks for velocities and for no pose.
    """
    drive = command.drive
    posed = drive is not None and bool(np.any(drive.gains.kp))
    return (drive.target if posed and drive is not None else Target.of(target)).row(-1)


def _lookups(clip: Any) -> tuple[Callable[[float], Any], Callable[[float, float, int], Any]]:
    if hasattr(clip, "target") and hasattr(clip, "targets"):
        return clip.target, clip.targets
    held = Target.of(clip)
    return (lambda t: held), (lambda t, dt, k: held)
