"""Controllers of the arm, and what the items say of its runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import poise
from poise.experiments import figures
from poise.experiments.kavafoglu2018.arm import BALL_AT, Make, Run

STIFF = (50.0, 3.0)  # kp [N·m/rad], kd [N·m·s/rad]: the thesis's largest
CRITICAL = (12.0, 1.6)  # ours: critically damped for the lower body
BODIES = ("A, upper", "B, lower")


def pd(gains: tuple[float, float], **options: Any) -> Make:
    """PD with torque gains."""
    return lambda world: poise.PD(world, poise.Gains(world, *gains), **options)


def compensated(gains: tuple[float, float]) -> Make:
    """PD with gravity compensation and torque bubble-up."""
    return pd(gains, gravity_compensation=True, bubble_up=True)


def spd(gains: tuple[float, float]) -> Make:
    """Stable PD, the paper's form."""
    return lambda world: poise.StablePD(world, poise.Gains(world, *gains), form="spd")


def kane(stiffness: float, **options: Any) -> Make:
    """Inverse dynamics."""
    return lambda world: poise.InverseDynamics(world, stiffness, **options)


def mean_error(run: Run) -> float:
    """Mean error of both bodies [degrees]; infinite if it diverged."""
    mean = float(np.degrees(np.abs(run.error).mean()))
    return mean if np.isfinite(mean) else float("inf")


def figure(runs: dict[str, Run], title: str, ball: bool = False) -> bytes:
    first = next(iter(runs.values()))
    panels = {}
    for k, body in enumerate(BODIES):
        curves: dict[str, Any] = {
            name: (run.time, np.degrees(run.angle[:, k])) for name, run in runs.items()
        }
        curves["wanted"] = (first.time, np.degrees(first.wanted[:, k]))
        panels[body] = curves
    marks = (BALL_AT,) if ball else ()
    return figures.lines(panels, y="angle [degrees]", title=title, dashed=("wanted",), marks=marks)
