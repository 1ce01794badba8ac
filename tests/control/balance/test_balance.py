"""Balance: it stands, is pushed, recovers, on both grounds; and says what is wrong with input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import poise
from poise import measure
from poise.control.balance import Schedule, TimeScaled

BALL = poise.load_character("humanoid-ball")
SQUAT = poise.load_clip("squat", BALL)
KICK = poise.load_clip("forward-kick", BALL)
STAND = poise.State(SQUAT.q(0.0), np.zeros(BALL.nv))


def penalty(**options: Any) -> poise.World:
    """The thesis's ground: stiff springs, steps of a millisecond."""
    return poise.World(BALL, dt=1e-3, contact="penalty", stiffness=2e6, self_collision=False,
                       projectiles=0, **options)  # fmt: skip


def rigid(dt: float = 1 / 120, **options: Any) -> poise.World:
    """Impulses, large steps."""
    return poise.World(BALL, dt=dt, self_collision=False, projectiles=0, **options)


def stands(world: poise.World, balance: poise.Balance, motion: Any, duration: float) -> bool:
    """Let it go, and see whether it is still up."""
    world.reset(STAND if isinstance(motion, poise.State) else motion.state(0.0))
    poise.run(world, balance, motion, duration)
    return not bool(measure.fallen(BALL, world.state.q, world.contacts))


def error(world: poise.World, q: np.ndarray) -> float:
    """Mean rotation error of the links [degrees]."""
    return float(np.mean(measure.tracking_error(BALL, world.state.q, q)[0]))


@pytest.mark.parametrize(("link", "force"), [("chest", 150.0), ("head", 220.0)])
def test_a_pushed_character_stands_up_again_on_large_steps(link: str, force: float) -> None:
    world = rigid()
    world.reset(STAND)
    world.push(link, (force, 0.0, 0.0), 0.1, at=0.2)
    poise.run(world, poise.Balance(world), STAND, 2.5)
    assert not measure.fallen(BALL, world.state.q, world.contacts)
    assert error(world, STAND.q) < 3.0


@pytest.mark.slow
@pytest.mark.parametrize("direction", [(1, 0, 0), (-1, 0, 0), (0, 1, 0)])
@pytest.mark.parametrize("form", ["equality", "friction_cone"])
def test_a_push_of_150_newtons_is_survived_on_the_thesis_ground(
    form: str, direction: tuple[int, ...]
) -> None:
    world = penalty()
    world.reset(STAND)
    world.push("chest", 150.0 * np.array(direction, float), 0.1, at=0.2)
    poise.run(world, poise.Balance(world, ground_model=form, rate=100.0), STAND, 2.0)
    assert error(world, STAND.q) < 2.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leg-swing", "side-kick", "forward-kick", "axe-kick"])
@pytest.mark.parametrize("ground", [penalty, rigid])
def test_kicks_on_one_leg_are_followed(name: str, ground: Any) -> None:
    clip = poise.load_clip(name, BALL)
    world = ground()
    assert stands(world, poise.Balance(world, supports=clip, rate=100.0), clip, clip.duration)
    assert error(world, clip.q(clip.duration)) < 2.0


def test_a_squat_is_followed_at_sixty_steps_a_second() -> None:
    world = rigid(1 / 60)
    assert stands(world, poise.Balance(world), SQUAT, SQUAT.duration)
    assert error(world, SQUAT.q(SQUAT.duration)) < 1.0


def test_joints_that_stand_on_the_ground_accelerate_as_they_are_asked() -> None:
    world = penalty()
    world.reset(STAND)
    balance = poise.Balance(world)
    for _ in range(20):
        world.step(balance(world.state, STAND), steps=5)
    asked = np.random.default_rng(0).normal(size=BALL.nv)
    before = world.state.v.copy()
    world.step(poise.Command(acceleration=asked))
    got = (world.state.v - before) / 1e-3
    # two solves of the contact end some 0.01 N·m apart, and a foot has 0.01 kg m²
    np.testing.assert_allclose(got[6:], asked[6:], atol=1.0)


def test_a_batch_is_what_each_alone_is() -> None:
    rng = np.random.default_rng(1)
    v = 0.1 * rng.normal(size=(3, BALL.nv))
    target = SQUAT.target(1.0)
    balance = poise.Balance(BALL)
    q = np.tile(SQUAT.q(1.0), (3, 1))
    together = np.asarray(balance(poise.State(q, v), target).acceleration)
    for i in range(3):
        alone = np.asarray(balance(poise.State(q[i], v[i]), target).acceleration)
        # lanes add up in another order
        np.testing.assert_allclose(together[i], alone, atol=1e-8)


def test_objectives_and_goals_may_change_while_it_runs() -> None:
    balance = poise.Balance(BALL)
    state = poise.State(STAND.q, 0.1 * np.random.default_rng(2).normal(size=BALL.nv))
    first = np.asarray(balance(state, STAND).acceleration)
    balance.objectives = ("track",)
    second = np.asarray(balance(state, STAND).acceleration)
    balance.goals = {"head": (0.3, 0.0, 1.6)}
    third = np.asarray(balance(state, STAND).acceleration)
    assert not np.allclose(first, second)
    assert not np.allclose(second, third)


def test_a_hand_goes_to_its_goal_and_the_character_stands() -> None:
    world = rigid(1 / 60)
    world.reset(STAND)
    balance = poise.Balance(world)
    places = poise.dynamics.forward_kinematics(BALL, STAND.q)[0]
    hand = [link.name for link in BALL.links].index("left_forearm")
    goal = places[hand] + (0.15, 0.05, 0.1)
    balance.goals = {"left_forearm": goal}
    poise.run(world, balance, STAND, 2.0)
    reached = poise.dynamics.forward_kinematics(BALL, world.state.q)[0][hand]
    assert np.linalg.norm(reached - goal) < 0.06 < np.linalg.norm(places[hand] - goal)
    assert not measure.fallen(BALL, world.state.q, world.contacts)


@pytest.mark.slow
def test_what_cannot_be_reached_does_not_bring_it_down() -> None:
    world = rigid(1 / 60)
    balance = poise.Balance(world, goals={"left_forearm": (5.0, 0.0, 5.0)})
    assert stands(world, balance, STAND, 3.0)


def test_in_the_air_it_plans_no_forces_and_falls() -> None:
    q = STAND.q.copy()
    q[2] += 1.0
    for form in ("equality", "friction_cone"):
        told = poise.Balance(BALL, ground_model=form).explain(poise.State(q), STAND)[1]
        assert np.isfinite(told["acceleration"]).all()
        assert max(told["supports"].values()) == 0.0
    assert np.abs(told["force"]).max() < 1e-4
    assert np.isnan(told["cop"]).all() or np.abs(told["force"][2]) < 1e-4


def test_lying_down_it_gives_numbers() -> None:
    world = rigid(1 / 60)
    q = STAND.q.copy()
    q[2:7] = (0.2, np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0)
    world.reset(poise.State(q))
    poise.run(world, poise.Balance(world), STAND, 0.5)
    assert np.isfinite(world.state.q).all()


def test_a_paced_motion_waits_under_strain_and_catches_up() -> None:
    balance = poise.Balance(BALL)
    paced = balance.scale_time(SQUAT)
    paced.target(0.0)
    balance.restore([0.2])
    for i in range(100):
        paced.target(0.01 * (i + 1))
    assert paced.time[0] < 0.3
    balance.restore([0.0])
    for i in range(600):
        paced.target(1.0 + 0.01 * (i + 1))
    assert paced.time[0] == pytest.approx(7.0, abs=0.1)


def test_a_paced_motion_goes_on_from_its_memory() -> None:
    balance = poise.Balance(BALL)
    one, two = TimeScaled(SQUAT, balance), TimeScaled(SQUAT, balance)
    balance.restore([0.05])
    for t in (0.0, 0.1, 0.2):
        one.target(t)
    two.restore(one.memory, at=0.2)
    assert (one.target(0.3).q == two.target(0.3).q).all()


def test_the_run_holds_a_command_for_the_planned_time() -> None:
    world = penalty()
    world.reset(STAND)
    balance = poise.Balance(world, rate=50.0)
    calls = []

    class Counted:
        requires = balance.requires

        def __call__(self, state: Any, target: Any) -> poise.Command:
            calls.append(float(world.time))
            return balance(state, target)

    poise.run(world, Counted(), STAND, 0.1)
    assert calls == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08], abs=1e-9)


def two_bodies() -> poise.Balance:
    return poise.Balance(poise.World([BALL, BALL], dt=0.01))


ONE: Any = (1.0,)


def of_ball(**options: Any) -> poise.Balance:
    return poise.Balance(BALL, **options)


WRONG: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "objective": (lambda: poise.Balance(BALL, objectives=("tracks",)), ("tracks", "track")),
    "zero weight": (lambda: poise.Balance(BALL, weights={"arms": 0.0}), ("weight", "above 0")),
    "wrong limb": (lambda: poise.Balance(BALL, weights={"armz": 1.0}), ("armz", "arms")),
    "wrong link": (lambda: poise.Balance(BALL, supports=["foot"]), ("foot", "left_foot")),
    "wrong form": (lambda: poise.Balance(BALL, ground_model="cone"), ("cone", "friction_cone")),
    "no root": (lambda: poise.Balance(poise.load_character("two-link")), ("free root",)),
    "two bodies": (two_bodies, ("one character",)),
    "goal": (lambda: poise.Balance(BALL, goals={"head": (1.0, 2.0)}), ("head", "x, y, z")),
    "goal link": (lambda: poise.Balance(BALL, goals={"haed": (0, 0, 1)}), ("haed", "head")),
    "NaN goal": (lambda: poise.Balance(BALL, goals={"head": (0, 0, np.nan)}), ("finite",)),
    "friction": (lambda: poise.Balance(BALL, friction=-1.0), ("friction", "from 0 to 100")),
    "force": (
        lambda: of_ball(ground_model="equality", output="force"),
        ("friction_cone",),
    ),
    "contacts": (lambda: Schedule(poise.Clip(BALL, [BALL.rest_q], 30.0)), ("contacts",)),
    "no supports": (lambda: poise.Balance(BALL, supports=[]), ("no supports", "link")),
    "singular weights": (lambda: poise.Balance(BALL, weights={"torso": 1e-12}), ("singular",)),
    "singular objective": (
        lambda: of_ball(linear_weight=1e9),
        ("linear_weight", "1e+06"),
    ),
    "negative beta": (
        lambda: of_ball(linear_weight=-1.0),
        ("linear_weight", "from 0 to 1e+06"),
    ),
    "negative gamma": (lambda: poise.Balance(BALL, gamma=-1.0), ("gamma", "0 or more")),
    "negative reach": (
        lambda: of_ball(max_cmp_offset=-1.0),
        ("max_cmp_offset", "0 or more"),
    ),
    "NaN gain": (lambda: poise.Balance(BALL, linear_gains=(np.nan, 1.0)), ("linear_gains",)),
    "one gain": (lambda: poise.Balance(BALL, support_gains=ONE), ("support_gains", "pair")),
    "center": (lambda: of_ball(desired_com="feet"), ("desired_com", "motion")),
    "center in space": (
        lambda: of_ball(desired_com=(0.0, 0.0, 1.0)),
        ("desired_com", "pair"),
    ),
    "ground": (lambda: poise.Balance(BALL, ground=np.nan), ("ground",)),
    "soft limits": (lambda: poise.Balance(BALL, soft_limits=ONE), ("soft_limits", "pair")),
    "no rate": (lambda: poise.Balance(BALL, rate=0.0), ("rate", "positive")),
    "target": (lambda: poise.Balance(BALL)(STAND, poise.Target(np.zeros(3))), ("(3,)",)),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_named(case: str) -> None:
    call, words = WRONG[case]
    with pytest.raises(poise.PoiseError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("links", [["left_foot", "head"], ["left_foot", "left_foot"], ["head"]])
def test_supports_that_cannot_be_give_numbers(links: list[str]) -> None:
    """A head in the air holds nothing, and a foot that is named twice is one foot."""
    world = rigid(dt=1 / 120)
    world.reset(STAND)
    poise.run(world, poise.Balance(world, supports=links), STAND, 0.5)
    assert np.isfinite(world.state.q).all()
    assert np.isfinite(world.state.v).all()


@pytest.mark.parametrize("name", ["humanoid", "humanoid-51", "dog", "tail-biped"])
def test_other_bodies_stand_and_are_pushed(name: str) -> None:
    character = poise.load_character(name)
    world = poise.World(character, dt=1 / 60, self_collision=False, projectiles=0)
    rest = poise.State(character.rest_q, np.zeros(character.nv))
    world.reset(rest)
    world.push("chest", (60.0, 30.0, 0.0), 0.1, at=0.1)
    poise.run(world, poise.Balance(world), rest, 1.5)
    error = measure.tracking_error(character, world.state.q, rest.q)[0]
    assert float(error.mean()) < 2.0
