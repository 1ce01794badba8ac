"""Geometry of shapes: points of the surface, balls whose hull is the shape, the lowest point."""

from __future__ import annotations

import math

import numpy as np

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
