"""Colliders: the shapes of links, obstacles and projectiles, in the order of the core."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, Ints
from poise.math.pose import Pose
from poise.model.scene import Scene
from poise.model.shape import Shape

KINDS = {name: kind.value for name, kind in _core.ShapeKind.__members__.items()}
FIRST_CONVEX = KINDS["cylinder"]
"""From here on the core does not know by itself where two shapes touch."""


class Colliders(NamedTuple):
    """Links of the characters first, then obstacles, then projectiles; shape (k,) each."""

    shapes: tuple[Shape, ...]
    poses: tuple[Pose, ...]  # in the body's frame, or in the world
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
        """Radius of the ball about a shape's origin that holds it [m], shape (k,)."""
        return np.array([_reach(shape) for shape in self.shapes], dtype=np.float64)


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
                pose = frame @ Pose(shape.quat, shape.pos)
                row = (shape, pose, KINDS[shape.kind], forest.link_body[i], i, i, projectile)
                (waiting if projectile else moving).append(row)
            i += 1
    still = [
        (shape, Pose(shape.quat, shape.pos), KINDS[shape.kind], -1, -1 - k, scene.nl + k, 0)
        for k, shape in enumerate(obstacles)
    ]
    rows = [*moving, *still, *waiting]
    numbers = np.array([row[2:] for row in rows], dtype=np.int32).reshape(-1, 5)
    columns = (np.ascontiguousarray(column) for column in numbers.T)
    return Colliders(tuple(row[0] for row in rows), tuple(row[1] for row in rows), *columns)


def check_obstacles(obstacles: Iterable[Shape], convex: bool | None = None) -> list[Shape]:
    """Shapes that stand in the world; without meshes and cylinders if those meet nothing."""
    if isinstance(obstacles, (Shape, str)) or not isinstance(obstacles, Iterable):
        raise PoiseError(f"obstacles must be a list of Shapes, got {obstacles!r:.80}")
    found = list(obstacles)
    for k, shape in enumerate(found):
        if not isinstance(shape, Shape):
            raise PoiseError(f"obstacles[{k}] must be a Shape, got {shape!r:.80}")
        if convex is False and KINDS[shape.kind] >= FIRST_CONVEX:
            raise PoiseError(f"obstacles[{k}] is a {shape.kind}, which nothing meets: convex=False")
    return found


def _reach(shape: Shape) -> float:
    if shape.kind == "mesh":
        return float(np.linalg.norm(np.array(shape.vertices), axis=1).max())
    if shape.kind == "box":
        return float(np.linalg.norm(shape.size))
    return math.hypot(*shape.size) if shape.kind == "cylinder" else sum(shape.size)
