"""The support polygon, and how far a point is from its edge."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, floats
from poise.measure.touching import Copies, _check, closed, ground_contacts
from poise.simulation.contact.contacts import Contacts, Ints

STEEPEST = 0.5
"""A surface carries as long as its normal points up by this much: 60 degrees of slope."""

TOGETHER = 1e-9
"""Points that are this near to each other, or to an edge, make no corner [m]."""


class Support(NamedTuple):
    """The convex hull of contact points, seen from above.

    Attributes:
        corners: Anticlockwise [m], shape (..., m, 2); NaN after the last.
        size: How many there are, shape (...): 0 in the air, 1 a point, 2 a line.
    """

    corners: Floats
    size: Ints


def support_polygon(touches: Contacts, copies: Copies = ()) -> Support:
    """The support polygon of each copy, from contacts with ground and obstacles that touch.

    Args:
        touches: Contacts, as of `world.contacts`; those of one character or foot by `contacts_of`.
        copies: Shape of the leading axes.
    """
    mine = closed(ground_contacts(touches))
    shape, carries = _check(mine, copies), mine.normal[:, 2] > STEEPEST
    points, count = _padded(mine.point[carries, :2], mine.copy[carries], math.prod(shape))
    corners, count = _hulls(points, count)
    return Support(corners.reshape(*shape, *corners.shape[1:]), count.reshape(shape))


def polygon_of(points: ArrayLike, on: ArrayLike) -> Support:
    """The convex hulls of those points that stand, seen from above.

    Args:
        points: [m], shape (..., k, 2) or (..., k, 3).
        on: Which of them stand, shape (..., k).
    """
    at, stand = floats(points, "points")[..., :2], np.asarray(on, dtype=bool)
    shape = stand.shape[:-1]
    rows = stand.reshape(-1, stand.shape[-1])
    copy, _ = np.nonzero(rows)
    corners, count = _hulls(*_padded(at.reshape(*rows.shape, 2)[rows], copy, len(rows)))
    return Support(corners.reshape(*shape, *corners.shape[1:]), count.reshape(shape))


def support_margin(support: Support, point: ArrayLike) -> Floats:
    """Distance of a point to the edge of the polygon, seen from above [m], shape (...).

    Args:
        support: The polygons.
        point: In the world [m], shape (..., 2) or (..., 3).

    Returns:
        Above zero inside, below zero outside; NaN where there is no support, or no point.
    """
    at = floats(point, "point")
    if at.ndim == 0 or at.shape[-1] not in (2, 3):
        raise PoiseError(f"point has shape {at.shape}, expected (..., 2) or (..., 3)")
    try:
        np.broadcast_shapes(support.size.shape, at.shape[:-1])
    except ValueError:
        raise PoiseError(
            f"point has shape {at.shape}, and there are polygons of shape {support.size.shape}"
        ) from None
    a = support.corners
    # the corner after the last is the first; edges beyond it are NaN, and do not count
    last = np.arange(a.shape[-2]) == support.size[..., None] - 1
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


def _to_segment(p: Floats, a: Floats, b: Floats) -> Floats:
    """Distance of points to the lines from a to b, shape (...)."""
    edge, way = b - a, p - a
    squared = np.square(edge).sum(axis=-1)
    along = np.sum(way * edge, axis=-1) / np.where(squared > 0.0, squared, 1.0)
    away: Floats = np.linalg.norm(way - np.clip(along, 0.0, 1.0)[..., None] * edge, axis=-1)
    return away


def _padded(points: Floats, copy: Ints, n: int) -> tuple[Floats, Ints]:
    """Points of each copy by x, then y, in rows of equal length (n, m, 2), NaN after the last."""
    count = np.bincount(copy, minlength=n)
    order = np.lexsort((points[:, 1], points[:, 0], copy))
    first = np.cumsum(count) - count
    place = np.arange(len(copy)) - first[copy[order]]
    rows = np.full((n, count.max(initial=0), 2), np.nan)
    rows[copy[order], place] = points[order]
    return rows, count


def _hulls(points: Floats, count: Ints) -> tuple[Floats, Ints]:
    """Convex hulls of many small sets of points at once: Andrew's monotone chain."""
    n, m = points.shape[:2]
    backwards = np.maximum(count[:, None] - 1 - np.arange(m), 0)
    below = _chain(points, count)
    above = _chain(np.take_along_axis(points, backwards[..., None], axis=1), count)
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
        one = (size == 2) & (np.linalg.norm(corners[:, 1] - corners[:, 0], axis=-1) <= TOGETHER)
        corners[one, 1] = np.nan
        size -= one
    return corners, size


def _chain(points: Floats, count: Ints) -> tuple[Floats, Ints]:
    """The points of sorted rows that only turn left, (n, m, 2), and how many they are."""
    rows = np.arange(len(points))
    chain = np.full((len(points), points.shape[1] + 1, 2), np.nan)  # never fewer than two
    size = np.zeros_like(count)
    for i in range(points.shape[1]):
        on, c = i < count, points[:, i]
        while True:
            a, b = chain[rows, size - 2], chain[rows, size - 1]
            turn = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
            drop = on & (size > 1) & ((turn <= 0.0) | (_to_segment(b, a, c) <= TOGETHER))
            if not drop.any():
                break
            size = size - drop
        chain[rows[on], size[on]] = c[on]
        size = size + on
    return chain, size
