"""One step in time by semi-implicit Euler.

    v <- v + dt a,   then with the new v   x <- x + dt v,   q <- q exp(dt w)

Positions of slides, hinges and free joints add up; rotations are multiplied on the right,
because w is in the child's frame.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.model.character import Character
from poise.reference import spatial
from poise.reference.spatial import Array
from poise.reference.tree import build_tree, check_length


def step(
    character: Character, q: ArrayLike, v: ArrayLike, a: ArrayLike, dt: float
) -> tuple[Array, Array]:
    """q and v after dt under the acceleration a: semi-implicit Euler.

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        a: Acceleration, shape (nv,).
        dt: Time step [s].
    """
    v = np.asarray(v, dtype=float) + dt * np.asarray(a, dtype=float)
    return move(character, q, v, dt), v


def move(character: Character, q: ArrayLike, v: ArrayLike, dt: float) -> Array:
    """q after dt at the velocity v, shape (nq,).

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        dt: Time [s].
    """
    tree = build_tree(character)
    q, v = check_length("q", q, tree.nq), check_length("v", v, tree.nv)
    after = np.zeros(tree.nq)
    for body in tree.bodies:
        x, u = q[body.q], v[body.v]
        if body.joint.kind == "free":
            after[body.q] = np.concatenate([x[:3] + dt * u[:3], _turn(x[3:], dt * u[3:])])
        elif body.joint.kind == "ball":
            after[body.q] = _turn(x, dt * u)
        else:
            after[body.q] = x + dt * u
    return after


def difference(character: Character, q0: ArrayLike, q1: ArrayLike) -> Array:
    """The velocity that leads from q0 to q1 in one second, the short way, shape (nv,)."""
    tree = build_tree(character)
    q0, q1 = check_length("q0", q0, tree.nq), check_length("q1", q1, tree.nq)
    v = np.zeros(tree.nv)
    for body in tree.bodies:
        x0, x1 = q0[body.q], q1[body.q]
        if body.joint.kind == "free":
            v[body.v] = np.concatenate([x1[:3] - x0[:3], _between(x0[3:], x1[3:])])
        elif body.joint.kind == "ball":
            v[body.v] = _between(x0, x1)
        else:
            v[body.v] = x1 - x0
    return v


def _turn(quat: Array, r: Array) -> Array:
    """quat exp(r), normalised."""
    return spatial.normalize(spatial.multiply(quat, spatial.exp(r)))


def _between(quat0: Array, quat1: Array) -> Array:
    """log(quat0^-1 quat1)."""
    quat0, quat1 = spatial.normalize(quat0), spatial.normalize(quat1)
    return spatial.log(spatial.multiply(spatial.conjugate(quat0), quat1))
