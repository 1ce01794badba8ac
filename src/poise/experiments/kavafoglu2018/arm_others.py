"""K1, K2, K3: the two-link arm under PD, PD with its additions, and stable PD, against ours."""

from __future__ import annotations

import numpy as np

import poise
from poise.experiments.kavafoglu2018.arm import DT, Run, arm, pose_target, statics, track, wave
from poise.experiments.kavafoglu2018.arm_runs import (
    CRITICAL,
    STIFF,
    compensated,
    figure,
    kane,
    mean_error,
    pd,
    spd,
)
from poise.experiments.report import Claim, Item
from poise.math.arrays import Progress

SOFT_PD, STIFF_PD, OURS = "PD, critically damped", "PD, stiff", "inverse dynamics, 200"


def k1(progress: Progress) -> Item:
    """Against PD: gravity leaves an error behind; ours has none."""
    pose, motion = pose_target(), wave()
    runs = {
        SOFT_PD: track(pd(CRITICAL), pose, duration=12.0),
        STIFF_PD: track(pd(STIFF), pose, duration=12.0),
        OURS: track(kane(200.0), pose, duration=12.0),
    }
    progress(0.5)
    moving = {STIFF_PD: track(pd(STIFF), motion), OURS: track(kane(200.0), motion)}
    bound = poise.check_gains(arm(), DT, kp=STIFF[0], kd=STIFF[1], form="pd")
    item = Item(
        "K1",
        "Against PD",
        "Figs. 3.5 to 3.7",
        "A pose is held from hanging, and a wave is followed. PD with the thesis's largest gains, "
        "kp = 50 and kd = 3, and with softer ones that are critically damped for the lower body. "
        "For the stretched arm the stiff ones are beyond what a step of 1/100 s allows, "
        f"{float(bound.margin):.2f} of them would do (check_gains), so it shakes where the wave "
        "begins and ends stretched; the thesis's engine damps by itself.",
    )
    item.claims = [
        _rests(SOFT_PD, runs[SOFT_PD], CRITICAL[0]),
        _rests(STIFF_PD, runs[STIFF_PD], STIFF[0]),
        _leaves_none(runs[OURS]),
        _overshoots(runs[STIFF_PD], runs[OURS]),
        _worse_when_moving(moving[STIFF_PD], moving[OURS]),
    ]
    item.figures = {"K1-pose": figure(runs, "a pose"), "K1-motion": figure(moving, "a motion")}
    return item


def _rests(name: str, run: Run, kp: float) -> Claim:
    off = np.degrees(run.error[-1])
    apart = float(np.abs(run.angle[-1] - statics(kp)).max())
    return Claim(
        f"{name}: what gravity leaves behind is what statics says",
        "a steady-state error",
        f"{off[0]:.2f} and {off[1]:.2f} degrees, {apart:.1e} rad from statics",
        "within 1e-6 rad",
        apart < 1e-6,
    )


def _leaves_none(run: Run) -> Claim:
    left = float(np.abs(run.error[-1]).max())
    return Claim("ours leaves none", "none", f"{left:.1e} rad", "below 1e-6 rad", left < 1e-6)


def _overshoots(run: Run, ours: Run) -> Claim:
    over = 100.0 * run.overshoot(0), 100.0 * ours.overshoot(0)
    return Claim(
        "body A overshoots under PD, not under ours",
        "overshoots / does not",
        f"{over[0]:.1f} % / {over[1]:.2g} %",
        "over 5 % / below 0.1 %",
        over[0] > 5.0 and over[1] < 0.1,
    )


def _worse_when_moving(run: Run, ours: Run) -> Claim:
    factor = mean_error(run) / max(mean_error(ours), 1e-12)
    return Claim(
        "a moving target: errors of PD increase",
        "increase dramatically",
        f"{mean_error(run):.2f} degrees on average, {factor:.1e} x ours",
        "over 100 x ours",
        factor > 100.0,
    )


def k2(progress: Progress) -> Item:
    """Against PD with gravity compensation and bubble-up."""
    runs = {
        "PD, compensated": track(compensated(STIFF), pose_target()),
        OURS: track(kane(200.0), pose_target()),
    }
    moving = {
        "PD, compensated": track(compensated(STIFF), wave()),
        OURS: track(kane(200.0), wave()),
    }
    left = float(np.degrees(np.abs(runs["PD, compensated"].error[-1]).max()))
    wobble = float(np.degrees(np.abs(moving["PD, compensated"].error[:, 0]).max()))
    ours = float(np.degrees(np.abs(moving[OURS].error).max()))
    item = Item(
        "K2",
        "Against PD with gravity compensation and torque bubble-up",
        "Figs. 3.8, 3.9",
        "The same gains, kp = 50 and kd = 3, with both additions.",
    )
    item.claims = [
        Claim(
            "no steady-state error",
            "none",
            f"{left:.1e} degrees",
            "below 0.01 degrees",
            left < 0.01,
        ),
        Claim(
            "body A still wobbles on a moving target",
            "wobbles quite significantly",
            f"up to {wobble:.2f} degrees, ours {ours:.1e}",
            "over 1 degree, and over 100 x ours",
            wobble > 1.0 and wobble > 100.0 * ours,
        ),
    ]
    item.figures = {"K2-pose": figure(runs, "a pose"), "K2-motion": figure(moving, "a motion")}
    return item


def k3(progress: Progress) -> Item:
    """Against stable PD."""
    pose = {
        "stable PD": track(spd(STIFF), pose_target()),
        OURS: track(kane(200.0), pose_target()),
    }
    moving = {
        "stable PD": track(spd(STIFF), wave()),
        OURS: track(kane(200.0), wave()),
    }
    sag = float(np.degrees(np.abs(pose["stable PD"].error[-1]).max()))
    mean, ours = mean_error(moving["stable PD"]), mean_error(moving[OURS])
    item = Item(
        "K3",
        "Against stable PD",
        "Figs. 3.10, 3.11",
        "Stable PD in the paper's form, kp = 50 and kd = 3.",
    )
    item.claims = [
        Claim(
            "stable PD sags: it is PD on the state at the end of the step",
            "-",
            f"{sag:.2f} degrees",
            "over 0.5 degrees",
            sag > 0.5,
        ),
        Claim(
            "ours tracks a motion better",
            "better",
            f"{mean:.2f} degrees on average, ours {ours:.1e}",
            "over 100 x",
            mean > 100.0 * ours,
        ),
    ]
    item.figures = {"K3-pose": figure(pose, "a pose"), "K3-motion": figure(moving, "a motion")}
    return item
