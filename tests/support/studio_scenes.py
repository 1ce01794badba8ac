"""Scenes of the studio for tests: built without threads, and with."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from poise.studio.library import Library
from poise.studio.requests import Request
from poise.studio.scene import Setup, set_up
from poise.studio.session import Session
from poise.studio.simulation import Simulation
from poise.studio.snapshot import Controls, Snapshot

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from studio import session_speed as session_speed


class Clock:
    """Real time that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@lru_cache(maxsize=1)
def library() -> Library:
    """The library, whose clips are loaded once."""
    return Library()


def setup(character: str = "humanoid", clip: str = "walk", **controls: Any) -> Setup:
    """A scene at its start."""
    chosen = Controls(character, clip, **controls)
    return set_up(chosen, library().motion(character, clip, balanced=chosen.balances))


def simulation(character: str = "humanoid", clip: str = "walk", **controls: Any) -> Simulation:
    """A simulation at its start."""
    return Simulation(setup(character, clip, **controls))


class Studio(Session):
    """A session without a thread: the test does what its thread would do."""

    def __init__(
        self, folder: Path, clock: Clock | None = None, character: str = "humanoid", **chosen: Any
    ) -> None:
        clock = clock or Clock()
        super().__init__(
            character, out=folder, library=library(), clock=clock, play=False, **chosen
        )

    def ask(self, request: Request) -> bool:
        """Do at once what the thread would do; errors are raised."""
        self.settle()
        self.handle(request.checked())
        return True

    def settle(self) -> None:
        """Do what was posted."""
        while not self._queue.empty():
            task = self._queue.get()
            assert not isinstance(task, Request)
            task()

    def finish_jobs(self) -> None:
        """Wait until all jobs have ended."""
        until(lambda: all(job.state in ("done", "failed") for job in self.jobs.all))
        self.settle()


def until(true: Callable[[], bool], timeout: float = 30.0) -> None:
    """Wait for something."""
    end = time.monotonic() + timeout
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


def wait_for(session: Session, true: Callable[[Snapshot], bool], timeout: float = 30.0) -> Snapshot:
    """The first snapshot of which something is true."""
    end, snapshot = time.monotonic() + timeout, session.newest
    while not true(snapshot):
        assert time.monotonic() < end, f"it never came true: {snapshot.message}"
        snapshot = session.wait(snapshot.number, 0.5)
    return snapshot
