"""K1 to K7: the two-link arm under PD and its variants, stable PD, and inverse dynamics."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import poise
from poise.experiments import figures
from poise.experiments.kavafoglu2018.arm import (
    BALL_AT,
    DT,
    Make,
    Run,
    arm,
    pose_target,
    statics,
    track,
    wave,
)
from poise.experiments.report import Claim, Item, Table

STIFF = (50.0, 3.0)  # kp [N·m/rad], kd [N·m·s/rad]: the thesis's largest
CRITICAL = (12.0, 1.6)  # ours: critically damped for the lower body
STIFFNESSES = (30.0, 100.0, 300.0, 1000.0, 3000.0)  # [1/s²]
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


def k1() -> Item:
    """Against PD: gravity leaves an error behind; ours has none."""
    pose, motion = pose_target(), wave()
    runs = {
        "PD, critically damped": track(pd(CRITICAL), pose, duration=12.0),
        "PD, stiff": track(pd(STIFF), pose, duration=12.0),
        "inverse dynamics, 200": track(kane(200.0), pose, duration=12.0),
    }
    moving = {
        "PD, stiff": track(pd(STIFF), motion),
        "inverse dynamics, 200": track(kane(200.0), motion),
    }
    item = Item(
        "K1",
        "Against PD",
        "Figs. 3.5 to 3.7",
        "A pose is held from hanging, and a wave is followed. PD with the thesis's largest gains, "
        "kp = 50 and kd = 3, and with softer ones that are critically damped for the lower body.",
    )
    for name, gains in (("PD, critically damped", CRITICAL), ("PD, stiff", STIFF)):
        rest, found = runs[name].angle[-1], statics(gains[0])
        off = np.degrees(runs[name].error[-1])
        apart = float(np.abs(rest - found).max())
        item.claims.append(
            Claim(
                f"{name}: what gravity leaves behind is what statics says",
                "a steady-state error",
                f"{off[0]:.2f} and {off[1]:.2f} degrees, {apart:.1e} rad from statics",
                "within 1e-6 rad",
                apart < 1e-6,
            )
        )
    left = float(np.abs(runs["inverse dynamics, 200"].error[-1]).max())
    item.claims.append(
        Claim("ours leaves none", "none", f"{left:.1e} rad", "below 1e-6 rad", left < 1e-6)
    )
    over = [100.0 * run.overshoot(0) for run in runs.values()]
    item.claims.append(
        Claim(
            "body A overshoots under PD, not under ours",
            "overshoots / does not",
            f"{over[1]:.1f} % / {over[2]:.2g} %",
            "over 5 % / below 0.1 %",
            over[1] > 5 and over[2] < 0.1,
        )
    )
    worse = _mean(moving["PD, stiff"]) / max(_mean(moving["inverse dynamics, 200"]), 1e-12)
    item.claims.append(
        Claim(
            "a moving target: errors of PD increase",
            "increase dramatically",
            f"{_mean(moving['PD, stiff']):.2f} degrees on average, {worse:.1e} x ours",
            "over 100 x ours",
            worse > 100.0,
        )
    )
    item.figures = {"K1-pose": _figure(runs, "a pose"), "K1-motion": _figure(moving, "a motion")}
    return item


def k2() -> Item:
    """Against PD with gravity compensation and bubble-up."""
    runs = {
        "PD, compensated": track(compensated(STIFF), pose_target()),
        "inverse dynamics, 200": track(kane(200.0), pose_target()),
    }
    moving = {
        "PD, compensated": track(compensated(STIFF), wave()),
        "inverse dynamics, 200": track(kane(200.0), wave()),
    }
    left = float(np.degrees(np.abs(runs["PD, compensated"].error[-1]).max()))
    wobble = float(np.degrees(np.abs(moving["PD, compensated"].error[:, 0]).max()))
    ours = float(np.degrees(np.abs(moving["inverse dynamics, 200"].error).max()))
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
    item.figures = {"K2-pose": _figure(runs, "a pose"), "K2-motion": _figure(moving, "a motion")}
    return item


def k3() -> Item:
    """Against stable PD."""
    pose = {
        "stable PD": track(spd(STIFF), pose_target()),
        "inverse dynamics, 200": track(kane(200.0), pose_target()),
    }
    moving = {
        "stable PD": track(spd(STIFF), wave()),
        "inverse dynamics, 200": track(kane(200.0), wave()),
    }
    sag = float(np.degrees(np.abs(pose["stable PD"].error[-1]).max()))
    mean, ours = _mean(moving["stable PD"]), _mean(moving["inverse dynamics, 200"])
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
    item.figures = {"K3-pose": _figure(pose, "a pose"), "K3-motion": _figure(moving, "a motion")}
    return item


def k4() -> Item:
    """Stiffness 30 to 3000: always critically damped."""
    plain = {"target_velocity": False, "feedforward": False}
    pose = {f"stiffness {s:g}": track(kane(s, **plain), pose_target()) for s in STIFFNESSES}
    moving = {f"stiffness {s:g}": track(kane(s, **plain), wave()) for s in STIFFNESSES}
    over = {name: 100.0 * max(run.overshoot(0), run.overshoot(1)) for name, run in pose.items()}
    late = {name: 1e3 * _delay(run) for name, run in moving.items()}
    item = Item(
        "K4",
        "One number for stiffness",
        "Figs. 3.12, 3.13",
        "Target velocity and feedforward are off. Delay: the shift in time at which a run "
        "of the wave is nearest to it.",
    )
    worst = max(over.values())
    delays = list(late.values())
    item.claims = [
        Claim(
            "critically damped at every stiffness",
            "always",
            f"overshoot at most {worst:.2g} %",
            "below 1 %",
            worst < 1.0,
        ),
        Claim(
            "low stiffness loses timing",
            "loses timing",
            f"{delays[0]:.0f} ms late at 30, {delays[-1]:.0f} ms at 3000",
            "late by less, the stiffer",
            all(a > b for a, b in pairwise(delays)),
        ),
    ]
    rows = [[name, over[name], late[name], _mean(moving[name])] for name in pose]
    columns = ["", "overshoot [%]", "delay [ms]", "mean error on the wave [degrees]"]
    item.tables = [Table("by stiffness", columns, rows)]
    item.figures = {"K4-pose": _figure(pose, "a pose"), "K4-motion": _figure(moving, "a motion")}
    return item


def k5() -> Item:
    """Target velocity from the motion against zero."""
    item = Item(
        "K5", "Target velocity from the motion, or zero", "Figs. 3.14, 3.15", "Feedforward is off."
    )
    for stiffness in (500.0, 30.0):
        runs = {
            "velocity of the motion": track(kane(stiffness, feedforward=False), wave()),
            "zero": track(kane(stiffness, feedforward=False, target_velocity=False), wave()),
        }
        with_, without = (_mean(run) for run in runs.values())
        item.claims.append(
            Claim(
                f"stiffness {stiffness:g}: far better tracking with the motion's velocity",
                "far better",
                f"{with_:.2f} against {without:.2f} degrees on average",
                "less than a half",
                with_ < 0.5 * without,
            )
        )
        item.figures[f"K5-{stiffness:g}"] = _figure(runs, f"stiffness {stiffness:g}")
    return item


def k6() -> Item:
    """Feedforward alone does not help; with the target velocity it is almost exact."""
    still = {
        "feedforward": track(kane(30.0, target_velocity=False), wave()),
        "without": track(kane(30.0, target_velocity=False, feedforward=False), wave()),
    }
    moving = {
        "feedforward": track(kane(30.0), wave(), ball=True),
        "without": track(kane(30.0, feedforward=False), wave(), ball=True),
    }
    calm = track(kane(30.0), wave())
    exact = float(np.degrees(np.abs(calm.error).max()))
    a, b = (_mean(run) for run in still.values())
    item = Item(
        "K6",
        "Feedforward acceleration",
        "Figs. 3.16, 3.17",
        f"Stiffness 30. The ball comes at {BALL_AT:g} s.",
    )
    item.claims = [
        Claim(
            "alone, with target velocity 0, it does not help",
            "does not increase the quality",
            f"{a:.1f} degrees on average with it, {b:.1f} without",
            "gains less than a third",
            a > 0.67 * b,
        ),
        Claim(
            "with the target velocity it is almost exact, without a ball",
            "almost identical",
            f"at most {exact:.1e} degrees",
            "below 0.1 degrees",
            exact < 0.1,
        ),
    ]
    item.figures = {
        "K6-still": _figure(still, "target velocity 0"),
        "K6-moving": _figure(moving, "target velocity of the motion", ball=True),
    }
    return item


def k7() -> Item:
    """Stiffness 30 against 3000 with both: the same tracking, faster recovery from the ball."""
    runs = {f"stiffness {s:g}": track(kane(s), wave(), ball=True) for s in (30.0, 3000.0)}
    before = [
        float(np.degrees(np.abs(r.error[r.time < BALL_AT - 0.1]).max())) for r in runs.values()
    ]
    back = [_recovery(run) for run in runs.values()]
    item = Item(
        "K7",
        "Stiffness 30 against 3000",
        "Fig. 3.18",
        "Target velocity and feedforward on; recovery: how long after the ball an error "
        "of more than 1 degree remains.",
    )
    item.claims = [
        Claim(
            "the same tracking without the ball",
            "does not change",
            f"at most {before[0]:.1e} and {before[1]:.1e} degrees",
            "both below 0.1 degrees",
            max(before) < 0.1,
        ),
        Claim(
            "the stiff one recovers faster",
            "much faster",
            f"{back[0]:.2f} s and {back[1]:.2f} s",
            "in less than a third",
            back[1] < back[0] / 3.0,
        ),
    ]
    item.figures = {"K7": _figure(runs, "a motion, and a ball", ball=True)}
    return item


def largest_pd(step: float = DT) -> float:
    """The largest kp at which PD with the thesis's ratio kd / kp stays stable [N·m/rad]."""
    character, ratio = arm(), STIFF[1] / STIFF[0]
    low, high = 1.0, 1e4
    for _ in range(30):
        middle = float(np.sqrt(low * high))
        run = track(pd((middle, ratio * middle)), pose_target(), dt=step)
        calm = np.isfinite(run.angle).all() and np.abs(run.error[-50:]).max() < 2.0
        low, high = (middle, high) if calm and character.nv else (low, middle)
    return low


def _mean(run: Run) -> float:
    """Mean error of both bodies [degrees]; infinite if it diverged."""
    mean = float(np.degrees(np.abs(run.error).mean()))
    return mean if np.isfinite(mean) else float("inf")


def _delay(run: Run) -> float:
    """By how much a run is late [s]."""
    shifts = np.arange(0, 60)
    k = len(run.time)
    fits = [np.abs(run.angle[s:] - run.wanted[: k - s]).mean() for s in shifts]
    return float(shifts[int(np.argmin(fits))] * DT)


def _recovery(run: Run) -> float:
    """How long after the ball an error of more than a degree remains [s]."""
    off = np.degrees(np.abs(run.error).max(axis=1)) > 1.0
    last = run.time[off & (run.time > BALL_AT - 0.1)]
    return float(last[-1] - BALL_AT) if len(last) else 0.0


def _figure(runs: dict[str, Run], title: str, ball: bool = False) -> bytes:
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
