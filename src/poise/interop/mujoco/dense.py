"""Stable PD by dense Cholesky, as imitation papers have it in Python; kept to compare with.

    (M + kd dt) a = -h - kp (q + dt v - q̄) - kd v        M from mj_fullM, h = qfrc_bias
    tau = -kp (q + dt v - q̄) - kd (v + dt a)

This is form "spd" with targets at rest, written as those papers do. It takes O(nv³), and M and h as
MuJoCo computed them last: without mj_forward, or mj_step1, before every call they belong to the
state of a step ago.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.interop.mujoco.states import check_model
from poise.math.arrays import Floats, finite, floats
from poise.model.formats.mujoco_model import import_mujoco


class DenseStablePD:
    """Torques of stable PD from M and h of an MjData, in cubic time.

    Args:
        model: A mujoco.MjModel.
        kp: Stiffness [N·m/rad, N/m], shape (nv,).
        kd: Damping [N·m·s/rad, N·s/m], shape (nv,).
    """

    def __init__(self, model: Any, kp: ArrayLike, kd: ArrayLike) -> None:
        from scipy.linalg import cho_factor, cho_solve

        check_model(model)
        self.model = model
        self.kp, self.kd = _per_dof(model, kp, "kp"), _per_dof(model, kd, "kd")
        self._mujoco, self._factor, self._solve = import_mujoco(), cho_factor, cho_solve

    def __call__(self, data: Any, target: Floats) -> Floats:
        """Torques (nv,) towards target positions (nq,) at t + dt.

        Args:
            data: A mujoco.MjData after mj_forward or mj_step1.
            target: Positions (nq,).
        """
        mujoco, model, dt = self._mujoco, self.model, self.model.opt.timestep
        # where it would be, and how far that is from the target
        ahead, error = data.qpos.copy(), np.zeros(model.nv)
        mujoco.mj_integratePos(model, ahead, data.qvel, dt)
        mujoco.mj_differentiatePos(model, error, 1.0, target, ahead)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        Kp, Kd = np.diag(self.kp), np.diag(self.kd)
        right = -data.qfrc_bias - Kp.dot(error) - Kd.dot(data.qvel)
        factor = self._factor(M + Kd * dt, overwrite_a=True, check_finite=False)
        a = self._solve(factor, right, overwrite_b=True, check_finite=False)
        tau: Floats = -self.kp * error - self.kd * (data.qvel + a * dt)
        return tau


def _per_dof(model: Any, gain: ArrayLike, name: str) -> Floats:
    """A gain of each degree of freedom, shape (nv,)."""
    k = finite(floats(gain, name), name)
    if k.shape not in ((), (model.nv,)):
        raise PoiseError(f"{name} has shape {k.shape}, expected a number or ({model.nv},)")
    return np.broadcast_to(k, model.nv)
