"""Effort limits: the implicit drive with bounded forces.

A drive applies tau = Q - K a, and a joint can apply at most its effort: a hinge or slide
|tau| <= L, a ball a torque no longer than L, or |tau_k| <= L_k per axis. With P the projection
onto these bounds, the bounded law and the equation of motion are

    tau = P(Q - K a),    M a + h = tau

With one K per ball this is the stationarity of a strictly convex function of a (kinetic energy
plus, per joint, a spring whose force is constant beyond its limit), so it has exactly one
solution, and the step is as stable as the unbounded one: a saturated joint that yields under load
loads its neighbors within the same step. Multiplied by M^-1 and K^-1 it reads
(K^-1 + M^-1) tau = K^-1 Q + M^-1 h wherever tau is inside its bound.

Solved by Newton's method. With x = Q - K a, the derivative of the law is tau = Q_e - K_e a with

    within the bound         K_e = K                          Q_e = Q
    saturated axis           K_e = 0                          Q_e = P(x)
    saturated ball, u = x/|x|, s = L/|x|
                             K_e = s (K - K u u'K / (u'K u))  Q_e = P(x) + K_e a

and (M + K_e) a_new = Q_e - h. A full step may overshoot where joints change between the cases, so
the step's length is that where the derivative of the convex function along it vanishes, found by
bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poise.errors import PoiseError
from poise.model.character import Character
from poise.reference.spatial import Array
from poise.reference.tree import build_tree

ITERATIONS = 200
TOLERANCE = 1e-11  # of the forces


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


def bounded(limits: list[Limit], desired: Array) -> Array:
    """P: the forces (nv,) cut at their limits, with their directions."""
    tau: Array = desired.copy()
    for limit in limits:
        length = float(np.linalg.norm(tau[limit.v]))
        if length > limit.effort:
            tau[limit.v] *= limit.effort / length
    return tau


def saturated(limits: list[Limit], desired: Array) -> NDArray[np.bool_]:
    """Which limits the desired forces (nv,) exceed."""
    over = [bool(np.linalg.norm(desired[lim.v]) > lim.effort) for lim in limits]
    return np.array(over, dtype=bool)


def solve_bounded(
    M: Array, h: Array, Q: Array, K: Array, limits: list[Limit], a: Array
) -> tuple[Array, Array]:
    """Acceleration and forces of the bounded law, each of shape (nv,).

    Args:
        M: Mass matrix, shape (nv, nv).
        h: Bias force, shape (nv,).
        Q: Drive force at a = 0, shape (nv,).
        K: How much each drive force falls with its acceleration, shape (nv,).
        limits: Bounds of the forces.
        a: Acceleration to start from, shape (nv,).
    """

    def residual(a: Array) -> Array:
        r: Array = M @ a + h - bounded(limits, Q - K * a)
        return r

    for _ in range(ITERATIONS):
        tau = bounded(limits, Q - K * a)
        r = residual(a)
        scale = np.abs(tau).max() + np.abs(h).max() + 1e-300
        if np.abs(r).max() <= TOLERANCE * scale:
            return a, tau
        tangent = M + derivative(limits, Q - K * a, K)
        step = np.asarray(np.linalg.solve(tangent, -r), dtype=float)
        a = a + _length(a, step, residual) * step
    raise PoiseError(f"the bounded drive is not solved after {ITERATIONS} iterations")


def derivative(limits: list[Limit], x: Array, K: Array) -> Array:
    """K_e, symmetric and positive semidefinite, (nv, nv)."""
    K_e = np.diag(K)
    for limit in limits:
        length = float(np.linalg.norm(x[limit.v]))
        if length <= limit.effort:
            continue
        u, k = x[limit.v] / length, K[limit.v]
        along = float(u @ (k * u))
        if along > 0:
            block = np.diag(k) - np.outer(k * u, k * u) / along
            K_e[limit.v, limit.v] = limit.effort / length * block
    return K_e


def _length(a: Array, step: Array, residual: Callable[[Array], Array]) -> float:
    """Where the slope along a step, negative at its start, vanishes; at most 1."""

    def slope(t: float) -> float:
        return float(step @ residual(a + t * step))

    if slope(1.0) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) <= 0.0 else (low, middle)
    return (low + high) / 2
