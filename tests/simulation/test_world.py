"""What happens: states, resets, commands, pushes, divergence, scenes, threads."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import math
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from free_world import World
from numpy.typing import NDArray
from trees import random_character, random_state

import poise
from poise import (
    Character,
    Command,
    Diverged,
    Joint,
    Link,
    PoiseError,
    State,
    Target,
    dynamics,
    load_character,
    reference,
)
from poise.control import Gains, StablePD, suggest_gains
from poise.math.rotation import quat_matrix
from poise.simulation.command import Drive
from poise.simulation.world import Divergence

Array = NDArray[np.float64]

DT = 1 / 120
HUMANOID = poise.load_character("humanoid")
ARM = poise.load_character("two-link")


def box(name: str = "box", mass: float = 2.0, **joint: Any) -> Character:
    """A free object whose center of mass is not its origin."""
    link = Link(
        "body",
        joints=(Joint("root", "free", **joint),),
        mass=mass,
        com=(0.1, -0.2, 0.05),
        inertia=(0.3, 0.4, 0.5),
    )
    return Character(name, (link,))


def hinge(**joint: Any) -> Character:
    """A wheel of inertia 1 on a hinge, which gravity does not turn."""
    link = Link(
        "wheel", joints=(Joint("axle", "hinge", **joint),), mass=1.0, inertia=(1.0, 1.0, 1.0)
    )
    return Character("wheel", (link,))


def some_state(character: Character, n: int, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    q, v = zip(*(random_state(rng, character) for _ in range(n)), strict=True)
    return State(np.array(q), np.array(v)) if n > 1 else State(q[0], v[0])


def some_trees(count: int = 4) -> list[Character]:
    rng = np.random.default_rng(7)
    return [random_character(rng, int(rng.integers(3, 9)), passive=False) for _ in range(count)]


def same(a: State, b: State, where: Any = slice(None)) -> bool:
    """Bit for bit, clocks included."""
    pairs = ((a.q, b.q), (a.v, b.v), (np.atleast_1d(a.time), np.atleast_1d(b.time)))
    return all(np.array_equal(x[where], y[where]) for x, y in pairs)


def fall(world: World, steps: int) -> World:
    world.step(steps=steps)
    return world


# ---- states


def test_a_state_read_before_a_step_keeps_its_numbers() -> None:
    world = World(HUMANOID, n=3, dt=DT)
    state = world.state
    q, v, t = state.q.copy(), state.v.copy(), state.time.copy()
    world.step(steps=5)
    assert np.array_equal(state.q, q)
    assert np.array_equal(state.v, v)
    assert np.array_equal(state.time, t)


@pytest.mark.parametrize("n", [1, 5])
def test_a_held_but_unread_state_keeps_its_numbers(n: int) -> None:
    world = World(HUMANOID, n=n, dt=DT)
    start = some_state(HUMANOID, n)
    world.reset(start)
    held = world.state
    world.step(steps=5)
    np.testing.assert_allclose(held.q, start.q, rtol=0, atol=1e-15)
    assert np.array_equal(held.v, start.v)
    assert np.all(held.time == 0.0)
    assert not np.array_equal(world.state.v, start.v)


def test_a_held_but_unread_state_outlives_reset_and_push() -> None:
    world = fall(World(ARM, dt=DT), 3)
    held = world.state
    world.push("lower", (1.0, 0.0, 0.0), 1.0)
    world.reset()
    assert held.time == pytest.approx(3 * DT)
    assert held.memory is not None
    assert not held.memory.any()


def test_a_held_but_unread_state_survives_a_step_that_is_refused() -> None:
    world = fall(World(ARM, dt=DT), 3)
    held = world.state
    with pytest.raises(PoiseError):
        world.step(Command(force=np.zeros(5)))
    assert held.time == pytest.approx(3 * DT)
    assert same(held, world.state)


def test_an_embedded_drive_copies_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(HUMANOID, dt=DT)
    servo, target = StablePD(HUMANOID), Target(HUMANOID.rest_q)

    def read(self: World) -> None:
        raise AssertionError("the state was copied")

    monkeypatch.setattr(World, "_read_state", read)
    for _ in range(3):
        world.step(servo(world.state, target))
    with pytest.raises(AssertionError, match="copied"):
        _ = world.state.q


def test_a_state_is_copied_once_however_often_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(ARM, dt=DT)
    calls = []
    read = World._read_state

    def count(self: World) -> Any:
        calls.append(1)
        return read(self)

    monkeypatch.setattr(World, "_read_state", count)
    state = world.state
    for _ in range(3):
        assert state.q.shape == state.v.shape == (2,)
    assert len(calls) == 1


def test_changing_the_arrays_of_a_read_state_does_not_change_what_the_world_says() -> None:
    world = World(ARM, dt=DT)
    state = world.state
    try:
        state.q[0] = 5.0
    except ValueError:
        return  # read-only is as good
    assert world.state.q[0] == 0.0


def test_a_copy_of_a_state_is_independent() -> None:
    state = State([0.1, 0.2], [0.3, 0.4], time=2.0)
    copy = state.copy()
    copy.q[0], copy.v[0] = 9.0, 9.0
    assert (state.q[0], state.v[0], float(copy.time)) == (0.1, 0.3, 2.0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_state_written_back_goes_on_bit_for_bit(dtype: str) -> None:
    """Written back after every step: nothing is hidden outside the State."""
    through, broken = (World(HUMANOID, n=9, dt=DT, dtype=dtype) for _ in range(2))
    for world in (through, broken):
        world.reset(some_state(HUMANOID, 9))
        world.push("head", (50.0, 0.0, 0.0), 0.5, at=0.1)
    for _ in range(100):
        through.step()
        broken.step()
        broken.reset(broken.state.copy())
    assert same(through.state, broken.state)


def test_a_state_of_one_world_continues_in_another() -> None:
    first = World(HUMANOID, n=4, dt=DT)
    first.reset(some_state(HUMANOID, 4))
    first.push("head", (50.0, 0.0, 0.0), math.inf)
    first.step(steps=20)
    second = World(HUMANOID, n=4, dt=DT)
    second.reset(first.state)
    assert same(fall(first, 50).state, fall(second, 50).state)


def test_states_of_a_world_of_one_have_no_leading_axis() -> None:
    one, two = World(HUMANOID, dt=DT), World(HUMANOID, n=2, dt=DT)
    assert (one.state.q.shape, one.state.v.shape, one.state.time.shape) == ((43,), (34,), ())
    assert (two.state.q.shape, two.state.v.shape, two.state.time.shape) == ((2, 43), (2, 34), (2,))
    assert (one.torque.shape, two.torque.shape) == ((34,), (2, 34))


# ---- reset and clocks


def test_a_new_world_is_at_rest_in_the_rest_pose_at_time_zero() -> None:
    state = World(HUMANOID, n=2, dt=DT).state
    assert np.array_equal(state.q, np.array([HUMANOID.rest_q] * 2))
    assert not state.v.any()
    assert not state.time.any()


@pytest.mark.parametrize(
    "where", [[1, 4], [-4, -1], np.array([False, True, False, False, True]), np.array([4, 1, 1])]
)
def test_some_copies_are_reset_by_index_or_mask_with_their_clocks(where: Any) -> None:
    world = World(ARM, n=5, dt=DT)
    state = State([[float(i), 0.0] for i in range(5)], np.full((5, 2), 0.5), time=np.arange(5.0))
    world.step(steps=6)
    world.reset(state, where=where)
    t = 6 * DT
    np.testing.assert_allclose(world.time, [t, 1.0, t, t, 4.0], rtol=1e-14)
    assert np.array_equal(world.state.q[[1, 4], 0], [1.0, 4.0])
    assert np.array_equal(world.state.v[[1, 4]], np.full((2, 2), 0.5))
    assert np.all(world.state.v[[0, 2, 3]] != 0.5)


def test_a_reset_leaves_the_other_copies_untouched_bit_for_bit() -> None:
    alone, disturbed = World(HUMANOID, n=9, dt=DT), World(HUMANOID, n=9, dt=DT)
    for world in (alone, disturbed):
        world.reset(some_state(HUMANOID, 9))
    for _ in range(60):
        alone.step()
        disturbed.step()
        disturbed.reset(where=[2, 8])
    others = [0, 1, 3, 4, 5, 6, 7]
    assert same(alone.state, disturbed.state, others)
    assert not disturbed.state.time[[2, 8]].any()


def test_a_reset_of_no_copies_changes_nothing() -> None:
    world = fall(World(ARM, n=3, dt=DT), 4)
    before = world.state.copy()
    world.reset(where=[])
    world.reset(where=np.zeros(3, dtype=bool))
    assert same(before, world.state)


def test_a_state_of_one_row_serves_all_copies() -> None:
    world = World(ARM, n=3, dt=DT)
    world.reset(State([0.1, 0.2], [0.3, 0.4], time=7.0))
    assert np.array_equal(world.state.q, [[0.1, 0.2]] * 3)
    assert np.array_equal(world.time, [7.0] * 3)


def test_each_copy_runs_on_its_own_clock() -> None:
    world = World(ARM, n=3, dt=DT)
    world.reset(State([0.0, 0.0], time=[0.0, 10.0, -3.0]))
    world.step(steps=12)
    np.testing.assert_allclose(world.time, [0.1, 10.1, -2.9], rtol=1e-13)


def test_positions_alone_are_a_state_at_rest() -> None:
    world = fall(World(ARM, dt=DT), 5)
    world.reset(State([0.3, 0.1]))
    assert not world.state.v.any()
    assert world.time == 0.0


def test_nearly_unit_quaternions_are_normalised() -> None:
    world = World(HUMANOID, dt=DT)
    q = HUMANOID.rest_q
    q[3] = 1.0004
    world.reset(State(q))
    assert world.state.q[3] == 1.0


# ---- targets of k rows


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_a_target_of_k_rows_is_followed_row_by_row(n: int, shared: bool) -> None:
    rng = np.random.default_rng(1)
    shape = (7,) if shared else (7, n)
    q, v = rng.normal(size=(*shape, 2)), rng.normal(size=(*shape, 2))
    gains = suggest_gains(ARM)
    once, often = World(ARM, n=n, dt=DT), World(ARM, n=n, dt=DT)
    once.step(Command(drive=Drive(gains, Target(q, v, rows=7))), steps=7)
    for i in range(7):
        often.step(Command(drive=Drive(gains, Target(q, v, rows=7).row(i))))
    assert same(once.state, often.state)


def test_rows_of_accelerations_feed_forward_row_by_row() -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=(5, 6))
    rest, gains = box().rest_q, suggest_gains(box(), root="soft")
    once, often = World(box(), dt=DT), World(box(), dt=DT)
    rows = Target(np.tile(rest, (5, 1)), a=a, rows=5)
    once.step(Command(drive=Drive(gains, rows, feedforward=True)), steps=5)
    for i in range(5):
        often.step(Command(drive=Drive(gains, rows.row(i), feedforward=True)))
    assert same(once.state, often.state)


@pytest.mark.parametrize("steps", [1, 6, 8, 70])
def test_another_number_of_steps_than_rows_is_refused(steps: int) -> None:
    world = World(ARM, dt=DT)
    target = Target(np.zeros((7, 2)), rows=7)
    before = world.state
    with pytest.raises(PoiseError, match=f"7 rows and steps is {steps}"):
        world.step(Command(drive=Drive(suggest_gains(ARM), target)), steps=steps)
    assert same(before, world.state)


def test_a_target_of_one_row_is_held_for_any_number_of_steps() -> None:
    command = Command(drive=Drive(suggest_gains(ARM), Target([0.4, -0.2])))
    once, often = World(ARM, dt=DT), World(ARM, dt=DT)
    once.step(command, steps=9)
    for _ in range(9):
        often.step(command)
    assert same(once.state, often.state)


# ---- commands


@pytest.mark.parametrize("character", some_trees(), ids=lambda c: f"nv{c.nv}")
def test_a_force_is_that_of_the_reference(character: Character) -> None:
    rng = np.random.default_rng(3)
    q, v = random_state(rng, character)
    tau = rng.normal(size=character.nv)
    world = World(character, dt=DT, momentum_correction=False)
    world.reset(State(q, v))
    world.step(Command(force=tau))
    a = reference.forward_dynamics(character, q, v, tau)
    q1, v1 = reference.step(character, q, v, a, DT)
    np.testing.assert_allclose(world.state.v, v1, rtol=0, atol=1e-9 * (1 + np.abs(v1).max()))
    np.testing.assert_allclose(world.state.q, q1, rtol=0, atol=1e-10 * (1 + np.abs(v1).max()))
    assert np.array_equal(world.torque, tau)


@pytest.mark.parametrize("form", dynamics.FORMS)
def test_a_drive_is_that_of_the_reference(form: Any) -> None:
    character = some_trees()[1]
    rng = np.random.default_rng(4)
    (q, v), target = random_state(rng, character), random_state(rng, character)
    kp, kd = rng.uniform(1, 20, character.nv), rng.uniform(0, 2, character.nv)
    world = World(character, dt=DT)
    world.reset(State(q, v))
    world.step(Command(drive=Drive(Gains(character, kp, kd), Target(*target), form=form)))
    a, tau = reference.stable_pd(character, q, v, target, kp, kd, DT, form=form)
    np.testing.assert_allclose((world.state.v - v) / DT, a, rtol=0, atol=1e-9 * np.abs(a).max())
    np.testing.assert_allclose(world.torque, tau, rtol=0, atol=1e-9 * np.abs(tau).max())


def test_the_parts_of_a_command_add_up() -> None:
    """Forces on top of a drive whose gains are all zero are forces."""
    nothing = Gains(ARM, 0.0, 0.0)
    drive = Drive(nothing, Target([1.0, 1.0]))
    both, alone = World(ARM, dt=DT), World(ARM, dt=DT)
    both.step(Command(force=np.array([0.5, 0.1]), drive=drive))
    alone.step(Command(force=np.array([0.5, 0.1])))
    np.testing.assert_allclose(both.state.v, alone.state.v, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("character", [HUMANOID, box(), *some_trees()], ids=lambda c: f"nv{c.nv}")
def test_joints_get_the_accelerations_asked_for(character: Character, n: int) -> None:
    rng = np.random.default_rng(5)
    start, asked = some_state(character, n), rng.normal(size=character.nv)
    world = World(character, n=n, dt=DT)
    world.reset(start)
    world.step(Command(acceleration=asked))
    got = (world.state.v - start.v) / DT
    joints = [i for i in range(character.nv) if character.joints[0].kind != "free" or i >= 6]
    # rounding of v / dt and of the solve
    np.testing.assert_allclose(got[..., joints] - asked[joints], 0.0, atol=2e-9)


def test_accelerations_are_kept_in_every_step_of_a_call() -> None:
    asked = np.random.default_rng(6).normal(size=HUMANOID.nv)
    world = World(HUMANOID, dt=1e-3)
    world.step(Command(acceleration=asked), steps=20)
    np.testing.assert_allclose(world.state.v[6:], 20e-3 * asked[6:], rtol=1e-9)


def test_accelerations_move_a_free_root_without_changing_its_momentum() -> None:
    start = some_state(HUMANOID, 1)
    world = World(HUMANOID, dt=DT, gravity=(0.0, 0.0, 0.0), momentum_correction=False)
    world.reset(start)
    world.step(Command(acceleration=np.random.default_rng(7).normal(size=HUMANOID.nv)))
    a = (world.state.v - start.v) / DT
    matrix, bias = reference.centroidal_momentum(HUMANOID, start.q, start.v)
    rate = matrix @ a + bias
    assert np.abs(rate).max() < 1e-9 * np.abs(matrix).max() * np.abs(a).max()
    assert not world.torque[:6].any()


def test_accelerations_of_a_free_root_are_not_used() -> None:
    asked = np.zeros(HUMANOID.nv)
    shifted = asked.copy()
    shifted[:6] = 100.0
    a, b = World(HUMANOID, dt=DT), World(HUMANOID, dt=DT)
    a.step(Command(acceleration=asked))
    b.step(Command(acceleration=shifted))
    assert same(a.state, b.state)


def test_accelerations_are_reached_against_springs_and_dampers() -> None:
    world = World(hinge(stiffness=5.0, damping=2.0, armature=0.3), dt=DT)
    world.reset(State([0.5], [1.0]))
    world.step(Command(acceleration=np.array([3.0])))
    assert (world.state.v[0] - 1.0) / DT == pytest.approx(3.0, rel=1e-11)


def test_accelerations_may_differ_from_copy_to_copy() -> None:
    asked = np.random.default_rng(8).normal(size=(5, 2))
    world = World(ARM, n=5, dt=DT)
    world.step(Command(acceleration=asked))
    np.testing.assert_allclose(world.state.v / DT, asked, rtol=1e-10)


def test_velocities_are_refused_with_what_would_be_taken() -> None:
    with pytest.raises(PoiseError, match=r"force, drive and acceleration.*velocity"):
        World(ARM, dt=DT).step(Command(velocity=np.array([0.0, 0.0])))


def test_passive_springs_and_dampers_act_implicitly() -> None:
    """(1 + d dt + k dt²) a = -k (q + dt v - r) - d v, on a wheel of inertia 1."""
    k, d, r = 40.0, 3.0, 0.2
    world = World(hinge(stiffness=k, damping=d, reference=r), dt=DT)
    world.reset(State([0.7], [1.5]))
    world.step()
    a = -(k * (0.7 + DT * 1.5 - r) + d * 1.5) / (1 + d * DT + k * DT**2)
    assert (world.state.v[0] - 1.5) / DT == pytest.approx(a, rel=1e-12)


@pytest.mark.parametrize("n", [1, 64])
def test_many_free_bodies_with_damping_and_armature_move_as_each_alone(n: int) -> None:
    bodies = [box(f"box{i}", damping=0.1 + i, armature=0.01) for i in range(12)]
    world = fall(World(bodies, n=n, dt=DT), 5)
    for i, body in enumerate(bodies):
        alone = fall(World(body, dt=DT), 5)
        part = np.atleast_2d(world.state.v)[-1, world.part(f"box{i}").v]
        np.testing.assert_allclose(part, alone.state.v, rtol=1e-12, atol=1e-14)


def test_a_world_without_command_falls_freely() -> None:
    world = fall(World(box(), dt=DT, gravity=(1.0, -2.0, -3.0)), 60)
    np.testing.assert_allclose(world.state.v[:3], [0.5, -1.0, -1.5], rtol=1e-12)
    np.testing.assert_allclose(world.state.v[3:], 0.0, atol=1e-12)


def test_without_gravity_nothing_starts_to_move() -> None:
    world = fall(World(HUMANOID, dt=DT, gravity=np.zeros(3)), 60)
    np.testing.assert_allclose(world.state.q, HUMANOID.rest_q, rtol=0, atol=1e-14)


def test_gravity_may_be_changed_between_steps() -> None:
    world = World(box(), dt=DT)
    world.gravity = np.array([0.0, 6.0, 0.0])
    world.step(steps=10)
    np.testing.assert_allclose(world.state.v[:3], [0.0, 60.0 * DT, 0.0], atol=1e-14)


def test_a_world_keeps_its_own_gravity() -> None:
    given = np.array([0.0, 0.0, -9.81])
    world = World(box(), dt=DT, gravity=given)
    given[:] = 0.0
    assert world.gravity[2] == -9.81
    with pytest.raises(ValueError, match="read-only"):
        world.gravity[2] = 0.0


# ---- pushes


def test_a_push_through_the_mass_centre_gives_its_impulse_and_no_spin() -> None:
    """Over 3.7 steps from 0.4 of a step on: the parts of steps count in part."""
    world = World(box(), dt=0.01, gravity=np.zeros(3))
    world.push("body", (3.0, -1.0, 2.0), 0.037, at=0.004)
    world.step(steps=10)
    momentum = np.array([3.0, -1.0, 2.0]) * 0.037
    np.testing.assert_allclose(world.state.v[:3], momentum / 2.0, rtol=1e-12)
    np.testing.assert_allclose(world.state.v[3:], 0.0, atol=1e-14)


@pytest.mark.parametrize("duration", [1e-6, 0.0049, 0.01, 0.0101])
def test_a_push_shorter_than_a_step_gives_its_impulse(duration: float) -> None:
    world = World(box(), dt=0.01, gravity=np.zeros(3))
    world.push("body", (2.0, 0.0, 0.0), duration, at=0.0023)
    world.step(steps=4)
    assert world.state.v[0] == pytest.approx(duration, rel=1e-9)


def test_a_push_starts_on_the_clock_of_each_copy() -> None:
    world = World(box(), n=3, dt=0.01, gravity=np.zeros(3))
    world.reset(State(box().rest_q, time=[0.0, 0.05, 0.0]))
    world.push("body", (2.0, 0.0, 0.0), 0.02, at=0.05, where=[0, 1])
    world.step(steps=4)
    np.testing.assert_allclose(world.state.v[:, 0], [0.0, 0.02, 0.0], atol=1e-15)
    world.step(steps=4)
    np.testing.assert_allclose(world.state.v[:, 0], [0.02, 0.02, 0.0], atol=1e-15)


def test_a_push_without_a_time_starts_now_on_each_clock() -> None:
    world = World(box(), n=2, dt=0.01, gravity=np.zeros(3))
    world.reset(State(box().rest_q, time=[0.0, 50.0]))
    world.push("body", (2.0, 0.0, 0.0), 0.02)
    world.step(steps=4)
    # the clock that shows 50 s counts steps to 7e-15 / dt
    np.testing.assert_allclose(world.state.v[:, 0], 0.02, rtol=1e-11)


def test_pushes_may_differ_from_copy_to_copy_and_reach_only_some() -> None:
    force = np.arange(15.0).reshape(5, 3)
    world = World(box(), n=5, dt=0.01, gravity=np.zeros(3))
    world.push("body", force, 0.01, where=[0, 3, 4])
    world.step()
    expected = force / 2.0 * 0.01
    expected[[1, 2]] = 0.0
    np.testing.assert_allclose(world.state.v[:, :3], expected, atol=1e-15)


def test_a_push_ends() -> None:
    world = World(box(), dt=0.01, gravity=np.zeros(3))
    world.push("body", (2.0, 0.0, 0.0), 0.02)
    v = fall(world, 3).state.v
    assert np.array_equal(fall(world, 5).state.v[:3], v[:3])


def test_a_push_inside_a_long_call_acts_as_in_single_steps() -> None:
    once, often = (World(HUMANOID, n=3, dt=DT) for _ in range(2))
    for world in (once, often):
        world.push("head", (30.0, 0.0, 0.0), 2.6 * DT, at=1.7 * DT, where=[1])
    once.step(steps=8)
    for _ in range(8):
        often.step()
    assert same(once.state, often.state)
    assert not np.array_equal(once.state.v[0], once.state.v[1])


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("character", some_trees(), ids=lambda c: f"nv{c.nv}")
def test_a_push_without_end_is_a_constant_external_force(character: Character, n: int) -> None:
    rng = np.random.default_rng(9)
    link = len(character.links) - 1
    force, torque, point = rng.normal(size=(3, 3))
    start = some_state(character, 1)
    world = World(character, n=n, dt=DT, momentum_correction=False)
    world.reset(start)
    world.push(link, force, math.inf, torque=torque, point=point)
    q, v = start.q, start.v
    for _ in range(20):
        world.step()
        quaternion = reference.forward_kinematics(character, q)[1]
        arm = quat_matrix(quaternion[link]) @ point
        external = np.zeros((len(character.links), 6))
        external[link] = [*force, *(torque + np.cross(arm, force))]
        a = reference.forward_dynamics(character, q, v, np.zeros(character.nv), external=external)
        q, v = reference.step(character, q, v, a, DT)
    # rounding grows along the way
    np.testing.assert_allclose(np.atleast_2d(world.state.v)[-1], v, rtol=0, atol=1e-8)


def test_more_pushes_than_slots_are_refused_and_none_is_half_taken() -> None:
    world = World(box(), n=3, dt=0.01, gravity=np.zeros(3))
    for _ in range(8):
        world.push("body", (2.0, 0.0, 0.0), 0.01, where=[1])
    with pytest.raises(PoiseError, match="copy 1 has 8 pushes running or waiting"):
        world.push("body", (2.0, 0.0, 0.0), 0.01)
    world.step()
    np.testing.assert_allclose(world.state.v[:, 0], [0.0, 0.08, 0.0], atol=1e-15)


def test_ended_pushes_make_room_for_new_ones() -> None:
    world = World(box(), dt=0.01, gravity=np.zeros(3))
    for _ in range(30):
        world.push("body", (2.0, 0.0, 0.0), 0.01)
        world.step()
    assert world.state.v[0] == pytest.approx(0.3, rel=1e-12)


def test_a_cold_start_forgets_running_pushes() -> None:
    world = World(box(), n=2, dt=0.01, gravity=np.zeros(3))
    world.push("body", (2.0, 0.0, 0.0), math.inf)
    world.reset(where=[0])
    world.step()
    np.testing.assert_allclose(world.state.v[:, 0], [0.0, 0.01], atol=1e-15)


def test_pushing_a_link_that_is_welded_to_the_world_moves_nothing() -> None:
    stand = Link("stand", mass=1.0)
    arm = Link("arm", "stand", joints=hinge().joints, mass=1.0, inertia=(1.0, 1.0, 1.0))
    world = World(Character("lamp", (stand, arm)), dt=DT)
    world.push("stand", (100.0, 0.0, 0.0), 1.0)
    assert not fall(world, 3).state.v.any()


# ---- numbers of its own


def remade(character: Character, mass: Any, inertia: Any) -> Character:
    """The same links with other masses and inertias."""
    links = [
        dataclasses.replace(link, mass=m, inertia=I)
        for link, m, I in zip(character.links, mass, inertia, strict=True)
    ]
    return Character(character.name, tuple(links))


def with_mass(character: Character, mass: Array) -> Character:
    """Heavier; inertias scale along."""
    old = [link.mass for link in character.links]
    scale = (mass / old)[:, None, None]
    return remade(character, mass, scale * np.array([link.inertia for link in character.links]))


@pytest.mark.parametrize("n", [1, 6])
def test_masses_per_copy_are_those_of_other_characters(n: int) -> None:
    rng = np.random.default_rng(10)
    mass = rng.uniform(0.5, 3.0, (n, len(HUMANOID.links)))
    start = some_state(HUMANOID, n)
    own = World(HUMANOID, n=n, dt=DT, mass=mass)
    own.reset(start)
    own.step(steps=10)
    for i in range(n):
        other = World(with_mass(HUMANOID, mass[i]), n=n, dt=DT)
        other.reset(start)
        v = np.atleast_2d(fall(other, 10).state.v)[i]
        np.testing.assert_allclose(np.atleast_2d(own.state.v)[i], v, rtol=0, atol=1e-9)


def test_masses_shared_by_all_copies_are_those_of_another_character() -> None:
    mass = np.random.default_rng(11).uniform(0.5, 3.0, len(HUMANOID.links))
    start = some_state(HUMANOID, 3)
    own = World(HUMANOID, n=3, dt=DT, mass=mass)
    other = World(with_mass(HUMANOID, mass), n=3, dt=DT)
    for world in (own, other):
        world.reset(start)
        world.step(steps=10)
    np.testing.assert_allclose(own.state.v, other.state.v, rtol=0, atol=1e-9)


def test_inertias_per_copy_are_those_of_other_characters() -> None:
    scale = np.array([0.5, 1.0, 2.0])
    inertia = scale[:, None, None, None] * np.array([link.inertia for link in ARM.links])
    own = World(ARM, n=3, dt=DT, inertia=inertia)
    own.reset(State([0.5, -0.3], [1.0, 2.0]))
    own.step(steps=10)
    for i in range(3):
        other = World(remade(ARM, [link.mass for link in ARM.links], inertia[i]), dt=DT)
        other.reset(State([0.5, -0.3], [1.0, 2.0]))
        np.testing.assert_allclose(own.state.v[i], fall(other, 10).state.v, rtol=1e-12)


def test_armature_per_copy_is_that_of_other_joints() -> None:
    armature = np.array([[0.5], [0.0], [3.0]])
    own = World(hinge(), n=3, dt=DT, armature=armature)
    own.step(Command(force=np.array([2.0])), steps=7)
    np.testing.assert_allclose(own.state.v[:, 0], 7 * DT * 2.0 / (1.0 + armature[:, 0]), rtol=1e-12)


def test_one_copy_with_armature_does_not_change_its_neighbours() -> None:
    armature = np.zeros((5, HUMANOID.nv))
    own = World(HUMANOID, n=5, dt=DT, armature=armature)
    armature[2] = 0.5
    other = World(HUMANOID, n=5, dt=DT, armature=armature)
    for world in (own, other):
        world.reset(some_state(HUMANOID, 5))
        world.step(steps=10)
    np.testing.assert_allclose(own.state.v[[0, 1, 3, 4]], other.state.v[[0, 1, 3, 4]], atol=1e-10)
    assert not np.allclose(own.state.v[2], other.state.v[2])


def test_the_dynamics_of_a_world_are_those_of_its_own_masses() -> None:
    mass = np.random.default_rng(12).uniform(0.5, 3.0, len(HUMANOID.links))
    q = some_state(HUMANOID, 1).q
    own = dynamics.mass_matrix(World(HUMANOID, dt=DT, mass=mass), q)
    expected = reference.mass_matrix(with_mass(HUMANOID, mass), q)
    np.testing.assert_allclose(own, expected, rtol=0, atol=1e-11)


# ---- divergence


def test_divergence_is_raised_with_time_joint_and_last_good_state() -> None:
    world = fall(World(ARM, dt=DT), 4)
    good = world.state.copy()
    with pytest.raises(Diverged, match="first in joint 'elbow'") as caught:
        world.step(Command(force=np.array([0.0, 1e12])))
    error = caught.value
    assert error.time == pytest.approx(4 * DT)
    assert (error.joint, error.copies) == ("elbow", (0,))
    assert same(error.state, good)
    assert same(world.state, good)


def test_the_last_good_state_inside_a_long_call_is_that_of_the_step_before() -> None:
    """A force that lets a wheel pass 1e6 rad/s in its sixth step."""
    world = World(hinge(), dt=0.01)
    with pytest.raises(Diverged) as caught:
        world.step(Command(force=np.array([1.9e7])), steps=10)
    assert caught.value.time == pytest.approx(0.05)
    assert caught.value.state.v[0] == pytest.approx(5 * 0.01 * 1.9e7)


def test_a_lost_world_of_one_says_so_in_every_further_step() -> None:
    world = World(ARM, dt=DT)
    for _ in range(3):
        with pytest.raises(Diverged):
            world.step(Command(force=np.array([0.0, 1e13])))
    with pytest.raises(Diverged):
        world.step()


def test_a_raised_state_can_be_replayed() -> None:
    world = World(ARM, dt=DT)
    gains = Gains(ARM, 1e7, 0.0)
    command = Command(drive=Drive(gains, Target([0.1, 0.1]), form="pd"))
    with pytest.raises(Diverged) as caught:
        world.step(command, steps=1000)
    assert np.isfinite(caught.value.state.q).all()
    world.reset(caught.value.state)
    with pytest.raises(Diverged) as again:
        world.step(command)
    assert (again.value.time, again.value.joint) == (caught.value.time, caught.value.joint)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("passive", [False, True])
def test_a_lost_copy_leaves_its_neighbours_untouched_bit_for_bit(dtype: str, passive: bool) -> None:
    character = random_character(
        np.random.default_rng(3), 6, base="free", passive=passive, effort=passive
    )
    servo = StablePD(character, frequency=2.0)
    whole, broken = (World(character, n=17, dt=DT, dtype=dtype) for _ in range(2))
    for world in (whole, broken):
        world.reset(some_state(character, 17))
    broken.push(0, (1e12, 0.0, 0.0), DT, at=5 * DT, where=[3, 16])
    for _ in range(60):
        for world in (whole, broken):
            world.step(servo(None, Target(character.rest_q)))
    others = [i for i in range(17) if i not in (3, 16)]
    assert same(whole.state, broken.state, others)
    assert np.array_equal(whole.torque[others], broken.torque[others])
    assert [loss.copy for loss in broken.diverged] == [3, 16]


def test_lost_copies_are_listed_with_joint_and_time_and_stand_still() -> None:
    world = World(ARM, n=6, dt=DT)
    world.step(steps=2)
    force = np.zeros((6, 2))
    force[4, 1] = 1e13
    before = world.state.copy()
    world.step(Command(force=force), steps=3)
    assert world.diverged == [Divergence(4, "elbow", float(before.time[4]), False)]
    assert np.array_equal(world.state.q[4], before.q[4])
    np.testing.assert_allclose(world.time, np.where(np.arange(6) == 4, 2, 5) * DT, rtol=1e-13)


def test_a_reset_revives_a_lost_copy() -> None:
    world = World(ARM, n=3, dt=DT)
    world.step(Command(force=np.array([[0.0, 0.0], [0.0, 1e13], [0.0, 0.0]])))
    world.reset(where=[1])
    assert world.diverged == []
    world.reset(State([0.3, 0.0]))
    world.step(steps=3)
    assert np.array_equal(world.state.v[1], world.state.v[0])


def test_raise_and_freeze_can_be_chosen_against_the_default() -> None:
    force = np.array([[0.0, 0.0], [0.0, 1e13], [1e13, 0.0]])
    with pytest.raises(Diverged, match="in copies 1, 2") as caught:
        World(ARM, n=3, dt=DT, on_divergence="raise").step(Command(force=force))
    assert caught.value.state.q.shape == (3, 2)
    one = World(ARM, dt=DT, on_divergence="freeze")
    one.step(Command(force=np.array([1e13, 0.0])))
    assert [loss.copy for loss in one.diverged] == [0]


def test_gravity_beyond_all_bounds_is_a_loss_and_not_a_crash() -> None:
    world = World(HUMANOID, n=3, dt=DT, gravity=(0.0, 0.0, -1e300))
    world.step(steps=5)
    assert [loss.copy for loss in world.diverged] == [0, 1, 2]
    assert np.array_equal(world.state.q, np.array([HUMANOID.rest_q] * 3))


# ---- until


@pytest.mark.parametrize("dt", [1 / 60, 1 / 120, 0.01, 0.003])
def test_until_gives_one_time_per_step_and_ends(dt: float) -> None:
    world = World(ARM, dt=dt)
    times = []
    for t in world.until(0.9):
        times.append(t)
        world.step()
    assert len(times) == round(0.9 / dt)
    np.testing.assert_allclose(times, np.arange(len(times)) * dt, atol=1e-12)
    assert list(world.until(0.9)) == []


def test_until_complains_when_the_world_is_not_stepped() -> None:
    world = World(ARM, dt=DT)
    with pytest.raises(PoiseError, match="not stepped inside `until`"):
        for _ in world.until(1.0):
            pass


def test_until_follows_long_steps() -> None:
    world = World(ARM, dt=0.01)
    count = 0
    for _ in world.until(1.0):
        world.step(steps=10)
        count += 1
    assert count == 10


def test_until_ends_when_every_copy_is_lost_and_goes_on_while_one_is_left() -> None:
    world = World(ARM, n=2, dt=DT)
    force = np.array([[0.0, 0.0], [0.0, 1e13]])
    turns = 0
    for _ in world.until(10 * DT):
        world.step(Command(force=force))
        turns += 1
    assert turns == 10
    for _ in world.until(1.0):
        world.step(Command(force=np.array([0.0, 1e13])))
        turns += 1
    assert turns == 11
    assert len(world.diverged) == 2


def test_until_of_no_number_does_not_run_for_ever() -> None:
    with pytest.raises(PoiseError, match="until"):
        next(World(ARM, dt=DT).until(math.nan))


# ---- scenes


def test_characters_and_objects_in_one_scene_move_as_each_alone() -> None:
    scene = [HUMANOID, box(), ARM, box("ball", mass=0.5)]
    world = World(scene, n=2, dt=DT)
    starts = {c.name: some_state(c, 2, seed=i) for i, c in enumerate(scene)}
    q = np.concatenate([starts[c.name].q for c in scene], axis=1)
    v = np.concatenate([starts[c.name].v for c in scene], axis=1)
    world.reset(State(q, v))
    world.step(steps=20)
    for character in scene:
        alone = World(character, n=2, dt=DT)
        alone.reset(starts[character.name])
        part = world.part(character.name)
        expected = fall(alone, 20).state
        np.testing.assert_allclose(world.state.q[:, part.q], expected.q, rtol=0, atol=1e-11)
        np.testing.assert_allclose(world.state.v[:, part.v], expected.v, rtol=0, atol=1e-9)


def test_the_slices_of_the_parts_cover_the_scene_in_order() -> None:
    scene = [HUMANOID, box(), ARM]
    world = World(scene, dt=DT)
    parts = [world.part(c.name) for c in scene]
    for field, total in (("q", 43 + 7 + 2), ("v", 34 + 6 + 2)):
        slices = [getattr(part, field) for part in parts]
        assert [i for s in slices for i in range(total)[s]] == list(range(total))
    names = world.scene.forest.link_names
    assert names[parts[1].links] == ("box/body",)
    assert names[parts[2].links] == ("two-link/upper", "two-link/lower")


def test_equal_characters_in_a_scene_are_numbered() -> None:
    world = World([ARM, ARM], dt=DT)
    assert world.part("two-link").v == slice(0, 2)
    assert world.part("two-link-2").v == slice(2, 4)
    world.push("two-link-2/lower", (5.0, 0.0, 0.0), 1.0)
    v = fall(world, 3).state.v
    assert not v[:2].any()
    assert v[2:].all()


def test_one_drive_moves_a_whole_scene() -> None:
    scene = [HUMANOID, box(), ARM]
    world = World(scene, dt=DT)
    servo = StablePD(world)
    arm = world.part("two-link")
    q = world.scene.forest.rest_q.copy()
    q[arm.q] = [0.5, -0.2]
    world.step(servo(world.state, Target(q)))
    alone = World(ARM, dt=DT)
    alone.step(StablePD(ARM)(None, Target([0.5, -0.2])))
    np.testing.assert_allclose(world.state.v[arm.v], alone.state.v, rtol=1e-12)
    assert not world.torque[world.part("box").v].any()


# ---- precision, lanes, threads


def test_a_float32_world_follows_a_float64_world() -> None:
    """Tracking forgets: the distance stays near float32's rounding, a few 1e-6 rad."""
    worlds = [World(HUMANOID, n=3, dt=1 / 60, dtype=d) for d in ("float64", "float32")]
    servo = StablePD(HUMANOID, root="soft")
    for world in worlds:
        world.reset(some_state(HUMANOID, 3))
        for _ in world.until(1.0):
            world.step(servo(None, Target(HUMANOID.rest_q)))
    np.testing.assert_allclose(worlds[1].state.q, worlds[0].state.q, rtol=0, atol=1e-4)
    assert not np.array_equal(worlds[1].state.q, worlds[0].state.q)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_copy_moves_the_same_at_every_place_of_every_batch(dtype: str) -> None:
    start = some_state(HUMANOID, 1)
    servo = StablePD(HUMANOID, root="soft")
    found = []
    for n, place, threads in ((2, 0, 1), (5, 4, 1), (19, 10, 2), (64, 63, 2)):
        state = some_state(HUMANOID, n, seed=n)
        state.q[place], state.v[place] = start.q, start.v
        world = World(HUMANOID, n=n, dt=DT, dtype=dtype, threads=threads)
        world.reset(state)
        world.step(servo(None, Target(HUMANOID.rest_q)), steps=30)
        found.append(np.concatenate([world.state.q[place], world.state.v[place]]))
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_a_dropped_gains_object_is_never_mistaken_for_a_new_one() -> None:
    """More gains than a world keeps, each used for one step and forgotten."""
    world, target = World(hinge(), dt=0.01), Target([1.0])
    for i in range(40):
        world.reset()
        kp = 1.0 + i % 13
        world.step(Command(drive=Drive(Gains(world, kp, 0.0), target, form="pd")))
        assert world.torque[0] == pytest.approx(kp)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_thousand_calls_leave_memory_as_it_was() -> None:
    world = World(HUMANOID, n=8, dt=DT)
    servo, target = StablePD(HUMANOID), Target(HUMANOID.rest_q)

    def calls(count: int) -> None:
        for _ in range(count):
            world.step(servo(world.state, target))
            world.step(Command(acceleration=np.zeros(34)))
            _ = world.state.q, world.torque, world.diverged

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    calls(200)
    tracemalloc.start()
    try:
        calls(20)
        traced, before = tracemalloc.get_traced_memory()[0], resident()
        calls(1000)
        grown = tracemalloc.get_traced_memory()[0] - traced
    finally:
        tracemalloc.stop()
    # a leak of one State per call would be 1000 * 34 * 8 bytes
    assert grown < 5_000
    assert resident() - before < 1_000_000


COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static unsigned long count;
unsigned long allocations(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }
#define NOTE __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED)
extern void *__libc_malloc(size_t), *__libc_realloc(void *, size_t);
extern void *__libc_calloc(size_t, size_t), *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { NOTE; return __libc_malloc(n); }
void *calloc(size_t m, size_t n) { NOTE; return __libc_calloc(m, n); }
void *realloc(void *p, size_t n) { NOTE; return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { NOTE; return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { NOTE; return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { NOTE; return !(*p = __libc_memalign(a, n)); }
"""

COUNT_STEPS = """
import ctypes
import numpy as np
import poise
from poise import Command, Gains, StablePD, Target, World
count = ctypes.CDLL(None).allocations
count.restype = ctypes.c_ulong
human = poise.load_character("humanoid")
pin = np.full(len(human.links), 0.1)
target, servo = Target(human.rest_q), StablePD(human, root="soft", pin=pin)
for n in (1, 40):
    world = World(human, n=n, dt=1 / 120, threads=min(n, 2), contact=None)
    world.push("head", (10.0, 0.0, 0.0), 1e9)
    for command in (None, servo(None, target), Command(acceleration=np.zeros(human.nv))):
        cost = {}
        for steps in (1, 1, 200):
            before = count()
            world.step(command, steps=steps)
            cost[steps] = count() - before
        print(n, cost[1], cost[200])
        assert cost[200] == cost[1] < 20, cost
    assert not world.diverged
# with contact the room for what touches grows as it is needed, and then no more
for n in (1, 40):
    world, command = World(human, n=n, dt=1 / 120, threads=min(n, 2)), servo(None, target)
    world.step(command, steps=200)
    cost = {}
    for steps in (1, 200):
        before = count()
        world.step(command, steps=steps)
        cost[steps] = count() - before
    assert len(world.contacts.copy) >= 4 * n
    assert cost[200] == cost[1] < 20, cost
"""


def test_a_step_allocates_nothing(tmp_path: Path) -> None:
    """Counted below Python: 200 steps in one call ask for memory as often as one step."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and glibc")
    source, library = tmp_path / "count.c", tmp_path / "count.so"
    source.write_text(COUNTER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    if not hasattr(ctypes.CDLL(None), "__libc_memalign"):
        pytest.skip("needs glibc")
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(COUNT_STEPS)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def long_call() -> tuple[World, int]:
    """A world, and how many steps take it about half a second on one thread."""
    world = World(HUMANOID, n=256, dt=1e-5, threads=1)
    start = time.perf_counter()
    world.step(steps=20)
    return world, max(20, int(20 * 0.5 / (time.perf_counter() - start)))


def again_and_again(use: Any, world: World) -> None:
    """Of many tries, some may fall between two steps of another thread."""
    for _ in range(10_000):
        use(world)
        time.sleep(0.001)


def test_other_threads_run_while_the_world_steps() -> None:
    world, steps = long_call()
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    def ticked() -> bool:
        start = time.perf_counter()
        world.step(steps=steps)
        end = time.perf_counter()
        third = (end - start) / 3
        return sum(start + third < t < end - third for t in ticks) >= 3

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        # a step that keeps the others waiting never lets them in; a busy machine may once
        assert any(ticked() for _ in range(10))
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(
    "use",
    [
        lambda world: world.step(),
        lambda world: world.reset(State(HUMANOID.rest_q)),
        lambda world: world.push("head", (1.0, 0.0, 0.0), 1.0),
        lambda world: world.state.q,
        lambda world: world.torque,
        lambda world: world.time,
        lambda world: world.diverged,
    ],
    ids=["step", "reset", "push", "state", "torque", "time", "diverged"],
)
def test_a_world_that_another_thread_is_stepping_refuses_to_be_used(use: Any) -> None:
    world, steps = long_call()
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            with contextlib.suppress(PoiseError):  # it is refused, too, while `use` is at work
                world.step(steps=steps)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with pytest.raises(PoiseError, match="another thread is stepping this world"):
            again_and_again(use, world)
    finally:
        done.set()
        thread.join()
    use(world)
    assert world.diverged == []


def test_two_worlds_step_at_the_same_time() -> None:
    worlds = [World(HUMANOID, n=65, dt=DT, threads=2) for _ in range(3)]
    servo = StablePD(HUMANOID)

    def work(world: World) -> None:
        for _ in range(40):
            world.step(servo(world.state, Target(HUMANOID.rest_q)))

    threads = [threading.Thread(target=work, args=(world,)) for world in worlds[:2]]
    for thread in threads:
        thread.start()
    work(worlds[2])
    for thread in threads:
        thread.join()
    assert same(worlds[0].state, worlds[2].state)
    assert same(worlds[1].state, worlds[2].state)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_world_with_threads_steps_on_after_a_fork() -> None:
    code = """
        import os, poise, signal
        world = poise.World(poise.load_character("humanoid"), n=512, dt=0.01, threads=2)
        world.step(steps=2)
        if os.fork() == 0:
            signal.alarm(5)
            world.step(steps=2)
            os._exit(0 if world.time[-1] > 0.03 else 1)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment)
    assert done.returncode == 0


# ---- found by review


def test_the_dynamics_of_a_world_know_an_armature_that_differs_from_axis_to_axis() -> None:
    rng = np.random.default_rng(0)
    world = World(HUMANOID, dt=1 / 60, armature=rng.uniform(0.1, 3.0, HUMANOID.nv))
    q, v, tau = HUMANOID.rest_q, rng.normal(size=HUMANOID.nv), rng.normal(size=HUMANOID.nv)
    a = dynamics.forward_dynamics(world, q, v, tau)
    residual = dynamics.mass_matrix(world, q) @ a + dynamics.bias_force(world, q, v) - tau
    assert np.abs(residual).max() < 1e-10


def test_a_forked_child_can_drop_a_threaded_world_and_end() -> None:
    code = (
        "import os, time, poise\n"
        "w = poise.World(poise.load_character('humanoid'), n=64, dt=1/60, threads=2)\n"
        "w.step(); time.sleep(0.2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    w.step(); del w; raise SystemExit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["7"], done.stderr


def test_gains_of_another_character_of_the_same_size_are_refused() -> None:
    dog, snake = load_character("dog"), load_character("snake-72")
    world = World(dog, dt=1 / 60)
    with pytest.raises(PoiseError, match="other joints"):
        world.step(Command(drive=Drive(suggest_gains(snake), Target(dog.rest_q))))


@pytest.mark.parametrize("method", ["maba", "df", "sf"])
def test_a_singular_joint_is_named_whatever_the_method(method: str) -> None:
    hinges = tuple(Joint(name, "hinge", axis=(0, 1, 0)) for name in ("first", "second"))
    bar = Link("bar", joints=hinges, mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    arm = Character("arm", (bar,))
    q = np.array([0.3, 0.2])
    with pytest.raises(PoiseError, match=r"singular at joint '(first|second)'"):
        dynamics.stable_pd(arm, q, [0.0, 0.0], (q, None), 0.0, 0.0, 0.01, method)
    with pytest.raises(Diverged, match=r"singular at joint '(first|second)'"):
        World(arm, dt=0.01).step()


def test_the_masses_of_a_world_reach_its_gains_and_its_mass_centre() -> None:
    masses = np.array([link.mass for link in HUMANOID.links])
    heavy = World(HUMANOID, dt=1 / 60, mass=10 * masses)
    light = suggest_gains(HUMANOID)
    assert np.allclose(suggest_gains(heavy).kp, 10 * light.kp, rtol=1e-12)
    fixed = load_character("humanoid", base="fixed")
    grown = masses * np.where(np.arange(masses.size) == 0, 100.0, 1.0)
    moved = dynamics.center_of_mass(World(fixed, dt=1 / 60, mass=grown), fixed.rest_q)
    pelvis = dynamics.forward_kinematics(fixed, fixed.rest_q)[0][0] + fixed.links[0].com
    plain = dynamics.center_of_mass(fixed, fixed.rest_q)
    expected = (masses.sum() * plain + 99 * masses[0] * pelvis) / grown.sum()
    assert np.allclose(moved, expected, atol=1e-12)


def test_a_shared_target_serves_copies_with_masses_of_their_own() -> None:
    masses = np.array([link.mass for link in HUMANOID.links])
    mass = np.outer([0.5, 1.0, 2.0], masses)
    world = World(HUMANOID, n=3, dt=1 / 60, mass=mass)
    servo = StablePD(world, root="soft", embedded=False)
    for _ in world.until(1.0):
        world.step(servo(world.state, Target(HUMANOID.rest_q)))
    assert np.abs(world.state.q[:, :3] - HUMANOID.rest_q[:3]).max() < 1e-3


def test_a_state_may_be_pickled_before_it_is_read() -> None:
    world = World(HUMANOID, n=2, dt=1 / 60)
    world.push("head", (9.0, 0.0, 0.0), 1.0)
    again = pickle.loads(pickle.dumps(world.state))
    assert np.array_equal(again.q, world.state.q)
    assert again.memory is not None
    assert np.array_equal(again.memory, np.asarray(world.state.memory))


def test_a_world_that_ran_out_of_memory_can_go_on() -> None:
    code = (
        "import resource, poise\n"
        "snake = poise.load_character('snake-3006')\n"
        "w = poise.World(snake, n=64, dt=1/60, threads=2, contact=None)\n"
        "servo = poise.StablePD(snake, method='df')\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)\n"
        "try: w.step(servo(w.state, poise.Target(snake.rest_q)))\n"
        "except MemoryError: print('refused')\n"
        "w.step(); print(float(w.time[0]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split()[:1] == ["refused"], done.stderr
    assert float(done.stdout.split()[1]) == pytest.approx(1 / 60)
