"""Least squares with equality constraints (M 4.1 and appendix D), by the null space.

    min ‖W (a - a_des)‖² + ‖E a - e‖²   subject to   C a = d

in x = W (a - a_des), W > 0 diagonal:

    min ‖x‖² + ‖E' x - e'‖²   subject to   C' x = d'.

Pivoted QR of C'ᵀ gives an orthonormal basis Q of its rows of full rank; what is beyond the rank
is redundant (a foot that is held twice) or contradicts the rest, and then the least squares
solution of C' x = d' is kept. x is its part in Q plus y across it, and y lies in the span of G =
E' (1 - Q Qᵀ):

    y = Gᵀ (1 + G Gᵀ)^-1 (e' - E' x_Q) = V Σ (1 + Σ²)^-1 Uᵀ (...),   G = U Σ Vᵀ.

The thesis inverts normal equations, twice (D.7, D.8), which squares the condition of the weights
and needs C of full rank; LAPACK's gglse silently returns no optimum without that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poise.math.arrays import Floats

RANK_TOLERANCE = 1e-9
"""Rows of constraints that are smaller than this beside the largest do not count."""


class Constraints(NamedTuple):
    """Constraints in x: a basis of their rows and the shortest x that keeps them.

    Attributes:
        Q: Orthonormal rows, shape (r, nv).
        x: Shape (nv,).
        residual: Residual of the constraints, ‖C' x - d'‖; 0 unless they contradict each other.
    """

    Q: Floats
    x: Floats
    residual: float


def constrain(C: Floats, d: Floats) -> Constraints:
    """The constraints C x = d, some of which may be redundant.

    Args:
        C: Shape (m, nv).
        d: Shape (m,).
    """
    from scipy.linalg import lapack

    m, nv = C.shape
    if not m:
        return Constraints(np.zeros((0, nv)), np.zeros(nv), 0.0)
    qr, pivot, tau, _, info = lapack.dgeqp3(C.T)
    size = np.abs(qr.diagonal())
    r = int(np.count_nonzero(size > RANK_TOLERANCE * size[0])) if size.size else 0
    if info or not r or not np.isfinite(size[0]):
        return Constraints(np.zeros((0, nv)), np.zeros(nv), float(np.abs(d).max()))
    basis, _, _ = lapack.dorgqr(qr[:, : min(m, nv)], tau[: min(m, nv)])
    Q = basis[:, :r].T
    order = pivot - 1
    # C' = R11ᵀ of the independent rows; the others follow from them or contradict
    R, b = qr[:r, :m], d[order]
    if r == m:
        u, _ = lapack.dtrtrs(R, b, trans=1)
        return Constraints(Q, u @ Q, 0.0)
    full = np.triu(R).T
    u = np.linalg.lstsq(full, b, rcond=None)[0]
    return Constraints(Q, u @ Q, float(np.abs(full @ u - b).max()))


class Reduced(NamedTuple):
    """The solution so far, and its compliance: moving E x by z costs zᵀ (E K^-1 Eᵀ)^-1 z.

    Attributes:
        x: Shape (nv,).
        Q: Rows that may not move, shape (r, nv).
        V: Directions that objectives hold, shape (m, nv).
        stiffness: Of these directions, 0 to 1, shape (m,).
        late: E K^-1 of rows that were added later, shape (k, nv).
        late_inverse: (E K^-1 Eᵀ + 1 / weight)^-1 of them, shape (k, k).
    """

    x: Floats
    Q: Floats
    V: Floats
    stiffness: Floats
    late: Floats | None = None
    late_inverse: Floats | None = None

    def compliance(self, E: Floats) -> Floats:
        """E K^-1, the direction of least cost that moves E x, shape (k, nv)."""
        free = E - (E @ self.Q.T) @ self.Q
        out: Floats = free - (free @ self.V.T * self.stiffness) @ self.V
        if self.late is not None and self.late_inverse is not None:
            out = out - (E @ self.late.T) @ self.late_inverse @ self.late
        return out

    def with_rows(self, compliance: Floats, T: Floats, error: Floats, weight: float) -> Reduced:
        """With a few more rows E x = e, all of one weight.

        Args:
            compliance: E K^-1, shape (k, nv).
            T: E K^-1 Eᵀ, shape (k, k).
            error: e - E x, shape (k,).
            weight: Above zero.
        """
        inverse = np.asarray(np.linalg.inv(T + np.eye(len(T)) / weight), dtype=np.float64)
        x = self.x + (inverse @ error) @ compliance
        return self._replace(x=x, late=compliance, late_inverse=inverse)


def reduce(constraints: Constraints, E: Floats, e: Floats) -> Reduced:
    """The solution with the objectives E x = e, within the constraints.

    Args:
        constraints: The constraints.
        E: Weighted objectives in x, shape (m, nv).
        e: Their right-hand side, shape (m,).
    """
    if not len(E):
        return Reduced(constraints.x, constraints.Q, E, e)
    G = E - (E @ constraints.Q.T) @ constraints.Q
    U, s, Vt = np.linalg.svd(G, full_matrices=False)
    pivot = 1.0 + s * s
    x = constraints.x + ((e - E @ constraints.x) @ U * (s / pivot)) @ Vt
    return Reduced(x, constraints.Q, Vt, s * s / pivot)
