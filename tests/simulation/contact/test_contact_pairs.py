"""Who touches whom: several characters, self-collision, exclusions, obstacles, pushes per copy."""

from __future__ import annotations

import numpy as np
import pytest
from objects import DT, SOLIDS, body, started

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    Joint,
    Link,
    State,
    Target,
    World,
    load_character,
)
from poise.model.shape import Shape

HUMANOID = load_character("humanoid")


def folding_ruler() -> Character:
    """Three bars on hinges; the third folds back on the first."""
    bar = Shape("capsule", (0.03, 0.2), pos=(0.2, 0, 0), quat=(0.5**0.5, 0, 0.5**0.5, 0))
    links = tuple(
        Link(
            f"bar-{k}",
            parent=f"bar-{k - 1}" if k else None,
            pos=(0.5 if k else 0.0, 0.0, 0.0 if k else 1.0),
            joints=(Joint(f"hinge-{k}", "hinge", axis=(0, 0, 1)),) if k else (),
            mass=1.0,
            com=(0.2, 0, 0),
            inertia=(0.001, 0.02, 0.02),
            shapes=(bar,),
        )
        for k in range(3)
    )
    return Character("ruler", links)


def fold(**options: object) -> World:
    ruler = folding_ruler()
    world = World(ruler, dt=1 / 240, gravity=(0, 0, 0), ground=False, **options)  # type: ignore[arg-type]
    kd = Gains(ruler, 20.0, 2.0)
    # folded: the third bar would pass through the first
    world.step(Command(drive=Drive(kd, Target([2.8, 2.0]))), steps=720)
    return world


def test_links_of_one_character_stop_each_other() -> None:
    world = fold()
    seen = world.contacts
    assert {frozenset(x) for x in zip(seen.link.tolist(), seen.other.tolist(), strict=True)} == {
        frozenset((0, 2))
    }
    assert np.abs(world.state.q - [2.8, 2.0]).max() > 0.1


@pytest.mark.parametrize(
    "options", [{"self_collision": False}, {"exclude": [("bar-0", "bar-2")]}], ids=str
)
def test_without_self_collision_they_pass_through(options: dict[str, object]) -> None:
    world = fold(**options)
    assert not len(world.contacts.copy)
    np.testing.assert_allclose(world.state.q, [2.8, 2.0], atol=1e-2)


def test_a_link_does_not_touch_the_link_it_hangs_on() -> None:
    world = World(HUMANOID, dt=DT, gravity=(0, 0, 0), ground=False)
    world.step()
    assert not len(world.contacts.copy)


def test_two_humanoids_in_one_world_touch() -> None:
    world = World([HUMANOID, HUMANOID], dt=DT, projectiles=0)
    parts = [world.part(name) for name in world.scene.forest.parts]
    q = np.array(world.state.q)
    q[parts[1].q.start] += 0.6
    v = np.zeros(world.scene.nv)
    v[parts[1].v.start] = -3.0
    world.reset(State(q, v))
    met = False
    for _ in range(60):
        world.step()
        seen = world.contacts
        first = len(HUMANOID.links)
        met |= bool(((seen.link < first) != (seen.other < first))[seen.other >= 0].any())
    assert met
    # the one that stood was pushed along -x
    assert world.state.q[parts[0].q.start] < -0.05


def test_characters_far_apart_behave_as_alone() -> None:
    both = World([HUMANOID, HUMANOID], dt=DT, projectiles=0)
    alone = World(HUMANOID, dt=DT, projectiles=0)
    parts = [both.part(name) for name in both.scene.forest.parts]
    q = np.array(both.state.q)
    q[parts[1].q.start] += 50.0
    both.reset(State(q))
    for world in (both, alone):
        world.step(steps=30)
    np.testing.assert_allclose(both.state.q[parts[0].q], alone.state.q, atol=1e-9)
    shifted = np.array(alone.state.q)
    shifted[0] += 50.0
    np.testing.assert_allclose(both.state.q[parts[1].q], shifted, atol=1e-9)


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box"])
def test_an_object_rests_on_an_obstacle_of_every_kind(kind: str) -> None:
    still = {
        "sphere": Shape("sphere", (0.5,), pos=(0, 0, 0.5)),
        "capsule": Shape("capsule", (0.3, 1.0), pos=(0, 0, 0.7), quat=(0.5**0.5, 0, 0.5**0.5, 0)),
        "box": Shape("box", (1.0, 1.0, 0.5), pos=(0, 0, 0.5)),
    }[kind]
    top = still.pos[2] + still.size[-1 if kind == "box" else 0]
    plate = body(Shape("box", (0.3, 0.3, 0.02)), 1.0, pos=(0, 0, top + 0.02))
    world = World(plate, dt=DT, obstacles=[still], ground=False)
    world.step(steps=60)
    assert world.state.q[2] == pytest.approx(top + 0.02, abs=2e-3)
    assert set(world.contacts.other.tolist()) == {-2}


def test_pushes_differ_from_copy_to_copy() -> None:
    ball = body(SOLIDS["sphere"], 2.0, pos=(0, 0, 5.0))
    world = World(ball, n=3, dt=DT, gravity=(0, 0, 0))
    world.push("thing", np.array([[10.0, 0, 0], [0, 20.0, 0], [0, 0, 30.0]]), 0.5, where=[0, 2])
    world.step(steps=60)
    np.testing.assert_allclose(world.state.v[:, :3], np.diag([2.5, 0, 7.5]), atol=1e-9)


def test_masses_differ_from_copy_to_copy() -> None:
    pair = [body(SOLIDS["sphere"], 1.0, name, (0.5 * k, 0, 1)) for k, name in enumerate("ab")]
    mass = np.array([[1.0, 1.0], [1.0, 3.0], [5.0, 1.0]])
    world = World(pair, n=3, dt=1 / 240, gravity=(0, 0, 0), mass=mass, projectiles=0)
    started(world, [2.0, *[0.0] * 11]).step(steps=120)
    common = 2.0 * mass[:, 0] / mass.sum(axis=1)
    np.testing.assert_allclose(world.state.v[:, 0], common, rtol=1e-6)
    np.testing.assert_allclose(world.state.v[:, 6], common, rtol=1e-6)


def test_a_copy_does_not_feel_its_neighbours() -> None:
    """Copies lie at the same place and never touch."""
    world = World(body(SOLIDS["box"], pos=(0, 0, 0.3)), n=16, dt=DT)
    world.step(steps=60)
    assert set(world.contacts.other.tolist()) == {-1}
    assert (world.state.q == world.state.q[0]).all()
