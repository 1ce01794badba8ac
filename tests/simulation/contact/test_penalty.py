"""Penalty contact: springs, dampers and a friction cone, for steps of a millisecond."""

from __future__ import annotations

import math

import numpy as np
import pytest
from objects import SOLIDS, G, body, deepest, random_turns, started, turned

from poise import Command, Drive, Gains, State, Target, World, load_character
from poise.model.shape import Shape

DT = 1e-3
BRICK = Shape("box", (0.2, 0.2, 0.1))


def test_a_box_rests_on_its_springs() -> None:
    """Four corners of stiffness k carry m g: it sinks by m g / (4 k)."""
    world = World(body(BRICK, 8.0, pos=(0, 0, 0.12)), dt=DT, contact="penalty")
    world.step(steps=3000)
    assert np.abs(world.state.v).max() < 1e-4
    assert world.contacts.force[:, 2].sum() == pytest.approx(8.0 * G, rel=1e-3)
    assert len(world.contacts.depth) == 4
    # the same depth at every corner
    assert np.ptp(world.contacts.depth) < 1e-6
    assert deepest(world) < 1e-3


@pytest.mark.parametrize("mass", [0.1, 1.0, 50.0])
def test_light_and_heavy_boxes_lie_still(mass: float) -> None:
    world = World(body(BRICK, mass, pos=(0, 0, 0.15), quat=turned(10)), dt=DT, contact="penalty")
    world.step(steps=4000)
    assert np.abs(world.state.v).max() < 1e-3


@pytest.mark.parametrize("kind", sorted(SOLIDS))
def test_every_solid_comes_to_lie_on_the_ground(kind: str) -> None:
    n = 4
    world = World(body(SOLIDS[kind]), n=n, dt=DT, contact="penalty", projectiles=0)
    q = np.zeros((n, 7))
    q[:, 2], q[:, 3:] = 0.45, random_turns(np.random.default_rng(1), n)
    world.reset(State(q))
    world.step(steps=5000)
    assert not world.diverged
    assert np.abs(world.state.v[:, 2]).max() < 1e-2
    assert deepest(world) < 2e-3


@pytest.mark.parametrize("mu", [0.2, 0.6])
def test_a_sliding_box_is_slowed_by_the_friction_cone(mu: float) -> None:
    world = World(body(BRICK, 2.0, pos=(0, 0, 0.1)), dt=DT, contact="penalty", friction=mu)
    world.step(steps=500)
    started(world, [2.0, 0, 0, 0, 0, 0], world.state.q).step(steps=100)
    assert world.state.v[0] == pytest.approx(2.0 - mu * G * 0.1, rel=1e-2)


def test_forces_stay_within_the_cone() -> None:
    n = 8
    rng = np.random.default_rng(2)
    world = World(body(BRICK), n=n, dt=DT, contact="penalty", friction=0.4)
    q = np.tile([0, 0, 0.3, 1.0, 0, 0, 0], (n, 1))
    world.reset(State(q, rng.normal(size=(n, 6)) * 3))
    touched = 0
    for _ in range(100):
        world.step(steps=10)
        seen = world.contacts
        normal = (seen.force * seen.normal).sum(axis=1)
        tangent = np.linalg.norm(seen.force - normal[:, None] * seen.normal, axis=1)
        assert (normal >= 0).all()
        assert (tangent <= 0.4 * normal * (1 + 1e-6) + 1e-6).all()
        touched += len(normal)
    assert touched > 100


def test_both_models_agree_on_a_sliding_box() -> None:
    """Same friction, same masses: half a second of sliding down a slope."""
    a = math.radians(40)
    ends = []
    for contact in ("impulse", "penalty"):
        world = World(
            body(BRICK, pos=(0, 0, 0.1)),
            dt=DT,
            contact=contact,
            friction=0.4,
            gravity=(G * math.sin(a), 0, -G * math.cos(a)),
        )
        world.step(steps=500)
        ends.append(world.state.q[0])
    assert ends[1] == pytest.approx(ends[0], rel=0.02)


def test_both_models_carry_a_standing_humanoid_alike() -> None:
    human = load_character("humanoid")
    kp = np.full(human.nv, 2000.0)
    kp[:6] = 0.0
    command = Command(drive=Drive(Gains(human, kp, 0.1 * kp), Target(human.rest_q)))
    forces = []
    for contact in ("impulse", "penalty"):
        world = World(human, dt=DT, contact=contact, projectiles=0)
        world.step(command, steps=2000)
        forces.append(world.contacts.force.sum(axis=0))
        assert np.abs(world.state.v).max() < 0.05
    np.testing.assert_allclose(forces[1], forces[0], atol=0.02 * forces[0][2])


def test_pairs_of_bodies_meet_by_springs_too() -> None:
    pair = [body(BRICK, 2.0, "low", (0, 0, 0.1)), body(BRICK, 2.0, "high", (0, 0, 0.3))]
    world = World(pair, dt=DT, contact="penalty", projectiles=0)
    world.step(steps=3000)
    place = world.state.q.reshape(2, 7)
    np.testing.assert_allclose(place[:, 2], [0.1, 0.3], atol=2e-3)
    assert np.abs(world.state.v).max() < 1e-2
