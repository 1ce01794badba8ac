"""Characters from URDF, read through MuJoCo.

URDF has no free joint: a root that nothing bolts to the world is free, unless `base` says
otherwise. A link named `world` is the world, and what hangs on it is bolted to it. Fixed joints
stay links of their own, so that no mass is lost.

    joints     revolute and continuous (hinge), prismatic (slide), spherical, as Bullet has them
               (ball), planar, floating (from the world)
    shapes     those of <collision>, capsules included, in the colour of <visual>; those of <visual>
               where no link has a collision shape. Meshes that are missing, or that MuJoCo does not
               read, are left out where the link has its <inertial>
    inertia    <inertial>; a link without has that of its collision shapes at 1000 kg/m^3

Options of MuJoCo's compiler in the file (<mujoco><compiler .../>), such as balanceinertia, count.
<mimic> is not taken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from poise.errors import LARGEST
from poise.io.xml_elements import DEEPEST, Element, parse_xml
from poise.model.character import Character, Link, Vector
from poise.model.formats.mjcf import DIRECTORIES
from poise.model.formats.mujoco_model import (
    Assets,
    character_from_model,
    check_counts,
    compile_model,
    with_base,
)

SPHERICAL = ("spherical", "ball")
MESHES = (".stl", ".obj", ".msh")
READ = ("link", "joint", "material")


def read(path: str | os.PathLike[str], base: Literal["free", "fixed"] | None = None) -> Character:
    """Read a character from a URDF file.

    Args:
        path: The file.
        base: "free" or "fixed" frees the root or welds it to the world; None frees it where nothing
            bolts it to the world.
    """
    path = Path(path)
    root = parse_xml(path)
    if root.tag != "robot":
        mjcf = "; this is MJCF: name it .xml" if root.tag == "mujoco" else ""
        raise root.error(f"URDF begins with <robot>, this file with <{root.tag:.40}>{mjcf}")
    check_counts(root)
    _check_depth(root)
    colors = _colors(root)
    efforts = _prepare_joints(root)
    assets = _prepare_links(root, path)
    compiler = _compiler(root)
    root.children = [compiler, *(x for x in root.children if x.tag in READ)]
    root.attributes.setdefault("name", path.stem)
    name = root.attributes["name"].strip() or path.stem
    character = character_from_model(compile_model(root, assets), root, name, {})
    character = _finished(character, colors, efforts)
    if base is None and not character.links[0].joints and not _bolted(root):
        base = "free"
    return with_base(character, base, root)


def _check_depth(root: Element) -> None:
    """Refuse chains of links longer than MJCF can nest: MuJoCo's time goes with their square."""
    below: dict[str, list[tuple[str, Element]]] = {}
    for joint in root.children:
        ends = [joint.child(tag) for tag in ("parent", "child")] if joint.tag == "joint" else []
        names = [end.attributes.get("link", "") for end in ends if end is not None]
        if len(names) == 2:
            below.setdefault(names[0], []).append((names[1], joint))
    hanging = {child for joints in below.values() for child, _ in joints}
    level = [name for name in below if name not in hanging]
    for depth in range(len(hanging) + 1):
        joints = [pair for name in level for pair in below.pop(name, [])]
        if joints and depth >= DEEPEST:
            raise joints[0][1].error(f"too deep: a chain of over {DEEPEST} links")
        level = [child for child, _ in joints]


def _bolted(root: Element) -> bool:
    """Whether the file has the world as a link."""
    return any(x.tag == "link" and x.attributes.get("name") == "world" for x in root.children)


def _compiler(root: Element) -> Element:
    """Options for MuJoCo: those in the file, and ours."""
    options: dict[str, str] = {}
    for extension in root.children:
        for child in extension.children if extension.tag == "mujoco" else ():
            if child.tag == "compiler":
                options |= child.attributes
    options = {key: value for key, value in options.items() if key not in DIRECTORIES}
    options |= {"fusestatic": "false", "discardvisual": "false", "strippath": "false"}
    extension = Element("mujoco", {}, root.file, root.line)
    extension.children = [Element("compiler", options, root.file, root.line)]
    return extension


def _prepare_joints(root: Element) -> dict[str, float]:
    """Bullet's spherical joints as MuJoCo takes them; returns their effort by name."""
    efforts: dict[str, float] = {}
    for joint in root.children:
        if joint.tag != "joint" or joint.attributes.get("type") not in SPHERICAL:
            continue
        joint.attributes["type"] = "spherical"
        limit = joint.child("limit")
        if limit is not None:
            # bounds of one angle mean nothing for a ball
            joint.children.remove(limit)
            effort = _number(limit, "effort")
            if 0.0 < effort <= LARGEST:
                efforts[joint.attributes.get("name", "")] = effort
    return efforts


def _prepare_links(root: Element, path: Path) -> Assets:
    """Leave out shapes that say nothing; return the meshes that MuJoCo needs."""
    links = [x for x in root.children if x.tag == "link"]
    assets = Assets()
    solid = any(x.tag == "collision" for link in links for x in link.children)
    for link in links:
        inertial = link.child("inertial")
        massive = inertial is not None and inertial.child("mass") is not None
        # MuJoCo takes a negative mass for none
        for mass in inertial.children if inertial else ():
            if mass.tag == "mass" and _number(mass, "value") < 0.0:
                raise mass.error(f"mass must not be negative, got {mass.attributes['value']:.40}")
        kept = []
        for part in link.children:
            mesh = _mesh(part)
            if part.tag == "visual" and (solid or mesh is not None):
                continue
            if mesh is not None and not _add_mesh(assets, mesh, path, massive):
                continue
            part.children = [x for x in part.children if x.tag != "material"]
            kept.append(part)
        link.children = kept
    root.children = [x for x in root.children if x.tag != "material"]
    return assets


def _mesh(part: Element) -> Element | None:
    geometry = part.child("geometry")
    return None if geometry is None else geometry.child("mesh")


def _add_mesh(assets: Assets, mesh: Element, path: Path, massive: bool) -> bool:
    """Add the file of a mesh; False if it is not there or not readable, and not needed."""
    name = mesh.attributes.get("filename", "")
    file = _find(name, path)
    if file is None or file.suffix.lower() not in MESHES:
        if massive:
            return False
        missing = f"mesh {name!r:.200} is not there"
        if file is not None:
            missing = f"mesh {name!r:.200}: MuJoCo reads {', '.join(MESHES)}"
        raise mesh.error(f"{missing}, and its link has no <inertial> to do without")
    assets.add(mesh, "filename", file)
    return True


def _find(name: str, path: Path) -> Path | None:
    """The file of a URI: package://robot/meshes/x.stl is looked for beside and above the URDF."""
    name = re.sub(r"^(package|model|file)://", "", name)
    if not name or "\0" in name:
        return None
    tails = [name, name.partition("/")[2]]
    folders = [path.parent, *list(path.absolute().parent.parents)[:4]]
    for folder in folders:
        for tail in tails:
            if tail and os.path.isfile(folder / tail):
                return folder / tail
    return None


def _colors(root: Element) -> dict[str, Vector]:
    """The colour of each link's first visual that has one."""
    known: dict[str, Vector] = {}
    for element in root.walk():
        if element.tag == "material":
            color = _rgba(element)
            if color:
                known.setdefault(element.attributes.get("name", ""), color)
    found: dict[str, Vector] = {}
    for link in root.children:
        for part in link.children if link.tag == "link" else ():
            material = part.child("material") if part.tag == "visual" else None
            if material is None:
                continue
            color = _rgba(material) or known.get(material.attributes.get("name", ""))
            if color:
                found.setdefault(link.attributes.get("name", ""), color)
    return found


def _rgba(material: Element) -> Vector | None:
    color = material.child("color")
    if color is None:
        return None
    try:
        rgba = tuple(min(max(float(x), 0.0), 1.0) for x in color.attributes["rgba"].split())
    except (KeyError, ValueError):
        rgba = ()
    if len(rgba) != 4:
        raise color.error("rgba of a <color> must be 4 numbers")
    return rgba


def _number(element: Element, key: str) -> float:
    text = element.attributes.get(key, "0")
    try:
        return float(text)
    except ValueError:
        raise element.error(f"{key} must be a number, got {text!r:.80}") from None


def _finished(
    character: Character, colors: Mapping[str, Vector], efforts: Mapping[str, float]
) -> Character:
    """The character with what MuJoCo did not take from the file."""

    def finished(link: Link) -> Link:
        joints = [
            replace(joint, effort=efforts[joint.name]) if joint.name in efforts else joint
            for joint in link.joints
        ]
        shapes = [
            replace(shape, color=shape.color or colors.get(link.name)) for shape in link.shapes
        ]
        return replace(link, joints=tuple(joints), shapes=tuple(shapes))

    return Character(character.name, tuple(map(finished, character.links)), character.limbs)
