"""Timing: many short windows, each from the same state, of all cases in turn.

Whatever else the machine does costs time and never saves any, so the best window says what the
code takes; the median shows how calm the machine was. Cases that are compared are measured in one
call of `measure`, two windows of each in turn, so that noise hits all of them alike and a busy
second spoils a few windows of each rather than all of one. Of the two, the first warms the caches.
"""

from __future__ import annotations

import gc
import hashlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    quick: bool  # run everything once, too short to judge
    windows: int  # per case, at most
    seconds: float  # per case, at most, once it has `least` windows
    least: int
    batch: int  # copies in a batch
    batch_rows: int  # rows of target in one call, for a batch
    rows: int  # and for one character
    falls: int  # of ragdolls

    @property
    def one(self) -> dict[str, Any]:
        """Size of a case of one character."""
        return {"n": 1, "rows": self.rows}

    @property
    def many(self) -> dict[str, Any]:
        """Size of a case of a batch."""
        return {"n": self.batch, "rows": self.batch_rows}


FULL = Plan(
    quick=False,
    windows=120,
    seconds=1.0,
    least=3,
    batch=1024,
    batch_rows=4,
    rows=1000,
    falls=10_000,
)
QUICK = Plan(quick=True, windows=2, seconds=0.0, least=1, batch=16, batch_rows=2, rows=4, falls=4)


@dataclass(frozen=True)
class Case:
    """Something to time: `reset` puts it to where `run` starts, off the clock."""

    name: str
    units: int  # what one run does: character-steps, or calls
    reset: Callable[[], None]
    run: Callable[[], object]
    end: Callable[[], Array]  # the state after a run; raises if it is not a good one
    facts: dict[str, Any] = field(default_factory=dict)  # for the record: n, dtype, form ...


@dataclass(frozen=True)
class Timing:
    """Seconds per unit in every window of a case."""

    name: str
    windows: tuple[float, ...]
    units: int
    hash: str
    facts: dict[str, Any]

    @property
    def best(self) -> float:
        return min(self.windows)

    @property
    def median(self) -> float:
        return statistics.median(self.windows)

    @property
    def spread(self) -> float:
        """How far the median lies above the best, as a fraction of it."""
        return self.median / self.best - 1.0

    def record(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "name": self.name,
            **self.facts,
            "units_per_window": self.units,
            "best_s": self.best,
            "median_s": self.median,
            "worst_s": max(self.windows),
            "spread": self.spread,
            "windows_s": self.windows,
            "end_state": self.hash,
        }


def measure(groups: Mapping[str, Sequence[Case]], plan: Plan) -> dict[str, dict[str, Timing]]:
    """Time the cases of all groups, interleaved; by group and name."""
    cases = [case for group in groups.values() for case in group]
    taken: list[list[float]] = [[] for _ in cases]
    for case in cases:
        case.reset()
        case.run()
    gc.collect()
    gc.disable()
    try:
        for _ in range(0, plan.windows, 2):
            for case, mine in zip(cases, taken, strict=True):
                if len(mine) < plan.least or sum(mine) < plan.seconds:
                    mine += (_window(case), _window(case))
    finally:
        gc.enable()
    timings = iter([_timing(case, mine) for case, mine in zip(cases, taken, strict=True)])
    return {name: {case.name: next(timings) for case in group} for name, group in groups.items()}


def _window(case: Case) -> float:
    case.reset()
    start = time.perf_counter()
    case.run()
    return time.perf_counter() - start


def _timing(case: Case, taken: list[float]) -> Timing:
    windows = tuple(t / case.units for t in taken)
    return Timing(case.name, windows, case.units, digest(case.end()), case.facts)


def digest(state: Array) -> str:
    """A hash of the bits of a state, which must be finite."""
    if not np.isfinite(state).all():
        raise FloatingPointError("the end state is not finite: this timing means nothing")
    return hashlib.sha256(np.ascontiguousarray(state).tobytes()).hexdigest()[:16]
