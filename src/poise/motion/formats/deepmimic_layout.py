"""How the columns of DeepMimic's clips become the coordinates of a character, and back.

The file's axes are x forward, y up, z to the right; here (x, y, z) becomes (x, -z, y), and
quaternions follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poise.errors import ClipError, shorten, unknown_name
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix, rotate
from poise.model.character import Character, Joint

HUMANOID = (
    "chest",
    "neck",
    *(f"right_{name}" for name in ("hip", "knee", "ankle", "shoulder", "elbow")),
    *(f"left_{name}" for name in ("hip", "knee", "ankle", "shoulder", "elbow")),
)
"""Joints of DeepMimic's humanoid that move, in the order of its clips."""

FRONT = ("shoulder", "forearm", "hand", "finger")
HIND = ("upper_leg", "leg", "foot", "toe")
DOG = (
    *("spine0", "spine1", "neck", "head"),
    *(f"{side}_{name}" for names in (FRONT, HIND) for side in ("left", "right") for name in names),
    *("tail0", "tail1"),
)
"""Joints of DeepMimic's dog that move, in the order of its clips."""


@dataclass(frozen=True)
class Piece:
    """Columns of one joint: where they are in the file and in q."""

    name: str
    kind: str
    at: int  # first column in the file
    q: int  # first column in q
    sign: float = 1.0

    @property
    def size(self) -> int:
        return 4 if self.kind == "ball" else 1


@dataclass(frozen=True)
class Layout:
    """How the columns of a file become coordinates."""

    root: str | None
    pieces: tuple[Piece, ...]
    hips: Floats  # where the file's root is, in the frame of the root link [m]

    @property
    def columns(self) -> int:
        return 8 + sum(piece.size for piece in self.pieces)

    def quaternions(self) -> list[tuple[str, int]]:
        """Names and first columns of all quaternions."""
        return [(self.root or "root", 4), *((p.name, p.at) for p in self.pieces if p.size == 4)]

    def q(self, values: Floats, nq: int) -> Floats:
        """Coordinates of frames whose durations have been cut off."""
        q = np.empty((len(values), nq))
        q[:, 3:7] = turned(unit(values[:, 3:7]))
        q[:, :3] = raised(values[:, :3]) - rotate(q[:, 3:7], self.hips)
        for p in self.pieces:
            part = values[:, p.at - 1 : p.at - 1 + p.size]
            q[:, p.q : p.q + p.size] = turned(unit(part)) if p.size == 4 else p.sign * part
        return q

    def values(self, q: Floats) -> Floats:
        """The inverse of q."""
        values = np.empty((len(q), self.columns - 1))
        values[:, :3] = lowered(q[:, :3] + rotate(q[:, 3:7], self.hips))
        values[:, 3:7] = turned_back(q[:, 3:7])
        for p in self.pieces:
            part = q[:, p.q : p.q + p.size]
            turned = turned_back(part) if p.size == 4 else p.sign * part
            values[:, p.at - 1 : p.at - 1 + p.size] = turned
        return values


def layout_of(character: Character, order: Sequence[str] | None, where: str) -> Layout:
    """The layout of a character's clips."""
    if not isinstance(character, Character):
        raise ClipError(f"{where}: a clip moves a Character, got {character!r:.80}")
    joints = {joint.name: joint for joint in character.joints}
    root = character.joints[0] if character.joints else None
    if root is None or root.kind != "free":
        raise ClipError(
            f"{where}: DeepMimic's clips have a free root; {character.name!r} is fixed to the "
            "world: take character.with_base('free')"
        )
    names = _order(joints, root, order, where)
    pieces, at = [], 8
    for name in names:
        joint = joints[name]
        first = character.q_slice(name).start
        # a revolute joint turns about the file's z, which is -y here
        sign = -1.0 if joint.kind == "hinge" and joint.axis[1] > 1.0 - 1e-9 else 1.0
        pieces.append(Piece(name, joint.kind, at, first, sign))
        at += joint.nq
    return Layout(root.name, tuple(pieces), _hips(character, set(names)))


def _order(
    joints: dict[str, Joint], root: Joint, order: Sequence[str] | None, where: str
) -> tuple[str, ...]:
    known = set(joints) - {root.name}
    if order is not None:
        listed = tuple(order) if isinstance(order, (list, tuple)) else ()
        if len(listed) != len(known) or any(name not in known for name in map(str, listed)):
            wrong = next((name for name in listed if str(name) not in known), None)
            reason = unknown_name("joint", wrong, sorted(known)) if wrong else "some are missing"
            raise ClipError(f"{where}: order must name every joint but the root once: {reason}")
        if len(set(map(str, listed))) < len(listed):
            raise ClipError(f"{where}: order names a joint twice: {shorten(listed)}")
        return tuple(map(str, listed))
    for names in (HUMANOID, DOG):
        if known == set(names):
            return names
    return tuple(name for name in joints if name != root.name)


def _hips(character: Character, names: set[str]) -> Floats:
    """The middle of the hips in the frame of the root link, for humanoids that have them there."""
    root = character.links[0].name
    hips = [
        np.array(link.pos) + quat_matrix(link.quat) @ np.array(joint.pos)
        for link in character.links
        for joint in link.joints
        if joint.name in ("left_hip", "right_hip") and link.parent == root
    ]
    if names != set(HUMANOID) or len(hips) != 2:
        return np.zeros(3)
    middle: Floats = (hips[0] + hips[1]) / 2.0
    return middle


def raised(p: Floats) -> Floats:
    """Vectors with the file's y up, with z up."""
    raised: Floats = p[:, [0, 2, 1]] * [1.0, -1.0, 1.0]
    return raised


def lowered(p: Floats) -> Floats:
    """The inverse of raising."""
    lowered: Floats = p[:, [0, 2, 1]] * [1.0, 1.0, -1.0]
    return lowered


def turned(q: Floats) -> Floats:
    return np.concatenate([q[:, :1], raised(q[:, 1:])], axis=1)


def turned_back(q: Floats) -> Floats:
    return np.concatenate([q[:, :1], lowered(q[:, 1:])], axis=1)


def unit(q: Floats) -> Floats:
    unit: Floats = q / np.linalg.norm(q, axis=1, keepdims=True)
    return unit
