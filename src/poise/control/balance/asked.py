"""The same plan in the core: what a Balance asks, as the core reads it.

The core's planner (`cpp/include/poise/balance`) does for all copies what `twin.plans` does for one
in NumPy: tasks, shares, wishes, least squares and cones. What is here is read in every call.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from poise.control.balance.cones import EASE
from poise.control.balance.goals import FARTHEST, STIFFNESS
from poise.control.balance.least_squares import RANK
from poise.control.balance.momentum import AHEAD
from poise.control.balance.plan import FIRM, HELD, SOFT
from poise.control.balance.stance import LEANS, LEAVES, LIFTS, TILTS
from poise.errors import PoiseError
from poise.math.arrays import Floats


class Asked(NamedTuple):
    """Names as in `PlanCall` of the core.

    Attributes:
        points: Links that may stand, then those of goals, and places in them [m], shape (k, 4).
        corners: Of the soles: which sole, and the point in its link [m], shape (c, 4).
        goals: Where the points of goals should be [m], shape (g, 3).
        weight: Of tracking, shape (nv,).
        limits: Joints with a range, shape (m, 9); `SoftLimits.table`.
        friction: Of each sole and the ground, shape (s,) or (n, s).
    """

    points: Floats
    corners: Floats
    goals: Floats
    weight: Floats
    limits: Floats
    stiffening: tuple[float, float]
    k_s: Floats
    k_d: Floats
    k_support: tuple[float, float]
    k_linear: tuple[float, float]
    k_goal: tuple[float, float]
    center: tuple[float, float]
    beta_linear: float
    gamma: float
    reach: float
    margin: float
    ground: float
    friction: Floats
    goal_weight: float
    press: float
    linear: bool
    angular: bool
    cones: bool
    motion: bool
    always: bool
    lifts: tuple[float, float] = LIFTS
    leaves: tuple[float, float] = LEAVES
    tilts: tuple[float, float] = TILTS
    leans: tuple[float, float] = LEANS
    farthest: float = FARTHEST
    soft: float = SOFT
    firm: float = FIRM
    held: float = HELD
    ease: float = EASE
    rank: float = RANK
    ahead: float = AHEAD


K_GOAL = (STIFFNESS, 2.0 * math.sqrt(STIFFNESS))
"""k_s, k_d of a goal [1/s², 1/s]."""


class Told(NamedTuple):
    """What the core tells of n plans.

    Attributes:
        a: Accelerations, shape (n, nv).
        torque: Of the joints, with cones, shape (n, nv).
        rate: L̇ and Ḣ [N, N·m], shape (n, 6).
        beta: β_a, shape (n,).
        miss: How far constraints contradict each other, shape (n,).
        strain: Shape (n,).
        center: c_des [m], NaN without, shape (n, 2).
        com: Mass centre [m], shape (n, 3).
        mass: Of each copy [kg], shape (n,).
        share: How firmly each sole stands, shape (n, s).
        points: Corners of the soles [m], shape (n, c, 3), and the forces on them [N]; with cones.
        forces: Shape (n, c, 3).
    """

    a: Floats
    torque: Floats
    rate: Floats
    beta: Floats
    miss: Floats
    strain: Floats
    center: Floats
    com: Floats
    mass: Floats
    share: Floats
    points: Floats
    forces: Floats

    @classmethod
    def of(cls, a: Floats, torque: Floats, told: Floats, soles: int) -> Told:
        """The numbers by their names."""
        n = len(told)
        at = told[:, 15 + soles :].reshape(n, -1, 6)
        return cls(
            a,
            torque,
            told[:, :6],
            told[:, 6],
            told[:, 7],
            told[:, 8],
            told[:, 9:11],
            told[:, 11:14],
            told[:, 14],
            told[:, 15 : 15 + soles],
            at[..., :3],
            at[..., 3:],
        )


def rows_of(value: Any, n: int, size: int, name: str) -> Floats:
    """(size,) or (n, size), contiguous, as the core takes them."""
    array: Floats = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape not in ((size,), (n, size)):
        raise PoiseError(f"{name} has shape {array.shape}, expected ({size},) or ({n}, {size})")
    return array.reshape(-1) if array.size == size else array


def velocity_of(state: Any, nv: int) -> Floats:
    """Velocities of a state; one of positions only is at rest."""
    if getattr(state, "moving", True):
        v: Floats = state.v
        return v
    return np.zeros((*state.q.shape[:-1], nv))
