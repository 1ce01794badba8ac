"""Probes: the points of shapes that meet the ground."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from poise.math.arrays import Floats, Ints
from poise.math.pose import Pose
from poise.model.shape import Shape
from poise.simulation.contact.colliders import Colliders
from poise.simulation.contact.ground import CoreGround

NONE = (0.0, 0.0, 0.0)
Probe = tuple[Any, Any, float, float, float, float]
"""Point and axis in the body's frame; radius, rim, turn, facet."""


class Probes(NamedTuple):
    """Probes as the core takes them."""

    collider: Ints  # (k,)
    point: Floats  # (k, 3)
    axis: Floats  # (k, 3)
    numbers: Floats  # radius, rim, turn, facet, (k, 4)


def probes_of(colliders: Colliders, ground: CoreGround) -> Probes:
    """The probes of all that moves, where there is a ground."""
    found: list[tuple[int, Probe]] = []
    for i, body in enumerate(colliders.body if ground.kind else ()):
        if body >= 0:
            probes = shape_probes(colliders.shapes[i], colliders.poses[i], ground.cell)
            found += [(i, probe) for probe in probes]
    return Probes(
        np.array([i for i, _ in found], dtype=np.int32),
        np.array([probe[0] for _, probe in found]).reshape(-1, 3),
        np.array([probe[1] for _, probe in found]).reshape(-1, 3),
        np.array([probe[2:] for _, probe in found]).reshape(-1, 4),
    )


def shape_probes(shape: Shape, pose: Pose, cell: float) -> list[Probe]:
    """Points of a shape that meet the ground.

    Args:
        shape: The shape.
        pose: Its pose in the body's frame.
        cell: Spacing of the ground's grid [m]; inf for flat ground.
    """
    flat = math.isinf(cell)

    def at(point: Any) -> tuple[float, ...]:
        return tuple(float(x) for x in (pose @ Pose(r=tuple(point))).r)

    def balls(points: Iterable[Any], radius: float) -> list[Probe]:
        # in a valley a ball lies on the facet below it and on those beside
        facets = (0,) if flat else (0, 1, 2)
        return [(at(p), NONE, radius, 0.0, 0.0, float(k)) for p in points for k in facets]

    def corners(points: Iterable[Any]) -> list[Probe]:
        # the facet below, and the one that it comes to within the step
        facets = (0,) if flat else (0, 1)
        return [(at(p), NONE, 0.0, 0.0, 0.0, float(k)) for p in points for k in facets]

    if shape.kind == "sphere":
        return balls([NONE], shape.size[0])
    if shape.kind == "capsule":
        radius, half = shape.size
        between = 0 if flat else min(6, math.ceil(2.0 * half / cell) - 1)
        heights = np.linspace(-half, half, 2 + max(between, 0)) if half > 0.0 else [0.0]
        return balls([(0.0, 0.0, z) for z in heights], radius)
    if shape.kind == "cylinder":
        radius, half = shape.size
        axis = (pose @ Pose(r=(0.0, 0.0, 1.0))).r
        axis = tuple(float(a - b) for a, b in zip(axis, pose.r, strict=True))
        turns = (0.0, 2.0 * math.pi / 3.0, -2.0 * math.pi / 3.0)
        ends = [(0.0, 0.0, -half), (0.0, 0.0, half)]
        if flat:
            return [(at(end), axis, 0.0, radius, turn, 0.0) for end in ends for turn in turns]
        # on uneven ground those that go round would leave places where the others stood
        fixed = [
            (radius * math.cos(a), radius * math.sin(a), z)
            for _, _, z in ends
            for a in np.linspace(0.0, 2.0 * math.pi, 8, endpoint=False)
        ]
        return [*((at(end), axis, 0.0, radius, 0.0, 0.0) for end in ends), *corners(fixed)]
    if shape.kind == "mesh":
        return corners(np.array(shape.vertices)[np.unique(shape.triangles)])
    return corners(_box_points(shape.size, cell))


def _box_points(size: tuple[float, ...], cell: float) -> list[tuple[float, ...]]:
    """Corners of a box; on uneven ground points all over its faces, spaced as the grid is."""
    grid: list[Any] = [(-1.0, 1.0)] * 3
    if not math.isinf(cell):
        grid = [np.linspace(-1.0, 1.0, min(5, 1 + math.ceil(2.0 * s / cell))) for s in size]
    return [
        (x * size[0], y * size[1], z * size[2])
        for x in grid[0]
        for y in grid[1]
        for z in grid[2]
        if max(abs(x), abs(y), abs(z)) == 1.0
    ]
