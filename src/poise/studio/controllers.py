"""The controller of a scene: made from what was chosen, in one place.

Most controllers are those of `poise.control`. Balance also scales the clip's time, with

t       the world's clock at the last target [s]
tau     the time in the clip then [s]: t, unless it has waited
sigma   the speed of the clip's time
s       memory of the balance itself
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poise.anatomy.body import place_of
from poise.anatomy.feet import check_can_stand
from poise.control.asked_profiles import profiled
from poise.control.balance import Balance, Paced
from poise.control.balance.balance import OBJECTIVES
from poise.control.gains import FREQUENCY
from poise.control.named import CONTROLLERS, Controller, named_controller
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.model.scene import Scene
from poise.simulation.command import Command, Target
from poise.simulation.world import World
from poise.studio.crowd_reference import CrowdReference, LoopedClip
from poise.studio.scene import Setup
from poise.studio.snapshot import BALANCE, Controls, Tuning
from poise.trials.balance_trial import STEPS

NAMES = (*CONTROLLERS, BALANCE)
"""Names of the controllers."""

BODY = ""
"""The whole body among the limbs."""

DEFAULT_TUNING = Tuning(FREQUENCY, 1.0, 1.0, 0.0)
"""Tuning of a body of which nothing was chosen."""

BALANCE_DT = STEPS["impulse"]
"""Time step that balance begins with [s]."""

LONGEST_STEP = 1.0 / 60.0
"""Time step beyond which a balancing character may leave the finite numbers when it falls [s]."""

Goals = Mapping[str, tuple[Floats, Floats]]
"""Points that links should reach: {link: (point [m], place in the link [m])}."""


def controller_for(setup: Setup, controls: Controls, present: object = None) -> Controller:
    """Makes the chosen controller with its chosen options; objects are free.

    Args:
        setup: The scene.
        controls: What was chosen.
        present: The present controller; balance in the same world shares its state.
    """
    if controls.balances:
        return _balance_controller(setup, controls, present)
    made = _tuned_controller(setup, controls)
    wrapped: Controller = profiled(made, setup.world, controls.profiles)
    return wrapped


# ---- gains, strength and pins of limbs


def tuned(controls: Controls, character: Character, limb: str | None, **values: float) -> Controls:
    """Controls with other gains, strength or pins of a limb; of the body, limbs change, too.

    Args:
        controls: What was chosen.
        character: The character whose limbs these are.
        limb: Name of the limb; None is the whole body.
        values: What changes.
    """
    if limb is not None and limb not in character.limbs:
        raise PoiseError(unknown_name("limb", limb, character.limbs))
    body = controls.tuning.get(BODY, DEFAULT_TUNING)
    if limb is not None:
        own = controls.tuning.get(limb, body)._replace(**values)
        return replace(controls, tuning={**controls.tuning, BODY: body, limb: own})
    changed = {name: own._replace(**values) for name, own in controls.tuning.items()}
    return replace(controls, tuning={**changed, BODY: body._replace(**values)})


def _tuned_controller(setup: Setup, controls: Controls) -> Controller:
    """A controller with gains, strength and pins of limbs."""
    scene, tuning = setup.world.scene, controls.tuning
    character, m = setup.motion.clip.character, controls.count
    links = {key: _per_link(scene, character, m, tuning, key) for key in Tuning._fields}
    sizes = np.diff([*scene.forest.v_adr, scene.nv])
    # characters come first, objects after them
    frequency, damping = (
        np.repeat(links[key][scene.forest.link], sizes)[: m * character.nv]
        for key in ("frequency", "damping")
    )
    made: Any = named_controller(
        controls.controller, setup.world, root=controls.root, frequency=frequency, damping=damping,
        part=tuple(scene.forest.parts)[:m],
    )  # fmt: skip
    for key, none in (("strength", 1.0), ("pin", 0.0)):
        if (links[key] != none).any():
            if not hasattr(made, key) or (key == "pin" and not made.embedded):
                raise PoiseError(f"controller {controls.controller!r} has no {key}; 'spd' has")
            setattr(made, key, links[key])
    return made  # type: ignore[no-any-return]


def _per_link(
    scene: Scene, character: Character, m: int, tuning: dict[str, Tuning], key: str
) -> Floats:
    """A number of the tuning for each link of a scene; objects have the default."""
    names = [link.name for link in character.links]
    one = np.full(len(names), getattr(tuning.get(BODY, DEFAULT_TUNING), key))
    for limb, own in tuning.items():
        for link in character.limbs.get(limb, ()):
            one[names.index(link)] = getattr(own, key)
    objects = np.full(scene.nl - m * len(names), getattr(DEFAULT_TUNING, key))
    return np.concatenate([np.tile(one, m), objects])


# ---- balance


def check_balance(controls: Controls, character: Character) -> None:
    """Raises an error that says why, where a character cannot balance.

    Args:
        controls: What was chosen.
        character: The character that should balance.
    """
    check_can_stand(character)
    if controls.count != 1:
        raise PoiseError(f"balance is for one character, not for {controls.count}: How many 1")
    if controls.root != "free":
        raise PoiseError(f"balance needs a free root; with root {controls.root!r} nothing can fall")
    if controls.ground != "plane":
        raise PoiseError(f"balance needs level ground: 'plane', not {controls.ground!r}")
    if controls.dt > 1.001 * LONGEST_STEP:
        raise PoiseError(f"balance needs steps of 1/60 s or less, not of {controls.dt:.3g} s")


class BalanceState:
    """A balance and the scaled time of its clip: what changes from step to step.

    Args:
        world: The world; the character is its first part.
        motion: The motion, with its contact schedule.
    """

    def __init__(self, world: World, motion: LoopedClip) -> None:
        clip = motion.sampled
        supports: Any = clip if clip.contacts is not None else "clip"
        first = next(iter(world.scene.forest.parts))
        self.world = world
        self.balance = Balance(world, part=first, supports=supports, rate=None)
        self.scaled = Paced(self, self.balance)
        self.reference: CrowdReference | None = None
        self.user: object = None
        """The controller whose objectives and goals the balance has."""
        self.last: tuple[float, Any, Target] | None = None
        """Time [s], state and target of the last plan."""
        self.clock = 0.0
        self._initial = self.balance.memory
        self.restore(self.initial_memory(0.0))

    @property
    def memory(self) -> Floats:
        """t, tau, sigma, and the memory of the balance."""
        time = (self.clock, float(self.scaled.time[0]), float(self.scaled.speed[0]))
        return np.array([*time, *self.balance.memory])

    def initial_memory(self, now: float) -> Floats:
        """Memory of a motion that is at time now [s] and has never waited."""
        return np.array([now, now, 1.0, *self._initial])

    def restore(self, memory: Floats) -> None:
        """Continues from a memory."""
        clock, time, speed = memory[:3].tolist()
        self.balance.restore(memory[3:])
        self.scaled.restore([[time], [speed]], at=clock)
        self.clock, self.last = clock, None

    def target(self, time: Floats) -> Target:
        """The reference at the clip's time [s]: this is the clip of `scaled`."""
        assert self.reference is not None
        return self.reference.between(float(time))


@dataclass(frozen=True, eq=False)
class BalanceController:
    """Balances the first character of a scene; it is also the motion that it follows.

    Objectives, goals and time scaling are values: to change one is to make another controller with
    the same state, so that a past can be simulated again.

    Args:
        state: What it shares with others of the same world.
        objectives: Any of "track", "linear", "angular".
        goals: Points that links should reach.
        adaptive: Whether the clip slows down when following it would cost the balance.
    """

    state: BalanceState
    objectives: tuple[str, ...] = OBJECTIVES
    goals: Goals | None = None
    adaptive: bool = False

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state of the scene and a target of this motion."""
        shared = self.state
        if shared.user is not self:
            shared.balance.objectives, shared.balance.goals = self.objectives, self.goals or {}
            shared.user = self
        assert shared.reference is not None
        # its time is that in the clip with the contacts
        time = shared.reference.within(float(target.time))
        own = Target(target.q, target.v, target.a, time=time)
        shared.last = float(state.time), state, own
        return shared.balance(state, own)

    # ---- its motion

    def follow(self, reference: CrowdReference) -> BalanceController:
        """Sets the reference and returns itself, the motion at the speed that balance allows."""
        self.state.reference = reference
        return self

    def target(self, t: float) -> Target:
        """The target at the world's time t [s], never before the last one; repeatable."""
        state = self.state
        assert state.reference is not None
        dt = state.reference.dt
        t = round(t / dt) * dt
        if not self.adaptive:
            time = float(state.scaled.time[0]) + max(t - state.clock, 0.0)
            state.scaled.restore([[time], [1.0]], at=t)
        state.clock = t
        return state.scaled.target(t)

    def targets(self, t: float, dt: float, k: int) -> Target:
        """Raises an error: the speed depends on the simulation."""
        raise PoiseError("a time-scaled motion cannot be sampled ahead")

    # ---- from step to step

    @property
    def memory(self) -> Floats:
        """What it remembers from step to step; see `BalanceState`."""
        return self.state.memory

    def restore(self, memory: Floats) -> None:
        """Continues from a memory."""
        self.state.restore(memory)

    def planned_cop(self, now: float) -> Floats | None:
        """Planned center of pressure of the step that ended now [s], shape (3,) [m]."""
        last, dt, balance = self.state.last, self.state.world.dt, self.state.balance
        if last is None or abs(last[0] + dt - now) > 0.5 * dt:
            return None
        _, state, target = last
        kept = balance.memory
        diagnostics = balance.explain(state, target)[1]
        balance.restore(kept)
        cop: Floats = diagnostics["cop"]
        return cop


def _balance_controller(setup: Setup, controls: Controls, present: object) -> BalanceController:
    character = setup.motion.clip.character
    check_balance(controls, character)
    if isinstance(present, BalanceController) and present.state.world is setup.world:
        state = present.state
    else:
        state = BalanceState(setup.world, setup.motion)
    goals = {}
    for name, point in controls.goals.items():
        link, place = place_of(character, name)
        goals[link] = (np.array(point), np.array(place))
    return BalanceController(state, controls.objectives, goals, controls.adaptive)


def initial_memory(controller: Controller, now: float) -> Floats | None:
    """Memory of a controller that starts at time now [s]; None if it has none."""
    if isinstance(controller, BalanceController):
        return controller.state.initial_memory(now)
    memory = memory_of(controller)
    return None if memory is None else np.zeros_like(memory)


def memory_of(controller: Controller) -> Floats | None:
    """What a controller remembers from step to step; None if it has no memory."""
    memory: Floats | None = getattr(controller, "memory", None)
    return memory
