"""Feedforward: forces that the target's own motion needs, known before any error shows.

    roots    what the target needs at its free roots, weight included: M(q̄) ā + h(q̄, v̄)
    joints   what the target's acceleration takes at the present state, without the weight:
             M(q) ā + C(q, v) v

The second is the acceleration of kavafoglu2018's eq. 2.3, made a torque by inverse dynamics. With
gravity compensation beside it, a character on its target stays on it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poise import dynamics
from poise.control.gains import root_slices
from poise.math.arrays import Floats, Ints
from poise.math.rotation import exp, multiply, normalize, quat_matrices
from poise.model.forest import KINDS, Forest
from poise.simulation.command import Target

if TYPE_CHECKING:
    from poise.control.servo import Servo
    from poise.model.scene import Scene

_WEIGHTLESS = np.zeros(3)


def root_feedforward(servo: Servo, target: Target) -> Floats:
    """Force that the target's own motion needs at its free roots, zero elsewhere (..., nv)."""
    rest = np.zeros(servo.scene.nv)
    v = rest if target.v is None else target.v
    a = rest if target.a is None else target.a
    tau = dynamics.inverse_dynamics(servo.scene, target.q, v, a, gravity=servo.gravity)
    keep = np.zeros(servo.scene.nv)
    for at in root_slices(servo.scene):
        keep[at] = 1.0
    return tau * keep


def acceleration_force(scene: Scene, q: Floats, v: Floats, target: Target) -> Floats:
    """M(q) ā + C(q, v) v (..., nv); zero where the target has no acceleration."""
    if target.a is None:
        return np.zeros(scene.nv)
    a = turned(scene, q, target.q, target.a)
    return dynamics.inverse_dynamics(scene, q, v, a, gravity=_WEIGHTLESS)


def goal_of_now(scene: Scene, target: Target, dt: float) -> Target:
    """Where a target of t + dt is at t, how it moves, and the acceleration that takes it there.

    A world moves by v⁺ = v + dt a, q⁺ = q exp(dt v⁺). Let q1 and q2 be one and two steps before the
    target q̄. A character at q1 with the velocity u = log(q2^-1 q1) / dt is at q̄ a step later if its
    acceleration is (log(q1^-1 q̄) / dt - u) / dt. These three make tracking exact at any step.
    Without the past they are q̄ exp(-dt v̄), v̄ - dt ā and ā: first order in dt.

    Args:
        scene: The scene.
        target: The target at t + dt.
        dt: Time step [s].
    """
    if target.past is not None:
        before, earlier = target.past[..., 0, :], target.past[..., 1, :]
        u = _difference(scene, earlier, before) / dt
        return Target(before, u, (_difference(scene, before, target.q) / dt - u) / dt)
    if target.v is None:
        return target
    a = np.zeros(scene.nv) if target.a is None else target.a
    back = _moved(scene, target.q, -dt * target.v)
    return Target(back, target.v - dt * a, target.a)


def turned(scene: Scene, q: Floats, target_q: Floats, x: Floats) -> Floats:
    """The target's rates as the character's: those of balls from the target's child frame.

    Args:
        scene: The scene.
        q: Positions, shape (..., nq).
        target_q: Positions of the target, shape (..., nq).
        x: Velocities or accelerations of the target, shape (..., nv).

    Returns:
        Rᵀ R̄ x for ball joints and the turning of free ones, x for all else, (..., nv).
    """
    at = _layout(scene.forest)
    if not at.quat.size:
        return x
    own = quat_matrices(normalize(target_q[..., at.quat])) @ x[..., at.turn, None]
    own = (quat_matrices(normalize(q[..., at.quat])).swapaxes(-1, -2) @ own)[..., 0]
    out = np.array(np.broadcast_to(x, (*own.shape[:-2], x.shape[-1])))
    out[..., at.turn] = own
    return out


def _moved(scene: Scene, q: Floats, step: Floats) -> Floats:
    """q exp(step), shape (..., nq)."""
    at = _layout(scene.forest)
    lead = np.broadcast_shapes(q.shape[:-1], step.shape[:-1])
    out = np.array(np.broadcast_to(q, (*lead, q.shape[-1])))
    out[..., at.plain_q] += step[..., at.plain_v]
    out[..., at.quat] = normalize(multiply(out[..., at.quat], exp(step[..., at.turn])))
    return out


def _difference(scene: Scene, q0: Floats, q1: Floats) -> Floats:
    """log(q0^-1 q1), shape (..., nv): the force of a spring of unit stiffness from q0 to q1."""
    none = np.zeros(scene.nv)
    return dynamics.pd_force(scene, q0, none, (q1, None), 1.0, none)


class _Layout(NamedTuple):
    """Where things are in q and v."""

    quat: Ints  # quaternions of ball and free joints in q, shape (k, 4)
    turn: Ints  # their angular velocities in v, shape (k, 3)
    plain_q: Ints  # all else in q, shape (m,)
    plain_v: Ints  # and in v, shape (m,)


@lru_cache(maxsize=32)
def _layout(forest: Forest) -> _Layout:
    ball, free = forest.kind == KINDS["ball"], forest.kind == KINDS["free"]
    q = np.concatenate([forest.q_adr[ball], forest.q_adr[free] + 3])[:, None] + np.arange(4)
    v = np.concatenate([forest.v_adr[ball], forest.v_adr[free] + 3])[:, None] + np.arange(3)
    rest_q = np.setdiff1d(np.arange(forest.nq), q)
    rest_v = np.setdiff1d(np.arange(forest.nv), v)
    return _Layout(*(x.astype(np.int32) for x in (q, v, rest_q, rest_v)))
