"""Objects thrown in: they fly, hit, are counted, and wait unseen until then."""

from __future__ import annotations

import numpy as np
import pytest
from objects import DT, SOLIDS, G, body, started

from poise import PoiseError, World, dynamics, load_character
from poise.model.shape import Shape

BRICK = body(Shape("box", (0.1, 0.3, 0.3)), mass=10.0, pos=(0, 0, 0.3))


def test_nothing_is_out_before_it_is_thrown() -> None:
    world = World(BRICK, dt=DT)
    assert world.projectile_state.q.shape == (8, 7)
    assert not world.projectile_state.thrown.any()


def test_a_thrown_ball_flies_as_a_stone_does() -> None:
    world = World(BRICK, dt=1 / 240)
    index = world.throw((2.0, 0.0, 1.0), (1.0, 0.5, 3.0), spin=(0.0, 0.0, 2.0))
    assert index == 1
    world.step(steps=120)
    out, q, v = world.projectile_state.at(0)
    assert out == 1
    # semi-implicit steps lag by g dt t / 2
    expected = [2.5, 0.25, 1.0 + 1.5 - 0.5 * G * 0.25 - 0.5 * G * 0.5 / 240]
    np.testing.assert_allclose(q[:3], expected, atol=1e-9)
    np.testing.assert_allclose(v, [1, 0.5, 3 - G * 0.5, 0, 0, 2], atol=1e-9)


def test_parked_balls_change_nothing_bit_for_bit() -> None:
    worlds = [World(BRICK, n=3, dt=DT, projectiles=projectiles) for projectiles in (0, 8)]
    for world in worlds:
        started(world, [1.0, 0.2, 3.0, 0.1, 0.2, 0.3]).step(steps=200)
    assert np.array_equal(worlds[0].state.q, worlds[1].state.q)
    assert np.array_equal(worlds[0].state.v, worlds[1].state.v)


def test_a_ball_hands_its_momentum_to_what_it_hits() -> None:
    world = World(BRICK, dt=1 / 240, gravity=(0, 0, 0), ground=False)
    world.throw((-1.0, 0.0, 0.3), (6.0, 0.0, 0.0))
    world.step(steps=120)
    velocity = world.projectile_state.v[0]
    # 3 kg against 10 kg, without bounce, in line: both end at 3 * 6 / 13
    np.testing.assert_allclose([world.state.v[0], velocity[0]], 18 / 13, rtol=1e-6)


def test_the_contact_of_a_ball_names_its_link() -> None:
    world = World(BRICK, dt=DT)
    world.throw((3.0, 0.0, 0.05), (0.0, 0.0, 0.0))
    index = world.throw((5.0, 0.0, 0.05), (0.0, 0.0, 0.0))
    world.step(steps=60)
    assert index == 2
    assert {1, 2} <= set(world.contacts.link.tolist())


def test_two_thrown_balls_bounce_off_each_other() -> None:
    world = World(BRICK, dt=1 / 240, gravity=(0, 0, 0), restitution=1.0)
    world.throw((3.0, 0.0, 1.0), (2.0, 0.0, 0.0))
    world.throw((4.0, 0.0, 1.0), (-1.0, 0.0, 0.0))
    world.step(steps=240)
    np.testing.assert_allclose(world.projectile_state.v[:2, 0], [-1.0, 2.0], atol=1e-9)


def test_a_ball_knocks_a_humanoid_over() -> None:
    human = load_character("humanoid")
    world = World(human, n=2, dt=DT)
    world.throw((1.5, 0.0, 1.2), (-15.0, 0.0, 1.0), where=[1])
    world.step(steps=30)
    head = dynamics.forward_kinematics(human, world.state.q)[0][:, world.scene.link_index("head")]
    moved = np.abs(head[1] - head[0]).max()
    assert moved > 0.05
    assert not world.diverged


def test_each_copy_counts_its_own_spares() -> None:
    world = World(BRICK, n=3, dt=DT, projectiles=2)
    world.throw((2.0, 0, 1), (0, 0, 0), where=[0])
    world.throw((4.0, 0, 1), (0, 0, 0), where=[0, 2])
    assert world.projectile_state.thrown.sum(axis=1).tolist() == [2, 0, 1]
    with pytest.raises(PoiseError, match="projectiles"):
        world.throw((6.0, 0, 1), (0, 0, 0), where=[0])
    world.throw((6.0, 0, 1), (0, 0, 0), where=[1])


def test_a_refused_throw_throws_nowhere() -> None:
    world = World(BRICK, n=2, dt=DT, projectiles=1)
    world.throw((2.0, 0, 1), (0, 0, 0), where=[0])
    before = world.projectile_state.poses
    with pytest.raises(PoiseError, match="projectiles"):
        world.throw((4.0, 0, 1), (0, 0, 0))
    assert np.array_equal(world.projectile_state.poses, before)


def test_spares_may_be_objects_of_ones_own() -> None:
    crate = body(SOLIDS["box"], mass=4.0, name="crate")
    world = World(BRICK, dt=DT, projectiles=[crate, crate])
    world.throw((2.0, 0.0, 0.5), (0, 0, 0))
    world.step(steps=240)
    force = world.contacts.force[world.contacts.link == 1, 2].sum()
    assert force == pytest.approx(4.0 * G, rel=1e-2)


def test_a_reset_takes_the_balls_back() -> None:
    world = World(BRICK, n=2, dt=DT)
    world.throw((2.0, 0, 1), (0, 0, 0))
    world.reset(where=[1])
    assert world.projectile_state.thrown[:, 0].tolist() == [True, False]
