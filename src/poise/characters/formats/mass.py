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
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from poise.arrays import Floats
from poise.character import Character, Joint, JointKind, Link, Shape, Vector
from poise.characters.formats.deepmimic import read_bytes
from poise.errors import CharacterError, check_name, check_number, unknown_name
from poise.forest import quat_from_z, quat_matrix

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
    return parse(read_bytes(path, LARGEST_FILE, CharacterError), str(path))


def parse(data: bytes, name: str = "<text>") -> Character:
    """Read a character from the bytes of a file.

    Args:
        data: What the file holds.
        name: What errors call the file.
    """
    return _Reader(name).character(_tree(data, name))


# XML


@dataclass
class _Element:
    """An element of the file."""

    tag: str
    values: dict[str, str]
    line: int
    children: list[_Element] = field(default_factory=list)


def _tree(data: bytes, name: str) -> _Element:
    """The elements of a file; entities and document types are refused."""
    from xml.sax import SAXException, SAXParseException
    from xml.sax.handler import ContentHandler
    from xml.sax.xmlreader import InputSource

    from defusedxml import DefusedXmlException
    from defusedxml.sax import make_parser

    top = _Element("", {}, 1)

    class Builder(ContentHandler):
        def __init__(self) -> None:
            super().__init__()
            self.open = [top]
            self.count = 0
            self.place: Any = None

        def setDocumentLocator(self, locator: Any) -> None:
            self.place = locator

        def startElement(self, tag: str, attrs: Any) -> None:
            line = int(self.place.getLineNumber() or 1)
            self.count += 1
            if self.count > 8 * MOST_NODES or len(self.open) > DEEPEST:
                raise CharacterError(
                    f"{name}:{line}: over {8 * MOST_NODES} elements or {DEEPEST} levels"
                )
            element = _Element(tag, dict(attrs.items()), line)
            self.open[-1].children.append(element)
            self.open.append(element)

        def endElement(self, tag: str) -> None:
            self.open.pop()

    parser, source, builder = make_parser(), InputSource(), Builder()
    parser.forbid_dtd = True
    parser.setContentHandler(builder)
    source.setByteStream(BytesIO(data))
    try:
        parser.parse(source)
    except SAXParseException as error:
        line = error.getLineNumber() or 1
        raise CharacterError(f"{name}:{line}: is not XML: {error.getMessage()}") from error
    except DefusedXmlException as error:
        line = int(builder.place.getLineNumber() or 1) if builder.place else 1
        raise CharacterError(
            f"{name}:{line}: document types and entities are not read: {error!s:.120}"
        ) from error
    except (SAXException, ValueError, LookupError) as error:  # encodings that Python cannot read
        raise CharacterError(f"{name}:1: is not XML: {error!s:.120}") from error
    if not top.children or top.children[0].tag != "Skeleton":
        raise CharacterError(f"{name}:1: is no skeleton of MASS: its first element is not Skeleton")
    return top.children[0]


# the skeleton


@dataclass(frozen=True)
class _Frame:
    """Orientation and origin in the world, in our axes."""

    R: Floats
    p: Floats


class _Reader:
    """Turns elements into a character."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[str, int] = {}

    def character(self, skeleton: _Element) -> Character:
        nodes = [child for child in skeleton.children if child.tag == "Node"]
        if not 1 <= len(nodes) <= MOST_NODES:
            raise self.error(skeleton, f"needs 1 to {MOST_NODES} elements Node, got {len(nodes)}")
        links: list[Link] = []
        frames: dict[str, _Frame] = {}
        for node in nodes:
            try:
                links.append(self.link(node, frames))
            except CharacterError as error:
                text = str(error)
                placed = text.startswith(f"{self.name}:")
                raise (error if placed else self.error(node, text)) from error
        limbs = {limb: tuple(x for x in frames if re.fullmatch(p, x)) for limb, p in LIMBS.items()}
        try:
            return Character(
                skeleton.values.get("name", Path(self.name).stem),
                tuple(links),
                {limb: names for limb, names in limbs.items() if names},
            )
        except CharacterError as error:
            named = [node for node in nodes if repr(node.values["name"]) in str(error)]
            raise self.error((*named, skeleton)[0], str(error)) from error

    def link(self, node: _Element, frames: dict[str, _Frame]) -> Link:
        """The link of a Node; its joint's frame is added to the others."""
        name = check_name("Node: name", node.values.get("name"))
        if name in frames:
            raise self.error(node, f"two nodes are named {name!r}; names must differ")
        parent = node.values.get("parent", "None")
        if parent != "None" and parent not in frames:
            raise self.error(
                node, f"node {name!r}: parent: {unknown_name('node', parent, frames)} (before it)"
            )
        joint, body = self.child(node, "Joint"), self.child(node, "Body")
        frame = frames[name] = self.frame(self.child(joint, "Transformation"))
        above = frames[parent] if parent != "None" else _Frame(np.eye(3), np.zeros(3))
        return Link.from_shapes(
            name,
            None if parent == "None" else parent,
            [self.shape(body, frame)],
            mass=check_number("mass", self.numbers(body, "mass", 1)[0], least=0.0),
            pos=tuple((above.R.T @ (frame.p - above.p)).tolist()),
            quat=_quat(above.R.T @ frame.R),
            joints=self.joint(joint, name),
        )

    def joint(self, element: _Element, name: str) -> tuple[Joint, ...]:
        type_ = element.values.get("type")
        if type_ not in list(KINDS):
            raise self.error(element, f"joint of {name!r}: " + unknown_name("type", type_, KINDS))
        kind = KINDS[str(type_)]
        if kind is None:
            return ()
        values: dict[str, Any] = {}
        if kind in ("hinge", "slide"):
            axis = TO_WORLD @ self.numbers(element, "axis", 3)
            values["axis"] = tuple(axis.tolist())
            if "lower" in element.values or "upper" in element.values:
                low, high = (self.numbers(element, key, 1)[0] for key in ("lower", "upper"))
                values["limits"] = (float(low), float(high))
        try:
            return (Joint(name, kind, **values),)
        except CharacterError as error:
            raise self.error(element, str(error)) from error

    def shape(self, body: _Element, link: _Frame) -> Shape:
        frame = self.frame(self.child(body, "Transformation"))
        kind = body.values.get("type")
        turn = np.eye(3)
        if kind == "Box":
            size = TO_WORLD @ self.numbers(body, "size", 3) / 2.0
        elif kind == "Sphere":
            size = self.numbers(body, "radius", 1)
        elif kind == "Capsule":
            radius, height = (self.numbers(body, key, 1)[0] for key in ("radius", "height"))
            size = np.array([radius, height / 2.0])
            # it lies along the file's z, which is our x
            turn = quat_matrix(quat_from_z((1.0, 0.0, 0.0)))
        else:
            known = ("Box", "Sphere", "Capsule")
            raise self.error(body, "Body: " + unknown_name("type", kind, known))
        pos = link.R.T @ (frame.p - link.p)
        values = tuple(size.tolist()), tuple(pos.tolist()), _quat(link.R.T @ frame.R @ turn)
        try:
            return Shape(kind.lower(), *values, self.color(body))  # type: ignore[arg-type]
        except CharacterError as error:
            raise self.error(body, str(error)) from error

    def color(self, body: _Element) -> Vector | None:
        if "color" not in body.values:
            return None
        return tuple(np.clip(self.numbers(body, "color", 4), 0.0, 1.0).tolist())

    def frame(self, element: _Element) -> _Frame:
        """Where a Transformation is."""
        linear = self.numbers(element, "linear", 9).reshape(3, 3)
        if np.abs(linear.T @ linear - np.eye(3)).max() > SKEWED or np.linalg.det(linear) < 0.0:
            raise self.error(element, f"linear must be a rotation, got {linear.tolist()}")
        # Gram-Schmidt, column by column
        columns: list[Floats] = []
        for column in linear.T:
            for other in columns:
                column = column - other * (other @ column)
            columns.append(column / np.linalg.norm(column))
        R = TO_WORLD @ np.array(columns).T @ TO_WORLD.T
        return _Frame(R, TO_WORLD @ self.numbers(element, "translation", 3))

    # values

    def child(self, element: _Element, tag: str) -> _Element:
        found = [child for child in element.children if child.tag == tag]
        if len(found) != 1:
            named = element.values.get("name") or element.values.get("type") or ""
            raise self.error(
                element, f"{element.tag} {named!r:.80} needs one {tag}, got {len(found)}"
            )
        return found[0]

    def numbers(self, element: _Element, key: str, size: int) -> Floats:
        words = element.values.get(key, "").split()
        if len(words) != size:
            noun = "number" if size == 1 else "numbers"
            raise self.error(
                element, f"{element.tag}: {key} must be {size} {noun}, got {len(words)}"
            )
        return np.array([self.number(element, key, word) for word in words])

    def number(self, element: _Element, key: str, word: str) -> float:
        try:
            return check_number(f"{element.tag}: {key}", float(word))
        except ValueError:
            raise self.error(
                element, f"{element.tag}: {key} must be numbers, got {word!r:.80}"
            ) from None
        except CharacterError as error:
            raise self.error(element, str(error)) from error

    def error(self, element: _Element, message: str) -> CharacterError:
        return CharacterError(f"{self.name}:{element.line}: {message}")


def _quat(R: Floats) -> Vector:
    """The quaternion w x y z, w >= 0, of a rotation matrix."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    quat = np.array([w, x, y, z]) * (1.0 if w >= 0.0 else -1.0)
    quat[np.abs(quat) < 1e-15] = 0.0
    return tuple(quat.tolist())
