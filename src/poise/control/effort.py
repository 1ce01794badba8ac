"""Effort limits of what is computed outside the world."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poise.math.arrays import Floats
from poise.model.forest import KINDS

if TYPE_CHECKING:
    from poise.control.servo import Servo

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
