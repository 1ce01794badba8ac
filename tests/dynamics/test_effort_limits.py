"""Effort limits: joints give what their drive asks or what they can, in the same step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trees
from free_world import World
from numpy.typing import NDArray
from test_core import Batch, Case, assert_close, both_dtypes, fuzz

from poise import Command, Drive, Gains, State, Target, dynamics, load_character, reference
from poise.math import rotation
from poise.model.character import Character, Joint, Link
from poise.model.scene import scene_of
from poise.reference.effort_limits import Limit, bounded, effort_limits

Array = NDArray[np.float64]

DT = 0.02
# a limit is scaled to a vector's length: some units in the last place
PRECISION = {"float64": 1e-14, "float32": 1e-6}
# the core and its twin, through the condition of M, which reaches 1e5 on these trees
SOLVED = {"float64": 1e-9, "float32": 1e-3}

limited_trees = trees.cases(10, effort=True)


def with_effort(character: Character, scale: Array | None, to: float | None = None) -> Character:
    """The character with its limits scaled per link, without limits, or all with this one."""

    def scaled(joint: Joint, factor: float) -> Joint:
        if to is not None:
            return replace(joint, effort=None if joint.kind == "free" else to)
        if scale is None or joint.effort is None:
            return replace(joint, effort=None)
        if isinstance(joint.effort, tuple):
            x, y, z = (factor * effort for effort in joint.effort)
            return replace(joint, effort=(x, y, z))
        return replace(joint, effort=factor * joint.effort)

    factors = np.ones(len(character.links)) if scale is None else scale
    links = (
        replace(link, joints=tuple(scaled(joint, float(factor)) for joint in link.joints))
        for link, factor in zip(character.links, factors, strict=True)
    )
    return Character("other", tuple(links))


def excess(limits: list[Limit], tau: Array) -> float:
    """By how much the worst joint exceeds its limit, relative to it; negative within."""
    sizes = [np.linalg.norm(tau[limit.v]) / limit.effort for limit in limits]
    return float(max(sizes, default=0.0)) - 1.0


def saturated(limits: list[Limit], tau: Array) -> int:
    """Number of joints at their limits."""
    return sum(bool(np.linalg.norm(tau[limit.v]) > 0.999 * limit.effort) for limit in limits)


# torques of the drive


@both_dtypes
@fuzz(limited_trees)
def test_joints_never_give_more_than_their_effort(case: Case, dtype: str) -> None:
    x = Batch(case)
    limits = effort_limits(x.character)

    def ask(*arrays: Array) -> tuple[Array, Array]:
        q, v, q_bar, v_bar = arrays
        bar = q_bar, v_bar
        return dynamics.stable_pd(x.character, q, v, bar, 300.0, 20.0, DT, limits=True, dtype=dtype)

    for (_, tau), _ in x.rows(ask, x.q, x.v, *x.target):
        assert excess(limits, tau) <= PRECISION[dtype]


def test_the_random_trees_reach_their_limits() -> None:
    # or this file would say nothing
    count = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = Batch((trees.random_character(rng, 6, effort=True), rng))
        _, tau = dynamics.stable_pd(x.character, x.q, x.v, x.target, 300.0, 20.0, DT, limits=True)
        count += sum(saturated(effort_limits(x.character), row) for row in tau)
    assert count > 500


@both_dtypes
@fuzz(limited_trees)
def test_limited_torques_agree_with_the_twin(case: Case, dtype: str) -> None:
    x = Batch(case)

    def ask(*arrays: Array) -> tuple[Array, Array]:
        q, v, q_bar, v_bar = arrays
        bar = q_bar, v_bar
        return dynamics.stable_pd(x.character, q, v, bar, 100.0, 10.0, DT, limits=True, dtype=dtype)

    for (a, tau), i in x.rows(ask, x.q, x.v, *x.target)[-3:]:
        bar = x.target[0][i], x.target[1][i]
        twin = reference.limited_stable_pd(x.character, x.q[i], x.v[i], bar, 100.0, 10.0, DT)
        assert_close(tau, twin[1], SOLVED[dtype])
        if dtype == "float64":  # a float's accelerations carry the condition of M
            assert_close(a, twin[0], SOLVED[dtype])


@fuzz(limited_trees)
def test_limited_torques_cause_the_acceleration(case: Case) -> None:
    x = Batch(case)
    a, tau = dynamics.stable_pd(x.character, x.q, x.v, x.target, 300.0, 20.0, DT, limits=True)
    M = dynamics.mass_matrix(x.character, x.q)
    size = np.abs(M).max(axis=(1, 2)) * np.abs(a).max(axis=1) + np.abs(tau).max(axis=1)
    gap = np.abs(dynamics.inverse_dynamics(x.character, x.q, x.v, a) - tau).max(axis=1)
    assert (gap < 1e-12 * (1 + size)).all()


@pytest.mark.parametrize("method", ["df", "sf", "pcg"])
@fuzz(limited_trees, examples=20)
def test_limits_hold_with_every_method(case: Case, method: str) -> None:
    x = Batch(case)
    args = x.character, x.q, x.v, x.target, 100.0, 10.0, DT
    _, tau = dynamics.stable_pd(*args, method, limits=True)
    _, by_maba = dynamics.stable_pd(*args, limits=True)
    assert_close(tau, by_maba, 1e-8)  # PCG stops at 1e-13 of the residual, times the condition


def law_error(seed: int, dtype: str, kinds: tuple[str, ...]) -> float:
    """How far each joint is from what its drive asks, cut at its limit, at the acceleration that
    results; relative to the terms of the drive."""
    rng = np.random.default_rng(seed)
    character = trees.random_character(rng, 6, kinds=kinds, effort=True)
    (q, v), target = trees.random_state(rng, character), trees.random_state(rng, character)
    a, tau = dynamics.stable_pd(character, q, v, target, 100.0, 10.0, DT, limits=True, dtype=dtype)
    Q, K = reference.drive(character, q, v, *target, 100.0, 10.0, DT)
    off = np.abs(tau - bounded(effort_limits(character), Q - K * a))
    return float((off / (1 + np.abs(Q) + np.abs(K * a))).max())


@both_dtypes
@pytest.mark.parametrize("kinds", [("hinge", "slide"), ("ball", "hinge", "slide")])
def test_limited_joints_give_their_effort_or_what_the_drive_asks(
    dtype: str, kinds: tuple[str, ...]
) -> None:
    # a float's accelerations carry the condition of M
    most = 1e-10 if dtype == "float64" else 1e-3
    assert max(law_error(seed, dtype, kinds) for seed in range(200)) < most


@pytest.mark.parametrize(
    ("kp", "dtype", "near"),
    [
        (1e3, "float64", 1e-6),
        (1e3, "float32", 0.01),
        (1e5, "float64", 1e-6),
        # a float resolves a torque of 1e5 N·m to 0.01
        (1e5, "float32", 0.03),
        (1e7, "float64", 1e-4),
    ],
)
def test_stiff_drives_of_long_chains_are_solved_to_the_end(
    kp: float, dtype: str, near: float
) -> None:
    """A snake of balls far from its target: most joints saturate, and some do not."""
    character = with_effort(load_character("snake-72"), None, to=5.0)
    rng = np.random.default_rng(5)
    (q, v), target = trees.random_state(rng, character), trees.random_state(rng, character)
    args = character, q, v, target, kp, 0.1 * kp, DT
    _, tau = dynamics.stable_pd(*args, limits=True, dtype=dtype)
    _, twin = reference.limited_stable_pd(*args)
    assert 3 < saturated(effort_limits(character), twin) < 22
    assert np.abs(tau - twin)[6:].max() < near * 5.0


def even_ball(effort: float | tuple[float, float, float]) -> Character:
    """A link whose inertia about its ball joint is the same about all axes."""
    joint = Joint("joint", "ball", effort=effort)
    return Character("ball", (Link("link", joints=(joint,), mass=1.0, inertia=(1.0, 1.0, 1.0)),))


@both_dtypes
def test_a_saturated_ball_keeps_the_direction_it_pushes_in(dtype: str) -> None:
    target = rotation.exp([0.5, 1.0, 0.0]), np.zeros(3)
    _, tau = dynamics.stable_pd(
        even_ball(2.0), [1, 0, 0, 0], np.zeros(3), target, 100.0, 1.0, 0.01, limits=True,
        dtype=dtype,
    )  # fmt: skip
    assert_close(tau, 2.0 * np.array([0.5, 1.0, 0.0]) / np.sqrt(1.25), PRECISION[dtype])


@both_dtypes
def test_a_ball_limited_per_axis_gives_each_axis_its_own(dtype: str) -> None:
    target = rotation.exp([0.5, -1.0, 0.01]), np.zeros(3)
    character = even_ball((1.0, 2.0, 3.0))
    a, tau = dynamics.stable_pd(
        character, [1, 0, 0, 0], np.zeros(3), target, 100.0, 1.0, 0.01, limits=True, dtype=dtype
    )
    assert_close(tau[:2], [1.0, -2.0], PRECISION[dtype])
    # the third is within its limit and stays a drive
    K = 0.01 * (1.0 + 0.01 * 100.0)
    assert tau[2] == pytest.approx(100.0 * rotation.log(target[0])[2] - K * a[2], rel=1e-5)


@fuzz(trees.cases(10))
def test_without_limits_nothing_changes(case: Case) -> None:
    x = Batch(case)
    args = x.character, x.q, x.v, x.target, 300.0, 20.0, DT
    limited, free = dynamics.stable_pd(*args, limits=True), dynamics.stable_pd(*args)
    assert np.array_equal(limited, free)


# worlds


def everywhere(character: Character, kp: float, kd: float) -> Gains:
    """Gains of all joints, free roots included."""
    return Gains(character, np.full(character.nv, kp), np.full(character.nv, kd))


def limited_world(x: Batch, dtype: str, n: int, **options: object) -> World:
    """A world of the first n states after one driven step."""
    world = World(x.character, n=n, dt=DT, dtype=dtype)
    world.reset(State(x.q[:n], x.v[:n]))
    gains = everywhere(x.character, 300.0, 20.0)
    target = Target(x.target[0][:n], x.target[1][:n])
    world.step(Command(drive=Drive(gains, target, **options)))  # type: ignore[arg-type]
    return world


@both_dtypes
@pytest.mark.parametrize("n", [1, 9])
@fuzz(limited_trees, examples=20)
def test_the_torque_of_a_world_stays_within_the_limits(case: Case, n: int, dtype: str) -> None:
    x = Batch(case)
    limits = effort_limits(x.character)
    for tau in limited_world(x, dtype, n).torque.reshape(n, -1):
        assert excess(limits, tau) <= PRECISION[dtype]


@both_dtypes
@pytest.mark.parametrize("n", [1, 9])
@fuzz(trees.cases(10, effort=True, passive=True).filter(trees.jointed), examples=20)
def test_the_torque_reported_is_the_torque_applied(case: Case, n: int, dtype: str) -> None:
    x = Batch(case)
    driven = limited_world(x, dtype, n)
    # the same step under that torque, from a world without drive and limits
    forced = World(with_effort(x.character, None), n=n, dt=DT, dtype=dtype)
    forced.reset(State(x.q[:n], x.v[:n]))
    forced.step(Command(force=driven.torque))
    assert_close(forced.state.v, driven.state.v, SOLVED[dtype])
    assert_close(forced.state.q, driven.state.q, SOLVED[dtype])


@fuzz(trees.cases(10, effort=True).filter(trees.jointed))
def test_a_world_limits_its_joints_as_dynamics_does(case: Case) -> None:
    x = Batch(case)
    world = limited_world(x, "float64", 9)
    a, tau = dynamics.stable_pd(x.character, x.q, x.v, x.target, 300.0, 20.0, DT, limits=True)
    assert_close(world.torque, tau, SOLVED["float64"])
    assert_close(world.state.v, x.v + DT * a, SOLVED["float64"])


@both_dtypes
@fuzz(limited_trees)
def test_commanded_forces_are_cut_at_the_limits(case: Case, dtype: str) -> None:
    x = Batch(case)
    limits = effort_limits(x.character)
    world = World(x.character, n=9, dt=DT, dtype=dtype)
    world.reset(State(x.q, x.v))
    world.step(Command(force=100 * x.tau))
    for asked, given in zip(100 * x.tau, world.torque, strict=True):
        expected = asked.copy()
        for limit in limits:
            size = np.linalg.norm(asked[limit.v])
            expected[limit.v] *= min(1.0, limit.effort / size)
        assert_close(given, expected, PRECISION[dtype])


@both_dtypes
@fuzz(limited_trees)
def test_commanded_accelerations_stay_within_the_limits(case: Case, dtype: str) -> None:
    x = Batch(case)
    limits = effort_limits(x.character)
    world = World(x.character, n=9, dt=DT, dtype=dtype)
    world.reset(State(x.q, x.v))
    world.step(Command(acceleration=100 * x.a))
    for tau in world.torque:
        assert excess(limits, tau) <= PRECISION[dtype]


@fuzz(limited_trees)
def test_standalone_torques_stay_within_the_limits(case: Case) -> None:
    x = Batch(case)
    limits = effort_limits(x.character)
    embedded, standalone = (limited_world(x, "float64", 9, embedded=e) for e in (True, False))
    for tau in standalone.torque:
        assert excess(limits, tau) <= PRECISION["float64"]
    assert_close(standalone.torque, embedded.torque, SOLVED["float64"])


@both_dtypes
@fuzz(limited_trees)
def test_strength_scales_gains_and_limits(case: Case, dtype: str) -> None:
    x, rng = Batch(case), case[1]
    strength = rng.uniform(0, 2, len(x.character.links))
    ours = limited_world(x, dtype, 9, strength=strength)
    # the same world from a character with other limits and other gains
    forest = scene_of(x.character).forest
    sizes = np.array([6, 3, 1, 1])[forest.kind]
    factor = np.repeat(strength[forest.link], sizes)
    other = World(with_effort(x.character, strength), n=9, dt=DT, dtype=dtype)
    other.reset(State(x.q, x.v))
    gains = Gains(x.character, 300.0 * factor, 20.0 * factor)
    other.step(Command(drive=Drive(gains, Target(*x.target))))
    assert_close(ours.torque, other.torque, SOLVED[dtype])
    assert_close(ours.state.v, other.state.v, SOLVED[dtype])


@both_dtypes
def test_each_copy_has_its_own_strength(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x = Batch((trees.random_character(rng, 6, effort=True), rng))
    strength = rng.uniform(0, 1, (9, 6))
    together = limited_world(x, dtype, 9, strength=strength)
    for i in (0, 8):
        alone = World(x.character, n=2, dt=DT, dtype=dtype)
        alone.reset(State(x.q[i], x.v[i]))
        target = Target(x.target[0][i], x.target[1][i])
        drive = Drive(everywhere(x.character, 300.0, 20.0), target, strength=strength[i])
        alone.step(Command(drive=drive))
        # one strength for all and one for each are two paths through the code: same to rounding
        assert_close(alone.torque[1], together.torque[i], SOLVED[dtype])


def test_a_joint_without_strength_is_limp() -> None:
    character = load_character("humanoid")
    strength = np.ones(len(character.links))
    strength[5] = 0.0
    world = World(character, dt=DT)
    q, v = trees.random_state(np.random.default_rng(0), character)
    world.reset(State(q, v))
    gains = everywhere(character, 300.0, 20.0)
    world.step(Command(drive=Drive(gains, Target(character.rest_q), strength=strength)))
    forest = scene_of(character).forest
    weak = np.repeat(forest.link == 5, np.array([6, 3, 1, 1])[forest.kind])
    assert weak.any()
    assert not world.torque[weak].any()
    assert world.torque[~weak].all()


@both_dtypes
def test_a_weak_arm_sags_and_a_strong_one_holds(dtype: str) -> None:
    # holding the two links level needs less than 20 N m
    links = tuple(
        replace(link, joints=tuple(replace(joint, effort=effort) for joint in link.joints))
        for link, effort in zip(load_character("two-link").links, (20.0, 20.0), strict=True)
    )
    character = Character("arm", links)
    level = np.array([np.pi / 2, 0.0])
    needed = np.abs(dynamics.bias_force(character, level, np.zeros(2))).max()
    gains, drops = Gains(character, 2000.0, 200.0), []
    for strength in (1.0, 0.5 * needed / 20.0):
        world = World(character, dt=DT, dtype=dtype)
        world.reset(State(level))
        drive = Drive(gains, Target(level), strength=np.full(2, strength))
        world.step(Command(drive=drive), steps=20)
        drops.append(np.abs(world.state.q - level).max())
    assert needed < 20.0
    assert drops[0] < 0.02  # 20 N m over a stiffness of 2000
    assert drops[1] > 0.2
