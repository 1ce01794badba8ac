"""Stable PD control (yin2020): PD on the state at the end of the step, in linear time."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from poise import dynamics
from poise.control.gains import FREQUENCY, Gains
from poise.control.plant import PartLike, Plant
from poise.control.servo import Servo
from poise.errors import PoiseError
from poise.math.arrays import Floats, choice
from poise.model.scene import Scene, SceneLike
from poise.simulation.command import Command, Drive
from poise.simulation.controller import Requirements
from poise.simulation.state import State

_WORDS = {"form": dynamics.FORMS, "method": dynamics.METHODS, "dtype": dynamics.DTYPES}
"""Attributes that have one of several values."""


class StablePD(Servo):
    """Stable PD: gains of any size at large steps.

    Embedded, it hands gains and target to the world, which solves them inside the dynamics, with
    contact. Standalone, it computes the torques itself, for any engine; it then solves without
    contact, and in single precision its torques feed rounding errors back: see `check_gains`.

    Args:
        character: The World it acts in, a character, or several.
        gains: Gains, or None for `suggest_gains(character, frequency, damping, root=root)`.
        frequency: Natural frequency of the joints [Hz], unless gains are given.
        damping: Damping ratio, unless gains are given.
        root: "free", "soft" or "held"; see Servo.
        part: Which parts of the scene it acts on; None is all characters. See Servo.
        form: "implicit" is stable at any step; "spd" is the paper's; "explicit" is LYWG13's.
        embedded: False gives torques.
        method: "maba" in linear time; "df", "sf", "pcg" are the paper's baselines.
        strength: Factor of gains and effort limits per link, shape (nl,) or (n, nl); may be
            assigned at any time.
        pin: Weight per link of a pin to its target in the world, shape (nl,) or (n, nl); may be
            assigned at any time. Embedded only: a pin is no joint torque.
        dt: Time step [s], needed standalone; taken from a World.
        dtype: "float64" or "float32", the precision of what is computed outside the world; None
            takes that of the World it is made from, or "float64".
    """

    def __init__(
        self,
        character: SceneLike | Plant,
        gains: Gains | None = None,
        *,
        frequency: ArrayLike = FREQUENCY,
        damping: ArrayLike = 1.0,
        root: str = "free",
        part: PartLike = None,
        form: str = "implicit",
        embedded: bool = True,
        method: str = "maba",
        strength: ArrayLike | None = None,
        pin: ArrayLike | None = None,
        dt: float | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(character, gains, frequency, damping, root, part, strength, dt)
        self.form = form
        self.method = method
        self.embedded = embedded
        self.pin = pin
        self.dtype = self.plant.dtype if dtype is None else dtype
        if not embedded and self.dt is None:
            raise PoiseError(
                "standalone, stable PD needs dt: StablePD(..., embedded=False, dt=1/60)"
            )
        self._seal()

    def __setattr__(self, name: str, value: Any) -> None:
        words = _WORDS.get(name)
        if words is not None:
            value = words[choice(value, name, words)]
        elif name == "embedded" and not isinstance(value, bool):
            raise PoiseError(f"embedded must be True or False, got {value!r:.80}")
        super().__setattr__(name, value)

    @property
    def requires(self) -> Requirements:
        """A drive takes target rows for several steps; standalone, it is called in every step."""
        return Requirements(rows=self.embedded)

    @property
    def pin(self) -> Floats | None:
        """Weight per link of a pin to its target in the world, shape (nl,) or (n, nl), or None."""
        return self._pin

    @pin.setter
    def pin(self, pin: ArrayLike | None) -> None:
        if pin is not None and not self.embedded:
            raise PoiseError("pin acts inside the world: it needs embedded=True")
        self._pin = None if pin is None else self._weights(pin, "pin")

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target at t + dt; embedded, the state is not read."""
        if not self.embedded:
            return self.explain(state, target)[0]
        if state is not None and type(state) is not State:
            self._plant.check_state(state)
        drive = Drive(
            self._gains,
            self._plant.own_target(target),
            form=self.form,
            method=self.method,
            feedforward=self._root == "soft",
            strength=self._strength,
            pin=self._pin,
        )
        return self._plant.lift(Command(drive=drive))

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, and the acceleration and torque that it leads to where nothing pushes."""
        q, v, target = self._inputs(state, target)
        if self.dt is None:
            raise PoiseError("explain needs dt: StablePD(..., dt=1/60), or make it from the World")
        if self.pin is not None:
            raise PoiseError("explain does not know pins: read world.torque after the step")
        scene, kp, kd = self._weakened()
        force = self.root_feedforward(target) if self.root == "soft" else None
        options: dict[str, Any] = {"gravity": self.gravity, "force": force, "dtype": self.dtype}
        a, tau = dynamics.stable_pd(
            scene, q, v, target, kp, kd, self.dt, self.method, self.form, limits=True, **options
        )
        command = self(state, target) if self.embedded else self._plant.lift(Command(force=tau))
        return command, {"acceleration": a, "torque": tau}

    def _weakened(self) -> tuple[Scene, Floats, Floats]:
        """The scene with its efforts, and the gains, all scaled by the strength."""
        factor = self.factor
        if factor is None:
            return self.scene, self.gains.kp, self.gains.kd
        weakened = self.scene.with_overrides(effort=self.effort)
        return weakened, self.gains.kp * factor, self.gains.kd * factor
