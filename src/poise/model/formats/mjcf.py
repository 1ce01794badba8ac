"""Characters from and to MJCF, the format of MuJoCo.

Reading goes through the `mujoco` package: what it makes of defaults, frames, inertias and actuators
is what we take, so that mass matrix and bias agree with it. Before it sees a file, we parse the XML
with care (no entities, bounded size and depth), put included files in place, and hand it meshes
from memory; what says nothing about a character (textures, sensors, keyframes, ...) is left out.

    q          is MuJoCo's qpos: a joint's `ref` is folded into the pose of its link
    effort     actuatorfrcrange of the joint, and of its actuators gear times forcerange, or gear
               times ctrlrange for motors; of two bounds the larger; None if there is none
    limits     range of hinges and slides; the range of a ball, an angle, bounds swing and twist
    armature   of the joint, and gear^2 times that of its actuators; damping likewise
    shapes     geoms that can touch something, or all if none can; no planes, ellipsoids, fields

Friction in joints, tendons, equality constraints and the spring of a free joint are not taken.

Writing keeps all of a character. MJCF has no word for limbs, and for three things of a ball joint:
where its spring rests, swing and twist limits, and a bound on the length of its torque. These are
kept under `custom`, where our reader finds them; MuJoCo itself sees a spring that rests at the zero
pose, the largest angle the limits allow, and motors with that bound on each axis.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from poise.errors import CharacterError
from poise.io.files import write_atomically
from poise.io.xml_elements import LARGEST_FILE, MOST_ELEMENTS, Element, parse_xml
from poise.model.character import Character
from poise.model.formats.mjcf_write import dump
from poise.model.formats.mujoco_compile import Assets, check_counts, compile_model
from poise.model.formats.mujoco_model import character_from_model, read_custom, with_base

UNREAD_SECTIONS = ("size", "visual", "statistic", "sensor", "keyframe", "custom", "contact")
UNREAD_ELEMENTS = ("texture", "layer", "skin", "light")
DIRECTORIES = ("meshdir", "texturedir", "assetdir", "strippath", "fusestatic")


def read(path: str | os.PathLike[str], base: Literal["free", "fixed"] | None = None) -> Character:
    """Read a character from an MJCF file.

    Args:
        path: The file. What it includes, and its meshes, are looked for as MuJoCo does.
        base: "free" or "fixed" frees the root or welds it to the world; None leaves it as it is.
    """
    path = Path(path)
    root = parse_xml(path)
    if root.tag != "mujoco":
        urdf = "; this is URDF: name it .urdf" if root.tag == "robot" else ""
        raise root.error(f"MJCF begins with <mujoco>, this file with <{root.tag:.40}>{urdf}")
    expand_includes(root, path)
    custom = read_custom(root)
    model = compile_model(root, _prepare(root, path))
    name = root.attributes.get("model", "").strip() or path.stem
    character = character_from_model(model, root, name, custom)
    return with_base(character, base, root)


def write(character: Character, path: str | os.PathLike[str]) -> None:
    """Write a character to an MJCF file, whole or not at all."""
    write_atomically(path, dump(character).encode("utf-8"), CharacterError)


def expand_includes(root: Element, path: Path) -> None:
    """Put the elements of included files in the place of the include; each file once, as MuJoCo."""
    seen, count = {os.path.realpath(path)}, sum(1 for _ in root.walk())
    stack = [root]
    while stack:
        element = stack.pop()
        position = 0
        while position < len(element.children):
            child = element.children[position]
            if child.tag != "include":
                position += 1
                continue
            found = _included(child, path, seen)
            count += sum(1 for _ in found.walk())
            if count > MOST_ELEMENTS:
                raise child.error(f"too large: over {MOST_ELEMENTS} elements with what it includes")
            element.children[position : position + 1] = found.children
        stack += element.children


def _included(element: Element, path: Path, seen: set[str]) -> Element:
    name = _file_name(element)
    # relative to the model's file; some files mean their own place
    places = [path.parent / name, element.file.parent / name]
    file = next((place for place in places if os.path.exists(place)), places[0])
    real = os.path.realpath(file)
    if real in seen:
        raise element.error(f"{file}: is included twice; MJCF allows it once")
    seen.add(real)
    return parse_xml(file, element)


def _file_name(element: Element) -> str:
    name = element.attributes.get("file", "")
    if not name or "\0" in name:
        raise element.error(f"<{element.tag}> needs the name of a file")
    return name


def _prepare(root: Element, path: Path) -> Assets:
    """Leave out what says nothing about a character; return the files that MuJoCo needs."""
    compiler: dict[str, str] = {}
    for child in root.children:
        if child.tag == "compiler":
            compiler |= child.attributes
            for key in DIRECTORIES:
                child.attributes.pop(key, None)
    root.children = [child for child in root.children if child.tag not in UNREAD_SECTIONS]
    assets = Assets()
    for element in root.walk():
        element.children = [x for x in element.children if x.tag not in UNREAD_ELEMENTS]
        if element.tag == "material":
            element.attributes.pop("texture", None)
        if element.tag in ("model", "attach"):
            raise element.error(
                f"<{element.tag}>: attached models are not read; have MuJoCo write them into one "
                "file: mujoco.MjSpec.from_file(...).to_file(...)"
            )
        if "file" in element.attributes:
            file = path.parent / _directory(compiler) / _named(element, compiler)
            if element.tag == "mesh":
                # without a name it has that of its file
                element.attributes.setdefault("name", file.stem)
            assets.add(element, "file", file)
    check_counts(root)
    return assets


def _directory(compiler: Mapping[str, str]) -> str:
    return compiler.get("meshdir") or compiler.get("assetdir") or ""


def _named(element: Element, compiler: Mapping[str, str]) -> str:
    name = _file_name(element)
    strip = compiler.get("strippath") == "true"
    return re.split(r"[/\\]", name)[-1] if strip else name


__all__ = ["DIRECTORIES", "LARGEST_FILE", "dump", "read", "write"]
