"""What a balance in the studio remembers from step to step.

t       the world's clock when a target was last asked for [s]
tau     where the motion is then [s]: t, unless it has waited
sigma   its speed
s       strain, and whatever else the balance remembers
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.control.balance import Balance, TimeScaled
from poise.math.arrays import Floats
from poise.simulation.command import Target
from poise.simulation.world import World
from poise.studio.lineup import Lineup, Rounds


class Mind:
    """A balance, and what it remembers from step to step.

    Args:
        world: The world; the character is its first part.
        rounds: The motion, which says when its feet stand.
    """

    def __init__(self, world: World, rounds: Rounds) -> None:
        motion = rounds.sampled
        supports: Any = motion if motion.contacts is not None else "clip"
        self.world, self.rounds = world, rounds
        first = next(iter(world.scene.forest.parts))
        self.balance = Balance(world, part=first, supports=supports, rate=None)
        self.paced = TimeScaled(self, self.balance)
        self.lineup: Lineup | None = None
        self.user: object = None
        """Whose objectives and goals the balance has."""
        self.last: tuple[float, Any, Target] | None = None
        """Time [s], state and target of the last plan."""
        self._fresh = self.balance.memory
        self.clock = 0.0
        self.restore(None, 0.0)

    # ---- from step to step

    @property
    def memory(self) -> Floats:
        """t, tau, sigma, and what the balance remembers."""
        pace = (self.clock, float(self.paced.time[0]), float(self.paced.speed[0]))
        return np.array([*pace, *self.balance.memory])

    def restore(self, memory: Floats | None, now: float) -> None:
        """Go on from a memory; None is a motion that is at time now [s] and has never waited."""
        if memory is None:
            memory = np.array([now, now, 1.0, *self._fresh])
        clock, time, speed = memory[:3].tolist()
        self.balance.restore(memory[3:])
        self.paced.restore([[time], [speed]], at=clock)
        self.clock, self.last = clock, None

    def target(self, time: Floats) -> Target:
        """The motion at its own time [s]: this is the clip of `paced`."""
        assert self.lineup is not None
        return self.lineup.between(float(time))

    def wanted(self, lineup: Lineup, t: float, adaptive: bool) -> Target:
        """What the motion has at the world's time t [s]; asked again, it is the same.

        Args:
            lineup: The motion.
            t: Never before the last one.
            adaptive: Whether it waits when following it would cost the balance.
        """
        t = round(t / lineup.dt) * lineup.dt
        self.lineup = lineup
        if not adaptive:
            time = float(self.paced.time[0]) + max(t - self.clock, 0.0)
            self.paced.restore([[time], [1.0]], at=t)
        self.clock = t
        return self.paced.target(t)
