"""Hulls and the search for nearest points, with coal, NumPy and MuJoCo as second opinions."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import DT, G, body, deepest, energy, gem, random_turns, started, turned

from poise import PoiseError, State, World, load_character
from poise.math.rotation import quat_matrix
from poise.model.shape import Shape
from poise.simulation.contact import HeightField
from poise.simulation.contact.convex import touches
from poise.simulation.contact.hull import hull_of

Array = NDArray[np.float64]


def pebble(corners: int = 1000, half: Any = (0.1, 0.07, 0.25), seed: int = 0) -> Shape:
    """A mesh of many corners, all of its hull."""
    x = np.random.default_rng(seed).normal(size=(corners, 3))
    return Shape.mesh(x / np.linalg.norm(x, axis=1, keepdims=True) * half)


def block(*half: float, **where: Any) -> Shape:
    signs = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    return Shape.mesh(np.array(signs) * half, **where)


SHAPES = {
    "sphere": Shape("sphere", (0.12,)),
    "capsule": Shape("capsule", (0.08, 0.15)),
    "box": Shape("box", (0.1, 0.15, 0.2)),
    "cylinder": Shape("cylinder", (0.1, 0.15)),
    "gem": gem(0.2, 24),
    "pebble": pebble(),
}
PAIRS = list(combinations_with_replacement(SHAPES, 2))


def poses(seed: int, n: int, most: float = 0.6) -> Array:
    """Random poses of two links, the first within `most` of the second, shape (n, 2, 7)."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=(n, 3))
    q = np.zeros((n, 2, 7))
    q[:, 1, :3] = rng.normal(size=3)
    q[:, 0, :3] = q[:, 1, :3] + way / np.linalg.norm(way, axis=1, keepdims=True) * rng.uniform(
        0.05, most, (n, 1)
    )
    q[:, 0, 3:], q[:, 1, 3:] = random_turns(rng, n), random_turns(rng, n)
    return q


# ---- nearest points


def by_coal(a: Shape, b: Shape, q: Array) -> tuple[Array, Array]:
    """Signed distances, and the directions from b to a."""
    coal = pytest.importorskip("coal")

    def geometry(shape: Shape) -> Any:
        if shape.kind == "sphere":
            return coal.Sphere(*shape.size)
        if shape.kind == "box":
            return coal.Box(*(2.0 * s for s in shape.size))
        if shape.kind != "mesh":
            kind = coal.Capsule if shape.kind == "capsule" else coal.Cylinder
            return kind(shape.size[0], 2.0 * shape.size[1])
        used, triangles = np.unique(shape.triangles, return_inverse=True)
        points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for x in np.array(shape.vertices)[used]:
            points.append(x)
        for face in triangles.reshape(-1, 3).tolist():
            faces.append(coal.Triangle(*face))
        return coal.Convex(points, faces)

    one, two = geometry(a), geometry(b)
    distance, way = np.zeros(len(q)), np.zeros((len(q), 3))
    for i, (first, second) in enumerate(q):
        request, result = coal.DistanceRequest(True), coal.DistanceResult()
        request.gjk_tolerance = request.epa_tolerance = 1e-8
        at = [coal.Transform3s(quat_matrix(x[3:]), x[:3]) for x in (first, second)]
        distance[i] = coal.distance(one, at[0], two, at[1], request, result)
        way[i] = -result.normal
    return distance, way


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_distance_depth_and_direction_are_those_of_coal(one: str, two: str) -> None:
    q = poses(3, 100)
    a, b = SHAPES[one], SHAPES[two]
    distance, way = by_coal(a, b, q)
    found = touches(a, b, q, 2.0).nearest
    # deep inside of a cylinder, iterations of either end early
    sure = np.abs(distance) < 1e9
    if "cylinder" in (one, two):
        sure &= distance > -0.03
    assert sure.sum() > 50
    assert np.abs(found[sure, 0] - distance[sure]).max() < 1e-6
    apart = sure & (distance > 1e-3)
    assert (np.sum(found[apart, 1:4] * way[apart], axis=1) > 1.0 - 1e-6).all()


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_the_nearest_points_of_b_and_a_are_those_of_a_and_b(one: str, two: str) -> None:
    q = poses(4, 60)
    there = touches(SHAPES[one], SHAPES[two], q, 2.0).nearest
    back = touches(SHAPES[two], SHAPES[one], q[:, ::-1].copy(), 2.0).nearest
    # deep inside there are ties, and cylinders are only refined so far
    apart = there[:, 0] > 1e-3
    assert apart.sum() > 10
    np.testing.assert_allclose(there[apart, 0], back[apart, 0], atol=1e-8)
    np.testing.assert_allclose(there[apart, 1:4], -back[apart, 1:4], atol=1e-4)


def test_the_furthest_of_a_thousand_corners_is_found() -> None:
    """A hull above a wide box: NumPy looks at every corner."""
    shape, table = pebble(), Shape("box", (9.0, 9.0, 1.0))
    n = 300
    q = np.zeros((n, 2, 7))
    q[:, 0, 2], q[:, 1, 3] = 1.5, 1.0
    q[:, 0, 3:] = random_turns(np.random.default_rng(0), n)
    gap = touches(shape, table, q, 9.0).nearest[:, 0]
    x = np.array(shape.vertices)
    lowest = [(x @ quat_matrix(turn).T)[:, 2].min() for turn in q[:, 0, 3:]]
    np.testing.assert_allclose(gap, np.add(lowest, 0.5), atol=1e-12)


def test_a_patch_lies_on_both_faces() -> None:
    q = np.zeros((1, 2, 7))
    q[0, 0], q[0, 1] = (0.05, 0.02, 0.199, *turned(30, (0, 0, 1))), (0, 0, 0, 1, 0, 0, 0)
    found = touches(block(0.1, 0.1, 0.1), Shape("cylinder", (0.3, 0.1)), q, 0.1).points[0]
    np.testing.assert_allclose(found[:, 0], -0.001, atol=1e-12)
    np.testing.assert_allclose(found[:, 6], 0.1, atol=1e-12)
    corners = np.array([(x, y) for x in (-0.1, 0.1) for y in (-0.1, 0.1)])
    c, s = np.cos(np.radians(30)), np.sin(np.radians(30))
    there = corners @ np.array([[c, s], [-s, c]]) + (0.05, 0.02)
    np.testing.assert_allclose(np.sort(found[:, 4]), np.sort(there[:, 0]), atol=1e-12)


# ---- fast pairs


@pytest.mark.parametrize("shape", [block(0.1, 0.1, 0.1), Shape("cylinder", (0.1, 0.1))])
@pytest.mark.parametrize(("speed", "clear"), [(6.0, 0.02), (25.0, 0.05)])
def test_what_flies_past_an_edge_is_not_struck(shape: Shape, speed: float, clear: float) -> None:
    wall = block(0.5, 0.5, 0.5)
    for start in np.linspace(-0.1, 0.1, 7):
        thing = body(shape, pos=(-0.9 + start, 0.0, 0.6 + clear))
        world = World(thing, dt=DT, obstacles=[wall], ground=False, gravity=(0, 0, 0))
        started(world, [speed, 0.0, 0.0, 0.0, 0.0, 0.0]).step(steps=30)
        np.testing.assert_allclose(world.state.v, [speed, 0, 0, 0, 0, 0], atol=1e-9)


@pytest.mark.parametrize(("speed", "dt"), [(5.0, DT), (20.0, DT), (50.0, DT), (100.0, DT / 2)])
@pytest.mark.parametrize("shape", [pebble(60, (0.1, 0.1, 0.1)), Shape("cylinder", (0.1, 0.05))])
def test_a_thin_wall_stops_a_fast_solid(shape: Shape, speed: float, dt: float) -> None:
    wall = block(0.01, 1.0, 1.0)
    for start in np.linspace(0.7, 1.2, 6):
        thing = body(shape, pos=(start, 0.0, 0.0))
        world = World(thing, dt=dt, obstacles=[wall], ground=False, gravity=(0, 0, 0))
        started(world, [-speed, 0.1, 0.0, 0.3, 0.0, 0.2]).step(steps=40)
        assert world.state.q[0] > 0.0


# ---- rest


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_hull_of_a_thousand_corners_comes_to_rest_on_four_or_fewer(dtype: str) -> None:
    shape = pebble(1000, (0.12, 0.1, 0.05))
    n = 4
    world = World(body(shape, 2.0), n=n, dt=1 / 240, dtype=dtype, projectiles=0)
    q = np.tile(world.scene.forest.rest_q, (n, 1))
    q[:, 2], q[:, 3:] = 0.2, random_turns(np.random.default_rng(1), n)
    world.reset(State(q))
    world.step(steps=1800)
    before = world.state.q.copy()
    world.step(steps=600)
    # solved to 1e-5 m/s, in float32 3e-5; corners half a centimetre apart leave this much of a turn
    assert np.abs(world.state.v[:, :3]).max() < (1e-4 if dtype == "float64" else 3e-4)
    assert np.abs(world.state.v[:, 3:]).max() < 5e-3
    assert np.abs(world.state.q - before).max() < 2e-4
    assert deepest(world) < 1e-3
    for copy in range(n):
        mine = world.contacts.rows(world.contacts.copy == copy)
        assert 1 <= len(mine.depth) <= 4
        assert mine.force.sum(axis=0)[2] == pytest.approx(2.0 * G, rel=1e-2)


def test_a_gem_rests_as_high_as_in_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    shape = gem(0.15, 20)
    world = World(body(shape, 2.0, pos=(0, 0, 0.2)), dt=1 / 240, projectiles=0)
    world.step(steps=1200)
    vertices = " ".join(map(repr, np.array(shape.vertices).ravel().tolist()))
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><asset><mesh name='m' vertex='{vertices}'/></asset><worldbody>"
        "<geom type='plane' size='5 5 1'/><body><freejoint/><geom type='mesh' mesh='m' mass='2'/>"
        "</body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    # MuJoCo moves a mesh to its center, where ours is already
    data.qpos[:] = world.state.q
    mujoco.mj_step(model, data, 1000)
    np.testing.assert_allclose(data.qpos[2], world.state.q[2], atol=2e-3)
    turn = np.abs(np.dot(data.qpos[3:] / np.linalg.norm(data.qpos[3:]), world.state.q[3:]))
    assert turn > 0.999


def test_a_hull_tumbling_on_the_ground_gains_no_energy() -> None:
    n = 8
    rng = np.random.default_rng(2)
    world = World(body(pebble(200, (0.1, 0.07, 0.2)), 1.0), n=n, dt=1 / 240, projectiles=0)
    q = np.tile(world.scene.forest.rest_q, (n, 1))
    q[:, 2], q[:, 3:] = 0.4, random_turns(rng, n)
    world.reset(State(q, 2.0 * rng.normal(size=(n, 6))))
    last = start = energy(world)
    for _ in range(120):
        world.step(steps=4)
        now = energy(world)
        assert (now < last + 2e-3 * np.abs(start)).all()
        last = now


def test_a_hull_rests_on_a_height_field() -> None:
    x = np.linspace(-1.0, 1.0, 21)
    field = HeightField(0.05 * np.cos(3.0 * x)[:, None] * np.cos(2.0 * x)[None], 0.1)
    world = World(body(pebble(300, (0.1, 0.08, 0.04)), pos=(0.2, 0.1, 0.3)), dt=DT, ground=field)
    world.step(steps=600)
    assert np.abs(world.state.v).max() < 1e-2
    assert deepest(world) < 2e-3


def test_a_character_of_meshes_stands_on_a_height_field() -> None:
    world = World(load_character("lamp"), dt=DT, ground=HeightField(np.zeros((5, 5)), 0.5))
    world.step(steps=30)
    assert deepest(world) < 1e-3
    assert world.contacts.force.sum(axis=0)[2] > 1.0


def test_solids_that_start_inside_each_other_come_apart_gently() -> None:
    pair = [body(pebble(200), name="a", pos=(0, 0, 1)), body(gem(0.2), name="b", pos=(0, 0, 1))]
    world = World(pair, dt=DT, gravity=(0, 0, 0), ground=False, projectiles=0)
    world.step(steps=120)
    assert np.abs(world.state.v).max() < 1e-3
    assert np.linalg.norm(world.state.q[:3] - world.state.q[7:10]) < 1.0
    gap = touches(pebble(200), gem(0.2), world.state.q.reshape(1, 2, 7), 1.0).nearest[0, 0]
    assert gap > -1e-3


# ---- hulls


def test_meshes_of_the_same_vertices_share_a_hull() -> None:
    vertices = np.random.default_rng(0).normal(size=(30, 3)).tolist()
    assert hull_of(Shape.mesh(vertices)) is hull_of(Shape.mesh(vertices, pos=(1.0, 0.0, 0.0)))


def test_triangles_in_one_plane_are_one_face() -> None:
    grid = np.linspace(-0.1, 0.1, 7)
    points = [(x, y, z) for x in grid for y in grid for z in (-0.1, 0.1)]
    hull = hull_of(Shape.mesh(points))
    assert hull.loop_size.tolist() == [4] * 6
    turn = 2.0 * np.pi * np.arange(40) / 40
    drum = hull_of(Shape.mesh([(np.cos(a), np.sin(a), z) for a in turn for z in (-1, 1)]))
    assert sorted(drum.loop_size.tolist()) == [4] * 40 + [40] * 2


CUBE = np.array(block(0.1, 0.1, 0.1).vertices)
MENDED = {
    "duplicates": np.concatenate([CUBE, CUBE, CUBE]),
    "nearly the same": np.repeat(CUBE, 10, axis=0)
    + 1e-9 * np.random.default_rng(0).normal(size=(80, 3)),
    "inside": np.concatenate([CUBE, 0.3 * CUBE]),
}


@pytest.mark.parametrize("name", MENDED)
def test_odd_vertices_make_the_same_cube(name: str) -> None:
    table = Shape("box", (0.5, 0.5, 0.1), pos=(0, 0, 0.1))
    for obstacles, height in (((), 0.1), ((table,), 0.3)):
        thing = body(Shape.mesh(MENDED[name]), pos=(0, 0, height + 0.02))
        world = World(thing, dt=DT, obstacles=obstacles)
        world.step(steps=120)
        assert world.state.q[2] == pytest.approx(height, abs=1e-3)
        assert np.abs(world.state.v).max() < 1e-4


REFUSED = {
    "in a plane": (CUBE * (1.0, 1.0, 0.0), "mesh: vertices lie in a plane"),
    "in a line": (CUBE[:, :1] * (1.0, 1.0, 1.0), "mesh: vertices lie in a plane"),
    "NaN": (CUBE * np.nan, r"mesh: vertices\[0\]\[0\] must be finite"),
    "infinite": (np.where(CUBE > 0.0, np.inf, CUBE), r"mesh: vertices\[.*must be finite"),
    "tiny": (CUBE * 1e-9, "mesh: it is smaller than 1e-09 m"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mesh_without_volume_is_refused(name: str) -> None:
    vertices, message = REFUSED[name]
    with pytest.raises(PoiseError, match=message):
        World(body(Shape.mesh(vertices)), dt=DT)


def test_a_thin_plate_and_a_needle_rest() -> None:
    for half in ((0.1, 0.1, 1e-4), (5e-4, 5e-4, 0.1)):
        world = World(body(block(*half), pos=(0, 0, 0.2)), dt=1 / 240, projectiles=0)
        world.step(steps=1200)
        assert np.abs(world.state.v).max() < 1e-2
        assert deepest(world) < 1e-3
