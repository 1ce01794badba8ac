"""The session: a thread that owns the simulation. Pages ask, and read the newest snapshot.

    pages --ask(request)--> queue --> the thread: requests, steps, measures --> newest (a Snapshot)

The thread never waits for a page: it takes what is in the queue, goes on to where the clock is, and
some thirty times a second makes a snapshot and leaves it for whoever looks.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from pathlib import Path

from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.studio import acts_files, requests
from poise.studio.acts import ACTS, Asked, latest
from poise.studio.choosing import NAMES, balances, chosen, stands
from poise.studio.folder import Folder
from poise.studio.library import Library
from poise.studio.setup import set_up
from poise.studio.show import Show
from poise.studio.snapshot import Controls, Snapshot

log = logging.getLogger("poise.studio")

RATE = 30.0
"""Snapshots per second."""

BUDGET = 0.02
"""Real time of stepping between two looks at the queue [s]."""

MOST_ASKED = 2000
"""Requests that may wait."""


class Session:
    """A simulation that goes on by itself, for any number of pages to look at.

    Args:
        character: Name, file, or a Character; None is the clip's own.
        clip: Name, file, or a Clip; "rest" holds the rest pose.
        out: The folder for files; nothing is written elsewhere.
        controller: One of `poise.control.registry.CONTROLLERS`, or "balance".
        root: "free", "soft" or "held"; None is soft, or with balance free.
        dt: Time step [s]; None is 1/60, or with balance 1/120.
        count: How many characters.
        ground: "plane", "hills" or "none"; None is a plane for those who can stand.
        recording: A recording to play first.
        compare: A recording to show beside.
        names: What the two are called.
        play: Whether it begins to play at once.
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
    ) -> None:
        library = Library()
        motion = library.add_clip(clip)
        if character is None:
            character = "humanoid" if motion == "rest" else library.clip(motion).character
        who = library.add_character(character)
        given = requests.Choose(who, motion, count, controller, root, dt, ground).checked()
        ground = given.ground or ("plane" if stands(library, who) else "none")
        controls = chosen(Controls(who, motion, ground=ground), given, library)
        self._asked: queue.SimpleQueue[Asked] = queue.SimpleQueue()
        setup = set_up(controls, library.rounds(who, motion, balanced=balances(controls)))
        self._show = Show(library, Folder(out), setup, self._asked.put)
        self._number = 1
        if compare is not None:
            acts_files.show_beside(self._show, compare, names[1])
        if recording is not None:
            acts_files.show_recording(self._show, recording, names[0])
        self._show.tell_notes()
        self._show.play(play)
        self._newest = self._show.snapshot(self._number)
        self._fresh = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # ---- from any thread

    @property
    def newest(self) -> Snapshot:
        """The newest snapshot."""
        return self._newest

    def ask(self, request: requests.Request) -> bool:
        """Ask for something; whether it was taken in. What is wrong with it is logged and shown."""
        if self._asked.qsize() > MOST_ASKED:
            log.warning("%s: dropped, there are too many requests", type(request).__name__)
            return False
        try:
            if type(request) not in ACTS:
                raise PoiseError(f"{type(request).__name__} is no request")
            good = request.checked()
        except Exception as error:
            text = f"dropped: {error!s:.300}"
            self._asked.put(lambda: self._show.say(text, "error"))
            return False
        self._asked.put(good)
        return True

    def wait(self, number: int, timeout: float = 1.0) -> Snapshot:
        """The newest snapshot, once its number is larger than this, or after so long [s]."""
        with self._fresh:
            self._fresh.wait_for(lambda: self._newest.number > number, timeout)
        return self._newest

    def series(self) -> dict[str, Floats]:
        """Curves of the last seconds of the watched character.

        `poise.studio.series` has their names: KEYS and STANCE.
        """
        now = self._newest
        who = min(now.controls.watch, now.moment.cast.count - 1)
        series, time = self._show.series, now.moment.time
        return {**series.curves(who, time), **series.stance(who, time)}

    @property
    def characters(self) -> tuple[str, ...]:
        """Names of the characters there are."""
        return self._show.library.characters

    @property
    def clips(self) -> tuple[str, ...]:
        """Names of the clips there are."""
        return self._show.library.clips

    def clips_for(self, character: str) -> tuple[str, ...]:
        """Clips that a character can follow, its own first."""
        return self._show.library.clips_for(character)

    @property
    def controllers(self) -> tuple[str, ...]:
        """Names of the controllers there are."""
        return NAMES

    @property
    def out(self) -> Path:
        """The folder for files."""
        return self._show.folder.path

    # ---- the thread

    def start(self) -> Session:
        """Let it go on."""
        if self._thread is None:
            self._show.set_clock()
            self._thread = threading.Thread(target=self._run, name="poise-session", daemon=True)
            self._thread.start()
        return self

    def stop(self, timeout: float = 5.0) -> None:
        """End it, and the work beside; files are written whole or not at all."""
        self._stopping.set()
        self._asked.put(lambda: None)
        if self._thread is not None:
            self._thread.join(timeout)
        self._show.jobs.stop(timeout)

    def __enter__(self) -> Session:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _run(self) -> None:
        show, due = self._show, time.perf_counter()
        while not self._stopping.is_set():
            look = show.playing or show.dirty
            rest = min(show.rest(), max(0.0, due - time.perf_counter()) if look else 1.0)
            for asked in latest(self._taken(rest)):
                self._safely(asked)
            if show.playing:
                self._safely(lambda: show.advance(BUDGET))
            now = time.perf_counter()
            if now >= due and (show.playing or show.dirty):
                due = max(due + 1.0 / RATE, now)
                self._safely(self._publish)

    def _taken(self, timeout: float) -> list[Asked]:
        """All that was asked, waiting so long [s] for the first."""
        found: list[Asked] = []
        try:
            found.append(
                self._asked.get(timeout=timeout) if timeout > 0 else self._asked.get_nowait()
            )
            while len(found) < MOST_ASKED:
                found.append(self._asked.get_nowait())
        except queue.Empty:
            pass
        return found

    def _safely(self, asked: Asked) -> None:
        """Do something; whatever goes wrong is told, and the thread goes on."""
        try:
            if isinstance(asked, requests.Request):
                self._show.dirty = True
                ACTS[type(asked)](self._show, asked)
            else:
                asked()
        except PoiseError as error:
            self._show.say(str(error), "error")
        except Exception as error:
            log.exception("the session stumbled")
            self._show.playing = False
            self._show.say(f"{type(error).__name__}: {error!s:.200}", "error")

    def _publish(self) -> None:
        self._number += 1
        self._newest = self._show.snapshot(self._number)
        with self._fresh:
            self._fresh.notify_all()
