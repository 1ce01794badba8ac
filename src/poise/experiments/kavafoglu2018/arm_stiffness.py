"""K4 to K7: the two-link arm under inverse dynamics: stiffness, target velocity, feedforward."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from poise.experiments.kavafoglu2018.arm import (
    BALL_AT,
    DT,
    Run,
    figure,
    kane,
    mean_error,
    pose_target,
    track,
    wave,
)
from poise.experiments.report import Claim, Item, Table
from poise.math.arrays import Progress

STIFFNESSES = (30.0, 100.0, 300.0, 1000.0, 3000.0)  # [1/s²]


def k4(progress: Progress) -> Item:
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
    rows = [[name, over[name], late[name], mean_error(moving[name])] for name in pose]
    columns = ["", "overshoot [%]", "delay [ms]", "mean error on the wave [degrees]"]
    item.tables = [Table("by stiffness", columns, rows)]
    item.figures = {"K4-pose": figure(pose, "a pose"), "K4-motion": figure(moving, "a motion")}
    return item


def k5(progress: Progress) -> Item:
    """Target velocity from the motion against zero."""
    item = Item(
        "K5", "Target velocity from the motion, or zero", "Figs. 3.14, 3.15", "Feedforward is off."
    )
    for stiffness in (500.0, 30.0):
        runs = {
            "velocity of the motion": track(kane(stiffness, feedforward=False), wave()),
            "zero": track(kane(stiffness, feedforward=False, target_velocity=False), wave()),
        }
        with_, without = (mean_error(run) for run in runs.values())
        item.claims.append(
            Claim(
                f"stiffness {stiffness:g}: far better tracking with the motion's velocity",
                "far better",
                f"{with_:.2f} against {without:.2f} degrees on average",
                "less than a half",
                with_ < 0.5 * without,
            )
        )
        item.figures[f"K5-{stiffness:g}"] = figure(runs, f"stiffness {stiffness:g}")
    return item


def k6(progress: Progress) -> Item:
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
    a, b = (mean_error(run) for run in still.values())
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
        "K6-still": figure(still, "target velocity 0"),
        "K6-moving": figure(moving, "target velocity of the motion", ball=True),
    }
    return item


def k7(progress: Progress) -> Item:
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
    item.figures = {"K7": figure(runs, "a motion, and a ball", ball=True)}
    return item


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
