"""Convex meshes and cylinders: where they touch other shapes, found by coal.

The core knows where spheres, capsules and boxes touch. Pairs with a mesh or a cylinder are given to
it before every step: coal (https://github.com/coal-library/coal) finds the direction in which two
shapes are nearest or least deep, `poise.simulation.contact.convex_patch` the points. What is found
depends on the present state alone, copy by copy.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poise import _core
from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.math.rotation import multiply, quat_matrix
from poise.model.scene import Scene
from poise.model.shape import Shape
from poise.simulation.contact.convex_patch import (
    Posed,
    middles,
    patch,
    separation,
    solid_of,
    widest,
)

if TYPE_CHECKING:
    from poise.simulation.contact.collision_model import CollisionModel

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
        self._coordinates = _Coordinates(scene)
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
        p, E = self._poses(np.concatenate([q, self._coordinates.ahead(q, v, dt)]))
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


class _Coordinates:
    """Where a scene's coordinates have which kind, to follow velocities for a step."""

    def __init__(self, scene: Scene) -> None:
        forest = scene.forest
        q, v, kind = forest.q_adr, forest.v_adr, forest.kind
        free, axis = kind == 0, kind >= 2
        first = np.arange(3)
        self.line_q = np.concatenate([(q[free][:, None] + first).ravel(), q[axis]])
        self.line_v = np.concatenate([(v[free][:, None] + first).ravel(), v[axis]])
        # quaternions come after the position of a free joint
        turns = kind <= 1
        after = np.where(free, 3, 0)[turns, None]
        self.turn_q = q[turns][:, None] + after + np.arange(4)
        self.turn_v = v[turns][:, None] + after + first

    def ahead(self, q: Floats, v: Floats, dt: float) -> Floats:
        """Where these velocities lead in a step, shape (n, nq)."""
        there = q.copy()
        there[:, self.line_q] += dt * v[:, self.line_v]
        w = 0.5 * dt * v[:, self.turn_v]
        half = _length(w)[..., None]
        sine = np.divide(np.sin(half), half, out=np.ones_like(half), where=half > 0.0)
        turn = np.concatenate([np.cos(half), sine * w], axis=-1)
        there[:, self.turn_q] = multiply(q[:, self.turn_q], turn)
        return np.asarray(there)


def _length(x: Floats) -> Floats:
    """Lengths of vectors, (..., 3)."""
    a, b, c = x[..., 0], x[..., 1], x[..., 2]
    return np.asarray(np.sqrt(a * a + b * b + c * c))


def _rotate(R: Floats, x: Floats) -> Floats:
    """Vectors turned by matrices."""
    return np.asarray(R[..., 0] * x[..., :1] + R[..., 1] * x[..., 1:2] + R[..., 2] * x[..., 2:])
