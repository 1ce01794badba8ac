"""Supports seen from above, a convex polygon for every frame: smaller ones, nearest points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.math.rotation import Floats
from poise.measure import Support

HALVINGS = 4
"""A polygon too narrow for a margin gets half of it, this often; then its middle is left."""

NEAR = 1e-4
"""Corners that move by less make no other polygon [m]."""


class Polygons(NamedTuple):
    """Convex polygons, the last corner repeated to equal length.

    Attributes:
        corners: Anticlockwise [m], shape (k, m, 2).
        some: Whether there is any, shape (k,).
    """

    corners: Floats
    some: NDArray[np.bool_]


def inside_by(support: Support, margin: float) -> Polygons:
    """The polygons of points that are inside by a margin.

    Args:
        support: Polygons (k,).
        margin: [m]; less where a polygon is narrower than two of it.
    """
    made: dict[bytes, Floats] = {}
    rows = []
    for corners, size in zip(support.corners, support.size, strict=True):
        key = np.round(corners[:size] / NEAR).tobytes()
        if key not in made:
            made[key] = _smaller(corners[:size], margin)
        rows.append(made[key])
    most = max([len(row) for row in rows] + [1])
    out = np.zeros((len(rows), most, 2))
    for i, row in enumerate(rows):
        if len(row):
            out[i] = row[np.minimum(np.arange(most), len(row) - 1)]
    return Polygons(out, np.asarray(support.size > 0))


def nearest(polygons: Polygons, point: Floats) -> Floats:
    """Points (k, 2) themselves where they are inside, else the nearest of each polygon."""
    a = polygons.corners
    b = np.roll(a, -1, axis=1)
    edge, way = b - a, point[:, None] - a
    size = (edge * edge).sum(axis=2)
    along = np.clip((way * edge).sum(axis=2) / np.where(size > 0.0, size, 1.0), 0.0, 1.0)
    feet = a + along[:, :, None] * edge
    far = ((point[:, None] - feet) ** 2).sum(axis=2)
    found = feet[np.arange(len(a)), far.argmin(axis=1)]
    # anticlockwise: inside is to the left of every edge; what has no area holds nothing
    cross = edge[..., 0] * way[..., 1] - edge[..., 1] * way[..., 0]
    area = (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]).sum(axis=1)
    inside = (cross >= 0.0).all(axis=1) & (area > 1e-12)
    out: Floats = np.where(inside[:, None], point, found)
    return out


def _smaller(corners: Floats, margin: float) -> Floats:
    """One polygon, cut by its edges moved inwards."""
    if len(corners) < 3:
        return np.asarray(corners.mean(axis=0, keepdims=True)) if len(corners) else corners
    for _ in range(HALVINGS):
        left = corners
        for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            normal = np.array([a[1] - b[1], b[0] - a[0]]) / np.linalg.norm(b - a)
            left = _cut(left, normal, float(normal @ a) + margin)
        if len(left) > 2:
            return left
        margin *= 0.5
    return np.asarray(corners.mean(axis=0, keepdims=True))


def _cut(corners: Floats, normal: Floats, least: float) -> Floats:
    """The part of a polygon with normal . x >= least (Sutherland and Hodgman)."""
    if not len(corners):
        return corners
    high = corners @ normal - least
    kept: list[Floats] = []
    for i in range(len(corners)):
        j = (i + 1) % len(corners)
        if high[i] >= 0.0:
            kept.append(corners[i])
        if high[i] * high[j] < 0.0:
            share = high[i] / (high[i] - high[j])
            kept.append(corners[i] + share * (corners[j] - corners[i]))
    return np.array(kept).reshape(-1, 2)
