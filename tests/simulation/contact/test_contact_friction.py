"""Friction: what sticks, what slides, how fast it stops, and by whose coefficient."""

from __future__ import annotations

import math

import numpy as np
import pytest
from objects import DT, SOLIDS, G, body, started, turned

from poise import State, World
from poise.model.shape import Shape
from poise.simulation.contact import Plane

MU = 0.5
ANGLE = math.degrees(math.atan(MU))
BRICK = Shape("box", (0.2, 0.2, 0.1))

both_inclines = pytest.mark.parametrize("incline", ["gravity", "plane"])


def on_incline(degrees: float, incline: str, dt: float, mu: float = MU) -> World:
    """A brick on a slope that falls along +x: by tilted gravity, or by a tilted plane."""
    a = math.radians(degrees)
    if incline == "gravity":
        down = (G * math.sin(a), 0.0, -G * math.cos(a))
        return World(body(BRICK, pos=(0, 0, 0.1)), dt=dt, friction=mu, gravity=down)
    normal = (math.sin(a), 0.0, math.cos(a))
    pos = tuple(0.1 * x for x in normal)
    brick = body(BRICK, pos=pos, quat=turned(degrees))
    return World(brick, dt=dt, friction=mu, ground=Plane(normal))


@both_inclines
@pytest.mark.parametrize("dt", [1 / 60, 1 / 30])
@pytest.mark.parametrize("below", [0.5, 5.0])
def test_a_brick_sticks_below_the_friction_angle(incline: str, dt: float, below: float) -> None:
    world = on_incline(ANGLE - below, incline, dt)
    world.step(steps=round(1 / dt))
    before = world.state.q
    world.step(steps=round(5 / dt))
    np.testing.assert_allclose(world.state.q, before, atol=1e-4)


@both_inclines
@pytest.mark.parametrize("dt", [1 / 60, 1 / 30])
@pytest.mark.parametrize("above", [0.5, 5.0, 20.0])
def test_a_brick_slides_above_the_friction_angle_as_coulomb_says(
    incline: str, dt: float, above: float
) -> None:
    """a = g (sin a - mu cos a), within 1 %."""
    angle = ANGLE + above
    world = on_incline(angle, incline, dt)
    world.step(steps=round(0.5 / dt))
    before = np.linalg.norm(world.state.v[:3])
    world.step(steps=round(1 / dt))
    a = math.radians(angle)
    expected = G * (math.sin(a) - MU * math.cos(a))
    assert np.linalg.norm(world.state.v[:3]) - before == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("direction", [0.0, 30.0, 45.0, 77.0])
def test_the_friction_cone_is_round(direction: float) -> None:
    """A brick slides as far along the axes of the contact's frame as between them."""
    world = World(body(BRICK, pos=(0, 0, 0.1)), dt=1 / 240, friction=MU)
    a, v = math.radians(direction), 3.0
    started(world, [v * math.cos(a), v * math.sin(a), 0, 0, 0, 0]).step(steps=480)
    x = world.state.q[:2]
    # v^2 / (2 mu g), and half a step of the first velocity
    assert np.linalg.norm(x) == pytest.approx(v * v / (2 * MU * G), abs=v / 240)
    assert math.degrees(math.atan2(x[1], x[0])) == pytest.approx(direction, abs=0.1)


def test_friction_forces_stay_within_the_cone() -> None:
    rng = np.random.default_rng(0)
    n = 16
    world = World(body(SOLIDS["box"]), n=n, dt=DT, friction=0.3)
    q = np.tile([0, 0, 0.5, 1.0, 0, 0, 0], (n, 1))
    world.reset(State(q, rng.normal(size=(n, 6)) * 4))
    for _ in range(120):
        world.step()
        seen = world.contacts
        normal = (seen.force * seen.normal).sum(axis=1)
        tangent = np.linalg.norm(seen.force - normal[:, None] * seen.normal, axis=1)
        assert (normal >= 0).all()
        assert (tangent <= 0.3 * normal * (1 + 1e-6) + 1e-6).all()


def test_without_friction_a_brick_slides_on_for_ever() -> None:
    world = World(body(BRICK, pos=(0, 0, 0.1)), dt=DT, friction=0.0)
    started(world, [2.0, 0, 0, 0, 0, 0]).step(steps=600)
    np.testing.assert_allclose(world.state.v, [2, 0, 0, 0, 0, 0], atol=1e-9)


def test_a_sliding_ball_ends_up_rolling() -> None:
    """Started without spin it rolls in the end, at 5/7 of its speed."""
    world = World(body(SOLIDS["sphere"], pos=(0, 0, 0.1)), dt=1 / 240, friction=0.3)
    started(world, [2.0, 0, 0, 0, 0, 0]).step(steps=480)
    v = world.state.v
    spin = np.linalg.norm(v[3:])
    assert v[0] == pytest.approx(10 / 7, rel=2e-3)
    assert 0.1 * spin == pytest.approx(v[0], rel=2e-3)


def test_every_copy_has_its_own_friction() -> None:
    mu = np.array([0.0, 0.1, 0.2, 0.4, 0.8])
    world = World(body(BRICK, pos=(0, 0, 0.1)), n=5, dt=1 / 240, friction=mu[:, None])
    started(world, [1.0, 0, 0, 0, 0, 0]).step(steps=24)
    expected = np.maximum(1.0 - mu * G * 0.1, 0.0)
    np.testing.assert_allclose(world.state.v[:, 0], expected, atol=1e-3)


def test_two_surfaces_have_the_geometric_mean_of_their_frictions() -> None:
    brick = body(BRICK, pos=(0, 0, 0.1))
    world = World(brick, n=2, dt=1 / 240, friction=[[0.9], [0.2]], ground_friction=0.4)
    started(world, [1.0, 0, 0, 0, 0, 0]).step(steps=6)
    lost = (1.0 - world.state.v[:, 0]) / (G * 6 / 240)
    np.testing.assert_allclose(lost, np.sqrt([0.36, 0.08]), rtol=1e-3)


def test_a_brick_on_a_pulled_sheet_comes_along_or_stays() -> None:
    """The friction between two moving bodies: the sheet pulls with mu m g at most."""
    sheet = body(Shape("box", (2.0, 1.0, 0.05)), 10.0, "sheet", (0, 0, 0.05))
    world = World(
        [sheet, body(BRICK, 2.0, "brick", (0, 0, 0.2))],
        n=2,
        dt=1 / 240,
        friction=0.4,
        ground_friction=0.0,
        projectiles=0,
    )
    # together 30 / 12 = 2.5 < 0.4 g; or too fast: 0.4 g, and the sheet (90 - 0.4 * 2 g) / 10
    world.push("sheet/sheet", np.array([[30.0, 0, 0], [90.0, 0, 0]]), 1.0)
    world.step(steps=60)
    v = world.state.v[:, [0, 6]]
    slip = 0.4 * G
    expected = 0.25 * np.array([[2.5, 2.5], [(90 - 2 * slip) / 10, slip]])
    np.testing.assert_allclose(v, expected, rtol=1e-2)
