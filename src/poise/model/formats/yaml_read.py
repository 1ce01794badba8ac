"""A character from the nodes of a YAML file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from poise.errors import CharacterError
from poise.io.yaml_nodes import NUMBER, Node, Reader
from poise.model.character import Character, Joint, Link, Shape

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

T = TypeVar("T")


class CharacterReader(Reader):
    """Turns nodes into a character, and knows what each value must be."""

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
        values = self.values(found, at, texts=("name", "parent"), vectors={"pos": 3, "quat": 4})
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

    def joint(self, node: Node, at: str) -> Joint:
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

    def shape(self, node: Node, at: str) -> Shape:
        found = self.mapping(node, f"{at}a shape", SHAPE_KEYS, ("kind",))
        at = f"{at}a shape"
        vectors = {"size": None, "pos": 3, "quat": 4, "color": None}
        values = self.values(found, f"{at}'s ", texts=("kind",), vectors=vectors)
        if "vertices" in found:
            values["vertices"] = self.vertices(found["vertices"], f"{at}'s vertices")
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
        return tuple(tuple(map(_float, row)) for row in rows)

    # values

    def values(
        self,
        found: Mapping[str, Node],
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

    def texts(self, node: Node, what: str) -> tuple[str, ...]:
        return tuple(self.text(item, what) for item in self.items(node, what))

    def number(
        self, node: Node, what: str, least: float = -math.inf, most: float = math.inf
    ) -> float:
        """Any number; the character that it goes into says what is too large."""
        if not node.is_number:
            raise self.error(node, f"{what} must be a number, got {node}")
        return _float(node.value)

    def vector(self, node: Node, what: str, size: int | None = None) -> tuple[float, ...]:
        items = self.items(node, f"{what} (numbers)")
        if size is not None and len(items) != size:
            raise self.error(node, f"{what} must be {size} numbers, got {len(items)}")
        return tuple(self.number(item, f"{what}[{i}]") for i, item in enumerate(items))

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


def _float(word: str) -> float:
    """The value of a number as YAML writes it."""
    return float(word.lower().replace(".inf", "inf").replace(".nan", "nan"))
