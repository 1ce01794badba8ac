"""Geometry of shapes: surface points, balls whose hull is the shape, lowest point, triangles."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix, rotate
from poise.model.shape import Shape


def surface_points(shape: Shape) -> Floats:
    """Points of a shape's surface that may touch first, in the link's frame [m], shape (k, 3).

    Corners of boxes and meshes; of round shapes, the points of each end in 26 directions.
    """
    signs = np.array(
        [(x, y, z) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0) for z in (-1.0, 0.0, 1.0)]
    )
    turn = quat_matrix(shape.quat)
    if shape.kind == "mesh":
        local = np.array(shape.vertices)
    elif shape.kind == "box":
        local = signs[np.all(signs != 0.0, axis=1)] * shape.size
    elif shape.kind == "cylinder":
        angle = np.arange(8) * np.pi / 4.0
        r, half = shape.size
        ring = np.stack([r * np.cos(angle), r * np.sin(angle), np.zeros(8)], axis=1)
        local = np.concatenate([ring + (0.0, 0.0, half), ring - (0.0, 0.0, half)])
    else:
        # in directions of the link's frame, so that the lowest point of a level capsule is there
        r, half = (*shape.size, 0.0)[:2]
        sides = signs[np.any(signs != 0.0, axis=1)]
        sides = r * sides / np.linalg.norm(sides, axis=1, keepdims=True) @ turn
        ends = [(0.0, 0.0, half), (0.0, 0.0, -half)] if half else [(0.0, 0.0, 0.0)]
        local = np.concatenate([sides + end for end in ends])
    world: Floats = np.array(shape.pos) + local @ turn.T
    return world


def swept_points(shape: Shape) -> tuple[Floats, float]:
    """Points in the link's frame (k, 3) and a radius [m]: the shape is the hull of balls there.

    Centers of the caps of spheres and capsules; of other shapes `surface_points`, with radius 0.
    """
    if shape.kind not in ("sphere", "capsule"):
        return surface_points(shape), 0.0
    radius, half = (*shape.size, 0.0)[:2]
    ends = np.array([[0.0, 0.0, half], [0.0, 0.0, -half]][: 2 if half else 1])
    return np.array(shape.pos) + rotate(shape.quat, ends), radius


def reach_below(shape: Shape, R: Floats) -> float:
    """Distance from a shape's center down to its lowest point [m].

    Args:
        shape: A sphere, capsule, cylinder or box.
        R: Rotation of its link in the world, shape (3, 3).
    """
    down = np.abs((R @ quat_matrix(shape.quat))[2])
    if shape.kind == "box":
        return float(down @ np.array(shape.size))
    radius, half = (*shape.size, 0.0)[:2]
    if shape.kind == "cylinder":
        return float(radius * math.sqrt(max(0.0, 1.0 - down[2] ** 2)) + half * down[2])
    return float(radius + half * down[2])


def lowest_z(shape: Shape) -> float:
    """Lowest z of a sphere, capsule, cylinder or box in its link's frame [m]."""
    return shape.pos[2] - reach_below(shape, np.eye(3))


# ---- triangles
#
# Spheres, capsules and cylinders are profiles turned about z; corners of boxes and meshes, and rims
# of cylinders, have one vertex per face, so that normals are sharp there.

SEGMENTS = 24
"""Vertices around an axis."""

RINGS = 7
"""Rings of a half ball, from its rim to its pole."""


class Triangles(NamedTuple):
    """A mesh: counter-clockwise triangles, seen from outside."""

    positions: Floats  # [m], shape (n, 3)
    normals: Floats  # shape (n, 3)
    faces: NDArray[np.int64]  # shape (m, 3)


def triangles(shape: Shape) -> Triangles:
    """A shape as triangles, in the frame of its link."""
    kind, size = str(shape.kind), shape.size
    if kind == "box":
        mesh = _box(size)
    elif kind == "cylinder":
        mesh = _revolve(*_cylinder(*size))
    elif kind == "mesh":
        mesh = _flat(np.array(shape.vertices)[shape.triangles])
    else:
        mesh = _revolve(*_capsule(size[0], size[1] if kind == "capsule" else 0.0))
    R = quat_matrix(shape.quat)
    return Triangles(mesh.positions @ R.T + shape.pos, mesh.normals @ R.T, mesh.faces)


def triangles_in_world(shape: Shape, p: Floats, e: Floats) -> Triangles:
    """A shape as triangles in the world, its link at position p [m] and orientation e (w x y z)."""
    mesh, R = triangles(shape), quat_matrix(e)
    return Triangles(mesh.positions @ R.T + p, mesh.normals @ R.T, mesh.faces)


def _capsule(radius: float, half: float) -> tuple[Floats, Floats]:
    """Profile of a capsule from the upper pole to the lower: points and normals (r, z)."""
    angle = np.linspace(0.0, math.pi / 2, RINGS)
    upper = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    upper[0, 0] = 0.0
    lower = upper[::-1] * (1.0, -1.0)
    # a ball has one equator, a capsule two
    normals = np.concatenate([upper, lower if half > 0.0 else lower[1:]])
    shift = np.where(np.arange(len(normals)) < RINGS, half, -half)
    points = radius * normals
    points[:, 1] += shift
    return points, normals


def _cylinder(radius: float, half: float) -> tuple[Floats, Floats]:
    points = np.array([[0, half], [radius, half], [radius, half], [radius, -half]])
    points = np.concatenate([points, [[radius, -half], [0, -half]]])
    normals = np.repeat([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0]], 2, axis=0)
    return points, normals


def _revolve(points: Floats, normals: Floats) -> Triangles:
    """A profile turned about z."""
    angle = 2.0 * math.pi * np.arange(SEGMENTS) / SEGMENTS
    c, s = np.cos(angle), np.sin(angle)

    def turn(profile: Floats) -> Floats:
        r, z = profile[:, :1], profile[:, 1:]
        return np.stack([r * c, r * s, np.broadcast_to(z, (len(r), SEGMENTS))], 2).reshape(-1, 3)

    i = np.arange(SEGMENTS)
    j = (i + 1) % SEGMENTS
    faces = []
    for ring in range(len(points) - 1):
        a, b = ring * SEGMENTS, (ring + 1) * SEGMENTS
        if np.array_equal(points[ring], points[ring + 1]):
            continue  # a sharp rim: two rings in one place
        # at a pole one of the two triangles has no area
        if points[ring + 1, 0] > 0.0:
            faces.append(np.stack([a + i, b + i, b + j], axis=1))
        if points[ring, 0] > 0.0:
            faces.append(np.stack([a + i, b + j, a + j], axis=1))
    return Triangles(turn(points), turn(normals), np.concatenate(faces))


def _flat(corners: Floats) -> Triangles:
    """Triangles given by their corners (m, 3, 3), each with its own normal."""
    a, b, c = np.moveaxis(corners, 1, 0)
    n = np.cross(b - a, c - a)
    size = np.linalg.norm(n, axis=1)
    corners, n, size = corners[size > 0.0], n[size > 0.0], size[size > 0.0]
    normals = np.repeat(n / size[:, None], 3, axis=0)
    return Triangles(corners.reshape(-1, 3), normals, np.arange(len(normals)).reshape(-1, 3))


def _box(size: tuple[float, ...]) -> Triangles:
    """Four corners for each of the six faces."""
    corners, normals = [], []
    for axis, sign in ((axis, sign) for axis in range(3) for sign in (1.0, -1.0)):
        u, v, n = np.roll(np.eye(3), -axis - 1, axis=0) * ((1.0,), (sign,), (sign,))
        corners += [n - u - v, n + u - v, n + u + v, n - u + v]
        normals += [n] * 4
    faces = 4 * np.arange(6)[:, None, None] + np.array([[0, 1, 2], [0, 2, 3]])
    return Triangles(np.array(corners) * size, np.array(normals), faces.reshape(-1, 3))
