"""Solids: shapes as hulls with faces, ready to be clipped against each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.math.arrays import Floats
from poise.model.shape import Shape

RIM = 16  # corners of a disc
COPLANAR = 1e-6  # corners of a mesh this near to a plane, relative to its size, lie in it


class Face(NamedTuple):
    """A face of a solid, in the solid's frame: the points with sides x <= limits over it."""

    corners: Floats  # counter-clockwise from outside, (k, 3)
    normal: Floats
    offset: float  # of its plane along the normal
    sides: Floats  # unit vectors in the plane, outward, (s, 3)
    limits: Floats  # (s,)


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex shape in its own frame: the hull of corners, blown up by a ball or a disc."""

    corners: Floats  # (k, 3)
    ball: float  # radius [m]: spheres and capsules
    disc: float  # radius about z [m]: cylinders
    half: float  # half length of a rod along z [m], else 0
    faces: tuple[Face, ...]
    normals: Floats  # of the faces, (faces, 3)
    reach: float  # radius of the ball about the origin that holds it
    middle: Floats  # mean of the corners

    @property
    def round(self) -> bool:
        return self.ball > 0.0 or self.disc > 0.0


@lru_cache(maxsize=256)
def solid_of(shape: Shape) -> Solid:
    """The solid of a shape, in the shape's frame."""
    none: tuple[Floats, ...] = ()
    if shape.kind == "sphere":
        return _solid(np.zeros((1, 3)), none, ball=shape.size[0])
    if shape.kind == "capsule":
        radius, half = shape.size
        return _solid(_ends(half), none, ball=radius, half=half)
    if shape.kind == "cylinder":
        radius, half = shape.size
        turn = 2.0 * np.pi * np.arange(RIM) / RIM
        disc = np.stack([radius * np.cos(turn), radius * np.sin(turn), 0.0 * turn], axis=1)
        top, bottom = disc + (0.0, 0.0, half), disc[::-1] - (0.0, 0.0, half)
        return _solid(_ends(half), (top, bottom), disc=radius, half=half)
    if shape.kind == "box":
        signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        corners = signs * np.array(shape.size)
        return _solid(corners, tuple(_box_face(corners, k) for k in range(6)))
    vertices = np.array(shape.vertices)
    return _solid(vertices[np.unique(shape.triangles)], mesh_faces(vertices, shape.triangles))


def _solid(
    corners: Floats,
    faces: tuple[Floats, ...],
    *,
    ball: float = 0.0,
    disc: float = 0.0,
    half: float = 0.0,
) -> Solid:
    found = tuple(map(_face, faces))
    normals = np.array([face.normal for face in found]).reshape(-1, 3)
    reach = float(np.hypot(np.linalg.norm(corners, axis=1).max(), disc)) + ball
    return Solid(corners, ball, disc, half, found, normals, reach, corners.mean(axis=0))


def _face(corners: Floats) -> Face:
    edges = np.roll(corners, -1, axis=0) - corners
    # twice the area, by the sum over the corners (Newell)
    n = np.cross(corners - corners[0], edges).sum(axis=0)
    n = n / np.linalg.norm(n)
    sides = np.cross(edges, n)
    size = np.linalg.norm(sides, axis=1)
    kept = size > 1e-9 * size.max()
    sides = sides[kept] / size[kept, None]
    limits = np.sum(sides * corners[kept], axis=1)
    return Face(corners, n, float((corners @ n).mean()), sides, limits)


def _ends(half: float) -> Floats:
    return np.array([(0.0, 0.0, -half), (0.0, 0.0, half)])


def _box_face(corners: Floats, k: int) -> Floats:
    axis, sign = k % 3, 1.0 if k < 3 else -1.0
    n = sign * np.eye(3)[axis]
    return _ordered(corners[corners @ n > 0.0], n)


def _ordered(corners: Floats, n: Floats) -> Floats:
    """Corners of a convex polygon, counter-clockwise about n."""
    d = corners - corners.mean(axis=0)
    u = d[np.argmax(np.sum(d * d, axis=1))]
    turn = np.arctan2(d @ np.cross(n, u), d @ u * np.linalg.norm(n))
    return np.asarray(corners[np.argsort(turn, kind="stable")])


def mesh_faces(vertices: Floats, triangles: NDArray[np.int32]) -> tuple[Floats, ...]:
    """Faces of a hull: triangles that lie in one plane are one polygon."""
    x = vertices[triangles]
    size = float(np.ptp(vertices, axis=0).max())
    cross = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    area = np.linalg.norm(cross, axis=1)
    left = np.ones(len(triangles), dtype=bool)
    faces = []
    for t in np.argsort(-area, kind="stable"):
        if not left[t] or area[t] < 1e-12 * size * size:
            continue
        n = cross[t] / area[t]
        flat = np.abs((x - x[t, 0]) @ n).max(axis=1) < COPLANAR * size
        mine = left & flat & (cross @ n > -0.5 * area)
        left[mine] = False
        faces.append(_ordered(vertices[np.unique(triangles[mine])], n))
    return tuple(faces)
