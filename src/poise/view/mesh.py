"""Triangle meshes: those of shapes and height fields, and the unit solids of a browser.

A browser draws a unit solid many times, rotated, moved and scaled. A primitive is one or several
of them: a capsule is two domes and a tube, so that one batch of each serves capsules of all sizes.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats, matrix


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    Args:
        vertices: [m], shape (n, 3).
        faces: Indices of vertices, shape (k, 3).
        smooth: Interpolates normals between faces (smooth shading).
        convex: Whether it is convex and cannot cast shadows on itself.
        grid: Of a height field, its points along x and y; see `height_field`.
    """

    vertices: Floats
    faces: NDArray[np.int32]
    smooth: bool = False
    convex: bool = False
    grid: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        vertices = matrix(self.vertices, "vertices", 3)
        faces = np.asarray(self.faces)
        if faces.ndim != 2 or faces.shape[1] != 3:
            raise PoiseError(f"faces has shape {faces.shape}, expected (k, 3)")
        if faces.dtype.kind not in "iu":
            raise PoiseError(f"faces must hold whole numbers, not {faces.dtype}")
        if faces.size and not 0 <= int(faces.min()) <= int(faces.max()) < len(vertices):
            raise PoiseError(f"faces must be indices of vertices, 0 to {len(vertices) - 1}")
        faces = np.require(faces, dtype=np.int32, requirements="C")
        for name, value in (("vertices", vertices), ("faces", faces)):
            object.__setattr__(self, name, value)

    @cached_property
    def compiled(self) -> _core.Mesh:
        """The mesh of the core's ray caster, cached."""
        smooth, convex = bool(self.smooth), bool(self.convex)
        return _core.Mesh(self.vertices, self.faces, smooth, convex, *self.grid)

    @classmethod
    def height_field(cls, heights: ArrayLike, spacing: ArrayLike) -> Mesh:
        """A mesh of heights over a grid, centered at the origin.

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
        faces = _grid_faces(np.ones((nx - 1, ny - 1), dtype=bool))
        points = np.stack([x, y, z], axis=-1).reshape(-1, 3)
        return cls(points, faces.astype(np.int32), smooth=True, grid=(nx, ny))


# ---- solids

AROUND = 24  # corners of a circle
# the rings of a dome are denser towards its rim, so that its shading meets that of the tube
LATITUDES = np.radians((0.0, 1.5, 4.0, 8.0, 14.0, 22.0, 33.0, 47.0, 66.0, 90.0))
TILES = 80  # checks of a plane along each side
DARK = 0.86  # brightness of every second check relative to the others


class Solid(NamedTuple):
    """Triangles of a unit solid.

    Attributes:
        vertices: Shape (n, 3), float32.
        faces: Shape (k, 3), uint32.
        flat: Whether faces are flat shaded.
    """

    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]
    flat: bool = False


class Part(NamedTuple):
    """One solid of a primitive.

    Attributes:
        solid: Its name; see `solid`.
        up: Its position along z of the primitive [m].
        turned: Whether it is upside down.
        scale: Along x, y and z.
        shade: Factor of its color.
    """

    solid: str
    up: float
    turned: bool
    scale: tuple[float, float, float]
    shade: float = 1.0


MESHES: dict[str, Solid] = {}
"""Solids of meshes, by the hash of their shape."""


def parts_of(kind: str, size: tuple[float, ...], mesh: Mesh | None = None) -> list[Part]:
    """The parts of a primitive."""
    if mesh is not None:
        name, length = mesh_solid(mesh)
        return [Part(name, 0.0, False, (length,) * 3)]
    if kind == "sphere" or (kind == "capsule" and size[1] == 0.0):
        return [Part("sphere", 0.0, False, (size[0],) * 3)]
    if kind == "capsule":
        r, half = size
        ends = [Part("dome", z, z < 0.0, (r, r, r)) for z in (half, -half)]
        return [*ends, Part("tube", 0.0, False, (r, r, half))]
    if kind == "cylinder":
        return [Part("cylinder", 0.0, False, (size[0], size[0], size[1]))]
    if kind == "box":
        return [Part("box", 0.0, False, (size[0], size[1], size[2]))]
    side = size[0] or 0.5
    dark = DARK if size[0] else 1.0
    return [
        Part("light_tiles", 0.0, False, (side, side, 1.0)),
        Part("dark_tiles", 0.0, False, (side, side, 1.0), dark),
    ]


def solid(name: str) -> Solid:
    """Triangles by name: "sphere", "dome", "tube", "cylinder", "cone", "box", tiles, or a mesh."""
    return MESHES[name] if name in MESHES else _unit_solid(name)


def mesh_solid(mesh: Mesh) -> tuple[str, float]:
    """Name of a mesh's shape, and its largest coordinate [m]: meshes of one shape are one solid."""
    kept: tuple[str, float] | None = mesh.__dict__.get("_solid")
    if kept is None:
        length = float(np.abs(mesh.vertices).max(initial=0.0)) or 1.0
        unit = np.round(mesh.vertices / length, 6) + 0.0
        looks = unit.tobytes() + mesh.faces.tobytes() + bytes([bool(mesh.smooth)])
        name = "mesh_" + hashlib.blake2b(looks, digest_size=6).hexdigest()
        if name not in MESHES:
            MESHES[name] = _solid(unit, mesh.faces, flat=not mesh.smooth)
        kept = mesh.__dict__["_solid"] = (name, length)
    return kept


@cache
def _unit_solid(name: str) -> Solid:
    if name == "sphere":
        lower = -LATITUDES[:0:-1]
        return _spherical(np.concatenate([lower, LATITUDES]))
    if name == "dome":
        return _spherical(LATITUDES)
    if name == "tube":
        return _profile([(1.0, -1.0), (1.0, 1.0)])
    if name == "cylinder":
        # rims are doubled: lids and side have different normals
        lids = [(0.0, -1.0), (1.0, -1.0)], [(1.0, -1.0), (1.0, 1.0)], [(1.0, 1.0), (0.0, 1.0)]
        return _join([_profile(list(lid)) for lid in lids])
    if name == "cone":
        return _join([_profile([(0.0, 0.0), (1.0, 0.0)]), _profile([(1.0, 0.0), (0.0, 1.0)])])
    if name == "box":
        return _box()
    return _tiles(odd=name == "dark_tiles")


def _spherical(latitudes: Floats) -> Solid:
    """Part of the unit sphere between the first latitude and the last, rising [rad]."""
    return _profile([(math.cos(a), math.sin(a)) for a in latitudes.tolist()])


def _profile(points: list[tuple[float, float]]) -> Solid:
    """Solid of revolution of a line of points (radius, height) about z."""
    angle = 2 * math.pi * np.arange(AROUND) / AROUND
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(AROUND)], axis=-1)
    rows = [r * ring + (0.0, 0.0, z) for r, z in points]
    index = np.arange(AROUND * len(points)).reshape(len(points), AROUND)
    a, b = index[:-1], index[1:]
    c, d = np.roll(b, -1, axis=1), np.roll(a, -1, axis=1)
    faces = np.concatenate([np.stack([a, d, c], -1), np.stack([a, c, b], -1)]).reshape(-1, 3)
    vertices = np.concatenate(rows)
    corner = vertices[faces]
    area = np.linalg.norm(
        np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1
    )
    return _solid(vertices, faces[area > 1e-9])


def _box() -> Solid:
    """The cube from -1 to 1."""
    faces, vertices = [], []
    for axis in range(3):
        for side in (-1.0, 1.0):
            square = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], dtype=float)[:: int(side)]
            vertices.append(np.insert(square, axis, side, axis=1))
    for k in range(6):
        # the remaining axes are in the order x, y, z; for y that order is left-handed
        quad = [0, 1, 2, 3] if k // 2 != 1 else [0, 3, 2, 1]
        faces += [[4 * k + quad[i] for i in corner] for corner in ((0, 1, 2), (0, 2, 3))]
    return _solid(np.concatenate(vertices), np.array(faces))


def _tiles(odd: bool) -> Solid:
    """Every second square of a board of unit squares, centered at the origin."""
    line = np.arange(TILES + 1) - TILES / 2
    x, y = np.meshgrid(line, line, indexing="ij")
    vertices = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    mine = np.add.outer(np.arange(TILES), np.arange(TILES)) % 2 == int(odd)
    return _solid(vertices, _grid_faces(mine))


def _grid_faces(cells: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Two triangles for each chosen cell of a grid, as indices of its points, shape (k, 3)."""
    nx, ny = cells.shape
    index = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
    corners = index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]
    a, b, c, d = (corner[cells] for corner in corners)
    return np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)])


def _join(solids: list[Solid]) -> Solid:
    """Joins several solids into one."""
    starts = np.cumsum([0, *(len(one.vertices) for one in solids[:-1])])
    faces = [one.faces + start for one, start in zip(solids, starts, strict=True)]
    return _solid(np.concatenate([one.vertices for one in solids]), np.concatenate(faces))


def _solid(vertices: NDArray[np.floating], faces: NDArray[np.integer], flat: bool = False) -> Solid:
    return Solid(vertices.astype(np.float32), faces.astype(np.uint32), flat)
