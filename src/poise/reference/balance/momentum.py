"""Desired rates of momentum (M 5.9, 5.15 to 5.17, with its slips put right).

Linear, horizontal axes only:

    L̇_des = k_s m (c_des - c) + k_d (L_des - L) + L̇_mot

(5.9 prints a minus before k_d: unstable.) c_des is a point given relative to the center s of the
supports, with L_des = 0; or it moves as the center of mass of the motion does over its own
supports, c_des = s + (c_mot - s_mot), with L_des and L̇_mot the motion's. It is kept inside the
supports.

Angular. A ground force f_z that acts at the center of pressure p while the linear momentum needs
the centroidal moment pivot g = c - (c_z - z) L̇ / f_z changes the angular momentum by Ḣ = (p - g) x
f. So if g lies inside the supports, p = g and Ḣ_des = 0, the thesis's choice. If it lies outside, p
cannot follow: with p the closest point of the supports, Ḣ_des = (p - g) x f, the turn of the upper
body that stops a fall which the feet alone cannot. `max_cmp_offset` bounds |p - g|; 0 is the
thesis.

The weight of the angular objective is γ |p - g| (5.17), with f_z |p - g| = |Ḣ_xy|: it depends on
the solution itself, and the thesis takes it from the step before, which rings. Here it has two
parts, β_a = γ |p - g| of the desired momentum and γ |x_xy| / f_z of x = Ḣ_des - Ḣ, the remaining
error. The second is taken where it agrees with its own solution,

    β = γ |x_xy(β)| / f_z,   x(β) = (1 + β T)^-1 x(0),   T = S K^-1 Sᵀ,

by the eigenvalues of the 3 x 3 matrix T. With the thesis's Ḣ_des = 0 the first is 0, and β_a is
γ |p - g| of the solution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poise.math.arrays import Floats
from poise.math.polygon import nearest_point

if TYPE_CHECKING:
    from poise.reference.balance.plan import Tasks


class MomentumTask(NamedTuple):
    """Desired rates of momentum.

    Attributes:
        linear: L̇_des, horizontal [N], shape (2,).
        angular: Ḣ_des [N·m], shape (3,).
        cop: Desired center of pressure [m], shape (2,).
        cmp: Centroidal moment pivot of L̇_des [m], shape (2,).
        com: c_des [m], shape (2,).
        capture_point_error: Distance from there to where the velocity of the center of mass leads
            it [m].
    """

    linear: Floats
    angular: Floats
    cop: Floats
    cmp: Floats
    com: Floats
    capture_point_error: float


def momentum_task(
    now: Tasks,
    v: Floats,
    supports: Floats,
    com: tuple[Floats, Floats, Floats],
    gains: Sequence[float],
    max_cmp_offset: float,
    gravity: float,
    ground: float = 0.0,
    capture_time: float = 0.3,
) -> MomentumTask:
    """Rates of momentum that keep the center of mass over the supports.

    Args:
        now: The state.
        v: Its velocities, shape (nv,).
        supports: Corners of the supports, counterclockwise [m], shape (m, 2), m >= 1.
        com: c_des [m], its velocity and acceleration, shape (2,) each.
        gains: k_s [1/s²], k_d [1/s].
        max_cmp_offset: Largest distance of the CMP from the supports [m]; inf is anywhere.
        gravity: Its size [m/s²].
        ground: Height of the ground [m].
        capture_time: 1/ω of an upright body, for the capture point error [s]. The velocity of the
            motion itself counts, too: at half of it, it is easier to hold.
    """
    mass = now.mass
    fz = mass * max(gravity, 1e-3)
    c, L = now.c[:2], now.A[:2] @ v
    goal = nearest_point(supports, com[0])
    linear = mass * (gains[0] * (goal - c) + com[2]) + gains[1] * (mass * com[1] - L)
    height = max(now.c[2] - ground, 1e-3)
    cmp = c - (height / fz) * linear
    cop = nearest_point(supports, cmp)
    offset = cmp - cop
    distance = math.hypot(offset[0], offset[1])
    if distance > max_cmp_offset:
        cmp = cop + (max_cmp_offset / distance) * offset
        offset = cmp - cop
        linear = (c - cmp) * (fz / height)
    # (p - g) x (0, 0, fz), horizontal
    angular = np.array([-offset[1] * fz, offset[0] * fz, 0.0])
    error = goal - c - capture_time * L / mass
    return MomentumTask(linear, angular, cop, cmp, goal, math.hypot(error[0], error[1]))


def consistent_weight(error: Floats, T: Floats, gamma: float, fz: float) -> float:
    """β = γ |x_xy(β)| / f_z, where the weight is consistent with the solution.

    Args:
        error: x(0) = Ḣ_des - Ḣ(0) [N·m], shape (3,).
        T: Compliance of Ḣ, symmetric, shape (3, 3).
        gamma: γ.
        fz: Vertical ground force [N].
    """
    t, U = np.linalg.eigh(T)
    part = error @ U
    level, ts = U[:2] * part, t.tolist()
    (a0, a1, a2), (b0, b1, b2) = level.tolist()
    low, high = 0.0, gamma / fz * math.hypot(a0 + a1 + a2, b0 + b1 + b2)
    for _ in range(12):
        beta = 0.5 * (low + high)
        k0, k1, k2 = (1.0 / (1.0 + beta * max(x, 0.0)) for x in ts)
        found = math.hypot(a0 * k0 + a1 * k1 + a2 * k2, b0 * k0 + b1 * k1 + b2 * k2)
        if gamma / fz * found > beta:
            low = beta
        else:
            high = beta
    return 0.5 * (low + high)
