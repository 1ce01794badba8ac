"""Unit triangle meshes that a browser draws many times, turned, moved and stretched.

A primitive is one or several parts. A capsule is two domes and a tube, because no stretching makes
a long capsule of a short one; so one batch of each serves capsules of all sizes.
"""

from __future__ import annotations

import hashlib
import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.math.arrays import Floats
from poise.view.mesh import Mesh

AROUND = 24  # corners of what is round
# the rings of a dome come closer towards its rim, so that its shading meets that of the tube
LATITUDES = np.radians((0.0, 1.5, 4.0, 8.0, 14.0, 22.0, 33.0, 47.0, 66.0, 90.0))
TILES = 80  # checks of a plane along each side
DARK = 0.86  # every second check, to the others


class Solid(NamedTuple):
    """Triangles of a part.

    Attributes:
        vertices: Shape (n, 3), float32.
        faces: Shape (k, 3), uint32.
        flat: Whether every face is shaded by itself.
    """

    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]
    flat: bool = False


class Part(NamedTuple):
    """One solid of a primitive.

    Attributes:
        solid: Its name; see `solid`.
        up: How far along z of the primitive it stands [m].
        turned: Whether it is upside down.
        scale: Along x, y and z.
        shade: What its colour is multiplied by.
    """

    solid: str
    up: float
    turned: bool
    scale: tuple[float, float, float]
    shade: float = 1.0


MESHES: dict[str, Solid] = {}
"""Meshes that have been drawn, by the name of their shape."""


def parts_of(kind: str, size: tuple[float, ...], mesh: Mesh | None = None) -> list[Part]:
    """What a primitive is put together from."""
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
    return MESHES[name] if name in MESHES else _made(name)


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
def _made(name: str) -> Solid:
    if name == "sphere":
        lower = -LATITUDES[:0:-1]
        return _turned(np.concatenate([lower, LATITUDES]))
    if name == "dome":
        return _turned(LATITUDES)
    if name == "tube":
        return _profile([(1.0, -1.0), (1.0, 1.0)])
    if name == "cylinder":
        # rims come twice: the lids and the side have normals of their own
        lids = [(0.0, -1.0), (1.0, -1.0)], [(1.0, -1.0), (1.0, 1.0)], [(1.0, 1.0), (0.0, 1.0)]
        return _joined([_profile(list(lid)) for lid in lids])
    if name == "cone":
        return _joined([_profile([(0.0, 0.0), (1.0, 0.0)]), _profile([(1.0, 0.0), (0.0, 1.0)])])
    if name == "box":
        return _box()
    return _tiles(odd=name == "dark_tiles")


def _turned(latitudes: Floats) -> Solid:
    """Part of the unit sphere between the first latitude and the last, rising [rad]."""
    return _profile([(math.cos(a), math.sin(a)) for a in latitudes.tolist()])


def _profile(points: list[tuple[float, float]]) -> Solid:
    """What a line of points (radius, height) makes when it turns about z."""
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
        # the axes that are left are in order of x, y, z; about y that is the wrong way round
        quad = [0, 1, 2, 3] if k // 2 != 1 else [0, 3, 2, 1]
        faces += [[4 * k + quad[i] for i in corner] for corner in ((0, 1, 2), (0, 2, 3))]
    return _solid(np.concatenate(vertices), np.array(faces))


def _tiles(odd: bool) -> Solid:
    """Every second square of a board of unit squares, its middle at the origin."""
    line = np.arange(TILES + 1) - TILES / 2
    x, y = np.meshgrid(line, line, indexing="ij")
    vertices = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    index = np.arange(len(vertices)).reshape(TILES + 1, TILES + 1)
    mine = np.add.outer(np.arange(TILES), np.arange(TILES)) % 2 == int(odd)
    a, b, c, d = (
        corner[mine] for corner in (index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:])
    )
    return _solid(vertices, np.concatenate([np.stack([a, b, c], -1), np.stack([a, c, d], -1)]))


def _joined(solids: list[Solid]) -> Solid:
    """Several as one."""
    starts = np.cumsum([0, *(len(one.vertices) for one in solids[:-1])])
    faces = [one.faces + start for one, start in zip(solids, starts, strict=True)]
    return _solid(np.concatenate([one.vertices for one in solids]), np.concatenate(faces))


def _solid(vertices: NDArray[np.floating], faces: NDArray[np.integer], flat: bool = False) -> Solid:
    return Solid(vertices.astype(np.float32), faces.astype(np.uint32), flat)
