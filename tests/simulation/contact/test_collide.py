"""Pairs of shapes against MuJoCo: how far, which way, and where."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import SOLIDS, body, distances, random_turns

from poise import State, World
from poise.math.rotation import quat_matrix
from poise.model.shape import Shape
from poise.simulation.contact import HeightField

mujoco = pytest.importorskip("mujoco")

Array = NDArray[np.float64]

SHAPES = {
    "sphere": Shape("sphere", (0.12,)),
    "capsule": Shape("capsule", (0.08, 0.15)),
    "box": Shape("box", (0.1, 0.15, 0.2)),
}
PAIRS = [(a, b) for a in SHAPES for b in SHAPES if a <= b]
NEAR = -1e-5
"""Shapes that do not overlap at the start of a step, and do not meet in it, are no contact."""


def theirs(a: Shape, b: Shape, q: Array) -> tuple[Array, Array]:
    """Signed distances of n pairs by MuJoCo [m], and the directions from b to a."""
    geoms = "".join(
        f"<body><freejoint/><geom type='{s.kind}' size='{' '.join(map(repr, s.size))}'/></body>"
        for s in (a, b)
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    return distances(model, q)


def ours(a: Shape, b: Shape, q: Array) -> World:
    """A world that has looked at these pairs once."""
    world = World(
        [body(a, name="a"), body(b, name="b")],
        n=len(q),
        dt=1e-6,
        gravity=(0, 0, 0),
        ground=False,
        projectiles=0,
        threads=1,
    )
    world.reset(State(q))
    world.step()
    return world


def poses(seed: int, n: int) -> Array:
    rng = np.random.default_rng(seed)
    q = np.zeros((n, 14))
    way = rng.normal(size=(n, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    q[:, :3] = way * rng.uniform(0.15, 0.4, (n, 1))
    q[:, 3:7], q[:, 10:14] = random_turns(rng, n), random_turns(rng, n)
    return q


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_the_nearest_contact_is_as_far_as_mujoco_says(one: str, two: str) -> None:
    a, b = SHAPES[one], SHAPES[two]
    q = poses(0, 400)
    distance, way = theirs(a, b, q)
    seen = ours(a, b, q).contacts
    checked = 0
    for i in np.flatnonzero((distance > -0.03) & (distance < NEAR)):
        rows = np.flatnonzero(seen.copy == i)
        assert len(rows), f"pair {i}: {distance[i]} m apart, and not seen"
        nearest = rows[seen.depth[rows].argmax()]
        # MuJoCo's own iterations end at 1e-6
        same = -seen.depth[nearest] == pytest.approx(distance[i], abs=2e-5)
        # two boxes meet with a face, unless two edges are clearly nearer
        bias = 0.05 if (one, two) == ("box", "box") else 0.0
        assert same or 0 < seen.depth[nearest] + distance[i] < -bias * distance[i], f"pair {i}"
        if same and distance[i] < -1e-3:
            assert seen.normal[nearest] @ way[i] > 0.999, f"pair {i}"
        checked += 1
    assert checked > 20


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_shapes_that_are_far_apart_are_no_contact(one: str, two: str) -> None:
    a, b = SHAPES[one], SHAPES[two]
    q = poses(1, 300)
    distance, _ = theirs(a, b, q)
    seen = ours(a, b, q).contacts
    far = np.flatnonzero(distance > 1e-5)
    assert len(far) > 20
    assert not np.isin(seen.copy, far).any()


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_normals_point_from_the_other_to_the_link(one: str, two: str) -> None:
    """And moving the link along the normal by the depth frees the deepest contact."""
    a, b = SHAPES[one], SHAPES[two]
    q = poses(2, 200)
    seen = ours(a, b, q).contacts
    moved, touched = q.copy(), np.zeros(len(q), bool)
    for i in range(len(q)):
        rows = np.flatnonzero(seen.copy == i)
        if not len(rows) or not 0 < seen.depth[rows].max() < 0.03:
            continue
        deepest = rows[seen.depth[rows].argmax()]
        sign = 1 if seen.link[deepest] == 0 else -1
        moved[i, :3] += sign * seen.normal[deepest] * (seen.depth[deepest] + 1e-4)
        touched[i] = True
    assert touched.sum() > 5
    distance, _ = theirs(a, b, moved)
    assert (distance[touched] > 0).all()


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_the_order_of_two_shapes_does_not_matter(one: str, two: str) -> None:
    a, b = SHAPES[one], SHAPES[two]
    q = poses(3, 100)
    swapped = np.concatenate([q[:, 7:], q[:, :7]], axis=1)
    depths = []
    for first, second, pose in ((a, b, q), (b, a, swapped)):
        seen = ours(first, second, pose).contacts
        deepest = np.full(len(q), -1.0)
        np.maximum.at(deepest, seen.copy, seen.depth)
        depths.append(deepest)
    np.testing.assert_allclose(depths[0], depths[1], atol=1e-9)


def test_a_box_on_a_box_touches_at_the_corners_of_what_they_share() -> None:
    """Turned by 45 degrees the shared face is an octagon; four points span most of it."""
    lower, upper = Shape("box", (0.2, 0.2, 0.1)), Shape("box", (0.2, 0.2, 0.1))
    half = np.pi / 8
    q = np.array([[0, 0, 0.199, np.cos(half), 0, 0, np.sin(half), 0, 0, 0, 1, 0, 0, 0]])
    seen = ours(upper, lower, np.repeat(q, 2, axis=0)).contacts
    point = seen.point[seen.copy == 0]
    assert len(point) == 4
    np.testing.assert_allclose(np.abs(seen.normal[:, 2]), 1.0, atol=1e-9)
    np.testing.assert_allclose(seen.depth, 1e-3, atol=1e-9)
    # their middle is near the boxes' common axis, and they spread
    assert np.abs(point[:, :2].mean(axis=0)).max() < 0.03
    assert np.linalg.norm(point[:, :2], axis=1).min() > 0.15


def test_a_lying_capsule_touches_a_box_at_both_ends() -> None:
    q = np.array([[0, 0, 0.279, np.sqrt(0.5), 0, np.sqrt(0.5), 0, 0, 0, 0, 1, 0, 0, 0]])
    box = Shape("box", (0.3, 0.3, 0.2))
    seen = ours(SHAPES["capsule"], box, np.repeat(q, 2, axis=0)).contacts
    x = np.sort(seen.point[seen.copy == 0, 0])
    assert x[0] == pytest.approx(-0.15, abs=1e-6)
    assert x[-1] == pytest.approx(0.15, abs=1e-6)


@pytest.mark.parametrize("kind", sorted(SOLIDS))
def test_the_depth_in_the_plane_is_that_of_the_lowest_point(kind: str) -> None:
    shape, n = SOLIDS[kind], 50
    rng = np.random.default_rng(4)
    q = np.zeros((n, 7))
    q[:, 2], q[:, 3:] = rng.uniform(0.02, 0.3, n), random_turns(rng, n)
    world = World(body(shape), n=n, dt=1e-6, gravity=(0, 0, 0), projectiles=0)
    world.reset(State(q))
    world.step()
    seen = world.contacts
    for i in range(n):
        down = quat_matrix(q[i, 3:])[2]
        lowest = q[i, 2] + _support(shape, -down) if shape.kind != "sphere" else q[i, 2] - 0.1
        rows = seen.depth[seen.copy == i]
        if lowest > 1e-9:
            assert not len(rows)
        elif lowest < NEAR:
            assert rows.max() == pytest.approx(-lowest, abs=1e-9)


def _support(shape: Shape, way: Array) -> float:
    """How low the shape reaches: minus its extent along a direction in its own frame."""
    if shape.kind == "mesh":
        return -float((np.array(shape.vertices) @ way).max())
    if shape.kind == "box":
        return -float(np.abs(way) @ shape.size)
    radius, half = shape.size
    if shape.kind == "capsule":
        return -float(abs(way[2]) * half + radius)
    return -float(abs(way[2]) * half + radius * np.hypot(way[0], way[1]))


def test_a_ball_over_a_ramp_of_a_height_field_is_as_far_as_from_its_plane() -> None:
    slope = np.tile(0.3 * np.arange(20.0) * 0.25, (20, 1))
    field = HeightField(slope, 0.25, origin=(0.0, 0.0))
    rng = np.random.default_rng(5)
    n = 40
    q = np.tile([0, 0, 0, 1.0, 0, 0, 0], (n, 1))
    q[:, :2] = rng.uniform(1.0, 3.5, (n, 2))
    q[:, 2] = 0.3 * q[:, 0] + rng.uniform(0.06, 0.112, n)
    world = World(
        body(SOLIDS["sphere"]), n=n, dt=1e-6, gravity=(0, 0, 0), ground=field, projectiles=0
    )
    world.reset(State(q))
    world.step()
    seen = world.contacts
    k = 1 / np.sqrt(1.09)
    expected = (q[:, 2] - 0.3 * q[:, 0]) * k - 0.1
    for i in np.flatnonzero(expected < NEAR):
        rows = seen.copy == i
        assert -seen.depth[rows].max() == pytest.approx(expected[i], abs=1e-9)
        np.testing.assert_allclose(seen.normal[rows][0], [-0.3 * k, 0, k], atol=1e-9)
