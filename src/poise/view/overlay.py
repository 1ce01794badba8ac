"""Things that explain a picture: arrows for forces, trails for paths, marks for points.

They are primitives like all others: `render(character, q, also=[*arrow(...), *trail(...)])`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats, number, shaped
from poise.math.rotation import quat_from_z
from poise.view.colors import Rgb
from poise.view.drawing import Primitive
from poise.view.mesh import Mesh

FORCE = (0.87, 0.20, 0.16)
PATH = (0.93, 0.62, 0.13)
POINT = (0.95, 0.78, 0.10)

HEAD_WIDTH = 2.4  # of an arrow, in radii of its shaft
HEAD_LENGTH = 6.0
SIDES = 24  # of the cone
JUMP = 1e-9  # points nearer than this are one [m]
MOST_POINTS = 100_000


def arrow(
    start: ArrayLike,
    vector: ArrayLike,
    *,
    scale: float = 1.0,
    radius: float = 0.015,
    color: Rgb = FORCE,
    opacity: float = 1.0,
    tip: bool = False,
) -> list[Primitive]:
    """An arrow: a round shaft with a cone at its end; nothing where the vector is zero.

    Args:
        start: Where it begins [m], shape (3,).
        vector: Where it points and how far, shape (3,): [m], or anything else times `scale`.
        scale: Metres per unit of the vector, as 0.002 for a force [m/N].
        radius: Of the shaft [m].
        color: Red, green, blue, in 0..1.
        opacity: 1 is solid.
        tip: Whether `start` is where the arrow ends instead, as of a push on a surface.
    """
    way = number(scale, "scale", positive=False, unit="m per unit") * finite(
        shaped(vector, "vector", (3,)), "vector"
    )
    begin = finite(shaped(start, "start", (3,)), "start")
    radius = number(radius, "radius", unit="m")
    length = float(np.linalg.norm(way))
    if length < JUMP:
        return []
    u = way / length
    if tip:
        begin = begin - way
    # a short arrow is thin, so that it stays an arrow
    radius = min(radius, length / (1.5 * HEAD_LENGTH))
    head = HEAD_LENGTH * radius
    quat = quat_from_z(u.tolist())
    shaft = (length - head) / 2
    looks: dict[str, Any] = {"color": color, "opacity": opacity}
    return [
        Primitive("cylinder", (radius, shaft), tuple(begin + shaft * u), quat, **looks),
        Primitive("mesh", (), tuple(begin + 2 * shaft * u), quat, mesh=_cone(radius), **looks),
    ]


def trail(
    points: ArrayLike,
    *,
    radius: float = 0.008,
    color: Rgb = PATH,
    opacity: float = 1.0,
) -> list[Primitive]:
    """A path through points: capsules from each to the next.

    Args:
        points: [m], shape (k, 3).
        radius: Of the line [m].
        color: Red, green, blue, in 0..1.
        opacity: 1 is solid.
    """
    path = finite(floats(points, "points"), "points")
    if path.ndim != 2 or path.shape[1] != 3:
        raise PoiseError(f"points has shape {path.shape}, expected (k, 3)")
    if len(path) > MOST_POINTS:
        raise PoiseError(f"points has {len(path)} rows; a trail has at most {MOST_POINTS}")
    radius = number(radius, "radius", unit="m")
    step = np.diff(path, axis=0)
    length = np.linalg.norm(step, axis=1)
    return [
        Primitive(
            "capsule",
            (radius, length[i] / 2),
            tuple(path[i] + step[i] / 2),
            quat_from_z((step[i] / length[i]).tolist()),
            color,
            opacity,
        )
        for i in np.flatnonzero(length > JUMP)
    ]


def marker(
    point: ArrayLike, *, radius: float = 0.03, color: Rgb = POINT, opacity: float = 1.0
) -> list[Primitive]:
    """A ball at a point, as the centre of mass [m], shape (3,)."""
    at = finite(shaped(point, "point", (3,)), "point")
    return [
        Primitive(
            "sphere", (number(radius, "radius", unit="m"),), tuple(at), (1, 0, 0, 0), color, opacity
        )
    ]


@lru_cache(maxsize=64)
def _cone(radius: float) -> Mesh:
    """The head of an arrow along z, its base at the origin."""
    angle = 2 * np.pi * np.arange(SIDES) / SIDES
    r = HEAD_WIDTH * radius
    rim: Floats = np.stack([r * np.cos(angle), r * np.sin(angle), np.zeros(SIDES)], axis=-1)
    vertices = np.concatenate([rim, [[0.0, 0.0, 0.0], [0.0, 0.0, HEAD_LENGTH * radius]]])
    k = np.arange(SIDES)
    after = (k + 1) % SIDES
    base = np.stack([after, k, np.full(SIDES, SIDES)], axis=-1)
    side = np.stack([k, after, np.full(SIDES, SIDES + 1)], axis=-1)
    return Mesh(vertices, np.concatenate([base, side]).astype(np.int32), convex=True)
