"""The show: what is played and seen. One thread calls it, the one that owns it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from poise.simulation.pushes import Push
from poise.studio.history import Deed, Take
from poise.studio.jobs import Folder, Jobs
from poise.studio.library import Library
from poise.studio.measures import Series, moment_of
from poise.studio.pace import Pace
from poise.studio.scene import Setup
from poise.studio.simulation import Player, Simulation
from poise.studio.snapshot import Controls, Message, Moment, Snapshot

log = logging.getLogger("poise.studio")

CHUNK = 1.0 / 60.0
"""Simulated time between looks at the clock [s]."""

LISTED = 3.0
"""How often the folder is looked into [s]: others may put recordings there."""

MOST_TOLD = 320
"""Letters of what was done to a clip."""

IDLE = 1.0
"""How long a show that stands may be left alone [s]."""


class Show:
    """What is played and seen, and all that it needs.

    Args:
        library: Characters and clips.
        folder: Where files go.
        setup: The scene to begin with.
        post: Lets something be called later, by the thread that owns the show.
        pace: The clock.

    Attributes:
        controls: What was chosen; a scene that is still being loaded is chosen already.
        simulation: The simulation; it stands while a recording is played.
        player: The recording that is played, or None.
        beside: The recording to compare with, or None.
        playing: Whether time goes on.
        dirty: Whether there is something new to see.
        take: The take that runs, or the last one.
        pushes: Pushes of the simulation since its start.
        choices: Counts scenes that were asked for.
    """

    def __init__(
        self,
        library: Library,
        folder: Folder,
        setup: Setup,
        post: Callable[[Callable[[], None]], None],
        pace: Pace | None = None,
    ) -> None:
        self.library, self.folder, self.post = library, folder, post
        self.jobs = Jobs(changed=lambda: post(self.refresh))
        self.simulation = Simulation(setup)
        self.controls: Controls = setup.controls
        self.player: Player | None = None
        self.beside: Player | None = None
        self.playing = False
        self.dirty = True
        self.take: Take | None = None
        self.pushes: list[Push] = []
        self.choices = 0
        self.series = Series()
        self._pace = Pace() if pace is None else pace
        self._played = 0.0
        self._message = Message()
        self._files, self._listed = folder.recordings(), self._pace.clock()

    # ---- time

    def play(self, on: bool) -> None:
        """Go on, or pause; the clock starts from what is shown."""
        self.playing = on
        self.set_clock()

    def set_clock(self) -> None:
        """From now on and from what is shown, at the speed that was chosen."""
        self._played = 0.0
        simulated = self.simulation.time if self.player is None else 0.0
        self._pace.start(simulated, self.controls.speed)

    def advance(self, budget: float) -> None:
        """Go on to where the clock is, for at most so long [s]."""
        began = self._pace.clock()
        if self.player is not None:
            self._advance_player(self.player, began)
            return
        sim, done = self.simulation, 0
        steps = int((self._pace.allowed(sim.time) - sim.time) / sim.dt + 1e-6)
        most = max(1, round(CHUNK / sim.dt))
        while done < steps and self.playing and (not done or self._pace.clock() - began < budget):
            k = min(steps - done, most)
            sim.go(k)
            done += k
            if sim.diverged:
                self.playing = False
                self.say(sim.diverged, "error")
        if sim.history.take is not None and sim.history.take.full:
            self.end_take("all the room there is")
        self._pace.worked(began, done * sim.dt, done)

    def _advance_player(self, player: Player, began: float) -> None:
        allowed = self._pace.allowed(self._played)
        self.playing = player.go(allowed - self._played, self.controls.loop)
        self.dirty = True
        self._pace.worked(began, allowed - self._played)
        self._played = allowed

    def rest(self) -> float:
        """Real time until there is something to do [s]."""
        if not self.playing:
            return IDLE
        if self.player is not None:
            return max(0.0, self._pace.until(self._played + self.player.recording.interval))
        return max(0.0, self._pace.until(self.simulation.time + self.simulation.dt))

    # ---- changes

    def do(self, deed: Deed) -> None:
        """Do something to the simulation, from what is shown on."""
        self.need_live()
        time = self.simulation.time
        self.simulation.do(deed)
        self.pushes = [push for push in self.pushes if push.at <= time]
        if not self.playing:
            self.set_clock()

    def need_live(self) -> None:
        """Back to the simulation, if a recording is shown."""
        if self.player is not None:
            self.player = None
            self.series.clear()
            self.set_clock()

    def end_take(self, why: str = "") -> None:
        """End the take that runs, if there is one; it is kept."""
        if self.simulation.history.take is not None:
            self.simulation.history.take = None
            if why:
                self.say(f"the recording ended with {why}; it can be saved")

    def say(self, text: str, level: str = "info") -> None:
        """Tell the people at the page."""
        text = " ".join(text.split())[:400]
        log.log(logging.INFO if level == "info" else logging.WARNING, "%s", text)
        self._message = Message(self._message.number + 1, text, level)
        self.dirty = True

    def tell_notes(self) -> None:
        """Tell what was done to the clip, if anything was."""
        self.dirty = True
        notes = list(self.simulation.setup.rounds.notes)
        # the last ones say what may come of it
        while len(notes) > 1 and sum(map(len, notes)) > MOST_TOLD:
            notes.pop(0)
        if notes:
            self.say(f"{self.controls.clip}: {'; '.join(notes)}")

    def refresh(self) -> None:
        """There is news of jobs, and so perhaps of files."""
        self._files, self._listed = self.folder.recordings(), self._pace.clock()
        self.dirty = True

    def scene_controls(self) -> Controls:
        """The controls of the scene that is there, with the present speed, loop and watch."""
        now = self.controls
        return replace(
            self.simulation.setup.controls, speed=now.speed, loop=now.loop, watch=now.watch
        )

    # ---- what is seen

    def snapshot(self, number: int) -> Snapshot:
        """All that a page shows."""
        if self._pace.clock() > self._listed + LISTED:
            self.refresh()
        self.dirty = False
        began, sim, player = self._pace.clock(), self.simulation, self.player
        shown = sim if player is None else player
        cast = sim.setup.cast if player is None else player.cast
        moment = moment_of(cast, shown.picture())
        if self.playing or sim.shown is None or player is not None:
            self.series.append(moment)
        if player is None:
            frames, start, end = len(sim.history), sim.history[0].time, sim.history[-1].time
        else:
            frames, start, end = len(player), player.start, player.end
        rates = self._pace.rates()
        watch = min(self.controls.watch, cast.count - 1)
        snapshot = Snapshot(
            number=number,
            moment=moment,
            beside=self._beside(moment.time - start if player else moment.time),
            mode="live" if player is None else "recorded",
            name="" if player is None else player.name,
            made="" if player is None else player.recording.made,
            beside_name="" if self.beside is None else self.beside.name,
            playing=self.playing,
            frame=shown.frame,
            frames=frames,
            start=start,
            end=end,
            pace=rates.pace,
            step_rate=rates.step_rate,
            load=rates.load,
            diverged="" if player is not None or sim.shown is not None else sim.diverged,
            trail=self.series.trail(watch, moment.time),
            recording=sim.history.take is not None,
            taken=0.0 if self.take is None else self.take.duration,
            controls=self.controls,
            jobs=self.jobs.all,
            files=self._files,
            message=self._message,
        )
        self._pace.worked(began)
        return snapshot

    def _beside(self, time: float) -> Moment | None:
        """The recording to compare with, so long after its start [s]."""
        if self.beside is None:
            return None
        self.beside.show_time(self.beside.start + time)
        return moment_of(self.beside.cast, self.beside.picture())
