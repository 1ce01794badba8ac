"""Balance and its surroundings: long stands, falls, friction, the ground, the clock, recordings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import poise
from poise import measure
from poise.control.balance import TimeScaled
from poise.reference.balance import lean

BALL = poise.load_character("humanoid-ball")
SQUAT = poise.load_clip("squat", BALL)
STAND = poise.State(SQUAT.q(0.0), np.zeros(BALL.nv))


def world_of(n: int = 1, dt: float = 1 / 60, **options: Any) -> poise.World:
    world = poise.World(BALL, n=n, dt=dt, self_collision=False, projectiles=0, **options)
    world.reset(STAND)
    return world


def feet(world: poise.World) -> NDArray[np.float64]:
    """Places of the corners of the soles [m]."""
    points: NDArray[np.float64] = poise.Balance(world).explain(world.state, STAND)[1]["points"]
    return points


@pytest.mark.parametrize("dt", [1 / 30, 1 / 60, 1 / 120])
def test_who_stands_for_a_minute_stands_still(dt: float) -> None:
    """Feet that stand do not creep: not apart, not back."""
    world = world_of(dt=dt)
    balance = poise.Balance(world)
    poise.run(world, balance, STAND, 5.0)
    start = feet(world)
    poise.run(world, balance, STAND, 60.0)
    assert np.abs(feet(world) - start).max() < 2e-4
    assert np.abs(world.state.v).max() < 1e-3


FALLS = (
    ("impulse", 1 / 30, 8.0),
    ("impulse", 1 / 60, 8.0),
    ("impulse", 1 / 120, 8.0),
    ("penalty", 1e-3, 5.0),
)


@pytest.mark.parametrize(("contact", "dt", "duration"), FALLS)
def test_who_is_thrown_over_falls_and_lies_still(contact: str, dt: float, duration: float) -> None:
    n = 8
    world = world_of(n, dt, contact=contact)
    balance = poise.Balance(world)
    around = np.arange(n) * (2.0 * np.pi / n)
    push = 700.0 * np.stack([np.cos(around), np.sin(around), 0.0 * around], axis=1)
    world.push("chest", push, 0.1, at=0.1)
    height, speed = 0.0, 0.0
    for _ in range(round(duration / dt / balance.requires.steps)):
        world.step(balance(world.state, STAND), steps=balance.requires.steps)
        height = max(height, float(world.state.q[:, 2].max()))
        speed = max(speed, float(np.abs(world.state.v).max()))
    assert len(world.diverged) == 0
    assert (world.state.q[:, 2] < 0.5 * STAND.q[2]).sum() > n // 2  # it was thrown over
    assert height < 1.2 * STAND.q[2]
    assert speed < 40.0
    assert np.abs(world.state.v).max() < 0.05


def test_a_sole_on_its_edge_or_beside_the_body_is_no_support() -> None:
    balance = poise.Balance(world_of())

    def share(q: NDArray[np.float64]) -> list[float]:
        told = balance.explain(poise.State(q, np.zeros(BALL.nv)), STAND)[1]
        return list(told["supports"].values())

    assert min(share(STAND.q)) > 0.99
    tipped = STAND.q.copy()
    turn = np.array([np.cos(np.pi / 4), 0.0, np.sin(np.pi / 4), 0.0])
    ankle = next(joint for joint in BALL.joints if joint.name == "left_ankle")
    tipped[BALL.q_slice(ankle)] = turn
    # as low as before, with the toes down
    low = min(feet_heights(tipped)) - min(feet_heights(STAND.q))
    tipped[2] -= low
    assert share(tipped)[0] == 0.0


def test_who_leans_is_measured_from_the_soles() -> None:
    corners = np.array([[0.0, 0.1, 0.0], [0.2, 0.1, 0.0], [0.2, -0.1, 0.0], [0.0, -0.1, 0.0]])
    assert lean(np.array([0.1, 0.0, 0.9]), corners, 0.0) == 0.0
    assert lean(np.array([0.5, 0.0, 0.9]), corners, 0.3) == pytest.approx(0.5)
    assert lean(np.array([-0.3, -0.5, 0.0]), corners, 0.0) == pytest.approx(500.0)


def feet_heights(q: NDArray[np.float64]) -> list[float]:
    from poise.anatomy.feet import feet_of, positions

    return list(positions(BALL, feet_of(BALL), q)[:, 2])


def test_a_slippery_neighbour_changes_nothing() -> None:
    ends = []
    for neighbour in (0.8, 0.02):
        world = world_of(2, friction=[[neighbour], [0.8]])
        world.push("chest", (150.0, 0.0, 0.0), 0.1, at=0.1)
        poise.run(world, poise.Balance(world), STAND, 1.0)
        ends.append(world.state.q)
    np.testing.assert_array_equal(ends[0][1], ends[1][1])
    assert np.abs(ends[0][0] - ends[1][0]).max() > 0.01


def test_friction_is_that_of_the_soles_and_the_ground() -> None:
    names = [link.name for link in BALL.links]
    friction = np.full(len(names), 0.9)
    friction[names.index("head")] = 0.02
    assert poise.Balance(world_of(friction=friction)).friction == pytest.approx(np.sqrt(0.9 * 0.8))
    friction[names.index("left_foot")] = 0.4
    mine = poise.Balance(world_of(friction=friction, ground_friction=0.1)).friction
    np.testing.assert_allclose(np.sort(mine), np.sqrt([0.04, 0.09]))
    told = poise.Balance(world_of(2, friction=[[0.2], [0.5]]))
    np.testing.assert_allclose(told.friction, [[0.2, 0.2], [0.5, 0.5]])


@pytest.mark.parametrize(
    "ground", [poise.Plane(height=0.5), poise.HeightField(np.full((3, 3), 0.5), 2.0)]
)
def test_the_ground_is_where_the_world_has_it(ground: Any) -> None:
    world = world_of(ground=ground)
    raised = poise.State(STAND.q.copy(), STAND.v)
    raised.q[2] += 0.5
    world.reset(raised)
    balance = poise.Balance(world)
    assert balance.ground == 0.5
    world.push("chest", (100.0, 0.0, 0.0), 0.1, at=0.2)
    poise.run(world, balance, raised, 2.0)
    np.testing.assert_allclose(world.state.q[:3], raised.q[:3], atol=0.02)


def test_ground_that_is_not_level_is_refused() -> None:
    bumps = np.zeros((3, 3))
    bumps[1, 1] = 0.2
    for ground in (poise.Plane(normal=(0.2, 0.0, 1.0)), poise.HeightField(bumps, 1.0)):
        with pytest.raises(poise.PoiseError, match="level ground"):
            poise.Balance(world_of(ground=ground))
        assert poise.Balance(world_of(ground=ground), ground=0.0).ground == 0.0


def test_the_strain_is_where_the_speed_of_the_mass_centre_takes_it() -> None:
    """Of a motion that is followed exactly its own speed is left."""
    balance = poise.Balance(BALL)
    for t in (0.0, 0.3, 0.8, 1.2):
        target: Any = SQUAT.target(t)
        balance(poise.State(target.q, target.v), target)
        momentum = measure.momentum(BALL, target.q, target.v)[0]
        speed = np.linalg.norm(momentum[:2]) / BALL.mass
        assert balance.capture_point_error[0] == pytest.approx(0.3 * speed, abs=1e-9)


def test_a_paced_motion_accelerates_as_its_speed_changes() -> None:
    balance = poise.Balance(BALL)
    paced, h = TimeScaled(SQUAT, balance), 1e-3
    balance.restore([0.05])
    targets: list[Any] = [paced.target(0.5 + h * i) for i in range(4)]
    speeds = [target.v for target in targets]
    np.testing.assert_allclose((speeds[2] - speeds[1]) / h, targets[2].a, atol=0.2)
    then: Any = SQUAT.target(float(targets[2].time))
    assert np.abs(targets[2].a - then.a).max() > 1.0


def test_a_paced_motion_starts_again_with_its_world() -> None:
    paced = TimeScaled(SQUAT, poise.Balance(BALL))
    first: Any = paced.target(0.01)
    paced.target(1.0)
    again: Any = paced.target(0.01)
    np.testing.assert_array_equal(again.q, first.q)


@pytest.mark.parametrize("fps", [30.0, 60.0, 240.0])
def test_a_recording_does_not_change_what_it_records(fps: float) -> None:
    ends = []
    for record in (False, True):
        world = poise.World(BALL, dt=1e-3, contact="penalty", stiffness=2e6,
                            self_collision=False, projectiles=0)  # fmt: skip
        world.reset(STAND)
        world.push("chest", (80.0, 0.0, 0.0), 0.1, at=0.05)
        kept = poise.Recording(world, fps=fps) if record else None
        poise.run(world, poise.Balance(world, rate=100.0), STAND, 0.4, record=kept)
        ends.append(world.state.q)
    np.testing.assert_array_equal(ends[0], ends[1])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"supports": None}, "supports is None"),
        ({"supports": "left_foot"}, "list of links"),
        ({"objectives": 3}, "objectives is 3"),
        ({"goals": [1, 2]}, "goals is"),
        ({"weights": [1]}, "weights is"),
        ({"weights": {"arms": "x"}}, "weights\\['arms'\\]"),
        ({"linear_gains": 5.0}, "pair"),
        ({"friction": 1e9}, "from 0 to 100"),
    ],
)
def test_settings_of_a_wrong_kind_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(poise.PoiseError, match=words):
        poise.Balance(BALL, **given)


def test_a_wrong_memory_is_refused() -> None:
    balance = poise.Balance(BALL)
    for memory in ([], [np.nan], [[1.0, 2.0]]):
        with pytest.raises(poise.PoiseError, match="memory"):
            balance.restore(memory)
        with pytest.raises(poise.PoiseError, match="memory"):
            TimeScaled(SQUAT, balance).restore(memory)
    with pytest.raises(poise.PoiseError, match="no clip"):
        balance.scale_time(STAND)


def test_lying_by_measure_and_by_plan_agree() -> None:
    """Who has fallen plans no forces, whatever its feet touch."""
    world = world_of()
    balance = poise.Balance(world)
    world.push("chest", (700.0, 0.0, 0.0), 0.1, at=0.1)
    poise.run(world, balance, STAND, 4.0)
    assert measure.fallen(BALL, world.state.q, world.contacts)
    told = balance.explain(world.state, STAND)[1]
    assert max(told["supports"].values()) < 1e-3
    assert np.abs(told["forces"]).max(initial=0.0) == 0.0
