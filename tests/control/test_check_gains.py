"""Which gains are stable: the bound against closed forms, eigenvalues, simulations beside it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from free_world import World
from numpy.typing import NDArray
from trees import random_character

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    Joint,
    Link,
    State,
    Target,
    dynamics,
    load_character,
    reference,
    suggest_gains,
)
from poise.control.check_gains import check_gains
from poise.control.pd import PD
from poise.errors import Diverged, PoiseError

Array = NDArray[np.float64]

DT = 1 / 60
BOUNDED = ("pd", "explicit", "spd")
ARM = load_character("two-link")
HUMANOID = load_character("humanoid")

bounded = pytest.mark.parametrize("form", BOUNDED)
names = ["two-link", "humanoid", "tree-1", "tree-2"]
subjects = pytest.mark.parametrize("name", names)


@lru_cache
def character(name: str) -> Character:
    if name.startswith("tree-"):
        return random_character(np.random.default_rng(int(name[5:])), 6)
    return load_character(name)


def cart(mass: float = 2.0, **joint: Any) -> Character:
    link = Link("cart", joints=(Joint("rail", "slide", **joint),), mass=mass, inertia=(1, 1, 1))
    return Character("cart", (link,))


def some_gains(name: str, form: str) -> tuple[Array, Array]:
    """Gains of joints that are not too far from the border, all positive."""
    model, rng = character(name), np.random.default_rng(7)
    kd = rng.uniform(1.0, 10.0, model.nv) * (0.01 if form == "pd" else 1.0)
    return rng.uniform(50.0, 500.0, model.nv), kd


def radius(M: Array, kp: Array, kd: Array, dt: float, form: str) -> float:
    """Spectral radius of a step near the target: the growth of the worst error."""
    ahead = dt if form in ("spd", "implicit") else 0.0
    K = {"pd": 0.0 * kd, "explicit": kd * dt, "spd": kd * dt, "implicit": kd * dt + kp * dt**2}
    solve = dt * np.linalg.inv(M + np.diag(K[form]))
    v_x, v_v = -solve * kp, np.eye(len(M)) - solve * (kd + ahead * kp)
    step = np.block([[np.eye(len(M)) + dt * v_x, dt * v_v], [v_x, v_v]])
    return float(np.abs(np.linalg.eigvals(step)).max())


def grows(model: Character, gains: Gains, dt: float, form: str, **options: Any) -> NDArray[Any]:
    """Whether small errors of the copies, one for each row of gains, grow in a simulation.

    Compared are the largest velocities of an early and a late stretch. At the border errors neither
    grow nor die, so the sides are looked at a few percent away from it.
    """
    n = len(gains.kp)
    world = World(model, n=n, dt=dt, gravity=(0, 0, 0), on_divergence="freeze", **options)
    start = 1e-6 * np.random.default_rng(0).normal(size=model.nv)
    world.reset(State(np.tile(reference.move(model, model.rest_q, start, 1.0), (n, 1))))
    drive = Command(drive=Drive(gains, Target(model.rest_q), form=form))
    early, late = np.zeros(n), np.zeros(n)
    for k in range(300):
        world.step(drive)
        size = np.abs(world.state.v).max(axis=-1)
        early, late = (np.maximum(early, size), late) if k < 50 else (early, np.maximum(late, size))
    lost = np.isin(np.arange(n), [loss.copy for loss in world.diverged])
    return lost | (late > early)


# ---- the bound


def test_a_single_joint_has_the_bounds_of_the_books() -> None:
    m, kp, kd = 2.0, 3000.0, 10.0
    expected = {
        "pd": 4 * m / (kp * DT**2 + 2 * kd * DT),
        "explicit": (4 * m + 2 * kd * DT) / (kp * DT**2),
        "spd": (4 * m + 2 * kd * DT) / (3 * kp * DT**2),
        "implicit": np.inf,
    }
    for form, factor in expected.items():
        assert check_gains(cart(m), DT, kp=kp, kd=kd, form=form).margin == pytest.approx(factor)


@bounded
@subjects
def test_the_margin_is_where_the_spectral_radius_passes_one(name: str, form: str) -> None:
    model, (kp, kd) = character(name), some_gains(name, form)
    M = dynamics.mass_matrix(model, model.rest_q)
    s = float(check_gains(model, DT, kp=kp, kd=kd, form=form).margin)
    for factor, stable in ((0.999 * s, True), (1.001 * s, False)):
        damping = factor * kd if form == "pd" else kd
        assert (radius(M, factor * kp, damping, DT, form) < 1.0) == stable


@bounded
@subjects
def test_simulations_on_both_sides_of_the_margin(name: str, form: str) -> None:
    model, (kp, kd) = character(name), some_gains(name, form)
    s = float(check_gains(model, DT, kp=kp, kd=kd, form=form).margin)
    sides = np.array([[0.95], [1.05]])
    gains = Gains(model, sides * s * kp, sides * s * kd if form == "pd" else kd)
    assert grows(model, gains, DT, form).tolist() == [False, True]


@bounded
@subjects
def test_simulations_on_both_sides_of_the_largest_step(name: str, form: str) -> None:
    model, (kp, kd) = character(name), some_gains(name, form)
    largest = float(check_gains(model, DT, kp=kp, kd=kd, form=form).largest_dt)
    for dt, growing in ((0.95 * largest, False), (1.05 * largest, True)):
        assert grows(model, Gains(model, kp[None], kd[None]), dt, form).tolist() == [growing]


@subjects
def test_the_implicit_form_has_no_bound(name: str) -> None:
    model = character(name)
    check = check_gains(model, 0.5, kp=1e6, kd=1.0)
    assert check
    assert check.margin == check.largest_dt == check.largest_kp.min() == np.inf
    M = dynamics.mass_matrix(model, model.rest_q)
    assert radius(M, np.full(model.nv, 1e6), np.ones(model.nv), 0.5, "implicit") < 1.0


def test_explicit_pd_outside_the_world_fails_at_the_same_gains() -> None:
    kp, kd = some_gains("two-link", "pd")
    s = float(check_gains(ARM, DT, kp=kp, kd=kd, form="pd").margin)
    world = World(ARM, n=2, dt=DT, gravity=(0, 0, 0))
    sides = np.array([[0.95], [1.05]])
    servo = PD(world, Gains(ARM, sides * s * kp, sides * s * kd))
    world.reset(State(np.full((2, 2), 1e-6)))
    for _ in world.until(3.0):
        world.step(servo(world.state, Target(ARM.rest_q)))
    size = np.abs(world.state.q).max(axis=-1)
    assert size[0] < 1e-6 < 1e-3 < size[1]


# ---- each joint


@bounded
@subjects
def test_a_joint_may_go_to_its_largest_kp_while_the_others_stay(name: str, form: str) -> None:
    model, (kp, kd) = character(name), some_gains(name, form)
    # half the margin: stable, with room for every joint
    s = 0.5 * float(check_gains(model, DT, kp=kp, kd=kd, form=form).margin)
    kp, kd = s * kp, s * kd if form == "pd" else kd
    check = check_gains(model, DT, kp=kp, kd=kd, form=form)
    M = dynamics.mass_matrix(model, model.rest_q)
    assert check
    for joint in model.joints:
        at = model.v_slice(joint)
        for part in [at] if joint.nv < 6 else [slice(0, 3), slice(3, 6)]:
            # what a joint has room for is the same for all its axes: the worst decides
            room = check.largest_kp[part] - kp[part]
            np.testing.assert_allclose(room, room[0])
            more = check.largest_kd[part] - kd[part]
            for factor, stable in ((0.99, True), (1.01, False)):
                stiff, damped = kp.copy(), kd.copy()
                stiff[part] += factor * room
                assert (radius(M, stiff, kd, DT, form) < 1.0) == stable
                if form == "pd":
                    damped[part] += factor * more
                    assert (radius(M, kp, damped, DT, form) < 1.0) == stable


@bounded
@subjects
def test_unstable_gains_are_cut_to_the_border(name: str, form: str) -> None:
    model, (kp, kd) = character(name), some_gains(name, form)
    s = 3.0 * float(check_gains(model, DT, kp=kp, kd=kd, form=form).margin)
    kp, kd = s * kp, s * kd if form == "pd" else kd
    check = check_gains(model, DT, kp=kp, kd=kd, form=form)
    assert not check
    assert (check.largest_kp <= kp).all()
    sides = np.array([[0.95], [1.05]])
    gains = Gains(
        model, np.minimum(kp, sides * check.largest_kp), np.minimum(kd, sides * check.largest_kd)
    )
    assert grows(model, gains, DT, form).tolist() == [False, True]


@bounded
@subjects
def test_safe_gains_are_stable_and_not_stiffer_than_asked(name: str, form: str) -> None:
    model = character(name)
    asked = check_gains(model, DT, kp=5000.0, kd=20.0, form=form)
    safe = asked.safe_gains()
    assert not asked
    assert check_gains(model, DT, safe, form=form)
    assert (safe.kp <= 5000.0).all()
    assert (safe.kd <= 20.0).all()


@bounded
def test_lowering_gains_never_makes_a_step_unstable(form: str) -> None:
    """Of "pd" kp and kd, of the others kp: whatever is lowered, S grows."""
    model, rng = character("humanoid"), np.random.default_rng(1)
    kp, kd = some_gains("humanoid", form)
    margins = [check_gains(model, DT, kp=kp, kd=kd, form=form).margin]
    for _ in range(10):
        kp = kp * rng.uniform(0.5, 1.0, model.nv)
        kd = kd * rng.uniform(0.5, 1.0, model.nv) if form == "pd" else kd
        margins.append(check_gains(model, DT, kp=kp, kd=kd, form=form).margin)
    assert (np.diff(margins) > 0.0).all()


@bounded
def test_the_light_link_at_the_end_is_the_one_that_fails(form: str) -> None:
    """All joints alike, and a fingertip of a gram: the check and the simulation name it."""
    solid: dict[str, Any] = {"com": (0, 0, -0.1), "pos": (0, 0, -0.2)}
    links = [Link("upper", joints=(Joint("shoulder", "ball"),), mass=2.0, inertia=(0.01,) * 3)]
    links.append(Link("lower", "upper", joints=(Joint("elbow", "hinge", axis=(1, 0, 0)),), mass=1.0,
                      inertia=(0.004,) * 3, **solid))  # fmt: skip
    links.append(Link("tip", "lower", joints=(Joint("knuckle", "hinge", axis=(1, 0, 0)),),
                      mass=0.001, inertia=(1e-7,) * 3, **solid))  # fmt: skip
    arm = Character("arm", tuple(links))
    check = check_gains(arm, DT, kp=20.0, kd=0.0005, form=form)
    assert check.unstable[0] == "knuckle"
    assert f"{check.largest_kp[-1]:.4g}" in str(check)
    world = World(arm, dt=DT, gravity=(0, 0, 0))
    world.reset(State(reference.move(arm, arm.rest_q, np.full(5, 1e-3), 1.0)))
    gains = Gains(arm, 20.0, 0.0005)
    with pytest.raises(Diverged) as lost:
        world.step(Command(drive=Drive(gains, Target(arm.rest_q), form=form)), steps=6000)
    assert lost.value.joint == "knuckle"


def test_the_inertia_that_a_joint_feels_is_that_of_a_loose_tree() -> None:
    """A unit torque in one hinge, none in the other: inertia is torque over acceleration."""
    inertia = check_gains(ARM, DT).inertia
    for j in range(2):
        a = dynamics.forward_dynamics(ARM, [0, 0], [0, 0], np.eye(2)[j], gravity=(0, 0, 0))
        assert inertia[j] == pytest.approx(1.0 / a[j])


def test_a_ball_counts_by_its_worst_axis() -> None:
    link = Link("body", joints=(Joint("ball", "ball"),), mass=2.0, inertia=(0.2, 0.3, 0.4))
    check = check_gains(Character("body", (link,)), DT, kp=10.0, kd=1.0, form="spd")
    np.testing.assert_allclose(check.inertia, 0.2)
    np.testing.assert_allclose(check.largest_kp, (4 * 0.2 + 2 * DT) / (3 * DT**2))


# ---- what else a world has


def test_passive_springs_and_dampers_hold() -> None:
    model = cart(2.0, damping=300.0, stiffness=1000.0)
    check = check_gains(model, DT, kp=1e5, kd=10.0, form="spd")
    holds = 4 * 2.0 + 2 * (10.0 + 300.0) * DT + 1000.0 * DT**2
    assert check.margin == pytest.approx(holds / (3 * 1e5 * DT**2))
    gains = Gains(model, np.array([[0.95], [1.05]]) * check.margin * 1e5, [[10.0], [10.0]])
    assert grows(model, gains, DT, "spd").tolist() == [False, True]


def test_copies_with_gains_and_masses_of_their_own_are_checked_one_by_one() -> None:
    mass = np.array([[1.54, 1.54], [0.5, 3.0], [2.0, 0.1]])
    kp = np.array([[20.0, 20.0], [300.0, 5.0], [5.0, 300.0]])
    check = check_gains(World(ARM, n=3, dt=DT, mass=mass), kp=kp, kd=0.1, form="spd")
    for i in range(3):
        alone = World(ARM, dt=DT, mass=mass[i])
        one = check_gains(alone, kp=kp[i], kd=0.1, form="spd")
        assert check.stable[i] == one.stable
        np.testing.assert_allclose(check.largest_kp[i], one.largest_kp)
        np.testing.assert_allclose(check.largest_dt[i], one.largest_dt)
    assert check.stable.tolist() == [True, True, False]


def test_of_several_poses_safe_gains_take_the_worst() -> None:
    poses = np.array([[0.0, 0.0], [0.0, np.pi / 2], [0.0, np.pi]])
    check = check_gains(ARM, DT, kp=1000.0, kd=1.0, form="spd", q=poses)
    assert check.margin.shape == (3,)
    safe = check.safe_gains()
    assert safe.kp.shape == (2,)
    assert check_gains(ARM, DT, safe, form="spd", q=poses).stable.all()


def test_gains_by_frequency_are_those_of_a_controller() -> None:
    gains = suggest_gains(HUMANOID, 4.0, 0.5, root="soft")
    check = check_gains(HUMANOID, DT, frequency=4.0, damping=0.5, root="soft", form="spd")
    np.testing.assert_array_equal(check.kp, gains.kp)
    np.testing.assert_array_equal(check.kd, gains.kd)


# ---- rounding


def holds(name: str, kp: float, kd: float, *, embedded: bool, dtype: str, method: str) -> bool:
    """Whether a stiff pose is held for a hundred steps, from 0.01 rad beside it."""
    model = character(name)
    world = World(model, dt=DT, dtype=dtype, gravity=(0, 0, 0))
    start = 1e-2 * np.random.default_rng(0).normal(size=model.nv)
    world.reset(State(reference.move(model, model.rest_q, start, 1.0)))
    gains = Gains(model, kp, kd)
    drive = Drive(gains, Target(model.rest_q), method=method, embedded=embedded)
    try:
        world.step(Command(drive=drive), steps=100)
    except Diverged:
        return False
    return bool(np.abs(reference.difference(model, world.state.q, model.rest_q)).max() < 0.05)


@pytest.mark.parametrize("method", ["maba", "df", "sf", "pcg"])
@pytest.mark.parametrize("name", ["dog", "humanoid", "tree-1"])
def test_rounding_errors_of_standalone_torques_return_and_grow(name: str, method: str) -> None:
    model = character(name)
    options: dict[str, Any] = {"method": method, "embedded": False, "dtype": "float32"}
    one = float(check_gains(model, DT, kp=1.0, kd=4 * DT, **options).feedback)
    for feedback, stable in ((0.2, True), (4.0, False)):
        kp = feedback / one
        check = check_gains(model, DT, kp=kp, kd=4 * DT * kp, **options)
        assert check.feedback == pytest.approx(feedback)
        assert bool(check) == holds(name, kp, 4 * DT * kp, **options) == stable
        assert holds(name, kp, 4 * DT * kp, **{**options, "dtype": "float64"})
        assert holds(name, kp, 4 * DT * kp, **{**options, "embedded": True})


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kp": 1.0}, ("kd is missing",)),
        ({"kp": 1.0, "kd": 1.0, "frequency": 2.0}, ("one of the three",)),
        ({"dt": 0.0}, ("dt", "positive")),
        ({"form": "spdd"}, ("form", "'spd'")),
        ({"method": "lu"}, ("method", "'maba'")),
        ({"dtype": "half"}, ("dtype", "'float32'")),
        ({"gains": 5.0}, ("gains", "suggest_gains")),
        ({"gains": suggest_gains(HUMANOID)}, ("34", "2")),
        ({"kp": np.ones((3, 2)), "kd": 1.0, "q": np.zeros((2, 2))}, ("3 copies", "(2,)")),
    ],
)
def test_a_wrong_question_is_answered_by_what_would_be_right(
    options: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(PoiseError) as error:
        check_gains(ARM, **{"dt": DT, **options})
    assert all(word in str(error.value) for word in words)


def test_dt_is_needed_unless_a_world_brings_it() -> None:
    assert check_gains(World(ARM, dt=DT)).dt == DT
    with pytest.raises(PoiseError, match="needs dt"):
        check_gains(ARM)


def test_gains_that_rounding_spoils_are_not_cut() -> None:
    check = check_gains(HUMANOID, DT, kp=1e9, kd=1e9, embedded=False, dtype="float32")
    assert "embedded=True" in str(check)
    with pytest.raises(PoiseError, match="embedded=True"):
        check.safe_gains()
