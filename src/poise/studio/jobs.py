"""Work beside the simulation: loading clips, saving files. One thread for each kind of work."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from poise.errors import PoiseError
from poise.math.arrays import Progress
from poise.studio.snapshot import Job

log = logging.getLogger("poise.studio")

MOST_WAITING = 12
"""Jobs that may wait."""

KEPT = 8
"""Jobs that have ended and are still told of."""

Work = Callable[[Progress], Any]


class Stopped(PoiseError):
    """The session ends, and so does its work."""


class _Task(NamedTuple):
    number: int
    work: Work
    then: Callable[[Any], None] | None
    failed: Callable[[str], None] | None


class Jobs:
    """Jobs that wait, run and have ended.

    Args:
        changed: Called from any thread when something about them has changed.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._lanes: dict[str, queue.SimpleQueue[_Task | None]] = {}
        self._threads: list[threading.Thread] = []
        self._number = 0
        self._stopping = False

    @property
    def all(self) -> tuple[Job, ...]:
        """All jobs that are told of, the oldest first."""
        with self._lock:
            return tuple(self._jobs.values())

    def start(
        self,
        lane: str,
        what: str,
        work: Work,
        *,
        then: Callable[[Any], None] | None = None,
        failed: Callable[[str], None] | None = None,
        token: str = "",
    ) -> int:
        """Let some work be done; its number.

        Args:
            lane: Kind of work; jobs of one kind are done one after another.
            what: What it does, for people.
            work: Does it; is given a function to tell the share that is done, 0 to 1.
            then: Called with what it gave, from the thread that did it.
            failed: Called with what went wrong.
            token: Comes back in the job.
        """
        with self._lock:
            waiting = sum(job.state == "waiting" for job in self._jobs.values())
            if waiting >= MOST_WAITING or self._stopping:
                raise PoiseError("there is too much to do already: wait for what is being done")
            self._number += 1
            number = self._number
            self._jobs[number] = Job(number, what, token=token)
            if lane not in self._lanes:
                self._open(lane)
            self._lanes[lane].put(_Task(number, work, then, failed))
        self._changed()
        return number

    def stop(self, timeout: float = 5.0) -> None:
        """End; what runs is stopped when it next tells how far it is."""
        with self._lock:
            self._stopping = True
            lanes, threads = list(self._lanes.values()), list(self._threads)
        for lane in lanes:
            lane.put(None)
        for thread in threads:
            thread.join(timeout)

    def _open(self, lane: str) -> None:
        tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._lanes[lane] = tasks
        thread = threading.Thread(
            target=self._labour, args=(tasks,), name=f"poise-{lane}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _labour(self, tasks: queue.SimpleQueue[_Task | None]) -> None:
        while (task := tasks.get()) is not None and not self._stopping:
            self._do(task)

    def _do(self, task: _Task) -> None:
        def progress(share: float) -> None:
            if self._stopping:
                raise Stopped("the studio is closing")
            self._tell(task.number, share=min(max(float(share), 0.0), 1.0))

        self._tell(task.number, state="running")
        try:
            made = task.work(progress)
            path = made if isinstance(made, Path) else None
            if task.then is not None:
                task.then(made)
            message = "" if path is None else path.name
            self._tell(task.number, state="done", share=1.0, path=path, message=message)
        except Exception as error:
            ours = isinstance(error, PoiseError)
            text = str(error) if ours else f"{type(error).__name__}: {error}"
            if not ours:
                log.exception("a job failed")
            text = " ".join(text.split())[:300]
            self._tell(task.number, state="failed", message=text)
            if task.failed is not None:
                task.failed(text)

    def _tell(self, number: int, **news: Any) -> None:
        """Note how a job is doing; old ones are forgotten."""
        with self._lock:
            job = self._jobs[number]
            fine = job._replace(**news)
            if fine.state == job.state and fine.share - job.share < 0.01:
                return
            self._jobs[number] = fine
            ended = [n for n, job in self._jobs.items() if job.state in ("done", "failed")]
            for old in ended[:-KEPT]:
                del self._jobs[old]
        self._changed()
