"""Dynamics of a character: the core's algorithms as functions of states.

Leading axes are batch axes: q of shape (nq,) asks about one state, (n, nq) about n, in lanes.
Twists and wrenches are linear first: [linear, angular], [force, torque], in world axes. Passive
springs and dampers are not part of these functions; a world adds them. `dtype="float32"` computes
in single precision; arrays are float64 at the door either way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.arrays import Floats, choice, floats, number
from poise.errors import PoiseError
from poise.scene import Scene, SceneLike, scene_of

FORMS = ("pd", "explicit", "spd", "implicit")
METHODS = ("maba", "df", "sf", "pcg")
DTYPES = ("float64", "float32")
GRAVITY = (0.0, 0.0, -9.81)

_WHAT = (
    "forward_kinematics",
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "jacobian",
    "jacobian_bias",
    "center_of_mass",
    "centroidal_momentum",
    "energy",
    "stable_pd",
    "drive",
    "kane",
)
_ORIGIN = np.zeros(3)


def forward_kinematics(
    character: SceneLike, q: ArrayLike, *, dtype: str = "float64"
) -> tuple[Floats, Floats]:
    """Poses of the links in the world.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        dtype: Precision of the computation.

    Returns:
        Positions of the link frames (..., nl, 3) [m] and quaternions w x y z (..., nl, 4).
    """
    out = _ask("forward_kinematics", scene_of(character), dtype, q=q)
    return out[0], out[1]


def inverse_dynamics(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    dtype: str = "float64",
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
    return _ask1("inverse_dynamics", character, dtype, gravity, q=q, v=v, a=a, external=external)


def kane_inverse_dynamics(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    as_printed: bool = False,
    dtype: str = "float64",
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
    return _ask(
        "kane", scene_of(character), dtype, gravity, q=q, v=v, a=a, external=external,
        as_printed=as_printed,
    )[0]  # fmt: skip


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
    dtype: str = "float64",
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
    out = _ask(
        "kane", scene, dtype, gravity, dt=number(dt, "dt"), q=q, v=v, external=external,
        target_q=target_q, target_v=target_v, target_a=getattr(target, "a", None),
        past=getattr(target, "past", None), kp=_gain(kp, "kp", scene.nv),
        kd=_gain(kd, "kd", scene.nv), velocity=target_velocity, feedforward=feedforward,
        as_printed=as_printed,
    )  # fmt: skip
    return out[0], out[1]


def bias_force(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    dtype: str = "float64",
) -> Floats:
    """The part h of M a + h = tau: velocity terms, gravity and external forces."""
    return _ask1("inverse_dynamics", character, dtype, gravity, q=q, v=v, external=external)


def forward_dynamics(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    dtype: str = "float64",
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
    return _ask1(
        "forward_dynamics", character, dtype, gravity, q=q, v=v, tau=tau, external=external
    )


def mass_matrix(character: SceneLike, q: ArrayLike, *, dtype: str = "float64") -> Floats:
    """Joint-space inertia M (..., nv, nv), armature on its diagonal. CRBA."""
    return _ask1("mass_matrix", character, dtype, q=q)


def jacobian(
    character: SceneLike,
    q: ArrayLike,
    link: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    dtype: str = "float64",
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
    return _ask1("jacobian", scene, dtype, link=scene.link_index(link), point=point, q=q)


def jacobian_bias(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    link: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    dtype: str = "float64",
) -> Floats:
    """J̇ v (..., 6): acceleration of the point of `jacobian` while the joints do not accelerate."""
    scene = scene_of(character)
    return _ask1("jacobian_bias", scene, dtype, link=scene.link_index(link), point=point, q=q, v=v)


def center_of_mass(character: SceneLike, q: ArrayLike, *, dtype: str = "float64") -> Floats:
    """Mass centre of the whole character or scene (..., 3) [m]."""
    return _ask1("center_of_mass", character, dtype, q=q)


def centroidal_momentum(
    character: SceneLike, q: ArrayLike, v: ArrayLike, *, dtype: str = "float64"
) -> tuple[Floats, Floats]:
    """Linear momentum, and angular momentum about the mass centre, as a linear map of v.

    Returns:
        Matrix A (..., 6, nv) and bias (..., 6): the momentum is A v, its rate A a + bias.
    """
    out = _ask("centroidal_momentum", scene_of(character), dtype, q=q, v=v)
    return out[0], out[1]


def energy(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    dtype: str = "float64",
) -> tuple[Floats, Floats]:
    """Kinetic and potential energy [J], each of shape (...)."""
    out = _ask1("energy", character, dtype, gravity, q=q, v=v)
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
    dtype: str = "float64",
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
    scene = scene_of(character)
    target_q, target_v = _pair(target)
    out = _ask(
        "stable_pd",
        scene,
        dtype,
        gravity,
        dt=number(dt, "dt"),
        form=form,
        method=method,
        limits=limits,
        q=q,
        v=v,
        tau=force,
        target_q=target_q,
        target_v=target_v,
        kp=_gain(kp, "kp", scene.nv),
        kd=_gain(kd, "kd", scene.nv),
        external=external,
    )
    return out[0], out[1]


def pd_force(
    character: SceneLike,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float = 0.0,
    *,
    dtype: str = "float64",
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
    scene = scene_of(character)
    target_q, target_v = _pair(target)
    out = _ask(
        "drive",
        scene,
        dtype,
        dt=0.0 if dt == 0 else number(dt, "dt"),
        form="pd",
        q=q,
        v=v,
        target_q=target_q,
        target_v=target_v,
        kp=_gain(kp, "kp", scene.nv),
        kd=_gain(kd, "kd", scene.nv),
    )
    return out[0]


def _pair(target: Any) -> tuple[ArrayLike, ArrayLike | None]:
    if type(target) is tuple and len(target) == 2:
        return target
    if not hasattr(target, "q"):
        raise PoiseError(f"target must have q and v, or be the pair; got {target!r:.80}")
    return target.q, getattr(target, "v", None)


def _gain(k: ArrayLike, name: str, nv: int) -> Floats:
    k = floats(k, name)
    return np.full(nv, float(k)) if k.ndim == 0 else k


def _ask1(
    what: str, character: SceneLike, dtype: str, gravity: ArrayLike = GRAVITY, **given: Any
) -> Floats:
    out: Floats = _ask(what, scene_of(character), dtype, gravity, **given)[0]
    return out


def _ask(
    what: str,
    scene: Scene,
    dtype: str,
    gravity: ArrayLike = GRAVITY,
    *,
    dt: float = 1.0,
    form: str = "implicit",
    method: str = "maba",
    limits: bool = False,
    link: int = 0,
    point: ArrayLike = _ORIGIN,
    velocity: bool = True,
    feedforward: bool = True,
    as_printed: bool = False,
    **arrays: ArrayLike | None,
) -> tuple[Floats, ...]:
    """Bring the arrays to rows of one batch, ask the core, and give the batch its shape back."""
    rows = _single(scene, arrays)
    batch: tuple[int, ...] = ()
    if rows is None:
        rows, batch = _batched(scene, arrays)
    n = math.prod(batch)
    out = _core.answer(
        scene.model,
        scene.numbers,
        _WHAT.index(what),
        n,
        choice(dtype, "dtype", DTYPES) == 1,
        rows.get("q"),
        rows.get("v"),
        rows.get("a"),
        rows.get("tau"),
        rows.get("external"),
        rows.get("target_q"),
        rows.get("target_v"),
        rows.get("kp"),
        rows.get("kd"),
        floats(gravity, "gravity"),
        dt,
        choice(form, "form", FORMS),
        choice(method, "method", METHODS),
        bool(limits),
        link,
        floats(point, "point"),
        rows.get("target_a"),
        rows.get("past"),
        velocity,
        feedforward,
        as_printed,
    )
    results = out if isinstance(out, tuple) else (out,)
    return tuple(result.reshape(*batch, *result.shape[1:]) for result in results)


def _size(scene: Scene, name: str) -> tuple[int, ...]:
    """Shape of an array of one state."""
    special = {"q": (scene.nq,), "target_q": (scene.nq,), "external": (scene.nl, 6),
               "past": (2, scene.nq)}  # fmt: skip
    return special.get(name, (scene.nv,))


def _single(scene: Scene, arrays: dict[str, ArrayLike | None]) -> dict[str, Floats] | None:
    """The arrays of one state as they are, if that is what they are: there is little to do then."""
    if scene.copies:
        return None
    rows: dict[str, Floats] = {}
    for name, value in arrays.items():
        if value is None:
            continue
        if type(value) is not np.ndarray or value.shape != _size(scene, name):
            return None
        if value.dtype != np.float64 or not value.flags.c_contiguous:
            return None
        rows[name] = value if value.ndim == 1 else value.reshape(-1)
    return rows


def _batched(
    scene: Scene, arrays: dict[str, ArrayLike | None]
) -> tuple[dict[str, Floats], tuple[int, ...]]:
    """The arrays as rows of one batch, and the batch's shape."""
    rows: dict[str, Floats] = {}
    lead: dict[str, tuple[int, ...]] = {}
    for name, value in arrays.items():
        if value is None:
            continue
        tail = _size(scene, name)
        array = floats(value, name)
        cut = array.ndim - len(tail)
        if cut < 0 or array.shape[cut:] != tail:
            wanted = ", ".join(map(str, tail))
            raise PoiseError(f"{name} has shape {array.shape}, expected (..., {wanted})")
        lead[name] = array.shape[:cut]
        rows[name] = array.reshape(*array.shape[:cut], math.prod(tail))
    copies = scene.copies
    try:
        batch = np.broadcast_shapes(*lead.values(), *([copies] if copies else []))
    except ValueError:
        shapes = ", ".join(f"{name} {rows[name].shape}" for name in rows)
        also = f", and the world's own numbers {copies}" if copies else ""
        raise PoiseError(f"the leading axes do not fit together: {shapes}{also}") from None
    if copies and batch != copies:
        raise PoiseError(
            f"a world with numbers per copy answers about {copies} states, not {batch}"
        )
    n = math.prod(batch)
    for name, array in rows.items():
        if lead[name]:
            full = np.broadcast_to(array, (*batch, array.shape[-1]))
            rows[name] = np.ascontiguousarray(full.reshape(n, array.shape[-1]))
    return rows, batch
