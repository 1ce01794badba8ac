"""The simulation of the studio: a world that can be stopped, looked back into and gone on with.

It knows nothing of threads and clocks: `Session` calls it from the one thread that owns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from poise.model.character import Character
from poise.recording.notes import note_of
from poise.studio.history import Deed, History, Runner
from poise.studio.moments import Frame, frame_of_note
from poise.studio.setup import Setup, controller_for, rebuilt, with_objects
from poise.studio.snapshot import Controls
from poise.studio.takes import Take


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
