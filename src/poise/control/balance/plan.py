"""One plan: the optimisation of one state (M chapter 5), in the thesis's form or with cones.

    min |W_t (a_des - a)|² + β_l |L̇_des - L̇|² + β_a |Ḣ_des - Ḣ|² + Σ β_p |p̈_des - p̈|²
    subject to   J_sup a + J̇_sup v = a_sup

Supports that fade are no constraints but objectives, w / (1 - w) times SOFT. With cones all are
objectives, FIRM at full weight, for friction may not let them stand still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poise.control.balance.cones import Cones, least_dear
from poise.control.balance.least_squares import Reduced, hold, reduce
from poise.control.balance.momentum import Wish, consistent_weight
from poise.control.balance.tasks import Tasks, cross
from poise.math.arrays import Floats, Ints

SOFT, FIRM = 10.0, 1e3
"""Weight of a support that has faded by half, and of one that stands, beside tracking at 1."""

HELD = 0.999
"""From this weight on a support is a constraint."""


class Plan(NamedTuple):
    """What was found.

    Attributes:
        a: Accelerations, shape (nv,).
        force: Of the ground, whole [N], shape (3,).
        rate: L̇ and Ḣ [N, N·m], shape (6,).
        beta: β_a.
        points: Where ground forces act [m], shape (k, 3), and the forces [N], shape (k, 3); with
            cones only.
        forces: Shape (k, 3).
        torque: Of the joints [N·m], shape (nv,), 0 at the root; with cones only.
        miss: How far constraints contradict each other [m/s², rad/s²].
    """

    a: Floats
    force: Floats
    rate: Floats
    beta: float
    points: Floats
    forces: Floats
    torque: Floats | None
    miss: float


class Rows(NamedTuple):
    """What is asked, in the accelerations themselves.

    Attributes:
        a_des: Of tracking, shape (nv,), and its weights W_t > 0.
        weight: Shape (nv,).
        C: Supports, shape (6 s, nv): C a = d.
        d: Shape (6 s,).
        share: Their weights, shape (s,).
        E: Further objectives with their weights, shape (m, nv): E a = e.
        e: Shape (m,).
    """

    a_des: Floats
    weight: Floats
    C: Floats
    d: Floats
    share: Floats
    E: Floats
    e: Floats


class Ground(NamedTuple):
    """What the cones need to know.

    Attributes:
        cones: Their edges.
        points: Of the soles [m], shape (k, 3).
        most: λ_max [N], shape (k EDGES,).
        owner: Which support a point belongs to, shape (k,).
        turn: Orientation of the root, shape (3, 3).
        origin: Its place [m], shape (3,).
    """

    cones: Cones
    points: Floats
    most: Floats
    owner: Ints
    turn: Floats
    origin: Floats


def plan(rows: Rows, now: Tasks, wished: Wish | None, gamma: float, weight: Floats,
         ground: Ground | None) -> Plan:  # fmt: skip
    """Accelerations, and with cones ground forces and torques.

    Args:
        rows: What is asked.
        now: The state.
        wished: Of the momentum, for the angular objective; None is without.
        gamma: γ.
        weight: Force of gravity on the whole [N], shape (3,).
        ground: Cones; None is the thesis's form.
    """
    per = 1.0 / rows.weight
    reduced, miss = _reduced(rows, per, firm=ground is not None)
    a = rows.a_des + per * reduced.x
    beta = 0.0
    if wished is not None:
        reduced, beta = _turned(reduced, a, per, now, wished, gamma, weight)
        a = rows.a_des + per * reduced.x
    torque, points, forces = None, np.zeros((0, 3)), np.zeros((0, 3))
    if ground is not None:
        a, torque, forces = _grounded(reduced, a, per, now, ground)
        points = ground.points
    rate = now.A @ a + now.rate
    return Plan(a, rate[:3] - weight, rate, beta, points, forces, torque, miss)


def _reduced(rows: Rows, per: Floats, firm: bool) -> tuple[Reduced, float]:
    """The answer without the angular objective."""
    if not firm and (rows.share >= HELD).all():
        held = hold(rows.C * per, rows.d - rows.C @ rows.a_des)
        return reduce(held, rows.E * per, rows.e - rows.E @ rows.a_des), held.miss
    if firm:
        factor = FIRM * rows.share
        stand = np.zeros(len(rows.share), dtype=bool)
    else:
        stand = rows.share >= HELD
        factor = SOFT * rows.share / np.maximum(1.0 - rows.share, 1e-9)
    hard = np.repeat(stand, 6)
    held = hold(rows.C[hard] * per, rows.d[hard] - rows.C[hard] @ rows.a_des)
    soft = ~hard
    by = np.repeat(factor, 6)[soft, None]
    E = np.concatenate([rows.E, by * rows.C[soft]])
    e = np.concatenate([rows.e, by[:, 0] * rows.d[soft]])
    return reduce(held, E * per, e - E @ rows.a_des), held.miss


def _turned(reduced: Reduced, a: Floats, per: Floats, now: Tasks, wished: Wish, gamma: float,
            weight: Floats) -> tuple[Reduced, float]:  # fmt: skip
    """The answer with the angular objective, at the weight that agrees with it, and that weight."""
    E = now.A[3:] * per
    give = reduced.give(E)
    T = give @ E.T
    rate = now.A @ a + now.rate
    fz = max(rate[2] - weight[2], -0.1 * weight[2])
    lack = wished.angular - rate[3:]
    away = wished.pivot - wished.pressure
    beta = gamma * float(np.hypot(*away)) + consistent_weight(lack, T, gamma, fz)
    if beta <= 0.0:
        return reduced, 0.0
    return reduced.then(give, T, lack, beta), beta


def _grounded(
    reduced: Reduced, a: Floats, per: Floats, now: Tasks, ground: Ground
) -> tuple[Floats, Floats, Floats]:
    """Accelerations, torques and forces of the ground that go together."""
    B = now.M[:6] * per
    give = reduced.give(B)
    need = now.M[:6] @ a + now.h[:6]
    G = ground.cones.wrenches(ground.points - ground.origin, ground.turn)
    share, short = least_dear(G, need, give @ B.T, ground.most)
    a = a + per * (short @ give)
    forces = ground.cones.forces(share)
    torque = now.M @ a + now.h
    # forces at points of links, as wrenches at the links' origins
    arm = ground.points - now.p[ground.owner]
    wrenches = np.zeros((len(now.J), 6))
    np.add.at(wrenches, ground.owner, np.concatenate([forces, cross(arm, forces)], axis=1))
    torque -= np.tensordot(wrenches, now.J, axes=2)
    torque[:6] = 0.0
    return a, torque, forces
