"""The session: a thread that owns a simulation. Pages send requests, and read the newest snapshot.

    pages --submit(request)--> queue --> thread: handlers, steps, measures --> newest (a Snapshot)

The thread never waits for a page: it handles what is in the queue, advances to where the clock is,
and some thirty times a second makes a snapshot that any thread may read.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.studio.handlers import HANDLERS, Task, drop_overridden, merge_choice
from poise.studio.history import Edit, Take
from poise.studio.jobs import Jobs, OutputFolder
from poise.studio.library import Library
from poise.studio.measures import Series
from poise.studio.requests import Choose, Request
from poise.studio.scene import set_up
from poise.studio.simulation import Playback, Simulation
from poise.studio.snapshot import Controls, Message, Snapshot

log = logging.getLogger("poise.studio")

SNAPSHOT_RATE = 30.0
"""Snapshots per second."""

STEP_BUDGET = 0.02
"""Real time of stepping between two looks at the queue [s]."""

MAX_QUEUED = 2000
"""Requests that may wait."""

CHUNK = 1.0 / 60.0
"""Simulated time between looks at the clock [s]."""

FOLDER_INTERVAL = 3.0
"""How often the output folder is listed [s]: other programs may put recordings there."""

MAX_NOTES = 320
"""Letters of the notes about a clip."""

IDLE_WAIT = 1.0
"""How long a paused session waits for a request [s]."""

MAX_DELAY = 0.1
"""Real time by which the simulation catches up [s]; a longer delay stays."""

RATE_WINDOW = 1.0
"""Over which rates are averaged [s]."""


class Session:
    """A simulation that runs by itself, for any number of pages.

    Args:
        character: Name, file, or a Character; None is the clip's own.
        clip: Name, file, or a Clip; "rest" holds the rest pose.
        out: The folder for files; nothing is written elsewhere.
        controller: One of `poise.control.registry.CONTROLLERS`.
        root: "free", "soft" or "held"; None is soft, or with balance free.
        dt: Time step [s]; None is 1/60, or with balance 1/120.
        count: Number of characters.
        ground: "plane", "hills" or "none"; None is a plane for characters with a free root.
        recording: A recording to play first.
        compare: A recording to show beside.
        names: Names of the two recordings.
        play: Whether it begins to play at once.
        library: Characters and clips to choose from; None is a new library.
        clock: Real time [s].

    Attributes:
        library: Characters and clips.
        folder: The output folder.
        jobs: Work beside the simulation.
        simulation: The simulation; it is paused while a recording is played.
        playback: The recording that is played, or None.
        beside: The recording to compare with, or None.
        controls: What was chosen; a scene that is still being loaded is chosen already.
        playing: Whether time advances.
        dirty: Whether there is something new to see.
        take: The running take, or the last one.
        choices: Number of scenes that were chosen so far.
        series: Curves of the last seconds.

    Only the thread of the session, its handlers among it, changes these.
    """

    def __init__(
        self,
        character: str | os.PathLike[str] | Character | None = None,
        clip: str | os.PathLike[str] | Clip = "walk",
        *,
        out: str | os.PathLike[str],
        controller: str = "spd",
        root: str | None = None,
        dt: float | None = None,
        count: int = 1,
        ground: str | None = None,
        recording: Recording | None = None,
        compare: Recording | None = None,
        names: tuple[str, str] = ("first", "second"),
        play: bool = True,
        library: Library | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.library = Library() if library is None else library
        motion = self.library.add_clip(clip)
        if character is None:
            character = "humanoid" if motion == "rest" else self.library.clip(motion).character
        body = self.library.add_character(character)
        choice = Choose(body, motion, count, controller, root, dt, ground).checked()
        ground = choice.ground or self.library.default_ground(body)
        self.controls = merge_choice(Controls(body, motion, ground=ground), choice, self.library)
        balanced = self.controls.balances
        setup = set_up(self.controls, self.library.motion(body, motion, balanced=balanced))

        self._queue: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self.folder = OutputFolder(out)
        self.jobs = Jobs(changed=lambda: self.post(self._list_folder))
        self.simulation = Simulation(setup)
        self.playback: Playback | None = None
        self.beside: Playback | None = None
        self.take: Take | None = None
        self.playing, self.dirty, self.choices = False, True, 0
        self.series = Series()
        self._pace = Pace(clock)
        self._played = 0.0
        self._message = Message()
        self._number = 0
        self._list_folder()

        if compare is not None:
            self.show_beside(compare, names[1])
        if recording is not None:
            self.show_recording(recording, names[0])
        self.show_notes()
        self.play(play)
        self._newest = self.make_snapshot()
        self._fresh = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # ---- from any thread

    @property
    def newest(self) -> Snapshot:
        """The newest snapshot."""
        return self._newest

    def submit(self, request: Request) -> bool:
        """Sends a request; returns whether it was accepted. An error is logged and shown."""
        if self._queue.qsize() > MAX_QUEUED:
            log.warning("%s: dropped, there are too many requests", type(request).__name__)
            return False
        try:
            if type(request) not in HANDLERS:
                raise PoiseError(f"{type(request).__name__} is no request")
            checked = request.checked()
        except Exception as error:
            text = f"dropped: {error!s:.300}"
            self.post(lambda: self.show_message(text, "error"))
            return False
        self._queue.put(checked)
        return True

    def post(self, task: Callable[[], None]) -> None:
        """Lets the thread of the session call a function."""
        self._queue.put(task)

    def wait(self, number: int, timeout: float = 1.0) -> Snapshot:
        """The newest snapshot, once its number is larger than this, or after so long [s]."""
        with self._fresh:
            self._fresh.wait_for(lambda: self._newest.number > number, timeout)
        return self._newest

    def curves(self) -> dict[str, Floats]:
        """Curves of the last seconds of the watched character; see `Series.curves`."""
        now = self._newest
        character = min(now.controls.watch, now.measures.index.count - 1)
        return self.series.curves(character, now.measures.time)

    # ---- the thread

    def start(self) -> Session:
        """Starts the thread."""
        if self._thread is None:
            self.set_clock()
            self._thread = threading.Thread(target=self._run, name="poise-session", daemon=True)
            self._thread.start()
        return self

    def stop(self, timeout: float = 5.0) -> None:
        """Ends the thread and all jobs; files are written whole or not at all."""
        self._stopping.set()
        self.post(lambda: None)
        if self._thread is not None:
            self._thread.join(timeout)
        self.jobs.stop(timeout)

    def __enter__(self) -> Session:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _run(self) -> None:
        due = time.perf_counter()
        while not self._stopping.is_set():
            look = self.playing or self.dirty
            wait = min(self._idle_time(), max(0.0, due - time.perf_counter()) if look else 1.0)
            for task in drop_overridden(self._next_tasks(wait)):
                self._do(task)
            if self.playing:
                self._do(lambda: self.advance(STEP_BUDGET))
            now = time.perf_counter()
            if now >= due and (self.playing or self.dirty):
                due = max(due + 1.0 / SNAPSHOT_RATE, now)
                self._do(self._publish)

    def _next_tasks(self, timeout: float) -> list[Task]:
        """All tasks of the queue, waiting so long [s] for the first."""
        found: list[Task] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._queue.get(timeout=max(timeout, 0.0)))
            while len(found) < MAX_QUEUED:
                found.append(self._queue.get_nowait())
        return found

    def _do(self, task: Task) -> None:
        """Does a task; an error is shown, and the thread goes on."""
        try:
            if isinstance(task, Request):
                self.handle(task)
            else:
                task()
        except PoiseError as error:
            self.show_message(str(error), "error")
        except Exception as error:
            log.exception("a task of the session failed")
            self.playing = False
            self.show_message(f"{type(error).__name__}: {error!s:.200}", "error")

    def handle(self, request: Request) -> None:
        """Handles a checked request."""
        self.dirty = True
        HANDLERS[type(request)](self, request)

    def _publish(self) -> None:
        self._newest = self.make_snapshot()
        with self._fresh:
            self._fresh.notify_all()

    # ---- time

    @property
    def shown(self) -> Simulation | Playback:
        """The simulation, or the recording that is played."""
        return self.simulation if self.playback is None else self.playback

    def play(self, on: bool) -> None:
        """Plays, or pauses; the clock starts from what is shown."""
        self.playing = on
        self.set_clock()

    def set_clock(self) -> None:
        """Starts the clock now and from what is shown, at the chosen speed."""
        self._played = 0.0
        simulated = self.simulation.time if self.playback is None else 0.0
        self._pace.start(simulated, self.controls.speed)

    def advance(self, budget: float) -> None:
        """Advances to where the clock is, for at most so long [s]."""
        began = self._pace.clock()
        if self.playback is not None:
            allowed = self._pace.allowed(self._played)
            self.playing = self.playback.advance(allowed - self._played, self.controls.loop)
            self.dirty = True
            self._pace.worked(began, allowed - self._played)
            self._played = allowed
            return
        simulation, done = self.simulation, 0
        dt = simulation.dt
        steps = int((self._pace.allowed(simulation.time) - simulation.time) / dt + 1e-6)
        most = max(1, round(CHUNK / dt))
        while done < steps and self.playing and (not done or self._pace.clock() - began < budget):
            k = min(steps - done, most)
            simulation.advance(k)
            done += k
            if simulation.diverged:
                self.playing = False
                self.show_message(simulation.diverged, "error")
        take = simulation.history.take
        if take is not None and take.is_full:
            self.end_take("all the room there is")
        self._pace.worked(began, done * dt, done)

    def _idle_time(self) -> float:
        """Real time until there is something to do [s]."""
        if not self.playing:
            return IDLE_WAIT
        if self.playback is not None:
            return max(0.0, self._pace.until(self._played + self.playback.recording.interval))
        return max(0.0, self._pace.until(self.simulation.time + self.simulation.dt))

    # ---- changes, for handlers

    def apply(self, edit: Edit) -> None:
        """Applies an edit to the simulation, from what is shown on."""
        self.show_live()
        self.simulation.apply(edit)
        if not self.playing:
            self.set_clock()

    def live_simulation(self) -> Simulation:
        """The simulation, with what is shown as its present."""
        self.show_live()
        self.simulation.discard_future()
        return self.simulation

    def show_live(self) -> None:
        """Returns to the simulation, if a recording is played."""
        if self.playback is not None:
            self.playback = None
            self.series.clear()
            self.set_clock()

    def show_recording(self, recording: Recording, name: str) -> None:
        """Plays a recording."""
        self.playback = Playback(recording, name)
        self.series.clear()
        self.play(True)
        self.dirty = True

    def show_beside(self, recording: Recording, name: str) -> None:
        """Shows a recording beside."""
        self.beside = Playback(recording, name)
        self.dirty = True

    def end_take(self, reason: str = "") -> None:
        """Ends the running take, if there is one; it is kept."""
        if self.simulation.history.take is not None:
            self.simulation.history.take = None
            if reason:
                self.show_message(f"the recording ended with {reason}; it can be saved")

    def show_message(self, text: str, level: str = "info") -> None:
        """Shows a message on the pages, and logs it."""
        text = " ".join(text.split())[:400]
        log.log(logging.INFO if level == "info" else logging.WARNING, "%s", text)
        self._message = Message(self._message.number + 1, text, level)
        self.dirty = True

    def show_notes(self) -> None:
        """Shows how the clip was changed, if it was."""
        self.dirty = True
        notes = list(self.simulation.setup.motion.notes)
        # the last ones are the most important
        while len(notes) > 1 and sum(map(len, notes)) > MAX_NOTES:
            notes.pop(0)
        if notes:
            self.show_message(f"{self.controls.clip}: {'; '.join(notes)}")

    @property
    def scene_controls(self) -> Controls:
        """The controls of the present scene, with the present speed, loop and watch."""
        now = self.controls
        return replace(
            self.simulation.setup.controls, speed=now.speed, loop=now.loop, watch=now.watch
        )

    @property
    def watched(self) -> int:
        """Number of the watched character in the simulation."""
        return min(self.controls.watch, self.simulation.setup.index.count - 1)

    # ---- what is seen

    def _list_folder(self) -> None:
        self._files, self._listed = self.folder.recordings(), self._pace.clock()
        self.dirty = True

    def make_snapshot(self) -> Snapshot:
        """All that a page shows."""
        if self._pace.clock() > self._listed + FOLDER_INTERVAL:
            self._list_folder()
        self.dirty = False
        self._number += 1
        began, simulation, playback = self._pace.clock(), self.simulation, self.playback
        shown, beside = self.shown, self.beside
        measures = shown.measures()
        looks_back = playback is None and simulation.shown is not None
        if self.playing or not looks_back:
            self.series.append(measures)
        if beside is not None:
            # at the same time after its start
            start = 0.0 if playback is None else playback.start
            beside.show_time(beside.start + measures.time - start)
        pace, step_rate, load = self._pace.rates()
        watched = min(self.controls.watch, measures.index.count - 1)
        snapshot = Snapshot(
            number=self._number,
            measures=measures,
            beside=None if beside is None else beside.measures(),
            mode="live" if playback is None else "recorded",
            name="" if playback is None else playback.name,
            made="" if playback is None else playback.recording.made,
            beside_name="" if beside is None else beside.name,
            playing=self.playing,
            frame=shown.frame_number,
            frames=len(shown),
            start=shown.start,
            end=shown.end,
            pace=pace,
            step_rate=step_rate,
            load=load,
            diverged="" if playback is not None or looks_back else simulation.diverged,
            trail=self.series.trail(watched, measures.time),
            recording=simulation.history.take is not None,
            taken=0.0 if self.take is None else self.take.duration,
            controls=self.controls,
            jobs=self.jobs.all,
            files=self._files,
            message=self._message,
        )
        self._pace.worked(began)
        return snapshot


class Pace:
    """A clock that the simulation never runs ahead of.

    Args:
        clock: Real time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._real = self._simulated = 0.0
        self._speed = 1.0
        self._work: deque[tuple[float, float, float, int]] = deque()

    def start(self, simulated: float, speed: float) -> None:
        """Starts now and from a simulated time [s], at a speed relative to real time."""
        self._real, self._simulated, self._speed = self.clock(), simulated, speed

    def allowed(self, simulated: float) -> float:
        """How far the simulation may be by now [s]; a delay that is too long is dropped.

        Args:
            simulated: Where it is [s].
        """
        now = self.clock()
        due = self._simulated + (now - self._real) * self._speed
        most = simulated + MAX_DELAY * self._speed
        if due > most:
            self._real, self._simulated, due = now, most, most
        return due

    def until(self, simulated: float) -> float:
        """Real time until the simulation may be there [s]."""
        return self._real + (simulated - self._simulated) / self._speed - self.clock()

    def worked(self, began: float, simulated: float = 0.0, steps: int = 0) -> None:
        """Counts work that began at a real time [s] and has just ended."""
        now = self.clock()
        self._work.append((now, now - began, simulated, steps))
        while self._work[0][0] < now - RATE_WINDOW:
            self._work.popleft()

    def rates(self) -> tuple[float, float, float]:
        """Pace, step rate and load over the last second: see `Snapshot`."""
        now = self.clock()
        work = [one for one in self._work if one[0] >= now - RATE_WINDOW]
        if len(work) < 2 or now - work[-1][0] > 0.5 * RATE_WINDOW:
            return 0.0, 0.0, 0.0
        # the first one began before the time that is counted
        span = max(now - work[0][0], 1e-9)
        _, busy, simulated, steps = (sum(column) for column in zip(*work[1:], strict=True))
        return simulated / span, steps / span, min(busy / span, 1.0)
