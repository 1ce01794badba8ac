"""Space-time optimisation: turn a sketch of a motion into one that could be true.

The sketch is a row of frames with contacts. We look for small steps of all frames, smooth in time,
that let the ground explain the motion (`ground_forces`), keep standing points where they stand and
others above the ground, keep joint limits, ask for little torque and jerk, and stay near the sketch
(Witkin and Kass 1988; Liu, Hertzmann and Popovic 2005 for the terms).

Frames q_k move by q_k ⊕ d(t_k), d(t) = sum_j B_j(t) c_j a cubic B-spline in the tangent space. With
q ⊕ d the velocity and acceleration of a turning joint change, in its own frame, by

    dv = d' + w x d        da = d'' + w x d' + w' x d

Each term gives residuals r(q, v, a) and their derivatives; the steps come from the damped normal
equations (Levenberg, Marquardt) of all of them. Ground forces are found anew for each pose; where
they can still change they absorb the residual, so its derivative is projected (variable projection,
Kaufman 1975). A loop has periodic steps and a root that travels; a mirrored one repeats its first
half on the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, eye_array, kron, vstack

from poise.character import Character
from poise.errors import ClipError
from poise.motion import poses, quaternions
from poise.motion.clip import Clip
from poise.motion.quaternions import Floats


class Travel(NamedTuple):
    """How the root moves from one cycle to the next: a shift [m], then a turn about z [rad]."""

    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: float = 0.0


class Rows(NamedTuple):
    """Weighted residuals of a term, (k, m), and their derivatives, (k, m, nv) or None.

    Derivatives are by q (a step in the tangent space), by v, by a, and by jerk j, the rate of a;
    (k, nv) stands for a diagonal.
    """

    r: Floats
    q: Floats | None = None
    v: Floats | None = None
    a: Floats | None = None
    j: Floats | None = None


@dataclass(eq=False)
class Motion:
    """Frames of a motion with their derivatives, one cycle of a loop or the whole.

    Args:
        character: Whose motion it is.
        q: Frames, shape (k, nq).
        fps: Frames per second.
        travel: Of a loop, from frame 0 to the frame after the last; None: no loop.
    """

    character: Character
    q: Floats
    fps: float
    travel: Travel | None = None
    cache: dict[str, object] = field(default_factory=dict)

    @cached_property
    def derivatives(self) -> tuple[Floats, Floats]:
        """Velocities and accelerations of the frames, as a clip has them, (k, nv) each."""
        k, t = len(self.q), np.arange(len(self.q)) / self.fps
        if self.travel is None:
            clip, start = Clip(self.character, self.q, self.fps), 0.0
        else:
            clip, start = Clip(self.character, repeated(self, -1, 3), self.fps), k / self.fps
        return clip.v(start + t), clip.a(start + t)

    @property
    def v(self) -> Floats:
        """Velocities, (k, nv)."""
        return self.derivatives[0]

    @property
    def a(self) -> Floats:
        """Accelerations, (k, nv)."""
        return self.derivatives[1]

    def moved(self, step: Floats) -> Motion:
        """The motion after steps (k, nv)."""
        return Motion(
            self.character, poses.move(self.character, self.q, step), self.fps, self.travel
        )


def repeated(motion: Motion, first: int, cycles: int) -> Floats:
    """Frames of several cycles of a loop, the first of them numbered `first`; (cycles k, nq)."""
    assert motion.travel is not None
    out = []
    for cycle in range(first, first + cycles):
        q = motion.q.copy()
        shift, turn = powers(motion.travel, cycle)
        yaw = quaternions.turn((0.0, 0.0, 1.0), turn)
        q[:, :3] = quaternions.rotate(yaw, q[:, :3]) + shift
        q[:, 3:7] = quaternions.multiply(yaw, q[:, 3:7])
        out.append(q)
    return np.concatenate(out)


def powers(travel: Travel, cycle: int) -> tuple[Floats, float]:
    """Shift and turn of a travel done `cycle` times: x -> R x + shift."""
    shift = np.zeros(3)
    for _ in range(abs(cycle)):
        if cycle > 0:
            yaw = quaternions.turn((0.0, 0.0, 1.0), travel.turn)
            shift = quaternions.rotate(yaw, shift) + travel.shift
        else:
            yaw = quaternions.turn((0.0, 0.0, 1.0), -travel.turn)
            shift = quaternions.rotate(yaw, shift - np.array(travel.shift))
    return shift, travel.turn * cycle


Term = Callable[[Motion, bool], Sequence[Rows]]
"""A term of the cost: (motion, whether derivatives are wanted) -> rows."""


@dataclass(frozen=True)
class Basis:
    """Cubic B-splines over frames.

    Args:
        frames: Number of frames.
        spacing: Frames between two knots.
        periodic: Whether the end meets the start; frames must then be a multiple of the spacing.
        fps: Frames per second.
    """

    frames: int
    spacing: int
    periodic: bool
    fps: float

    def __post_init__(self) -> None:
        if self.periodic and self.frames % self.spacing:
            raise ClipError(
                f"a loop of {self.frames} frames cannot have a knot every {self.spacing} frames"
            )

    @property
    def size(self) -> int:
        """Number of splines."""
        if self.periodic:
            return self.frames // self.spacing
        return (self.frames - 2) // self.spacing + 4

    @cached_property
    def index(self) -> np.ndarray:
        """Splines that act at each frame, (frames, 4)."""
        first = np.arange(self.frames) // self.spacing
        if not self.periodic:
            first = np.minimum(first, self.size - 4)
        index: np.ndarray = (first[:, None] + np.arange(4)) % self.size
        return index

    @cached_property
    def weights(self) -> Floats:
        """Their values and first three derivatives, (4 derivatives, frames, 4)."""
        i = np.arange(self.frames)
        first = i // self.spacing if self.periodic else np.minimum(i // self.spacing, self.size - 4)
        u = i / self.spacing - first
        one, rate = np.ones_like(u), self.fps / self.spacing
        value = [(1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, -3 * u**3 + 3 * u**2 + 3 * u + 1, u**3]
        slope = [-3 * (1 - u) ** 2, 9 * u**2 - 12 * u, -9 * u**2 + 6 * u + 3, 3 * u**2]
        bend = [6 * (1 - u), 18 * u - 12, -18 * u + 6, 6 * u]
        jerk = [-6 * one, 18 * one, -18 * one, 6 * one]
        return np.stack(
            [np.stack(w, axis=1) / 6.0 * rate**n for n, w in enumerate((value, slope, bend, jerk))]
        )


@dataclass(frozen=True, eq=False)
class Result:
    """What an optimisation found.

    Attributes:
        motion: The motion.
        cost: Sum of squares after each accepted step.
        parts: Sum of squares of each term at the end.
    """

    motion: Motion
    cost: list[float]
    parts: list[float]


def optimise(
    motion: Motion,
    terms: Sequence[Term],
    *,
    spacing: int = 3,
    symmetry: Floats | None = None,
    iterations: int = 40,
    tolerance: float = 1e-4,
    fixed: Sequence[int] = (),
    watch: Callable[[int, float], None] | None = None,
) -> Result:
    """Move the frames of a motion to where the terms are least.

    Args:
        motion: The sketch.
        terms: What counts.
        spacing: Frames between knots of the steps.
        symmetry: The matrix that mirrors a step, (nv, nv): the second half of a loop mirrors the
            first; in other motions both sides move alike.
        iterations: At most so many.
        tolerance: Stop where a step gains less than this share of the cost.
        fixed: Velocities whose joints shall not move.
        watch: Called with the iteration and its cost.
    """
    character = motion.character
    basis = Basis(len(motion.q), spacing, motion.travel is not None, motion.fps)
    free = _free_coefficients(basis, character.nv, symmetry, fixed)
    cost, parts = _cost(motion, terms)
    costs, damping = [cost], 1e-3
    for iteration in range(iterations):
        H, g = _normal_equations(motion, terms, basis)
        H, g = free.T @ (free.T @ H).T, free.T @ g
        gained = False
        for _ in range(8):
            lifted = H + np.diag(damping * np.diag(H) + 1e-9 * np.trace(H) / len(H))
            c = free @ -cho_solve(cho_factor(lifted), g)
            new = motion.moved(_steps(basis, c.reshape(basis.size, -1)))
            new_cost, new_parts = _cost(new, terms)
            if new_cost < cost:
                gained = True
                break
            damping *= 6.0
        if not gained:
            break
        share = (cost - new_cost) / cost
        motion, cost, parts, damping = new, new_cost, new_parts, max(damping / 4.0, 1e-8)
        costs.append(cost)
        if watch is not None:
            watch(iteration, cost)
        if share < tolerance:
            break
    return Result(motion, costs, parts)


def _cost(motion: Motion, terms: Sequence[Term]) -> tuple[float, list[float]]:
    parts = [sum(float(np.sum(rows.r**2)) for rows in term(motion, False)) for term in terms]
    return sum(parts), parts


def _steps(basis: Basis, c: Floats) -> Floats:
    """Steps of the frames, (k, nv)."""
    steps: Floats = np.einsum("kj,kjv->kv", basis.weights[0], c[basis.index])
    return steps


def _normal_equations(motion: Motion, terms: Sequence[Term], basis: Basis) -> tuple[Floats, Floats]:
    nv, k = motion.character.nv, len(motion.q)
    w, dw = turning(motion, motion.v), turning(motion, motion.a)
    blocks, sides = np.zeros((k, 4, nv, 4, nv)), np.zeros((k, 4, nv))
    i = np.arange(nv)
    for term in terms:
        for rows in term(motion, True):
            pairs = zip(basis.weights, rows[1:], strict=True)
            diagonal = [(B, D) for B, D in pairs if D is not None and D.ndim == 2]
            if diagonal:
                # each number of the step by itself; that joints turn meanwhile is left out
                J = sum(B[:, :, None] * D[:, None] for B, D in diagonal)
                sides += J * rows.r[:, None]
                blocks[:, :, i, :, i] += np.einsum("kjv,klv->vkjl", J, J)
                continue
            # derivatives by d, d', d'', d'''
            D = [np.zeros((*rows.r.shape, nv)) if x is None else x for x in rows[1:]]
            if rows.a is not None:
                D[0], D[1] = D[0] + rows.a @ dw, D[1] + rows.a @ w
            if rows.v is not None:
                D[0] = D[0] + rows.v @ w
            J = sum(
                basis.weights[n][:, None, :, None] * D[n][:, :, None]
                for n in range(4)
                if n == 0 or D[n].any()
            ).reshape(k, -1, 4 * nv)
            Jt = J.swapaxes(1, 2)
            blocks += (Jt @ J).reshape(blocks.shape)
            sides += (Jt @ rows.r[..., None]).reshape(sides.shape)
    H, g = np.zeros((basis.size, basis.size, nv, nv)), np.zeros((basis.size, nv))
    for frame in range(k):
        at = basis.index[frame]
        H[at[:, None], at] += blocks[frame].swapaxes(1, 2)
        g[at] += sides[frame]
    n = basis.size * nv
    return H.swapaxes(1, 2).reshape(n, n), g.reshape(n)


def turning(motion: Motion, rate: Floats) -> Floats:
    """Of each frame the matrix of w x: zero but for joints that turn as a ball, (k, nv, nv)."""
    out = np.zeros((len(rate), motion.character.nv, motion.character.nv))
    for _, _, at in poses.rotations(motion.character):
        x, y, z = rate[:, at].T
        i = at.start
        out[:, i, i + 1], out[:, i + 1, i] = -z, z
        out[:, i, i + 2], out[:, i + 2, i] = y, -y
        out[:, i + 1, i + 2], out[:, i + 2, i + 1] = -x, x
    return out


def _free_coefficients(
    basis: Basis, nv: int, symmetry: Floats | None, fixed: Sequence[int]
) -> csr_array:
    """The map from free numbers to all coefficients, (size nv, free)."""
    moving = np.ones(nv, dtype=bool)
    moving[list(fixed)] = False
    if symmetry is None:
        return csr_array(eye_array(basis.size * nv, format="csc")[:, np.tile(moving, basis.size)])
    if not basis.periodic:
        # both sides move alike: pairs of coordinates share one number
        kept = [i for i in range(nv) if np.flatnonzero(symmetry[i])[0] >= i and symmetry[i, i] >= 0]
        one = np.zeros((nv, len(kept)))
        one[kept, np.arange(len(kept))] = 1.0
        one = np.where(one.any(axis=1, keepdims=True), one, symmetry @ one)
        return csr_array(kron(eye_array(basis.size), csr_array(one)))
    if basis.size % 2:
        raise ClipError("a mirrored loop needs an even number of knots")
    half = basis.size // 2
    first = eye_array(half * nv, format="csr")
    both = vstack([first, kron(eye_array(half), csr_array(symmetry))], format="csc")
    return csr_array(both[:, np.tile(moving, half)])
