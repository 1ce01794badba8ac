"""Restitution: heights of bounces, collisions in line, per-copy numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import DT, SOLIDS, G, body, energy, random_turns, started

from poise import State, World
from poise.model.shape import Shape

RADIUS = 0.1
BALL = Shape("sphere", (RADIUS,))


def bounces(e: float, dt: float, drop: float = 1.0, count: int = 3) -> NDArray[np.float64]:
    """Heights of the first bounces above the ground [m], between the steps by a parabola."""
    world = World(body(BALL, pos=(0, 0, RADIUS + drop)), dt=dt, restitution=e)
    z, tops = [RADIUS + drop], []
    for _ in range(round(4 / dt)):
        world.step()
        z.append(float(world.state.q[2]))
        a, b, c = z[-3:] if len(z) > 2 else (1.0, 0.0, 0.0)
        if b > a and b >= c and b - RADIUS > 1e-3:
            # the top of the parabola through three points
            tops.append(b + (c - a) ** 2 / (8 * (2 * b - a - c)) - RADIUS)
    return np.array(tops[:count])


def top_of(drop: float, dt: float) -> float:
    """Semi-implicit steps from rest lie on a parabola whose top is half a step before them."""
    return drop + G * dt * dt / 8


@pytest.mark.parametrize("e", [0.3, 0.5, 0.8, 0.9, 1.0])
@pytest.mark.parametrize(("dt", "within"), [(1 / 1000, 0.02), (1 / 60, 0.10), (1 / 30, 0.20)])
def test_bounces_reach_the_height_that_restitution_allows_and_no_more(
    e: float, dt: float, within: float
) -> None:
    count = 3 if e >= 0.5 else 1
    heights = bounces(e, dt, count=count)
    allowed = e ** (2 * np.arange(1, count + 1)) * top_of(1.0, dt)
    assert len(heights) == count
    np.testing.assert_allclose(heights, allowed, rtol=within)
    assert (heights <= allowed * (1 + 1e-6)).all()


@pytest.mark.parametrize("drop", [0.3, 0.77, 1.0, 1.23, 5.0])
def test_a_perfect_bounce_never_gains_wherever_the_step_meets_the_ground(drop: float) -> None:
    heights = bounces(1.0, DT, drop, count=2)
    np.testing.assert_allclose(heights, drop, rtol=0.10)
    assert (heights <= top_of(drop, DT) * (1 + 1e-6)).all()


def test_without_restitution_nothing_bounces() -> None:
    world = World(body(BALL, pos=(0, 0, 1.0)), dt=DT)
    world.step(steps=32)
    z = []
    for _ in range(120):
        world.step()
        z.append(float(world.state.q[2]))
    assert max(z) < RADIUS + 1e-3


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_two_balls_in_line_exchange_what_restitution_says(e: float) -> None:
    """Newton: v1' - v2' = -e (v1 - v2), and the momentum stays."""
    pair = [body(BALL, 1.0, "a", (0, 0, 1)), body(BALL, 3.0, "b", (0.5, 0, 1))]
    world = World(pair, dt=1 / 240, restitution=e, friction=0.0, gravity=(0, 0, 0), projectiles=0)
    started(world, [2.0, *[0.0] * 11]).step(steps=120)
    v = world.state.v[[0, 6]]
    expected = [(1 - 3 * e) / 4 * 2.0, (1 + e) / 4 * 2.0]
    np.testing.assert_allclose(v, expected, atol=1e-9)


def test_a_perfect_cradle_hands_the_speed_to_the_last_ball() -> None:
    row = [body(BALL, 1.0, f"ball-{k}", (0.25 * k, 0, 1)) for k in range(5)]
    world = World(row, dt=1 / 240, restitution=1.0, friction=0.0, gravity=(0, 0, 0), projectiles=0)
    started(world, [1.0, *[0.0] * 29]).step(steps=240)
    np.testing.assert_allclose(world.state.v[::6], [0, 0, 0, 0, 1], atol=1e-9)


def test_two_surfaces_have_the_larger_of_their_restitutions() -> None:
    pair = [body(BALL, 1.0, "a", (0, 0, 1)), body(BALL, 1.0, "b", (0.5, 0, 1))]
    world = World(pair, dt=1 / 240, restitution=[0.8, 0.2], gravity=(0, 0, 0), projectiles=0)
    started(world, [1.0, *[0.0] * 11]).step(steps=120)
    v = world.state.v[[0, 6]]
    np.testing.assert_allclose(v[1] - v[0], 0.8, atol=1e-9)


def test_every_copy_has_its_own_restitution() -> None:
    e = np.array([0.2, 0.5, 0.9])
    world = World(body(BALL, pos=(0, 0, 0.6)), n=3, dt=1 / 1000, restitution=e[:, None])
    top = np.zeros(3)
    world.step(steps=321)  # it lands after 0.319 s
    for _ in range(400):
        world.step()
        top = np.maximum(top, world.state.q[:, 2] - RADIUS)
    np.testing.assert_allclose(top, 0.5 * e**2, rtol=0.02)


@pytest.mark.parametrize("kind", sorted(SOLIDS))
@pytest.mark.parametrize("e", [0.5, 1.0])
def test_tumbling_solids_never_gain_energy_from_bounces(kind: str, e: float) -> None:
    n = 16
    rng = np.random.default_rng(5)
    world = World(body(SOLIDS[kind]), n=n, dt=1 / 240, restitution=e)
    q = np.zeros((n, 7))
    q[:, 2], q[:, 3:] = 1.0, random_turns(rng, n)
    world.reset(State(q, rng.normal(size=(n, 6)) * 2))
    before = energy(world)
    for _ in range(20):
        world.step(steps=24)
        assert (energy(world) <= before * (1 + 1e-6)).all()
