"""The humanoid commanded between rest and squat with bounded torques, and its reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    State,
    Target,
    World,
    dynamics,
    load_character,
    load_clip,
    suggest_gains,
)
from poise.math.arrays import Floats
from poise.model.configuration import integrate
from poise.reference import effort_limits, solve_bounded
from poise.reference.effort_limits import bounded

HUMANOID = load_character("humanoid")
REST = HUMANOID.rest_q
FREQUENCIES, LIMITS, STEPS = (8.0, 16.0, 60.0), (200.0, 100.0, 50.0), (1 / 60, 1 / 120, 1 / 240)
SWITCH = 0.25  # [s] between the commands
SECONDS = 3.0
FAST = 1e3  # [rad/s] what is faster is lost


@lru_cache(maxsize=1)
def squat() -> Floats:
    """The deepest pose of the squat."""
    frames = load_clip("squat", HUMANOID).frames
    deepest: Floats = frames[np.argmin(frames[:, 2])]
    return deepest


@lru_cache(maxsize=8)
def limited(effort: float) -> Character:
    """The humanoid with this limit in every joint."""
    return Character(
        "limited",
        tuple(
            replace(
                link,
                joints=tuple(
                    replace(joint, effort=None if joint.kind == "free" else effort)
                    for joint in link.joints
                ),
            )
            for link in HUMANOID.links
        ),
    )


def targets(dt: float) -> Iterator[Floats]:
    """The pose commanded in each step."""
    each = round(SWITCH / dt)
    for k in range(round(SECONDS / dt)):
        yield squat() if (k // each) % 2 else REST


def world_of(effort: float, dt: float, *, ground: bool, dtype: str = "float64") -> World:
    """One humanoid in its rest pose, on the ground or in the air without gravity."""
    character = limited(effort)
    if ground:
        world = World(character, dt=dt, dtype=dtype)
    else:
        world = World(character, dt=dt, dtype=dtype, gravity=(0, 0, 0), contact=None)
    world.reset(State(REST))
    return world


def commands(gains: Gains, dt: float) -> Iterator[Command]:
    """The command of each step."""
    made = {id(pose): Command(drive=Drive(gains, Target(pose))) for pose in (REST, squat())}
    for pose in targets(dt):
        yield made[id(pose)]


def largest_speed(
    frequency: float, effort: float, dt: float, *, ground: bool, dtype: str = "float64"
) -> float:
    """Largest joint speed of a run [rad/s]; raises Diverged."""
    world, most = world_of(effort, dt, ground=ground, dtype=dtype), 0.0
    for command in commands(suggest_gains(limited(effort), frequency), dt):
        world.step(command)
        most = max(most, float(np.abs(world.state.v).max()))
    return most


def law_error(
    character: Character, world: World, gains: Gains, before: State, target: Floats
) -> float:
    """How far the torque of the last step is from P(Q - K a), relative to the limit."""
    dt = world.dt
    Q, K = dynamics.drive(
        character, before.q, before.v, (target, np.zeros(character.nv)), gains.kp, gains.kd, dt
    )
    a = (world.state.v - before.v) / dt
    limits = effort_limits(character)
    off = np.abs(world.torque - bounded(limits, Q - K * a))
    return float(max(off[limit.v].max() / limit.effort for limit in limits))


def reference_step(
    character: Character, gains: Gains, q: Floats, v: Floats, target: Floats, dt: float
) -> tuple[Floats, Floats]:
    """Acceleration and torque of the converged bounded law in the air."""
    Q, K = dynamics.drive(character, q, v, (target, np.zeros(character.nv)), gains.kp, gains.kd, dt)
    M = dynamics.mass_matrix(character, q)
    h = dynamics.bias_force(character, q, v, gravity=(0, 0, 0))
    a: Floats = np.asarray(np.linalg.solve(M + np.diag(K), Q - h), dtype=float)
    return solve_bounded(M, h, Q, K, effort_limits(character), a)


def reference_survives(frequency: float, effort: float, dt: float) -> bool:
    """Whether the converged reference stays finite in the air; it keeps the momentum, which is 0,
    by the root's velocity as worlds do."""
    character = limited(effort)
    gains = suggest_gains(character, frequency)
    q, v = REST.copy(), np.zeros(character.nv)
    for target in targets(dt):
        a, _ = reference_step(character, gains, q, v, target, dt)
        v = v + dt * a
        q = np.asarray(integrate(character, q, v, dt))
        A = dynamics.centroidal_momentum(character, q, v)[0]
        v[:6] -= np.linalg.solve(A[:, :6], A @ v)
        if not np.abs(v).max() < FAST:
            return False
    return True
