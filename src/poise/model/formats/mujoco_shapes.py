"""Shapes from the geoms of MuJoCo's model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from poise.errors import CharacterError
from poise.model.character import Shape, Vector
from poise.model.formats.mujoco_compile import floats, import_mujoco


def can_touch(m: Any, bodies: Sequence[int]) -> bool:
    """Whether any geom of these bodies can touch something."""
    own = np.isin(m.geom_bodyid, bodies)
    return bool(np.any((m.geom_contype | m.geom_conaffinity)[own]))


def shapes_of(m: Any, i: int, touching: bool) -> tuple[Shape, ...]:
    first, n = int(m.body_geomadr[i]), int(m.body_geomnum[i])
    shapes = []
    for g in range(first, first + n):
        if touching and not (m.geom_contype[g] or m.geom_conaffinity[g]):
            continue
        shape = _shape(m, g)
        if shape:
            shapes.append(shape)
    return tuple(shapes)


def _shape(m: Any, g: int) -> Shape | None:
    kinds = import_mujoco().mjtGeom
    place: Any = (floats(m.geom_pos[g]), floats(m.geom_quat[g]), _color(m, g))
    size = floats(m.geom_size[g])
    kind = int(m.geom_type[g])
    if kind == int(kinds.mjGEOM_SPHERE):
        return Shape("sphere", size[:1], *place)
    if kind == int(kinds.mjGEOM_CAPSULE):
        return Shape("capsule", size[:2], *place)
    if kind == int(kinds.mjGEOM_CYLINDER):
        return Shape("cylinder", size[:2], *place)
    if kind == int(kinds.mjGEOM_BOX):
        return Shape("box", size, *place)
    if kind == int(kinds.mjGEOM_MESH):
        return _mesh(m, int(m.geom_dataid[g]), place)
    return None


def _mesh(m: Any, k: int, place: Any) -> Shape | None:
    """The convex hull of a mesh; None if it is flat."""
    from scipy.spatial import ConvexHull, QhullError

    first, n = int(m.mesh_vertadr[k]), int(m.mesh_vertnum[k])
    vertices = np.array(m.mesh_vert[first : first + n], dtype=np.float64)
    try:
        corners = vertices[ConvexHull(vertices).vertices]
        return Shape.mesh([floats(x) for x in corners], *place)
    except (QhullError, CharacterError):
        return None


def _color(m: Any, g: int) -> Vector | None:
    """The geom's own colour, else that of its material."""
    color = np.array(m.geom_rgba[g], dtype=np.float64)
    if floats(color) == (0.5, 0.5, 0.5, 1.0):
        if m.geom_matid[g] < 0:
            return None
        color = np.array(m.mat_rgba[m.geom_matid[g]], dtype=np.float64)
    # single precision: take the number that was written
    return floats(np.clip(np.round(color, 6), 0.0, 1.0))
