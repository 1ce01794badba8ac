"""Stable PD for MuJoCo's own simulation, in linear time.

MuJoCo's step without contact, with p = -k (q - q_s) - D v from the joints' springs and dampers and
the pushes f of xfrc_applied:

    (M + dt D) a = tau - h + p + Jᵀ f        dampers are implicit in all integrators but RK4

Stable PD applies tau = Q - K a at the end of that step (yin2020; Q and K of each form are those of
`poise.dynamics.stable_pd`), hence

    (M + dt D + K) a = Q - h + p + Jᵀ f,     tau = Q - K a

in one articulated-body recursion, with dt D + K beside the armature. Springs are taken implicitly,
too, with dt² k, as MuJoCo's `discrete` has them. All of it follows from qpos and qvel: nothing that
MuJoCo derives is read, so it does not matter when mj_forward was last called.

Contact is not in that equation; `EmbeddedPD` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import _core, dynamics
from poise.control.gains import FREQUENCY, HELD_KD, HELD_KP, Gains, root_slices, suggest_gains
from poise.errors import PoiseError, check_known
from poise.interop.mujoco.models import as_simulated, characters_of, moving_trees
from poise.interop.mujoco.states import Source, check_model, source_of
from poise.math.arrays import Floats, choice, finite, floats, number
from poise.math.rotation import rotate
from poise.model.character import Character
from poise.model.formats.mujoco_model import import_mujoco
from poise.model.scene import Scene, scene_of
from poise.simulation.world_config import threads_of

NOTHING: Any = object()


class Servo:
    """A model and the gains of its joints.

    Args:
        model: A mujoco.MjModel.
        characters: Those of the model, one for each tree that moves.
        kp: As of StablePD; so are the others.
    """

    def __init__(
        self,
        model: Any,
        characters: Sequence[Character],
        kp: GainsLike | None,
        kd: GainsLike | None,
        frequency: ArrayLike,
        damping: ArrayLike,
        root: str,
        form: str,
    ) -> None:
        self.model = model
        self.scene = scene_of(characters)
        self.gains = gains_of(self.scene, kp, kd, frequency, damping, root)
        self.form = dynamics.FORMS[choice(form, "form", dynamics.FORMS)]
        # the model's own, which change with it
        self._option = model.opt
        self._gravity: Floats = np.zeros(3) if _weightless(model) else model.opt.gravity
        self._data: Any = NOTHING
        self._source: Any = NOTHING

    @property
    def dt(self) -> float:
        """Time step of the model [s]."""
        dt: float = self._option.timestep
        return dt

    def _of_model(self, model: Any, data: Any, target: Any) -> tuple[Any, Any]:
        """Data and target of a call that begins with the model."""
        if model is not self.model:
            raise PoiseError(
                "this servo was made from another model: call it as servo(data, target), or as "
                "servo(model, data, target) with the model it was made from"
            )
        return data, target

    def _look_at(self, data: Any) -> Source:
        """The arrays behind data, kept where they stay the same."""
        source = source_of(data)
        nq, nv = self.scene.nq, self.scene.nv
        q, v = source.q, source.v
        if q.shape[-1:] != (nq,) or v.shape[-1:] != (nv,):
            raise PoiseError(
                f"q has shape {q.shape} and v {v.shape}; this model has nq = {nq} and nv = {nv}"
            )
        if source.steady:
            self._data, self._source = data, source
        return source


def pair_of(target: Any) -> tuple[Floats, Floats | None]:
    """Positions and velocities of a target; the latter may be None."""
    if type(target) is np.ndarray:
        return target, None
    if type(target) is tuple and len(target) == 2:
        q, v = target
    elif hasattr(target, "q"):
        q, v = target.q, target.v if getattr(target, "has_velocity", True) else None
    else:
        q, v = target, None
    return floats(q, "target.q"), None if v is None else floats(v, "target.v")


def _weightless(model: Any) -> bool:
    """Whether the model's options turn gravity off."""
    return bool(int(model.opt.disableflags) & int(import_mujoco().mjtDisableBit.mjDSBL_GRAVITY))


# ---- gains of a model: numbers, tables by joint, or a frequency and a damping ratio

ROOTS = ("free", "held")

GainsLike = ArrayLike | Mapping[str, float]


def gains_of(
    scene: Scene,
    kp: GainsLike | None,
    kd: GainsLike | None,
    frequency: ArrayLike,
    damping: ArrayLike,
    root: str,
) -> Gains:
    """Gains of a scene; see StablePD for what may be given."""
    choice(root, "root", ROOTS)
    if (kp is None) != (kd is None):
        raise PoiseError("give both kp and kd, or neither and a frequency")
    if kp is None or kd is None:
        return suggest_gains(scene, frequency, damping, root=root)
    held = root == "held"
    return Gains(
        scene,
        _spread(scene, kp, "kp", HELD_KP if held else 0.0),
        _spread(scene, kd, "kd", HELD_KD if held else 0.0),
    )


def _spread(scene: Scene, k: Any, name: str, at_root: float) -> Floats:
    """One gain per degree of freedom; arrays are taken as they are."""
    if not isinstance(k, Mapping):
        k = floats(k, name)
        if k.ndim:
            return np.asarray(k)
    out = np.zeros(scene.nv) if isinstance(k, Mapping) else np.full(scene.nv, float(k))
    for at in root_slices(scene):
        out[at] = at_root
    if isinstance(k, Mapping):
        for joint, value in k.items():
            at = _slice(scene, joint)
            out[at] = number(value, f"{name}[{joint!r}]", positive=False, unit="N·m/rad")
    return out


def _slice(scene: Scene, joint: str) -> slice:
    """Velocities of a joint."""
    forest = scene.forest
    check_known("joint", joint, forest.joint_names)
    b = forest.joint_names.index(joint)
    v = int(forest.v_adr[b])
    return slice(v, v + (6, 3, 1, 1)[int(forest.kind[b])])


# ---- torques


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
        """Generalized forces Jᵀ f of wrenches at the centers of mass of MuJoCo's bodies.

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


# ---- motors: from torques to controls
#
# A motor's force is its gain g times its control u, and a joint feels it through the gear G:
#
#     tau = Bᵀ u,    B = diag(g) G,    shape (nu, nv)
#
# B is constant for motors on hinges, slides and balls, whose gear is in the frame of the child. u
# is found once and for all by the pseudo-inverse, which is the inverse where there is one motor per
# degree of freedom.


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


# ---- the solver: worlds of the core without contact, one for each size of batch
#
# A step of such a world solves (M + K) a = Q - h + load, with springs and dampers of the joints on
# both sides. It takes gains that are laid out once, and threads for a batch. Where the step leads
# is not looked at.


class Solvers(dict[int, Callable[..., Floats]]):
    """`torques` of a world of n copies, by n: created when first used.

    Args:
        scene: The scene.
        dt: Time step [s].
        threads: At most this many for a batch; None takes the cores.
    """

    def __init__(self, scene: Scene, dt: float, threads: int | None) -> None:
        super().__init__()
        threads_of(threads, 1)  # refused here rather than in the first call
        self.scene, self.dt, self.threads = scene, dt, threads

    def __missing__(self, n: int) -> Callable[..., Floats]:
        threads, model = threads_of(self.threads, n), self.scene.model
        # gravity comes with every call
        world = _core.World(model, model, n, self.dt, False, threads, np.zeros(3), None, None)
        self[n] = world.torques
        return self[n]


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
