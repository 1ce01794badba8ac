"""Convex polygons in the plane: hulls, smaller polygons, nearest points, distance to the edge.

Many polygons at once are `Polygons`; a single one is an array of corners (m, 2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.errors import PoiseError
from poise.math.arrays import Floats, floats

HALVINGS = 4
"""A polygon too narrow for a margin gets half of it, this often; then its middle is left."""

NEAR = 1e-4
"""Polygons whose corners differ by less are shrunk once [m]."""

COINCIDENT = 1e-9
"""Points that are this near to each other, or to an edge, make no corner [m]."""

Counts = NDArray[np.int64]


class Polygons(NamedTuple):
    """Convex polygons of different numbers of corners.

    Attributes:
        corners: Counterclockwise [m], shape (..., m, 2); NaN after the last.
        size: Number of corners, shape (...): 0 is no polygon, 1 a point, 2 a segment.
    """

    corners: Floats
    size: Counts


# ---- many polygons


def convex_hulls(points: ArrayLike, on: ArrayLike) -> Polygons:
    """Convex hulls of the selected points, projected on the ground plane.

    Args:
        points: [m], shape (..., k, 2) or (..., k, 3).
        on: Which of them count, shape (..., k).
    """
    at, chosen = floats(points, "points"), floats(on, "on") != 0.0
    if at.shape[:-1] != chosen.shape or not chosen.ndim or at.shape[-1] not in (2, 3):
        raise PoiseError(
            f"points has shape {at.shape} and on {chosen.shape}, expected (..., k, 3) and (..., k)"
        )
    at = at[..., :2]
    shape = chosen.shape[:-1]
    rows = chosen.reshape(-1, chosen.shape[-1])
    which, _ = np.nonzero(rows)
    found = convex_hulls_of_rows(at.reshape(*rows.shape, 2)[rows], which, len(rows))
    corners = found.corners.reshape(*shape, *found.corners.shape[1:])
    return Polygons(corners, found.size.reshape(shape))


def convex_hulls_of_rows(points: Floats, which: Counts, n: int) -> Polygons:
    """Convex hulls of n sets of points that come as flat rows.

    Args:
        points: [m], shape (rows, 2).
        which: Set that each row belongs to, shape (rows,).
        n: Number of sets.
    """
    return Polygons(*_hulls(*_padded(points, which, n)))


def edge_distance(polygons: Polygons, point: ArrayLike) -> Floats:
    """Distance of a point to the edge of the polygon in the ground plane [m], shape (...).

    Args:
        polygons: The polygons.
        point: In the world [m], shape (..., 2) or (..., 3).

    Returns:
        Positive inside, negative outside; NaN where there is no polygon, or no point.
    """
    at = floats(point, "point")
    if at.ndim == 0 or at.shape[-1] not in (2, 3):
        raise PoiseError(f"point has shape {at.shape}, expected (..., 2) or (..., 3)")
    try:
        np.broadcast_shapes(polygons.size.shape, at.shape[:-1])
    except ValueError:
        raise PoiseError(
            f"point has shape {at.shape}, and there are polygons of shape {polygons.size.shape}"
        ) from None
    a = polygons.corners
    # the corner after the last is the first; edges beyond it are NaN, and do not count
    last = np.arange(a.shape[-2]) == polygons.size[..., None] - 1
    b = np.where(last[..., None], a[..., :1, :], np.roll(a, -1, axis=-2))
    p = at[..., None, :2]
    away = _to_segment(p, a, b).min(axis=-1, initial=np.inf, where=~np.isnan(a[..., 0]))
    # a line from the point along x crosses the edge of a polygon that holds it once
    rise = b[..., 1] - a[..., 1]
    level = (p[..., 1] - a[..., 1]) / np.where(np.abs(rise) > 0.0, rise, 1.0)
    beyond = p[..., 0] < a[..., 0] + level * (b[..., 0] - a[..., 0])
    crossed = ((a[..., 1] > p[..., 1]) != (b[..., 1] > p[..., 1])) & beyond
    inside = crossed.sum(axis=-1) % 2 == 1
    margin: Floats = np.where(inside, away, 0.0 - away)
    return np.where(np.isinf(away), np.nan, margin)


def shrink(polygons: Polygons, margin: float) -> Polygons:
    """The polygons of points that are inside by a margin.

    Args:
        polygons: Polygons (k,).
        margin: [m]; less where a polygon is narrower than two of it.
    """
    made: dict[bytes, Floats] = {}
    rows = []
    for corners, size in zip(polygons.corners, polygons.size, strict=True):
        key = np.round(corners[:size] / NEAR).tobytes()
        if key not in made:
            made[key] = _shrink_one(corners[:size], margin)
        rows.append(made[key])
    out = np.full((len(rows), max([len(row) for row in rows] + [1]), 2), np.nan)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return Polygons(out, np.array([len(row) for row in rows], dtype=np.int64))


def nearest_points(polygons: Polygons, point: Floats) -> Floats:
    """Points (k, 2) themselves where they are inside, else the nearest of each polygon."""
    # the last corner repeated to equal length, the origin where there is no polygon
    last = np.clip(polygons.size - 1, 0, None)[:, None]
    index = np.minimum(np.arange(polygons.corners.shape[1]), last)
    a = np.take_along_axis(polygons.corners, index[..., None], axis=1)
    a = np.where(polygons.size[:, None, None] > 0, a, 0.0)
    b = np.roll(a, -1, axis=1)
    edge, way = b - a, point[:, None] - a
    size = (edge * edge).sum(axis=2)
    along = np.clip((way * edge).sum(axis=2) / np.where(size > 0.0, size, 1.0), 0.0, 1.0)
    feet = a + along[:, :, None] * edge
    far = ((point[:, None] - feet) ** 2).sum(axis=2)
    found = feet[np.arange(len(a)), far.argmin(axis=1)]
    # counterclockwise: inside is to the left of every edge; a polygon without area has no inside
    cross = edge[..., 0] * way[..., 1] - edge[..., 1] * way[..., 0]
    area = (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]).sum(axis=1)
    inside = (cross >= 0.0).all(axis=1) & (area > 1e-12)
    out: Floats = np.where(inside[:, None], point, found)
    return out


# ---- one polygon


def convex_hull(points: Floats, inset: float = 0.0) -> Floats:
    """Corners of the convex hull, counterclockwise [m], shape (m, 2): Andrew's monotone chain.

    Args:
        points: [m], shape (k, 2), k >= 1.
        inset: Distance that every corner moves towards the middle [m], at most half of its own.
    """
    rows = sorted(set(map(tuple, points.tolist())))
    if len(rows) > 2:
        rows = _chain(rows) + _chain(rows[::-1])
    corners = np.array(rows)
    if inset:
        middle = corners.mean(axis=0)
        away = corners - middle
        far = np.sqrt((away * away).sum(axis=1))
        corners = middle + away * (1.0 - np.minimum(inset / np.maximum(far, 1e-9), 0.5))[:, None]
    return corners


def nearest_point(corners: Floats, point: Floats) -> Floats:
    """The point itself if it is inside, else the nearest of the polygon, shape (2,)."""
    one = Polygons(corners[None], np.array([len(corners)]))
    found: Floats = nearest_points(one, point[None])[0]
    return found


def _chain(rows: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Points of sorted rows that only turn left, all but the last."""
    out: list[tuple[float, ...]] = []
    for x, y in rows:
        while len(out) > 1:
            (ax, ay), (bx, by) = out[-2], out[-1]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                break
            out.pop()
        out.append((x, y))
    return out[:-1]


# ---- details


def _shrink_one(corners: Floats, margin: float) -> Floats:
    """One polygon, clipped by its edges moved inwards."""
    if len(corners) < 3:
        return np.asarray(corners.mean(axis=0, keepdims=True)) if len(corners) else corners
    for _ in range(HALVINGS):
        left = corners
        for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            normal = np.array([a[1] - b[1], b[0] - a[0]]) / np.linalg.norm(b - a)
            left = _clip(left, normal, float(normal @ a) + margin)
        if len(left) > 2:
            return left
        margin *= 0.5
    return np.asarray(corners.mean(axis=0, keepdims=True))


def _clip(corners: Floats, normal: Floats, least: float) -> Floats:
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
            fraction = high[i] / (high[i] - high[j])
            kept.append(corners[i] + fraction * (corners[j] - corners[i]))
    return np.array(kept).reshape(-1, 2)


def _to_segment(p: Floats, a: Floats, b: Floats) -> Floats:
    """Distance of points to the lines from a to b, shape (...)."""
    edge, way = b - a, p - a
    squared = np.square(edge).sum(axis=-1)
    along = np.sum(way * edge, axis=-1) / np.where(squared > 0.0, squared, 1.0)
    away: Floats = np.linalg.norm(way - np.clip(along, 0.0, 1.0)[..., None] * edge, axis=-1)
    return away


def _padded(points: Floats, which: Counts, n: int) -> tuple[Floats, Counts]:
    """Points of each set by x, then y, in rows of equal length (n, m, 2), NaN after the last."""
    count = np.bincount(which, minlength=n)
    order = np.lexsort((points[:, 1], points[:, 0], which))
    first = np.cumsum(count) - count
    place = np.arange(len(which)) - first[which[order]]
    rows = np.full((n, count.max(initial=0), 2), np.nan)
    rows[which[order], place] = points[order]
    return rows, count


def _hulls(points: Floats, count: Counts) -> tuple[Floats, Counts]:
    """Convex hulls of many small sets of points at once: Andrew's monotone chain."""
    n, m = points.shape[:2]
    backwards = np.maximum(count[:, None] - 1 - np.arange(m), 0)
    below = _chains(points, count)
    above = _chains(np.take_along_axis(points, backwards[..., None], axis=1), count)
    # each chain ends where the other begins
    size = np.maximum(below[1] + above[1] - 2, np.minimum(count, 1))
    corners = np.full((n, size.max(initial=0), 2), np.nan)
    for k in range(corners.shape[1]):
        low = k < np.maximum(below[1] - 1, 1)
        at = np.where(low, k, k - below[1] + 1)
        for half, chain in ((low, below[0]), (~low, above[0])):
            rows = np.flatnonzero(half & (k < size))
            corners[rows, k] = chain[rows, at[rows]]
    # two corners in one place are one
    if corners.shape[1] > 1:
        one = (size == 2) & (np.linalg.norm(corners[:, 1] - corners[:, 0], axis=-1) <= COINCIDENT)
        corners[one, 1] = np.nan
        size -= one
    return corners, size


def _chains(points: Floats, count: Counts) -> tuple[Floats, Counts]:
    """The points of sorted rows that only turn left, (n, m, 2), and how many they are."""
    rows = np.arange(len(points))
    chain = np.full((len(points), points.shape[1] + 1, 2), np.nan)  # never fewer than two
    size = np.zeros_like(count)
    for i in range(points.shape[1]):
        on, c = i < count, points[:, i]
        while True:
            a, b = chain[rows, size - 2], chain[rows, size - 1]
            turn = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
            drop = on & (size > 1) & ((turn <= 0.0) | (_to_segment(b, a, c) <= COINCIDENT))
            if not drop.any():
                break
            size = size - drop
        chain[rows[on], size[on]] = c[on]
        size = size + on
    return chain, size
