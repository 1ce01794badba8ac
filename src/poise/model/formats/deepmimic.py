"""Characters from DeepMimic's JSON files (Peng et al. 2018).

A file lists joints and, in the same order, bodies:

    {"Skeleton": {"Joints": [{"ID", "Name", "Type", "Parent", "AttachX" ... "AttachThetaZ",
                              "LimLow0", "LimHigh0", ..., "TorqueLim"}, ...]},
     "BodyDefs": [{"ID", "Name", "Shape", "Mass", "AttachX" ..., "Param0", "Param1", "Param2",
                   "ColorR" ...}, ...]}

Metres; x forward, y up, z to the right. A joint's frame lies at Attach in its parent's, turned by
Rz Ry Rx of AttachTheta; a revolute joint turns about its z, a prismatic one moves along its x. The
Attach of the root means nothing. Params are diameters and full lengths: sphere (d), capsule
(d, length of the cylinder along y), cylinder (d, length along y), box (x, y, z). A limit whose low
is above its high is none.

Here x stays forward and z is up: (x, y, z) becomes (x, -z, y). Each link's frame sits in its joint,
with the axes of the world in the rest pose unless AttachTheta turns it, so a revolute joint turns
about -y. The rest pose stands on z = 0. Limits are kept for revolute and prismatic joints; those
that the files give to spherical ones (Euler angles) are not.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import CharacterError, check_known
from poise.io.files import line_of_item, parse_json, read_text
from poise.math.arrays import Floats
from poise.math.rotation import multiply, quat_matrix
from poise.model.character import Character, Joint, JointKind, Link, Shape, Vector
from poise.model.geometry import reach_below
from poise.model.validation import check_name, check_number

LARGEST_FILE = 16 * 2**20  # [bytes]
MOST_JOINTS = 4096

KINDS: dict[str, JointKind | None] = {
    "none": "free",
    "spherical": "ball",
    "revolute": "hinge",
    "prismatic": "slide",
    "fixed": None,
}
"""Joint kinds by the file's types; None is welded."""

AXES: dict[str, Vector] = {"hinge": (0.0, -1.0, 0.0), "slide": (1.0, 0.0, 0.0)}
"""Axes of revolute and prismatic joints, the file's z and x, in the frame of the link."""

LIMBS = {
    "torso": r"root|chest|pelvis|spine\d*|waist",
    "head": r"neck|head",
    "tail": r"tail\d*",
    "arm": r"shoulder|upper_arm|elbow|forearm|wrist|hand|finger",
    "leg": r"hip|upper_leg|thigh|knee|leg|shin|ankle|foot|toe",
}
"""Which limb a link belongs to, by its name; arms and legs have a side before it."""


def load(path: Path) -> Character:
    """Read a character."""
    return parse(read_text(path, LARGEST_FILE, CharacterError), str(path))


def parse(text: str, name: str = "<text>") -> Character:
    """Read a character from text.

    Args:
        text: The text of a file.
        name: What errors call the file; its stem names the character.
    """
    return _Reader(text, name).character()


def joint_order(path: Path) -> tuple[str, ...]:
    """Names of the joints that move, but the root, in the order in which clips list them."""
    reader = _Reader(read_text(path, LARGEST_FILE, CharacterError), str(path))
    joints = [joint for joint, _ in reader.sections()][1:]
    return tuple(joint["Name"] for joint in joints if joint["Type"] != "fixed")


class _Reader:
    """Turns a file into a character, and keeps their lines for errors."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.at = ("Joints", 0)

    def character(self) -> Character:
        """The character of the whole file."""
        links: list[Link] = []
        for i, (joint, body) in enumerate(self.sections()):
            self.at = ("Joints", i)
            try:
                links.append(self.link(i, joint, body, links))
            except CharacterError as error:
                raise self.error(str(error)) from error
        self.at = ("Joints", 0)
        try:
            stem = Path(self.name).stem.strip() or "character"
            links[0] = _standing(links)
            return Character(stem, tuple(links), _limbs(links))
        except CharacterError as error:
            named = [i for i, link in enumerate(links) if repr(link.name) in str(error)]
            self.at = ("Joints", named[0] if named else 0)
            raise self.error(str(error)) from error

    def sections(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Joints and their bodies, with names, types and parents checked."""
        data = parse_json(self.text, self.name, CharacterError)
        joints = self.items(self.items(data, "Skeleton", dict), "Joints", list)
        bodies = self.items(data, "BodyDefs", list)
        if not 1 <= len(joints) <= MOST_JOINTS:
            raise self.error(f"needs 1 to {MOST_JOINTS} joints, got {len(joints)}")
        if len(bodies) != len(joints):
            raise self.error(
                f"needs one of BodyDefs for each joint: {len(joints)} joints, {len(bodies)} bodies"
            )
        names: set[str] = set()
        for section, values in (("Joints", joints), ("BodyDefs", bodies)):
            for i, value in enumerate(values):
                self.at = (section, i)
                if not isinstance(value, dict):
                    raise self.error(f"{section}[{i}] must be an object, got {value!r:.80}")
                if value.get("ID", i) != i:
                    raise self.error(f"{section}[{i}]: ID must be {i}, got {value['ID']!r:.80}")
                if section == "Joints":
                    self.check_joint(i, value, names)
                    names.add(value["Name"])
        return list(zip(joints, bodies, strict=True))

    def check_joint(self, i: int, joint: dict[str, Any], names: set[str]) -> None:
        try:
            name = check_name(f"Joints[{i}]: Name", joint.get("Name"))
            at = f"joint {name!r}: "
            check_known("Type", joint.get("Type"), list(KINDS), at=at, error=CharacterError)
        except CharacterError as error:
            raise self.error(str(error)) from error
        if name in names:
            raise self.error(f"two joints are named {name!r}; names must differ")
        parent = joint.get("Parent")
        root = i == 0
        if not isinstance(parent, int) or isinstance(parent, bool) or not -1 <= parent < i:
            raise self.error(
                f"joint {name!r}: Parent must be the ID of a joint before it, got {parent!r:.80}"
            )
        if root != (parent == -1):
            raise self.error(f"joint {name!r}: only the first joint is a root, with Parent -1")
        if root != (joint["Type"] == "none") and not (root and joint["Type"] == "fixed"):
            raise self.error(
                f"joint {name!r}: Type of the root must be 'none' or 'fixed', and no other's 'none'"
            )

    def link(self, i: int, joint: dict[str, Any], body: dict[str, Any], links: list[Link]) -> Link:
        name: str = joint["Name"]
        pos, quat = _attach(f"joint {name!r}: ", joint)
        place: dict[str, Any] = {
            "pos": (0.0, 0.0, 0.0) if i == 0 else pos,
            "quat": quat,
            "joints": _joint(name, joint),
        }
        parent = None if i == 0 else links[joint["Parent"]].name
        self.at = ("BodyDefs", i)
        at = f"body of {name!r}: "
        mass = check_number(at + "Mass", body.get("Mass", 0.0), least=0.0)
        if body.get("Shape", "null") == "null":
            if mass:
                raise CharacterError(f"{at}Mass without a Shape")
            return Link(name, parent, **place)
        return Link.from_shapes(name, parent, [_shape(at, body)], mass=mass, **place)

    def items(self, data: Any, key: str, kind: type) -> Any:
        """The value of a key that must be there."""
        value = data.get(key) if isinstance(data, dict) else None
        if not isinstance(value, kind):
            noun = "an object" if kind is dict else "a list"
            raise self.error(f"is no DeepMimic character: needs {key!r}, {noun}")
        return value

    def error(self, message: str) -> CharacterError:
        section, i = self.at
        return CharacterError(f"{self.name}:{line_of_item(self.text, section, i, '{')}: {message}")


def _joint(name: str, joint: dict[str, Any]) -> tuple[Joint, ...]:
    kind, at = KINDS[joint["Type"]], f"joint {name!r}: "
    if kind is None:
        return ()
    values: dict[str, Any] = {}
    if kind in AXES:
        values["axis"] = AXES[kind]
        low = check_number(at + "LimLow0", joint.get("LimLow0", 1.0))
        high = check_number(at + "LimHigh0", joint.get("LimHigh0", 0.0))
        if low <= high:
            values["limits"] = (low, high)
    effort = "ForceLim" if kind == "slide" else "TorqueLim"
    if kind != "free" and effort in joint:
        values["effort"] = check_number(at + effort, joint[effort], least=0.0)
    return (Joint(name, kind, **values),)


def _shape(at: str, body: dict[str, Any]) -> Shape:
    kind = body["Shape"]
    counts = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3}
    check_known("Shape", kind, list(counts), at=at, error=CharacterError)
    sizes = [check_number(f"{at}Param{i}", body.get(f"Param{i}")) for i in range(counts[kind])]
    pos, quat = _attach(at, body)
    half = [x / 2.0 for x in sizes]
    size = (half[0], half[2], half[1]) if kind == "box" else tuple(half)
    # the file's y is z here, so that capsules lie along their z already
    return Shape(kind, size, pos, quat, _color(at, body))


def _color(at: str, body: dict[str, Any]) -> Vector | None:
    keys = [f"Color{c}" for c in "RGBA"]
    if not all(key in body for key in keys[:3]):
        return None
    rgba = [check_number(at + key, body.get(key, 1.0)) for key in keys]
    return tuple(min(max(x, 0.0), 1.0) for x in rgba)


def _attach(at: str, values: dict[str, Any]) -> tuple[Vector, Vector]:
    """Position and orientation of a joint or body in its parent's frame, z up."""
    x, y, z = (check_number(f"{at}Attach{a}", values.get(f"Attach{a}", 0.0)) for a in "XYZ")
    rx, ry, rz = (
        check_number(f"{at}AttachTheta{a}", values.get(f"AttachTheta{a}", 0.0)) for a in "XYZ"
    )
    # turns about the file's x, y, z are turns about x, z, -y here; with the file's order Rz Ry Rx
    about_x = (math.cos(rx / 2), math.sin(rx / 2), 0.0, 0.0)
    about_y = (math.cos(ry / 2), 0.0, 0.0, math.sin(ry / 2))
    about_z = (math.cos(rz / 2), 0.0, -math.sin(rz / 2), 0.0)
    quat = multiply(about_z, multiply(about_y, about_x))
    return (x, -z, y), tuple(quat.tolist())


def _standing(links: list[Link]) -> Link:
    """The root, lifted so that the rest pose stands on z = 0."""
    lowest = math.inf
    poses: dict[str, tuple[Floats, Floats]] = {}
    for link in links:
        R_WP, p_WP = poses[link.parent] if link.parent is not None else (np.eye(3), np.zeros(3))
        R, p = R_WP @ quat_matrix(link.quat), p_WP + R_WP @ np.array(link.pos)
        poses[link.name] = R, p
        for shape in link.shapes:
            lowest = min(lowest, (p + R @ np.array(shape.pos))[2] - reach_below(shape, R))
    root = links[0]
    if not math.isfinite(lowest):
        return root
    return replace(root, pos=(*root.pos[:2], root.pos[2] - float(lowest)))


def _limbs(links: list[Link]) -> dict[str, tuple[str, ...]]:
    limbs: dict[str, list[str]] = {}
    for link in links:
        match = re.fullmatch(r"(left|right)_(.+)", link.name)
        side, name = (match[1], match[2]) if match else ("", link.name)
        for limb, pattern in LIMBS.items():
            if bool(side) == (limb in ("arm", "leg")) and re.fullmatch(pattern, name):
                limbs.setdefault(f"{side}_{limb}" if side else limb, []).append(link.name)
    return {limb: tuple(names) for limb, names in limbs.items()}
