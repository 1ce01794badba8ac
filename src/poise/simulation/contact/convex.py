"""Convex meshes and cylinders: where they touch other shapes, found by coal.

The core knows where spheres, capsules and boxes touch. Pairs with a mesh or a cylinder are given to
it before every step: coal (https://github.com/coal-library/coal) finds the direction in which two
shapes are nearest or least deep, and `patch` the points. What is found depends on the present state
alone, copy by copy.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import _core
from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.math.rotation import multiply, quat_matrix
from poise.model.forest import Coordinates
from poise.model.scene import Scene
from poise.model.shape import Shape

if TYPE_CHECKING:
    from poise.simulation.contact.collision_model import CollisionModel

# ---- solids: shapes as hulls with faces, ready to be clipped against each other

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


# ---- the patch in which two convex solids touch, once the direction between them is known
#
# A face of one solid holds the other: the nearest face, edge or rim of the other is clipped by the
# sides of that face, and each corner of what is left is a point of contact with a gap of its own,
# as cpp/include/poise/contact/collision.hpp does for two boxes. Where no face holds, the nearest
# points are all there is; two rods side by side share a stretch.

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


# ---- the pairs of a scene

NEAR = 0.01  # as kNear of the core: contacts nearer than this take part [m]
FARTHEST = 1.0  # as kFarthest of the core: none is looked for beyond [m]
POINTS = 4  # of a pair
DOUBT = 1e-4  # of the smaller solid's reach: distances that differ by more are wrong

Nearest = tuple[Floats, float, Floats]


def load_coal() -> Any:
    """The package coal, or an error that says how to get it."""
    try:
        return importlib.import_module("coal")
    except ImportError as error:
        raise PoiseError(
            "meshes and cylinders meet other shapes through coal, which is not installed: "
            "pip install poise[coal], or World(convex=False) lets them meet the ground only"
        ) from error


def convex_of(scene: Scene, touch: CollisionModel) -> Convex | None:
    """What finds the touches of meshes and cylinders, if they meet anything."""
    convex = touch.colliders.convex
    met = convex[touch.pairs.a].any() or convex[touch.pairs.b].any()
    return Convex(scene, touch) if met else None


class Convex:
    """Finds where the pairs with meshes and cylinders touch.

    Args:
        scene: With the projectiles at its end, as the core has it.
        touch: What can touch what.
    """

    def __init__(self, scene: Scene, touch: CollisionModel) -> None:
        self._coal = load_coal()
        self._scene = scene
        colliders, pairs = touch.colliders, np.stack(touch.pairs, axis=1).astype(np.int64)
        self.pairs = pairs[colliders.convex[pairs].any(axis=1)]
        # only colliders that such a pair has
        used = np.unique(self.pairs)
        self._a, self._b = np.searchsorted(used, self.pairs.T)
        self._shapes = [colliders.shapes[k] for k in used]
        self._still = np.flatnonzero(colliders.link[used] < 0)
        self._link = np.maximum(colliders.link[used], 0).astype(np.int64)
        self._pos = np.array([shape.pos for shape in self._shapes]).reshape(-1, 3)
        self._quat = np.array([shape.quat for shape in self._shapes]).reshape(-1, 4)
        self._solids = [solid_of(shape) for shape in self._shapes]
        self._geometry = _geometries(self._coal, self._shapes)
        self._reach = np.array([solid.reach for solid in self._solids])
        self._projectile_of = colliders.projectile[used]

    def contacts(
        self, q: Floats, v: Floats, projectiles: _core.Projectiles, dt: float, gravity: Floats
    ) -> Floats:
        """Contacts of the pairs, shape (n, pairs, 4, 7): gap, normal, point.

        Args:
            q: Positions without projectiles, shape (n, nq).
            v: Velocities without projectiles, shape (n, nv).
            projectiles: Their positions and velocities, and which have been thrown.
            dt: Time step [s].
            gravity: [m/s^2], shape (3,).
        """
        n = len(q)
        found = np.zeros((n, len(self.pairs), POINTS, 7))
        found[..., 0] = np.inf
        q = np.concatenate([q, projectiles.q.reshape(n, -1)], axis=1)
        v = np.concatenate([v, projectiles.v.reshape(n, -1)], axis=1)
        out = np.concatenate([np.ones((n, 1), bool), projectiles.thrown], axis=1)
        # falling, a shape gains on what its velocity says
        p, R, moves = self._placed(q, v, dt)
        falls = dt * dt * float(np.linalg.norm(gravity))
        a, b = self._a, self._b
        near = np.minimum(NEAR + falls + moves[:, a] + moves[:, b], FARTHEST)
        close = _length(p[:, a] - p[:, b]) < self._reach[a] + self._reach[b] + near
        close &= out[:, self._projectile_of[a]] & out[:, self._projectile_of[b]]
        for copy, k in np.argwhere(close).tolist():
            self._meet(found[copy, k], int(a[k]), int(b[k]), p[copy], R[copy], float(near[copy, k]))
        return found

    def _placed(self, q: Floats, v: Floats, dt: float) -> tuple[Floats, Floats, Floats]:
        """Positions and orientations of the shapes, and how far each may move in a step."""
        n = len(q)
        p, E = self._poses(np.concatenate([q, _ahead(self._scene.forest.coordinates, q, v, dt)]))
        cosine = np.abs(np.sum(E[:n] * E[n:], axis=-1))
        angle = 2.0 * np.arccos(np.minimum(cosine, 1.0))
        moves = _length(p[n:] - p[:n]) + self._reach * angle
        return p[:n], quat_matrix(E[:n]), moves

    def _poses(self, q: Floats) -> tuple[Floats, Floats]:
        """Poses of the shapes in the world, (n, shapes, 3) and (n, shapes, 4)."""
        links, turns = forward_kinematics(self._scene, q)
        E = turns[:, self._link]
        p = links[:, self._link] + _rotate(quat_matrix(E), self._pos)
        E = multiply(E, self._quat)
        # obstacles hang on no link
        p[:, self._still], E[:, self._still] = self._pos[self._still], self._quat[self._still]
        return p, E

    def _meet(self, to: Floats, a: int, b: int, p: Floats, R: Floats, near: float) -> None:
        first, second = (Posed(self._solids[k], p[k], R[k]) for k in (a, b))
        nearest = self._nearest(a, b, first, second, near)
        if nearest is None:
            return
        found = patch(first, second, *nearest, near)
        for row, (gap, normal, point) in zip(to, found, strict=False):
            row[0], row[1:4], row[4:] = gap, normal, point

    def _nearest(self, a: int, b: int, first: Posed, second: Posed, near: float) -> Nearest | None:
        """Direction from b to a, distance along it, and the nearest point of b.

        The distance of two solids is the largest of their separations along all directions, so of
        several results that with the largest is the best.
        """
        doubt = DOUBT * min(first.solid.reach, second.solid.reach)
        found = self._collide(a, b, first, second, near)
        if found is None:
            return None
        best, returned = found
        middle = middles(first, second)
        if not (
            abs(best[1] - returned) < doubt and best[1] > separation(first, second, middle) - doubt
        ):
            # about once in a thousand coal's iterations end in a wrong place
            n, gap = widest(first, second, middle)
            others = [(n, gap, second.support(n))]
            found = self._collide(a, b, first, second, near, swap=True)
            others += [] if found is None else [found[0]]
            best = max(best, *others, key=lambda nearest: nearest[1])
        if first.solid.disc > 0.0 or second.solid.disc > 0.0:
            # the direction from a rim is only as good as the root of the tolerance
            found = self._collide(a, b, first, second, near, tolerance=1e-9)
            if found is not None and best[1] < found[0][1] < best[1] + doubt:
                best = found[0]
        return best if best[1] < near else None

    def _collide(
        self,
        a: int,
        b: int,
        first: Posed,
        second: Posed,
        near: float,
        swap: bool = False,
        tolerance: float = 1e-6,
    ) -> tuple[Nearest, float] | None:
        """What coal finds, and the distance it returns; None where nothing is near."""
        coal = self._coal
        # made anew: a request that has been used remembers where it ended
        request, result = coal.CollisionRequest(), coal.CollisionResult()
        request.security_margin = near
        request.gjk_tolerance = request.epa_tolerance = tolerance
        one = self._geometry[a], coal.Transform3s(first.R, first.p)
        two = self._geometry[b], coal.Transform3s(second.R, second.p)
        left, right = (two, one) if swap else (one, two)
        if not coal.collide(*left, *right, request, result):
            return None
        contact = result.getContact(0)
        n = contact.normal if swap else -contact.normal
        at = contact.getNearestPoint1() if swap else contact.getNearestPoint2()
        if not abs(n @ n - 1.0) < 1e-6:
            return (np.array([0.0, 0.0, 1.0]), -np.inf, first.p), np.inf
        return (n, separation(first, second, n), at), float(contact.penetration_depth)


def _geometries(coal: Any, shapes: Sequence[Shape]) -> list[Any]:
    made: dict[Any, Any] = {}
    for shape in shapes:
        key = (shape.kind, shape.size, shape.vertices)
        if key not in made:
            made[key] = _geometry(coal, shape)
    return [made[shape.kind, shape.size, shape.vertices] for shape in shapes]


def _geometry(coal: Any, shape: Shape) -> Any:
    """The shape as coal has it; lengths there are whole, not half."""
    if shape.kind == "sphere":
        return coal.Sphere(*shape.size)
    if shape.kind == "box":
        return coal.Box(*(2.0 * s for s in shape.size))
    if shape.kind != "mesh":
        kind = coal.Capsule if shape.kind == "capsule" else coal.Cylinder
        return kind(shape.size[0], 2.0 * shape.size[1])
    used, triangles = np.unique(shape.triangles, return_inverse=True)
    points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for x in np.array(shape.vertices)[used]:
        points.append(x)
    for face in triangles.reshape(-1, 3).tolist():
        faces.append(coal.Triangle(*face))
    return coal.Convex(points, faces)


def _ahead(at: Coordinates, q: Floats, v: Floats, dt: float) -> Floats:
    """Where these velocities lead in a step, shape (n, nq)."""
    there = q.copy()
    there[:, at.plain_q] += dt * v[:, at.plain_v]
    w = 0.5 * dt * v[:, at.turn]
    half = _length(w)[..., None]
    sine = np.divide(np.sin(half), half, out=np.ones_like(half), where=half > 0.0)
    turn = np.concatenate([np.cos(half), sine * w], axis=-1)
    there[:, at.quat] = multiply(q[:, at.quat], turn)
    return np.asarray(there)


def _length(x: Floats) -> Floats:
    """Lengths of vectors, (..., 3)."""
    a, b, c = x[..., 0], x[..., 1], x[..., 2]
    return np.asarray(np.sqrt(a * a + b * b + c * c))


def _rotate(R: Floats, x: Floats) -> Floats:
    """Vectors turned by matrices."""
    return np.asarray(R[..., 0] * x[..., :1] + R[..., 1] * x[..., 1:2] + R[..., 2] * x[..., 2:])
