"""WorldConfig: the arguments of a world, kept so that it can be built again."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.math.arrays import Floats, count, floats
from poise.model.character import Character
from poise.model.shape import Shape
from poise.simulation.contact import GroundLike
from poise.simulation.contact.collision_model import ITERATIONS


class WorldConfig(NamedTuple):
    """The arguments of a World, all but the number of its threads; see there for what they mean."""

    character: tuple[Character, ...]
    n: int
    dt: float
    dtype: str
    ground: GroundLike
    obstacles: tuple[Shape, ...]
    contact: str | None
    projectiles: int | tuple[Character, ...]
    friction: Floats
    ground_friction: float | None
    restitution: Floats
    stiffness: float
    self_collision: bool
    exclude: tuple[tuple[str, str], ...]
    convex: bool | None
    gravity: Floats
    on_divergence: str
    mass: Floats | None
    inertia: Floats | None
    armature: Floats | None
    momentum_correction: bool = True
    iterations: int = ITERATIONS
    tolerance: float | None = None
    substeps: int = 1

    @property
    def projectile_count(self) -> int:
        """How many projectiles there are."""
        return self.projectiles if isinstance(self.projectiles, int) else len(self.projectiles)

    @classmethod
    def of(cls, character: tuple[Character, ...], **given: Any) -> WorldConfig:
        """The configuration from the arguments of a world that has checked them.

        Where nothing touches, ground, obstacles and projectiles have no effect and are left out.
        """
        for name in ("friction", "restitution", "gravity", "mass", "inertia", "armature"):
            given[name] = kept(given[name], name)
        if given["contact"] is None:
            given |= {
                "ground": False,
                "obstacles": (),
                "projectiles": 0,
                "exclude": (),
                "convex": None,
            }
        balls = given["projectiles"]
        given["projectiles"] = int(balls) if isinstance(balls, (int, np.integer)) else tuple(balls)
        given["obstacles"] = tuple(given["obstacles"])
        given["convex"] = None if given["convex"] is None else bool(given["convex"])
        given["exclude"] = tuple((str(one), str(two)) for one, two in given["exclude"])
        return cls(character, **given)


def threads_of(threads: int | None, n: int) -> int:
    """How many threads n copies get: the requested number, or as many as are worth it."""
    if threads is not None:
        return count(threads, "threads", most=256)
    # a thread is worth its while from some dozens of copies on
    return min(cores(), max(1, n // 32))


def cores() -> int:
    """How many cores this process may use: a container may leave fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def kept(value: ArrayLike | None, name: str) -> Any:
    """A read-only copy; None stays None."""
    if value is None:
        return None
    array = np.array(floats(value, name))
    array.flags.writeable = False
    return array
