"""Pictures: what is hit and where, light and shadow, ghosts, cameras, contact sheets, bad input."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from poise import HeightField, Plane, World
from poise.characters import load_character
from poise.errors import PoiseError
from poise.math.rotation import quat_from_z, quat_matrix
from poise.model.character import Character, Joint, Link, Shape
from poise.view import (
    Camera,
    Mesh,
    Primitive,
    arrow,
    contact_sheet,
    drawing_of,
    follow,
    follow_motion,
    look_at,
    marker,
    render,
    save_image,
    trail,
)
from poise.view.drawing import lowest, primitives_of
from poise.view.render import _trace_rays

FRONT = look_at((0.0, -5.0, 1.0), (0.0, 0.0, 1.0))
TILT = (math.cos(0.4), math.sin(0.4), 0.0, 0.0)


class Buffers(NamedTuple):
    """What each pixel's middle shows."""

    ids: NDArray[np.int32]  # index of the primitive, -1 the ground, -2 the sky, shape (h, w)
    depth: NDArray[np.float32]  # distance from the eye to it [m], shape (h, w)


def probe(
    source: Any,
    q: Any = None,
    camera: Camera | None = None,
    *,
    size: tuple[int, int] = (960, 540),
    ground: bool = True,
) -> Buffers:
    """What the pixels of `render` show: primitives of `drawing_of`, and how far away they are."""
    camera = camera or follow(source, q, size=size)
    out = _trace_rays(primitives_of(source, q), camera, size, ground, samples=1, buffers=True)
    return Buffers(out[1], out[2])


def rays(camera: Camera, size: tuple[int, int]) -> NDArray[np.float64]:
    """Unit directions through the middles of the pixels, shape (h, w, 3)."""
    eye, target, up = (np.array(x, dtype=float) for x in (camera.eye, camera.target, camera.up))
    f = (target - eye) / np.linalg.norm(target - eye)
    r = np.cross(f, up)
    r /= np.linalg.norm(r)
    w, h = size
    t = math.tan(camera.fov / 2)
    x = ((np.arange(w) + 0.5) / w * 2 - 1) * t * w / h
    y = (1 - (np.arange(h) + 0.5) / h * 2) * t
    d = f + x[None, :, None] * r + y[:, None, None] * np.cross(r, f)
    return np.asarray(d / np.linalg.norm(d, axis=-1, keepdims=True))


def march(camera: Camera, size: tuple[int, int], things: list[Primitive]) -> Any:
    """A second opinion: rays walk by the distance to the nearest surface until they are there."""
    d = rays(camera, size)
    t = np.zeros(d.shape[:2])
    ids = np.full(t.shape, -2)
    for _ in range(400):
        p = np.array(camera.eye) + t[..., None] * d
        all_distances = np.stack([distance(thing, p) for thing in things])
        least = all_distances.min(axis=0)
        ids = np.where(least < 1e-7, all_distances.argmin(axis=0), -2)
        t = np.where(t < 50.0, t + least, t)
    return ids, t


def distance(thing: Primitive, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of points to the surface of a primitive, negative inside."""
    q = (p - np.array(thing.pos)) @ quat_matrix(thing.quat)
    size = thing.size
    if thing.kind == "sphere":
        return np.asarray(np.linalg.norm(q, axis=-1) - size[0])
    if thing.kind == "capsule":
        q = q - np.clip(q * (0, 0, 1), -size[1], size[1])
        return np.asarray(np.linalg.norm(q, axis=-1) - size[0])
    if thing.kind == "box":
        e = np.abs(q) - size
    elif thing.kind == "cylinder":
        e = np.stack([np.hypot(q[..., 0], q[..., 1]) - size[0], np.abs(q[..., 2]) - size[1]], -1)
    else:
        return np.asarray(np.abs(q[..., 2]))
    return np.asarray(np.linalg.norm(np.maximum(e, 0), axis=-1) + np.minimum(e.max(axis=-1), 0))


def middle(thing: Primitive, eye: tuple[float, float, float] = (0.0, -5.0, 1.0)) -> float:
    """Depth of what lies in the middle of the picture."""
    out = probe([thing], camera=look_at(eye, (0.0, 0.0, 1.0)), size=(33, 33), ground=False)
    assert out.ids[16, 16] == 0
    return float(out.depth[16, 16])


CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.5
QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
FACES = np.array([f for a, b, c, d in QUADS for f in ((a, b, c), (a, c, d))])


@pytest.mark.parametrize(
    ("thing", "depth"),
    [
        (Primitive("sphere", (0.5,), (0, 0, 1)), 4.5),
        (Primitive("capsule", (0.3, 0.6), (0, 0, 1)), 4.7),
        (Primitive("capsule", (0.3, 0.6), (0, 0, 1), quat_from_z((0, 1, 0))), 4.1),
        (Primitive("box", (0.5, 0.25, 0.5), (0, 0, 1)), 4.75),
        (Primitive("cylinder", (0.3, 0.6), (0, 0, 1)), 4.7),
        (Primitive("cylinder", (0.3, 0.6), (0, 0, 1), quat_from_z((0, 1, 0))), 4.4),
        (Primitive("plane", (0.0,), (0, 2, 0), quat_from_z((0, -1, 0))), 7.0),
        (Primitive("mesh", (), (0, 0, 1), mesh=Mesh(CUBE, FACES)), 4.5),
    ],
)
def test_each_kind_is_hit_at_its_depth(thing: Primitive, depth: float) -> None:
    assert middle(thing) == pytest.approx(depth, rel=1e-6)  # float32


def test_a_height_field_is_hit_at_its_height() -> None:
    x = np.linspace(-1, 1, 21)
    field = Mesh.height_field(0.5 * x[:, None] + 0.0 * x[None, :], 0.1)
    out = probe(
        [Primitive("mesh", (), mesh=field)],
        camera=look_at((0.4, 0.0, 5.0), (0.4, 0.0, 0.0), up=(0, 1, 0)),
        size=(9, 9),
        ground=False,
    )
    assert out.depth[4, 4] == pytest.approx(4.8, rel=1e-6)


def test_the_ground_is_hit_where_geometry_says() -> None:
    camera = look_at((0.0, -3.0, 2.0), (0.0, 0.0, 0.0))
    out = probe([], camera=camera, size=(31, 31))
    assert out.ids[15, 15] == -1
    assert out.depth[15, 15] == pytest.approx(math.sqrt(13), rel=1e-6)
    assert probe([], camera=camera, size=(3, 3), ground=False).ids[1, 1] == -2


def test_ids_and_depths_equal_those_of_a_marching_tracer() -> None:
    things = [
        Primitive("sphere", (0.4,), (0.9, 0.0, 1.2)),
        Primitive("capsule", (0.2, 0.5), (-0.7, 0.2, 1.0), TILT),
        Primitive("box", (0.4, 0.2, 0.3), (0.1, -0.4, 0.6), (0.9, 0.1, 0.3, 0.2)),
        Primitive("cylinder", (0.3, 0.35), (0.0, 0.5, 1.6), (0.7, 0.5, 0.2, 0.1)),
        Primitive("cylinder", (0.5, 0.05), (-0.9, -0.3, 0.3), TILT),
        Primitive("capsule", (0.1, 0.9), (0.3, 0.3, 1.1), quat_from_z((0.6, 0.8, 0.0))),
    ]
    camera = look_at((1.0, -4.0, 2.0), (0.0, 0.0, 1.0), fov=0.6)
    size = (96, 72)
    out = probe(things, camera=camera, size=size, ground=False)
    ids, depth = march(camera, size, things)
    assert np.array_equal(out.ids, ids)
    np.testing.assert_allclose(out.depth[ids >= 0], depth[ids >= 0], rtol=1e-5)  # float32
    assert set(np.unique(ids)) == {-2, 0, 1, 2, 3, 4, 5}


def test_triangles_show_what_the_box_shows() -> None:
    pose: dict[str, Any] = {"pos": (0.1, 0.0, 1.0), "quat": (0.9, 0.1, 0.3, 0.2)}
    box = probe([Primitive("box", (0.5, 0.5, 0.5), **pose)], camera=FRONT, size=(120, 90))
    mesh = probe(
        [Primitive("mesh", (), mesh=Mesh(CUBE, FACES), **pose)], camera=FRONT, size=(120, 90)
    )
    assert (box.ids == mesh.ids).mean() > 0.999
    same = box.ids == mesh.ids
    np.testing.assert_allclose(box.depth[same], mesh.depth[same], rtol=1e-4)


def triangles_hit(
    mesh: Mesh, origin: NDArray[np.float64], d: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A second opinion: distances along rays (k, 3) to the nearest triangle, else infinite."""
    nearest = np.full(len(d), np.inf)
    for a, b, c in mesh.vertices[mesh.faces]:
        M = np.stack([np.broadcast_to(b - a, d.shape), np.broadcast_to(c - a, d.shape), -d], -1)
        regular = np.abs(np.linalg.det(M)) > 1e-12
        i, j, t = np.linalg.solve(
            M[regular], np.broadcast_to(origin - a, d.shape)[regular][..., None]
        )[..., 0].T
        inside = (i >= 0) & (j >= 0) & (i + j <= 1) & (t > 0)
        nearest[regular] = np.where(inside, np.minimum(nearest[regular], t), nearest[regular])
    return nearest


@pytest.mark.parametrize("eye", [(1.5, -2.0, 1.4), (0.1, 0.05, 0.35)])
def test_triangles_are_hit_where_linear_algebra_says(eye: tuple[float, float, float]) -> None:
    # from outside, and from amid the field, where triangles pass behind the eye
    rng = np.random.default_rng(1)
    field = Mesh.height_field(rng.uniform(0.0, 0.2, (9, 7)), (0.25, 0.3))
    camera, size = look_at(eye, (0.0, 0.3, 0.1), fov=0.9), (48, 36)
    out = probe([Primitive("mesh", (), mesh=field)], camera=camera, size=size, ground=False)
    expected = triangles_hit(field, np.array(eye), rays(camera, size).reshape(-1, 3)).reshape(
        36, 48
    )
    seen = np.isfinite(expected)
    assert ((out.ids == 0) == seen).mean() > 0.999  # a ray through an edge may go either way
    both = seen & (out.ids == 0)
    assert both.sum() > 300
    # float32; a ray along a slope changes its distance quickly
    assert np.quantile(np.abs(out.depth[both] / expected[both] - 1), 0.99) < 1e-5


def test_solid_and_see_through_triangles_are_seen_at_the_same_places() -> None:
    # solid ones are filled in, see-through ones are met by rays
    v = np.random.default_rng(2).normal(size=(60, 3))
    hull = Shape.mesh((0.5 * v / np.linalg.norm(v, axis=1, keepdims=True)).tolist())
    mesh = Mesh(np.array(hull.vertices), hull.triangles, convex=True)
    options: dict[str, Any] = {"camera": FRONT, "size": (120, 90), "ground": False, "samples": 1}
    bare = render([], **options)
    solid, glass = (
        (render([Primitive("mesh", (), (0, 0, 1), mesh=mesh, opacity=o)], **options) != bare).any(2)
        for o in (1.0, 0.5)
    )
    assert solid.sum() > 500
    assert (solid != glass).mean() < 1e-3


def test_a_convex_mesh_casts_the_shadow_of_the_same_box() -> None:
    pose: dict[str, Any] = {"pos": (0.0, 0.0, 1.0), "quat": TILT, "color": (0.5, 0.5, 0.5)}
    options: dict[str, Any] = {
        "camera": look_at((0.0, 0.0, 8.0), (0.0, 0.0, 0.0), up=(0.0, 1.0, 0.0)),
        "size": (96, 96),
        "light": (1.0, 0.3, 1.0),
    }
    mesh = Primitive("mesh", (), mesh=Mesh(CUBE, FACES, convex=True), **pose)
    box = Primitive("box", (0.5, 0.5, 0.5), **pose)
    loose = Primitive("mesh", (), mesh=Mesh(CUBE, FACES), **pose)  # by rays
    bare = render([], **options).astype(int).sum(axis=2)
    ground = probe([box], camera=options["camera"], size=(96, 96)).ids == -1
    m, b, r = (ground * (bare - render([x], **options).sum(axis=2)) for x in (mesh, box, loose))
    assert (b > 60).sum() > 150
    # the rims of their half-shadows are found in different ways
    assert np.abs(m - b).mean() < 0.06 * b[b > 60].mean()
    assert np.abs(m - r).mean() < 0.06 * b[b > 60].mean()


def test_the_shadow_of_a_hill_is_as_long_as_the_light_is_low() -> None:
    # a ridge of height 0.5 across x = 0, the light from +x at 45 degrees: dark until x = -0.5
    x = np.linspace(-2, 2, 81)
    ridge = np.where(np.abs(x) < 0.03, 0.5, 0.0)[:, None] * np.ones(21)
    thing = Primitive("mesh", (), mesh=Mesh.height_field(ridge, 0.05), color=(0.6, 0.6, 0.6))
    camera = look_at((0.0, 0.0, 9.0), (0.0, 0.0, 0.0), up=(0.0, 1.0, 0.0), fov=0.037)
    options: dict[str, Any] = {"camera": camera, "size": (180, 20), "ground": False}
    row = render([thing], light=(1.0, 0.0, 1.0), checks=1000.0, **options)[10].astype(int).sum(1)
    at = ((np.arange(180) + 0.5) / 180 - 0.5) * 2 * 9.0 * math.tan(camera.fov / 2) * 9
    lit, dark = row[at > 0.3].mean(), row[(at < -0.1) & (at > -0.35)].max()
    assert dark < 0.8 * lit
    assert row[(at < -0.65) & (at > -1.2)].min() > 0.97 * lit
    half = at[(row < (lit + dark) / 2) & (at < -0.1)].min()
    assert half == pytest.approx(-0.5, abs=0.06)  # a cell of the field


def test_a_flat_height_field_hides_the_ground_it_lies_in() -> None:
    field = Primitive("mesh", (), mesh=Mesh.height_field(np.zeros((20, 20)), 0.1))
    camera = look_at((2.0, -3.0, 1.5), (0.0, 0.0, 0.0), fov=0.1)
    assert (probe([field], camera=camera, size=(64, 64)).ids == 0).all()


def test_a_height_field_shadows_what_stands_behind_its_hill() -> None:
    x = np.linspace(-2, 2, 81)
    wall = np.where(np.abs(x - 0.5) < 0.08, 1.0, 0.0)[:, None] * np.ones(21)
    ball = Primitive("sphere", (0.2,), (0.0, 0.0, 0.25), color=(0.8, 0.8, 0.8))
    options: dict[str, Any] = {
        "camera": look_at((0.0, -3.0, 2.0), (0.0, 0.0, 0.25), fov=0.2),
        "size": (64, 64),
        "ground": False,
        "light": (1.0, 0.0, 1.0),
    }
    ids = probe([ball], camera=options["camera"], size=(64, 64), ground=False).ids
    alone = render([ball], **options)[ids == 0].astype(int).sum()
    behind = render([ball, Primitive("mesh", (), mesh=Mesh.height_field(wall, 0.05))], **options)
    assert behind[ids == 0].astype(int).sum() < 0.85 * alone


def test_a_symmetric_scene_gives_a_symmetric_picture() -> None:
    # in the middle of a large check
    things = [
        Primitive("capsule", (0.2, 0.3), (512, 0, 0.6), quat_from_z((1, 0, 0))),
        Primitive("box", (0.1, 0.3, 0.2), (512, 0, 1.2)),
        *(Primitive("sphere", (0.2,), (512 + s * 0.6, 0.3, 0.2)) for s in (-1, 1)),
    ]
    camera = look_at((512.0, -5.0, 1.0), (512.0, 0.0, 0.7))
    image = render(things, camera=camera, size=(160, 90), light=(0.0, -0.5, 1.0), checks=1024.0)
    difference = np.abs(image.astype(int) - image[:, ::-1])
    assert np.quantile(difference, 0.99) <= 2  # pixels between two others are their mean
    assert difference.mean() < 0.2


def test_pixels_between_others_are_what_they_would_be_alone() -> None:
    # a pixel of a picture one pixel wide has no neighbours: it is painted by itself
    character = load_character("dog")
    camera = follow(character, size=(240, 135))
    image = render(character, camera=camera, size=(240, 135), samples=1).astype(int)
    eye, target = np.array(camera.eye), np.array(camera.target)
    d = rays(camera, (240, 135))
    distance = float(np.linalg.norm(target - eye))
    rng = np.random.default_rng(0)
    for x, y in zip(rng.integers(60, 180, 40), rng.integers(20, 120, 40), strict=True):
        ahead = tuple(eye + distance * d[y, x])
        alone = look_at(camera.eye, ahead, camera.up, fov=camera.fov / 135)
        pixel = render(character, camera=alone, size=(1, 1), samples=1)[0, 0].astype(int)
        # at most half of the difference between neighbours that counts as close, and rounding
        assert np.abs(image[y, x] - pixel).max() <= 5


def test_far_from_the_origin_it_looks_the_same() -> None:
    # 4096 m are a whole number of checks, and exact in binary
    character = load_character("humanoid")
    q = character.rest_q
    near = render(character, q, size=(160, 120))
    q[0] += 4096.0
    far = render(character, q, size=(160, 120))
    assert np.abs(near.astype(int) - far).mean() < 0.1


def test_shadows_fall_away_from_the_light() -> None:
    ball = Primitive("sphere", (0.3,), (0.0, 0.0, 0.5))
    camera = look_at((0.0, 0.0, 8.0), (0.0, 0.0, 0.0), up=(0.0, 1.0, 0.0))
    options: dict[str, Any] = {"camera": camera, "size": (128, 128), "checks": 1000.0}
    bare = render([], light=(1.0, 0.0, 1.0), **options).astype(int)
    dark = bare - render([ball], light=(1.0, 0.0, 1.0), **options)
    # the light stands to the right, at 45 degrees: the shadow's middle is 0.5 m to the left
    row = dark.sum(axis=2)[64]
    scale = 128 / (2 * 8 * math.tan(camera.fov / 2))
    far, left, right = (round(64 + x * scale) for x in (-1.2, -0.5, 0.5))
    assert row[left] > 100
    assert row[right] < 30  # the ball hides a little of the sky
    assert not row[:far].any()


@pytest.mark.parametrize(
    "thing",
    [
        Primitive("sphere", (0.3,), (0, 0, 1.5)),
        Primitive("capsule", (0.2, 0.3), (0, 0, 1.5), TILT),
        Primitive("box", (0.3, 0.3, 0.2), (0, 0, 1.5), TILT),
        Primitive("cylinder", (0.3, 0.2), (0, 0, 1.5), TILT),
        Primitive("mesh", (), (0, 0, 1.5), mesh=Mesh(CUBE, FACES)),
    ],
)
def test_every_kind_casts_a_shadow_on_ground_and_bodies(thing: Primitive) -> None:
    table = Primitive("box", (1.0, 1.0, 0.1), (0.0, 0.0, 0.5), color=(0.8, 0.8, 0.8))
    camera = look_at((0.0, -4.0, 1.0), (0.0, 0.0, 0.5))
    light = (0.0, -0.01, 1.0)
    for under in ([], [table]):
        options: dict[str, Any] = {"camera": camera, "size": (64, 64), "light": light}
        bare = render(under, checks=1000.0, **options).astype(int)
        dark = (bare - render([*under, thing], checks=1000.0, **options)).sum(axis=2)
        ids = probe([*under, thing], camera=camera, size=(64, 64)).ids
        receiver = ids == (0 if under else -1)
        assert dark[receiver].max() > 60


def test_a_ghost_lets_the_background_through_and_hides_behind_solid_things() -> None:
    wall = Primitive("plane", (0.0,), (0, 2, 0), quat_from_z((0, -1, 0)), (1.0, 0.0, 0.0))
    ghost = Primitive("sphere", (0.5,), (0, 0, 1), color=(0.0, 0.0, 1.0), opacity=0.4)
    options: dict[str, Any] = {"camera": FRONT, "size": (64, 64), "ground": False}
    bare = render([wall], **options)[32, 32].astype(int)
    seen = render([wall, ghost], **options)[32, 32].astype(int)
    assert 40 < seen[0] < bare[0]
    assert seen[2] > bare[2] + 20
    solid = Primitive("sphere", (0.6,), (0, -1, 1), color=(0.0, 1.0, 0.0))
    alone = render([wall, solid], **options)
    assert np.array_equal(alone[32, 32], render([wall, ghost, solid], **options)[32, 32])
    assert probe([ghost], camera=FRONT, size=(9, 9), ground=False).ids[4, 4] == -2


def test_of_a_group_only_the_nearest_surface_shows() -> None:
    def ball(y: float, group: int) -> Primitive:
        return Primitive(
            "sphere", (0.5,), (0, y, 1), color=(0.0, 0.0, 1.0), opacity=0.4, group=group
        )

    options: dict[str, Any] = {"camera": FRONT, "size": (32, 32), "ground": False}
    one = render([ball(0, 0)], **options)
    assert np.array_equal(one[16, 16], render([ball(0, 0), ball(1.5, 0)], **options)[16, 16])
    two = render([ball(0, 0), ball(1.5, 1)], **options)
    assert two[16, 16, 0] < one[16, 16, 0]


def test_a_ghost_in_the_same_pose_cannot_be_seen_on_the_character() -> None:
    character = load_character("humanoid")
    camera = follow(character, size=(160, 120))
    plain = render(character, camera=camera, size=(160, 120), samples=1)
    ghost = render(character, camera=camera, size=(160, 120), samples=1, ghost=character.rest_q)
    body = probe(character, camera=camera, size=(160, 120)).ids >= 0
    assert np.array_equal(plain[body], ghost[body])


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-72", "two-link"])
def test_the_default_camera_shows_all_of_a_character(name: str) -> None:
    character = load_character(name)
    body = probe(character, size=(240, 135)).ids >= 0
    assert not body[:6].any()
    assert not body[-6:].any()
    assert not body[:, :6].any()
    assert not body[:, -6:].any()
    assert max(np.ptp(np.nonzero(body)[0]) / 135, np.ptp(np.nonzero(body)[1]) / 240) > 0.6


def test_the_default_camera_turns_with_the_character() -> None:
    character = load_character("humanoid").with_base("free")
    q = character.rest_q
    q[3:7] = (math.cos(0.5), 0.0, 0.0, math.sin(0.5))
    a, b = np.array(follow(character).eye), np.array(follow(character, q).eye)
    turn = math.atan2(b[1], b[0]) - math.atan2(a[1], a[0])
    assert turn == pytest.approx(1.0, abs=1e-6)


def test_the_cameras_of_a_video_go_along_and_keep_all_in_the_picture() -> None:
    character = load_character("humanoid")
    q = np.tile(character.rest_q, (40, 1))
    q[:, 0] += np.linspace(0.0, 4.0, 40)
    cameras = follow_motion(character, q, size=(120, 90), smoothing=4.0)
    assert len(cameras) == 40
    eyes = np.array([c.eye for c in cameras])
    np.testing.assert_allclose(eyes[20] - eyes[19], q[20, :3] - q[19, :3], atol=1e-9)
    assert np.ptp(eyes[:, 2]) == pytest.approx(0.0, abs=1e-12)
    for i in (0, 20, 39):
        body = probe(character, q[i], cameras[i], size=(120, 90)).ids >= 0
        edge = np.concatenate([body[0], body[-1], body[:, 0], body[:, -1]])
        assert body.any()
        assert not edge.any()


def test_several_characters_are_drawn_together() -> None:
    a, b = load_character("two-link"), load_character("lamp")
    both = drawing_of([a, b])
    assert len(both) == len(drawing_of(a)) + len(drawing_of(b))
    assert set(np.unique(probe([a, b], size=(320, 180)).ids)) >= set(range(len(both) - 4))


def test_an_arrow_reaches_from_its_start_to_its_end() -> None:
    shaft, head = arrow((0.0, 0.0, 1.0), (0.0, 0.0, 400.0), scale=0.002, radius=0.02)
    assert head.mesh is not None
    assert shaft.pos[2] - shaft.size[1] == pytest.approx(1.0)
    assert shaft.pos[2] + shaft.size[1] == pytest.approx(head.pos[2])
    assert head.pos[2] + head.mesh.vertices[:, 2].max() == pytest.approx(1.8)
    pushed = arrow((0.5, 0.0, 1.0), (1.0, 0.0, 0.0), tip=True)
    assert pushed[0].pos[0] - pushed[0].size[1] == pytest.approx(-0.5)
    assert arrow((0, 0, 0), (0, 0, 0)) == []


def test_a_trail_goes_through_its_points() -> None:
    points = np.array([[0, 0, 0.5], [1, 0, 0.5], [1, 0, 0.5], [1, 1, 1.0]], dtype=float)
    pieces = trail(points, radius=0.01)
    assert len(pieces) == 2  # a point that stays adds nothing
    inside = np.stack([distance(piece, points) for piece in pieces]).min(axis=0)
    np.testing.assert_allclose(inside, -0.01, atol=1e-12)


def test_arrows_trails_and_marks_are_seen() -> None:
    character = load_character("humanoid")
    camera = follow(character, size=(160, 120))
    plain = render(character, camera=camera, size=(160, 120))
    for also in (
        arrow((0.4, 0.0, 1.0), (0.3, 0.0, 0.0)),
        trail([(0.3, 0.0, 0.1), (0.3, 0.0, 1.0)]),
        marker((0.3, 0.0, 1.0)),
    ):
        image = render(character, camera=camera, size=(160, 120), also=also)
        assert (image != plain).any(axis=2).sum() > 10


def test_wrong_arrows_trails_and_marks_are_refused() -> None:
    wrong: Any
    for wrong in (
        lambda: arrow((0, 0), (0, 0, 1)),
        lambda: arrow((0, 0, 0), (0, 0, math.nan)),
        lambda: arrow((0, 0, 0), (0, 0, 1), radius=0.0),
        lambda: arrow((0, 0, 0), (0, 0, 1), color=(2.0, 0.0, 0.0)),
        lambda: trail(np.zeros(3)),
        lambda: trail(np.full((2, 3), math.inf)),
        lambda: marker((0, 0, 0), radius=-1.0),
    ):
        with pytest.raises(PoiseError):
            wrong()


def test_the_same_picture_every_time() -> None:
    character = load_character("dog")
    first = render(character, size=(200, 150))
    assert np.array_equal(first, render(character, size=(200, 150)))


def test_smoothing_touches_edges_only() -> None:
    character = load_character("humanoid")
    rough, smooth = (render(character, size=(200, 150), samples=n) for n in (1, 2))
    changed = (rough != smooth).any(axis=2).mean()
    assert 0.005 < changed < 0.25


def test_colours_by_limb_link_or_one_for_all() -> None:
    character = load_character("humanoid")
    one = drawing_of(character, color=(1.0, 0.0, 0.0))
    assert {p.color for p in one} == {(1.0, 0.0, 0.0)}
    some = drawing_of(character, color={"head": (0.0, 1.0, 0.0)})
    assert 0 < sum(p.color == (0.0, 1.0, 0.0) for p in some) < len(some)
    with pytest.raises(PoiseError, match="unknown limb or link 'haed'"):
        drawing_of(character, color={"haed": (0.0, 1.0, 0.0)})


def test_colours_of_a_scene_are_by_part_limb_and_link() -> None:
    scene = [load_character("humanoid"), load_character("dog")]
    red, green, blue = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    count = [len(drawing_of(one)) for one in scene]
    heads = [sum(len(one.link(x).shapes) for x in one.limbs["head"]) for one in scene]

    def painted(names: dict[str, Any]) -> dict[Any, int]:
        things = [tuple(thing.color) for thing in drawing_of(scene, color=names)]
        return {rgb: things.count(rgb) for rgb in (red, green, blue)}

    # a head is painted in every part that has one, or in one of them
    assert painted({"head": red})[red] == sum(heads)
    assert painted({"dog/head": red})[red] == heads[1]
    assert painted({"dog": green}) == {red: 0, green: count[1], blue: 0}
    # the later name wins
    both = painted({"dog": green, "dog/head": blue, "left_leg": red})
    assert both[blue] == heads[1]
    assert both[green] == count[1] - heads[1]
    with pytest.raises(PoiseError, match="'dgo/head'; did you mean 'dog/head'"):
        painted({"dgo/head": red})


def test_a_limb_has_the_same_colour_whatever_the_order_of_limbs() -> None:
    def pair(limbs: dict[str, tuple[str, ...]]) -> Character:
        ball = Shape("sphere", (0.1,))
        a = Link.from_shapes("a", None, [ball], joints=[Joint("root", "free")])
        b = Link.from_shapes("b", "a", [ball], joints=[Joint("turn", "ball")])
        return Character("pair", (a, b), limbs=limbs)

    one = drawing_of(pair({"head": ("a",), "left_leg": ("b",)}))
    other = drawing_of(pair({"left_leg": ("b",), "head": ("a",)}))
    assert [p.color for p in one] == [p.color for p in other]
    assert one[0].color != one[1].color


def test_a_mesh_of_a_character_is_drawn_as_its_hull() -> None:
    def block(shape: Shape) -> Character:
        pose: dict[str, Any] = {"pos": (0.0, 0.0, 1.0), "joints": [Joint("root", "free")]}
        return Character("block", (Link.from_shapes("block", None, [shape], **pose),))

    mesh = block(Shape.mesh(CUBE.tolist(), quat=TILT))
    box = block(Shape("box", (0.5, 0.5, 0.5), quat=TILT))
    a, b = (probe(c, camera=FRONT, size=(90, 60)) for c in (mesh, box))
    assert (a.ids == b.ids).mean() > 0.999  # a ray through an edge may go either way
    assert a.ids[30, 45] == 0


def test_a_world_is_drawn_where_it_is() -> None:
    import poise

    character = load_character("two-link")
    world = poise.World(character, dt=0.01)
    q = np.array([0.5, 0.3])
    world.reset(poise.State(q, np.zeros(2)))
    assert np.array_equal(render(world, size=(64, 48)), render(character, q, size=(64, 48)))


def test_a_world_is_drawn_with_its_obstacles_and_what_was_thrown() -> None:
    box = Shape("box", (0.3, 0.3, 0.3), pos=(0.0, 1.0, 0.3), color=(0.0, 1.0, 0.0))
    camera = look_at((4.0, 0.0, 1.0), (0.0, 0.0, 1.0))
    plain, blocked = (
        World(load_character("humanoid"), dt=1 / 60, obstacles=x) for x in ([], [box])
    )
    without, picture = (render(x, camera=camera, size=(160, 120)) for x in (plain, blocked))
    green = (picture[..., 1] > 130) & (picture[..., 0] < 90)
    assert green.sum() > 200
    # y is to the right of a camera that looks along -x
    assert np.percentile(np.argwhere(green)[:, 1], 5) > 80
    assert ((without[..., 1] > 130) & (without[..., 0] < 90)).sum() < 10
    plain.throw((0.0, -1.0, 1.0), (0.0, 0.0, 0.0))
    thrown = render(plain, camera=camera, size=(160, 120))
    changed = np.abs(thrown.astype(int) - without).max(axis=2) > 30
    assert changed[:, :80].sum() > 20
    # a pose of its own is not where the ball was thrown
    posed = render(plain, plain.state.q, camera=camera, size=(160, 120))
    np.testing.assert_array_equal(posed, without)


def test_a_world_is_drawn_on_its_own_ground() -> None:
    humanoid, size = load_character("humanoid"), (160, 120)
    camera = look_at((6.0, 0.0, 1.5), (0.0, 0.0, 1.0))

    def drawn(own: Any, ground: Any = True) -> NDArray[np.int64]:
        world = World(humanoid, dt=1 / 60, ground=own)
        return render(world, camera=camera, size=size, ground=ground).astype(int)

    hill = np.zeros((9, 9))
    hill[:, 6] = 1.5  # a ridge along y, to the right
    ridge = drawn(HeightField(hill.T, 0.5))
    level, lower, tilted = drawn(True), drawn(Plane(height=-0.5)), drawn(Plane((0.0, 0.5, 1.0)))
    sky = drawn(False)
    pictures = [ridge, level, lower, tilted, sky]
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert (np.abs(one - other).max(axis=2) > 8).sum() > 500
    # the ridge hides sky on its side only
    assert np.abs(ridge[30:50, 100:140] - sky[30:50, 100:140]).max() > 20
    # without a ground no hill is drawn either; a height takes the place of the world's own
    np.testing.assert_array_equal(drawn(HeightField(hill.T, 0.5), ground=False), sky)
    np.testing.assert_array_equal(drawn(Plane(height=-0.5), ground=0.0), level)


def test_a_contact_sheet_of_a_world_has_its_surroundings() -> None:
    humanoid = load_character("humanoid")
    wall = Shape("box", (0.1, 5.0, 1.0), pos=(-1.0, 0.0, 1.0), color=(0.0, 1.0, 0.0))
    world = World(humanoid, dt=1 / 60, obstacles=[wall])
    rows = np.tile(humanoid.rest_q, (3, 1))
    plain, walled = (contact_sheet((x, rows), columns=3, labels=False) for x in (humanoid, world))
    assert ((walled[..., 1] > 130) & (walled[..., 0] < 90)).mean() > 0.2
    assert ((plain[..., 1] > 130) & (plain[..., 0] < 90)).mean() < 0.01


def test_shapes_and_types_of_pictures() -> None:
    image = render([], size=(31, 17))
    assert image.shape == (17, 31, 3)
    assert image.dtype == np.uint8
    assert render([Primitive("sphere", (1.0,))], size=(1, 1)).shape == (1, 1, 3)


@pytest.mark.parametrize(
    "size",
    [(0, 10), (10, 0), (-5, 10), (10, 10, 10), (2.5, 10), "ab", None, (10**6, 1), (16384, 16384)],
)
def test_sizes_that_cannot_be_drawn_are_refused(size: Any) -> None:
    with pytest.raises(PoiseError):
        render([], size=size)


@pytest.mark.parametrize(
    "camera",
    [
        look_at((math.nan, 0, 0), (0, 0, 1)),
        look_at((0, 0, 0), (0, math.inf, 1)),
        look_at((0, 0, 1), (0, 0, 1)),
        look_at((0, 0, 1), (0, 0, 2)),
        look_at((1, 0, 1), (0, 0, 1), up=(0, 0, 0)),
        look_at((1, 0, 1), (0, 0, 1), fov=0.0),
        look_at((1, 0, 1), (0, 0, 1), fov=math.pi),
        look_at((1, 0, 1), (0, 0, 1), fov=math.nan),
        look_at((1, 0), (0, 0, 1)),
        look_at((1e12, 0, 0), (0, 0, 1)),
        "front",
    ],
)
def test_cameras_that_see_nothing_are_refused(camera: Any) -> None:
    with pytest.raises(PoiseError):
        render([], camera=camera, size=(8, 8))


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "cone", "size": (1.0,)},
        {"kind": "sphere", "size": (0.0,)},
        {"kind": "sphere", "size": (-1.0,)},
        {"kind": "sphere", "size": (1.0, 2.0)},
        {"kind": "sphere", "size": (math.nan,)},
        {"kind": "sphere", "size": (1.0,), "pos": (0.0, 0.0, math.nan)},
        {"kind": "sphere", "size": (1.0,), "quat": (0.0, 0.0, 0.0, 0.0)},
        {"kind": "sphere", "size": (1.0,), "color": (2.0, 0.0, 0.0)},
        {"kind": "sphere", "size": (1.0,), "opacity": 1.5},
        {"kind": "mesh", "size": ()},
    ],
)
def test_wrong_primitives_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PoiseError):
        Primitive(**given)


@pytest.mark.parametrize(
    ("vertices", "faces"),
    [
        (CUBE, FACES + 1),
        (CUBE, -FACES),
        (CUBE * math.nan, FACES),
        (CUBE[:, :2], FACES),
        (CUBE, FACES[:, :2]),
        (CUBE, FACES * 0.5),
        ("ab", FACES),
    ],
)
def test_wrong_meshes_are_refused(vertices: Any, faces: Any) -> None:
    with pytest.raises(PoiseError):
        Mesh(vertices, faces)


def test_other_wrong_arguments_are_refused() -> None:
    character = load_character("two-link")
    wrong: dict[str, Any]
    for wrong in (
        {"q": np.zeros(3)},
        {"q": np.array([0.0, math.nan])},
        {"ghost": np.zeros((2, 2))},
        {"samples": 0},
        {"samples": 99},
        {"light": (0, 0, -1)},
        {"light": (0, 0, math.nan)},
        {"ground": math.nan},
        {"checks": 0.0},
        {"also": [1]},
        {"color": (1.0, 0.0)},
    ):
        with pytest.raises(PoiseError):
            render(character, size=(8, 8), **wrong)
    with pytest.raises(PoiseError):
        render("humanoid", size=(8, 8))  # type: ignore[arg-type]
    with pytest.raises(PoiseError):
        render([], np.zeros(2), size=(8, 8))
    with pytest.raises(PoiseError):
        follow(character, margin=0.6)


def test_a_camera_in_a_body_or_in_the_ground_draws_something() -> None:
    ball = Primitive("sphere", (2.0,))
    image = render([ball], camera=look_at((0, 0, 0), (1, 0, 0)), size=(32, 32))
    assert image.shape == (32, 32, 3)
    below = render([ball], camera=look_at((0, 0, -5), (1, 0, 0)), size=(32, 32))
    assert below.max() > 0


def test_many_primitives_take_bounded_time() -> None:
    rng = np.random.default_rng(0)
    balls = [Primitive("sphere", (0.05,), tuple(p)) for p in rng.uniform(-5, 5, (3000, 3))]
    assert render(balls, size=(64, 48)).shape == (48, 64, 3)


# contact sheets and files


def test_a_contact_sheet_shows_poses_side_by_side_at_one_scale() -> None:
    character = load_character("humanoid")
    q = np.tile(character.rest_q, (30, 1))
    q[:, 0] += np.linspace(0.0, 3.0, 30)
    q[15:, 2] += 0.3
    sheet = contact_sheet((character, q), columns=3, cell=(60, 90), labels=False)
    assert sheet.shape == (90, 3 * 62 - 2, 3)
    first, last = sheet[:, :60].astype(int), sheet[:, 124:].astype(int)
    shoe = [np.nonzero(((c[..., 0] - c[..., 2]) > 80).any(axis=1))[0].max() for c in (first, last)]
    assert shoe[1] < shoe[0] - 5  # the feet have left the ground


def test_a_contact_sheet_has_rows_times_and_a_ghost() -> None:
    character = load_character("two-link")
    q = np.linspace(0.0, 1.0, 20)[:, None] * np.ones(2)
    plain = contact_sheet((character, q), columns=4, rows=2, cell=(50, 60), labels=False)
    assert plain.shape == (122, 206, 3)
    labelled = contact_sheet((character, q), columns=4, rows=2, cell=(50, 60), fps=30.0)
    assert (plain != labelled).any(axis=2).mean() < 0.2
    assert (plain[:20, :50] != labelled[:20, :50]).any()
    ghost = contact_sheet(
        (character, q), columns=4, rows=2, cell=(50, 60), labels=False, ghost=q[::-1]
    )
    assert (plain != ghost).any()


def test_wrong_contact_sheets_are_refused() -> None:
    character = load_character("two-link")
    q = np.zeros((5, 2))
    for motion in ("walk", (character, np.zeros(2)), (character, q[:0]), (character, q * math.nan)):
        with pytest.raises(PoiseError):
            contact_sheet(motion)
    wrong: dict[str, Any]
    for wrong in ({"columns": 0}, {"cell": (9000, 9000)}, {"fps": -1.0}, {"ghost": q[:2]}):
        with pytest.raises(PoiseError):
            contact_sheet((character, q), **wrong)


def at_the_origin() -> Character:
    """A body that a file puts with its root at the origin: it reaches to z = -1.1."""
    leg = Shape("capsule", (0.1, 0.4), (0, 0, -0.6))
    body = Link.from_shapes(
        "body", None, [Shape("sphere", (0.2,)), leg], joints=[Joint("body", "free")]
    )
    return Character("origin", (body,))


def test_the_ground_lies_under_a_root_at_the_origin() -> None:
    character = at_the_origin()
    expected = render(character, size=(120, 90), ground=-1.1)
    assert np.array_equal(render(character, size=(120, 90)), expected)
    assert np.array_equal(render(character, character.rest_q, size=(120, 90)), expected)
    assert not np.array_equal(render(character, size=(120, 90), ground=0.0), expected)


def test_the_ground_stays_where_a_character_has_gone() -> None:
    character = at_the_origin()
    q = character.rest_q.copy()
    q[2] = 1.1
    assert np.array_equal(
        render(character, q, size=(120, 90)), render(character, q, size=(120, 90), ground=0.0)
    )
    for frames, ground in ((np.stack([q, q]), 0.0), (np.stack([character.rest_q] * 2), -1.1)):
        sheet = contact_sheet((character, frames), columns=2)
        assert np.array_equal(sheet, contact_sheet((character, frames), columns=2, ground=ground))


@pytest.mark.parametrize(
    ("thing", "low"),
    [
        (Primitive("sphere", (0.5,), (0, 0, 1)), 0.5),
        (Primitive("capsule", (0.1, 0.4), (0, 0, 1)), 0.5),
        (Primitive("cylinder", (0.1, 0.4), (0, 0, 1)), 0.6),
        (Primitive("cylinder", (0.1, 0.4), (0, 0, 1), (1, 1, 0, 0)), 0.9),
        (Primitive("box", (0.1, 0.2, 0.3), (0, 0, 1), (1, 1, 0, 0)), 0.8),
        (Primitive("plane", (1.0,)), math.inf),
    ],
)
def test_the_lowest_point_of_a_thing(thing: Primitive, low: float) -> None:
    assert lowest(thing) == pytest.approx(low)


def test_a_picture_survives_the_file(tmp_path: Path) -> None:
    from matplotlib.image import imread

    image = render([Primitive("sphere", (0.5,), (0, 0, 1))], camera=FRONT, size=(40, 30))
    save_image(tmp_path / "ball.png", image)
    back = np.rint(imread(tmp_path / "ball.png")[..., :3] * 255).astype(np.uint8)
    assert np.array_equal(back, image)
    for path, wrong in (
        (tmp_path / "ball.gif", image),
        (tmp_path / "missing" / "ball.png", image),
        (tmp_path / "ball.png", image[..., 0]),
        (tmp_path / "ball.png", image.astype(float)),
    ):
        with pytest.raises(PoiseError):
            save_image(path, wrong)
