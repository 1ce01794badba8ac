"""Rays: what they hit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats

NOTHING = -(2**31)
"""`RayHits.link` of a ray that hits nothing."""


class RayHits(NamedTuple):
    """What rays hit first, shape (k,) each, or (n, k) in a world of n copies.

    Attributes:
        distance: From the origin [m]; infinite where nothing is hit.
        normal: Unit vector out of what is hit, shape (k, 3) or (n, k, 3); 0 where nothing is.
        link: Which link, by its index; -1 the ground, -2 - i the obstacle i, and `NOTHING`, which
            is -2**31. Projectiles come after the links of the scene.
    """

    distance: Floats
    normal: Floats
    link: NDArray[np.int64]


def ray_array(value: object, name: str, n: int) -> Floats:
    """Vectors of rays as the core takes them, (k, 3) or (n, k, 3)."""
    array = finite(floats(value, name), name)  # type: ignore[arg-type]
    if array.ndim == 1:
        array = array[None]
    if array.ndim not in (2, 3) or array.shape[-1] != 3 or (array.ndim == 3 and len(array) != n):
        raise PoiseError(f"{name} has shape {array.shape}, expected (3,), (k, 3) or ({n}, k, 3)")
    return array


def same_count(origins: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Both with the same number of rays; one may have a single one."""
    k = max(origins.shape[-2], directions.shape[-2])
    for array in (origins, directions):
        if array.shape[-2] not in (1, k):
            raise PoiseError(
                f"origins has shape {origins.shape} and directions {directions.shape}: each ray "
                "has both"
            )

    def repeated(x: Floats) -> Floats:
        return np.ascontiguousarray(np.broadcast_to(x, (*x.shape[:-2], k, 3)))

    return repeated(origins), repeated(directions)
