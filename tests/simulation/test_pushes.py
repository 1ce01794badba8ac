"""Kicks and drags: impulses, and springs to a place that may move."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import DT, SOLIDS, G, body, recorded_and_resumed, started, turned

import poise
from poise import Gains, StablePD, State, World, dynamics
from poise.errors import PoiseError
from poise.math.rotation import quat_matrix
from poise.model.shape import Shape

Array = NDArray[np.float64]

HUMANOID = poise.load_character("humanoid")
BOX = body(SOLIDS["box"], 3.0, "box")
BALL = body(SOLIDS["sphere"], 2.0, "ball")
IMPULSE = np.array([3.0, -4.0, 5.0])
THERE = np.array([1.0, -0.5, 1.5])


def floating(character: Any, **options: Any) -> World:
    """A world in which nothing pulls and nothing is in the way."""
    return World(character, dt=DT, gravity=(0, 0, 0), ground=False, **options)


def momentum(world: World) -> Array:
    """Linear, and angular about the center of mass."""
    state = world.state
    A, _ = dynamics.centroidal_momentum(world, state.q, state.v)
    return np.asarray(np.einsum("...ij,...j->...i", A, state.v))


def place(world: World, link: str, point: Any = None) -> Array:
    """Where a point of a link is, its center of mass unless given; shape (3,)."""
    index = world.scene.link_index(link)
    p, E = dynamics.forward_kinematics(world, world.state.q)
    local = world.scene.forest.link_com[index] if point is None else np.asarray(point)
    return np.asarray(p[index] + quat_matrix(E[index]) @ local)


def moving(character: Any, **options: Any) -> World:
    rng = np.random.default_rng(3)
    world = floating(character, **options)
    return started(world, 0.5 * rng.normal(size=world.scene.nv))


# kicks


@pytest.mark.parametrize(("character", "link"), [(BOX, "box"), (HUMANOID, "head")])
def test_a_kick_changes_momentum_by_its_impulse(character: Any, link: str) -> None:
    world = moving(character)
    before = momentum(world)
    world.kick(link, IMPULSE)
    world.step()
    np.testing.assert_allclose(momentum(world)[:3], before[:3] + IMPULSE, atol=1e-10)
    world.step(steps=5)
    np.testing.assert_allclose(momentum(world)[:3], before[:3] + IMPULSE, atol=1e-10)


@pytest.mark.parametrize(("character", "link"), [(BOX, "box"), (HUMANOID, "left_foot")])
def test_a_kick_beside_the_mass_centre_turns_by_its_moment(character: Any, link: str) -> None:
    world = floating(character)
    point = (0.05, 0.02, -0.1)
    arm = place(world, link, point) - dynamics.center_of_mass(world, world.state.q)
    world.kick(link, IMPULSE, point=point)
    world.step()
    # the center of mass moves along the impulse, so that the moment about it stays
    np.testing.assert_allclose(momentum(world)[3:], np.cross(arm, IMPULSE), atol=1e-10)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_a_kick_in_the_middle_of_a_step_is_whole_after_the_next(share: float) -> None:
    world = moving(HUMANOID)
    before = momentum(world)[:3]
    world.kick("chest", IMPULSE, at=(2.0 + share) * DT)
    world.step(steps=2)
    np.testing.assert_allclose(momentum(world)[:3], before, atol=1e-10)
    world.step()
    np.testing.assert_allclose(momentum(world)[:3], before + (1 - share) * IMPULSE, atol=1e-10)
    world.step()
    np.testing.assert_allclose(momentum(world)[:3], before + IMPULSE, atol=1e-10)


def test_two_kicks_of_one_step_add_up() -> None:
    world = moving(BOX)
    before = momentum(world)[:3]
    world.kick("box", IMPULSE)
    world.kick("box", (1.0, 1.0, 1.0))
    world.step()
    np.testing.assert_allclose(momentum(world)[:3], before + IMPULSE + 1.0, atol=1e-10)


def test_copies_are_kicked_each_in_their_own_way() -> None:
    world = floating(BOX, n=5)
    impulses = np.arange(15.0).reshape(5, 3)
    world.kick("box", impulses, where=[0, 3])
    world.step()
    expected = np.where(np.isin(np.arange(5), [0, 3])[:, None], impulses, 0.0)
    np.testing.assert_allclose(momentum(world)[:, :3], expected, atol=1e-12)


def test_a_kick_makes_a_standing_box_slide_as_far_as_friction_allows() -> None:
    slab = body(Shape("box", (0.3, 0.3, 0.05)), 2.0, "slab", (0, 0, 0.05))
    world = World(slab, dt=DT, friction=0.5)
    world.step(steps=10)
    start = world.state.q[0]
    world.kick("slab", (4.0, 0.0, 0.0))
    world.step(steps=120)
    # v^2 / (2 mu g) with v = 2 m/s; friction within the first step, and the last, is worth v dt
    assert world.state.q[0] - start == pytest.approx(2.0**2 / (2 * 0.5 * G), abs=2.0 * DT)
    assert np.abs(world.state.v).max() < 1e-6


# drags


def test_a_dragged_ball_follows_the_recurrence_of_the_implicit_spring() -> None:
    k, c, m = 300.0, 7.0, 2.0
    world = World(BALL, dt=DT, ground=False)
    x, v, g = np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 0.0]), np.array([0.0, 0.0, -G])
    started(world, [*v, 0.0, 0.0, 0.0])
    to, speed = THERE.copy(), np.array([0.3, 0.0, -0.2])
    world.drag("ball", to, velocity=speed, stiffness=k, damping=c)
    for _ in range(120):
        world.step()
        to = to + DT * speed
        # m (v' - v) = dt (k (to - x - dt v') + c (speed - v') + m g)
        v = (m * v + DT * (k * (to - x) + c * speed + m * g)) / (m + DT * c + DT * DT * k)
        x = x + DT * v
        np.testing.assert_allclose(world.state.q[:3], x, atol=1e-12)
        np.testing.assert_allclose(world.state.v[:3], v, atol=1e-11)


def test_unless_told_otherwise_a_drag_is_critically_damped_at_one_and_a_half_hertz() -> None:
    dt = 1 / 4000
    world = World(BALL, dt=dt, gravity=(0, 0, 0), ground=False)
    world.drag("ball", (1.0, 0.0, 1.0))
    w, left = 2.0 * math.pi * 1.5, []
    for t in world.until(1.0):
        # the implicit step is a little slower: first order in dt, w dt = 0.24 %
        exact = (1.0 + w * t) * math.exp(-w * t)
        left.append(1.0 - world.state.q[0])
        assert left[-1] == pytest.approx(exact, abs=3e-3)
        world.step()
    assert (np.diff(left) <= 0.0).all()
    assert min(left) >= 0.0


@pytest.mark.parametrize("stiffness", [10.0, 1e3, 1e6, 1e9, 1e12])
def test_a_critical_drag_never_passes_its_place(stiffness: float) -> None:
    world = floating(BALL)
    world.drag("ball", (1.0, 0.0, 1.0), stiffness=stiffness)
    for _ in range(120):
        world.step()
        assert world.state.q[0] <= 1.0 + 1e-9


def test_a_moving_place_is_followed_without_lag() -> None:
    world = floating(BALL)
    speed = np.array([1.0, 0.5, -0.2])
    world.drag("ball", THERE, velocity=speed)
    world.step(steps=300)
    np.testing.assert_allclose(world.state.q[:3], THERE + 300 * DT * speed, atol=1e-9)
    np.testing.assert_allclose(world.state.v[:3], speed, atol=1e-9)


def test_a_weight_on_a_spring_hangs_as_deep_as_hooke_says() -> None:
    world = World(BALL, dt=DT, ground=False)
    world.drag("ball", (0.0, 0.0, 1.0), stiffness=400.0)
    world.step(steps=600)
    assert world.state.q[2] == pytest.approx(1.0 - 2.0 * G / 400.0, abs=1e-9)


@pytest.mark.parametrize(("stiffness", "moves"), [(8.0, False), (12.0, True)])
def test_a_drag_moves_a_box_on_the_ground_when_it_is_stronger_than_friction(
    stiffness: float, moves: bool
) -> None:
    """Friction of 2 kg holds 9.8 N at 0.5; the spring is 1 m long."""
    slab = body(Shape("box", (0.3, 0.3, 0.05)), 2.0, "slab", (0, 0, 0.05))
    world = World(slab, dt=DT, friction=0.5)
    world.step(steps=10)
    x, _, z = world.state.q[:3]
    world.drag("slab", (x + 1.0, 0.0, z), stiffness=stiffness)
    world.step(steps=60)
    assert (world.state.q[0] - x > 1e-3) == moves


def hand_over(stiffness: float, steps: int) -> tuple[World, Array, Array]:
    """A damped ragdoll held by a forearm, that place, and accelerations of the last second."""
    world = World(HUMANOID, dt=DT)
    to = place(world, "right_forearm") + (0.0, 0.0, 0.2)
    world.drag("right_forearm", to, stiffness=stiffness)
    limp = StablePD(HUMANOID, gains=Gains(HUMANOID, kp=0.0, kd=5.0))
    rates = []
    for i in range(steps):
        before = world.state.v
        world.step(limp(world.state, State(HUMANOID.rest_q)))
        if i >= steps - 60:
            rates.append((world.state.v - before) / DT)
    return world, to, np.array(rates)


def test_a_stiff_spring_does_not_shake_a_damped_ragdoll() -> None:
    world, to, rates = hand_over(1e9, 480)
    np.testing.assert_allclose(place(world, "right_forearm"), to, atol=1e-5)
    # half a rad/s^2 is 8 mrad/s more or less in a step
    assert np.sqrt((rates**2).mean()) < 0.5
    assert np.abs(world.state.v).max() < 0.5


def test_a_spring_to_a_still_place_adds_no_energy() -> None:
    world = moving(HUMANOID)
    k = 500.0
    world.drag("head", THERE, stiffness=k)

    def energy() -> float:
        kinetic, _ = dynamics.energy(world, world.state.q, world.state.v, gravity=(0, 0, 0))
        return float(kinetic + 0.5 * k * np.sum((place(world, "head") - THERE) ** 2))

    last = start = energy()
    for _ in range(120):
        world.step()
        # joints keep energy to second order in dt, not exactly
        assert energy() < last + 2e-3 * start
        last = energy()
    assert last < 0.7 * start


# slots


def test_to_drag_again_moves_the_place_and_takes_no_further_slot() -> None:
    world = floating(BALL)
    for i in range(20):
        world.drag("ball", (0.1 * i, 0.0, 1.0))
        world.step()
    for _ in range(7):
        world.push("ball", (0.0, 0.0, 0.0), 10.0)
    with pytest.raises(PoiseError, match="8 pushes"):
        world.push("ball", (0.0, 0.0, 0.0), 10.0)
    world.drag("ball", (-1.0, 0.0, 1.0))
    world.step(steps=300)
    assert world.state.q[0] == pytest.approx(-1.0, abs=1e-9)


def test_what_is_released_flies_on() -> None:
    world = floating(BALL)
    world.drag("ball", (1.0, 0.0, 1.0))
    world.step(steps=10)
    world.release("ball")
    v = world.state.v.copy()
    assert v[0] > 0.5
    world.step(steps=20)
    np.testing.assert_allclose(world.state.v, v, atol=1e-12)


def test_release_lets_go_of_one_link_or_of_all_and_ends_pushes() -> None:
    world = floating([BALL, BOX])
    world.drag("ball/ball", (1.0, 0.0, 1.0))
    world.drag("box/box", (0.0, 3.0, 1.0))
    world.release("ball/ball")
    world.step()
    assert world.state.v[0] == 0.0
    assert world.state.v[7] > 0.1
    world.push("ball/ball", (2.0, 0.0, 0.0), 1.0)
    world.release()
    speed = world.state.v[7]
    world.step()
    assert world.state.v[7] == pytest.approx(speed)
    assert world.state.v[0] == 0.0


def test_to_release_what_nobody_drags_does_nothing() -> None:
    world = floating(BALL)
    world.release()
    world.release("ball")
    world.step()
    assert np.array_equal(world.state.v, np.zeros(6))


def test_only_some_copies_are_dragged_and_released() -> None:
    world = floating(BALL, n=4)
    to = np.array([(float(i), 0.0, 1.0) for i in range(4)])
    world.drag("ball", to, where=[1, 2])
    world.step(steps=240)
    np.testing.assert_allclose(world.state.q[:, 0], [0.0, 1.0, 2.0, 0.0], atol=1e-6)
    world.release(where=[1])
    world.drag("ball", (5.0, 0.0, 1.0), where=np.array([False, False, True, False]))
    world.step(steps=240)
    np.testing.assert_allclose(world.state.q[:, 0], [0.0, 1.0, 5.0, 0.0], atol=1e-6)


def test_a_reset_without_memory_lets_go() -> None:
    world = floating(BALL)
    world.drag("ball", THERE)
    world.reset()
    world.step(steps=5)
    assert np.array_equal(world.state.v, np.zeros(6))


# the same bits


def dragged(n: int, dtype: str = "float64", **options: Any) -> World:
    """Humanoids that are kicked and dragged each in their own way."""
    world = World(HUMANOID, n=n, dt=DT, dtype=dtype, **options)
    rng = np.random.default_rng(7)
    to, impulse = rng.normal(size=(7, 3)) + (0, 0, 1), 5.0 * rng.normal(size=(7, 3))
    world.drag("head", to[:n], velocity=(0.1, 0.0, 0.0))
    world.kick("left_shin", impulse[:n], at=0.21)
    return world


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_company_and_threads_change_nothing(dtype: str) -> None:
    many, threads, few = (dragged(7, dtype), dragged(7, dtype, threads=2), dragged(2, dtype))
    for world in (many, threads, few):
        world.step(steps=40)
    assert np.array_equal(many.state.q, threads.state.q)
    assert np.array_equal(many.state.q[:2], few.state.q)


def test_a_world_of_one_differs_from_a_crowd_by_rounding_only() -> None:
    """One copy runs in another kernel than many."""
    many, one = dragged(7), dragged(1)
    many.step(steps=20)
    one.step(steps=20)
    np.testing.assert_allclose(one.state.q, many.state.q[0], atol=1e-9)


@pytest.mark.parametrize("n", [1, 3])
def test_a_drag_goes_on_bit_for_bit_from_a_state(n: int) -> None:
    world, again = dragged(n), World(HUMANOID, n=n, dt=DT)
    world.step(steps=10)
    saved = world.state.copy()
    world.step(steps=20)
    again.reset(saved)
    again.step(steps=20)
    assert np.array_equal(world.state.q, again.state.q)
    assert world.state.memory is not None
    assert again.state.memory is not None
    assert np.array_equal(world.state.memory, again.state.memory)


def test_a_drag_goes_on_bit_for_bit_from_a_recording(tmp_path: Path) -> None:
    world = dragged(1)
    again = recorded_and_resumed(world, tmp_path / "drag.npz", steps=30, after=10)
    assert np.array_equal(world.state.q, again.state.q)


# bad input

NAN = math.nan
BAD: dict[str, tuple[Callable[[World], Any], tuple[str, ...]]] = {
    "kick nan": (lambda w: w.kick("ball", (NAN, 0, 0)), ("impulse", "finite")),
    "kick inf": (lambda w: w.kick("ball", (math.inf, 0, 0)), ("impulse",)),
    "kick two": (lambda w: w.kick("ball", (1.0, 0.0)), ("(2,)",)),
    "kick words": (lambda w: w.kick("ball", "hard"), ("impulse",)),
    "kick nobody": (lambda w: w.kick("bal", (1, 0, 0)), ("'bal'", "ball")),
    "kick at nan": (lambda w: w.kick("ball", (1, 0, 0), at=NAN), ("at",)),
    "kick a copy": (lambda w: w.kick("ball", (1, 0, 0), where=[5]), ("where",)),
    "kick a point": (lambda w: w.kick("ball", (1, 0, 0), point=(NAN, 0, 0)), ("point", "finite")),
    "drag to nan": (lambda w: w.drag("ball", (0, NAN, 0)), ("to", "finite")),
    "drag to inf": (lambda w: w.drag("ball", (0, math.inf, 0)), ("to", "finite")),
    "drag to two": (lambda w: w.drag("ball", (0, 1)), ("to", "(2,)")),
    "drag nobody": (lambda w: w.drag("bal", (0, 0, 0)), ("'bal'", "ball")),
    "drag link 7": (lambda w: w.drag(7, (0, 0, 0)), ("link 7",)),
    "drag at nan": (lambda w: w.drag("ball", (0, 0, 0), velocity=(NAN, 0, 0)), ("velocity",)),
    "drag by nan": (lambda w: w.drag("ball", (0, 0, 0), point=(NAN, 0, 0)), ("point", "finite")),
    "drag softly": (lambda w: w.drag("ball", (0, 0, 0), stiffness=-1.0), ("stiffness", "0 or")),
    "drag nan": (lambda w: w.drag("ball", (0, 0, 0), stiffness=NAN), ("stiffness",)),
    "drag hard": (lambda w: w.drag("ball", (0, 0, 0), stiffness=1e16), ("stiffness", "1e15")),
    "drag badly": (lambda w: w.drag("ball", (0, 0, 0), damping=-1.0), ("damping", "0 or more")),
    "drag by nothing": (
        lambda w: w.drag("ball", (0, 0, 0), stiffness=0.0, damping=0.0),
        ("stiffness", "damping"),
    ),
    "drag a copy": (lambda w: w.drag("ball", (0, 0, 0), where=[1]), ("where",)),
    "release nobody": (lambda w: w.release("bal"), ("'bal'", "ball")),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_and_changes_nothing(name: str) -> None:
    world = floating(BALL)
    call, words = BAD[name]
    with pytest.raises(PoiseError) as caught:
        call(world)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    world.step()
    assert np.array_equal(world.state.v, np.zeros(6))


def test_no_more_than_eight_links_are_dragged() -> None:
    world = floating(HUMANOID)
    for link in range(8):
        world.drag(link, THERE)
    with pytest.raises(PoiseError, match="8 pushes"):
        world.drag(8, THERE)
    with pytest.raises(PoiseError, match="8 pushes"):
        world.kick(0, IMPULSE)
    world.release(3)
    world.drag(8, THERE)


def test_a_drag_needs_the_method_that_has_room_for_it() -> None:
    world = floating(HUMANOID)
    world.drag("head", THERE)
    servo = StablePD(HUMANOID, method="sf")
    with pytest.raises(PoiseError, match="maba"):
        world.step(servo(world.state, State(HUMANOID.rest_q)))
    assert world.time == 0.0


def test_a_turned_box_is_dragged_by_the_point_that_was_asked_for() -> None:
    brick = body(SOLIDS["box"], 3.0, "box", quat=turned(70, (1, 2, 3)))
    world = floating(brick)
    corner = (-0.1, 0.2, 0.3)
    start = place(world, "box", corner)
    world.drag("box", start + (0.0, 0.0, 1e-3), point=corner, stiffness=1e9)
    world.step(steps=3)
    np.testing.assert_allclose(place(world, "box", corner), start + (0.0, 0.0, 1e-3), atol=1e-5)
