"""Inverse dynamics control (kavafoglu2018): the accelerations that are wanted, and their forces.

With k_p one stiffness [1/s²] and k_d = 2 ζ sqrt(k_p), each link should turn by
    α = k_p log(R̄ Rᵀ) + k_d (ω̄ - ω) + ᾱ
and the recursion from Kane's equations (kane.hpp) gives the joint forces that do it. Errors decay
alike for a finger and a leg, whatever their inertia, and gravity leaves none behind.

A step of length h makes of that v⁺ = v + h a, e⁺ = e + h v⁺, which with k_p and k_d as they are is
unstable from sqrt(k_p) h > 0.83 on. We place the poles of the step where those of the equation are,
    λ = exp(-h (ζ ± sqrt(ζ² - 1)) sqrt(k_p)),
    k_d' = (1 - λ₁ λ₂) / h,   k_p' = (1 - λ₁)(1 - λ₂) / h²,
so that errors decay as they should at any stiffness and any step; exact=False is the thesis's way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.control.effort import cut_to_effort
from poise.control.free_root import FreeRoot
from poise.control.gains import SOFT_FREQUENCY, root_slices, suggest_gains
from poise.control.plant import PartLike, Plant
from poise.control.servo import Servo
from poise.errors import FallWarning, PoiseError, ReadOnly, warn_user
from poise.math.arrays import Floats, finite, floats
from poise.model.scene import SceneLike
from poise.simulation.command import Command, Drive, Target
from poise.simulation.controller import Requirements

STIFFNESS = 500.0
"""Of every link unless given [1/s²]."""

FALLEN_FREQUENCY = 2.0
"""Natural frequency of the joints of a character that has fallen [Hz]."""

SETTLED = 1.0
"""A character that had fallen stands again if no velocity differs by more from the target's
[rad/s, m/s]."""


class InverseDynamics(Servo):
    """Forces that give the links the accelerations that bring them to the target.

    Args:
        character: The World it acts in, a character, or several.
        stiffness: k_p [1/s²]: a number, or one per velocity, shape (nv,).
        damping: ζ, 1 is critical: a number, or one per velocity, shape (nv,).
        root: "held": the root is driven like a link, by a hand from outside, as the thesis has it.
            "soft": the same at 1 Hz. "free": nothing but the ground pushes the root: forces
            inside friction cones at the points that stand are found with the joint torques.
        part: Which parts of the scene it acts on; None is all characters. See Servo.
        target_velocity: Whether ω̄ is the target's velocity; else 0.
        feedforward: Whether ᾱ is the target's acceleration; else 0.
        exact: Place the poles of the step; False takes k_p and k_d as they are.
        as_printed: Leave out ω x I ω, as the thesis does.
        strength: Factor of torques and effort limits per link, as of Servo.
        friction: Of the ground, for a free root.
        ground: Height of the ground [m], for a free root; None is that of the World, or 0.
        dt: Time step [s], needed unless a World is given.
    """

    requires = Requirements(past=True)
    """With the target's past, its velocity and acceleration are differences."""

    external: Floats | None
    """Known forces: wrench on each link, force at its origin [N, N·m], shape (..., nl, 6)."""

    def __init__(
        self,
        character: SceneLike | Plant,
        stiffness: ArrayLike = STIFFNESS,
        *,
        damping: ArrayLike = 1.0,
        root: str = "free",
        part: PartLike = None,
        target_velocity: bool = True,
        feedforward: bool = True,
        exact: bool = True,
        as_printed: bool = False,
        strength: ArrayLike | None = None,
        friction: float = 0.8,
        ground: float | None = None,
        dt: float | None = None,
    ) -> None:
        super().__init__(character, root=root, part=part, strength=strength, dt=dt)
        if self.dt is None:
            raise PoiseError("inverse dynamics needs dt: InverseDynamics(..., dt=1/60)")
        self.target_velocity = target_velocity
        self.feedforward = feedforward
        self.as_printed = as_printed
        self.external = None
        self.kp, self.kd = self._placed_gains(stiffness, damping, exact)
        settings = self.plant.settings
        self._on_ground = settings is None or (
            settings.contact is not None and settings.ground is not False
        )
        roots = len(root_slices(self.scene))
        self._free: FreeRoot | None = None
        if self.root == "free" and roots:
            if roots > 1:
                raise PoiseError(
                    f"ground forces carry one free root, there are {roots}; name one part, as in "
                    f"part={self.plant.names[0]!r}, or use root='soft' or root='held'"
                )
            # without ground nothing carries it
            level = self.plant.ground_height(ground) if self._on_ground else -math.inf
            self._free = FreeRoot(self.scene, friction, level)
            self._light = suggest_gains(self.scene, FALLEN_FREQUENCY)
        self._fallen = np.zeros(1, dtype=bool)
        self._seal()

    @property
    def gains(self) -> Any:
        """It has none: stiffness and damping are accelerations, `kp` and `kd` [1/s², 1/s]."""
        raise AttributeError("InverseDynamics has no gains; kp and kd are its own [1/s², 1/s]")

    @gains.setter
    def gains(self, gains: Any) -> None:
        if self._sealed:
            raise ReadOnly(
                "gains of an InverseDynamics cannot be assigned: it has a stiffness, "
                "InverseDynamics(..., stiffness=...)"
            )

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target at t + dt. A copy that has fallen stays fallen."""
        command, told = self.explain(state, target)
        if self._free is not None:
            self._note_falls(state, told["fallen"])
        return command

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, the torque, the desired accelerations, and the ground forces of a free root.

        Returns:
            The command and {"torque", "acceleration"}, and for a free root {"points", "forces",
            "standing", "fallen"}: standing is 1, and 0 of a character that has fallen, whose joints
            a light servo inside the dynamics drives; its torques are not in "torque".
        """
        q, v, target = self._asked(state, target)
        assert self.dt is not None
        tau, a = dynamics.kane_control(
            self.scene, q, v, target, self.kp, self.kd, self.dt,
            target_velocity=self.target_velocity, feedforward=self.feedforward,
            gravity=self.gravity, external=self.external, as_printed=self.as_printed,
        )  # fmt: skip
        told: dict[str, Any] = {"acceleration": a}
        standing = np.ones(tau.shape[:-1])
        if self._free is not None:
            carried = self._free(q, v, tau, a, self.gravity, self.external, self.as_printed)
            tau, told = carried.torque, carried._asdict()
            if tau.ndim == 1:
                told |= {"points": carried.points[0], "forces": carried.forces[0]}
            standing, fallen = self._standing(q, v, tau, target)
            told |= {"standing": standing, "fallen": fallen}
            tau = standing[..., None] * tau
        if self.factor is not None:
            tau = self.factor * tau
        tau = cut_to_effort(self, tau)
        told["torque"] = tau
        command = Command(force=tau)
        if (standing < 1.0).any():
            command = Command(force=tau, drive=self._light_servo(target, standing))
        return self._plant.lift(command), told

    # ---- falls

    @property
    def memory(self) -> Floats:
        """Which copies have fallen, 1 or 0, shape (n,)."""
        return self._fallen.astype(np.float64)

    def restore(self, memory: ArrayLike) -> None:
        """Go on from a memory."""
        given = np.atleast_1d(finite(floats(memory, "memory"), "memory"))
        if given.ndim != 1 or not given.size:
            raise PoiseError(f"memory has shape {given.shape}, expected (n,)")
        self._fallen = given > 0.5

    def _standing(
        self, q: Floats, v: Floats, tau: Floats, target: Target
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """How far each copy stands, 1 to 0, and which have fallen.

        A copy that has fallen gets up only when it is at its target again, as after a reset: a
        target that moves may be near to it by chance.
        """
        assert self._free is not None
        if not self._on_ground:
            return np.ones(tau.shape[:-1]), np.zeros(tau.shape[:-1], dtype=bool)
        standing = self._free.standing(q, target.q) * self._free.within_reason(tau)
        before = np.broadcast_to(self._fallen, np.shape(standing) or (1,))
        before = before.reshape(np.shape(standing))
        rate = v if target.v is None else v - target.v
        settled = (standing == 1.0) & (np.abs(rate).max(axis=-1) < SETTLED)
        fallen = np.where(before, ~settled, standing == 0.0)
        return np.where(fallen, 0.0, standing), fallen

    def _light_servo(self, target: Target, standing: Floats) -> Drive:
        """What drives a character that has fallen: weak joints, and no force on the root."""
        weight = 1.0 - standing[..., None]
        strength = weight if self._strength is None else weight * self._strength
        strength = np.array(np.broadcast_to(strength, (*standing.shape, self.scene.nl)))
        return Drive(self._light, Target(target.q, target.v), strength=strength)

    def _note_falls(self, state: Any, fallen: NDArray[np.bool_]) -> None:
        """Remembers who has fallen, and warns of the first since all stood."""
        new = np.atleast_1d(fallen)
        if new.any() and not self._fallen.any():
            copy = int(np.argmax(new))
            time = np.broadcast_to(getattr(state, "time", np.nan), new.shape)
            who = repr(self.plant.names[0]) + (f" of copy {copy}" if np.ndim(fallen) else "")
            warn_user(
                f"{who} has fallen at {float(time[copy]):.3g} s: no ground forces inside friction "
                "cones hold it up as its target stands; a light servo drives its joints now",
                FallWarning,
            )
        self._fallen = new

    def _placed_gains(
        self, stiffness: ArrayLike, damping: ArrayLike, exact: bool
    ) -> tuple[Floats, Floats]:
        """k_p and k_d per velocity, as the step needs them."""
        kp, ratio = (
            self._per_velocity(stiffness, "stiffness"),
            self._per_velocity(damping, "damping"),
        )
        if (ratio == 0.0).any():
            raise PoiseError("damping is 0; it must be a positive number [ratio]")
        if self.root == "soft":
            for at in root_slices(self.scene):
                kp[at] = (2.0 * math.pi * SOFT_FREQUENCY) ** 2
        assert self.dt is not None
        return placed(kp, ratio, self.dt) if exact else (kp, 2.0 * ratio * np.sqrt(kp))

    def _per_velocity(self, value: ArrayLike, name: str) -> Floats:
        """A number, or one for each velocity, 0 or more; shape (nv,)."""
        array, nv = floats(value, name), self.scene.nv
        if array.shape not in ((), (nv,)):
            raise PoiseError(f"{name} has shape {array.shape}, expected a number or ({nv},)")
        if not (np.isfinite(array) & (array >= 0.0)).all():
            raise PoiseError(f"{name} is {value!r:.80}; it must be 0 or more")
        return np.array(np.broadcast_to(array, (nv,)))


def placed(kp: Floats, ratio: ArrayLike, dt: float) -> tuple[Floats, Floats]:
    """Gains whose steps decay as the equation with k_p and damping ratio does.

    Args:
        kp: Stiffness [1/s²], shape (nv,).
        ratio: Damping ratio, a number or shape (nv,).
        dt: Time step [s].
    """
    rate, ratio = np.sqrt(kp) * dt, np.asarray(ratio, dtype=np.float64)
    split = rate * np.sqrt(ratio**2 - 1.0 + 0j)
    # logarithms of the poles: real, or a pair of conjugates
    one, two = -ratio * rate + split, -ratio * rate - split
    square = (np.expm1(one) * np.expm1(two)).real
    return square / dt**2, -np.expm1(-2.0 * ratio * rate) / dt
