"""What holds for every controller that can be asked for by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import poise
from poise.control.registry import CONTROLLERS, make_controller
from poise.reference import effort_limits

DT = 1 / 120
LIMIT = 30.0
"""Effort limit of every joint [N·m]: far below what a squat takes."""

HUMANOID = poise.load_character("humanoid")
WEAK = replace(
    HUMANOID,
    links=tuple(
        replace(
            link,
            joints=tuple(
                replace(joint, effort=None if joint.kind == "free" else LIMIT)
                for joint in link.joints
            ),
        )
        for link in HUMANOID.links
    ),
)
SQUAT = poise.load_clip("squat", HUMANOID)
TIMES = (0.2, 0.7, 1.1)

SERVOS = [name for name in CONTROLLERS if name != "balance"]
every = pytest.mark.parametrize("name", SERVOS)
roots = pytest.mark.parametrize("root", ["free", "soft", "held"])


def stacked() -> tuple[poise.State, poise.Target]:
    """Three states of a squat, off their targets by a little, and the targets."""
    states, goals = [SQUAT.state(t) for t in TIMES], [SQUAT.target(t + 0.05) for t in TIMES]
    state = poise.State(np.array([s.q for s in states]), np.array([s.v for s in states]))
    return state, poise.Target(np.array([g.q for g in goals]), np.array([g.v for g in goals]))


def torque_of(
    character: poise.Character, name: str, root: str, state: poise.State, target: poise.Target
) -> np.ndarray:
    """What the joints are given in a step on the ground."""
    n = len(state.q) if state.q.ndim > 1 else 1
    world = poise.World(character, n=n, dt=DT)
    world.reset(state)
    world.step(make_controller(name, world, root=root)(world.state, target))
    assert world.torque is not None
    return world.torque


@roots
@every
def test_a_batch_gets_what_each_copy_would_get_alone(name: str, root: str) -> None:
    state, target = stacked()
    batch = torque_of(HUMANOID, name, root, state, target)
    assert target.v is not None
    for i in range(len(TIMES)):
        one = poise.State(state.q[i], state.v[i])
        goal = poise.Target(target.q[i], target.v[i])
        alone = torque_of(HUMANOID, name, root, one, goal)
        # a batch is computed in lanes; the contact solver stops at 1e-6 or so of the weight
        assert batch[i] == pytest.approx(alone, abs=1e-6 * np.abs(alone).max())


@roots
@every
def test_torques_never_exceed_the_effort_limits(name: str, root: str) -> None:
    state, target = stacked()
    torque = torque_of(WEAK, name, root, state, target)
    sizes = np.array([np.linalg.norm(torque[:, lim.v], axis=1) for lim in effort_limits(WEAK)])
    assert sizes.max() <= LIMIT * (1 + 1e-9)
    assert (sizes > 0.999 * LIMIT).any()


@every
def test_nothing_drives_a_free_root(name: str) -> None:
    assert not torque_of(HUMANOID, name, "free", *stacked())[:, :6].any()


@every
def test_links_without_strength_are_limp(name: str) -> None:
    state, target = stacked()
    world = poise.World(HUMANOID, n=len(TIMES), dt=DT)
    world.reset(state)
    servo = make_controller(name, world)
    strength = np.ones(len(HUMANOID.links))
    strength[[link.name.startswith("left") for link in HUMANOID.links]] = 0.0
    assert 0.0 in strength
    servo.strength = strength  # type: ignore[attr-defined]
    world.step(servo(world.state, target))
    torque = world.torque
    assert torque is not None
    for link, factor in zip(HUMANOID.links, strength, strict=True):
        for joint in link.joints:
            given = torque[:, HUMANOID.v_slice(joint)]
            assert given.any() == (factor > 0.0 and joint.kind != "free")


@every
def test_a_target_that_is_not_a_number_is_named(name: str) -> None:
    world = poise.World(HUMANOID, dt=DT)
    servo = make_controller(name, world)
    with pytest.raises(poise.PoiseError, match=r"target\S*q\S* .*(nan|finite)"):
        world.step(servo(world.state, poise.Target(np.full(HUMANOID.nq, np.nan))))


@every
def test_a_target_of_another_character_is_named(name: str) -> None:
    world = poise.World(HUMANOID, dt=DT)
    servo = make_controller(name, world)
    with pytest.raises(poise.PoiseError, match=r"target\S*q has shape"):
        world.step(servo(world.state, poise.Target(np.zeros(3))))


@pytest.mark.parametrize("name", [name for name in SERVOS if name != "spd"])
def test_torques_are_for_one_state_and_one_target(name: str) -> None:
    world = poise.World(HUMANOID, dt=DT)
    servo = make_controller(name, world)
    with pytest.raises(poise.PoiseError, match="one target a step, not for rows"):
        servo(world.state, SQUAT.targets(0.0, DT, 4))
    with pytest.raises(poise.PoiseError, match="a state has q and v; got None"):
        servo(None, SQUAT.target(0.0))  # type: ignore[arg-type]


def test_a_wrong_name_lists_the_near_ones() -> None:
    with pytest.raises(poise.PoiseError, match="'kaen'; did you mean 'kane'"):
        make_controller("kaen", HUMANOID)
