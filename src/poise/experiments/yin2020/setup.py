"""What the experiments of yin2020 share: models, gains, methods, and the rows of its tables."""

from __future__ import annotations

import csv
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

import poise
from poise.control.gains import root_slices
from poise.model.scene import scene_of
from poise.simulation.controller import Requirements

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
    nv = scene_of(scene).nv
    kp, kd = np.full(nv, JOINTS[0]), np.full(nv, JOINTS[1])
    for at in root_slices(scene_of(scene)):
        kp[at], kd[at] = ROOT
    return poise.Gains(scene, kp, kd)


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
