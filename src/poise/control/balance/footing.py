"""What the soles stand on, as the world has it: friction, and the height of level ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.arrays import Floats, number
from poise.contact import HeightField, Plane
from poise.contact.surfaces import FRICTION
from poise.errors import PoiseError
from poise.forest import Ints

STICKIEST = 100.0
"""Friction beyond this is as good as glue, and leaves no digits for the rest of a force."""

LEVEL = 1.0 - 1e-6
"""Upward part of the normal of level ground."""


def friction_of(character: Any, friction: float | None, links: Ints) -> float | Floats:
    """Coefficients for the cones: as given, those of the World's soles and ground, or 0.8.

    Args:
        character: The World, or a character.
        friction: As given; None asks the World.
        links: Of the soles, shape (s,).

    Returns:
        A number, or where they differ of each sole, shape (s,) or (n, s).
    """
    if friction is not None:
        value = number(friction, "friction", positive=False, unit="")
        if not 0.0 <= value <= STICKIEST:
            raise PoiseError(f"friction is {friction:g}; it must be from 0 to {STICKIEST:g}")
        return value
    settings = getattr(character, "settings", None)
    if settings is None or settings.contact is None:
        return FRICTION
    given = settings.friction
    everywhere = given.ndim == 0 or given.shape[1:] == (1,)
    mine = given if everywhere else given[..., links]
    rest = mine if everywhere else FRICTION
    ground = rest if settings.ground_friction is None else settings.ground_friction
    soles = np.minimum(np.sqrt(mine * ground), STICKIEST)
    soles = np.ascontiguousarray(np.broadcast_to(soles, (*soles.shape[:-1], len(links))))
    return float(soles.flat[0]) if np.ptp(soles) == 0.0 else soles


def ground_of(character: Any, ground: float | None) -> float:
    """Height of the ground [m]: as given, or of the World's, which must be level then."""
    if ground is not None:
        return number(ground, "ground", positive=False, unit="m")
    its = getattr(getattr(character, "settings", None), "ground", True)
    if isinstance(its, Plane) and its.normal[2] > LEVEL:
        return its.height
    if isinstance(its, HeightField) and np.ptp(its.heights) == 0.0:
        return float(its.heights[0, 0])
    if isinstance(its, (Plane, HeightField)):
        raise PoiseError(
            "balance plans for level ground, and this world's is not; ground=... says how high it "
            "is under the feet [m] if they stand level"
        )
    return 0.0
