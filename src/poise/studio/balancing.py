"""Balance in the studio: one character on its own feet, among objects and balls.

Objectives, goals and pace are values of a `Balancing`; to change one is to make another, so that
what was simulated before can be simulated again. What goes on from step to step is in the `Mind`
that they share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.control.balance.config import OBJECTIVES, goal_place
from poise.control.balance.supports import check_can_stand
from poise.control.registry import CONTROLLERS
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.simulation.command import Command, Target
from poise.simulation.world import World
from poise.studio.lineup import Lineup, Rounds
from poise.studio.mind import Mind
from poise.studio.snapshot import Controls

NAME = "balance"
"""What the controller is called."""

DT: float = CONTROLLERS[NAME].defaults["dt"]
"""Time step that it begins with [s]."""

LONGEST = 1.0 / 60.0
"""Time step beyond which it may leave the finite numbers when it falls [s]."""

Goals = Mapping[str, tuple[Floats, Floats]]
"""Points that links should reach: {link: (point [m], place in the link [m])}."""


def check_balance(controls: Controls, character: Character) -> None:
    """Refuse to balance where it cannot be done, and say why.

    Args:
        controls: What was chosen.
        character: Who shall balance.
    """
    check_can_stand(character)
    if controls.count != 1:
        raise PoiseError(f"balance is for one character, not for {controls.count}: How many 1")
    if controls.root != "free":
        raise PoiseError(f"balance needs a free root; with root {controls.root!r} nothing can fall")
    if controls.ground != "plane":
        raise PoiseError(f"balance needs level ground: 'plane', not {controls.ground!r}")
    if controls.dt > 1.001 * LONGEST:
        raise PoiseError(f"balance needs steps of 1/60 s or less, not of {controls.dt:.3g} s")


@dataclass(frozen=True, eq=False)
class Balancing:
    """A controller that balances the first character of a scene.

    Args:
        mind: What it shares with others of the same world.
        objectives: Any of "track", "linear", "angular".
        goals: Points that links should reach.
        adaptive: Whether the motion waits when following it would cost the balance.
    """

    mind: Mind
    objectives: tuple[str, ...] = OBJECTIVES
    goals: Goals | None = None
    adaptive: bool = False

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state of the scene and a target of its `motion`."""
        mind = self.mind
        if mind.user is not self:
            mind.balance.objectives, mind.balance.goals = self.objectives, self.goals or {}
            mind.user = self
        own = self._own(target)
        mind.last = float(state.time), state, own
        return mind.balance(state, own)

    def motion(self, lineup: Lineup) -> Following:
        """The lineup, at the pace that the balance allows."""
        return Following(self, lineup)

    @property
    def memory(self) -> Floats:
        """What it remembers from step to step; see `Mind`."""
        return self.mind.memory

    def resume(self, memory: Floats | None, now: float) -> None:
        """Go on from a memory, or from the start, at time now [s]."""
        self.mind.restore(memory, now)

    def planned(self, now: float) -> Floats | None:
        """Where the pressure of the step that ended now [s] was planned [m], shape (3,)."""
        mind = self.mind
        if mind.last is None or abs(mind.last[0] + mind.world.dt - now) > 0.5 * mind.world.dt:
            return None
        _, state, target = mind.last
        kept = mind.balance.memory
        told = mind.balance.explain(state, target)[1]
        mind.balance.restore(kept)
        cop: Floats = told["cop"]
        return cop

    def _own(self, target: Target) -> Target:
        """The character's part of a target; its time is that in the clip with the contacts."""
        one, lineup = self.mind.balance.scene, self.mind.lineup
        assert lineup is not None
        assert target.v is not None
        assert target.a is not None
        assert target.time is not None
        return Target(
            target.q[: one.nq],
            target.v[: one.nv],
            target.a[: one.nv],
            time=lineup.within(float(target.time)),
        )


@dataclass(frozen=True, eq=False)
class Following:
    """A lineup as a `Balancing` follows it; a Motion for `poise.run`."""

    balancing: Balancing
    lineup: Lineup

    def target(self, t: float) -> Target:
        """What to reach at the world's time t [s]."""
        return self.balancing.mind.wanted(self.lineup, t, self.balancing.adaptive)

    def targets(self, t: float, dt: float, k: int) -> Target:
        """Rows are not told ahead: the pace depends on what happens."""
        raise PoiseError("a paced motion tells one target at a time")


def balancing_for(
    world: World, rounds: Rounds, controls: Controls, present: object = None
) -> Balancing:
    """The controller that was chosen.

    Args:
        world: The world.
        rounds: The motion.
        controls: What was chosen.
        present: The controller there is; one that balances in the same world shares its mind.
    """
    character = rounds.clip.character
    check_balance(controls, character)
    if isinstance(present, Balancing) and present.mind.world is world:
        mind = present.mind
    else:
        mind = Mind(world, rounds)
    goals = {}
    for name, point in controls.goals.items():
        link, place = goal_place(character, name)
        goals[link] = (np.array(point), np.array(place))
    return Balancing(mind, controls.objectives, goals, controls.adaptive)
