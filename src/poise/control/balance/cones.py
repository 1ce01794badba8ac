"""Ground forces inside friction cones, found together with the accelerations.

The root has no motor. With B its six rows of the mass matrix and of h,

    B a + h = Σ_i G_i f_i,   f_i = Σ_e λ_ie d_e,   0 <= λ <= λ_max,

d_e the edges of a friction pyramid. Let a(x) be the answer of the least squares without this, K its
quadratic form in x = W (a - a_des), B' = B W^-1, and b = B a + h what the root then needs. To give
the root another wrench g moves x by K^-1 B'ᵀ S^-1 (g - b), S = B' K^-1 B'ᵀ, at the cost
(g - b)ᵀ S^-1 (g - b). So accelerations, torques and forces of the least total cost are those of

    min_λ |C^-1 (G λ - b)|² + ε |λ|²,   0 <= λ <= λ_max,   S = C Cᵀ,

with four unknowns per point of a sole, solved by daqp. Where b is inside the cones, nothing moves:
this is the thesis's answer. A support that fades has its λ_max fade.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats

EDGES = 4
EASE = 1e-8
"""ε, as a share of the largest entry of the quadratic form: forces are spread evenly."""


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

    def forces(self, share: Floats) -> Floats:
        """Forces (k, 3) [N] of λ (k EDGES,)."""
        out: Floats = (share.reshape(-1, EDGES, 1) * self.edges).sum(axis=1)
        return out


def least_dear(G: Floats, need: Floats, S: Floats, most: Floats) -> tuple[Floats, Floats]:
    """λ within its bounds that comes nearest to a wrench in the metric S^-1, and S^-1 (G λ - need).

    Args:
        G: Wrench of each λ, shape (6, m).
        need: Wrench wanted [N, N·m], shape (6,).
        S: How the answer gives way, symmetric, shape (6, 6).
        most: Upper bounds [N], shape (m,).
    """
    import daqp

    # forces in newtons beside torques in newton metres: to one scale first
    size = np.sqrt(np.maximum(S.diagonal(), 1e-12))
    scaled = S / np.outer(size, size)
    scaled[np.diag_indices(6)] += 1e-9
    C = np.linalg.cholesky(scaled)
    P = np.linalg.solve(C, G / size[:, None])
    r = np.linalg.solve(C, need / size)
    m = len(most)
    if not m:
        # in the air: nothing pushes
        return np.zeros(0), -np.linalg.solve(C.T, r) / size
    H = P.T @ P
    H[np.diag_indices(m)] += EASE * float(H.diagonal().max())
    # in units in which the answer is about one, so that the solver's tolerances fit
    unit = max(float(most.max()), 1e-9)
    x, _, flag, _ = daqp.solve(
        H, -(P.T @ r) / unit, np.zeros((0, m)), most / unit, np.zeros(m), np.zeros(m, np.int32)
    )
    if flag < 1:
        raise PoiseError(f"the forces of the ground were not found: daqp stops with {flag}")
    share = np.clip(unit * np.asarray(x), 0.0, most)
    short = np.linalg.solve(C.T, P @ share - r) / size
    return share, short
