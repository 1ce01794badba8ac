"""Leading axes of arrays to rows of one batch, and back, for `poise.dynamics`.

Arrays of one state that the core takes as they are pass unchanged.
"""

from __future__ import annotations

import math
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import FLOAT64, Floats, choice, floats
from poise.model.scene import Scene, SceneLike, scene_of

FORMS = tuple(_core.Form.__members__)
METHODS = tuple(_core.Method.__members__)
DTYPES = ("float64", "float32")
DtypeLike = Union[str, type[np.floating[Any]], "np.dtype[Any]"]
"""A name of DTYPES, or NumPy's type of that name."""
GRAVITY = (0.0, 0.0, -9.81)
ORIGIN = np.zeros(3)
DOWN = np.array(GRAVITY)

Prepared = tuple[_core.Dynamics, tuple[int, ...], int, list[Any]]


def prepare(character: SceneLike, dtype: DtypeLike, **arrays: ArrayLike | None) -> Prepared:
    """The core's functions of a scene, and arrays as rows of one batch.

    Args:
        character: The character, or a scene.
        dtype: Precision of the computation.
        arrays: By the names of `Forest.shapes`, q among them; None is left out.

    Returns:
        The functions, the shape of the batch, its number of states, and the rows of each array.
    """
    scene = scene_of(character)
    if arrays["q"] is None:
        raise PoiseError(f"q is None, expected positions of shape (..., {scene.nq})")
    single = precision(dtype) == "float32"
    rows = _single(scene, arrays)
    batch: tuple[int, ...] = ()
    if rows is None:
        rows, batch = _batched(scene, arrays)
    core = _core.Dynamics(scene.model, scene.overrides, single)
    return core, batch, math.prod(batch), [rows.get(name) for name in arrays]


def unbatch(result: Floats, batch: tuple[int, ...]) -> Floats:
    """A result of n rows with the shape of the batch."""
    if not batch:
        row: Floats = result[0]
        return row
    return result.reshape(*batch, *result.shape[1:])


def gravity_vector(gravity: ArrayLike) -> Floats:
    """Gravity as the core takes it [m/s^2], shape (3,)."""
    return DOWN if gravity is GRAVITY else floats(gravity, "gravity")


def precision(dtype: DtypeLike) -> str:
    """ "float64" or "float32", from its name or from NumPy's type."""
    if isinstance(dtype, str):
        return DTYPES[choice(dtype, "dtype", DTYPES)]
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = dtype
    return DTYPES[choice(name, "dtype", DTYPES)]


def _single(scene: Scene, arrays: dict[str, ArrayLike | None]) -> dict[str, Floats] | None:
    """The arrays of one state as they are, if that is what they are: there is little to do then."""
    if scene.overrides is not None and scene.copies:
        return None
    rows: dict[str, Floats] = {}
    shapes = scene.forest.shapes
    for name, value in arrays.items():
        if value is None:
            continue
        # this is `is_plain`, without the call: a call of the core takes 4 µs, and so did these
        if type(value) is not np.ndarray or value.dtype is not FLOAT64:
            return None
        if value.shape != shapes[name] or not value.flags.c_contiguous:
            return None
        rows[name] = value if value.ndim == 1 else value.reshape(-1)
    return rows


def _batched(
    scene: Scene, arrays: dict[str, ArrayLike | None]
) -> tuple[dict[str, Floats], tuple[int, ...]]:
    """The arrays as rows of one batch, and the batch's shape."""
    rows: dict[str, Floats] = {}
    lead: dict[str, tuple[int, ...]] = {}
    for name, value in arrays.items():
        if value is None:
            continue
        tail = scene.forest.shapes[name]
        array = floats(value, name)
        cut = array.ndim - len(tail)
        if cut < 0 or array.shape[cut:] != tail:
            wanted = ", ".join(map(str, tail))
            raise PoiseError(f"{name} has shape {array.shape}, expected (..., {wanted})")
        lead[name] = array.shape[:cut]
        rows[name] = array.reshape(*array.shape[:cut], math.prod(tail))
    copies = scene.copies
    try:
        batch = np.broadcast_shapes(*lead.values(), *([copies] if copies else []))
    except ValueError:
        shapes = ", ".join(f"{name} {rows[name].shape}" for name in rows)
        also = f", and the world's overrides {copies}" if copies else ""
        raise PoiseError(f"the leading axes do not fit together: {shapes}{also}") from None
    if copies and batch != copies:
        raise PoiseError(f"a world with overrides per copy has {copies} states, not {batch}")
    n = math.prod(batch)
    for name, array in rows.items():
        if lead[name]:
            full = np.broadcast_to(array, (*batch, array.shape[-1]))
            rows[name] = np.ascontiguousarray(full.reshape(n, array.shape[-1]))
    return rows, batch
