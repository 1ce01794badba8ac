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

Floats are written so that they come back bit for bit; what has its default is left out. The reader
takes the parser's events one by one and counts them, so that no file costs unbounded time or
memory, and every error says where it is.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from poise.character import Character, Joint, Link, Shape
from poise.errors import CharacterError, unknown_name

FORMAT = "poise-character"
VERSION = 1

LARGEST_FILE = 64 * 2**20  # [bytes]
MOST_VALUES = 1_000_000  # in one file, aliases counted as often as they are used
DEEPEST = 32  # levels of nesting

CHARACTER_KEYS = ("format", "version", "name", "links", "limbs")
LINK_KEYS = (*(f.name for f in fields(Link)), "density")
JOINT_KEYS = tuple(f.name for f in fields(Joint))
SHAPE_KEYS = tuple(f.name for f in fields(Shape))

NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|nan)", re.I)
NULL = ("", "~", "null", "Null", "NULL")
SIX = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # xx yy zz xy xz yz

T = TypeVar("T")


# writing


def save(character: Character, path: Path) -> None:
    """Write a character; the file is replaced whole or not at all."""
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "x", encoding="utf-8", newline="\n") as file:
            file.write(dump(character))
        os.replace(part, path)
    except OSError as error:
        raise CharacterError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def dump(character: Character) -> str:
    """The text of a character's file."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 2**31 - 1
    yaml.representer.add_representer(tuple, _represent_tuple)
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": character.name}
    data["links"] = [_link_data(link) for link in character.links]
    if character.limbs:
        data["limbs"] = dict(character.limbs)
    text = StringIO()
    yaml.dump(data, text)
    return text.getvalue()


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


def _without_defaults(value: Link | Joint | Shape, keep: tuple[str, ...] = ()) -> dict[str, Any]:
    data = {f.name: getattr(value, f.name) for f in fields(value)}
    default = {f.name: f.default for f in fields(value)}
    return {key: x for key, x in data.items() if key in keep or x != default[key]}


# reading


def load(path: Path) -> Character:
    """Read a character."""
    return parse(_text(path), str(path))


def parse(text: str, name: str = "<text>") -> Character:
    """Read a character from text.

    Args:
        text: The text of a file.
        name: What errors call the file.
    """
    return _Reader(name).character(_Parser(name).tree(text))


def _text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CharacterError(f"{path}: is not a file")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise CharacterError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a zero byte in the path
        raise CharacterError(f"{path!r}: cannot be read: {error}") from error
    if len(data) > LARGEST_FILE:
        raise CharacterError(
            f"{path}: is larger than {LARGEST_FILE >> 20} MB; that is no character"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CharacterError(f"{path}:{line}: is not UTF-8 text: {error.reason}") from error


@dataclass(frozen=True)
class _Node:
    """A value in the file: a scalar's text, a list of nodes, or a list of (key, value) nodes."""

    kind: str  # "scalar", "list" or "mapping"
    value: Any
    line: int
    size: int  # number of scalars and collections inside, aliases followed
    plain: bool = False  # a scalar without quotes

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.plain and self.value in NULL

    def __str__(self) -> str:
        if self.kind == "scalar":
            return f"{self.value[:60]!r}"
        return f"a {self.kind}"


class _Parser:
    """Turns text into nodes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.anchors: dict[str, _Node] = {}

    def tree(self, text: str) -> _Node:
        """The one document in the text."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        try:
            documents = self.documents(YAML(typ="safe", pure=True).parse(text))
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise self.error(mark.line + 1 if mark else 1, f"is not YAML: {problem}") from error
        if not documents or documents[0].is_null:
            raise self.error(1, f"is empty; a character needs {_list(CHARACTER_KEYS[:4])}")
        if len(documents) > 1:
            raise self.error(documents[1].line, "a second document; a file holds one character")
        return documents[0]

    def documents(self, events: Iterable[Any]) -> list[_Node]:
        """Build nodes from the parser's events, bounded in number and depth."""
        found: list[_Node] = []
        open_: list[tuple[Any, list[_Node]]] = []
        for count, event in enumerate(events):
            line, kind = event.start_mark.line + 1, type(event).__name__
            if count > MOST_VALUES or len(open_) > DEEPEST:
                raise self.error(line, f"too large: over {MOST_VALUES} values or {DEEPEST} levels")
            if getattr(event, "tag", None) is not None:
                raise self.error(line, f"tags such as {event.tag} are not read")
            if kind in ("SequenceStartEvent", "MappingStartEvent"):
                open_.append((event, []))
                continue
            if kind == "AliasEvent":
                node = self.aliased(event.anchor, line)
            elif kind == "ScalarEvent":
                node = _Node("scalar", event.value, line, 1, plain=event.style is None)
                self.anchors[event.anchor] = node
            elif kind in ("SequenceEndEvent", "MappingEndEvent"):
                start, items = open_.pop()
                node = self.collection(start, items)
                self.anchors[start.anchor] = node
            else:
                continue
            (open_[-1][1] if open_ else found).append(node)
        return found

    def aliased(self, anchor: str, line: int) -> _Node:
        if anchor not in self.anchors:
            raise self.error(line, f"alias *{anchor} stands for nothing before it")
        return self.anchors[anchor]

    def collection(self, start: Any, items: list[_Node]) -> _Node:
        line, size = start.start_mark.line + 1, 1 + sum(item.size for item in items)
        if size > MOST_VALUES:
            raise self.error(line, f"too large: its aliases stand for over {MOST_VALUES} values")
        if type(start).__name__ == "SequenceStartEvent":
            return _Node("list", items, line, size)
        return _Node("mapping", list(zip(items[::2], items[1::2], strict=True)), line, size)

    def error(self, line: int, message: str) -> CharacterError:
        return CharacterError(f"{self.name}:{line}: {message}")


class _Reader:
    """Turns nodes into a character, and knows what each value must be."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[str, int] = {}  # where links, joints and limbs are, as errors call them

    def character(self, node: _Node) -> Character:
        """The character of a whole document."""
        found = self.mapping(node, "a character's file", CHARACTER_KEYS, CHARACTER_KEYS[:4])
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

    def link(self, node: _Node) -> Link:
        found = self.mapping(node, "a link", LINK_KEYS, ("name",))
        at = f"link {self.named(found['name'], node)!r}: "
        values = self.values(found, at, texts=("name", "parent"), vectors={"pos": 3, "quat": 4})
        for key, read in (("joints", self.joint), ("shapes", self.shape)):
            if key in found:
                items = self.items(found[key], at + key)
                values[key] = tuple(read(item, at) for item in items)
        return self.make(*self.massive(node, found, values, at), found, node)

    def massive(
        self, node: _Node, found: Mapping[str, _Node], values: dict[str, Any], at: str
    ) -> tuple[Callable[..., Link], dict[str, Any]]:
        """How to make a link, and from what: its inertia is given, or that of its shapes."""
        given = [key for key in ("mass", "density") if key in found]
        if len(given) != 1:
            raise self.error(node, f"{at}needs mass, or density and shapes; one of the two")
        values[given[0]] = self.number(found[given[0]], at + given[0])
        massless = values.get("mass") == 0.0
        if massless or ("mass" in values and "inertia" in found):
            if "inertia" in found:
                values["inertia"] = self.inertia(found["inertia"], at + "inertia")
            values |= self.values(found, at, vectors={"com": 3})
            return Link, values
        for key in ("com", "inertia"):
            if key in found:
                raise self.error(found[key], f"{at}{key} needs mass and inertia beside it")
        if not values.get("shapes"):
            raise self.error(node, f"{at}needs inertia, or shapes to take it from")
        return Link.from_shapes, {"parent": None, **values}

    def joint(self, node: _Node, at: str) -> Joint:
        found = self.mapping(node, f"{at}a joint", JOINT_KEYS, ("name", "kind"))
        at = f"joint {self.named(found['name'], node)!r}: "
        values = self.values(
            found,
            at,
            texts=("name", "kind"),
            numbers=("armature", "damping", "stiffness"),
            vectors={"axis": 3, "pos": 3, "limits": None},
        )
        for key in ("reference", "effort"):
            if key in found:
                scalar = found[key].kind == "scalar"
                values[key] = (self.number if scalar else self.vector)(found[key], at + key)
        return self.make(Joint, values, found, node)

    def shape(self, node: _Node, at: str) -> Shape:
        found = self.mapping(node, f"{at}a shape", SHAPE_KEYS, ("kind",))
        at = f"{at}a shape"
        vectors = {"size": None, "pos": 3, "quat": 4, "color": None}
        values = self.values(found, f"{at}'s ", texts=("kind",), vectors=vectors)
        if "vertices" in found:
            corners = enumerate(self.items(found["vertices"], f"{at}'s vertices"))
            values["vertices"] = tuple(
                self.vector(corner, f"{at}'s vertices[{i}]", 3) for i, corner in corners
            )
        # a mesh has vertices instead of a size
        needed = "vertices" if values["kind"] == "mesh" else "size"
        if needed not in found:
            raise self.error(node, f"{at} needs {needed!r}, which is missing")
        return self.make(Shape, {"size": (), **values}, found, node)

    # values

    def values(
        self,
        found: Mapping[str, _Node],
        at: str,
        texts: Iterable[str] = (),
        numbers: Iterable[str] = (),
        vectors: Mapping[str, int | None] | None = None,
    ) -> dict[str, Any]:
        """Read those of the named keys that are there."""
        values: dict[str, Any] = {}
        for key in texts:
            if key in found:
                values[key] = self.text(found[key], at + key)
        for key in numbers:
            if key in found:
                values[key] = self.number(found[key], at + key)
        for key, size in (vectors or {}).items():
            if key in found:
                values[key] = self.vector(found[key], at + key, size)
        return values

    def mapping(
        self,
        node: _Node,
        what: str,
        allowed: tuple[str, ...] | None = None,
        needed: tuple[str, ...] = (),
    ) -> dict[str, _Node]:
        """The values of a mapping by key."""
        if node.kind != "mapping":
            keys = f" with {_list(needed)}" if needed else ""
            raise self.error(node, f"{what} must be a mapping{keys}, got {node}")
        found: dict[str, _Node] = {}
        for key_node, value in node.value:
            key = self.text(key_node, "a key")
            if allowed is not None and key not in allowed:
                raise self.error(key_node, f"{what}: {unknown_name('key', key, allowed)}")
            if key in found:
                raise self.error(key_node, f"{what}: key {key!r} is there twice")
            # the parser puts a value that is missing on the line after
            found[key] = replace(value, line=key_node.line) if value.is_null else value
        for key in needed:
            if key not in found:
                raise self.error(node, f"{what} needs {key!r}, which is missing")
        return found

    def items(self, node: _Node, what: str) -> list[_Node]:
        if node.kind != "list":
            raise self.error(node, f"{what} must be a list, got {node}")
        items: list[_Node] = node.value
        return items

    def text(self, node: _Node, what: str) -> str:
        if node.kind != "scalar" or node.is_null:
            raise self.error(node, f"{what} must be text, got {node}")
        return str(node.value)

    def texts(self, node: _Node, what: str) -> tuple[str, ...]:
        return tuple(self.text(item, what) for item in self.items(node, what))

    def number(self, node: _Node, what: str) -> float:
        if node.kind != "scalar" or not node.plain or not NUMBER.fullmatch(node.value):
            raise self.error(node, f"{what} must be a number, got {node}")
        return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))

    def vector(self, node: _Node, what: str, size: int | None = None) -> tuple[float, ...]:
        items = self.items(node, f"{what} (numbers)")
        if size is not None and len(items) != size:
            raise self.error(node, f"{what} must be {size} numbers, got {len(items)}")
        return tuple(self.number(item, f"{what}[{i}]") for i, item in enumerate(items))

    def inertia(self, node: _Node, what: str) -> Any:
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

    def named(self, node: _Node, whole: _Node) -> str:
        """The name of a link or joint; remember where it is."""
        name = self.text(node, "name")
        self.lines[repr(name)] = whole.line
        return name

    def make(
        self,
        kind: Callable[..., T],
        values: dict[str, Any],
        found: Mapping[str, _Node],
        node: _Node,
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

    def error(self, node: _Node, message: str) -> CharacterError:
        return CharacterError(f"{self.name}:{node.line}: {message}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
