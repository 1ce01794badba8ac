"""Rotations: errors of ball and free joints, large and small angles and speeds, in both precisions.

With kp = 1 and kd = 0 the torque of explicit PD is minus the position error, and so is that of SPD,
with the error of the position predicted for the end of the step.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import trees
from free_world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from poise import Command, Drive, Gains, State, Target, dynamics, reference
from poise.math import rotation
from poise.model.character import Character, Joint, Link

Array = NDArray[np.float64]

# quaternions carry some units in the last place into the rotation vector, at most pi long
PRECISION = {"float64": 4e-15, "float32": 2e-6}

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
AXES = [(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.48, -0.64, 0.6), (1e-9, 0.0, 1.0)]
both_dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
batches = pytest.mark.parametrize("n", [None, 5])

vectors = st.lists(st.floats(-4, 4), min_size=3, max_size=3).map(np.array)
rotations = vectors.map(rotation.exp)


@lru_cache
def one(kind: str) -> Character:
    """One link, with an even inertia, on one joint."""
    axis = (0.0, 0.6, 0.8) if kind in ("hinge", "slide") else (0.0, 0.0, 1.0)
    joint = Joint("joint", kind, axis=axis)  # type: ignore[arg-type]
    return Character("one", (Link("link", joints=(joint,), mass=1.0, inertia=(1.0, 1.0, 1.0)),))


def ball() -> Character:
    """One link on a ball joint."""
    return one("ball")


def free(quat: ArrayLike) -> Array:
    """Coordinates of a free joint at the origin."""
    return np.concatenate([np.zeros(3), quat])


def error(q: ArrayLike, target: ArrayLike, dtype: str, n: int | None = None) -> Array:
    """Rotation vector from the target to q in the child's frame, of a ball joint [rad]."""
    q = np.asarray(q, dtype=float)
    rows = q if n is None else np.tile(q, (n, 1))
    rest = np.zeros(3)
    out = -dynamics.pd_force(ball(), rows, rest, (target, rest), 1.0, 0.0, dtype=dtype)
    return out if n is None else out[n - 1]


def error_ahead(
    q: ArrayLike, v: ArrayLike, target: ArrayLike, dt: float, dtype: str, n: int | None = None
) -> Array:
    """The same for the position q exp(dt v), predicted for the end of a step."""
    v = np.asarray(v, dtype=float)
    rows = v if n is None else np.tile(v, (n, 1))
    bar = target, np.zeros(3)
    _, tau = dynamics.stable_pd(ball(), q, rows, bar, 1.0, 0.0, dt, form="spd", dtype=dtype)
    return -tau if n is None else -tau[n - 1]


# errors


@both_dtypes
@given(target=rotations)
@settings(max_examples=50)
def test_a_ball_at_its_target_has_no_error(target: Array, dtype: str) -> None:
    assert np.abs(error(target, target, dtype)).max() <= PRECISION[dtype]


@batches
@both_dtypes
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", [0.0, 1e-30, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 2.0, 3.0, 3.14])
def test_the_error_is_angle_times_axis(
    angle: float, axis: tuple[float, ...], dtype: str, n: int | None
) -> None:
    r = angle * np.array(axis)
    # from the identity no digit is lost, however small the angle
    e = error(rotation.exp(r), IDENTITY, dtype, n)
    assert e == pytest.approx(r, rel=PRECISION[dtype], abs=PRECISION[dtype] * angle)


@batches
@both_dtypes
@given(target=rotations, r=vectors)
@settings(max_examples=50)
def test_the_error_is_in_the_frame_of_the_child(
    target: Array, r: Array, dtype: str, n: int | None
) -> None:
    r = r * min(1.0, 3.1 / max(float(np.linalg.norm(r)), 1e-300))
    q = rotation.multiply(target, rotation.exp(r))
    assert error(q, target, dtype, n) == pytest.approx(r, abs=PRECISION[dtype])


@batches
@both_dtypes
@pytest.mark.parametrize("axis", AXES[:3])
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_near_half_a_turn_the_error_goes_the_short_way_round(
    gap: float, axis: tuple[float, ...], dtype: str, n: int | None
) -> None:
    if dtype == "float32":
        gap = max(gap, 1e-6)  # closer to half a turn a float cannot tell the sides apart
    before = error(rotation.exp((np.pi - gap) * np.array(axis)), IDENTITY, dtype, n)
    beyond = error(rotation.exp((np.pi + gap) * np.array(axis)), IDENTITY, dtype, n)
    assert before == pytest.approx((np.pi - gap) * np.array(axis), abs=PRECISION[dtype])
    assert beyond == pytest.approx(-(np.pi - gap) * np.array(axis), abs=PRECISION[dtype])


@both_dtypes
@pytest.mark.parametrize("axis", AXES)
def test_at_half_a_turn_the_error_is_pi_either_way(axis: tuple[float, ...], dtype: str) -> None:
    e = error([0.0, *axis], IDENTITY, dtype)
    assert np.linalg.norm(e) == pytest.approx(np.pi, abs=PRECISION[dtype])
    assert np.abs(np.cross(e, axis)).max() <= PRECISION[dtype]


@both_dtypes
@given(q=rotations, target=rotations)
@settings(max_examples=50)
def test_the_error_is_never_more_than_half_a_turn(q: Array, target: Array, dtype: str) -> None:
    assert np.linalg.norm(error(q, target, dtype)) <= np.pi * (1 + PRECISION[dtype])


@both_dtypes
@given(q=rotations, target=rotations)
@settings(max_examples=50)
def test_signs_of_quaternions_do_not_matter(q: Array, target: Array, dtype: str) -> None:
    e = error(q, target, dtype)
    if np.linalg.norm(e) < 3.14159:  # at half a turn both ways are equally short
        for flipped in (error(-q, target, dtype), error(q, -target, dtype)):
            assert np.array_equal(flipped, e)


@both_dtypes
@given(q=rotations, target=rotations, v=vectors)
@settings(max_examples=50)
def test_target_velocity_is_turned_into_the_frame_of_the_child(
    q: Array, target: Array, v: Array, dtype: str
) -> None:
    rest = np.zeros(3)
    tau = dynamics.pd_force(ball(), q, rest, (target, v), 0.0, 1.0, dtype=dtype)
    turned = rotation.rotate(rotation.multiply(rotation.conjugate(q), target), v)
    assert tau == pytest.approx(turned, abs=4 * PRECISION[dtype])  # v is up to 7 long


@both_dtypes
@given(q=rotations, target=rotations)
@settings(max_examples=50)
def test_a_free_joint_turns_as_a_ball(q: Array, target: Array, dtype: str) -> None:
    rest = np.zeros(6)
    bar = np.concatenate([[1.0, -2.0, 3.0], target]), rest
    tau = dynamics.pd_force(one("free"), free(q), rest, bar, 1.0, 0.0, dtype=dtype)
    # and is pulled to its target in world axes
    assert np.array_equal(tau[:3], [1.0, -2.0, 3.0])
    assert tau[3:] == pytest.approx(-error(q, target, dtype), abs=PRECISION[dtype])


@pytest.mark.parametrize("kind", ["hinge", "slide"])
@both_dtypes
def test_coordinates_of_one_axis_are_never_wrapped(kind: str, dtype: str) -> None:
    tau = dynamics.pd_force(one(kind), [100.0], [0.0], ([-3.0], [0.0]), 1.0, 0.0, dtype=dtype)
    assert tau == pytest.approx([-103.0])


# fast


@batches
@both_dtypes
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("turn", [1.0, 3.0, 3.2, 6.0, 2 * np.pi, 10.0, 100.0, 1000.0])
def test_the_predicted_error_holds_at_any_speed(
    turn: float, axis: tuple[float, ...], dtype: str, n: int | None
) -> None:
    dt = 0.25  # a power of two: dt v is exact
    v = np.float32(turn / dt * np.array(axis)).astype(float)
    target = rotation.exp([0.5, -0.2, 0.3])
    e = error_ahead(IDENTITY, v, target, dt, dtype, n)
    exact = rotation.multiply(rotation.conjugate(target), rotation.exp(dt * v))
    # the angle itself is rounded before whole turns are taken off
    assert e == pytest.approx(rotation.log(exact), abs=PRECISION[dtype] * (1 + turn))


@both_dtypes
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("turn", [1e-9, 1.0, 3.2, 6.0, 10.0, 100.0, 1000.0])
def test_a_fast_ball_turns_by_speed_times_time(turn: float, n: int, dtype: str) -> None:
    # a ball with even inertia keeps its angular velocity
    dt, axis = 0.25, np.array([0.48, -0.64, 0.6])
    v = np.float32(turn / dt * axis).astype(float)
    start = rotation.exp([0.5, -0.2, 0.3])
    world = World(one("ball"), n=n, dt=dt, dtype=dtype, gravity=(0, 0, 0))
    world.reset(State(start, v))
    world.step()
    q = world.state.q.reshape(n, 4)[-1]
    exact = rotation.multiply(start, rotation.exp(dt * v))
    assert q * np.sign(q @ exact) == pytest.approx(exact, abs=PRECISION[dtype] * (1 + turn))


@both_dtypes
@pytest.mark.parametrize("speed", [0.1, 10.0, 500.0])
def test_quaternions_stay_of_unit_length(speed: float, dtype: str) -> None:
    world = World(one("free"), n=3, dt=0.01, dtype=dtype)
    world.reset(State(free(IDENTITY), speed * np.array([0, 0, 0, 0.48, -0.64, 0.6])))
    world.step(steps=20000)
    length = np.linalg.norm(world.state.q[:, 3:], axis=1)
    assert length == pytest.approx(np.ones(3), abs=PRECISION[dtype])


@both_dtypes
@pytest.mark.parametrize("speed", [1.0, 30.0, 300.0])
def test_drives_of_fast_characters_ask_what_the_twin_asks(speed: float, dtype: str) -> None:
    rng = np.random.default_rng(0)
    character = trees.random_character(rng, 8, base="free")
    (q, v), target = trees.random_state(rng, character), trees.random_state(rng, character)
    q, v, bar = (np.float32(x).astype(float) for x in (q, speed * v, target[0]))
    for form in ("spd", "explicit"):
        # kd = 0: the torque is Q
        _, tau = dynamics.stable_pd(
            character, q, v, (bar, v), 1.0, 0.0, 0.03, form=form, dtype=dtype
        )
        Q, _ = reference.drive(character, q, v, bar, v, 1.0, 0.0, 0.03, form)
        assert tau == pytest.approx(Q, abs=PRECISION[dtype] * (1 + 0.1 * speed))


# hinges


@batches
@both_dtypes
@pytest.mark.parametrize("angle", [0.0, 1e-20, 1e-5, 1.0, 3.0, 4.0, 7.0, 1e2, -1e3, 1e4, -1e5])
def test_a_hinge_turns_as_far_as_its_angle(angle: float, dtype: str, n: int | None) -> None:
    angle = float(np.float32(angle))
    rows = np.full((1,) if n is None else (n, 1), angle)
    quat = dynamics.forward_kinematics(one("hinge"), rows, dtype=dtype)[1].reshape(-1, 4)[-1]
    half = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * np.array([0.0, 0.6, 0.8]))])
    assert quat * np.sign(quat @ half) == pytest.approx(half, abs=PRECISION[dtype])


@both_dtypes
def test_a_hinge_that_spins_for_long_keeps_its_digits(dtype: str) -> None:
    # a thousand turns, in steps that a float can hold
    world = World(one("hinge"), dt=1 / 64, dtype=dtype, gravity=(0, 0, 0))
    world.reset(State([0.0], [64.0]))
    world.step(steps=6400)
    assert world.state.q == pytest.approx([6400.0], rel=1e-15)


# many steps


@both_dtypes
def test_a_ball_follows_its_target_all_the_way_round(dtype: str) -> None:
    # two turns about a skew axis: where w passes zero nothing jumps
    axis, dt = np.array([0.48, -0.64, 0.6]), 1 / 60
    angles = np.linspace(0, 4 * np.pi, 241)
    q = np.array([rotation.exp(angle * axis) for angle in angles])
    v = np.tile((angles[1] - angles[0]) / dt * axis, (241, 1))
    character = one("ball")
    world = World(character, dt=dt, dtype=dtype, gravity=(0, 0, 0))
    world.reset(State(q[0], v[0]))
    drive = Gains(character, 1000.0, 100.0)
    for i in range(1, 241):
        world.step(Command(drive=Drive(drive, Target(q[i], v[i]))))
        e = reference.difference(character, world.state.q, q[i])
        assert np.abs(e).max() < 10 * PRECISION[dtype]
