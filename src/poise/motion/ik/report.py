"""What a solve left over, and whether that is too much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poise.errors import ClipError
from poise.math.arrays import Floats


@dataclass(frozen=True, eq=False)
class Report:
    """What a solve left over.

    Attributes:
        names: Names of the goals.
        units: "m" or "rad" of each goal.
        miss: Distance from its target, 0 where the weight is 0, shape (goals, k).
        iterations: How many rounds each frame took, shape (k,).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    miss: Floats
    iterations: NDArray[np.int64]

    def worst(self) -> list[tuple[str, int, float, str]]:
        """Of each goal: name, frame of the largest miss, that miss, its unit."""
        at = self.miss.argmax(axis=1) if self.miss.size else []
        return [
            (name, int(i), float(self.miss[g, i]), unit)
            for g, (name, i, unit) in enumerate(zip(self.names, at, self.units, strict=True))
        ]

    def check(self, tolerance: float = 0.005, angle: float = 0.1, fps: float | None = None) -> None:
        """Raise ClipError if a goal is missed by more than a tolerance [m] or angle [rad]."""
        bad = []
        for name, frame, miss, unit in self.worst():
            if miss > (tolerance if unit == "m" else angle):
                when = f"frame {frame}" if fps is None else f"{frame / fps:.3f} s"
                far = f"{1000 * miss:.1f} mm" if unit == "m" else f"{np.degrees(miss):.1f} degrees"
                bad.append(f"{name} at {when} by {far}")
        if bad:
            raise ClipError("targets out of reach: " + "; ".join(bad))

    def __str__(self) -> str:
        rows = []
        for name, frame, miss, unit in self.worst():
            far = f"{1000 * miss:8.1f} mm" if unit == "m" else f"{np.degrees(miss):8.1f} deg"
            rows.append(f"{name:24} {far} at frame {frame}")
        return "\n".join(rows)
