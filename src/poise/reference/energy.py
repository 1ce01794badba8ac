"""Energy: kinetic sum v_i' I_i v_i / 2 plus the rotors' armature v² / 2; potential -m g' c.

The rotors make the kinetic energy equal to v' M v / 2 with the armature in M.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.model.character import Character
from poise.reference.kinematics import center_of_mass
from poise.reference.rnea import GRAVITY
from poise.reference.tree import build_tree, check_length, place_bodies, velocities


def energy(
    character: Character, q: ArrayLike, v: ArrayLike, *, gravity: ArrayLike = GRAVITY
) -> tuple[float, float]:
    """Kinetic and potential energy [J]; the potential is zero with the mass centre at 0.

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
