"""Proportional-derivative control: torques from the present error."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise import dynamics
from poise.arrays import Floats
from poise.command import Command
from poise.control.gains import root_slices
from poise.control.servo import Servo


class PD(Servo):
    """Explicit PD, tau = -kp (q - q̄) - kd (v - v̄), cut at the effort limits.

    Simple, and unstable where kd dt or kp dt² come near the inertia of a joint: see StablePD.
    """

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, the torque and the part of it fed forward to the roots."""
        target = self._target(target)
        tau = dynamics.pd_force(
            self.scene, state.q, state.v, target, self.gains.kp, self.gains.kd, self.dt or 0.0
        )
        forward = None
        if self.root == "soft":
            forward = root_feedforward(self, target)
            tau = tau + forward
        tau = cut_to_effort(self, tau)
        return Command(force=tau), {"torque": tau, "feedforward": forward}


def root_feedforward(servo: Servo, target: Any) -> Floats:
    """Force that the target's own motion needs at its free roots, zero elsewhere (..., nv)."""
    rest = np.zeros(servo.scene.nv)
    v = rest if target.v is None else target.v
    a = rest if target.a is None else target.a
    tau = dynamics.inverse_dynamics(servo.scene, target.q, v, a, gravity=servo.gravity)
    keep = np.zeros(servo.scene.nv)
    for at in root_slices(servo.scene):
        keep[at] = 1.0
    return tau * keep


def cut_to_effort(servo: Servo, tau: Floats) -> Floats:
    """The torque within the joints' limits; a ball's vector keeps its direction."""
    forest = servo.scene.forest
    if not np.isfinite(forest.effort).any():
        return tau
    tau = tau.copy()
    for b, kind in enumerate(forest.kind):
        v = int(forest.v_adr[b])
        if kind == 1 and not forest.effort_per_axis[b]:
            size = np.linalg.norm(tau[..., v : v + 3], axis=-1, keepdims=True)
            limit = forest.effort[v]
            tau[..., v : v + 3] *= np.where(size > limit, limit / np.maximum(size, 1e-300), 1.0)
        else:
            n = 3 if kind == 1 else 6 if kind == 0 else 1
            limits = forest.effort[v : v + n]
            tau[..., v : v + n] = np.clip(tau[..., v : v + n], -limits, limits)
    return tau
