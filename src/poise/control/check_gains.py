"""`check_gains`: are gains stable at a time step, which joint fails, and how far may each go?

What makes a step stable is in stability.py. What spoils a stable one is rounding. A torque that is
handed from one solve to another is tau = Q - K a, rounded. An error δ in it moves the velocity by
dt M⁻¹ δ, to which the drive answers with the torque -K M⁻¹ δ, rounded in its turn. So errors return
a step later times ε κ, with ε the rounding unit and κ the largest eigenvalue of K M⁻¹, and grow if
that is above 1. Embedded, no torque is handed on, and no error returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.control.gains import FREQUENCY, Gains, suggest_gains
from poise.control.stability import (
    COEFFICIENTS,
    Balance,
    Indices,
    felt_inertia,
    largest_step,
    modes,
)
from poise.errors import PoiseError
from poise.math.arrays import Floats, choice, number
from poise.model.forest import KINDS, Forest
from poise.model.scene import Scene, SceneLike, scene_of

ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24}
"""Relative error of one rounding."""


def check_gains(
    character: SceneLike,
    dt: float | None = None,
    gains: Gains | None = None,
    *,
    kp: ArrayLike | None = None,
    kd: ArrayLike | None = None,
    frequency: ArrayLike | None = None,
    damping: ArrayLike = 1.0,
    root: str = "free",
    form: str = "implicit",
    method: str = "maba",
    embedded: bool = True,
    dtype: str | None = None,
    q: ArrayLike | None = None,
) -> GainsCheck:
    """Check gains at a time step: stable or not, the joints that fail, the largest gains.

    The bound is exact for small errors about a pose at rest, of the whole tree at once. It does not
    know of speed, gravity, contact and the bubble-up of PD, and another pose may be worse.

    `largest_kp` of stable gains is that of each joint while all others stay as they are. Of
    unstable gains it is where to cut: `np.minimum(kp, largest_kp)` is on the border, and joints are
    cut that are stiffest for the inertia they move. "pd" has a `largest_kd` as well; the other
    forms take any kd, and "implicit" takes any gains.

    Args:
        character: The character, or a scene.
        dt: Time step [s]; taken from a World.
        gains: Gains. Or kp and kd, or a frequency; by default what controllers take.
        kp: Stiffness [N·m/rad, N/m]: a number, shape (nv,) or (n, nv).
        kd: Damping [N·m·s/rad, N·s/m], shaped alike.
        frequency: Natural frequency of the joints [Hz], as of `suggest_gains`.
        damping: Damping ratio, with a frequency.
        root: Gains of free roots with a frequency, as of `suggest_gains`.
        form: "implicit", "spd", "explicit", or "pd" for the controller PD.
        method: How the system is solved: "maba", "df", "sf" or "pcg". The bound is the same.
        embedded: False looks at rounding, too: the world is given torques.
        dtype: "float64" or "float32"; None takes that of the World, or "float64".
        q: Poses, shape (..., nq); None is the rest pose.
    """
    scene = scene_of(character)
    forest = scene.forest
    step = _step(character, dt)
    form = dynamics.FORMS[choice(form, "form", dynamics.FORMS)]
    method = dynamics.METHODS[choice(method, "method", dynamics.METHODS)]
    if dtype is None:
        dtype = getattr(character, "dtype", "float64")
    rounding = ROUNDING[dynamics.DTYPES[choice(dtype, "dtype", dynamics.DTYPES)]]
    gains = _gains(scene, gains, kp, kd, frequency, damping, root)
    M = _mass_matrix(scene, q, gains)

    joints, names = _joints(forest)
    springs = 2.0 * step * forest.damping + step**2 * forest.stiffness
    bound = Balance.of(M, gains.kp, gains.kd, step, form, springs)
    # errors of rounding: the load is what returns, and M holds
    echo = Balance(M, (0.0 if embedded else rounding) * _added_inertia(gains, step, form))
    largest_kp, largest_kd = _largest(bound, gains, step, form, joints)
    return GainsCheck(
        form=form,
        method=method,
        dt=step,
        names=names,
        unstable=_failing(bound, names, 1.0) or _failing(echo, names, ECHO),
        kp=gains.kp,
        kd=gains.kd,
        inertia=felt_inertia(M, joints),
        largest_kp=largest_kp,
        largest_kd=largest_kd,
        margin=bound.margin,
        largest_dt=largest_step(M, gains.kp, gains.kd, form, forest.damping),
        feedback=np.asarray(1.0 / echo.margin),
        scene=scene,
    )


def _step(character: Any, dt: float | None) -> float:
    if dt is None:
        dt = getattr(character, "dt", None)
    if dt is None:
        raise PoiseError("check_gains needs dt: check_gains(character, 1/60), or give it the World")
    return number(dt, "dt")


def _gains(
    scene: Scene,
    gains: Gains | None,
    kp: ArrayLike | None,
    kd: ArrayLike | None,
    frequency: ArrayLike | None,
    damping: ArrayLike,
    root: str,
) -> Gains:
    """The gains in whichever way they were given."""
    ways = [gains is not None, kp is not None or kd is not None, frequency is not None]
    if sum(ways) > 1:
        raise PoiseError("give gains, or kp and kd, or a frequency: one of the three")
    if kp is not None and kd is not None:
        return Gains(scene, kp, kd)
    if ways[1]:
        raise PoiseError(f"kp and kd belong together; {'kd' if kd is None else 'kp'} is missing")
    if gains is None:
        rate = FREQUENCY if frequency is None else frequency
        return suggest_gains(scene, rate, damping, root=root)
    if not isinstance(gains, Gains):
        raise PoiseError(f"gains must be made by Gains or suggest_gains, got {gains!r:.80}")
    if gains.kp.shape[-1] != scene.nv:
        raise PoiseError(
            f"these gains have {gains.kp.shape[-1]} degrees of freedom, the character has "
            f"{scene.nv}"
        )
    return gains


def _mass_matrix(scene: Scene, q: ArrayLike | None, gains: Gains) -> Floats:
    """M of the poses, for each copy that has gains of its own, shape (..., nv, nv)."""
    M = dynamics.mass_matrix(scene, scene.forest.rest_q if q is None else q)
    poses, copies = M.shape[:-2], gains.kp.shape[:-1]
    try:
        batch = np.broadcast_shapes(poses, copies)
    except ValueError:
        raise PoiseError(
            f"gains are for {copies[0]} copies, poses or masses have the leading axes {poses}"
        ) from None
    if (np.linalg.eigvalsh(M)[..., 0] <= 0.0).any():
        raise PoiseError("the mass matrix is singular at this pose: axes in line; check another q")
    return np.broadcast_to(M, (*batch, *M.shape[-2:]))


def _joints(forest: Forest) -> tuple[list[Indices], tuple[str, ...]]:
    """Velocities of each joint, those of a free one in two halves; and each velocity's joint."""
    joints, names = [], []
    for b, kind in enumerate(forest.kind):
        halves = 2 if kind == KINDS["free"] else 1
        size = 3 if kind in (KINDS["free"], KINDS["ball"]) else 1
        for half in range(halves):
            joints.append(forest.v_adr[b] + half * size + np.arange(size))
        names += [forest.joint_names[forest.joint[b]]] * (halves * size)
    return joints, tuple(names)


def _added_inertia(gains: Gains, dt: float, form: str) -> Floats:
    """K of the drive, shape (..., nv)."""
    damped = gains.kd * dt if form != "pd" else np.zeros_like(gains.kd)
    return damped + gains.kp * dt**2 if form == "implicit" else damped


def _largest(
    bound: Balance, gains: Gains, dt: float, form: str, joints: list[Indices]
) -> tuple[Floats, Floats]:
    """The largest kp and kd, shape (..., nv) each."""
    of_kd, of_kp = COEFFICIENTS[form]
    kp, kd = np.broadcast_to(gains.kp, bound.c.shape), np.broadcast_to(gains.kd, bound.c.shape)
    any_at_all = np.full(bound.c.shape, np.inf)
    if of_kp < 0:
        return any_at_all, any_at_all
    largest = bound.largest_loads(joints)
    more = np.maximum(largest - bound.c, 0.0)
    # a load that is cut is cut in all its parts: of "pd", kp and kd by the same factor
    cut = np.divide(largest, bound.c, out=np.ones_like(bound.c), where=bound.c > largest)
    most = kp * cut + more / (of_kp * dt**2)
    return most, kd * cut + more / (-of_kd * dt) if of_kd < 0 else any_at_all


def _failing(bound: Balance, names: tuple[str, ...], limit: float) -> tuple[str, ...]:
    """The joints that carry most of each direction beyond the limit, the worst direction first."""
    margins = bound.margin.reshape(-1)
    nv = len(names)
    at = int(margins.argmin())
    if margins[at] > 1.0 / limit:
        return ()
    H = np.broadcast_to(bound.H, (*bound.margin.shape, nv, nv)).reshape(-1, nv, nv)[at]
    c = np.broadcast_to(bound.c, (*bound.margin.shape, nv)).reshape(-1, nv)[at]
    values, vectors = modes(H, c)
    loads = c[:, None] * vectors**2
    found: dict[str, None] = {}
    for i in np.flatnonzero(values >= limit)[::-1]:
        share: dict[str, float] = dict.fromkeys(names, 0.0)
        for name, load in zip(names, loads[:, i], strict=True):
            share[name] += load
        found[max(share, key=share.__getitem__)] = None
    return tuple(found)


# ---- the result

SAFETY = 0.8
"""How much of the largest gains `GainsCheck.safe_gains` takes, unless told."""

ECHO = 0.25
"""A feedback of rounding errors from here on counts as unstable. Trees were seen to fail from 0.3
on and to hold up to 2: the constants of rounding differ from tree to tree and method to method."""


@dataclass(frozen=True, eq=False)
class GainsCheck:
    """What `check_gains` found. Leading axes are those of gains, copies and poses."""

    form: str  # "pd", "explicit", "spd" or "implicit"
    method: str  # "maba", "df", "sf" or "pcg"
    dt: float  # time step [s]
    names: tuple[str, ...]  # joint of each velocity
    unstable: tuple[str, ...]  # joints that fail, the worst first
    kp: Floats  # the gains that were asked about, shape (nv,) or (n, nv)
    kd: Floats
    inertia: Floats  # least inertia that each joint feels [kg m^2, kg], shape (..., nv)
    largest_kp: Floats  # see `check_gains`, shape (..., nv)
    largest_kd: Floats
    margin: Floats  # factor by which all kp (of "pd" also kd) may grow, shape (...)
    largest_dt: Floats  # time step below which the gains are stable [s], shape (...)
    feedback: Floats  # part of a rounding error that returns a step later, shape (...)
    scene: Scene = field(repr=False)

    @property
    def stable(self) -> NDArray[np.bool_]:
        """Whether errors die out, shape (...)."""
        return np.asarray((self.margin > 1.0) & (self.feedback < ECHO))

    def __bool__(self) -> bool:
        return bool(self.stable.all())

    def safe_gains(self, safety: float = SAFETY) -> Gains:
        """The given gains, each cut to a part of the largest; of several poses, the least.

        Args:
            safety: That part, between 0 and 1.
        """
        if not 0.0 < number(safety, "safety", unit="ratio") < 1.0:
            raise PoiseError(f"safety is {safety:g}; it must be between 0 and 1")
        if (self.feedback >= ECHO).any():
            raise PoiseError("rounding fails, not gains: use embedded=True, or dtype='float64'")
        kp = _least(np.minimum(self.kp, safety * self.largest_kp), self.kp.ndim)
        kd = _least(np.minimum(self.kd, safety * self.largest_kd), self.kd.ndim)
        return Gains(self.scene, kp, kd)

    def __str__(self) -> str:
        what = f"form {self.form!r} at dt = {self.dt:.4g} s"
        if self:
            if np.isinf(self.margin).all():
                return f"{what} is stable, with any gains"
            return f"{what} is stable; all kp may grow by a factor of {self.margin.min():.3g}"
        first = f"{what} is unstable, first in joint {self.unstable[0]!r}"
        if (self.margin > 1.0).all():
            return (
                f"{first}: rounding errors of its torque return a step later, "
                f"{self.feedback.max():.3g} times as large; use embedded=True, or dtype='float64'"
            )
        cuts = [f"  {line}" for name in dict.fromkeys(self.names) if (line := self._cut(name))]
        below = f"It is stable below dt = {self.largest_dt.min():.3g} s, or with"
        return "\n".join([f"{first}. {below}", *cuts])

    def _cut(self, joint: str) -> str:
        """What a joint's gains should be instead of what they are; "" where they may stay."""
        own = [i for i, name in enumerate(self.names) if name == joint]
        words = []
        for name in ("kp", "kd"):
            given = getattr(self, name)[..., own].max()
            most = getattr(self, f"largest_{name}")[..., own].min()
            if most < given:
                words.append(f"{name} at most {most:.4g}, not {given:.4g}")
        return f"{joint}: {' and '.join(words)}" if words else ""


def _least(k: Floats, ndim: int) -> Floats:
    """The least over leading axes, until only ndim axes are left."""
    return np.asarray(k.min(axis=tuple(range(k.ndim - ndim))))
