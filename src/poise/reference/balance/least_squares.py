"""Least squares with equality constraints (M 4.1 and appendix D), by the null space.

    min |W (a - a_des)|² + |E a - e|²   subject to   C a = d

in x = W (a - a_des), W > 0 diagonal:

    min |x|² + |E' x - e'|²   subject to   C' x = d'.

Pivoted QR of C'ᵀ gives an orthonormal basis Q of its rows of full rank; what is beyond the rank is
redundant (a foot that is held twice) or contradicts the rest, and then the least squares solution
of C' x = d' is kept. x is its part in Q plus y across it, and y lies in the span of G = E' (1 - Q
Qᵀ):

    y = Gᵀ (1 + G Gᵀ)^-1 (e' - E' x_Q) = V Σ (1 + Σ²)^-1 Uᵀ (...),   G = U Σ Vᵀ.

The thesis inverts normal equations, twice (D.7, D.8), which squares the condition of the weights
and needs C of full rank; LAPACK's gglse silently returns no optimum without that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats

RANK_TOLERANCE = 1e-9
"""Rows of constraints that are smaller than this beside the largest do not count."""


class Constraints(NamedTuple):
    """Constraints in x: a basis of their rows and the shortest x that keeps them.

    Attributes:
        Q: Orthonormal rows, shape (r, nv).
        x: Shape (nv,).
        residual: Residual of the constraints, |C' x - d'|; 0 unless they contradict each other.
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


# ---- ground forces inside friction cones, found together with the accelerations
#
# The root has no motor. With B its six rows of the mass matrix and of h,
#
#     B a + h = Σ_i G_i f_i,   f_i = Σ_e λ_ie d_e,   0 <= λ <= λ_max,
#
# d_e the edges of a friction pyramid. Let a(x) be the solution of the least squares without this, K
# its quadratic form in x = W (a - a_des), B' = B W^-1, and b = B a + h the wrench that the root
# then needs. Another wrench g on the root moves x by K^-1 B'ᵀ S^-1 (g - b), S = B' K^-1 B'ᵀ, at the
# cost (g - b)ᵀ S^-1 (g - b). So accelerations, torques and forces of the least total cost are those
# of
#
#     min_λ |C^-1 (G λ - b)|² + ε |λ|²,   0 <= λ <= λ_max,   S = C Cᵀ,
#
# with four unknowns per point of a sole, solved by daqp. Where b is inside the cones, nothing
# moves: this is the thesis's solution. A support that fades has its λ_max fade.

EDGES = 4
FORCE_REGULARIZATION = 1e-8
"""ε, relative to the largest entry of the quadratic form: forces are spread evenly."""


class Cones(NamedTuple):
    """Friction pyramids of a level ground.

    Attributes:
        edges: Of each point, with a normal part of 1, shape (k, EDGES, 3).
    """

    edges: Floats

    @classmethod
    def of(cls, friction: Floats) -> Cones:
        """Pyramids inside the round cones of coefficients of friction, shape (k,)."""
        around = (np.arange(EDGES) + 0.5) * (2.0 * math.pi / EDGES)
        ring = np.stack([np.cos(around), np.sin(around)], axis=1)
        edges = np.ones((len(friction), EDGES, 3))
        edges[..., :2] = friction[:, None, None] * ring
        return cls(edges)

    def wrenches(self, arms: Floats, turn: Floats) -> Floats:
        """Generalized force on a free root of each λ, shape (6, k EDGES).

        Args:
            arms: From the root's origin to the points [m], shape (k, 3).
            turn: Orientation of the root, shape (3, 3).
        """
        k = len(arms)
        out = np.empty((6, k, EDGES))
        x, y, z = (arms[:, i, None] for i in range(3))
        ex, ey, ez = (self.edges[..., i] for i in range(3))
        out[0], out[1], out[2] = ex, ey, ez
        torque = np.stack([y * ez - z * ey, z * ex - x * ez, x * ey - y * ex])
        out[3:] = np.tensordot(turn.T, torque, axes=1)
        return out.reshape(6, k * EDGES)

    def forces(self, magnitude: Floats) -> Floats:
        """Forces (k, 3) [N] of λ (k EDGES,)."""
        out: Floats = (magnitude.reshape(-1, EDGES, 1) * self.edges).sum(axis=1)
        return out


def solve_cones(G: Floats, wrench: Floats, S: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """λ within its bounds closest to a wrench in the metric S^-1, and S^-1 (G λ - wrench).

    Args:
        G: Wrench of each λ, shape (6, m).
        wrench: Desired wrench [N, N·m], shape (6,).
        S: Compliance of the solution, symmetric, shape (6, 6).
        upper: Upper bounds [N], shape (m,).
    """
    import daqp

    # forces in newtons beside torques in newton metres: to one scale first
    size = np.sqrt(np.maximum(S.diagonal(), 1e-12))
    scaled = S / np.outer(size, size)
    scaled[np.diag_indices(6)] += 1e-9
    C = np.linalg.cholesky(scaled)
    P = np.linalg.solve(C, G / size[:, None])
    r = np.linalg.solve(C, wrench / size)
    m = len(upper)
    if not m:
        # in the air: no forces
        return np.zeros(0), -np.linalg.solve(C.T, r) / size
    H = P.T @ P
    H[np.diag_indices(m)] += FORCE_REGULARIZATION * float(H.diagonal().max())
    # in units in which the solution is about one, so that the solver's tolerances fit
    unit = max(float(upper.max()), 1e-9)
    x, _, flag, _ = daqp.solve(
        H, -(P.T @ r) / unit, np.zeros((0, m)), upper / unit, np.zeros(m), np.zeros(m, np.int32)
    )
    if flag < 1:
        raise PoiseError(f"the forces of the ground were not found: daqp stops with {flag}")
    magnitude = np.clip(unit * np.asarray(x), 0.0, upper)
    correction = np.linalg.solve(C.T, P @ magnitude - r) / size
    return magnitude, correction
