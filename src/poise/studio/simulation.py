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
from poise.studio.crowd_reference import CrowdReference
from poise.studio.history import FRESH, ControlSetup, Edit, Entry, History, Memory, Take
from poise.studio.measures import measure_frame, measure_recording
from poise.studio.scene import Setup, controller_for, rebuilt, with_objects
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
        control: The present controller and reference.
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
        self.control = ControlSetup(controller_for(setup, setup.controls), setup.reference)
        self.restart()

    def restart(self) -> None:
        """Returns to the start; a take that was recorded stays."""
        self.history.take = None
        self.history.clear()
        self.shown: int | None = None
        self.pushes: list[Push] = []
        setup = self.setup
        self.world.gravity = setup.controls.gravity
        self.reset(
            setup.start, ControlSetup(self.controller, setup.reference, setup.controls.adaptive)
        )
        self._store()

    def reset(self, state: State, control: ControlSetup, memory: Memory = FRESH) -> None:
        """Sets the state of the world, and the control with their memory."""
        self.world.reset(state)
        self.lost = ""
        self._follow(control, memory)

    # ---- the control

    def _follow(self, control: ControlSetup, memory: Memory) -> None:
        """Sets the control; they go on from a memory where it fits, and else start now."""
        self.control = control
        controller: Any = control.controller
        present = getattr(controller, "memory", None)
        if present is not None:
            given = memory.controller
            fits = given is not None and given.shape == present.shape
            controller.restore(given if fits else np.zeros_like(present))
        self._scaled: Any = None
        if control.adaptive and hasattr(self._planner, "scale_time"):
            start = [[self._clock], [1.0]]
            self._scaled = self._planner.scale_time(control.reference)
            self._scaled.restore(start if memory.scaling is None else memory.scaling, self._clock)

    def change_control(self, **changes: Any) -> None:
        """Changes some of the control, between two steps; a clip that has waited stays behind."""
        control, memory = self.control._replace(**changes), self.memory
        if not control.adaptive:
            begin = control.reference.begin + self._delay(memory, self._clock)
            control = control._replace(reference=replace(control.reference, begin=begin))
        self._follow(control, memory)

    @staticmethod
    def _delay(memory: Memory, now: float) -> float:
        """How far a clip that slows down is behind a time [s]."""
        return 0.0 if memory.scaling is None else now - float(memory.scaling[0, 0])

    @property
    def controller(self) -> Any:
        """The present controller."""
        return self.control.controller

    @property
    def _planner(self) -> Any:
        """The present controller without its profiles."""
        return getattr(self.controller, "controller", self.controller)

    @property
    def reference(self) -> CrowdReference:
        """The present reference."""
        return self.control.reference

    @property
    def motion(self) -> Any:
        """The reference, or the reference at the speed that the controller allows."""
        return self.reference if self._scaled is None else self._scaled

    @property
    def memory(self) -> Memory:
        """What the control go on from."""
        scaling = None if self._scaled is None else self._scaled.memory
        return Memory(getattr(self.controller, "memory", None), scaling)

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

    def advance(self, steps: int) -> None:
        """Simulates from what is shown on; a lost world stays at its last frame, or near."""
        self.discard_future()
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

    def discard_future(self) -> None:
        """Makes what is shown the present: what came later is removed."""
        shown, self.shown = self.shown, None
        if shown is None or self.history[shown].time >= self._clock - 0.5 * self.dt:
            return
        start, entry = self.history[self.history.checkpoint(shown)], self.history[shown]
        state = start.state if start is entry else self._replay(start, entry.time)
        self.history.rewind(shown)
        self.pushes = [push for push in self.pushes if push.at < entry.time - 1e-9]
        control, begin = self.control, entry.control.reference.begin
        if not control.adaptive:
            begin += self._delay(entry.memory, entry.time)
        reference = replace(control.reference, begin=begin)
        self.reset(state, control._replace(reference=reference), entry.memory)

    def _replay(self, start: Entry, time: float) -> State:
        """The state at a later time [s]: simulated again from a checkpoint, with all edits."""
        past = copy(self)
        past.world = start.world
        present, gravity, memory = past.world.state.copy(), past.world.gravity, self.memory
        past.reset(start.state, start.control, start.memory)
        past.world.gravity = start.frame.gravity
        for at, edit in self.history.edits(start.time, time):
            past._run(round((at - past._clock) / past.dt))
            edit(past)
        past._run(round((time - past._clock) / past.dt))
        state = past.world.state.copy()
        # the present shares world and controller with the past: it stays as it was
        past.reset(present, self.control, memory)
        past.world.gravity = gravity
        return state

    def _store(self, replace_present: bool = False) -> None:
        """Adds the present to the history; instead of a frame of the same time, if it says so."""
        with_memory = replace_present or self.history.needs_checkpoint(self.world)
        frame = self.frame(with_memory)
        if replace_present:
            self.history.truncate(self._clock - 0.5 * self.dt)
        self.history.append(Entry(frame, self.world, self.control, self.memory))

    # ---- what is shown

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
            plan = getattr(self._planner, "last_plan", None)
            planned = None if plan is None else plan["cop"]
        contacts = contacts_from_core(frame.contacts, world._collision_model, world.dt)
        return measure_frame(index, frame, contacts, planned=planned)

    # ---- changes

    def apply(self, edit: Edit) -> None:
        """Changes the world or its control, from what is shown on."""
        self.discard_future()
        edit(self)
        self.history.record_edit(self._clock, edit)

    def retune(self, controls: Controls) -> None:
        """Changes the controller, gains, root, strength or pins."""
        controller, adaptive = controller_for(self.setup, controls), controls.adaptive
        self.setup = replace(self.setup, controls=controls)
        self.apply(
            lambda simulation: simulation.change_control(controller=controller, adaptive=adaptive)
        )

    def change_start(self, controls: Controls) -> None:
        """Sets the controls of the next restart: gravity, and whether the clip is looped."""
        rounds = None if controls.loop else 1
        reference = replace(self.setup.reference, gravity=controls.gravity, rounds=rounds)
        self.setup = replace(self.setup, controls=controls, reference=reference)

    def rebuild(self, controls: Controls) -> None:
        """Changes step or friction: a new world in the same state; the past stays."""
        self.discard_future()
        self._replace_world(rebuilt(self._present_setup(), controls))
        self._store(replace_present=True)

    def put_objects(self, objects: Sequence[Character], projectiles: bool = True) -> None:
        """Changes the objects: a new world, with no past; characters are as they were.

        Args:
            objects: All objects of the new world.
            projectiles: Whether balls that were thrown stay.
        """
        self.discard_future()
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
        self.world, self.lost = made.world, ""
        control = ControlSetup(
            controller_for(made, made.controls), made.reference, made.controls.adaptive
        )
        self._follow(control, memory)

    # ---- takes

    def record(self) -> Take:
        """Begins a take with the present frame."""
        self.discard_future()
        last = self.history[-1]
        first = [last] if abs(last.time - self._clock) < 0.5 * self.dt else []
        self.history.take = Take(first, self.setup.controls.clip)
        return self.history.take

    def recent(self) -> Take:
        """The history as a take."""
        return Take(self.history, self.setup.controls.clip)


class Playback:
    """The first copy of a recording, played.

    Args:
        recording: The recording.
        name: Its name on the page.

    Attributes:
        start: Time of the first frame [s].
        end: Time of the last frame [s].
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self.recording, self.name = recording, name
        self.index = SceneIndex(recording.settings, recording.scene)
        self._time = recording.columns.column("time")[:, 0]
        self.start, self.end = float(self._time[0]), float(self._time[-1])
        self._position = 0.0  # since the first frame [s], at the recording's rate

    def __len__(self) -> int:
        return len(self.recording)

    @property
    def frame_number(self) -> int:
        """Number of the frame that is shown."""
        return min(int(self._position / self.recording.interval + 1e-6), len(self) - 1)

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
        return measure_recording(self.index, self.recording, self.frame_number)
