"""Inverse dynamics by the recursive Newton-Euler algorithm.

    M(q) a + h(q, v) = tau

Outward, with the world accelerated upwards instead of gravity pulling down (a_0 = -g):

    v_i = X v_parent + S v          a_i = X a_parent + S a + c_i
    f_i = I_i a_i + v_i x* I_i v_i - f_ext

Inward, each body hands the force it needs to its parent:

    tau_i = S' f_i + armature a_i   f_parent += X' f_i

RBDA 5.3, table 5.1. The armature is a rotor's inertia, felt by its own joint only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.model.character import Character
from poise.reference import spatial
from poise.reference.spatial import Array
from poise.reference.tree import (
    WORLD,
    Placed,
    Tree,
    build_tree,
    check_length,
    external_forces,
    place_bodies,
    velocities,
)

GRAVITY = (0.0, 0.0, -9.81)


def inverse_dynamics(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
) -> Array:
    """Joint forces that give the acceleration a.

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        a: Acceleration, dv/dt, shape (nv,).
        gravity: Acceleration of free fall [m/s²], shape (3,).
        external: Wrench on each link, world axes, force at the link's origin, shape (nl, 6).

    Returns:
        tau [N, N·m], shape (nv,).
    """
    tree = build_tree(character)
    v, a = check_length("v", v, tree.nv), check_length("a", a, tree.nv)
    placed = place_bodies(tree, q)
    speeds, biases = velocities(tree, placed, v)
    pushes = external_forces(tree, placed, external)
    a_0 = -np.concatenate([np.zeros(3), np.asarray(gravity, dtype=float)])

    # outward: accelerations, and the force each body alone would need
    accelerations: list[Array] = []
    f: list[Array] = []
    for i, (body, at) in enumerate(zip(tree.bodies, placed, strict=True)):
        a_P = a_0 if body.parent == WORLD else accelerations[body.parent]
        a_i = at.X @ a_P + at.S @ a[body.v] + biases[i]
        accelerations.append(a_i)
        v_i, I_i = speeds[i], body.inertia
        f.append(I_i @ a_i + spatial.crossf(v_i) @ I_i @ v_i - pushes[i])

    # inward: what the joint must carry, and what is left to the parent
    tau = np.zeros(tree.nv)
    for i in reversed(range(len(tree.bodies))):
        body, at = tree.bodies[i], placed[i]
        tau[body.v] = at.S.T @ f[i] + body.joint.armature * a[body.v]
        if body.parent != WORLD:
            f[body.parent] += at.X.T @ f[i]
    return tau


def bias_force(character: Character, q: ArrayLike, v: ArrayLike, **loads: Any) -> Array:
    """h in M a + h = tau: the joint forces at a = 0, shape (nv,); loads as of inverse_dynamics."""
    return inverse_dynamics(character, q, v, np.zeros(np.shape(v)), **loads)


# ---- the mass matrix by the composite-rigid-body algorithm (CRBA)
#
# I^c_i is the inertia of body i and all it carries, moved as one rigid body:
#
#     I^c_parent += X' I^c_i X
#
# Moving joint i alone with unit acceleration needs the force F = I^c_i S_i at body i. On its way to
# the root that force meets every joint j that i hangs from:
#
#     M_ji = S_j' F,   F <- X' F
#
# and nothing else: M_ji = 0 unless one of the two hangs from the other. RBDA 6.2, table 6.2.


def mass_matrix(character: Character, q: ArrayLike) -> Array:
    """M, shape (nv, nv), with the armature on its diagonal.

    Args:
        q: Configuration, shape (nq,).
    """
    tree = build_tree(character)
    placed = place_bodies(tree, q)
    composite = composite_inertias(tree, placed)
    M = np.zeros((tree.nv, tree.nv))
    for i, (body, at) in enumerate(zip(tree.bodies, placed, strict=True)):
        F = composite[i] @ at.S
        M[body.v, body.v] = at.S.T @ F + body.joint.armature * np.eye(body.joint.nv)
        j = i
        while tree.bodies[j].parent != WORLD:
            F = placed[j].X.T @ F
            j = tree.bodies[j].parent
            M[tree.bodies[j].v, body.v] = placed[j].S.T @ F
            M[body.v, tree.bodies[j].v] = M[tree.bodies[j].v, body.v].T
    return M


def composite_inertias(tree: Tree, placed: list[Placed]) -> list[Array]:
    """I^c of every body in its own frame: its inertia and that of all it carries."""
    composite = [body.inertia.copy() for body in tree.bodies]
    for i in reversed(range(len(tree.bodies))):
        parent = tree.bodies[i].parent
        if parent != WORLD:
            composite[parent] += placed[i].X.T @ composite[i] @ placed[i].X
    return composite
