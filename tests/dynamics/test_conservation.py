"""Nature as the second opinion: what physics says of falls, swings, tumbles and pushes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import trees
from free_world import World
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from poise import Command, Drive, Gains, State, Target, dynamics, load_character
from poise.model.character import Character, Joint, Link

Array = NDArray[np.float64]

NO_GRAVITY = (0.0, 0.0, 0.0)
G = 9.81


def body(joint: Joint, name: str = "body") -> Character:
    """One link that hangs below its joint: 2 kg, center of mass at 0.3 m."""
    link = Link(name, joints=(joint,), mass=2.0, com=(0.0, 0.0, -0.3), inertia=(0.02, 0.03, 0.04))
    return Character(name, (link,))


def object_of(mass: float = 2.0) -> Character:
    """A free object with three different moments of inertia."""
    link = Link("object", joints=(Joint("root", "free"),), mass=mass, inertia=(0.02, 0.03, 0.04))
    return Character("object", (link,))


def momentum(character: Character, state: State) -> Array:
    """Linear momentum, and angular momentum about the center of mass."""
    A, _ = dynamics.centroidal_momentum(character, state.q, state.v)
    p: Array = A @ state.v
    return p


# falling


def test_a_falling_object_keeps_the_speed_of_its_clock() -> None:
    character, dt = object_of(), 0.01
    world = World(character, dt=dt)
    world.reset(State([1, 2, 3, 1, 0, 0, 0], [0.5, -1, 4, 0, 0, 0]))
    world.step(steps=150)
    assert world.state.v[:3] == pytest.approx([0.5, -1, 4 - G * 1.5], rel=1e-13)
    # semi-implicit Euler falls by g dt² n (n + 1) / 2
    fall = G * dt**2 * 150 * 151 / 2
    assert world.state.q[:3] == pytest.approx([1.75, 0.5, 9 - fall], rel=1e-12)


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36"])
def test_a_resting_character_falls_without_moving_its_joints(name: str) -> None:
    character = load_character(name)
    world = World(character, dt=0.01)
    world.step(steps=100)
    assert world.state.v[2] == pytest.approx(-G, rel=1e-12)
    assert np.abs(np.delete(world.state.v, 2)).max() < 1e-10  # rounding, hundredfold


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -1.62), (3.0, -4.0, 5.0)])
def test_gravity_acts_as_given(gravity: tuple[float, ...]) -> None:
    character = load_character("humanoid")
    world = World(character, dt=0.01, gravity=gravity)
    world.step(steps=10)
    assert world.state.v[:3] == pytest.approx(0.1 * np.array(gravity), rel=1e-12)


# tumbling


@lru_cache
def tumble(
    name: str, dt: float, gravity: tuple[float, ...], **options: Any
) -> tuple[Array, float, Array]:
    """A loose character thrown for a second; how much its momentum and energy changed, relative
    to what they were, and where its center of mass is against free fall [m]."""
    character = load_character(name)
    q, v = character.rest_q, np.random.default_rng(0).normal(size=character.nv)
    world = World(character, dt=dt, gravity=gravity, **options)
    world.reset(State(q, v))
    p0, e0 = (
        momentum(character, world.state),
        sum(dynamics.energy(character, q, v, gravity=gravity)),
    )
    c0 = dynamics.center_of_mass(character, q)
    world.step(steps=round(1 / dt))
    end = world.state
    p, e = momentum(character, end), sum(dynamics.energy(character, end.q, end.v, gravity=gravity))
    fallen = c0 + p0[:3] / character.mass + 0.5 * np.array(gravity)
    drift = (p - p0) / np.repeat([np.linalg.norm(x) for x in np.split(p0, 2)], 3)
    return drift, float(e - e0) / float(e0), dynamics.center_of_mass(character, end.q) - fallen


tumblers = pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36"])


@tumblers
def test_a_tumbling_character_keeps_its_momentum(name: str) -> None:
    drift, _, _ = tumble(name, 1e-3, NO_GRAVITY, momentum_correction=False)
    # first order: about the turn of all joints in a step, |v| dt = 6e-3
    assert np.abs(drift).max() < 1e-2


@tumblers
@pytest.mark.parametrize("contact", [None, "impulse"])
def test_momentum_is_kept_to_rounding_at_large_steps(name: str, contact: str | None) -> None:
    options: dict[str, Any] = {"contact": contact, "ground": False, "self_collision": False}
    drift, _, _ = tumble(name, 1 / 60, NO_GRAVITY, **options)
    assert np.abs(drift).max() < 1e-11


@tumblers
def test_a_tumbling_character_keeps_its_energy(name: str) -> None:
    _, drift, _ = tumble(name, 1e-3, NO_GRAVITY)
    assert abs(drift) < 5e-3


@tumblers
def test_the_drift_of_momentum_and_energy_halves_with_the_step(name: str) -> None:
    (p, e, _), (p2, e2, _) = (
        tumble(name, dt, NO_GRAVITY, momentum_correction=False) for dt in (1e-3, 5e-4)
    )
    assert np.linalg.norm(p) / np.linalg.norm(p2) == pytest.approx(2, rel=0.1)
    assert e / e2 == pytest.approx(2, rel=0.1)


@tumblers
def test_the_mass_centre_of_a_tumbling_character_falls_freely(name: str) -> None:
    (_, _, c), (_, _, c2) = (tumble(name, dt, (0.0, 0.0, -G)) for dt in (1e-3, 5e-4))
    # 9.81 m in a second; first order in dt
    assert np.linalg.norm(c) < 0.02
    assert np.linalg.norm(c) / np.linalg.norm(c2) == pytest.approx(2, rel=0.1)


def test_a_spinning_object_keeps_its_linear_momentum_to_rounding() -> None:
    character = object_of()
    world = World(character, dt=0.01, gravity=NO_GRAVITY)
    world.reset(State(character.rest_q, [1, 2, 3, 4, 5, 6]))
    world.step(steps=1000)
    assert momentum(character, world.state)[:3] == pytest.approx([2, 4, 6], rel=1e-13)


def test_spin_about_a_principal_axis_stays() -> None:
    character = object_of()
    world = World(character, dt=0.01, gravity=NO_GRAVITY)
    world.reset(State(character.rest_q, [0, 0, 0, 0, 0, 6.0]))
    world.step(steps=1000)
    assert world.state.v[3:] == pytest.approx([0, 0, 6], abs=1e-12)
    # 60 rad about z
    assert world.state.q[3:] == pytest.approx([np.cos(30), 0, 0, np.sin(30)], abs=1e-11)


def test_spin_about_the_middle_axis_tips_over() -> None:
    # Dzhanibekov's effect: about the axis of the middle moment a small wobble grows
    character = object_of()
    worlds: dict[int, float] = {}
    for axis in (4, 5):
        v = np.array([0, 0, 0, 0, 0, 0.01])
        v[axis] = 6.0
        v[3] = 0.01
        world = World(character, dt=1e-3, gravity=NO_GRAVITY)
        world.reset(State(character.rest_q, v))
        lowest = 6.0
        for _ in range(60):
            world.step(steps=100)
            lowest = min(lowest, world.state.v[axis])
        worlds[axis] = lowest
    assert worlds[4] < 0
    assert worlds[5] > 5.9


# swinging


def period(character: Character, q: Array, height: Callable[[Array], float], dt: float) -> float:
    """Time between the first and the fifth passage through the lowest point to one side [s]."""
    world = World(character, dt=dt)
    world.reset(State(q))
    passed: list[float] = []
    before = height(q)
    while len(passed) < 5:
        world.step()
        now = height(world.state.q)
        if before < 0 <= now:
            passed.append(float(world.time) - dt * now / (now - before))
        before = now
    return (passed[4] - passed[0]) / 4


# I = 0.02 + 2 * 0.3², m g l = 2 * 9.81 * 0.3
SMALL_SWING = 2 * np.pi * np.sqrt((0.02 + 0.18) / (2 * G * 0.3))


def test_a_pendulum_swings_with_the_period_of_its_inertia() -> None:
    character = body(Joint("pin", "hinge", axis=(1, 0, 0)))
    measured = period(character, np.array([0.01]), lambda q: float(q[0]), 1e-3)
    # the angle makes it 6e-6 slower, the step (w dt)² / 24 = 1e-6 faster
    assert measured == pytest.approx(SMALL_SWING, rel=2e-5)


@pytest.mark.parametrize("angle", [0.5, 1.5, 3.0])
def test_a_wide_swing_takes_as_long_as_the_elliptic_integral_says(angle: float) -> None:
    character = body(Joint("pin", "hinge", axis=(1, 0, 0)))
    exact = SMALL_SWING * 2 / np.pi * ellipk(np.sin(angle / 2) ** 2)
    measured = period(character, np.array([angle]), lambda q: float(q[0]), 1e-4)
    assert measured == pytest.approx(exact, rel=1e-4)  # first order in dt at 3 rad


def test_a_ball_joint_swings_as_a_hinge() -> None:
    hinge = body(Joint("pin", "hinge", axis=(1, 0, 0)))
    ball = body(Joint("pin", "ball"))
    quat = np.array([np.cos(0.25), np.sin(0.25), 0, 0])
    measured = period(ball, quat, lambda q: float(q[1]), 1e-3)
    same = period(hinge, np.array([0.5]), lambda q: float(np.sin(q[0] / 2)), 1e-3)
    assert measured == pytest.approx(same, rel=1e-9)


def test_a_mass_on_a_spring_swings_with_the_root_of_stiffness_over_mass() -> None:
    character = body(Joint("rail", "slide", axis=(1, 0, 0), stiffness=50.0, armature=1.0))
    measured = period(character, np.array([0.1]), lambda q: float(q[0]), 1e-3)
    # 2 kg and 1 kg of rotor; the implicit spring damps by half a w dt, second order in the period
    assert measured == pytest.approx(2 * np.pi * np.sqrt(3 / 50), rel=1e-5)


def test_a_passive_damper_slows_down_as_the_implicit_step_says() -> None:
    character = body(Joint("rail", "slide", axis=(1, 0, 0), damping=4.0))
    world = World(character, dt=0.05, gravity=NO_GRAVITY)
    world.reset(State([0.0], [3.0]))
    world.step(steps=40)
    assert world.state.v[0] == pytest.approx(3 * (1 + 0.05 * 4 / 2) ** -40, rel=1e-13)


def test_a_double_pendulum_conserves_energy_to_first_order() -> None:
    character = load_character("two-link")
    drifts: list[float] = []
    for steps in (2000, 4000):
        world = World(character, dt=1 / steps)
        world.reset(State([1.0, 0.5]))
        before = sum(dynamics.energy(character, [1.0, 0.5], [0.0, 0.0]))
        world.step(steps=steps)
        drifts.append(float(sum(dynamics.energy(character, world.state.q, world.state.v)) - before))
    assert abs(drifts[1]) < 0.02
    assert drifts[0] / drifts[1] == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("driven", [False, True])
def test_the_integrator_is_of_first_order(driven: bool) -> None:
    rng = np.random.default_rng(3)
    character = trees.random_character(rng, 5, kinds=("hinge", "slide"), base="fixed")
    q0, v0 = trees.random_state(rng, character)
    gains = Gains(character, 20.0 * driven, 2.0 * driven)
    nv = character.nv

    def rate(_: float, x: Array) -> Array:
        tau = -gains.kp * (x[:nv] - q0) - gains.kd * x[nv:]
        a = dynamics.forward_dynamics(character, x[:nv], x[nv:], tau)
        return np.concatenate([x[nv:], a])

    exact = solve_ivp(rate, (0, 0.2), np.concatenate([q0, v0]), rtol=1e-11, atol=1e-11).y[:, -1]
    steps, errors = np.array([200, 400, 800, 1600]), []
    for n in steps:
        world = World(character, dt=0.2 / n)
        world.reset(State(q0, v0))
        world.step(Command(drive=Drive(gains, Target(q0))), steps=int(n))
        errors.append(np.abs(np.concatenate([world.state.q, world.state.v]) - exact).max())
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.05)


# pushing


def test_a_push_changes_the_momentum_by_force_times_time() -> None:
    character = object_of()
    world = World(character, dt=0.01, gravity=NO_GRAVITY)
    world.push("object", (3.0, -5.0, 7.0), 0.2)
    world.step(steps=100)
    assert momentum(character, world.state)[:3] == pytest.approx([0.6, -1.0, 1.4], rel=1e-12)


@pytest.mark.parametrize("at", [0.0, 0.0137, 0.055])
@pytest.mark.parametrize("duration", [0.001, 0.0333, 0.1])
def test_a_push_that_covers_parts_of_steps_acts_in_part(at: float, duration: float) -> None:
    character = object_of()
    world = World(character, dt=0.01, gravity=NO_GRAVITY)
    world.push("object", (3.0, 0.0, 0.0), duration, at=at)
    world.step(steps=40)
    assert momentum(character, world.state)[0] == pytest.approx(3 * duration, rel=1e-12)


def test_pushes_add_up() -> None:
    character = object_of()
    world = World(character, dt=0.01, gravity=NO_GRAVITY)
    world.push("object", (3.0, 0.0, 0.0), 0.1)
    world.push("object", (0.0, 4.0, 0.0), 0.05, at=0.02)
    world.push("object", (1.0, 0.0, 0.0), 0.03, at=0.05)
    world.step(steps=20)
    assert momentum(character, world.state)[:3] == pytest.approx([0.33, 0.2, 0], rel=1e-12)


def test_a_torque_changes_the_spin_by_torque_times_time() -> None:
    character = object_of()
    world = World(character, dt=0.01, gravity=NO_GRAVITY)
    world.push("object", (0, 0, 0), 0.1, torque=(0.0, 0.0, 2.0))
    world.step(steps=20)
    assert world.state.v == pytest.approx([0, 0, 0, 0, 0, 0.2 / 0.04], rel=1e-12)


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-72"])
def test_a_push_gives_a_character_the_momentum_of_its_lever(name: str) -> None:
    # in one step from rest the momentum is that of the impulse, wherever it strikes
    character = load_character(name)
    q, _ = trees.random_state(np.random.default_rng(0), character)
    force, point = np.array([30.0, -20.0, 10.0]), np.array([0.1, 0.2, -0.3])
    for index in range(len(character.links)):
        world = World(character, dt=0.01, gravity=NO_GRAVITY, momentum_correction=False)
        world.reset(State(q))
        world.push(index, force, 0.01, point=point)
        world.step()
        A, _ = dynamics.centroidal_momentum(character, q, world.state.v)
        p, quat = (x[index] for x in dynamics.forward_kinematics(character, q))
        u = quat[1:]
        turned = point + 2 * np.cross(u, np.cross(u, point) + quat[0] * point)
        arm = p + turned - dynamics.center_of_mass(character, q)
        impulse = 0.01 * np.concatenate([force, np.cross(arm, force)])
        assert A @ world.state.v == pytest.approx(impulse, abs=1e-12)


def test_a_push_strikes_the_mass_centre_unless_told_otherwise() -> None:
    link = Link(
        "lopsided", joints=(Joint("root", "free"),), mass=2.0, com=(0.1, 0.2, 0.3),
        inertia=(0.02, 0.03, 0.04),
    )  # fmt: skip
    character = Character("lopsided", (link,))
    world = World(character, dt=0.01, gravity=NO_GRAVITY)
    world.push("lopsided", (5.0, 6.0, 7.0), 0.1)
    world.step(steps=10)
    assert world.state.v == pytest.approx([0.25, 0.3, 0.35, 0, 0, 0], abs=1e-12)


def test_each_copy_is_pushed_by_its_own_force() -> None:
    character = object_of()
    world = World(character, n=6, dt=0.01, gravity=NO_GRAVITY)
    force = np.arange(18.0).reshape(6, 3)
    world.push("object", force, 0.1, where=[1, 2, 5])
    world.step(steps=20)
    expected = 0.05 * force * np.array([0, 1, 1, 0, 0, 1])[:, None]
    np.testing.assert_allclose(world.state.v[:, :3], expected, rtol=1e-12)


# company


class Company:
    """Three characters and an object, driven, the first one pushed; alone or together."""

    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        names = ("humanoid", "dog", "two-link")
        self.parts = [*map(load_character, names), object_of()]
        self.states = [trees.random_state(rng, part) for part in self.parts]
        self.targets = [trees.random_state(rng, part)[0] for part in self.parts]
        self.kp = [rng.uniform(10, 100, part.nv) for part in self.parts]
        self.kd = [rng.uniform(5, 10, part.nv) for part in self.parts]

    def after(self, which: slice, n: int, dtype: str) -> World:
        """A world of these parts after 30 steps."""
        world = World(self.parts[which], n=n, dt=0.01, dtype=dtype)
        q, v = (np.concatenate(x) for x in zip(*self.states[which], strict=True))
        world.reset(State(q, v))
        if which.start == 0:
            world.push(0, (100.0, 200.0, 300.0), 0.05)
        kp, kd = np.concatenate(self.kp[which]), np.concatenate(self.kd[which])
        drive = Drive(Gains(world.scene, kp, kd), Target(np.concatenate(self.targets[which])))
        world.step(Command(drive=drive), steps=30)
        return world


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 3])
def test_parts_of_a_scene_move_as_when_alone(n: int, dtype: str) -> None:
    company = Company()
    together = company.after(slice(0, 4), n, dtype)
    for i, name in enumerate(together.scene.forest.parts):
        alone, part = company.after(slice(i, i + 1), n, dtype).state, together.part(name)
        # the same operations in the same order: no difference at all
        assert np.array_equal(together.state.q[..., part.q], alone.q)
        assert np.array_equal(together.state.v[..., part.v], alone.v)


def test_two_of_a_kind_in_one_scene_move_alike() -> None:
    character = load_character("humanoid")
    world = World([character, character], dt=0.01)
    q, v = trees.random_state(np.random.default_rng(0), character)
    world.reset(State(np.tile(q, 2), np.tile(v, 2)))
    world.step(steps=50)
    one, other = (world.part(name) for name in world.scene.forest.parts)
    assert np.array_equal(world.state.q[one.q], world.state.q[other.q])
    assert not np.array_equal(world.state.q[one.q], q)
