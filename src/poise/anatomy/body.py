"""What the links of a character are: legs, arms, trunk, head, tail; told by names and by the tree.

A body is a few limbs, each a chain of roles:

    trunk  pelvis, trunk ...            head  neck ..., head           tail  tail ...
    leg    thigh, shank, foot, toe      arm   shoulder, arm, forearm, hand

of the left or right side. The front leg of a quadruped is an arm (shoulder blade, upper arm,
forearm, paw), the metatarsus of its hind leg a foot and the paw a toe, as anatomists have it.

Names come first: `part_of` and `side_of` know the usual ones. Where they say nothing, the rest pose
does: what reaches the ground is a leg, of four those near the head are arms; pairs that hang higher
are arms; of what is left on the middle plane the highest is the head, the rest a tail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poise.anatomy.body_parts import part_of, side_of
from poise.anatomy.tree_shape import ROLES, SIDES, AtRest, Limbs, limbs_by_shape
from poise.errors import ClipError
from poise.math.arrays import Floats
from poise.model.character import Character

LIMB = {role: limb for limb, roles in ROLES.items() for role in roles}


@dataclass(frozen=True)
class Body:
    """What the links of a character are.

    Attributes:
        character: The character.
        links: Links of each limb and role, root first: ("leg", "left") -> {"thigh": ["..."], ...}.
        left: Direction to its left in the rest pose, level, shape (3,).
        up: Direction up, shape (3,).
        ignored: Names of links that do not count.
    """

    character: Character
    links: Limbs
    left: tuple[float, ...]
    up: tuple[float, ...] = (0.0, 0.0, 1.0)
    ignored: frozenset[str] = frozenset()

    def get(self, limb: str, side: str, role: str) -> list[str]:
        """Links of a role, root first."""
        return self.links.get((limb, side), {}).get(role, [])

    def chain(self, limb: str, side: str) -> list[str]:
        """All links of a limb, root first."""
        roles = self.links.get((limb, side), {})
        return [name for role in ROLES[limb] for name in roles.get(role, [])]

    def where(self, name: str) -> tuple[str, str, str] | None:
        """Limb, side and role of a link."""
        for (limb, side), roles in self.links.items():
            for role, names in roles.items():
                if name in names:
                    return limb, side, role
        return None

    def limb_of(self, name: str) -> tuple[str, str] | None:
        """Limb and side of a link, or of the nearest one above that has them."""
        at: str | None = name
        while at is not None:
            here = self.where(at)
            if here is not None:
                return here[:2]
            at = self.character.link(at).parent
        return None

    @property
    def frame(self) -> Floats:
        """Forward, left, up as columns (3, 3)."""
        left, up = np.array(self.left), np.array(self.up)
        return np.stack([np.cross(left, up), left, up], axis=1)


@lru_cache(maxsize=64)
def body_of(character: Character, ignored: frozenset[str] = frozenset()) -> Body:
    """Tell what the links of a character are.

    Args:
        character: The character.
        ignored: Names of links that do not count.
    """
    rest = AtRest(character, ignored)
    links = _by_name(rest)
    known = {name for roles in links.values() for names in roles.values() for name in names}
    for limb, roles in limbs_by_shape(rest, known).items():
        links.setdefault(limb, roles)
    return Body(character, links, _left(rest, links), ignored=ignored)


# by name


def role_of(name: str) -> tuple[str, str]:
    """Role and side that a link's name tells of, "" where it does not."""
    plain = re.sub(r"^.*:|^character\d*_", "", name, flags=re.IGNORECASE)
    low = plain.lower()
    side = side_of(name)
    if not side and (end := re.search(r"[a-z0-9]([LR])$", plain)):
        side = "left" if end[1] == "L" else "right"
    if not side and (mark := re.match(r"([fhr])([lr])[_ ]", low)):  # FL_thigh
        side = "left" if mark[2] == "l" else "right"
    front = bool(re.search(r"front|(^|_)fore(?!_?arm)|^f[lr]_", low))
    hind = bool(re.search(r"hind|rear|^[hr][lr]_", low))
    role = part_of(name)
    if "tail" in low:
        role = "tail"
    elif re.search("scapula|blade", low):
        role = "shoulder"
    elif re.search("metatars|hock|tarsus", low):
        role = "foot"
    elif re.search("metacarp|carpus", low) or (front and role in ("foot", "toe")):
        role = "hand"
    elif (hind and re.search("paw|toe", low)) or (
        role == "foot" and re.search("thumb|pinky|finger", low)
    ):
        role = "toe"
    if front and role in ("thigh", "shank"):  # "front_left_thigh" of a robot
        role = {"thigh": "arm", "shank": "forearm"}[role]
    return role, side


def _by_name(rest: AtRest) -> Limbs:
    links: Limbs = {}
    for name in rest.names:
        role, side = role_of(name)
        if role not in LIMB:
            continue
        limb = LIMB[role]
        if limb in ("arm", "leg") and side not in SIDES:
            continue
        # "back_left_leg" is no part of the trunk, "left_hip" no pelvis
        if limb in ("trunk", "head", "tail"):
            if side:
                continue
            side = ""
        links.setdefault((limb, side), {}).setdefault(role, []).append(name)
    for (limb, side), roles in links.items():
        _mend(rest, limb, roles)
        for role, names in roles.items():
            roles[role] = _one_chain(rest, side, role, names)
    if ("trunk", "") in links:
        pelvis = links["trunk", ""].get("pelvis", [])
        links["trunk", ""]["pelvis"] = pelvis[:1] or rest.names[:1]
    elif any(limb in ("leg", "arm") for limb, _ in links):
        links["trunk", ""] = {"pelvis": rest.names[:1]}
    return {limb: {r: n for r, n in roles.items() if n} for limb, roles in links.items()}


def _mend(rest: AtRest, limb: str, roles: dict[str, list[str]]) -> None:
    """What single names cannot tell: it takes the neighbours."""
    if limb == "arm" and "arm" not in roles and "shoulder" in roles:
        roles["arm"] = roles.pop("shoulder")[-1:]
    if limb == "head" and "head" not in roles and "neck" in roles:
        roles["head"] = [roles["neck"].pop()]
    if limb == "leg" and "foot" not in roles and "toe" in roles:
        # a hind leg of thigh, shin and paw
        roles["foot"] = roles.pop("toe")


def _one_chain(rest: AtRest, side: str, role: str, names: list[str]) -> list[str]:
    """Links of one role that hang on each other; others are side branches, or a double."""
    if role in ("pelvis", "trunk", "neck", "tail"):
        return names
    first = names[0]
    for name in names[1:]:
        if first in rest.above(name):
            continue
        if role in ("hand", "toe", "head"):
            continue  # thumbs, eyes
        if rest.parent[name] == rest.parent[first] or role in ("thigh", "shank", "foot", "forearm"):
            raise ClipError(
                f"character {rest.character.name!r} has two links that both are its {side} {role}: "
                f"{first!r} and {name!r}; a map says which one counts (ignore: [{name}])"
            )
    return [first] if role != "shoulder" else names


# which way it looks


def _left(rest: AtRest, links: Limbs) -> tuple[float, ...]:
    """Direction to the left: between the first links of left and right limbs; else y."""
    across = np.zeros(3)
    for limb in ("leg", "arm"):
        ends = [links.get((limb, side), {}) for side in SIDES]
        for role in ROLES[limb]:
            pair = [end.get(role) for end in ends]
            if pair[0] and pair[1]:
                across += rest.at(pair[0][0]) - rest.at(pair[1][0])
    across[2] = 0.0
    size = float(np.linalg.norm(across))
    if size < 1e-3 * rest.height:
        return (0.0, 1.0, 0.0)
    return tuple((across / size).tolist())
