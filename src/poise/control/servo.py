"""What PD and stable PD share: gains, root, strength, and the signature of a controller."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.control.gains import FREQUENCY, ROOTS, Gains, root_slices, suggest_gains, with_root
from poise.control.plant import ActsOnPlant, PartLike, Plant
from poise.errors import PoiseError, Sealed
from poise.math.arrays import Floats, choice, floats, number
from poise.model.forest import KINDS
from poise.model.scene import SceneLike
from poise.simulation.command import Command, Target

LONGEST_STEP = 1.0
"""What is longer [s] is not a time step, but a rate."""


class Servo(ActsOnPlant, Sealed, ABC):
    """A controller that pulls joints to a target. Subclasses say how.

    Args:
        character: The World it acts in, a character, or several.
        gains: Gains, or None for `suggest_gains(character, frequency, damping, root=root)`.
        frequency: Natural frequency of the joints [Hz], unless gains are given: a number or shape
            (nv,), or with a row for each copy, shape (n, 1) or (n, nv).
        damping: Damping ratio, unless gains are given; shaped alike.
        root: "free" no force on free roots; "held" tracked stiffly, as the papers do; "soft"
            tracked at a low frequency with the force that the reference itself needs fed forward.
            It decides whether a root is driven, whatever the gains are. Gains that have values for
            the root keep them where it is "held" or "soft".
        part: Which parts of the scene it acts on, by name; None is all characters, and never a free
            object. Everything else in the scene gets no force from it.
        strength: Factor of gains and effort limits: a number, per link (nl,), per copy (n, 1), or
            (n, nl); None is 1. It may be assigned at any time, also in place, as in
            `servo.strength[3] = 0.5`. A link's factor is that of the joint it moves by. To forces
            from outside, a world's own limits stay as they are: there it is 1 at most.
        dt: Time step [s], for what is computed outside the world. A World brings its own, and its
            gravity and masses.
    """

    _gains: Gains

    def __init__(
        self,
        character: SceneLike | Plant,
        gains: Gains | None = None,
        frequency: ArrayLike = FREQUENCY,
        damping: ArrayLike = 1.0,
        root: str = "free",
        part: PartLike = None,
        strength: ArrayLike | None = None,
        dt: float | None = None,
    ) -> None:
        self._plant = Plant.of(character, part)
        self._root = ROOTS[choice(root, "root", ROOTS)]
        if gains is None:
            for name, value in (("frequency", frequency), ("damping", damping)):
                self._check_copies(floats(value, name).shape, name)
            gains = suggest_gains(self.scene, frequency, damping, root=root)
        self.gains = gains
        self.strength = strength
        self._dt = self.plant.dt if dt is None else number(dt, "dt")
        if dt is not None and dt > LONGEST_STEP:
            raise PoiseError(f"dt is {dt:g} s; it must be a step of 1 s or less, as in dt=1/60")

    # ---- fixed when it is made

    @property
    def root(self) -> str:
        """What drives free roots: "free", "soft" or "held"."""
        return self._root

    @property
    def dt(self) -> float | None:
        """Time step of what is computed outside the world [s], or None."""
        return self._dt

    # ---- the controller

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target at t + dt."""
        return self.explain(state, target)[0]

    @abstractmethod
    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, and what led to it."""

    # ---- what may change while running

    @property
    def gains(self) -> Gains:
        """Gains of joints and driven roots. Assigned, they keep to `root`."""
        return self._gains

    @gains.setter
    def gains(self, gains: Gains) -> None:
        own = self._plant.own_gains(gains)
        self._check_copies(own.kp.shape, "gains")
        self._gains = with_root(self.scene, own, self._root)

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

    def root_feedforward(self, target: Target) -> Floats:
        """Force that the target's own motion needs at its free roots, zero elsewhere (..., nv).

        M(q̄) ā + h(q̄, v̄), weight included.
        """
        rest, keep = np.zeros(self.scene.nv), np.zeros(self.scene.nv)
        v = rest if target.v is None else target.v
        a = rest if target.a is None else target.a
        for at in root_slices(self.scene):
            keep[at] = 1.0
        return keep * dynamics.inverse_dynamics(self.scene, target.q, v, a, gravity=self.gravity)

    def _inputs(self, state: Any, target: Any) -> tuple[Floats, Floats, Target]:
        """Positions, velocities and the one target of a call that computes torques."""
        q, v = self._plant.own_state(state)
        one = self._plant.own_target(target)
        if one.rows is not None:
            name = type(self).__name__
            raise PoiseError(f"{name} computes torques for one target a step, not for rows of them")
        return q, v, one


# ---- effort limits of torques that are computed outside the world

_XYZ = np.arange(3)


def cut_to_effort(servo: Servo, tau: Floats) -> Floats:
    """The torque within the joints' limits, shape (..., nv).

    A hinge, a slide and each axis of a ball with three limits is cut by itself; a ball with one
    limit keeps the direction of its torque and is cut in length.

    Args:
        servo: Whose joints, and whose strength: it scales the limits.
        tau: Generalized forces [N, N·m], shape (..., nv).
    """
    forest, effort = servo.scene.forest, servo.effort
    if not np.isfinite(effort).any():
        return tau
    whole = (forest.kind == KINDS["ball"]) & (forest.effort_per_axis == 0)
    axes = forest.v_adr[whole][:, None] + _XYZ
    # balls by their length, before their axes are looked at one by one
    length = np.linalg.norm(tau[..., axes], axis=-1)
    limit = effort[..., axes[:, 0]]
    over = length > limit
    scale = np.where(over, limit / np.where(over, length, 1.0), 1.0)
    tau = np.array(np.broadcast_to(tau, np.broadcast_shapes(tau.shape, effort.shape)))
    tau[..., axes] *= scale[..., None]
    return np.clip(tau, -effort, effort)
