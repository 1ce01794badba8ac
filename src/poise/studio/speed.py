"""How fast a session is: for tests and benchmarks."""

from __future__ import annotations

import tempfile
import threading
import time
from typing import Any, NamedTuple

from poise.studio.session import Session


class Speed(NamedTuple):
    """How a session kept up.

    Attributes:
        characters: How many.
        pace: Simulated time per real time; 1 is real time.
        snapshots: Per second of real time.
        load: Processor time of its thread per real time: 1 is one core.
        steps: Per second of real time.
    """

    characters: int
    pace: float
    snapshots: float
    load: float
    steps: float


def session_speed(count: int = 20, seconds: float = 3.0, **options: Any) -> Speed:
    """Let characters walk for a while, in real time, and see how the session keeps up.

    Args:
        count: How many characters.
        seconds: Real time that is measured [s]; half a second before does not count.
        options: As of Session.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Session(count=count, out=folder, **options) as session,
    ):
        time.sleep(0.5)
        before = _standing(session)
        time.sleep(seconds)
        after = _standing(session)
    real, worked, simulated, snapshots = (b - a for a, b in zip(before, after, strict=True))
    dt = session.newest.controls.dt
    return Speed(count, simulated / real, snapshots / real, worked / real, simulated / dt / real)


def _standing(session: Session) -> tuple[float, float, float, int]:
    """Real time, processor time of its thread, simulated time [s], and number of the snapshot."""
    found: list[tuple[float, float, float, int]] = []
    told = threading.Event()

    def tell() -> None:
        now = session.newest
        show = session._show
        found.append((time.perf_counter(), time.thread_time(), show.simulation.time, now.number))
        told.set()

    session._asked.put(tell)
    told.wait(10.0)
    return found[0]
