"""The solve behind stable PD: worlds of the core without contact, one for each size of batch.

A step of such a world solves (M + K) a = Q - h + load, with springs and dampers of the joints on
both sides. It takes gains that are laid out once, and threads for a batch. Where the step leads is
not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from poise import _core
from poise.math.arrays import Floats
from poise.model.scene import Scene
from poise.simulation.world_config import threads_of


class Solvers(dict[int, Callable[..., Floats]]):
    """`torques` of a world of n copies, by n: made when it is first asked for.

    Args:
        scene: The scene.
        dt: Time step [s].
        threads: At most this many for a batch; None takes the cores.
    """

    def __init__(self, scene: Scene, dt: float, threads: int | None) -> None:
        super().__init__()
        threads_of(threads, 1)  # refused here rather than in the first call
        self.scene, self.dt, self.threads = scene, dt, threads

    def __missing__(self, n: int) -> Callable[..., Floats]:
        threads, model = threads_of(self.threads, n), self.scene.model
        # gravity comes with every call
        world = _core.World(model, model, n, self.dt, False, threads, np.zeros(3), None, None)
        self[n] = world.torques
        return self[n]
