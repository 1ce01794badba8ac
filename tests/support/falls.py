"""Random falls of a limp humanoid, each known by its number; tests and benchmarks drop them.

A fall starts above the ground in a random turn, every joint moving, and is pushed three times. Its
number decides all of it, and its place in a batch changes nothing: one that failed falls again,
bit for bit, by `drop(ground, [number, number])`. (A world of one copy runs other instructions and
ends a rounding apart.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    State,
    Target,
    World,
    dynamics,
    load_character,
)
from poise.math.rotation import quat_matrix
from poise.simulation.contact import HeightField

Array = NDArray[np.float64]

DT = 1 / 60
SECONDS = 20
SHARING = 100
"""So many falls in a row lie on the same height field."""

SINKING = 0.02  # [m]
MOVING = 0.02  # of a link in the last second [m]
SHAKING = 0.02  # kinetic energy [J]
BENT = math.radians(1.0)  # beyond a joint's limits

KINDS = ("diverged", "sank", "moves", "bent")


@dataclass
class Falls:
    """How falls ended, one entry each.

    Attributes:
        ground: "plane" or "field".
        numbers: Which falls.
        diverged: Whether it did.
        deepest: In ground, over the steps that were looked at [m].
        pressed: Links into each other, likewise [m].
        moved: The most that a link moved in the last second [m].
        kinetic: Energy at the end [J].
        bent: Beyond the limits of the worst joint at the end [rad].
    """

    ground: str
    numbers: tuple[int, ...]
    diverged: NDArray[np.bool_]
    deepest: Array
    pressed: Array
    moved: Array
    kinetic: Array
    bent: Array

    def failures(self) -> dict[str, tuple[int, ...]]:
        """Numbers of the falls that failed, by kind."""
        found = (
            self.diverged,
            ~self.diverged & ~(self.deepest <= SINKING),
            ~self.diverged & ~((self.moved <= MOVING) & (self.kinetic <= SHAKING)),
            ~self.diverged & ~(self.bent <= BENT),
        )
        numbers = np.array(self.numbers)
        return {k: tuple(numbers[f].tolist()) for k, f in zip(KINDS, found, strict=True)}


def drop(
    ground: str,
    numbers: Sequence[int],
    *,
    dtype: str = "float64",
    threads: int | None = None,
    seconds: int = SECONDS,
    every: int = 1,
    tick: Callable[[], object] = lambda: None,
) -> Falls:
    """Drop falls that share a ground, and say how they ended.

    Args:
        ground: "plane" or "field".
        numbers: Which falls; on a field all of one hundred.
        dtype: Precision of the world.
        threads: Of the world; None takes the cores.
        seconds: How long they are given.
        every: After how many steps the depths are looked at; a divisor of 60.
        tick: Called after every second.
    """
    human = load_character("humanoid")
    world = thrown_down(human, ground, numbers, dtype, threads)
    limp, n = dampers(human), world.n
    deepest, pressed = np.zeros(n), np.zeros(n)
    before = _places(human, world)
    for _ in range(seconds):
        before = _places(human, world)
        for _ in range(round(1 / DT) // every):
            world.step(limp, steps=every)
            touches = world.contacts
            on_ground = touches.other < 0
            for worst, rows in ((deepest, on_ground), (pressed, ~on_ground)):
                np.maximum.at(worst, touches.copy[rows], touches.depth[rows])
        tick()
    diverged = np.zeros(n, dtype=bool)
    diverged[[loss.copy for loss in world.diverged]] = True
    q, v = np.atleast_2d(world.state.q), np.atleast_2d(world.state.v)
    return Falls(
        ground,
        tuple(int(k) for k in numbers),
        diverged,
        deepest=deepest,
        pressed=pressed,
        moved=np.linalg.norm(_places(human, world) - before, axis=-1).max(axis=-1),
        kinetic=np.atleast_1d(dynamics.energy(human, q, v)[0]),
        bent=beyond_limits(human, q),
    )


def thrown_down(
    human: Character, ground: str, numbers: Sequence[int], dtype: str, threads: int | None
) -> World:
    """A world of these falls at their start, their pushes to come."""
    shares = {k // SHARING for k in numbers}
    if ground == "field" and len(shares) > 1:
        raise ValueError(f"falls {min(numbers)} to {max(numbers)} do not share a height field")
    on = rough(shares.pop()) if ground == "field" else True
    n, nv = len(numbers), human.nv
    world = World(
        human,
        n=n,
        dt=DT,
        dtype=dtype,
        threads=threads,
        ground=on,
        projectiles=0,
        on_divergence="freeze",
    )
    draws = [np.random.default_rng((2024, ground == "field", k)) for k in numbers]
    turn = np.array([draw.normal(size=4) for draw in draws])
    q = np.tile(human.rest_q, (n, 1))
    q[:, 2] += 0.8
    q[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    v = np.array([draw.normal(size=nv) for draw in draws])
    world.reset(State(q, v) if n > 1 else State(q[0], v[0]))
    for k in range(3):
        links = np.array([draw.integers(len(human.links)) for draw in draws])
        force = 200.0 * np.array([draw.normal(size=3) for draw in draws])
        for link in np.unique(links).tolist():
            push = force if n > 1 else force[0]
            world.push(link, push, 0.1, at=0.5 + k, where=links == link)
    return world


def rough(number: int) -> HeightField:
    """A height field of 20 m: humps of 10 cm, half a metre apart."""
    return HeightField(0.1 * np.random.default_rng((2025, number)).normal(size=(40, 40)), 0.5)


def dampers(human: Character) -> Command:
    """Joints that only damp, by 0.5 N m s/rad.

    Four times as much holds a hand that stands on its edge up for more than twenty seconds.
    """
    kd = np.full(human.nv, 0.5)
    kd[:6] = 0.0
    return Command(drive=Drive(Gains(human, 0.0 * kd, kd), Target(human.rest_q)))


def beyond_limits(character: Character, q: Array) -> Array:
    """How far the worst joint of each row is beyond its limits [rad, m], shape (n,)."""
    worst = np.zeros(len(q))
    for joint in character.joints:
        if joint.limits is None:
            continue
        at, (lower, upper) = q[:, character.q_slice(joint)], joint.limits[-2:]
        if joint.kind == "ball":
            axis = np.array(joint.axis)
            cosine = np.einsum("i,nij,j->n", axis, np.array([quat_matrix(r) for r in at]), axis)
            worst = np.maximum(worst, np.arccos(np.clip(cosine, -1, 1)) - joint.limits[0])
            twist = 2 * np.arctan2(at[:, 1:] @ axis, at[:, 0])
            at = ((twist + math.pi) % (2 * math.pi) - math.pi)[:, None]
        worst = np.maximum(worst, np.maximum(at[:, 0] - upper, lower - at[:, 0]))
    return worst


def _places(human: Character, world: World) -> Array:
    return np.asarray(dynamics.forward_kinematics(human, np.atleast_2d(world.state.q))[0])
