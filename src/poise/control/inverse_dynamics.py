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
from numpy.typing import ArrayLike

from poise import dynamics
from poise.arrays import Floats, floats, number
from poise.command import Command, Target
from poise.contact import Plane
from poise.control.effort import cut_to_effort
from poise.control.gains import SOFT_FREQUENCY, root_slices
from poise.control.ground_forces import GroundForces
from poise.control.servo import Servo
from poise.control.supports import Supports
from poise.errors import PoiseError
from poise.scene import SceneLike

STIFFNESS = 500.0
"""Of every link unless given [1/s²]."""


class InverseDynamics(Servo):
    """Forces that give the links the accelerations that bring them to the target.

    Args:
        character: The character, a scene, or the World it acts in.
        stiffness: k_p [1/s²]: a number, or one per velocity, shape (nv,).
        damping: ζ, 1 is critical.
        root: "held": the root is driven like a link, by a hand from outside, as the thesis has it.
            "soft": the same at 1 Hz. "free": nothing but the ground pushes the root: forces
            inside friction cones at the points that stand are found with the joint torques.
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

    def __init__(
        self,
        character: SceneLike,
        stiffness: ArrayLike = STIFFNESS,
        *,
        damping: float = 1.0,
        root: str = "free",
        target_velocity: bool = True,
        feedforward: bool = True,
        exact: bool = True,
        as_printed: bool = False,
        strength: ArrayLike | None = None,
        friction: float = 0.8,
        ground: float | None = None,
        dt: float | None = None,
    ) -> None:
        super().__init__(character, root=root, strength=strength, dt=dt)
        if self.dt is None:
            raise PoiseError("inverse dynamics needs dt: InverseDynamics(..., dt=1/60)")
        self.target_velocity = target_velocity
        self.feedforward = feedforward
        self.as_printed = as_printed
        self.external: Floats | None = None
        """Known forces: wrench on each link, force at its origin [N, N·m], shape (..., nl, 6)."""
        self.kp, self.kd = self._gains(stiffness, number(damping, "damping"), exact)
        self._roots = root_slices(self.scene)
        if self.root == "free" and self._roots:
            if len(self._roots) > 1:
                raise PoiseError("a free root by ground forces works for one character")
            self._ground = self._height() if ground is None else number(ground, "ground", False)
            self._supports = Supports(self.scene)
            size = float(np.ptp(self._supports.point, axis=0).max()) if len(self.links) else 1.0
            self._forces = GroundForces(friction, max(size, 0.1))

    @property
    def links(self) -> Any:
        """Names of the links."""
        return self.scene.forest.link_names

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, the torque, the wanted accelerations, and the ground forces of a free root.

        Returns:
            The command and {"torque", "acceleration", "points", "forces"}.
        """
        target = self._target(target)
        assert self.dt is not None
        tau, a = dynamics.kane_control(
            self.scene, state.q, state.v, target, self.kp, self.kd, self.dt,
            target_velocity=self.target_velocity, feedforward=self.feedforward,
            gravity=self.gravity, external=self.external, as_printed=self.as_printed,
        )  # fmt: skip
        told: dict[str, Any] = {"acceleration": a}
        if self.root == "free" and self._roots:
            tau, told = self._grounded(state, tau, a)
        if self.factor is not None:
            tau = self.factor * tau
        tau = cut_to_effort(self, tau)
        told["torque"] = tau
        return Command(force=tau), told

    # ---- a free root

    def _grounded(self, state: Any, tau: Floats, a: Floats) -> tuple[Floats, dict[str, Any]]:
        """Torques with the root's forces left to the ground, of each copy."""
        rows = [np.atleast_2d(x) for x in (state.q, state.v, tau, a)]
        given = [None] * len(rows[0]) if self.external is None else np.broadcast_to(
            self.external, (len(rows[0]), self.scene.nl, 6)
        )  # fmt: skip
        answers = [self._one(*row, known) for *row, known in zip(*rows, given, strict=True)]
        torque = np.array([answer[0] for answer in answers]).reshape(tau.shape)
        accelerations = np.array([answer[1] for answer in answers]).reshape(a.shape)
        points = [answer[2] for answer in answers]
        forces = [answer[3] for answer in answers]
        if tau.ndim == 1:
            return torque, {"acceleration": accelerations, "points": points[0], "forces": forces[0]}
        return torque, {"acceleration": accelerations, "points": points, "forces": forces}

    def _one(
        self, q: Floats, v: Floats, tau: Floats, a: Floats, known: Any
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """One copy: torques, accelerations that come of it, points and their forces."""
        root = self._roots[0]
        link, points = self._supports.near(q, self._ground)
        center = dynamics.center_of_mass(self.scene, q)
        # the root's force: world axes at its origin; its torque: in its own axes
        turn = dynamics.jacobian(self.scene, q, 0)[3:, root][:, 3:]
        origin = q[root.start : root.start + 3]
        force, torque = tau[root][:3], turn @ tau[root][3:]
        wanted = np.concatenate([force, torque + np.cross(origin - center, force)])
        forces = self._forces(points, center, wanted)
        at, _ = dynamics.forward_kinematics(self.scene, q)
        external = np.zeros((self.scene.nl, 6)) if known is None else known.copy()
        np.add.at(external[:, :3], link, forces)
        np.add.at(external[:, 3:], link, np.cross(points - at[link], forces))
        # what the ground cannot give, the root does not get: the joints keep their accelerations
        rest = dynamics.kane_inverse_dynamics(
            self.scene, q, v, a, gravity=self.gravity, external=external, as_printed=self.as_printed
        )[root]
        inertia = dynamics.mass_matrix(self.scene, q)[root, root]
        a = a.copy()
        a[root] -= np.linalg.solve(inertia, rest)
        torques = dynamics.kane_inverse_dynamics(
            self.scene, q, v, a, gravity=self.gravity, external=external, as_printed=self.as_printed
        )
        torques[root] = 0.0
        return torques, a, points, forces

    def _height(self) -> float:
        """Height of the World's ground [m]."""
        ground = getattr(getattr(self._source, "settings", None), "ground", True)
        if ground is True:
            return 0.0
        if isinstance(ground, Plane) and ground.normal[2] == 1.0:
            return float(ground.height)
        raise PoiseError(
            "a free root by ground forces needs a level ground; use root='soft' or root='held'"
        )

    def _gains(self, stiffness: ArrayLike, ratio: float, exact: bool) -> tuple[Floats, Floats]:
        """k_p and k_d per velocity, as the step needs them."""
        kp = floats(stiffness, "stiffness")
        if kp.shape not in ((), (self.scene.nv,)):
            raise PoiseError(
                f"stiffness has shape {kp.shape}, expected a number or ({self.scene.nv},)"
            )
        if not (np.isfinite(kp) & (kp >= 0.0)).all():
            raise PoiseError(f"stiffness is {stiffness!r:.80}; it must be 0 or more")
        kp = np.array(np.broadcast_to(kp, (self.scene.nv,)))
        if self.root == "soft":
            for at in root_slices(self.scene):
                kp[at] = (2.0 * math.pi * SOFT_FREQUENCY) ** 2
        assert self.dt is not None
        return placed(kp, ratio, self.dt) if exact else (kp, 2.0 * ratio * np.sqrt(kp))

    def _target(self, target: Any) -> Target:
        target = super()._target(target)
        if target.rows is not None:
            raise PoiseError("inverse dynamics follows one target a step, not rows of them")
        return target


def placed(kp: Floats, ratio: float, dt: float) -> tuple[Floats, Floats]:
    """Gains whose steps decay as the equation with k_p and damping ratio does.

    Args:
        kp: Stiffness [1/s²].
        ratio: Damping ratio.
        dt: Time step [s].
    """
    rate = np.sqrt(kp) * dt
    split = rate * np.sqrt(complex(ratio**2 - 1.0))
    both = 2.0 * np.exp(-ratio * rate) * np.cosh(split).real
    product = np.exp(-2.0 * ratio * rate)
    # the difference of near numbers: of small rates it is the rate squared
    square = np.where(rate > 1e-4, 1.0 - both + product, rate**2)
    return square / dt**2, (1.0 - product) / dt
