"""Whether the studio's session keeps up with real time, with many characters."""

from __future__ import annotations

from tables import Bound, Section, Table
from timing import Plan

COUNTS = (1, 5, 20)
SECONDS = 5.0


def studio(plan: Plan) -> Section:
    """Characters that walk in real time while snapshots are made."""
    from poise.studio.speed import session_speed

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
