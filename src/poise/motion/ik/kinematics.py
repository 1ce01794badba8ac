"""Where links are and what moves them, for inverse kinematics of many frames.

The core says where links are. The twist that a freedom gives to everything it moves is the same
about one point c of the frame: here, the origin of the first link.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import dynamics
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint


def cross(a: Floats, b: Floats) -> Floats:
    """Cross products of vectors (..., 3)."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    out[..., 0] = ay * bz - az * by
    out[..., 1] = az * bx - ax * bz
    out[..., 2] = ax * by - ay * bx
    return out


class Placed(NamedTuple):
    """Links of many frames.

    Attributes:
        p: Positions [m], shape (k, links, 3).
        quat: Orientations, shape (k, links, 4).
        R: The same as matrices, shape (k, links, 3, 3).
    """

    p: Floats
    quat: Floats
    R: Floats


class Tree:
    """A character's tree: parents, and which degree of freedom moves which links.

    Attributes:
        parent: Index of each link's parent, -1 for the root.
        v: Where each link's freedoms are in v.
        chain: Whether a freedom moves a link, shape (links, nv).
        above: Whether freedom i is above or at the link of freedom j, shape (nv, nv).
        within: Whether a link is another or hangs on it, shape (links, links): [i, j] if j is
            within i.
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
        n = len(self.parent)
        self.chain, self.within = np.zeros((n, at), dtype=bool), np.eye(n, dtype=bool)
        for i, parent in enumerate(self.parent):
            if parent >= 0:
                self.chain[i] = self.chain[parent]
                self.within[:, i] |= self.within[:, parent]
            self.chain[i, self.v[i]] = True
        self.owner: NDArray[np.int64] = np.repeat(
            np.arange(n), [v.stop - v.start for v in self.v]
        ).astype(np.int64)
        self.above = self.chain[self.owner].T.astype(np.float64)
        self._note_axes()

    def _note_axes(self) -> None:
        """Axes and points on them in the frames of their links; which of them turn."""
        c = self.character
        self.axis, self.anchor = np.zeros((2, c.nv, 3))
        self.turns = np.ones((c.nv, 1))
        for joint in c.joints:
            v = c.v_slice(joint)
            if joint.kind in ("free", "ball"):
                self.axis[v.stop - 3 : v.stop] = np.eye(3)
            else:
                self.axis[v] = joint.axis
            if joint.kind in ("free", "slide"):
                self.turns[v.start : v.start + (3 if joint.kind == "free" else 1)] = 0.0
            if joint.kind in ("ball", "hinge"):
                self.anchor[v] = joint.pos
        # of several joints of one link, all but the last are not at rest in its frame
        self.several = [i for i, link in enumerate(c.links) if len(link.joints) > 1]

    def places(self, q: Floats) -> Placed:
        """Where links are in poses q (k, nq)."""
        p, quat = dynamics.forward_kinematics(self.character, q)
        return Placed(p, quat, quat_matrix(quat))

    def twists(self, q: Floats, placed: Placed) -> Floats:
        """What freedoms do (k, nv, 6): linear, then angular, about the origin of the first link."""
        p, R = placed.p, placed.R[:, self.owner]
        axis = (R @ self.axis[:, :, None])[..., 0]
        at = p[:, self.owner]
        if self.anchor.any():
            at = at + (R @ self.anchor[:, :, None])[..., 0]
        for i in self.several:
            self._unwind(i, q, placed, axis, at)
        S = np.empty((len(q), self.character.nv, 6))
        S[..., 3:] = self.turns * axis
        S[..., :3] = cross(S[..., 3:], p[:, :1] - at) + (1.0 - self.turns) * axis
        if self.character.joints and self.character.joints[0].kind == "free":
            S[:, :3, :3] = np.eye(3)
        return S

    def _unwind(self, i: int, q: Floats, placed: Placed, axis: Floats, at: Floats) -> None:
        """Axes of a link with several joints, from the last to the first, in place."""
        x, E = placed.p[:, i], placed.R[:, i]
        for joint in reversed(self.character.links[i].joints):
            v = self.character.v_slice(joint)
            pos = np.array(joint.pos)
            axis[:, v] = (E[:, None] @ self.axis[v, :, None])[..., 0]
            if joint.kind == "slide":
                at[:, v] = x[:, None]
                x = x - axis[:, v.start] * q[:, self.character.q_slice(joint)]
                continue
            before = x + E @ pos
            at[:, v] = before[:, None]
            E = E @ _turn(joint, q[:, self.character.q_slice(joint)]).transpose(0, 2, 1)
            x = before - E @ pos


def _turn(joint: Joint, value: Floats) -> Floats:
    """Rotation matrices (k, 3, 3) of a hinge or ball."""
    if joint.kind == "ball":
        return quat_matrix(value)
    half = 0.5 * value
    return quat_matrix(np.concatenate([np.cos(half), np.sin(half) * np.array(joint.axis)], axis=1))


@lru_cache(maxsize=16)
def tree_of(character: Character) -> Tree:
    """The tree of a character, made once."""
    return Tree(character)
