"""Dynamics of a character: the core's algorithms as functions of states.

Leading axes are batch axes: q of shape (nq,) is one state, (n, nq) are n, computed in lanes.
Twists and wrenches are linear first: [linear, angular], [force, torque], in world axes. Passive
springs and dampers are not part of these functions; a world adds them. `dtype="float32"` computes
in single precision; arrays are float64 at the door either way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import FLOAT64, Floats, choice, floats, number
from poise.model.scene import Scene, SceneLike, scene_of

FORMS = tuple(_core.Form.__members__)
METHODS = tuple(_core.Method.__members__)
DTYPES = ("float64", "float32")
DtypeLike = Union[str, type[np.floating[Any]], "np.dtype[Any]"]
"""A name of DTYPES, or NumPy's type of that name."""
GRAVITY = (0.0, 0.0, -9.81)
DOWN = np.array(GRAVITY)

Arrays = Mapping[str, ArrayLike | None]


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
    return _evaluate_pair("forward_kinematics", character, dtype, {"q": q})


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
    out = _evaluate("link_velocities", character, dtype, {"q": q, "v": v})
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
    arrays = {"q": q, "v": v, "a": a, "external": external}
    return _evaluate("inverse_dynamics", character, dtype, arrays, _vector(gravity))


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
    arrays = {"q": q, "v": v, "a": a, "external": external}
    g = _vector(gravity)
    return _evaluate("kane_inverse_dynamics", character, dtype, arrays, g, as_printed)


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
    more = {"target_a": getattr(target, "a", None), "past": getattr(target, "past", None)}
    servo = _servo_arrays(character, target, kp, kd) | more
    arrays = {"q": q, "v": v, **servo, "external": external}
    options = (_vector(gravity), target_velocity, feedforward, as_printed)
    return _evaluate_pair("kane_control", character, dtype, arrays, *options, dt=number(dt, "dt"))


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
    arrays = {"q": q, "v": v, "a": None, "external": external}
    return _evaluate("inverse_dynamics", character, dtype, arrays, _vector(gravity))


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
    arrays = {"q": q, "v": v, "tau": tau, "external": external}
    return _evaluate("forward_dynamics", character, dtype, arrays, _vector(gravity))


def mass_matrix(character: SceneLike, q: ArrayLike, *, dtype: DtypeLike = "float64") -> Floats:
    """Joint-space inertia M (..., nv, nv), armature on its diagonal. CRBA."""
    return _evaluate("mass_matrix", character, dtype, {"q": q})


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
    at = scene_of(character).link_index(link), floats(point, "point")
    return _evaluate("jacobian", character, dtype, {"q": q}, *at)


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
    at = scene_of(character).link_index(link), floats(point, "point")
    return _evaluate("jacobian_bias", character, dtype, {"q": q, "v": v}, *at)


def center_of_mass(character: SceneLike, q: ArrayLike, *, dtype: DtypeLike = "float64") -> Floats:
    """Center of mass of the whole character or scene (..., 3) [m]."""
    return _evaluate("center_of_mass", character, dtype, {"q": q})


def centroidal_momentum(
    character: SceneLike, q: ArrayLike, v: ArrayLike, *, dtype: DtypeLike = "float64"
) -> tuple[Floats, Floats]:
    """Linear momentum, and angular momentum about the center of mass, as a linear map of v.

    Returns:
        Matrix A (..., 6, nv) and bias (..., 6): the momentum is A v, its rate A a + bias.
    """
    return _evaluate_pair("centroidal_momentum", character, dtype, {"q": q, "v": v})


def energy(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    dtype: DtypeLike = "float64",
) -> tuple[Floats, Floats]:
    """Kinetic and potential energy [J], each of shape (...)."""
    out = _evaluate("energy", character, dtype, {"q": q, "v": v}, _vector(gravity))
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
    servo = _servo_arrays(character, target, kp, kd)
    arrays = {"q": q, "v": v, **servo, "tau": force, "external": external}
    options = (_vector(gravity), form_index, method_index, bool(limits))
    return _evaluate_pair("stable_pd", character, dtype, arrays, *options, dt=number(dt, "dt"))


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
    arrays = {"q": q, "v": v, **_servo_arrays(character, target, kp, kd)}
    return _evaluate_pair("drive", character, dtype, arrays, FORMS.index("pd"), dt=ahead)[0]


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
    index = choice(form, "form", FORMS)
    arrays = {"q": q, "v": v, **_servo_arrays(character, target, kp, kd)}
    return _evaluate_pair("drive", character, dtype, arrays, index, dt=number(dt, "dt"))


def _servo_arrays(
    character: SceneLike, target: Any, kp: ArrayLike, kd: ArrayLike
) -> dict[str, ArrayLike | None]:
    """Arrays of a `_core.ServoTarget` by name; gains that are numbers hold for all joints."""
    if type(target) is tuple and len(target) == 2:
        q, v = target
    elif hasattr(target, "q"):
        q, v = target.q, getattr(target, "v", None)
    else:
        raise PoiseError(f"target must have q and v, or be the pair; got {target!r:.80}")
    nv = scene_of(character).nv
    kp, kd = floats(kp, "kp"), floats(kd, "kd")
    return {
        "target_q": q,
        "target_v": v,
        "kp": np.full(nv, float(kp)) if kp.ndim == 0 else kp,
        "kd": np.full(nv, float(kd)) if kd.ndim == 0 else kd,
    }


# ---- leading axes to rows of one batch, and back


def precision(dtype: DtypeLike) -> str:
    """ "float64" or "float32", from its name or from NumPy's type."""
    if isinstance(dtype, str):
        return DTYPES[choice(dtype, "dtype", DTYPES)]
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = dtype
    return DTYPES[choice(name, "dtype", DTYPES)]


def _vector(gravity: ArrayLike) -> Floats:
    """Gravity as the core takes it [m/s^2], shape (3,)."""
    return DOWN if gravity is GRAVITY else floats(gravity, "gravity")


def _evaluate(
    name: str, character: SceneLike, dtype: DtypeLike, arrays: Arrays, *options: Any
) -> Floats:
    """The result of a function of the core that returns one array; see `_call`."""
    result, batch = _call(name, character, dtype, arrays, options, None)
    return _unbatch(result, batch)


def _evaluate_pair(
    name: str,
    character: SceneLike,
    dtype: DtypeLike,
    arrays: Arrays,
    *options: Any,
    dt: float | None = None,
) -> tuple[Floats, Floats]:
    """The results of a function of the core that returns two arrays; see `_call`."""
    (one, two), batch = _call(name, character, dtype, arrays, options, dt)
    return _unbatch(one, batch), _unbatch(two, batch)


def _call(
    name: str,
    character: SceneLike,
    dtype: DtypeLike,
    arrays: Arrays,
    options: tuple[Any, ...],
    dt: float | None,
) -> tuple[Any, tuple[int, ...]]:
    """Calls a function of `_core.Dynamics`.

    Args:
        name: Name of the function.
        character: The character, or a scene.
        dtype: Precision of the computation.
        arrays: In the order of the function, by the names of `Forest.shapes`; q is needed.
        options: What the function takes after the arrays.
        dt: Time step of a servo [s], whose arrays follow q and v.

    Returns:
        The result in rows, and the shape of the batch.
    """
    scene = scene_of(character)
    if arrays["q"] is None:
        raise PoiseError(f"q is None, expected positions of shape (..., {scene.nq})")
    single = precision(dtype) == "float32"
    rows = _single(scene, arrays)
    batch: tuple[int, ...] = ()
    if rows is None:
        rows, batch = _batched(scene, arrays)
    values: list[Any] = [rows.get(key) for key in arrays]
    if dt is not None:
        last = 8 if "past" in arrays else 6
        target_q, target_v, kp, kd, *ahead = values[2:last]
        values[2:last] = [_core.ServoTarget(target_q, target_v, kp, kd, dt, *ahead)]
    core = _core.Dynamics(scene.model, scene.overrides, single)
    return getattr(core, name)(math.prod(batch), *values, *options), batch


def _unbatch(result: Floats, batch: tuple[int, ...]) -> Floats:
    """A result of n rows with the shape of the batch."""
    if not batch:
        row: Floats = result[0]
        return row
    return result.reshape(*batch, *result.shape[1:])


def _single(scene: Scene, arrays: Arrays) -> dict[str, Floats] | None:
    """The arrays of one state as they are, if that is what they are: there is little to do then."""
    if scene.overrides is not None and scene.copies:
        return None
    rows: dict[str, Floats] = {}
    shapes = scene.forest.shapes
    for name, value in arrays.items():
        if value is None:
            continue
        # this is `is_plain`, without the call: a call of the core takes 4 µs, and so did these
        if type(value) is not np.ndarray or value.dtype is not FLOAT64:
            return None
        flags = value.flags
        if value.shape != shapes[name] or not (flags.c_contiguous and flags.aligned):
            return None
        rows[name] = value if value.ndim == 1 else value.reshape(-1)
    return rows


def _batched(scene: Scene, arrays: Arrays) -> tuple[dict[str, Floats], tuple[int, ...]]:
    """The arrays as rows of one batch, and the batch's shape."""
    rows: dict[str, Floats] = {}
    lead: dict[str, tuple[int, ...]] = {}
    for name, value in arrays.items():
        if value is None:
            continue
        tail = scene.forest.shapes[name]
        array = floats(value, name)
        cut = array.ndim - len(tail)
        if cut < 0 or array.shape[cut:] != tail:
            expected = ", ".join(map(str, tail))
            raise PoiseError(f"{name} has shape {array.shape}, expected (..., {expected})")
        lead[name] = array.shape[:cut]
        rows[name] = array.reshape(*array.shape[:cut], math.prod(tail))
    copies = scene.copies
    try:
        batch = np.broadcast_shapes(*lead.values(), *([copies] if copies else []))
    except ValueError:
        shapes = ", ".join(f"{name} {rows[name].shape}" for name in rows)
        also = f", and the world's overrides {copies}" if copies else ""
        raise PoiseError(f"the leading axes do not fit together: {shapes}{also}") from None
    if copies and batch != copies:
        raise PoiseError(f"a world with overrides per copy has {copies} states, not {batch}")
    n = math.prod(batch)
    for name, array in rows.items():
        if lead[name]:
            full = np.broadcast_to(array, (*batch, array.shape[-1]))
            rows[name] = np.ascontiguousarray(full.reshape(n, array.shape[-1]))
    return rows, batch
