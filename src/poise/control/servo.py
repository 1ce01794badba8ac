"""What PD and stable PD share: gains, root, strength, and the signature of a controller."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.arrays import Floats, choice, finite, floats, number
from poise.command import Command, Target
from poise.control.gains import FREQUENCY, ROOTS, Gains, suggest_gains
from poise.dynamics import GRAVITY
from poise.errors import PoiseError
from poise.forest import Ints
from poise.motion.jumps import check_followable
from poise.scene import SceneLike, scene_of


class Servo(ABC):
    """A controller that pulls joints to a target. Subclasses say how.

    Args:
        character: The character, or a scene.
        gains: Gains, or None for `suggest_gains(character, frequency, damping, root=root)`.
        frequency: Natural frequency of the joints [Hz], unless gains are given.
        damping: Damping ratio, unless gains are given.
        root: "free" no force on free roots; "held" tracked stiffly, as the papers do; "soft"
            tracked at a low frequency with the force that the reference itself needs fed forward.
            Given gains are used as they are; "soft" then adds the feedforward.
        strength: Factor of gains and effort limits per link, shape (nl,) or (n, nl); None is 1.
            It may be assigned at any time. A link's factor is that of the joint it moves by. To
            forces from outside, a world's own limits stay as they are: there it is 1 at most.
        dt: Time step [s], for what is computed outside the world. A World brings its own, and its
            gravity and masses.
    """

    def __init__(
        self,
        character: SceneLike,
        gains: Gains | None = None,
        *,
        frequency: ArrayLike = FREQUENCY,
        damping: ArrayLike = 1.0,
        root: str = "free",
        strength: ArrayLike | None = None,
        dt: float | None = None,
    ) -> None:
        self.scene = scene_of(character)
        self.root = ROOTS[choice(root, "root", ROOTS)]
        if gains is None:
            gains = suggest_gains(self.scene, frequency, damping, root=root)
        elif not isinstance(gains, Gains):
            raise PoiseError(f"gains must be made by Gains or suggest_gains, got {gains!r:.80}")
        elif gains.kp.shape[-1] != self.scene.nv:
            raise PoiseError(
                f"these gains have {gains.kp.shape[-1]} degrees of freedom, the character has "
                f"{self.scene.nv}"
            )
        self.gains = gains
        self.strength = strength
        self.dt = getattr(character, "dt", None) if dt is None else number(dt, "dt")
        self._source = character

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target at t + dt."""
        return self.explain(state, target)[0]

    @abstractmethod
    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, and what led to it."""

    @property
    def gravity(self) -> ArrayLike:
        """Gravity of the world it was made from, or the earth's [m/s^2]."""
        gravity: ArrayLike = getattr(self._source, "gravity", GRAVITY)
        return gravity

    @property
    def strength(self) -> Floats | None:
        """Factor of gains and effort limits per link, shape (nl,) or (n, nl), or None."""
        return self._strength

    @strength.setter
    def strength(self, strength: ArrayLike | None) -> None:
        self._strength = None if strength is None else self._weights(strength, "strength")

    @property
    def factor(self) -> Floats | None:
        """The strength per velocity, shape (nv,) or (n, nv); None where it is 1."""
        if self._strength is None:
            return None
        return np.asarray(np.take(self._strength, self._link_of_dof, axis=-1))

    @property
    def effort(self) -> Floats:
        """Effort limits, scaled by the strength [N, N·m], shape (nv,) or (n, nv); inf is none."""
        effort, factor = self.scene.forest.effort, self.factor
        if factor is None:
            return effort
        limited = np.isfinite(effort)
        # not inf * 0
        scaled = np.where(limited, effort, 0.0) * factor
        return np.ascontiguousarray(np.where(limited, scaled, np.inf))

    @cached_property
    def _link_of_dof(self) -> Ints:
        """The link that each velocity moves, shape (nv,)."""
        forest = self.scene.forest
        return np.repeat(forest.link, np.array([6, 3, 1, 1])[forest.kind])

    def _weights(self, value: ArrayLike, name: str) -> Floats:
        """Numbers per link, 0 or more."""
        array = finite(floats(value, name), name)
        nl = self.scene.nl
        if array.ndim not in (1, 2) or array.shape[-1] != nl:
            raise PoiseError(f"{name} has shape {array.shape}, expected ({nl},) or (n, {nl})")
        if (array < 0.0).any():
            raise PoiseError(f"{name} must be 0 or more, the least is {array.min():g}")
        return array

    def _target(self, target: Any) -> Target:
        one = target if type(target) is Target else Target.of(target)
        check_followable(one)
        return one

    def _asked(self, state: Any, target: Any) -> tuple[Floats, Floats, Target]:
        """Positions, velocities and the one target of a call that computes torques."""
        if not hasattr(state, "q") or not hasattr(state, "v"):
            raise PoiseError(f"a state has q and v; got {state!r:.80}")
        one = self._target(target)
        if one.rows is not None:
            name = type(self).__name__
            raise PoiseError(f"{name} computes torques for one target a step, not for rows of them")
        return state.q, state.v, one
