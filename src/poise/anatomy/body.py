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
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from poise.anatomy.feet import ContactPoint, feet_of, has_free_root, positions, tip_middle
from poise.anatomy.names import role_of
from poise.anatomy.rest_pose import RestPose, rest_pose
from poise.errors import ClipError, PoiseError, unknown_name
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character

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

ENDS = ("foot", "toe", "hand")
"""Roles of what ends a leg or an arm."""

UP = np.array([0.0, 0.0, 1.0])


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

    @cached_property
    def _places(self) -> dict[str, tuple[str, str, str]]:
        found: dict[str, tuple[str, str, str]] = {}
        for (limb, side), roles in self.links.items():
            for role, names in roles.items():
                for name in names:
                    found.setdefault(name, (limb, side, role))
        return found

    def where(self, name: str) -> tuple[str, str, str] | None:
        """Limb, side and role of a link."""
        return self._places.get(name)

    def limb_of(self, name: str) -> tuple[str, str] | None:
        """Limb and side of a link, or of the nearest one above that has them."""
        known = (self.where(link) for link in (name, *self.rest.ancestors(name)))
        return next((place[:2] for place in known if place is not None), None)

    @property
    def frame(self) -> Floats:
        """Forward, left, up as columns (3, 3)."""
        left, up = np.array(self.left), np.array(self.up)
        return np.stack([np.cross(left, up), left, up], axis=1)

    @property
    def rest(self) -> RestPose:
        """The character in its rest pose."""
        return rest_pose(self.character)

    @property
    def kind(self) -> Literal["person", "quadruped", "other"]:
        """Whether it stands on two legs as a person, on arms and legs as a quadruped, or neither.

        See `why_no_person` for what a person has.
        """
        if {"arm", "leg"} <= {(self.limb_of(x.foot) or ("",))[0] for x in self.sole_points}:
            return "quadruped"
        return "other" if self.why_no_person else "person"

    @property
    def why_no_person(self) -> str:
        """Why it is no person: a free root, two legs to stand on, no tail; "" if it is one."""
        if not has_free_root(self.character):
            return "its root is fixed"
        for side in SIDES:
            if not (self.get("leg", side, "thigh") and self.get("leg", side, "shank")):
                return f"it has no {side} leg of a person"
        if ("tail", "") in self.links:
            return "it has a tail"
        feet = dict.fromkeys(point.foot for point in feet_of(self.character))
        others = [foot for foot in feet if (self.where(foot) or ("",))[0] != "leg"]
        return f"it stands on its {others[0]}" if others else ""

    def is_end(self, name: str) -> bool:
        """Whether a link is the end of a limb, or no part of one: no shin, and no forearm."""
        return name not in self._places or self._places[name][2] in ENDS

    @cached_property
    def sole_points(self) -> tuple[ContactPoint, ...]:
        """The points by which it stands: `feet_of`, but a shin that reaches low is no foot."""
        points = feet_of(self.character)
        place = {point.link: self.where(point.link) or ("", "", "") for point in points}
        foot: dict[tuple[str, str], str] = {}
        for link, (limb, side, role) in place.items():
            if role in ENDS:
                foot.setdefault((limb, side), link)
        kept = []
        for point in points:
            limb, side, role = place[point.link]
            own = foot.get((limb, side))
            if own is None or role in ENDS:
                kept.append(point._replace(foot=own or point.foot))
        # toes whose names say nothing hang on what is kept
        names = {point.foot for point in kept}
        for i, point in enumerate(kept):
            if not self.where(point.link):
                above = [x for x in self.rest.ancestors(point.link) if x in names and self.where(x)]
                kept[i] = point._replace(foot=(above or [point.foot])[0])
        return tuple(kept)

    @cached_property
    def sole_links(self) -> frozenset[str]:
        """Links with points of the soles."""
        return frozenset(point.link for point in self.sole_points)

    def bone(self, name: str, limb: str, side: str, role: str) -> Floats:
        """Direction of a link's bone at rest: to the next link of its limb, or to where it ends.

        Args:
            name: The link.
            limb: Limb that it is a part of, or "".
            side: Side of the limb.
            role: Its role.
        """
        chain = self.chain(limb, side) if limb else []
        after = chain[chain.index(name) + 1 :] if name in chain else []
        steps = [self.rest.position(other) - self.rest.position(name) for other in after]
        steps.append(self.rest.far_end(name, 0.9) if role == "head" else self.rest.middle(name))
        along = next((step for step in steps if np.linalg.norm(step) > 1e-3), steps[-1])
        size = float(np.linalg.norm(along))
        return along / size if size > 1e-6 else np.zeros(3)

    def sole_axes(self, name: str) -> Floats:
        """Forward, left and up of a sole at rest as columns (3, 3).

        The sole is level unless the legs rest at an angle and turn a box with them.
        """
        up = UP
        box = next((x for x in self.character.link(name).shapes if x.kind == "box"), None)
        if box is not None:
            turn = rotation.multiply(self.rest.orientation(name), box.quat)
            axes = rotation.quat_matrix(turn)
            k = int(np.argmax(np.abs(axes[2])))
            if abs(axes[2, k]) > np.cos(0.6):
                up = axes[:, k] * np.sign(axes[2, k])
        forward = self.frame[:, 0]
        ahead = self.rest.middle(name)
        ahead = ahead - (ahead @ up) * up
        if np.linalg.norm(ahead) > 0.02 and ahead @ forward > 0.8 * np.linalg.norm(ahead):
            forward = ahead
        forward = forward - (forward @ up) * up
        forward = forward / np.linalg.norm(forward)
        return np.stack([forward, np.cross(up, forward), up], axis=1)

    def leg_length(self) -> float | None:
        """Length of a leg from the hip to the sole, the mean of both [m]; None without legs."""
        legs = []
        for side in SIDES:
            chain = [self.get("leg", side, role) for role in ("thigh", "shank", "foot")]
            if all(chain):
                points = [self.rest.position(names[0]) for names in chain]
                bones = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
                legs.append(bones + self._sole_depth(chain[2][0]))
        return sum(legs) / len(legs) if legs else None

    def _sole_depth(self, foot: str) -> float:
        """How far the sole is below a foot's joint [m]."""
        points = [point for point in self.sole_points if foot in (point.foot, point.link)]
        joint = self.rest.position(foot)
        if not points:
            return max(float(joint[2] - self.rest.p[:, 2].min()), 0.0)
        tips = positions(self.character, points, self.character.rest_q)
        return float(((joint - tips) @ self.sole_axes(foot)[:, 2]).max())

    def hips(self) -> Floats:
        """The point between the hips, from the root link, in world axes at rest (3,) [m]."""
        thighs = [n for side in SIDES for n in self.get("leg", side, "thigh")[:1]]
        root = self.character.links[0].name
        if len(thighs) != 2 or any(self.rest.parent[n] != root for n in thighs):
            return np.zeros(3)
        middle: Floats = np.mean([self.rest.position(n) for n in thighs], axis=0) - self.rest.p[0]
        return middle


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
    if has_free_root(character):
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
    x, y, z = tip_middle(character, last)
    return last, (x, y, z)


# ---- by name


def _by_name(rest: _Rest) -> Limbs:
    links: Limbs = {}
    for name in rest.names:
        role, side = role_of(name)
        limb = LIMB.get(role, "")
        # "back_left_leg" is no part of the trunk, "left_hip" no pelvis
        if limb and (limb in ("arm", "leg")) == bool(side):
            links.setdefault((limb, side), {}).setdefault(role, []).append(name)
    for (limb, side), roles in links.items():
        _correct_roles(limb, roles)
        for role, names in roles.items():
            roles[role] = _one_chain(rest, side, role, names)
    if ("trunk", "") in links:
        pelvis = links["trunk", ""].get("pelvis", [])
        links["trunk", ""]["pelvis"] = pelvis[:1] or rest.names[:1]
    elif any(limb in ("leg", "arm") for limb, _ in links):
        links["trunk", ""] = {"pelvis": rest.names[:1]}
    return {limb: {r: n for r, n in roles.items() if n} for limb, roles in links.items()}


def _correct_roles(limb: str, roles: dict[str, list[str]]) -> None:
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
        if first in rest.ancestors(name) or role in ("hand", "toe", "head"):
            continue  # of these, thumbs and eyes
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
                across += rest.position(pair[0][0]) - rest.position(pair[1][0])
    across[2] = 0.0
    size = float(np.linalg.norm(across))
    if size < 1e-3 * rest.height:
        return (0.0, 1.0, 0.0)
    return tuple((across / size).tolist())


# ---- by the shape of the tree in the rest pose


class _Rest(RestPose):
    """A rest pose in which some links are ignored."""

    def __init__(self, character: Character, ignored: frozenset[str]) -> None:
        super().__init__(character)
        self.names = [name for name in self.index if name not in ignored]
        self.children: dict[str, list[str]] = {name: [] for name in self.index}
        for name in self.names:
            parent = self.parent[name]
            if parent is not None:
                self.children[parent].append(name)
        self.height = max(float(np.ptp(self.p, axis=0).max()), 1e-9)

    def tip(self, name: str) -> Floats:
        """Where a link ends [m]: the mean of its shapes' far points, or its own origin."""
        return self.position(name) + self.far_end(name, 0.8)


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
        by_x = sorted(legs, key=lambda c: float(rest.position(c[0])[0]))
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
        inner = [top, *rest.ancestors(top)] if top else []
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
        for up in rest.ancestors(name):
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
    near, below = 0.12 * rest.height, [name]
    for link in below:
        below += rest.children[link]
    return all(np.linalg.norm(rest.position(b) - rest.position(name)) < near for b in below)


def _reach(rest: _Rest, chain: list[str]) -> Floats:
    """Where a chain ends, from the root [m]."""
    return rest.tip(chain[-1]) - rest.position(rest.names[0])


def _roles_along(rest: _Rest, limb: str, chain: list[str]) -> dict[str, list[str]]:
    """Roles of a chain: its two longest neighbours are thigh and shank, or arm and forearm."""
    ends = [rest.position(name) for name in chain[1:]] + [rest.tip(chain[-1])]
    length = [float(np.linalg.norm(b - rest.position(n))) for n, b in zip(chain, ends, strict=True)]
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
