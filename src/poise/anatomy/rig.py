"""The rig of a motion file: its joints as the file has them, and the way to a character's q.

A file has joints with names, offsets and channels, in its own unit and axes. A clip is in metres,
z up, on the links of a character. The two meet by name: a joint of the rig moves with the link of
the same name; a joint without one is rigid and moves with its parent. All link frames are aligned
with the world's axes in the rest pose (q = 0, all rotations of the file zero).

Files with y up look along +z, with +x to the left: (x, y, z) of the file is (z, x, y) of the world,
which looks along +x with +y to the left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.anatomy.names import is_animal, is_person
from poise.anatomy.rest_pose import rest_pose
from poise.errors import ClipError, shorten
from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply, quat_matrix, rotate
from poise.model.character import Character, Joint, Link

Vector = tuple[float, ...]

AXES = {"X": 0, "Y": 1, "Z": 2}
"""Number of each axis in the names of channels."""

IDENTITY: Vector = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class RigJoint:
    """A joint as a file has it.

    Args:
        name: Name, unique in the rig.
        parent: Index of the parent joint, before this one; -1 for the root.
        offset: From the parent's origin in the rest pose, in file units and file axes.
        channels: What the file stores per frame, in order: "Xposition", "Zrotation", ...
        end: End of the last bone, from this joint's origin, in file units and axes; or None.
        quat: Orientation of the joint's own axes in the rest pose, in file axes; w x y z.
    """

    name: str
    parent: int
    offset: Vector = (0.0, 0.0, 0.0)
    channels: tuple[str, ...] = ()
    end: Vector | None = None
    quat: Vector = IDENTITY

    @property
    def turns(self) -> tuple[int, ...]:
        """Axes of its rotation channels, in order: 0, 1, 2 for x, y, z."""
        return tuple(AXES[c[0]] for c in self.channels if c.endswith("rotation"))

    @property
    def moves(self) -> tuple[int, ...]:
        """Axes of its position channels, in order."""
        return tuple(AXES[c[0]] for c in self.channels if c.endswith("position"))


@dataclass(frozen=True)
class Rig:
    """The skeleton of a motion file, with all that is needed to write the same one back.

    Args:
        joints: Joints, parents before children, in the order of the file.
        kind: "bvh", "amc", "glb", "deepmimic" or "amass".
        unit: Metres per file unit.
        up: Which axis of the file points up, "y" or "z".
        fps: Frames per second.
        name: Name of the skeleton.
    """

    joints: tuple[RigJoint, ...]
    kind: str = "bvh"
    unit: float = 1.0
    up: Literal["y", "z"] = "y"
    fps: float = 30.0
    name: str = ""

    @cached_property
    def to_world(self) -> Floats:
        """Rotation from the file's axes to the world's, shape (3, 3)."""
        if self.up == "z":
            return np.eye(3)
        return np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def offsets(self) -> Floats:
        """Offsets from the parents in the world's axes [m], shape (joints, 3)."""
        return self.vectors([joint.offset for joint in self.joints])

    @cached_property
    def rest(self) -> Floats:
        """Joint origins in the rest pose, from the root, in world axes [m], shape (joints, 3)."""
        rest = np.zeros((len(self.joints), 3))
        for i, joint in enumerate(self.joints):
            if joint.parent >= 0:
                rest[i] = rest[joint.parent] + self.offsets[i]
        return rest

    def vectors(self, values: ArrayLike) -> Floats:
        """Vectors of the file (..., 3) as world vectors [m]."""
        world: Floats = np.asarray(values, dtype=np.float64) @ self.to_world.T * self.unit
        return world

    def axis(self, joint: int, axis: int) -> Floats:
        """A joint's own x, y or z axis (0, 1, 2) in the rest pose, in world axes, shape (3,)."""
        own: Floats = self.to_world @ quat_matrix(self.joints[joint].quat)[:, axis]
        return own


def guess_up(joints: tuple[RigJoint, ...]) -> Literal["y", "z"]:
    """Which axis points up: the one against which the feet lie from the root; y if unknown."""
    rest = Rig(joints, unit=1.0, up="z").rest
    words = ("foot", "toe", "ankle", "paw")
    feet = [p for p, j in zip(rest, joints, strict=True) if any(w in j.name.lower() for w in words)]
    if not feet:
        return "y"
    _, y, z = np.mean(feet, axis=0)
    return "z" if z < 0.0 and z < y else "y"


UNITS = (1.0, 0.01, 0.0254, 0.0254 / 0.45, 0.001, 0.3048)
"""Metres per unit that files use: metre, centimetre, inch, CMU's 1/0.45 inch, millimetre, foot."""

METRIC = (1.0, 0.01, 0.001)
"""Those of animals: 60 units are a dog in centimetres, not in inches."""

USUAL_HEIGHT = 1.6
"""Height of a skeleton from toes to head [m]."""

OTHER_HEIGHTS = (0.4, 3.0)
"""Heights [m] at which a skeleton that is no person's by its names is taken to be in centimetres,
as most files are."""


def guess_unit(joints: tuple[RigJoint, ...], up: Literal["y", "z"]) -> float:
    """Metres per file unit: of the usual units the one that brings the skeleton nearest to 1.6 m.

    Its height is the extent of the rest pose along the up axis; of a skeleton that lies flat (less
    than 0.3 of its largest extent), the largest extent. A humanoid comes out between 0.5 and 3 m.
    What is no person by its names is in centimetres if that gives 0.4 to 3 m, and an animal is
    never measured in inches or feet.
    """
    names = [joint.name for joint in joints]
    rig = Rig(joints, unit=1.0, up=up)
    ends = [rig.rest[i] + rig.vectors(j.end) for i, j in enumerate(joints) if j.end is not None]
    points = np.vstack([rig.rest, *ends])
    extent = np.ptp(points, axis=0)
    height = float(extent[2] if extent[2] > 0.3 * extent.max() else extent.max())
    if height <= 0.0:
        return 1.0
    least, most = OTHER_HEIGHTS
    if least <= 0.01 * height <= most and not is_person(names):
        return 0.01
    units = METRIC if is_animal(names) else UNITS
    return min(units, key=lambda unit: abs(np.log(unit * height / USUAL_HEIGHT)))


# between a rig and a character


def forward_kinematics(rig: Rig, rotations: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Poses of all joints in the world.

    Args:
        rig: The rig.
        rotations: Of each joint in its parent, from the rest pose, in world axes, (joints, k, 4).
        offsets: Of each joint from its parent's origin [m], (joints, k, 3) or (joints, 1, 3).

    Returns:
        Positions (joints, k, 3) [m], and rotations (joints, k, 4) from the rest pose.
    """
    positions = np.empty((*rotations.shape[:-1], 3))
    turned = np.empty_like(rotations)
    for i, joint in enumerate(rig.joints):
        p = joint.parent
        if p < 0:
            positions[i], turned[i] = offsets[i], rotations[i]
            continue
        positions[i] = positions[p] + rotate(turned[p], offsets[i])
        turned[i] = multiply(turned[p], rotations[i])
    return positions, turned


def frames_on(character: Character, rig: Rig, positions: Floats, rotations: Floats) -> Floats:
    """The coordinates q (k, nq) of a character that moves as a rig does.

    Args:
        character: Its links are named as the joints of the rig that move them.
        rig: The rig.
        positions: Of the joints in the world [m], (joints, k, 3).
        rotations: Of the joints from the rest pose, world axes, (joints, k, 4).
    """
    where = {name: i for i, name in enumerate(rig.names)}
    missing = [link.name for link in character.links if link.joints and link.name not in where]
    if missing:
        raise ClipError(
            f"character {character.name!r} has links that the file does not move: "
            f"{shorten(missing, 8)}; joints of the file: {shorten(rig.names, 40)}"
        )
    k = rotations.shape[1]
    q = np.zeros((k, character.nq))
    # rotations of the link frames at q = 0, and of the frames now
    rest: dict[str | None, Floats] = {None: np.array(IDENTITY)}
    now: dict[str | None, tuple[Floats, Floats]] = {None: (np.zeros(3), np.array(IDENTITY))}
    for link in character.links:
        rest[link.name] = multiply(rest[link.parent], link.quat)
        p_WP, R_WP = now[link.parent]
        if link.name in where:
            i = where[link.name]
            p_WL, R_WL = positions[i], multiply(rotations[i], rest[link.name])
        else:
            p_WL, R_WL = p_WP + rotate(R_WP, link.pos), multiply(R_WP, link.quat)
        now[link.name] = (p_WL, R_WL)
        if not link.joints:
            continue
        if link.joints[0].kind == "free":
            q[:, character.q_slice(link.joints[0])] = np.concatenate([p_WL, R_WL], axis=1)
            continue
        back = conjugate(multiply(R_WP, link.quat))
        move = rotate(back, p_WL - p_WP - rotate(R_WP, link.pos))
        _solve_joints(character, link, move, multiply(back, R_WL), q)
    return q


def _solve_joints(character: Character, link: Link, move: Floats, R: Floats, q: Floats) -> None:
    """Coordinates of a link's joints from its displacement and rotation in its place at q = 0."""
    slides = [joint for joint in link.joints if joint.kind == "slide"]
    others = [joint for joint in link.joints if joint.kind != "slide"]
    for joint in slides:
        q[:, character.q_slice(joint)] = (move @ np.array(joint.axis))[:, None]
    kinds = [joint.kind for joint in others]
    if kinds == ["ball"]:
        q[:, character.q_slice(others[0])] = R
    elif kinds in (["hinge"], ["hinge", "hinge"]):
        for joint, angle in zip(others, _hinge_angles(others, R), strict=True):
            q[:, character.q_slice(joint)] = np.unwrap(angle)[:, None]
    elif kinds:
        raise ClipError(
            f"link {link.name!r} turns by joints of kind {', '.join(kinds)}; a file's joint can "
            "drive one ball, one hinge, or two hinges"
        )


def _hinge_angles(joints: list[Joint], R: Floats) -> list[Floats]:
    """Angles of one hinge, or of two: R = R_a(alpha) R_b(beta), a and b at a right angle."""
    a = np.array(joints[0].axis)
    if len(joints) == 1:
        return [2.0 * np.arctan2(R[:, 1:] @ a, R[:, 0])]
    b = np.array(joints[1].axis)
    # R_b leaves b where it is; the inverse of R_a leaves a where it is
    Rb, Ra = rotate(R, b), rotate(conjugate(R), a)
    n = np.cross(a, b)
    return [np.arctan2(Rb @ n, Rb @ b), np.arctan2(Ra @ n, Ra @ a)]


def poses_of(character: Character, rig: Rig, q: ArrayLike) -> tuple[Floats, Floats]:
    """Where the joints of a rig are when a character moves.

    Args:
        character: Its links are named as the joints that move with them; other joints are rigid.
        rig: The rig.
        q: Frames of the character, (k, nq).

    Returns:
        Positions (joints, k, 3) [m], and rotations (joints, k, 4) from the rest pose, world axes.
    """
    q = np.atleast_2d(np.asarray(q, dtype=np.float64))
    p, R = dynamics.forward_kinematics(character, q)
    rest = rest_pose(character)
    known = {name for name in rig.names if name in rest.index}
    if not known:
        raise ClipError(
            f"no link of character {character.name!r} is named as a joint of the rig: "
            f"{shorten(rig.names, 12)}"
        )
    positions = np.empty((len(rig.joints), len(q), 3))
    rotations = np.empty((len(rig.joints), len(q), 4))
    for i, joint in enumerate(rig.joints):
        if joint.name in known:
            at = rest.index[joint.name]
            positions[i] = p[:, at]
            rotations[i] = multiply(R[:, at], conjugate(rest.R[at]))
    _place_rigid(rig, known, positions, rotations)
    return positions, rotations


def _place_rigid(rig: Rig, known: set[str], positions: Floats, rotations: Floats) -> None:
    """Place the joints that have no link of their own."""
    # above the first link: upright; where the next joint has position channels, at rest, else
    # moved so that the next joint is where it should be
    first = next(i for i, name in enumerate(rig.names) if name in known)
    above, at = [], first
    while rig.joints[at].parent >= 0:
        below, at = at, rig.joints[at].parent
        above.append(at)
        rotations[at] = IDENTITY
        positions[at] = positions[below] - rig.offsets[below]
        if rig.joints[below].moves:
            positions[at] = rig.rest[at] + rig.offsets[0]
    # below: with the parent
    for i, joint in enumerate(rig.joints):
        if joint.name not in known and i not in above:
            turned = rotations[joint.parent]
            positions[i] = positions[joint.parent] + rotate(turned, rig.offsets[i])
            rotations[i] = turned
