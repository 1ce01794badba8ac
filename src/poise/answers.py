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
from poise.arrays import Floats, choice, floats
from poise.errors import PoiseError
from poise.scene import Scene, SceneLike, scene_of

FORMS = ("pd", "explicit", "spd", "implicit")
METHODS = ("maba", "df", "sf", "pcg")
DTYPES = ("float64", "float32")
GRAVITY = (0.0, 0.0, -9.81)
ORIGIN = np.zeros(3)

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
    rows = _single(scene, arrays)
    batch: tuple[int, ...] = ()
    if rows is None:
        rows, batch = _batched(scene, arrays)
    n = math.prod(batch)
    out = _core.answer(
        scene.model,
        scene.numbers,
        WHAT.index(what),
        n,
        choice(dtype, "dtype", DTYPES) == 1,
        rows.get("q"),
        rows.get("v"),
        rows.get("a"),
        rows.get("tau"),
        rows.get("external"),
        rows.get("target_q"),
        rows.get("target_v"),
        rows.get("kp"),
        rows.get("kd"),
        floats(gravity, "gravity"),
        dt,
        choice(form, "form", FORMS),
        choice(method, "method", METHODS),
        bool(limits),
        link,
        floats(point, "point"),
        rows.get("target_a"),
        rows.get("past"),
        velocity,
        feedforward,
        as_printed,
    )
    results = out if isinstance(out, tuple) else (out,)
    return tuple(result.reshape(*batch, *result.shape[1:]) for result in results)


def _size(scene: Scene, name: str) -> tuple[int, ...]:
    """Shape of an array of one state."""
    special = {"q": (scene.nq,), "target_q": (scene.nq,), "external": (scene.nl, 6),
               "past": (2, scene.nq)}  # fmt: skip
    return special.get(name, (scene.nv,))


def _single(scene: Scene, arrays: dict[str, ArrayLike | None]) -> dict[str, Floats] | None:
    """The arrays of one state as they are, if that is what they are: there is little to do then."""
    if scene.copies:
        return None
    rows: dict[str, Floats] = {}
    for name, value in arrays.items():
        if value is None:
            continue
        if type(value) is not np.ndarray or value.shape != _size(scene, name):
            return None
        if value.dtype != np.float64 or not value.flags.c_contiguous:
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
        tail = _size(scene, name)
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
