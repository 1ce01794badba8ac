"""Gravity compensation: joint forces that carry a character's weight in its present pose.

Each outboard body, of mass m and with its mass centre at P, is carried by the virtual force -m g.
At a joint that lies at P_J and turns about the axis s, or slides along it (kavafoglu2018, 2.2.3):

    turns    tau = s . Σ (P - P_J) x (-m g)
    slides   tau = s . Σ -m g

with the sum over the bodies outboard of the joint. The thesis prints the arm reversed, P_J - P
(2.9, 2.10), which would add to the weight. The sum is the inverse dynamics of a character that
neither moves nor accelerates, and as such it takes linear time.

A free root counts as held: what it carries is given for it as well, and it is the controller's
business whether to apply it. In flight nothing holds the root, and then the joints of a
compensated character push where there is nothing to carry.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.math.arrays import Floats
from poise.model.scene import SceneLike, scene_of


def gravity_force(
    character: SceneLike, q: ArrayLike, *, gravity: ArrayLike = dynamics.GRAVITY
) -> Floats:
    """Generalized forces that carry the weight [N, N·m], shape (..., nv).

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        gravity: [m/s^2], shape (3,).
    """
    scene = scene_of(character)
    rest = np.zeros(scene.nv)
    return dynamics.inverse_dynamics(scene, q, rest, rest, gravity=gravity)
