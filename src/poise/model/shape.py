"""Shapes: solids that are fixed to a link, to draw, to collide and to take inertia from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from poise.errors import CharacterError, check_known
from poise.math.pose import Pose
from poise.math.rotation import product, quat_from_z, quat_matrix
from poise.model.validation import (
    Matrix,
    Vector,
    check_direction,
    check_vector,
    read_only,
    set_fields,
)

ShapeKind = Literal["sphere", "capsule", "box", "cylinder", "mesh"]
SHAPE_SIZES = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "mesh": 0}
"""How many numbers the size of each shape kind has."""

FLAT = 1e-6
"""A mesh thinner than this, relative to its length, has no inside."""


@read_only("dataclasses.replace(shape, size=...) makes another")
@dataclass(frozen=True)
class Shape:
    """A solid fixed to a link, to draw, to collide and to take inertia from.

    Args:
        kind: "sphere", "capsule" or "cylinder" (along its z axis), "box", or "mesh": the convex
            hull of its vertices.
        size: Sphere (radius,); capsule (radius, half length of its cylinder); cylinder (radius,
            half length); box half sizes [m]; mesh ().
        pos: Origin of the shape's frame, the center of all but meshes, in the link's frame [m].
        quat: Orientation in the link's frame, w x y z; normalised.
        color: Red, green, blue and, if not 1, alpha, each in 0..1; or None.
        vertices: Corners of a mesh in the shape's frame [m]; () for all others.
    """

    kind: ShapeKind
    size: Vector
    pos: Vector = (0.0, 0.0, 0.0)
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    color: Vector | None = None
    vertices: tuple[Vector, ...] = ()

    def __post_init__(self) -> None:
        check_known("kind", self.kind, list(SHAPE_SIZES), at="shape: ", error=CharacterError)
        size = check_vector(f"{self.kind}: size", self.size, SHAPE_SIZES[self.kind])
        # a capsule without cylinder part is a ball, and fine
        positive = size[:1] if self.kind == "capsule" else size
        if min(size, default=0.0) < 0.0 or 0.0 in positive:
            raise CharacterError(f"{self.kind}: size must be positive, got {size}")
        values: dict[str, Any] = {
            "size": size,
            "pos": check_vector(f"{self.kind}: pos", self.pos, 3),
            "quat": check_direction(f"{self.kind}: quat", self.quat, 4),
            "color": _color(f"{self.kind}: color", self.color),
            "vertices": _vertices(self.kind, self.vertices),
        }
        set_fields(self, values)

    @classmethod
    def capsule(
        cls,
        start: Sequence[float],
        end: Sequence[float],
        radius: float,
        color: Vector | None = None,
    ) -> Shape:
        """A capsule whose axis runs from start to end (the centers of its caps) [m]."""
        a, b = check_vector("capsule: start", start, 3), check_vector("capsule: end", end, 3)
        along = [y - x for x, y in zip(a, b, strict=True)]
        middle = tuple((x + y) / 2 for x, y in zip(a, b, strict=True))
        length = math.hypot(*along)
        quat = quat_from_z([x / length for x in along]) if length > 0.0 else (1.0, 0.0, 0.0, 0.0)
        return cls("capsule", (radius, length / 2), middle, quat, color)

    @classmethod
    def mesh(
        cls,
        vertices: Iterable[Sequence[float]],
        pos: Vector = (0.0, 0.0, 0.0),
        quat: Vector = (1.0, 0.0, 0.0, 0.0),
        color: Vector | None = None,
    ) -> Shape:
        """The convex hull of vertices, given in the shape's frame [m]."""
        if isinstance(vertices, str) or not isinstance(vertices, Iterable):
            raise CharacterError(f"mesh: vertices must be points, got {vertices!r:.80}")
        points = vertices.tolist() if isinstance(vertices, np.ndarray) else vertices
        if not isinstance(points, Iterable):
            raise CharacterError(f"mesh: vertices must be points, got {vertices!r:.80}")
        return cls("mesh", (), pos, quat, color, tuple(points))  # type: ignore[arg-type]

    @property
    def volume(self) -> float:
        """Volume [m^3]."""
        if self.kind == "mesh":
            return self._moments[0]
        if self.kind == "box":
            return 8.0 * math.prod(self.size)
        r, half = (*self.size, 0.0)[:2]
        if self.kind == "cylinder":
            return math.pi * r * r * 2.0 * half
        return math.pi * r * r * (4.0 / 3.0 * r + 2.0 * half)

    @property
    def center(self) -> Vector:
        """Center of volume in the shape's frame [m]: its origin, but for meshes."""
        return self._moments[1] if self.kind == "mesh" else (0.0, 0.0, 0.0)

    @cached_property
    def triangles(self) -> NDArray[np.int32]:
        """Faces of a mesh's hull: indices of vertices, counter-clockwise from outside, (k, 3)."""
        from scipy.spatial import ConvexHull, QhullError

        if self.kind != "mesh":
            raise CharacterError(f"a {self.kind} has no triangles; a mesh has")
        x = np.array(self.vertices)
        try:
            hull = ConvexHull(x)
        except QhullError as error:
            raise CharacterError("mesh: vertices have no hull; are they all different?") from error
        faces: NDArray[np.int32] = hull.simplices.astype(np.int32)
        a, b, c = np.moveaxis(x[faces], 1, 0)
        inward = np.sum(np.cross(b - a, c - a) * hull.equations[:, :3], axis=1) < 0.0
        faces[inward] = faces[inward][:, ::-1]
        faces.flags.writeable = False
        return faces

    def inertia(self, mass: float) -> NDArray[np.float64]:
        """Inertia about the center, in the shape's axes [kg m^2], shape (3, 3)."""
        if self.kind == "mesh":
            second = mass * self._moments[2]
            return float(np.trace(second)) * np.eye(3) - second
        if self.kind == "box":
            x, y, z = (s * s for s in self.size)
            return mass / 3.0 * np.diag([y + z, x + z, x + y])
        if self.kind == "cylinder":
            rr, hh = (s * s for s in self.size)
            return mass * np.diag([rr / 4.0 + hh / 3.0, rr / 4.0 + hh / 3.0, rr / 2.0])
        # a cylinder of length h between the halves of a ball, each with its share of the mass
        r, h = self.size[0], 2.0 * (*self.size, 0.0)[1]
        cylinder = mass * h / (h + 4.0 / 3.0 * r)
        ball = mass - cylinder
        along = (cylinder / 2.0 + ball * 0.4) * r * r
        across = cylinder * (r * r / 4.0 + h * h / 12.0)
        across += ball * (0.4 * r * r + h * h / 4.0 + 0.375 * h * r)
        return np.diag([across, across, along])

    @cached_property
    def _moments(self) -> tuple[float, Vector, NDArray[np.float64]]:
        """Volume, center, and second moment about it per volume, of a mesh.

        Sums over tetrahedra between an inner point o and the triangles a b c of the hull, with
        V = det(a, b, c) / 6 and s = a + b + c, all from o:
            integral of x = V s / 4,    integral of x x' = V (a a' + b b' + c c' + s s') / 20
        """
        x = np.array(self.vertices)
        o = x.mean(axis=0)
        corners = x[self.triangles] - o
        a, b, c = np.moveaxis(corners, 1, 0)
        V, s = (a * np.cross(b, c)).sum(axis=1) / 6.0, a + b + c
        volume = V.sum()
        center = (V[:, None] * s).sum(axis=0) / (4.0 * volume)
        squares = [y[:, :, None] * y[:, None, :] for y in (a, b, c, s)]
        second = (V[:, None, None] * sum(squares)).sum(axis=0)
        second = second / (20.0 * volume) - np.outer(center, center)
        return float(volume), tuple((o + center).tolist()), second


def solid(parts: Sequence[tuple[Shape, float]]) -> tuple[Vector, Matrix | Vector]:
    """Center of mass, and inertia about it, of shapes with their masses.

    No product is left to the BLAS: the bits are the same on every CPU.
    """
    mass = sum(m for _, m in parts)
    if mass == 0.0:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    centers = [(Pose(shape.quat, shape.pos) @ Pose(r=shape.center)).r for shape, _ in parts]
    weighted = [[m * x for x in center] for (_, m), center in zip(parts, centers, strict=True)]
    com = tuple(sum(column) / mass for column in zip(*weighted, strict=True))
    inertia = np.zeros((3, 3))
    for (shape, m), center in zip(parts, centers, strict=True):
        R, c = quat_matrix(shape.quat), np.subtract(center, com)
        inertia += product(product(R, shape.inertia(m)), R.T)
        inertia += m * ((c * c).sum() * np.eye(3) - np.outer(c, c))
    # what rounding left of a zero would only make files longer
    inertia[np.abs(inertia) < 1e-15 * np.abs(inertia).max()] = 0.0
    x, y, z = map(tuple, inertia.tolist())
    return com, (x, y, z)


def _color(where: str, value: object) -> Vector | None:
    if value is None:
        return None
    four = isinstance(value, (list, tuple, np.ndarray)) and _length(value) == 4
    color = check_vector(where, value, 4 if four else 3)
    if min(color) < 0.0 or max(color) > 1.0:
        raise CharacterError(f"{where} must lie in 0..1, got {color}")
    return color if four else (*color, 1.0)


def _length(value: Any) -> int:
    return -1 if getattr(value, "ndim", 1) == 0 else len(value)


def _vertices(kind: str, value: object) -> tuple[Vector, ...]:
    if kind != "mesh":
        if isinstance(value, (list, tuple, np.ndarray)) and _length(value) == 0:
            return ()
        raise CharacterError(f"{kind}: vertices must be (); only a mesh has them")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)) or len(value) < 4:
        raise CharacterError(f"mesh: vertices must be at least 4 points, got {value!r:.80}")
    vertices = tuple(check_vector(f"mesh: vertices[{i}]", x, 3) for i, x in enumerate(value))
    x = np.array(vertices)
    width = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    if not width[2] > FLAT * width[0]:
        raise CharacterError("mesh: vertices lie in a plane; a mesh needs volume")
    return vertices
