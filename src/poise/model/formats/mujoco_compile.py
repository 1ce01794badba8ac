"""MJCF and URDF through the `mujoco` package: elements and meshes in, MuJoCo's own model out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from poise.errors import CharacterError
from poise.io.files import read_bounded
from poise.io.xml_elements import LARGEST_FILE, MOST_ELEMENTS, Element, named_at
from poise.model.character import Vector

LARGEST_SUM = 256 * 2**20  # of all files a model names, together [bytes]
MOST_BODIES = 2000
"""Bodies in one model, with what it replicates: MuJoCo takes seconds for these, and for 5000 in
chains of 490 half a minute."""

REPEATING = ("replicate", "composite", "flexcomp")


@dataclass
class Assets:
    """Files that a model names, for MuJoCo to read from memory under names of our own."""

    files: dict[str, bytes] = field(default_factory=dict)
    names: dict[Path, str] = field(default_factory=dict)
    size: int = 0

    def add(self, element: Element, key: str, file: Path) -> None:
        """Read the file that an attribute of an element names, and put our name in its place."""
        if file not in self.names:
            data = read_bounded(file, LARGEST_FILE, CharacterError, named_at(file, element))
            self.size += len(data)
            if self.size > LARGEST_SUM:
                raise element.error(f"too large: over {LARGEST_SUM >> 20} MB of meshes")
            self.names[file] = f"file-{len(self.files)}{file.suffix.lower()}"
            self.files[self.names[file]] = data
        element.attributes[key] = self.names[file]


def check_counts(root: Element) -> None:
    """Refuse models that are too large, and few elements that stand for very many."""
    bodies = 0
    stack = [(root, 1)]
    while stack:
        element, times = stack.pop()
        for key in ("count", "nrow", "ncol"):
            for number in re.findall(r"[0-9]+", element.attributes.get(key, "")):
                times *= max(1, int(number[:12]))
        bodies += times if element.tag in ("body", "link", *REPEATING) else 0
        if bodies > MOST_BODIES or times > MOST_ELEMENTS:
            raise element.error(f"too large: over {MOST_BODIES} bodies")
        stack += [(child, times) for child in element.children[::-1]]


def import_mujoco() -> Any:
    """The mujoco package, or a word on how to get it."""
    try:
        import mujoco
    except ImportError as error:
        raise CharacterError(
            "MJCF and URDF are read through MuJoCo, which is not there: pip install poise[mujoco]"
        ) from error
    return mujoco


def compile_model(root: Element, assets: Assets) -> Any:
    """Have MuJoCo make an MjModel from elements and files; its errors come with file and line."""
    mujoco = import_mujoco()
    text, places = _to_text(root)
    # its warnings would go to a file in the working directory
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _message: None)
    try:
        return mujoco.MjModel.from_xml_string(text, assets.files)
    except MemoryError:
        raise
    except Exception as error:
        message = " ".join(str(error).split())
        found = re.search(r",? line ([0-9]+)", message)
        at = located(root, message)
        if found:
            at = places[min(max(int(found[1]), 1), len(places)) - 1]
            message = message.replace(found[0], "")
        message = re.sub(r"^(XML )?(Error: )*", "", message)
        if "mjMINVAL" in message:
            message += "; give what moves mass, or put its joints on the next link"
        raise at.error(f"MuJoCo does not take it: {message:.400}") from error
    finally:
        mujoco.set_mju_user_warning(handler)


def _to_text(root: Element) -> tuple[str, list[Element]]:
    """Elements as XML, one on each line, and the element of each line."""
    lines: list[str] = []
    places: list[Element] = []
    stack: list[tuple[Element, bool]] = [(root, True)]
    while stack:
        element, begins = stack.pop()
        places.append(element)
        if not begins:
            lines.append(f"</{element.tag}>")
            continue
        attributes = "".join(f" {key}={quoteattr(x)}" for key, x in element.attributes.items())
        lines.append(f"<{element.tag}{attributes}{'' if element.children else '/'}>")
        if element.children:
            stack.append((element, False))
            stack += [(child, True) for child in element.children[::-1]]
    return "\n".join(lines), places


def located(root: Element, message: str) -> Element:
    """The body or joint that a message names first."""
    first, found = len(message), root
    for element in root.walk():
        name = element.attributes.get("name")
        if name and element.tag in ("body", "joint", "freejoint", "link"):
            place = message.find(repr(name), 0, first)
            if place >= 0:
                first, found = place, element
    return found


def floats(x: Any) -> Vector:
    """An array's row as plain floats."""
    return tuple(float(value) for value in x)
