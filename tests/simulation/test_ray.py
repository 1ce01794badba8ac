"""Rays against MuJoCo's mj_ray, against planes and against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from poise import HeightField, Plane, PoiseError, Shape, State, World, load_character
from poise.model.character import free_object

mujoco = pytest.importorskip("mujoco")

RNG = np.random.default_rng(5)
CORNERS = RNG.normal(size=(30, 3)) * 0.3
SOLIDS = {
    "sphere": (Shape("sphere", (0.3,)), 'type="sphere" size="0.3"'),
    "capsule": (Shape("capsule", (0.2, 0.4)), 'type="capsule" size="0.2 0.4"'),
    "box": (Shape("box", (0.2, 0.3, 0.4)), 'type="box" size="0.2 0.3 0.4"'),
    "cylinder": (Shape("cylinder", (0.3, 0.2)), 'type="cylinder" size="0.3 0.2"'),
    "mesh": (Shape.mesh(CORNERS.tolist()), 'type="mesh" mesh="m"'),
}
POS, QUAT = (
    (0.3, -0.2, 1.5),
    np.array([0.8, 0.2, -0.4, 0.4]) / np.linalg.norm([0.8, 0.2, -0.4, 0.4]),
)
Array = NDArray[np.float64]


def model(geom: str, assets: str = "") -> Any:
    corners = " ".join(f"{x:.17g}" for x in CORNERS.flat)
    text = f"""<mujoco><asset><mesh name="m" vertex="{corners}"/>{assets}</asset>
        <worldbody>{geom}</worldbody></mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


def mj_rays(model: Any, origins: Array, directions: Array) -> Array:
    """Distances by MuJoCo, infinite where nothing is hit."""
    data, hit = mujoco.MjData(model), np.zeros(1, np.int32)
    mujoco.mj_forward(model, data)
    found = []
    for o, d in zip(origins, directions, strict=True):
        x = mujoco.mj_ray(model, data, o, d / np.linalg.norm(d), None, 1, -1, hit)
        found.append(np.inf if x < 0 else x)
    return np.array(found)


def rays(k: int, center: tuple[float, float, float], size: float) -> tuple[Array, Array]:
    """From all sides, most towards the middle, some from inside."""
    origins = np.array(center) + RNG.normal(size=(k, 3)) * size
    aims = np.array(center) + RNG.normal(size=(k, 3)) * 0.3
    return origins, aims - origins


@pytest.mark.parametrize("kind", [k for k in SOLIDS if k != "mesh"])
@pytest.mark.parametrize("moving", [True, False])
def test_distances_to_solids_are_those_of_mujoco(kind: str, moving: bool) -> None:
    shape, geom = SOLIDS[kind]
    at = f'pos="{POS[0]} {POS[1]} {POS[2]}" quat="{" ".join(map(str, QUAT))}"'
    twin = model(f"<geom {geom} {at}/>")
    if moving:
        body = free_object("thing", shape, mass=1.0)
        world = World(body, dt=0.01, ground=False)
        world.reset(State([*POS, *QUAT]))
    else:
        ball = free_object("ball", Shape("sphere", (0.01,)), mass=1.0)
        placed = Shape(shape.kind, shape.size, POS, tuple(QUAT))
        world = World(ball, dt=0.01, ground=False, obstacles=[placed])
        world.reset(State([99.0, 0, 0, 1, 0, 0, 0]))
    origins, directions = rays(600, POS, 0.7)
    hits = world.ray(origins, directions)
    expected = mj_rays(twin, origins, directions)
    assert 50 < np.isfinite(expected).sum() < 600
    assert np.array_equal(np.isfinite(hits.distance), np.isfinite(expected))
    found = np.isfinite(expected)
    np.testing.assert_allclose(hits.distance[found], expected[found], atol=1e-9, rtol=1e-9)
    assert (hits.link[found] == (0 if moving else -2)).all()


def test_distances_to_a_mesh_are_those_of_mujoco() -> None:
    """MuJoCo shifts a mesh to its center of mass and keeps its vertices as float32."""
    corners = CORNERS.astype(np.float32).astype(np.float64)
    from scipy.spatial import ConvexHull

    hull = ConvexHull(corners)
    used = corners[np.sort(hull.vertices)]
    twin = model('<geom type="mesh" mesh="m"/>')
    data = mujoco.MjData(twin)
    mujoco.mj_forward(twin, data)
    turn, place = data.geom_xmat[0].reshape(3, 3), data.geom_xpos[0]
    inside = twin.mesh_vert.astype(np.float64) @ turn.T + place
    world = World(free_object("mesh", Shape.mesh(inside.tolist()), mass=1.0), dt=0.01, ground=False)
    world.reset(State([0, 0, 0, 1, 0, 0, 0]))
    assert len(used) > 10
    origins, directions = rays(400, (0.0, 0.0, 0.0), 0.7)
    outside = (origins @ hull.equations[:, :3].T + hull.equations[:, 3] > 0.01).any(axis=1)
    origins, directions = origins[outside], directions[outside]
    # faces of a hull that MuJoCo has, or the triangles that Qhull gave it
    faces = ConvexHull(inside).simplices
    hits = world.ray(origins, directions)
    pairs = zip(origins, directions, strict=True)
    expected = np.array([first_triangle(inside[faces], o, d) for o, d in pairs])
    assert np.array_equal(np.isfinite(hits.distance), np.isfinite(expected))
    found = np.isfinite(expected)
    np.testing.assert_allclose(hits.distance[found], expected[found], atol=1e-9)


def first_triangle(triangles: Array, o: Array, d: Array) -> float:
    """Nearest of the triangles (k, 3, 3) along a ray, by solving for barycentric coordinates."""
    d = d / np.linalg.norm(d)
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    m = np.stack([b - a, c - a, np.broadcast_to(-d, a.shape)], axis=2)
    u, v, t = np.linalg.solve(m, (o - a)[..., None])[..., 0].T
    inside = (u >= -1e-12) & (v >= -1e-12) & (u + v <= 1 + 1e-12) & (t >= 0)
    return float(t[inside].min()) if inside.any() else np.inf


HEIGHTS = np.round(RNG.uniform(size=(7, 9)) * 256.0) / 256.0
HEIGHTS.flat[0], HEIGHTS.flat[-1] = 0.0, 1.0
FIELD = HeightField(HEIGHTS, (0.5, 0.25))
BALL = free_object("ball", Shape("sphere", (0.1,)), mass=1.0)


def test_distances_to_a_plane_and_to_a_height_field_are_those_of_mujoco() -> None:
    asset = '<hfield name="h" nrow="7" ncol="9" size="2 0.75 1 0.1"/>'
    for geom, ground in (
        ('<geom type="hfield" hfield="h"/>', FIELD),
        ('<geom type="plane" size="0 0 1"/>', True),
    ):
        twin = model(geom, asset)
        twin.hfield_data[:] = HEIGHTS.ravel()
        world = World(BALL, dt=0.01, ground=ground)
        origins, aims = RNG.uniform((-1.9, -0.7, 0.0), (1.9, 0.7, 0.0), (2, 500, 3))
        origins[:, 2] = 1.7
        aims[:100, :2] = origins[:100, :2]  # straight down
        hits = world.ray(origins, aims - origins, links=False)
        expected = mj_rays(twin, origins, aims - origins)
        np.testing.assert_allclose(hits.distance, expected, atol=1e-9, rtol=1e-9)
        assert (hits.link == -1).all()


def test_heights_below_are_those_of_the_field_and_its_rim_goes_on_level() -> None:
    world = World(BALL, dt=0.01, ground=FIELD)
    down = world.ray(
        [[50.0, 0.1, 9.0], [-50.0, 60.0, 9.0], [0.0, 0.0, 9.0]], (0, 0, -1), links=False
    )
    np.testing.assert_allclose(9.0 - down.distance[1], HEIGHTS[-1, 0])
    np.testing.assert_allclose(9.0 - down.distance[2], HEIGHTS[3, 4])
    far = world.ray([50.0, 0.1, 0.5], (-1.0, 0.0, 0.0), links=False)
    level = np.interp(0.1, np.arange(7) * 0.25 - 0.75, HEIGHTS[:, -1])
    assert 9.0 - down.distance[0] == pytest.approx(level)
    assert far.distance > 47.9 or level > 0.5


def test_the_ground_is_hit_from_above_only() -> None:
    for ground in (True, FIELD, Plane((0.0, 0.6, 0.8), -1.0)):
        world = World(BALL, dt=0.01, ground=ground)
        assert np.isinf(world.ray([0.0, 0.0, -5.0], (0.0, 0.1, 1.0), links=False).distance)


def test_normals_are_those_of_the_surface() -> None:
    """The gradient of the distance over a shift of the origin is normal to the surface."""
    world = World(BALL, dt=0.01, ground=FIELD, obstacles=[s for s, _ in SOLIDS.values()])
    origins, directions = rays(80, (0.0, 0.0, 0.2), 1.2)
    hits = world.ray(origins, directions)
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    step = 1e-6
    for axis in range(3):
        moved = world.ray(origins + step * np.eye(3)[axis], directions)
        # n.(o + e + t' d) = n.(o + t d)
        same = np.isfinite(hits.distance) & (moved.link == hits.link)
        along = np.where(same, np.sum(hits.normal * unit, axis=1), 1.0)
        slope = -hits.normal[:, axis] / along
        same &= np.abs(moved.normal - hits.normal).max(axis=1) < 1e-4
        assert same.sum() > 30
        np.testing.assert_allclose(
            (moved.distance[same] - hits.distance[same]) / step, slope[same], atol=2e-3, rtol=1e-3
        )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_batch_has_rays_of_its_own_in_every_copy(dtype: str) -> None:
    character = load_character("humanoid")
    n = 13
    world = World(character, n=n, dt=0.01, dtype=dtype, threads=2)
    q = np.tile(character.rest_q, (n, 1))
    q[:, 0] = np.arange(n)
    world.reset(State(q))
    origins = q[:, None, :3] + RNG.normal(size=(n, 40, 3))
    hits = world.ray(origins, q[:, None, :3] - origins)
    one = World(character, dt=0.01)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    for k in range(n):
        one.reset(State(q[k]))
        alone = one.ray(origins[k], q[k, :3] - origins[k])
        np.testing.assert_allclose(hits.distance[k], alone.distance, atol=tolerance)
        assert np.mean(hits.link[k] == alone.link) > (0.9 if dtype == "float32" else 0.999)


def test_excluded_links_are_not_hit() -> None:
    character = load_character("humanoid")
    world = World(character, dt=0.01)
    head = world.scene.link_index("head")
    above = [*world.link_poses()[0][head][:2], 5.0]
    first = world.ray(above, (0.0, 0.0, -1.0))
    assert first.link >= 0
    next_hit = world.ray(above, (0.0, 0.0, -1.0), exclude=[int(first.link)])
    assert next_hit.distance > first.distance
    assert world.ray(above, (0.0, 0.0, -1.0), links=False).link == -1
    assert world.ray(above, (0.0, 0.0, -1.0), links=False, ground=False).link == -(2**31)
    assert np.isinf(world.ray(above, (0.0, 0.0, -1.0), max_distance=0.5).distance)


def test_projectiles_are_hit_once_they_are_thrown() -> None:
    world = World(BALL, dt=0.01, ground=False)
    world.reset(State([9.0, 0, 0, 1, 0, 0, 0]))
    assert np.isinf(world.ray([0.0, 0.0, 5.0], (0.0, 0.0, -1.0)).distance)
    index = world.throw((0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
    hit = world.ray([0.0, 0.0, 5.0], (0.0, 0.0, -1.0))
    assert hit.link == index
    assert hit.distance == pytest.approx(3.9)


WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "shape": ((np.zeros((2, 4)), (0, 0, 1)), {}, "origins has shape"),
    "counts": ((np.zeros((2, 3)), np.ones((3, 3))), {}, "each ray has both"),
    "zero": (((0, 0, 1), (0, 0, 0)), {}, "length 0"),
    "nan": (((0, 0, np.nan), (0, 0, 1)), {}, "origins.*finite"),
    "far": (((0, 0, 1), (0, 0, 1)), {"max_distance": -1.0}, "max_distance"),
    "link": (((0, 0, 1), (0, 0, 1)), {"exclude": ["hed"]}, "hed"),
    "name": (((0, 0, 1), (0, 0, 1)), {"exclude": "head"}, "list of links"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rays_are_refused(case: str) -> None:
    arguments, options, message = WRONG[case]
    with pytest.raises(PoiseError, match=message):
        World(load_character("humanoid"), dt=0.01).ray(*arguments, **options)


def test_a_world_without_contact_has_nothing_to_hit() -> None:
    with pytest.raises(PoiseError, match="contact=None"):
        World(BALL, dt=0.01, contact=None).ray((0, 0, 1), (0, 0, -1))
