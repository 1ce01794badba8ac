"""The ground: a plane or a field of heights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError, Sealed
from poise.math.arrays import Floats, finite, floats, number
from poise.model.validation import check_direction

HIGHEST = 1e6  # of a height field [m]
FINEST = 1e-6  # spacing of a height field [m]: smaller cells would have no area


class Plane(Sealed):
    """A flat ground.

    Args:
        normal: Which way it faces.
        height: Distance from the world's origin along the normal [m].
    """

    _remedies = dict.fromkeys(
        ("normal", "height"), "make another Plane(normal, height), and a World(ground=...) with it"
    )

    def __init__(self, normal: Sequence[float] = (0.0, 0.0, 1.0), height: float = 0.0) -> None:
        if isinstance(normal, (int, float)):
            raise PoiseError(
                f"plane: normal must be 3 numbers, got {normal!r}; the height is Plane(height=...)"
            )
        self.normal = check_direction("plane: normal", normal, 3)
        self.height = number(height, "plane: height", positive=False, unit="m")
        self._seal()


class HeightField(Sealed):
    """An uneven ground: heights over a grid. Beyond its rim it goes on level.

    Args:
        heights: [m], shape (rows, columns): rows along y, columns along x. Or (n, rows, columns):
            each copy of a world has a ground of its own.
        spacing: Distance of grid points along x and y [m].
        origin: x and y of the first point; None puts the middle at the world's origin.
    """

    _remedies = dict.fromkeys(
        ("heights", "spacing", "origin"),
        "make another HeightField(heights, spacing, origin), and a World(ground=...) with it",
    )

    def __init__(
        self,
        heights: ArrayLike,
        spacing: float | tuple[float, float],
        origin: tuple[float, float] | None = None,
    ) -> None:
        self.heights = np.array(finite(floats(heights, "heights"), "heights"))
        shape = self.heights.shape
        if self.heights.ndim not in (2, 3) or min(shape[-2:]) < 2 or not shape[0]:
            raise PoiseError(f"heights has shape {shape}, expected 2 x 2 or more, or n such fields")
        self.heights.flags.writeable = False
        if np.abs(self.heights).max() > HIGHEST:
            raise PoiseError(f"heights must be within {HIGHEST:g} m of 0")
        several = isinstance(spacing, (tuple, list, np.ndarray)) and _length(spacing) >= 0
        dx, dy = _two(spacing, "spacing") if several else (spacing, spacing)
        self.spacing = (number(dx, "spacing", unit="m"), number(dy, "spacing", unit="m"))
        if min(self.spacing) < FINEST:
            raise PoiseError(f"spacing is {spacing!r:.80}; it must be {FINEST:g} m or more")
        if origin is None:
            rows, columns = shape[-2:]
            origin = (-0.5 * (columns - 1) * self.spacing[0], -0.5 * (rows - 1) * self.spacing[1])
        x, y = _two(origin, "origin")
        self.origin = (
            number(x, "origin[0]", positive=False, unit="m"),
            number(y, "origin[1]", positive=False, unit="m"),
        )
        self._seal()

    @property
    def copies(self) -> int | None:
        """Of how many copies it is the ground; None: of any number, which share it."""
        return len(self.heights) if self.heights.ndim == 3 else None

    def of_copy(self, copy: int = 0) -> HeightField:
        """The ground of one copy."""
        if self.heights.ndim == 2:
            return self
        return HeightField(self.heights[copy], self.spacing, self.origin)


GroundLike = bool | Plane | HeightField


class CoreGround(NamedTuple):
    """The ground as the core takes it."""

    kind: int  # 0 none, 1 plane, 2 heights
    plane: Floats  # normal and height, (4,)
    grid: Floats  # x and y of the first point, spacing along x and y, (4,)
    heights: Floats  # (rows, columns) or (n, rows, columns)

    @property
    def cell(self) -> float:
        """The smaller spacing of the grid [m]; flat ground has none, inf."""
        return float(min(self.grid[2:])) if self.kind == 2 else math.inf


def core_ground(ground: GroundLike) -> CoreGround:
    """The ground as the core takes it, checked."""
    plane, grid = np.array([0.0, 0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])
    none = np.zeros((2, 2))
    if ground is True:
        ground = Plane()
    if isinstance(ground, Plane):
        return CoreGround(1, np.array([*ground.normal, ground.height]), grid, none)
    if isinstance(ground, HeightField):
        return CoreGround(2, plane, np.array([*ground.origin, *ground.spacing]), ground.heights)
    if ground is False:
        return CoreGround(0, plane, grid, none)
    hint = ""
    if isinstance(ground, (int, float)):
        hint = f"; a level ground at that height is Plane(height={ground!r:.40})"
    raise PoiseError(
        f"ground must be True, False, a Plane or a HeightField, got {ground!r:.80}{hint}"
    )


def _two(value: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(value, (tuple, list, np.ndarray)) or _length(value) != 2:
        raise PoiseError(f"{name} must be two numbers, got {value!r:.80}")
    return value[0], value[1]


def _length(value: Any) -> int:
    return -1 if getattr(value, "ndim", 1) == 0 else len(value)
