"""Arrays that shall go together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, floats


def together(**given: ArrayLike) -> list[Floats]:
    """The arrays at one shape, their leading axes broadcast; an error names those that do not fit.

    The last axis must be the same for all.
    """
    arrays = {name: floats(value, name) for name, value in given.items()}
    try:
        if len({array.shape[-1:] for array in arrays.values()}) > 1:
            raise ValueError
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise PoiseError(f"the shapes do not fit together: {shapes}") from None


def vectors(**given: ArrayLike) -> list[Floats]:
    """As `together`, of shape (..., 3)."""
    for name, value in given.items():
        array = floats(value, name)
        if array.shape[-1:] != (3,):
            raise PoiseError(f"{name} has shape {array.shape}, expected (..., 3)")
    return together(**given)
