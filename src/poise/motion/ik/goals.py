"""Goals of inverse kinematics: the place of a point, the orientation or the direction of a link.

Each goal has a target and a weight for every frame; a frame of weight 0 has no effect, and its
target may be anything. The cost of a frame is the sum of weight times squared residual.
`solver` evaluates them.

`Report` has the residuals of a solution.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.errors import ClipError, unknown_name
from poise.math.arrays import Floats, floats
from poise.model.character import Character, Vector


@dataclass(frozen=True, eq=False)
class Place:
    """Place of a point of a link.

    Args:
        link: Name of the link.
        target: Places in the world [m], shape (k, 3) or (3,).
        point: The point in the link's frame [m].
        weight: [1/m^2], shape (k,) or one number.
        name: What to call it in reports; the link's name unless given.
    """

    link: str
    target: ArrayLike
    point: Vector = (0.0, 0.0, 0.0)
    weight: ArrayLike = 1.0
    name: str = ""
    width: int = field(default=3, init=False, repr=False)


@dataclass(frozen=True, eq=False)
class Turn:
    """Orientation of a link.

    Args:
        link: Name of the link.
        target: Orientations of the link in the world, w x y z, shape (k, 4) or (4,).
        weight: [1/rad^2], shape (k,) or one number.
        name: What to call it in reports; the link's name unless given.
    """

    link: str
    target: ArrayLike
    weight: ArrayLike = 1.0
    name: str = ""
    width: int = field(default=4, init=False, repr=False)


@dataclass(frozen=True, eq=False)
class Aim:
    """Direction of a link, in the world.

    Args:
        link: Name of the link.
        along: The direction in the link's frame.
        target: Directions in the world, shape (k, 3) or (3,); of any length but zero.
        weight: [1/rad^2], shape (k,) or one number.
        name: What to call it in reports; the link's name unless given.
    """

    link: str
    along: Vector
    target: ArrayLike
    weight: ArrayLike = 1.0
    name: str = ""
    width: int = field(default=3, init=False, repr=False)


@dataclass(frozen=True, eq=False)
class Above(Place):
    """Least height of a point of a link.

    Args:
        link: Name of the link.
        target: Heights in the world [m], shape (k, 1) or (1,).
        point: The point in the link's frame [m].
        weight: [1/m^2], shape (k,) or one number.
        name: What to call it in reports; the link's name unless given.
    """

    target: ArrayLike = (0.0,)
    width: int = field(default=1, init=False, repr=False)


Goal = Place | Turn | Aim


@dataclass(frozen=True, eq=False)
class Checked:
    """A goal with its arrays checked: link index, targets (k, width), weights (k,)."""

    goal: Goal
    link: int
    target: Floats
    weight: Floats

    @property
    def name(self) -> str:
        """What to call it."""
        return self.goal.name or self.goal.link


def check_goals(character: Character, goals: list[Goal], k: int) -> list[Checked]:
    """Goals with their arrays brought to k frames; says which goal is wrong, and how."""
    where = {link.name: i for i, link in enumerate(character.links)}
    return [_check(goal, where, k) for goal in goals]


def _check(goal: Goal, where: dict[str, int], k: int) -> Checked:
    if not isinstance(goal, (Place, Turn, Aim)):
        raise ClipError(f"a goal is a Place, a Turn, an Aim or an Above, got {goal!r:.80}")
    if goal.link not in where:
        raise ClipError(unknown_name("link", goal.link, where))
    at = f"goal {goal.name or goal.link!r}: "
    target, weight = floats(goal.target, at + "target"), floats(goal.weight, at + "weight")
    if target.shape not in ((goal.width,), (k, goal.width)):
        raise ClipError(
            f"{at}target has shape {target.shape}, expected ({goal.width},) or ({k}, {goal.width})"
        )
    if weight.shape not in ((), (1,), (k,)):
        raise ClipError(f"{at}weight has shape {weight.shape}, expected () or ({k},)")
    if not (np.isfinite(weight).all() and (weight >= 0.0).all()):
        raise ClipError(f"{at}weights must be finite and not negative")
    target = np.array(np.broadcast_to(target, (k, goal.width)))
    weight = np.array(np.broadcast_to(weight, (k,)))
    active = weight > 0.0
    bad = active & ~np.isfinite(target).all(axis=1)
    if bad.any():
        raise ClipError(f"{at}target of frame {int(np.argmax(bad))} is not finite")
    if isinstance(goal, Place):
        target[~active] = 0.0
        return Checked(goal, where[goal.link], target, weight)
    target[~active] = np.eye(goal.width)[0]
    length = np.linalg.norm(target, axis=1, keepdims=True)
    if (length < 1e-9).any():
        raise ClipError(f"{at}target of frame {int(np.argmin(length))} has length zero")
    return Checked(goal, where[goal.link], target / length, weight)


# report


@dataclass(frozen=True, eq=False)
class Report:
    """Residuals of a solution.

    Attributes:
        names: Names of the goals.
        units: "m" or "rad" of each goal.
        residual: Distance from its target, 0 where the weight is 0, shape (goals, k).
        iterations: How many rounds each frame took, shape (k,).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    residual: Floats
    iterations: NDArray[np.int64]

    def worst(self) -> list[tuple[str, int, float, str]]:
        """Of each goal: name, frame of the largest residual, that residual, its unit."""
        at = self.residual.argmax(axis=1) if self.residual.size else []
        return [
            (name, int(i), float(self.residual[g, i]), unit)
            for g, (name, i, unit) in enumerate(zip(self.names, at, self.units, strict=True))
        ]

    def check(self, tolerance: float = 0.005, angle: float = 0.1, fps: float | None = None) -> None:
        """Raise ClipError if a goal is missed by more than a tolerance [m] or angle [rad]."""
        bad = []
        for name, frame, residual, unit in self.worst():
            if residual > (tolerance if unit == "m" else angle):
                when = f"frame {frame}" if fps is None else f"{frame / fps:.3f} s"
                bad.append(f"{name} at {when} by {_length_or_angle(residual, unit)}")
        if bad:
            raise ClipError("targets out of reach: " + "; ".join(bad))

    def __str__(self) -> str:
        return "\n".join(
            f"{name:24} {_length_or_angle(residual, unit):>16} at frame {frame}"
            for name, frame, residual, unit in self.worst()
        )


def _length_or_angle(value: float, unit: str) -> str:
    return f"{1000 * value:.1f} mm" if unit == "m" else f"{np.degrees(value):.1f} degrees"
