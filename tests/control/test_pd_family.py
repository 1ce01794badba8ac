"""PD and what is added to it, stable PD outside the world: against statics, twins, simulations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from free_world import World
from numpy.typing import NDArray
from trees import random_character, random_state

import poise
from poise import (
    PD,
    Character,
    Command,
    Gains,
    PoiseError,
    StablePD,
    State,
    Target,
    dynamics,
    measure,
    reference,
    suggest_gains,
)
from poise.control.pd import bubbled, gravity_force, turned
from poise.math.rotation import quat_matrix
from poise.model.scene import scene_of
from poise.reference.tree import build_tree, place_bodies

Array = NDArray[np.float64]

DT = 1 / 500
ARM = poise.load_character("two-link")
HUMANOID = poise.load_character("humanoid-51")
GRAVITY = np.array([0.0, 0.0, -9.81])
ALL: dict[str, Any] = {"feedforward": True, "gravity_compensation": True, "bubble_up": True}

seeds = pytest.mark.parametrize("seed", range(4))


def tree(seed: int, **options: Any) -> Character:
    return random_character(np.random.default_rng(seed), 7, **options)


def states(character: Character, n: int, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    q, v = zip(*(random_state(rng, character) for _ in range(n)), strict=True)
    return State(np.array(q), np.array(v))


def target_of(character: Character, seed: int = 9) -> Target:
    rng = np.random.default_rng(seed)
    return Target(*random_state(rng, character), rng.normal(size=character.nv))


def force_of(controller: Any, state: State, target: Target) -> Array:
    return np.asarray(controller(state, target).force, dtype=float)


def settle(servo: Any, target: Target, time: float) -> State:
    """Where the arm ends up, from hanging at rest."""
    world = World(ARM, dt=DT)
    for _ in world.until(time):
        world.step(servo(world.state, target))
    return world.state


# ---- gravity


@seeds
def test_gravity_compensation_carries_the_weight_of_all_outboard_links(seed: int) -> None:
    """Virtual forces -m g at the centers of mass, by the transposed Jacobians of those points."""
    character = tree(seed)
    q = states(character, 1, seed).q[0]
    tau = np.zeros(character.nv)
    for link in character.links:
        J = reference.jacobian(character, q, link.name, link.com)[:3]
        tau += J.T @ (-link.mass * GRAVITY)
    np.testing.assert_allclose(gravity_force(character, q), tau, rtol=0, atol=1e-10)


def test_pd_sags_by_what_the_statics_say() -> None:
    """K1: at rest kp (q̄ - q) is the torque that carries the weight."""
    gains, target = Gains(ARM, 30.0, 3.0), Target([0.8, -0.4])
    state = settle(PD(ARM, gains, dt=DT), target, 3.0)
    tau = gravity_force(ARM, state.q)
    np.testing.assert_allclose(30.0 * (target.q - state.q), tau, atol=2e-4)
    assert np.abs(target.q - state.q).max() > 0.05


@pytest.mark.parametrize("bubble_up", [False, True])
def test_with_gravity_compensation_it_does_not_sag(bubble_up: bool) -> None:
    """K1, K2: no steady-state error, with bubble-up or without."""
    gains, target = Gains(ARM, 30.0, 3.0), Target([0.8, -0.4])
    servo = PD(ARM, gains, gravity_compensation=True, bubble_up=bubble_up, dt=DT)
    state = settle(servo, target, 3.0)
    # after three seconds the swing has died down to this
    np.testing.assert_allclose(state.q, target.q, atol=1e-5)


def test_gravity_is_that_of_the_world() -> None:
    world = World(ARM, dt=DT, gravity=(0.0, 0.0, -1.62))
    servo = PD(world, gravity_compensation=True)
    told = servo.explain(State([1.0, 0.0], [0.0, 0.0]), Target([1.0, 0.0]))[1]
    earth = gravity_force(ARM, [1.0, 0.0])
    np.testing.assert_allclose(told["gravity"], earth * 1.62 / 9.81)


# ---- bubble-up


def bubbled_twin(character: Character, q: Array, tau: Array) -> Array:
    """Leaves first, body by body: each hands its own torque and all it got to its parent."""
    model = build_tree(character)
    placed = place_bodies(model, q)
    got = [np.zeros(3) for _ in model.bodies]
    out = np.zeros(character.nv)
    for i in range(len(model.bodies) - 1, -1, -1):
        body, at = model.bodies[i], placed[i]
        axes = at.X_WB.R @ at.S[:3]
        out[body.v] = axes.T @ got[i]
        if body.parent >= 0:
            got[body.parent] += got[i] + axes @ tau[body.v]
    return out


@seeds
def test_torques_bubble_up_leaves_first(seed: int) -> None:
    """Trees of all joint kinds, several joints on a link among them."""
    character = tree(seed, several=0.5)
    state = states(character, 3, seed)
    tau = np.random.default_rng(seed).normal(size=(3, character.nv))
    expected = [bubbled_twin(character, *row) for row in zip(state.q, tau, strict=True)]
    np.testing.assert_allclose(bubbled(character, state.q, tau), expected, rtol=0, atol=1e-12)


@seeds
def test_with_bubble_up_each_link_feels_its_own_torque_and_no_other(seed: int) -> None:
    """Joint torques that act like a couple on each link alone: Jᵀ of its turning."""
    character = tree(seed, kinds=("ball", "hinge"), several=0.0, welded=0.0, base="fixed")
    q = states(character, 1, seed).q[0]
    tau = np.random.default_rng(seed).normal(size=character.nv)
    total = np.zeros(character.nv)
    for link in character.links:
        J = reference.jacobian(character, q, link.name)[3:]
        at = character.v_slice(link.joints[0])
        total += J.T @ (J[:, at] @ tau[at])
    np.testing.assert_allclose(tau + bubbled(character, q, tau), total, rtol=0, atol=1e-12)


def test_the_weight_does_not_bubble_up() -> None:
    state, target = states(HUMANOID, 2), target_of(HUMANOID)
    servo = PD(HUMANOID, gravity_compensation=True, bubble_up=True, root="held")
    told = servo.explain(state, target)[1]
    plain = PD(HUMANOID, root="held").explain(state, target)[1]["torque"]
    expected = plain + bubbled(HUMANOID, state.q, plain) + gravity_force(HUMANOID, state.q)
    np.testing.assert_allclose(told["torque"], expected, rtol=1e-12, atol=1e-9)


def test_bubble_up_keeps_the_upper_link_from_overshooting() -> None:
    """K2: without it the lower link's torque throws the upper one beyond its target."""
    over = []
    for bubble_up in (False, True):
        # critically damped for the inertia of both links stretched out
        servo = PD(ARM, frequency=2.0, gravity_compensation=True, bubble_up=bubble_up, dt=DT)
        world = World(ARM, dt=DT)
        most = 0.0
        for _ in world.until(1.5):
            world.step(servo(world.state, Target([0.6, 1.2])))
            most = max(most, float(world.state.q[0]) - 0.6)
        over.append(most)
    assert over[1] < 0.5 * over[0]


# ---- target velocity and feedforward


@seeds
@pytest.mark.parametrize("dt", [None, 1 / 60])
def test_without_target_velocity_all_velocity_is_damped(seed: int, dt: float | None) -> None:
    character, target = tree(seed), target_of(tree(seed))
    q, v = (x[0] for x in (states(character, 1, seed).q, states(character, 1, seed).v))
    gains = suggest_gains(character, 2.0)
    servo = PD(character, gains, target_velocity=False, dt=dt)
    assert target.v is not None
    # the position error is that of PD with the target's velocity, the velocity error is v
    back = dt or 0.0
    e = reference.tracking_error(character, q, v, target.q, target.v, back, ahead=False)[0]
    expected = -gains.kp * e - gains.kd * v
    np.testing.assert_allclose(force_of(servo, State(q, v), target), expected, rtol=1e-9, atol=1e-9)


@seeds
def test_on_the_target_feedforward_and_weight_are_the_inverse_dynamics(seed: int) -> None:
    character = tree(seed, base="fixed")
    target = target_of(character)
    assert target.v is not None
    assert target.a is not None
    servo = PD(character, feedforward=True, gravity_compensation=True)
    tau = force_of(servo, State(target.q, target.v), target)
    expected = reference.inverse_dynamics(character, target.q, target.v, target.a)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@seeds
def test_rates_of_the_target_keep_their_direction_in_the_world(seed: int) -> None:
    """A ball's rates are in the child frame: R (Rᵀ R̄ x) = R̄ x."""
    character = tree(seed, kinds=("ball",), base="free", several=0.0)
    scene, state, target = scene_of(character), states(character, 1, seed), target_of(character)
    assert target.a is not None
    out = turned(scene, state.q[0], target.q, target.a)
    forward = PD(character, feedforward=True, root="held").explain(state, target)[1]["feedforward"]
    expected = reference.inverse_dynamics(
        character, state.q[0], state.v[0], out, gravity=(0.0, 0.0, 0.0)
    )
    np.testing.assert_allclose(forward[0], expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    for joint in character.joints:
        at, quat = character.v_slice(joint), character.q_slice(joint)
        turn, rate = slice(quat.stop - 4, quat.stop), slice(at.stop - 3, at.stop)
        R, R_bar = quat_matrix(state.q[0, turn]), quat_matrix(target.q[turn])
        np.testing.assert_allclose(R @ out[rate], R_bar @ target.a[rate], atol=1e-12)
    assert np.array_equal(out[:3], target.a[:3])


class Swing:
    """Both hinges swing; a target knows position, velocity and acceleration."""

    w = 2 * math.pi * np.array([0.5, 1.0])

    def target(self, t: float) -> Target:
        s, c = np.sin(self.w * t), np.cos(self.w * t)
        return Target(0.6 * s, 0.6 * self.w * c, -0.6 * self.w**2 * s)

    def targets(self, t: float, dt: float, k: int) -> Target:
        raise AssertionError("these controllers take one target a step")


def worst_error(**options: Any) -> float:
    """Largest angle between the arm and its target over a second, low gains [rad]."""
    motion, worst = Swing(), 0.0
    world = World(ARM, dt=DT)
    start = motion.target(0.0)
    world.reset(State(start.q, start.v))
    servo = PD(world, frequency=1.0, **options)

    class Watch:
        def append(self, target: Target | None = None) -> None:
            nonlocal worst
            error = world.state.q - motion.target(float(world.time)).q
            worst = max(worst, float(np.abs(error).max()))

    poise.run(world, servo, motion, 1.0, record=Watch())
    return worst


def test_target_velocity_and_feedforward_track_a_swing_at_low_gains() -> None:
    """K5, K6 by PD: feedforward alone does not help, with the target's velocity it is exact."""
    weight = {"gravity_compensation": True}
    both = worst_error(feedforward=True, **weight)
    no_velocity = worst_error(feedforward=True, target_velocity=False, **weight)
    no_feedforward = worst_error(**weight)
    # what is left is of first order in the step: the target is that of t + dt
    assert both < math.radians(0.5)
    assert no_velocity > 10 * both
    assert no_feedforward > 10 * both


@seeds
def test_with_the_past_of_a_target_feedforward_is_exact_at_large_steps(seed: int) -> None:
    """Balls, hinges and slides at 30 steps per second: the world lands on every target."""
    dt, rng = 1 / 30, np.random.default_rng(seed)
    character = tree(seed, base="fixed")
    q = [character.rest_q]
    rate = rng.normal(size=character.nv)
    for k in range(30):
        q.append(reference.move(character, q[-1], np.sin(0.2 * k) * rate, dt))
    world = World(character, dt=dt)
    world.reset(State(q[1], reference.difference(character, q[1], q[0]) / dt))
    gains = Gains(character, 0.1, 0.01)
    servo = PD(world, gains, feedforward=True, gravity_compensation=True)
    for k in range(2, len(q)):
        world.step(servo(world.state, Target(q[k], past=np.stack([q[k - 1], q[k - 2]]))))
        away = reference.difference(character, world.state.q, q[k])
        # rounding, which nothing damps and explicit steps carry on
        assert np.abs(away).max() < 1e-8


def test_with_all_options_pd_follows_a_walk_that_it_cannot_follow_alone() -> None:
    """The whole humanoid at gains of 2 Hz, in steps just below the bound of explicit PD."""
    humanoid = poise.load_character("humanoid")
    clip = poise.load_clip("walk", humanoid)
    gains = suggest_gains(humanoid, 2.0, root="soft", per_axis=True)
    errors = []
    for options in ({}, ALL):
        world = World(humanoid, dt=1 / 2400)
        world.reset(clip.state(0.0))
        poise.run(world, PD(world, gains, root="soft", **options), clip, 0.1)
        errors.append(measure.tracking_error(world, world.state.q, clip.q(0.1)).rotation.mean())
    # [degrees]
    assert errors[1] < 0.02 < 1.0 < errors[0]


# ---- roots, limits, strength


@pytest.mark.parametrize("root", ["free", "soft", "held"])
def test_added_parts_act_on_a_root_only_where_it_is_held(root: str) -> None:
    state, target = states(HUMANOID, 1), target_of(HUMANOID)
    options: dict[str, Any] = {"gravity_compensation": True, "bubble_up": True}
    told = PD(HUMANOID, root=root, feedforward=True, **options).explain(state, target)[1]
    for part in ("gravity", "bubbled"):
        assert told[part][..., :6].any() == (root == "held")
        assert told[part][..., 6:].any()
    if root == "free":
        assert not told["torque"][..., :6].any()
    if root == "held":
        lift = told["gravity"][0, :3]
        np.testing.assert_allclose(lift, [0.0, 0.0, 9.81 * HUMANOID.mass], atol=1e-9)


@seeds
def test_torques_stay_within_the_effort_limits_and_balls_keep_their_direction(seed: int) -> None:
    character = tree(seed, effort=True)
    state, target = states(character, 5, seed), target_of(character)
    options: dict[str, Any] = {"gravity_compensation": True, "bubble_up": True}
    servo = PD(character, frequency=10.0, feedforward=True, **options)
    command, told = servo.explain(state, target)
    wish = sum(told[part] for part in ("pd", "bubbled", "gravity", "feedforward"))
    cut = 0
    for joint in character.joints:
        at = character.v_slice(joint)
        got, want = told["torque"][:, at], wish[:, at]
        if isinstance(joint.effort, float) and joint.kind == "ball":
            limit = np.minimum(1.0, joint.effort / np.linalg.norm(want, axis=-1, keepdims=True))
            np.testing.assert_allclose(got, want * limit, rtol=1e-12)
        elif joint.effort is not None:
            np.testing.assert_allclose(got, np.clip(want, -np.array(joint.effort), joint.effort))
        cut += int((np.abs(got - want) > 1e-9).any())
    assert cut > 0
    assert command.force is told["torque"]


def test_strength_scales_everything_that_pd_does() -> None:
    state, target = states(HUMANOID, 3), target_of(HUMANOID)
    options: dict[str, Any] = {"gravity_compensation": True, "feedforward": True}
    full = force_of(PD(HUMANOID, **options), state, target)
    weak = force_of(PD(HUMANOID, strength=np.full(16, 0.25), **options), state, target)
    np.testing.assert_allclose(weak, 0.25 * full, rtol=1e-12)


@seeds
def test_weak_pd_outside_is_the_weak_form_pd_inside(seed: int) -> None:
    """With effort limits, which the strength scales as well."""
    character = tree(seed, effort=True)
    start, target = states(character, 3, seed), target_of(character)
    gains = suggest_gains(character, 4.0)
    strength = np.random.default_rng(seed).uniform(0, 1, (3, len(character.links)))
    found = []
    for inside in (False, True):
        world = World(character, n=3, dt=1 / 120)
        world.reset(start)
        weak: Any = StablePD(world, gains, form="pd") if inside else PD(world, gains)
        weak.strength = strength
        world.step(weak(world.state, target))
        found.append(world.torque)
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-9 * np.abs(found[1]).max())


def test_a_limp_joint_gives_nothing_though_torques_bubble_up_to_it() -> None:
    strength = np.ones(16)
    links = [link.name for link in HUMANOID.links]
    upper = links.index(HUMANOID.limbs["left_arm"][0])
    strength[upper] = 0.0
    servo = PD(HUMANOID, bubble_up=True, gravity_compensation=True, strength=strength)
    tau = force_of(servo, states(HUMANOID, 2), target_of(HUMANOID))
    at = HUMANOID.v_slice(HUMANOID.links[upper].joints[0])
    assert not tau[:, at].any()
    assert tau[:, at.stop : at.stop + 3].all()


def test_a_limp_joint_has_no_torque_to_hand_on() -> None:
    links = [link.name for link in HUMANOID.links]
    strength = np.array([float(name not in HUMANOID.limbs["left_arm"]) for name in links])
    state, target = states(HUMANOID, 2), target_of(HUMANOID)
    told = PD(HUMANOID, bubble_up=True, strength=strength).explain(state, target)[1]
    factor = np.repeat(strength, [link.joints[0].nv for link in HUMANOID.links])
    expected = bubbled(HUMANOID, state.q, factor * told["pd"])
    np.testing.assert_allclose(told["bubbled"][:, 6:], expected[:, 6:])


# ---- batches and scenes


@seeds
@pytest.mark.parametrize("target_velocity", [True, False])
def test_a_batch_is_each_state_by_itself(seed: int, target_velocity: bool) -> None:
    character = tree(seed, effort=True)
    n, rng = 5, np.random.default_rng(seed)
    state, target = states(character, n, seed), target_of(character)
    gains = Gains(character, *rng.uniform(1, 50, (2, n, character.nv)))
    strength = rng.uniform(0, 2, (n, len(character.links)))
    options: dict[str, Any] = {**ALL, "target_velocity": target_velocity, "dt": 1 / 60}
    many = force_of(PD(character, gains, strength=strength, **options), state, target)
    for i in range(n):
        own = Gains(character, gains.kp[i], gains.kd[i])
        one = PD(character, own, strength=strength[i], **options)
        alone = force_of(one, State(state.q[i], state.v[i]), target)
        # a batch is computed in lanes: the last bits may differ
        np.testing.assert_allclose(many[i], alone, rtol=1e-9, atol=1e-9)


def test_copies_with_masses_of_their_own_are_carried_each_by_itself() -> None:
    mass = np.array([[1.54, 1.54], [0.5, 3.0], [2.0, 0.1]])
    state, target = states(ARM, 3), target_of(ARM)
    gains = Gains(ARM, 20.0, 1.0)
    many = force_of(PD(World(ARM, n=3, dt=DT, mass=mass), gains, **ALL), state, target)
    for i in range(3):
        alone = PD(World(ARM, dt=DT, mass=mass[i]), gains, **ALL)
        one = force_of(alone, State(state.q[i], state.v[i]), target)
        np.testing.assert_allclose(many[i], one, rtol=1e-9, atol=1e-9)


def test_a_scene_is_its_characters_side_by_side() -> None:
    scene = World([ARM, HUMANOID, ARM], dt=DT)
    parts = [ARM, HUMANOID, ARM]
    each = [(states(c, 1, i), target_of(c, i)) for i, c in enumerate(parts)]
    q = np.concatenate([state.q[0] for state, _ in each])
    v = np.concatenate([state.v[0] for state, _ in each])
    target = Target(*(np.concatenate([getattr(t, x) for _, t in each]) for x in "qva"))
    whole = force_of(PD(scene, frequency=2.0, root="held", **ALL), State(q, v), target)
    options: dict[str, Any] = {**ALL, "frequency": 2.0, "root": "held", "dt": DT}
    alone = [
        force_of(PD(c, **options), State(s.q[0], s.v[0]), t)
        for c, (s, t) in zip(parts, each, strict=True)
    ]
    np.testing.assert_allclose(whole, np.concatenate(alone), rtol=1e-9, atol=1e-9)


# ---- stable PD outside the world


@pytest.mark.parametrize("form", ["explicit", "spd", "implicit"])
@pytest.mark.parametrize("method", dynamics.METHODS)
def test_single_precision_torques_are_those_of_double_to_single_rounding(
    method: str, form: str
) -> None:
    character = tree(2)
    state, target = states(character, 3), target_of(character)
    gains = suggest_gains(character, 2.0)
    options: dict[str, Any] = {"embedded": False, "method": method, "form": form, "dt": 1 / 60}
    double = force_of(StablePD(character, gains, **options), state, target)
    single = force_of(StablePD(character, gains, dtype="float32", **options), state, target)
    error = np.abs(single - double).max() / np.abs(double).max()
    assert 1e-10 < error < 1e-4


def test_a_servo_computes_in_the_precision_of_its_world() -> None:
    assert StablePD(World(ARM, dt=DT, dtype="float32")).dtype == "float32"
    assert StablePD(ARM).dtype == "float64"
    with pytest.raises(PoiseError, match="dtype"):
        StablePD(ARM, dtype="float16")


@pytest.mark.parametrize("n", [1, 4])
def test_strength_acts_standalone_as_it_acts_inside(n: int) -> None:
    """Effort limits among it: a weak joint saturates early."""
    character = tree(1, effort=True)
    state, target = states(character, n), target_of(character)
    strength = np.random.default_rng(0).uniform(0, 1, (n, len(character.links)))
    if n == 1:
        state, strength = State(state.q[0], state.v[0]), strength[0]
    found = []
    for embedded in (True, False):
        world = World(character, n=n, dt=1 / 60)
        world.reset(state)
        servo = StablePD(world, strength=strength, embedded=embedded)
        world.step(servo(world.state, target))
        found.append((world.torque, world.state.v))
    for inside, outside in zip(*found, strict=True):
        np.testing.assert_allclose(outside, inside, rtol=0, atol=1e-7 * np.abs(inside).max())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StablePD(ARM, embedded=False, dt=DT, pin=[1.0, 0.0]), ("pin", "embedded=True")),
        (lambda: PD(ARM, strength=[1.0]), ("strength", "(1,)", "(2,)")),
        (lambda: PD(ARM, strength=[1.0, -1.0]), ("strength", "0 or more", "-1")),
        (lambda: PD(ARM, strength=[1.0, math.nan]), ("strength[1]", "finite")),
        (lambda: StablePD(ARM, pin=[[[1.0, 1.0]]]), ("pin", "(1, 1, 2)")),
    ],
)
def test_wrong_weights_are_refused(make: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(PoiseError) as error:
        make()
    assert all(word in str(error.value) for word in words)


def test_a_command_of_pd_is_a_force() -> None:
    command = PD(ARM)(State([0.0, 0.0], [0.0, 0.0]), Target([0.1, 0.0]))
    assert isinstance(command, Command)
    assert command.drive is None
