"""Free objects: their mass and inertia are those of their shapes, and they move freely."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import SOLIDS, turned

from poise import Character, CharacterError, Shape, World, free_object
from poise.math.rotation import quat_matrix

Array = NDArray[np.float64]


def numbers(thing: Character) -> tuple[float, Array, Array]:
    """Mass, center of mass and inertia about it."""
    (link,) = thing.links
    inertia = np.array(link.inertia)
    return link.mass, np.array(link.com), inertia if inertia.ndim == 2 else np.diag(inertia)


def mujoco_of(shape: Shape, density: float) -> Any:
    """What MuJoCo makes of a shape of this density."""
    mujoco = pytest.importorskip("mujoco")
    asset, what = "", f"size='{' '.join(map(repr, shape.size))}'"
    if shape.kind == "mesh":
        corners = " ".join(repr(x) for corner in shape.vertices for x in corner)
        asset = f"<asset><mesh name='m' vertex='{corners}' inertia='convex'/></asset>"
        what = "mesh='m'"
    pos, quat = (" ".join(map(repr, x)) for x in (shape.pos, shape.quat))
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{asset}<worldbody><body><freejoint/><geom type='{shape.kind}' {what} "
        f"pos='{pos}' quat='{quat}' density='{density}'/></body></worldbody></mujoco>"
    )


@pytest.mark.parametrize("kind", SOLIDS)
def test_mass_centre_and_inertia_are_those_of_mujoco(kind: str) -> None:
    shape = replace(SOLIDS[kind], pos=(0.3, -0.1, 0.2), quat=turned(40, (1, 2, 3)))
    model = mujoco_of(shape, 700.0)
    mass, com, inertia = numbers(free_object("thing", shape, density=700.0))
    # MuJoCo keeps vertices of meshes in single precision
    rtol = 1e-5 if kind == "mesh" else 1e-12
    assert mass == pytest.approx(model.body_mass[1], rel=rtol)
    np.testing.assert_allclose(com, model.body_ipos[1], rtol=0, atol=rtol)
    R = quat_matrix(model.body_iquat[1])
    theirs = R @ np.diag(model.body_inertia[1]) @ R.T
    np.testing.assert_allclose(inertia, theirs, rtol=0, atol=rtol * theirs.max())


def test_the_inertia_of_a_ball_is_two_fifths_m_r_squared() -> None:
    mass, com, inertia = numbers(free_object("ball", Shape("sphere", (0.2,)), mass=3.0))
    assert mass == 3.0
    np.testing.assert_array_equal(com, 0.0)
    np.testing.assert_allclose(inertia, 0.4 * 3.0 * 0.04 * np.eye(3), rtol=1e-15)


def test_two_halves_make_the_whole() -> None:
    halves = [Shape("box", (0.1, 0.2, 0.15), pos=(x, 0.0, 0.0)) for x in (-0.1, 0.1)]
    _, com, inertia = numbers(free_object("box", halves, mass=2.0))
    _, _, whole = numbers(free_object("box", Shape("box", (0.2, 0.2, 0.15)), mass=2.0))
    np.testing.assert_allclose(com, 0.0, atol=1e-16)
    np.testing.assert_allclose(inertia, whole, rtol=1e-14, atol=1e-17)


def test_without_mass_and_density_it_is_as_heavy_as_water() -> None:
    assert numbers(free_object("cube", Shape("box", (0.05, 0.05, 0.05))))[0] == pytest.approx(1.0)


def test_an_object_starts_where_it_is_put_and_falls() -> None:
    quat = turned(30)
    ball = free_object("ball", SOLIDS["box"], mass=1.0, pos=(1.0, 2.0, 30.0), quat=quat)
    world = World(ball, dt=1 / 240)
    np.testing.assert_allclose(world.state.q, [1.0, 2.0, 30.0, *quat], rtol=0, atol=1e-15)
    world.step(steps=240)
    # a semi-implicit step falls further than g t^2 / 2, by g t dt / 2
    fallen = 9.81 * (1.0 + 1 / 240) / 2
    np.testing.assert_allclose(world.state.q[:3], [1.0, 2.0, 30.0 - fallen], rtol=0, atol=1e-9)


def test_objects_of_one_world_are_told_apart_by_their_names() -> None:
    crates = [free_object(name, SOLIDS["box"], mass=1.0) for name in ("low", "high")]
    world = World(crates, dt=1 / 60)
    assert world.scene.forest.link_names == ("low/low", "high/high")
    assert world.part("high").q == slice(7, 14)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mass": -1.0}, "mass"),
        ({"mass": math.nan}, "mass"),
        ({"mass": 0.0}, "mass"),
        ({"mass": "heavy"}, "mass"),
        ({"density": -1.0}, "density"),
        ({"mass": 1.0, "density": 1.0}, "mass or density"),
        ({"shape": []}, "shapes"),
        ({"shape": "box"}, "shapes"),
        ({"shape": None}, "shapes"),
        ({"shape": [SOLIDS["box"], 3]}, "shapes"),
        ({"name": ""}, "name"),
        ({"name": 3}, "name"),
        ({"pos": (1.0, 2.0)}, "pos"),
        ({"quat": (0.0, 0.0, 0.0, 0.0)}, "quat"),
    ],
)
def test_a_wrong_object_is_refused_and_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(CharacterError, match=words):
        free_object(**{"name": "thing", "shape": SOLIDS["box"], **given})
