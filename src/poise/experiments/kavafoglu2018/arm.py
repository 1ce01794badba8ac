"""K1 to K7: the two-link arm of the thesis. It tracks a pose or a motion; a ball falls onto it.

Two cylinders of 30 cm and 1.54 kg in a vertical plane; a ball of 1 kg from 1 m above; steps of
1/100 s. The pose, the motion (the clip "two-link-wave") and the moment of the ball are ours: the
thesis shows them in figures only. Angles are those of the bodies in the world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import poise
from poise.experiments import figures
from poise.experiments.report import Item, experiment
from poise.math.arrays import Floats, Progress
from poise.simulation.command import Command

DT = 1 / 100
DURATION = 5.0
POSE = (-1.0, -1.2)  # shoulder, elbow [rad]
BALL_AT = 3.0  # [s]
BALL_HEIGHT, BALL_RADIUS, BALL_MASS = 1.0, 0.05, 1.0

Make = Callable[[poise.World], Callable[[Any, Any], Command]]


@dataclass(frozen=True)
class Run:
    """Angles of the bodies A (upper) and B (lower) in the world over time.

    Attributes:
        time: [s], shape (k,).
        angle: [rad], shape (k, 2).
        target: [rad], shape (k, 2).
        torque: [N·m], shape (k, 2).
    """

    time: Floats
    angle: Floats
    target: Floats
    torque: Floats

    @property
    def error(self) -> Floats:
        """[rad], shape (k, 2)."""
        return self.angle - self.target

    def overshoot(self, body: int, until: float = BALL_AT) -> float:
        """How far a body goes beyond its pose, as a share of the way; before the ball comes."""
        early = self.time <= until
        way = self.target[-1, body] - self.angle[0, body]
        done = (self.angle[early, body] - self.angle[0, body]) / way
        return max(float(done.max()) - 1.0, 0.0)


def arm() -> poise.Character:
    """The arm."""
    return poise.load_character("two-link")


def pose_target() -> poise.Target:
    """The pose to hold."""
    return poise.Target(np.array(POSE))


def wave() -> poise.Clip:
    """The motion to follow."""
    return poise.load_clip("two-link-wave")


def track(
    make: Make, motion: Any, *, ball: bool = False, dt: float = DT, duration: float = DURATION
) -> Run:
    """Track a pose or a motion; an unstable run ends where it diverges.

    Args:
        make: Makes the controller, from the world.
        motion: A Target to hold, or a Clip.
        ball: Drop the ball.
        dt: Time step [s].
        duration: [s].
    """
    sphere = poise.Shape("sphere", (BALL_RADIUS,))
    projectile = poise.free_object("ball", sphere, mass=BALL_MASS)
    world = poise.World(arm(), dt=dt, ground=False, projectiles=[projectile], self_collision=False)
    clip = isinstance(motion, poise.Clip)
    if clip:
        world.reset(motion.state(0.0))
    controller = make(world)
    goal = motion.q if clip else (lambda t: motion.q)
    rows = [(0.0, *world.state.q, *goal(0.0), 0.0, 0.0)]
    try:
        for k in range(round(duration / dt)):
            if ball and k == round((BALL_AT - np.sqrt(2.0 * BALL_HEIGHT / 9.81)) / dt):
                _drop(world, goal(BALL_AT))
            ahead = (k + 1) * dt
            # before a ball: what the controller asks for is known for the present
            target = motion.target(ahead, past=dt) if clip else motion
            world.step(controller(world.state, target))
            rows.append((ahead, *world.state.q, *goal(ahead), *world.torque))
    except poise.Diverged:
        rows.append((ahead, *[np.nan] * 2, *goal(ahead), 0.0, 0.0))
    table = np.array(rows)
    # in the world: the lower body turns with the upper one
    angle, reference = table[:, 1:3].copy(), table[:, 3:5].copy()
    angle[:, 1] += angle[:, 0]
    reference[:, 1] += reference[:, 0]
    return Run(table[:, 0], angle, reference, table[:, 5:7])


def statics(kp: float) -> Floats:
    """World angles at which PD of stiffness kp [N·m/rad] rests under gravity, (2,) [rad].

    kp (q̄ - q) = g(q), by Newton's method: what a simulation of PD must come to.
    """
    character, q = arm(), np.array(POSE)

    def weight(at: Floats) -> Floats:
        return np.asarray(poise.dynamics.bias_force(character, at, np.zeros(2)))

    for _ in range(50):
        h = 1e-6
        slope = np.column_stack(
            [(weight(q + h * e) - weight(q - h * e)) / (2.0 * h) for e in np.eye(2)]
        )
        q = q - np.linalg.solve(slope + kp * np.eye(2), weight(q) - kp * (np.array(POSE) - q))
    return np.array([q[0], q[0] + q[1]])


def _drop(world: poise.World, q: Floats) -> None:
    """Let the ball go so that it meets the middle of the lower body."""
    at, turn = poise.dynamics.forward_kinematics(world, q)
    middle = at[1] + poise.math.rotation.quat_matrix(turn[1]) @ np.array([0.0, 0.0, -0.15])
    world.throw(middle + [0.0, 0.0, BALL_HEIGHT], (0.0, 0.0, 0.0))


# ---- controllers of the arm, and summaries of its runs

STIFF = (50.0, 3.0)  # kp [N·m/rad], kd [N·m·s/rad]: the thesis's largest
CRITICAL = (12.0, 1.6)  # ours: critically damped for the lower body
ADDITIONS = {"gravity_compensation": True, "bubble_up": True}  # to PD
BODIES = ("A, upper", "B, lower")


def pd(gains: tuple[float, float], **options: Any) -> Make:
    """PD with torque gains."""
    return lambda world: poise.PD(world, poise.Gains(world, *gains), **options)


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


def worst_error(run: Run) -> float:
    """The larger error of both bodies at the end [degrees]."""
    return float(np.degrees(np.abs(run.error[-1]).max()))


def figures_of(key: str, pose: dict[str, Run], moving: dict[str, Run]) -> dict[str, bytes]:
    """Figures of runs of the pose and of the wave, by their names."""
    return {f"{key}-pose": figure(pose, "a pose"), f"{key}-motion": figure(moving, "a motion")}


def figure(runs: dict[str, Run], title: str, ball: bool = False) -> bytes:
    """Angles of both bodies over time, PNG."""
    first = next(iter(runs.values()))
    panels = {}
    for k, body in enumerate(BODIES):
        curves: dict[str, Any] = {
            name: (run.time, np.degrees(run.angle[:, k])) for name, run in runs.items()
        }
        curves["target"] = (first.time, np.degrees(first.target[:, k]))
        panels[body] = curves
    marks = (BALL_AT,) if ball else ()
    return figures.lines(panels, y="angle [degrees]", title=title, dashed=("target",), marks=marks)


# ---- K1, K2, K3: the two-link arm under PD, PD with its additions, and stable PD, against ours

SOFT_PD, STIFF_PD, OURS = "PD, critically damped", "PD, stiff", "inverse dynamics, 200"


@experiment("K1", "Against PD", "Figs. 3.5 to 3.7")
def k1(item: Item, progress: Progress) -> None:
    """A pose is held from hanging, and a wave is followed: gravity leaves an error behind, ours has
    none. PD with the thesis's largest gains, kp = 50 and kd = 3, and with softer ones that are
    critically damped for the lower body.
    """
    pose = {
        SOFT_PD: track(pd(CRITICAL), pose_target(), duration=12.0),
        STIFF_PD: track(pd(STIFF), pose_target(), duration=12.0),
        OURS: track(kane(200.0), pose_target(), duration=12.0),
    }
    progress(0.5)
    moving = {STIFF_PD: track(pd(STIFF), wave()), OURS: track(kane(200.0), wave())}
    bound = poise.check_gains(arm(), DT, kp=STIFF[0], kd=STIFF[1], form="pd")
    item.text += (
        " For the stretched arm the stiff ones are beyond what a step of 1/100 s allows, "
        f"{float(bound.margin):.2f} of them would do (check_gains), so it shakes where the wave "
        "begins and ends stretched; the thesis's engine damps by itself."
    )
    for name, kp in ((SOFT_PD, CRITICAL[0]), (STIFF_PD, STIFF[0])):
        off = np.degrees(pose[name].error[-1])
        difference = float(np.abs(pose[name].angle[-1] - statics(kp)).max())
        item.claim(
            f"{name}: what gravity leaves behind is what statics says",
            "a steady-state error",
            f"{off[0]:.2f} and {off[1]:.2f} degrees, {difference:.1e} rad from statics",
            "within 1e-6 rad",
            difference < 1e-6,
        )
    left = float(np.abs(pose[OURS].error[-1]).max())
    item.claim("ours leaves none", "none", f"{left:.1e} rad", "below 1e-6 rad", left < 1e-6)
    over, ours = (100.0 * pose[name].overshoot(0) for name in (STIFF_PD, OURS))
    item.claim(
        "body A overshoots under PD, not under ours",
        "overshoots / does not",
        f"{over:.1f} % / {ours:.2g} %",
        "over 5 % / below 0.1 %",
        over > 5.0 and ours < 0.1,
    )
    mean = mean_error(moving[STIFF_PD])
    factor = mean / max(mean_error(moving[OURS]), 1e-12)
    item.claim(
        "a moving target: errors of PD increase",
        "increase dramatically",
        f"{mean:.2f} degrees on average, {factor:.1e} x ours",
        "over 100 x ours",
        factor > 100.0,
    )
    item.figures = figures_of("K1", pose, moving)


@experiment("K2", "Against PD with gravity compensation and torque bubble-up", "Figs. 3.8, 3.9")
def k2(item: Item, progress: Progress) -> None:
    """The same gains, kp = 50 and kd = 3, with both additions."""
    pose, moving = _against_ours("PD, compensated", pd(STIFF, **ADDITIONS))
    left = worst_error(pose["PD, compensated"])
    item.claim("no steady-state error", "none", f"{left:.1e} degrees", "below 0.01", left < 0.01)
    wobble = float(np.degrees(np.abs(moving["PD, compensated"].error[:, 0]).max()))
    ours = float(np.degrees(np.abs(moving[OURS].error).max()))
    item.claim(
        "body A still wobbles on a moving target",
        "wobbles quite significantly",
        f"up to {wobble:.2f} degrees, ours {ours:.1e}",
        "over 1 degree, and over 100 x ours",
        wobble > 1.0 and wobble > 100.0 * ours,
    )
    item.figures = figures_of("K2", pose, moving)


@experiment("K3", "Against stable PD", "Figs. 3.10, 3.11")
def k3(item: Item, progress: Progress) -> None:
    """Stable PD in the paper's form, kp = 50 and kd = 3."""
    pose, moving = _against_ours("stable PD", spd(STIFF))
    sag = worst_error(pose["stable PD"])
    item.claim(
        "stable PD sags: it is PD on the state at the end of the step",
        "-",
        f"{sag:.2f} degrees",
        "over 0.5 degrees",
        sag > 0.5,
    )
    mean, ours = mean_error(moving["stable PD"]), mean_error(moving[OURS])
    item.claim(
        "ours tracks a motion better",
        "better",
        f"{mean:.2f} degrees on average, ours {ours:.1e}",
        "over 100 x",
        mean > 100.0 * ours,
    )
    item.figures = figures_of("K3", pose, moving)


def _against_ours(name: str, make: Make) -> tuple[dict[str, Run], dict[str, Run]]:
    """Runs of a controller and of ours: of the pose, and of the wave."""
    both = {name: make, OURS: kane(200.0)}
    pose = {key: track(one, pose_target()) for key, one in both.items()}
    return pose, {key: track(one, wave()) for key, one in both.items()}


# ---- K4 to K7: inverse dynamics: stiffness, target velocity, feedforward

STIFFNESSES = (30.0, 100.0, 300.0, 1000.0, 3000.0)  # [1/s²]


@experiment("K4", "One number for stiffness", "Figs. 3.12, 3.13")
def k4(item: Item, progress: Progress) -> None:
    """Stiffness 30 to 3000: always critically damped. Target velocity and feedforward are off.
    Delay: the shift in time at which a run of the wave is nearest to it.
    """
    plain = {"target_velocity": False, "feedforward": False}
    pose = {f"stiffness {s:g}": track(kane(s, **plain), pose_target()) for s in STIFFNESSES}
    moving = {f"stiffness {s:g}": track(kane(s, **plain), wave()) for s in STIFFNESSES}
    over = {name: 100.0 * max(run.overshoot(0), run.overshoot(1)) for name, run in pose.items()}
    late = {name: 1e3 * _delay(run) for name, run in moving.items()}
    worst, delays = max(over.values()), list(late.values())
    item.claim(
        "critically damped at every stiffness",
        "always",
        f"overshoot at most {worst:.2g} %",
        "below 1 %",
        worst < 1.0,
    )
    item.claim(
        "low stiffness loses timing",
        "loses timing",
        f"{delays[0]:.0f} ms late at 30, {delays[-1]:.0f} ms at 3000",
        "late by less, the stiffer",
        all(a > b for a, b in pairwise(delays)),
    )
    rows = [[name, over[name], late[name], mean_error(moving[name])] for name in pose]
    columns = ["", "overshoot [%]", "delay [ms]", "mean error on the wave [degrees]"]
    item.table("by stiffness", columns, rows)
    item.figures = figures_of("K4", pose, moving)


@experiment("K5", "Target velocity from the motion, or zero", "Figs. 3.14, 3.15")
def k5(item: Item, progress: Progress) -> None:
    """Target velocity from the motion against zero. Feedforward is off."""
    for stiffness in (500.0, 30.0):
        runs = {
            "velocity of the motion": track(kane(stiffness, feedforward=False), wave()),
            "zero": track(kane(stiffness, feedforward=False, target_velocity=False), wave()),
        }
        with_, without = (mean_error(run) for run in runs.values())
        item.claim(
            f"stiffness {stiffness:g}: far better tracking with the motion's velocity",
            "far better",
            f"{with_:.2f} against {without:.2f} degrees on average",
            "less than a half",
            with_ < 0.5 * without,
        )
        item.figures[f"K5-{stiffness:g}"] = figure(runs, f"stiffness {stiffness:g}")


@experiment("K6", "Feedforward acceleration", "Figs. 3.16, 3.17")
def k6(item: Item, progress: Progress) -> None:
    """Feedforward alone does not help; with the target velocity it is almost exact. Stiffness 30.
    The ball comes at {BALL_AT:g} s.
    """
    still = {
        "feedforward": track(kane(30.0, target_velocity=False), wave()),
        "without": track(kane(30.0, target_velocity=False, feedforward=False), wave()),
    }
    moving = {
        "feedforward": track(kane(30.0), wave(), ball=True),
        "without": track(kane(30.0, feedforward=False), wave(), ball=True),
    }
    exact = float(np.degrees(np.abs(track(kane(30.0), wave()).error).max()))
    a, b = (mean_error(run) for run in still.values())
    item.claim(
        "alone, with target velocity 0, it does not help",
        "does not increase the quality",
        f"{a:.1f} degrees on average with it, {b:.1f} without",
        "gains less than a third",
        a > 0.67 * b,
    )
    item.claim(
        "with the target velocity it is almost exact, without a ball",
        "almost identical",
        f"at most {exact:.1e} degrees",
        "below 0.1 degrees",
        exact < 0.1,
    )
    item.figures = {
        "K6-still": figure(still, "target velocity 0"),
        "K6-moving": figure(moving, "target velocity of the motion", ball=True),
    }


@experiment("K7", "Stiffness 30 against 3000", "Fig. 3.18")
def k7(item: Item, progress: Progress) -> None:
    """The same tracking, and faster recovery from the ball. Target velocity and feedforward are on;
    recovery: how long after the ball an error of more than 1 degree remains.
    """
    runs = {f"stiffness {s:g}": track(kane(s), wave(), ball=True) for s in (30.0, 3000.0)}
    before = [
        float(np.degrees(np.abs(r.error[r.time < BALL_AT - 0.1]).max())) for r in runs.values()
    ]
    back = [_recovery(run) for run in runs.values()]
    item.claim(
        "the same tracking without the ball",
        "does not change",
        f"at most {before[0]:.1e} and {before[1]:.1e} degrees",
        "both below 0.1 degrees",
        max(before) < 0.1,
    )
    item.claim(
        "the stiff one recovers faster",
        "much faster",
        f"{back[0]:.2f} s and {back[1]:.2f} s",
        "in less than a third",
        back[1] < back[0] / 3.0,
    )
    item.figures = {"K7": figure(runs, "a motion, and a ball", ball=True)}


def _delay(run: Run) -> float:
    """By how much a run is late [s]."""
    shifts = np.arange(0, 60)
    k = len(run.time)
    fits = [np.abs(run.angle[s:] - run.target[: k - s]).mean() for s in shifts]
    return float(shifts[int(np.argmin(fits))] * DT)


def _recovery(run: Run) -> float:
    """How long after the ball an error of more than a degree remains [s]."""
    off = np.degrees(np.abs(run.error).max(axis=1)) > 1.0
    last = run.time[off & (run.time > BALL_AT - 0.1)]
    return float(last[-1] - BALL_AT) if len(last) else 0.0
