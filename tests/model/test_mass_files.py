"""Skeleton files of MASS: bodies and joints are where the file places them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from bad_files import refusal, unreadable_paths, write_hole
from conftest import find_data
from hypothesis import given
from hypothesis import strategies as st

from poise import dynamics
from poise.errors import CharacterError
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.model.character import Character
from poise.model.formats import mass

DATA = find_data()
HUMAN = DATA / "mass" / "human.xml" if DATA else Path("human.xml")

needs_data = pytest.mark.skipif(not HUMAN.is_file(), reason="no data folder: set POISE_DATA")

UPRIGHT = 'linear="1 0 0 0 1 0 0 0 1"'

SMALL = f"""<?xml version="1.0" encoding="utf-8"?>
<Skeleton name="Small">
  <!-- a body of each type -->
  <Node name="Base" parent="None">
    <Body type="Box" mass="2.0" size="0.1 0.2 0.3" color="0.5 0.5 1.5 1.0">
      <Transformation {UPRIGHT} translation="0.0 1.0 0.1"/>
    </Body>
    <Joint type="Free"><Transformation {UPRIGHT} translation="0.0 0.9 0.0"/></Joint>
  </Node>
  <Node name="Arm" parent="Base">
    <Body type="Capsule" mass="1.0" radius="0.05" height="0.4">
      <Transformation linear="0 0 1 1 0 0 0 1 0" translation="0.5 1.0 0.0"/>
    </Body>
    <Joint type="Revolute" axis="0 0 2" lower="-1.0" upper="1.5">
      <Transformation linear="0 -1 0 1 0 0 0 0 1" translation="0.3 1.0 0.0"/>
    </Joint>
  </Node>
  <Node name="Ball" parent="Arm">
    <Body type="Sphere" mass="0.5" radius="0.1">
      <Transformation {UPRIGHT} translation="0.8 1.0 0.0"/>
    </Body>
    <Joint type="Prismatic" axis="1 0 0"><Transformation {UPRIGHT} translation="0.7 1 0"/></Joint>
  </Node>
  <Node name="Tip" parent="Ball">
    <Body type="Sphere" mass="0.1" radius="0.1">
      <Transformation {UPRIGHT} translation="0.9 1.0 0.0"/>
    </Body>
    <Joint type="Weld"><Transformation {UPRIGHT} translation="0.9 1.0 0.0"/></Joint>
  </Node>
</Skeleton>
"""


def raised(p: Floats) -> Floats:
    """(x, y, z) of the file is (z, x, y) here."""
    return p[..., [2, 0, 1]]


def poses(character: Character, q: Floats) -> dict[str, tuple[Floats, Floats]]:
    p, quat = dynamics.forward_kinematics(character, q)
    return {link.name: (p[i], quat_matrix(quat[i])) for i, link in enumerate(character.links)}


def numbers(element: ElementTree.Element, key: str) -> Floats:
    return np.array([float(word) for word in element.attrib[key].split()])


def translation(node: ElementTree.Element, tag: str) -> Floats:
    place = node.find(f"{tag}/Transformation")
    assert place is not None
    return raised(numbers(place, "translation"))


# the human


@pytest.mark.data
@needs_data
def test_the_human_has_its_degrees_of_freedom_and_mass() -> None:
    character = mass.load(HUMAN)
    masses = [float(body.attrib["mass"]) for body in ElementTree.parse(HUMAN).iter("Body")]
    assert character.nv == 56
    assert character.mass == pytest.approx(sum(masses), rel=1e-12)
    assert len(character.links) == 23
    assert character.joint("TibiaL").limits == (0.0, 2.3)
    assert sum(map(len, character.limbs.values())) == 23


@pytest.mark.data
@needs_data
def test_bodies_and_joints_of_the_human_are_where_the_file_has_them() -> None:
    character = mass.load(HUMAN)
    found = poses(character, character.rest_q)
    for node in ElementTree.parse(HUMAN).iter("Node"):
        link = character.link(node.attrib["name"])
        p, R = found[link.name]
        np.testing.assert_allclose(p, translation(node, "Joint"), atol=1e-12)
        np.testing.assert_allclose(p + R @ link.com, translation(node, "Body"), atol=1e-12)
        np.testing.assert_allclose(R, np.eye(3), atol=1e-12)


@pytest.mark.data
@needs_data
def test_boxes_of_the_human_are_turned_as_in_the_file() -> None:
    character = mass.load(HUMAN)
    for node in ElementTree.parse(HUMAN).iter("Node"):
        place, body = node.find("Body/Transformation"), node.find("Body")
        assert place is not None
        assert body is not None
        linear = numbers(place, "linear").reshape(3, 3)
        shape = character.link(node.attrib["name"]).shapes[0]
        R, size = quat_matrix(shape.quat), np.array(shape.size)
        # the corner along the file's x is that along our y, and so on; the first column of the
        # file's matrix keeps its direction when it is made orthonormal
        first = raised(linear[:, 0] / np.linalg.norm(linear[:, 0]))
        np.testing.assert_allclose(R[:, 1], first, atol=1e-9)
        np.testing.assert_allclose(size, raised(numbers(body, "size")) / 2, atol=1e-12)
        if node.attrib["name"] != "FemurR":  # whose matrix has a misprint
            np.testing.assert_allclose(R[:, 2], raised(linear[:, 1]), atol=2e-2)


@pytest.mark.data
@needs_data
def test_the_knee_of_the_human_turns_about_the_axis_in_the_file() -> None:
    character = mass.load(HUMAN)
    q = character.rest_q
    q[character.q_slice("TibiaR")] = 0.7
    before, after = poses(character, character.rest_q), poses(character, q)
    knee, foot = before["TibiaR"][0], before["TalusR"][0]
    # about the file's x, our y: a positive angle takes the shank, which points down, back
    arm = foot - knee
    c, s = np.cos(0.7), np.sin(0.7)
    turned = np.array([c * arm[0] + s * arm[2], arm[1], -s * arm[0] + c * arm[2]])
    np.testing.assert_allclose(after["TalusR"][0], knee + turned, atol=1e-12)
    assert after["TalusR"][0][0] < foot[0]


@pytest.mark.data
@needs_data
def test_the_human_is_recognised_among_xml_files(tmp_path: Path) -> None:
    other = tmp_path / "model.xml"
    other.write_text('<?xml version="1.0"?><mujoco/>')
    assert mass.recognises(HUMAN)
    assert not mass.recognises(other)
    assert not mass.recognises(tmp_path / "none.xml")


# a skeleton of our own


def small(text: str = SMALL) -> Character:
    return mass.parse(text.encode(), "small.xml")


def test_every_type_of_joint_and_body_is_read() -> None:
    character = small()
    assert character.name == "Small"
    assert [joint.kind for joint in character.joints] == ["free", "hinge", "slide"]
    assert [link.shapes[0].kind for link in character.links] == [
        "box",
        "capsule",
        "sphere",
        "sphere",
    ]
    assert character.mass == pytest.approx(3.6)
    assert character.joint("Arm").limits == (-1.0, 1.5)
    assert character.joint("Ball").limits is None
    assert character.link("Tip").joints == ()
    assert character.link("Base").shapes[0].color == (0.5, 0.5, 1.0, 1.0)


def test_joints_may_be_turned() -> None:
    character = small()
    found = poses(character, character.rest_q)
    p, R = found["Arm"]
    np.testing.assert_allclose(p, [0.0, 0.3, 1.0], atol=1e-12)
    # the joint's z is the file's z, our x; its x is the file's y, our z
    np.testing.assert_allclose(R @ character.joint("Arm").axis, [1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(R[:, 1], [0.0, 0.0, 1.0], atol=1e-12)
    shape = character.link("Arm").shapes[0]
    np.testing.assert_allclose(p + R @ shape.pos, [0.0, 0.5, 1.0], atol=1e-12)
    # the capsule's axis, the body's z, is the file's x, our y
    np.testing.assert_allclose(R @ quat_matrix(shape.quat)[:, 2], [0.0, 1.0, 0.0], atol=1e-12)


# bad input

BAD: dict[str, tuple[str, str]] = {
    "empty": ("", "is not XML"),
    "cut off": (SMALL[:400], r"[6-9]: is not XML"),
    "another file": ("<mujoco/>", "is no skeleton of MASS"),
    "no nodes": ("<Skeleton/>", "needs 1 to"),
    "twice": (SMALL.replace('"Arm" parent', '"Base" parent'), "10: two nodes are named 'Base'"),
    "no parent": (SMALL.replace('parent="Arm"', 'parent="Arn"'), "18: .*did you mean 'Arm'"),
    "two roots": (SMALL.replace('parent="Base"', 'parent="None"'), "2 roots"),
    "nameless": (SMALL.replace('name="Arm" ', ""), "10: Node: name"),
    "no joint": (
        SMALL.replace("<Joint", "<Jiont").replace("</Joint", "</Jiont"),
        "needs one Joint",
    ),
    "joint type": (SMALL.replace('"Weld"', '"Wled"'), "28: .*did you mean 'Weld'"),
    "body type": (SMALL.replace('"Sphere" mass="0.5"', '"Ball" mass="0.5"'), "unknown type 'Ball'"),
    "numbers": (SMALL.replace("0.1 0.2 0.3", "0.1 0.2"), "5: Body: size must be 3 numbers, got 2"),
    "words": (SMALL.replace("0.1 0.2 0.3", "0.1 0.2 x"), "5: Body: size must be numbers, got 'x'"),
    "NaN": (
        SMALL.replace('mass="2.0"', 'mass="nan"'),
        "5: <Body>: mass must be numbers, got 'nan'",
    ),
    "negative": (SMALL.replace('mass="2.0"', 'mass="-2"'), "4: mass must be at least 0"),
    "massless": (SMALL.replace('mass="1.0"', 'mass="0"'), "10: link 'Arm'"),
    "flat": (SMALL.replace("0.1 0.2 0.3", "0.1 0.0 0.3"), "5: box: size must be positive"),
    "no rotation": (SMALL.replace("0 -1 0 1 0 0 0 0 1", "0 -1 0 1 0 0 0 0 9"), "15: linear"),
    "mirror": (SMALL.replace("0 -1 0 1 0 0 0 0 1", "0 1 0 1 0 0 0 0 1"), "15: linear"),
    "limits": (SMALL.replace('lower="-1.0"', 'lower="3"'), "14: joint 'Arm': limits are reversed"),
    "half limits": (SMALL.replace('lower="-1.0" ', ""), "14: Joint: lower must be 1 number"),
    "axis": (
        SMALL.replace('axis="0 0 2"', 'axis="0 0 0"'),
        "14: joint 'Arm': axis has length zero",
    ),
    "bomb": (
        '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><Skeleton name="&b;"/>',
        "1: entities and references out of the file are not read",
    ),
    "outside": (
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><Skeleton name="&a;"/>',
        "1: entities and references out of the file are not read",
    ),
    "deep": ("<Skeleton>" + "<a>" * 100_000, "levels"),
    "long": ("<Skeleton>" + "<a/>" * 100_000, "elements"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_line_and_reason(case: str) -> None:
    text, reason = BAD[case]
    assert text != SMALL
    with pytest.raises(CharacterError, match=reason) as caught:
        small(text)
    assert str(caught.value).startswith("small.xml:")


def test_a_file_that_is_not_utf_8_is_refused_with_its_line() -> None:
    data = SMALL.replace("utf-8", "latin-1").replace('"Arm"', '"Ärm"').encode("latin-1")
    with pytest.raises(CharacterError, match=r"^small\.xml:10: is not UTF-8 text \(byte 0xc4\)"):
        mass.parse(data, "small.xml")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    large = write_hole(tmp_path / "large.xml")
    with pytest.raises(CharacterError, match="larger than"):
        mass.load(large)
    for path in unreadable_paths(tmp_path, ".xml"):
        with pytest.raises(CharacterError, match=r"cannot be read|not a file"):
            mass.load(path)


@given(
    st.integers(0, 10_000),
    st.integers(0, 60),
    st.binary(max_size=8) | st.sampled_from([b'"', b"<", b"/>", b"&a;", b"1e999", b"-1", b"nan"]),
)
def test_no_other_error_escapes(at: int, cut: int, put: bytes) -> None:
    data = SMALL.encode()
    at %= len(data)
    said = refusal(lambda: mass.parse(data[:at] + put + data[at + cut :], "small.xml"))
    assert said is None or said.startswith("small.xml:")
