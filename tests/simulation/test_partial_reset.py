"""reset(where=): only those rows, with friction and masses of their own."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poise import (
    PoiseError,
    Recording,
    Shape,
    StablePD,
    State,
    Target,
    World,
    dynamics,
    load_character,
    load_recording,
)
from poise.model.character import free_object

HUMANOID = load_character("humanoid")
MASS = HUMANOID.forest.link_mass
BOX = free_object("box", Shape("box", (0.1, 0.1, 0.1)), mass=1.0)
both = pytest.mark.parametrize("dtype", ["float64", "float32"])


def crowd(n: int = 21, **options: Any) -> World:
    world = World(HUMANOID, n=n, dt=1 / 120, **options)
    v = 0.3 * np.random.default_rng(2).normal(size=(n, HUMANOID.nv))
    world.reset(State(HUMANOID.rest_q, v))
    run(world)
    return world


def run(world: World, steps: int = 12) -> np.ndarray[Any, Any]:
    drive = StablePD(HUMANOID, dt=world.dt)(world.state, Target(HUMANOID.rest_q))
    for _ in range(steps):
        world.step(drive)
    return world.state.q


@both
def test_other_copies_go_on_bit_for_bit_when_some_are_reset(dtype: str) -> None:
    one, two = crowd(dtype=dtype), crowd(dtype=dtype)
    where = [20, 3, 4]
    rows = np.stack([HUMANOID.rest_q + 0.1 * k * np.eye(HUMANOID.nq)[0] for k in range(3)])
    two.reset(State(rows, time=[1.0, 2.0, 3.0]), where=where)
    assert np.array_equal(two.time[where], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(two.state.q[where], rows, atol=1e-6)
    others = np.delete(np.arange(21), where)
    assert np.array_equal(run(one)[others], run(two)[others])


@both
def test_a_copy_that_is_reset_starts_as_a_new_world_does(dtype: str) -> None:
    one, two = crowd(dtype=dtype), World(HUMANOID, n=21, dt=1 / 120, dtype=dtype)
    one.reset(where=[5, 20])
    assert np.array_equal(run(one)[[5, 20]], run(two)[[5, 20]])


def test_rows_that_are_warm_bring_their_memory() -> None:
    one, two = crowd(), crowd()
    held = one.state
    run(one)
    one.reset(held, where=[7])
    assert np.array_equal(run(one)[7], run(two)[7])


CHANGES: dict[str, dict[str, Any]] = {
    "friction": {"friction": 0.05},
    "mass": {"mass": MASS * np.linspace(0.5, 2.0, len(MASS))},
    "both": {"friction": np.full((2, 1), 0.1), "mass": np.stack([MASS, 3.0 * MASS])},
}


@both
@pytest.mark.parametrize("change", CHANGES)
def test_friction_and_mass_act_in_those_copies_alone(change: str, dtype: str) -> None:
    one, two = crowd(dtype=dtype), crowd(dtype=dtype)
    one.reset(where=[4, 20])
    two.reset(where=[4, 20], **CHANGES[change])
    v = 0.5 * np.ones((2, HUMANOID.nv))
    for world in (one, two):
        world.reset(State(HUMANOID.rest_q, v), where=[4, 20])
    a, b = run(one, 40), run(two, 40)
    others = np.delete(np.arange(21), [4, 20])
    assert np.array_equal(a[others], b[others])
    assert (np.abs(a[[4, 20]] - b[[4, 20]]).max(axis=1) > 1e-4).any()


@both
def test_a_copy_with_new_masses_moves_as_in_a_world_that_was_built_with_them(dtype: str) -> None:
    rng = np.random.default_rng(3)
    mass = MASS * rng.uniform(0.5, 2.0, (9, len(MASS)))
    friction = rng.uniform(0.2, 1.0, (9, 1))
    built = World(HUMANOID, n=9, dt=1 / 120, dtype=dtype, mass=mass, friction=friction)
    changed = World(HUMANOID, n=9, dt=1 / 120, dtype=dtype)
    for k in (3, 0, 8, 1, 2, 7, 4, 5, 6):
        changed.reset(where=[k], mass=mass[k], friction=float(friction[k, 0]))
    assert np.array_equal(run(built, 40), run(changed, 40))


def test_a_box_slides_as_far_as_its_own_friction_lets_it() -> None:
    """v^2 / (2 mu g), of the geometric mean with the ground's."""
    world = World(BOX, n=3, dt=1 / 480, friction=0.5)
    world.reset(where=[1], friction=0.25)
    world.reset(where=[2], friction=[0.125])
    q = np.tile(BOX.rest_q, (3, 1))
    q[:, 2] = 0.1
    v = np.zeros((3, 6))
    v[:, 0] = 2.0
    world.reset(State(q, v))
    for _ in range(1200):
        world.step()
    mu = np.array([0.5, 0.25, np.sqrt(0.125 * 0.8)])
    np.testing.assert_allclose(world.state.q[:, 0], 4.0 / (2.0 * mu * 9.81), rtol=0.02)


def test_queries_of_the_world_know_the_new_masses() -> None:
    world = World(HUMANOID, n=3, dt=0.01)
    world.reset(where=[1], mass=2.0 * MASS)
    kinetic = [
        dynamics.energy(world, world.state.q, np.ones((3, HUMANOID.nv)))[0][k] for k in range(3)
    ]
    assert kinetic[1] == pytest.approx(2.0 * kinetic[0], rel=1e-12)
    assert kinetic[2] == kinetic[0]
    assert world.mass is not None
    assert np.array_equal(world.mass[:, 0], MASS[0] * np.array([1.0, 2.0, 1.0]))


@both
@pytest.mark.parametrize("keep", ["pickle", "copy", "recording"])
def test_what_a_reset_changed_is_kept(keep: str, dtype: str, tmp_path: Path) -> None:
    world = crowd(9, dtype=dtype, ground_friction=0.7)
    world.reset(where=[1, 5], mass=0.7 * MASS, friction=0.3)
    run(world)
    if keep == "pickle":
        again = pickle.loads(pickle.dumps(world))
    elif keep == "copy":
        again = copy.copy(world)
    else:
        recording = Recording(world)
        recording.append()
        recording.save(tmp_path / "one.npz")
        again = load_recording(tmp_path / "one.npz").world(0)
    assert world.mass is not None
    assert np.array_equal(again.mass, world.mass)
    assert np.array_equal(again.friction, world.friction)
    assert np.array_equal(run(world, 30), run(again, 30))


def test_a_recording_has_the_numbers_of_its_last_frame(tmp_path: Path) -> None:
    world = World(HUMANOID, n=2, dt=1 / 60)
    recording = Recording(world, fps=60)
    recording.append()
    world.step()
    world.reset(State(HUMANOID.rest_q, time=1.0), where=[1], friction=0.2)
    recording.append()
    recording.save(tmp_path / "two.npz")
    assert np.array_equal(load_recording(tmp_path / "two.npz").settings.friction, world.friction)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "rows": ({"mass": np.ones((3, 13)), "where": [0, 1]}, r"mass has shape \(3, 13\)"),
    "links": ({"mass": np.ones(5)}, r"mass has shape \(5,\)"),
    "light": ({"mass": 0.0 * MASS}, "needs a mass above 0"),
    "negative": ({"friction": -1.0}, "friction is -1; it must be 0 or more"),
    "nan": ({"friction": np.nan}, "friction is nan; it must be 0 or more"),
    "state": ({"state": State(np.zeros((3, 43))), "where": [0, 1]}, "it needs 2 rows"),
    "time": ({"state": State(HUMANOID.rest_q, time=[1.0] * 3), "where": [0]}, "state.time"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_are_refused_and_nothing_has_changed(case: str) -> None:
    world = crowd(4)
    before = world.state.q
    arguments, message = WRONG[case]
    with pytest.raises(PoiseError, match=message):
        world.reset(**arguments)
    assert np.array_equal(world.state.q, before)
    assert world.mass is None


def test_friction_needs_contact() -> None:
    with pytest.raises(PoiseError, match="contact=None"):
        World(HUMANOID, n=2, dt=0.01, contact=None).reset(friction=0.5)


def test_an_empty_reset_does_nothing() -> None:
    world = crowd(4)
    before = world.state.q
    world.reset(where=np.zeros(4, bool), friction=0.1, mass=MASS)
    assert np.array_equal(world.state.q, before)
