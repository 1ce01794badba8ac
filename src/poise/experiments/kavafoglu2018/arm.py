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
from poise.math.arrays import Floats
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
