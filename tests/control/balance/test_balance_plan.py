"""The plan of the balance controller: least squares, momentum, cones; with second opinions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poise
from poise import dynamics, measure
from poise.control.balance import Schedule
from poise.control.balance.config import joint_limit_table
from poise.math.polygon import convex_hull, nearest_point
from poise.model.scene import scene_of
from poise.motion.limits import excesses
from poise.reference.balance import (
    Cones,
    consistent_weight,
    joint_excess,
    solve_cones,
    stiffen,
    tasks_of,
)
from poise.reference.least_squares import constrain, reduce

BALL = poise.load_character("humanoid-ball")
SQUAT = poise.load_clip("squat", BALL)
KICK = poise.load_clip("forward-kick", BALL)
GRAVITY = np.array([0.0, 0.0, -9.81])


def problem(seed: int, redundant: int = 0) -> tuple[np.ndarray, ...]:
    """A random least squares problem, some of its constraints said twice."""
    rng = np.random.default_rng(seed)
    n, m, k = 20, 5, 6
    C = rng.normal(size=(k, n))
    x = rng.normal(size=n)
    C = np.concatenate([C, rng.normal(size=(redundant, k)) @ C])
    return (rng.normal(size=n), np.exp(rng.normal(size=n)), 10 * rng.normal(size=(m, n)),
            rng.normal(size=m), C, C @ x)  # fmt: skip


def solve(
    a_des: np.ndarray, W: np.ndarray, E: np.ndarray, e: np.ndarray, C: np.ndarray, d: np.ndarray
) -> tuple[np.ndarray, float]:
    """Accelerations by the null space, and how far constraints contradict each other."""
    per = 1.0 / W
    held = constrain(C * per, d - C @ a_des)
    return a_des + per * reduce(held, E * per, e - E @ a_des).x, held.residual


def by_kkt(a_des: np.ndarray, W: np.ndarray, E: np.ndarray, e: np.ndarray, C: np.ndarray,
           d: np.ndarray) -> np.ndarray:  # fmt: skip
    """The same from the conditions of the optimum."""
    n, k = len(a_des), len(d)
    H = np.diag(W**2) + E.T @ E
    whole = np.block([[H, C.T], [C, np.zeros((k, k))]])
    right = np.concatenate([W**2 * a_des + E.T @ e, d])
    return np.asarray(np.linalg.lstsq(whole, right, rcond=None)[0][:n])


@pytest.mark.parametrize("redundant", [0, 4])
def test_the_null_space_finds_the_optimum(redundant: int) -> None:
    given = problem(1, redundant)
    a, miss = solve(*given)
    # the KKT matrix squares the condition of the rows
    np.testing.assert_allclose(a, by_kkt(*given), atol=1e-8)
    assert miss < 1e-9


def test_a_quadratic_program_agrees() -> None:
    proxqp = pytest.importorskip("proxsuite").proxqp
    a_des, W, E, e, C, d = problem(2)
    qp = proxqp.dense.QP(len(a_des), len(d), 0)
    qp.settings.eps_abs = 1e-10
    qp.init(np.diag(W**2) + E.T @ E, -(W**2 * a_des + E.T @ e), C, d, None, None, None)
    qp.solve()
    # ten times its tolerance, through the condition of the problem
    np.testing.assert_allclose(solve(a_des, W, E, e, C, d)[0], qp.results.x, atol=1e-7)


def test_contradicting_constraints_are_met_as_well_as_can_be() -> None:
    C = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    held = constrain(C, np.array([0.0, 2.0]))
    assert held.x == pytest.approx([1.0, 0.0, 0.0])
    assert held.residual == pytest.approx(1.0)


def test_no_rank_at_all_is_no_trouble() -> None:
    held = constrain(np.zeros((6, 9)), np.ones(6))
    assert not held.x.any()
    assert held.Q.shape == (0, 9)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("name", ["humanoid-ball", "humanoid-51", "dog"])
def test_tasks_are_what_the_dynamics_say_one_by_one(name: str, n: int) -> None:
    character = poise.load_character(name)
    rng = np.random.default_rng(3)
    q = np.tile(character.rest_q, (n, 1))
    v = rng.normal(size=(n, character.nv))
    points = np.array([[2.0, 0.1, 0.2, 0.3], [len(character.links) - 1.0, 0.0, 0.1, 0.0]])
    for i, now in enumerate(tasks_of(scene_of(character), q, v, GRAVITY, points)):
        A, rate = dynamics.centroidal_momentum(character, q[i], v[i])
        given = {"A": A, "rate": rate, "M": dynamics.mass_matrix(character, q[i]),
                 "h": dynamics.bias_force(character, q[i], v[i]),
                 "c": dynamics.center_of_mass(character, q[i])}  # fmt: skip
        for key, other in given.items():
            # the same passes in another order
            np.testing.assert_allclose(getattr(now, key), other, atol=1e-9, err_msg=key)
        for k, (link, *place) in enumerate(points):
            J = dynamics.jacobian(character, q[i], int(link), place)
            bias = dynamics.jacobian_bias(character, q[i], v[i], int(link), place)
            np.testing.assert_allclose(now.J[k], J, atol=1e-12)
            np.testing.assert_allclose(now.bias[k], bias, atol=1e-9)


def planned(form: str, t: float = 1.0, **options: Any) -> dict[str, Any]:
    """What the controller thinks in the middle of a squat, a little off."""
    state = SQUAT.state(t)
    state = poise.State(state.q, state.v + 0.02 * np.random.default_rng(4).normal(size=BALL.nv))
    told = poise.Balance(BALL, ground_model=form, **options).explain(state, SQUAT.target(t))[1]
    return told | {"q": state.q, "v": state.v}


def test_planned_rates_of_momentum_are_those_of_finite_differences() -> None:
    told = planned("equality")
    q, v, a, h = told["q"], told["v"], told["acceleration"], 1e-6
    world = poise.World(BALL, dt=h, contact=None)
    momenta = []
    for sign in (-0.5, 0.5):
        moved = poise.State(q, sign * v)
        world.reset(moved)
        free = dynamics.bias_force(BALL, q, sign * v)
        world.step(poise.Command(force=free))  # no acceleration: q moves along v
        place = world.state.q
        A, _ = dynamics.centroidal_momentum(BALL, place, v)
        momenta.append(A @ (v + sign * h * a))
    rate = (momenta[1] - momenta[0]) / h
    # a central difference of numbers of the size of 100, over a microsecond
    np.testing.assert_allclose(told["rate"], rate, atol=2e-3, rtol=1e-5)


@pytest.mark.parametrize("form", ["equality", "friction_cone"])
def test_cop_and_cmp_are_apart_by_the_rate_of_angular_momentum(form: str) -> None:
    told = planned(form)
    apart = np.linalg.norm((told["cop"] - told["cmp"])[:2])
    assert told["force"][2] * apart == pytest.approx(np.hypot(*told["rate"][3:5]), rel=1e-9)


def test_both_forms_agree_where_friction_does_not_matter() -> None:
    one, two = planned("equality"), planned("friction_cone", friction=5.0)
    # with cones supports are objectives of weight 1e3, not constraints, and forces cost 1e-8
    scale = np.abs(one["acceleration"]).max()
    assert np.abs(one["acceleration"] - two["acceleration"]).max() < 1e-4 * scale


def test_forces_of_the_cones_are_inside_them_and_carry_the_root() -> None:
    told = planned("friction_cone", friction=0.5)
    f = told["forces"]
    assert (f[:, 2] >= 0.0).all()
    assert (np.hypot(f[:, 0], f[:, 1]) <= 0.5 * f[:, 2] + 1e-9).all()
    np.testing.assert_allclose(f.sum(axis=0), told["force"], atol=1e-5)
    turn = np.cross(told["points"] - told["com"], f).sum(axis=0)
    np.testing.assert_allclose(turn, told["rate"][3:], atol=1e-5)


def test_planned_torques_give_the_planned_accelerations() -> None:
    told = planned("friction_cone")
    external = np.zeros((len(BALL.links), 6))
    at, _ = dynamics.forward_kinematics(BALL, told["q"])
    feet = [i for i, link in enumerate(BALL.links) if "foot" in link.name]
    for point, force in zip(told["points"], told["forces"], strict=True):
        foot = min(feet, key=lambda i: np.linalg.norm(at[i] - point))
        external[foot] += np.concatenate([force, np.cross(point - at[foot], force)])
    a = dynamics.forward_dynamics(BALL, told["q"], told["v"], told["torque"], external=external)
    np.testing.assert_allclose(a, told["acceleration"], atol=1e-5)


def test_cones_are_solved_as_scipy_solves_them() -> None:
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(5)
    arms = np.column_stack([rng.normal(size=(6, 2)), np.full(6, -0.9)])
    G = Cones.of(np.full(6, 0.6)).wrenches(arms, np.eye(3))
    root = rng.normal(size=(6, 6))
    S, need, most = root @ root.T + np.eye(6), 200.0 * rng.normal(size=6), np.full(24, 500.0)
    ours = G @ solve_cones(G, need, S, most)[0]
    metric = np.linalg.inv(np.linalg.cholesky(S))
    other = lsq_linear(metric @ G, metric @ need, (0.0, 500.0), tol=1e-12)
    # ours are spread evenly at a cost of 1e-6
    assert np.linalg.norm(metric @ (ours - need)) <= np.sqrt(2 * other.cost) * (1 + 1e-4) + 1e-3


def test_the_angular_weight_agrees_with_its_own_answer() -> None:
    rng = np.random.default_rng(6)
    root = rng.normal(size=(3, 3))
    T, rate = root @ root.T, 40.0 * rng.normal(size=3)
    beta = consistent_weight(rate, T, 3.0, 600.0)
    left = np.linalg.solve(np.eye(3) + beta * T, rate)
    # twelve halvings of its first bound
    assert beta == pytest.approx(3.0 / 600.0 * np.hypot(*left[:2]), abs=3.0 / 600 * 100 / 2**12)


def test_hulls_are_those_of_the_measures() -> None:
    points = np.random.default_rng(7).normal(size=(12, 2))
    ours = convex_hull(points)
    from scipy.spatial import ConvexHull

    assert sorted(map(tuple, ours)) == sorted(map(tuple, points[ConvexHull(points).vertices]))


def test_the_nearest_point_inside_is_the_nearest_of_many() -> None:
    rng = np.random.default_rng(8)
    corners = convex_hull(rng.normal(size=(8, 2)))
    ahead = np.roll(corners, -1, axis=0)
    along = np.linspace(0, 1, 400)[:, None]
    edges = np.concatenate([a + along * (b - a) for a, b in zip(corners, ahead, strict=True)])
    for point in 4.0 * rng.normal(size=(20, 2)):
        found = nearest_point(corners, point)
        away = np.linalg.norm(edges - point, axis=1).min()
        inside = np.allclose(found, point)
        # 400 points an edge
        assert inside or np.linalg.norm(found - point) == pytest.approx(away, abs=1e-2)


def test_soft_limits_know_how_far_outside_a_joint_is() -> None:
    rng = np.random.default_rng(9)
    q = np.array(SQUAT.q(1.0))
    for joint in BALL.joints[1:]:
        turn = rng.normal(size=4)
        q[BALL.q_slice(joint)] = turn / np.linalg.norm(turn)
    out: dict[str, float] = {}
    for excess in excesses(BALL, q[None]):
        out[excess.joint] = out.get(excess.joint, 0.0) + max(float(excess.value[0]), 0.0)
    assert joint_excess(joint_limit_table(BALL), q) == pytest.approx(list(out.values()), abs=1e-9)


def test_inside_its_limits_a_joint_is_tracked_as_always() -> None:
    balance = poise.Balance(BALL)
    k_s, k_d = stiffen(balance.params, BALL.rest_q)
    assert (k_s == balance.k_s).all()
    assert (k_d == balance.k_d).all()


def test_a_schedule_is_one_in_stance_and_zero_in_the_air_and_fades_between() -> None:
    schedule = Schedule(KICK, fade=0.2)
    right = schedule.links.index("right_foot")
    assert KICK.contacts is not None
    (_, leaves), (lands, _) = KICK.contacts.phases("right_foot")
    times = np.array([0.5, leaves / KICK.fps - 0.1, 2.0, lands / KICK.fps + 0.5])
    full, half, none, again = schedule(times)[:, right]
    assert (full, again, none) == (1.0, 1.0, 0.0)
    assert 0.1 < half < 0.9
    assert (schedule(times)[:, schedule.links.index("left_foot")] == 1.0).all()


def test_the_ground_gives_what_was_planned() -> None:
    world = poise.World(BALL, dt=1 / 240, self_collision=False)
    world.reset(SQUAT.state(0.0))
    balance = poise.Balance(world)
    for i in range(120):
        command, told = balance.explain(world.state, SQUAT.target((i + 1) / 240))
        world.step(command)
        if i > 60:
            got = measure.ground_reaction(BALL, world.contacts)
            # the joints' servo and the step's own contact may differ by a few hundredths
            assert np.linalg.norm(got.force - told["force"]) < 0.05 * told["force"][2]
            assert np.linalg.norm((got.point - told["cop"])[:2]) < 0.02
