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
they come back bit for bit; what has its default is left out. `yaml_read` reads, within bounds, and
every error says where it is.
"""

from __future__ import annotations

from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import CharacterError
from poise.io.files import read_text, write_atomically
from poise.model.character import Character, Joint, Link, Shape, Vector
from poise.model.formats.yaml_read import FORMAT, LARGEST_TEXT, VERSION, CharacterReader

SIX = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # xx yy zz xy xz yz


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
