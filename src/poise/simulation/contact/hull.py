"""Hulls of meshes, compiled for the core: corners, edges, and faces, one for each plane."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.errors import CharacterError
from poise.math.arrays import Floats, Ints
from poise.model.shape import Shape

COPLANAR = 1e-6
"""Corners of a mesh this near to a plane, relative to its size, lie in it."""


SMALLEST = 1e-9  # [m]


class HullMesh(NamedTuple):
    """The hull of a mesh, about the middle of the box that holds it."""

    middle: Floats  # in the shape's frame [m], (3,)
    corners: Floats  # (k, 3)
    triangles: Ints  # counter-clockwise from outside, (3 t,)
    face: Ints  # which face a triangle is part of, (t,)
    loop: Ints  # the corners of all faces, one face after the other
    loop_size: Ints  # how many each has, (faces,)
    box: Floats  # half sizes, (3,)
    reach: float  # radius of the ball about the middle [m]


@dataclass(frozen=True)
class _Mesh:
    """A mesh that is known by its vertices."""

    vertices: tuple[tuple[float, ...], ...]
    triangles: Ints = field(compare=False)


def hull_of(shape: Shape) -> HullMesh:
    """The hull of a mesh; computed once for meshes with the same vertices."""
    return _hull(_Mesh(shape.vertices, shape.triangles))


@lru_cache(maxsize=256)
def _hull(mesh: _Mesh) -> HullMesh:
    used, flat = np.unique(mesh.triangles, return_inverse=True)
    x = np.array(mesh.vertices)[used]
    low, high = x.min(axis=0), x.max(axis=0)
    middle = 0.5 * (low + high)
    corners = x - middle
    if not float(np.ptp(x, axis=0).max()) > SMALLEST:
        raise CharacterError(
            f"mesh: it is smaller than {SMALLEST:g} m; are its vertices in metres?"
        )
    triangles = flat.reshape(-1, 3).astype(np.int64)
    faces = coplanar_faces(corners, triangles)
    face = np.zeros(len(triangles), dtype=np.int32)
    loops = []
    for k, (mine, normal) in enumerate(faces):
        face[mine] = k
        loops.append(_outline(corners, triangles[mine], normal))
    return HullMesh(
        middle,
        corners,
        triangles.astype(np.int32).ravel(),
        face,
        np.concatenate(loops).astype(np.int32),
        np.array([len(loop) for loop in loops], dtype=np.int32),
        0.5 * (high - low),
        float(np.sqrt((corners * corners).sum(axis=1).max())),
    )


def coplanar_faces(corners: Floats, triangles: NDArray[np.int64]) -> list[tuple[list[int], Floats]]:
    """Triangles that lie in one plane, with its normal: grown from the largest over their edges."""
    x = corners[triangles]
    flat = COPLANAR * float(np.ptp(corners, axis=0).max())
    cross = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    area = np.sqrt((cross * cross).sum(axis=1))
    normal = cross / np.maximum(area, 1e-300)[:, None]
    # a triangle that no neighbour lies in the plane of is a face; most are
    one, two = _edges(triangles)
    away = np.abs(((x[two] - x[one, :1]) * normal[one, None]).sum(axis=2)).max(axis=1)
    beside: dict[int, list[int]] = {}
    for a, b in zip(one[away < flat].tolist(), two[away < flat].tolist(), strict=True):
        beside.setdefault(a, []).append(b)
    left = [True] * len(triangles)
    found: list[tuple[list[int], Floats]] = []
    for seed in np.argsort(-area, kind="stable").tolist():
        # one without area is part of the face beside it
        if not left[seed] or area[seed] < 1e-6 * flat * flat:
            continue
        left[seed], mine = False, [seed]
        for t in mine:
            for other in beside.get(t, ()):
                high = ((x[other] - x[seed, 0]) * normal[seed]).sum(axis=1)
                if left[other] and np.abs(high).max() < flat:
                    left[other] = False
                    mine.append(other)
        found.append((mine, normal[seed]))
    for t in np.flatnonzero(left).tolist():
        near = set(two[one == t].tolist())
        next((mine for mine, _ in found if near & set(mine)), found[0][0]).append(t)
    return found


def _edges(triangles: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of triangles that share an edge, both ways round."""
    ends = np.sort(np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2), axis=2)
    ends = ends.reshape(-1, 2)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    shared = (ends[order[1:]] == ends[order[:-1]]).all(axis=1)
    a, b = order[:-1][shared] // 3, order[1:][shared] // 3
    return np.concatenate([a, b]), np.concatenate([b, a])


def _outline(corners: Floats, triangles: NDArray[np.int64], normal: Floats) -> NDArray[np.int64]:
    """The corners round a face, counter-clockwise: Andrew's monotone chain in its plane."""
    if len(triangles) == 1:
        return np.asarray(triangles[0])
    axis = int(np.abs(normal).argmax())
    u, v = (axis + 1) % 3, (axis + 2) % 3
    if normal[axis] < 0.0:
        u, v = v, u
    which = np.unique(triangles)
    at = {k: (float(corners[k, u]), float(corners[k, v])) for k in which.tolist()}
    order = sorted(at, key=at.__getitem__)

    def chain(points: list[int]) -> list[int]:
        kept: list[int] = []
        for k in points:
            while len(kept) > 1 and _turn(at[kept[-2]], at[kept[-1]], at[k]) <= 0.0:
                kept.pop()
            kept.append(k)
        return kept[:-1]

    return np.array(chain(order) + chain(order[::-1]))


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
