"""Linear momentum L and angular momentum H about the center of mass c; energy; integration.

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
from poise.model.configuration import integrate
from poise.reference import spatial
from poise.reference.kinematics import bias_accelerations, center_of_mass
from poise.reference.rnea import GRAVITY, composite_inertias
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


# ---- energy: kinetic sum v_i' I_i v_i / 2 plus the rotors' armature v² / 2; potential -m g' c
#
# The rotors make the kinetic energy equal to v' M v / 2 with the armature in M.


def energy(
    character: Character, q: ArrayLike, v: ArrayLike, *, gravity: ArrayLike = GRAVITY
) -> tuple[float, float]:
    """Kinetic and potential energy [J]; the potential is zero with the center of mass at 0.

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        gravity: Acceleration of free fall [m/s²], shape (3,).
    """
    tree = build_tree(character)
    v = check_length("v", v, tree.nv)
    speeds, _ = velocities(tree, place_bodies(tree, q), v)
    kinetic = 0.0
    for body, v_i in zip(tree.bodies, speeds, strict=True):
        rotors = body.joint.armature * (v[body.v] @ v[body.v])
        kinetic += 0.5 * float(v_i @ body.inertia @ v_i + rotors)
    mass = sum(link.mass for link in character.links)
    potential = -mass * float(np.asarray(gravity) @ center_of_mass(character, q))
    return kinetic, potential


# ---- integration: one step of semi-implicit Euler
#
#     v <- v + dt a,   then with the new v   x <- x + dt v,   q <- q exp(dt w)
#
# Positions of slides, hinges and free joints add up; rotations are multiplied on the right, because
# w is in the child's frame.


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
    return integrate(character, q, v, dt), v
