"""Timing of short calls: the best of many windows, by the clock of the thread; the processor.

Other programs take turns on the same core and make wall-clock times longer; the thread's own clock
stands still meanwhile. What they do to caches remains, so the best window counts. Calls that are
compared take turns, so that a slow minute hits all of them alike.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

WINDOW = 2e-3
"""A window is at least this long [s]: well above what reading the clock takes."""


def best_of(
    calls: Mapping[str, Callable[[], Any]], *, windows: int = 20, most: float = 2.0
) -> dict[str, float]:
    """Seconds of one call of each: the best of some windows, in turns.

    Args:
        calls: What to time, by name; work is done in the calling thread.
        windows: How many of each.
        most: No more windows once all of them together took this long [s].
    """
    for call in calls.values():
        call()  # warms up
    counts = {name: max(1, round(WINDOW / _window(call, 1))) for name, call in calls.items()}
    fastest = dict.fromkeys(calls, float("inf"))
    begin = time.perf_counter()
    for _ in range(windows):
        for name, call in calls.items():
            fastest[name] = min(fastest[name], _window(call, counts[name]))
        if time.perf_counter() - begin > most:
            break
    return fastest


def best(call: Callable[[], Any], *, windows: int = 20, most: float = 2.0) -> float:
    """Seconds of one call, as `best_of` has them.

    Args:
        call: What to time.
        windows: How many.
        most: No more windows after this long [s].
    """
    return best_of({"": call}, windows=windows, most=most)[""]


def _window(call: Callable[[], Any], count: int) -> float:
    """Seconds of one call, the mean of some."""
    start = time.thread_time()
    for _ in range(count):
        call()
    return max(time.thread_time() - start, 1e-9) / count


def processor() -> str:
    """The name of the processor, as far as the system reports it."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()
