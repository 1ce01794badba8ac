"""Triangles to be drawn: meshes and height fields."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles, to be drawn in any number of poses.

    Args:
        vertices: [m], shape (n, 3).
        faces: Indices of vertices, shape (k, 3).
        smooth: Blend the normals of neighbouring faces, so that no edges show.
        convex: It is convex, and cannot shadow itself.
        grid: Of a height field, its points along x and y; made by `height_field`.
    """

    vertices: Floats
    faces: NDArray[np.int32]
    smooth: bool = False
    convex: bool = False
    grid: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        vertices = finite(floats(self.vertices, "vertices"), "vertices")
        if vertices.ndim != 2 or vertices.shape[1] != 3:
            raise PoiseError(f"vertices has shape {vertices.shape}, expected (n, 3)")
        faces = np.asarray(self.faces)
        if faces.ndim != 2 or faces.shape[1] != 3:
            raise PoiseError(f"faces has shape {faces.shape}, expected (k, 3)")
        if faces.dtype.kind not in "iu":
            raise PoiseError(f"faces must hold whole numbers, not {faces.dtype}")
        if faces.size and not 0 <= int(faces.min()) <= int(faces.max()) < len(vertices):
            raise PoiseError(f"faces must name vertices from 0 to {len(vertices) - 1}")
        faces = np.require(faces, dtype=np.int32, requirements="C")
        for name, value in (("vertices", vertices), ("faces", faces)):
            object.__setattr__(self, name, value)

    @cached_property
    def compiled(self) -> _core.Mesh:
        """The triangles as the core draws them, made once."""
        smooth, convex = bool(self.smooth), bool(self.convex)
        return _core.Mesh(self.vertices, self.faces, smooth, convex, *self.grid)

    @classmethod
    def height_field(cls, heights: ArrayLike, spacing: ArrayLike) -> Mesh:
        """A ground of given heights over a grid, its middle at the origin.

        Args:
            heights: Of the grid's points [m], shape (nx, ny), at least 2 by 2.
            spacing: Of the points along x and y [m], one number or two.
        """
        z = finite(floats(heights, "heights"), "heights")
        if z.ndim != 2 or min(z.shape) < 2:
            raise PoiseError(f"heights has shape {z.shape}, expected (nx, ny), 2 or more each")
        step = floats(spacing, "spacing")
        if step.shape not in ((), (2,)) or not np.isfinite(step).all() or step.min() <= 0:
            raise PoiseError(f"spacing is {spacing!r:.80}; it must be one or two positive lengths")
        dx, dy = np.broadcast_to(step, 2)
        nx, ny = z.shape
        x, y = np.meshgrid(
            (np.arange(nx) - (nx - 1) / 2) * dx, (np.arange(ny) - (ny - 1) / 2) * dy, indexing="ij"
        )
        index = np.arange(nx * ny).reshape(nx, ny)
        a, b, c, d = index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]
        faces = np.concatenate(
            [np.stack([a, b, c], axis=-1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)]
        )
        points = np.stack([x, y, z], axis=-1).reshape(-1, 3)
        return cls(points, faces.astype(np.int32), smooth=True, grid=(nx, ny))
