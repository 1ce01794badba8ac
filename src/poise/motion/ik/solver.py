"""Inverse kinematics of many frames at once: damped Gauss-Newton on the poses' manifold.

Each frame is solved by itself. Its cost is sum w |e|^2 over the goals, plus `posture` times the
squared step from where it started. Goals act on links: the miss e of a goal changes with the twist
t = (linear, angular) of its link by a matrix E, so that

    G = sum w E^T E  (6, 6),   f = sum w E^T e  (6,)

per link, all about one point c of the frame. With S (6, nv) the axes of the freedoms about c and
Gc, fc the sums over the links that a freedom moves, the normal equations are

    A_ij = S_i^T Gc_j S_j  for i above or at j,   g_j = S_j^T fc_j

as the mass matrix comes from composite inertias (CRBA). Steps solve (A + lambda diag A) d = g and
are taken only where the cost falls (Levenberg, Marquardt). Where joint limits are kept, every pose
is brought back to its bounds, and a joint at a bound that is pushed outwards is held (a projected
method); limits that may give way are springs that act beyond the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.character import Character
from poise.errors import ClipError
from poise.motion import limits as bounds
from poise.motion import poses
from poise.motion.ik.goals import Aim, Checked, Goal, Place, Turn, checked
from poise.motion.ik.kinematics import cross, tree_of
from poise.motion.quaternions import Floats

CHUNK = 512
"""Frames that are solved together: what fits into the cache."""

HELD = 1e4
"""How much stiffer a joint is held at a bound than its goals pull."""

FAR = 0.25
"""Limits that may give way pull less and less beyond this excess [rad, m] (Geman and McClure): what
is so far off is meant, or broken, and pulling it back would make it jump."""

LARGEST_TURN = 1.0
"""Steps that turn a joint farther than this are shortened [rad]."""


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


def solve(
    character: Character,
    q: ArrayLike,
    goals: Sequence[Goal],
    *,
    limits: bool | float = True,
    posture: ArrayLike = 1e-3,
    iterations: int = 20,
    tolerance: float = 1e-5,
    strict: bool = False,
    fps: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[Floats, Report]:
    """Bring poses to their goals, each frame by itself.

    Args:
        character: The character.
        q: Poses to start from, shape (k, nq) or (nq,).
        goals: Place, Turn and Aim goals.
        limits: Keep the joints' limits; a number is the weight of what is beyond [1/rad^2, 1/m^2],
            for limits that may give way.
        posture: Weight of the step from the start [1/rad^2, 1/m^2], one number or shape (nv,).
        iterations: Most rounds.
        tolerance: Frames whose largest step is below this are done [rad, m].
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
        part = _Solver(character, [_cut(goal, a, b) for goal in asked], stay, limits)
        out[a:b], rounds[a:b] = part.run(rows[a:b], iterations, tolerance)
        if progress is not None:
            progress(b / len(rows))
    report = _report(character, asked, out, rounds)
    if strict:
        report.check(fps=fps)
    return out.reshape(start.shape), report


class _Solver:
    """One chunk of frames."""

    def __init__(
        self, character: Character, goals: list[Checked], stay: Floats, limits: bool | float
    ) -> None:
        self.character, self.goals, self.stay = character, goals, stay
        self.hard = limits is True
        self.limits = float(limits)
        self.tree = tree_of(character)

    def run(
        self, start: Floats, iterations: int, tolerance: float
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Solve; gives the poses and how many rounds each took."""
        k, nv = len(start), self.character.nv
        tried = self.inside(start)
        best = tried.copy()
        cost = np.full(k, np.inf)
        damp = np.full(k, 1e-2)
        A, g = np.zeros((k, nv, nv)), np.zeros((k, nv))
        rounds = np.zeros(k, dtype=np.int64)
        open_ = np.arange(k)
        for _ in range(iterations):
            new, newA, newg = self.system(tried[open_], start[open_], open_)
            better = new < cost[open_]
            took = open_[better]
            fall = cost[took] - new[better]
            cost[took], best[took] = new[better], tried[took]
            A[took], g[took] = newA[better], newg[better]
            damp[open_] *= np.where(better, 0.3, 4.0)
            lhs = A[open_]
            diagonal = np.einsum("kii->ki", lhs)
            diagonal += damp[open_, None] * diagonal + 1e-12
            step = np.linalg.solve(lhs, g[open_][..., None])[..., 0]
            size = np.abs(step).max(axis=1)
            step *= np.minimum(1.0, LARGEST_TURN / np.maximum(size, 1e-12))[:, None]
            tried[open_] = self.inside(poses.move(self.character, best[open_], step))
            rounds[open_] += 1
            small = np.zeros(k, dtype=bool)
            small[took[fall < 1e-6 * cost[took] + 1e-14]] = True
            done = (size < tolerance) | (damp[open_] > 1e6) | small[open_]
            open_ = open_[~done]
            if not len(open_):
                break
        if len(open_):
            new = self.system(tried[open_], start[open_], open_)[0]
            took = open_[new < cost[open_]]
            best[took] = tried[took]
        return best, rounds

    def inside(self, q: Floats) -> Floats:
        """Poses within the joints' limits, if these are kept."""
        return bounds.clamped(self.character, q) if self.hard else q.copy()

    def system(
        self, q: Floats, start: Floats, frames: NDArray[np.int64]
    ) -> tuple[Floats, Floats, Floats]:
        """Cost (k,), normal matrix (k, nv, nv) and right-hand side (k, nv) of poses (k, nq)."""
        p, R, S = self.tree.forward(q)
        cost, G, f = self.of_links(p, R, p[:, 0], frames)
        k, nv = len(q), self.character.nv
        F, g = np.zeros((k, 6, nv)), np.zeros((k, nv))
        for link in reversed(range(len(self.tree.parent))):
            if link not in G:
                continue
            v, parent = self.tree.v[link], self.tree.parent[link]
            if v.stop > v.start:
                F[:, :, v] = G[link] @ S[:, :, v]
                g[:, v] = (f[link][:, None, :] @ S[:, :, v])[:, 0]
            if parent >= 0:
                G[parent] = G[parent] + G[link] if parent in G else G[link]
                f[parent] = f[parent] + f[link] if parent in f else f[link]
        A = S.transpose(0, 2, 1) @ F
        A *= self.tree.above
        A += (A * self.tree.strictly).transpose(0, 2, 1)
        off = poses.difference(self.character, q, start)
        cost += (off * off) @ self.stay
        g += off * self.stay
        A[:, np.arange(nv), np.arange(nv)] += self.stay
        if self.hard:
            self.hold(q, A, g)
        elif self.limits:
            self.push_back(q, cost, A, g)
        return cost, A, g

    def of_links(
        self, p: Floats, R: Floats, c: Floats, frames: NDArray[np.int64]
    ) -> tuple[Floats, dict[int, Floats], dict[int, Floats]]:
        """Cost (k,), and of each link with goals G (k, 6, 6) and f (k, 6), about c."""
        cost = np.zeros(len(p))
        G: dict[int, Floats] = {}
        f: dict[int, Floats] = {}
        for item in self.goals:
            w = item.weight[frames]
            i = item.link
            e, x = item.goal.miss(p[:, i], R[:, i], item.target[frames])
            cost += w * np.sum(e * e, axis=1)
            if i not in G:
                G[i], f[i] = np.zeros((len(p), 6, 6)), np.zeros((len(p), 6))
            we = w[:, None] * e
            if isinstance(item.goal, Place):
                _add_place(G[i], f[i], w, we, x - c)
                continue
            f[i][:, 3:] += we
            G[i][:, [3, 4, 5], [3, 4, 5]] += w[:, None]
            if isinstance(item.goal, Aim):
                G[i][:, 3:, 3:] -= w[:, None, None] * x[:, :, None] * x[:, None, :]
        return cost, G, f

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
            fade = 1.0 / (1.0 + (e / FAR) ** 2)
            w = self.limits * fade * fade
            cost[hit] += self.limits * fade * e * e
            g[hit, over.v] -= (w * e)[:, None] * n
            A[hit, over.v, over.v] += w[:, None, None] * n[:, :, None] * n[:, None, :]


def _add_place(G: Floats, f: Floats, w: Floats, we: Floats, r: Floats) -> None:
    """Add w E^T E and w E^T e of a point at r from c: its velocity is linear + angular x r."""
    wx, wy, wz = (w[:, None] * r).T
    x, y, z = r.T
    for i in range(3):
        G[:, i, i] += w
    # w [r]x in the lower left block, its transpose in the upper right
    for i, j, value in ((0, 1, -wz), (0, 2, wy), (1, 0, wz), (1, 2, -wx), (2, 0, -wy), (2, 1, wx)):
        G[:, 3 + i, j] += value
        G[:, j, 3 + i] += value
    # w (r.r I - r r^T)
    for i, j, value in (
        (0, 0, wy * y + wz * z),
        (1, 1, wx * x + wz * z),
        (2, 2, wx * x + wy * y),
        (0, 1, -wx * y),
        (0, 2, -wx * z),
        (1, 2, -wy * z),
    ):
        G[:, 3 + i, 3 + j] += value
        if i != j:
            G[:, 3 + j, 3 + i] += value
    f[:, :3] += we
    f[:, 3:] += cross(r, we)


def _cut(item: Checked, a: int, b: int) -> Checked:
    return Checked(item.goal, item.link, item.target[a:b], item.weight[a:b])


def _report(
    character: Character, goals: list[Checked], q: Floats, rounds: NDArray[np.int64]
) -> Report:
    p, R, _ = tree_of(character).forward(q)
    miss = np.zeros((len(goals), len(q)))
    for i, item in enumerate(goals):
        e, _ = item.goal.miss(p[:, item.link], R[:, item.link], item.target)
        miss[i] = np.where(item.weight > 0.0, np.linalg.norm(e, axis=1), 0.0)
    units = tuple("m" if isinstance(item.goal, Place) else "rad" for item in goals)
    return Report(tuple(item.name for item in goals), units, miss, rounds)


__all__ = ["Aim", "Goal", "Place", "Report", "Turn", "solve"]
