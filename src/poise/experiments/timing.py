"""Timing of the experiments: the best of many short windows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best(call: Callable[[], Any], *, windows: int = 30, calls: int = 20) -> float:
    """Seconds of one call: the best of some windows of some calls, after one that warms up."""
    call()
    fastest = float("inf")
    for _ in range(windows):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        fastest = min(fastest, (time.perf_counter() - start) / calls)
    return fastest
