"""Small convex polygons seen from above: hull of the supports, and the nearest point inside."""

from __future__ import annotations

import numpy as np

from poise.math.arrays import Floats


def hull(points: Floats, shrink: float = 0.0) -> Floats:
    """Corners of the convex hull, anticlockwise [m], shape (m, 2): Andrew's monotone chain.

    Args:
        points: [m], shape (k, 2), k >= 1.
        shrink: How far every corner moves towards the middle [m], at most half the way.
    """
    rows = sorted(set(map(tuple, points.tolist())))
    if len(rows) > 2:
        rows = _chain(rows) + _chain(rows[::-1])
    corners = np.array(rows)
    if shrink:
        middle = corners.mean(axis=0)
        away = corners - middle
        far = np.sqrt((away * away).sum(axis=1))
        corners = middle + away * (1.0 - np.minimum(shrink / np.maximum(far, 1e-9), 0.5))[:, None]
    return corners


def nearest_inside(corners: Floats, point: Floats) -> Floats:
    """The point itself if it is inside, else the nearest of the polygon, shape (2,)."""
    px, py = float(point[0]), float(point[1])
    rows = corners.tolist()
    best, found, inside = np.inf, (px, py), len(rows) > 2
    ax, ay = rows[-1]
    for bx, by in rows:
        ex, ey, wx, wy = bx - ax, by - ay, px - ax, py - ay
        if ex * wy - ey * wx < 0.0:
            inside = False
        size = ex * ex + ey * ey
        along = min(max((wx * ex + wy * ey) / size, 0.0), 1.0) if size else 0.0
        x, y = ax + along * ex, ay + along * ey
        far = (px - x) ** 2 + (py - y) ** 2
        if far < best:
            best, found = far, (x, y)
        ax, ay = bx, by
    return np.array((px, py) if inside else found)


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
