"""The twin of the core's planner: the same plans in NumPy, one copy at a time, to read and to test.

It follows the chapters: `stance` what stands, `momentum` what balance wants, `goals` and
`soft_limits` what else is asked, `plan` the optimisation, `least_squares` and `cones` its solvers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from poise import dynamics
from poise.control.balance.asked import velocity_of
from poise.control.balance.plan import Plan, plan
from poise.control.balance.tasks import Tasks, tasks_of
from poise.math.arrays import Floats
from poise.simulation.command import Target

if TYPE_CHECKING:
    from poise.control.balance.balance import Balance


def plans(balance: Balance, state: Any, target: Any) -> list[tuple[Plan, dict[str, Any]]]:
    """What `Balance.told` finds, for each copy: the plan, and strain, shares, c_des and more.

    Args:
        balance: The controller.
        state: One state or n.
        target: Target, or positions.
    """
    target = target if isinstance(target, Target) else Target.of(target)
    scene = balance.scene
    q, v = np.atleast_2d(state.q), np.atleast_2d(velocity_of(state, balance.scene.nv))
    n, nq, nv = len(q), scene.nq, scene.nv
    tq = np.broadcast_to(target.q, (n, nq))
    tv = np.zeros((n, nv)) if target.v is None else np.broadcast_to(target.v, (n, nv))
    ta = np.zeros((n, nv)) if target.a is None else np.broadcast_to(target.a, (n, nv))
    points = balance._points()
    now = tasks_of(scene, q, v, balance.gravity, points)
    then = tasks_of(
        scene, np.ascontiguousarray(tq), np.ascontiguousarray(tv), balance.gravity, points
    )
    time = np.broadcast_to(np.nan if target.time is None else target.time, (n,))
    return [
        _plan(balance, now[i], then[i], (q[i], v[i]), (tq[i], tv[i], ta[i]), float(time[i]), i)
        for i in range(n)
    ]


def _plan(
    balance: Balance,
    now: Tasks,
    then: Tasks,
    state: tuple[Floats, Floats],
    target: tuple[Floats, Floats, Floats],
    time: float,
    copy: int,
) -> tuple[Plan, dict[str, Any]]:
    (q, v), (tq, tv, ta) = state, target
    k_s, k_d = balance.k_s, balance.k_d
    if balance._limits is not None:
        k_s, k_d = balance._limits.stiffen(q, k_s, k_d)
    a_des = dynamics.pd_force(balance.character, q, v, (tq, tv), k_s, k_d) + ta
    places = balance._soles.places(now)
    share = balance._share(now, then, places, time)
    rows = balance._rows(now, then, a_des, v, share, places)
    wished = balance._wish(now, then, v, (tv, ta), places, share)
    if wished is not None and "linear" in balance.objectives:
        root = math.sqrt(balance.beta_linear)
        E = np.concatenate([rows.E, root * now.A[:2]])
        e = np.concatenate([rows.e, root * (wished.linear - now.rate[:2])])
        rows = rows._replace(E=E, e=e)
    weight = now.mass * balance.gravity
    turned = wished if "angular" in balance.objectives else None
    ground = balance._grounds(q, now, places, share, copy)
    found = plan(rows, now, turned, balance.gamma, weight, ground)
    if found.torque is not None:
        # who has fallen touches with what is not planned for
        found = found._replace(torque=balance._upright(now, places) * found.torque)
    strain = 0.0 if wished is None else wished.strain
    center = None if wished is None else wished.center
    return found, {"supports": share, "center": center, "com": now.c, "strain": strain}
