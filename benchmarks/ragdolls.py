"""Thousands of limp humanoids fall, are pushed, and come to rest."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tables import Bound, Section, Table
from timing import Plan

# the tests drop a sample of the same falls
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from falls import BENT, DT, KINDS, MOVING, SECONDS, SHAKING, SHARING, SINKING, Falls, drop

try:
    from rich.progress import Progress
except ImportError:  # then it is quiet
    Progress = None  # type: ignore[assignment, misc]

GROUNDS = ("plane", "field")
CLAIMS = {
    "diverged": "diverged",
    "sank": f"sank more than {100 * SINKING:g} cm",
    "moves": "not at rest",
    "bent": f"more than {np.degrees(BENT):g} degree beyond a joint's limit",
}
NAMED = 12
"""So many numbers of failed falls are printed; the record has all."""


def ragdolls(plan: Plan) -> Section:
    """Half of the falls on a plane, half on height fields."""
    seconds = 1 if plan.quick else SECONDS
    section = Section("ragdolls", f"{plan.falls} random falls, {seconds} s each, float64, dt 1/60")
    each = {"plane": plan.falls - plan.falls // 2, "field": plan.falls // 2}
    ended: dict[str, list[Falls]] = {ground: [] for ground in GROUNDS}
    taken = dict.fromkeys(GROUNDS, 0.0)
    with progress(
        plan, sum(-(-count // SHARING) for count in each.values()) * (seconds + 1)
    ) as tick:
        for ground, count in each.items():
            begin = time.perf_counter()
            for first in range(0, count, SHARING):
                numbers = range(first, min(count, first + SHARING))
                ended[ground].append(drop(ground, numbers, seconds=seconds, tick=tick))
            taken[ground] = time.perf_counter() - begin
    section.tables.append(_worst(ended, each, taken, seconds))
    failed = {ground: _failures(many) for ground, many in ended.items()}
    section.tables.append(_failed(failed))
    late = {} if plan.quick else {ground: _late(ground, failed[ground]) for ground in GROUNDS}
    section.numbers = {"failed": failed, "seconds": taken, "falls": each, "late": late}
    for kind, claim in CLAIMS.items():
        count = sum(len(failed[ground][kind]) for ground in GROUNDS)
        section.bounds.append(Bound(claim, count, most=0, unit="falls"))
    section.notes += [
        "a limp humanoid (0.5 N m s/rad in its joints) starts above the ground in a random turn, "
        "all joints moving at some 1 rad/s, and is pushed three times, by some 200 N for 0.1 s, on "
        "a random link. Depths are looked at in every step, contacts with the ground alone.",
        f"at rest: no link moved more than {100 * MOVING:g} cm in the last second, and the kinetic "
        f"energy is at most {SHAKING:g} J. A fall is dropped again by its number: "
        "tests/support/falls.py, drop(ground, [number, number]).",
    ]
    if any(late.values()):
        still = "; ".join(f"{ground} {numbers}" for ground, numbers in late.items() if numbers)
        section.notes.append(f"not at rest after {SECONDS} s, but after {2 * SECONDS} s: {still}")
    return section


def _failures(many: list[Falls]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for ends in many:
        for kind, numbers in ends.failures().items():
            out[kind] += numbers
    return out


def _late(ground: str, failed: dict[str, list[int]]) -> list[int]:
    """Of those that moved at the end, who lies still when given as long again."""
    again = [drop(ground, [k, k], seconds=2 * SECONDS) for k in failed["moves"][:NAMED]]
    return [ends.numbers[0] for ends in again if not ends.failures()["moves"]]


def _worst(
    ended: dict[str, list[Falls]], each: dict[str, int], taken: dict[str, float], seconds: int
) -> Table:
    rows = []
    for ground, many in ended.items():
        if not many:
            continue
        worst = {
            name: max(float(getattr(ends, name).max()) for ends in many)
            for name in ("deepest", "pressed", "moved", "kinetic", "bent")
        }
        steps = round(seconds / DT) * sum(len(ends.numbers) for ends in many)
        rows.append(
            (
                f"{ground}, {each[ground]}",
                f"{1e3 * worst['deepest']:.1f}",
                f"{1e3 * worst['pressed']:.1f}",
                f"{1e3 * worst['moved']:.1f}",
                f"{1e3 * worst['kinetic']:.2g}",
                f"{np.degrees(worst['bent']):.2g}",
                f"{taken[ground]:.0f}",
                f"{1e6 * taken[ground] / steps:.1f}",
            )
        )
    heads = (
        "ground, falls",
        "depth mm",
        "links into each other mm",
        "moved in 1 s mm",
        "energy mJ",
        "beyond limits deg",
        "s",
        "µs per step, all threads",
    )
    return Table("the worst of all", heads, rows)


def _failed(failed: dict[str, dict[str, list[int]]]) -> Table:
    rows = []
    for ground, kinds in failed.items():
        for kind, numbers in kinds.items():
            named = ", ".join(map(str, numbers[:NAMED])) + (" ..." if len(numbers) > NAMED else "")
            rows.append((f"{ground}: {CLAIMS[kind]}", str(len(numbers)), named or "-"))
    return Table("falls that failed", ("", "falls", "their numbers"), rows)


@contextmanager
def progress(plan: Plan, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, by rich if it is here; yields what moves it by one."""
    if Progress is None or plan.quick:
        yield lambda: None
        return
    with Progress(transient=True) as bar:
        task = bar.add_task("ragdolls", total=total)
        yield lambda: bar.advance(task)
