"""Inverse dynamics control: exact tracking, poles of the step, a free root on the ground."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls

import poise
from poise import dynamics, measure
from poise.control.inverse_dynamics import REGULARIZATION, GroundForceSolver, place_poles
from poise.reference import kane_inverse_dynamics

CHARACTERS = ("humanoid", "humanoid-51", "humanoid-ball", "dog", "snake-36", "two-link", "plank-5")


def random_state(name: str, seed: int = 0) -> tuple[poise.Character, np.ndarray, np.ndarray]:
    """A character somewhere on its way, and velocities."""
    character = poise.load_character(name)
    rng = np.random.default_rng(seed)
    world = poise.World(character, dt=0.1, contact=None, ground=False, gravity=(0, 0, 0))
    world.reset(poise.State(character.rest_q, 5.0 * rng.normal(size=character.nv)))
    world.step()
    return character, world.state.q.copy(), 3.0 * rng.normal(size=character.nv)


@pytest.mark.parametrize("name", CHARACTERS)
def test_kanes_recursion_is_newton_and_euler(name: str) -> None:
    character, q, v = random_state(name)
    rng = np.random.default_rng(1)
    a, external = 5.0 * rng.normal(size=character.nv), rng.normal(size=(len(character.links), 6))
    ours = dynamics.kane_inverse_dynamics(character, q, v, a, external=external)
    other = dynamics.inverse_dynamics(character, q, v, a, external=external)
    assert ours == pytest.approx(other, abs=1e-12 * np.abs(other).max())


@pytest.mark.parametrize("as_printed", [False, True])
def test_the_core_and_the_twin_agree_in_both_forms(as_printed: bool) -> None:
    character, q, v = random_state("humanoid-ball")
    a = np.random.default_rng(2).normal(size=character.nv)
    ours = dynamics.kane_inverse_dynamics(character, q, v, a, as_printed=as_printed)
    twin = kane_inverse_dynamics(character, q, v, a, as_printed=as_printed)
    assert ours == pytest.approx(twin, abs=1e-11 * np.abs(twin).max())


def test_a_batch_is_its_rows() -> None:
    character, q, v = random_state("dog")
    rows = np.random.default_rng(3).normal(size=(9, character.nv))
    batch = dynamics.kane_inverse_dynamics(character, q, v, rows)
    for a, tau in zip(rows, batch, strict=True):
        one = dynamics.kane_inverse_dynamics(character, q, v, a)
        assert tau == pytest.approx(one, abs=1e-11 * np.abs(one).max())


@pytest.mark.parametrize("dt", [1 / 100, 1 / 30])
@pytest.mark.parametrize(("name", "clip"), [("humanoid", "run"), ("humanoid-51", "walk")])
def test_tracking_is_exact_at_any_step(name: str, clip: str, dt: float) -> None:
    motion = poise.load_clip(clip, poise.load_character(name))
    world = poise.World(motion.character, dt=dt, contact=None, ground=False)
    world.reset(motion.state(0.0))
    poise.run(world, poise.InverseDynamics(world, 300.0, root="held"), motion, 0.5)
    goal = motion.q(float(world.time))
    error = measure.tracking_error(motion.character, world.state.q, goal)
    assert error.rotation.max() < 1e-8  # degrees; rounding


@pytest.mark.arithmetic
def test_without_its_past_a_target_is_followed_to_first_order() -> None:
    clip = poise.load_clip("run", poise.load_character("humanoid"))
    largest = []
    for dt in (1 / 120, 1 / 240, 1 / 480):
        world = poise.World(clip.character, dt=dt, contact=None, ground=False)
        world.reset(clip.state(0.0))
        servo = poise.InverseDynamics(world, 300.0, root="held")
        for t in world.until(0.4):
            world.step(servo(world.state, clip.target(t + dt)))
        error = measure.tracking_error(clip.character, world.state.q, clip.q(float(world.time)))
        largest.append(error.rotation.max())
    # half the step, half the error, but for terms of second order
    assert largest[1] / largest[0] == pytest.approx(0.5, abs=0.02)
    assert largest[2] / largest[1] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("kp", [1.0, 30.0, 3000.0, 1e6])
def test_errors_decay_as_the_equation_has_it(kp: float, ratio: float) -> None:
    dt = 1 / 60
    p, d = (float(x[0]) for x in place_poles(np.array([kp]), ratio, dt))
    step = np.array([[1.0 - dt * dt * p, dt - dt * dt * d], [-dt * p, 1.0 - dt * d]])
    exact = np.exp(dt * np.roots([1.0, 2.0 * ratio * np.sqrt(kp), kp]))
    # two equal poles are found to the root of rounding only
    found = np.linalg.eigvals(step)
    assert sorted(found, key=abs) == pytest.approx(sorted(exact, key=abs), abs=1e-6)


def test_poles_are_placed_for_the_softest_and_the_stiffest() -> None:
    soft, hard = np.array([1e-12]), np.array([1e12])
    # small steps of a soft spring are the equation itself, a hard one is there after one step
    assert place_poles(soft, 1.0, 1e-3)[0] == pytest.approx(1e-12)
    for ratio in (0.5, 1.0, 50.0):
        assert place_poles(soft, ratio, 1e-3)[1] == pytest.approx(2e-6 * ratio)
        assert place_poles(hard, ratio, 0.1)[1] == pytest.approx(10.0)
    assert place_poles(hard, 1.0, 0.1)[0] == pytest.approx(100.0)


@pytest.mark.parametrize("stiffness", [30.0, 3000.0, 1e6])
def test_a_pose_is_reached_without_overshoot_at_any_stiffness(stiffness: float) -> None:
    arm = poise.load_character("two-link")
    world = poise.World(arm, dt=1 / 60, contact=None, ground=False)
    servo = poise.InverseDynamics(world, stiffness)
    goal = np.array([-1.0, -1.2])
    way = [world.state.q.copy()]
    for _ in world.until(4.0):
        world.step(servo(world.state, poise.Target(goal)))
        way.append(world.state.q.copy())
    # the bodies' angles in the world
    angle, wanted = np.cumsum(way, axis=1), np.cumsum(goal)
    assert angle[-1] == pytest.approx(wanted, abs=1e-6)
    assert (angle >= wanted - 1e-9).all()


@pytest.mark.parametrize("clip", ["squat", "forward-kick"])
def test_a_free_root_is_carried_by_forces_of_the_ground(clip: str) -> None:
    motion = poise.load_clip(clip, poise.load_character("humanoid"))
    world = poise.World(motion.character, dt=1 / 240)
    world.reset(motion.state(0.0))
    poise.run(world, poise.InverseDynamics(world, 100.0, root="free"), motion, 1.0)
    error = measure.tracking_error(motion.character, world.state.q, motion.q(float(world.time)))
    assert not measure.fallen(world, world.state.q, world.contacts)
    assert error.rotation.mean() < 3.0
    assert np.abs(world.torque[:6]).max() == 0.0


def standing(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of two feet, a center of mass, and the wrench of forces drawn inside the cones."""
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.uniform(-0.2, 0.2, (8, 2)), np.zeros(8)])
    center, edges = np.array([0.02, 0.0, 0.9]), GroundForceSolver(0.8, 1.7).edges
    force = rng.exponential(20.0, (8, len(edges))) @ edges
    return points, center, wrench_of(points, center, force)


def wrench_of(points: np.ndarray, center: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Force and torque about the center, of forces at points."""
    return np.concatenate([force.sum(axis=0), np.cross(points - center, force).sum(axis=0)])


@pytest.mark.parametrize("seed", range(5))
def test_ground_forces_give_any_wrench_that_the_cones_can_give(seed: int) -> None:
    points, center, wrench = standing(seed)
    force = GroundForceSolver(0.8, 1.7)(points, center, wrench)
    assert (np.linalg.norm(force[:, :2], axis=1) <= 0.8 * force[:, 2] + 1e-9).all()
    # the share of the forces themselves in what is minimised, of about 600 N
    assert wrench_of(points, center, force) == pytest.approx(wrench, abs=0.05)


@pytest.mark.parametrize("beyond", [1.0, 5.0])
def test_ground_forces_are_the_least_squares_of_another_solver(beyond: float) -> None:
    points, center, wrench = standing(4)
    # five times the torque is more than the feet can give
    wrench[3:] *= beyond
    solve = GroundForceSolver(0.8, 1.7)
    edges = np.broadcast_to(solve.edges, (8, 4, 3))
    turning = np.cross((points - center)[:, None], edges) / solve.size
    A = np.concatenate([edges, turning], axis=2).reshape(32, 6).T
    ease = np.sqrt(REGULARIZATION * (A * A).sum(axis=0).max())
    b = np.concatenate([wrench[:3], wrench[3:] / solve.size])
    rows = np.concatenate([A, ease * np.eye(32)])
    weights = nnls(rows, np.concatenate([b, np.zeros(32)]))[0]
    other = weights.reshape(8, 4) @ solve.edges
    # N, of some 600; daqp stops at 1e-6 of the wrench
    assert solve(points, center, wrench) == pytest.approx(other, abs=0.01)


def test_known_forces_are_taken_in() -> None:
    arm = poise.load_character("two-link")
    world = poise.World(arm, dt=1 / 100, contact=None, ground=False)
    servo = poise.InverseDynamics(world, 200.0)
    servo.external = np.zeros((2, 6))
    servo.external[1, 0] = 5.0
    world.push("lower", (5.0, 0.0, 0.0), 10.0, point=(0.0, 0.0, 0.0))
    for _ in world.until(4.0):
        world.step(servo(world.state, poise.Target([-1.0, -1.2])))
    assert world.state.q == pytest.approx([-1.0, -1.2], abs=1e-6)


def test_a_character_that_stands_on_nothing_falls() -> None:
    humanoid = poise.load_character("humanoid")
    high = humanoid.rest_q + np.eye(humanoid.nq)[2] * 2.0
    servo = poise.InverseDynamics(humanoid, dt=1 / 60)
    told = servo.explain(poise.State(high, np.zeros(humanoid.nv)), poise.Target(high))[1]
    assert told["forces"].shape == (0, 3)
    assert told["acceleration"][:3] == pytest.approx([0.0, 0.0, -9.81], abs=1e-9)
    assert told["torque"] == pytest.approx(0.0, abs=1e-9)


def test_the_free_root_need_not_be_the_first_link() -> None:
    arm, humanoid = poise.load_character("two-link"), poise.load_character("humanoid")
    clip = poise.load_clip("squat", humanoid)
    state, goal = clip.state(0.5), clip.target(0.5)
    alone = poise.InverseDynamics(humanoid, dt=1 / 60).explain(state, goal)[1]
    both = poise.InverseDynamics([arm, humanoid], dt=1 / 60)
    q, v = np.concatenate([arm.rest_q, state.q]), np.concatenate([np.zeros(2), state.v])
    target = poise.Target(
        np.concatenate([arm.rest_q, goal.q]), np.concatenate([np.zeros(2), goal.v])
    )
    told = both.explain(poise.State(q, v), target)[1]
    assert len(told["forces"]) == len(alone["forces"]) > 0
    assert told["torque"][2:8] == pytest.approx(0.0)


def test_copies_with_masses_of_their_own_are_carried() -> None:
    humanoid = poise.load_character("humanoid")
    mass = np.array([link.mass for link in humanoid.links])
    world = poise.World(humanoid, n=2, dt=1 / 60, mass=np.stack([mass, 2.0 * mass]))
    state = poise.load_clip("squat", humanoid).state(0.5)
    world.reset(state)
    told = poise.InverseDynamics(world).explain(world.state, poise.Target(state.q))[1]
    light, heavy = (force[:, 2].sum() for force in told["forces"])
    # all masses and the weight are twice as large, rotational inertias are not
    assert heavy / light == pytest.approx(2.0, rel=0.05)


BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "dt": ("two-link", {}),
    "stiffness is": ("two-link", {"stiffness": -1.0, "dt": 0.01}),
    "stiffness is nan": ("two-link", {"stiffness": np.nan, "dt": 0.01}),
    "stiffness has shape": ("two-link", {"stiffness": np.ones(3), "dt": 0.01}),
    "damping is 0": ("two-link", {"damping": 0.0, "dt": 0.01}),
    "dt is 0": ("two-link", {"dt": 0.0}),
    "dt is nan": ("two-link", {"dt": np.nan}),
    "root is 'up'": ("two-link", {"root": "up", "dt": 0.01}),
    "strength has shape": ("two-link", {"strength": [1.0], "dt": 0.01}),
    "friction is -1": ("humanoid", {"friction": -1.0, "dt": 0.01}),
    "friction is nan": ("humanoid", {"friction": np.nan, "dt": 0.01}),
    "ground is 'flat'": ("humanoid", {"ground": "flat", "dt": 0.01}),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_named(words: str) -> None:
    name, options = BAD[words]
    with pytest.raises(poise.PoiseError, match=words):
        poise.InverseDynamics(poise.load_character(name), **options)


def test_two_free_roots_are_refused() -> None:
    dog = poise.load_character("dog")
    with pytest.raises(poise.PoiseError, match="one free root, there are 2"):
        poise.InverseDynamics([dog, dog], dt=0.01)
