"""The simulation of the studio: a world, its controller and its past; and a played recording.

Neither has threads or clocks: `Session` calls them from the one thread that owns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.model.character import Character
from poise.recording import Recording
from poise.recording.columns import Frame, read_frame
from poise.simulation.contact.contacts import contacts_from_core
from poise.simulation.pushes import Push
from poise.simulation.run import run
from poise.simulation.state import State
from poise.studio.controllers import (
    BalanceController,
    controller_for,
    initial_memory,
    memory_of,
)
from poise.studio.history import Edit, Entry, History, Take
from poise.studio.measures import measure_frame, measure_recording
from poise.studio.scene import Setup, rebuilt, with_objects
from poise.studio.scene_index import SceneIndex
from poise.studio.snapshot import Controls, Measures

FARTHEST, FASTEST = 1e6, 1e5
"""Beyond this a world is lost though its numbers are finite [m, rad], [m/s, rad/s]."""

OUT_OF_BOUNDS = "the simulation left all bounds"


class Simulation:
    """A world with its controller, its reference and its past.

    Args:
        setup: The scene at its start.

    Attributes:
        setup: The scene.
        world: Its world.
        controller: The present controller.
        reference: The present reference.
        history: The past.
        shown: The frame of the history that is shown, or None: the present.
        pushes: Pushes since the start.
        lost: Why the world stands still, or "".
    """

    def __init__(self, setup: Setup) -> None:
        self.history = History()
        self.begin(setup)

    def begin(self, setup: Setup) -> None:
        """Starts another scene."""
        self.setup, self.world = setup, setup.world
        self.controller = controller_for(setup, setup.controls)
        self.restart()

    def restart(self) -> None:
        """Returns to the start; a take that was recorded stays."""
        self.history.take = None
        self.history.clear()
        self.shown: int | None = None
        self.pushes: list[Push] = []
        self.reference = self.setup.reference
        self.world.gravity = self.setup.controls.gravity
        self.reset(self.setup.start)
        self._store()

    def reset(self, state: State, memory: Floats | None = None) -> None:
        """Sets the state of the world and the memory of the controller; None is a fresh start."""
        self.world.reset(state)
        self.lost = ""
        self._restore(memory)

    def _restore(self, memory: Floats | None) -> None:
        controller: Any = self.controller
        initial = initial_memory(controller, self._clock)
        if initial is not None:
            controller.restore(initial if memory is None else memory)

    # ---- time

    @property
    def time(self) -> float:
        """Time of what is shown [s]."""
        return self._clock if self.shown is None else self.history[self.shown].time

    @property
    def _clock(self) -> float:
        """The world's clock [s]."""
        return float(self.world.time)

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return self.world.dt

    def __len__(self) -> int:
        return len(self.history)

    @property
    def start(self) -> float:
        """Time of the first frame of the history [s]."""
        return self.history[0].time

    @property
    def end(self) -> float:
        """Time of the last frame of the history [s]."""
        return self.history[-1].time

    @property
    def frame_number(self) -> int:
        """Number of the frame that is shown."""
        return len(self.history) - 1 if self.shown is None else self.shown

    @property
    def motion(self) -> Any:
        """The reference, or what the controller makes of it."""
        if isinstance(self.controller, BalanceController):
            return self.controller.follow(self.reference)
        return self.reference

    def advance(self, steps: int) -> None:
        """Simulates from what is shown on; a lost world stays at its last frame, or near."""
        self.settle()
        while steps > 0 and not self.lost:
            k = min(steps, self.history.steps_to_next(self._clock, self.dt))
            self._run(k)
            steps -= k
            if self.lost == OUT_OF_BOUNDS:
                last = self.history[-1].frame
                self.world.reset(State(last.q[0], last.v[0], last.time[0]))
            elif self.history.is_due(self._clock, self.dt):
                self._store()

    def _run(self, steps: int) -> None:
        """Simulates without a look at the history."""
        if steps > 0 and not self.lost:
            run(self.world, self.controller, self.motion, steps * self.dt)
            self.lost = self._find_loss()

    def _find_loss(self) -> str:
        """Why the world cannot go on, or ""."""
        lost = self.world.diverged
        if lost:
            why = "was singular" if lost[0].singular else "left the finite numbers"
            return f"joint {lost[0].joint!r} {why} at {lost[0].time:.4g} s"
        q, v = self.world._core.read()
        wild = max(q.max(), -q.min()) > FARTHEST or max(v.max(), -v.min()) > FASTEST
        return OUT_OF_BOUNDS if wild else ""

    @property
    def diverged(self) -> str:
        """Why the world stands still, and what helps; or ""."""
        return f"{self.lost}: restart, or go back" if self.lost else ""

    # ---- the past

    def show(self, frame: int) -> None:
        """Shows a frame of the history; -1 is the last."""
        last = len(self.history) - 1
        self.shown = last if frame < 0 else min(frame, last)

    def settle(self) -> None:
        """Makes what is shown the present: what came later is removed."""
        shown, self.shown = self.shown, None
        if shown is None or self.history[shown].time >= self._clock - 0.5 * self.dt:
            return
        start, entry = self.history[self.history.checkpoint(shown)], self.history[shown]
        state = start.state if start is entry else self._replay(start, entry.time)
        self.history.rewind(shown)
        self.pushes = [push for push in self.pushes if push.at < entry.time - 1e-9]
        self.reset(state, entry.memory)

    def _replay(self, start: Entry, time: float) -> State:
        """The state at a later time [s]: simulated again from a checkpoint, with all edits."""
        past = copy(self)
        past.world, past.controller, past.reference = start.world, start.controller, start.reference
        present, gravity, memory = past.world.state.copy(), past.world.gravity, past.memory
        past.reset(start.state, start.memory)
        past.world.gravity = start.frame.gravity
        for at, edit in self.history.edits(start.time, time):
            past._run(round((at - past._clock) / past.dt))
            edit(past)
        past._run(round((time - past._clock) / past.dt))
        state = past.world.state.copy()
        # the present shares world and controller with the past: it stays as it was
        past.controller = start.controller
        past.reset(present, memory)
        past.world.gravity = gravity
        return state

    def _store(self, replace_present: bool = False) -> None:
        """Adds the present to the history; instead of a frame of the same time, if it says so."""
        with_memory = replace_present or self.history.needs_checkpoint(self.world)
        frame = self.frame(with_memory)
        if replace_present:
            self.history.truncate(self._clock - 0.5 * self.dt)
        self.history.append(Entry(frame, self.world, self.controller, self.reference, self.memory))

    # ---- what is shown

    @property
    def memory(self) -> Floats | None:
        """What the controller remembers from step to step, or None."""
        return memory_of(self.controller)

    def frame(self, with_memory: bool = False) -> Frame:
        """The present.

        Args:
            with_memory: Whether to store the world's memory.
        """
        world = self.world
        return read_frame(world, world._core.time(), with_memory, self._present_reference())

    def _present_reference(self) -> tuple[Floats, Floats]:
        """Reference at this time, (nq,) and (nv,); objects are where they are."""
        target = self.motion.target(self._clock)
        assert target.v is not None
        if not self.reference.objects:
            return target.q, target.v
        q, v = target.q.copy(), target.v.copy()
        now, moving = self.world._core.read()
        for at, rate in self.reference.objects:
            q[at], v[rate] = now[0, at], moving[0, rate]
        return q, v

    def measures(self) -> Measures:
        """What is shown, with its measures."""
        index, planned = self.setup.index, None
        if self.shown is not None:
            entry = self.history[self.shown]
            frame, world = entry.frame, entry.world
        else:
            frame, world = self.frame(), self.world
            if isinstance(self.controller, BalanceController):
                planned = self.controller.planned_cop(self._clock)
        contacts = contacts_from_core(frame.contacts, world._touch, world.dt)
        return measure_frame(index, frame, contacts, planned=planned)

    # ---- changes

    def apply(self, edit: Edit) -> None:
        """Changes the world or its rules, from what is shown on."""
        self.settle()
        edit(self)
        self.history.record_edit(self._clock, edit)

    def retune(self, controls: Controls) -> None:
        """Changes the controller, gains, root, strength or pins."""
        controller = controller_for(self.setup, controls, self.controller)
        self.setup = replace(self.setup, controls=controls)

        def edit(simulation: Simulation) -> None:
            simulation.controller = controller

        self.apply(edit)

    def change_start(self, controls: Controls) -> None:
        """Sets the controls of the next restart: gravity, and whether the clip is looped."""
        rounds = None if controls.loop else 1
        reference = replace(self.setup.reference, gravity=controls.gravity, rounds=rounds)
        self.setup = replace(self.setup, controls=controls, reference=reference)

    def rebuild(self, controls: Controls) -> None:
        """Changes step or friction: a new world in the same state; the past stays."""
        self.settle()
        self._replace_world(rebuilt(self._present_setup(), controls))
        self._store(replace_present=True)

    def put_objects(self, objects: Sequence[Character], projectiles: bool = True) -> None:
        """Changes the objects: a new world, with no past; characters are as they were.

        Args:
            objects: All objects of the new world.
            projectiles: Whether balls that were thrown stay.
        """
        self.settle()
        self._replace_world(with_objects(self._present_setup(), objects, projectiles))
        self.history.clear()
        self._store()

    def _present_setup(self) -> Setup:
        return replace(self.setup, reference=self.reference)

    def _replace_world(self, made: Setup) -> None:
        memory = self.memory
        self.history.take = None
        rounds = None if made.controls.loop else 1
        self.setup = replace(made, reference=replace(made.reference, begin=0.0, rounds=rounds))
        self.world, self.reference, self.lost = made.world, made.reference, ""
        self.controller = controller_for(made, made.controls)
        self._restore(memory)

    # ---- takes

    def record(self) -> Take:
        """Begins a take with the present frame."""
        self.settle()
        last = self.history[-1]
        first = [last] if abs(last.time - self._clock) < 0.5 * self.dt else []
        self.history.take = Take(first, self.setup.controls.clip)
        return self.history.take

    def recent(self) -> Take:
        """The history as a take."""
        return Take(self.history, self.setup.controls.clip)


class Playback:
    """A recording that is played.

    Args:
        recording: The recording.
        name: Its name on the page.
        copy: Number of the copy that is shown.
    """

    def __init__(self, recording: Recording, name: str, copy: int = 0) -> None:
        self.recording, self.name, self.copy = recording, name, copy
        self.index = SceneIndex(recording.settings, recording.scene)
        self._time = recording.columns.column("time")[:, copy]
        self._position = 0.0  # since the first frame [s], at the recording's rate

    def __len__(self) -> int:
        return len(self.recording)

    @property
    def frame_number(self) -> int:
        """Number of the frame that is shown."""
        return min(int(self._position / self.recording.interval + 1e-6), len(self) - 1)

    @property
    def time(self) -> float:
        """Time of the frame that is shown [s]."""
        return float(self._time[self.frame_number])

    @property
    def start(self) -> float:
        """Time of the first frame [s]."""
        return float(self._time[0])

    @property
    def end(self) -> float:
        """Time of the last frame [s]."""
        return float(self._time[-1])

    def advance(self, seconds: float, loop: bool) -> bool:
        """Plays on; returns whether there is anything left to play."""
        length = len(self) * self.recording.interval
        self._position += seconds
        if self._position < length:
            return True
        self._position = self._position % length if loop else length
        return loop

    def show(self, frame: int) -> None:
        """Shows a frame; -1 is the last."""
        last = len(self) - 1
        self._position = (last if frame < 0 else min(frame, last)) * self.recording.interval

    def show_time(self, time: float) -> None:
        """Shows the frame of a time [s]; before the start, the first."""
        self.show(max(0, int(np.searchsorted(self._time, time + 1e-6, side="right")) - 1))

    def measures(self) -> Measures:
        """What is shown, with its measures."""
        return measure_recording(self.index, self.recording, self.frame_number, self.copy)
