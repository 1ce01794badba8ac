"""Dynamics of a character: the core's algorithms as functions of states.

Leading axes are batch axes: q of shape (nq,) is one state, (n, nq) are n, computed in lanes.
Twists and wrenches are linear first: [linear, angular], [force, torque], in world axes. Passive
springs and dampers are not part of these functions; a world adds them. `dtype="float32"` computes
in single precision; arrays are float64 at the door either way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.dynamics.queries import (
    DTYPES,
    FORMS,
    GRAVITY,
    METHODS,
    DtypeLike,
    gravity_vector,
    prepare,
    unbatch,
)
from poise.errors import PoiseError
from poise.math.arrays import Floats, choice, floats, number
from poise.model.scene import SceneLike, scene_of

__all__ = [
    "DTYPES",
    "FORMS",
    "GRAVITY",
    "METHODS",
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "drive",
    "energy",
    "forward_dynamics",
    "forward_kinematics",
    "inverse_dynamics",
    "jacobian",
    "jacobian_bias",
    "kane_control",
    "kane_inverse_dynamics",
    "link_velocities",
    "mass_matrix",
    "pd_force",
    "stable_pd",
]


def forward_kinematics(
    character: SceneLike, q: ArrayLike, *, dtype: DtypeLike = "float64"
) -> tuple[Floats, Floats]:
    """Poses of the links in the world.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        dtype: Precision of the computation.

    Returns:
        Positions of the link frames (..., nl, 3) [m] and quaternions w x y z (..., nl, 4).
    """
    core, batch, n, (q,) = prepare(character, dtype, q=q)
    p, quat = core.forward_kinematics(n, q)
    return unbatch(p, batch), unbatch(quat, batch)


def link_velocities(
    character: SceneLike, q: ArrayLike, v: ArrayLike, *, dtype: DtypeLike = "float64"
) -> tuple[Floats, Floats]:
    """Velocities of the links in the world.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        dtype: Precision of the computation.

    Returns:
        Velocities of the origins of the link frames [m/s] and angular velocities [rad/s], both in
        world axes, shape (..., nl, 3) each. MuJoCo has them by `mj_objectVelocity` with
        `mjOBJ_XBODY`, angular first.
    """
    core, batch, n, (q, v) = prepare(character, dtype, q=q, v=v)
    out = unbatch(core.link_velocities(n, q, v), batch)
    return out[..., :3], out[..., 3:]


def inverse_dynamics(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    dtype: DtypeLike = "float64",
) -> Floats:
    """Generalized forces that give these accelerations: tau = M a + h. RNEA.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        a: Accelerations, shape (..., nv).
        gravity: [m/s^2], shape (3,).
        external: Wrench on each link, force at its origin [N, N m], shape (..., nl, 6).
        dtype: Precision of the computation.
    """
    core, batch, n, (q, v, a, external) = prepare(
        character, dtype, q=q, v=v, a=a, external=external
    )
    tau = core.inverse_dynamics(n, q, v, a, external, gravity_vector(gravity))
    return unbatch(tau, batch)


def kane_inverse_dynamics(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    as_printed: bool = False,
    dtype: DtypeLike = "float64",
) -> Floats:
    """The same as `inverse_dynamics`, by the recursion from Kane's equations (kavafoglu2018).

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        a: Accelerations, shape (..., nv).
        gravity: [m/s^2], shape (3,).
        external: Wrench on each link, force at its origin [N, N m], shape (..., nl, 6).
        as_printed: Leave out ω x I ω, as the thesis does; fast rotations then come out wrong.
        dtype: Precision of the computation.
    """
    core, batch, n, (q, v, a, external) = prepare(
        character, dtype, q=q, v=v, a=a, external=external
    )
    tau = core.kane_inverse_dynamics(n, q, v, a, external, gravity_vector(gravity), as_printed)
    return unbatch(tau, batch)


def kane_control(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float,
    *,
    target_velocity: bool = True,
    feedforward: bool = True,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    as_printed: bool = False,
    dtype: DtypeLike = "float64",
) -> tuple[Floats, Floats]:
    """Accelerations that bring the links to a target, and the forces that give them.

    Each link turns by k_p log(R̄ Rᵀ) + k_d (ω̄ - ω) + ᾱ, as far as its joint lets it.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        target: A Target, or a State, or a pair (q, v), at t + dt; v may be None. With its past, a
            character that is on the target stays there exactly.
        kp: Stiffness [1/s²], a number or shape (..., nv); a ball has one.
        kd: Damping [1/s], shaped alike.
        dt: Time step [s].
        target_velocity: Whether the target's velocity counts; else it is taken as 0.
        feedforward: Whether its acceleration counts.
        gravity: [m/s^2], shape (3,).
        external: Wrench on each link, force at its origin [N, N m], shape (..., nl, 6).
        as_printed: As of `kane_inverse_dynamics`.
        dtype: Precision of the computation.

    Returns:
        Forces (..., nv), free roots included, and accelerations (..., nv).
    """
    scene = scene_of(character)
    target_q, target_v = _pair(target)
    core, batch, n, (q, v, external, target_q, target_v, kp, kd, target_a, past) = prepare(
        scene,
        dtype,
        q=q,
        v=v,
        external=external,
        target_q=target_q,
        target_v=target_v,
        kp=_gain(kp, "kp", scene.nv),
        kd=_gain(kd, "kd", scene.nv),
        target_a=getattr(target, "a", None),
        past=getattr(target, "past", None),
    )
    goal = _core.ServoTarget(target_q, target_v, kp, kd, number(dt, "dt"), target_a, past)
    g = gravity_vector(gravity)
    tau, a = core.kane_control(n, q, v, goal, external, g, target_velocity, feedforward, as_printed)
    return unbatch(tau, batch), unbatch(a, batch)


def bias_force(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    dtype: DtypeLike = "float64",
) -> Floats:
    """The part h of M a + h = tau: velocity terms, gravity and external forces."""
    core, batch, n, (q, v, external) = prepare(character, dtype, q=q, v=v, external=external)
    h = core.inverse_dynamics(n, q, v, None, external, gravity_vector(gravity))
    return unbatch(h, batch)


def forward_dynamics(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    dtype: DtypeLike = "float64",
) -> Floats:
    """Accelerations under generalized forces, in linear time. ABA.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        tau: Generalized forces [N, N m], shape (..., nv).
        gravity: [m/s^2], shape (3,).
        external: Wrench on each link, force at its origin [N, N m], shape (..., nl, 6).
        dtype: Precision of the computation.
    """
    core, batch, n, (q, v, tau, external) = prepare(
        character, dtype, q=q, v=v, tau=tau, external=external
    )
    a = core.forward_dynamics(n, q, v, tau, external, gravity_vector(gravity))
    return unbatch(a, batch)


def mass_matrix(character: SceneLike, q: ArrayLike, *, dtype: DtypeLike = "float64") -> Floats:
    """Joint-space inertia M (..., nv, nv), armature on its diagonal. CRBA."""
    core, batch, n, (q,) = prepare(character, dtype, q=q)
    return unbatch(core.mass_matrix(n, q), batch)


def jacobian(
    character: SceneLike,
    q: ArrayLike,
    link: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    dtype: DtypeLike = "float64",
) -> Floats:
    """J (..., 6, nv) of a point fixed in a link: J v is its linear, then its angular velocity.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        link: Name or index of the link.
        point: In the link's frame [m], shape (3,).
        dtype: Precision of the computation.
    """
    scene = scene_of(character)
    index = scene.link_index(link)
    core, batch, n, (q,) = prepare(scene, dtype, q=q)
    return unbatch(core.jacobian(n, q, index, floats(point, "point")), batch)


def jacobian_bias(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    link: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    dtype: DtypeLike = "float64",
) -> Floats:
    """J̇ v (..., 6): acceleration of the point of `jacobian` while the joints do not accelerate."""
    scene = scene_of(character)
    index = scene.link_index(link)
    core, batch, n, (q, v) = prepare(scene, dtype, q=q, v=v)
    return unbatch(core.jacobian_bias(n, q, v, index, floats(point, "point")), batch)


def center_of_mass(character: SceneLike, q: ArrayLike, *, dtype: DtypeLike = "float64") -> Floats:
    """Center of mass of the whole character or scene (..., 3) [m]."""
    core, batch, n, (q,) = prepare(character, dtype, q=q)
    return unbatch(core.center_of_mass(n, q), batch)


def centroidal_momentum(
    character: SceneLike, q: ArrayLike, v: ArrayLike, *, dtype: DtypeLike = "float64"
) -> tuple[Floats, Floats]:
    """Linear momentum, and angular momentum about the center of mass, as a linear map of v.

    Returns:
        Matrix A (..., 6, nv) and bias (..., 6): the momentum is A v, its rate A a + bias.
    """
    core, batch, n, (q, v) = prepare(character, dtype, q=q, v=v)
    A, bias = core.centroidal_momentum(n, q, v)
    return unbatch(A, batch), unbatch(bias, batch)


def energy(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    dtype: DtypeLike = "float64",
) -> tuple[Floats, Floats]:
    """Kinetic and potential energy [J], each of shape (...)."""
    core, batch, n, (q, v) = prepare(character, dtype, q=q, v=v)
    out = unbatch(core.energy(n, q, v, gravity_vector(gravity)), batch)
    return out[..., 0], out[..., 1]


def stable_pd(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float,
    method: str = "maba",
    form: str = "implicit",
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    force: ArrayLike | None = None,
    limits: bool = False,
    dtype: DtypeLike = "float64",
) -> tuple[Floats, Floats]:
    """Stable PD: accelerations and the torques that cause them, Q - K a (yin2020).

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        target: A Target or State, or a pair (q, v), at t + dt; v may be None.
        kp: Stiffness [N·m/rad, N/m], a number or shape (..., nv).
        kd: Damping [N·m·s/rad, N·s/m], a number or shape (..., nv).
        dt: Time step [s].
        method: "maba" linear time, "df" dense Cholesky, "sf" sparse LTDL, "pcg" conjugate gradient.
        form: "implicit" (K = kd dt + kp dt²), "spd" (yin2020, K = kd dt), "explicit" position
            (LYWG13), or "pd" (explicit PD, K = 0).
        gravity: [m/s^2], shape (3,).
        external: Wrench on each link, force at its origin [N, N m], shape (..., nl, 6).
        force: Further generalized forces, part of the torque [N, N m], shape (..., nv).
        limits: Respect the joints' effort limits, in the same step.
        dtype: Precision of the computation.
    """
    form_index, method_index = choice(form, "form", FORMS), choice(method, "method", METHODS)
    scene = scene_of(character)
    target_q, target_v = _pair(target)
    core, batch, n, (q, v, external, force, target_q, target_v, kp, kd) = prepare(
        scene,
        dtype,
        q=q,
        v=v,
        external=external,
        tau=force,
        target_q=target_q,
        target_v=target_v,
        kp=_gain(kp, "kp", scene.nv),
        kd=_gain(kd, "kd", scene.nv),
    )
    goal = _core.ServoTarget(target_q, target_v, kp, kd, number(dt, "dt"))
    g = gravity_vector(gravity)
    a, tau = core.stable_pd(
        n, q, v, goal, force, external, g, form_index, method_index, bool(limits)
    )
    return unbatch(a, batch), unbatch(tau, batch)


def pd_force(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float = 0.0,
    *,
    dtype: DtypeLike = "float64",
) -> Floats:
    """Explicit PD: -kp (q - q̄) - kd (v - v̄), rotations by the short way round.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        target: A Target or State, or a pair (q, v).
        kp: Stiffness [N·m/rad, N/m], a number or shape (..., nv).
        kd: Damping [N·m·s/rad, N·s/m], a number or shape (..., nv).
        dt: How far ahead the target is [s]; it is taken back by dt v̄.
        dtype: Precision of the computation.
    """
    ahead = 0.0 if dt == 0 else number(dt, "dt")
    return _drive(character, q, v, target, kp, kd, ahead, "pd", dtype)[0]


def drive(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float,
    form: str = "implicit",
    *,
    dtype: DtypeLike = "float64",
) -> tuple[Floats, Floats]:
    """Joint forces of a drive, Q - K a, linear in the accelerations a of the step.

    For solvers of one's own: K goes beside the armature, Q among the forces. `stable_pd` is that
    with the dynamics solved.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        target: A Target or State, or a pair (q, v), at t + dt; v may be None.
        kp: Stiffness [N·m/rad, N/m], a number or shape (..., nv).
        kd: Damping [N·m·s/rad, N·s/m], a number or shape (..., nv).
        dt: Time step [s].
        form: As of `stable_pd`.
        dtype: Precision of the computation.

    Returns:
        Q [N, N·m] and K [kg, kg·m²], each of shape (..., nv).
    """
    return _drive(character, q, v, target, kp, kd, number(dt, "dt"), form, dtype)


def _drive(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float,
    form: str,
    dtype: DtypeLike,
) -> tuple[Floats, Floats]:
    form_index = choice(form, "form", FORMS)
    scene = scene_of(character)
    target_q, target_v = _pair(target)
    core, batch, n, (q, v, target_q, target_v, kp, kd) = prepare(
        scene,
        dtype,
        q=q,
        v=v,
        target_q=target_q,
        target_v=target_v,
        kp=_gain(kp, "kp", scene.nv),
        kd=_gain(kd, "kd", scene.nv),
    )
    goal = _core.ServoTarget(target_q, target_v, kp, kd, dt)
    Q, K = core.drive(n, q, v, goal, form_index)
    return unbatch(Q, batch), unbatch(K, batch)


def _pair(target: Any) -> tuple[ArrayLike, ArrayLike | None]:
    if type(target) is tuple and len(target) == 2:
        return target
    if not hasattr(target, "q"):
        raise PoiseError(f"target must have q and v, or be the pair; got {target!r:.80}")
    return target.q, getattr(target, "v", None)


def _gain(k: ArrayLike, name: str, nv: int) -> Floats:
    k = floats(k, name)
    return np.full(nv, float(k)) if k.ndim == 0 else k
