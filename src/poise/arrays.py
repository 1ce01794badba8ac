"""Arrays at the Python door: what users hand over becomes contiguous float64, or a clear error."""

from __future__ import annotations

import math
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


def shaped(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    """As `floats`, of exactly this shape."""
    array = floats(value, name)
    if array.shape != shape:
        raise PoiseError(f"{name} has shape {array.shape}, expected {shape}")
    return array


def finite(array: Floats, name: str) -> Floats:
    """The array itself, if every entry is finite."""
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise PoiseError(f"{name}{list(at)} is {array[at]}: every entry must be finite")
    return array


def number(value: Any, name: str, *, positive: bool = True, unit: str = "s") -> float:
    """A finite real number, positive unless said otherwise."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or (positive and value <= 0):
        kind = f"a {'positive' if positive else 'finite'} {'time' if unit == 's' else 'number'}"
        raise PoiseError(f"{name} is {value!r:.80}; it must be {kind} [{unit}]")
    return float(value)


def count(value: Any, name: str, *, most: int = 2**31 - 1, why: str = "") -> int:
    """A whole number, 1 or more."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 1 <= value <= most:
        why = why or f"it must be a whole number, 1 or more and at most {most}"
        raise PoiseError(f"{name} is {value!r:.80}; {why}")
    return int(value)


def choice(value: Any, name: str, known: Sequence[str]) -> int:
    """Index of the value among the known names."""
    try:
        return known.index(value)
    except ValueError:
        names = ", ".join(map(repr, known))
        raise PoiseError(f"{name} is {value!r}; it must be one of {names}") from None
