"""XML files as elements with line numbers, parsed within bounds.

No entities, no references out of the file, bounded size, depth and number of elements; NaN is
refused. Text between elements is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from poise.errors import CharacterError
from poise.io.files import decode, read_bounded

LARGEST_FILE = 64 * 2**20  # of one file [bytes]
MOST_ELEMENTS = 100_000  # in one file, and in one model with what it includes
DEEPEST = 490  # levels of nesting; MuJoCo's parser stops at 500


@dataclass
class Element:
    """An element of an XML file, and where it is."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """The element and all inside, in the order of the file."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += element.children[::-1]

    def child(self, tag: str) -> Element | None:
        """The first child with that tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def error(self, message: str) -> CharacterError:
        """An error that says where this element is."""
        return CharacterError(f"{self.file}:{self.line}: {message}")


def parse_xml(path: Path, at: Element | None = None) -> Element:
    """Parse an XML file.

    Args:
        path: The file.
        at: The element that names it, for errors.
    """
    data = read_bounded(path, LARGEST_FILE, CharacterError, named_at(path, at))
    # some programs write the zero that ends a string in C
    return parse_text(decode(data, str(path), CharacterError).rstrip("\0"), path)


def named_at(path: Path, at: Element | None) -> str:
    """What errors call a file: its path, and where it is named."""
    return f"{at.file}:{at.line}: {path}" if at else f"{path}"


def parse_text(text: str, path: Path, most: int = MOST_ELEMENTS, deepest: int = DEEPEST) -> Element:
    """Parse the text of an XML file.

    Args:
        text: The text.
        path: What errors call the file.
        most: How many elements are read.
        deepest: How many levels of nesting are read.
    """
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    target = _Target(path, most, deepest)
    parser = target.parser = DefusedXMLParser(target=target)
    try:
        parser.feed(text)
        parser.close()
    except ParseError as error:
        problem = str(error).partition(":")[0]
        raise CharacterError(f"{path}:{error.position[0]}: is not XML: {problem}") from error
    except DefusedXmlException as error:
        raise target.error("entities and references out of the file are not read") from error
    except ValueError as error:  # what no XML may hold, such as lone surrogates
        raise target.error(f"is not XML: {error}") from error
    if target.root is None:
        raise CharacterError(f"{path}:1: is empty")
    return target.root


class _Target:
    """Takes the parser's events and builds elements."""

    def __init__(self, path: Path, most: int, deepest: int) -> None:
        self.path = path
        self.most = most
        self.deepest = deepest
        self.parser: Any = None
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        namespace, _, tag = tag.rpartition("}")
        if "xacro" in namespace:
            raise self.error("xacro is not read; expand it first: `xacro robot.xacro > robot.urdf`")
        # other names with a prefix are other programs' business
        own = {key: value for key, value in attributes.items() if not key.startswith("{")}
        element = Element(tag, own, self.path, self.line)
        self.count += 1
        if self.count > self.most or len(self.open) >= self.deepest:
            raise self.error(f"too large: over {self.most} elements or {self.deepest} levels")
        for key, value in own.items():
            if key != "name" and "nan" in value.lower() and any(map(_is_nan, value.split())):
                raise self.error(f"<{tag:.40}>: {key:.40} must be numbers, got {value!r:.80}")
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, _tag: str) -> None:
        self.open.pop()

    def data(self, _text: str) -> None:
        pass

    def close(self) -> None:
        pass

    @property
    def line(self) -> int:
        return int(self.parser.parser.CurrentLineNumber)

    def error(self, message: str) -> CharacterError:
        return CharacterError(f"{self.path}:{self.line}: {message}")


def _is_nan(text: str) -> bool:
    return text.lower().lstrip("+-") == "nan"
