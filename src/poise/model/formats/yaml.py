"""Characters as YAML files: lossless, readable, and read with care.

    format: poise-character
    version: 1
    name: pendulum
    links:
    - name: rod                 # parent, pos, quat, joints, com and shapes may be left out
      joints:
      - name: pivot
        kind: hinge
        axis: [0, 1, 0]
      mass: 1.5                 # or density, with shapes
      com: [0, 0, -0.5]
      inertia: [0.1, 0.1, 0.01] # 3, 6 (xx yy zz xy xz yz) or 9 numbers; or left out, with shapes
    limbs:
      arm: [rod]

Vertices of a mesh are lines of three numbers, or a list of such lists. Floats are written so that
they come back bit for bit; defaults are left out. Files are read within bounds, and every error
names its line. Built-in characters are in a form that is JSON as well, which is quick to read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from poise.errors import CharacterError
from poise.io.files import read_text, write_atomically
from poise.io.yaml_nodes import NUMBER, Node, Reader, parse_number
from poise.model.character import Character, Joint, Link, Shape, Vector

FORMAT = "poise-character"
VERSION = 1

# the parser takes some 50 us for each value, and 5 for each word: a few seconds at the most
LARGEST_TEXT = 4 * 2**20  # [characters]
MOST_WORDS = 200_000  # in one text, with commas; as many lines
MOST_VALUES = 100_000  # in one text, aliases counted as often as they are used

NEEDED = ("format", "version", "name", "links")
CHARACTER_KEYS = (*NEEDED, "limbs")
LINK_KEYS = (*(f.name for f in fields(Link)), "density")
JOINT_KEYS = tuple(f.name for f in fields(Joint))
SHAPE_KEYS = tuple(f.name for f in fields(Shape))

SIX = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # xx yy zz xy xz yz

T = TypeVar("T")


def load(path: Path) -> Character:
    """Read a character."""
    return parse(read_text(path, LARGEST_TEXT, CharacterError), str(path))


def parse(text: str, name: str = "<text>") -> Character:
    """Read a character from text.

    Args:
        text: The text of a file.
        name: What errors call the file.
    """
    return CharacterReader(name).parsed(text)


def save(character: Character, path: Path) -> None:
    """Write a character; the file is replaced whole or not at all."""
    write_atomically(path, dump(character).encode("utf-8"), CharacterError)


def dump(character: Character) -> str:
    """The text of a character's file."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 2**31 - 1
    yaml.representer.add_representer(tuple, _represent_tuple)
    data = data_of(character)
    for link in data["links"]:
        for shape in link.get("shapes", ()):
            if "vertices" in shape:
                shape["vertices"] = _rows(shape["vertices"])
    text = StringIO()
    yaml.dump(data, text)
    return text.getvalue()


def data_of(character: Character) -> dict[str, Any]:
    """What the file of a character holds, in dictionaries, lists and tuples."""
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": character.name}
    data["links"] = [_link_data(link) for link in character.links]
    if character.limbs:
        data["limbs"] = dict(character.limbs)
    return data


def _represent_tuple(representer: Any, values: tuple[Any, ...]) -> Any:
    """Vectors go on one line."""
    return representer.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=True)


def _link_data(link: Link) -> dict[str, Any]:
    data = _without_defaults(link, keep=("mass",))
    if link.mass > 0.0:
        inertia = np.array(link.inertia)
        diagonal = not np.any(inertia - np.diag(np.diag(inertia)))
        data["inertia"] = tuple(inertia[ij].item() for ij in SIX[: 3 if diagonal else 6])
    for key in ("joints", "shapes"):
        if key in data:
            data[key] = [_without_defaults(part) for part in data[key]]
    for shape in data.get("shapes", ()):
        if shape["kind"] == "mesh":
            del shape["size"]
    return data


def _rows(vertices: tuple[Vector, ...]) -> str:
    """Vertices as lines of text: one value for the parser, and easy to read."""
    from ruamel.yaml.scalarstring import LiteralScalarString

    rows = (" ".join(map(repr, vertex)) for vertex in vertices)
    text: str = LiteralScalarString("".join(f"{row}\n" for row in rows))
    return text


def _without_defaults(value: Link | Joint | Shape, keep: tuple[str, ...] = ()) -> dict[str, Any]:
    data = {f.name: getattr(value, f.name) for f in fields(value)}
    default = {f.name: f.default for f in fields(value)}
    return {key: x for key, x in data.items() if key in keep or x != default[key]}


# ---- reading, within bounds


class CharacterReader(Reader):
    """Turns nodes into a character, and checks each value."""

    def __init__(self, name: str) -> None:
        super().__init__(name, CharacterError, MOST_VALUES)
        self.lines: dict[str, int] = {}  # where links, joints and limbs are, as errors call them
        self.rows = 0  # vertices so far, aliases followed

    def parsed(self, text: str) -> Character:
        """The character of a text, if that is within bounds."""
        words = max(len(text.split()) + text.count(","), len(text.splitlines()))
        if len(text) > LARGEST_TEXT or words > MOST_WORDS:
            raise self.error(1, f"too large: over {LARGEST_TEXT} characters or {MOST_WORDS} words")
        node = self.tree(text)
        if node.kind != "mapping":
            keys = ", ".join(map(repr, NEEDED))
            raise self.error(node, f"a character's file must be a mapping with {keys}, got {node}")
        return self.character(node)

    def character(self, node: Node) -> Character:
        """The character of a whole document."""
        found = self.mapping(node, "a character's file", CHARACTER_KEYS, NEEDED)
        name = self.text(found["format"], "format")
        if name != FORMAT:
            raise self.error(found["format"], f"format must be {FORMAT!r}, got {name!r:.80}")
        if self.number(found["version"], "version") != VERSION:
            raise self.error(
                found["version"],
                f"version must be {VERSION}, got {found['version']}; a newer poise may read it",
            )
        values: dict[str, Any] = {
            "name": self.text(found["name"], "name"),
            "links": tuple(map(self.link, self.items(found["links"], "links"))),
        }
        if "limbs" in found:
            limbs = self.mapping(found["limbs"], "limbs")
            values["limbs"] = {key: self.texts(x, f"limb {key!r}") for key, x in limbs.items()}
            self.lines |= {f"limb {key!r}": x.line for key, x in limbs.items()}
        return self.make(Character, values, found, node)

    def link(self, node: Node) -> Link:
        found = self.mapping(node, "a link", LINK_KEYS, ("name",))
        at = f"link {self.named(found['name'], node)!r}: "
        text, vector = self.text, self.vector
        values = self.values(found, at, name=text, parent=text, pos=vector, quat=vector)
        for key, read in (("joints", self.joint), ("shapes", self.shape)):
            if key in found:
                items = self.items(found[key], at + key)
                values[key] = tuple(read(item, at) for item in items)
        return self.make(*self.massive(node, found, values, at), found, node)

    def massive(
        self, node: Node, found: Mapping[str, Node], values: dict[str, Any], at: str
    ) -> tuple[Callable[..., Link], dict[str, Any]]:
        """How to make a link, and from what: its inertia is given, or that of its shapes."""
        given = [key for key in ("mass", "density") if key in found]
        if len(given) != 1:
            raise self.error(node, f"{at}needs mass, or density and shapes; one of the two")
        values[given[0]] = self.number(found[given[0]], at + given[0])
        massless = values.get("mass") == 0.0
        if massless or ("mass" in values and "inertia" in found):
            return Link, values | self.values(found, at, com=self.vector, inertia=self.inertia)
        for key in ("com", "inertia"):
            if key in found:
                raise self.error(found[key], f"{at}{key} needs mass and inertia beside it")
        if not values.get("shapes"):
            raise self.error(node, f"{at}needs inertia, or shapes to take it from")
        return Link.from_shapes, {"parent": None, **values}

    def joint(self, node: Node, at: str) -> Joint:
        found = self.mapping(node, f"{at}a joint", JOINT_KEYS, ("name", "kind"))
        at = f"joint {self.named(found['name'], node)!r}: "
        text, number, vector, either = self.text, self.number, self.vector, self.number_or_vector
        values = self.values(found, at, name=text, kind=text, armature=number, damping=number)
        values |= self.values(found, at, stiffness=number, axis=vector, pos=vector, limits=vector)
        values |= self.values(found, at, reference=either, effort=either)
        return self.make(Joint, values, found, node)

    def shape(self, node: Node, at: str) -> Shape:
        found = self.mapping(node, f"{at}a shape", SHAPE_KEYS, ("kind",))
        at = f"{at}a shape"
        vector = self.vector
        values = self.values(found, f"{at}'s ", kind=self.text, vertices=self.vertices)
        values |= self.values(found, f"{at}'s ", size=vector, pos=vector, quat=vector, color=vector)
        # a mesh has vertices instead of a size
        needed = "vertices" if values["kind"] == "mesh" else "size"
        if needed not in found:
            raise self.error(node, f"{at} needs {needed!r}, which is missing")
        return self.make(Shape, {"size": (), **values}, found, node)

    def vertices(self, node: Node, what: str) -> tuple[tuple[float, ...], ...]:
        """A text, lines of three numbers; or a list of lists."""
        if node.kind != "scalar" or node.plain:
            corners = enumerate(self.items(node, what))
            return tuple(self.vector(corner, f"{what}[{i}]", 3) for i, corner in corners)
        rows = [line.split() for line in node.value.splitlines()]
        self.rows += len(rows)
        if self.rows > MOST_VALUES:
            raise self.error(node, f"too large: over {MOST_VALUES} vertices")
        for i, row in enumerate(rows):
            if len(row) != 3 or not all(map(NUMBER.fullmatch, row)):
                raise self.error(node, f"{what}[{i}] must be 3 numbers, got {' '.join(row)[:60]!r}")
        return tuple(tuple(map(parse_number, row)) for row in rows)

    # values

    def values(
        self, found: Mapping[str, Node], at: str, **readers: Callable[[Node, str], Any]
    ) -> dict[str, Any]:
        """The values of those of the named keys that are there, each by its reader."""
        return {key: read(found[key], at + key) for key, read in readers.items() if key in found}

    def texts(self, node: Node, what: str) -> tuple[str, ...]:
        return tuple(self.text(item, what) for item in self.items(node, what))

    def number(
        self, node: Node, what: str, least: float = -math.inf, most: float = math.inf
    ) -> float:
        """Any number; the character that it goes into says what is too large."""
        if not node.is_number:
            raise self.error(node, f"{what} must be a number, got {node}")
        return parse_number(node.value)

    def vector(self, node: Node, what: str, size: int | None = None) -> tuple[float, ...]:
        items = self.items(node, f"{what} (numbers)")
        if size is not None and len(items) != size:
            raise self.error(node, f"{what} must be {size} numbers, got {len(items)}")
        return tuple(self.number(item, f"{what}[{i}]") for i, item in enumerate(items))

    def number_or_vector(self, node: Node, what: str) -> float | tuple[float, ...]:
        return self.number(node, what) if node.kind == "scalar" else self.vector(node, what)

    def inertia(self, node: Node, what: str) -> Any:
        """Three numbers are the diagonal, six xx yy zz xy xz yz, nine the rows."""
        x = self.vector(node, what)
        if len(x) == 3:
            return x
        if len(x) == 9:
            return (x[:3], x[3:6], x[6:])
        if len(x) != 6:
            raise self.error(node, f"{what} must be 3, 6 or 9 numbers, got {len(x)}")
        return ((x[0], x[3], x[4]), (x[3], x[1], x[5]), (x[4], x[5], x[2]))

    # errors

    def named(self, node: Node, whole: Node) -> str:
        """The name of a link or joint; remember where it is."""
        name = self.text(node, "name")
        self.lines[repr(name)] = whole.line
        return name

    def make(
        self,
        kind: Callable[..., T],
        values: dict[str, Any],
        found: Mapping[str, Node],
        node: Node,
    ) -> T:
        """Make the value; if it is refused, say where in the file."""
        try:
            return kind(**values)
        except CharacterError as error:
            text = str(error)
            # the field it names, else what it names first
            keys = [key for key in found if f": {key}" in text or f": unknown {key} " in text]
            lines = [found[key].line for key in keys]
            named = [(text.find(name), line) for name, line in self.lines.items()]
            lines += [line for place, line in sorted(named) if place >= 0]
            raise CharacterError(f"{self.name}:{(*lines, node.line)[0]}: {text}") from error


# ---- one line for each joint and shape: quick to read


def parse_lines(text: str) -> Character:
    """Read a character from text that `dump_lines` has written; its form is not checked."""
    data = json.loads(text)
    limbs = {limb: tuple(names) for limb, names in data.get("limbs", {}).items()}
    return Character(data["name"], tuple(map(_link_of, data["links"])), limbs)


def _link_of(data: dict[str, Any]) -> Link:
    values: dict[str, Any] = {
        key: tuple(x) if isinstance(x, list) else x for key, x in data.items()
    }
    values["joints"] = tuple(Joint(**joint) for joint in data.get("joints", ()))
    values["shapes"] = tuple(Shape(**{"size": (), **shape}) for shape in data.get("shapes", ()))
    six = data.get("inertia", ())
    if len(six) == 6:
        xx, yy, zz, xy, xz, yz = six
        values["inertia"] = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    return Link(**values)


def dump_lines(character: Character) -> str:
    """The text of a character's file as YAML that is JSON as well, a line for each joint and shape.

    `parse` reads it too, at a hundredth of the speed of `parse_lines`. Floats come back bit for
    bit.
    """
    data = data_of(character)
    head = [f"{_json(key)}: {_json(data[key])}" for key in ("format", "version", "name")]
    links = ",\n".join(map(_link_text, data["links"]))
    texts = [", ".join(head), f'"links": [\n{links}\n]']
    if "limbs" in data:
        texts.append(f'"limbs": {_block(data["limbs"].items(), "{}", " ")}')
    return "{" + ",\n".join(texts) + "}\n"


def _link_text(link: dict[str, Any]) -> str:
    """A link: its own numbers on the first line, each joint and each shape on one of its own."""
    own = {key: x for key, x in link.items() if key not in ("joints", "shapes")}
    texts = [_json(own)[1:-1]]
    texts += [f'"{key}": {_block(link[key], "[]")}' for key in ("joints", "shapes") if key in link]
    return "{" + ",\n ".join(texts) + "}"


def _block(items: Iterable[Any], brackets: str, indent: str = "  ") -> str:
    """A list, or the pairs of a mapping, on lines of their own."""
    pairs = brackets == "{}"
    rows = [f"{_json(x[0])}: {_json(x[1])}" if pairs else _json(x) for x in items]
    return f"{brackets[0]}\n{indent}" + f",\n{indent}".join(rows) + brackets[1]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
