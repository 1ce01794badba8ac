"""Contact and bad input: errors that name what is wrong, and no explosions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from objects import DT, SOLIDS, body, energy

from poise import Command, Diverged, Drive, Gains, PoiseError, State, Target, World, load_character
from poise.model.shape import Shape
from poise.simulation.contact import HeightField, Plane

NAN, INF = math.nan, math.inf
HUMANOID = load_character("humanoid")
BRICK = body(Shape("box", (0.2, 0.2, 0.1)), 2.0, "brick", (0, 0, 0.1))
NL = len(HUMANOID.links)

Case = tuple[Callable[[], object], tuple[str, ...]]


def world(**options: Any) -> Callable[[], object]:
    return lambda: World(BRICK, **{"dt": DT, **options})


def throw(*args: Any, projectiles: int = 8, n: int = 1, **options: Any) -> Callable[[], object]:
    return lambda: World(BRICK, dt=DT, n=n, projectiles=projectiles).throw(*args, **options)


ORIGIN, STILL = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
CASES: dict[str, Case] = {
    "friction negative": (world(friction=-0.1), ("friction is -0.1", "0 or more")),
    "friction nan": (world(friction=NAN), ("friction is nan", "0 or more")),
    "friction of a wrong shape": (world(friction=[0.5, 0.5]), ("friction", "(2,)")),
    "friction text": (world(friction="rough"), ("friction", "numbers")),
    "ground friction negative": (
        world(ground_friction=-1.0),
        ("ground_friction is -1", "0 or more"),
    ),
    "ground friction nan": (world(ground_friction=NAN), ("ground_friction",)),
    "restitution above 1": (world(restitution=1.5), ("restitution is 1.5", "at most 1")),
    "restitution negative": (world(restitution=-0.5), ("restitution is -0.5", "0 or more")),
    "restitution nan": (world(restitution=NAN), ("restitution is nan", "at most 1")),
    "a step of more than a tenth": (world(dt=0.11), ("dt is 0.11", "0.1 s or less")),
    "contact unknown": (world(contact="glue"), ("contact", "glue", "impulse", "penalty")),
    "contact a number": (world(contact=1), ("contact",)),
    "ground text": (world(ground="grass"), ("ground", "Plane", "HeightField")),
    "ground a number": (world(ground=1.0), ("ground",)),
    "obstacle no shape": (world(obstacles=["rock"]), ("obstacles[0]", "Shape")),
    "projectiles negative": (world(projectiles=-1), ("projectiles is -1",)),
    "projectiles too many": (world(projectiles=1000), ("projectiles is 1000", "0 to 32")),
    "projectiles true": (world(projectiles=True), ("projectiles",)),
    "projectiles of no character": (world(projectiles=["ball"]), ("projectiles[0]", "Character")),
    "projectiles of a humanoid": (
        world(projectiles=[HUMANOID]),
        ("projectiles[0]", "one free link"),
    ),
    "exclude an unknown link": (world(exclude=[("brick", "head")]), ("exclude", "'head'")),
    "exclude nothing": (world(exclude=None), ("exclude",)),
    "exclude a word": (world(exclude="ab"), ("exclude",)),
    "exclude three": (world(exclude=[("brick", "brick", "brick")]), ("exclude",)),
    "convex maybe": (world(convex="maybe"), ("convex", "None")),
    "convex number": (world(convex=1), ("convex",)),
    "no obstacles": (world(obstacles=None), ("obstacles",)),
    "a shape instead of a list": (world(obstacles=Shape("sphere", (1.0,))), ("obstacles",)),
    "an obstacle that nothing meets": (
        world(obstacles=[Shape("cylinder", (0.1, 0.1))], convex=False),
        ("obstacles[0]", "cylinder"),
    ),
    "field of three spacings": (lambda: HeightField(np.zeros((2, 2)), (1, 1, 1)), ("spacing",)),  # type: ignore[arg-type]
    "field of half an origin": (lambda: HeightField(np.zeros((2, 2)), 1.0, (1.0,)), ("origin",)),  # type: ignore[arg-type]
    "field up to the stars": (lambda: HeightField([[1e300, 0.0], [0.0, 0.0]], 1.0), ("heights",)),
    "plane without a direction": (lambda: Plane((0, 0, 0)), ("plane: normal",)),
    "plane of nan": (lambda: Plane((0, 0, NAN)), ("plane: normal",)),
    "plane height nan": (lambda: Plane(height=NAN), ("plane: height",)),
    "field of one row": (lambda: HeightField([[0.0, 1.0]], 1.0), ("heights", "(1, 2)")),
    "field of nan": (lambda: HeightField([[0.0, NAN], [0.0, 0.0]], 1.0), ("heights", "finite")),
    "field of no spacing": (lambda: HeightField(np.zeros((2, 2)), 0.0), ("spacing",)),
    "field of negative spacing": (lambda: HeightField(np.zeros((2, 2)), -1.0), ("spacing",)),
    "field with a wrong origin": (
        lambda: HeightField(np.zeros((2, 2)), 1.0, (NAN, 0.0)),
        ("origin",),
    ),
    "mesh of no size": (lambda: Shape.mesh([(0, 0, 0)] * 8), ("mesh",)),
    "mesh that is flat": (
        lambda: Shape.mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]),
        ("mesh",),
    ),
    "sphere of no size": (lambda: Shape("sphere", (0.0,)), ("sphere", "positive")),
    "push nan": (lambda: World(BRICK, dt=DT).push("brick", (NAN, 0, 0), 0.1), ("force", "finite")),
    "push inf": (lambda: World(BRICK, dt=DT).push("brick", (INF, 0, 0), 0.1), ("force",)),
    "push nobody": (lambda: World(BRICK, dt=DT).push("brik", (1, 0, 0), 0.1), ("brik", "brick")),
    "throw nan": (throw((NAN, 0, 0), STILL), ("position", "finite")),
    "throw at inf": (throw(ORIGIN, (INF, 0, 0)), ("velocity", "finite")),
    "throw two numbers": (throw((0.0, 0.0), STILL), ("position", "(2,)")),
    "throw words": (throw("up", STILL), ("position", "numbers")),
    "throw with a spin of nan": (throw(ORIGIN, STILL, spin=(NAN, 0, 0)), ("spin",)),
    "throw with no turn": (throw(ORIGIN, STILL, quat=(0, 0, 0, 0)), ("quat", "length 0")),
    "throw for other copies": (throw(np.zeros((3, 3)), STILL, n=2), ("(3, ",)),
    "throw where nobody is": (throw(ORIGIN, STILL, n=2, where=[2]), ("where", "0 to 1")),
    "throw without projectiles": (
        throw(ORIGIN, STILL, projectiles=0),
        ("nothing left", "no projectiles"),
    ),
    "memory of another world": (
        lambda: World(BRICK, dt=DT).reset(
            State(BRICK.rest_q, memory=World(HUMANOID, dt=DT).state.memory)
        ),
        ("state.memory",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_and_named(name: str) -> None:
    call, words = CASES[name]
    with pytest.raises(PoiseError) as caught:
        call()
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"


def test_throwing_more_than_the_spares_says_so() -> None:
    w = World(BRICK, dt=DT, projectiles=3)
    for k in range(3):
        w.throw((2.0 + k, 0, 1), STILL)
    with pytest.raises(PoiseError, match=r"all 3 projectiles are out.*projectiles="):
        w.throw((6.0, 0, 1), STILL)


def test_memory_of_noise_is_refused() -> None:
    w = World(BRICK, dt=DT)
    memory = np.array(w.state.memory)
    for number in (NAN, 1e300, 0.5):
        with pytest.raises(PoiseError, match=r"state\.memory"):
            w.reset(State(BRICK.rest_q, memory=np.full(memory.shape, number)))


# ---- overlaps are pushed apart, gently


def test_a_brick_that_starts_in_the_ground_comes_out_without_a_leap() -> None:
    w = World(BRICK, dt=DT)
    q = np.array(BRICK.rest_q)
    q[2] = -0.2
    w.reset(State(q))
    z = []
    for _ in range(300):
        w.step()
        z.append(float(w.state.q[2]))
    assert max(z) < 0.11
    assert z[-1] == pytest.approx(0.1, abs=2e-3)
    assert np.abs(w.state.v).max() < 1e-2


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box"])
def test_two_objects_in_one_place_come_apart_without_an_explosion(kind: str) -> None:
    pair = [body(SOLIDS[kind], 1.0, name, (0.01 * k, 0.02 * k, 1)) for k, name in enumerate("ab")]
    w = World(pair, dt=DT, gravity=(0, 0, 0), ground=False, projectiles=0)
    fastest = 0.0
    for _ in range(240):
        before = w.state.q.reshape(2, 7)[:, :3]
        w.step()
        moved = np.linalg.norm(w.state.q.reshape(2, 7)[:, :3] - before, axis=1)
        fastest = max(fastest, float(moved.max()) / DT)
    assert fastest < 10.0
    # apart, and not flying
    assert np.abs(w.state.v).max() < 1e-6
    assert not (w.contacts.depth > 2e-3).any()


def test_objects_at_exactly_one_place_come_apart_too() -> None:
    pair = [body(SOLIDS["sphere"], 1.0, name, (0, 0, 1)) for name in "ab"]
    w = World(pair, dt=DT, gravity=(0, 0, 0), ground=False, projectiles=0)
    w.step(steps=300)
    a, b = w.state.q.reshape(2, 7)[:, :3]
    assert np.isfinite(w.state.q).all()
    assert np.linalg.norm(a - b) > 0.19


def test_humanoids_that_start_folded_into_the_ground_settle() -> None:
    n = 8
    rng = np.random.default_rng(0)
    w = World(HUMANOID, n=n, dt=DT)
    q = np.tile(HUMANOID.rest_q, (n, 1))
    q[:, 2] -= rng.uniform(0.1, 0.8, n)
    w.reset(State(q))
    kd = np.full(HUMANOID.nv, 2.0)
    kd[:6] = 0.0
    command = Command(drive=Drive(Gains(HUMANOID, 0.0, kd), Target(HUMANOID.rest_q)))
    fastest = 0.0
    for _ in range(300):
        w.step(command)
        fastest = max(fastest, float(np.abs(w.state.v[:, :3]).max()))
    assert not w.diverged
    # a fall from standing ends at some 4 m/s
    assert fastest < 6.0


# ---- far and hard


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_humanoid_hit_by_a_billion_newtons_is_reported_alone(dtype: str) -> None:
    w = World(HUMANOID, n=6, dt=DT, dtype=dtype)
    twin = World(HUMANOID, n=6, dt=DT, dtype=dtype)
    w.push("chest", (1e9, 0.0, 0.0), 0.1, where=[2])
    for one in (w, twin):
        one.step(steps=40)
    assert [loss.copy for loss in w.diverged] == [2]
    assert not twin.diverged
    assert np.isfinite(w.state.q).all()
    others = np.delete(np.arange(6), 2)
    np.testing.assert_array_equal(w.state.q[others], twin.state.q[others])


def test_a_single_humanoid_hit_by_a_billion_newtons_raises() -> None:
    w = World(HUMANOID, dt=DT)
    w.push("chest", (1e9, 0.0, 0.0), 0.1)
    with pytest.raises(Diverged) as caught:
        w.step(steps=120)
    assert np.isfinite(caught.value.state.q).all()


def test_a_humanoid_flung_a_thousand_kilometres_is_reported_alone() -> None:
    w = World(HUMANOID, n=6, dt=DT)
    q, v = np.tile(HUMANOID.rest_q, (6, 1)), np.zeros((6, HUMANOID.nv))
    q[:, 2] += 1.0
    v[3, 0] = 2e6
    w.reset(State(q, v))
    w.step(steps=60)
    assert [loss.copy for loss in w.diverged] == [3]
    assert np.isfinite(w.state.q).all()


def test_a_brick_dropped_at_any_speed_stays_above_the_ground_or_is_reported() -> None:
    speeds = np.array([1e1, 1e2, 1e3, 1e4, 1e5])
    w = World(BRICK, n=5, dt=DT)
    q, v = np.tile(BRICK.rest_q, (5, 1)), np.zeros((5, 6))
    q[:, 2], v[:, 2] = 1.0, -speeds
    w.reset(State(q, v))
    w.step(steps=60)
    lost = {loss.copy for loss in w.diverged}
    for i in range(5):
        assert i in lost or w.state.q[i, 2] > 0.09, f"{speeds[i]} m/s"


def test_a_light_thing_under_a_heavy_one_neither_explodes_nor_sinks_through() -> None:
    """A mass ratio of 1000; Gauss-Seidel is slow there, so the depth is stated, not 1 mm."""
    pair = [
        body(Shape("box", (0.2, 0.2, 0.1)), 0.1, "light", (0, 0, 0.1)),
        body(Shape("box", (0.2, 0.2, 0.1)), 100.0, "heavy", (0, 0, 0.3)),
    ]
    w = World(pair, dt=DT, projectiles=0)
    start = float(energy(w))
    w.step(steps=300)
    place = w.state.q.reshape(2, 7)
    np.testing.assert_allclose(place[:, 2], [0.1, 0.3], atol=0.01)
    assert float(energy(w)) <= start + 1e-6
