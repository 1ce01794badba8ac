"""Meshes and cylinders that meet other shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import (
    DT,
    SOLIDS,
    G,
    body,
    deepest,
    distances,
    energy,
    gem,
    random_turns,
    recorded_and_resumed,
    started,
    turned,
)
from scipy.optimize import linprog

import poise
from poise import Gains, StablePD, State, Target, World, dynamics
from poise.errors import PoiseError
from poise.math.rotation import quat_matrix
from poise.model.shape import Shape
from poise.simulation.contact.convex import touches

Array = NDArray[np.float64]

TABLE = Shape("box", (0.5, 0.5, 0.1), pos=(0.0, 0.0, 0.1))
"""Its top is at 0.2 m."""


def block(*half: float, pos: Any = (0.0, 0.0, 0.0), quat: Any = (1.0, 0.0, 0.0, 0.0)) -> Shape:
    """A box given as a mesh."""
    signs = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    return Shape.mesh(np.array(signs) * half, pos=pos, quat=quat)


CUBE = block(0.1, 0.1, 0.1)
PLATE = block(0.5, 0.5, 0.1, pos=(0.0, 0.0, 0.1))
DRUM = Shape("cylinder", (0.3, 0.1), pos=(0.0, 0.0, 0.1))


# rest

RESTING: dict[str, tuple[Shape, Shape, float]] = {
    "mesh on box": (CUBE, TABLE, 0.3),
    "box on mesh": (Shape("box", (0.1, 0.1, 0.1)), PLATE, 0.3),
    "mesh on mesh": (CUBE, PLATE, 0.3),
    "coin on box": (Shape("cylinder", (0.1, 0.02)), TABLE, 0.22),
    "coin on drum": (Shape("cylinder", (0.1, 0.02)), DRUM, 0.22),
    "ball on drum": (Shape("sphere", (0.1,)), DRUM, 0.3),
    "ball on mesh": (Shape("sphere", (0.1,)), PLATE, 0.3),
    "capsule on drum": (Shape("capsule", (0.1, 0.15), quat=turned(90)), DRUM, 0.3),
    "log on box": (Shape("cylinder", (0.1, 0.2), quat=turned(90)), TABLE, 0.3),
}


@pytest.mark.parametrize("name", RESTING)
def test_a_solid_settles_less_than_a_millimetre_deep(name: str) -> None:
    shape, under, height = RESTING[name]
    world = World(body(shape, 2.0, pos=(0.03, -0.02, height + 0.05)), dt=DT, obstacles=[under])
    deep = 0.0
    for _ in world.until(2.0):
        world.step()
        deep = max(deep, deepest(world))
    assert deep < 1e-3
    assert world.state.q[2] == pytest.approx(height, abs=1e-4)
    assert np.abs(world.state.v).max() < 1e-6
    assert world.contacts.force.sum(axis=0)[2] == pytest.approx(2.0 * G, rel=1e-6)


def test_a_gem_comes_to_rest_on_one_of_its_faces() -> None:
    thing = body(gem(), pos=(0.0, 0.0, 0.4), quat=turned(50, (1, 2, 3)))
    world = World(thing, dt=DT, obstacles=[PLATE])
    world.step(steps=300)
    assert np.abs(world.state.v).max() < 1e-6
    assert len(world.contacts.depth) >= 3
    assert deepest(world) < 1e-3


def test_a_stack_of_three_mesh_boxes_stands() -> None:
    boxes = []
    for i in range(3):
        pos, quat = (0.02 * i, 0.0, 0.1 + 0.201 * i), turned(15 * i, (0, 0, 1))
        boxes.append(body(CUBE, name=f"box-{i}", pos=pos, quat=quat))
    world = World(boxes, dt=DT, projectiles=0)
    world.step(steps=60)
    start = world.state.q.reshape(3, 7)[:, :3].copy()
    world.step(steps=240)
    moved = np.abs(world.state.q.reshape(3, 7)[:, :3] - start)
    # what friction holds creeps by no more than a tenth of a millimetre
    assert moved.max() < 1e-4
    assert deepest(world) < 1e-3


@pytest.mark.parametrize(("mu", "slides"), [(0.6, False), (0.4, True)])
def test_a_mesh_on_an_inclined_mesh_sticks_or_slides_as_coulomb_says(
    mu: float, slides: bool
) -> None:
    # tan 27 degrees = 0.51
    slope = turned(27)
    table = block(3.0, 0.5, 0.1, quat=slope)
    way = np.array([np.cos(np.radians(27)), 0.0, -np.sin(np.radians(27))])
    up = np.array([np.sin(np.radians(27)), 0.0, np.cos(np.radians(27))])
    thing = body(CUBE, pos=(0.2 * up).tolist(), quat=slope)
    world = World(thing, dt=DT, obstacles=[table], ground=False, friction=mu)
    world.step(steps=60)
    speed = float(way @ world.state.v[:3])
    expected = G * (np.sin(np.radians(27)) - mu * np.cos(np.radians(27))) if slides else 0.0
    assert speed == pytest.approx(expected, rel=0.01, abs=1e-6)


def test_a_cube_beyond_the_edge_tips_when_its_middle_is() -> None:
    for beyond, falls in ((-0.005, False), (0.005, True)):
        world = World(body(CUBE, pos=(0.5 + beyond, 0.0, 0.3)), dt=DT, obstacles=[PLATE])
        world.step(steps=240)
        assert (world.state.q[2] < 0.29) == falls


def test_mesh_and_box_rest_by_springs_too() -> None:
    world = World(body(CUBE, pos=(0.0, 0.0, 0.301)), dt=1e-3, obstacles=[TABLE], contact="penalty")
    world.step(steps=500)
    # four springs of 5e4 N/m carry 1 kg
    assert deepest(world) == pytest.approx(G / 2e5, rel=0.01)


# second opinions

PAIRED = {
    "sphere": Shape("sphere", (0.12,)),
    "capsule": Shape("capsule", (0.08, 0.15)),
    "box": Shape("box", (0.1, 0.15, 0.2)),
    "cylinder": Shape("cylinder", (0.1, 0.15)),
    "mesh": gem(0.2, 24),
}
PAIRS = [(a, b) for a in PAIRED for b in PAIRED if {a, b} & {"cylinder", "mesh"}]


def near_poses(seed: int, n: int) -> Array:
    rng = np.random.default_rng(seed)
    q = np.zeros((n, 14))
    way = rng.normal(size=(n, 3))
    q[:, :3] = way / np.linalg.norm(way, axis=1, keepdims=True) * rng.uniform(0.15, 0.45, (n, 1))
    q[:, 3:7], q[:, 10:14] = random_turns(rng, n), random_turns(rng, n)
    return q


def seen(a: Shape, b: Shape, q: Array, reach: float = 0.1) -> Array:
    """Contacts of n pairs that are nearer than `reach`, (n, 4, 7)."""
    return touches(a, b, q.reshape(-1, 2, 7), reach).points


def by_mujoco(a: Shape, b: Shape, q: Array) -> tuple[Array, Array]:
    """Signed distances of n pairs [m], and the directions from b to a."""
    mujoco = pytest.importorskip("mujoco")
    assets, bodies = "", ""
    for i, shape in enumerate((a, b)):
        kind = f"type='{shape.kind}' size='{' '.join(map(repr, shape.size))}'"
        if shape.kind == "mesh":
            vertices = " ".join(map(repr, np.array(shape.vertices).ravel().tolist()))
            assets += f"<mesh name='{i}' vertex='{vertices}'/>"
            kind = f"type='mesh' mesh='{i}'"
        bodies += f"<body><freejoint/><geom {kind}/></body>"
    option = "<compiler boundmass='1' boundinertia='1'/>"
    option += "<option ccd_tolerance='1e-10' ccd_iterations='200'/>"
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco>{option}<asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>"
    )
    return distances(model, q)


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_the_nearest_touch_is_as_far_as_mujoco_says(one: str, two: str) -> None:
    q = near_poses(0, 150)
    a, b = PAIRED[one], PAIRED[two]
    distance, way = by_mujoco(a, b, q)
    touches = seen(a, b, q)
    nearest = touches[np.arange(len(q)), touches[:, :, 0].argmin(axis=1)]
    checked = (distance > -0.05) & (distance < 0.09)
    assert checked.sum() > 30
    assert np.isfinite(nearest[checked, 0]).all()
    wrong = nearest[checked, 0] - distance[checked]
    # a face is taken where another direction is hardly better: 0.5 % of the smaller solid, 0.16 m,
    # among flat ones, nothing to speak of where one is round
    flat = {one, two} <= {"box", "mesh"}
    assert wrong.min() > (-8e-4 if flat else -2e-5)
    assert wrong.max() < 3e-5
    assert np.median(np.abs(wrong)) < 2e-6
    sure = checked & (np.abs(nearest[:, 0] - distance) < 1e-6) & (np.abs(distance) > 1e-3)
    # a direction that turns by x makes nearest points 1 mm apart x^2 / 2000 further
    assert (np.sum(nearest[sure, 1:4] * way[sure], axis=1) > 0.999).all()


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_points_lie_on_the_second_and_as_far_from_the_first_as_the_gap(one: str, two: str) -> None:
    """By MuJoCo, of a speck in the place of the point."""
    q = near_poses(1, 60)
    touches = seen(PAIRED[one], PAIRED[two], q)
    if "capsule" in (one, two):
        # the others are of balls along the axis, which lie inside where it is tilted
        touches = touches[np.arange(len(q)), touches[:, :, 0].argmin(axis=1)][:, None]
    which, k = np.nonzero(np.isfinite(touches[:, :, 0]) & (touches[:, :, 0] > -0.05))
    assert len(which) > 20
    found = touches[which, k]
    np.testing.assert_allclose(np.linalg.norm(found[:, 1:4], axis=1), 1.0, atol=1e-9)
    size = 1e-6
    speck = Shape("sphere", (size,))
    over = found[:, 4:] + found[:, :1] * found[:, 1:4]
    for at, shape, start in ((found[:, 4:], PAIRED[two], 7), (over, PAIRED[one], 0)):
        pose = np.zeros((len(which), 14))
        pose[:, :3], pose[:, 3] = at, 1.0
        pose[:, 7:] = q[which, start : start + 7]
        distance, _ = by_mujoco(speck, shape, pose)
        # where a face is taken though another direction is a little better, points over it may lie
        # off the other's surface by as much
        allowed = 1.5e-3 if {one, two} <= {"box", "mesh"} else 1e-4
        assert np.abs(distance + size).max() < allowed


def corners_of(shape: Shape) -> Array:
    return np.array(shape.vertices or block(*shape.size).vertices)


@pytest.mark.parametrize(
    ("one", "two"),
    [(block(0.1, 0.15, 0.2), gem(0.2, 24)), (gem(0.2, 24), gem(0.15, 60)),
     (block(0.005, 0.005, 0.3), Shape("box", (0.1, 0.15, 0.2)))],
    ids=["block-gem", "gem-gem", "needle-box"],
)  # fmt: skip
def test_solids_touch_where_a_linear_program_finds_a_common_point(one: Shape, two: Shape) -> None:
    """Corners x of one and y of the other: are there weights with x'l = y'm?"""
    q = near_poses(4, 120)
    gap = seen(one, two, q)[:, :, 0].min(axis=1)
    overlap = np.zeros(len(q), bool)
    for i, pose in enumerate(q):
        x, y = (
            corners_of(shape) @ quat_matrix(pose[k + 3 : k + 7]).T + pose[k : k + 3]
            for shape, k in ((one, 0), (two, 7))
        )
        sums = np.repeat(np.eye(2), (len(x), len(y)), axis=1)
        rows = np.vstack([np.hstack([x.T, -y.T]), sums])
        answer = linprog(np.zeros(len(x) + len(y)), A_eq=rows, b_eq=[0, 0, 0, 1, 1])
        overlap[i] = answer.status == 0
    clear = np.abs(gap) > 1e-5
    assert overlap.sum() > 10
    assert (overlap == (gap < 0.0))[clear].all()


@pytest.mark.parametrize("other", ["sphere", "capsule", "box"])
def test_a_mesh_box_touches_where_the_cores_own_box_does(other: str) -> None:
    q = near_poses(2, 300)
    half = (0.1, 0.15, 0.2)
    found = []
    for box in (block(*half), Shape("box", half)):
        pair = [body(box, name="a"), body(PAIRED[other], name="b")]
        world = World(pair, n=len(q), dt=1e-6, gravity=(0, 0, 0), ground=False, projectiles=0)
        world.reset(State(q))
        world.step()
        depth = np.full(len(q), -np.inf)
        np.maximum.at(depth, world.contacts.copy, world.contacts.depth)
        found.append(depth)
    touching = (found[1] > 1e-4) & (found[1] < 0.04)
    assert touching.sum() > 20
    difference = np.abs(found[0][touching] - found[1][touching])
    # each takes a face where an edge is hardly better, by its own measure
    assert difference.max() < (2.5e-3 if other == "box" else 1e-5)
    assert np.median(difference) < 1e-6


def test_a_mesh_box_slides_as_the_cores_own_box_does() -> None:
    ends = []
    for shape in (CUBE, Shape("box", (0.1, 0.1, 0.1))):
        world = World(body(shape, pos=(0.0, 0.0, 0.3)), dt=DT, obstacles=[TABLE])
        started(world, [1.0, 0.3, 0.0, 0.0, 0.0, 2.0]).step(steps=60)
        ends.append(world.state.q.copy())
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)


# what happens in flight


@pytest.mark.parametrize("mesh", [CUBE, gem(0.12), Shape("cylinder", (0.1, 0.05))])
def test_two_solids_that_collide_in_flight_keep_their_momentum(mesh: Shape) -> None:
    pair = [
        body(mesh, 1.0, "a", (0.0, 0.0, 0.0)),
        body(gem(0.15, seed=3), 3.0, "b", (0.4, 0.05, 0.02)),
    ]
    world = World(pair, dt=DT, gravity=(0, 0, 0), ground=False, restitution=0.5, projectiles=0)
    started(world, [3.0, 0.0, 0.0, 1.0, 2.0, -1.0, -1.0, 0.0, 0.0, 0.0, 3.0, 0.0])

    def momentum() -> Array:
        state = world.state
        A, _ = dynamics.centroidal_momentum(world, state.q, state.v)
        return np.asarray((A @ state.v)[:3])

    before, touched = momentum(), False
    for _ in range(30):
        world.step()
        touched |= len(world.contacts.depth) > 0
        np.testing.assert_allclose(momentum(), before, atol=1e-10)
    assert touched


def test_collisions_of_meshes_add_no_energy() -> None:
    n = 24
    rng = np.random.default_rng(5)
    pair = [body(gem(0.12), 1.0, "a"), body(Shape("cylinder", (0.1, 0.05)), 2.0, "b")]
    world = World(pair, n=n, dt=DT, gravity=(0, 0, 0), ground=False, projectiles=0)
    q, v = np.zeros((n, 14)), rng.normal(size=(n, 12))
    way = rng.normal(size=(n, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    q[:, :3], v[:, :3] = 0.3 * way, -3.0 * way
    q[:, 3:7], q[:, 10:] = random_turns(rng, n), random_turns(rng, n)
    world.reset(State(q, v))
    last, touched = energy(world), np.zeros(n, bool)
    start = last
    for _ in range(20):
        world.step()
        touched[world.contacts.copy] = True
        now = energy(world)
        assert (now < last + 1e-3 * start).all()
        last = now
    assert touched.sum() > n // 2
    assert (last < start + 1e-9).all()


def test_a_ball_thrown_at_the_lamps_shade_bounces_off() -> None:
    """And flies through it where meshes meet the ground only."""
    lamp = poise.load_character("lamp")
    ball = body(Shape("sphere", (0.05,)), 0.05, "ball")
    left = {}
    for convex in (True, False):
        world = World(lamp, dt=1 / 240, convex=convex, restitution=0.5, projectiles=[ball])
        world.throw((1.0, 0.0, 0.5), (-8.0, 0.0, 0.5))
        world.step(steps=25)
        left[convex] = world.projectile_state.at(0)
    # the shade ends at 0.19 m
    assert left[True].q[0] > 0.24
    assert left[True].v[0] > 1.0
    assert left[False].q[0] == pytest.approx(1.0 - 8.0 * 25 / 240)
    assert left[False].v[0] == -8.0


def test_a_fast_ball_does_not_pass_a_thin_mesh() -> None:
    wall = block(0.01, 1.0, 1.0, pos=(0.0, 0.0, 1.0))
    for speed in (5.0, 20.0, 50.0):
        world = World(body(SOLIDS["sphere"], pos=(1.0, 0.0, 1.0)), dt=DT, obstacles=[wall])
        started(world, [-speed, 0.0, 0.0, 0.0, 0.0, 0.0]).step(steps=30)
        assert world.state.q[0] > 0.1


def test_a_spinning_bar_does_not_sweep_through_a_wall() -> None:
    """Its tips go 17 cm in a step."""
    bar, wall = block(0.5, 0.03, 0.03), block(0.05, 0.3, 0.3, pos=(0.25, 0.4, 0.0))
    options: dict[str, Any] = {"ground": False, "gravity": (0, 0, 0)}
    world = World(body(bar, pos=(0, 0, 0)), dt=DT, obstacles=[wall], **options)
    started(world, [0.0, 0.0, 0.0, 0.0, 0.0, 20.0])
    deep, touched = 0.0, False
    for _ in range(20):
        world.step()
        deep, touched = max(deep, deepest(world)), touched or len(world.contacts.depth) > 0
    assert touched
    assert deep < 0.02


@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9])
def test_a_mesh_bounces_as_high_as_its_restitution_allows(restitution: float) -> None:
    world = World(body(CUBE, pos=(0.0, 0.0, 0.4)), dt=1 / 1000, obstacles=[PLATE],
                  restitution=restitution)  # fmt: skip
    highest, fell = 0.0, False
    for _ in world.until(0.3):
        world.step()
        fell |= len(world.contacts.depth) > 0
        highest = max(highest, float(world.state.q[2]) - 0.3) if fell else 0.0
    assert highest == pytest.approx(0.1 * restitution**2, rel=0.02, abs=1e-3)


# projectiles


def test_a_thrown_mesh_lands_on_a_box() -> None:
    ball = body(SOLIDS["sphere"], pos=(3.0, 0.0, 0.1))
    world = World(ball, dt=DT, obstacles=[TABLE], projectiles=[body(CUBE, name="brick")])
    world.step(steps=5)
    assert not world.projectile_state.thrown[0]
    world.throw((0.0, 0.0, 0.5), (0.0, 0.0, 0.0))
    world.step(steps=90)
    assert world.projectile_state.q[0, 2] == pytest.approx(0.3, abs=1e-4)


def test_a_waiting_spare_touches_nothing() -> None:
    brick = body(CUBE, name="brick", pos=(0.0, 0.0, 0.3))
    thing = body(CUBE, name="thing", pos=(0.0, 0.0, 0.3))
    world = World(thing, dt=DT, projectiles=[brick], gravity=(0, 0, 0))
    world.step(steps=10)
    assert not len(world.contacts.depth)
    assert np.array_equal(world.state.v, np.zeros(6))


# the same bits


def crowd(n: int, **options: Any) -> World:
    """Three different solids that fall on each other, in n copies, each started differently."""
    shapes = (CUBE, gem(0.1), Shape("cylinder", (0.1, 0.05)))
    things = [body(s, name=f"thing-{i}", pos=(0, 0, 0.4 + 0.25 * i)) for i, s in enumerate(shapes)]
    world = World(things, n=n, dt=DT, obstacles=[DRUM], **options)
    rng = np.random.default_rng(8)
    v = rng.normal(size=(7, 18))
    world.reset(State(np.tile(world.scene.forest.rest_q, (n, 1)), v[:n]))
    return world


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_copies_have_the_same_bits_in_any_company_and_for_any_thread_count(dtype: str) -> None:
    one, two = (crowd(7, threads=threads, dtype=dtype) for threads in (1, 2))
    start = one.state.copy()
    few, back = crowd(2, dtype=dtype), crowd(7, dtype=dtype)
    few.reset(State(start.q[[5, 1]], start.v[[5, 1]]))
    back.reset(State(start.q[::-1].copy(), start.v[::-1].copy()))
    ends = []
    for world in (one, two, back, few):
        world.step(steps=40)
        ends.append(world.state.q)
    assert len(one.contacts.depth)
    assert np.array_equal(ends[0], ends[1])
    assert np.array_equal(ends[0], ends[2][::-1])
    assert np.array_equal(ends[0][[5, 1]], ends[3])


def test_a_world_of_one_differs_from_a_crowd_by_rounding_only() -> None:
    """One copy runs in another kernel than many.

    The contact solve runs to convergence here: iterations that end early leave what depends on
    where they began, and in redundant contacts rounding decides that.
    """
    exact: dict[str, Any] = {"iterations": 200, "tolerance": 1e-8}
    many, one = crowd(7, **exact), crowd(1, **exact)
    one.reset(State(many.state.q[5], many.state.v[5]))
    one.step(steps=20)
    many.step(steps=20)
    assert (many.contacts.copy == 5).any()
    np.testing.assert_allclose(one.state.q, many.state.q[5], atol=1e-5)


def test_steps_together_are_steps_one_by_one() -> None:
    one, many = crowd(2), crowd(2)
    many.step(steps=40)
    for _ in range(40):
        one.step()
    assert np.array_equal(one.state.q, many.state.q)


def test_a_world_resumed_from_a_recording_goes_on_bit_for_bit(tmp_path: Path) -> None:
    world = crowd(1)
    again = recorded_and_resumed(world, tmp_path / "crowd.npz", steps=50, after=21)
    assert np.array_equal(again.state.q, world.state.q)
    assert np.array_equal(again.state.v, world.state.v)


def test_rows_of_a_target_are_followed_one_by_one() -> None:
    lamp = poise.load_character("lamp")
    gains = Gains(lamp, kp=50.0, kd=5.0)
    servo = StablePD(lamp, gains=gains)
    rng = np.random.default_rng(2)
    ends = []
    rows = np.tile(lamp.rest_q, (6, 1))
    rows[:, 0] += 0.01 * rng.normal(size=6)
    for together in (True, False):
        world = World(lamp, dt=DT, convex=True)
        if together:
            world.step(servo(world.state, Target(rows, rows=6)), steps=6)
        else:
            for row in rows:
                world.step(servo(world.state, Target(row)))
        ends.append(world.state.q.copy())
    assert np.array_equal(ends[0], ends[1])


def test_a_lost_copy_leaves_its_neighbours_alone() -> None:
    world, other = crowd(3, on_divergence="freeze"), crowd(3, on_divergence="freeze")
    world.push(0, (1e14, 0.0, 0.0), 1.0, where=[1])
    world.step(steps=30)
    other.step(steps=30)
    assert [loss.copy for loss in world.diverged] == [1]
    assert np.array_equal(world.state.q[[0, 2]], other.state.q[[0, 2]])


# who meets whom


def test_links_of_one_character_that_overlap_at_rest_do_not_meet() -> None:
    lamp = poise.load_character("lamp")
    world = World(lamp, dt=1 / 1000, convex=True, gravity=(0, 0, 0), ground=False)
    world.step()
    assert not len(world.contacts.depth)


def test_excluded_meshes_pass_through_each_other() -> None:
    pair = [body(CUBE, name="a", pos=(0, 0, 1)), body(CUBE, name="b", pos=(0, 0, 1.3))]
    world = World(pair, dt=DT, exclude=[("a/a", "b/b")])
    world.step(steps=120)
    assert world.state.q[[2, 9]] == pytest.approx([0.1, 0.1], abs=1e-3)


def test_meshes_that_meet_the_ground_only_pass_through_each_other() -> None:
    pair = [body(CUBE, name="a", pos=(0, 0, 1)), body(CUBE, name="b", pos=(0, 0, 1.3))]
    world = World(pair, dt=DT, convex=False)
    world.step(steps=120)
    assert world.state.q[[2, 9]] == pytest.approx([0.1, 0.1], abs=1e-3)


def test_a_target_of_too_few_rows_is_refused_before_the_first_step() -> None:
    lamp = poise.load_character("lamp")
    world = World(lamp, dt=DT, convex=True)
    servo = StablePD(lamp)
    command = servo(world.state, Target(np.tile(lamp.rest_q, (3, 1)), rows=3))
    with pytest.raises(PoiseError, match="3 rows"):
        world.step(command, steps=4)
    assert world.time == 0.0
