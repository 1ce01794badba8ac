"""Least squares with equality constraints (M 4.1 and appendix D), by the null space.

    min |W (a - a_des)|² + |E a - e|²   subject to   C a = d

in x = W (a - a_des), W > 0 diagonal:

    min |x|² + |E' x - e'|²   subject to   C' x = d'.

Pivoted QR of C'ᵀ gives an orthonormal basis Q of its rows of full rank; what is beyond the rank is
redundant (a foot that is held twice) or contradicts the rest, and then the least squares answer of
C' x = d' is held. x is its part in Q plus y across it, and y lies in the span of G = E' (1 - Q Qᵀ):

    y = Gᵀ (1 + G Gᵀ)^-1 (e' - E' x_Q) = V Σ (1 + Σ²)^-1 Uᵀ (...),   G = U Σ Vᵀ.

The thesis inverts normal equations, twice (D.7, D.8), which squares the condition of the weights
and needs C of full rank; LAPACK's gglse silently misses the optimum without that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats

RANK = 1e-9
"""Rows of constraints that are smaller than this beside the largest do not count."""


class Held(NamedTuple):
    """Constraints in x: a basis of their rows and the shortest x that keeps them.

    Attributes:
        Q: Orthonormal rows, shape (r, nv).
        x: Shape (nv,).
        miss: How far the constraints contradict each other, |C' x - d'|.
    """

    Q: Floats
    x: Floats
    miss: float


def hold(C: Floats, d: Floats) -> Held:
    """The constraints C x = d, some of which may say the same.

    Args:
        C: Shape (m, nv).
        d: Shape (m,).
    """
    from scipy.linalg import lapack

    m, nv = C.shape
    if not m:
        return Held(np.zeros((0, nv)), np.zeros(nv), 0.0)
    qr, pivot, tau, _, info = lapack.dgeqp3(C.T)
    size = np.abs(qr.diagonal())
    r = int(np.count_nonzero(size > RANK * size[0])) if size.size else 0
    if info or not r or not np.isfinite(size[0]):
        return Held(np.zeros((0, nv)), np.zeros(nv), float(np.abs(d).max()))
    basis, _, _ = lapack.dorgqr(qr[:, : min(m, nv)], tau[: min(m, nv)])
    Q = basis[:, :r].T
    order = pivot - 1
    # C' = R11ᵀ of the independent rows; the others follow from them or contradict
    R, b = qr[:r, :m], d[order]
    if r == m:
        u, _ = lapack.dtrtrs(R, b, trans=1)
        return Held(Q, u @ Q, 0.0)
    full = np.triu(R).T
    u = np.linalg.lstsq(full, b, rcond=None)[0]
    return Held(Q, u @ Q, float(np.abs(full @ u - b).max()))


class Reduced(NamedTuple):
    """The answer so far, and how it gives way: moving E x by z costs zᵀ (E K^-1 Eᵀ)^-1 z.

    Attributes:
        x: Shape (nv,).
        Q: Rows that may not move, shape (r, nv).
        V: Directions that objectives hold, shape (m, nv), and how firmly, 0 to 1.
        firm: Shape (m,).
        late: E K^-1 of rows that came later, shape (k, nv), and (1 + E K^-1 Eᵀ)^-1 of them.
        held: Shape (k, k).
    """

    x: Floats
    Q: Floats
    V: Floats
    firm: Floats
    late: Floats | None = None
    held: Floats | None = None

    def give(self, E: Floats) -> Floats:
        """E K^-1, the way of least cost to move E x, shape (k, nv)."""
        free = E - (E @ self.Q.T) @ self.Q
        out: Floats = free - (free @ self.V.T * self.firm) @ self.V
        if self.late is not None and self.held is not None:
            out = out - (E @ self.late.T) @ self.held @ self.late
        return out

    def then(self, give: Floats, T: Floats, lack: Floats, weight: float) -> Reduced:
        """With a few more rows E x = e, all of one weight.

        Args:
            give: E K^-1, shape (k, nv).
            T: E K^-1 Eᵀ, shape (k, k).
            lack: e - E x, shape (k,).
            weight: Above zero.
        """
        held = np.asarray(np.linalg.inv(T + np.eye(len(T)) / weight), dtype=np.float64)
        return self._replace(x=self.x + (held @ lack) @ give, late=give, held=held)


def reduce(held: Held, E: Floats, e: Floats) -> Reduced:
    """The answer after the objectives E x = e have had their say, within the constraints.

    Args:
        held: The constraints.
        E: Weighted objectives in x, shape (m, nv).
        e: What they want, shape (m,).
    """
    if not len(E):
        return Reduced(held.x, held.Q, E, e)
    G = E - (E @ held.Q.T) @ held.Q
    U, s, Vt = np.linalg.svd(G, full_matrices=False)
    firm = 1.0 + s * s
    x = held.x + ((e - E @ held.x) @ U * (s / firm)) @ Vt
    return Reduced(x, held.Q, Vt, s * s / firm)


def check_weight(weight: Floats) -> Floats:
    """The weights, if all are above zero: without them the accelerations are not determined."""
    if not (np.isfinite(weight) & (weight > 0.0)).all():
        raise PoiseError(
            f"the least weight of tracking is {weight.min():g}; each must be above 0, for a joint "
            "that nothing asks of has no acceleration"
        )
    return weight
