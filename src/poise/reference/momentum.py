"""Linear momentum L and angular momentum H about the mass centre c.

    [L; H] = A v            d[L; H]/dt = A a + b

A is the centroidal momentum matrix (Orin, Goswami & Lee 2013): its columns are the momenta
I^c_i S_i of composite bodies, moved to c. The bias b is the sum of the forces

    f_i = I_i a_i + v_i x* I_i v_i

that the bodies need at a = 0, without gravity, moved to c likewise. That c itself moves adds
nothing to dH/dt, because L = m dc/dt. Rotors (armature) carry no momentum here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.model.character import Character
from poise.reference import spatial
from poise.reference.crba import composite_inertias
from poise.reference.kinematics import bias_accelerations, center_of_mass
from poise.reference.spatial import Array
from poise.reference.tree import build_tree, check_length, place_bodies, velocities


def centroidal_momentum(character: Character, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """The matrix A, shape (6, nv), and the bias b, shape (6,); rows linear, then angular.

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
    """
    tree = build_tree(character)
    placed = place_bodies(tree, q)
    c = center_of_mass(character, q)
    composite = composite_inertias(tree, placed)
    speeds, biases = velocities(tree, placed, check_length("v", v, tree.nv))
    a = bias_accelerations(tree, placed, biases)
    A, b = np.zeros((6, tree.nv)), np.zeros(6)
    for i, (body, at) in enumerate(zip(tree.bodies, placed, strict=True)):
        # forces in the body's frame into a frame at c with world axes: f_C = X_BC' f_B
        X_BC = spatial.transform_into(at.X_WB.R, at.X_WB.p - c)
        A[:, body.v] = spatial.linear_first(X_BC.T @ composite[i] @ at.S)
        I_i, v_i = body.inertia, speeds[i]
        f = I_i @ a[i] + spatial.crossf(v_i) @ I_i @ v_i
        b += spatial.linear_first(X_BC.T @ f)
    return A, b
