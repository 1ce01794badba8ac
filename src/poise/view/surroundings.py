"""What surrounds the characters of a world: the ground, obstacles, and what was thrown."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.math.arrays import Floats
from poise.math.rotation import quat_from_z
from poise.model.shape import Shape
from poise.simulation.contact import HeightField, Plane, default_projectiles
from poise.simulation.world_config import WorldConfig
from poise.view.drawing import Primitive, drawing_of
from poise.view.mesh import Mesh
from poise.view.solids import DARK, TILES

CHECKS = 0.5  # side of the ground's checks [m]
GROUND = ((0.60, 0.62, 0.65), (0.70, 0.72, 0.75))
STONE = (0.62, 0.60, 0.56)
"""Colour of obstacles that have none."""

MARGIN = 16.0  # of a ground with checks around what happens [m]
HORIZON = 400.0  # how far away the ground ends [m]
MOST_BOARDS = 8  # of a ground along each side


def still_drawing(settings: WorldConfig, *, ground: bool = True) -> list[Primitive]:
    """Obstacles, and a ground that is not level.

    Args:
        settings: Of a world.
        ground: Whether to draw that ground.
    """
    things = [_obstacle(shape) for shape in settings.obstacles]
    return things + _uneven_ground(settings) if ground else things


def _uneven_ground(settings: WorldConfig) -> list[Primitive]:
    things: list[Primitive] = []
    ground = settings.ground
    if isinstance(ground, Plane) and level(settings) is False:
        at = tuple(ground.height * x for x in ground.normal)
        things.append(Primitive("plane", (CHECKS,), at, quat_from_z(ground.normal), GROUND[1]))
    if isinstance(ground, HeightField):
        mesh = Mesh.height_field(ground.heights.T, ground.spacing)
        size = np.array(ground.heights.T.shape) - 1
        x, y = (np.array(ground.origin) + 0.5 * size * ground.spacing).tolist()
        things.append(Primitive("mesh", (), (x, y, 0.0), color=GROUND[1], mesh=mesh))
    return things


def level(settings: WorldConfig) -> bool | float:
    """The ground as `render` takes it: its height, or whether there is one."""
    ground = settings.ground
    if isinstance(ground, Plane):
        return ground.height if ground.normal[2] == 1.0 else False
    return ground is True


def ground_height(settings: WorldConfig) -> float | None:
    """Height of a level ground [m]; None if there is none, or it is not level."""
    height = level(settings)
    return None if height is False else 0.0 if height is True else height


def ground_drawing(settings: WorldConfig, low: ArrayLike, high: ArrayLike) -> list[Primitive]:
    """A level ground for a browser: boards of checks, and beyond; nothing if there is none.

    Args:
        settings: Of a world.
        low: Least x and y where something happens [m], shape (2,) or more.
        high: Largest x and y.
    """
    height = ground_height(settings)
    if height is None:
        return []
    side = TILES * CHECKS
    a, b = (np.asarray(corner, dtype=np.float64)[:2] for corner in (low, high))
    count = np.clip(np.ceil((b - a + 2.0 * MARGIN) / side), 1, MOST_BOARDS).astype(int)
    # whole pairs of checks, so that a ground drawn anew elsewhere stays where it was
    middle = np.rint((a + b) / 2 / (2 * CHECKS)) * 2 * CHECKS
    x, y = (middle[k] + side * (np.arange(count[k]) - (count[k] - 1) / 2) for k in (0, 1))
    at = [(i, j, height) for i in x.tolist() for j in y.tolist()]
    boards = [Primitive("plane", (CHECKS,), pos, color=GROUND[1]) for pos in at]
    # beyond the boards the ground goes on, plain; a little lower, so that it does not mix with them
    plain = [0.5 * (1.0 + DARK) * x for x in GROUND[1]]
    x, y = middle.tolist()
    far = Primitive("box", (HORIZON, HORIZON, 0.01), (x, y, height - 0.03), color=plain)
    return [*boards, far]


def thrown_drawing(settings: WorldConfig, thrown: Floats) -> list[Primitive]:
    """Projectiles that were thrown.

    Args:
        settings: Of a world.
        thrown: Whether each projectile is there, and its position, shape (projectiles, 8) or more.
    """
    rows = zip(default_projectiles(settings.projectiles), thrown, strict=True)
    return [
        thing for projectile, row in rows if row[0] for thing in drawing_of(projectile, row[1:8])
    ]


def _obstacle(shape: Shape) -> Primitive:
    rgb = (shape.color or STONE)[:3]
    opacity = shape.color[3] if shape.color else 1.0
    mesh = None
    if shape.kind == "mesh":
        mesh = Mesh(np.array(shape.vertices), shape.triangles, convex=True)
    return Primitive(shape.kind, shape.size, shape.pos, shape.quat, rgb, opacity, mesh=mesh)
