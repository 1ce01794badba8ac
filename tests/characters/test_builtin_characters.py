"""The built-in characters: figures of the papers, proportions, and what new shapes weigh."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bits import bits
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from peers import mujoco_mass_matrix, mujoco_state, to_mujoco
from trees import random_state

from poise import dynamics
from poise.anatomy import strength
from poise.characters import builtin_names, load_character
from poise.characters.humanoid import FRACTION
from poise.cli.characters import bounds
from poise.errors import CharacterError
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint, Link, Shape
from poise.model.formats import yaml

pytestmark = pytest.mark.arithmetic

PEOPLE = ("humanoid", "humanoid-51", "humanoid-ball")
STANDING = (*PEOPLE, "dog", "tail-biped", "lamp")
NEW = ("humanoid-51", "humanoid-ball", "tail-biped", "lamp", "plank-8", "plank-1", "plank-25")

Array = NDArray[np.float64]


# the shapes


def inside(shape: Shape, x: Array) -> Any:
    """Which points, in the shape's frame, lie in it."""
    if shape.kind == "mesh":
        corners = np.array(shape.vertices)[shape.triangles]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        return np.all(x @ normals.T <= np.sum(normals * corners[:, 0], axis=1) + 1e-12, axis=1)
    if shape.kind == "box":
        return np.all(np.abs(x) <= np.array(shape.size), axis=1)
    r, half = (*shape.size, 0.0)[:2]
    z = x[:, 2] - np.clip(x[:, 2], -half, half)
    if shape.kind == "cylinder":
        return (x[:, 0] ** 2 + x[:, 1] ** 2 <= r * r) & (z == 0.0)
    return x[:, 0] ** 2 + x[:, 1] ** 2 + z**2 <= r * r


def box_corners(x: float, y: float, z: float) -> list[tuple[float, ...]]:
    signs = [(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    return [(x * i, y * j, z * k) for i, j, k in signs]


CORNERS = np.random.default_rng(7).uniform(-0.5, 0.5, (40, 3)) * (1.0, 0.8, 0.5) + (0.05, 0.1, 0.0)


@pytest.mark.parametrize("shape", [Shape("cylinder", (0.2, 0.4)), Shape.mesh(CORNERS)])
def test_volume_and_inertia_of_new_shapes_by_monte_carlo(shape: Shape) -> None:
    x = np.random.default_rng(0).uniform(-0.6, 0.6, (400_000, 3))
    within = inside(shape, x)
    x = x[within]
    # sampling error: a few thousandths with at least 20,000 points inside
    assert shape.volume == pytest.approx(1.2**3 * within.mean(), rel=0.02)
    np.testing.assert_allclose(shape.center, x.mean(axis=0), atol=3e-3)
    x = x - x.mean(axis=0)
    second = x.T @ x / len(x)
    inertia = 2.0 * (np.trace(second) * np.eye(3) - second)
    np.testing.assert_allclose(shape.inertia(2.0), inertia, atol=0.01 * np.trace(inertia))


def test_the_mesh_of_a_boxs_corners_is_the_box_wherever_it_lies() -> None:
    box = Shape("box", (0.1, 0.2, 0.3))
    shift = np.array((1.0, -2.0, 0.5))
    # inner points and repeated ones do not count
    corners = np.array([*box_corners(0.1, 0.2, 0.3), (0.01, 0.02, 0.0), (0.1, 0.2, 0.3)]) + shift
    mesh = Shape.mesh(corners)
    assert mesh.volume == pytest.approx(box.volume, rel=1e-12)
    np.testing.assert_allclose(mesh.center, shift, atol=1e-12)
    np.testing.assert_allclose(mesh.inertia(3.0), box.inertia(3.0), atol=1e-12)


def test_a_link_of_meshes_has_the_mass_and_inertia_of_its_solids() -> None:
    turn = (0.6, 0.0, 0.8, 0.0)
    placed: dict[str, Any] = {"pos": (0.1, 0.2, 0.3), "quat": turn}
    off = (0.3, 0.0, -0.1)
    corners = np.array(box_corners(0.1, 0.2, 0.3)) + off
    pos = np.array(placed["pos"]) + quat_matrix(turn) @ off
    mesh = Link.from_shapes("l", None, [Shape.mesh(corners, **placed)])
    box = Link.from_shapes("l", None, [Shape("box", (0.1, 0.2, 0.3), tuple(pos), turn)])
    assert mesh.mass == pytest.approx(box.mass)
    np.testing.assert_allclose(mesh.com, box.com, atol=1e-12)
    np.testing.assert_allclose(mesh.inertia, box.inertia, atol=1e-9)


def test_the_triangles_of_a_hull_close_it_and_face_outward() -> None:
    shape = Shape.mesh(CORNERS)
    corners = CORNERS[shape.triangles]
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    np.testing.assert_allclose(areas.sum(axis=0), 0.0, atol=1e-12)
    assert np.all(np.sum(areas * (corners[:, 0] - shape.center), axis=1) > 0.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "cylinder", "size": (0.1, 0.0)}, "cylinder: size must be positive"),
        ({"kind": "cylinder", "size": (0.1,)}, "cylinder: size must be 2 numbers"),
        ({"kind": "mesh", "size": (1.0,)}, "mesh: size must be 0 numbers"),
        ({"kind": "mesh", "vertices": ((0, 0, 0), (1, 0, 0))}, "at least 4 points"),
        ({"kind": "mesh", "vertices": 7}, "at least 4 points, got 7"),
        ({"kind": "mesh", "vertices": [(0, 0)] * 4}, r"vertices\[0\] must be 3 numbers"),
        ({"kind": "mesh", "vertices": [(0, 0, math.nan)] * 4}, r"vertices\[0\]\[2\] must be fin"),
        ({"kind": "mesh", "vertices": [(1, 2, 3)] * 4}, "vertices lie in a plane"),
        (
            {"kind": "mesh", "vertices": ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0))},
            "vertices lie in a plane",
        ),
        ({"kind": "sphere", "size": (1,), "vertices": ((0, 0, 0),)}, "only a mesh has them"),
    ],
)
def test_a_wrong_new_shape_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(CharacterError, match=message):
        Shape(**{"size": (), **values})
    with pytest.raises(CharacterError, match="a sphere has no triangles"):
        _ = Shape("sphere", (1.0,)).triangles


# limits of ball joints


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((0.5, -1.0), "must be None or"),
        ((0.5, 1.0, -1.0), "limits are reversed"),
        ((-0.5, -1.0, 1.0), "swing in 0..pi"),
        ((3.5, -1.0, 1.0), "swing in 0..pi"),
        ((0.5, -4.0, 1.0), "twist in -pi..pi"),
        ((0.5, math.nan, 1.0), r"limits\[1\] must be finite"),
        (0.5, "must be None or"),
    ],
)
def test_wrong_limits_of_a_ball_are_refused(limits: Any, message: str) -> None:
    with pytest.raises(CharacterError, match=f"joint 'j': limits.*{message}|joint 'j': {message}"):
        Joint("j", "ball", limits=limits)


def test_a_free_joint_has_no_limits_and_a_hinge_has_two() -> None:
    with pytest.raises(CharacterError, match="limits of a free joint must be None"):
        Joint("j", "free", limits=(0.1, 0.2, 0.3))
    with pytest.raises(CharacterError, match="limits must be 2 numbers, got 3"):
        Joint("j", "hinge", limits=(0.1, 0.2, 0.3))
    assert Joint("j", "ball", limits=(math.pi, -math.pi, math.pi)).limits is not None


# files


def test_new_shapes_and_limits_come_back_bit_for_bit() -> None:
    joint = Joint("j", "ball", axis=(0.1, 0.2, 0.3), limits=(0.1 + 0.2, -1.0, 1e-7))
    shapes = [
        Shape.mesh(CORNERS, pos=(0.1, 0.2, 0.3), color=(0.1, 0.2, 0.3)),
        Shape("cylinder", (0.1, 0.2), quat=(1.0, 2.0, 3.0, 4.0)),
    ]
    character = Character("x", (Link.from_shapes("l", None, shapes, joints=[joint]),))
    assert bits(yaml.parse(yaml.dump(character))) == bits(character)


HEAD = "format: poise-character\nversion: 1\nname: x\nlinks:\n- name: l\n  density: 1000\n"


def test_a_mesh_may_be_written_by_hand() -> None:
    text = (
        "  shapes:\n  - kind: mesh\n    vertices: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]\n"
        "  joints: [{name: j, kind: ball, axis: [0, 1, 0], limits: [0.5, -1, 1]}]\n"
    )
    c = yaml.parse(HEAD + text)
    assert c.mass == pytest.approx(1000.0 / 6.0)
    assert c.links[0].com == pytest.approx((0.25, 0.25, 0.25))
    assert c.joints[0].limits == (0.5, -1.0, 1.0)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("{kind: mesh}", "c:7: link 'l': a shape needs 'vertices', which is missing"),
        ("{kind: cylinder}", "c:7: link 'l': a shape needs 'size', which is missing"),
        ("{kind: mesh, vertices: 3}", "c:7: link 'l': a shape's vertices must be a list"),
        ("{kind: mesh, vertices: [[1, 2]]}", r"vertices\[0\] must be 3 numbers, got 2"),
        ("{kind: mesh, vertices: [[1, 2, 3]]}", "c:7: mesh: vertices must be at least 4 points"),
        ("{kind: mesh, vertices: [[1, 2, x]]}", r"vertices\[0\]\[2\] must be a number, got 'x'"),
    ],
)
def test_a_wrong_mesh_in_a_file_is_refused_with_its_line(shape: str, message: str) -> None:
    with pytest.raises(CharacterError, match=message):
        yaml.parse(f"{HEAD}  shapes: [{shape}]\n", "c")


nasty = st.sampled_from([0.0, 1.0, -1.0, 1e-30, 1e-9, 1.0 + 1e-9, 1e15, -1e30, 5e-324, 0.5])
points = st.lists(st.tuples(nasty, nasty, nasty), min_size=3, max_size=9)


@settings(max_examples=300)
@given(points)
def test_no_other_error_escapes_from_any_vertices(vertices: list[tuple[float, ...]]) -> None:
    text = f"{HEAD}  shapes: [{{kind: mesh, vertices: {[list(x) for x in vertices]}}}]\n"
    joints = "  joints: [{name: j, kind: free}]\n"
    with contextlib.suppress(CharacterError):
        assert yaml.parse(text + joints).mass > 0.0


# figures of the papers


def test_humanoid_51_is_that_of_the_thesis() -> None:
    """Kavafoglu 2018, section 3.9 and Table 3.3."""
    c = load_character("humanoid-51")
    low, high = bounds(c)
    assert (c.nv, len(c.links)) == (51, 16)
    assert c.mass == pytest.approx(52.0, abs=1e-9)
    assert high[2] - low[2] == pytest.approx(1.6, abs=1e-9)
    sides = ("upper_arm", "lower_arm", "hand", "upper_leg", "lower_leg", "foot")
    names = {f"{side}_{name}" for side in ("left", "right") for name in sides}
    assert {link.name for link in c.links} == {"pelvis", "spine", "chest", "head", *names}
    assert [joint.kind for joint in c.joints] == ["free"] + ["ball"] * 15


def test_humanoid_ball_is_that_of_the_thesis() -> None:
    """Macchietto 2008, sections 5, 6.2 and 7: 3 n + 3 degrees of freedom, boxes of water."""
    c = load_character("humanoid-ball")
    assert c.nv == 3 * len(c.links) + 3 == 45
    assert c.mass == pytest.approx(65.0, abs=1e-9)
    assert [joint.kind for joint in c.joints] == ["free"] + ["ball"] * 13
    for link in c.links:
        (box,) = link.shapes
        assert box.kind == "box"
        assert link.mass == pytest.approx(1000.0 * box.volume)
        assert link.joints[0].limits is not None or link.parent is None


@pytest.mark.parametrize("count", [1, 3, 40])
def test_planks_are_a_level_chain_of_hinges(count: int) -> None:
    c = load_character(f"plank-{count}")
    assert (c.nv, c.depth, len(c.links)) == (count, count, count)
    assert {joint.kind for joint in c.joints} == {"hinge"}
    low, high = bounds(c)
    assert high[2] - low[2] == pytest.approx(0.02)
    assert low[2] > count * 0.25  # it may hang
    # positive angles curl upward
    position, _ = dynamics.forward_kinematics(c, np.full(count, 1.0 / count))
    assert np.all(np.diff(position[:, 2]) > 0.0)


@pytest.mark.parametrize("name", ["plank-0", "plank-10001", "plank-999999999"])
def test_there_are_chains_of_one_to_ten_thousand_planks(name: str) -> None:
    with pytest.raises(CharacterError, match="it has 1 to 10000"):
        load_character(name)


def test_the_others_have_their_size() -> None:
    assert load_character("tail-biped").nv == 51
    assert load_character("lamp").nv == 15
    assert {joint.kind for joint in load_character("lamp").joints[1:]} == {"ball"}


# proportions


@pytest.mark.parametrize("build", [strength.MALE, strength.FEMALE])
def test_published_fractions_add_up(build: strength.Build) -> None:
    parts = build.masses(70.0)
    trunk = sum(parts[name] for name in ("head", "chest", "spine", "pelvis"))
    limbs = sum(parts.values()) - trunk
    assert trunk + 2 * limbs == pytest.approx(70.0, rel=1e-12)
    for name, x in build.fractions.items():
        assert parts[name] == pytest.approx(0.70 * x, rel=2e-4)
    heights = (strength.ANKLE, strength.KNEE, strength.HIP, build.navel, build.breast)
    assert list(heights) == sorted(heights)
    assert build.breast < strength.SHOULDER < build.neck < 1.0


def test_the_fractions_of_winters_table_are_the_whole_body() -> None:
    single = sum(FRACTION[name] for name in ("pelvis", "chest", "head"))
    assert single == pytest.approx(0.578, abs=1e-12)  # his row of trunk, head and neck
    assert single + 2 * (sum(FRACTION.values()) - single) == pytest.approx(1.0, abs=1e-12)


def test_trunk_and_legs_of_the_two_tables_agree() -> None:
    """Lengths by stature: Winter's against de Leva's thigh 422.2, shank 440.3, trunk 603.3 mm."""
    for ours, table in (
        (strength.HIP - strength.KNEE, 422.2),
        (strength.KNEE - strength.ANKLE, 440.3),
        (strength.MALE.neck - strength.HIP, 603.3),
    ):
        assert ours == pytest.approx(table / 1741.0, rel=0.05)  # they measured other people


# Mass centers in de Leva 1996, Table 4: from which end, length [mm], part of it [%], women and men;
# the pairs of names are those of humanoid-51 and humanoid-ball
CENTRES = {
    ("upper_leg", "thigh"): (-1.0, (368.5, 36.12), (422.2, 40.95)),
    ("lower_leg", "shin"): (-1.0, (438.6, 43.52), (440.3, 43.95)),
    ("upper_arm", "upper_arm"): (-1.0, (275.1, 57.54), (281.7, 57.72)),
    ("lower_arm", ""): (-1.0, (264.3, 45.59), (268.9, 45.74)),
    ("hand", ""): (-1.0, (170.1, 34.27), (187.9, 36.24)),
    ("pelvis", "pelvis"): (1.0, (181.5, 49.20), (145.7, 61.15)),
    ("spine", "spine"): (1.0, (205.3, 45.12), (215.5, 45.02)),
    ("chest", "chest"): (1.0, (228.0, 50.50), (242.1, 50.66)),
    ("head", "head"): (1.0, (243.7, 48.41), (242.9, 50.02)),
}


@pytest.mark.parametrize(
    ("who", "stature", "sample", "column"),
    [("humanoid-51", 1.6, 1735.0, 0), ("humanoid-ball", 1.73, 1741.0, 1)],
)
def test_mass_centres_of_links_are_near_the_published_ones(
    who: str, stature: float, sample: float, column: int
) -> None:
    c = load_character(who)
    for names, (sign, *table) in CENTRES.items():
        if not names[column]:
            continue
        length, part = table[column]
        # the trunk's parts are measured from above, the limbs' from the joint that moves them
        part = part if sign < 0.0 else 100.0 - part
        side = "left_" if sign < 0.0 else ""
        link = c.link(side + names[column])
        # evenly filled shapes, and landmarks up to 5 cm apart in the two tables
        assert link.com[2] == pytest.approx(
            sign * part / 100 * length / sample * stature, abs=0.045
        )


def test_moments_of_the_legs_are_andersons_of_a_man_of_175_cm() -> None:
    c1 = {
        ("hip", "extension"): 0.161,
        ("hip", "flexion"): 0.113,
        ("knee", "extension"): 0.163,
        ("knee", "flexion"): 0.087,
        ("ankle", "plantarflexion"): 0.095,
        ("ankle", "dorsiflexion"): 0.033,
    }
    for (joint, way), x in c1.items():
        assert strength.MOMENTS[joint][way] == pytest.approx(x * 9.81 * 1.75, abs=0.005)
    assert {joint for joint in strength.RANGES if joint in strength.MOMENTS} == set(
        strength.MOMENTS
    )
    for joint, way in strength.UNCONFIRMED:
        assert strength.MOMENTS[joint][way] > 0.0


def test_moments_are_within_what_deepmimic_allows_and_not_a_quarter_of_it(
    data_folder: Path,
) -> None:
    """Its 45 kg humanoid has a limit for each joint, which is generous: it does somersaults."""
    file = json.loads((data_folder / "deepmimic" / "characters" / "humanoid3d.txt").read_text())
    limits = {joint["Name"]: joint.get("TorqueLim") for joint in file["Skeleton"]["Joints"]}
    for joint in ("neck", "hip", "knee", "ankle", "shoulder", "elbow"):
        limit = limits[joint if joint == "neck" else f"right_{joint}"] / 45.0
        assert 0.25 * limit < max(strength.MOMENTS[joint].values()) < limit, joint


@pytest.mark.parametrize("name", PEOPLE)
def test_a_persons_mass_centre_is_where_it_is_in_life(name: str) -> None:
    """At 55 to 58 % of stature (Winter 2009, section 4.1), above the feet."""
    c = load_character(name)
    low, high = bounds(c)
    x, y, z = dynamics.center_of_mass(c, c.rest_q)
    assert 0.54 < z / (high[2] - low[2]) < 0.59
    assert abs(y) < 1e-9
    assert abs(x) < 0.03


@pytest.mark.parametrize("name", STANDING)
def test_it_stands_on_the_ground_with_its_mass_centre_above_its_feet(name: str) -> None:
    c = load_character(name)
    assert bounds(c)[0][2] == pytest.approx(0.0, abs=1e-9)
    feet = [link.name for link in c.links if link.name.endswith(("foot", "paw", "base"))]
    position, _ = dynamics.forward_kinematics(c, c.rest_q)
    index = {link.name: i for i, link in enumerate(c.links)}
    soles = []
    for foot in feet:
        (box,) = (shape for shape in c.link(foot).shapes if shape.kind == "box")
        center = position[index[foot]] + box.pos
        assert center[2] - box.size[2] == pytest.approx(0.0, abs=1e-9)
        soles += [center - box.size, center + box.size]
    com = dynamics.center_of_mass(c, c.rest_q)
    low, high = np.min(soles, axis=0), np.max(soles, axis=0)
    assert np.all(low[:2] + 0.02 < com[:2])
    assert np.all(com[:2] < high[:2] - 0.02)


@pytest.mark.parametrize("name", [*builtin_names(), "plank-1", "snake-6"])
def test_every_links_centre_of_mass_lies_in_its_shapes(name: str) -> None:
    for link in load_character(name).links:
        com = np.array(link.com)
        found = [
            inside(shape, (com - shape.pos)[None] @ quat_matrix(shape.quat))[0]
            for shape in link.shapes
        ]
        assert any(found), link.name


@pytest.mark.parametrize("name", [*builtin_names(), "plank-1", "snake-6"])
def test_every_links_inertia_is_that_of_a_solid(name: str) -> None:
    """Principal moments are positive, and none exceeds the sum of the others."""
    for link in load_character(name).links:
        least, middle, most = np.linalg.eigvalsh(link.inertia)
        assert link.mass > 0.0
        assert least > 0.0, link.name
        assert most <= (least + middle) * (1.0 + 1e-12), link.name


@pytest.mark.parametrize("name", STANDING[:-1])
def test_left_mirrors_right_in_mass_inertia_shapes_and_limits(name: str) -> None:
    c = load_character(name)
    flip = np.diag([1.0, -1.0, 1.0])
    lefts = [link for link in c.links if "left" in link.name]
    assert len(lefts) >= 3
    for link in lefts:
        twin = c.link(link.name.replace("left", "right"))
        assert twin.mass == pytest.approx(link.mass, rel=1e-12)
        np.testing.assert_allclose(twin.pos, flip @ link.pos, atol=1e-12)
        np.testing.assert_allclose(twin.com, flip @ link.com, atol=1e-12)
        np.testing.assert_allclose(twin.inertia, flip @ link.inertia @ flip, atol=1e-12)
        for joint, other in zip(link.joints, twin.joints, strict=True):
            assert (joint.kind, joint.axis, joint.limits) == (other.kind, other.axis, other.limits)
        for shape, other_shape in zip(link.shapes, twin.shapes, strict=True):
            assert (shape.kind, shape.size) == (other_shape.kind, other_shape.size)
            np.testing.assert_allclose(other_shape.pos, flip @ shape.pos, atol=1e-12)
    for link in c.links:
        if "left" not in link.name and "right" not in link.name:
            assert abs(link.com[1]) < 1e-12, link.name


@pytest.mark.parametrize("name", [name for name in builtin_names() if name != "two-link"])
def test_it_has_colours_and_every_joint_limits(name: str) -> None:
    c = load_character(name)
    assert all(shape.color is not None for link in c.links for shape in link.shapes)
    # the root goes where it likes
    for joint in c.joints[1:]:
        assert joint.limits is not None, joint.name
        lower, upper = joint.limits[-2:]
        assert lower <= 0.0 <= upper  # the rest pose is allowed


# another engine


@pytest.mark.parametrize("name", NEW)
def test_mass_matrix_and_bias_equal_mujocos(name: str) -> None:
    c = load_character(name)
    model = to_mujoco(c)
    assert (model.nq, model.nv) == (c.nq, c.nv)
    q, v = random_state(np.random.default_rng(3), c)
    data = mujoco_state(model, q, v)
    np.testing.assert_allclose(
        dynamics.mass_matrix(c, q), mujoco_mass_matrix(model, data), atol=1e-8
    )
    np.testing.assert_allclose(dynamics.bias_force(c, q, v), data.qfrc_bias, atol=1e-8)
    np.testing.assert_allclose(sum(model.body_mass), c.mass)


@pytest.mark.parametrize("shape", [Shape("cylinder", (0.1, 0.3)), Shape.mesh(CORNERS)])
def test_mujoco_gives_new_shapes_the_same_mass_and_inertia(shape: Shape) -> None:
    mujoco = pytest.importorskip("mujoco")
    link = Link.from_shapes("l", None, [shape])
    asset, geom = (
        "",
        f"type='cylinder' size='{shape.size[0]} {shape.size[-1]}'" if shape.size else "",
    )
    if shape.kind == "mesh":
        numbers = " ".join(repr(x) for x in np.ravel(shape.vertices).tolist())
        asset = f"<asset><mesh name='m' vertex='{numbers}' inertia='convex'/></asset>"
        geom = "type='mesh' mesh='m'"
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco>{asset}<worldbody><body><freejoint/><geom {geom} density='1000'/></body>"
        "</worldbody></mujoco>"
    )
    assert model.body_mass[1] == pytest.approx(link.mass, rel=1e-6)  # it reads vertices as float
    np.testing.assert_allclose(
        sorted(model.body_inertia[1]), np.linalg.eigvalsh(link.inertia), rtol=1e-5
    )
