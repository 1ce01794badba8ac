"""Inverse kinematics of many frames at once: damped Gauss-Newton on the poses' manifold.

Each frame is solved by itself. Its cost is sum w |e|^2 over the goals, plus `posture` times the
squared step from where it started. With S (6, nv) the axes of the freedoms about one point of the
frame, and G, f what a link and all that hangs on it ask (see `equations`), the normal equations are

    A_ij = S_i^T G_j S_j  for i above or at j,   g_j = S_j^T f_j

as the mass matrix comes from composite inertias (CRBA). Steps solve (A + lambda diag A) d = g and
are taken only where the cost falls (Levenberg, Marquardt), or where they are too small to matter.
Where joint limits are kept, every pose is brought back to its bounds, and a joint at a bound that
is pushed outwards is held (a projected method); limits that may give way are springs that act
beyond the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dposv

from poise.errors import ClipError
from poise.math.arrays import Floats
from poise.model import configuration
from poise.model.character import Character
from poise.motion import limits as bounds
from poise.motion.ik.equations import Equations, Frames
from poise.motion.ik.goals import Above, Checked, Goal, Place, checked
from poise.motion.ik.kinematics import tree_of
from poise.motion.ik.report import Report

CHUNK = 512
"""Frames that are solved together: what fits into the cache."""

HELD = 1e4
"""How much stiffer a joint is held at a bound than its goals pull."""

FAR = 0.25
"""Limits that may give way pull less and less beyond this excess [rad, m] (Geman and McClure): what
is so far off is meant, or broken, and pulling it back would make it jump."""


class Pace(NamedTuple):
    """How boldly steps are taken.

    Attributes:
        damping: Lambda to begin with.
        fall: By how much it falls after a step that was taken; after others it grows fourfold...
        least: ... to no less than this.
        stride: Steps that turn a joint farther are shortened [rad].
    """

    damping: float
    fall: float
    least: float
    stride: float


USUAL = Pace(1e-2, 0.3, 0.0, 1.0)

NEAR = Pace(1e-4, 0.1, 1e-2, 0.15)
"""For starts that are near: weak goals do not wait until the damping by strong ones has fallen, and
a stretched knee does not pop. Tuned on real clips."""


def solve(
    character: Character,
    q: ArrayLike,
    goals: Sequence[Goal],
    *,
    limits: bool | float = True,
    posture: ArrayLike = 1e-3,
    iterations: int = 20,
    tolerance: float = 1e-5,
    near: bool = False,
    strict: bool = False,
    fps: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[Floats, Report]:
    """Bring poses to their goals, each frame by itself.

    Args:
        character: The character.
        q: Poses to start from, shape (k, nq) or (nq,).
        goals: Place, Turn, Aim and Above goals.
        limits: Keep the joints' limits; a number is the weight of what is beyond [1/rad^2, 1/m^2],
            for limits that may give way.
        posture: Weight of the step from the start [1/rad^2, 1/m^2], one number or shape (nv,).
        iterations: Most rounds.
        tolerance: Frames whose largest step is below this are done [rad, m].
        near: The start is near what the goals ask: short, lightly damped steps.
        strict: Raise ClipError if a goal is missed by more than 5 mm or 0.1 rad.
        fps: To name times instead of frames.
        progress: Called with the share that is done, 0 to 1.

    Returns:
        Poses of the shape of q, and a report.
    """
    start = np.asarray(q, dtype=np.float64)
    rows = np.atleast_2d(start)
    if rows.ndim != 2 or rows.shape[1] != character.nq:
        raise ClipError(f"q has shape {start.shape}, expected (frames, {character.nq})")
    asked = checked(character, list(goals), len(rows))
    stay = np.broadcast_to(np.asarray(posture, dtype=np.float64), (character.nv,)) + 1e-9
    out = np.empty_like(rows)
    rounds = np.zeros(len(rows), dtype=np.int64)
    for a in range(0, len(rows), CHUNK):
        b = min(a + CHUNK, len(rows))
        part = _Solver(character, [_cut(goal, a, b) for goal in asked], stay, limits, b - a)
        out[a:b], rounds[a:b] = part.run(rows[a:b], iterations, tolerance, NEAR if near else USUAL)
        if progress is not None:
            progress(b / len(rows))
    report = _report(character, asked, out, rounds)
    if strict:
        report.check(fps=fps)
    return out.reshape(start.shape), report


class _Solver:
    """One chunk of frames."""

    def __init__(
        self,
        character: Character,
        goals: list[Checked],
        stay: Floats,
        limits: bool | float,
        k: int,
    ) -> None:
        self.character, self.stay = character, stay
        self.hard = limits is True
        self.limits = float(limits)
        self.tree = tree_of(character)
        self.equations = Equations(self.tree, goals, k)

    def run(
        self, start: Floats, iterations: int, tolerance: float, pace: Pace
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Solve; gives the poses and how many rounds each took."""
        k, nv = len(start), self.character.nv
        tried = self.inside(start)
        best = tried.copy()
        cost = np.full(k, np.inf)
        damp = np.full(k, pace.damping)
        A, g = np.empty((0, nv, nv)), np.empty((0, nv))  # of the frames that are open
        rounds = np.zeros(k, dtype=np.int64)
        open_ = np.arange(k)
        for _ in range(iterations):
            frames: Frames = slice(None) if len(open_) == k else open_
            new, newA, newg = self.system(tried[frames], start[frames], frames)
            better = new < cost[open_]
            took = open_[better]
            fall = cost[took] - new[better]
            cost[took], best[took] = new[better], tried[took]
            if better.all() or not len(A):
                A, g = newA, newg
            else:
                A[better], g[better] = newA[better], newg[better]
            now = damp[open_]
            grown = np.maximum(4.0 * now, pace.least)
            damp[open_] = np.where(better, pace.fall * now, grown)
            step = _steps(A, g, damp[open_])
            size = np.abs(step).max(axis=1)
            step *= np.minimum(1.0, pace.stride / np.maximum(size, 1e-12))[:, None]
            tried[open_] = self.inside(configuration.integrate(self.character, best[frames], step))
            rounds[open_] += 1
            close = open_[(size < tolerance) & (size > 1e-12)]
            best[close] = tried[close]
            small = np.zeros(k, dtype=bool)
            # a small fall ends it, unless the damping is what made it small
            little = (fall < 1e-6 * cost[took] + 1e-14) & (damp[took] <= pace.damping)
            small[took[little]] = True
            on = ~((size < tolerance) | (damp[open_] > 1e6) | small[open_])
            if not on.all():
                open_, A, g = open_[on], A[on], g[on]
            if not len(open_):
                break
        if len(open_):
            new = self.cost(tried[open_], start[open_], open_)
            took = open_[new < cost[open_]]
            best[took] = tried[took]
        return best, rounds

    def inside(self, q: Floats) -> Floats:
        """Poses within the joints' limits, if these are kept."""
        return bounds.clamped(self.character, q) if self.hard else q.copy()

    def cost(self, q: Floats, start: Floats, frames: Frames) -> Floats:
        """Cost (k,) of poses (k, nq)."""
        cost = self.equations.cost(self.tree.places(q), frames)
        off = configuration.difference(self.character, q, start)
        cost += (off * off) @ self.stay
        if not self.hard and self.limits:
            for over in bounds.excesses(self.character, q):
                cost += self.limits * _spring(np.maximum(over.value, 0.0))[0]
        return cost

    def system(self, q: Floats, start: Floats, frames: Frames) -> tuple[Floats, Floats, Floats]:
        """Cost (k,), normal matrix (k, nv, nv) and right-hand side (k, nv) of poses (k, nq).

        Of the matrix, only the upper triangle holds.
        """
        placed = self.tree.places(q)
        S = self.tree.twists(q, placed)
        cost, G, f = self.equations.sums(placed, frames)
        F = np.empty_like(S)
        for link, v in enumerate(self.tree.v):
            if v.stop > v.start:
                F[:, v] = S[:, v] @ G[:, link]
        A = S @ F.transpose(0, 2, 1)
        A *= self.tree.above
        off = configuration.difference(self.character, q, start)
        cost += (off * off) @ self.stay
        g = np.einsum("kvi,kvi->kv", S, f[:, self.tree.owner]) + off * self.stay
        nv = self.character.nv
        A[:, np.arange(nv), np.arange(nv)] += self.stay
        if self.hard:
            self.hold(q, A, g)
        elif self.limits:
            self.push_back(q, cost, A, g)
        return cost, A, g

    def hold(self, q: Floats, A: Floats, g: Floats) -> None:
        """Hold joints that are at a bound and pushed outwards."""
        for over in bounds.excesses(self.character, q):
            out = np.einsum("kv,kv->k", g[:, over.v], over.slope)
            hit = np.flatnonzero((over.value > -1e-9) & (out > 0.0))
            if len(hit):
                n = over.slope[hit]
                pull = np.einsum("kii->k", A[hit, over.v, over.v])
                stiff = HELD * pull[:, None, None]
                A[hit, over.v, over.v] += stiff * n[:, :, None] * n[:, None, :]

    def push_back(self, q: Floats, cost: Floats, A: Floats, g: Floats) -> None:
        """Add the springs of bounds that are exceeded."""
        for over in bounds.excesses(self.character, q):
            hit = np.flatnonzero(over.value > 0.0)
            if not len(hit):
                continue
            e, n = over.value[hit], over.slope[hit]
            energy, fade = _spring(e)
            w = self.limits * fade * fade
            cost[hit] += self.limits * energy
            g[hit, over.v] -= (w * e)[:, None] * n
            A[hit, over.v, over.v] += w[:, None, None] * n[:, :, None] * n[:, None, :]


def _spring(e: Floats) -> tuple[Floats, Floats]:
    """Cost of an excess e, and how much weaker than its square it has become."""
    fade = 1.0 / (1.0 + (e / FAR) ** 2)
    return fade * e * e, fade


def _steps(A: Floats, g: Floats, damp: Floats) -> Floats:
    """Solutions (k, nv) of (A + damp diag A) x = g; of A only the upper triangle counts."""
    diagonal = np.einsum("kii->ki", A)
    kept = diagonal.copy()
    diagonal += damp[:, None] * diagonal + 1e-12
    step = np.empty_like(g)
    for i in range(len(g)):
        # a C array is the transpose of a Fortran one
        _, step[i], bad = dposv(A[i].T, g[i], lower=1)
        if bad:
            step[i] = g[i] / diagonal[i]
    diagonal[:] = kept
    return step


def _cut(item: Checked, a: int, b: int) -> Checked:
    return Checked(item.goal, item.link, item.target[a:b], item.weight[a:b])


def _report(
    character: Character, goals: list[Checked], q: Floats, rounds: NDArray[np.int64]
) -> Report:
    tree = tree_of(character)
    miss = Equations(tree, goals, len(q)).misses(tree.places(q))
    units = tuple("m" if isinstance(item.goal, Place | Above) else "rad" for item in goals)
    return Report(tuple(item.name for item in goals), units, miss, rounds)
