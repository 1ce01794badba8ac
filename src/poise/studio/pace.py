"""Real time: how far the simulation may be, and how fast it was."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

MOST_BEHIND = 0.1
"""Real time that is caught up [s]; what is lost beyond it stays lost."""

WINDOW = 1.0
"""Over which rates are taken [s]."""


class Rates(NamedTuple):
    """How fast it was lately: see `Snapshot`."""

    pace: float = 0.0
    step_rate: float = 0.0
    load: float = 0.0


class Pace:
    """A clock that the simulation never runs ahead of.

    Args:
        clock: Real time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._real = self._simulated = 0.0
        self._speed = 1.0
        self._spells: deque[tuple[float, float, float, int]] = deque()

    def start(self, simulated: float, speed: float) -> None:
        """From now on, and from this simulated time [s], so fast against real time."""
        self._real, self._simulated, self._speed = self.clock(), simulated, speed

    def allowed(self, simulated: float) -> float:
        """How far the simulation may be by now [s]; what it cannot catch up is forgotten.

        Args:
            simulated: Where it is [s].
        """
        now = self.clock()
        due = self._simulated + (now - self._real) * self._speed
        most = simulated + MOST_BEHIND * self._speed
        if due > most:
            self._real, self._simulated, due = now, most, most
        return due

    def until(self, simulated: float) -> float:
        """Real time until the simulation may be there [s]."""
        return self._real + (simulated - self._simulated) / self._speed - self.clock()

    def worked(self, began: float, simulated: float = 0.0, steps: int = 0) -> None:
        """Note a spell of work that began at a real time [s] and has just ended."""
        now = self.clock()
        self._spells.append((now, now - began, simulated, steps))
        while self._spells[0][0] < now - WINDOW:
            self._spells.popleft()

    def rates(self) -> Rates:
        """Rates over the last second, or as long as there were any."""
        if len(self._spells) < 2:
            return Rates()
        now = self.clock()
        spells = [spell for spell in self._spells if spell[0] >= now - WINDOW]
        if len(spells) < 2 or now - spells[-1][0] > 0.5 * WINDOW:
            return Rates()
        # the first one began before the time that is counted
        span = max(now - spells[0][0], 1e-9)
        _, busy, simulated, steps = (sum(column) for column in zip(*spells[1:], strict=True))
        return Rates(simulated / span, steps / span, min(busy / span, 1.0))
