"""`check_gains`: are gains stable at a time step, which joint fails, and how far may each go?

What makes a step stable is derived below. What spoils a stable one is rounding. A torque that is
handed from one solve to another is tau = Q - K a, rounded. An error δ in it moves the velocity by
dt M⁻¹ δ, to which the drive answers with the torque -K M⁻¹ δ, rounded in its turn. So errors return
a step later times ε κ, with ε the rounding unit and κ the largest eigenvalue of K M⁻¹, and grow if
that is above 1. Embedded, no torque is handed on, and no error returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.control.gains import FREQUENCY, Gains, suggest_gains
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
    bound = StabilityMatrix.of(M, gains.kp, gains.kd, step, form, springs)
    # errors of rounding: the load is what returns, and M holds
    echo = StabilityMatrix(M, (0.0 if embedded else rounding) * _added_inertia(gains, step, form))
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
    bound: StabilityMatrix, gains: Gains, dt: float, form: str, joints: list[Indices]
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


def _failing(bound: StabilityMatrix, names: tuple[str, ...], limit: float) -> tuple[str, ...]:
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
        of_joint: dict[str, float] = dict.fromkeys(names, 0.0)
        for name, load in zip(names, loads[:, i], strict=True):
            of_joint[name] += load
        found[max(of_joint, key=of_joint.__getitem__)] = None
    return tuple(found)


# ---- the result

SAFETY = 0.8
"""Default fraction of the largest gains that `GainsCheck.safe_gains` takes."""

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
    kp: Floats  # the gains that were checked, shape (nv,) or (n, nv)
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


# ---- when a PD drive is stable at a time step
#
# Near a target at rest, with x the error and the drive's Q and K (reference/drive.py), a step is
#
#     (M + K) (x⁺ - 2 x + x⁻) + dt D (x - x⁻) + dt² Kp x = 0
#
# since v = (x - x⁻) / dt and positions follow the new velocity. D = Kd for "pd" and "explicit", and
# Kd + dt Kp for "spd" and "implicit", which look at q + dt v. Put x_n = λⁿ u. For any u the numbers
# m = u*(M + K)u, d = dt u*Du and k = dt² u*Kp u are real, and
#
#     m λ² - (2 m - d - k) λ + (m - d) = 0
#
# has no root outside the unit circle as long as 2 d + k < 4 m. So errors do not grow if
#
#     S = 4 (M + K) - 2 dt D - dt² Kp
#
# is positive definite. And only then: S is the matrix of the step at λ = -1, and that matrix is
# positive for λ -> -∞, so if S has a negative direction its determinant is zero at some λ < -1. In
# words, an error that turns over in every step must shrink. With each form's K and D:
#
#     pd         S = 4 M - 2 dt Kd -   dt² Kp
#     explicit   S = 4 M + 2 dt Kd -   dt² Kp
#     spd        S = 4 M + 2 dt Kd - 3 dt² Kp
#     implicit   S = 4 M + 2 dt Kd +   dt² Kp     positive at any step
#
# One joint by itself gives 3 kp dt² < 4 m + 2 kd dt for "spd". A tree has weak directions, in which
# light links shake heavy ones, that no joint's own inertia shows; M has them. Springs and dampers
# of the joints themselves are solved implicitly by the world and add the terms of the last line.
#
# All S have the shape H - diag(c): H holds, c is the load that gains put on it. Since S only falls
# when a load grows, lowering any of them never makes a stable step unstable.

Indices = NDArray[np.intp]

COEFFICIENTS = {"pd": (-2, 1), "explicit": (2, 1), "spd": (2, 3), "implicit": (2, -1)}
"""Factors of dt Kd and of -dt² Kp in S, by form."""

BISECTIONS = 40
"""Halvings of a ratio: what is left is a part in 1e12."""

LEAST_RATE = 1e-6
"""Steps longer than the inverse of this [1/s] count as any."""


class StabilityMatrix(NamedTuple):
    """S = H - diag(c) of gains at a time step."""

    H: Floats  # what holds, positive definite, shape (..., nv, nv)
    c: Floats  # the load, not negative, shape (..., nv)

    @classmethod
    def of(
        cls, M: Floats, kp: Floats, kd: Floats, dt: float, form: str, springs: Floats
    ) -> StabilityMatrix:
        """H and c of a form.

        Args:
            M: Mass matrix, shape (..., nv, nv).
            kp: Stiffness, shape (..., nv).
            kd: Damping, shape (..., nv).
            dt: Time step [s].
            form: One of COEFFICIENTS.
            springs: 2 dt d + dt² k of the joints' own dampers and springs, shape (nv,).
        """
        of_kd, of_kp = COEFFICIENTS[form]
        terms = np.stack([of_kd * dt * kd, -of_kp * dt**2 * kp])
        holds = springs + np.maximum(terms, 0.0).sum(axis=0)
        load = np.maximum(-terms, 0.0).sum(axis=0)
        return cls(4.0 * M + diagonal(holds), np.broadcast_to(load, M.shape[:-1]))

    @property
    def margin(self) -> Floats:
        """The factor that all loads can bear together, shape (...); above 1 it is stable."""
        largest = np.linalg.eigvalsh(_between(_factor(self.H), self.c))[..., -1]
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.maximum(largest, 0.0))

    def largest_loads(self, joints: list[Indices]) -> Floats:
        """The largest load of each joint, shape (..., nv), the same for all axes of a joint.

        Where S is positive: with all other loads as they are. By Schur's complement joint j can
        bear 1 / (S⁻¹)_jj more, for a ball the largest eigenvalue of its block.

        Where it is not: joint j alone could bear a_j = 1 / (H⁻¹)_jj, and loads are cut at one
        ratio r to that, c_j <= r a_j, the largest for which S is positive. Those below stay.

        Args:
            joints: Velocities of each joint.
        """
        stable = (self.margin > 1.0)[..., None]
        # where S is not positive H stands in for it, and the answer is not used
        S = np.where(stable[..., None], self.H - diagonal(self.c), self.H)
        more = self.c + 1.0 / _worst_axis(np.linalg.inv(S), joints)
        if stable.all():
            return np.asarray(more)
        alone = 1.0 / _worst_axis(np.linalg.inv(self.H), joints)
        cut = np.minimum(self.c, self._common_ratio(alone)[..., None] * alone)
        return np.where(stable, more, cut)

    def _common_ratio(self, alone: Floats) -> Floats:
        """The largest r for which loads of at most r a leave S positive, by bisection, (...)."""
        low, factor = StabilityMatrix(self.H, alone).margin, _factor(self.H)
        high = np.maximum((self.c / alone).max(axis=-1), low)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            cut = np.minimum(self.c, middle[..., None] * alone)
            fits = np.linalg.eigvalsh(_between(factor, cut))[..., -1] < 1.0
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return np.asarray(low)


def modes(H: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (..., nv), ascending, and vectors (..., nv, nv) of diag(c) u = μ H u."""
    factor = _factor(H)
    values, vectors = np.linalg.eigh(_between(factor, c))
    return values, factor.swapaxes(-1, -2) @ vectors


def largest_step(M: Floats, kp: Floats, kd: Floats, form: str, damping: Floats) -> Floats:
    """The time step below which these gains are stable [s], shape (...); inf is any.

    With σ = 1/dt the border det S = 0 is (4 M σ² + C σ - P) u = 0, C and P diagonal. For
    4 M = L Lᵀ the largest σ is the largest eigenvalue of the symmetric matrix

        [-L⁻¹ C L⁻ᵀ   L⁻¹ √P]
        [ √P L⁻ᵀ      0     ]

    whose vectors are (Lᵀ u, √P u / σ).

    Args:
        M: Mass matrix, shape (..., nv, nv).
        kp: Stiffness, shape (..., nv).
        kd: Damping, shape (..., nv).
        form: One of COEFFICIENTS.
        damping: Of the joints themselves, shape (nv,). Their springs are left out: they hold.
    """
    of_kd, of_kp = COEFFICIENTS[form]
    factor = _factor(4.0 * M)
    C = _between(factor, of_kd * kd + 2.0 * damping)
    B = factor * np.sqrt(np.maximum(of_kp * kp, 0.0))[..., None, :]
    upper = np.concatenate([-C, B], axis=-1)
    lower = np.concatenate([B.swapaxes(-1, -2), np.zeros_like(B)], axis=-1)
    sigma = np.linalg.eigvalsh(np.concatenate([upper, lower], axis=-2))[..., -1]
    return np.where(sigma > LEAST_RATE, 1.0 / np.maximum(sigma, LEAST_RATE), np.inf)


def felt_inertia(M: Floats, joints: list[Indices]) -> Floats:
    """The least inertia that each joint feels, 1 / (M⁻¹)_jj, all others loose, (..., nv)."""
    return np.asarray(1.0 / _worst_axis(np.linalg.inv(M), joints))


def _factor(H: Floats) -> Floats:
    """L⁻¹ of H = L Lᵀ, shape (..., nv, nv)."""
    L = np.linalg.cholesky(H)
    return np.asarray(np.linalg.solve(L, np.eye(L.shape[-1])))


def _between(factor: Floats, c: Floats) -> Floats:
    """L⁻¹ diag(c) L⁻ᵀ, shape (..., nv, nv)."""
    return np.asarray((factor * c[..., None, :]) @ factor.swapaxes(-1, -2))


def diagonal(x: Floats) -> Floats:
    """Diagonal matrices (..., n, n) of vectors (..., n)."""
    return x[..., None] * np.eye(x.shape[-1])


def _worst_axis(P: NDArray[Any], joints: list[Indices]) -> Floats:
    """Largest eigenvalue of each joint's block of P, spread over its velocities, (..., nv)."""
    out: Floats = np.diagonal(P, axis1=-2, axis2=-1).copy()
    triples = np.array([at for at in joints if len(at) == 3], dtype=np.intp).reshape(-1, 3)
    blocks = P[..., triples[:, :, None], triples[:, None, :]]
    out[..., triples] = np.linalg.eigvalsh(blocks)[..., -1:]
    return out
