"""The one loop: a world, a controller and what it follows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import number
from poise.simulation.command import Command, Target
from poise.simulation.controller import ControllerLike, Motion, Recorder, Requirements
from poise.simulation.world import World

ROWS = 64
"""Rows of target in one command, for controllers that take several."""

MOST_ROWS = 2**20
"""Coordinates in the rows of targets of one command, where every copy has rows of its own."""


def run(
    world: World,
    controller: ControllerLike,
    clip: Any,
    duration: float,
    record: Recorder | Any = None,
    progress: Callable[[float], None] | None = None,
    until: Callable[[], bool] | None = None,
) -> None:
    """Runs a controller that follows a motion.

    A controller declares what it needs in `requires`: several target rows in one call (`rows`), a
    command that is held for several `steps`, the target's `past`. A plain function is called in
    every step with one target. What is commanded does not depend on what is recorded. Ends early
    when every copy has diverged.

    The target of a step is that of the world's clock at its end. A run that goes on from the state
    in which another ended, or from a frame of its recording, therefore continues it bit for bit;
    copies whose clocks differ follow the motion each at its own time.

    Args:
        world: The world, in its start state.
        controller: (state, target) -> Command.
        clip: A clip or another Motion, or a Target or State to hold; or one of these for each part
            that the controller acts on, by name. A motion with `target` alone is sampled step by
            step.
        duration: How long [s].
        record: A Recording or another Recorder. Its append() is called at the start, and then with
            the target of the last step every `record.interval` seconds, rounded to whole steps,
            and to multiples of the controller's `steps` if it is longer; in every step if it has
            no interval.
        progress: Called with the time done [s] after every chunk.
        until: Called after every chunk; True ends the run.
    """
    duration = number(duration, "duration")
    _check_arguments(world, controller, record)
    requires = Requirements.of(controller)
    rows = ROWS if requires.rows else 1
    held = requires.steps if rows == 1 else 1
    target_at, targets_at = _lookups(clip, requires.past, world.dt)
    dt, left = world.dt, round(duration / world.dt)
    if left < 1:
        raise PoiseError(f"duration is {duration:g} s, less than half a step of {dt:g} s")
    every = 0
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
            record.append(_recorded_target(world, controller, command, target))
        if progress is not None:
            progress(done * dt)
        if until is not None and until():
            return


def _steps(interval: float, held: int) -> int:
    """Steps from one frame of a recording to the next, so that no frame cuts a held command.

    Args:
        interval: Requested [steps].
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


def _recorded_target(world: World, controller: Any, command: Command, target: Any) -> Target:
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
    """Functions that return the target at a time, and rows of targets.

    Args:
        clip: A motion, a target to hold, or one for each part.
        past: Whether the controller reads the target's past.
        dt: Time step [s].
    """
    if isinstance(clip, Mapping):
        of_part = {name: _lookups(one, past, dt) for name, one in clip.items()}
        return (
            lambda t: {name: at(t) for name, (at, _) in of_part.items()},
            lambda t, dt, k: {name: rows(t, dt, k) for name, (_, rows) in of_part.items()},
        )
    if not hasattr(clip, "target"):
        held = Target.of(clip)
        return (lambda t: held), (lambda t, dt, k: held)
    targets = clip.targets if hasattr(clip, "targets") else lambda *at: _sample_rows(clip, *at)
    if past and "past" in inspect.signature(clip.target).parameters:
        return (lambda t: clip.target(t, past=dt)), targets
    return clip.target, targets


def _sample_rows(motion: Motion, t: Any, dt: float, k: int) -> Target:
    """k rows of a motion that has one target at a time; times add up as a world's clock does."""
    found = []
    for _ in range(k):
        found.append(motion.target(t))
        t = t + dt
    v = [one.v for one in found if one.v is not None]
    a = [one.a for one in found if one.a is not None]
    v_rows, a_rows = (np.stack(x) if len(x) == k else None for x in (v, a))
    return Target(np.stack([one.q for one in found]), v_rows, a_rows, rows=k, clip=found[0].clip)
