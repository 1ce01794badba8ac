"""Forward kinematics of many frames with the axes of all freedoms, for inverse kinematics.

What `poise.dynamics` says of one link's Jacobian, for all links at once: the twist that a freedom
gives to everything it moves is the same about one point c of the frame.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from poise.character import Character, Joint
from poise.motion.quaternions import Floats
from poise.pose import quat_matrix


def cross(a: Floats, b: Floats) -> Floats:
    """Cross products of vectors (..., 3)."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    out[..., 0] = ay * bz - az * by
    out[..., 1] = az * bx - ax * bz
    out[..., 2] = ax * by - ay * bx
    return out


class Tree:
    """A character's tree: who hangs on whom, which freedom moves what.

    Attributes:
        parent: Index of each link's parent, -1 for the root.
        v: Where each link's freedoms are in v.
        chain: Whether a freedom moves a link, shape (links, nv).
        above: Whether freedom i is above or at the link of freedom j, shape (nv, nv).
        strictly: The same without those of one link.
    """

    def __init__(self, character: Character) -> None:
        self.character = character
        where = {link.name: i for i, link in enumerate(character.links)}
        self.parent = [-1 if x.parent is None else where[x.parent] for x in character.links]
        self.v: list[slice] = []
        at = 0
        for link in character.links:
            size = sum(joint.nv for joint in link.joints)
            self.v.append(slice(at, at + size))
            at += size
        self.chain = np.zeros((len(self.parent), at), dtype=bool)
        for i, parent in enumerate(self.parent):
            if parent >= 0:
                self.chain[i] = self.chain[parent]
            self.chain[i, self.v[i]] = True
        owner = np.repeat(np.arange(len(self.v)), [v.stop - v.start for v in self.v])
        self.above = self.chain[owner].T.astype(np.float64)
        self.strictly = self.above * ~(owner[:, None] == owner[None, :])

    def forward(self, q: Floats) -> tuple[Floats, Floats, Floats]:
        """Where links are, and what moves them.

        Args:
            q: Poses, shape (k, nq); quaternions of length one.

        Returns:
            Positions (k, links, 3) [m], rotation matrices (k, links, 3, 3), and twists (k, 6, nv),
            linear first, about the origin of the first link.
        """
        c, k = self.character, len(q)
        p, R = np.empty((k, len(c.links), 3)), np.empty((k, len(c.links), 3, 3))
        # turning axes and a point on each, or directions of sliding
        spin, at, slide = (np.zeros((k, c.nv, 3)) for _ in range(3))
        for i, link in enumerate(c.links):
            above = self.parent[i]
            x = np.broadcast_to(np.array(link.pos), (k, 3))
            E = np.broadcast_to(quat_matrix(link.quat), (k, 3, 3))
            if above >= 0:
                x = p[:, above] + (R[:, above] @ np.array(link.pos))
                E = R[:, above] @ E if link.quat[0] != 1.0 else R[:, above]
            for joint in link.joints:
                x, E = self._joint(joint, q, x, E, (spin, at, slide))
            p[:, i], R[:, i] = x, E
        S = np.empty((k, 6, c.nv))
        S[:, :3] = (slide + cross(spin, p[:, :1] - at)).transpose(0, 2, 1)
        S[:, 3:] = spin.transpose(0, 2, 1)
        return p, R, S

    def _joint(
        self, joint: Joint, q: Floats, x: Floats, E: Floats, axes: tuple[Floats, Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Pose after a joint; notes its axes."""
        spin, at, slide = axes
        value, v = q[:, self.character.q_slice(joint)], self.character.v_slice(joint)
        if joint.kind == "free":
            E = quat_matrix(value[:, 3:])
            slide[:, v.start : v.start + 3] = np.eye(3)
            turns = slice(v.start + 3, v.stop)
            spin[:, turns], at[:, turns] = E.transpose(0, 2, 1), value[:, None, :3]
            return value[:, :3], E
        axis = np.array(joint.axis)
        if joint.kind == "slide":
            slide[:, v.start] = E @ axis
            return x + slide[:, v.start] * value, E
        pos = np.array(joint.pos)
        anchor = x + E @ pos if pos.any() else x
        at[:, v] = anchor[:, None]
        if joint.kind == "ball":
            E = E @ quat_matrix(value)
            spin[:, v] = E.transpose(0, 2, 1)
        else:
            spin[:, v.start] = E @ axis
            half = 0.5 * value
            E = E @ quat_matrix(np.concatenate([np.cos(half), np.sin(half) * axis], axis=1))
        return (anchor - E @ pos if pos.any() else anchor), E


@lru_cache(maxsize=16)
def tree_of(character: Character) -> Tree:
    """The tree of a character, made once."""
    return Tree(character)
