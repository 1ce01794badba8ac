"""The compiled forest, against a second reading of the character and against MuJoCo."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_character import characters

from poise.characters import builtin_names, load_character
from poise.errors import PoiseError
from poise.math.rotation import quat_from_z
from poise.model.character import Character, Joint, Link
from poise.model.forest import Forest, compile_forest
from poise.model.inertia import composite_inertia, merge_inertia

Array = NDArray[np.float64]


def turn(axis: Array, angle: float) -> Array:
    """Rodrigues' formula."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    R: Array = np.eye(3) + math.sin(angle) * K + (1 - math.cos(angle)) * K @ K
    return R


def matrix(quat: Array) -> Array:
    """Rotation matrix of a quaternion, by axis and angle."""
    s = float(np.linalg.norm(quat[1:]))
    return turn(quat[1:] / s, 2 * math.atan2(s, quat[0])) if s > 0 else np.eye(3)


def pose(R: Array, p: Array) -> Array:
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, p
    return X


def random_q(character: Character, rng: np.random.Generator) -> Array:
    parts = []
    for joint in character.joints:
        x = rng.normal(size=joint.nq)
        if joint.nq > 1:
            x[-4:] /= np.linalg.norm(x[-4:])
        parts.append(x)
    return np.concatenate([*parts, np.zeros(0)])


def link_poses(character: Character, q: Array) -> list[Array]:
    """Link poses straight from the definition of a character."""
    X: dict[str | None, Array] = {None: np.eye(4)}
    for link in character.links:
        here = pose(matrix(np.array(link.quat)), np.array(link.pos))
        for joint in link.joints:
            x, anchor = q[character.q_slice(joint)], np.array(joint.pos)
            axis, zero = np.array(joint.axis), np.zeros(3)
            if joint.kind == "free":
                here = pose(matrix(x[3:]), x[:3])
            elif joint.kind == "slide":
                here = here @ pose(np.eye(3), axis * x[0])
            else:
                R = matrix(x) if joint.kind == "ball" else turn(axis, x[0])
                here = here @ pose(np.eye(3), anchor) @ pose(R, zero) @ pose(np.eye(3), -anchor)
        X[link.name] = X[link.parent] @ here
    return [X[link.name] for link in character.links]


def body_poses(forest: Forest, q: Array) -> list[Array]:
    """Poses of the internal frames: what the core does."""
    X: list[Array] = []
    z = np.array([0.0, 0.0, 1.0])
    for b, kind in enumerate(forest.kind):
        x = q[forest.q_adr[b] :]
        if kind == 0:
            J = pose(matrix(x[3:7]), x[:3])
        elif kind == 1:
            J = pose(matrix(x[:4]), np.zeros(3))
        else:
            J = pose(turn(z, x[0]), np.zeros(3)) if kind == 2 else pose(np.eye(3), z * x[0])
        parent = X[forest.parent[b]] if forest.parent[b] >= 0 else np.eye(4)
        X.append(parent @ pose(matrix(forest.E[b]), forest.r[b]) @ J)
    return X


def forest_link_poses(forest: Forest, q: Array) -> list[Array]:
    X = [*body_poses(forest, q), np.eye(4)]  # the last one is body -1, the world
    rows = zip(forest.link_body, forest.link_E, forest.link_p, strict=True)
    return [X[b] @ pose(matrix(E), p) for b, E, p in rows]


def mjcf(character: Character) -> str:
    """The character for MuJoCo."""

    def text(values: object) -> str:
        return " ".join(repr(float(x)) for x in np.ravel(np.asarray(values)))

    def body(link: Link) -> str:
        parts = [f'<body name="{link.name}" pos="{text(link.pos)}" quat="{text(link.quat)}">']
        for joint in link.joints:
            parts.append(
                f'<joint name="{joint.name}" type="{joint.kind}" axis="{text(joint.axis)}" '
                f'pos="{text(joint.pos)}" armature="{joint.armature!r}"/>'
            )
        if link.mass > 0:
            I = np.array(link.inertia)
            six = I[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            parts.append(
                f'<inertial pos="{text(link.com)}" mass="{link.mass!r}" fullinertia="{text(six)}"/>'
            )
        parts += [body(child) for child in character.links if child.parent == link.name]
        return "".join([*parts, "</body>"])

    return (
        f'<mujoco><compiler angle="radian"/><worldbody>{body(character.links[0])}'
        "</worldbody></mujoco>"
    )


@settings(max_examples=60)
@given(characters(), st.integers(0, 2**31))
def test_link_poses_through_the_forest_are_those_of_the_character(
    character: Character, seed: int
) -> None:
    q = random_q(character, np.random.default_rng(seed))
    np.testing.assert_allclose(
        forest_link_poses(character.forest, q), link_poses(character, q), atol=1e-12
    )


@settings(max_examples=60)
@given(characters(), st.integers(0, 2**31))
def test_body_inertias_are_those_of_their_links(character: Character, seed: int) -> None:
    """Mass, first and second moment about the world's origin, of all that moves."""
    q = random_q(character, np.random.default_rng(seed))
    forest = character.forest

    # the 4x4 pseudo inertia: [sum m x x', sum m x; sum m x', sum m]
    def pseudo(m: float, mc: Array, Io: Array) -> Array:
        return np.block([[np.trace(Io) / 2 * np.eye(3) - Io, mc[:, None]], [mc[None, :], m]])

    want = np.zeros((4, 4))
    for link, b, X in zip(character.links, forest.link_body, link_poses(character, q), strict=True):
        c = np.array(link.com)
        Io = np.array(link.inertia) + link.mass * (c @ c * np.eye(3) - np.outer(c, c))
        want += X @ pseudo(link.mass, link.mass * c, Io) @ X.T if b >= 0 else 0
    got = np.zeros((4, 4))
    for b, X in enumerate(body_poses(forest, q)):
        Io = forest.Io[b][[[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
        got += X @ pseudo(forest.mass[b], forest.mc[b], Io) @ X.T
    np.testing.assert_allclose(got, want, atol=1e-12 * (1 + np.abs(want).max()))


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_in_mujoco_has_the_same_layout_poses_and_mass(name: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    character = load_character(name)
    forest = character.forest
    model = mujoco.MjModel.from_xml_string(mjcf(character))
    data = mujoco.MjData(model)
    assert (model.nq, model.nv) == (character.nq, character.nv)
    np.testing.assert_array_equal(model.qpos0, character.rest_q)
    np.testing.assert_array_equal(model.jnt_qposadr, forest.q_adr)
    np.testing.assert_array_equal(model.jnt_dofadr, forest.v_adr)

    q = random_q(character, np.random.default_rng(7))
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    X = np.array(forest_link_poses(forest, q))
    np.testing.assert_allclose(X[:, :3, 3], data.xpos[1:], atol=1e-12)
    np.testing.assert_allclose(X[:, :3, :3].reshape(-1, 9), data.xmat[1:], atol=1e-12)
    com = sum(m * (X_i @ np.append(c, 1.0)) for m, c, X_i in _masses(character, X))
    np.testing.assert_allclose(com[:3] / character.mass, data.subtree_com[0], atol=1e-12)


def _masses(character: Character, X: Array) -> list[tuple[float, Array, Array]]:
    rows = zip(character.links, X, strict=True)
    return [(link.mass, np.array(link.com), X_i) for link, X_i in rows]


@pytest.mark.parametrize("name", builtin_names())
def test_composite_inertia_is_the_diagonal_of_the_mass_matrix_at_rest(name: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    character = load_character(name)
    forest = character.forest
    model = mujoco.MjModel.from_xml_string(mjcf(character))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    mass, _, Io = composite_inertia(forest)
    want = np.diag(M)
    for b, kind in enumerate(forest.kind):
        rotation = {0: np.diag(Io[b]), 1: np.diag(Io[b]), 2: Io[b, 2:, 2]}.get(int(kind), mass[b])
        got = np.append(np.full(3, mass[b]), rotation) if kind == 0 else rotation
        adr = forest.v_adr[b]
        np.testing.assert_allclose(got, want[adr : adr + len(got)], rtol=1e-10)


def test_arrays_are_contiguous_with_the_documented_shapes_and_types() -> None:
    f = load_character("humanoid").forest
    nb, nl = 13, 13
    shapes = {
        **dict.fromkeys(("parent", "kind", "q_adr", "v_adr", "joint", "link"), (nb,)),
        **dict.fromkeys(("armature", "damping", "stiffness", "effort"), (f.nv,)),
        **dict.fromkeys(("spring_q", "rest_q"), (f.nq,)),
        **dict.fromkeys(("effort_per_axis", "mass"), (nb,)),
        **dict.fromkeys(("r", "mc"), (nb, 3)),
        **dict.fromkeys(("link_body", "link_mass"), (nl,)),
        **dict.fromkeys(("link_p", "link_com"), (nl, 3)),
        "E": (nb, 4),
        "Io": (nb, 6),
        "link_E": (nl, 4),
        "link_inertia": (nl, 3, 3),
    }
    for name, shape in shapes.items():
        array = getattr(f, name)
        assert array.shape == shape, name
        assert array.dtype in (np.float64, np.int32), name
        assert array.flags.c_contiguous, name


def test_a_fixed_base_is_merged_into_the_world() -> None:
    f = load_character("humanoid", base="fixed").forest
    assert f.link_body[0] == -1
    assert len(f.parent) == 12
    assert f.nv == 28
    np.testing.assert_array_equal(f.link_p[0], load_character("humanoid").links[0].pos)


def test_a_link_with_three_joints_gives_two_massless_bodies() -> None:
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    joints = [Joint(f"j{i}", "hinge", axis=axis) for i, axis in enumerate(axes)]
    link = Link("ball", joints=tuple(joints), mass=2.0, inertia=(1.0, 1.0, 1.0))
    f = Character("gimbal", (link,)).forest
    np.testing.assert_array_equal(f.parent, [-1, 0, 1])
    np.testing.assert_array_equal(f.mass, [0.0, 0.0, 2.0])
    np.testing.assert_array_equal(f.link, [0, 0, 0])
    np.testing.assert_array_equal(f.Io[:2], 0.0)


def test_several_characters_become_one_forest_with_parts() -> None:
    dog, arm = load_character("dog"), load_character("two-link")
    f = compile_forest([dog, arm, dog])
    assert list(f.parts) == ["dog", "two-link", "dog-2"]
    assert f.joint_names[23:25] == ("two-link/shoulder", "two-link/elbow")
    assert f.parts["two-link"].v == slice(72, 74)
    assert f.parts["dog-2"].links == slice(25, 48)
    assert f.nv == 146
    np.testing.assert_array_equal(
        f.parent[25:], np.where(dog.forest.parent < 0, -1, dog.forest.parent + 25)
    )
    np.testing.assert_array_equal(f.Io[25:], dog.forest.Io)


def test_joint_names_of_one_character_are_plain() -> None:
    assert load_character("two-link").forest.joint_names == ("shoulder", "elbow")


def test_part_names_must_match_the_characters() -> None:
    arm = load_character("two-link")
    with pytest.raises(PoiseError, match="2 different ones"):
        compile_forest([arm, arm], ["a", "a"])
    with pytest.raises(PoiseError, match="at least one"):
        compile_forest([])


def test_joint_numbers_arrive_per_degree_of_freedom() -> None:
    half = math.sqrt(0.5)
    ball = Joint(
        "b", "ball", effort=(1.0, 2.0, 3.0), armature=0.1, reference=(half, half, 0.0, 0.0)
    )
    hinge = Joint("h", "hinge", effort=5.0, damping=0.2, stiffness=0.3, reference=0.4)
    solid = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
    links = (
        Link("a", joints=(Joint("s", "ball", effort=7.0),), **solid),  # type: ignore[arg-type]
        Link("c", "a", joints=(ball,), **solid),  # type: ignore[arg-type]
        Link("d", "c", joints=(hinge,), **solid),  # type: ignore[arg-type]
        Link("e", "d", joints=(Joint("l", "slide"),), **solid),  # type: ignore[arg-type]
    )
    f = Character("x", links).forest
    np.testing.assert_array_equal(f.effort, [7, 7, 7, 1, 2, 3, 5, np.inf])
    np.testing.assert_array_equal(f.effort_per_axis, [0, 1, 0, 0])
    np.testing.assert_array_equal(f.armature, [0, 0, 0, 0.1, 0.1, 0.1, 0, 0])
    np.testing.assert_array_equal(f.damping[-2:], [0.2, 0])
    np.testing.assert_array_equal(f.stiffness[-2:], [0.3, 0])
    np.testing.assert_array_equal(f.spring_q, [1, 0, 0, 0, half, half, 0, 0, 0.4, 0])


def test_merged_inertia_of_a_batch_is_that_of_each_copy_bit_for_bit() -> None:
    f = load_character("dog").forest
    scale = np.random.default_rng(3).uniform(0.5, 2.0, (5, 1))
    mass, inertia = f.link_mass * scale, f.link_inertia * scale[..., None, None]
    batch = merge_inertia(f, mass, f.link_com, inertia)
    assert batch[2].shape == (5, 23, 6)
    for i in range(5):
        one = merge_inertia(f, mass[i], f.link_com, inertia[i])
        for a, b in zip(batch, one, strict=True):
            np.testing.assert_array_equal(a[i], b)


def test_merge_inertia_names_the_array_of_wrong_shape() -> None:
    f = load_character("two-link").forest
    with pytest.raises(PoiseError, match=r"link_com must have shape \(..., 2, 3\), got \(3, 3\)"):
        merge_inertia(f, f.link_mass, np.zeros((3, 3)), f.link_inertia)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_quat_from_z_takes_z_to_the_axis(axis: list[float]) -> None:
    length = math.hypot(*axis)
    unit = [x / length for x in axis] if length > 1e-6 else [0.0, 0.0, -1.0]
    quat: Array = np.array(quat_from_z(unit))
    assert math.hypot(*quat) == pytest.approx(1.0, abs=1e-15)
    assert matrix(quat)[:, 2] == pytest.approx(unit, abs=1e-14)
