"""Worlds that are copied, pickled, reset in part, pushed in part; velocities of links."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import poise
from poise import PoiseError, StablePD, State, Target, World, dynamics
from poise.control import CONTROLLERS, Controllers, make_controller
from poise.control.profiles import apply_profiles, parse_profile

HUMANOID = poise.load_character("humanoid")
BALL = poise.load_character("humanoid-ball")
DT = 1 / 60

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}


def busy_world(n: int, dtype: Any = "float64") -> World:
    """A world in the middle of contacts, a push, a drag, a throw and another gravity."""
    world = World(HUMANOID, n=n, dt=DT, dtype=dtype, projectiles=2, threads=1)
    world.throw((0.0, -1.0, 1.2), (0.0, 4.0, 0.0))
    world.push("chest", (200.0, 0.0, 0.0), 0.5, at=0.1)
    world.drag("left_forearm", (0.5, 0.5, 1.5))
    world.gravity = (0.0, 0.5, -9.0)
    world.step(steps=12)
    return world


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize(("n", "dtype"), [(1, "float64"), (3, "float64"), (3, np.float32)])
def test_a_copied_world_goes_on_bit_for_bit_and_apart(how: str, n: int, dtype: Any) -> None:
    world = busy_world(n, dtype)
    other = COPIES[how](world)
    servo = StablePD(world, frequency=3.0)
    target = Target(HUMANOID.rest_q)
    before = other.state.copy()
    world.step(servo(world.state, target), steps=30)
    assert np.array_equal(other.state.q, before.q)
    other.step(servo(other.state, target), steps=30)
    for name in ("q", "v", "time", "memory"):
        assert np.array_equal(getattr(other.state, name), getattr(world.state, name)), name
    assert np.array_equal(other.torque, world.torque)
    assert np.array_equal(other.gravity, world.gravity)
    assert (other.dtype, other.threads, other.isa) == (world.dtype, world.threads, world.isa)


def test_a_copied_world_keeps_its_diverged_copies_frozen() -> None:
    world = World(HUMANOID, n=2, dt=DT, contact=None)
    world.push("chest", (1e15, 0.0, 0.0), 1.0, where=[1])
    world.step(steps=30)
    assert [loss.copy for loss in world.diverged] == [1]
    other = copy.deepcopy(world)
    assert other.diverged == world.diverged
    assert other.on_divergence == "freeze"
    world.step()
    other.step()
    assert np.array_equal(world.state.q, other.state.q)


@pytest.mark.parametrize("how", COPIES)
def test_commands_gains_and_states_are_copied_and_pickled(how: str) -> None:
    one, two = World(HUMANOID, dt=DT), World(HUMANOID, dt=DT)
    servo = StablePD(one, strength=np.full(len(HUMANOID.links), 0.7))
    command = servo(one.state, Target(HUMANOID.rest_q))
    again = COPIES[how](command)
    one.step(command, steps=5)
    two.step(again, steps=5)
    assert np.array_equal(one.state.q, two.state.q)
    gains = COPIES[how](servo.gains)
    assert np.array_equal(gains.kp, servo.gains.kp)
    with pytest.raises(ValueError, match="read-only"):
        gains.kp[0] = 1.0
    state = COPIES[how](one.state)
    two.reset(state)
    assert two.state.memory is not None
    assert one.state.memory is not None
    assert np.array_equal(two.state.memory, one.state.memory)


def run_on(world: World, controller: Any, steps: int) -> Any:
    """Steps on the spot, and where they lead."""
    target, states = Target(HUMANOID.rest_q), []
    for _ in range(steps):
        world.step(controller(world.state, target))
        states.append(np.concatenate([world.state.q, world.state.v], axis=-1))
    return np.array(states)


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_copied_controller_goes_on_bit_for_bit(name: str, how: str, n: int) -> None:
    world = World(HUMANOID, n=n, dt=1 / 120)
    # explicit PD is unstable at the default
    options: dict[str, Any] = {} if name == "balance" else {"frequency": 1.0}
    controller: Any = make_controller(name, world, **options)
    run_on(world, controller, 3)
    # what copy.copy makes of a pair are the same two
    pair = (copy.copy(world), copy.copy(controller))
    other_world, other = pair if how == "copy" else COPIES[how]((world, controller))
    assert other is not controller
    assert getattr(other, "_planner", 0) is not getattr(controller, "_planner", 1)
    assert how == "copy" or other.plant._world is other_world
    expected = run_on(world, controller, 5)
    assert np.array_equal(run_on(other_world, other, 5), expected)


@pytest.mark.parametrize("how", COPIES)
def test_a_copied_controller_has_settings_of_its_own(how: str) -> None:
    world = World(HUMANOID, dt=1 / 120)
    servo, balance = StablePD(world), poise.Balance(world)
    balance.params.capture_time = 0.3
    weak, lazy = COPIES[how](servo), COPIES[how](balance)
    weak.strength[:] = 0.5
    lazy.gamma = 0.0
    lazy.k_s[:] = 1.0
    assert (servo.strength == 1.0).all()
    assert (balance.gamma, balance.params.gamma, lazy.params.gamma) == (0.3, 0.3, 0.0)
    assert balance.k_s[0] == balance.params.k_s[0] == 300.0
    assert lazy.params.k_s[0] == 1.0
    assert lazy.params.capture_time == 0.3
    with pytest.raises(PoiseError, match="cannot be assigned"):
        weak.explain = None


@pytest.mark.parametrize("how", COPIES)
def test_profiles_and_joined_controllers_are_copied(how: str) -> None:
    world = World([HUMANOID, poise.load_character("dog")], dt=1 / 120)
    servos = {name: StablePD(world, part=name) for name in world.scene.forest.parts}
    limp = apply_profiles(servos["humanoid"], world, [parse_profile("limp:left_arm@0s")])
    several: list[Any] = [limp, Controllers(servos)]
    for controller in several:
        other = COPIES[how](controller)
        command, again = (one(world.state, world.state) for one in (controller, other))
        assert np.array_equal(command.drive.gains.kp, again.drive.gains.kp)
        inner = other["dog"] if isinstance(other, Controllers) else other.controller
        inner.strength = 0.25
        assert all((servo.strength > 0.3).any() for servo in servos.values())


@pytest.mark.parametrize("how", COPIES)
def test_a_copied_recording_has_frames_of_its_own(how: str) -> None:
    world = World(HUMANOID, dt=DT)
    recording, servo = poise.Recording(world), StablePD(world)
    poise.run(world, servo, Target(HUMANOID.rest_q), 0.2, recording)
    other = COPIES[how](recording)
    frames, q = len(recording), recording.q.copy()
    assert np.array_equal(other.q, q)
    poise.run(world, servo, Target(HUMANOID.rest_q), 0.2, recording)
    assert len(recording) > frames == len(other)
    assert np.array_equal(other.q, q)
    assert np.array_equal(other.world(-1).state.q, q[-1])


def test_some_copies_are_reset_to_rows_of_their_own() -> None:
    world = World(HUMANOID, n=4, dt=DT, contact=None)
    q = np.tile(HUMANOID.rest_q, (2, 1))
    q[:, 0] = 1.0, 2.0
    v = np.zeros((2, HUMANOID.nv))
    v[:, 1] = 3.0, 4.0
    world.reset(State(q, v, time=[0.5, 0.75]), where=[3, 1])
    assert world.state.q[:, 0].tolist() == [0.0, 2.0, 0.0, 1.0]
    assert world.state.v[:, 1].tolist() == [0.0, 4.0, 0.0, 3.0]
    assert world.time.tolist() == [0.0, 0.75, 0.0, 0.5]
    with pytest.raises(PoiseError, match="needs 3 rows"):
        world.reset(State(q), where=[0, 1, 2])


def test_some_copies_are_pushed_dragged_and_thrown_at_with_rows_of_their_own() -> None:
    rows, each = (World(HUMANOID, n=3, dt=DT, ground=False) for _ in range(2))
    force, place = np.array([[10.0, 0, 0], [0, 20.0, 0]]), np.array([[0, 0, 2.0], [0, 0, 3.0]])
    mask = np.array([True, False, True])
    rows.push("chest", force, 0.1, where=mask)
    rows.drag("head", place, where=[2, 0])
    rows.throw(place + 1.0, force, where=mask)
    for k, i in enumerate((0, 2)):
        each.push("chest", force[k], 0.1, where=[i])
        each.drag("head", place[1 - k], where=[i])
        each.throw(place[k] + 1.0, force[k], where=[i])
    rows.step(steps=10)
    each.step(steps=10)
    assert np.array_equal(rows.state.q, each.state.q)
    with pytest.raises(PoiseError, match=r"force has shape \(2, 3\): it needs 1 rows"):
        rows.push("chest", force, 0.1, where=[1])


def test_release_ends_pushes_too() -> None:
    pushed, free = (World(HUMANOID, dt=DT, contact=None) for _ in range(2))
    pushed.push("chest", (100.0, 0.0, 0.0), float("inf"))
    pushed.push("head", (100.0, 0.0, 0.0), 1.0, at=0.5)
    pushed.release("chest")
    pushed.release("head")
    pushed.step(steps=60)
    free.step(steps=60)
    assert np.array_equal(pushed.state.q, free.state.q)


def test_a_push_in_the_past_is_an_error() -> None:
    world = World(HUMANOID, dt=DT)
    world.step(steps=30)
    world.push("chest", (1.0, 0.0, 0.0), 0.1, at=0.5)
    with pytest.raises(PoiseError, match=r"at is 0\.25.* at 0\.5"):
        world.push("chest", (1.0, 0.0, 0.0), 0.1, at=0.25)


def test_a_torque_alone_is_a_push() -> None:
    one, two = (World(HUMANOID, dt=DT, contact=None) for _ in range(2))
    one.push("chest", None, 0.1, torque=(0.0, 0.0, 5.0))
    two.push("chest", (0.0, 0.0, 0.0), 0.1, torque=(0.0, 0.0, 5.0))
    one.step(steps=10)
    two.step(steps=10)
    assert np.array_equal(one.state.q, two.state.q)
    assert one.state.v.any()
    with pytest.raises(PoiseError, match="a force or a torque"):
        one.push("chest", None, 0.1)


def test_precision_is_a_name_or_numpys_type() -> None:
    for dtype in (np.float32, np.dtype("float32"), "float32"):
        assert World(HUMANOID, dt=DT, dtype=dtype).dtype == "float32"
    for wrong in (np.float16, int, "single", 3):
        with pytest.raises(PoiseError, match="dtype"):
            World(HUMANOID, dt=DT, dtype=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [1, 5])
def test_link_velocities_are_jacobians_times_v(n: int) -> None:
    rng = np.random.default_rng(n)
    world = World(BALL, n=n, dt=DT, contact=None)
    v = rng.normal(size=(n, BALL.nv))
    world.reset(State(world.state.q, v if n > 1 else v[0]))
    world.step(steps=5)
    linear, angular = world.link_velocities()
    q, v = world.state.q, world.state.v
    for i, link in enumerate(BALL.links):
        J = dynamics.jacobian(BALL, q, link.name)
        expected = (J @ v[..., None])[..., 0]
        np.testing.assert_allclose(linear[..., i, :], expected[..., :3], atol=1e-12)
        np.testing.assert_allclose(angular[..., i, :], expected[..., 3:], atol=1e-12)
    for ours, expected in zip(
        world.link_poses(), dynamics.forward_kinematics(BALL, q), strict=True
    ):
        assert np.array_equal(ours, expected)
