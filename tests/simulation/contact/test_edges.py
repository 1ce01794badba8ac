"""Contact at its edges: what passes by, seams, narrow facets, stacks, impacts, tumbling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edge_scenes import (
    BALL,
    BRICK,
    FAST,
    FIGURES,
    SLOW,
    Array,
    MuJoCo,
    Pass,
    Poise,
    Stage,
    Thing,
    against_wall,
    burden,
    cradle,
    disagreement,
    ghost,
    on_stairs,
    seams,
    slide,
    stack,
    thin_wall,
    tiles,
    tumbling,
)
from objects import body, energy, random_turns, started

from poise import HeightField, State, World, free_object
from poise.math.rotation import quat_matrix
from poise.model.shape import Shape

ROD = Shape("capsule", (0.05, 0.1))
NOTHING: dict[str, Any] = {"gravity": (0.0, 0.0, 0.0), "projectiles": 0}


# ---- what passes by


@pytest.mark.parametrize("shape", [BALL, ROD, BRICK], ids=lambda s: s.kind)
@pytest.mark.parametrize("way", [SLOW, FAST, Pass(60.0, 0.02)], ids=str)
def test_what_flies_past_an_edge_with_clear_air_is_not_struck(shape: Shape, way: Pass) -> None:
    assert ghost(Poise, way, 8, shape) == 0.0


def test_a_turned_box_that_flies_past_an_edge_is_not_struck() -> None:
    """Its corners reach 17.3 cm: they pass 2 cm above the edge."""
    turn = tuple(random_turns(np.random.default_rng(1), 1)[0])
    wall = Shape("box", (0.5, 0.5, 0.5))
    for k in range(8):
        box = Thing(BRICK, (-1.0 - 0.01 * k, 0.0, 0.694), quat=turn, velocity=(6, 0, 0, 0, 0, 0))
        run = Poise(Stage([box], ground=False, obstacles=[wall], gravity=(0, 0, 0)))
        run.step(40)
        np.testing.assert_allclose(run.speeds()[0], [6, 0, 0, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("shape", [BALL, ROD, BRICK], ids=lambda s: s.kind)
def test_nothing_gets_through_a_thin_wall_up_to_100_metres_a_second(shape: Shape) -> None:
    assert thin_wall(Poise, shape) == 0.0


def test_boxes_that_fly_at_a_corner_hit_it() -> None:
    """Diagonally at the edge of a thin wall: the paths meet, whatever faced at the start."""
    wall = Shape("box", (0.05, 1.0, 0.5), pos=(0.0, 0.0, -0.5))
    for speed in (5.0, 20.0, 50.0):
        d = np.array([1.0, 0.0, -1.0]) / np.sqrt(2)
        start = -1.5 * d + (-0.15, 0.0, 0.1)
        box = Thing(BRICK, start.tolist(), velocity=(*(speed * d), 0, 0, 0))
        run = Poise(Stage([box], ground=False, obstacles=[wall], gravity=(0, 0, 0)))
        run.step(round(3.0 / speed * 60))
        assert np.linalg.norm(run.speeds()[0, :3] - speed * d) > 0.1 * speed


# ---- seams


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
@pytest.mark.parametrize("shape", [BALL, BRICK], ids=lambda s: s.kind)
def test_what_slides_over_tiles_keeps_its_speed_and_does_not_hop(shape: Shape, dt: float) -> None:
    lost, hop = seams(Poise, shape, dt=dt)
    assert lost < 1e-5
    assert hop < 1e-3


def test_a_turning_box_slides_over_tiles_as_over_one_slab() -> None:
    spins = (2.0, 0.3, 0, 0, 0, 1.0)
    ends = []
    for floor in (tiles(), [Shape("box", (4.0, 4.0, 0.1), pos=(0, 0, -0.1))]):
        run = Poise(
            Stage(
                [Thing(BRICK, (0, 0, 0.1), velocity=spins)],
                ground=False,
                obstacles=floor,
                friction=0.0,
            )
        )
        run.step(60)
        ends.append(run.speeds()[0])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-4)


@pytest.mark.parametrize("shape", [BALL, BRICK], ids=lambda s: s.kind)
def test_a_step_of_a_centimetre_is_no_seam(shape: Shape) -> None:
    floor = tiles(3)
    higher = Shape("box", (0.25, 0.5, 0.1), pos=(1.0, 0.0, -0.09))
    thing = Thing(shape, (0.0, 0.0, 0.1), velocity=(0.3, 0, 0, 0, 0, 0))
    run = Poise(Stage([thing], ground=False, obstacles=[*floor, higher], friction=0.0))
    run.step(240)
    assert run.places()[0, 0] < 0.75


def test_a_tile_in_the_ground_is_slid_over() -> None:
    tile = Shape("box", (0.25, 0.5, 0.1), pos=(0.5, 0.0, -0.1))
    beside = Shape("box", (0.25, 0.5, 0.1), pos=(1.0, 0.0, -0.1))
    thing = Thing(BRICK, (0.0, 0.0, 0.1), velocity=(2.0, 0, 0, 0, 0, 0))
    lost, hop = slide(Poise(Stage([thing], obstacles=[tile, beside], friction=0.0)), 2.0, 0.1)
    assert lost < 1e-5
    assert hop < 1e-3


def test_a_ball_that_is_sunk_beside_a_seam_comes_out_at_the_top() -> None:
    ball = Thing(Shape("sphere", (0.005,)), (0.249, 0.0, -0.01))
    run = Poise(Stage([ball], ground=False, obstacles=tiles(), friction=0.0))
    run.step(120)
    assert run.places()[0, 2] == pytest.approx(0.005, abs=5e-4)
    assert abs(run.places()[0, 0] - 0.249) < 1e-3


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_a_ball_rolls_over_the_facets_of_an_even_field_as_over_a_plane(slope: float) -> None:
    """Without friction it slides down a slope of many facets as down one."""
    heights = np.tile(-slope * 0.07 * np.arange(100), (100, 1))
    field = HeightField(heights, spacing=0.07, origin=(-1.0, -3.5))
    n = np.array([slope, 0.0, 1.0]) / np.hypot(slope, 1.0)
    along = np.array([n[2], 0.0, -n[0]])
    start = np.array([0.0, 0.0, -slope]) + 0.1 * n
    thing = Thing(BALL, start.tolist(), velocity=(*(2.0 * along), 0, 0, 0))
    run = Poise(Stage([thing], ground=field, friction=0.0))
    run.step(60)
    gained = 9.81 * n[0]
    np.testing.assert_allclose(run.speeds()[0, :3], (2.0 + gained) * along, atol=1e-3)


def test_copies_over_seams_have_the_same_bits_in_any_place() -> None:
    thing = body(BRICK, pos=(0.0, 0.0, 0.1))
    v = np.random.default_rng(0).normal(size=(9, 6))
    ends = []
    for order in (np.arange(9), np.arange(9)[::-1]):
        world = World(thing, n=9, dt=1 / 60, ground=False, obstacles=tiles(), dtype="float32")
        world.reset(State(np.tile(thing.rest_q, (9, 1)), v[order]))
        world.step(steps=60)
        ends.append(world.state.q[np.argsort(order)])
    np.testing.assert_array_equal(ends[0], ends[1])


# ---- uneven ground


@pytest.mark.parametrize(("radius", "spacing", "dt"), [(0.05, 0.01, 1 / 240), (0.2, 0.07, 1 / 60)])
def test_balls_that_hit_a_steep_wall_do_what_they_report(
    radius: float, spacing: float, dt: float
) -> None:
    assert against_wall(Poise, radius, spacing, dt) < 1e-9


def test_balls_on_stairs_lie_on_them_and_do_what_they_report() -> None:
    assert on_stairs(Poise) == 0.0


def triangles(field: HeightField) -> Array:
    """Corners of all facets, shape (k, 3, 3)."""
    rows, columns = field.heights.shape
    x = field.origin[0] + field.spacing[0] * np.arange(columns)
    y = field.origin[1] + field.spacing[1] * np.arange(rows)
    p = np.stack([*np.meshgrid(x, y), field.heights], axis=-1)
    a, b, c, d = p[:-1, :-1], p[:-1, 1:], p[1:, 1:], p[1:, :-1]
    both = [np.stack(t, axis=-2).reshape(-1, 3, 3) for t in ((a, b, c), (a, c, d))]
    found: Array = np.concatenate(both)
    return found


def nearest(corners: Array, p: Array) -> float:
    """Distance of a point to the nearest facet: planes, then sides, by least squares."""
    a, b, c = np.moveaxis(corners, 1, 0)
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    height = np.einsum("ij,ij->i", n, p - a)
    foot = p - height[:, None] * n
    inside = np.ones(len(a), dtype=bool)
    least = np.inf
    for one, two in ((a, b), (b, c), (c, a)):
        side = two - one
        inside &= np.einsum("ij,ij->i", np.cross(n, side), foot - one) >= 0
        t = np.clip(np.einsum("ij,ij->i", p - one, side) / (side**2).sum(axis=1), 0, 1)
        least = min(least, np.linalg.norm(p - one - t[:, None] * side, axis=1).min())
    return float(min(least, np.abs(height[inside]).min(initial=np.inf)))


@pytest.mark.parametrize("spacing", [0.02, 0.3])
def test_a_ball_over_a_rough_field_is_as_far_as_its_nearest_facet(spacing: float) -> None:
    rng = np.random.default_rng(7)
    field = HeightField(0.3 * spacing * rng.normal(size=(40, 40)), spacing=spacing)
    corners, checked = triangles(field), 0
    for _ in range(150):
        x, y = rng.uniform(-10, 10, 2) * spacing
        p = np.array([x, y, rng.uniform(0.5, 1.0) * 0.1 + 0.3 * spacing])
        gap = nearest(corners, p) - 0.1
        world = World(body(BALL, pos=p.tolist()), dt=1e-6, ground=field, **NOTHING)
        world.step()
        if gap > -1e-6 or not len(world.contacts.depth):
            continue
        assert -world.contacts.depth.max() == pytest.approx(gap, abs=1e-9)
        checked += 1
    assert checked > 20


def test_a_corner_that_comes_fast_at_a_riser_stops_there() -> None:
    """A box at 10 m/s into a step of 30 cm, one centimetre deep, that its way leads over."""
    heights = np.zeros((5, 201))
    heights[:, 101:] = 0.3
    field = HeightField(heights, spacing=(0.01, 2.0), origin=(-1.0, -4.0))
    for k in range(10):
        box = Thing(BRICK, (-0.6 - 0.017 * k, 0.0, 0.11), velocity=(10.0, 0, 0, 0, 0, 0))
        run = Poise(Stage([box], ground=field, friction=0.0))
        run.step(120)
        assert run.places()[0, 0] < -0.08
        assert disagreement(run)[0] < 1e-3


# ---- stacks


def test_twenty_boxes_stand_where_they_were_put() -> None:
    assert stack(Poise, 5.0) < 0.5


@pytest.mark.slow
def test_twenty_boxes_stand_for_a_minute() -> None:
    assert stack(Poise) < 5.0


@pytest.mark.parametrize("ratio", [300.0, 1000.0])
def test_five_light_boxes_carry_a_heavy_one(ratio: float) -> None:
    assert burden(Poise, ratio) < 1.0


# ---- impacts in a row


@pytest.mark.parametrize("gap", [0.0, 1e-3, 5e-3, 2e-2])
def test_a_cradle_hands_the_speed_to_the_last_ball(gap: float) -> None:
    assert cradle(Poise, gap) < 1e-2


def test_two_balls_that_strike_a_row_set_two_free() -> None:
    row = [Thing(BALL, (0.2 * k, 0, 0)) for k in range(2, 5)]
    pair = [Thing(BALL, (x, 0, 0), velocity=(1.0, 0, 0, 0, 0, 0)) for x in (-0.1, 0.1)]
    run = Poise(
        Stage([*pair, *row], ground=False, gravity=(0, 0, 0), friction=0.0, restitution=1.0)
    )
    run.step(60)
    np.testing.assert_allclose(run.speeds()[:, 0], [0, 0, 0, 1, 1], atol=1e-2)


def test_a_ball_between_two_divides_what_it_has_evenly() -> None:
    """Both at once: each leaves along its line, by Newton's law for the three of them."""
    side = 0.2 * np.array([np.cos(np.pi / 6), np.sin(np.pi / 6)])
    balls = [
        Thing(BALL, (-0.1, 0, 0), velocity=(1.0, 0, 0, 0, 0, 0)),
        Thing(BALL, (side[0], side[1], 0)),
        Thing(BALL, (side[0], -side[1], 0)),
    ]
    still = Stage(balls, dt=2e-4, ground=False, gravity=(0, 0, 0), friction=0.0)
    run = Poise(still._replace(restitution=1.0))
    run.step(1000)
    v = run.speeds()[:, :2]
    along = 2 * np.cos(np.pi / 6) / (1 + 2 * np.cos(np.pi / 6) ** 2)
    np.testing.assert_allclose(v[0], [1 - 2 * np.cos(np.pi / 6) * along, 0], atol=1e-3)
    np.testing.assert_allclose(v[1] * (1, -1), v[2], atol=1e-3)


@pytest.mark.parametrize("e", [0.3, 0.7, 1.0])
def test_impacts_in_a_row_keep_the_momentum_and_never_add_energy(e: float) -> None:
    n, rng = 32, np.random.default_rng(3)
    row = [body(BALL, m, f"ball-{k}", (0.2 * k, 0, 0)) for k, m in enumerate([1, 3, 0.3, 2, 5])]
    world = World(row, n=n, dt=1 / 60, ground=False, restitution=e, friction=0.0, **NOTHING)
    v = np.zeros((n, 30))
    v[:, ::6] = rng.normal(size=(n, 5))
    started(world, v, np.tile(world.scene.forest.rest_q, (n, 1)))
    mass = np.array([1, 3, 0.3, 2, 5])
    begin, last = v[:, ::6] @ mass, energy(world)
    for _ in range(60):
        world.step()
        assert (energy(world) <= last + 1e-6).all()
        last = energy(world)
    np.testing.assert_allclose(world.state.v[:, ::6] @ mass, begin, atol=1e-9)


def test_frictionless_balls_that_part_are_not_held() -> None:
    """They pushed each other in the step before, and now move apart."""
    pair = [body(BALL, 1.0, "a", (0, 0, 0)), body(BALL, 1.0, "b", (0.2, 0, 0))]
    world = World(pair, dt=1 / 60, ground=False, friction=0.0, restitution=1.0, **NOTHING)
    started(world, [1.0, *[0.0] * 5, -1.0, *[0.0] * 5]).step(steps=30)
    np.testing.assert_allclose(world.state.v[[0, 6]], [-1, 1], atol=1e-9)


# ---- tumbling


@pytest.mark.parametrize("dt", [1 / 240, 1 / 60, 1 / 30])
def test_tumbling_about_the_middle_axis_keeps_energy(dt: float) -> None:
    assert tumbling(Poise, dt) < 1e-6


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tumbling_keeps_its_angular_momentum_in_space(dtype: str) -> None:
    n, rng = 16, np.random.default_rng(4)
    brick = body(Shape("box", (0.05, 0.1, 0.2)))
    world = World(brick, n=n, dt=1 / 60, ground=False, dtype=dtype, **NOTHING)
    v = np.concatenate([np.zeros((n, 3)), 5 * rng.normal(size=(n, 3))], axis=1)
    inertia = np.diag(np.array(brick.links[0].inertia).reshape(3, 3))

    def momentum() -> Array:
        R = np.array([quat_matrix(q) for q in np.asarray(world.state.q[:, 3:], dtype=float)])
        found: Array = np.einsum("nij,nj->ni", R, inertia * world.state.v[:, 3:])
        return found

    world.reset(State(np.tile(brick.rest_q, (n, 1)), v))
    begin = momentum()
    world.step(steps=3600)
    size = np.linalg.norm(begin, axis=1, keepdims=True)
    assert np.abs((momentum() - begin) / size).max() < (1e-9 if dtype == "float64" else 1e-2)


def test_tumbling_is_of_second_order() -> None:
    """Against Euler's equations by Runge-Kutta in small steps: a quarter of the error each time."""
    brick = body(Shape("box", (0.05, 0.1, 0.2)))
    inertia = np.diag(np.array(brick.links[0].inertia).reshape(3, 3))
    w0 = np.array([1.0, 4.0, -2.0])

    def rate(w: Array) -> Array:
        found: Array = -np.cross(w, inertia * w) / inertia
        return found

    w, h = w0.copy(), 1e-4
    for _ in range(10_000):
        a = rate(w)
        b = rate(w + 0.5 * h * a)
        c = rate(w + 0.5 * h * b)
        w = w + h / 6 * (a + 2 * b + 2 * c + rate(w + h * c))
    errors = []
    for steps in (60, 120, 240):
        world = World(brick, dt=1 / steps, ground=False, **NOTHING)
        started(world, [0, 0, 0, *w0]).step(steps=steps)
        errors.append(float(np.linalg.norm(world.state.v[3:] - w)))
    assert errors[0] < 0.05
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 4.0, rtol=0.05)


def test_the_center_of_an_uneven_body_flies_straight_while_it_tumbles() -> None:
    shapes = [Shape("box", (0.05, 0.1, 0.2)), Shape("sphere", (0.1,), pos=(0.3, 0.1, 0.0))]
    club = free_object("club", shapes, mass=2.0)
    com = np.array(club.links[0].com)
    world = World(club, dt=1 / 60, ground=False, **NOTHING)
    spin = np.array([1.0, 5.0, 2.0])
    started(world, [*-np.cross(spin, com), *spin])
    for _ in range(120):
        world.step()
        q = world.state.q
        np.testing.assert_allclose(q[:3] + quat_matrix(q[3:]) @ com, com, atol=1e-10)


# ---- all of them


@pytest.mark.slow
def test_no_figure_is_worse_than_before_and_all_are_good_enough() -> None:
    root = Path(__file__).parents[3]
    before = json.loads((root / "benchmarks" / "edges_before.json").read_text())
    for figure in FIGURES:
        value = figure.of(Poise)
        assert value <= figure.most, f"{figure.name}: {value}; before {before[figure.name]}"


def test_both_engines_are_given_the_same_scene() -> None:
    """A ball that rolls comes as far in MuJoCo as here; so do dominoes."""
    ours, theirs = (figure.of(make) for make in (Poise, MuJoCo) for figure in FIGURES[1:2])
    assert ours < 0.1
    assert theirs < 0.1
