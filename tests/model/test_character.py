"""What a character is: its values, its checks, and the built-in ones."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poise.characters import builtin_names, load_character
from poise.errors import CharacterError, Diverged, PoiseError, unknown_name
from poise.model.character import Character, Joint, JointKind, Link, Shape
from poise.model.validation import check_inertia

pytestmark = pytest.mark.arithmetic

# random characters, for the other tests too


def floats(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


vectors = st.tuples(*[floats(-1.0, 1.0)] * 3)


def directions(size: int) -> st.SearchStrategy[tuple[float, ...]]:
    return st.tuples(*[floats(-1.0, 1.0)] * size).filter(lambda x: math.hypot(*x) > 1e-3)


@st.composite
def joints(draw: st.DrawFn, name: str, kinds: tuple[JointKind, ...]) -> Joint:
    kind = draw(st.sampled_from(kinds))
    passive = st.sampled_from([0.0]) | floats(0.0, 10.0)
    values: dict[str, Any] = {"armature": draw(passive), "damping": draw(passive)}
    if kind != "free":
        values |= {"pos": draw(vectors), "stiffness": draw(passive)}
        values["effort"] = draw(st.none() | floats(0.0, 100.0))
    if kind == "ball":
        values["reference"] = draw(st.none() | directions(4))
        values["effort"] = draw(st.just(values["effort"]) | st.tuples(*[floats(0.0, 9.0)] * 3))
    if kind in ("hinge", "slide"):
        values["axis"] = draw(directions(3))
        values["reference"] = draw(st.none() | floats(-1.0, 1.0))
        values["limits"] = draw(st.none() | st.tuples(floats(-3.0, 0.0), floats(0.0, 3.0)))
    return Joint(name, kind, **values)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kind, n = draw(st.sampled_from([("sphere", 1), ("capsule", 2), ("box", 3)]))
    size = draw(st.tuples(*[floats(0.01, 0.5)] * n))
    color = draw(st.none() | st.tuples(*[floats(0.0, 1.0)] * 4))
    return Shape(kind, size, draw(vectors), draw(directions(4)), color)  # type: ignore[arg-type]


@st.composite
def links(draw: st.DrawFn, i: int, parent: str | None, kinds: tuple[JointKind, ...]) -> Link:
    """A link with up to three joints and the mass of its shapes; a welded one may be massless."""
    count = draw(st.integers(0, 3))
    moving = [draw(joints(f"joint {i}.{k}", kinds)) for k in range(count)]
    if any(joint.kind == "free" for joint in moving):
        moving = [Joint("root", "free")]
    solid = draw(st.lists(shapes(), min_size=1, max_size=2))
    link = Link.from_shapes(
        f"link {i}",
        parent,
        solid,
        density=draw(floats(100.0, 2000.0)),
        pos=draw(vectors),
        quat=draw(directions(4)),
        joints=moving,
    )
    if not moving and i > 0 and draw(st.booleans()):
        return Link(link.name, parent, link.pos, link.quat, shapes=link.shapes)
    return link


@st.composite
def characters(draw: st.DrawFn, most: int = 6) -> Character:
    """A random tree with every joint kind, welded links and links with several joints."""
    moving: tuple[JointKind, ...] = ("ball", "hinge", "slide")
    made = [draw(links(0, None, ("free", *moving)))]
    for i in range(1, draw(st.integers(1, most))):
        made.append(draw(links(i, draw(st.sampled_from(made)).name, moving)))
    limbs = {"all": tuple(link.name for link in made)} if draw(st.booleans()) else {}
    return Character("random", tuple(draw(st.permutations(made))), limbs)


# errors


def test_unknown_name_says_what_may_be_meant_and_what_there_is() -> None:
    want = "unknown link 'foo'; did you mean 'foot'? links: foot, hand"
    assert unknown_name("link", "foo", ["foot", "hand"]) == want
    assert "... and 60 more" in unknown_name("link", "zzz", [f"link{i}" for i in range(100)])


def test_diverged_survives_pickling_with_what_it_carries() -> None:
    error = Diverged(1.25, "left_knee", {"q": 1}, copies=[3, 4])
    again = pickle.loads(pickle.dumps(error))
    assert (again.time, again.joint, again.state) == (1.25, "left_knee", {"q": 1})
    assert again.copies == (3, 4)
    assert "t = 1.25 s in copies 3, 4, first in joint 'left_knee'" in str(again)
    assert isinstance(error, PoiseError)


# bad input: each message names the culprit and the field

SOLID: dict[str, Any] = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
NAN, INF = math.nan, math.inf


def tree(*parents: tuple[str, str | None]) -> Character:
    """Links with hinges of their own names."""
    made = [
        Link(name, parent, joints=(Joint(f"j{i}", "hinge"),), **SOLID)
        for i, (name, parent) in enumerate(parents)
    ]
    return Character("x", tuple(made))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "hing"}, "unknown kind 'hing'; did you mean 'hinge'"),
        ({"kind": ["hinge"]}, "unknown kind"),
        ({"axis": (0.0, 0.0, 0.0)}, "axis has length zero"),
        ({"axis": (0.0, NAN, 1.0)}, r"axis\[1\] must be finite"),
        ({"axis": (1.0, 0.0)}, "axis must be 3 numbers, got 2"),
        ({"axis": "xyz"}, "axis must be 3 numbers, got 'xyz'"),
        ({"pos": (0.0, INF, 1.0)}, r"pos\[1\] must be finite"),
        ({"pos": (0.0, "1", 1.0)}, r"pos\[1\] must be a number, got '1'"),
        ({"armature": -1.0}, "armature must be at least 0, got -1"),
        ({"damping": -1.0}, "damping must be at least 0"),
        ({"stiffness": True}, "stiffness must be a number, got True"),
        ({"stiffness": 10**400}, "stiffness must be finite"),
        ({"effort": -2.0}, "effort must be at least 0"),
        ({"effort": (1.0, 2.0, 3.0)}, "effort must be a number"),
        ({"effort": (1.0, -2.0, 3.0), "kind": "ball"}, r"effort\[1\] must be at least 0"),
        ({"effort": 1.0, "kind": "free"}, "effort of a free joint must be None"),
        ({"limits": (1.0, -1.0)}, "limits are reversed: lower 1 > upper -1"),
        ({"limits": (1.0, NAN)}, "limits"),
        ({"limits": (0.0, 1.0), "kind": "ball"}, "limits of a ball joint must be None"),
        ({"reference": (0.0, 0.0, 0.0, 0.0), "kind": "ball"}, "reference has length zero"),
        ({"reference": "up"}, "reference must be a number"),
        ({"pos": (1.0, 0.0, 0.0), "kind": "free"}, "pos of a free joint must be"),
        ({"stiffness": 1.0, "kind": "free"}, "stiffness of a free joint must be 0"),
    ],
)
def test_a_wrong_joint_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(CharacterError, match=rf"joint 'j': {message}"):
        Joint("j", **{"kind": "hinge", **values})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mass": -1.0}, "mass must be at least 0, got -1"),
        ({"mass": NAN}, "mass must be finite"),
        ({"com": (0.0, 0.0)}, "com must be 3 numbers"),
        ({"quat": (0.0, 0.0, 0.0, 0.0)}, "quat has length zero"),
        ({"mass": 0.0}, "inertia without mass"),
        ({"inertia": (1.0, 1.0, 3.0)}, "inertia is not physical.* 1, 1, 3 kg m"),
        ({"inertia": (-1.0, 1.0, 1.0)}, "inertia must be positive"),
        ({"inertia": ((1, 1, 0), (0, 1, 0), (0, 0, 1))}, "inertia must be symmetric"),
        ({"inertia": ((1, NAN, 0), (NAN, 1, 0), (0, 0, 1))}, r"inertia\[0\]\[1\] must be finite"),
        ({"inertia": 1.0}, "inertia must be 3x3 numbers"),
        ({"inertia": ((1, 0, 0), (0, 1, 0), 7)}, r"inertia\[2\] must be 3 numbers"),
        ({"joints": (Joint("a", "ball"), "b")}, r"joints\[1\] must be a Joint, got 'b'"),
        ({"joints": None}, "joints must be a sequence of Joint"),
        ({"parent": ""}, "parent must be a printable"),
    ],
)
def test_a_wrong_link_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(CharacterError, match=rf"link 'l': {message}"):
        Link("l", **{**SOLID, **values})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "cone"}, "shape: unknown kind 'cone'"),
        ({"size": (1.0,)}, "box: size must be 3 numbers, got 1"),
        ({"size": (1.0, 0.0, 1.0)}, "box: size must be positive"),
        ({"color": (2.0, 0.0, 0.0)}, "box: color must lie in 0..1"),
        ({"color": (NAN, 0.0, 0.0)}, r"box: color\[0\] must be finite"),
        ({"pos": None}, "box: pos must be 3 numbers"),
    ],
)
def test_a_wrong_shape_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(CharacterError, match=message):
        Shape(**{"kind": "box", "size": (1.0, 1.0, 1.0), **values})


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\ud800", 3, None])
def test_names_are_printable_text(name: Any) -> None:
    for make in (lambda: Joint(name, "ball"), lambda: Link(name), lambda: Character(name, ())):
        with pytest.raises(CharacterError, match="name must be a printable"):
            make()


def test_a_tree_with_cycles_two_roots_or_strangers_is_refused() -> None:
    with pytest.raises(CharacterError, match="in a circle: 'b' -> 'c' -> 'b'"):
        tree(("a", None), ("b", "c"), ("c", "b"))
    with pytest.raises(CharacterError, match="in a circle: 'a' -> 'a'"):
        tree(("a", "a"))
    with pytest.raises(CharacterError, match="has 2 roots: 'a', 'b'"):
        tree(("a", None), ("b", None))
    with pytest.raises(CharacterError, match=r"link 'b': parent: unknown link 'foo'; .*'foot'"):
        tree(("foot", None), ("b", "foo"))
    with pytest.raises(CharacterError, match="two links named 'a'"):
        tree(("a", None), ("a", None))
    with pytest.raises(CharacterError, match="has no links"):
        tree()


def test_two_joints_of_one_name_are_refused() -> None:
    a = Link("a", joints=(Joint("j", "hinge"),), **SOLID)
    with pytest.raises(CharacterError, match="two joints named 'j'"):
        Character("x", (a, Link("b", "a", joints=(Joint("j", "hinge"),), **SOLID)))


def test_a_free_joint_belongs_alone_on_the_root() -> None:
    a = Link("a", joints=(Joint("r", "free"),), **SOLID)
    with pytest.raises(CharacterError, match="'r2': a free joint must be on the root link 'a'"):
        Character("x", (a, Link("b", "a", joints=(Joint("r2", "free"),), **SOLID)))
    with pytest.raises(CharacterError, match="'r' must be its only joint"):
        Character("x", (Link("a", joints=(Joint("r", "free"), Joint("h", "hinge")), **SOLID),))


def test_moving_links_need_mass() -> None:
    root = Link("a", joints=(Joint("r", "free"),), **SOLID)
    middle, hinge = Link("b", "a", joints=(Joint("h", "hinge"),)), Joint("i", "hinge")
    with pytest.raises(CharacterError, match=r"'b' moves by joint 'h' .*: a massless chain end"):
        Character("x", (root, middle))
    with pytest.raises(CharacterError, match=r"'b' moves by joint 'h' .*put them on the next link"):
        Character("x", (root, middle, Link("c", "b", joints=(hinge,), **SOLID)))
    with pytest.raises(CharacterError, match="character 'x' has no mass"):
        Character("x", (Link("a"),))
    # what is welded to a link counts
    Character("x", (root, middle, Link("c", "b", **SOLID)))


def test_joints_need_inertia_about_each_axis_or_armature() -> None:
    def point_mass(joint: Joint) -> Character:
        return Character("x", (Link("a", joints=(joint,), mass=1.0, com=(0.0, 0.0, -1.0)),))

    assert point_mass(Joint("j", "hinge", axis=(0.0, 1.0, 0.0))).nv == 1
    assert point_mass(Joint("j", "ball", armature=1e-3)).nv == 3
    assert point_mass(Joint("j", "slide")).nv == 1
    for kind in ("hinge", "ball", "free"):
        with pytest.raises(CharacterError, match="joint 'j' carries no inertia"):
            point_mass(Joint("j", kind))


def test_limbs_name_known_links_once() -> None:
    links = (Link("foot", joints=(Joint("r", "free"),), **SOLID),)
    with pytest.raises(CharacterError, match="limb 'leg': unknown link 'foo'; did you mean 'foot'"):
        Character("x", links, {"leg": ("foo",)})
    with pytest.raises(CharacterError, match="limb 'leg' names a link twice"):
        Character("x", links, {"leg": ("foot", "foot")})
    with pytest.raises(CharacterError, match="limb 'leg' must be a sequence"):
        Character("x", links, {"leg": "foot"})  # type: ignore[dict-item]
    with pytest.raises(CharacterError, match="limbs must map names"):
        Character("x", links, ["leg"])  # type: ignore[arg-type]


# values


def test_inertia_of_files_with_six_digits_is_taken() -> None:
    """A flat plate, c = a + b, printed with six digits, may break the inequality in the last."""
    assert check_inertia("x", (0.123456, 0.234567, 0.3580231))[0][0] == 0.123456


def test_axes_and_quaternions_are_normalised_once() -> None:
    joint = Joint("j", "hinge", axis=(0.0, 3.0, 4.0))
    assert joint.axis == pytest.approx((0.0, 0.6, 0.8), abs=1e-15)
    assert Joint("j", "hinge", axis=joint.axis).axis == joint.axis
    assert Link("l", quat=(0.0, -2.0, 0.0, 0.0)).quat == (0.0, -1.0, 0.0, 0.0)


@given(directions(4))
def test_normalising_twice_changes_no_bit(quat: tuple[float, ...]) -> None:
    once = Link("l", quat=quat).quat
    assert Link("l", quat=once).quat == once


def test_numpy_values_become_plain_tuples() -> None:
    values: Any = {"pos": np.arange(3), "mass": np.float32(2.0), "inertia": np.eye(3)}
    link = Link("l", **values)
    assert link.pos == (0.0, 1.0, 2.0)
    assert type(link.pos[0]) is type(link.mass) is float
    assert link.inertia == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    assert isinstance(hash(link), int)


@pytest.mark.parametrize(
    "shape",
    [
        Shape("sphere", (0.3,)),
        Shape("capsule", (0.2, 0.4)),
        Shape("capsule", (0.2, 0.0)),
        Shape("box", (0.1, 0.2, 0.5)),
    ],
)
def test_volume_and_inertia_of_shapes_by_monte_carlo(shape: Shape) -> None:
    x = np.random.default_rng(0).uniform(-0.6, 0.6, (400_000, 3))
    if shape.kind == "box":
        inside = np.all(np.abs(x) < shape.size, axis=1)
    else:
        r, half = (*shape.size, 0.0)[:2]
        z = x[:, 2] - np.clip(x[:, 2], -half, half)
        inside = x[:, 0] ** 2 + x[:, 1] ** 2 + z**2 < r * r
    x = x[inside]
    # sampling error: a few thousandths with at least 8000 points inside
    assert shape.volume == pytest.approx(1.2**3 * inside.mean(), rel=0.03)
    second = x.T @ x / len(x)
    inertia = 2.0 * (np.trace(second) * np.eye(3) - second)
    np.testing.assert_allclose(shape.inertia(2.0), inertia, atol=0.03 * np.trace(inertia))


def test_from_shapes_joins_shapes_about_their_common_centre() -> None:
    """Two half boxes are a box."""
    halves = [Shape("box", (0.1, 0.2, 0.15), (1.0, 0.0, z)) for z in (-0.15, 0.15)]
    whole = Shape("box", (0.1, 0.2, 0.3))
    link = Link.from_shapes("l", None, halves, density=500.0)
    assert link.mass == pytest.approx(500.0 * whole.volume)
    assert link.com == pytest.approx((1.0, 0.0, 0.0))
    np.testing.assert_allclose(link.inertia, whole.inertia(link.mass), atol=1e-12)
    assert Link.from_shapes("l", None, halves, mass=3.0).mass == 3.0


def test_from_shapes_turns_shapes_and_defaults_to_water() -> None:
    rod = Shape.capsule((-1.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.1)
    link = Link.from_shapes("l", None, [rod])
    assert link.mass == pytest.approx(1000.0 * rod.volume)
    upright = Shape("capsule", (0.1, 1.0)).inertia(link.mass)
    np.testing.assert_allclose(link.inertia, upright[[2, 1, 0]][:, [2, 1, 0]], atol=1e-9)


def test_from_shapes_needs_shapes_and_one_of_mass_and_density() -> None:
    with pytest.raises(CharacterError, match="there are none"):
        Link.from_shapes("l", None, [])
    with pytest.raises(CharacterError, match="mass or density, not both"):
        Link.from_shapes("l", None, [Shape("sphere", (1.0,))], mass=1.0, density=1.0)
    with pytest.raises(CharacterError, match="density must be at least 0"):
        Link.from_shapes("l", None, [Shape("sphere", (1.0,))], density=-1.0)


# the tree


def test_links_are_reordered_depth_first_and_stable() -> None:
    order = ("f", "b"), ("b", "a"), ("a", None), ("d", "c"), ("c", "a"), ("e", "b")
    assert [link.name for link in tree(*order).links] == ["a", "b", "f", "e", "c", "d"]


@settings(max_examples=40)
@given(characters())
def test_every_parent_comes_before_its_children_and_subtrees_are_contiguous(c: Character) -> None:
    names = [link.name for link in c.links]
    depth: dict[str | None, int] = {None: -1}
    for before, link in zip([None, *c.links], c.links, strict=False):
        depth[link.name] = depth[link.parent] + 1
        if before is not None:
            assert depth[link.name] <= depth[before.name] + 1
    assert len(set(names)) == len(names)


def test_slices_cover_q_and_v_in_order() -> None:
    c = load_character("humanoid")
    q = list(itertools.chain(*(range(43)[c.q_slice(joint)] for joint in c.joints)))
    v = list(itertools.chain(*(range(34)[c.v_slice(joint.name)] for joint in c.joints)))
    assert (q, v) == (list(range(43)), list(range(34)))


def test_links_and_joints_are_found_by_name() -> None:
    c = load_character("humanoid")
    assert c.link("left_foot").name == "left_foot"
    assert c.joint("left_knee").kind == "hinge"
    with pytest.raises(CharacterError, match="unknown link 'left_fot'; did you mean 'left_foot'"):
        c.link("left_fot")
    with pytest.raises(CharacterError, match="unknown joint 'left_kne'; did you mean 'left_knee'"):
        c.v_slice("left_kne")
    with pytest.raises(CharacterError, match="unknown joint 3"):
        c.joint(3)  # type: ignore[arg-type]


def test_characters_are_values() -> None:
    a = load_character("dog")
    b = Character(a.name, a.links[::-1][:0] + a.links, a.limbs)
    assert a == b
    assert hash(a) == hash(b)
    assert a != load_character("dog", base="fixed")
    with pytest.raises(AttributeError):
        a.name = "cat"  # type: ignore[misc]
    with pytest.raises(TypeError):
        a.limbs["x"] = ()  # type: ignore[index]
    a.rest_q[:] = 7.0
    assert a.rest_q[0] == 0.0
    for again in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a), copy.copy(a)):
        assert again == a


def test_base_can_be_freed_and_fixed() -> None:
    free = load_character("humanoid")
    fixed = free.with_base("fixed")
    assert (fixed.nq, fixed.nv, fixed.mass) == (36, 28, free.mass)
    assert fixed.with_base("fixed") is fixed
    assert fixed.with_base("free") == free
    with pytest.raises(CharacterError, match="hangs on the world by joint 'shoulder'"):
        load_character("two-link", base="free")
    with pytest.raises(CharacterError, match="unknown base 'fre'"):
        load_character("humanoid", base="fre")  # type: ignore[arg-type]


# the built-in ones

DOF_AND_DEPTH = {
    "humanoid": (34, 13),
    "dog": (72, 24),
    "snake-36": (36, 36),
    "snake-72": (72, 72),
    "snake-195": (195, 195),
    "two-link": (2, 2),
    "humanoid-51": (51, 21),
    "humanoid-ball": (45, 18),
    "tail-biped": (51, 24),
    "lamp": (15, 15),
    "plank-8": (8, 8),
}


def test_every_builtin_is_in_the_table() -> None:
    assert set(DOF_AND_DEPTH) == set(builtin_names())


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_has_its_degrees_of_freedom_shapes_and_limbs(name: str) -> None:
    c = load_character(name)
    assert (c.nv, c.depth) == DOF_AND_DEPTH[name]
    assert c.name == name
    assert all(link.shapes for link in c.links)
    assert {link for limb in c.limbs.values() for link in limb} == {link.name for link in c.links}
    assert load_character(name) is c


def lowest(c: Character) -> float:
    """Height of the lowest point of all shapes at rest; the built-in links are not turned."""
    z: dict[str | None, float] = {None: 0.0}
    low = []
    for link in c.links:
        z[link.name] = z[link.parent] + link.pos[2]
        for shape in link.shapes:
            low.append(z[link.name] + shape.pos[2] - reach(shape))
    return min(low)


def reach(shape: Shape) -> float:
    """How far a shape reaches along z from its center."""
    w, x, y, z = shape.quat
    row = (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y))
    if shape.kind == "box":
        return sum(abs(r) * s for r, s in zip(row, shape.size, strict=True))
    return shape.size[0] + abs(row[2]) * (*shape.size, 0.0)[1]


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36"])
def test_builtin_stands_on_the_ground(name: str) -> None:
    assert lowest(load_character(name)) == pytest.approx(0.0, abs=1e-12)


def test_humanoid_is_a_person() -> None:
    c = load_character("humanoid")
    assert c.mass == pytest.approx(60.0)
    flipped = Character("x", tuple(upside_down(link) for link in c.links))
    assert -lowest(flipped) == pytest.approx(1.66, abs=1e-9)
    kinds = [joint.kind for joint in c.joints]
    assert (kinds.count("ball"), kinds.count("hinge")) == (8, 4)
    assert c.joint("left_knee").limits == c.joint("right_knee").limits == (-0.05, 2.6)


def upside_down(link: Link) -> Link:
    """Mirror heights, so that the lowest point becomes the highest."""
    solid = tuple(
        Shape(s.kind, s.size, (s.pos[0], s.pos[1], -s.pos[2]), s.quat) for s in link.shapes
    )
    pos = (link.pos[0], link.pos[1], -link.pos[2])
    return Link.from_shapes(link.name, link.parent, solid, pos=pos, joints=link.joints)


@pytest.mark.parametrize("name", ["humanoid", "dog"])
def test_left_mirrors_right(name: str) -> None:
    c = load_character(name)
    for link in c.links:
        if "left" in link.name:
            twin = c.link(link.name.replace("left", "right"))
            assert twin.mass == link.mass
            assert twin.pos == (link.pos[0], -link.pos[1], link.pos[2])
            assert twin.com == pytest.approx((link.com[0], -link.com[1], link.com[2]))


def test_two_link_is_the_pair_of_cylinders() -> None:
    c = load_character("two-link")
    assert [link.mass for link in c.links] == [1.54, 1.54]
    across = 1.54 * (3 * 0.035**2 + 0.3**2) / 12
    along = 1.54 * 0.035**2 / 2
    np.testing.assert_allclose(c.links[0].inertia, np.diag([across, across, along]), rtol=1e-12)


@pytest.mark.parametrize("dof", [6, 9, 99, 3006])
def test_snakes_of_any_length(dof: int) -> None:
    c = load_character(f"snake-{dof}")
    assert (c.nv, c.depth) == (dof, dof)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("snake-37", "37 degrees of freedom; .* nearest: snake-36, snake-39"),
        ("snake-0", "nearest: snake-6, snake-9"),
        ("snake-999999999", "nearest: snake-30006$"),
        ("humanoi", "did you mean 'humanoid'.* built-in: humanoid, dog, .*snake-N.*path"),
        ("robot.xml", "cannot be read: No such file"),
        ("folder/robot", "'no suffix'; poise reads"),
        ("nowhere.yaml", "nowhere.yaml: cannot be read: No such file"),
        ("", "unknown character ''"),
        ("a" * 5000, "unknown character 'aaa"),
        ("robot.fbx", "robot.fbx: FBX is closed; export GLB or BVH"),
        (7, "named by a string or a path, got 7"),
    ],
)
def test_a_wrong_source_says_what_would_be_right(name: Any, message: str) -> None:
    with pytest.raises(CharacterError, match=message):
        load_character(name)


def test_shapes_without_volume_are_refused() -> None:
    # 1e-320^3 is zero in floating point
    with pytest.raises(CharacterError, match="link 'speck': shapes are so small"):
        Link.from_shapes("speck", None, [Shape("sphere", (1e-320,))], mass=1.0)


def test_names_are_of_bounded_length() -> None:
    with pytest.raises(CharacterError, match="at most 200 characters, got 5000"):
        Link("a" * 5000)


def test_a_density_gives_a_link_the_inertia_of_its_shapes() -> None:
    box = Shape("box", (0.1, 0.2, 0.3), (0.0, 0.0, 0.5))
    link = Link("block", shapes=(box,), density=700.0)
    assert link == Link.from_shapes("block", None, [box], density=700.0)
    assert link.mass == pytest.approx(700.0 * 0.048)
    assert replace(link, name="other").mass == link.mass


@pytest.mark.parametrize(
    "others", [{"mass": 1.0}, {"com": (0.0, 0.0, 0.1)}, {"inertia": np.eye(3)}]
)
def test_a_density_stands_alone(others: dict[str, Any]) -> None:
    box = Shape("box", (0.1, 0.2, 0.3))
    with pytest.raises(CharacterError, match=f"link 'block': give density or {next(iter(others))}"):
        Link("block", shapes=(box,), density=700.0, **others)
    with pytest.raises(CharacterError, match="link 'block': shapes are needed"):
        Link("block", density=700.0)


def test_a_character_shows_itself_in_one_line() -> None:
    humanoid = load_character("humanoid")
    assert repr(humanoid) == f"Character('humanoid', {len(humanoid.links)} links, nv=34, 60 kg)"


def test_a_unit_is_for_files_that_do_not_state_their_own(tmp_path: Path) -> None:
    for source in ("humanoid", tmp_path / "robot.xml", "take.glb"):
        with pytest.raises(CharacterError, match="unit is for files that do not state their own"):
            load_character(source, unit=0.01)
