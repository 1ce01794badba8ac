"""What the experiments of yin2020 share: gains, methods, and a motion that is tracked."""

from __future__ import annotations

import contextlib
import csv
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

import poise
from poise.arrays import Floats
from poise.control.gains import root_slices

ROOT = (20000.0, 2000.0)  # kp, kd of the root
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
    text = resources.files(__package__).joinpath("paper.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    return [Case(r["model"], r["motion"], {m: float(r[m]) for m in METHODS}) for r in rows]


def clip_of(model: str, motion: str) -> poise.Clip:
    """The motion on the model."""
    if motion == "snake-slither":
        from poise.motion.slither import slither

        return slither(poise.load_character(model))
    return poise.load_clip(motion, poise.load_character(model))


def gains_of(scene: Any) -> poise.Gains:
    """The gains of the paper's section 5."""
    nv = poise.scene.scene_of(scene).nv
    kp, kd = np.full(nv, JOINTS[0]), np.full(nv, JOINTS[1])
    for at in root_slices(poise.scene.scene_of(scene)):
        kp[at], kd[at] = ROOT
    return poise.Gains(scene, kp, kd)


class Tracker:
    """A controller that hands a drive to the world: method, form, embedded or not."""

    takes_rows = True

    def __init__(
        self, scene: Any, method: str = "maba", form: str = "spd", embedded: bool = True
    ) -> None:
        self.gains = gains_of(scene)
        self.how = {"method": method, "form": form, "embedded": embedded}

    def __call__(self, state: Any, target: Any) -> poise.Command:
        """The command for a target."""
        return poise.Command(drive=poise.Drive(self.gains, target, **self.how))


def tracked(
    clip: poise.Clip, dt: float, name: str, *, dtype: str = "float64", form: str = "spd"
) -> tuple[Floats, Floats]:
    """Follow a clip in the air, as the paper does.

    Args:
        clip: The motion.
        dt: Time step [s].
        name: "MABA" embedded; "DF" standalone, as in the paper: torques come from outside and the
            dynamics solve again; or "PD", explicit.
        dtype: Precision of the world.
        form: Of stable PD.

    Returns:
        Times (k,) [s] and positions (k, nq); a run that diverges ends there.
    """
    world = poise.World(clip.character, dt=dt, ground=False, contact=None, dtype=dtype)
    world.reset(clip.state(0.0))
    servo: Any = Tracker(world, form="pd" if name == "PD" else form)
    if name == "DF":
        servo = poise.StablePD(
            world, gains_of(world), form=form, method="df", embedded=False, dtype=dtype
        )
    recording = poise.Recording(world, fps=min(1.0 / dt, 240.0))
    with contextlib.suppress(poise.Diverged):
        poise.run(world, servo, clip, clip.duration, record=recording)
    return recording.time, recording.q


def limb_error(clip: poise.Clip, link: str, time: Floats, q: Floats) -> Floats:
    """Distance between where a link is and should be, relative to the root (k,) [m]."""
    index = [one.name for one in clip.character.links].index(link)
    at, _ = poise.dynamics.forward_kinematics(clip.character, q)
    goal, _ = poise.dynamics.forward_kinematics(clip.character, clip.q(time))
    apart = (at[:, index] - at[:, 0]) - (goal[:, index] - goal[:, 0])
    return np.asarray(np.linalg.norm(apart, axis=-1))


def is_stable(clip: poise.Clip, time: Floats, q: Floats) -> bool:
    """Whether a run reached its end with every link within half a metre of its place."""
    if time[-1] < clip.duration - 0.1 or not np.isfinite(q).all():
        return False
    at, _ = poise.dynamics.forward_kinematics(clip.character, q)
    goal, _ = poise.dynamics.forward_kinematics(clip.character, clip.q(time))
    apart = np.linalg.norm((at - at[:, :1]) - (goal - goal[:, :1]), axis=-1)
    return bool(apart.max() < 0.5)
