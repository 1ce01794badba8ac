"""Center of mass, momentum, energy, power, work and jitter, against MuJoCo, differences and closed
forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import trees
from hypothesis import given, settings
from numpy.random import Generator
from numpy.typing import NDArray
from peers import to_mujoco

from poise import Command, PoiseError, StablePD, World, dynamics, measure
from poise.characters import load_character
from poise.model import configuration
from poise.model.character import Character, Joint, Link

Array = NDArray[np.float64]

HUMANOID = load_character("humanoid")
NO_GRAVITY = (0.0, 0.0, 0.0)


# ---- against MuJoCo


def asked(character: Character, q: Array, v: Array) -> Any:
    """MuJoCo's data of a state, with the momentum of every subtree."""
    mujoco = pytest.importorskip("mujoco")
    model = to_mujoco(character)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    return data


@settings(max_examples=30)
@given(trees.cases(8))
def test_momentum_mass_centre_and_energy_are_those_of_mujoco(
    case: tuple[Character, Generator],
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    data = asked(character, q, v)
    momentum, energy = measure.momentum(character, q, v), measure.energy(character, q, v)
    # subtree 0 is the whole world
    velocity = measure.center_of_mass_velocity(character, q, v)
    assert measure.center_of_mass(character, q) == pytest.approx(data.subtree_com[0], abs=1e-12)
    assert velocity == pytest.approx(data.subtree_linvel[0], abs=1e-11)
    assert momentum.linear == pytest.approx(character.mass * data.subtree_linvel[0], abs=1e-10)
    assert momentum.angular == pytest.approx(data.subtree_angmom[0], abs=1e-10)
    assert energy.potential == pytest.approx(data.energy[0], abs=1e-10)
    assert energy.kinetic == pytest.approx(data.energy[1], rel=1e-11)
    assert energy.total == pytest.approx(data.energy.sum(), abs=1e-9)


# ---- against differences


@settings(max_examples=30)
@given(trees.cases(8))
def test_the_mass_centre_moves_with_its_velocity(case: tuple[Character, Generator]) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    ahead, behind = (
        measure.center_of_mass(character, configuration.integrate(character, q, h * v))
        for h in (1e-5, -1e-5)
    )
    velocity = measure.center_of_mass_velocity(character, q, v)
    # central differences: h^2 and rounding over h
    assert (ahead - behind) / 2e-5 == pytest.approx(velocity, abs=1e-8)


@settings(max_examples=30)
@given(trees.cases(8))
def test_momentum_changes_with_its_rate(case: tuple[Character, Generator]) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    a = rng.normal(size=character.nv)
    rate = measure.momentum_rate(character, q, v, a)
    h = 1e-5
    ahead = measure.momentum(character, configuration.integrate(character, q, h * v), v + h * a)
    behind = measure.momentum(character, configuration.integrate(character, q, -h * v), v - h * a)
    for one, two, want in zip(ahead, behind, rate, strict=True):
        assert (one - two) / (2 * h) == pytest.approx(want, abs=1e-6)


def test_a_world_of_its_own_masses_is_measured_with_them() -> None:
    scale = np.array([1.0, 2.0, 0.5])
    world = World(HUMANOID, n=3, dt=1 / 60, mass=np.outer(scale, HUMANOID.forest.link_mass))
    q, v = np.tile(HUMANOID.rest_q, (3, 1)), np.random.default_rng(0).normal(size=HUMANOID.nv)
    assert measure.mass(world) == pytest.approx(scale * HUMANOID.mass)
    assert measure.mass(HUMANOID) == pytest.approx(HUMANOID.mass)
    one = measure.momentum(HUMANOID, HUMANOID.rest_q, v)
    for own, usual in zip(measure.momentum(world, q, v), one, strict=True):
        assert own == pytest.approx(np.outer(scale, usual))
    velocity = measure.center_of_mass_velocity(world, q, v)
    assert velocity == pytest.approx(np.tile(velocity[0], (3, 1)))


# ---- pushes


def pushed(dt: float, link: str, contact: str | None, corrected: bool) -> tuple[Array, Array]:
    """Momentum that a push of 220 N for 0.1 s gave to a humanoid that holds its pose in the air:
    the difference of it, and the sum of its rates."""
    world = World(
        HUMANOID, dt=dt, ground=False, contact=contact, gravity=NO_GRAVITY,
        momentum_correction=corrected,
    )  # fmt: skip
    servo, target = StablePD(HUMANOID), world.state.copy()
    world.push(link, (220.0, 0.0, 0.0), 0.1)
    start, sum_of_rates = world.state, np.zeros(3)
    for _ in range(math.ceil(0.1 / dt - 1e-9)):
        before = world.state
        world.step(servo(before, target))
        a = (world.state.v - before.v) / dt
        sum_of_rates += dt * measure.momentum_rate(HUMANOID, before.q, before.v, a).linear
    first, last = (measure.momentum(HUMANOID, s.q, s.v).linear for s in (start, world.state))
    return last - first, sum_of_rates


steps = pytest.mark.parametrize("dt", [1 / 60, 1 / 240, 0.013])


@steps
@pytest.mark.parametrize("link", ["chest", "head"])
def test_a_push_gives_its_impulse_to_the_momentum(dt: float, link: str) -> None:
    for contact in ("impulse", None):
        gained, _ = pushed(dt, link, contact, True)
        # in flight a world keeps momentum to rounding
        assert gained == pytest.approx([22.0, 0.0, 0.0], abs=1e-9)


@steps
def test_the_rates_of_momentum_add_up_to_a_push(dt: float) -> None:
    _, summed = pushed(dt, "head", None, False)
    # the plain step solves the equations of motion at its beginning, to rounding
    assert summed == pytest.approx([22.0, 0.0, 0.0], abs=1e-9)


def test_the_plain_step_gives_a_push_to_the_momentum_by_first_order() -> None:
    lost = [pushed(dt, "head", None, False)[0] - (22.0, 0.0, 0.0) for dt in (1 / 120, 1 / 240)]
    assert np.linalg.norm(lost[0]) / np.linalg.norm(lost[1]) == pytest.approx(2.0, rel=0.1)
    assert abs(lost[0][0]) < 0.001 * 22.0


def test_a_push_on_a_single_body_is_exact() -> None:
    link = Link("stone", joints=(Joint("root", "free"),), mass=2.0, inertia=(0.02, 0.03, 0.04))
    stone = Character("stone", (link,))
    world = World(stone, dt=0.013)
    world.push(0, (220.0, 0.0, 0.0), 0.1, point=(0.0, 0.1, 0.0))
    world.step(steps=20)
    momentum = measure.momentum(stone, world.state.q, world.state.v).linear
    assert momentum == pytest.approx([22.0, 0.0, -2.0 * 9.81 * 0.26], rel=1e-12)


# ---- torque, power, work


def driven(dt: float, joint: Joint) -> tuple[float, float]:
    """Work on a loaded arm under a changing force, and its change of energy."""
    tip = Link("tip", "arm", pos=(0.3, 0.0, 0.0), joints=(Joint("b", "hinge", axis=(0, 0, 1)),),
               mass=1.0, com=(0.2, 0.0, 0.0), inertia=(0.01, 0.02, 0.02))  # fmt: skip
    arm = Link("arm", joints=(joint,), mass=2.0, com=(0.1, 0.0, 0.0), inertia=(0.02, 0.02, 0.03))
    links = (arm,) if joint.kind == "slide" else (arm, tip)
    character = Character("arm", links)
    world = World(character, dt=dt, contact=None, gravity=NO_GRAVITY)
    done = 0.0
    for t in world.until(1.0):
        before = world.state.v
        world.step(Command(force=np.full(character.nv, 2.0 * math.cos(3.0 * t))))
        done += float(measure.work(world.torque, before, world.state.v, dt).sum())
    state = world.state
    return done, float(measure.energy(character, state.q, state.v, gravity=NO_GRAVITY).kinetic)


def test_work_on_an_inertia_that_stays_is_its_energy() -> None:
    done, energy = driven(0.02, Joint("a", "slide", axis=(1, 0, 0)))
    assert energy > 0.001
    assert done == pytest.approx(energy, rel=1e-12)


def test_work_tends_to_the_energy_with_the_step() -> None:
    hinge = Joint("a", "hinge", axis=(0, 0, 1))
    errors = [done - energy for done, energy in (driven(dt, hinge) for dt in (2e-3, 1e-3, 5e-4))]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.05)


@settings(max_examples=30)
@given(trees.cases(8))
def test_power_is_the_rate_of_energy(case: tuple[Character, Generator]) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    tau = 5.0 * rng.normal(size=character.nv)
    a = dynamics.forward_dynamics(character, q, v, tau)
    ahead, behind = (
        measure.energy(
            character, configuration.integrate(character, q, h * (v + 0.5 * h * a)), v + h * a
        ).total
        for h in (1e-5, -1e-5)
    )
    total = measure.power(tau, v).sum()
    scale = 1.0 + np.abs(measure.power(tau, v)).sum() + float(np.abs(a).max()) ** 2 * 1e-3
    assert (ahead - behind) / 2e-5 == pytest.approx(total, abs=1e-6 * scale)
    assert measure.joint_power(character, tau, v).sum() == pytest.approx(total)


def test_joints_gather_their_axes() -> None:
    tau = np.arange(1.0, HUMANOID.nv + 1)
    v = np.linspace(-1, 1, HUMANOID.nv)
    torques = measure.joint_torque(HUMANOID, tau)
    powers = measure.joint_power(HUMANOID, np.stack([tau, 2 * tau]), v)
    for i, joint in enumerate(HUMANOID.joints):
        own = HUMANOID.v_slice(joint)
        assert torques[i] == pytest.approx(np.linalg.norm(tau[own][-3:]))
        assert powers[:, i] == pytest.approx([tau[own] @ v[own], 2 * tau[own] @ v[own]])
    assert torques.shape == (len(HUMANOID.joints),)
    assert tau[0] == 1.0  # what was given stays


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(PoiseError, match=r"tau has shape \(3,\), expected \(..., 34\)"):
        measure.joint_torque(HUMANOID, np.zeros(3))
    with pytest.raises(PoiseError, match="do not fit together: tau"):
        measure.power(np.zeros(3), np.zeros(4))
    with pytest.raises(PoiseError, match="do not fit together: tau"):
        measure.work(np.zeros((2, 3)), np.zeros((5, 3)), np.zeros(3), 0.1)


# ---- jitter


def shaking(frequency: float, dt: float = 1 / 240, seconds: float = 4.0) -> Array:
    """Velocity of an angle that swings by one radian at that frequency, shape (k, 1)."""
    t = np.arange(round(seconds / dt)) * dt
    w = 2 * np.pi * frequency
    swing: Array = w * np.cos(w * t)
    return swing[:, None]


def test_jitter_of_a_fast_swing_is_that_of_its_acceleration() -> None:
    w, dt = 2 * np.pi * 40.0, 1 / 240
    # a difference over dt shows a sine by sin(w dt / 2) / (w dt / 2)
    seen = w * 2.0 / dt * math.sin(0.5 * w * dt) / math.sqrt(2.0)
    # 40 Hz is far above the cutoff: the filter, run twice, passes 1 - (15 / 40)^8 = 0.9996
    assert measure.jitter(shaking(40.0), dt) == pytest.approx([seen], rel=0.01)


@pytest.mark.parametrize("frequency", [0.5, 1.0, 3.0])
def test_what_moves_on_purpose_is_no_jitter(frequency: float) -> None:
    v = shaking(frequency)
    whole = measure.jitter(v, 1 / 240, cutoff=0.0)
    assert whole == pytest.approx((2 * np.pi * frequency) ** 2 / math.sqrt(2.0), rel=0.02)
    assert measure.jitter(v, 1 / 240) < 0.01 * whole


def test_jitter_is_counted_apart_for_every_copy_and_axis() -> None:
    v = np.zeros((960, 2, 3))
    v[:, 1, 2] = shaking(30.0)[:, 0]
    found = measure.jitter(v, 1 / 240)
    assert found.shape == (2, 3)
    assert found[1, 2] > 1000.0
    assert np.delete(found.ravel(), 5).max() == 0.0


def test_jitter_that_cannot_be_seen_is_refused() -> None:
    v = np.zeros((100, 3))
    with pytest.raises(PoiseError, match="below 15 Hz, since nothing faster can be seen"):
        measure.jitter(v, 1 / 30)
    with pytest.raises(PoiseError, match="v has 16 times; jitter needs 17 or more"):
        measure.jitter(v[:16], 1 / 60)
    with pytest.raises(PoiseError, match="the first axis is time"):
        measure.jitter(v[:, 0], 1 / 60)
    assert measure.jitter(v, 1 / 30, cutoff=0.0).tolist() == [0, 0, 0]
