"""Torques to controls: what the motors of a model must be told.

A motor's force is its gain g times its control u, and a joint feels it through the gear G:

    tau = Bᵀ u,    B = diag(g) G,    shape (nu, nv)

B is constant for motors on hinges, slides and balls, whose gear is in the frame of the child. u is
found once and for all by the pseudo-inverse, which is the inverse where there is one motor per
degree of freedom.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.formats.mujoco_model import import_mujoco


class Motors:
    """The motors of a model.

    Args:
        model: A mujoco.MjModel whose actuators are all motors on joints.
    """

    def __init__(self, model: Any) -> None:
        self._mujoco = import_mujoco()
        self.B = np.array([self._row(model, k) for k in range(model.nu)]).reshape(-1, model.nv)
        # where each motor has a degree of freedom to itself, a look-up and a factor do
        alone = np.count_nonzero(self.B, axis=1) == 1
        own = alone.all() and (np.count_nonzero(self.B, axis=0) <= 1).all()
        self._dof = np.abs(self.B).argmax(axis=1) if own else None
        self._inverse: Floats = (
            1.0 / self.B[np.arange(model.nu), self._dof] if own else np.linalg.pinv(self.B)
        )

    def reach(self) -> NDArray[np.bool_]:
        """Which degrees of freedom the motors move freely (nv,)."""
        moved: Floats = np.diagonal(np.linalg.pinv(self.B) @ self.B)
        return np.abs(moved - 1.0) < 1e-9

    def controls(self, tau: Floats) -> Floats:
        """Controls (..., nu) that give torques (..., nv)."""
        if self._dof is not None:
            out: Floats = tau[..., self._dof] * self._inverse
            return out
        return np.asarray(tau @ self._inverse)

    def _row(self, model: Any, k: int) -> Floats:
        """Torque on each degree of freedom per unit of control."""
        joint = self._joint(model, k)
        kind, v = int(model.jnt_type[joint]), int(model.jnt_dofadr[joint])
        size = {0: 6, 1: 3}.get(kind, 1)
        row = np.zeros(model.nv)
        row[v : v + size] = model.actuator_gainprm[k, 0] * model.actuator_gear[k, :size]
        return row

    def _joint(self, model: Any, k: int) -> int:
        """The joint of a motor; anything else is refused."""
        m = self._mujoco
        on_joint = [int(m.mjtTrn.mjTRN_JOINT), int(m.mjtTrn.mjTRN_JOINTINPARENT)]
        plain = (
            model.actuator_gaintype[k] == int(m.mjtGain.mjGAIN_FIXED)
            and model.actuator_biastype[k] == int(m.mjtBias.mjBIAS_NONE)
            and model.actuator_dyntype[k] == int(m.mjtDyn.mjDYN_NONE)
            and model.actuator_gainprm[k, 0] != 0.0
        )
        one = not hasattr(model, "actuator_ctrlnum") or model.actuator_ctrlnum[k] == 1
        if not plain or not one or model.actuator_trntype[k] not in on_joint:
            raise self._refused(model, k, "is not a motor on a joint")
        joint = int(model.actuator_trnid[k, 0])
        turns = int(model.jnt_type[joint]) < 2
        if turns and model.actuator_trntype[k] == on_joint[1]:
            raise self._refused(model, k, "has its gear in the parent's frame")
        return joint

    def _refused(self, model: Any, k: int, why: str) -> PoiseError:
        name = self._mujoco.mj_id2name(model, self._mujoco.mjtObj.mjOBJ_ACTUATOR, k) or k
        return PoiseError(
            f"actuator {name!r} {why}: controls cannot be found; write the torques to "
            "data.qfrc_applied"
        )
