"""Two convex shapes: how far apart they are, and where they touch, as the core finds it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.math.arrays import Floats, finite, floats
from poise.math.rotation import multiply, quat_matrix
from poise.model.shape import Shape
from poise.simulation.contact.colliders import KINDS, Colliders, shape_pose


class Touches(NamedTuple):
    """Two shapes in n poses: gap [m], unit normal from b to a, and point on b [m], one row each.

    A gap is below zero where the shapes overlap, and infinite where there is no point.
    """

    nearest: Floats  # (n, 7)
    points: Floats  # at most four, (n, 4, 7)


def touches(a: Shape, b: Shape, poses: ArrayLike, near: float) -> Touches:
    """Nearest points of two shapes, and the points in which they touch.

    Args:
        a: The first shape.
        b: The second.
        poses: Positions [m] and quaternions of the two links, shape (n, 2, 7).
        near: Points further apart are not found [m].
    """
    links = finite(floats(poses, "poses"), "poses")
    middles = np.empty(links.shape)
    for k, shape in enumerate((a, b)):
        own = shape_pose(shape)
        E = links[:, k, 3:]
        turned = quat_matrix(E) * np.asarray(own.r)
        middles[:, k, :3] = links[:, k, :3] + turned[..., 0] + turned[..., 1] + turned[..., 2]
        middles[:, k, 3:] = multiply(E, np.asarray(own.E))
    none, kinds = np.full(2, -1, dtype=np.int32), [KINDS[a.kind], KINDS[b.kind]]
    pair = Colliders(
        shapes=(a, b),
        poses=(shape_pose(a), shape_pose(b)),
        kind=np.array(kinds, dtype=np.int32),
        body=none,
        link=none,
        surface=np.zeros(2, dtype=np.int32),
        projectile=np.zeros(2, dtype=np.int32),
    )
    return Touches(*_core.collide(pair, np.ascontiguousarray(middles), near))
