"""What PD and stable PD share: gains, root, and the signature of a controller."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from poise.arrays import choice, number
from poise.command import Command, Target
from poise.control.gains import FREQUENCY, ROOTS, Gains, suggest_gains
from poise.dynamics import GRAVITY
from poise.errors import PoiseError
from poise.scene import SceneLike, scene_of


class Servo:
    """A controller that pulls joints to a target. Subclasses say how.

    Args:
        character: The character, or a scene.
        gains: Gains, or None for `suggest_gains(character, frequency, damping, root=root)`.
        frequency: Natural frequency of the joints [Hz], unless gains are given.
        damping: Damping ratio, unless gains are given.
        root: "free" no force on free roots; "held" tracked stiffly, as the papers do; "soft"
            tracked at a low frequency with the force that the reference itself needs fed forward.
            Given gains are used as they are; "soft" then adds the feedforward.
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
        self.dt = getattr(character, "dt", None) if dt is None else number(dt, "dt")
        self._source = character

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target at t + dt."""
        return self.explain(state, target)[0]

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, and what led to it."""
        raise NotImplementedError

    @property
    def gravity(self) -> ArrayLike:
        """Gravity of the world it was made from, or the earth's [m/s^2]."""
        gravity: ArrayLike = getattr(self._source, "gravity", GRAVITY)
        return gravity

    def _target(self, target: Any) -> Target:
        return target if type(target) is Target else Target.of(target)
