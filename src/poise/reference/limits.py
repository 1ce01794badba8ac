"""Stable PD with effort limits that hold in the same step.

A drive wants tau = Q - K a. Where that is more than the joint can give, the joint is no drive
but a force: Q = limit in the direction of what it wants, K = 0. Which joints those are depends
on a, and a on them, so the dynamics is solved again until the answer agrees with itself:

    solve (M + K) a = Q - h, all joints driven
    repeat: saturated = joints with |Q - K a| > limit at the a just found, but for those that
                        are forces already and now want to push the other way
            stop if they are the same as before, and balls push the same way
            make them forces, the others drives; solve again

A joint that wants to push the other way has been held too long: it gave way, swung past its
target under a force that no longer answers to a, and is let go, to be a drive, before it may be
a force to the other side. Without this rule joints flip from side to side, and in one of fifteen
to one of three random trees a joint ends up pushing against what its drive asks.

From the seventh pass on a joint that has been made a force stays that force and the set only
grows, which ends the search; in one of two hundred random trees of hinges and slides, or fewer, a
joint then gives its limit where less was asked. Each pass is one solve in linear time. One pass
is not enough: a joint that gives way unloads or loads its neighbours.

A ball joint's limit is the length of its torque vector, and the direction that of the torque it
wanted in the pass before, which the passes bring to rest; with three numbers, each axis of the
child's frame has its own limit, like a hinge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.model.character import Character
from poise.reference.aba import Method, solve_drive
from poise.reference.drive import Form, drive, target_arrays
from poise.reference.rnea import GRAVITY
from poise.reference.spatial import Array
from poise.reference.tree import build_tree

# passes in which joints may leave the set again
FREE_PASSES = 6

# a ball's direction is settled when its force moves by less than this part of the limit
SETTLED = 1e-2


@dataclass(frozen=True)
class Limit:
    """The largest length of the joint forces tau[v] [N, N·m]."""

    v: slice
    effort: float


def effort_limits(character: Character) -> list[Limit]:
    """The limits that a character's joints carry, in the order of the joints."""
    limits: list[Limit] = []
    for body in build_tree(character).bodies:
        effort = body.joint.effort
        if effort is None:
            continue
        if np.ndim(effort) == 0:
            limits.append(Limit(body.v, float(np.asarray(effort))))
        else:
            axes = range(body.v.start, body.v.stop)
            limits += [
                Limit(slice(i, i + 1), float(x))
                for i, x in zip(axes, np.asarray(effort), strict=True)
            ]
    return limits


def limited_stable_pd(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float,
    method: Method = "maba",
    form: Form = "implicit",
    *,
    limits: list[Limit] | None = None,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """stable_pd with joint forces that stay within their limits.

    Args:
        limits: Effort limits; the character's own unless given.
        Others: As in stable_pd.

    Returns:
        a = dv/dt and tau, each of shape (nv,).
    """
    if limits is None:
        limits = effort_limits(character)
    Q, K = drive(character, q, v, *target_arrays(target), kp, kd, dt, form)
    Q_now, K_now = Q.copy(), K.copy()
    force: dict[int, Array] = {}  # what each saturated joint gives, by its place in limits
    passes = 0
    while True:
        a = solve_drive(character, q, v, Q_now, K_now, method, gravity=gravity, external=external)
        wanted = saturated_forces(limits, Q - K * a)
        if passes < FREE_PASSES:
            wanted = {i: f for i, f in wanted.items() if i not in force or f @ force[i] >= 0}
        else:
            wanted = {**wanted, **force}
        if wanted.keys() == force.keys() and all(
            np.linalg.norm(wanted[i] - force[i]) <= SETTLED * limits[i].effort for i in force
        ):
            return a, Q_now - K_now * a
        force, passes = wanted, passes + 1
        Q_now, K_now = Q.copy(), K.copy()
        for i, f in force.items():
            Q_now[limits[i].v], K_now[limits[i].v] = f, 0.0


def saturated_forces(limits: list[Limit], wish: Array) -> dict[int, Array]:
    """The joints that want more than they have, with the force they give instead."""
    forces: dict[int, Array] = {}
    for i, limit in enumerate(limits):
        tau = wish[limit.v]
        length = float(np.linalg.norm(tau))
        if length > limit.effort:
            forces[i] = tau * (limit.effort / length)
    return forces
