"""MJCF in and out: what MuJoCo makes of a file, and of what we write, is what we have."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_files import Edits, edited, edits, refusal, unreadable_paths, write_file, write_hole
from hypothesis import given, settings
from numpy.random import Generator
from peers import mujoco_mass_matrix, mujoco_state
from trees import cases, random_state

from poise import dynamics
from poise.characters import builtin_names, load_character
from poise.errors import CharacterError, PoiseError
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint, Link, Shape
from poise.model.formats import mjcf

mujoco = pytest.importorskip("mujoco")

FILES = ("gymnasium/humanoid.xml", "mimickit_humanoid.xml", "protomotions_amp_humanoid.xml")
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
BODY = '<body name="a"><joint name="j"/><geom size=".1"/></body>'


def check_same(character: Character, model: Any, seed: int = 0, states: int = 5) -> None:
    """Sizes, mass matrix, bias and link poses are MuJoCo's at random states, to 1e-8."""
    assert (character.nq, character.nv) == (model.nq, model.nv)
    rng = np.random.default_rng(seed)
    gravity = tuple(model.opt.gravity)
    for _ in range(states):
        q, v = random_state(rng, character)
        data = mujoco_state(model, q, v)
        M = mujoco_mass_matrix(model, data)
        h = dynamics.bias_force(character, q, v, gravity=gravity)
        p, _ = dynamics.forward_kinematics(character, q)
        bodies = [model.body(link.name).id for link in character.links]
        np.testing.assert_allclose(p, data.xpos[bodies], rtol=0, atol=1e-8)
        np.testing.assert_allclose(dynamics.mass_matrix(character, q), M, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(h, data.qfrc_bias, rtol=1e-8, atol=1e-8)


def check_equal(a: Character, b: Character) -> None:
    """Equal to the last bits."""
    assert (a.name, a.limbs) == (b.name, b.limbs)
    for x, y in zip(a.links, b.links, strict=True):
        assert (x.name, x.parent, len(x.shapes)) == (y.name, y.parent, len(y.shapes))
        for key in ("pos", "quat", "mass", "com", "inertia"):
            np.testing.assert_allclose(getattr(x, key), getattr(y, key), rtol=1e-12, atol=1e-13)
        for j, k in zip(x.joints, y.joints, strict=True):
            for field in dataclasses.fields(Joint):
                s, t = getattr(j, field.name), getattr(k, field.name)
                if isinstance(s, (float, tuple)):
                    np.testing.assert_allclose(s, t, rtol=1e-12, atol=1e-12)
                else:
                    assert s == t


def model_of(body: str, rest: str = "") -> str:
    return f"<mujoco>\n<worldbody>\n{body}\n</worldbody>\n{rest}\n</mujoco>"


def read_text(folder: Path, text: str | bytes, **options: Any) -> Character:
    return mjcf.read(write_file(folder / "model.xml", text), **options)


# real files


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_real_files_have_mujocos_dynamics(data_folder: Path, name: str, tmp_path: Path) -> None:
    path = data_folder / "mjcf" / name
    character = mjcf.read(path)
    check_same(character, mujoco.MjModel.from_xml_path(str(path)))
    mjcf.write(character, tmp_path / "again.xml")
    check_same(character, mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml")))
    check_equal(character, mjcf.read(tmp_path / "again.xml"))


@pytest.mark.data
def test_real_files_keep_limits_and_efforts(data_folder: Path) -> None:
    gymnasium = mjcf.read(data_folder / "mjcf" / FILES[0])
    assert gymnasium.joint("abdomen_z").effort == pytest.approx(40.0)  # gear 100, ctrl 0.4
    assert gymnasium.joint("abdomen_z").limits == pytest.approx((-np.pi / 4, np.pi / 4))
    assert gymnasium.link("torso").shapes[0].color == pytest.approx((0.8, 0.6, 0.4, 1.0))
    mimickit = mjcf.read(data_folder / "mjcf" / FILES[1])
    assert mimickit.joint("neck_x").effort == 50.0
    assert [j.name for j in mimickit.link("head").joints] == ["neck_x", "neck_y", "neck_z"]


# written files


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_characters_written(name: str, tmp_path: Path) -> None:
    character = load_character(name)
    mjcf.write(character, tmp_path / "it.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "it.xml"))
    check_same(character, model)
    again = mjcf.read(tmp_path / "it.xml")
    check_equal(character, again)
    assert [s.kind for x in again.links for s in x.shapes] == [
        s.kind for x in character.links for s in x.shapes
    ]
    assert model.nu == character.nv - (6 if character.joints[0].kind == "free" else 0)


@settings(max_examples=40)
@given(case=cases(max_links=8, passive=True, effort=True))
def test_random_characters_written(
    case: tuple[Character, Generator], tmp_path_factory: pytest.TempPathFactory
) -> None:
    character, _ = case
    path = tmp_path_factory.mktemp("mjcf") / "it.xml"
    mjcf.write(character, path)
    check_same(character, mujoco.MjModel.from_xml_path(str(path)), states=2)
    check_equal(character, mjcf.read(path))


def test_what_mujoco_is_strict_about_is_written_so_that_it_loads(tmp_path: Path) -> None:
    hinge = Joint("a", "hinge", limits=(0.5, 0.5), effort=0.0)
    corners = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    shapes = (
        Shape("capsule", (0.1, 0.0)),
        Shape("cylinder", (0.1, 0.2), color=(1.0, 0.0, 0.0)),
        Shape.mesh(corners, pos=(0.1, 0.2, 0.3)),
    )
    odd = 'a "b" <c> & é'
    links = (
        Link("world", None, joints=(hinge,), mass=1.0, com=(1.0, 0.0, 0.0), shapes=shapes),
        Link(odd, "world", joints=(Joint("b", "ball", limits=(0.5, -0.2, 0.3)),), mass=1.0,
             inertia=(1.0, 1.0, 0.0)),
        Link("plate", odd, joints=(Joint("c", "slide"),), mass=1.0, inertia=(0.1, 0.2, 0.1 + 0.2)),
        Link("tag", "plate"),
    )  # fmt: skip
    character = Character(odd, links, {odd: (odd, "world")})
    mjcf.write(character, tmp_path / "it.xml")
    again = mjcf.read(tmp_path / "it.xml")
    assert [link.name for link in again.links] == ["world-link", odd, "plate", "tag"]
    assert again.limbs == {odd: (odd, "world-link")}
    assert again.joint("b").limits == (0.5, -0.2, 0.3)
    assert [s.kind for s in again.links[0].shapes] == ["sphere", "cylinder", "mesh"]
    check_same(again, mujoco.MjModel.from_xml_path(str(tmp_path / "it.xml")))
    mesh = again.links[0].shapes[2]
    R = np.array(mesh.vertices) @ quat_matrix(mesh.quat).T + mesh.pos
    assert sorted(map(tuple, np.round(R, 5))) == sorted(
        tuple(np.round(np.add(x, (0.1, 0.2, 0.3)), 5)) for x in corners
    )


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PoiseError, match="cannot be written"):
        mjcf.write(load_character("two-link"), tmp_path / "no" / "it.xml")


# what a file says


def test_zeros_of_joints_are_folded_into_the_pose(tmp_path: Path) -> None:
    text = model_of(
        """<body name="a" pos="0 0 1" euler="10 20 30">
             <joint name="x" type="hinge" axis="1 0 0" pos=".1 .2 .3" ref="40" range="-10 90"/>
             <joint name="y" type="slide" axis="0 1 1" ref=".3" springref=".2" stiffness="5"/>
             <joint name="z" type="hinge" axis="0 1 0" pos="0 -.2 .1" ref="-70"/>
             <geom type="box" size=".1 .2 .3" pos=".1 0 0"/>
             <body name="b" pos="0 0 1"><joint name="w" type="ball" pos="0 .1 0"/>
               <geom size=".1" pos=".2 0 0"/></body>
           </body>"""
    )
    character = read_text(tmp_path, text)
    check_same(character, mujoco.MjModel.from_xml_string(text))
    assert character.joint("x").limits == pytest.approx(np.radians((-10, 90)))
    assert character.joint("y").reference == 0.2


def test_a_free_base_can_be_asked_for(tmp_path: Path) -> None:
    body = '<body name="a" pos="0 0 1"><geom size=".1"/>%s</body>'
    text = model_of(body % BODY.replace('"a"', '"b"'))
    assert read_text(tmp_path, text).nv == 1
    free = mujoco.MjModel.from_xml_string(text.replace("<geom", "<freejoint/><geom", 1))
    check_same(read_text(tmp_path, text, base="free"), free)
    assert read_text(tmp_path, text, base="fixed") == read_text(tmp_path, text)


def test_actuators_give_effort_and_armature(tmp_path: Path) -> None:
    text = model_of(
        """<body name="a"><joint name="x" armature=".1"/><geom size=".1"/>
             <body name="b"><joint name="y" type="ball"/><geom size=".1"/>
               <body name="c"><joint name="z" actuatorfrcrange="-7 5"/><geom size=".1"/></body>
             </body></body>""",
        """<actuator>
             <motor joint="x" gear="3" armature=".5" ctrlrange="-1 2"/>
             <position joint="x" kp="10" forcerange="-5 5"/>
             <motor joint="y" gear="1 0 0" ctrlrange="-1 1"/>
             <motor joint="y" gear="0 2 0" ctrlrange="-1 1"/>
             <motor joint="z" gear="100" ctrlrange="-1 1"/>
           </actuator>""",
    )
    character = read_text(tmp_path, text)
    assert character.joint("x").effort == pytest.approx(11.0)
    assert character.joint("y").effort == pytest.approx((1.0, 2.0, 0.0))
    assert character.joint("z").effort == 7.0
    check_same(character, mujoco.MjModel.from_xml_string(text))


def test_shapes_are_those_that_touch(tmp_path: Path) -> None:
    text = model_of(
        """<body name="a"><freejoint/>
             <geom type="sphere" size=".1" rgba="1 0 0 .5"/>
             <geom type="capsule" size=".1 .2" material="blue"/>
             <geom type="cylinder" size=".1 .2"/>
             <geom type="ellipsoid" size=".1 .2 .3"/>
             <geom type="box" size=".1 .2 .3" contype="0" conaffinity="0"/></body>""",
        "<asset><texture name='t' file='missing.png'/>"
        "<material name='blue' rgba='0 0 1 1' texture='t'/></asset>",
    )
    shapes = read_text(tmp_path, text).links[0].shapes
    assert [s.kind for s in shapes] == ["sphere", "capsule", "cylinder"]
    assert [s.color for s in shapes] == [(1, 0, 0, 0.5), (0, 0, 1, 1), None]


def test_what_has_no_name_gets_one(tmp_path: Path) -> None:
    text = model_of(
        """<body><freejoint/><geom size=".1"/>
             <body name="b"><joint/><joint axis="1 0 0"/><geom size=".1"/></body>
             <body><joint name="body-3"/><joint type="slide"/><geom size=".1"/></body></body>
           <body name="table"><geom type="box" size="1 1 1"/></body>"""
    )
    character = read_text(tmp_path, text)
    assert [link.name for link in character.links] == ["body-1", "b", "body-3"]
    assert [j.name for j in character.joints] == ["body-1", "b-1", "b-2", "body-3", "body-3-2"]
    assert character.name == "model"


def test_included_files_and_meshes_are_found(tmp_path: Path) -> None:
    (tmp_path / "parts" / "meshes").mkdir(parents=True)
    (tmp_path / "parts" / "meshes" / "Rock.obj").write_text(TETRAHEDRON)
    (tmp_path / "parts" / "body.xml").write_text(
        '<mujoco><body name="a"><freejoint/><geom type="mesh" mesh="Rock"/></body></mujoco>'
    )
    text = (
        '<mujoco><compiler meshdir="parts/meshes"/><asset><mesh file="Rock.obj"/></asset>'
        '<worldbody><include file="parts/body.xml"/></worldbody></mujoco>'
    )
    character = read_text(tmp_path, text)
    assert character.links[0].shapes[0].kind == "mesh"
    assert character.mass == pytest.approx(1000.0 / 6.0)
    check_same(character, mujoco.MjModel.from_xml_path(str(tmp_path / "model.xml")))


# bad input

OTHER = '<body name="b"><joint name="k"/><geom size=".1"/></body>'

BAD = {
    "empty": (b"", ":1: is not XML"),
    "blank": (b" \n ", "is not XML"),
    "no xml": (b"hello", ":1: is not XML"),
    "truncated": (model_of(BODY)[:-20].encode(), "is not XML"),
    "not utf-8": (model_of(BODY).replace("a", "\xff").encode("latin-1"), ":3: is not UTF-8"),
    "utf-16": (model_of(BODY).encode("utf-16"), "is not UTF-8"),
    "other root": (b"<robot name='r'/>", "name it .urdf"),
    "no bodies": (model_of("").encode(), "no bodies"),
    "two roots": (model_of(BODY + OTHER).encode(), "2 roots: 'a', 'b'"),
    "unknown kind": (model_of(BODY.replace("/><", '/>\n<geom type="x"/><')).encode(), ":4: MuJoCo"),
    "nan": (model_of('<body>\n<geom size="1" pos="0 nan 0"/></body>').encode(), ":4: <geom>: pos"),
    "massless": (model_of('<body name="a"><joint name="j"/></body>').encode(), "MuJoCo does not"),
    "no include": (model_of('\n<include file="no.xml"/>').encode(), ":4: .*no.xml: cannot be read"),
    "nameless include": (model_of("<include/>").encode(), "needs the name of a file"),
    "itself": (model_of('<include file="model.xml"/>').encode(), "included twice"),
    "a folder": (model_of('<include file="."/>').encode(), "twice|not a file"),
    "no mesh": (b'<mujoco><asset>\n<mesh file="no.stl"/></asset></mujoco>', ":2: .*no.stl: cannot"),
    "device": (b'<mujoco><asset><mesh file="/dev/zero"/></asset></mujoco>', "is not a file"),
    "attached": (b'<mujoco><asset><model file="a.xml"/></asset></mujoco>', "attached models"),
    "many": (model_of(f'<replicate count="99999999">{BODY}</replicate>').encode(), "too large"),
    "deep": (b"<mujoco>" + b"<a>" * 600 + b"</a>" * 600 + b"</mujoco>", "too large"),
    "huge": (b"<mujoco>" + b"<a/>" * 100_001 + b"</mujoco>", "too large"),
    "wide": (model_of("<body/>" * 2001).encode(), "too large"),
    "entities": (
        b'<!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><mujoco model="&b;"/>',
        ":1: entities",
    ),
    "outside": (b'<!DOCTYPE m [<!ENTITY a SYSTEM "/etc/passwd">]><mujoco>&a;</mujoco>', "entities"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data, message = BAD[name]
    with pytest.raises(CharacterError, match=message) as error:
        read_text(tmp_path, data)
    assert "model.xml" in str(error.value)
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


def test_errors_know_the_line_in_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text('<m>\n<body name="a">\n\n<geom type="no"/></body></m>')
    with pytest.raises(CharacterError, match=r"part\.xml:4: MuJoCo does not take it"):
        read_text(tmp_path, model_of('<include file="part.xml"/>'))


def test_files_that_are_too_large_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(CharacterError, match="larger than 64 MiB"):
        mjcf.read(write_hole(tmp_path / "large.xml"))
    for path in unreadable_paths(tmp_path, ".xml"):
        with pytest.raises(CharacterError, match=r"cannot be read|not a file"):
            mjcf.read(path)


def test_without_mujoco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(CharacterError, match=r"pip install poise\[mujoco\]"):
        read_text(tmp_path, model_of(BODY))


SEED = mjcf.dump(load_character("two-link"))


def test_any_truncation_is_refused(tmp_path: Path) -> None:
    data = SEED.encode()
    for n in range(0, data.rindex(b"</mujoco>") + 8, 7):
        with pytest.raises(CharacterError):
            read_text(tmp_path, data[:n])


@settings(max_examples=300)
@given(changes=edits(len(SEED)))
def test_damaged_files_are_read_or_refused(
    changes: Edits, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    refusal(lambda: read_text(folder, edited(SEED, changes)))
