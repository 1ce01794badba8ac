"""What a balance in the studio remembers, and how it commands a scene with objects.

`Balance` plans for one character; in a scene with objects its command is that of the character, and
objects are left alone. From step to step there are

    t       the world's clock when a target was last asked for [s]
    tau     where the motion is then [s]: t, unless it has waited
    sigma   its speed
    s       strain, and whatever else the balance remembers
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.arrays import Floats
from poise.character import Character
from poise.command import Command, Drive, Target
from poise.control.balance import Balance, Paced
from poise.control.gains import Gains
from poise.scene import scene_of
from poise.state import State
from poise.view.studio.lineup import Lineup, Rounds
from poise.world import World


class Alone:
    """One character of a world as if it were alone there, for `Balance`.

    Args:
        world: The world; the character is its first part.
        character: The character.
    """

    def __init__(self, world: World, character: Character) -> None:
        self._world = world
        self.scene, self.settings, self.dt = scene_of(character), world.settings, world.dt

    @property
    def gravity(self) -> Floats:
        """Of the world [m/s²]."""
        return self._world.gravity


class Mind:
    """A balance, and what it remembers from step to step.

    Args:
        world: The world; the character is its first part.
        rounds: The motion, which says when its feet stand.
    """

    def __init__(self, world: World, rounds: Rounds) -> None:
        character, motion = rounds.clip.character, rounds.sampled
        alone = len(world.scene.characters) == 1
        source: Any = world if alone else Alone(world, character)
        supports: Any = motion if motion.contacts is not None else "clip"
        self.world, self.rounds, self.alone = world, rounds, alone
        self.balance = Balance(source, supports=supports, rate=None)
        self.paced = Paced(self, self.balance)
        self.lineup: Lineup | None = None
        self.user: object = None
        """Whose objectives and goals the balance has."""
        self.last: tuple[float, Any, Target] | None = None
        """Time [s], state and target of the last plan."""
        self._gains: tuple[Gains, Gains] | None = None
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

    # ---- commands

    def plan(self, state: Any, target: Target) -> Command:
        """The command for the whole scene."""
        if self.alone:
            return self.balance(state, target)
        scene, one = self.world.scene, self.balance.scene
        found = self.balance(State(state.q[: one.nq], state.v[: one.nv]), target)
        force = np.zeros(scene.nv)
        force[: one.nv] = found.force
        if found.drive is None:
            return Command(force=force)
        v = np.zeros(scene.nv)
        v[: one.nv] = found.drive.target.v
        return Command(
            force=force, drive=Drive(self._whole(found.drive.gains), Target(state.q, v), form="spd")
        )

    def _whole(self, gains: Gains) -> Gains:
        """Gains of the character for the scene: objects have none."""
        if self._gains is None or self._gains[0] is not gains:
            kd = np.zeros(self.world.scene.nv)
            kd[: self.balance.scene.nv] = gains.kd
            self._gains = gains, Gains(self.world, np.zeros_like(kd), kd)
        return self._gains[1]
