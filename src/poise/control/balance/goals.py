"""Point objectives (M 6.1): p̈_des = k_s (p_des - p) - k_d ṗ, as rows Q a + q_bias."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from poise.control.balance.tasks import Tasks
from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats, number
from poise.model.scene import Scene

STIFFNESS = 150.0
"""k_s of a goal [1/s²]; it is critically damped."""
FARTHEST = 0.2
"""What is farther away pulls as if it were this far [m], and weighs less by the square of the
distance: what cannot be reached does not tear the character down."""


class Goals:
    """Points that links should reach.

    Args:
        scene: The scene.
        goals: {link: point [m]} or {link: (point, place in the link [m])}.
        weight: β_p of each.
    """

    def __init__(self, scene: Scene, goals: Mapping[str, Any], weight: float) -> None:
        if not isinstance(goals, Mapping):
            raise PoiseError(f"goals is {goals!r:.60}; it must be {{link: point}}")
        self.given = dict(goals)
        self.weight = number(weight, "goal_weight", unit="")
        rows, wanted = [], []
        for link, goal in goals.items():
            point, place = _pair(link, goal)
            rows.append([float(scene.link_index(link)), *place])
            wanted.append(point)
        self.points: Floats = np.array(rows, dtype=np.float64).reshape(-1, 4)
        self.wanted: Floats = np.array(wanted, dtype=np.float64).reshape(-1, 3)

    def rows(self, now: Tasks, first: int, v: Floats) -> tuple[Floats, Floats]:
        """Weighted objectives: shape (3 k, nv), and what they want (3 k,).

        Args:
            now: The state; the goals' points begin at `first`.
            first: Their place among the points.
            v: Velocities, shape (nv,).
        """
        nv = len(v)
        if not len(self.wanted):
            return np.zeros((0, nv)), np.zeros(0)
        J, p = now.J[first:, :3], now.p[first:]
        away = self.wanted - p
        far = np.sqrt((away * away).sum(axis=1, keepdims=True))
        near = np.minimum(1.0, FARTHEST / np.maximum(far, 1e-9))
        away = away * near
        wanted = STIFFNESS * away - 2.0 * math.sqrt(STIFFNESS) * (J @ v)
        root = math.sqrt(self.weight) * near * near
        e = root * (wanted - now.bias[first:, :3])
        return (root[:, :, None] * J).reshape(-1, nv), e.reshape(-1)


def _pair(link: str, goal: Any) -> tuple[Floats, Floats]:
    """The point, and the place in the link."""
    given = goal if isinstance(goal, tuple) and len(goal) == 2 else (goal, np.zeros(3))
    point, place = (finite(floats(x, f"goals[{link!r}]"), f"goals[{link!r}]") for x in given)
    if point.shape != (3,) or place.shape != (3,):
        raise PoiseError(
            f"goals[{link!r}] is {goal!r:.60}; it must be a point x, y, z, or a pair of a point "
            "and a place in the link"
        )
    return point, place
