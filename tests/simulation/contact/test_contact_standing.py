"""The humanoid on its own feet: stiff, at large steps, within its strength; and limp."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import DT, G, deepest

from poise import Character, Command, Drive, Gains, State, Target, World, dynamics, load_character

Array = NDArray[np.float64]
HUMANOID = load_character("humanoid")
MASS = sum(link.mass for link in HUMANOID.links)


def driven(character: Character, kp: float, kd: float | None = None) -> Command:
    """Every joint but the root held in the rest pose; kd is a tenth of kp unless given."""
    stiff, damp = np.full(character.nv, kp), np.full(character.nv, 0.1 * kp if kd is None else kd)
    stiff[:6] = damp[:6] = 0.0
    return Command(drive=Drive(Gains(character, stiff, damp), Target(character.rest_q)))


def stands(kp: float, dt: float, seconds: float, dtype: str = "float64") -> None:
    world = World(HUMANOID, dt=dt, dtype=dtype)
    command = driven(HUMANOID, kp)
    world.step(command, steps=round((seconds - 1) / dt))
    speeds = []
    for _ in range(round(1 / dt)):
        before = world.state.v
        world.step(command)
        speeds.append((world.state.v - before) / dt)
    jitter = math.sqrt(np.mean(np.square(speeds)))
    print(f"kp {kp:g} dt 1/{1 / dt:.0f}: acceleration {jitter:.2e} rad/s^2 RMS in the last second")
    assert abs(float(world.state.q[2]) - HUMANOID.rest_q[2]) < 0.05
    up = 1 - 2 * float((world.state.q[4:6] ** 2).sum())
    assert up > 0.99
    assert deepest(world) < 1e-3
    # at rest: less than a thousandth of gravity on a lever of 1 m
    assert jitter < 1e-3 * G


@pytest.mark.parametrize("dt", [1 / 60, 1 / 30])
@pytest.mark.parametrize("kp", [1e3, 1e5, 1e7])
def test_the_humanoid_stands_still_however_stiff(kp: float, dt: float) -> None:
    stands(kp, dt, 6.0)


def test_the_humanoid_stands_still_in_single_precision() -> None:
    stands(1e5, DT, 6.0, "float32")


def test_a_humanoid_too_soft_to_stand_falls_and_lies_still() -> None:
    """Two ankles of 100 N m/rad cannot carry m g h, some 500 N m/rad."""
    world = World(HUMANOID, dt=DT)
    world.step(driven(HUMANOID, 1e2), steps=900)
    assert float(world.state.q[2]) < 0.5 * HUMANOID.rest_q[2]
    assert np.abs(world.state.v).max() < 1e-3
    assert deepest(world) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("dt", [1 / 60, 1 / 30])
@pytest.mark.parametrize("kp", [1e3, 1e4, 1e5, 1e6, 1e7])
def test_the_humanoid_stands_still_for_a_minute_however_stiff(kp: float, dt: float) -> None:
    stands(kp, dt, 60.0)


def test_the_ground_carries_a_standing_humanoid() -> None:
    world = World(HUMANOID, dt=DT)
    world.step(driven(HUMANOID, 1e4), steps=240)
    total = world.contacts.force.sum(axis=0)
    np.testing.assert_allclose(total, [0, 0, MASS * G], atol=1e-3 * MASS * G)


def with_effort(character: Character, effort: float) -> Character:
    links = [
        replace(
            link,
            joints=tuple(j if j.kind == "free" else replace(j, effort=effort) for j in link.joints),
        )
        for link in character.links
    ]
    return Character(character.name, tuple(links), character.limbs)


def lengths(character: Character, tau: Array) -> Array:
    """Size of each joint's torque, the root left out."""
    sizes = [
        np.linalg.norm(np.atleast_1d(tau[character.v_slice(joint.name)]))
        for joint in character.joints
        if joint.kind != "free"
    ]
    return np.array(sizes)


def torque_from_motion(world: World, before: State) -> Array:
    """Inverse dynamics of the accelerations that were, with the contact forces that were."""
    q, v, seen = before.q, before.v, world.contacts
    a = (world.state.v - v) / world.dt
    tau = dynamics.inverse_dynamics(world, q, v, a)
    place, turn = dynamics.forward_kinematics(world, q)
    for link, other, point, force in zip(
        seen.link, seen.other, seen.point, seen.force, strict=True
    ):
        for body, sign in ((int(link), 1.0), (int(other), -1.0)):
            if body < 0:
                continue
            R = np.asarray(_matrix(turn[body]))
            J = dynamics.jacobian(world, q, body, R.T @ (point - place[body]))
            tau = tau - sign * J[:3].T @ force
    return np.asarray(tau)


def torques_from_motion(world: World, character: Character, before: State) -> Array:
    """The same of all copies."""
    q, v, seen = before.q, before.v, world.contacts
    tau = dynamics.inverse_dynamics(character, q, v, (world.state.v - v) / world.dt)
    rows = zip(seen.copy, seen.link, seen.other, seen.point, seen.force, strict=True)
    for copy, link, other, point, force in rows:
        place, turn = dynamics.forward_kinematics(character, q[copy])
        for body, sign in ((int(link), 1.0), (int(other), -1.0)):
            if body < 0:
                continue
            R = np.asarray(_matrix(turn[body]))
            J = dynamics.jacobian(character, q[copy], body, R.T @ (point - place[body]))
            tau[copy] -= sign * J[:3].T @ force
    return np.asarray(tau)


def _matrix(turn: Array) -> Array:
    from poise.math.rotation import quat_matrix

    return np.asarray(turn if turn.shape == (3, 3) else quat_matrix(turn))


@pytest.mark.parametrize("restitution", [0.0, 0.6])
@pytest.mark.parametrize("kp", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("effort", [20.0, 60.0, 300.0])
def test_the_torque_reported_is_the_torque_applied_and_within_the_limit(
    kp: float, effort: float, restitution: float
) -> None:
    """The humanoid lands on its feet: inverse dynamics gives the reported torque back.

    Joint limits push, too, and are no torque of the drive: without limits here. In flight, steps
    keep the momentum instead, and accelerations differ from those of the forces by order dt.
    """
    links = [
        replace(link, joints=tuple(replace(j, limits=None) for j in link.joints))
        for link in with_effort(HUMANOID, effort).links
    ]
    human = Character("strong", tuple(links))
    # towards a crouch: it lands while it bends
    crouch = np.array(human.rest_q)
    for side in ("left", "right"):
        crouch[human.q_slice(f"{side}_knee")] = 1.2
        crouch[human.q_slice(f"{side}_elbow")] = 1.0
    drive = driven(human, kp).drive
    assert drive is not None
    command = Command(drive=Drive(drive.gains, Target(crouch)))
    world = World(human, dt=DT, projectiles=0, restitution=restitution)
    q = np.array(human.rest_q)
    q[2] += 0.1
    world.reset(State(q))
    saturated = landed = 0
    for _ in range(60):
        before = world.state.copy()
        world.step(command)
        tau = world.torque
        assert lengths(human, tau).max() <= effort * (1 + 1e-9)
        saturated += int(world.saturated.any())
        seen = world.contacts
        if np.abs(seen.force[seen.other < 0]).max(initial=0.0) > 0.0:
            measured = torque_from_motion(world, before)
            np.testing.assert_allclose(measured, tau, atol=1e-6 * max(effort, MASS * G))
            landed += 1
    assert landed > 5
    if effort < 100:
        assert saturated > 0


@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-6), ("float32", 1e-4)])
def test_each_copy_of_a_batch_reports_the_torque_applied(dtype: str, near: float) -> None:
    """Copies that land one after another, each with its own strength; part of the limit.

    In single precision inverse dynamics divides differences of float velocities by dt.
    """
    effort, n = 100.0, 9
    links = [
        replace(link, joints=tuple(replace(j, limits=None) for j in link.joints))
        for link in with_effort(HUMANOID, effort).links
    ]
    human = Character("strong", tuple(links))
    world = World(human, n=n, dt=DT, dtype=dtype, projectiles=0, momentum_correction=False)
    q = np.tile(human.rest_q, (n, 1))
    q[:, 2] += np.linspace(0.0, 0.2, n)
    world.reset(State(q))
    strength = np.linspace(0.2, 1.0, n)[:, None] * np.ones(len(links))
    drive = driven(human, 1e4).drive
    assert drive is not None
    crouch = np.array(human.rest_q)
    for side in ("left", "right"):
        crouch[human.q_slice(f"{side}_knee")] = 1.2
    command = Command(drive=Drive(drive.gains, Target(crouch), strength=strength))
    saturated = 0
    for _ in range(30):
        before = world.state.copy()
        world.step(command)
        saturated += int(world.saturated.any(axis=1).sum())
        measured = torques_from_motion(world, human, before)
        limit = strength[:, :1] * effort
        assert (np.abs(measured - world.torque)[:, 6:] < near * limit).all()
        for tau, most in zip(world.torque, limit[:, 0], strict=True):
            assert lengths(human, tau).max() <= most * (1 + near)
    assert saturated > 10


def test_the_drive_of_a_landing_humanoid_knows_of_the_ground() -> None:
    """Without limits of strength: the reported torque is Q - K (v+ - v) / dt, contact included."""
    links = [
        replace(link, joints=tuple(replace(j, limits=None, effort=None) for j in link.joints))
        for link in HUMANOID.links
    ]
    human = Character("free", tuple(links))
    command = driven(human, 1e4)
    world = World(human, dt=DT, projectiles=0)
    q = np.array(human.rest_q)
    q[2] += 0.2
    world.reset(State(q))
    landed = 0
    for _ in range(40):
        before = world.state.copy()
        world.step(command)
        seen = world.contacts
        if np.abs(seen.force[seen.other < 0]).max(initial=0.0) > 0.0:
            measured = torque_from_motion(world, before)
            np.testing.assert_allclose(measured, world.torque, atol=1e-6 * MASS * G)
            landed += 1
    assert landed > 5
