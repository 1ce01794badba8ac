"""YAML 1.2 read safely: values with line numbers, within bounds of number and depth.

The parser's events are taken one by one and counted, so that no text costs unbounded time or
memory; aliases count as often as they are used, tags are refused. A `Reader` returns values of one
kind, and says which line holds something else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from poise.errors import PoiseError, unknown_name

MOST_VALUES = 1_000_000
"""In one text, aliases counted as often as they are used."""

DEEPEST = 32
"""Levels of nesting."""

NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|nan)", re.I)
NULL = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True)
class Node:
    """A value in a text: a scalar's text, a list of nodes, or a list of (key, value) nodes.

    Attributes:
        kind: "scalar", "list" or "mapping".
        value: What it holds.
        line: Where it starts, from 1.
        size: Number of scalars and collections inside, aliases followed.
        plain: Whether it is a scalar without quotes.
    """

    kind: str
    value: Any
    line: int
    size: int
    plain: bool = False

    @property
    def is_null(self) -> bool:
        """Whether it is empty, or says null."""
        return self.kind == "scalar" and self.plain and self.value in NULL

    @property
    def is_number(self) -> bool:
        """Whether it is a number, infinities and NaN included."""
        return self.kind == "scalar" and self.plain and bool(NUMBER.fullmatch(self.value))

    def __str__(self) -> str:
        if self.kind == "scalar":
            return f"{self.value[:60]!r}"
        return f"a {self.kind}"


def parse_number(word: str) -> float:
    """The value of a number as YAML writes it."""
    return float(word.lower().replace(".inf", "inf").replace(".nan", "nan"))


class Reader:
    """Reads values from nodes.

    Args:
        name: What errors call the file.
        error: What to raise.
        most: Largest number of values.
    """

    def __init__(self, name: str, error: type[PoiseError], most: int = MOST_VALUES) -> None:
        self.name, self.kind, self.most = name, error, most
        self.anchors: dict[str, Node] = {}

    def error(self, node: Node | int, message: str) -> PoiseError:
        """An error at a node or line."""
        line = node if isinstance(node, int) else node.line
        return self.kind(f"{self.name}:{line}: {message}")

    # text to nodes

    def tree(self, text: str) -> Node:
        """The one document in a text."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        try:
            documents = self._documents(YAML(typ="safe", pure=True).parse(text))
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise self.error(mark.line + 1 if mark else 1, f"is not YAML: {problem}") from error
        if not documents or documents[0].is_null:
            raise self.error(1, "is empty")
        if len(documents) > 1:
            raise self.error(documents[1], "a second document; a file holds one")
        return documents[0]

    def _documents(self, events: Iterable[Any]) -> list[Node]:
        found: list[Node] = []
        open_: list[tuple[Any, list[Node]]] = []
        for count, event in enumerate(events):
            line, kind = event.start_mark.line + 1, type(event).__name__
            if count > self.most or len(open_) > DEEPEST:
                raise self.error(line, f"too large: over {self.most} values or {DEEPEST} levels")
            if getattr(event, "tag", None) is not None:
                raise self.error(line, f"tags such as {event.tag[:40]} are not read")
            if kind in ("SequenceStartEvent", "MappingStartEvent"):
                open_.append((event, []))
                continue
            if kind == "AliasEvent":
                if event.anchor not in self.anchors:
                    raise self.error(line, f"alias *{event.anchor[:40]} stands for nothing")
                node = self.anchors[event.anchor]
            elif kind == "ScalarEvent":
                node = Node("scalar", event.value, line, 1, plain=event.style is None)
                self.anchors[event.anchor] = node
            elif kind in ("SequenceEndEvent", "MappingEndEvent"):
                start, items = open_.pop()
                node = self._collection(start, items)
                self.anchors[start.anchor] = node
            else:
                continue
            (open_[-1][1] if open_ else found).append(node)
        return found

    def _collection(self, start: Any, items: list[Node]) -> Node:
        line, size = start.start_mark.line + 1, 1 + sum(item.size for item in items)
        if size > self.most:
            raise self.error(line, f"too large: its aliases stand for over {self.most} values")
        if type(start).__name__ == "SequenceStartEvent":
            return Node("list", items, line, size)
        return Node("mapping", list(zip(items[::2], items[1::2], strict=True)), line, size)

    # nodes to values

    def mapping(
        self,
        node: Node,
        what: str,
        allowed: Iterable[str] | None = None,
        needed: Iterable[str] = (),
        noun: str = "key",
    ) -> dict[str, Node]:
        """The values of a mapping by key.

        Args:
            node: The mapping.
            what: What errors call it.
            allowed: Keys there may be; None: any.
            needed: Keys there must be.
            noun: What a key names.
        """
        if node.kind != "mapping":
            raise self.error(node, f"{what} must be a mapping, got {node}")
        found: dict[str, Node] = {}
        for key_node, value in node.value:
            key = self.text(key_node, f"{what}: a {noun}")
            if allowed is not None and key not in (known := list(allowed)):
                raise self.error(key_node, f"{what}: {unknown_name(noun, key[:60], known)}")
            if key in found:
                raise self.error(key_node, f"{what}: {noun} {key[:60]!r} is there twice")
            # the parser puts a value that is missing on the line after
            found[key] = replace(value, line=key_node.line) if value.is_null else value
        for key in needed:
            if key not in found:
                raise self.error(node, f"{what} needs {key!r}, which is missing")
        return found

    def items(self, node: Node, what: str) -> list[Node]:
        """The items of a list."""
        if node.kind != "list":
            raise self.error(node, f"{what} must be a list, got {node}")
        items: list[Node] = node.value
        return items

    def text(self, node: Node, what: str) -> str:
        """A text that is not empty."""
        if node.kind != "scalar" or node.is_null:
            raise self.error(node, f"{what} must be text, got {node}")
        return str(node.value)

    def number(self, node: Node, what: str, least: float = -1e6, most: float = 1e6) -> float:
        """A finite number within bounds."""
        if not node.is_number:
            raise self.error(node, f"{what} must be a number, got {node}")
        value = parse_number(node.value)
        if not math.isfinite(value) or not least <= value <= most:
            raise self.error(node, f"{what} must be {least:g} to {most:g}, got {node}")
        return value + 0.0

    def vector(self, node: Node, what: str, size: int) -> tuple[float, ...]:
        """That many finite numbers."""
        items = self.items(node, f"{what} ({size} numbers)")
        if len(items) != size:
            raise self.error(node, f"{what} must be {size} numbers, got {len(items)}")
        return tuple(self.number(item, f"{what}[{i}]") for i, item in enumerate(items))
