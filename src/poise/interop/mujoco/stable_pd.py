"""Stable PD for MuJoCo's own simulation, in linear time.

MuJoCo's step without contact, with p = -k (q - q_s) - D v from the joints' springs and dampers and
the pushes f of xfrc_applied:

    (M + dt D) a = tau - h + p + Jᵀ f        dampers are implicit in all integrators but RK4

Stable PD asks for tau = Q - K a at the end of that step (yin2020; Q and K of each form are those of
`poise.dynamics.stable_pd`), hence

    (M + dt D + K) a = Q - h + p + Jᵀ f,     tau = Q - K a

in one articulated-body recursion, with dt D + K beside the armature. Springs are taken implicitly,
too, with dt² k, as MuJoCo's `discrete` has them. All of it follows from qpos and qvel: nothing that
MuJoCo derives is read, so it does not matter when mj_forward was last called.

Contact is not in that equation; `EmbeddedPD` has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core, dynamics
from poise.control.gains import FREQUENCY
from poise.errors import PoiseError
from poise.interop.mujoco.gains import GainsLike
from poise.interop.mujoco.models import as_simulated, characters_of, moving_trees
from poise.interop.mujoco.motors import Motors
from poise.interop.mujoco.servo import NOTHING, Servo, pair_of
from poise.interop.mujoco.solver import Solvers
from poise.interop.mujoco.sources import Source
from poise.math.arrays import Floats, choice, floats
from poise.math.rotation import rotate


class StablePD(Servo):
    """Torques that make MuJoCo's simulation follow a target, stable at large steps and gains.

    Made once from a model; make it anew when masses, inertias or joints of the model change, or the
    flag that turns gravity off. Time step and gravity are read from the model in every call.

    Args:
        model: A mujoco.MjModel.
        kp: Stiffness [N·m/rad, N/m]: a number for all joints but free ones, shape (nv,), (n, nv)
            for gains per copy, or a number by joint name. None: from frequency and damping.
        kd: Damping [N·m·s/rad, N·s/m], alike.
        frequency: Natural frequency of the joints [Hz], unless kp and kd are given.
        damping: Damping ratio, unless kp and kd are given.
        root: "free" no force on free joints; "held" tracked with yin2020's gains. Gains per degree
            of freedom say it themselves.
        form: "implicit" is stable at any step; "spd" is yin2020's, and that of the dense recipe;
            "explicit" is LYWG13's.
        method: "maba" in linear time; "df", "sf", "pcg" are the paper's baselines.
        limits: Keep torques within the force limits of the model's actuators and joints.
        contacts: Take in the constraint forces of the step before, data.qfrc_constraint.
        threads: At most this many for a batch; None takes the cores.
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
        method: str = "maba",
        limits: bool = True,
        contacts: bool = False,
        threads: int | None = None,
    ) -> None:
        characters = as_simulated(model, characters_of(model), limits)
        super().__init__(model, characters, kp, kd, frequency, damping, root, form)
        number = choice(method, "method", dynamics.METHODS)
        self.method = dynamics.METHODS[number]
        self.contacts = contacts
        self._drive = self.gains.core
        self._form, self._method = dynamics.FORMS.index(form), number
        self._pull = _core.View(self._gravity)
        self._solvers = Solvers(self.scene, self._option.timestep, threads)
        self._bodies = np.concatenate(moving_trees(model))
        self._coms: Floats = np.array(model.body_ipos[self._bodies])
        self._motors: Motors | None = None

    def __call__(
        self, data: Any, target: Any, last: Any = NOTHING, *, force: ArrayLike | None = None
    ) -> Floats:
        """Torques [N·m, N] for data.qfrc_applied, (nv,) or (n, nv): servo(data, target).

        `servo(model, data, target)` is the same.

        Args:
            data: A mujoco.MjData, or n of them, or a State of one or n. Of MjData, qpos, qvel and
                xfrc_applied are read; a tuple of them is looked through only once.
            target: At t + dt: positions (nq,) or (n, nq), a pair of positions and velocities, or
                a Target or State.
            last: The target, if the model comes first.
            force: Other generalized forces that act in the step, shape (nv,) or (n, nv): gravity
                compensation, tendons, other actuators. They are not part of the torques.
        """
        if last is not NOTHING:
            data, target = self._of_model(data, target, last)
        source = self._source if data is self._data else self._look_at(data)
        load = None
        if force is not None or self.contacts or source.pushed():
            load = self._load(source, force)
        solvers, dt = self._solvers, self._option.timestep
        if dt != solvers.dt:
            solvers = self._solvers = Solvers(self.scene, dt, solvers.threads)
        q, v = source.views
        tq, tv = (target, None) if type(target) is np.ndarray else pair_of(target)
        return solvers[source.n](
            q, v, self._drive, tq, tv, load, self._pull, self._form, self._method
        )

    def ctrl(
        self, data: Any, target: Any, last: Any = NOTHING, *, force: ArrayLike | None = None
    ) -> Floats:
        """Controls for data.ctrl, (nu,) or (n, nu), where all actuators are motors on joints."""
        if self._motors is None:
            self._motors = self._found_motors()
        return self._motors.controls(self(data, target, last, force=force))

    def _load(self, source: Source, force: ArrayLike | None) -> Floats | None:
        """All that acts beside torques, gravity and joints, (nv,) or (n, nv)."""
        nv = self.scene.nv
        loads = [] if force is None else [floats(force, "force")]
        if loads and loads[0].shape not in ((nv,), (*source.lead, nv)):
            raise PoiseError(
                f"force has shape {loads[0].shape}, expected ({nv},) or one row for each state"
            )
        if source.pushed():
            loads.append(self._pushed(source.q, source.pushes))
        if self.contacts and source.constraint is not None:
            loads.append(source.constraint)
        return np.asarray(sum(loads)) if loads else None

    def _pushed(self, q: Floats, pushes: Floats) -> Floats:
        """Generalized forces Jᵀ f of wrenches at the mass centres of MuJoCo's bodies.

        Inverse dynamics of a body at rest and without weight is -Jᵀ f.
        """
        _, turn = dynamics.forward_kinematics(self.scene, q)
        wrench: Floats = pushes[..., self._bodies, :].copy()
        wrench[..., 3:] += np.cross(rotate(turn, self._coms), wrench[..., :3])
        rest = np.zeros(self.scene.nv)
        return -dynamics.inverse_dynamics(
            self.scene, q, rest, rest, gravity=np.zeros(3), external=wrench
        )

    def _found_motors(self) -> Motors:
        """The model's motors, which must reach whatever has gains."""
        motors = Motors(self.model)
        driven = (self.gains.kp + self.gains.kd).reshape(-1, self.scene.nv).max(axis=0) > 0.0
        idle = np.flatnonzero(driven & ~motors.reach())
        if idle.size:
            forest = self.scene.forest
            body = int(np.searchsorted(forest.v_adr, idle[0], side="right")) - 1
            raise PoiseError(
                f"joint {forest.joint_names[body]!r} has gains, and no motor that moves it: give "
                "it one, or gains of 0, or write the torques to data.qfrc_applied"
            )
        return motors
