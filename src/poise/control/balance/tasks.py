"""What the optimisation needs to know of a state: momentum, inertia and points, from one core call.

With a the generalized accelerations and v the velocities,

    L̇ = A_l a + r,   Ḣ = A_a a + s          momentum, about the mass centre c (M 5.7, 5.13),
    M a + h = tau + Jᵀ f                     motion (h with gravity),
    p̈ = J a + J̇ v                            points and links (appendices A and C).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from poise import _core
from poise.math.arrays import Floats
from poise.model.scene import Scene


class Tasks(NamedTuple):
    """Numbers of one state, in world axes; k points.

    Attributes:
        A: Momentum matrix, linear then angular, shape (6, nv).
        M: Mass matrix with armature, shape (nv, nv).
        J: Of the points, linear then angular, shape (k, 6, nv).
        h: Bias force with gravity [N, N·m], shape (nv,).
        rate: Ȧ v, the rate of momentum at a = 0 [N, N·m], shape (6,).
        c: Mass centre [m], shape (3,).
        bias: J̇ v of the points, shape (k, 6).
        p: Places of the points [m], shape (k, 3).
        R: Orientations of their links, shape (k, 3, 3).
    """

    A: Floats
    M: Floats
    J: Floats
    h: Floats
    rate: Floats
    c: Floats
    bias: Floats
    p: Floats
    R: Floats

    @property
    def mass(self) -> float:
        """Of the whole [kg]: how a free root's velocity moves its momentum."""
        return float(self.A[0, 0])


def tasks_of(scene: Scene, q: Floats, v: Floats, gravity: Floats, points: Floats) -> list[Tasks]:
    """Tasks of each of n states.

    Args:
        scene: The scene; its own numbers, if it comes from a World.
        q: Positions, shape (n, nq).
        v: Velocities, shape (n, nv).
        gravity: [m/s²], shape (3,).
        points: Link and place in its frame [m], shape (k, 4).
    """
    n, k, nv = len(q), len(points), scene.nv
    given: tuple[Any, Any] = (q[0], v[0]) if n == 1 else (q, v)
    rows: Any = _core.tasks(scene.model, scene.overrides, n, *given, gravity, points)
    J = 6 * nv + nv * nv
    h = J + 6 * nv * k
    ends = (h + nv, h + nv + 6, h + nv + 9, h + nv + 9 + 6 * k, h + nv + 9 + 9 * k)
    return [
        Tasks(
            row[: 6 * nv].reshape(6, nv),
            row[6 * nv : J].reshape(nv, nv),
            row[J:h].reshape(k, 6, nv),
            row[h : ends[0]],
            row[ends[0] : ends[1]],
            row[ends[1] : ends[2]],
            row[ends[2] : ends[3]].reshape(k, 6),
            row[ends[3] : ends[4]].reshape(k, 3),
            row[ends[4] :].reshape(k, 3, 3),
        )
        for row in rows
    ]


def cross(a: Floats, b: Floats) -> Floats:
    """a x b along the last axis; NumPy's own takes five times as long for few vectors."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return out


def matrices(quats: Floats) -> Floats:
    """Rotation matrices (..., 3, 3) of unit quaternions w x y z (..., 4)."""
    # R = I + 2 w [u] + 2 [u]²
    products = 2.0 * quats[..., :, None] * quats[..., None, :]
    w, x, y, z = products[..., 0, :], products[..., 1, :], products[..., 2, :], products[..., 3, :]
    out = np.empty((*quats.shape[:-1], 3, 3))
    out[..., 0, 0] = 1.0 - y[..., 2] - z[..., 3]
    out[..., 0, 1] = x[..., 2] - w[..., 3]
    out[..., 0, 2] = x[..., 3] + w[..., 2]
    out[..., 1, 0] = x[..., 2] + w[..., 3]
    out[..., 1, 1] = 1.0 - x[..., 1] - z[..., 3]
    out[..., 1, 2] = y[..., 3] - w[..., 1]
    out[..., 2, 0] = x[..., 3] - w[..., 2]
    out[..., 2, 1] = y[..., 3] + w[..., 1]
    out[..., 2, 2] = 1.0 - x[..., 1] - y[..., 2]
    return out
