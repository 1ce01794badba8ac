"""The linear part of a space-time optimisation: B-splines over frames, and normal equations.

A spline acts in few frames, so a knot meets only the next three: the matrix is a band of blocks.
In a loop the last knots meet the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solveh_banded
from scipy.sparse import csr_array, eye_array, kron, vstack

from poise.errors import ClipError
from poise.math.arrays import Floats

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


def directions(nv: int, symmetry: Floats | None = None, fixed: Sequence[int] = ()) -> Floats:
    """The ways in which joints may move, (nv, n): d = ways c.

    Args:
        nv: Number of velocities.
        symmetry: The matrix that mirrors a step, where both sides move alike; else None.
        fixed: Velocities whose joints shall not move.
    """
    moving = np.ones(nv, dtype=bool)
    moving[list(fixed)] = False
    if symmetry is None:
        return np.eye(nv)[:, moving]
    # pairs of coordinates share one number
    kept = [i for i in range(nv) if np.flatnonzero(symmetry[i])[0] >= i and symmetry[i, i] >= 0]
    one = np.eye(nv)[:, [i for i in kept if moving[i]]]
    return np.where(one.any(axis=1, keepdims=True), one, symmetry @ one)


def mirrored(basis: Basis, ways: Floats, symmetry: Floats) -> csr_array:
    """The map from the numbers of a loop's first half to all, where the second mirrors it."""
    if basis.size % 2:
        raise ClipError("a mirrored loop needs an even number of knots")
    half, n = basis.size // 2, ways.shape[1]
    turned = csr_array(ways.T @ symmetry @ ways)
    return csr_array(vstack([eye_array(half * n), kron(eye_array(half), turned)], format="csr"))


def gathered(basis: Basis, blocks: Floats, sides: Floats) -> tuple[Floats, Floats]:
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
        H: Blocks of the matrix, as `gathered` gives them.
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
    """Blocks (size, 4, n, n) as the upper band that LAPACK wants, (4 n, size n)."""
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
