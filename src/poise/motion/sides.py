"""Left and right: who is on the other side, and how a joint looks in the mirror.

The mirror is the plane y = 0 of the world: a place (x, y, z) goes to (x, -y, z), a turn about
(x, y, z) to one about (-x, y, -z). Joints are mirrored as they rest in the world, so that the
frames of the two sides need not be alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poise import dynamics
from poise.character import Character, Joint
from poise.errors import ClipError
from poise.motion import quaternions
from poise.motion.quaternions import Floats

PLACE = np.array([1.0, -1.0, 1.0])
TURN = np.array([-1.0, 1.0, -1.0])

SIDE = re.compile(r"left|right", re.I)
SWAP = {"left": "right", "right": "left"}


def opposite(name: str) -> str:
    """The name on the other side: left_foot for right_foot; a name without a side is its own."""

    def swapped(match: re.Match[str]) -> str:
        word = match.group()
        other = SWAP[word.lower()]
        return other.upper() if word.isupper() else other.title() if word[0].isupper() else other

    return SIDE.sub(swapped, name)


@dataclass(frozen=True, eq=False)
class Mirror:
    """A character in the mirror.

    Args:
        character: The character; its joints and links must come in pairs, or stand for themselves.
    """

    character: Character

    @cached_property
    def _rest(self) -> dict[str, Floats]:
        """How the links of all joints rest in the world, by joint."""
        R = dynamics.forward_kinematics(self.character, self.character.rest_q)[1]
        links = enumerate(self.character.links)
        return {joint.name: R[i] for i, link in links for joint in link.joints}

    def joint(self, name: str) -> Joint:
        """The joint on the other side."""
        joint, other = self.character.joint(name), opposite(name)
        known = {joint.name: joint for joint in self.character.joints}
        if other not in known or known[other].kind != joint.kind:
            raise ClipError(
                f"joint {name!r} of {self.character.name!r} has no mirror image: a {joint.kind} "
                f"named {other!r} is missing"
            )
        return known[other]

    def link(self, name: str) -> str:
        """Name of the link on the other side."""
        if opposite(name) not in [link.name for link in self.character.links]:
            raise ClipError(f"link {name!r} has no mirror image: {opposite(name)!r} is missing")
        return opposite(name)

    def values(self, name: str, x: Floats) -> Floats:
        """Coordinates of a ball, hinge or slide (k, 4) or (k, 1), as the other side has them."""
        joint, other = self.character.joint(name), self.joint(name)
        here, there = self._rest[name], quaternions.conjugate(self._rest[other.name])
        if joint.kind == "ball":
            turn = quaternions.rotate(here, quaternions.log(x))
            return quaternions.exp(quaternions.rotate(there, turn * TURN))
        axis = quaternions.rotate(here, np.array(joint.axis))
        seen = quaternions.rotate(there, axis * (PLACE if joint.kind == "slide" else TURN))
        along = float(seen @ np.array(other.axis))
        if abs(along) < 1.0 - 1e-6:
            raise ClipError(f"joint {name!r} has no mirror image: the axis of {other.name!r} leans")
        return np.asarray(x * np.sign(along))

    def turn(self, x: Floats) -> Floats:
        """Orientations of the root link in the world (k, 4)."""
        rest = self._rest[self.character.joints[0].name]
        moved = quaternions.log(quaternions.multiply(x, quaternions.conjugate(rest)))
        return quaternions.multiply(quaternions.exp(moved * TURN), rest)
