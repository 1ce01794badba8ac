"""Forces of the ground on the points that stand, inside their friction cones.

A free root has six equations and no motor: what it needs must come from the ground. With points
p_i, cones of friction μ cut to pyramids of four edges, f_i = Σ_e λ_ie d_e, λ >= 0,

    min | W (w - Σ_i [f_i; p_i x f_i]) |² + ε |λ|²,

w the wrench that the root needs, force [N] and torque about the mass centre [N·m], W = diag(1, 1/l)
with l the character's size. Solved by daqp, an active-set method.
"""

from __future__ import annotations

import math

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats, number

EDGES = 4
EASE = 1e-6
"""ε, as a share of the largest entry of the quadratic form: forces are spread evenly."""


class GroundForces:
    """Forces at points of the ground that give a wrench, as nearly as friction allows.

    Args:
        friction: Coefficient μ.
        size: Length by which torques are weighed against forces [m].
    """

    def __init__(self, friction: float, size: float) -> None:
        self.friction = number(friction, "friction", positive=False, unit="ratio")
        if self.friction < 0.0:
            raise PoiseError(f"friction is {friction:g}; it must be 0 or more")
        self.size = number(size, "size", unit="m")
        # inside the round cone: the pyramid's edges lie on it
        around = np.arange(EDGES) * (2.0 * math.pi / EDGES)
        ring = self.friction * np.stack([np.cos(around), np.sin(around)], axis=1)
        self.edges = np.column_stack([ring, np.ones(EDGES)])

    def __call__(self, points: Floats, center: Floats, wrench: Floats) -> Floats:
        """Forces (k, 3) [N] at points (k, 3) [m]; a level ground.

        Args:
            points: Where they act.
            center: The mass centre [m], shape (3,).
            wrench: Wanted: force, and torque about the mass centre, shape (6,).
        """
        k = len(points)
        if not k:
            return np.zeros((0, 3))
        import daqp

        arm = points - center
        edges = np.broadcast_to(self.edges, (k, EDGES, 3))
        turning = np.cross(arm[:, None], edges) / self.size
        A = np.concatenate([edges, turning], axis=2).reshape(k * EDGES, 6).T
        wanted = np.concatenate([wrench[:3], wrench[3:] / self.size])
        # in units of the wanted force, so that the solver's tolerances fit
        scale = max(float(np.linalg.norm(wanted)), 1e-9)
        H = A.T @ A
        H[np.diag_indices(k * EDGES)] += EASE * float(H.diagonal().max())
        most = np.full(k * EDGES, 1e6)
        least = np.zeros(k * EDGES)
        none = np.zeros((0, k * EDGES))
        x, _, flag, _ = daqp.solve(H, -(A.T @ wanted) / scale, none, most, least)
        if flag < 1:
            raise PoiseError(f"the forces of the ground were not found: daqp stops with {flag}")
        weights: Floats = scale * np.maximum(np.asarray(x), 0.0).reshape(k, EDGES)
        return weights @ self.edges
