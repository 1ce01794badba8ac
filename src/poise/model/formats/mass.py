"""Characters from the skeleton files of MASS (Lee et al. 2019), such as its human.xml.

    <Skeleton name="Human">
      <Node name="TibiaR" parent="FemurR">
        <Body type="Box" mass="3.0" size="0.12 0.42 0.11" color="0.3 0.3 1.5 1.0">
          <Transformation linear="1 0 0 0 1 0 0 0 1" translation="-0.09 0.30 -0.03"/>
        </Body>
        <Joint type="Revolute" axis="1 0 0" lower="0" upper="2.3">
          <Transformation linear="1 0 0 0 1 0 0 0 1" translation="-0.10 0.54 -0.01"/>
        </Joint>
      </Node>
      ...

Transformations place bodies and joints in the world, in the rest pose: metres, y up, +z ahead, +x
to the left; `linear` is a rotation by rows, made orthonormal column by column as MASS does. Here
(x, y, z) becomes (z, x, y): z up, x ahead. Each link's frame sits in its joint, with the axes of
the world in the rest pose where the joint's are. Bodies are boxes, spheres or capsules of one
density. Limits are kept for revolute and prismatic joints; those of ball joints (a box of rotation
vectors) are not, nor are muscles, which have a file of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import CharacterError, unknown_name
from poise.io.files import decode, read_bounded
from poise.io.xml_elements import Element, parse_text
from poise.math.arrays import Floats
from poise.math.rotation import quat_from_matrix, quat_from_z, quat_matrix
from poise.model.character import Character, Joint, JointKind, Link, Shape, Vector
from poise.model.validation import check_name, check_number

LARGEST_FILE = 16 * 2**20  # [bytes]
MOST_NODES = 4096
DEEPEST = 16  # levels of nesting
SKEWED = 0.3  # how far `linear` may be from a rotation: MASS's own femur is off by 0.21

TO_WORLD = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Rotation from the file's axes to ours."""

KINDS: dict[str, JointKind | None] = {
    "Free": "free",
    "Ball": "ball",
    "Revolute": "hinge",
    "Prismatic": "slide",
    "Weld": None,
}
"""Joint kinds by the file's types; None is welded."""

LIMBS = {
    "torso": r"Pelvis|Spine|Torso",
    "head": r"Neck|Head",
    "left_leg": r"(Femur|Tibia|Talus|Foot\w+)L",
    "right_leg": r"(Femur|Tibia|Talus|Foot\w+)R",
    "left_arm": r"(Shoulder|Arm|ForeArm|Hand)L",
    "right_arm": r"(Shoulder|Arm|ForeArm|Hand)R",
}
"""Which limb a link belongs to, by its name."""


def recognises(path: Path) -> bool:
    """Whether an XML file looks like a skeleton of MASS, by its first element."""
    try:
        with open(path, "rb") as file:
            head = file.read(65536)
    except (OSError, ValueError):
        return False
    first = re.search(rb"<([A-Za-z]\w*)", head)
    return first is not None and first[1] == b"Skeleton"


def load(path: Path) -> Character:
    """Read a character."""
    return parse(read_bounded(path, LARGEST_FILE, CharacterError), str(path))


def parse(data: bytes, name: str = "<text>") -> Character:
    """Read a character from the bytes of a file.

    Args:
        data: What the file holds.
        name: What errors call the file.
    """
    text = decode(data, name, CharacterError)
    skeleton = parse_text(text, Path(name), most=8 * MOST_NODES, deepest=DEEPEST)
    if skeleton.tag != "Skeleton":
        raise skeleton.error(f"is no skeleton of MASS: it begins with <{skeleton.tag:.40}>")
    return _character(skeleton)


# the skeleton


@dataclass(frozen=True)
class _Frame:
    """Orientation and origin in the world, in our axes."""

    R: Floats
    p: Floats


def _character(skeleton: Element) -> Character:
    nodes = [child for child in skeleton.children if child.tag == "Node"]
    if not 1 <= len(nodes) <= MOST_NODES:
        raise skeleton.error(f"needs 1 to {MOST_NODES} elements Node, got {len(nodes)}")
    links: list[Link] = []
    frames: dict[str, _Frame] = {}
    for node in nodes:
        try:
            links.append(_link(node, frames))
        except CharacterError as error:
            text = str(error)
            placed = text.startswith(f"{node.file}:")
            raise (error if placed else node.error(text)) from error
    limbs = {limb: tuple(x for x in frames if re.fullmatch(p, x)) for limb, p in LIMBS.items()}
    try:
        return Character(
            skeleton.attributes.get("name", skeleton.file.stem),
            tuple(links),
            {limb: names for limb, names in limbs.items() if names},
        )
    except CharacterError as error:
        named = [node for node in nodes if repr(node.attributes["name"]) in str(error)]
        raise (*named, skeleton)[0].error(str(error)) from error


def _link(node: Element, frames: dict[str, _Frame]) -> Link:
    """The link of a Node; its joint's frame is added to the others."""
    name = check_name("Node: name", node.attributes.get("name"))
    if name in frames:
        raise node.error(f"two nodes are named {name!r}; names must differ")
    parent = node.attributes.get("parent", "None")
    if parent != "None" and parent not in frames:
        raise node.error(
            f"node {name!r}: parent: {unknown_name('node', parent, frames)} (before it)"
        )
    joint, body = _child(node, "Joint"), _child(node, "Body")
    frame = frames[name] = _frame(_child(joint, "Transformation"))
    above = frames[parent] if parent != "None" else _Frame(np.eye(3), np.zeros(3))
    return Link.from_shapes(
        name,
        None if parent == "None" else parent,
        [_shape(body, frame)],
        mass=check_number("mass", _numbers(body, "mass", 1)[0], least=0.0),
        pos=tuple((above.R.T @ (frame.p - above.p)).tolist()),
        quat=_quat(above.R.T @ frame.R),
        joints=_joint(joint, name),
    )


def _joint(element: Element, name: str) -> tuple[Joint, ...]:
    type_ = element.attributes.get("type")
    if type_ not in list(KINDS):
        raise element.error(f"joint of {name!r}: " + unknown_name("type", type_, KINDS))
    kind = KINDS[str(type_)]
    if kind is None:
        return ()
    values: dict[str, Any] = {}
    if kind in ("hinge", "slide"):
        axis = TO_WORLD @ _numbers(element, "axis", 3)
        values["axis"] = tuple(axis.tolist())
        if "lower" in element.attributes or "upper" in element.attributes:
            low, high = (_numbers(element, key, 1)[0] for key in ("lower", "upper"))
            values["limits"] = (float(low), float(high))
    try:
        return (Joint(name, kind, **values),)
    except CharacterError as error:
        raise element.error(str(error)) from error


def _shape(body: Element, link: _Frame) -> Shape:
    frame = _frame(_child(body, "Transformation"))
    kind = body.attributes.get("type")
    turn = np.eye(3)
    if kind == "Box":
        size = TO_WORLD @ _numbers(body, "size", 3) / 2.0
    elif kind == "Sphere":
        size = _numbers(body, "radius", 1)
    elif kind == "Capsule":
        radius, height = (_numbers(body, key, 1)[0] for key in ("radius", "height"))
        size = np.array([radius, height / 2.0])
        # it lies along the file's z, which is our x
        turn = quat_matrix(quat_from_z((1.0, 0.0, 0.0)))
    else:
        known = ("Box", "Sphere", "Capsule")
        raise body.error("Body: " + unknown_name("type", kind, known))
    pos = link.R.T @ (frame.p - link.p)
    values = tuple(size.tolist()), tuple(pos.tolist()), _quat(link.R.T @ frame.R @ turn)
    try:
        return Shape(kind.lower(), *values, _color(body))  # type: ignore[arg-type]
    except CharacterError as error:
        raise body.error(str(error)) from error


def _color(body: Element) -> Vector | None:
    if "color" not in body.attributes:
        return None
    return tuple(np.clip(_numbers(body, "color", 4), 0.0, 1.0).tolist())


def _frame(element: Element) -> _Frame:
    """Where a Transformation is."""
    linear = _numbers(element, "linear", 9).reshape(3, 3)
    if np.abs(linear.T @ linear - np.eye(3)).max() > SKEWED or np.linalg.det(linear) < 0.0:
        raise element.error(f"linear must be a rotation, got {linear.tolist()}")
    # Gram-Schmidt, column by column
    columns: list[Floats] = []
    for column in linear.T:
        for other in columns:
            column = column - other * (other @ column)
        columns.append(column / np.linalg.norm(column))
    R = TO_WORLD @ np.array(columns).T @ TO_WORLD.T
    return _Frame(R, TO_WORLD @ _numbers(element, "translation", 3))


def _child(element: Element, tag: str) -> Element:
    found = [child for child in element.children if child.tag == tag]
    if len(found) != 1:
        named = element.attributes.get("name") or element.attributes.get("type") or ""
        raise element.error(f"{element.tag} {named!r:.80} needs one {tag}, got {len(found)}")
    return found[0]


def _numbers(element: Element, key: str, size: int) -> Floats:
    words = element.attributes.get(key, "").split()
    if len(words) != size:
        noun = "number" if size == 1 else "numbers"
        raise element.error(f"{element.tag}: {key} must be {size} {noun}, got {len(words)}")
    return np.array([_number(element, key, word) for word in words])


def _number(element: Element, key: str, word: str) -> float:
    try:
        return check_number(f"{element.tag}: {key}", float(word))
    except ValueError:
        raise element.error(f"{element.tag}: {key} must be numbers, got {word!r:.80}") from None
    except CharacterError as error:
        raise element.error(str(error)) from error


def _quat(R: Floats) -> Vector:
    """The quaternion w x y z, w >= 0, of a rotation matrix."""
    quat = quat_from_matrix(R)
    quat = quat * (1.0 if quat[0] >= 0.0 else -1.0)
    quat[np.abs(quat) < 1e-15] = 0.0
    return tuple(quat.tolist())
