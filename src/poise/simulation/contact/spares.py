"""Spares: objects that wait to be thrown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.model.objects import free_object
from poise.model.shape import Shape

MOST_PROJECTILES = 32
RADIUS = 0.1  # of a ball [m]
MASS = 3.0  # of a ball [kg]


def projectile_table(now: _core.Projectiles) -> Floats:
    """Projectiles as rows: 1 if it has been thrown, q (7), v (6), shape (n, projectiles, 14)."""
    return np.concatenate([now.thrown[..., None].astype(np.float64), now.q, now.v], axis=-1)


def default_projectiles(spares: int | Sequence[Character]) -> list[Character]:
    """Objects that wait to be thrown: balls of 3 kg, or those given."""
    if isinstance(spares, (int, np.integer)) and not isinstance(spares, bool):
        if not 0 <= spares <= MOST_PROJECTILES:
            raise PoiseError(f"spares is {spares}; it must be 0 to {MOST_PROJECTILES}")
        ball = Shape("sphere", (RADIUS,), color=(0.85, 0.45, 0.2))
        return [free_object(f"spare-{i + 1}", ball, mass=MASS) for i in range(spares)]
    if isinstance(spares, bool) or not isinstance(spares, Sequence):
        raise PoiseError(f"spares must be a number or a list of Characters, got {spares!r:.80}")
    for i, one in enumerate(spares):
        if not isinstance(one, Character):
            raise PoiseError(f"spares[{i}] must be a Character, got {one!r:.80}")
        kinds = [joint.kind for joint in one.joints]
        if kinds != ["free"] or len(one.links) != 1:
            raise PoiseError(f"spares[{i}] ({one.name!r}) must be one free link")
    if len(spares) > MOST_PROJECTILES:
        raise PoiseError(f"{len(spares)} spares; at most {MOST_PROJECTILES} can wait")
    return list(spares)
