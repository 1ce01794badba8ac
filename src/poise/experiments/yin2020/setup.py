"""Models, gains and methods of yin2020, and the rows of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import poise
from poise.control.gains import with_root
from poise.experiments.report import printed_numbers
from poise.math.arrays import Floats
from poise.model.scene import scene_of
from poise.motion.slither import slither
from poise.simulation.controller import Requirements
from poise.trials.comparison import record_run

JOINTS = (75000.0, 4000.0)  # kp [N·m/rad], kd [N·m·s/rad] of the joints

MODELS = {
    "humanoid": (34, 13),
    "dog": (72, 24),
    "snake-36": (36, 36),
    "snake-72": (72, 72),
    "snake-195": (195, 195),
}
"""Degrees of freedom and deepest path, Table 1."""

METHODS = ("df", "pcg", "sf", "maba")
"""Dense Cholesky, conjugate gradients, sparse LTDL, ours in linear time."""


class Case(NamedTuple):
    """One row of Table 2, with the frames per second that it prints."""

    model: str
    motion: str
    printed: dict[str, float]


def table_2() -> list[Case]:
    """Rows of Table 2."""
    return [
        Case(row["model"], row["motion"], {m: float(row[m]) for m in METHODS})
        for row in printed_numbers("yin2020")
    ]


def clip_of(model: str, motion: str) -> poise.Clip:
    """The motion on the model."""
    if motion == "snake-slither":
        return slither(poise.load_character(model))
    return poise.load_clip(motion, poise.load_character(model))


def gains_of(scene: Any) -> poise.Gains:
    """The gains of the paper's section 5."""
    return with_root(scene_of(scene), poise.Gains(scene, *JOINTS), "held")


class Tracker:
    """A controller that hands a drive to the world: method, form, embedded or not."""

    requires = Requirements(rows=True)

    def __init__(
        self, scene: Any, method: str = "maba", form: str = "spd", embedded: bool = True
    ) -> None:
        self.gains = gains_of(scene)
        self.how: dict[str, Any] = {"method": method, "form": form, "embedded": embedded}

    def __call__(self, state: Any, target: Any) -> poise.Command:
        """The command for a target."""
        return poise.Command(drive=poise.Drive(self.gains, target, **self.how))


# ---- tracking a clip as the paper does: in the air, root and joints driven, no contact
#
# Three ways. "MABA" is embedded: the world solves the drive inside its dynamics. "DF" is
# standalone: (M + K) a = Q - h is solved densely for a, the torque is formed, and the dynamics
# solve again,
#
#     tau = Q - K a .                                                                    (1)
#
# "PD" is explicit. In (1) Q and K a are large and nearly equal, so tau carries the rounding errors
# of both: some units u of ε |K a|, where ε = 2⁻²⁴ in float32. How many units an engine makes
# depends on how it forms M, h and (1). `Rounded` adds a chosen number of them to torques in
# float64, which shows what another engine than ours would see; `own_units` says how many ours
# makes.

UNIT = 2.0**-24
"""Relative error of one rounding in float32."""

NEAR = 0.5
"""A run whose links stay nearer than this to their places, relative to the root, is stable [m]."""


class Run(NamedTuple):
    """Frames of a run; one that diverges ends there.

    Attributes:
        time: [s], shape (k,).
        q: Positions, shape (k, nq).
    """

    time: Floats
    q: Floats


class Rounded:
    """DF standalone in float64 with more rounding: tau + u ε |K a| r, r uniform in [-1, 1].

    Args:
        world: The world it acts in.
        units: u, how many units of float32.
        form: Of stable PD.
    """

    def __init__(self, world: poise.World, units: float, form: str) -> None:
        self._servo = dense(world, form, "float64")
        gains, dt = self._servo.gains, world.dt
        self._K = gains.kd * dt + (gains.kp * dt**2 if form == "implicit" else 0.0)
        self._size = units * UNIT
        self._rng = np.random.default_rng(0)

    def __call__(self, state: Any, target: Any) -> poise.Command:
        """The command with a torque that is off by some units."""
        _, found = self._servo.explain(state, target)
        off = np.abs(self._K * found["acceleration"]) * self._rng.uniform(-1.0, 1.0, self._K.shape)
        return poise.Command(force=found["torque"] + self._size * off)


def dense(world: poise.World, form: str, dtype: str) -> poise.StablePD:
    """DF: the torques of stable PD by a dense solve, with the paper's gains."""
    how: dict[str, Any] = {"form": form, "method": "df", "dtype": dtype}
    return poise.StablePD(world, gains_of(world), root="held", embedded=False, **how)


def follow(
    clip: poise.Clip,
    dt: float,
    way: str,
    *,
    dtype: str = "float64",
    form: str = "spd",
    units: float = 0.0,
) -> Run:
    """Follow a clip.

    Args:
        clip: The motion.
        dt: Time step [s].
        way: "MABA", "DF" or "PD".
        dtype: Precision of the world, and of DF.
        form: Of stable PD.
        units: Rounding that is added to the torques of DF, in units of float32.
    """
    world = poise.World(clip.character, dt=dt, ground=False, contact=None, dtype=dtype)
    world.reset(clip.state(0.0))
    servo: Any = Tracker(world, form="pd" if way == "PD" else form)
    if way == "DF" and units:
        servo = Rounded(world, units, form)
    elif way == "DF":
        servo = dense(world, form, dtype)
    recording, _ = record_run(world, servo, clip, clip.duration, fps=min(1.0 / dt, 240.0))
    return Run(recording.time, recording.q)


def own_units(clip: poise.Clip, dt: float) -> float:
    """How many units of rounding our DF in float32 makes.

    Its torques are compared with those of float64 in the states of a run. Errors of u units that
    are uniform in [-u, u] have a median size of u / 2: twice the median is comparable to `Rounded`.

    Args:
        clip: The motion.
        dt: Time step [s].
    """
    world = poise.World(clip.character, dt=dt, ground=False, contact=None, dtype="float32")
    world.reset(clip.state(0.0))
    gains, drive = gains_of(world), Tracker(world)
    sizes = []
    for k in range(round(clip.duration / dt)):
        # numbers that float32 has, so that both precisions start from the same
        ahead, state = (k + 1) * dt, world.state
        target = poise.Target(_single(clip.q(ahead)), _single(clip.v(ahead)))
        (a, exact), (_, tau) = (
            poise.dynamics.stable_pd(
                world, state.q, state.v, target, gains.kp, gains.kd, dt, "df", "spd", dtype=dtype
            )
            for dtype in ("float64", "float32")
        )
        sizes.append(np.abs(tau - exact) / np.maximum(UNIT * np.abs(gains.kd * dt * a), 1e-12))
        world.step(drive(state, target))
    return float(2.0 * np.median(sizes))


def limb_error(clip: poise.Clip, link: str, run: Run) -> Floats:
    """Distance between where a link is and should be, relative to the root (k,) [m]."""
    index = [one.name for one in clip.character.links].index(link)
    return np.asarray(_link_errors(clip, run)[:, index])


def is_stable(clip: poise.Clip, run: Run) -> bool:
    """Whether a run reached its end with every link near its place."""
    if run.time[-1] < clip.duration - 0.1 or not np.isfinite(run.q).all():
        return False
    return bool(_link_errors(clip, run).max() < NEAR)


def largest_step(clip: poise.Clip, steps: Sequence[float], way: str, **options: Any) -> float:
    """The largest of some steps at which a way of following is stable; 0 if there is none [s].

    Args:
        clip: The motion.
        steps: Candidates [s].
        way: As of `follow`.
        options: As of `follow`.
    """
    for dt in sorted(steps, reverse=True):
        if is_stable(clip, follow(clip, dt, way, **options)):
            return dt
    return 0.0


def _link_errors(clip: poise.Clip, run: Run) -> Floats:
    """Distance of each link from its place, relative to the root, shape (k, nl) [m]."""
    at, _ = poise.dynamics.forward_kinematics(clip.character, run.q)
    goal, _ = poise.dynamics.forward_kinematics(clip.character, clip.q(run.time))
    return np.asarray(np.linalg.norm((at - at[:, :1]) - (goal - goal[:, :1]), axis=-1))


def _single(values: ArrayLike) -> Floats:
    """The nearest numbers of float32, as float64."""
    return np.asarray(np.asarray(values, dtype=np.float32), dtype=np.float64)
