"""Whether the studio's session keeps up with real time, with many characters."""

from __future__ import annotations

import tempfile
import threading
import time
from typing import Any, NamedTuple

from tables import Bound, Section, Table
from timing import Plan

from poise.studio.session import Session

COUNTS = (1, 5, 20)
SECONDS = 5.0


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
    done = threading.Event()

    def note_times() -> None:
        now = session.newest
        found.append((time.perf_counter(), time.thread_time(), session.simulation.time, now.number))
        done.set()

    session.post(note_times)
    done.wait(10.0)
    return found[0]


def studio(plan: Plan) -> Section:
    """Characters that walk in real time while snapshots are made."""
    counts, seconds = ((1,), 0.3) if plan.quick else (COUNTS, SECONDS)
    section = Section("studio", f"a session in real time, {seconds:g} s of walking, dt 1/60")
    speeds = {str(count): session_speed(count, seconds) for count in counts}
    balances = session_speed(1, seconds, clip="forward-kick", controller="balance")
    names = {str(count): f"{count} humanoid{'s' if count > 1 else ''}" for count in counts}
    names["balance"] = "1 that balances, dt 1/120"
    rows = []
    for key, speed in {**speeds, "balance": balances}.items():
        section.numbers[key] = speed._asdict()
        rows.append(
            (names[key], f"{speed.pace:.2f}", f"{speed.snapshots:.1f}", f"{speed.load:.0%}")
        )
    columns = ("", "pace against real time", "snapshots per second", "of one core")
    section.tables.append(Table("", columns, rows))
    for key, speed in ((str(counts[-1]), speeds[str(counts[-1])]), ("balance", balances)):
        section.bounds += [
            Bound(f"{key}: pace against real time", speed.pace, least=0.97),
            Bound(f"{key}: snapshots", speed.snapshots, least=28.0, unit="per second"),
        ]
    section.notes.append(
        "the session alone, without a page: steps, contact between all characters, history, and "
        "all measures thirty times a second, in one thread. Pace and snapshots suffer from other "
        "work on the machine; the share of a core is the processor's time."
    )
    return section
