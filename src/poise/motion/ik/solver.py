"""Inverse kinematics of many frames at once: damped Gauss-Newton on the poses' manifold.

Each frame is solved by itself. Its cost is sum w |e|^2 over the goals, plus `posture` times the
squared step from where it started. The residual e of a goal changes with the twist t = (linear,
angular) of its link by a matrix E: that of a point at r from c by linear + angular x r, that of a
rotation by the angular part, that of an aim along d by the part across d. A link and its
descendants together have, about c,

    G = sum w E^T E  (6, 6),   f = sum w E^T e  (6,)

With S (6, nv) the axes of the degrees of freedom about one point of the frame, the normal equations
are

    A_ij = S_i^T G_j S_j  for i above or at j,   g_j = S_j^T f_j

as the mass matrix comes from composite inertias (CRBA). Steps solve (A + lambda diag A) d = g and
are taken only where the cost falls (Levenberg, Marquardt), or where they are too small to matter.
Where joint limits are kept, every pose is brought back to its bounds, and a joint at a bound that
is pushed outwards is held (a projected method); soft limits are springs that act beyond the bound.

The core gives the poses of the links. The twist that a degree of freedom gives to everything it
moves is the same about one point c of the frame: here, the origin of the first link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dposv

from poise import dynamics
from poise.anatomy.feet import has_free_root
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats, Progress
from poise.math.rotation import quat_matrix
from poise.model import configuration
from poise.model.character import Character, Joint
from poise.motion import limits as bounds
from poise.motion.ik.goals import Above, Aim, Checked, Goal, Place, Report, Turn, check_goals

# kinematics: poses of the links, and the twists of the degrees of freedom


def cross(a: Floats, b: Floats) -> Floats:
    """Cross products of vectors (..., 3)."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    out[..., 0] = ay * bz - az * by
    out[..., 1] = az * bx - ax * bz
    out[..., 2] = ax * by - ay * bx
    return out


class Placed(NamedTuple):
    """Links of many frames.

    Attributes:
        p: Positions [m], shape (k, links, 3).
        quat: Orientations, shape (k, links, 4).
        R: The same as matrices, shape (k, links, 3, 3).
    """

    p: Floats
    quat: Floats
    R: Floats


class Tree:
    """A character's tree: parents, and which degree of freedom moves which links.

    Attributes:
        parent: Index of each link's parent, -1 for the root.
        v: Where each link's freedoms are in v.
        chain: Whether a freedom moves a link, shape (links, nv).
        above: Whether freedom i is above or at the link of freedom j, shape (nv, nv).
        within: Whether a link is another or hangs on it, shape (links, links): [i, j] if j is
            within i.
    """

    def __init__(self, character: Character) -> None:
        self.character = character
        where = {link.name: i for i, link in enumerate(character.links)}
        self.parent = [-1 if x.parent is None else where[x.parent] for x in character.links]
        self.v: list[slice] = []
        at = 0
        for link in character.links:
            size = sum(joint.nv for joint in link.joints)
            self.v.append(slice(at, at + size))
            at += size
        n = len(self.parent)
        self.chain, self.within = np.zeros((n, at), dtype=bool), np.eye(n, dtype=bool)
        for i, parent in enumerate(self.parent):
            if parent >= 0:
                self.chain[i] = self.chain[parent]
                self.within[:, i] |= self.within[:, parent]
            self.chain[i, self.v[i]] = True
        self.owner: NDArray[np.int64] = np.repeat(
            np.arange(n), [v.stop - v.start for v in self.v]
        ).astype(np.int64)
        self.above = self.chain[self.owner].T.astype(np.float64)
        self._note_axes()

    def _note_axes(self) -> None:
        """Axes and points on them in the frames of their links; which of them turn."""
        c = self.character
        self.axis, self.anchor = np.zeros((2, c.nv, 3))
        self.turns = np.ones((c.nv, 1))
        for joint in c.joints:
            v = c.v_slice(joint)
            if joint.kind in ("free", "ball"):
                self.axis[v.stop - 3 : v.stop] = np.eye(3)
            else:
                self.axis[v] = joint.axis
            if joint.kind in ("free", "slide"):
                self.turns[v.start : v.start + (3 if joint.kind == "free" else 1)] = 0.0
            if joint.kind in ("ball", "hinge"):
                self.anchor[v] = joint.pos
        # of several joints of one link, all but the last are not at rest in its frame
        self.several = [i for i, link in enumerate(c.links) if len(link.joints) > 1]

    def places(self, q: Floats) -> Placed:
        """Where links are in poses q (k, nq)."""
        p, quat = dynamics.forward_kinematics(self.character, q)
        return Placed(p, quat, quat_matrix(quat))

    def twists(self, q: Floats, placed: Placed) -> Floats:
        """What freedoms do (k, nv, 6): linear, then angular, about the origin of the first link."""
        p, R = placed.p, placed.R[:, self.owner]
        axis = (R @ self.axis[:, :, None])[..., 0]
        at = p[:, self.owner]
        if self.anchor.any():
            at = at + (R @ self.anchor[:, :, None])[..., 0]
        for i in self.several:
            self._unwind(i, q, placed, axis, at)
        S = np.empty((len(q), self.character.nv, 6))
        S[..., 3:] = self.turns * axis
        S[..., :3] = cross(S[..., 3:], p[:, :1] - at) + (1.0 - self.turns) * axis
        if has_free_root(self.character):
            S[:, :3, :3] = np.eye(3)
        return S

    def _unwind(self, i: int, q: Floats, placed: Placed, axis: Floats, at: Floats) -> None:
        """Axes of a link with several joints, from the last to the first, in place."""
        x, E = placed.p[:, i], placed.R[:, i]
        for joint in reversed(self.character.links[i].joints):
            v = self.character.v_slice(joint)
            pos = np.array(joint.pos)
            axis[:, v] = (E[:, None] @ self.axis[v, :, None])[..., 0]
            if joint.kind == "slide":
                at[:, v] = x[:, None]
                x = x - axis[:, v.start] * q[:, self.character.q_slice(joint)]
                continue
            before = x + E @ pos
            at[:, v] = before[:, None]
            E = E @ _turn(joint, q[:, self.character.q_slice(joint)]).transpose(0, 2, 1)
            x = before - E @ pos


def _turn(joint: Joint, value: Floats) -> Floats:
    """Rotation matrices (k, 3, 3) of a hinge or ball."""
    if joint.kind == "ball":
        return quat_matrix(value)
    half = 0.5 * value
    return quat_matrix(np.concatenate([np.cos(half), np.sin(half) * np.array(joint.axis)], axis=1))


@lru_cache(maxsize=16)
def tree_of(character: Character) -> Tree:
    """The tree of a character, made once."""
    return Tree(character)


# equations

Frames = NDArray[np.int64] | slice


class Equations:
    """The goals of some frames.

    Args:
        tree: The character's tree.
        goals: The goals, checked.
        k: Number of frames.
    """

    def __init__(self, tree: Tree, goals: Sequence[Checked], k: int) -> None:
        self.goals = goals
        self.points = _Group(tree, [x for x in goals if isinstance(x.goal, Place)], k)
        self.turns = _Group(tree, [x for x in goals if isinstance(x.goal, Turn)], k)
        self.aims = _Group(tree, [x for x in goals if isinstance(x.goal, Aim)], k)
        at = [x.goal.point for x in self.points.goals if isinstance(x.goal, Place)]
        self.point = np.array(at, dtype=np.float64).reshape(-1, 3)
        self.above = np.array([isinstance(x.goal, Above) for x in self.points.goals], dtype=bool)
        # a height is the third of three coordinates
        self.place = np.zeros((k, len(at), 3))
        for i, item in enumerate(self.points.goals):
            self.place[:, i, 3 - item.target.shape[1] :] = item.target
        self.turn, self.aim = self.turns.target(4), self.aims.target(3)
        along = [x.goal.along for x in self.aims.goals if isinstance(x.goal, Aim)]
        unit = np.array(along, dtype=np.float64).reshape(-1, 3)
        self.along = unit / np.linalg.norm(unit, axis=1, keepdims=True)

    def cost(self, placed: Placed, frames: Frames) -> Floats:
        """Weighted squared residuals of the frames (k,)."""
        found: Floats = np.zeros(len(placed.p))
        for group, e in self._residuals(placed, frames):
            found += np.einsum("kn,kni,kni->k", group.weight[frames], e, e)
        return found

    def sums(self, placed: Placed, frames: Frames) -> tuple[Floats, Floats, Floats]:
        """Cost (k,), and of each link with what hangs on it G (k, links, 6, 6), f (k, links, 6).

        All about the origin of the first link.
        """
        (_, e), (_, turn), (_, aim) = self._residuals(placed, frames)
        k, n = placed.p.shape[:2]
        w = self.points.weight[frames]
        r = self._at(placed) - placed.p[:, :1]
        # rows of E^T, (k, goals, 6, 3): a point's velocity is linear + angular x r
        E = np.zeros((*r.shape[:2], 6, 3))
        E[..., [0, 1, 2], [0, 1, 2]] = 1.0
        E[..., 4, 0], E[..., 5, 0] = r[..., 2], -r[..., 1]
        E[..., 3, 1], E[..., 5, 1] = -r[..., 2], r[..., 0]
        E[..., 3, 2], E[..., 4, 2] = r[..., 1], -r[..., 0]
        # points above their height have no residual
        E[:, self.above, :, :2] = 0.0
        E[:, self.above] *= e[:, self.above, None, 2:] > 0.0
        wE = w[..., None, None] * E
        each = wE @ E.transpose(0, 1, 3, 2)
        G = (self.points.within @ each.reshape(k, -1, 36)).reshape(k, n, 6, 6)
        f = self.points.within @ (wE @ e[..., None])[..., 0]
        w_turn, w_aim = self.turns.weight[frames], self.aims.weight[frames]
        f[..., 3:] += self.turns.within @ (w_turn[..., None] * turn)
        f[..., 3:] += self.aims.within @ (w_aim[..., None] * aim)
        d = self._directions(placed)
        across = w_aim[..., None, None] * d[..., :, None] * d[..., None, :]
        G[..., 3:, 3:] -= (self.aims.within @ across.reshape(k, -1, 9)).reshape(k, n, 3, 3)
        about = self.turns.within @ w_turn[..., None] + self.aims.within @ w_aim[..., None]
        G[..., [3, 4, 5], [3, 4, 5]] += about
        cost = np.einsum("kn,kni,kni->k", w, e, e)
        cost += np.einsum("kn,kni,kni->k", w_turn, turn, turn)
        cost += np.einsum("kn,kni,kni->k", w_aim, aim, aim)
        return cost, G, f

    def residuals(self, placed: Placed) -> Floats:
        """Residuals of the goals, 0 where the weight is, shape (goals, k) [m, rad]."""
        found = {}
        for group, e in self._residuals(placed, slice(None)):
            far = np.where(group.weight > 0.0, np.linalg.norm(e, axis=-1), 0.0)
            found.update({id(x): far[:, i] for i, x in enumerate(group.goals)})
        return np.array([found[id(x)] for x in self.goals]).reshape(len(self.goals), len(placed.p))

    def _residuals(self, placed: Placed, frames: Frames) -> list[tuple[_Group, Floats]]:
        """Of points, turns and aims: the group, and its residuals (k, goals, 3) [m, rad]."""
        e = self.place[frames] - self._at(placed)
        e[:, self.above, :2] = 0.0
        e[:, self.above] = np.maximum(e[:, self.above], 0.0)
        back = rotation.conjugate(placed.quat[:, self.turns.links])
        turn = rotation.log(rotation.multiply(self.turn[frames], back))
        aim = _rotation_between(self._directions(placed), self.aim[frames])
        return [(self.points, e), (self.turns, turn), (self.aims, aim)]

    def _at(self, placed: Placed) -> Floats:
        """Points of the goals in the world [m], shape (k, goals, 3)."""
        i = self.points.links
        return np.asarray(placed.p[:, i] + (placed.R[:, i] @ self.point[:, :, None])[..., 0])

    def _directions(self, placed: Placed) -> Floats:
        """Directions that aim, in the world, shape (k, goals, 3)."""
        return np.asarray((placed.R[:, self.aims.links] @ self.along[:, :, None])[..., 0])


class _Group:
    """Goals of one kind: their links, weights (k, n), and which links they hang on (links, n)."""

    def __init__(self, tree: Tree, goals: list[Checked], k: int) -> None:
        self.goals = goals
        self.links = np.array([x.link for x in goals], dtype=np.int64)
        self.weight = np.zeros((k, len(goals)))
        for i, item in enumerate(goals):
            self.weight[:, i] = item.weight
        self.within = tree.within[:, self.links].astype(np.float64)

    def target(self, width: int) -> Floats:
        """Targets of all (k, n, width)."""
        out = np.zeros((*self.weight.shape, width))
        for i, item in enumerate(self.goals):
            out[:, i] = item.target
        return out


def _rotation_between(d: Floats, target: Floats) -> Floats:
    """Rotation vectors (..., 3) [rad] that bring directions d to their targets."""
    over = cross(d, target)
    sine = np.linalg.norm(over, axis=-1, keepdims=True)
    angle = np.arctan2(sine, np.sum(d * target, axis=-1, keepdims=True))
    turn: Floats = np.where(sine > 1e-9, angle / np.maximum(sine, 1e-9), 0.0) * over
    back = (sine <= 1e-9) & (angle > 1.0)
    if back.any():
        # straight back: any axis across will do
        side = cross(d, np.where(np.abs(d[..., :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
        turn = np.where(back, angle * side, turn)
    return turn


# solver

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
    progress: Progress | None = None,
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
        near: The start is near the goals: short, lightly damped steps.
        progress: Called with the finished fraction, 0 to 1.

    Returns:
        Poses of the shape of q, and a report, whose `check` raises where goals are missed.
    """
    start = np.asarray(q, dtype=np.float64)
    rows = np.atleast_2d(start)
    if rows.ndim != 2 or rows.shape[1] != character.nq:
        raise ClipError(f"q has shape {start.shape}, expected (frames, {character.nq})")
    accepted = check_goals(character, list(goals), len(rows))
    stay = np.broadcast_to(np.asarray(posture, dtype=np.float64), (character.nv,)) + 1e-9
    out = np.empty_like(rows)
    rounds = np.zeros(len(rows), dtype=np.int64)
    for a in range(0, len(rows), CHUNK):
        b = min(a + CHUNK, len(rows))
        chunk = [replace(x, target=x.target[a:b], weight=x.weight[a:b]) for x in accepted]
        part = _Solver(character, chunk, stay, limits, b - a)
        out[a:b], rounds[a:b] = part.run(rows[a:b], iterations, tolerance, NEAR if near else USUAL)
        if progress is not None:
            progress(b / len(rows))
    return out.reshape(start.shape), _report(character, accepted, out, rounds)


class _Solver:
    """One chunk of frames."""

    def __init__(
        self, character: Character, goals: list[Checked], stay: Floats, limits: bool | float, k: int
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
        return bounds.clamp(self.character, q) if self.hard else q.copy()

    def cost(self, q: Floats, start: Floats, frames: Frames) -> Floats:
        """Cost (k,) of poses (k, nq)."""
        cost = self.equations.cost(self.tree.places(q), frames)
        off = configuration.difference(self.character, start, q)
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
        off = configuration.difference(self.character, start, q)
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


def _report(
    character: Character, goals: list[Checked], q: Floats, rounds: NDArray[np.int64]
) -> Report:
    tree = tree_of(character)
    residual = Equations(tree, goals, len(q)).residuals(tree.places(q))
    units = tuple("m" if isinstance(item.goal, Place) else "rad" for item in goals)
    return Report(tuple(item.name for item in goals), units, residual, rounds)
