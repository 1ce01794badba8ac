"""Weights over time: keys and blends, profiles by name, and limbs that go limp and come back."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from free_world import World
from numpy.typing import NDArray

import poise
from poise import PD, PoiseError, StablePD, State, Target
from poise.anatomy.names import links_of
from poise.control.profiles import BLENDS, RECIPES, Profile, Profiled, named_profile

Array = NDArray[np.float64]

DT = 1 / 120
ARM = poise.load_character("two-link")
HUMANOID = poise.load_character("humanoid")
REST = HUMANOID.rest_q
LINKS = [link.name for link in HUMANOID.links]
LEFT_ARM = [LINKS.index(name) for name in HUMANOID.limbs["left_arm"]]
KEYS = [(1.0, 1.0), (1.5, 0.2), (2.0, 0.2), (4.0, 0.8)]

blends = pytest.mark.parametrize("blend", BLENDS)


def arm_weight(profile: Profile, t: Any) -> Any:
    return profile(t)[..., LEFT_ARM[0]]


# ---- keys


@blends
def test_at_its_keys_a_profile_has_their_weights(blend: str) -> None:
    profile = Profile(HUMANOID, {"left_arm": KEYS}, blend=blend)
    for time, weight in KEYS:
        assert arm_weight(profile, time) == pytest.approx(weight)
    assert arm_weight(profile, -5.0) == 1.0
    assert arm_weight(profile, 99.0) == pytest.approx(0.8)
    assert profile.end == 4.0


@blends
def test_between_keys_it_stays_between_their_weights(blend: str) -> None:
    profile = Profile(HUMANOID, {"left_arm": KEYS}, blend=blend)
    for (t0, w0), (t1, w1) in itertools.pairwise(KEYS):
        inside = arm_weight(profile, np.linspace(t0, t1, 50))
        assert inside.min() >= min(w0, w1) - 1e-12
        assert inside.max() <= max(w0, w1) + 1e-12
        # it goes one way
        assert (np.diff(inside) * (w1 - w0) >= -1e-12).all()


def test_a_smooth_profile_has_no_kinks() -> None:
    h = 1e-4
    t = np.arange(0.5, 4.5, h)
    rate = np.diff(arm_weight(Profile(HUMANOID, {"left_arm": KEYS}), t)) / h
    # u² (3 - 2 u) over T with height w bends by 6 w / T² at most
    assert np.abs(np.diff(rate)).max() < 1.01 * h * 6 * 0.8 / 0.5**2
    for time, _ in KEYS:
        assert abs(rate[np.argmin(np.abs(t - time))]) < 1e-2


def test_two_keys_at_one_time_are_a_jump() -> None:
    profile = Profile(HUMANOID, {"left_arm": [(1.0, 1.0), (1.0, 0.0), (1.0, 0.5), (2.0, 0.5)]})
    assert arm_weight(profile, [0.999, 1.0, 1.5]).tolist() == [1.0, 0.5, 0.5]


def test_other_links_rest_and_the_later_of_two_sets_counts() -> None:
    profile = Profile(HUMANOID, {"all": 0.5, "left_arm": 0.0, LINKS[LEFT_ARM[1]]: 2.0}, rest=9.0)
    expected = np.full(len(LINKS), 0.5)
    expected[LEFT_ARM] = 0.0, 2.0
    assert np.array_equal(profile(0.0), expected)
    rest = Profile(HUMANOID, {"left_arm": 0.0}, rest=9.0)(0.0)
    assert np.count_nonzero(rest == 9.0) == len(LINKS) - len(LEFT_ARM)


def test_copies_have_clocks_times_and_weights_of_their_own() -> None:
    start, low = np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.1, 0.2])
    profile = Profile(HUMANOID, {"left_arm": [(start, 1.0), (start + 1.0, low)]})
    t = np.array([0.5, 0.5, 2.9])
    found = profile(t)
    assert found.shape == (3, len(LINKS))
    for i in range(3):
        one = Profile(HUMANOID, {"left_arm": [(start[i], 1.0), (start[i] + 1.0, low[i])]})
        assert np.array_equal(found[i], one(t[i]))
    assert np.array_equal(profile(0.5)[0], found[0])


# ---- sets of links


def test_a_name_is_a_limb_a_kind_of_limb_a_link_or_all() -> None:
    assert links_of(HUMANOID, "left_arm").tolist() == LEFT_ARM
    assert links_of(HUMANOID, LINKS[3]).tolist() == [3]
    assert links_of(HUMANOID, "all").tolist() == list(range(len(LINKS)))
    both = {*HUMANOID.limbs["left_leg"], *HUMANOID.limbs["right_leg"]}
    assert {LINKS[i] for i in links_of(HUMANOID, "legs")} == both


def test_in_a_scene_a_limb_is_that_of_all_parts_or_of_one() -> None:
    scene = World([HUMANOID, ARM, HUMANOID], dt=DT)
    first, second = scene.part("humanoid").links.start, scene.part("humanoid-2").links.start
    one = [second + i for i in LEFT_ARM]
    assert links_of(scene, "humanoid-2/left_arm").tolist() == one
    assert links_of(scene, "left_arm").tolist() == [first + i for i in LEFT_ARM] + one


# ---- by name


@pytest.mark.parametrize("name", RECIPES)
def test_a_profile_by_name_begins_at_rest_and_does_what_it_says(name: str) -> None:
    recipe = RECIPES[name]
    limb = None if recipe.links else "left_arm"
    profile = named_profile(HUMANOID, name, limb=limb, at=1.0, hold=2.0, fade=0.5)
    at = links_of(HUMANOID, recipe.links or "left_arm")
    others = np.delete(np.arange(len(LINKS)), at)
    assert (profile(1.0) == recipe.rest).all()
    np.testing.assert_allclose(profile(2.0)[at], recipe.weight)
    assert (profile(2.0)[others] == recipe.rest).all()
    np.testing.assert_allclose(profile(9.0)[at], recipe.rest if recipe.returns else recipe.weight)


def test_a_flinch_is_quick_to_go_and_slow_to_come_back() -> None:
    t = np.linspace(0.0, 1.0, 1001)
    low = arm_weight(named_profile(HUMANOID, "flinch", limb="left_arm", hold=0.0, fade=0.5), t)
    assert t[low.argmin()] == pytest.approx(0.05, abs=1e-3)
    assert low[550:].min() == pytest.approx(1.0)


# ---- in a world


def tilt(world: World, raised: Array) -> Array:
    """Angle between the left shoulder and its target [rad], shape () or (n,)."""
    at = HUMANOID.q_slice("left_shoulder")
    across = np.abs(world.state.q[..., at] @ raised[at])
    return np.asarray(2 * np.arccos(np.minimum(1.0, across)))


def raised_arm() -> Array:
    raised = REST.copy()
    raised[HUMANOID.q_slice("left_shoulder")] = math.cos(0.5), math.sin(0.5), 0.0, 0.0
    return np.asarray(raised)


def test_a_limb_goes_limp_and_comes_back_by_the_clock_of_each_copy() -> None:
    """The second copy is half a second late, the third never lets go."""
    raised = raised_arm()
    at = np.array([0.5, 1.0, 99.0])
    world = World(HUMANOID, n=3, dt=DT)
    world.reset(State(np.tile(raised, (3, 1))))
    limp = named_profile(HUMANOID, "limp", limb="left_arm", at=at, hold=0.3, fade=0.1)
    servo = Profiled(StablePD(world, root="held"), strength=limp)
    rows = []
    for _ in world.until(4.0):
        world.step(servo(world.state, Target(raised)))
        rows.append(tilt(world, raised))
    tilts = np.array(rows)
    late = round(0.5 / DT)
    assert (tilts[: round(0.5 / DT)] < 0.15).all()
    assert (tilts[:, :2].max(axis=0) > 0.3).all()
    assert tilts[:, 2].max() < 0.15
    # half a second later the same happens to the second, in a pose that had longer to settle
    np.testing.assert_allclose(tilts[late:, 1], tilts[:-late, 0], atol=0.02)
    np.testing.assert_allclose(tilts[-1, :2], tilts[-1, 2], atol=1e-2)


def test_a_copy_in_a_batch_is_a_world_with_that_profile() -> None:
    raised, at = raised_arm(), np.array([0.05, 0.1])
    crowd = World(HUMANOID, n=2, dt=DT)
    weak = named_profile(HUMANOID, "weak", limb="left_arm", at=at, hold=0.1, fade=0.05)
    poise.run(crowd, Profiled(StablePD(crowd, root="held"), strength=weak), Target(raised), 0.4)
    for i in range(2):
        alone = World(HUMANOID, n=2, dt=DT)
        own = named_profile(HUMANOID, "weak", limb="left_arm", at=at[i], hold=0.1, fade=0.05)
        servo = Profiled(StablePD(alone, root="held"), strength=own)
        poise.run(alone, servo, Target(raised), 0.4)
        assert np.array_equal(crowd.state.q[i], alone.state.q[i])


@pytest.mark.parametrize("make", [StablePD, PD])
def test_a_ragdoll_gives_no_torque_from_its_time_on(make: Any) -> None:
    world = World(HUMANOID, dt=1 / 2000)
    limp = named_profile(world, "ragdoll", at=0.05, fade=0.02)
    servo = Profiled(make(world, frequency=1.0), strength=limp)
    before = after = 0.0
    for t in world.until(0.1):
        world.step(servo(world.state, Target(raised_arm())))
        size = float(np.abs(world.torque).max())
        if t < 0.05:
            before = max(before, size)
        elif t > 0.0701:
            after = max(after, size)
    assert before > 1.0
    assert after == 0.0


def test_a_pin_holds_while_its_profile_says_so() -> None:
    """Free fall but for one second in which the pelvis is pinned where it is asked to be."""
    world = World(HUMANOID, dt=DT)
    pinned = named_profile(world, "pinned", limb="torso", at=0.0, hold=1.0, fade=0.1)
    servo = Profiled(StablePD(world), pin=pinned)
    height = []
    for _ in world.until(2.0):
        world.step(servo(world.state, Target(REST)))
        height.append(world.state.q[2])
    held, gone = height[round(1.0 / DT)], height[-1]
    assert abs(held - REST[2]) < 0.1
    # 0.8 s of fall
    assert REST[2] - gone > 2.0


def test_profiles_multiply_as_functions_and_a_state_may_be_explained() -> None:
    arm, legs = named_profile(ARM, "limp", at=0.0, fade=0.0), Profile(ARM, {"upper": 0.5})
    servo = Profiled(StablePD(ARM, dt=DT), strength=lambda t: arm(t) * legs(t))
    told = servo.explain(State([0.3, 0.3], [0.0, 0.0], time=0.5), Target([0.0, 0.0]))[1]
    assert not told["torque"].any()
    told = servo.explain(State([0.3, 0.3], [0.0, 0.0], time=9.0), Target([0.0, 0.0]))[1]
    assert told["torque"].all()


def test_a_profiled_controller_is_handed_what_the_controller_asks_for() -> None:
    limp = named_profile(ARM, "limp")
    assert Profiled(PD(ARM, feedforward=True, dt=DT), strength=limp).requires.past
    assert not Profiled(StablePD(ARM), strength=limp).requires.past
    assert not Profiled(StablePD(ARM), strength=limp).requires.rows


# ---- what is refused


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Profile(HUMANOID, {"left_ram": 0.0}), ("left_ram", "did you mean", "left_arm")),
        (lambda: Profile(HUMANOID, {"left_arm": -1.0}), ("left_arm", "-1", "0 or more")),
        (lambda: Profile(HUMANOID, {"left_arm": "limp"}), ("left_arm", "pairs of time")),
        (lambda: Profile(HUMANOID, {"left_arm": [(2.0, 1.0), (1.0, 0.0)]}), ("go back",)),
        (lambda: Profile(HUMANOID, {"left_arm": [1.0, 2.0]}), ("pairs of time and weight",)),
        (lambda: Profile(HUMANOID, {"left_arm": []}), ("left_arm", "pairs of time")),
        (lambda: Profile(HUMANOID, {"left_arm": [(math.nan, 1.0)]}), ("left_arm", "finite")),
        (
            lambda: Profile(HUMANOID, {"left_arm": [(np.zeros(2), 1.0), (np.ones(3), 0.0)]}),
            ("left_arm", "(n,)"),
        ),
        (lambda: Profile(HUMANOID, 0.5), ("keys", "0.5")),  # type: ignore[arg-type]
        (lambda: Profile(HUMANOID, {}, blend="cubic"), ("blend", "'smooth'")),
        (lambda: named_profile(HUMANOID, "lipm"), ("lipm", "did you mean 'limp'")),
        (lambda: named_profile(ARM, "stiff-upper"), ("legs", "limbs and links", "arm")),
        (lambda: named_profile(ARM, "limp", fade=-1.0), ("fade", "0 or more")),
        (lambda: Profiled(PD(ARM), pin=lambda t: [0.0, 0.0]), ("PD", "pin")),
        (lambda: Profiled(PD(ARM), strength=[0.0, 0.0]), ("strength", "Profile")),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_profile_is_refused_with_what_would_be_right(
    make: Any, words: tuple[str, ...]
) -> None:
    with pytest.raises(PoiseError) as error:
        make()
    assert all(word in str(error.value) for word in words)


def test_what_is_no_controller_is_refused() -> None:
    with pytest.raises(poise.PoiseError, match="called with state and target; got None"):
        Profiled(None)
    arm = poise.load_character("two-link")
    servo = poise.InverseDynamics(arm, dt=0.01)
    with pytest.raises(poise.PoiseError, match="InverseDynamics has no pin"):
        Profiled(servo, pin=Profile(arm, {"all": 1.0}))
