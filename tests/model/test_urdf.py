"""URDF in: what MuJoCo makes of a file, with a free root and no mass lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_files import Edits, edited, edits, refusal, unreadable_paths, write_file
from hypothesis import given, settings
from test_mjcf import TETRAHEDRON, check_same

from poise.errors import CharacterError
from poise.math.rotation import quat_matrix
from poise.model.character import Character
from poise.model.formats import mjcf, urdf

mujoco = pytest.importorskip("mujoco")

INERTIAL = (
    '<inertial><origin xyz=".1 .2 .3" rpy=".1 .2 .3"/><mass value="2"/>'
    '<inertia ixx=".3" iyy=".4" izz=".5" ixy=".01" ixz=".02" iyz=".03"/></inertial>'
)


def link(name: str, content: str = INERTIAL) -> str:
    return f'<link name="{name}">{content}</link>'


def joint(kind: str, parent: str, child: str, content: str = "") -> str:
    return (
        f'<joint name="{parent}-{child}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="1 2 3" rpy=".3 .2 .1"/><axis xyz="0 1 1"/>'
        f"{content}</joint>"
    )


LIMIT = '<limit lower="-1" upper="2" effort="30" velocity="1"/><dynamics damping=".5"/>'
ARM = (
    link("a")
    + link("b")
    + link("c")
    + link("d")
    + link("e")
    + joint("revolute", "a", "b", LIMIT)
    + joint("prismatic", "b", "c", LIMIT)
    + joint("spherical", "c", "d", LIMIT)
    + joint("fixed", "d", "e")
)


def robot(content: str) -> str:
    return f'<robot name="r">\n{content}\n</robot>'


def read_text(folder: Path, text: str | bytes, **options: Any) -> Character:
    return urdf.read(write_file(folder / "model.urdf", text), **options)


def reference(text: str, free: str | None = None) -> Any:
    """MuJoCo's own model of a URDF, static links kept, a free joint on the link named."""
    options = '<mujoco><compiler fusestatic="false"/></mujoco>'
    text = text.rstrip("\0").replace("</robot>", f"{options}</robot>")
    spec = mujoco.MjSpec.from_string(text)
    if free is not None:
        spec.body(free).add_freejoint()
    return spec.compile()


@pytest.mark.data
def test_bullets_humanoid(data_folder: Path, tmp_path: Path) -> None:
    path = data_folder / "urdf" / "humanoid.urdf"
    character = urdf.read(path)
    assert character.nv == 34
    assert character.mass == pytest.approx(45.0, abs=0.001)
    assert character.joints[0].kind == "free"
    assert character.joint("neck").kind == "ball"
    assert character.joint("right_knee").limits == (-3.14, 0.0)
    assert character.joint("right_knee").effort == 1000.0
    assert character.link("right_hip").shapes[0].kind == "capsule"
    check_same(character, reference(path.read_text(), free="base"))
    mjcf.write(character, tmp_path / "it.xml")
    check_same(character, mujoco.MjModel.from_xml_path(str(tmp_path / "it.xml")))


def test_joints_and_inertias(tmp_path: Path) -> None:
    character = read_text(tmp_path, robot(ARM))
    plain = robot(ARM.replace(joint("spherical", "c", "d", LIMIT), joint("spherical", "c", "d")))
    check_same(character, reference(plain, free="a"))
    assert [j.kind for j in character.joints] == ["free", "hinge", "slide", "ball"]
    assert character.mass == pytest.approx(10.0)
    assert [character.joint(x).effort for x in ("a-b", "b-c", "c-d")] == [30.0] * 3
    assert character.joint("a-b").limits == (-1.0, 2.0)
    assert character.joint("a-b").damping == 0.5
    assert character.joint("c-d").limits is None


def test_limits_as_wide_as_none_limit_no_hinge(tmp_path: Path) -> None:
    wide = ARM.replace('lower="-1" upper="2"', 'lower="-1e16" upper="1e16"')
    character = read_text(tmp_path, robot(wide))
    assert character.joint("a-b").limits is None
    assert character.joint("b-c").limits == (-1e16, 1e16)


def test_the_base_is_free_unless_bolted(tmp_path: Path) -> None:
    assert read_text(tmp_path, robot(ARM), base="fixed").nv == 5
    bolted = robot(link("world", "") + ARM + joint("fixed", "world", "a"))
    character = read_text(tmp_path, bolted)
    assert (character.nv, character.links[0].name) == (5, "a")
    assert character.mass == pytest.approx(10.0)
    assert read_text(tmp_path, bolted, base="free").nv == 11
    floating = robot(link("world", "") + ARM + joint("floating", "world", "a"))
    assert read_text(tmp_path, floating).nv == 11
    hanging = robot(link("world", "") + ARM + joint("continuous", "world", "a"))
    assert read_text(tmp_path, hanging).nv == 6
    with pytest.raises(CharacterError, match="hangs on the world"):
        read_text(tmp_path, hanging, base="free")


def geometry(tag: str, shape: str, more: str = "") -> str:
    return f"<{tag}><geometry>{shape}</geometry>{more}</{tag}>"


def test_shapes_and_colours(tmp_path: Path) -> None:
    red = '<material name="red"/>'
    parts = INERTIAL + geometry("visual", '<mesh filename="package://r/no.dae"/>', red)
    for shape in (
        '<capsule radius=".1" length=".6"/>',
        '<cylinder radius=".1" length=".6"/>',
        '<sphere radius=".2"/>',
        '<box size=".2 .4 .6"/>',
        '<mesh filename="package://r/no.stl"/>',
    ):
        parts += geometry("collision", shape)
    known = '<material name="red"><color rgba="1 0 0 1"/><texture filename="no.png"/></material>'
    shapes = read_text(tmp_path, robot(known + link("a", parts))).links[0].shapes
    assert [s.kind for s in shapes] == ["capsule", "cylinder", "sphere", "box"]
    assert [s.size for s in shapes] == [(0.1, 0.3), (0.1, 0.3), (0.2,), (0.1, 0.2, 0.3)]
    assert {s.color for s in shapes} == {(1.0, 0.0, 0.0, 1.0)}
    # without anything to touch, what is seen
    seen = read_text(tmp_path, robot(link("a", INERTIAL + geometry("visual", shape_of("box")))))
    assert [s.kind for s in seen.links[0].shapes] == ["box"]
    assert seen.mass == 2.0


def shape_of(kind: str) -> str:
    return {"box": '<box size="1 1 1"/>', "mesh": '<mesh filename="package://r/m/x.obj"/>'}[kind]


def test_meshes_are_read_where_they_are(tmp_path: Path) -> None:
    text = robot(link("a", geometry("collision", shape_of("mesh"))))
    with pytest.raises(CharacterError, match=r"model\.urdf:2: mesh .*no <inertial>"):
        read_text(tmp_path, text)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "x.obj").write_text(TETRAHEDRON)
    character = read_text(tmp_path, text)
    assert character.mass == pytest.approx(1000.0 / 6.0)
    mesh = character.links[0].shapes[0]
    corners = np.array(mesh.vertices) @ quat_matrix(mesh.quat).T + mesh.pos
    assert corners.max() == pytest.approx(1.0, abs=1e-6)


UNPHYSICAL = INERTIAL.replace('ixx=".3"', 'ixx="-3"')

BAD = {
    "empty": (b"", ":1: is not XML"),
    "truncated": (robot(ARM)[:-12].encode(), "is not XML"),
    "mjcf": (b"<mujoco/>", "name it .xml"),
    "no links": (robot("").encode(), "MuJoCo|no bodies"),
    "not utf-8": (robot(link("\xff")).encode("latin-1"), ":2: is not UTF-8"),
    "entities": (b'<!DOCTYPE r [<!ENTITY a "a">]><robot name="&a;"/>', "entities"),
    "xacro": (
        b'<robot xmlns:xacro="http://ros.org/wiki/xacro">\n<xacro:macro name="a"/></robot>',
        ":2: xacro is not read",
    ),
    "nan": (robot(link("a", INERTIAL.replace('"2"', '"nan"'))).encode(), ":2: <mass>: value"),
    "unphysical": (robot(ARM.replace(INERTIAL, UNPHYSICAL)).encode(), "model"),
    "negative": (robot(link("a", INERTIAL.replace('"2"', '"-2"'))).encode(), "not be negative"),
    "massless": (robot(link("a") + link("b", "") + joint("revolute", "a", "b")).encode(), "mass"),
    "unknown parent": (robot(link("a") + joint("revolute", "x", "a")).encode(), "MuJoCo"),
    "unknown kind": (robot(link("a") + link("b") + joint("rubber", "a", "b")).encode(), "MuJoCo"),
    "circle": (
        robot(link("a") + link("b") + joint("fixed", "a", "b") + joint("fixed", "b", "a")).encode(),
        "MuJoCo",
    ),
    "two roots": (robot(link("a") + link("b")).encode(), "2 roots: 'a', 'b'"),
    "same names": (robot(link("a") + link("a")).encode(), "MuJoCo"),
    "words": (robot(ARM.replace('effort="30"', 'effort="much"')).encode(), "effort|MuJoCo"),
    "wide": (robot("<link/>" * 2001).encode(), "too large"),
}


def chain(count: int) -> str:
    """Links one below another, each with its joint on a line of its own."""
    joints = [joint("revolute", f"l{i}", f"l{i + 1}") for i in range(count - 1)]
    return robot("".join(link(f"l{i}") for i in range(count)) + "\n" + "\n".join(joints))


def test_a_chain_too_long_for_mujoco_is_refused_soon(tmp_path: Path) -> None:
    # line 1 is <robot>, 2 the links, 3 the joint of the second link, 493 that of link 492
    start = time.process_time()
    with pytest.raises(CharacterError, match=r"model\.urdf:493: too deep: .* 490 links"):
        read_text(tmp_path, chain(1900))
    assert time.process_time() - start < 5.0  # MuJoCo alone takes longer


def test_a_long_chain_is_read(tmp_path: Path) -> None:
    assert read_text(tmp_path, chain(300)).nv == 299 + 6


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    for path in unreadable_paths(tmp_path, ".urdf"):
        with pytest.raises(CharacterError, match=r"cannot be read|not a file"):
            urdf.read(path)


def test_a_root_that_cannot_be_free_is_named_with_its_place(tmp_path: Path) -> None:
    far = INERTIAL.replace('xyz=".1 .2 .3"', 'xyz="1e7 0 0"')
    with pytest.raises(CharacterError, match=r"model\.urdf:2: joint 'root' carries no inertia"):
        read_text(tmp_path, robot(link("a", far)))


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data, message = BAD[name]
    with pytest.raises(CharacterError, match=message) as error:
        read_text(tmp_path, data)
    assert "model.urdf" in str(error.value)
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


SEED = robot(ARM + link("f", INERTIAL + geometry("collision", shape_of("box"))))


@settings(max_examples=300)
@given(changes=edits(len(SEED)))
def test_damaged_files_are_read_or_refused(
    changes: Edits, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    refusal(lambda: read_text(folder, edited(SEED, changes)))
