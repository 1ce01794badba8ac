"""The loop: clocks, phases, and runs that go on where others ended, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import poise

HUMANOID = poise.load_character("humanoid")
WALK = poise.load_clip("walk")

MAKE: dict[str, Callable[[poise.World], Any]] = {
    "spd": lambda world: poise.StablePD(world, root="soft"),
    "spd-torque": lambda world: poise.StablePD(world, root="soft", embedded=False),
    "kane": lambda world: poise.InverseDynamics(world, root="held"),
    "balance": poise.Balance,
}


def started(n: int = 1, **options: Any) -> poise.World:
    world = poise.World(HUMANOID, n=n, **{"dt": 1 / 60, **options})
    world.reset(WALK.state(0.0))
    return world


def same(one: poise.State, two: poise.State) -> bool:
    pairs = ((one.q, two.q), (one.v, two.v), (one.time, two.time))
    return all(np.array_equal(x, y) for x, y in pairs)


def test_a_state_of_a_clip_knows_its_time() -> None:
    assert WALK.state(1.5).time == 1.5
    np.testing.assert_array_equal(WALK.state([0.5, 1.0]).time, [0.5, 1.0])
    world = started()
    world.reset(WALK.state(1.5))
    assert world.time == 1.5


def test_a_run_follows_the_clip_from_the_time_of_the_state() -> None:
    world = started()
    world.reset(WALK.state(1.5))
    poise.run(world, poise.StablePD(world, root="held"), WALK, 1.0)
    assert np.abs(world.state.q[:2] - WALK.q(2.5)[:2]).max() < 0.02


@pytest.mark.parametrize("name", ["spd", "kane"])
def test_each_copy_follows_the_clip_at_its_own_phase(name: str) -> None:
    phases = np.array([0.0, 0.4, 1.1])
    world = started(n=3)
    world.reset(WALK.state(phases))
    poise.run(world, MAKE[name](world), WALK, 0.5)
    np.testing.assert_allclose(world.time, phases + 0.5, rtol=1e-12)
    for i, phase in enumerate(phases):
        alone = started(n=2)
        alone.reset(WALK.state([phase, phase]))
        poise.run(alone, MAKE[name](alone), WALK, 0.5)
        np.testing.assert_array_equal(world.state.q[i], alone.state.q[0])


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("name", MAKE)
def test_two_runs_are_one_bit_for_bit(name: str, n: int) -> None:
    once, twice = started(n), started(n)
    poise.run(once, MAKE[name](once), WALK, 2.0)
    controller = MAKE[name](twice)
    for duration in (0.7, 1.3):
        poise.run(twice, controller, WALK, duration)
    assert same(once.state, twice.state)


@pytest.mark.parametrize("name", ["spd", "kane"])
def test_a_run_resumed_from_a_recording_is_the_same_bit_for_bit(name: str, tmp_path: Any) -> None:
    world = started()
    recording = poise.Recording(world, fps=20)
    poise.run(world, MAKE[name](world), WALK, 2.0, record=recording)
    recording.save(tmp_path / "walk.npz")
    again = poise.load_recording(tmp_path / "walk.npz").world(13)
    poise.run(again, MAKE[name](again), WALK, 2.0 - float(again.time))
    assert same(world.state, again.state)


def test_recording_changes_nothing() -> None:
    plain, recorded = started(), started()
    poise.run(plain, MAKE["spd"](plain), WALK, 1.0)
    poise.run(recorded, MAKE["spd"](recorded), WALK, 1.0, poise.Recording(recorded, fps=7))
    assert same(plain.state, recorded.state)


def test_a_loop_by_hand_is_a_run_bit_for_bit() -> None:
    by_hand, run = started(), started()
    servo = MAKE["spd"](by_hand)
    for t in by_hand.until(1.0):
        by_hand.step(servo(by_hand.state, WALK.target(t + by_hand.dt)))
    poise.run(run, MAKE["spd"](run), WALK, 1.0)
    assert same(by_hand.state, run.state)


def test_rows_of_targets_come_at_the_times_of_the_clock() -> None:
    world = started()
    times = []
    for t in world.until(1.0):
        times.append(t)
        world.step()
    rows = WALK.targets(0.0, world.dt, len(times))
    np.testing.assert_array_equal(rows.time, times)


def test_a_motion_that_waits_refuses_clocks_that_differ() -> None:
    world = started(n=2)
    world.reset(WALK.state([0.0, 0.5]))
    balance = poise.Balance(world)
    with pytest.raises(poise.PoiseError, match="one clock"):
        poise.run(world, balance, balance.scale_time(WALK), 0.1)
