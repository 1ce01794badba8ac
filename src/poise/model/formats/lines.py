"""Characters as YAML that is JSON as well, a line for each joint and shape: quick to read.

The files are those of `formats.yaml`, and can be read as such, at a hundredth of the speed. These
are ours and trusted; nothing is said about where in a file something is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from poise.model.character import Character, Joint, Link, Shape
from poise.model.formats.yaml import data_of


def parse(text: str) -> Character:
    """Read a character from text that `dump` has written."""
    data = json.loads(text)
    limbs = {limb: tuple(names) for limb, names in data.get("limbs", {}).items()}
    return Character(data["name"], tuple(map(_link, data["links"])), limbs)


def _link(data: dict[str, Any]) -> Link:
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


def dump(character: Character) -> str:
    """The text of a character's file; floats come back bit for bit."""
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
