"""Things that fall come to rest, and stay: solids, stacks, coins, dominoes, chains."""

from __future__ import annotations

import numpy as np
import pytest
from objects import DT, SOLIDS, UPRIGHT, body, deepest, energy, gem, random_turns, started, turned

from poise import Character, Joint, Link, State, World, dynamics
from poise.math.rotation import quat_matrix
from poise.model.shape import Shape
from poise.simulation.contact import HeightField, Plane

both_dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])


@both_dtypes
@pytest.mark.parametrize("kind", sorted(SOLIDS))
def test_a_solid_dropped_in_any_pose_settles_with_under_a_millimetre_of_depth(
    kind: str, dtype: str
) -> None:
    n, seconds = 8, 6
    world = World(body(SOLIDS[kind]), n=n, dt=DT, dtype=dtype)
    q = np.zeros((n, 7))
    q[:, 2], q[:, 3:] = 0.6, random_turns(np.random.default_rng(1), n)
    world.reset(State(q))
    world.step(steps=60 * seconds)
    assert not world.diverged
    assert deepest(world) < 1e-3
    # a ball, a lying capsule and a disc on its rim roll on for ever on a hard ground: sliding
    # friction does not stop them, and nothing here resists rolling
    if kind in ("box", "mesh"):
        assert np.abs(world.state.v).max() < 1e-3
    else:
        assert np.abs(world.state.v[:, 2]).max() < 1e-3


@pytest.mark.parametrize("kind", sorted(SOLIDS))
def test_the_ground_carries_the_weight_of_what_rests_on_it(kind: str) -> None:
    world = World(body(SOLIDS[kind], mass=7.0, pos=(0, 0, 0.4)), dt=DT)
    world.step(steps=480)
    # the mean over half a second: a rolling solid rocks by a little
    force = np.zeros(3)
    for _ in range(30):
        world.step()
        force += world.contacts.force.sum(axis=0) / 30
    assert force[2] == pytest.approx(7.0 * 9.81, rel=2e-3)


def test_a_contact_says_who_touches_what_and_where() -> None:
    lying = Shape("box", (0.5, 0.5, 0.1), pos=(3.0, 0.0, 0.1))
    things = [
        body(Shape("box", (0.1, 0.1, 0.1)), name="low", pos=(0, 0, 0.1)),
        body(Shape("box", (0.1, 0.1, 0.1)), name="high", pos=(3, 0, 0.3)),
    ]
    world = World(things, dt=DT, obstacles=[lying])
    world.step(steps=60)
    seen = world.contacts
    assert seen.link.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert seen.other.tolist() == [-1, -1, -1, -1, -2, -2, -2, -2]
    np.testing.assert_allclose(seen.normal, [[0, 0, 1]] * 8, atol=1e-9)
    np.testing.assert_allclose(seen.point[:4, 2], 0.0, atol=1e-3)
    np.testing.assert_allclose(seen.point[4:, 2], 0.2, atol=1e-3)
    np.testing.assert_allclose(np.abs(seen.point[:4, :2]), 0.1, atol=1e-3)


@pytest.mark.parametrize("dt", [1 / 30, 1 / 60, 1 / 240])
def test_a_stack_of_ten_boxes_stands_ten_seconds(dt: float) -> None:
    shape = Shape("box", (0.2, 0.2, 0.1))
    stack = [body(shape, name=f"box-{k}", pos=(0, 0, 0.1 + 0.2 * k)) for k in range(10)]
    world = World(stack, dt=dt, projectiles=0)
    world.step(steps=round(10 / dt))
    place = world.state.q.reshape(10, 7)
    # upright, where it was; each gap may be a millimetre deep
    assert np.abs(place[:, :2]).max() < 1e-3
    np.testing.assert_allclose(place[:, 2], 0.1 + 0.2 * np.arange(10), atol=10e-3)
    np.testing.assert_allclose(np.abs(place[:, 3]), 1.0, atol=1e-4)
    assert np.abs(world.state.v).max() < 1e-3
    assert deepest(world) < 1e-3


def test_every_box_of_a_stack_carries_those_above_it() -> None:
    shape = Shape("box", (0.2, 0.2, 0.1))
    stack = [body(shape, name=f"box-{k}", pos=(0, 0, 0.1 + 0.2 * k)) for k in range(5)]
    world = World(stack, dt=DT, projectiles=0)
    world.step(steps=600)
    seen = world.contacts
    for k in range(5):
        below = (np.maximum(seen.link, seen.other) == k) & (np.minimum(seen.link, seen.other) < k)
        carried = np.abs(seen.force[below, 2]).sum()
        assert carried == pytest.approx((5 - k) * 9.81, rel=1e-2)


@pytest.mark.parametrize("kind", sorted(SOLIDS))
def test_a_solid_rests_on_a_height_field_without_sinking(kind: str) -> None:
    n = 8
    heights = 0.1 * np.random.default_rng(2).normal(size=(20, 20))
    world = World(body(SOLIDS[kind]), n=n, dt=DT, ground=HeightField(heights, 0.5))
    rng = np.random.default_rng(3)
    q = np.zeros((n, 7))
    q[:, :2], q[:, 2], q[:, 3:] = rng.uniform(-3, 3, (n, 2)), 1.0, random_turns(rng, n)
    world.reset(State(q))
    before = energy(world)
    world.step(steps=1080)
    depth = 0.0
    for _ in range(120):
        world.step()
        depth = max(depth, deepest(world))
    assert depth < 2e-3
    assert (energy(world) < before - 0.5).all()
    # balls and capsules roll to and fro in the bowls between the grid's points
    if kind in ("box", "cylinder", "mesh"):
        assert np.abs(world.state.v).max() < 1e-2


@pytest.mark.parametrize("slope", [0.2, 1.0])
def test_a_ball_comes_to_rest_in_a_valley(slope: float) -> None:
    """It touches both sides at once: where it lies, friction on both stops it."""
    heights = np.tile(slope * np.abs(np.arange(-4, 5)), (9, 1))
    ball = body(SOLIDS["sphere"], pos=(0.05, 0.3, 1.0))
    world = World(ball, dt=DT, ground=HeightField(heights, 1.0))
    world.step(steps=1800)
    # it may still roll along the valley
    v = world.state.v
    assert abs(v[0]) < 1e-3
    assert abs(v[2]) < 1e-3
    assert deepest(world) < 1e-3


def test_a_level_height_field_is_the_plane() -> None:
    """Two ways through the ground's code, one physics."""
    shape = Shape("box", (0.1, 0.15, 0.2))
    start = body(shape, pos=(0.05, 0.02, 0.5), quat=turned(35, (1, 2, 0.5)))
    worlds = [
        World(start, dt=1 / 240, ground=ground)
        for ground in (Plane(height=0.1), HeightField(np.full((4, 4), 0.1), 5.0))
    ]
    for world in worlds:
        world.step(steps=480)
    # impacts magnify what rounding leaves apart
    np.testing.assert_allclose(worlds[0].state.q, worlds[1].state.q, atol=1e-6)


def test_a_spinning_coin_only_loses_energy_and_comes_to_lie_flat() -> None:
    """Euler's disk, spun too slowly to stay on its rim (10 of some 13 rad/s)."""
    radius, half = 0.05, 0.005
    coin = Shape("cylinder", (radius, half))
    world = World(body(coin, 0.1, pos=(0, 0, radius + half), quat=turned(80)), dt=1 / 240)
    # its own x axis points down
    started(world, [0, 0, 0, -10.0, 0, 0])
    kept = [float(energy(world))]
    for _ in range(240 * 10):
        world.step()
        kept.append(float(energy(world)))
    # potential energy belongs to the end of a step, kinetic to its middle
    assert max(np.diff(kept)) < 1e-3 * kept[0]
    axis = quat_matrix(world.state.q[3:])[:, 2]
    assert abs(axis[2]) > 0.9999
    assert np.abs(world.state.v).max() < 1e-2


def test_a_row_of_dominoes_falls_in_order() -> None:
    count, size, apart = 12, (0.01, 0.05, 0.1), 0.1
    row = [
        body(Shape("box", size), 0.2, f"domino-{k}", (k * apart, 0, size[2])) for k in range(count)
    ]
    world = World(row, dt=1 / 240, projectiles=0)
    world.push("domino-0/domino-0", (2.0, 0, 0), 0.05, point=(0, 0, 0.09))
    fell: list[int] = []
    for _ in range(240 * 4):
        world.step()
        q = world.state.q.reshape(count, 7)
        upright = 1 - 2 * (q[:, 4] ** 2 + q[:, 5] ** 2)
        fell += [k for k in range(count) if upright[k] < np.cos(np.pi / 4) and k not in fell]
    assert fell == list(range(count))
    assert np.abs(world.state.v).max() < 0.02
    assert deepest(world) < 1e-3


def test_dominoes_that_nobody_pushes_stand() -> None:
    size = (0.01, 0.05, 0.1)
    row = [body(Shape("box", size), 0.2, f"domino-{k}", (k * 0.1, 0, size[2])) for k in range(12)]
    world = World(row, dt=DT, projectiles=0)
    world.step(steps=600)
    np.testing.assert_allclose(world.state.q.reshape(12, 7)[:, 3], 1.0, atol=1e-6)


def chain(links: int, length: float = 0.1) -> Character:
    """Capsules end to end along x, in ball joints, free, at the height of a table."""
    shape = Shape("capsule", (0.02, 0.5 * length), pos=(0.5 * length, 0, 0), quat=turned(90))
    parts = []
    for k in range(links):
        parts.append(
            Link(
                f"link-{k}",
                parent=f"link-{k - 1}" if k else None,
                pos=(length, 0.0, 0.0) if k else (0.0, 0.0, 1.021),
                joints=(Joint(f"joint-{k}", "ball" if k else "free"),),
                mass=0.1,
                com=shape.pos,
                inertia=(1e-5, 1.1e-4, 1.1e-4),
                shapes=(shape,),
            )
        )
    return Character("chain", tuple(parts))


@pytest.mark.parametrize(("over", "slides"), [(3, False), (8, True)])
def test_a_chain_over_the_edge_of_a_table_stays_or_slides_as_friction_says(
    over: int, slides: bool
) -> None:
    """With the share x beyond the edge, it slides once x > mu (1 - x); round the edge even less.

    mu = 0.5: 3 of 12 links hang (0.25 < 0.375), 8 of 12 (0.67 > 0.33).
    """
    count, length = 12, 0.1
    table = Shape("box", (1.5, 0.5, 0.5), pos=(-1.5, 0.0, 0.5))
    one = chain(count, length)
    world = World(one, dt=1 / 240, obstacles=[table], friction=0.5, ground=False, projectiles=0)
    q = np.array(one.rest_q)
    q[0] = -(count - over) * length
    world.reset(State(q))
    world.step(steps=240 * (1 if slides else 6))
    first = dynamics.forward_kinematics(one, world.state.q)[0][0]
    fell = first[2] < 0.9 or first[0] > q[0] + 0.3
    assert fell == slides
    if not slides:
        # the links beyond the edge hang down, and all is still
        ends = dynamics.forward_kinematics(one, world.state.q)[0]
        assert ends[-1][2] < 1.0 - (over - 2) * length
        assert np.abs(world.state.v).max() < 0.1
    assert deepest(world) < 2e-3


def test_a_thrown_gem_rests_on_one_of_its_faces() -> None:
    """At rest on a plane the lowest three corners are level, within the depth allowed."""
    shape = gem(seed=4)
    world = World(body(shape, pos=(0, 0, 0.5), quat=(0.5, 0.1, 0.7, 0.2)), dt=DT)
    started(world, [1.0, 0, 0, 3.0, 0, 0]).step(steps=600)
    corners = np.array(shape.vertices) @ quat_matrix(world.state.q[3:]).T
    height = np.sort(corners[:, 2] + world.state.q[2])
    assert height[0] > -1e-3
    assert height[2] < 1e-3


def test_an_object_at_rest_does_not_creep() -> None:
    world = World(body(SOLIDS["box"], pos=(0, 0, 0.3), quat=UPRIGHT), n=2, dt=DT)
    world.step(steps=60)
    before = world.state.q
    world.step(steps=1200)
    np.testing.assert_allclose(world.state.q, before, atol=1e-5)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_a_chain_without_any_damping_falls_off_a_table_and_comes_to_rest(dt: float) -> None:
    """Its links turn by half a radian in a step; the ground must not make energy of it."""
    table = Shape("box", (1.5, 0.5, 0.5), pos=(-1.5, 0.0, 0.5))
    one = chain(12)
    world = World(one, dt=dt, obstacles=[table], friction=0.5, projectiles=0)
    q = np.array(one.rest_q)
    q[0] = -0.4
    world.reset(State(q))
    world.step(steps=round(6 / dt))
    assert np.abs(world.state.v).max() < 1e-3
    assert deepest(world) < 1e-3
