"""Arrays at the Python door: what users hand over becomes contiguous float64, or a clear error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.errors import PoiseError

Floats = NDArray[np.float64]


def floats(value: ArrayLike, name: str) -> Floats:
    """A C-contiguous float64 array of the value.

    Args:
        value: Anything NumPy reads as real numbers.
        name: What the array is called in the error.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise PoiseError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise PoiseError(f"{name} must hold real numbers, not {array.dtype}")
    # not ascontiguousarray: that would give a number an axis
    return np.require(array, dtype=np.float64, requirements="C")


def shaped(value: ArrayLike, name: str, shape: Sequence[int | None]) -> Floats:
    """As `floats`, with this shape at the end; None takes any length, leading axes are free."""
    array = floats(value, name)
    tail = array.shape[array.ndim - len(shape) :] if array.ndim >= len(shape) else None
    fits = tail is not None and all(w is None or w == g for w, g in zip(shape, tail, strict=True))
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise PoiseError(f"{name} has shape {array.shape}, expected (..., {wanted})")
    return array


def finite(array: Floats, name: str) -> Floats:
    """The array itself, if every entry is finite."""
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise PoiseError(f"{name}{list(at)} is {array[at]}: every entry must be finite")
    return array


def choice(value: Any, name: str, known: Sequence[str]) -> int:
    """Index of the value among the known names."""
    try:
        return known.index(value)
    except ValueError:
        names = ", ".join(map(repr, known))
        raise PoiseError(f"{name} is {value!r}; it must be one of {names}") from None
