"""Stable PD stays stable with effort limits: bounded torques, solved with dynamics and contact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import find_data
from effort_sweep import (
    FAST,
    FREQUENCIES,
    LIMITS,
    REST,
    STEPS,
    commands,
    largest_speed,
    law_error,
    limited,
    reference_step,
    reference_survives,
    squat,
    targets,
    world_of,
)

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    StablePD,
    State,
    Target,
    World,
    dynamics,
    load_character,
    load_clip,
    suggest_gains,
)
from poise.errors import Diverged
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Joint, Link
from poise.simulation.contact.contacts import Contacts

both_dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])


# ---- the sweep


@both_dtypes
@pytest.mark.parametrize("ground", [False, True], ids=["air", "ground"])
@pytest.mark.parametrize("frequency", FREQUENCIES[:2])
def test_no_cell_of_the_sweep_diverges(frequency: float, ground: bool, dtype: str) -> None:
    """Rest and squat commanded in turn. Without limits the joints reach 125 rad/s."""
    for effort in LIMITS:
        for dt in STEPS:
            speed = largest_speed(frequency, effort, dt, ground=ground, dtype=dtype)
            assert speed < 150.0, (effort, dt)


@both_dtypes
@pytest.mark.parametrize("effort", LIMITS)
def test_very_stiff_drives_survive_on_the_ground(effort: float, dtype: str) -> None:
    for dt in STEPS:
        assert largest_speed(60.0, effort, dt, ground=True, dtype=dtype) < 300.0, dt


@pytest.mark.slow
@pytest.mark.parametrize("effort", LIMITS)
@pytest.mark.parametrize("dt", STEPS)
def test_very_stiff_drives_in_the_air_survive_where_the_reference_does(
    effort: float, dt: float
) -> None:
    # limbs at 100 rad/s turn by radians in a step: what is lost is the integration, in both
    if not reference_survives(60.0, effort, dt):
        pytest.skip("the converged reference does not survive this cell")
    assert largest_speed(60.0, effort, dt, ground=False) < FAST


# ---- the law


@both_dtypes
@pytest.mark.parametrize("effort", LIMITS)
@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_torques_in_the_air_are_those_of_the_reference(
    frequency: float, effort: float, dtype: str
) -> None:
    """Each twelfth step along the way of the world, to 1 % of the limit."""
    dt = 1 / 120
    character, world = limited(effort), world_of(effort, dt, ground=False, dtype=dtype)
    gains = suggest_gains(character, frequency)
    near = (0.01 if dtype == "float32" else 1e-6) * effort
    saturated = 0
    for k, (command, target) in enumerate(zip(commands(gains, dt), targets(dt), strict=False)):
        before = world.state
        world.step(command)
        if k % 12 != 3:
            continue
        if k > 120:  # the stiffest cells are lost later: see above
            break
        _, tau = reference_step(character, gains, before.q, before.v, target, dt)
        assert np.abs(world.torque - tau)[6:].max() < near
        saturated += int(world.saturated.any())
    assert saturated > 0


@both_dtypes
@pytest.mark.parametrize(("frequency", "effort"), [(8.0, 50.0), (8.0, 200.0), (16.0, 100.0)])
def test_torques_with_contact_are_the_bounded_law_at_the_acceleration_that_results(
    frequency: float, effort: float, dtype: str
) -> None:
    dt = 1 / 120
    character, world = limited(effort), world_of(effort, dt, ground=True, dtype=dtype)
    gains = suggest_gains(character, frequency)
    errors, saturated = [], 0
    for command, target in zip(commands(gains, dt), targets(dt), strict=True):
        before = world.state
        world.step(command)
        errors.append(law_error(character, world, gains, before, target))
        saturated += int(world.saturated.any() and len(world.contacts.copy) > 0)
    assert saturated > 50
    # friction has no convex function: a few of a thousand steps end short of the law
    assert np.quantile(errors, 0.99) < 0.01
    assert max(errors) < 0.5


@both_dtypes
def test_the_torque_with_contact_is_the_torque_applied(dtype: str) -> None:
    """M a + h = tau + J' f with the forces that the world reports, by NumPy."""
    dt, character = 1 / 120, without_bounds(limited(100.0))
    gains = suggest_gains(character, 8.0)
    world = World(character, dt=dt, dtype=dtype, momentum_correction=False)
    world.reset(State(REST))
    compared = 0
    for k, command in enumerate(commands(gains, dt)):
        before = world.state
        world.step(command)
        if k % 9 or not len(world.contacts.copy) or not world.saturated.any():
            continue
        a = (world.state.v - before.v) / dt
        left = dynamics.inverse_dynamics(character, before.q, before.v, a)
        right = world.torque + contact_torque(character, before.q, world.contacts)
        size = np.abs(dynamics.mass_matrix(character, before.q) @ a).max()
        np.testing.assert_allclose(left, right, rtol=0, atol=1.0 + 1e-3 * size)
        compared += 1
    assert compared > 5


def without_bounds(character: Character) -> Character:
    """The character with joints that turn freely."""
    links = (
        replace(link, joints=tuple(replace(joint, limits=None) for joint in link.joints))
        for link in character.links
    )
    return Character("unbounded", tuple(links))


def contact_torque(character: Character, q: Floats, contacts: Contacts) -> Floats:
    """J' f of all contacts."""
    place, turn = dynamics.forward_kinematics(character, q)
    total = np.zeros(character.nv)
    rows = zip(contacts.link, contacts.other, contacts.point, contacts.force, strict=True)
    for link, other, point, force in rows:
        for i, sign in ((link, 1.0), (other, -1.0)):
            if i < 0:
                continue
            there = rotation.rotate(rotation.conjugate(turn[i]), point - place[i])
            total += sign * force @ dynamics.jacobian(character, q, int(i), there)[:3]
    return total


# ---- energy


def slides(effort: float) -> Character:
    """Six slides in line, skew to each other: their mass matrix is full and constant."""
    rng = np.random.default_rng(1)
    links = []
    for k in range(6):
        axis = rng.normal(size=3)
        joint = Joint(f"slide{k}", "slide", axis=tuple(axis / np.linalg.norm(axis)), effort=effort)
        parent = None if k == 0 else f"link{k - 1}"
        links.append(
            Link(f"link{k}", parent=parent, joints=(joint,), mass=float(rng.uniform(0.1, 5)))
        )
    return Character("slides", tuple(links))


def huber(kp: Floats, e: Floats, effort: float) -> float:
    """Energy of springs whose force ends at their limit."""
    force = kp * np.abs(e)
    inside = 0.5 * kp * e * e
    outside = effort * np.abs(e) - 0.5 * effort * effort / kp
    return float(np.where(force <= effort, inside, outside).sum())


@both_dtypes
@pytest.mark.parametrize("dt", [1 / 30, 1 / 240])
def test_a_saturated_drive_with_a_resting_target_only_takes_energy(dt: float, dtype: str) -> None:
    """M is constant: kinetic energy and that of the bounded springs never grow, at any step."""
    effort = 3.0
    character = slides(effort)
    kp, kd = np.full(6, 400.0), np.full(6, 4.0)
    world = World(character, dt=dt, dtype=dtype, gravity=(0, 0, 0), contact=None)
    world.reset(State(np.random.default_rng(2).normal(size=6)))
    M = dynamics.mass_matrix(character, np.zeros(6))
    command = Command(drive=Drive(Gains(character, kp, kd), Target(np.zeros(6))))
    last, saturated = np.inf, 0
    for _ in range(round(4 / dt)):
        state = world.state
        energy = float(0.5 * state.v @ M @ state.v) + huber(kp, state.q, effort)
        assert energy <= last * (1 + (1e-12 if dtype == "float64" else 1e-5))
        last = energy
        world.step(command)
        saturated += int(world.saturated.any())
    assert saturated > 20


@pytest.mark.parametrize("effort", LIMITS)
def test_a_weak_humanoid_that_tumbles_in_the_air_comes_to_rest(effort: float) -> None:
    dt = 1 / 240
    character, world = limited(effort), world_of(effort, dt, ground=False)
    nv, rng = character.nv, np.random.default_rng(4)
    v = np.r_[np.zeros(6), 8.0 * rng.normal(size=nv - 6)]
    A = dynamics.centroidal_momentum(character, REST, v)[0]
    v[:6] -= np.linalg.solve(A[:, :6], A @ v)  # what turns as a whole would go on
    world.reset(State(REST, v))
    command = Command(drive=Drive(suggest_gains(character, 16.0), Target(REST)))
    energies = []
    for _ in range(480):
        world.step(command)
        energies.append(float(dynamics.energy(character, world.state.q, world.state.v)[0]))
    # velocity terms are those of the start of a step: they may add a little, the drive does not
    assert max(energies) < 1.05 * energies[0]
    assert energies[-1] < 0.01 * energies[0]


# ---- DeepMimic's own humanoid and clips


@pytest.mark.skipif(
    find_data() is None, reason="no data folder: set POISE_DATA or put it at ../shared/data"
)
@both_dtypes
@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("name", ["cartwheel", "roll", "backflip"])
def test_the_humanoid_of_deepmimic_tracks_its_clips_with_its_own_limits(
    name: str, dt: float, dtype: str
) -> None:
    folder = find_data() / "deepmimic"  # type: ignore[operator]
    body = load_character(folder / "characters" / "humanoid3d.txt")
    clip = load_clip(folder / "motions" / f"humanoid3d_{name}.txt", body, prepare=False)
    world, servo, saturated = World(body, dt=dt, dtype=dtype), StablePD(body), 0
    world.reset(clip.state(0.0))
    for k in range(int(clip.duration / dt)):
        world.step(servo(world.state, clip.state(min((k + 1) * dt, clip.duration))))
        assert np.abs(world.state.v[6:]).max() < 100.0
        saturated += int(world.saturated.any())
    assert saturated > 0


# ---- copies


@both_dtypes
def test_a_copy_does_not_feel_how_often_its_neighbours_saturate(dtype: str) -> None:
    """Strengths and heights of their own: bit for bit the same in any place of a batch."""
    character, rng, n = limited(100.0), np.random.default_rng(0), 11
    gains = suggest_gains(character, 16.0)
    strength = rng.uniform(0.2, 1.5, (n, len(character.links)))
    q, v = np.tile(REST, (n, 1)), rng.normal(size=(n, character.nv))
    q[:, 2] += rng.uniform(0, 0.3, n)

    def end(order: Any, threads: int) -> list[Any]:
        world = World(character, n=len(order), dt=1 / 60, dtype=dtype, threads=threads)
        world.reset(State(q[order], v[order]))
        for k in range(45):
            target = Target((REST, squat())[(k // 15) % 2])
            world.step(Command(drive=Drive(gains, target, strength=strength[order])))
        return [world.state.q, world.state.v, world.torque, world.saturated]

    order = np.arange(n)
    forward, backward, alone = end(order, 2), end(order[::-1], 1), end(np.array([5, 5]), 1)
    assert forward[3].any()
    for one, two, three in zip(forward, backward, alone, strict=True):
        assert np.array_equal(one, two[::-1])
        assert np.array_equal(one[5], three[1])


def test_a_lost_copy_raises_as_before() -> None:
    """Explicit PD at a step that it cannot take: limits do not hide a divergence."""
    character = load_character("two-link")
    world = World(character, dt=1 / 30, contact=None)
    gains = Gains(character, 1e7, 1e3)
    world.reset(State(np.array([1.0, 1.0])))
    with pytest.raises(Diverged):
        world.step(Command(drive=Drive(gains, Target(np.zeros(2)), form="pd")), steps=200)
