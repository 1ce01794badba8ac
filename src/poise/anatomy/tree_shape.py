"""Limbs told by the shape of a character's tree in its rest pose, where names say nothing.

What reaches the ground is a leg, of four those in front are arms; pairs that hang higher are arms;
of what is left on the middle plane the highest is the head, what points back a tail.
"""

from __future__ import annotations

import numpy as np

from poise import dynamics
from poise.anatomy.contact_schedule import feet_of, surface_points
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


class AtRest:
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


def limbs_by_shape(rest: AtRest, known: set[str]) -> Limbs:
    """Limbs that the names do not tell of."""
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


def _branches(rest: AtRest) -> list[list[str]]:
    """Chains from a fork to an end; what forks again within a tenth of the height is one end."""
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


def _small(rest: AtRest, name: str) -> bool:
    """Whether all that hangs on a link is near it, as fingers are."""
    below, at = [], [name]
    while at:
        at = [child for parent in at for child in rest.children[parent]]
        below += at
    return all(np.linalg.norm(rest.at(b) - rest.at(name)) < 0.12 * rest.height for b in below)


def _reach(rest: AtRest, chain: list[str]) -> Floats:
    """Where a chain ends, from the root [m]."""
    return rest.tip(chain[-1]) - rest.at(rest.names[0])


def _roles_along(rest: AtRest, limb: str, chain: list[str]) -> dict[str, list[str]]:
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
