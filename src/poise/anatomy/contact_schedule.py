"""The contact schedule of a motion: which points of the feet are on the ground in each frame.

Heel and toe make and break contact independently.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poise.anatomy.feet import ContactPoint
from poise.errors import ClipError, unknown_name
from poise.math.arrays import runs
from poise.model.character import Character


@dataclass(frozen=True, eq=False)
class ContactSchedule:
    """Which points stand on the ground, frame by frame.

    Args:
        points: The points.
        on: Whether they stand, shape (frames, points).
        sliding: Whether they slide while they touch, as the belly of a snake.
        detected: Whether they were found from the motion, and so begin and end while the foot still
            moves; others were made with it.
    """

    points: tuple[ContactPoint, ...]
    on: NDArray[np.bool_]
    sliding: bool = False
    detected: bool = False

    def __post_init__(self) -> None:
        on = np.array(self.on, dtype=bool)
        if on.ndim != 2 or on.shape[1] != len(self.points):
            raise ClipError(
                f"contacts: on has shape {on.shape}, expected (frames, {len(self.points)})"
            )
        on.flags.writeable = False
        object.__setattr__(self, "on", on)
        object.__setattr__(self, "points", tuple(ContactPoint(*point) for point in self.points))

    def check(self, character: Character, frames: int) -> None:
        """Refuse contacts that are not those of this character and number of frames."""
        if len(self.on) != frames:
            raise ClipError(f"contacts: there are {len(self.on)} frames, the clip has {frames}")
        for point in self.points:
            character.link(point.link)
            character.link(point.foot)

    @cached_property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet, in the order of their points."""
        return tuple(dict.fromkeys(point.foot for point in self.points))

    def of(self, foot: str) -> list[int]:
        """Which points belong to a foot."""
        if foot not in self.feet:
            raise ClipError(unknown_name("foot", foot, self.feet))
        return [i for i, point in enumerate(self.points) if point.foot == foot]

    def standing(self, foot: str) -> NDArray[np.bool_]:
        """Whether any point of a foot stands, shape (frames,)."""
        return np.asarray(self.on[:, self.of(foot)].any(axis=1))

    @cached_property
    def flight(self) -> NDArray[np.bool_]:
        """Whether nothing stands, shape (frames,)."""
        return np.asarray(~self.on.any(axis=1))

    def phases(self, foot: str) -> list[tuple[int, int]]:
        """Times in which a foot stands: first frame, frame after the last."""
        return runs(self.standing(foot))

    def point_phases(self) -> list[tuple[int, int, int]]:
        """Times in which each point stands: its index, first frame, frame after the last."""
        return [(i, a, b) for i in range(len(self.points)) for a, b in runs(self.on[:, i])]
