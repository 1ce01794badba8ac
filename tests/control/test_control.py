"""What is wanted: gains, PD, stable PD, roots, strength, pins, and the one loop."""

from __future__ import annotations

import itertools
import math
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from free_world import World
from numpy.random import Generator
from numpy.typing import NDArray
from trees import random_character, random_state

import poise
from poise import (
    Character,
    Command,
    Joint,
    Link,
    PoiseError,
    State,
    Target,
    dynamics,
    reference,
)
from poise.control import PD, Gains, StablePD, joint_inertia, suggest_gains
from poise.control.gains import HELD_KP
from poise.simulation.command import Drive
from poise.simulation.controller import Requirements

Array = NDArray[np.float64]

DT = 1 / 120
HUMANOID = poise.load_character("humanoid")
SQUAT = poise.load_clip("squat", HUMANOID)
ARM = poise.load_character("two-link")
REST = HUMANOID.rest_q
WEIGHTLESS = (0.0, 0.0, 0.0)


def single(
    kind: Any, inertia: tuple[float, float, float] = (0.2, 0.3, 0.4), **joint: Any
) -> Character:
    """One link on one joint."""
    link = Link("body", joints=(Joint("joint", kind, **joint),), mass=2.0, inertia=inertia)
    return Character("single", (link,))


def pendulum() -> Character:
    """Two links and a welded one, all carried by the first hinge; the second is off the axis."""
    solid: dict[str, Any] = {"mass": 1.5, "com": (0.1, 0.0, -0.3), "inertia": (0.02, 0.03, 0.01)}
    upper = Joint("upper", "hinge", axis=(0.0, 1.0, 0.0), armature=0.05)
    return Character(
        "pendulum",
        (
            Link("upper", joints=(upper,), **solid),
            Link("weld", "upper", pos=(0.2, 0.1, -0.4), **solid),
        ),
    )


def tree(seed: int, **options: Any) -> Character:
    return random_character(np.random.default_rng(seed), 6, **options)


def response(t: Array, frequency: float, damping: float) -> Array:
    """x(t) of x'' + 2 ζ ω x' + ω² x = 0 from x = 1 at rest."""
    w, z = 2 * math.pi * frequency, damping
    if z == 1.0:
        return np.exp(-w * t) * (1 + w * t)
    root = np.sqrt(complex(z * z - 1)) * w
    a, b = -z * w + root, -z * w - root
    return np.real((b * np.exp(a * t) - a * np.exp(b * t)) / (b - a))


def follow(character: Character, gains: Gains, start: Array, time: float, dt: float) -> Array:
    """Positions on the way to the zero pose, without gravity, one row per step."""
    world = World(character, dt=dt, gravity=WEIGHTLESS)
    world.reset(State(start))
    command = Command(drive=Drive(gains, Target(character.rest_q)))
    rows = []
    for _ in world.until(time):
        world.step(command)
        rows.append(world.state.q)
    return np.array(rows)


def stand(world: World, servo: Any, time: float, target: Any = None) -> State:
    target = Target(world.scene.forest.rest_q) if target is None else target
    for _ in world.until(float(np.max(world.time)) + time):
        world.step(servo(world.state, target))
    return world.state


def some_state(rng: Generator, character: Character, n: int) -> State:
    q, v = zip(*(random_state(rng, character) for _ in range(n)), strict=True)
    return State(np.array(q), np.array(v)) if n > 1 else State(q[0], v[0])


# ---- gains by frequency and damping ratio


@pytest.mark.parametrize("frequency", [0.5, 4.0])
@pytest.mark.parametrize("damping", [0.2, 1.0, 2.0])
@pytest.mark.parametrize(
    "character",
    [single("hinge"), single("slide", armature=1.0), pendulum()],
    ids=["hinge", "slide", "pendulum"],
)
def test_a_joint_follows_with_the_asked_frequency_and_damping_ratio(
    character: Character, frequency: float, damping: float
) -> None:
    dt = 1e-3 / frequency
    q = follow(
        character, suggest_gains(character, frequency, damping), np.array([0.3]), 2 / frequency, dt
    )
    t = dt * np.arange(1.0, len(q) + 1)
    # first order: half a step of ω dt = 0.006 for each time constant
    np.testing.assert_allclose(q[:, 0] / 0.3, response(t, frequency, damping), atol=0.015)


def test_halving_the_step_halves_the_distance_to_the_exact_response() -> None:
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        q = follow(
            single("hinge"), suggest_gains(single("hinge"), 2.0, 0.5), np.array([1.0]), 0.5, dt
        )
        errors.append(np.abs(q[:, 0] - response(dt * np.arange(1.0, len(q) + 1), 2.0, 0.5)).max())
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2.0, rtol=0.05)


def quaternion(axis: int, angle: float) -> Array:
    q = np.array([math.cos(angle / 2), 0.0, 0.0, 0.0])
    q[1 + axis] = math.sin(angle / 2)
    return q


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_axis_of_a_ball_follows_alike_with_gains_per_axis(axis: int) -> None:
    character = single("ball", inertia=(0.2, 0.3, 0.4))
    gains = suggest_gains(character, 2.0, 0.5, per_axis=True)
    q = follow(character, gains, quaternion(axis, 0.3), 0.7, 5e-4)
    angle = 2 * np.arctan2(q[:, 1 + axis], q[:, 0])
    t = 5e-4 * np.arange(1.0, len(q) + 1)
    np.testing.assert_allclose(angle / 0.3, response(t, 2.0, 0.5), atol=0.015)


def test_the_axes_of_a_ball_share_the_largest_inertia_unless_asked() -> None:
    shared = suggest_gains(single("ball", inertia=(0.2, 0.3, 0.4)), 2.0)
    np.testing.assert_allclose(shared.kp, 0.4 * (4 * math.pi) ** 2)
    np.testing.assert_allclose(shared.kd, 2 * 0.4 * 4 * math.pi)


@pytest.mark.parametrize("character", [HUMANOID, ARM, tree(1), tree(2)], ids=lambda c: f"nv{c.nv}")
def test_the_inertia_that_a_joint_carries_is_its_entry_in_the_mass_matrix(
    character: Character,
) -> None:
    """At rest, with the links outboard as one rigid body: the diagonal of M."""
    M = reference.mass_matrix(character, character.rest_q)
    np.testing.assert_allclose(joint_inertia(character, per_axis=True), np.diag(M), rtol=1e-9)


def test_frequency_and_damping_may_differ_from_joint_to_joint() -> None:
    gains = suggest_gains(ARM, [1.0, 3.0], [0.5, 2.0])
    inertia = joint_inertia(ARM)
    w = 2 * math.pi * np.array([1.0, 3.0])
    np.testing.assert_allclose(gains.kp, inertia * w**2)
    np.testing.assert_allclose(gains.kd, 2 * np.array([0.5, 2.0]) * inertia * w)


def test_stable_pd_takes_suggested_gains_by_default() -> None:
    gains = suggest_gains(HUMANOID, 3.0, 0.7, root="soft")
    servo = StablePD(HUMANOID, frequency=3.0, damping=0.7, root="soft")
    assert np.array_equal(servo.gains.kp, gains.kp)
    assert np.array_equal(servo.gains.kd, gains.kd)


def test_gains_cannot_be_changed_behind_the_worlds_back() -> None:
    given = np.ones(2)
    gains = Gains(ARM, given, 1.0)
    given[:] = 7.0
    assert np.array_equal(gains.kp, [1.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        gains.kp[0] = 7.0


@pytest.mark.parametrize("n", [2, 7])
def test_gains_per_copy_are_those_of_worlds_with_these_gains(n: int) -> None:
    rng = np.random.default_rng(0)
    kp, kd = rng.uniform(0, 50, (n, HUMANOID.nv)), rng.uniform(0, 5, (n, HUMANOID.nv))
    own = World(HUMANOID, n=n, dt=DT)
    stand(own, StablePD(HUMANOID, Gains(HUMANOID, kp, kd)), 0.2)
    for i in range(n):
        alone = World(HUMANOID, n=n, dt=DT)
        stand(alone, StablePD(HUMANOID, Gains(HUMANOID, kp[i], kd[i])), 0.2)
        assert np.array_equal(own.state.q[i], alone.state.q[i])


# ---- roots


def test_a_free_root_gets_no_force() -> None:
    world = World(HUMANOID, dt=DT)
    world.reset(State(REST, np.random.default_rng(1).normal(size=HUMANOID.nv)))
    stand(world, StablePD(HUMANOID), 0.2)
    assert not world.torque[:6].any()
    assert world.torque[6:].any()


def test_a_held_root_sinks_by_its_weight_over_the_stiffness_of_the_paper() -> None:
    world = World(HUMANOID, dt=DT)
    state = stand(world, StablePD(HUMANOID, root="held"), 3.0)
    sink = HUMANOID.mass * 9.81 / HELD_KP
    assert REST[2] - state.q[2] == pytest.approx(sink, rel=1e-3)


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("gravity", [-9.81, -1.62])
def test_a_soft_root_does_not_sag_while_it_stands(embedded: bool, gravity: float) -> None:
    world = World(HUMANOID, dt=DT, gravity=(0.0, 0.0, gravity))
    state = stand(world, StablePD(world, root="soft", embedded=embedded), 3.0)
    assert np.abs(state.q[:3] - REST[:3]).max() < 1e-3


@pytest.mark.parametrize("gravity", [-9.81, -1.62])
def test_a_soft_root_of_explicit_pd_does_not_sag_either(gravity: float) -> None:
    """In steps that are short enough for it to be stable."""
    world = World(HUMANOID, dt=1 / 4000, gravity=(0.0, 0.0, gravity))
    state = stand(world, PD(world, root="soft", frequency=2.0), 0.5)
    assert np.abs(state.q[:3] - REST[:3]).max() < 1e-3


def ballistic(dt: float, v: Array, steps: int) -> list[Target]:
    """A rigid jump as the world itself would integrate it: v += dt g, then x += dt v."""
    g, out = np.array([0.0, 0.0, -9.81]), []
    for k in range(1, steps + 1):
        q, rate, a = REST.copy(), np.zeros(HUMANOID.nv), np.zeros(HUMANOID.nv)
        q[:3] += k * dt * v + k * (k + 1) / 2 * dt**2 * g
        rate[:3], a[:3] = v + k * dt * g, g
        out.append(Target(q, rate, a))
    return out


@pytest.mark.parametrize("embedded", [True, False])
def test_a_soft_root_follows_a_ballistic_target_without_force(embedded: bool) -> None:
    world = World(HUMANOID, dt=DT)
    v = np.array([1.0, 0.0, 3.0])
    world.reset(State(REST, np.concatenate([v, np.zeros(HUMANOID.nv - 3)])))
    servo = StablePD(world, root="soft", embedded=embedded)
    for target in ballistic(DT, v, 60):
        world.step(servo(world.state, target))
        assert np.abs(world.torque[:6]).max() < 1e-6 * HUMANOID.mass * 9.81
    np.testing.assert_allclose(world.state.q[:3], target.q[:3], atol=1e-9)


def test_a_push_moves_a_soft_root_and_it_comes_back() -> None:
    world = World(HUMANOID, dt=DT)
    world.push("chest", (300.0, 0.0, 0.0), 0.1, at=0.0)
    servo, away = StablePD(HUMANOID, root="soft"), 0.0
    for _ in world.until(5.0):
        world.step(servo(None, Target(REST)))
        away = max(away, float(np.linalg.norm(world.state.q[:3] - REST[:3])))
    assert 0.01 < away < 0.5
    assert np.linalg.norm(world.state.q[:3] - REST[:3]) < 1e-3


def test_a_soft_root_in_a_scene_carries_each_character_by_itself() -> None:
    world = World([HUMANOID, HUMANOID, ARM], dt=DT)
    state = stand(world, StablePD(world, root="soft"), 1.0)
    for name in ("humanoid", "humanoid-2"):
        part = state.q[world.part(name).q]
        assert np.abs(part[:3] - REST[:3]).max() < 1e-3


# ---- embedded and standalone, all methods and forms


def one_step(
    character: Character, start: State, controller: Any, target: Any
) -> tuple[Array, Array]:
    world = World(
        character, n=len(start.q) if start.q.ndim == 2 else 1, dt=DT, momentum_correction=False
    )
    world.reset(start)
    world.step(controller(world.state, target))
    return world.state.v, world.torque


@pytest.mark.parametrize("form", dynamics.FORMS)
@pytest.mark.parametrize("method", dynamics.METHODS)
def test_embedded_and_standalone_agree_in_every_method_and_form(method: str, form: str) -> None:
    for seed, n in itertools.product((1, 2, 3), (1, 5)):
        character = tree(seed)
        rng = np.random.default_rng(seed)
        start = some_state(rng, character, n)
        target = Target(*random_state(rng, character))
        gains = Gains(character, rng.uniform(1, 30, character.nv), rng.uniform(0, 3, character.nv))
        options: dict[str, Any] = {"form": form, "method": method, "dt": DT}
        v, tau = one_step(character, start, StablePD(character, gains, **options), target)
        alone = StablePD(character, gains, embedded=False, **options)
        v2, tau2 = one_step(character, start, alone, target)
        # conditioning of random trees, and CG stops at 1e-13
        np.testing.assert_allclose(v2, v, rtol=0, atol=1e-8 * np.abs(v).max())
        np.testing.assert_allclose(tau2, tau, rtol=0, atol=1e-8 * np.abs(tau).max())


@pytest.mark.parametrize("form", dynamics.FORMS)
def test_a_drive_may_ask_the_world_to_solve_standalone(form: str) -> None:
    character, rng = tree(4), np.random.default_rng(4)
    q, v = random_state(rng, character)
    gains = Gains(character, rng.uniform(1, 30, character.nv), rng.uniform(0, 3, character.nv))
    target = Target(*random_state(rng, character))
    found = []
    for embedded in (True, False):
        world = World(character, dt=DT)
        world.reset(State(q, v))
        world.step(Command(drive=Drive(gains, target, form=form, embedded=embedded)))
        found.append((world.state.v, world.torque))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9 * np.abs(found[0][0]).max())
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-9 * np.abs(found[0][1]).max())


@pytest.mark.parametrize("seed", range(4))
def test_explicit_pd_outside_is_the_form_pd_inside(seed: int) -> None:
    """With effort limits: both cut the same torque at the same length."""
    character, rng = tree(seed, effort=True), np.random.default_rng(seed)
    start, target = State(*random_state(rng, character)), Target(*random_state(rng, character))
    gains = suggest_gains(character, 4.0)
    v, tau = one_step(character, start, PD(character, gains, dt=DT), target)
    v2, tau2 = one_step(character, start, StablePD(character, gains, form="pd"), target)
    np.testing.assert_allclose(tau2, tau, rtol=0, atol=1e-9 * np.abs(tau).max())
    np.testing.assert_allclose(v2, v, rtol=0, atol=1e-8 * np.abs(v).max())


@pytest.mark.parametrize("seed", range(6))
def test_effort_limits_hold_in_the_same_step(seed: int) -> None:
    character, rng = tree(seed, effort=True), np.random.default_rng(seed)
    start, target = State(*random_state(rng, character)), Target(*random_state(rng, character))
    servo = StablePD(character, frequency=10.0)
    _, tau = one_step(character, start, servo, target)
    saturated = 0
    for joint in character.joints:
        if joint.effort is None:
            continue
        got = tau[character.v_slice(joint)]
        length = np.linalg.norm(got) if isinstance(joint.effort, float) else np.abs(got)
        assert np.all(length <= np.array(joint.effort) * (1 + 1e-9))
        saturated += int(np.any(np.isclose(length, joint.effort, rtol=1e-9)))
    assert saturated > 0


@pytest.mark.parametrize("embedded", [True, False])
def test_a_saturated_arm_agrees_with_the_reference(embedded: bool) -> None:
    character, rng = tree(3, effort=True), np.random.default_rng(3)
    start, target = State(*random_state(rng, character)), random_state(rng, character)
    gains = suggest_gains(character, 6.0)
    servo = StablePD(character, gains, embedded=embedded, dt=DT)
    v, tau = one_step(character, start, servo, Target(*target))
    a, expected = reference.limited_stable_pd(
        character, start.q, start.v, target, gains.kp, gains.kd, DT
    )[:2]
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose((v - start.v) / DT, a, rtol=0, atol=1e-8 * np.abs(a).max())


# ---- explain


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("root", ["free", "soft", "held"])
def test_explain_tells_what_the_world_then_does(embedded: bool, root: str) -> None:
    world = World(HUMANOID, dt=DT, momentum_correction=False)
    world.reset(State(*random_state(np.random.default_rng(2), HUMANOID)))
    servo = StablePD(world, root=root, embedded=embedded)
    before = world.state
    command, told = servo.explain(before, Target(REST))
    world.step(command)
    np.testing.assert_allclose(told["torque"], world.torque, rtol=1e-8, atol=1e-8)
    a = (world.state.v - before.v) / DT
    np.testing.assert_allclose(told["acceleration"], a, rtol=0, atol=1e-8 * np.abs(a).max())


def test_explain_of_pd_tells_the_torque_and_what_is_fed_forward() -> None:
    servo = PD(HUMANOID, root="soft")
    command, told = servo.explain(State(REST, np.zeros(HUMANOID.nv)), Target(REST))
    np.testing.assert_allclose(told["feedforward"][:3], [0.0, 0.0, HUMANOID.mass * 9.81], atol=1e-9)
    assert not told["feedforward"][6:].any()
    assert command.force is told["torque"]


def test_explain_respects_strength() -> None:
    world = World(HUMANOID, dt=DT)
    servo = StablePD(world, strength=np.zeros(len(HUMANOID.links)))
    command, told = servo.explain(State(REST, np.ones(HUMANOID.nv)), Target(REST))
    world.reset(State(REST, np.ones(HUMANOID.nv)))
    world.step(command)
    assert not world.torque.any()
    assert not told["torque"].any()


# ---- strength


def test_strength_scales_the_torque_of_each_link() -> None:
    strength = np.random.default_rng(3).uniform(0.0, 2.0, len(HUMANOID.links))
    start = State(*random_state(np.random.default_rng(4), HUMANOID))
    full = one_step(HUMANOID, start, StablePD(HUMANOID, form="pd"), Target(REST))[1]
    servo = StablePD(HUMANOID, form="pd", strength=strength)
    scaled = one_step(HUMANOID, start, servo, Target(REST))[1]
    factor = np.concatenate(
        [
            np.full(j.nv, s)
            for link, s in zip(HUMANOID.links, strength, strict=True)
            for j in link.joints
        ]
    )
    np.testing.assert_allclose(scaled, factor * full, rtol=1e-12)


def test_strength_scales_both_gains() -> None:
    """Implicitly, half the strength is half of kp and half of kd."""
    start = State(*random_state(np.random.default_rng(5), ARM))
    gains = suggest_gains(ARM)
    half = StablePD(ARM, gains, strength=np.full(2, 0.5))
    other = StablePD(ARM, Gains(ARM, gains.kp / 2, gains.kd / 2))
    v, tau = one_step(ARM, start, half, Target([0.5, 0.5]))
    v2, tau2 = one_step(ARM, start, other, Target([0.5, 0.5]))
    np.testing.assert_allclose(tau, tau2, rtol=1e-11)
    np.testing.assert_allclose(v, v2, rtol=1e-11)


@pytest.mark.parametrize("strength", [1.0, 0.25])
def test_strength_scales_effort_limits(strength: float) -> None:
    character = single("hinge", effort=4.0)
    servo = StablePD(character, frequency=50.0, strength=[strength])
    tau = one_step(character, State([0.0], [0.0]), servo, Target([3.0]))[1]
    assert tau[0] == pytest.approx(4.0 * strength, rel=1e-12)


def test_a_limb_goes_limp_and_comes_back() -> None:
    world = World(HUMANOID, dt=DT)
    servo = StablePD(world, root="held")
    links = [link.name for link in HUMANOID.links]
    limb = [links.index(name) for name in HUMANOID.limbs["left_arm"]]
    raised = REST.copy()
    raised[HUMANOID.q_slice("left_shoulder")] = quaternion(0, 1.0)

    def tilt() -> float:
        q = world.state.q[HUMANOID.q_slice("left_shoulder")]
        return 2 * math.acos(min(1.0, abs(float(q @ quaternion(0, 1.0)))))

    stand(world, servo, 2.0, Target(raised))
    held = tilt()
    strength = np.ones(len(links))
    strength[limb] = 0.0
    servo.strength = strength
    stand(world, servo, 0.3, Target(raised))
    limp = tilt()
    servo.strength = None
    stand(world, servo, 3.0, Target(raised))
    assert held < 0.1 < 0.3 < limp
    assert tilt() == pytest.approx(held, abs=1e-3)


def test_strength_may_differ_from_copy_to_copy() -> None:
    strength = np.array([[1.0, 1.0], [0.0, 0.0], [0.5, 2.0]])
    world = World(ARM, n=3, dt=DT)
    world.step(StablePD(ARM, strength=strength)(None, Target([0.5, 0.5])))
    for i in range(3):
        alone = World(ARM, n=3, dt=DT)
        alone.step(StablePD(ARM, strength=strength[i])(None, Target([0.5, 0.5])))
        assert np.array_equal(world.state.v[i], alone.state.v[i])


@pytest.mark.parametrize("make", [StablePD, PD])
@pytest.mark.parametrize("columns", [1, HUMANOID.nv])
def test_frequency_and_damping_may_differ_from_copy_to_copy(make: Any, columns: int) -> None:
    """As domain randomisation has them: each copy moves as with its own numbers alone."""
    rng, n = np.random.default_rng(1), 3
    frequency, damping = rng.uniform(1.0, 4.0, (n, columns)), rng.uniform(0.5, 1.5, (n, 1))
    world, target = World(HUMANOID, n=n, dt=DT), SQUAT.target(0.5)
    servo = make(world, frequency=frequency, damping=damping, strength=[[0.5], [1.0], [2.0]])
    assert servo.gains.kp.shape == (n, HUMANOID.nv)
    assert servo.strength.shape == (n, len(HUMANOID.links))
    alone = [World(HUMANOID, n=n, dt=DT) for _ in range(n)]
    servos = [
        make(one, frequency=np.squeeze(frequency[i]), damping=damping[i, 0], strength=0.5 * 2**i)
        for i, one in enumerate(alone)
    ]
    for _ in range(5):
        world.step(servo(world.state, target))
        for one, its in zip(alone, servos, strict=True):
            one.step(its(one.state, target))
    assert np.ptp(world.state.v, axis=0).max() > 0.1
    for i, one in enumerate(alone):
        np.testing.assert_allclose(world.state.v[i], one.state.v[i], atol=1e-10)


@pytest.mark.parametrize("make", [StablePD, PD])
@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("frequency", (5,), "frequency has shape (5,), expected a number, ("),
        ("frequency", (2, 3, 1), "frequency has shape (2, 3, 1), expected a number, ("),
        ("frequency", (2, 1), "frequency has 2 rows, the world has 4 copies"),
        ("damping", (7, 1), "damping has 7 rows, the world has 4 copies"),
        ("strength", (5,), "strength has shape (5,), expected a number, ("),
        ("strength", (3, 1), "strength has 3 rows, the world has 4 copies"),
    ],
)
def test_shapes_that_do_not_fit_the_copies_are_named(
    make: Any, name: str, shape: tuple[int, ...], message: str
) -> None:
    world = World(HUMANOID, n=4, dt=DT)
    with pytest.raises(PoiseError, match=re.escape(message)):
        make(world, **{name: np.ones(shape)})


@pytest.mark.parametrize("make", [StablePD, PD, partial(StablePD, embedded=False)])
def test_entries_of_the_strength_may_be_assigned(make: Any) -> None:
    worlds = [World(HUMANOID, dt=1e-3) for _ in range(3)]
    entry, assigned, untouched = (make(world, frequency=1.0) for world in worlds)
    weak = np.ones(len(HUMANOID.links))
    weak[3] = 0.5
    target = SQUAT.target(0.5)
    for i in range(6):
        if i == 3:
            entry.strength[3] = 0.5
            assigned.strength = weak
        for world, servo in zip(worlds, (entry, assigned, untouched), strict=True):
            world.step(servo(world.state, target))
        assert np.array_equal(worlds[0].state.q, worlds[1].state.q)
        assert np.array_equal(worlds[0].state.q, worlds[2].state.q) == (i < 3)
    weak[:] = 7.0
    assert assigned.strength[0] == 1.0
    entry.strength[3] = -1.0
    with pytest.raises(PoiseError, match="strength must be 0 or more"):
        worlds[0].step(entry(worlds[0].state, target))


def test_a_strength_that_is_read_changes_nothing() -> None:
    worlds = [World(HUMANOID, dt=DT) for _ in range(2)]
    servos = [StablePD(world, root="soft") for world in worlds]
    assert (servos[0].strength == 1.0).all()
    for world, servo in zip(worlds, servos, strict=True):
        world.step(servo(world.state, SQUAT.target(0.5)), steps=20)
    assert np.array_equal(worlds[0].state.q, worlds[1].state.q)


# ---- pins


def weights(*names: str) -> Array:
    return np.array([1.0 if link.name in names else 0.0 for link in HUMANOID.links])


def test_a_pin_of_weight_zero_does_nothing() -> None:
    with_pin, without = World(HUMANOID, dt=DT), World(HUMANOID, dt=DT)
    stand(with_pin, StablePD(HUMANOID, pin=weights()), 0.2)
    stand(without, StablePD(HUMANOID), 0.2)
    np.testing.assert_allclose(with_pin.state.q, without.state.q, rtol=0, atol=1e-12)


def test_a_pinned_root_hangs_at_its_weight_over_the_pins_stiffness() -> None:
    world = World(HUMANOID, dt=DT)
    root = HUMANOID.links[0].name
    state = stand(world, StablePD(HUMANOID, pin=weights(root)), 4.0)
    sink = 9.81 / (2 * math.pi * 5.0) ** 2
    assert REST[2] - state.q[2] == pytest.approx(sink, rel=1e-3)


def test_a_pin_takes_a_link_to_its_target_in_the_world() -> None:
    """No gains in the joints, no gravity: only the pin pulls the hand of the arm."""
    world = World(ARM, dt=DT, gravity=WEIGHTLESS)
    servo = StablePD(world, Gains(ARM, 0.0, 0.05), pin=[0.0, 1.0])
    target = Target([0.4, -0.7])
    state = stand(world, servo, 3.0, target)
    np.testing.assert_allclose(state.q, target.q, atol=1e-3)


def test_a_pinned_hand_stays_while_the_rest_is_pushed() -> None:
    hand = HUMANOID.limbs["left_arm"][-1]
    index = [link.name for link in HUMANOID.links].index(hand)
    moved = []
    for pin in (weights(), 50.0 * weights(hand)):
        world = World(HUMANOID, dt=DT, gravity=WEIGHTLESS)
        world.push("chest", (100.0, 0.0, 0.0), 0.1)
        servo = StablePD(HUMANOID, root="soft", pin=pin)
        stand(world, servo, 0.3)
        now = dynamics.forward_kinematics(HUMANOID, world.state.q)[0][index]
        moved.append(
            float(np.linalg.norm(now - dynamics.forward_kinematics(HUMANOID, REST)[0][index]))
        )
    assert moved[1] < 0.2 * moved[0]


def test_pins_follow_a_moving_target_and_differ_from_copy_to_copy() -> None:
    root = HUMANOID.links[0].name
    world = World(HUMANOID, n=2, dt=DT, gravity=WEIGHTLESS)
    servo = StablePD(HUMANOID, pin=np.array([weights(root), weights()]))
    rate = np.zeros(HUMANOID.nv)
    rate[0] = 0.5
    for t in world.until(2.0):
        q = REST.copy()
        q[0] += 0.5 * (t + DT)
        world.step(servo(world.state, Target(q, rate)))
    np.testing.assert_allclose(world.state.q[:, 0] - REST[0], [1.0, 0.0], atol=2e-3)


# ---- the one loop


class Wave:
    """A motion: every hinge of the arm swings."""

    def target(self, t: float) -> Target:
        return Target([math.sin(t), math.cos(2 * t) - 1], [math.cos(t), -2 * math.sin(2 * t)])

    def targets(self, t: float, dt: float, k: int) -> Target:
        rows = [self.target(t + i * dt) for i in range(k)]
        return Target([row.q for row in rows], np.array([row.v for row in rows]), rows=k)


class Counter:
    """A recording that only notes when it was called."""

    def __init__(self, world: World, interval: float | None = None) -> None:
        self.world, self.times = world, list[float]()
        if interval is not None:
            self.interval = interval

    def append(self, target: Target | None = None) -> None:
        self.times.append(float(np.max(self.world.time)))


class Clock(Wave):
    """Times on a grid, so that a manual loop meets the very same numbers."""

    def target(self, t: float) -> Target:
        return super().target(round(t / DT) * DT)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("steps", [1, 63, 64, 65, 200])
def test_run_in_chunks_is_a_loop_by_hand_bit_for_bit(n: int, steps: int) -> None:
    chunks, loop = World(ARM, n=n, dt=DT), World(ARM, n=n, dt=DT)
    servo, clock = StablePD(ARM), Clock()
    poise.run(chunks, servo, clock, steps * DT)
    for k in range(steps):
        loop.step(servo(loop.state, clock.target((k + 1) * DT)))
    assert np.array_equal(chunks.state.q, loop.state.q)
    assert np.array_equal(chunks.state.v, loop.state.v)
    assert np.array_equal(chunks.time, loop.time)


def test_run_does_not_depend_on_recording() -> None:
    plain, recorded = World(ARM, dt=DT), World(ARM, dt=DT)
    poise.run(plain, StablePD(ARM), Clock(), 1.0)
    poise.run(recorded, StablePD(ARM), Clock(), 1.0, record=Counter(recorded, 7 * DT))
    assert np.array_equal(plain.state.q, recorded.state.q)


def test_run_records_at_the_start_and_at_every_interval() -> None:
    world = World(ARM, dt=DT)
    record = Counter(world, interval=1 / 40)
    poise.run(world, StablePD(ARM), Wave(), 1.0, record=record)
    np.testing.assert_allclose(record.times, np.arange(41) / 40, atol=1e-12)


def test_run_records_every_step_without_an_interval() -> None:
    world = World(ARM, dt=DT)
    record = Counter(world)
    poise.run(world, StablePD(ARM), Wave(), 0.25, record=record)
    np.testing.assert_allclose(record.times, np.arange(31) * DT, atol=1e-12)


def test_run_asks_a_controller_that_needs_the_state_in_every_step() -> None:
    world, seen = World(ARM, dt=DT), []
    servo = PD(ARM, frequency=1.0)

    def controller(state: State, target: Target) -> Command:
        seen.append((float(state.time), float(target.q[0])))
        return servo(state, target)

    poise.run(world, controller, Wave(), 10 * DT)
    expected = [(k * DT, math.sin((k + 1) * DT)) for k in range(10)]
    np.testing.assert_allclose(seen, expected, atol=1e-12)


@pytest.mark.parametrize("held", [Target([0.3, 0.1]), State([0.3, 0.1], [0.0, 0.0])])
def test_run_holds_a_target_or_a_state(held: Any) -> None:
    world = World(ARM, dt=DT, gravity=WEIGHTLESS)
    poise.run(world, StablePD(ARM), held, 1.5)
    np.testing.assert_allclose(world.state.q, [0.3, 0.1], atol=1e-3)


def test_run_samples_a_motion_without_rows_step_by_step() -> None:
    class Single:
        def target(self, t: float) -> Target:
            return Wave().target(t)

    one, rows = World(ARM, dt=DT), World(ARM, dt=DT)
    poise.run(one, StablePD(ARM), Single(), 1.0)
    for _ in range(120):
        rows.step(StablePD(ARM)(rows.state, Wave().target(float(rows.time) + DT)))
    assert np.array_equal(one.state.q, rows.state.q)


def test_run_reads_the_requirements_of_a_controller() -> None:
    world, calls = World(ARM, dt=DT), []

    class Held:
        requires = Requirements(steps=4)

        def __call__(self, state: State, target: Target) -> Command:
            calls.append(float(state.time))
            return Command()

    poise.run(world, Held(), Wave(), 8 * DT)
    np.testing.assert_allclose(calls, [0.0, 4 * DT], atol=1e-12)
    Held.requires = {"steps": 4}  # type: ignore[assignment]
    with pytest.raises(PoiseError, match="requires of a Held must be Requirements"):
        poise.run(world, Held(), Wave(), 8 * DT)


def test_run_goes_on_from_the_worlds_clock() -> None:
    world = World(ARM, dt=DT)
    servo, seen = StablePD(ARM), []

    class Listener(Wave):
        def targets(self, t: float, dt: float, k: int) -> Target:
            seen.append((t, k))
            return super().targets(t, dt, k)

    poise.run(world, servo, Listener(), 70 * DT)
    poise.run(world, servo, Listener(), 10 * DT)
    np.testing.assert_allclose(seen, [(DT, 64), (65 * DT, 6), (71 * DT, 10)], atol=1e-12)


def test_run_stops_when_every_copy_is_lost() -> None:
    world = World(ARM, n=2, dt=DT)
    record = Counter(world)
    poise.run(
        world,
        lambda state, target: Command(force=np.array([1e13, 0.0])),
        Wave(),
        1.0,
        record=record,
    )
    assert len(world.diverged) == 2
    assert len(record.times) == 2


def test_run_reports_progress() -> None:
    world, done = World(ARM, dt=DT), list[float]()
    poise.run(world, StablePD(ARM), Wave(), 130 * DT, progress=done.append)
    np.testing.assert_allclose(done, [64 * DT, 128 * DT, 130 * DT])


@pytest.mark.parametrize("duration", [0.0, -1.0, math.nan, math.inf])
def test_run_needs_a_positive_duration(duration: float) -> None:
    with pytest.raises(PoiseError, match="duration"):
        poise.run(World(ARM, dt=DT), StablePD(ARM), Wave(), duration)
