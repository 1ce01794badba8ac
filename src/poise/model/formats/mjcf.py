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

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

import numpy as np

from poise.errors import CharacterError
from poise.io.files import write_atomically
from poise.io.xml_elements import MOST_ELEMENTS, Element, parse_xml
from poise.math.rotation import quat_from_matrix
from poise.model.character import Character, Joint, Link, Vector
from poise.model.formats.mujoco_model import (
    CUSTOM,
    LIMB,
    Assets,
    character_from_model,
    check_counts,
    compile_model,
    fresh_name,
    read_custom,
    with_base,
)

UNREAD_SECTIONS = ("size", "visual", "statistic", "sensor", "keyframe", "custom", "contact")
UNREAD_ELEMENTS = ("texture", "layer", "skin", "light")
SMALLEST_MOMENT = 1e-14  # MuJoCo takes no moving body with less [kg m^2]
SMALLEST_RANGE = 1e-9  # MuJoCo takes no empty range

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


# ---- writing


def dump(character: Character) -> str:
    """The text of a character's MJCF file."""
    names = _mujoco_names(character)
    out = [
        f"<mujoco model={quoteattr(character.name)}>",
        '  <compiler angle="radian" autolimits="true" inertiafromgeom="false"/>',
        "  <default>",
        "    <!-- shapes touch the ground and other things, not each other -->",
        '    <geom contype="1" conaffinity="0" mass="0"/>',
        "  </default>",
        *_section("asset", _meshes(character)),
        "  <worldbody>",
        *_bodies(character, names),
        "  </worldbody>",
        *_section("actuator", [x for joint in character.joints for x in _motors(joint)]),
        *_section("custom", _custom(character, names)),
        "</mujoco>",
    ]
    return "\n".join(out) + "\n"


def _mujoco_names(character: Character) -> dict[str, str]:
    """Names of the links; MuJoCo keeps `world` for itself."""
    taken = {"world", *(link.name for link in character.links)}
    return {
        link.name: fresh_name("world-link", taken) if link.name == "world" else link.name
        for link in character.links
    }


def _bodies(character: Character, names: Mapping[str, str]) -> Iterator[str]:
    """Links come depth-first: close what is not an ancestor of the next."""
    open_: list[str] = []
    for link in character.links:
        while open_ and open_[-1] != link.parent:
            yield "  " * (len(open_) + 1) + "</body>"
            open_.pop()
        indent = "  " * (len(open_) + 2)
        yield (
            indent
            + _element("body", name=names[link.name], pos=link.pos, quat=link.quat)[:-2]
            + ">"
        )
        open_.append(link.name)
        for line in (_inertial(link), *map(_joint, link.joints), *_geoms(link)):
            yield f"{indent}  {line}"
    for depth in range(len(open_), 0, -1):
        yield "  " * (depth + 1) + "</body>"


def _inertial(link: Link) -> str:
    moments, quat = _principal(np.array(link.inertia))
    if link.mass > 0.0:
        # rods and points have moments of zero; rounding may break a + b >= c
        moments = np.maximum(moments, SMALLEST_MOMENT)
        k = int(np.argmax(moments))
        moments[k] = min(moments[k], np.delete(moments, k).sum())
    return _element("inertial", pos=link.com, quat=quat, mass=link.mass, diaginertia=moments)


def _principal(inertia: Any) -> tuple[Any, Vector | None]:
    """Principal moments, and the rotation of their axes; None if those of the link."""
    if not np.any(inertia - np.diag(np.diag(inertia))):
        return np.diag(inertia).copy(), None
    moments, R = np.linalg.eigh(inertia)
    return moments, tuple(quat_from_matrix(R * np.sign(np.linalg.det(R))).tolist())


def _joint(joint: Joint) -> str:
    values: dict[str, Any] = {"name": joint.name, "type": joint.kind}
    if joint.kind in ("ball", "hinge"):
        values["pos"] = joint.pos
    if joint.kind in ("hinge", "slide"):
        values["axis"] = joint.axis
        values["springref"] = joint.reference or None
        if joint.effort is not None:
            effort = max(float(joint.effort), SMALLEST_RANGE)  # type: ignore[arg-type]
            values["actuatorfrcrange"] = (-effort, effort)
    for key in ("armature", "damping", "stiffness"):
        values[key] = getattr(joint, key) or None
    if joint.limits is not None:
        values["range"] = _range(joint)
    return _element("joint", **values)


def _range(joint: Joint) -> Vector:
    assert joint.limits is not None
    lower, upper = joint.limits[-2:]
    if joint.kind == "ball":
        # |q| = 2 acos(cos(swing/2) cos(twist/2)) at most
        twist = max(abs(lower), abs(upper))
        w = math.cos(joint.limits[0] / 2.0) * math.cos(twist / 2.0)
        lower, upper = 0.0, 2.0 * math.acos(min(max(w, 0.0), 1.0))
    return lower, max(upper, lower + SMALLEST_RANGE)


def _geoms(link: Link) -> Iterator[str]:
    for k, shape in enumerate(link.shapes):
        values: dict[str, Any] = {"pos": shape.pos, "quat": shape.quat, "rgba": shape.color}
        if shape.kind == "mesh":
            yield _element("geom", type="mesh", mesh=f"{link.name}-{k + 1}", **values)
        elif shape.kind == "capsule" and shape.size[1] == 0.0:
            yield _element("geom", type="sphere", size=shape.size[:1], **values)
        else:
            yield _element("geom", type=shape.kind, size=shape.size, **values)


def _meshes(character: Character) -> Iterator[str]:
    for link in character.links:
        for k, shape in enumerate(link.shapes):
            if shape.kind == "mesh":
                vertices = [x for vertex in shape.vertices for x in vertex]
                yield _element("mesh", name=f"{link.name}-{k + 1}", vertex=vertices)


def _motors(joint: Joint) -> Iterator[str]:
    """A motor for each degree of freedom but the root's: ctrl is tau."""
    if joint.kind in ("hinge", "slide"):
        yield _element("motor", name=joint.name, joint=joint.name)
    if joint.kind == "ball":
        efforts = joint.effort if isinstance(joint.effort, tuple) else (joint.effort,) * 3
        for axis, gear, effort in zip("xyz", np.eye(3), efforts, strict=True):
            bound = None if effort is None else max(effort, SMALLEST_RANGE)
            yield _element(
                "motor",
                name=f"{joint.name}-{axis}",
                joint=joint.name,
                gear=gear,
                ctrlrange=None if bound is None else (-bound, bound),
            )


def _custom(character: Character, names: Mapping[str, str]) -> Iterator[str]:
    for joint in character.joints:
        if joint.kind != "ball":
            continue
        values: dict[str, Any] = {"reference": joint.reference}
        if not isinstance(joint.effort, tuple):
            values["effort"] = joint.effort
        if joint.limits is not None:
            values["limits"] = (*joint.limits, *joint.axis)
        for key, data in values.items():
            if data is not None:
                yield _element("numeric", name=f"{CUSTOM}{key}.{joint.name}", data=data)
    for limb, links in character.limbs.items():
        if links:
            data = "\n".join(names[name] for name in links)
            yield _element("text", name=LIMB + limb, data=data)


def _section(tag: str, lines: Iterable[str]) -> list[str]:
    lines = [f"    {line}" for line in lines]
    return [f"  <{tag}>", *lines, f"  </{tag}>"] if lines else []


def _element(tag: str, **values: Any) -> str:
    """An element on one line; numbers are written so that they come back bit for bit."""
    texts = {key: _text(value) for key, value in values.items() if value is not None}
    return f"<{tag}{''.join(f' {key}={quoteattr(text)}' for key, text in texts.items())}/>"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return " ".join(repr(float(x)).removesuffix(".0") for x in np.ravel(value))
