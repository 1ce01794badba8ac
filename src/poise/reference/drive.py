"""A PD drive: Q and K in tau = Q - K a.

The target q¯, v¯ is that of t + dt. With gains Kp, Kd (diagonal, torque per angle), the forms:

    pd        Q = -Kp (q - (q¯ - dt v¯)) - Kd (v - v¯)      K = 0
    explicit  the same Q                                    K = Kd dt
    spd       Q = -Kp (q + dt v - q¯) - Kd (v - v¯)         K = Kd dt
    implicit  the Q of spd                                  K = Kd dt + Kp dt²

pd is Yin & Yin's eq. 1, with the target of t taken back from that of t + dt. explicit treats
the position explicitly and the velocity implicitly (Liu et al. 2013). spd is Tan et al.'s
stable PD, eq. 6, 19, 20 (38, 40), with the target velocity that those equations leave out.
implicit takes the whole next position, q + dt (v + dt a), and is stable at any step.

Differences of rotations are rotation vectors, in the child's frame, the short way round:

    spd, implicit   e = log(q¯^-1 q exp(dt v))
    pd, explicit    e = log((q¯ exp(-dt v¯))^-1 q)
    velocity        v - R' R¯ v¯, which turns v¯ from the target's frame into the child's

A free joint is a translation in world axes, x + dt v - x¯ and v - v¯, beside such a rotation.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math import rotation
from poise.model.character import Character
from poise.model.configuration import difference, integrate, rotations
from poise.reference.spatial import Array
from poise.reference.tree import build_tree, check_length

Form = Literal["implicit", "spd", "explicit", "pd"]


def drive(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    q_target: ArrayLike,
    v_target: ArrayLike,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float,
    form: Form = "implicit",
) -> tuple[Array, Array]:
    """Q and K of a PD drive, each of shape (nv,).

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        q_target: Configuration to reach at t + dt, shape (nq,).
        v_target: Velocity to reach at t + dt, shape (nv,).
        kp: Stiffness [N·m/rad, N/m], a number or shape (nv,).
        kd: Damping [N·m·s/rad, N·s/m], a number or shape (nv,).
        dt: Time step [s].
        form: "implicit", "spd", "explicit" or "pd".
    """
    kp = np.broadcast_to(np.asarray(kp, dtype=float), (character.nv,))
    kd = np.broadcast_to(np.asarray(kd, dtype=float), (character.nv,))
    stiffness = {"pd": 0.0, "explicit": 0.0, "spd": 0.0, "implicit": dt * dt}
    damping = {"pd": 0.0, "explicit": dt, "spd": dt, "implicit": dt}
    if form not in stiffness:
        raise PoiseError(f"unknown form {form!r}; expected 'implicit', 'spd', 'explicit' or 'pd'")
    ahead = form in ("spd", "implicit")
    e, e_rate = tracking_error(character, q, v, q_target, v_target, dt, ahead=ahead)
    return -kp * e - kd * e_rate, stiffness[form] * kp + damping[form] * kd


def tracking_error(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    q_target: ArrayLike,
    v_target: ArrayLike,
    dt: float,
    *,
    ahead: bool,
) -> tuple[Array, Array]:
    """How far position and velocity are from the target, each of shape (nv,).

    Args:
        ahead: True compares the position predicted for t + dt with the target; False compares
            the present position with the target taken back by dt.
    """
    tree = build_tree(character)
    q, q_target = check_length("q", q, tree.nq), check_length("target q", q_target, tree.nq)
    v, v_target = check_length("v", v, tree.nv), check_length("target v", v_target, tree.nv)
    if ahead:
        e = difference(character, integrate(character, q, v, dt), q_target)
    else:
        e = difference(character, q, integrate(character, q_target, v_target, -dt))
    return e, v - in_present_frames(character, q, q_target, v_target)


def in_present_frames(character: Character, q: Array, q_target: Array, rate: Array) -> Array:
    """Velocities or accelerations (nv,) of the target as the present joints measure them: those of
    ball and free joints are turned from the target's child frame into the present one."""
    turned: Array = rate.copy()
    for _, quat, turn in rotations(character):
        across = rotation.multiply(rotation.conjugate(q[quat]), q_target[quat])
        turned[turn] = rotation.rotate(across, rate[turn])
    return turned


def target_arrays(target: Any) -> tuple[Array, Array]:
    """q and v of a target given as a pair or as an object that has them."""
    q, v = (target.q, target.v) if hasattr(target, "q") else target
    return np.asarray(q, dtype=float), np.asarray(v, dtype=float)
