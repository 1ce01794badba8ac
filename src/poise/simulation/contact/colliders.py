"""Colliders: the shapes of links, obstacles and projectiles, in the order of the core."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import _core
from poise.errors import CharacterError, PoiseError
from poise.math.arrays import Floats, Ints
from poise.math.pose import Pose
from poise.model.scene import Scene
from poise.model.shape import Shape
from poise.simulation.contact.hull import HullMesh, hull_of

KINDS = {name: kind.value for name, kind in _core.ShapeKind.__members__.items()}
FIRST_CONVEX = KINDS["cylinder"]
"""From here on shapes are those that `World(convex=False)` lets meet the ground only."""

FARTHEST = 1e9
"""How far a shape reaches at most [m]."""


class Colliders(NamedTuple):
    """Links of the characters first, then obstacles, then projectiles; shape (k,) each."""

    shapes: tuple[Shape, ...]
    poses: tuple[Pose, ...]  # in the body's frame, or in the world; of meshes, of their middle
    kind: Ints  # as in KINDS
    body: Ints  # -1 for the world
    link: Ints  # -1 - i for obstacle i
    surface: Ints
    projectile: Ints  # 0, or the number of the projectile it belongs to

    @property
    def convex(self) -> NDArray[np.bool_]:
        """Which are meshes or cylinders."""
        return self.kind >= FIRST_CONVEX

    @property
    def size(self) -> Floats:
        """Sizes of the shapes, zeros where one has fewer than three, shape (k, 3)."""
        return np.array([(*shape.size, 0.0, 0.0, 0.0)[:3] for shape in self.shapes]).reshape(-1, 3)

    @property
    def p(self) -> Floats:
        """Positions in the body's frame, or in the world [m], shape (k, 3)."""
        return np.array([pose.r for pose in self.poses]).reshape(-1, 3)

    @property
    def E(self) -> Floats:
        """Orientations in the body's frame, or in the world, shape (k, 4)."""
        return np.array([pose.E for pose in self.poses]).reshape(-1, 4)

    @property
    def reach(self) -> Floats:
        """Radius of the ball about a shape's middle that holds it [m], shape (k,)."""
        return np.array([_reach(shape) for shape in self.shapes], dtype=np.float64)

    @property
    def box(self) -> Floats:
        """Half sizes of the box along a shape's axes that holds it [m], shape (k, 3)."""
        return np.array([_box(shape) for shape in self.shapes], dtype=np.float64).reshape(-1, 3)

    @property
    def hulls(self) -> list[HullMesh]:
        """The hulls of the meshes, each once."""
        return [hull_of(shape) for shape in self._meshes.values()]

    @property
    def hull(self) -> Ints:
        """Which of the hulls a mesh has, -1 for other shapes, shape (k,)."""
        place = {vertices: k for k, vertices in enumerate(self._meshes)}
        found = [place.get(shape.vertices, -1) for shape in self.shapes]
        return np.array(found, dtype=np.int32)

    @property
    def _meshes(self) -> dict[Any, Shape]:
        return {shape.vertices: shape for shape in self.shapes if shape.kind == "mesh"}


def colliders_of(scene: Scene, obstacles: Sequence[Shape], projectiles: int) -> Colliders:
    """Colliders of a scene whose last parts are projectiles."""
    forest, characters = scene.forest, len(scene.characters) - projectiles
    moving: list[tuple[Any, ...]] = []
    waiting: list[tuple[Any, ...]] = []
    i = 0
    for part, character in enumerate(scene.characters):
        projectile = max(0, part - characters + 1)
        for link in character.links:
            frame = Pose(tuple(forest.link_E[i]), tuple(forest.link_p[i]))
            for shape in link.shapes:
                _check_reach(shape, f"link {link.name!r}")
                try:
                    pose = frame @ shape_pose(shape)
                except CharacterError as error:
                    raise PoiseError(f"{character.name}: link {link.name!r}: {error}") from error
                row = (shape, pose, KINDS[shape.kind], forest.link_body[i], i, i, projectile)
                (waiting if projectile else moving).append(row)
            i += 1
    still = [
        (shape, shape_pose(shape), KINDS[shape.kind], -1, -1 - k, scene.nl + k, 0)
        for k, shape in enumerate(obstacles)
    ]
    rows = [*moving, *still, *waiting]
    numbers = np.array([row[2:] for row in rows], dtype=np.int32).reshape(-1, 5)
    columns = (np.ascontiguousarray(column) for column in numbers.T)
    return Colliders(tuple(row[0] for row in rows), tuple(row[1] for row in rows), *columns)


def check_obstacles(obstacles: Iterable[Shape], convex: bool | None = None) -> list[Shape]:
    """Shapes that stand in the world; without meshes and cylinders if those meet nothing."""
    if isinstance(obstacles, (Shape, str, np.ndarray)) or not isinstance(obstacles, Iterable):
        raise PoiseError(f"obstacles must be a list of Shapes, got {obstacles!r:.80}")
    found = list(obstacles)
    for k, shape in enumerate(found):
        if not isinstance(shape, Shape):
            raise PoiseError(f"obstacles[{k}] must be a Shape, got {shape!r:.80}")
        _check_reach(shape, f"obstacles[{k}]")
        if convex is False and KINDS[shape.kind] >= FIRST_CONVEX:
            raise PoiseError(f"obstacles[{k}] is a {shape.kind}, which nothing meets: convex=False")
    return found


def shape_pose(shape: Shape) -> Pose:
    """Where a shape's middle is in its link: its frame, or the middle of a mesh's box."""
    pose = Pose(shape.quat, shape.pos)
    return pose @ Pose(r=tuple(hull_of(shape).middle.tolist())) if shape.kind == "mesh" else pose


def _check_reach(shape: Shape, where: str) -> None:
    """Raises if a shape is so large, or so far from its link, that float32 could not hold it."""
    most = max(_reach(shape), *map(abs, shape.pos))
    if not most <= FARTHEST:
        raise PoiseError(f"{where}: a {shape.kind} reaches {most:.3g} m; at most {FARTHEST:g} m")


def _reach(shape: Shape) -> float:
    if shape.kind == "mesh":
        return hull_of(shape).reach
    if shape.kind == "box":
        return math.hypot(*shape.size)
    return math.hypot(*shape.size) if shape.kind == "cylinder" else sum(shape.size)


def _box(shape: Shape) -> Any:
    if shape.kind == "mesh":
        return hull_of(shape).box
    if shape.kind == "box":
        return shape.size
    r, half = (*shape.size, 0.0)[:2]
    return (r, r, half) if shape.kind == "cylinder" else (r, r, half + r)
