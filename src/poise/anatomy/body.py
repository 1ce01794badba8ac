"""What the links of a character are: legs, arms, trunk, head, tail; by names and by the tree.

A body is a few limbs, each a chain of roles:

    trunk  pelvis, trunk ...            head  neck ..., head           tail  tail ...
    leg    thigh, shank, foot, toe      arm   shoulder, arm, forearm, hand

of the left or right side. The front leg of a quadruped is an arm (shoulder blade, upper arm,
forearm, paw), the metatarsus of its hind leg a foot and the paw a toe, as anatomists have it.

Names come first (`poise.anatomy.names`). Where they say nothing, the rest pose does: a chain that
reaches the ground is a leg, of four those near the head are arms; pairs that hang higher are arms;
of the other chains on the middle plane the highest is the head, one that points back a tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.anatomy.feet import feet_of, tip_of
from poise.anatomy.names import role_of
from poise.errors import ClipError, PoiseError, unknown_name
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.model.geometry import surface_points

ROLES = {
    "trunk": ("pelvis", "trunk"),
    "head": ("neck", "head"),
    "tail": ("tail",),
    "arm": ("shoulder", "arm", "forearm", "hand"),
    "leg": ("thigh", "shank", "foot", "toe"),
}
"""Roles of each limb, from the root outwards."""

SIDES = ("left", "right")

Limbs = dict[tuple[str, str], dict[str, list[str]]]
"""Links of each limb and role, root first: ("leg", "left") -> {"thigh": ["..."], ...}."""

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
    """Identifies the links of a character.

    Args:
        character: The character.
        ignored: Names of links that do not count.
    """
    rest = _Rest(character, ignored)
    links = _by_name(rest)
    known = {name for roles in links.values() for names in roles.values() for name in names}
    for limb, roles in _limbs_by_shape(rest, known).items():
        links.setdefault(limb, roles)
    return Body(character, links, _left(rest, links), ignored=ignored)


def head_of(character: Character) -> str:
    """Name of the head: the last link of the limb "head", else found by names and the rest pose."""
    if not isinstance(character, Character):
        raise PoiseError(f"expected a Character, got {character!r:.80}")
    limb = character.limbs.get("head")
    if limb:
        return limb[-1]
    head = limbs_of(character).get(("head", ""), {}).get("head")
    if not head:
        raise PoiseError(f"character {character.name!r} has no head; a limb 'head' says which")
    return head[-1]


def limbs_of(character: Character) -> Limbs:
    """Links by limb, side and role; empty where the body cannot be identified."""
    try:
        return body_of(character).links
    except ClipError:
        return {}


def heading(character: Character, q: ArrayLike) -> float:
    """Direction in which a character looks in a pose (nq,), from +x counterclockwise [rad].

    A character whose front is unknown looks along +x in its rest pose, and so does one whose root
    is fixed to the world.
    """
    try:
        x, y, _ = body_of(character).frame[:, 0]
    except ClipError:
        x, y = 1.0, 0.0
    turned = 0.0
    if character.joints and character.joints[0].kind == "free":
        turned = float(root_yaw(character, q))
    return math.remainder(math.atan2(y, x) + turned, 2.0 * math.pi)


def root_yaw(character: Character, q: ArrayLike) -> Floats:
    """Yaw of a free root in poses (..., nq) from its rest pose, counterclockwise [rad], (...).

    It is the rotation about the vertical that remains when the root is brought upright the short
    way.
    """
    rest = rotation.conjugate(character.rest_q[3:7])
    turn = rotation.multiply(np.asarray(q, dtype=np.float64)[..., 3:7], rest)
    yaw: Floats = 2.0 * np.arctan2(turn[..., 3], turn[..., 0])
    return yaw


def size_of(character: Character) -> float:
    """Half the largest extent of a character in its rest pose [m]; for a human, the leg."""
    p, R = dynamics.forward_kinematics(character, character.rest_q)
    cloud = [p]
    for i, link in enumerate(character.links):
        cloud += [p[i] + rotation.rotate(R[i], surface_points(s)) for s in link.shapes]
    return float(np.ptp(np.concatenate(cloud), axis=0).max()) / 2.0


def place_of(character: Character, name: str) -> tuple[str, tuple[float, float, float]]:
    """The link and the point in it [m] that the name of a goal means.

    The name of a link means its origin, that of a limb its outer end. A hand that is no link of its
    own is the outer end of its arm.

    Args:
        character: The character.
        name: A link or a limb.
    """
    links = [link.name for link in character.links]
    if name in links:
        return name, (0.0, 0.0, 0.0)
    limb = name if name in character.limbs else name.replace("hand", "arm")
    if limb not in character.limbs:
        hands = [x.replace("arm", "hand") for x in character.limbs if "arm" in x]
        known = dict.fromkeys((*links, *character.limbs, *hands))
        raise PoiseError(f"goal: {unknown_name('link', name, known)}")
    last = character.limbs[limb][-1]
    tip = np.mean([point.pos for point in tip_of(character, last)], axis=0)
    return last, (float(tip[0]), float(tip[1]), float(tip[2]))


# ---- by name


def _by_name(rest: _Rest) -> Limbs:
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


def _mend(rest: _Rest, limb: str, roles: dict[str, list[str]]) -> None:
    """Corrects roles that depend on the other links of the limb."""
    if limb == "arm" and "arm" not in roles and "shoulder" in roles:
        roles["arm"] = roles.pop("shoulder")[-1:]
    if limb == "head" and "head" not in roles and "neck" in roles:
        roles["head"] = [roles["neck"].pop()]
    if limb == "leg" and "foot" not in roles and "toe" in roles:
        # a hind leg of thigh, shin and paw
        roles["foot"] = roles.pop("toe")


def _one_chain(rest: _Rest, side: str, role: str, names: list[str]) -> list[str]:
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


def _left(rest: _Rest, links: Limbs) -> tuple[float, ...]:
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


# ---- by the shape of the tree in the rest pose


class _Rest:
    """A character in its rest pose."""

    def __init__(self, character: Character, ignored: frozenset[str]) -> None:
        self.character = character
        self.index = {link.name: i for i, link in enumerate(character.links)}
        self.names = [name for name in self.index if name not in ignored]
        self.parent = {link.name: link.parent for link in character.links}
        self.children: dict[str, list[str]] = {name: [] for name in self.index}
        for name, parent in self.parent.items():
            if parent is not None and name not in ignored:
                self.children[parent].append(name)
        self.p, self.R = dynamics.forward_kinematics(character, character.rest_q)
        self.height = max(float(np.ptp(self.p, axis=0).max()), 1e-9)

    def at(self, name: str) -> Floats:
        """Where a link's joint is [m]."""
        where: Floats = self.p[self.index[name]]
        return where

    def tip(self, name: str) -> Floats:
        """Where a link ends [m]: the mean of its shapes' far points, or its own place."""
        i = self.index[name]
        shapes = self.character.links[i].shapes
        if not shapes:
            return self.at(name)
        points = np.concatenate([surface_points(shape) for shape in shapes])
        far = np.linalg.norm(points, axis=1)
        end = points[far > 0.8 * far.max()].mean(axis=0)
        placed: Floats = self.p[i] + rotation.rotate(self.R[i], end)
        return placed

    def above(self, name: str) -> list[str]:
        """Links above one, nearest first."""
        found, at = [], self.parent[name]
        while at is not None:
            found.append(at)
            at = self.parent[at]
        return found


def _limbs_by_shape(rest: _Rest, known: set[str]) -> Limbs:
    """Limbs that names do not identify."""
    if len(known) >= 0.6 * len(rest.names) or len(rest.names) < 3:
        return {}
    feet = {point.foot for point in feet_of(rest.character)}
    root = rest.names[0]
    chains = _branches(rest)
    legs = [c for c in chains if any(name in feet for name in c)]
    others = [c for c in chains if c not in legs]
    found: Limbs = {}
    if root in feet or not legs:
        return found
    wide = [c for c in others if abs(_reach(rest, c)[1]) > 0.1 * rest.height]
    middle = [c for c in others if c not in wide]
    if len(legs) == 4:
        by_x = sorted(legs, key=lambda c: float(rest.at(c[0])[0]))
        ends = {"leg": by_x[:2], "arm": by_x[2:]}
    else:
        ends = {"leg": legs[:2], "arm": wide[:2]}
    trunk = {"pelvis": [root]}
    for limb, pair in ends.items():
        if len(pair) != 2:
            continue
        pair = sorted(pair, key=lambda c: -float(_reach(rest, c)[1]))
        for side, chain in zip(SIDES, pair, strict=True):
            found[limb, side] = _roles_along(rest, limb, chain)
    if ("arm", "left") in found:
        roles = found["arm", "left"]
        top = rest.parent[roles.get("shoulder", roles["arm"])[0]]
        inner = [top, *rest.above(top)] if top else []
        trunk["trunk"] = [name for name in reversed(inner) if name and name != root]
    found["trunk", ""] = trunk
    if middle:
        head = max(middle, key=lambda c: float(_reach(rest, c)[2] + _reach(rest, c)[0]))
        found["head", ""] = {"neck": head[:-1], "head": head[-1:]}
        tails = [c for c in middle if c is not head and _reach(rest, c)[0] < 0.0]
        if tails:
            found["tail", ""] = {"tail": tails[0]}
    found = {limb: {r: n for r, n in x.items() if n} for limb, x in found.items()}
    return {
        limb: roles
        for limb, roles in found.items()
        if limb == ("trunk", "") or not any(n in known for names in roles.values() for n in names)
    }


def _branches(rest: _Rest) -> list[list[str]]:
    """Chains from a fork to an end; branches within a tenth of the height are one end."""
    chains: list[list[str]] = []
    for name in rest.names:
        if rest.children[name]:
            continue
        chain = [name]
        for up in rest.above(name):
            if len(rest.children[up]) > 1 and not _small(rest, up):
                break
            chain.append(up)
        chain = chain[::-1]
        if chain[0] == rest.names[0]:
            chain = chain[1:]
        if chain and not any(chain[0] == other[0] for other in chains):
            chains.append(chain)
    return chains


def _small(rest: _Rest, name: str) -> bool:
    """Whether all that hangs on a link is near it, as fingers are."""
    below, at = [], [name]
    while at:
        at = [child for parent in at for child in rest.children[parent]]
        below += at
    return all(np.linalg.norm(rest.at(b) - rest.at(name)) < 0.12 * rest.height for b in below)


def _reach(rest: _Rest, chain: list[str]) -> Floats:
    """Where a chain ends, from the root [m]."""
    return rest.tip(chain[-1]) - rest.at(rest.names[0])


def _roles_along(rest: _Rest, limb: str, chain: list[str]) -> dict[str, list[str]]:
    """Roles of a chain: its two longest neighbours are thigh and shank, or arm and forearm."""
    ends = [rest.at(name) for name in chain[1:]] + [rest.tip(chain[-1])]
    length = [float(np.linalg.norm(b - rest.at(n))) for n, b in zip(chain, ends, strict=True)]
    if len(chain) == 1:
        return {ROLES[limb][0 if limb == "leg" else 1]: chain}
    pairs = [length[i] + length[i + 1] for i in range(len(chain) - 1)]
    if limb == "leg" and len(pairs) > 1:
        pairs = pairs[:-1]  # a foot is below
    i = int(np.argmax(pairs))
    upper = ("thigh", "shank", "foot", "toe") if limb == "leg" else ("arm", "forearm", "hand")
    roles = {role: [name] for role, name in zip(upper, chain[i:], strict=False)}
    if limb == "arm" and i > 0:
        roles["shoulder"] = chain[:i]
    return roles
