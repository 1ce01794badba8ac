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
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.arrays import Floats, floats
from poise.command import Command, Drive, Target
from poise.control.effort import cut_to_effort
from poise.control.free_root import FreeRoot
from poise.control.gains import SOFT_FREQUENCY, root_slices, suggest_gains
from poise.control.plant import PartLike, Plant
from poise.control.servo import Servo
from poise.errors import FallWarning, PoiseError
from poise.scene import SceneLike

STIFFNESS = 500.0
"""Of every link unless given [1/s²]."""

FALLEN_FREQUENCY = 2.0
"""Natural frequency of the joints of a character that has fallen [Hz]."""


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

    takes_past = True
    """`poise.run` says where the target was: then velocity and acceleration are differences."""

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
        roots = len(root_slices(self.scene))
        self._free: FreeRoot | None = None
        if self.root == "free" and roots:
            if roots > 1:
                raise PoiseError(
                    f"ground forces carry one free root, there are {roots}; name one part, as in "
                    f"part={self.plant.names[0]!r}, or use root='soft' or root='held'"
                )
            self._free = FreeRoot(self.scene, friction, self.plant.ground_height(ground))
            self._light = suggest_gains(self.scene, FALLEN_FREQUENCY)
        self._fell = False
        self._seal()

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, the torque, the desired accelerations, and the ground forces of a free root.

        Returns:
            The command and {"torque", "acceleration"}, and for a free root {"points", "forces",
            "standing"}: 1, and 0 of a character that has fallen, whose torques are those of a light
            servo inside the dynamics, and not in "torque".
        """
        q, v, target = self._asked(state, target)
        assert self.dt is not None
        tau, a = dynamics.kane_control(
            self.scene, q, v, target, self.kp, self.kd, self.dt,
            target_velocity=self.target_velocity, feedforward=self.feedforward,
            gravity=self.gravity, external=self.external, as_printed=self.as_printed,
        )  # fmt: skip
        told: dict[str, Any] = {"acceleration": a}
        if self._free is not None:
            carried = self._free(q, v, tau, a, self.gravity, self.external, self.as_printed)
            tau, told = carried.torque, carried._asdict()
            if tau.ndim == 1:
                told |= {"points": carried.points[0], "forces": carried.forces[0]}
            told["standing"] = standing = self._free.standing(q, target.q)
            tau = standing[..., None] * tau
        if self.factor is not None:
            tau = self.factor * tau
        tau = cut_to_effort(self, tau)
        told["torque"] = tau
        command = Command(force=tau)
        if self._free is not None and (standing < 1.0).any():
            self._tell_fall(state, standing)
            command = Command(force=tau, drive=self._light_servo(target, standing))
        return self._plant.lift(command), told

    def _light_servo(self, target: Target, standing: Floats) -> Drive:
        """What a character that has fallen is driven by: weak joints, and no force on the root."""
        strength = (
            1.0 - standing[..., None]
            if self._strength is None
            else ((1.0 - standing[..., None]) * self._strength)
        )
        strength = np.array(np.broadcast_to(strength, (*standing.shape, self.scene.nl)))
        return Drive(self._light, Target(target.q, target.v), strength=strength)

    def _tell_fall(self, state: Any, standing: Floats) -> None:
        """Warns once when a character has fallen."""
        if self._fell or (standing > 0.0).all():
            return
        self._fell = True
        copy = int(np.argmin(standing))
        time = np.broadcast_to(getattr(state, "time", np.nan), np.shape(standing) or (1,))
        who = repr(self.plant.names[0]) + (f" of copy {copy}" if standing.ndim else "")
        warnings.warn(
            f"{who} has fallen at {float(np.ravel(time)[copy]):.3g} s: no ground forces inside "
            "friction cones hold it up as its target stands; a light servo drives its joints now",
            FallWarning,
            stacklevel=4,
        )

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
