"""Profile: where the time of steps went, and how exactly their contacts were solved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats, number

if TYPE_CHECKING:
    from poise.simulation.world import World

PHASES = (
    "dynamics",
    "detection",
    "responses",
    "iterations",
    "newton",
    "positions",
    "integration",
)
"""In the order of the core's `Phase`."""

FIRST_EDGE = 1e-10
"""Residuals below it are in the first bin [m/s]; then ten bins for a factor of ten."""


class Profile:
    """Cost per phase and residuals of the steps within a `with world.profile() as profile:` block.

    Attributes:
        seconds: Time of each phase, of all threads together [s]: joint forces and articulated
            inertias ("dynamics"), collision detection ("detection"), responses of the rows that
            take part ("responses"), block Gauss-Seidel ("iterations"), Newton's method for bodies
            that rest on each other ("newton"), correction of penetration and restitution
            ("positions"), integration ("integration").
        steps: Steps of all copies.
        contacts: Contacts found per step and copy; `solved`: of these, in the iterations.
        iterations: Iterations per step of a block of copies.
        islands: Islands solved by Newton's method, per step and copy.
        largest_residual: The largest natural residual of a contact [m/s].
    """

    def __init__(self, world: World) -> None:
        self._core = world._core
        self._lanes = max(1.0, world.n / world._core.tiles)
        self._set(([0.0] * len(PHASES), 0, 0, 0, 0, 0, [0], 0.0))

    def _set(self, given: Any) -> None:
        seconds, steps, contacts, solved, iterations, islands, residuals, largest = given
        per = 1.0 / max(1, steps)
        self.seconds = dict(zip(PHASES, seconds, strict=True))
        self.steps = int(steps)
        self.contacts, self.solved = contacts * per, solved * per
        self.iterations, self.islands = iterations * per * self._lanes, islands * per
        self.largest_residual = float(largest)
        self._residuals: Floats = np.array(residuals, dtype=np.float64)

    def __enter__(self) -> Profile:
        self._core.start_profile()
        return self

    def __exit__(self, *error: object) -> None:
        self._set(self._core.profile())
        self._core.stop_profile()

    def residual(self, percentile: float = 90.0) -> float:
        """A percentile of the natural residuals of all contacts in all steps [m/s], to a quarter.

        The natural residual of a contact is w |l - P(l - (v - b + mu |v_t| n) / w)|, with its
        impulse l, velocity v, allowed approach b, a third of the trace of its own response w, and
        the projection P onto its friction cone: 0 is Coulomb's law.

        Args:
            percentile: 0 to 100.
        """
        part = number(percentile, "percentile", positive=False) / 100.0
        if not 0.0 <= part <= 1.0:
            raise PoiseError(f"percentile is {percentile:g}; it must be 0 to 100")
        counts = np.cumsum(self._residuals)
        if not counts[-1]:
            return 0.0
        bin_ = int(np.searchsorted(counts, part * counts[-1]))
        edge = FIRST_EDGE * 10.0 ** (0.1 * bin_)
        return min(float(edge), self.largest_residual)

    def __str__(self) -> str:
        total = sum(self.seconds.values()) or 1.0
        per = 1e6 / max(1, self.steps)
        rows = [
            f"{name:12} {per * t:9.3f} µs {100.0 * t / total:5.1f} %"
            for name, t in self.seconds.items()
        ]
        return "\n".join(
            [
                f"{self.steps} steps, {per * total:.3f} µs each",
                *rows,
                f"contacts {self.contacts:.1f} a step, {self.solved:.1f} solved, in "
                f"{self.iterations:.1f} iterations; {self.islands:.2g} islands by Newton's method",
                f"residual: median {self.residual(50):.1e}, 90 % {self.residual(90):.1e}, "
                f"largest {self.largest_residual:.1e} m/s",
            ]
        )
