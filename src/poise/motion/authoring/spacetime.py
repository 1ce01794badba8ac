"""Space-time optimisation: turn a sketch of a motion into one that could be true.

The sketch is a row of frames with contacts. We look for small steps of all frames, smooth in time,
that let the ground explain the motion (`ground_forces`), keep standing points where they stand and
others above the ground, keep joint limits, need little torque and jerk, and stay near the sketch
(Witkin and Kass 1988; Liu, Hertzmann and Popovic 2005 for the terms).

Frames q_k move by q_k ⊕ d(t_k), d(t) = sum_j B_j(t) c_j a cubic B-spline in the tangent space. With
q ⊕ d the velocity and acceleration of a turning joint change, in its own frame, by

    dv = d' + w x d        da = d'' + w x d' + w' x d

Each term gives residuals r(q, v, a) and their derivatives; the steps come from the damped normal
equations (Levenberg, Marquardt) of all of them. Ground forces are found anew for each pose, with a
small barrier that lets them answer smoothly; they absorb the residual, so its derivative is
projected (variable projection, Kaufman 1975). A loop has periodic steps and a root that travels; a
mirrored one repeats its first half on the other side.

The linear part of a space-time optimisation: B-splines over frames, and normal equations.

A spline acts in few frames, so a knot meets only the next three: the matrix is a band of blocks.
In a loop the last knots meet the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solveh_banded
from scipy.sparse import csr_array, eye_array, kron, vstack

from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model import configuration
from poise.model.character import Character
from poise.motion.clip import Clip

# splines and normal equations

SOFT = 0.3
"""What moves at little cost, as an elbow in the air, is damped as if it cost this part of the mean:
else it goes far in one step, where its tangent is no guide. Tuned on a backflip."""


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
    def _first(self) -> NDArray[Any]:
        """Number of the first spline that acts at each frame, (frames,)."""
        first = np.arange(self.frames) // self.spacing
        return first if self.periodic else np.minimum(first, self.size - 4)

    @cached_property
    def index(self) -> NDArray[Any]:
        """Splines that act at each frame, (frames, 4)."""
        return np.asarray((self._first[:, None] + np.arange(4)) % self.size)

    @cached_property
    def weights(self) -> Floats:
        """Their values and first three derivatives, (4 derivatives, frames, 4)."""
        u = np.arange(self.frames) / self.spacing - self._first
        one, rate = np.ones_like(u), self.fps / self.spacing
        value = [(1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, -3 * u**3 + 3 * u**2 + 3 * u + 1, u**3]
        slope = [-3 * (1 - u) ** 2, 9 * u**2 - 12 * u, -9 * u**2 + 6 * u + 3, 3 * u**2]
        bend = [6 * (1 - u), 18 * u - 12, -18 * u + 6, 6 * u]
        jerk = [-6 * one, 18 * one, -18 * one, 6 * one]
        return np.stack(
            [np.stack(w, axis=1) / 6.0 * rate**n for n, w in enumerate((value, slope, bend, jerk))]
        )


def directions(nv: int, symmetry: Floats | None = None, fixed: Sequence[int] = ()) -> Floats:
    """The ways in which joints may move, (nv, n): d = ways c.

    Args:
        nv: Number of velocities.
        symmetry: The matrix that mirrors a step, where both sides move alike; else None.
        fixed: Velocities that stay zero.
    """
    moving = np.ones(nv, dtype=bool)
    moving[list(fixed)] = False
    if symmetry is None:
        return np.eye(nv)[:, moving]
    # pairs of coordinates share one number
    kept = [i for i in range(nv) if np.flatnonzero(symmetry[i])[0] >= i and symmetry[i, i] >= 0]
    one = np.eye(nv)[:, [i for i in kept if moving[i]]]
    return np.where(one.any(axis=1, keepdims=True), one, symmetry @ one)


def mirror_map(basis: Basis, ways: Floats, symmetry: Floats) -> csr_array:
    """The map from the numbers of a loop's first half to all, where the second mirrors it."""
    if basis.size % 2:
        raise ClipError("a mirrored loop needs an even number of knots")
    half, n = basis.size // 2, ways.shape[1]
    turned = csr_array(ways.T @ symmetry @ ways)
    return csr_array(vstack([eye_array(half * n), kron(eye_array(half), turned)], format="csr"))


def assemble(basis: Basis, blocks: Floats, sides: Floats) -> tuple[Floats, Floats]:
    """Normal equations, from those of single frames.

    Args:
        basis: The splines.
        blocks: Of each frame the matrix of the splines that act in it, (frames, 4, n, 4, n).
        sides: Their right-hand sides, (frames, 4, n).

    Returns:
        The matrix as blocks (size, 4, n, n), of each knot with itself and the next three; and the
        right-hand side (size, n).
    """
    n = blocks.shape[-1]
    H, g = np.zeros((basis.size, 4, n, n)), np.zeros((basis.size, n))
    for i in range(4):
        np.add.at(g, basis.index[:, i], sides[:, i])
        for j in range(i, 4):
            np.add.at(H[:, j - i], basis.index[:, i], blocks[:, i, :, j])
    return H, g


class System:
    """Normal equations, ready to be solved with more or less damping.

    Args:
        H: Blocks of the matrix, as `assemble` gives them.
        g: Right-hand side.
        periodic: Whether the last knots meet the first.
        fold: The map from free numbers to all, where a loop mirrors itself.
    """

    def __init__(self, H: Floats, g: Floats, periodic: bool, fold: csr_array | None) -> None:
        self.shape, self.fold, self.banded = g.shape, fold, not periodic
        if self.banded:
            self.H, self.g = _band(H), g.ravel()
            self.diagonal = self.H[-1]
            return
        self.H, self.g = _dense(H), g.ravel()
        if fold is not None:
            self.H, self.g = fold.T @ (fold.T @ self.H).T, fold.T @ self.g
        self.diagonal = np.diag(self.H)

    def solve(self, damping: float) -> Floats:
        """The step of the coefficients, (size, n)."""
        mean = self.diagonal.mean()
        more = damping * np.maximum(self.diagonal, SOFT * mean) + 1e-9 * mean
        if self.banded:
            lifted = self.H.copy()
            lifted[-1] += more
            c = solveh_banded(lifted, -self.g, overwrite_ab=True)
        else:
            c = cho_solve(cho_factor(self.H + np.diag(more)), -self.g)
            c = c if self.fold is None else self.fold @ c
        return np.asarray(c).reshape(self.shape)


def _band(H: Floats) -> Floats:
    """Blocks (size, 4, n, n) as the upper band that LAPACK expects, (4 n, size n)."""
    size, _, n, _ = H.shape
    band = np.zeros((4 * n, size * n))
    row, column = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    for j in range(min(4, size)):
        # entry (i, k) of the matrix lies in row 4 n - 1 + i - k of column k
        first = np.arange(size - j)[:, None, None] * n
        at = first + j * n + column
        up = 4 * n - 1 + row - (column + j * n)
        keep = np.broadcast_to(row <= column + j * n, (size - j, n, n))
        band[np.broadcast_to(up, keep.shape)[keep], at[keep]] = H[: size - j, j][keep]
    return band


def _dense(H: Floats) -> Floats:
    """Blocks (size, 4, n, n) of a periodic matrix as the whole of it, (size n, size n)."""
    size, _, n, _ = H.shape
    out = np.zeros((size, size, n, n))
    i = np.arange(size)
    for j in range(4):
        # with few knots, splines that follow each other round the loop meet twice
        np.add.at(out, (i, (i + j) % size), H[:, j])
        if j:
            np.add.at(out, ((i + j) % size, i), H[:, j].swapaxes(1, 2))
    whole: Floats = out.swapaxes(1, 2).reshape(size * n, size * n)
    return whole


# motions and the optimization

UP = (0.0, 0.0, 1.0)


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
        character: The character that moves.
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
            clip, start = Clip(self.character, repeat_cycles(self, -1, 3), self.fps), k / self.fps
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
        q = configuration.integrate(self.character, self.q, step)
        return Motion(self.character, q, self.fps, self.travel)


def repeat_cycles(motion: Motion, first: int, cycles: int) -> Floats:
    """Frames of several cycles of a loop, the first of them numbered `first`; (cycles k, nq)."""
    assert motion.travel is not None
    out = []
    for cycle in range(first, first + cycles):
        q = motion.q.copy()
        shift, turn = travel_power(motion.travel, cycle)
        yaw = rotation.turn(UP, turn)
        q[:, :3] = rotation.rotate(yaw, q[:, :3]) + shift
        q[:, 3:7] = rotation.multiply(yaw, q[:, 3:7])
        out.append(q)
    return np.concatenate(out)


def travel_power(travel: Travel, cycle: int) -> tuple[Floats, float]:
    """Shift and turn of a travel done `cycle` times: x -> R x + shift."""
    shift = np.zeros(3)
    for _ in range(abs(cycle)):
        if cycle > 0:
            shift = rotation.rotate(rotation.turn(UP, travel.turn), shift) + travel.shift
        else:
            shift = rotation.rotate(rotation.turn(UP, -travel.turn), shift - np.array(travel.shift))
    return shift, travel.turn * cycle


Term = Callable[[Motion, bool], Sequence[Rows]]
"""A term of the cost: (motion, whether derivatives are desired) -> rows."""


TOLERANCE = 1e-4
"""A step that gains less than this fraction of the cost is the last."""


def optimize(
    motion: Motion,
    terms: Sequence[Term],
    *,
    spacing: int = 3,
    symmetry: Floats | None = None,
    iterations: int = 40,
    fixed: Sequence[int] = (),
    watch: Callable[[int, float], None] | None = None,
) -> Motion:
    """Move the frames of a motion to where the terms are least.

    Args:
        motion: The sketch.
        terms: What counts.
        spacing: Frames between knots of the steps.
        symmetry: The matrix that mirrors a step, (nv, nv): the second half of a loop mirrors the
            first; in other motions both sides move alike.
        iterations: At most so many.
        fixed: Velocities that stay zero.
        watch: Called with the iteration and its cost.
    """
    basis = Basis(len(motion.q), spacing, motion.travel is not None, motion.fps)
    ways = directions(motion.character.nv, symmetry if not basis.periodic else None, fixed)
    fold = mirror_map(basis, ways, symmetry) if basis.periodic and symmetry is not None else None
    cost, damping = _cost(motion, terms), 1e-3
    for iteration in range(iterations):
        system = System(*_normal_equations(motion, terms, basis, ways), basis.periodic, fold)
        for _ in range(8):
            c = system.solve(damping)
            new = motion.moved(_steps(basis, c @ ways.T))
            new_cost = _cost(new, terms)
            if new_cost < cost:
                break
            damping *= 6.0
        else:
            break
        gain = (cost - new_cost) / cost
        motion, cost, damping = new, new_cost, max(damping / 4.0, 1e-8)
        if watch is not None:
            watch(iteration, cost)
        if gain < TOLERANCE:
            break
    return motion


def _cost(motion: Motion, terms: Sequence[Term]) -> float:
    """Sum of squares of all terms."""
    return sum(sum(float(np.sum(rows.r**2)) for rows in term(motion, False)) for term in terms)


def _steps(basis: Basis, c: Floats) -> Floats:
    """Steps of the frames, (k, nv)."""
    steps: Floats = np.einsum("kj,kjv->kv", basis.weights[0], c[basis.index])
    return steps


def _normal_equations(
    motion: Motion, terms: Sequence[Term], basis: Basis, ways: Floats
) -> tuple[Floats, Floats]:
    """The normal equations of steps d = ways c(t).

    Args:
        motion: Where they are made.
        terms: What counts.
        basis: Splines of c(t).
        ways: How the joints may move, (nv, n).

    Returns:
        As `assemble` gives them.
    """
    nv, k, n = motion.character.nv, len(motion.q), ways.shape[1]
    w, dw = (cross_matrices(motion, x) @ ways for x in (motion.v, motion.a))
    blocks, sides = np.zeros((k, 4 * n, 4 * n)), np.zeros((k, 4, n))
    plain = np.zeros((k, 4, 4, nv))
    for term in terms:
        for rows in term(motion, True):
            given = [(B, D) for B, D in zip(basis.weights, rows[1:], strict=True) if D is not None]
            if any(D.ndim == 2 for _, D in given):
                # each number of the step by itself; that joints turn meanwhile is left out
                J = sum(B[:, :, None] * D[:, None] for B, D in given)
                sides += (J * rows.r[:, None]) @ ways
                plain += J[:, :, None] * J[:, None]
                continue
            # derivatives by d and its first three rates
            D = [None if x is None else x @ ways for x in rows[1:]]
            turning = [(0, rows.a, dw), (1, rows.a, w), (0, rows.v, w)]
            for i, by, cross in ((i, by, x) for i, by, x in turning if by is not None):
                D[i] = by @ cross if D[i] is None else D[i] + by @ cross
            J = sum(
                B[:, None, :, None] * x[:, :, None]
                for B, x in zip(basis.weights, D, strict=True)
                if x is not None
            ).reshape(k, -1, 4 * n)
            Jt = J.swapaxes(1, 2)
            blocks += Jt @ J
            sides += (Jt @ rows.r[..., None]).reshape(sides.shape)
    each = (ways[:, :, None] * ways[:, None]).reshape(nv, n * n)
    blocks = blocks.reshape(k, 4, n, 4, n)
    blocks += (plain @ each).reshape(k, 4, 4, n, n).swapaxes(2, 3)
    return assemble(basis, blocks, sides)


def cross_matrices(motion: Motion, rate: Floats) -> Floats:
    """Of each frame the matrix of w x: zero but for joints that turn as a ball, (k, nv, nv)."""
    out = np.zeros((len(rate), motion.character.nv, motion.character.nv))
    for _, _, at in configuration.rotations(motion.character):
        out[:, at, at] = skew(rate[:, at])
    return out


def skew(x: Floats) -> Floats:
    """Matrices (..., 3, 3) of x x, of vectors (..., 3)."""
    out = np.zeros((*x.shape, 3))
    out[..., 0, 1], out[..., 1, 0] = -x[..., 2], x[..., 2]
    out[..., 0, 2], out[..., 2, 0] = x[..., 1], -x[..., 1]
    out[..., 1, 2], out[..., 2, 1] = -x[..., 0], x[..., 0]
    return out
