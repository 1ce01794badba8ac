"""The two-link arm of the thesis: a pose or a motion is tracked, and a ball falls onto it.

Two cylinders of 30 cm and 1.54 kg in a vertical plane; a ball of 1 kg from 1 m above; steps of
1/100 s. The pose, the motion (the clip "two-link-wave") and the moment of the ball are ours: the
thesis shows them in figures only. Angles are those of the bodies in the world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import poise
from poise.experiments import figures
from poise.experiments.report import Claim, Item
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
        wanted: [rad], shape (k, 2).
        torque: [N·m], shape (k, 2).
    """

    time: Floats
    angle: Floats
    wanted: Floats
    torque: Floats

    @property
    def error(self) -> Floats:
        """[rad], shape (k, 2)."""
        return self.angle - self.wanted

    def overshoot(self, body: int, until: float = BALL_AT) -> float:
        """How far a body goes beyond its pose, as a share of the way; before the ball comes."""
        early = self.time <= until
        way = self.wanted[-1, body] - self.angle[0, body]
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
    angle, wanted = table[:, 1:3].copy(), table[:, 3:5].copy()
    angle[:, 1] += angle[:, 0]
    wanted[:, 1] += wanted[:, 0]
    return Run(table[:, 0], angle, wanted, table[:, 5:7])


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


# ---- K1, K2, K3: the two-link arm under PD, PD with its additions, and stable PD, against ours

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
