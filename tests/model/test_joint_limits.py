"""Joint limits in the contact's solve: hinge, slide, and a ball's swing and twist."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import DT, random_turns

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    Joint,
    Link,
    State,
    Target,
    World,
    load_character,
)
from poise.math.rotation import quat_matrix

Array = NDArray[np.float64]
DEGREE = math.radians(1.0)
HUMANOID = load_character("humanoid")


def pendulum(kind: str, limits: tuple[float, ...], **joint: object) -> Character:
    """A rod of 1 kg and 0.5 m on a joint of its own kind, hanging along -z or along x."""
    link = Link(
        "rod",
        joints=(Joint("joint", kind, limits=limits, **joint),),  # type: ignore[arg-type]
        mass=1.0,
        com=(0.0, 0.0, -0.25),
        inertia=(0.02, 0.02, 0.002),
    )
    return Character("pendulum", (link,))


def swing_and_twist(q: Array) -> tuple[float, float]:
    """Angle of a ball's z axis from where it was, and its turn about it [rad]."""
    swing = math.acos(np.clip(quat_matrix(q)[2, 2], -1, 1))
    twist = 2 * math.atan2(q[3], q[0])
    return swing, (twist + math.pi) % (2 * math.pi) - math.pi


@pytest.mark.parametrize("dt", [1 / 30, 1 / 60, 1 / 240])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_hinge_comes_to_rest_at_its_limit(dt: float, side: int) -> None:
    """A tilted gravity leans the rod against the limit."""
    one = pendulum("hinge", (-0.4, 0.4), axis=(0, 1, 0))
    world = World(one, dt=dt, gravity=(-side * 9.81, 0, -1.0), projectiles=0)
    over = 0.0
    for _ in range(round(3 / dt)):
        world.step()
        over = max(over, abs(float(world.state.q[0])) - 0.4)
    assert over < 5 * DEGREE
    assert float(world.state.q[0]) * side == pytest.approx(0.4, abs=DEGREE)
    assert abs(float(world.state.v[0])) < 1e-3


def test_a_hinge_inside_its_limits_swings_as_without_them() -> None:
    start = State([0.3], [0.0])
    worlds = [
        World(pendulum("hinge", (-0.5, 0.5), axis=(0, 1, 0)), dt=DT, contact=contact)
        for contact in ("impulse", None)
    ]
    for world in worlds:
        world.reset(start)
        world.step(steps=120)
    np.testing.assert_allclose(worlds[0].state.q, worlds[1].state.q, atol=1e-12)


def test_a_slide_comes_to_rest_at_its_limit() -> None:
    one = pendulum("slide", (-0.2, 0.3), axis=(0, 0, 1))
    world = World(one, dt=DT, projectiles=0)
    world.step(steps=120)
    assert float(world.state.q[0]) == pytest.approx(-0.2, abs=1e-3)
    world.gravity = (0, 0, 9.81)
    world.step(steps=120)
    assert float(world.state.q[0]) == pytest.approx(0.3, abs=1e-3)


def test_without_contact_joints_have_no_limits() -> None:
    world = World(pendulum("slide", (-0.2, 0.3), axis=(0, 0, 1)), dt=DT, contact=None)
    world.step(steps=60)
    assert float(world.state.q[0]) < -1.0


@pytest.mark.parametrize("lean", range(6))
def test_a_ball_comes_to_rest_within_its_swing_cone(lean: int) -> None:
    one = pendulum("ball", (0.5, -math.pi, math.pi), axis=(0, 0, 1))
    a = lean * math.pi / 3
    gravity = (9.81 * math.cos(a), 9.81 * math.sin(a), -2.0)
    kd = Gains(one, 0.0, 0.3)
    world = World(one, dt=DT, gravity=gravity, projectiles=0)
    world.step(Command(drive=Drive(kd, Target(one.rest_q))), steps=600)
    swing, _ = swing_and_twist(world.state.q)
    assert swing == pytest.approx(0.5, abs=DEGREE)
    assert np.abs(world.state.v).max() < 1e-2


@pytest.mark.parametrize(("torque", "end"), [(1.0, 0.6), (-1.0, -0.3)])
def test_a_ball_comes_to_rest_at_its_twist(torque: float, end: float) -> None:
    one = pendulum("ball", (0.5, -0.3, 0.6), axis=(0, 0, 1))
    world = World(one, dt=DT, projectiles=0)
    world.step(Command(force=np.array([0.0, 0.0, torque])), steps=300)
    _, twist = swing_and_twist(world.state.q)
    assert twist == pytest.approx(end, abs=DEGREE)


def beyond(character: Character, q: Array) -> float:
    """How far the worst joint of a pose is beyond its limits [rad]; slides are left out."""
    worst = 0.0
    for joint in character.joints:
        if joint.limits is None:
            continue
        x = np.atleast_1d(q[character.q_slice(joint.name)])
        if joint.kind == "hinge":
            lower, upper = joint.limits
            worst = max(worst, lower - x[0], x[0] - upper)
        elif joint.kind == "ball":
            axis, (swing, lower, upper) = np.array(joint.axis), joint.limits
            along = float(x[1:] @ axis)
            twist = 2 * math.atan2(along, x[0])
            twist = (twist + math.pi) % (2 * math.pi) - math.pi
            tilt = math.acos(np.clip(axis @ quat_matrix(x) @ axis, -1, 1))
            worst = max(worst, tilt - swing, lower - twist, twist - upper)
    return worst


def test_the_humanoid_has_limits_of_every_kind_to_test() -> None:
    kinds = {joint.kind for joint in HUMANOID.joints if joint.limits is not None}
    assert kinds == {"hinge", "ball"}


def limp(n: int, seed: int = 0) -> tuple[World, Command]:
    """Humanoids that fall from random poses with damped, slack joints."""
    rng = np.random.default_rng(seed)
    kd = np.full(HUMANOID.nv, 2.0)
    kd[:6] = 0.0
    world = World(HUMANOID, n=n, dt=DT)
    q = np.tile(HUMANOID.rest_q, (n, 1))
    q[:, 2] += 0.5
    q[:, 3:7] = random_turns(rng, n)
    world.reset(State(q, rng.normal(size=(n, HUMANOID.nv))))
    gains = Gains(HUMANOID, 0.0, kd)
    return world, Command(drive=Drive(gains, Target(HUMANOID.rest_q)))


def test_a_fallen_humanoid_lies_within_its_limits() -> None:
    world, command = limp(16)
    world.step(command, steps=60 * 12)
    assert max(beyond(HUMANOID, q) for q in world.state.q) < DEGREE


def test_a_start_beyond_the_limits_comes_back_slowly_and_without_a_jolt() -> None:
    one = pendulum("hinge", (-0.4, 0.4), axis=(0, 1, 0))
    world = World(one, dt=DT, gravity=(0, 0, 0), projectiles=0)
    world.reset(State([1.4]))
    fastest = 0.0
    for _ in range(240):
        before = float(world.state.q[0])
        world.step()
        fastest = max(fastest, abs(float(world.state.q[0]) - before) / DT)
    assert float(world.state.q[0]) == pytest.approx(0.4, abs=DEGREE)
    # moved, not thrown: the velocity stays nought
    assert abs(float(world.state.v[0])) < 1e-6
    assert fastest < 10.0


def test_a_drive_cannot_push_a_joint_through_its_limit() -> None:
    one = pendulum("hinge", (-0.4, 0.4), axis=(0, 1, 0))
    stiff = Gains(one, 1e5, 1e3)
    world = World(one, dt=DT, projectiles=0)
    world.step(Command(drive=Drive(stiff, Target([1.5]))), steps=300)
    assert float(world.state.q[0]) == pytest.approx(0.4, abs=DEGREE)
