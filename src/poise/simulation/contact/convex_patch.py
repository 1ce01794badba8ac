"""The patch in which two convex solids touch, once the direction between them is known.

A face of one solid holds the other: the nearest face, edge or rim of the other is clipped by the
sides of that face, and each corner of what is left is a point of contact with a gap of its own, as
cpp/include/poise/contact/collision.hpp does for two boxes. Where no face holds, the nearest points
are all there is; two rods side by side share a stretch.

Solids: shapes as hulls with faces, ready to be clipped against each other.
"""

from __future__ import annotations

import math
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
class ConvexSolid:
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
def solid_of(shape: Shape) -> ConvexSolid:
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
) -> ConvexSolid:
    found = tuple(map(_face, faces))
    normals = np.array([face.normal for face in found]).reshape(-1, 3)
    reach = float(np.hypot(np.linalg.norm(corners, axis=1).max(), disc)) + ball
    return ConvexSolid(corners, ball, disc, half, found, normals, reach, corners.mean(axis=0))


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


HELD = 5e-3
"""A face holds where it is this much worse than the best direction, of the smaller solid's reach.
It keeps flat solids on their faces; round ones have less, for they roll over edges."""
ROLLS = 1e-4
A_BETTER = 1e-3  # by which the face of the first must be better than that of the second
PARALLEL = 0.9998  # squared cosine


class Point(NamedTuple):
    """A point of contact, as the core takes it."""

    gap: float
    normal: Floats  # towards the first
    at: Floats  # on the second


@dataclass(frozen=True, eq=False)
class Posed:
    """A solid somewhere in the world."""

    solid: ConvexSolid
    p: Floats
    R: Floats

    def support(self, u: Floats) -> Floats:
        """The point that is furthest along a unit vector."""
        solid, local = self.solid, self.R.T @ u
        x = solid.corners[(solid.corners @ local).argmax()] + solid.ball * local
        if solid.disc > 0.0:
            flat = np.hypot(local[0], local[1])
            if flat > 1e-12:
                x = x + (solid.disc / flat) * np.array([local[0], local[1], 0.0])
        return np.asarray(self.p + self.R @ x)

    def face(self, u: Floats) -> Face | None:
        """The face that looks along u most."""
        if not self.solid.faces:
            return None
        return self.solid.faces[int((self.solid.normals @ (self.R.T @ u)).argmax())]

    def feature(self, u: Floats) -> tuple[Floats, Floats]:
        """Corners of what lies foremost along u, a face, a line or a point; and single points."""
        solid, lowest = self.solid, self.support(u)[None]
        if solid.disc > 0.0 and abs((self.R.T @ u)[2]) < 0.5:
            return self.line(u), lowest[:0]
        found = self.face(u)
        if found is None:
            return self.line(u) if solid.half > 0.0 else lowest, lowest[:0]
        # the lowest point of a rim lies between the corners of its disc
        corners = found.corners @ self.R.T + self.p
        return corners, lowest if solid.disc > 0.0 else lowest[:0]

    def line(self, u: Floats) -> Floats:
        """The two ends of the line of a rod that lies foremost along u."""
        axis = self.R[:, 2]
        out = u if self.solid.ball > 0.0 else u - (axis @ u) * axis
        size = float(np.linalg.norm(out))
        middle = self.p + ((self.solid.ball + self.solid.disc) / max(size, 1e-300)) * out
        return np.array([middle - self.solid.half * axis, middle + self.solid.half * axis])


def patch(a: Posed, b: Posed, n: Floats, gap: float, at: Floats, near: float) -> list[Point]:
    """Up to four points of contact, given the nearest ones.

    Args:
        a: The first solid.
        b: The second.
        n: Unit vector from b to a, along which they are nearest, or least deep.
        gap: Their distance along it, below zero inside [m].
        at: The nearest point of b.
        near: Largest gap of a contact [m].
    """
    least = min(a.solid.reach, b.solid.reach)
    favour = least * (ROLLS if a.solid.round or b.solid.round else HELD)
    touches: list[Point] = []
    # a ball has one point, and rolls over edges smoothly
    flat = not any(x.solid.ball > 0.0 and x.solid.half == 0.0 for x in (a, b))
    face_b = b.face(n) if flat else None
    far_b = _gap_over(b, face_b, a)
    # no direction is better than the best: where b's face is nearly that, a's need not be asked
    sure = gap - min(favour, A_BETTER * least)
    face_a = a.face(-n) if flat and far_b < sure else None
    far_a = _gap_over(a, face_a, b)
    if face_b is not None and far_b >= max(gap - favour, far_a - A_BETTER * least):
        out, heights, points = _over(b, face_b, a)
        points = points - heights[:, None] * out
        touches = [Point(g, out, x) for g, x in zip(heights.tolist(), points, strict=True)]
    elif face_a is not None and far_a >= gap - favour:
        out, heights, points = _over(a, face_a, b)
        touches = [Point(g, -out, x) for g, x in zip(heights.tolist(), points, strict=True)]
    elif flat and a.solid.half > 0.0 and b.solid.half > 0.0:
        touches = _side_by_side(a, b, n)
    touches = [touch for touch in touches if touch.gap < near]
    # the nearest points may lie beside the face
    if not any(touch.gap < gap + ROLLS * least for touch in touches):
        touches.append(Point(gap, n, at))
    return _go_round(b, _four_of(touches))


def separation(a: Posed, b: Posed, n: Floats) -> float:
    """How far a is from b along n, below zero where they overlap."""
    return float((a.support(-n) - b.support(n)) @ n)


def middles(a: Posed, b: Posed) -> Floats:
    """The direction from the middle of b to that of a."""
    d = a.p + a.R @ a.solid.middle - b.p - b.R @ b.solid.middle
    size = float(np.linalg.norm(d))
    return np.asarray(d / size) if size > 1e-9 else np.array([0.0, 0.0, 1.0])


def widest(a: Posed, b: Posed, way: Floats) -> tuple[Floats, float]:
    """Of a direction and the faces' normals, that with the largest separation."""
    ways = [way, *(-a.R @ n for n in a.solid.normals), *(b.R @ n for n in b.solid.normals)]
    gaps = [separation(a, b, n) for n in ways]
    best = int(np.argmax(gaps))
    return ways[best], gaps[best]


def _gap_over(one: Posed, face: Face | None, other: Posed) -> float:
    """How far the other solid is from the plane of a face."""
    if face is None:
        return -np.inf
    out = one.R @ face.normal
    return float((other.support(-out) - one.p) @ out) - face.offset


def _over(one: Posed, face: Face, other: Posed) -> tuple[Floats, Floats, Floats]:
    """The part of the other solid's feature that lies over a face.

    Returns:
        The face's normal in the world, heights over the face (k,), and points (k, 3).
    """
    out = one.R @ face.normal
    poly, single = (x @ one.R - one.p @ one.R for x in other.feature(-out))
    beyond = (poly @ face.sides.T - face.limits).max(axis=0) > 0.0
    for k in beyond.nonzero()[0]:
        if len(poly):
            poly = _clip(poly, face.sides[k], face.limits[k])
    if len(single) and (face.sides @ single[0] <= face.limits).all():
        poly = np.concatenate([poly, single])
    return out, poly @ face.normal - face.offset, poly @ one.R.T + one.p


def _clip(poly: Floats, side: Floats, limit: float) -> Floats:
    """The part of a polygon, line or point behind a plane."""
    d = poly @ side - limit
    if len(poly) == 1:
        return np.asarray(poly[d <= 0.0])
    kept = []
    for i in range(len(poly)):
        k = (i + 1) % len(poly)
        if d[i] <= 0.0:
            kept.append(poly[i])
        # a line has one edge only
        if (d[i] < 0.0 < d[k] or d[k] < 0.0 < d[i]) and (len(poly) > 2 or i == 0):
            kept.append(poly[i] + d[i] / (d[i] - d[k]) * (poly[k] - poly[i]))
    return np.array(kept).reshape(-1, 3)


def _side_by_side(a: Posed, b: Posed, n: Floats) -> list[Point]:
    """Two rods that are nearly parallel: the ends of the stretch that they share."""
    d, e = a.R[:, 2], b.R[:, 2]
    slope = float(d @ e)
    if slope * slope < PARALLEL or abs(float(n @ d)) > 0.1:
        return []
    one, two = a.line(-n), b.line(n)
    middle = float(d @ (two.mean(axis=0) - one.mean(axis=0)))
    low = max(middle - b.solid.half * abs(slope), -a.solid.half)
    high = min(middle + b.solid.half * abs(slope), a.solid.half)
    if high - low < 1e-3 * min(a.solid.half, b.solid.half):
        return []
    found = []
    for s in (low, high):
        x = one.mean(axis=0) + s * d
        y = two.mean(axis=0) + float(e @ (x - two.mean(axis=0))) * e
        found.append(Point(float((x - y) @ n), n, y))
    return found


def _four_of(touches: list[Point]) -> list[Point]:
    """The four that hold best: the deepest, the furthest from it, the two furthest aside."""
    if len(touches) <= 4:
        return touches
    gap = np.array([touch.gap for touch in touches])
    x = np.array([touch.at for touch in touches])
    first = int(np.flatnonzero(gap < gap.min() + 1e-9)[0])
    far = x - x[first]
    second = int(np.argmax(np.sum(far * far, axis=1)))
    area = np.cross(far[second], far) @ touches[0].normal
    kept = {first, second}
    kept |= {int(np.argmax(area))} if area.max() > 0.0 else set()
    kept |= {int(np.argmin(area))} if area.min() < 0.0 else set()
    return [touches[k] for k in sorted(kept)]


def _go_round(b: Posed, touches: list[Point]) -> list[Point]:
    """In their order round the middle, from a direction of b: each keeps its slot for a while."""
    if len(touches) < 2:
        return touches
    axis = int(np.abs(b.R.T @ touches[0].normal).argmax())
    x = np.array([touch.at for touch in touches]) @ b.R
    x = x[:, [(axis + 1) % 3, (axis + 2) % 3]]
    x = x - x.sum(axis=0) / len(x)
    turn = [math.atan2(v, u) for u, v in x.tolist()]
    return [touches[k] for k in sorted(range(len(turn)), key=turn.__getitem__)]
