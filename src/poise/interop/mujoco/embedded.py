"""Stable PD inside MuJoCo's own solve, contact included.

The torque of stable PD is Q - K a, with a the acceleration of the step (Q and K of each form are
those of `poise.dynamics.stable_pd`). K does not depend on the state, so it may stand beside the
armature once and for all; then MuJoCo, given Q, solves

    (M + dt D + K) a = Q - h + p + Jᵀ f + Jcᵀ λ

with its dampers D, springs p, pushes f, and with contact forces λ that know of the stiff joints.
That is what a controller outside cannot give: it has to guess a before λ is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.control.gains import FREQUENCY
from poise.errors import PoiseError
from poise.interop.mujoco.models import characters_of
from poise.interop.mujoco.servo import NOTHING, GainsLike, Servo, pair_of
from poise.interop.mujoco.states import check_model
from poise.math.arrays import Floats, finite, floats
from poise.model.formats.mujoco_model import import_mujoco


class EmbeddedPD(Servo):
    """Gains that MuJoCo solves implicitly, in contact as well.

    Making it adds K to model.dof_armature; `release` takes K out again. In between, what is made
    from the model takes K for armature. Effort limits are not kept: MuJoCo does not know of them.

    Args:
        model: A mujoco.MjModel, which is changed.
        kp: Stiffness [N·m/rad, N/m]: a number for all joints but free ones, shape (nv,), or a
            number by joint name. None: from frequency and damping.
        kd: Damping [N·m·s/rad, N·s/m], alike.
        frequency: Natural frequency of the joints [Hz], unless kp and kd are given.
        damping: Damping ratio, unless kp and kd are given.
        root: "free" no force on free joints; "held" tracked with yin2020's gains.
        form: "implicit" is stable at any step; "spd" is yin2020's.
    """

    def __init__(
        self,
        model: Any,
        kp: GainsLike | None = None,
        kd: GainsLike | None = None,
        *,
        frequency: ArrayLike = FREQUENCY,
        damping: ArrayLike = 1.0,
        root: str = "free",
        form: str = "implicit",
    ) -> None:
        super().__init__(model, characters_of(model), kp, kd, frequency, damping, root, form)
        if self.gains.kp.ndim > 1:
            raise PoiseError("one model has one set of gains: kp and kd must have shape (nv,)")
        self.K: Floats = np.zeros(self.scene.nv)
        self._own: Floats = model.dof_armature.copy()
        self._embedded_dt = 0.0
        self._drive: tuple[Floats, Floats] | None = None
        self._embed()

    def __call__(self, data: Any, target: Any, last: Any = NOTHING) -> Floats:
        """Forces Q [N·m, N] for data.qfrc_applied (nv,): servo(data, target).

        `servo(model, data, target)` is the same. The torque that acts is Q - K a; see `torque`.

        Args:
            data: A mujoco.MjData.
            target: At t + dt: positions (nq,), a pair of positions and velocities, or a Target.
            last: The target, if the model comes first.
        """
        if last is not NOTHING:
            data, target = self._of_model(data, target, last)
        source = self._source if data is self._data else self._look_at(data)
        if source.lead:
            raise PoiseError("an embedded drive takes one MjData at a time")
        if self.dt != self._embedded_dt:
            self._embed()
        Q = self._drive_terms(source.q, source.v, pair_of(target))[0]
        self._drive = Q, source.v.copy()
        return Q

    def torque(self, data: Any) -> Floats:
        """The torque Q - K a that acted in the last step (nv,); call it after mj_step."""
        if self._drive is None:
            raise PoiseError("this drive has not been called yet")
        Q, before = self._drive
        torque: Floats = Q - self.K * (data.qvel - before) / self.dt
        return torque

    def release(self) -> None:
        """Give the model its own armature back."""
        self.model.dof_armature[:] = self._own
        self.K = np.zeros(self.scene.nv)
        self._embedded_dt = 0.0

    def _embed(self) -> None:
        """Put K for the present time step beside the model's armature."""
        self._embedded_dt = self.dt
        rest = self.scene.forest.rest_q
        self.K = self._drive_terms(rest, np.zeros(self.scene.nv), (rest, None))[1]
        self.model.dof_armature[:] = self._own + self.K

    def _drive_terms(
        self, q: Floats, v: Floats, target: tuple[Floats, Floats | None]
    ) -> tuple[Floats, Floats]:
        """Q and K of the drive."""
        kp, kd = self.gains.kp, self.gains.kd
        return dynamics.drive(self.scene, q, v, target, kp, kd, self.dt, self.form)


# ---- stable PD by dense Cholesky, as in Python code of imitation papers; for comparison
#
#     (M + kd dt) a = -h - kp (q + dt v - q̄) - kd v        M from mj_fullM, h = qfrc_bias
#     tau = -kp (q + dt v - q̄) - kd (v + dt a)
#
# This is form "spd" with targets at rest, written as those papers do. It takes O(nv³), and M and h
# as MuJoCo computed them last: without mj_forward, or mj_step1, before every call they belong to
# the state of a step ago.


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
