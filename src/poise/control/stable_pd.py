"""Stable PD control (yin2020): PD on the state at the end of the step, in linear time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.arrays import Floats, choice, floats
from poise.command import Command, Drive
from poise.control.gains import FREQUENCY, Gains
from poise.control.pd import root_feedforward
from poise.control.servo import Servo
from poise.errors import PoiseError
from poise.scene import Scene, SceneLike


class StablePD(Servo):
    """Stable PD: gains of any size at large steps.

    Embedded, it hands gains and target to the world, which solves them inside the dynamics.
    Standalone, it computes the torques itself, for any engine.

    Args:
        character: The character, or a scene.
        gains: Gains, or None for `suggest_gains(character, frequency, damping, root=root)`.
        frequency: Natural frequency of the joints [Hz], unless gains are given.
        damping: Damping ratio, unless gains are given.
        root: "free", "soft" or "held"; see Servo.
        form: "implicit" is stable at any step; "spd" is the paper's; "explicit" is LYWG13's.
        embedded: False gives torques.
        method: "maba" in linear time; "df", "sf", "pcg" are the paper's baselines.
        strength: Factor of gains and effort limits per link, shape (nl,) or (n, nl); may be
            assigned at any time.
        pin: Weight per link of a pin to its target in the world, shape (nl,) or (n, nl); may be
            assigned at any time.
        dt: Time step [s], needed standalone; taken from a World.
    """

    def __init__(
        self,
        character: SceneLike,
        gains: Gains | None = None,
        *,
        frequency: ArrayLike = FREQUENCY,
        damping: ArrayLike = 1.0,
        root: str = "free",
        form: str = "implicit",
        embedded: bool = True,
        method: str = "maba",
        strength: ArrayLike | None = None,
        pin: ArrayLike | None = None,
        dt: float | None = None,
    ) -> None:
        super().__init__(character, gains, frequency=frequency, damping=damping, root=root, dt=dt)
        self.form = dynamics.FORMS[choice(form, "form", dynamics.FORMS)]
        self.method = dynamics.METHODS[choice(method, "method", dynamics.METHODS)]
        self.embedded = embedded
        self.strength = None if strength is None else floats(strength, "strength")
        self.pin = None if pin is None else floats(pin, "pin")
        if not embedded and self.dt is None:
            raise PoiseError(
                "standalone, stable PD needs dt: StablePD(..., embedded=False, dt=1/60)"
            )
        if not embedded and (strength is not None or pin is not None):
            raise PoiseError("strength and pin act inside the world: they need embedded=True")

    @property
    def takes_rows(self) -> bool:
        """Whether one command may hold targets for several steps."""
        return self.embedded

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target at t + dt; embedded, the state is not read."""
        if not self.embedded:
            return self.explain(state, target)[0]
        drive = Drive(
            self.gains,
            self._target(target),
            form=self.form,
            method=self.method,
            feedforward=self.root == "soft",
            strength=self.strength,
            pin=self.pin,
        )
        return Command(drive=drive)

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, and the acceleration and torque that it leads to where nothing pushes."""
        target = self._target(target)
        if self.dt is None:
            raise PoiseError("explain needs dt: StablePD(..., dt=1/60), or make it from the World")
        if self.pin is not None:
            raise PoiseError("explain does not know pins: read world.torque after the step")
        scene, strength = self._weakened()
        a, tau = dynamics.stable_pd(
            scene,
            state.q,
            state.v,
            target,
            self.gains.kp * strength,
            self.gains.kd * strength,
            self.dt,
            self.method,
            self.form,
            gravity=self.gravity,
            force=root_feedforward(self, target) if self.root == "soft" else None,
            limits=True,
        )
        told = {"acceleration": a, "torque": tau}
        return (self(state, target) if self.embedded else Command(force=tau)), told

    def _weakened(self) -> tuple[Scene, Floats]:
        """The scene with efforts scaled by the strength, and the strength per velocity."""
        if self.strength is None:
            return self.scene, np.ones(())
        forest = self.scene.forest
        if self.strength.ndim > 2 or self.strength.shape[-1:] != (self.scene.nl,):
            wanted = f"({self.scene.nl},) or (n, {self.scene.nl})"
            raise PoiseError(f"strength has shape {self.strength.shape}, expected {wanted}")
        sizes = np.array([6, 3, 1, 1])[forest.kind]
        strength = np.take(self.strength, np.repeat(forest.link, sizes), axis=-1)
        numbers = self.scene.numbers or (None,) * 6
        limited = np.isfinite(forest.effort)
        effort = np.where(limited, np.where(limited, forest.effort, 0.0) * strength, np.inf)
        own = (*numbers[:4], np.ascontiguousarray(effort), numbers[5])
        return self.scene._replace(numbers=own), strength
