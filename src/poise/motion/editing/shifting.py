"""The smallest smooth shift that brings a mass centre over its supports.

With c the mass centre seen from above, h its height, and s the shift, over all frames

    min  Σ |s|² + τ⁴ |s̈|²    such that   c + s ∈ P                        while it moves slowly,
                                          (c + s) - h/(g + ḧ) (c̈ + s̈) ∈ P'    while anything stands.

P is the support polygon less a margin. The second point is where the ground would have to push if
all the mass were at its centre (the cart on a table of Kajita 2003): a mass centre that is fast but
can be caught by the feet stays so, and one that cannot is calmed. The problem is convex. ADMM (Boyd
2011) alternates a banded solve with the nearest points of the polygons:

    s ← (1 + τ⁴ D'D + ρ₁ + A'ρ₂A)⁻¹ (ρ₁ (z₁ - u₁) + A'ρ₂ (z₂ - u₂)),
    z ← nearest_points(x + u),   u ← u + x - z,   x the two points

with D the second difference and A s = s - h/(g + ḧ) s̈, both banded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded

from poise.math.arrays import Floats
from poise.math.polygon import Polygons, nearest_points

TIME = 0.1
"""τ, the time over which a shift grows and fades [s]."""

SPLITS, RHO, RELAX = 1000, (100.0, 0.1), 1.6
"""Most rounds of ADMM, weights of its two kinds of rows, and over-relaxation."""

CLOSE = (2e-5, 5e-4)
"""It ends when a mass centre is off by less than the first, a pivot by less than the second [m]."""

GRAVITY, LEAST_PULL = 9.81, 3.0
"""[m/s²]; who falls faster than that difference cannot be steered by its feet."""


class Pivots(NamedTuple):
    """Where the ground would have to push.

    Attributes:
        polygons: Where it can.
        asked: In which frames it must, shape (k,).
        height: Of the mass centre [m], shape (k,).
    """

    polygons: Polygons
    asked: NDArray[np.bool_]
    height: Floats


def least_shift(
    center: Floats,
    polygons: Polygons,
    asked: NDArray[np.bool_],
    fps: float,
    pivots: Pivots | None = None,
) -> Floats:
    """The smallest smooth shift that brings points into polygons, shape (k, 2) [m].

    Args:
        center: Points [m], shape (k, 2).
        polygons: Where they shall be.
        asked: In which frames, shape (k,).
        fps: Frames per second.
        pivots: What their accelerations ask of the ground; None asks nothing.
    """
    k = len(center)
    if k < 3:
        return nearest_points(polygons, center) - center if asked.all() else np.zeros((k, 2))
    lag = np.zeros(k)
    rho = np.zeros((2, k))
    rho[0, asked] = RHO[0]
    if pivots is not None:
        lag = lag_of(pivots.height, fps)
        rho[1, pivots.asked & (lag > 0.0)] = RHO[1]
    factor = _factor((TIME * fps) ** 4, lag, rho)
    places = (polygons, polygons if pivots is None else pivots.polygons)
    begin = (center, pivot(center, lag))
    goal, miss = np.zeros((2, 2, k, 2))
    shift = np.zeros((k, 2))
    for _ in range(SPLITS):
        pull = rho[:, :, None] * (goal - miss)
        shift = cho_solve_banded((factor, True), pull[0] + _back(pull[1], lag))
        now = (shift, pivot(shift, lag))
        for i in range(2):
            bold = RELAX * now[i] + (1.0 - RELAX) * goal[i]
            goal[i] = nearest_points(places[i], begin[i] + bold + miss[i]) - begin[i]
            miss[i] += bold - goal[i]
        off = [np.abs((now[i] - goal[i])[rho[i] > 0.0]).max(initial=0.0) for i in range(2)]
        if off[0] < CLOSE[0] and off[1] < CLOSE[1]:
            break
    return shift


def lag_of(height: Floats, fps: float) -> Floats:
    """h/(g + ḧ) in frames², shape (k,); 0 at the ends, where nothing is known of accelerations."""
    lag = np.zeros(len(height))
    rise = (height[2:] - 2.0 * height[1:-1] + height[:-2]) * fps**2
    lag[1:-1] = height[1:-1] / np.maximum(GRAVITY + rise, LEAST_PULL) * fps**2
    return lag


def pivot(x: Floats, lag: Floats) -> Floats:
    """A x = x - lag ẍ, shape (k, 2)."""
    out: Floats = x.copy()
    out[1:-1] -= lag[1:-1, None] * (x[2:] - 2.0 * x[1:-1] + x[:-2])
    return out


def _back(y: Floats, lag: Floats) -> Floats:
    """A' y, shape (k, 2)."""
    out: Floats = y.copy()
    pull = lag[1:-1, None] * y[1:-1]
    out[2:] -= pull
    out[1:-1] += 2.0 * pull
    out[:-2] -= pull
    return out


def _factor(stiff: float, lag: Floats, rho: Floats) -> Floats:
    """Banded factor of 1 + stiff D'D + ρ₁ + A'ρ₂A."""
    k = len(lag)
    band = np.zeros((3, k))
    band[0] = 1.0 + rho[0]
    for i, weight in enumerate((1.0, -2.0, 1.0)):
        band[0, i : k - 2 + i] += stiff * weight * weight
    band[1, : k - 2] += stiff * -2.0
    band[1, 1 : k - 1] += stiff * -2.0
    band[2, : k - 2] += stiff
    # rows of A: -lag, 1 + 2 lag, -lag
    side, middle = -lag, 1.0 + 2.0 * lag
    band[0] += rho[1] * middle**2
    band[0, :-1] += (rho[1] * side**2)[1:]
    band[0, 1:] += (rho[1] * side**2)[:-1]
    band[1, :-1] += (rho[1] * middle * side)[:-1] + (rho[1] * middle * side)[1:]
    band[2, :-2] += (rho[1] * side**2)[1:-1]
    factor: Floats = cholesky_banded(band, lower=True)
    return factor
