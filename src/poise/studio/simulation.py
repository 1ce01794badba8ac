"""The simulation of the studio: a world that can be stopped, looked back into and gone on with.

It knows nothing of threads and clocks: `Session` calls it from the one thread that owns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from poise.model.character import Character
from poise.recording import Recording
from poise.recording.notes import note_of
from poise.studio.history import Deed, History, Runner, Take
from poise.studio.measures import Frame, frame_of_note, frame_of_recording
from poise.studio.scene import Setup, controller_for, rebuilt, with_objects
from poise.studio.scene_index import Cast
from poise.studio.snapshot import Controls


class Simulation:
    """A world with its past.

    Args:
        setup: The scene at its start.

    Attributes:
        setup: The scene.
        history: Its past.
        runner: The world and its present rules.
        shown: The frame that is looked at, or None: the present.
    """

    def __init__(self, setup: Setup) -> None:
        self.history = History()
        self.begin(setup)

    def begin(self, setup: Setup) -> None:
        """Another scene, from its start."""
        self.setup = setup
        self.runner = Runner(setup.world, controller_for(setup, setup.controls), setup.lineup)
        self.restart()

    def restart(self) -> None:
        """Back to the start; what was recorded is kept."""
        self.history.take = None
        self.history.clear()
        self.shown: int | None = None
        self.runner.lineup = self.setup.lineup
        self.runner.world.gravity = self.setup.controls.gravity
        self.runner.reset(self.setup.start)
        self.history.append(self.runner)

    # ---- time

    @property
    def time(self) -> float:
        """Time of what is shown [s]."""
        return self.runner.time if self.shown is None else self.history[self.shown].time

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return self.runner.world.dt

    @property
    def frame(self) -> int:
        """Which frame is shown."""
        return len(self.history) - 1 if self.shown is None else self.shown

    def go(self, steps: int) -> None:
        """Go on from what is shown."""
        self.settle()
        self.runner.go(steps, self.history)

    def show(self, frame: int) -> None:
        """Look at a frame; -1 is the last."""
        last = len(self.history) - 1
        self.shown = last if frame < 0 else min(frame, last)

    def settle(self) -> None:
        """Make what is shown the present: what came later is forgotten."""
        shown, self.shown = self.shown, None
        if shown is None or self.history[shown].time >= self.runner.time - 0.5 * self.dt:
            return
        state = self.history.rewind(shown)
        self.runner.reset(state, self.history[-1].mind)

    @property
    def diverged(self) -> str:
        """Why the world stands still, or ""."""
        return f"{self.runner.lost}: restart, or go back" if self.runner.lost else ""

    def picture(self) -> Frame:
        """What is shown."""
        if self.shown is not None:
            entry = self.history[self.shown]
            return frame_of_note(entry.note, entry.world)
        world = self.runner.world
        note = note_of(world, world._core.time(), False, self.runner.asked())
        return frame_of_note(note, world)._replace(planned=self.runner.planned())

    # ---- changes

    def do(self, deed: Deed) -> None:
        """Do something to the world or its rules, from what is shown on."""
        self.settle()
        deed(self.runner)
        self.history.did(self.runner.time, deed)

    def retune(self, controls: Controls) -> None:
        """Another controller, gains, root, strength or pins."""
        controller = controller_for(self.setup, controls, self.runner.controller)
        self.setup = replace(self.setup, controls=controls)

        def deed(runner: Runner) -> None:
            runner.controller = controller

        self.do(deed)

    def remember(self, controls: Controls) -> None:
        """Start with these controls from now on: gravity, and whether the clip is looped."""
        last = None if controls.loop else 1
        lineup = replace(self.setup.lineup, gravity=controls.gravity, last=last)
        self.setup = replace(self.setup, controls=controls, lineup=lineup)

    def rebuild(self, controls: Controls) -> None:
        """Another step or friction: a new world in the same state; the past stays."""
        self.settle()
        self._change(rebuilt(self._now(), controls))
        self.history.append(self.runner, force=True)

    def put_objects(self, objects: Sequence[Character], balls: bool = True) -> None:
        """Other objects: a new world, with no past; characters are as they were.

        Args:
            objects: All that shall be there.
            balls: Whether balls that were thrown stay.
        """
        self.settle()
        self._change(with_objects(self._now(), objects, balls))
        self.history.clear()
        self.history.append(self.runner)

    def _now(self) -> Setup:
        return replace(self.setup, lineup=self.runner.lineup)

    def _change(self, made: Setup) -> None:
        controller = controller_for(made, made.controls)
        lineup = replace(made.lineup, begun=0.0, last=None if made.controls.loop else 1)
        self.history.take = None
        self.setup = replace(made, lineup=lineup)
        mind = self.runner.mind
        self.runner = Runner(made.world, controller, made.lineup)
        self.runner.restore(mind)

    # ---- takes

    def record(self) -> Take:
        """Begin a take with the present frame."""
        self.settle()
        last = self.history[-1]
        here = [last] if abs(last.time - self.runner.time) < 0.5 * self.dt else []
        self.history.take = Take(here, self.setup.controls.clip)
        return self.history.take

    def recent(self) -> Take:
        """The history as a take."""
        return Take(self.history, self.setup.controls.clip)


# ---- a recording that is played: the same to look at as the simulation


class Player:
    """A place in a recording.

    Args:
        recording: The recording.
        name: What to call it.
        copy: Which copy is shown.
    """

    def __init__(self, recording: Recording, name: str, copy: int = 0) -> None:
        self.recording, self.name, self.copy = recording, name, copy
        self.cast = Cast(recording.settings, recording.scene)
        self._time = recording.frames.column("time")[:, copy]
        self._at = 0.0  # since the first frame [s], at the recording's rate

    def __len__(self) -> int:
        return len(self.recording)

    @property
    def frame(self) -> int:
        """Which frame is shown."""
        return min(int(self._at / self.recording.interval + 1e-6), len(self) - 1)

    @property
    def time(self) -> float:
        """Time of the frame that is shown [s]."""
        return float(self._time[self.frame])

    @property
    def start(self) -> float:
        """Time of the first frame [s]."""
        return float(self._time[0])

    @property
    def end(self) -> float:
        """Time of the last frame [s]."""
        return float(self._time[-1])

    def go(self, seconds: float, loop: bool) -> bool:
        """Go on; whether there is anything left to play."""
        length = len(self) * self.recording.interval
        self._at += seconds
        if self._at < length:
            return True
        self._at = self._at % length if loop else length
        return loop

    def show(self, frame: int) -> None:
        """Go to a frame; -1 is the last."""
        last = len(self) - 1
        self._at = (last if frame < 0 else min(frame, last)) * self.recording.interval

    def show_time(self, time: float) -> None:
        """Go to the frame that was there at a time [s]; before it begins, the first."""
        self.show(max(0, int(np.searchsorted(self._time, time + 1e-6, side="right")) - 1))

    def picture(self) -> Frame:
        """What is shown."""
        return frame_of_recording(self.recording, self.frame, self.copy)
