"""The mass matrix by the composite-rigid-body algorithm.

I^c_i is the inertia of body i and all it carries, moved as one rigid body:

    I^c_parent += X' I^c_i X

Moving joint i alone with unit acceleration needs the force F = I^c_i S_i at body i. On its way
to the root that force meets every joint j that i hangs from:

    M_ji = S_j' F,   F <- X' F

and nothing else: M_ji = 0 unless one of the two hangs from the other. RBDA 6.2, table 6.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.model.character import Character
from poise.reference.spatial import Array
from poise.reference.tree import WORLD, Placed, Tree, build_tree, place_bodies


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
