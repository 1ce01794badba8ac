"""Inverse kinematics: against the core's kinematics, finite differences, and poses it must find."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray
from trees import random_character, random_state

import poise
from poise import dynamics
from poise.errors import ClipError
from poise.math import rotation as quat
from poise.math.rotation import quat_matrix
from poise.model import configuration
from poise.model.character import Character
from poise.motion import ik, limits
from poise.motion.ik.goals import check_goals
from poise.motion.ik.solver import _Solver, tree_of

Floats = NDArray[np.float64]

CHARACTERS = ("humanoid", "humanoid-51", "dog", "two-link", "lamp")


@pytest.fixture(scope="module")
def humanoid() -> Character:
    return poise.load_character("humanoid")


def some_poses(character: Character, k: int, size: float = 0.3, seed: int = 0) -> Floats:
    """Poses near the rest pose, within the joints' limits."""
    step = np.random.default_rng(seed).normal(size=(k, character.nv)) * size
    return limits.clamp(character, configuration.integrate(character, character.rest_q, step))


def goals_of(character: Character, q: Floats) -> list[ik.Goal]:
    """Goals that are met in these poses: the root's place, all links' orientations."""
    p, R = dynamics.forward_kinematics(character, q)
    names = [link.name for link in character.links]
    turns: list[ik.Goal] = [ik.Turn(name, R[:, i]) for i, name in enumerate(names)]
    return [ik.Place(names[0], p[:, 0]), *turns]


# kinematics


@pytest.mark.parametrize("name", CHARACTERS)
def test_links_are_where_the_core_puts_them(name: str) -> None:
    character = poise.load_character(name)
    q = some_poses(character, 5)
    p, _, R = tree_of(character).places(q)
    p_core, R_core = dynamics.forward_kinematics(character, q)
    # both round a few times per joint
    np.testing.assert_allclose(p, p_core, atol=1e-13)
    np.testing.assert_allclose(R, quat_matrix(R_core), atol=1e-13)


@pytest.mark.parametrize("seed", range(8))
def test_twists_of_random_trees_are_the_cores_jacobians(seed: int) -> None:
    rng = np.random.default_rng(seed)
    character = random_character(rng, 7)
    q = np.stack([random_state(rng, character)[0] for _ in range(3)])
    placed = tree_of(character).places(q)
    p, S = placed.p, tree_of(character).twists(q, placed).transpose(0, 2, 1)
    for i, moved in enumerate(tree_of(character).chain):
        J = dynamics.jacobian(character, q, i)
        arm = (p[:, i] - p[:, 0])[:, :, None]
        linear = S[:, :3] + np.cross(S[:, 3:], arm, axis=1)
        np.testing.assert_allclose((linear * moved), J[:, :3], atol=1e-12)
        np.testing.assert_allclose((S[:, 3:] * moved), J[:, 3:], atol=1e-12)


# the equations


@pytest.mark.parametrize("kind", ["place", "turn", "aim", "above", "limits"])
def test_the_right_hand_side_is_the_slope_of_the_cost(humanoid: Character, kind: str) -> None:
    rng = np.random.default_rng(3)
    q = configuration.integrate(humanoid, humanoid.rest_q, 0.5 * rng.normal(size=(4, humanoid.nv)))
    goals: dict[str, list[ik.Goal]] = {
        "place": [ik.Place("left_foot", rng.normal(size=(4, 3)), (0.1, 0.0, 0.0), 3.0)],
        "turn": [ik.Turn("head", rng.normal(size=(4, 4)))],
        "aim": [ik.Aim("left_shin", (0.0, 0.3, -1.0), rng.normal(size=(4, 3)))],
        "above": [ik.Above("left_foot", (1.0,), (0.1, 0.0, 0.0), 3.0), ik.Above("head", (0.0,))],
        "limits": [],
    }
    asked = check_goals(humanoid, goals[kind], 4)
    solver = _Solver(humanoid, asked, np.full(humanoid.nv, 1e-3), 2.0, 4)
    frames = np.arange(4)
    _, _, g = solver.system(q, q, frames)
    for d in range(humanoid.nv):
        step = np.zeros(humanoid.nv)
        step[d] = 1e-5
        up = solver.system(configuration.integrate(humanoid, q, step), q, frames)[0]
        down = solver.system(configuration.integrate(humanoid, q, -step), q, frames)[0]
        # central differences: 1e-10 of curvature, and rounding of costs up to 1e4 over 1e-5
        np.testing.assert_allclose(-(up - down) / 4e-5, g[:, d], rtol=1e-5, atol=1e-4)


# what it finds


@pytest.mark.parametrize("name", CHARACTERS)
def test_a_pose_is_found_again_from_its_links(name: str) -> None:
    character = poise.load_character(name)
    q = some_poses(character, 20)
    start = configuration.integrate(
        character, q, np.random.default_rng(1).normal(size=(20, character.nv)) * 0.2
    )
    found, report = ik.solve(character, start, goals_of(character, q), posture=0.0, iterations=50)
    assert report.residual.max() < 1e-4  # steps below 1e-5 end the search
    np.testing.assert_allclose(configuration.difference(character, found, q), 0.0, atol=2e-3)


def test_a_goal_already_met_moves_nothing(humanoid: Character) -> None:
    q = some_poses(humanoid, 3)
    found, _ = ik.solve(humanoid, q, goals_of(humanoid, q))
    np.testing.assert_allclose(configuration.difference(humanoid, found, q), 0.0, atol=1e-9)


def test_a_frame_does_not_depend_on_its_neighbours(humanoid: Character) -> None:
    q = some_poses(humanoid, 6)
    target = np.random.default_rng(2).normal(size=(6, 3)) * 0.1 + (0.3, 0.2, 1.0)
    whole, _ = ik.solve(humanoid, q, [ik.Place("left_forearm", target)])
    alone, _ = ik.solve(humanoid, q[4:5], [ik.Place("left_forearm", target[4:5])])
    np.testing.assert_allclose(whole[4:5], alone, atol=1e-12)  # matrix products may round apart


def test_frames_of_weight_zero_may_ask_for_anything(humanoid: Character) -> None:
    q = some_poses(humanoid, 2)
    target = np.array([[np.nan] * 3, [0.3, 0.2, 1.0]])
    found, report = ik.solve(
        humanoid, q, [ik.Place("left_forearm", target, weight=np.array([0.0, 1.0]))]
    )
    np.testing.assert_array_equal(found[0], q[0])
    assert report.residual[0, 0] == 0.0


def test_an_aim_straight_back_is_found(humanoid: Character) -> None:
    q = humanoid.rest_q
    goal = ik.Aim("left_upper_arm", (0.0, 0.0, -1.0), (0.0, 0.0, 1.0))
    _, report = ik.solve(humanoid, q, [goal], limits=False, posture=0.0)
    assert report.residual.max() < 1e-4


def test_what_is_below_its_height_comes_up_and_what_is_above_stays(humanoid: Character) -> None:
    q = np.tile(humanoid.rest_q, (2, 1))
    hold = ik.Turn("chest", (1.0, 0.0, 0.0, 0.0), 1e3)
    height = np.array([[1.2], [0.1]])  # the elbow is in between
    found, report = ik.solve(humanoid, q, [hold, ik.Above("left_forearm", height, weight=1e6)])
    assert report.residual[1].max() < 1e-4  # a weight of 1e6 against a posture of 1e-3
    i = [link.name for link in humanoid.links].index("left_forearm")
    was, now = (dynamics.forward_kinematics(humanoid, x)[0][:, i, 2] for x in (q, found))
    assert 0.1 < was[0] < 1.2 - 1e-3
    # what a step too long lifts it above stays
    assert 1.2 - 1e-4 < now[0] < 1.2 + 5e-3
    assert now[1] == was[1]


def test_short_steps_from_a_near_start_end_where_long_ones_do(humanoid: Character) -> None:
    q = some_poses(humanoid, 20)
    start = configuration.integrate(
        humanoid, q, np.random.default_rng(1).normal(size=(20, humanoid.nv)) * 0.1
    )
    goals = [*goals_of(humanoid, q), ik.Place("left_foot", (0.1, 0.2, 0.3), weight=1e4)]
    usual, near = (
        ik.solve(humanoid, start, goals, limits=0.3, iterations=100, near=near)[0]
        for near in (False, True)
    )
    # both stop where a round gains a millionth of the cost
    np.testing.assert_allclose(configuration.difference(humanoid, near, usual), 0.0, atol=1e-3)


def test_kept_limits_are_kept(humanoid: Character) -> None:
    q = some_poses(humanoid, 30)
    target = np.random.default_rng(4).normal(size=(30, 3)) + (0.0, 0.0, 1.0)
    found, _ = ik.solve(humanoid, q, [ik.Place("right_foot", target, weight=100.0)])
    worst = max(over.value.max() for over in limits.excesses(humanoid, found))
    assert worst < 1e-9  # cut off at the bound, but for rounding


def test_limits_that_give_way_are_exceeded_less_than_without(humanoid: Character) -> None:
    q = humanoid.rest_q
    goal = ik.Aim("left_shin", (0.0, 0.0, -1.0), (1.0, 0.0, -1.0))  # the knee, the wrong way
    hold = ik.Turn("left_thigh", (1.0, 0.0, 0.0, 0.0), 10.0)
    excess = {}
    for weight in (False, 0.3, 3.0):
        found, _ = ik.solve(humanoid, q, [goal, hold], limits=weight)
        excess[weight] = max(x.value.max() for x in limits.excesses(humanoid, found[None]))
    assert excess[False] > excess[0.3] > excess[3.0] > 0.0


def test_out_of_reach_is_told_by_link_time_and_millimetres(humanoid: Character) -> None:
    q = np.tile(humanoid.rest_q, (3, 1))
    target = np.array([[0.0, 0.19, 1.0], [0.0, 0.19, 9.0], [0.0, 0.19, 1.0]])
    hold = ik.Place("pelvis", q[:, :3], weight=1e6)
    _, report = ik.solve(humanoid, q, [hold, ik.Place("left_forearm", target)])
    with pytest.raises(ClipError, match=r"left_forearm at 0\.500 s by \d{4}\.\d mm"):
        report.check(fps=2.0)


def test_the_report_names_every_goal(humanoid: Character) -> None:
    q = humanoid.rest_q[None]
    _, report = ik.solve(humanoid, q, [ik.Place("head", (0, 0, 9), name="crown")])
    assert report.names == ("crown",)
    assert "crown" in str(report)


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (ik.Place("haed", (0.0, 0.0, 0.0)), "did you mean 'head'"),
        (ik.Place("head", np.zeros((5, 3))), r"target has shape \(5, 3\)"),
        (ik.Place("head", (0.0, 0.0, np.nan)), "frame 0 is not finite"),
        (ik.Place("head", (0.0, 0.0, 0.0), weight=-1.0), "not negative"),
        (ik.Aim("head", (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)), "length zero"),
        (ik.Turn("head", (1.0, 0.0, 0.0)), r"expected \(4,\)"),
    ],
)
def test_a_bad_goal_is_named(humanoid: Character, goal: ik.Goal, message: str) -> None:
    with pytest.raises(ClipError, match=message):
        ik.solve(humanoid, humanoid.rest_q, [goal])


def test_poses_of_a_wrong_shape_are_refused(humanoid: Character) -> None:
    with pytest.raises(ClipError, match="expected"):
        ik.solve(humanoid, np.zeros((3, 7)), [])


# limits


def test_swing_and_twist_put_a_rotation_together_again() -> None:
    rng = np.random.default_rng(5)
    axis = np.array([0.0, 0.6, 0.8])
    q = rng.normal(size=(50, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    swing, twist, _, _ = limits.swing_twist(q, axis)
    arc = quat.log(quat.multiply(q, quat.conjugate(quat.turn(axis, twist))))
    np.testing.assert_allclose(np.linalg.norm(arc, axis=1), swing, atol=1e-9)
    np.testing.assert_allclose(arc @ axis, 0.0, atol=1e-9)  # the swing has no twist in it


def test_clamped_poses_are_inside_and_inside_ones_stay(humanoid: Character) -> None:
    step = np.random.default_rng(6).normal(size=(50, humanoid.nv))
    wild = configuration.integrate(humanoid, humanoid.rest_q, step)
    tame = limits.clamp(humanoid, wild)
    assert max(over.value.max() for over in limits.excesses(humanoid, tame)) < 1e-9
    np.testing.assert_array_equal(
        limits.clamp(humanoid, tame[:1] * 0 + humanoid.rest_q)[0], humanoid.rest_q
    )


# time


@pytest.mark.slow
def test_a_long_take_is_solved_in_seconds(humanoid: Character) -> None:
    k = 5400
    t = np.arange(k)[:, None] / 120.0
    rng = np.random.default_rng(0)
    wave = rng.normal(size=humanoid.nv) * 0.3 * np.sin(2 * np.pi * t + 6 * rng.random(humanoid.nv))
    q = limits.clamp(humanoid, configuration.integrate(humanoid, humanoid.rest_q, wave))
    start = configuration.integrate(humanoid, q, rng.normal(size=(k, humanoid.nv)) * 0.05)
    begin = time.process_time()
    ik.solve(humanoid, start, goals_of(humanoid, q), iterations=10, tolerance=0.0)
    # 4 s on an idle core; the bound leaves room for a busy machine
    assert time.process_time() - begin < 12.0
