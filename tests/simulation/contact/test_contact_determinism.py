"""Bit for bit with contacts: threads, places in the batch, pauses; and copies of their own."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from objects import DT, random_turns

from poise import Command, Drive, Gains, State, Target, World, load_character, suggest_gains
from poise.model.shape import Shape
from poise.simulation.contact import HeightField

HUMANOID = load_character("humanoid")
SIZE = 21
both_dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
grounds = pytest.mark.parametrize("ground", ["plane", "field"])


@lru_cache
def gains() -> Gains:
    kd = np.full(HUMANOID.nv, 5.0)
    kd[:6] = 0.0
    return Gains(HUMANOID, 0.3 * suggest_gains(HUMANOID).kp, kd)


def command() -> Command:
    return Command(drive=Drive(gains(), Target(HUMANOID.rest_q)))


def crowd(copies: range | list[int], dtype: str, ground: str = "plane", threads: int = 1) -> World:
    """Copies of falling humanoids, each with its own pose, friction, bounce, push and balls."""
    who = np.array(copies)
    rng = np.random.default_rng(7)
    heights = 0.1 * rng.normal(size=(20, 20))
    draw = {
        "turn": random_turns(rng, SIZE),
        "v": rng.normal(size=(SIZE, HUMANOID.nv)),
        "friction": rng.uniform(0.1, 1.0, (SIZE, 1)),
        "restitution": rng.uniform(0.0, 0.8, (SIZE, 1)),
        "push": 300 * rng.normal(size=(SIZE, 3)),
        "ball": rng.uniform(-1, 1, (SIZE, 3)) + (0, 0, 2.0),
    }
    world = World(
        HUMANOID,
        n=len(who),
        dt=DT,
        dtype=dtype,
        threads=threads,
        ground=HeightField(heights, 0.4) if ground == "field" else True,
        obstacles=[Shape("box", (0.3, 2.0, 0.2), pos=(0.5, 0.0, 0.2))],
        friction=draw["friction"][who],
        restitution=draw["restitution"][who],
        projectiles=2,
    )
    q = np.tile(HUMANOID.rest_q, (len(who), 1))
    q[:, 2] += 0.3
    q[:, 3:7] = draw["turn"][who]
    world.reset(State(q, draw["v"][who]))
    world.push("head", draw["push"][who], 0.1, at=0.2)
    world.throw(draw["ball"][who], (0.0, 0.0, -3.0))
    # the second ball flies in some copies only
    some = [place for place, copy in enumerate(copies) if copy % 3 == 0]
    world.throw(draw["ball"][who] + (0, 0, 0.5), (0, 0, -4.0), where=np.array(some, int))
    return world


def outcome(world: World) -> tuple[Any, ...]:
    state, balls = world.state, world.projectile_state
    return (state.q, state.v, state.memory, *balls, world.torque, *world.contacts)


def assert_same(a: tuple[Any, ...], b: tuple[Any, ...]) -> None:
    for x, y in zip(a, b, strict=True):
        assert np.array_equal(x, y)


@both_dtypes
@grounds
def test_the_number_of_threads_changes_nothing(dtype: str, ground: str) -> None:
    worlds = [crowd(range(SIZE), dtype, ground, threads) for threads in (1, 2, 5)]
    for world in worlds:
        world.step(command(), steps=90)
    assert len(worlds[0].contacts.copy) > SIZE
    for world in worlds[1:]:
        assert_same(outcome(world), outcome(worlds[0]))


@both_dtypes
@grounds
def test_the_place_in_the_batch_changes_nothing(dtype: str, ground: str) -> None:
    order = np.random.default_rng(0).permutation(SIZE).tolist()
    plain, mixed = crowd(range(SIZE), dtype, ground), crowd(order, dtype, ground)
    for world in (plain, mixed):
        world.step(command(), steps=90)
    np.testing.assert_array_equal(mixed.state.q, plain.state.q[order])
    np.testing.assert_array_equal(mixed.state.v, plain.state.v[order])
    for one, other in zip(mixed.projectile_state, plain.projectile_state, strict=True):
        np.testing.assert_array_equal(one, other[order])


@both_dtypes
def test_other_company_changes_nothing(dtype: str) -> None:
    """The same copies among fewer others: other lanes, other neighbours' contacts and sweeps."""
    chosen = [1, 4, 5, 11, 18]
    all_, few = crowd(range(SIZE), dtype), crowd(chosen, dtype)
    for world in (all_, few):
        world.step(command(), steps=90)
    np.testing.assert_array_equal(few.state.q, all_.state.q[chosen])
    np.testing.assert_array_equal(few.state.v, all_.state.v[chosen])


@both_dtypes
def test_limp_joints_that_whirl_in_flight_are_braked_in_any_company(dtype: str) -> None:
    """In a tile where nothing touches, and beside copies that lie on the ground."""
    loose = replace(
        HUMANOID,
        links=tuple(
            replace(link, joints=tuple(replace(joint, limits=None) for joint in link.joints))
            for link in HUMANOID.links
        ),
    )
    n, whirls = 5, 3
    q, v = np.tile(HUMANOID.rest_q, (n, 1)), np.zeros((n, HUMANOID.nv))
    q[whirls, 2] = 50.0
    neck = HUMANOID.v_slice("neck")
    v[whirls, neck] = 50.0

    def end(rows: list[int]) -> Any:
        world = World(loose, n=len(rows), dt=1 / 60, dtype=dtype, self_collision=False)
        world.reset(State(q[rows], v[rows]))
        world.step(steps=20)
        assert not world.diverged
        return world.state

    company, alone = end(list(range(n))), end([whirls, whirls])
    np.testing.assert_array_equal(company.q[whirls], alone.q[0])
    np.testing.assert_array_equal(company.v[whirls], alone.v[0])
    assert np.abs(alone.v[0, neck]).max() < 40.0


@both_dtypes
@grounds
def test_resumed_from_a_state_it_goes_on_as_if_never_stopped(dtype: str, ground: str) -> None:
    through, resumed = crowd(range(SIZE), dtype, ground), crowd(range(SIZE), dtype, ground)
    for pause in (13, 20, 31, 26):
        through.step(command(), steps=pause)
        kept = through.state.copy()
        resumed.reset(State(kept.q, kept.v, kept.time, kept.memory))
        through.step(command(), steps=7)
        resumed.step(command(), steps=7)
        assert_same(outcome(resumed), outcome(through))


@both_dtypes
def test_a_single_world_resumes_in_a_new_world(dtype: str) -> None:
    through = crowd([3], dtype)
    for _ in range(6):
        through.step(command(), steps=15)
        fresh = crowd([3], dtype)
        fresh.reset(through.state.copy())
        through.step(command(), steps=5)
        fresh.step(command(), steps=5)
        assert_same(outcome(fresh), outcome(through))


@both_dtypes
def test_a_cold_start_forgets_balls_and_pushes(dtype: str) -> None:
    world = crowd(range(SIZE), dtype)
    world.step(command(), steps=20)
    state = world.state.copy()
    world.reset(State(state.q, state.v))
    assert not world.projectile_state.thrown.any()


def test_steps_in_one_call_are_steps_one_by_one() -> None:
    once, often = crowd(range(SIZE), "float64"), crowd(range(SIZE), "float64")
    once.step(command(), steps=60)
    for _ in range(60):
        often.step(command())
    assert_same(outcome(once), outcome(often))


def test_a_copy_that_diverges_leaves_its_neighbours_as_they_were() -> None:
    plain, hurt = crowd(range(SIZE), "float64"), crowd(range(SIZE), "float64")
    hurt.push("chest", (1e14, 0.0, 0.0), 0.5, where=[4])
    for world in (plain, hurt):
        world.step(command(), steps=60)
    assert [loss.copy for loss in hurt.diverged] == [4]
    others = np.delete(np.arange(SIZE), 4)
    np.testing.assert_array_equal(hurt.state.q[others], plain.state.q[others])


def test_copies_of_their_own_mass_stand_on_their_own_weight() -> None:
    brick = load_character("humanoid")
    scale = np.array([0.5, 1.0, 2.0])
    masses = np.array([link.mass for link in brick.links])
    world = World(brick, n=3, dt=DT, mass=scale[:, None] * masses)
    world.step(Command(drive=Drive(suggest_gains(brick, frequency=20), Target(brick.rest_q))), 120)
    seen, weight = world.contacts, np.zeros(3)
    np.add.at(weight, seen.copy, seen.force[:, 2])
    np.testing.assert_allclose(weight, scale * masses.sum() * 9.81, rtol=0.05)
