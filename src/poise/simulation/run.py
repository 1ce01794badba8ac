"""The one loop: a world, a controller and what it follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import number
from poise.simulation.command import Command, Target
from poise.simulation.world import World

ROWS = 64
"""Rows of target in one command, for controllers that take several."""

MOST_ROWS = 2**20
"""Coordinates in the rows of targets of one command, where every copy has rows of its own."""


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

    The target of a step is that of the world's clock at its end. A run that goes on from the state
    in which another ended, or from a frame of its recording, therefore continues it bit for bit;
    copies whose clocks differ follow the motion each at its own time.

    Args:
        world: The world, in its start state.
        controller: (state, target) -> Command.
        clip: A clip or another Motion, or a Target or State to hold; or one of these for each part
            that the controller acts on, by name.
        duration: How long [s].
        record: A Recording, or something with append(), called now and then every
            `record.interval` seconds, rounded to whole steps, and to whole times of `hold` if it
            is longer; or every step if it has no interval. If it has `takes_target`, append gets
            what the last step was asked to reach.
        progress: Called with the time done [s] after every chunk.
        until: Asked after every chunk whether this is the end already.
    """
    duration = number(duration, "duration")
    _check_arguments(world, controller, record)
    rows = ROWS if getattr(controller, "takes_rows", False) else 1
    held = getattr(controller, "hold", 1) if rows == 1 else 1
    target_at, targets_at = _lookups(clip, getattr(controller, "takes_past", False), world.dt)
    dt, left = world.dt, round(duration / world.dt)
    if left < 1:
        raise PoiseError(f"duration is {duration:g} s, less than half a step of {dt:g} s")
    every, tells = 0, getattr(record, "takes_target", False)
    if record is not None:
        every = _steps(getattr(record, "interval", dt) / dt, held)
        record.append()
    done = fresh = 0
    command, target = Command(), None
    while left > 0 and len(world.diverged) < world.n:
        k = min(max(rows, fresh or held), left, every - done % every if every else left)
        if not fresh:
            ahead = _clock(world) + dt
            if rows > 1 and ahead.ndim:
                # rows of every copy's own: no more than a world of one has
                k = max(1, min(k, MOST_ROWS // (world.n * world.scene.nq)))
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
                record.append(_asked(world, controller, command, target))
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


def _check_arguments(world: Any, controller: Any, record: Any) -> None:
    if not isinstance(world, World):
        raise PoiseError(
            f"run takes a World first, as in run(world, controller, clip, duration), got "
            f"{world!r:.80}"
        )
    if isinstance(controller, type):
        name = controller.__name__
        raise PoiseError(f"the controller is the class {name}; make one of it: {name}(world)")
    if not callable(controller):
        raise PoiseError(f"a controller is called with state and target, got {controller!r:.80}")
    if record is not None and not hasattr(record, "append"):
        raise PoiseError(f"record must be a Recording of this world, got {record!r:.80}")
    of = getattr(record, "_world", world)
    if of is not None and of is not world:
        raise PoiseError("record is a Recording of another world; make one: Recording(world)")


def _clock(world: World) -> Any:
    """The time of the copies [s]: a number, or shape (n,) where those that go on differ."""
    clock = world.time
    if world.n == 1:
        return clock
    lost = [loss.copy for loss in world.diverged]
    going = np.delete(clock, lost) if lost else clock
    return going[0] if (going == going[0]).all() else clock


def _asked(world: World, controller: Any, command: Command, target: Any) -> Target:
    """The target of a command's last step, for all parts of the world.

    It is that of the command's drive, or else that of the clip: a drive without stiffness, as of
    `Balance`, has velocities to reach and no pose. Parts without a controller are at their target
    wherever they are.
    """
    plants = getattr(controller, "plants", None) or [getattr(controller, "plant", None)]
    if plants[0] is None or plants[0].is_whole:
        drive = command.drive
        posed = drive is not None and bool(np.any(drive.gains.kp))
        return (drive.target if posed and drive is not None else Target.of(target)).row(-1)
    q, v = world.state.q.copy(), world.state.v.copy()
    for plant in plants:
        mine = target[plant.names[0]] if len(plants) > 1 and isinstance(target, Mapping) else target
        own = plant.own_target(mine).row(-1)
        q[..., plant.q] = own.q
        v[..., plant.v] = 0.0 if own.v is None else own.v
    return Target(q, v)


def _lookups(
    clip: Any, past: bool, dt: float
) -> tuple[Callable[[Any], Any], Callable[[Any, float, int], Any]]:
    """Functions that give the target at a time, and rows of targets.

    Args:
        clip: A motion, a target to hold, or one for each part.
        past: Whether the controller makes use of where the target was.
        dt: Time step [s].
    """
    if isinstance(clip, Mapping):
        of_part = {name: _lookups(one, past, dt) for name, one in clip.items()}
        return (
            lambda t: {name: at(t) for name, (at, _) in of_part.items()},
            lambda t, dt, k: {name: rows(t, dt, k) for name, (_, rows) in of_part.items()},
        )
    if hasattr(clip, "target") and hasattr(clip, "targets"):
        if past and hasattr(clip, "_past"):
            return (lambda t: clip.target(t, past=dt)), clip.targets
        return clip.target, clip.targets
    held = Target.of(clip)
    return (lambda t: held), (lambda t, dt, k: held)
