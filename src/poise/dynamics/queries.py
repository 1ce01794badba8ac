"""Questions to the core: arrays become rows of one batch, answers get its shape back.

What is behind `poise.dynamics`. One state in arrays as the core takes them goes straight through;
all else is brought to rows first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import FLOAT64, Floats, choice, floats
from poise.model.scene import Scene, SceneLike, scene_of

FORMS = ("pd", "explicit", "spd", "implicit")
METHODS = ("maba", "df", "sf", "pcg")
DTYPES = ("float64", "float32")
GRAVITY = (0.0, 0.0, -9.81)
ORIGIN = np.zeros(3)
DOWN = np.array(GRAVITY)

WHAT = (  # as enum What of the core has them
    "forward_kinematics",
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "jacobian",
    "jacobian_bias",
    "center_of_mass",
    "centroidal_momentum",
    "energy",
    "stable_pd",
    "drive",
    "kane",
)


def ask1(
    what: str, character: SceneLike, dtype: str, gravity: ArrayLike = GRAVITY, **given: Any
) -> Floats:
    """The first of the core's answers to a question with one."""
    out: Floats = ask(what, scene_of(character), dtype, gravity, **given)[0]
    return out


def ask(
    what: str,
    scene: Scene,
    dtype: str,
    gravity: ArrayLike = GRAVITY,
    *,
    dt: float = 1.0,
    form: str = "implicit",
    method: str = "maba",
    limits: bool = False,
    link: int = 0,
    point: ArrayLike = ORIGIN,
    velocity: bool = True,
    feedforward: bool = True,
    as_printed: bool = False,
    **arrays: ArrayLike | None,
) -> tuple[Floats, ...]:
    """Bring the arrays to rows of one batch, ask the core, and give the batch its shape back."""
    if arrays.get("q") is None:
        raise PoiseError(f"q is None, expected positions of shape (..., {scene.nq})")
    rows = _single(scene, arrays)
    batch: tuple[int, ...] = ()
    if rows is None:
        rows, batch = _batched(scene, arrays)
    get = rows.get
    out = _core.answer(
        scene.model,
        scene.numbers,
        WHAT.index(what),
        math.prod(batch),
        choice(dtype, "dtype", DTYPES) == 1,
        get("q"),
        get("v"),
        get("a"),
        get("tau"),
        get("external"),
        get("target_q"),
        get("target_v"),
        get("kp"),
        get("kd"),
        DOWN if gravity is GRAVITY else floats(gravity, "gravity"),
        dt,
        choice(form, "form", FORMS),
        choice(method, "method", METHODS),
        bool(limits),
        link,
        floats(point, "point"),
        get("target_a"),
        get("past"),
        velocity,
        feedforward,
        as_printed,
    )
    results = out if isinstance(out, tuple) else (out,)
    if not batch:
        return tuple([result[0] for result in results])
    return tuple(result.reshape(*batch, *result.shape[1:]) for result in results)


def _single(scene: Scene, arrays: dict[str, ArrayLike | None]) -> dict[str, Floats] | None:
    """The arrays of one state as they are, if that is what they are: there is little to do then."""
    if scene.numbers is not None and scene.copies:
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
        also = f", and the world's own numbers {copies}" if copies else ""
        raise PoiseError(f"the leading axes do not fit together: {shapes}{also}") from None
    if copies and batch != copies:
        raise PoiseError(
            f"a world with numbers per copy answers about {copies} states, not {batch}"
        )
    n = math.prod(batch)
    for name, array in rows.items():
        if lead[name]:
            full = np.broadcast_to(array, (*batch, array.shape[-1]))
            rows[name] = np.ascontiguousarray(full.reshape(n, array.shape[-1]))
    return rows, batch
