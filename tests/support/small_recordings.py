"""A short recording, and what is in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from objects import SOLIDS, body

from poise import Recording, Shape, State, Target, World

DT = 1 / 120
BALL = body(SOLIDS["sphere"], name="ball")
STONE = Shape("box", (0.2, 0.4, 0.1), pos=(0.35, 0.0, 0.1), color=(0.5, 0.4, 0.3))


def short(n: int = 1, frames: int = 4, **options: Any) -> Recording:
    """A ball that falls upon the ground beside an obstacle."""
    world = World(BALL, n=n, dt=DT, **{"obstacles": [STONE], "projectiles": 2, **options})
    q = np.array([0.0, 0.8, 0.11, 1.0, 0.0, 0.0, 0.0])
    world.reset(State(q, np.zeros(6)))
    recording = Recording(world, fps=60.0)
    recording.append()
    if world.settings.projectile_count:
        world.throw((1.0, 0.0, 0.5), (-1.0, 0.0, 0.0))
    for _ in range(frames - 1):
        world.step(steps=2)
        recording.append(Target(q))
    return recording
