"""Left and right exchanged.

The mirror M is the vertical plane through the world's origin across which the links of a character
lie in pairs: y = 0 for one that looks along x. A link is paired with the one of the same name on
the other side; others are their own image. With R0 the rotation of a link in the rest pose, a
rotation r of its ball joint is D = R0 r R0^-1 in the world's axes, its image M D M, and the joint
of the other side takes R0'^-1 M D M R0'. A hinge about a, the other about a' = s M a, takes -s
times the angle; a slide s times the distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint
from poise.anatomy.names import opposite_of
from poise.anatomy.rest_pose import RestPose, rest_pose, size_of
from poise.errors import ClipError, shorten
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character, Joint
from poise.motion.clip import Clip

LEAN = 0.95
"""The image of an axis may lean by this cosine against the axis on the other side: skeletons of
real people are not quite symmetric."""

OFF = 0.1
"""A link that is its own image may rest this far from the mirror, in parts of the size."""


def mirror(clip: Clip) -> Clip:
    """The motion in the mirror: left and right exchanged.

    Places go to the other side of the mirror plane, y = 0 for a character that looks along x.
    """
    mirror = Mirror.of(clip.character)
    contacts = clip.contacts
    return clip.with_frames(
        mirror.poses(clip.frames), contacts=None if contacts is None else mirror.contacts(contacts)
    )


@dataclass(frozen=True, eq=False)
class Mirror:
    """A character in the mirror.

    Args:
        character: The character.
        normal: Of the mirror plane, level, shape (3,).
        pairs: Name of each link's image.
    """

    character: Character
    normal: Floats
    pairs: dict[str, str]

    @staticmethod
    @lru_cache(maxsize=16)
    def of(character: Character) -> Mirror:
        """The mirror of a character; ClipError lists what has no image."""
        names = [link.name for link in character.links]
        pairs = {name: opposite_of(name, names) for name in names}
        alone = sorted(name for name, image in pairs.items() if image is None)
        if alone:
            raise ClipError(
                f"character {character.name!r} has links without one on the other side: "
                f"{shorten(alone, 12)}; links: {shorten(names, 40)}"
            )
        mirror = Mirror(character, _normal(character, pairs), {k: str(v) for k, v in pairs.items()})
        mirror._check()
        return mirror

    def poses(self, q: ArrayLike) -> Floats:
        """Poses (..., nq) in the mirror."""
        q = np.asarray(q, dtype=np.float64)
        out = np.empty_like(q)
        for joint in self.character.joints:
            x = q[..., self.character.q_slice(joint)]
            to = self.character.q_slice(self.joint(joint.name))
            if joint.kind == "free":
                out[..., to.start : to.start + 3] = self.places(x[..., :3])
                out[..., to.start + 3 : to.stop] = self.turn(x[..., 3:])
            else:
                out[..., to] = self.values(joint.name, x)
        return out

    def joint(self, name: str) -> Joint:
        """The joint on the other side."""
        link, i = self._places[self.character.joint(name).name]
        return self.character.link(self.pairs[link]).joints[i]

    def turn(self, x: ArrayLike) -> Floats:
        """Orientations of the root link in the world (..., 4), in the mirror."""
        root = self.character.links[0].name
        here, there = (self._rest.orientation(name) for name in (root, self.pairs[root]))
        turn = rotation.multiply(x, rotation.conjugate(here))
        return rotation.multiply(self._turns(turn), there)

    def values(self, name: str, x: ArrayLike) -> Floats:
        """Coordinates of a ball (..., 4), hinge or slide (..., 1), as the other side has them."""
        joint, other = self.character.joint(name), self.joint(name)
        link = self._places[name][0]
        here, there = (self._rest.orientation(name) for name in (link, self.pairs[link]))
        if joint.kind == "ball":
            turn = rotation.multiply(here, x)
            turn = self._turns(rotation.multiply(turn, rotation.conjugate(here)))
            turn = rotation.multiply(rotation.conjugate(there), turn)
            return rotation.multiply(turn, there)
        sign = np.sign(self._axis_cosine(link, joint, other))
        same: Floats = np.asarray(x, dtype=np.float64) * (sign if joint.kind == "slide" else -sign)
        return same

    @cached_property
    def _places(self) -> dict[str, tuple[str, int]]:
        """Of each joint the link that it moves, and which of its joints it is."""
        return {
            joint.name: (link.name, i)
            for link in self.character.links
            for i, joint in enumerate(link.joints)
        }

    def places(self, p: ArrayLike) -> Floats:
        """Places or directions (..., 3) in the mirror."""
        p = np.asarray(p, dtype=np.float64)
        image: Floats = p - 2.0 * (p @ self.normal)[..., None] * self.normal
        return image

    def contacts(self, contacts: ContactSchedule) -> ContactSchedule:
        """Contacts in the mirror; where the soles are alike, on the same points."""
        points = tuple(self._point(point) for point in contacts.points)
        same = [
            next((i for i, own in enumerate(contacts.points) if _is_same_point(own, point)), -1)
            for point in points
        ]
        if sorted(same) != list(range(len(points))):
            return replace(contacts, points=points)
        on = np.empty_like(contacts.on)
        on[:, same] = contacts.on
        return replace(contacts, on=on)

    def _point(self, point: ContactPoint) -> ContactPoint:
        link = self.pairs[point.link]
        seen = self.places(rotation.rotate(self._rest.orientation(point.link), point.pos))
        pos = rotation.rotate(rotation.conjugate(self._rest.orientation(link)), seen)
        return ContactPoint(self.pairs[point.foot], link, tuple(pos.tolist()))

    def _turns(self, turn: Floats) -> Floats:
        """Quaternions (..., 4) in the mirror: M D M turns about -M axis by the same angle."""
        return np.concatenate([turn[..., :1], -self.places(turn[..., 1:])], axis=-1)

    @property
    def _rest(self) -> RestPose:
        return rest_pose(self.character)

    def _axis_cosine(self, link: str, joint: Joint, other: Joint) -> float:
        """Cosine between the image of a joint's axis and the axis of the other side's joint."""
        seen = self.places(rotation.rotate(self._rest.orientation(link), joint.axis))
        return float(seen @ rotation.rotate(self._rest.orientation(self.pairs[link]), other.axis))

    def asymmetry(self, link: str) -> float:
        """Distance at rest from the image of a link, from the root, to its counterpart [m]."""
        here, there = (self._rest.position(x) - self._rest.p[0] for x in (link, self.pairs[link]))
        return float(np.linalg.norm(self.places(here) - there))

    def _check(self) -> None:
        """Refuse a character whose sides have different joints."""
        far = 2.0 * OFF * size_of(self.character)
        for link in self.character.links:
            image = self.character.link(self.pairs[link.name])
            at = f"link {link.name!r} has no mirror image in {image.name!r}: "
            kinds = [[joint.kind for joint in x.joints] for x in (link, image)]
            if kinds[0] != kinds[1]:
                raise ClipError(f"{at}its joints are {kinds[0]}, the other's {kinds[1]}")
            off = self.asymmetry(link.name)
            if off > far:
                raise ClipError(f"{at}in the rest pose they are {off:.3g} m from symmetric")
            for joint, other in zip(link.joints, image.joints, strict=True):
                if joint.kind not in ("hinge", "slide"):
                    continue
                lean = self._axis_cosine(link.name, joint, other)
                if abs(lean) < LEAN:
                    raise ClipError(
                        f"{at}the axis of joint {joint.name!r}, mirrored, leans by "
                        f"{np.degrees(np.arccos(abs(lean))):.0f} degrees against {other.name!r}'s"
                    )


def _normal(character: Character, pairs: dict[str, str | None]) -> Floats:
    """Across which direction the pairs lie in the rest pose: y, unless it is another one."""
    rest, across = rest_pose(character), np.zeros(3)
    for name, image in pairs.items():
        if image is not None and name < image:
            step = (rest.position(name) - rest.position(image)) * [1.0, 1.0, 0.0]
            across += step if step @ across >= 0.0 else -step
    length = float(np.linalg.norm(across))
    if length < 1e-9:
        return np.array([0.0, 1.0, 0.0])
    across /= length
    for axis in np.eye(3)[:2]:
        if abs(across @ axis) > np.cos(np.radians(5.0)):
            return np.asarray(axis)
    return np.asarray(across)


def _is_same_point(a: ContactPoint, b: ContactPoint) -> bool:
    return a[:2] == b[:2] and bool(np.allclose(a.pos, b.pos, atol=1e-6))
