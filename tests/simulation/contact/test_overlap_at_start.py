"""Scenes that start deep inside each other come apart without an explosion."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import poise

HUMANOID = poise.load_character("humanoid")
REST = HUMANOID.rest_q


def box(half: float, mass: float) -> poise.Character:
    return poise.free_object("box", poise.Shape("box", (half, half, half)), mass=mass)


def at(x: float, y: float, z: float) -> list[float]:
    return [x, y, z, 1.0, 0.0, 0.0, 0.0]


def lowered(by: float) -> Any:
    q = REST.copy()
    q[2] -= by
    return q


BALL = poise.free_object("ball", poise.Shape("sphere", (0.2,)), mass=1.0)
SCENES: dict[str, tuple[list[poise.Character], Any]] = {
    "two humanoids at one place": ([HUMANOID, HUMANOID], [*REST, *REST]),
    "a humanoid to its waist in the ground": ([HUMANOID], lowered(0.9)),
    "a box in the middle of another": ([box(0.5, 10), box(0.1, 1)], at(0, 0, 0.5) * 2),
    "a box within another": ([box(0.5, 10), box(0.1, 1)], at(0, 0, 0.5) + at(0.2, 0.05, 0.6)),
    "five boxes at one place": ([box(0.2, 1)] * 5, at(0, 0, 0.2) * 5),
    "two balls at one place": ([BALL] * 2, at(0, 0, 0.2) * 2),
    "a box below the ground": ([box(0.2, 1)], at(0, 0, -1)),
}
FASTEST = 12.0
"""Of a link [m/s]; a fall from two metres ends with 6."""


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
@pytest.mark.parametrize("name", SCENES)
def test_what_overlaps_at_the_start_comes_apart_slowly(name: str, dt: float) -> None:
    bodies, q = SCENES[name]
    world = poise.World(bodies, dt=dt, projectiles=0)
    world.reset(poise.State(q))
    for _ in range(round(1.5 / dt)):
        world.step()  # a divergence would raise
        speed = np.linalg.norm(world.link_velocities()[0], axis=-1).max()
        assert speed < FASTEST
    assert world.contacts.depth.max(initial=0.0) < 0.01


def test_a_body_too_large_is_named() -> None:
    with pytest.raises(
        poise.PoiseError, match=r"link 'box': a box reaches 1.73e\+12 m; at most 1e"
    ):
        poise.World(box(1e12, 1.0), dt=1 / 60)


def test_faces_without_area_change_nothing_of_a_mesh() -> None:
    corners = [(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)]
    middles = [(0.0, 0.1, 0.1), (0.1, 0.1, 0.0), (0.1, 0.1, 0.1), (0.1, 0.1, 0.1 - 1e-12)]
    plain, odd = poise.Shape.mesh(corners), poise.Shape.mesh(corners + middles)
    assert math.isclose(odd.volume, plain.volume, rel_tol=1e-9)
    np.testing.assert_allclose(odd.inertia(1.0), plain.inertia(1.0), rtol=1e-9, atol=1e-15)
    world = poise.World(poise.free_object("die", odd, mass=1.0), dt=1 / 60, projectiles=0)
    world.reset(poise.State(at(0, 0, 0.2)))
    world.step(steps=120)
    assert abs(world.state.q[2] - 0.1) < 2e-3


def test_a_ball_rests_on_a_height_field_with_steps_and_flat_cells() -> None:
    """Cells whose corners lie on one line, or all at one height."""
    heights = np.zeros((9, 9))
    heights[:, 5:] = 1.0
    ground = poise.HeightField(heights, (0.5, 1e-3))
    world = poise.World(BALL, dt=1 / 60, ground=ground, projectiles=0)
    world.reset(poise.State(at(-1, 0, 0.3)))
    world.step(steps=120)
    assert abs(world.state.q[2] - 0.2) < 2e-3
    assert np.abs(world.state.v).max() < 1e-3


def test_a_scene_of_ten_thousand_bodies_is_refused_before_it_is_made() -> None:
    with pytest.raises(poise.PoiseError, match=r"10000 shapes make more than 5,000,000 pairs"):
        poise.World([box(0.1, 1)] * 10_000, dt=1 / 60, projectiles=0)


def test_a_crowd_of_sixty_four_humanoids_stands_in_one_world() -> None:
    """1,984 shapes, two million pairs that may meet."""
    root, *others = HUMANOID.links
    crowd = [
        poise.Character(
            f"one-{k}",
            (replace(root, pos=(1.2 * (k % 8), 1.2 * (k // 8), root.pos[2])), *others),
        )
        for k in range(64)
    ]
    world = poise.World(crowd, dt=1 / 60, projectiles=0)
    world.step(steps=2)
    assert set(world.contacts.other) == {-1}
    assert all(len(world.contacts.of(one.name).link) for one in crowd)


def test_ten_thousand_bodies_that_nothing_touches_fall() -> None:
    world = poise.World([box(0.1, 1)] * 10_000, dt=1 / 60, contact=None)
    world.step(steps=3)
    drop = -9.81 / 60 * 3
    assert math.isclose(world.state.v[2::6].max(), drop, rel_tol=1e-9)
    assert world.part("box-10000").links.stop == 10_000
