"""Geometry of shapes: points of the surface, the lowest point, the outline of a link."""

from __future__ import annotations

import numpy as np

from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
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


def lowest_z(shape: Shape) -> float:
    """Lowest z of a sphere, capsule or box in the link's frame [m]."""
    R = quat_matrix(shape.quat)
    if shape.kind == "box":
        return float(shape.pos[2] - np.abs(R[2]) @ np.array(shape.size))
    half = shape.size[1] if shape.kind == "capsule" else 0.0
    return float(shape.pos[2] - abs(R[2, 2]) * half - shape.size[0])
