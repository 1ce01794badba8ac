"""When a PD drive is stable at a time step: the mathematics behind `check_gains`.

Near a target at rest, with x the error and the drive's Q and K (see reference/drive.py), a step is

    (M + K) (x⁺ - 2 x + x⁻) + dt D (x - x⁻) + dt² Kp x = 0

since v = (x - x⁻) / dt and positions follow the new velocity. D = Kd for "pd" and "explicit", and
Kd + dt Kp for "spd" and "implicit", which look at q + dt v. Put x_n = λⁿ u. For any u the numbers
m = u*(M + K)u, d = dt u*Du and k = dt² u*Kp u are real, and

    m λ² - (2 m - d - k) λ + (m - d) = 0

has no root outside the unit circle as long as 2 d + k < 4 m. So errors do not grow if

    S = 4 (M + K) - 2 dt D - dt² Kp

is positive definite. And only then: S is the matrix of the step at λ = -1, and that matrix is
positive for λ -> -∞, so if S has a negative direction its determinant is zero at some λ < -1. In
words, an error that turns over in every step must shrink. With each form's K and D:

    pd         S = 4 M - 2 dt Kd -   dt² Kp
    explicit   S = 4 M + 2 dt Kd -   dt² Kp
    spd        S = 4 M + 2 dt Kd - 3 dt² Kp
    implicit   S = 4 M + 2 dt Kd +   dt² Kp     positive at any step

One joint by itself gives 3 kp dt² < 4 m + 2 kd dt for "spd". A tree has weak directions, in which
light links shake heavy ones, that no joint's own inertia tells; M knows them. Springs and dampers
of the joints themselves are solved implicitly by the world and add what they add in the last line.

All S have the shape H - diag(c): H holds, c is the load that gains put on it. Since S only falls
when a load grows, lowering any of them never makes a stable step unstable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.math.arrays import Floats

Indices = NDArray[np.intp]

COEFFICIENTS = {"pd": (-2, 1), "explicit": (2, 1), "spd": (2, 3), "implicit": (2, -1)}
"""Factors of dt Kd and of -dt² Kp in S, by form."""

BISECTIONS = 40
"""Halvings of a ratio: what is left is a part in 1e12."""

LEAST_RATE = 1e-6
"""Steps longer than the inverse of this [1/s] count as any."""


class Balance(NamedTuple):
    """S = H - diag(c) of gains at a time step."""

    H: Floats  # what holds, positive definite, shape (..., nv, nv)
    c: Floats  # the load, not negative, shape (..., nv)

    @classmethod
    def of(
        cls, M: Floats, kp: Floats, kd: Floats, dt: float, form: str, springs: Floats
    ) -> Balance:
        """H and c of a form.

        Args:
            M: Mass matrix, shape (..., nv, nv).
            kp: Stiffness, shape (..., nv).
            kd: Damping, shape (..., nv).
            dt: Time step [s].
            form: One of COEFFICIENTS.
            springs: 2 dt d + dt² k of the joints' own dampers and springs, shape (nv,).
        """
        of_kd, of_kp = COEFFICIENTS[form]
        terms = np.stack([of_kd * dt * kd, -of_kp * dt**2 * kp])
        holds = springs + np.maximum(terms, 0.0).sum(axis=0)
        load = np.maximum(-terms, 0.0).sum(axis=0)
        return cls(4.0 * M + diagonal(holds), np.broadcast_to(load, M.shape[:-1]))

    @property
    def margin(self) -> Floats:
        """The factor that all loads can bear together, shape (...); above 1 it is stable."""
        largest = np.linalg.eigvalsh(_between(_factor(self.H), self.c))[..., -1]
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.maximum(largest, 0.0))

    def largest_loads(self, joints: list[Indices]) -> Floats:
        """The largest load of each joint, shape (..., nv), the same for all axes of a joint.

        Where S is positive: with all other loads as they are. By Schur's complement joint j can
        bear 1 / (S⁻¹)_jj more, for a ball the largest eigenvalue of its block.

        Where it is not: joint j alone could bear a_j = 1 / (H⁻¹)_jj, and loads are cut at one
        ratio r to that, c_j <= r a_j, the largest for which S is positive. Those below stay.

        Args:
            joints: Velocities of each joint.
        """
        stable = (self.margin > 1.0)[..., None]
        # where S is not positive H stands in for it, and the answer is not used
        S = np.where(stable[..., None], self.H - diagonal(self.c), self.H)
        more = self.c + 1.0 / _worst_axis(np.linalg.inv(S), joints)
        if stable.all():
            return np.asarray(more)
        alone = 1.0 / _worst_axis(np.linalg.inv(self.H), joints)
        cut = np.minimum(self.c, self._common_ratio(alone)[..., None] * alone)
        return np.where(stable, more, cut)

    def _common_ratio(self, alone: Floats) -> Floats:
        """The largest r for which loads of at most r a leave S positive, by bisection, (...)."""
        low, factor = Balance(self.H, alone).margin, _factor(self.H)
        high = np.maximum((self.c / alone).max(axis=-1), low)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            cut = np.minimum(self.c, middle[..., None] * alone)
            fits = np.linalg.eigvalsh(_between(factor, cut))[..., -1] < 1.0
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return np.asarray(low)


def modes(H: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (..., nv), ascending, and vectors (..., nv, nv) of diag(c) u = μ H u."""
    factor = _factor(H)
    values, vectors = np.linalg.eigh(_between(factor, c))
    return values, factor.swapaxes(-1, -2) @ vectors


def largest_step(M: Floats, kp: Floats, kd: Floats, form: str, damping: Floats) -> Floats:
    """The time step below which these gains are stable [s], shape (...); inf is any.

    With σ = 1/dt the border det S = 0 is (4 M σ² + C σ - P) u = 0, C and P diagonal. For
    4 M = L Lᵀ the largest σ is the largest eigenvalue of the symmetric matrix

        [-L⁻¹ C L⁻ᵀ   L⁻¹ √P]
        [ √P L⁻ᵀ      0     ]

    whose vectors are (Lᵀ u, √P u / σ).

    Args:
        M: Mass matrix, shape (..., nv, nv).
        kp: Stiffness, shape (..., nv).
        kd: Damping, shape (..., nv).
        form: One of COEFFICIENTS.
        damping: Of the joints themselves, shape (nv,). Their springs are left out: they hold.
    """
    of_kd, of_kp = COEFFICIENTS[form]
    factor = _factor(4.0 * M)
    C = _between(factor, of_kd * kd + 2.0 * damping)
    B = factor * np.sqrt(np.maximum(of_kp * kp, 0.0))[..., None, :]
    upper = np.concatenate([-C, B], axis=-1)
    lower = np.concatenate([B.swapaxes(-1, -2), np.zeros_like(B)], axis=-1)
    sigma = np.linalg.eigvalsh(np.concatenate([upper, lower], axis=-2))[..., -1]
    return np.where(sigma > LEAST_RATE, 1.0 / np.maximum(sigma, LEAST_RATE), np.inf)


def felt_inertia(M: Floats, joints: list[Indices]) -> Floats:
    """The least inertia that each joint feels, 1 / (M⁻¹)_jj, all others loose, (..., nv)."""
    return np.asarray(1.0 / _worst_axis(np.linalg.inv(M), joints))


def _factor(H: Floats) -> Floats:
    """L⁻¹ of H = L Lᵀ, shape (..., nv, nv)."""
    L = np.linalg.cholesky(H)
    return np.asarray(np.linalg.solve(L, np.eye(L.shape[-1])))


def _between(factor: Floats, c: Floats) -> Floats:
    """L⁻¹ diag(c) L⁻ᵀ, shape (..., nv, nv)."""
    return np.asarray((factor * c[..., None, :]) @ factor.swapaxes(-1, -2))


def diagonal(x: Floats) -> Floats:
    """Diagonal matrices (..., n, n) of vectors (..., n)."""
    return x[..., None] * np.eye(x.shape[-1])


def _worst_axis(P: NDArray[Any], joints: list[Indices]) -> Floats:
    """Largest eigenvalue of each joint's block of P, spread over its velocities, (..., nv)."""
    out: Floats = np.diagonal(P, axis1=-2, axis2=-1).copy()
    triples = np.array([at for at in joints if len(at) == 3], dtype=np.intp).reshape(-1, 3)
    blocks = P[..., triples[:, :, None], triples[:, None, :]]
    out[..., triples] = np.linalg.eigvalsh(blocks)[..., -1:]
    return out
