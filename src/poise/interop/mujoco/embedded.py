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
from poise.interop.mujoco.stable_pd import NOTHING, GainsLike, Servo, pair_of
from poise.math.arrays import Floats


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
