"""Friction between the soles and the ground, as the world has it."""

from __future__ import annotations

import numpy as np

from poise.control.plant import Plant
from poise.errors import PoiseError
from poise.math.arrays import Floats, Ints, number
from poise.simulation.contact.collision_model import FRICTION

STICKIEST = 100.0
"""Friction beyond this is as good as glue, and leaves no digits for the rest of a force."""


def friction_of(plant: Plant, friction: float | None, links: Ints) -> float | Floats:
    """Coefficients for the cones: as given, those of the World's soles and ground, or 0.8.

    Args:
        plant: The character in its world.
        friction: As given; None takes that of the world.
        links: Of the soles, in the character, shape (s,).

    Returns:
        A number, or where they differ of each sole, shape (s,) or (n, s).
    """
    if friction is not None:
        value = number(friction, "friction", positive=False, unit="")
        if not 0.0 <= value <= STICKIEST:
            raise PoiseError(f"friction is {friction:g}; it must be from 0 to {STICKIEST:g}")
        return value
    settings = plant.settings
    if settings is None or settings.contact is None:
        return FRICTION
    given = settings.friction
    everywhere = given.ndim == 0 or given.shape[1:] == (1,)
    mine = given if everywhere else given[..., plant.links][..., links]
    rest = mine if everywhere else FRICTION
    ground = rest if settings.ground_friction is None else settings.ground_friction
    soles = np.minimum(np.sqrt(mine * ground), STICKIEST)
    soles = np.ascontiguousarray(np.broadcast_to(soles, (*soles.shape[:-1], len(links))))
    return float(soles.flat[0]) if np.ptp(soles) == 0.0 else soles
