"""What balance wants of the momentum (M 5.9, 5.15 to 5.17, with its slips put right).

Linear, level axes only:

    L̇_des = k_s m (c_des - c) + k_d (L_des - L) + L̇_mot

(5.9 prints a minus before k_d: unstable.) c_des is a point given relative to the centre s of the
supports, L_des = 0 then; or it moves as the mass centre of the motion does over its own supports,
c_des = s + (c_mot - s_mot), with L_des and L̇_mot the motion's. It is kept inside the supports.

Angular. A ground force f_z that acts at the pressure's centre p while the momentum asks for the
pivot g (CMP) = c - (c_z - z) L̇ / f_z changes the angular momentum by Ḣ = (p - g) x f. So if g lies
inside the supports, p = g and Ḣ_des = 0, the thesis's choice. If it lies outside, p cannot follow:
with p the nearest point of the supports, Ḣ_des = (p - g) x f, the turn of the upper body that stops
a fall which the feet alone cannot. `reach` bounds |p - g|; 0 is the thesis.

The weight of the angular objective is γ |p - g| (5.17), with f_z |p - g| = |Ḣ_xy|: it depends on
the answer itself, and the thesis takes it from the step before, which rings. Here it has two parts,
β_a = γ |p - g| of the wish and γ |x_xy| / f_z of x = Ḣ_des - Ḣ, what is left to be asked for. The
second is taken where it agrees with its own answer,

    β = γ |x_xy(β)| / f_z,   x(β) = (1 + β T)^-1 x(0),   T = S K^-1 Sᵀ,

by the eigenvalues of the 3 x 3 matrix T. With the thesis's Ḣ_des = 0 the first is 0, and β_a is
γ |p - g| of the answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poise.control.balance.tasks import Tasks
from poise.math.arrays import Floats
from poise.math.polygon import nearest_point

AHEAD = 0.3
"""Time for which the speed of the mass centre counts in the strain [s]: 1/ω of an upright body. The
speed of the motion itself counts, too: at half of it, it is easier to hold."""


class Wish(NamedTuple):
    """What balance wants.

    Attributes:
        linear: L̇_des, level [N], shape (2,).
        angular: Ḣ_des [N·m], shape (3,).
        pressure: Where the ground should push [m], shape (2,).
        pivot: The CMP of L̇_des [m], shape (2,).
        center: c_des [m], shape (2,).
        strain: How far from there the speed of the mass centre takes it [m].
    """

    linear: Floats
    angular: Floats
    pressure: Floats
    pivot: Floats
    center: Floats
    strain: float


def wish(
    now: Tasks,
    v: Floats,
    supports: Floats,
    center: tuple[Floats, Floats, Floats],
    gains: tuple[float, float],
    reach: float,
    gravity: float,
    ground: float = 0.0,
) -> Wish:
    """Rates of momentum that keep the mass centre over the supports.

    Args:
        now: The state.
        v: Its velocities, shape (nv,).
        supports: Corners of the supports, anticlockwise [m], shape (m, 2), m >= 1.
        center: c_des [m], its velocity and acceleration, shape (2,) each.
        gains: k_s [1/s²], k_d [1/s].
        reach: How far from the supports the pivot may lie [m]; inf is anywhere.
        gravity: Its size [m/s²].
        ground: Height of the ground [m].
    """
    mass = now.mass
    fz = mass * max(gravity, 1e-3)
    c, L = now.c[:2], now.A[:2] @ v
    goal = nearest_point(supports, center[0])
    linear = mass * (gains[0] * (goal - c) + center[2]) + gains[1] * (mass * center[1] - L)
    height = max(now.c[2] - ground, 1e-3)
    pivot = c - (height / fz) * linear
    pressure = nearest_point(supports, pivot)
    away = pivot - pressure
    far = math.hypot(away[0], away[1])
    if far > reach:
        pivot = pressure + (reach / far) * away
        away = pivot - pressure
        linear = (c - pivot) * (fz / height)
    # (p - g) x (0, 0, fz), level
    angular = np.array([-away[1] * fz, away[0] * fz, 0.0])
    off = goal - c - AHEAD * L / mass
    return Wish(linear, angular, pressure, pivot, goal, math.hypot(off[0], off[1]))


def consistent_weight(lack: Floats, T: Floats, gamma: float, fz: float) -> float:
    """β = γ |x_xy(β)| / f_z, where the weight agrees with the answer.

    Args:
        lack: x(0) = Ḣ_des - Ḣ(0) [N·m], shape (3,).
        T: How Ḣ gives way, symmetric, shape (3, 3).
        gamma: γ.
        fz: Force of the ground [N].
    """
    t, U = np.linalg.eigh(T)
    part = lack @ U
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
