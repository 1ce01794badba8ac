"""Solutions of the core against those of the reference implementation, with LAPACK and daqp."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import poise
from poise import PoiseError, State, Target, World, _core, load_character
from poise.control.balance import Schedule
from poise.math.rotation import quat_matrix
from poise.model.scene import scene_of
from poise.reference import balance as reference
from poise.reference import move
from poise.reference.balance import momentum_task, tasks_of

Array = NDArray[np.float64]
ALL = ("track", "linear", "angular")
SUBSETS = (ALL, ("track", "linear"), ("track",), ("linear", "angular"))
CHARACTERS = ("humanoid-ball", "humanoid-51", "dog", "tail-biped")


def balance_of(name: str, contact: str, **given: Any) -> poise.Balance:
    dt = 1e-3 if contact == "penalty" else 1 / 240
    world = World(load_character(name), dt=dt, contact=contact, self_collision=False)
    return poise.Balance(world, **given)


def random_case(
    balance: poise.Balance, rng: np.random.Generator, sizes: tuple[float, ...] = (0.01, 0.1, 0.3)
) -> tuple[State, Target]:
    """A pose near the rest pose, on the ground or a little above, and a target that moves."""
    character, size = balance.character, rng.choice(sizes)
    by = size * rng.normal(size=character.nv)
    by[:3] *= 0.1 * rng.integers(2)
    by[3:6] *= 0.2
    state = State(move(character, character.rest_q, by, 1.0), size * rng.normal(size=character.nv))
    v, a = rng.normal(size=(2, character.nv))
    return state, Target(character.rest_q, 0.1 * v, a)


@pytest.mark.parametrize("contact", ["penalty", "impulse"])
@pytest.mark.parametrize("name", CHARACTERS)
def test_the_core_plans_what_its_twin_plans(name: str, contact: str) -> None:
    rng = np.random.default_rng(1)
    links = load_character(name).links
    goals = {links[-1].name: (0.3, 0.2, 1.0), links[3].name: (0.1, 0.1, 0.8)}
    balance = balance_of(name, contact)
    for i in range(24):
        balance.objectives = SUBSETS[i % 4]
        balance.goals = goals if i % 3 else {}
        # far outside of the cones daqp is no judge of digits: see the next test
        sizes = (0.01, 0.1, 0.3) if contact == "penalty" else (0.003, 0.01, 0.03)
        state, target = random_case(balance, rng, sizes)
        solution = balance.solve(state, target)
        found = reference.solve(balance, state, target)[0]
        largest = max(float(np.abs(found.a).max()), 1.0)
        # supports weigh 1e3 beside 1 of tracking and 0.03 of the root: a dozen digits are left of
        # the squares, and daqp stops at 1e-6 or so
        np.testing.assert_allclose(solution.acceleration[0], found.a, rtol=0, atol=1e-6 * largest)
        np.testing.assert_allclose(solution.support_weight[0], found.supports, rtol=0, atol=1e-12)
        assert solution.capture_point_error[0] == pytest.approx(
            found.capture_point_error, abs=1e-12
        )
        assert solution.angular_weight[0] == pytest.approx(found.beta, rel=1e-6, abs=1e-9)
        if found.torque is not None:
            most = max(float(np.abs(found.torque).max()), 1.0)
            np.testing.assert_allclose(solution.torque[0], found.torque, rtol=0, atol=1e-5 * most)


def test_forces_of_the_ground_cost_no_more_than_those_of_daqp(monkeypatch: Any) -> None:
    """Where the wrench that the root needs is far outside of the cones."""
    seen: dict[str, Array] = {}
    solve_cones = reference.solve_cones

    def spied(G: Array, need: Array, S: Array, most: Array) -> tuple[Array, Array]:
        seen.update(G=G, need=need, S=S)
        return solve_cones(G, need, S, most)

    def cost(wrench: Array) -> float:
        away = wrench - seen["need"]
        return float(away @ np.linalg.solve(seen["S"], away))

    monkeypatch.setattr(reference, "solve_cones", spied)
    rng = np.random.default_rng(7)
    balance = balance_of("humanoid", "impulse", friction=0.3)
    tried = 0
    for _ in range(80):
        state, target = random_case(balance, rng)
        solution = balance.solve(state, target)
        found = reference.solve(balance, state, target)[0]
        if not len(found.forces):
            continue
        turn = quat_matrix(state.q[3:7])
        arm = solution.contact_points[0] - state.q[:3]
        torque = np.cross(arm, solution.contact_forces[0]).sum(axis=0) @ turn
        ours = cost(np.concatenate([solution.contact_forces[0].sum(axis=0), torque]))
        arm = found.points - state.q[:3]
        torque = np.cross(arm, found.forces).sum(axis=0) @ turn
        theirs = cost(np.concatenate([found.forces.sum(axis=0), torque]))
        # both have 1e-8 of |lambda|^2 in what they make least
        assert ours <= theirs * (1 + 1e-4) + 1e-3
        tried += 1
    assert tried > 40


def test_a_support_that_is_held_twice_is_held_once() -> None:
    """Links of one foot say the same, or contradict each other a little."""
    balance = balance_of("humanoid", "penalty", supports=["left_foot", "right_foot"])
    twice = balance_of("humanoid", "penalty", supports=["left_foot", "right_foot"])
    soles = twice._soles
    twice._soles = soles._replace(
        names=(*soles.names, "again"),
        link=np.append(soles.link, soles.link[0]),
        point=np.concatenate([soles.point, soles.point[soles.owner == 0]]),
        owner=np.append(soles.owner, np.full(np.count_nonzero(soles.owner == 0), 2)),
        first=np.append(soles.first, len(soles.owner)).astype(np.int32),
    )
    twice._write_params()
    state, target = State(balance.character.rest_q), Target(balance.character.rest_q)
    once, again = balance.solve(state, target), twice.solve(state, target)
    np.testing.assert_allclose(again.acceleration, once.acceleration, rtol=0, atol=1e-8)
    assert again.constraint_residual[0] < 1e-9


@pytest.mark.parametrize("contact", ["penalty", "impulse"])
def test_copies_plan_alone_whatever_the_threads(contact: str) -> None:
    rng = np.random.default_rng(1)
    one = balance_of("humanoid", contact, threads=1)
    two = balance_of("humanoid", contact, threads=2)
    cases = [random_case(one, rng)[0] for _ in range(11)]
    target = random_case(one, rng)[1]
    many = State(np.array([s.q for s in cases]), np.array([s.v for s in cases]))
    solution = one.solve(many, target)
    np.testing.assert_array_equal(solution.acceleration, two.solve(many, target).acceleration)
    alone = np.concatenate([one.solve(state, target).acceleration for state in cases])
    # lanes round in another order than one copy does
    np.testing.assert_allclose(
        solution.acceleration, alone, rtol=0, atol=1e-7 * np.abs(alone).max()
    )
    rows = (np.tile(x, (11, 1)) for x in (target.q, target.v, target.a) if x is not None)
    own = Target(*rows)
    np.testing.assert_allclose(
        one.solve(many, own).acceleration, solution.acceleration, rtol=0, atol=1e-7
    )


def test_the_planner_refuses_what_does_not_fit() -> None:
    balance = balance_of("humanoid", "penalty")
    state = State(balance.character.rest_q)
    with pytest.raises(PoiseError, match=r"target.q has shape \(5,\)"):
        balance(state, Target(np.zeros(5)))
    balance.weight = np.zeros(balance.scene.nv)
    with pytest.raises(PoiseError, match="tracking_weight must be above 0"):
        balance(state, Target(state.q))


def test_where_the_scene_stands_does_not_matter() -> None:
    """Five metres higher, on a ground that is five metres high, it plans the same."""
    rng = np.random.default_rng(5)
    low = balance_of("humanoid", "penalty", max_cmp_offset=np.inf)
    high = balance_of("humanoid", "penalty", max_cmp_offset=np.inf, ground=5.0)
    state, target = random_case(low, rng, (0.03,))
    up = np.zeros(low.scene.nq)
    up[2] = 5.0
    there = high.solve(State(state.q + up, state.v), Target(target.q + up, target.v, target.a))
    # heights of 5 m have three digits less than those of millimetres
    np.testing.assert_allclose(
        there.acceleration, low.solve(state, target).acceleration, rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("gravity", [9.81, 1.62])
def test_who_moves_as_its_target_is_not_braked(gravity: float) -> None:
    """On the moon as on earth: of a momentum that is right nothing is asked."""
    scene = scene_of(load_character("humanoid"))
    v = np.zeros(scene.nv)
    v[0] = 0.1
    pull = np.array([0.0, 0.0, -gravity])
    now = tasks_of(scene, scene.forest.rest_q[None], v[None], pull, np.zeros((0, 4)))[0]
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    moves = (now.c[:2], v[:2], np.zeros(2))
    found = momentum_task(now, v, square, moves, (15.0, 7.7), np.inf, gravity)
    np.testing.assert_allclose(found.linear, 0.0, atol=1e-10)
    np.testing.assert_allclose(found.cmp, now.c[:2], atol=1e-12)


def test_copies_of_their_own_masses_plan_with_them() -> None:
    character = load_character("humanoid")
    factor = np.array([1.0, 1.5, 2.0])[:, None]
    mass = factor * np.array([link.mass for link in character.links])
    world = World(character, n=3, dt=1 / 240, self_collision=False, mass=mass)
    balance = poise.Balance(world)
    q = np.tile(character.rest_q, (3, 1))
    state = State(q, np.full((3, character.nv), 0.01))
    solution = balance.solve(state, Target(character.rest_q))
    np.testing.assert_allclose(solution.mass, mass.sum(axis=1), rtol=1e-12)
    own = balance.solve(state, Target(q))
    np.testing.assert_allclose(solution.acceleration, own.acceleration, rtol=0, atol=1e-7)
    for i, found in enumerate(reference.solve(balance, state, Target(character.rest_q))):
        np.testing.assert_allclose(solution.acceleration[i], found.a, rtol=0, atol=1e-6)


def test_the_columns_of_a_schedule_belong_to_links_by_name() -> None:
    """Contacts may tell of the right foot first."""
    character = load_character("humanoid-ball")
    clip = poise.load_clip("forward-kick", character)
    contacts = clip.contacts
    assert contacts is not None
    order = np.argsort([point.link != "right_foot" for point in contacts.points], kind="stable")
    turned = replace(
        contacts, points=tuple(contacts.points[i] for i in order), on=contacts.on[:, order]
    )
    time = 0.5 * clip.duration
    shares = []
    for given in (contacts, turned):
        balance = poise.Balance(character, supports=Schedule(given, fps=clip.fps))
        solution = balance.solve(State(clip.q(time)), Target(clip.q(time), time=time))
        shares.append(
            dict(zip(balance._soles.names, solution.support_weight[0].tolist(), strict=True))
        )
    assert shares[0] == pytest.approx(shares[1])
    assert shares[0]["left_foot"] > 0.9
    assert shares[0]["right_foot"] < 0.1


def test_a_target_of_no_time_stands_as_its_pose_does() -> None:
    character = load_character("humanoid-ball")
    clip = poise.load_clip("squat", character)
    balance = poise.Balance(character, supports=clip)
    state = State(clip.q(0.0))
    solution = balance.solve(state, Target(clip.q(0.0), time=np.nan))
    assert solution.support_weight[0] == pytest.approx([1.0, 1.0])


def test_every_corner_of_a_sole_counts_once() -> None:
    character = load_character("humanoid-ball")
    clip = poise.load_clip("squat", character)
    plain = poise.Balance(character)._soles
    for supports in (clip, ["left_foot", "right_foot"]):
        soles = poise.Balance(character, supports=supports)._soles
        np.testing.assert_array_equal(soles.point, plain.point)


def test_goals_are_assigned_and_not_written_into() -> None:
    balance = balance_of("humanoid", "penalty", goals={"head": (0.0, 0.0, 1.7)})
    with pytest.raises(TypeError):
        balance.goals["head"] = (0.0, 0.0, 1.0)  # type: ignore[index]
    assert list(balance.goals) == ["head"]


def test_a_missing_setting_is_an_error_and_no_end() -> None:
    balance = balance_of("humanoid", "impulse")
    q, v = balance.character.rest_q, np.zeros(balance.character.nv)
    names = ("points", "sole_points", "goals", "tracking_weight", "k_s", "joint_limits", "friction")
    for missing in names:
        params = _core.BalanceParams()
        for name in (*names, "k_d"):
            if name != missing:
                setattr(params, name, getattr(balance.params, name))
        planner = _core.BalancePlanner(balance.scene.model, params, None, 1)
        with pytest.raises(PoiseError, match=f"{missing} is not set"):
            planner.solve(q, v, q, None, None, None, balance.gravity)


def test_parameters_of_the_solver_are_checked_when_they_are_assigned() -> None:
    params = _core.BalanceParams()
    with pytest.raises(PoiseError, match="gamma must be a number"):
        params.gamma = float("nan")
    with pytest.raises(PoiseError, match="tilt_fade holds a number that is not finite"):
        params.tilt_fade = [0.0, float("inf")]
    with pytest.raises(PoiseError, match=r"points has shape \(3,\), expected \(k, 4\)"):
        params.points = np.zeros(3)
    with pytest.raises(PoiseError, match="k_s holds a number that is not finite"):
        params.k_s = np.array([1.0, np.nan])


def test_settings_take_effect_when_they_are_assigned() -> None:
    balance = balance_of("humanoid", "impulse")
    state, target = random_case(balance, np.random.default_rng(3))
    before = balance.solve(state, target).acceleration
    for name, value in (("gamma", 3.0), ("linear_gains", (30.0, 9.0)), ("k_s", 100.0)):
        kept = getattr(balance, name)
        setattr(balance, name, value)
        assert not np.array_equal(balance.solve(state, target).acceleration, before), name
        setattr(balance, name, kept)
        np.testing.assert_array_equal(balance.solve(state, target).acceleration, before)


def test_soles_without_corners_hold_nothing() -> None:
    balance = balance_of("humanoid", "impulse")
    balance.params.sole_points = np.zeros((0, 4))
    q, v = balance.character.rest_q, np.zeros(balance.character.nv)
    found = balance._planner.solve(q, v, q, None, None, None, balance.gravity)
    assert np.isfinite(found.acceleration).all()
