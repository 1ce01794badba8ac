"""Surfaces: friction and restitution of all that touches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats, number

FRICTION = 0.8
DEFAULTS = {"friction": FRICTION, "restitution": 0.0}


class SurfaceCounts(NamedTuple):
    """How many surfaces of each kind there are, and in how many copies; one more is the ground."""

    copies: int
    links: int
    spares: int
    obstacles: int


def surfaces_of(
    counts: SurfaceCounts, value: ArrayLike, name: str, ground: float | None = None
) -> Floats:
    """A number for every surface: links, spares, obstacles, ground; shape (s,) or (n, s).

    Args:
        counts: How many surfaces there are.
        value: A number for everything, or of the links, (nl,) or (n, nl), or of copies, (n, 1).
        name: "friction" or "restitution".
        ground: Of ground and obstacles; None leaves them as they are.
    """
    given, (n, links, spares, obstacles) = finite(floats(value, name), name), counts
    if (given < 0.0).any():
        raise PoiseError(f"{name} is negative; it must be 0 or more")
    if name == "restitution" and (given > 1.0).any():
        raise PoiseError("restitution is above 1; a bounce cannot add energy")
    others = spares + obstacles + 1
    if given.shape == () or given.shape == (n, 1):
        whole = np.broadcast_to(given, (*given.shape[:1], links + others)).copy()
    elif given.shape in ((links,), (n, links)):
        rest = np.full((*given.shape[:-1], others), DEFAULTS[name])
        whole = np.concatenate([given, rest], axis=-1)
    else:
        wanted = f"(), ({links},), ({n}, 1) or ({n}, {links})"
        raise PoiseError(f"{name} has shape {given.shape}, expected {wanted}")
    if ground is not None:
        whole[..., links + spares :] = number(ground, f"ground_{name}", positive=False, unit="1")
        if whole.min() < 0.0:
            raise PoiseError(f"ground_{name} is negative; it must be 0 or more")
    return np.ascontiguousarray(whole[0] if n == 1 and whole.ndim == 2 else whole)
