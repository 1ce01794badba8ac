"""Arrays at the Python door: what users hand over becomes contiguous float64, or a clear error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.errors import PoiseError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
"""Indices as the core takes them."""

Mask = NDArray[np.bool_]
Progress = Callable[[float], None]
"""Called with the finished fraction of a long computation, from 0 to 1."""

FLOAT64 = np.dtype(np.float64)


def is_plain(value: object) -> TypeGuard[Floats]:
    """Whether it is an aligned, C-contiguous float64 array as it stands."""
    if type(value) is not np.ndarray or value.dtype is not FLOAT64:
        return False
    flags = value.flags
    return flags.c_contiguous and flags.aligned


def floats(value: ArrayLike, name: str) -> Floats:
    """An aligned, C-contiguous float64 array of the value.

    Args:
        value: Anything NumPy reads as real numbers.
        name: What the array is called in the error.
    """
    if is_plain(value):
        return value
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise PoiseError(f"{name} is not an array of numbers: {error!s:.200}") from None
    if array.dtype.kind not in "fiub":
        got = f", got {value!r:.60}" if array.dtype.kind == "O" else ""
        raise PoiseError(f"{name} must hold real numbers, not {array.dtype}{got}")
    # not ascontiguousarray: that would give a number an axis
    return np.require(array, dtype=np.float64, requirements=("C", "A"))


def shaped(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    """As `floats`, of exactly this shape."""
    array = floats(value, name)
    if array.shape != shape:
        raise PoiseError(f"{name} has shape {array.shape}, expected {shape}")
    return array


def matrix(value: ArrayLike, name: str, width: int, *, least: int = 0) -> Floats:
    """As `floats`, finite, of shape (k, width), with at least so many rows."""
    array = floats(value, name)
    if array.ndim != 2 or array.shape[1] != width or len(array) < least:
        raise PoiseError(f"{name} has shape {array.shape}, expected (k, {width})")
    return finite(array, name)


def finite(array: Floats, name: str) -> Floats:
    """The array itself, if every entry is finite."""
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise PoiseError(f"{name}{list(at) or ''} is {array[at]}: every entry must be finite")
    return array


def number(value: Any, name: str, *, positive: bool = True, unit: str = "s") -> float:
    """A finite real number; a positive one if `positive`."""
    if not _is_finite(value) or (positive and value <= 0):
        kind = f"a {'positive' if positive else 'finite'} {'time' if unit == 's' else 'number'}"
        raise PoiseError(f"{name} is {value!r:.80}; it must be {kind}{f' [{unit}]' * bool(unit)}")
    return float(value)


def _is_finite(value: Any) -> bool:
    """Whether it is one real number that float64 holds."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number of hundreds of digits
        return False


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
    except (ValueError, TypeError):  # TypeError: some arrays cannot be compared
        names = ", ".join(map(repr, known))
        raise PoiseError(f"{name} is {value!r:.80}; it must be one of {names}") from None


def copies_mask(where: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Which of n copies are meant, shape (n,).

    Args:
        where: A mask of the copies, or their indices; negative ones count from the end.
        n: Number of copies.
    """
    try:
        given = np.asarray(where)
    except (ValueError, TypeError, OverflowError) as error:
        raise PoiseError(f"where must be indices or a mask of copies: {error!s:.200}") from None
    if given.dtype == bool:
        if given.shape != (n,):
            raise PoiseError(f"where has shape {given.shape}, a mask has ({n},)")
        return np.ascontiguousarray(given)
    if given.size and given.dtype.kind not in "iu":
        raise PoiseError(f"where must be indices or a mask of copies, not {given.dtype}")
    given = given.astype(np.int64).reshape(-1)
    if given.size and (given.min() < -n or given.max() >= n):
        raise PoiseError(f"where names a copy outside 0 to {n - 1}")
    mask = np.zeros(n, dtype=bool)
    mask[given] = True
    return mask


def copies_index(where: ArrayLike, n: int) -> NDArray[np.int64]:
    """Indices of the copies that are meant, shape (k,), in their order; see `copies_mask`."""
    try:
        given = np.asarray(where)
    except (ValueError, TypeError, OverflowError):
        given = copies_mask(where, n)  # raises the error
    if given.dtype == bool:
        return np.flatnonzero(copies_mask(where, n))
    if given.size and given.dtype.kind not in "iu":
        raise PoiseError(f"where must be indices or a mask of copies, not {given.dtype}")
    index = given.astype(np.int64).reshape(-1)
    if index.size and (index.min() < -n or index.max() >= n):
        raise PoiseError(f"where names a copy outside 0 to {n - 1}")
    return np.where(index < 0, index + n, index)


def joined(a: ArrayLike, b: ArrayLike, one: str, two: str) -> Floats:
    """Two vectors side by side; either may have an axis of copies.

    Args:
        a: Shape (3,) or (n, 3).
        b: Shape (3,) or (n, 3), or with 4 if it is called "quat".
        one: What a is called in errors.
        two: What b is called in errors.
    """
    left, right = finite(floats(a, one), one), finite(floats(b, two), two)
    for array, name, size in ((left, one, 3), (right, two, 4 if two == "quat" else 3)):
        if array.ndim not in (1, 2) or array.shape[-1] != size:
            raise PoiseError(f"{name} has shape {array.shape}, expected ({size},) or (n, {size})")
    try:
        lead = np.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    except ValueError:
        raise PoiseError(f"{one} and {two} are for different numbers of copies") from None
    parts = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in (left, right)]
    return np.ascontiguousarray(np.concatenate(parts, axis=-1))


def runs(mask: ArrayLike) -> list[tuple[int, int]]:
    """Runs of true values: first index, index after the last."""
    padded = np.concatenate([[False], np.asarray(mask, dtype=bool), [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def children_of(parents: Sequence[int]) -> list[list[int]]:
    """Indices of the children of each node of a tree; -1 is the parent of roots."""
    children: list[list[int]] = [[] for _ in parents]
    for i, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(i)
    return children


def depth_first(parents: Sequence[int]) -> list[int]:
    """Indices of the nodes of a tree, parents before children; nodes in a cycle are left out."""
    children, order = children_of(parents), []
    stack = [i for i in reversed(range(len(parents))) if parents[i] < 0]
    while stack:
        order.append(stack.pop())
        stack += reversed(children[order[-1]])
    return order


def broadcast(**given: ArrayLike) -> list[Floats]:
    """The arrays with their leading axes broadcast to one shape; an error names those that differ.

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


def broadcast_vectors(**given: ArrayLike) -> list[Floats]:
    """As `broadcast`, of shape (..., 3)."""
    for name, value in given.items():
        array = floats(value, name)
        if array.shape[-1:] != (3,):
            raise PoiseError(f"{name} has shape {array.shape}, expected (..., 3)")
    return broadcast(**given)
