"""What a clip shows in a file of nodes: its links, and the joints of its source that were merged.

Joints without length or mass are merged into their parents for the dynamics. In a file they are
there again, rigid, with the names and the hierarchy of the source; as in BVH.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from poise.anatomy.rig import Rig, poses_of
from poise.dynamics import forward_kinematics
from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply, rotate
from poise.model.character import Character
from poise.motion.clip import Clip


@dataclass(frozen=True)
class Nodes:
    """A tree of nodes that move, in our axes.

    Args:
        names: Names, all different.
        parents: Index of each node's parent, -1 for roots; parents are before children.
        links: Index of the link that each node stands for, or -1.
        p: Positions in the world [m], shape (frames, nodes, 3).
        e: Orientations in the world, w x y z, shape (frames, nodes, 4).
        rest_p: Positions at rest [m], shape (nodes, 3).
        rest_e: Orientations at rest, shape (nodes, 4).
        link_rest_e: Orientations at rest of the links' own frames, shape (nodes, 4).
        ends: Where a last bone ends at rest, from its node [m]; NaN if unknown; shape (nodes, 3).
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    links: tuple[int, ...]
    p: Floats
    e: Floats
    rest_p: Floats
    rest_e: Floats
    link_rest_e: Floats
    ends: Floats

    @cached_property
    def children(self) -> list[list[int]]:
        """Indices of each node's children."""
        found: list[list[int]] = [[] for _ in self.names]
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(i)
        return found

    def local(self) -> tuple[Floats, Floats]:
        """Poses in the parents' frames: positions (frames, nodes, 3), quaternions (..., 4)."""
        p, e = _local(self.parents, self.p, self.e)
        return p, align_signs(e)

    def local_rest(self) -> tuple[Floats, Floats]:
        """Poses at rest in the parents' frames, shapes (nodes, 3) and (nodes, 4)."""
        p, e = _local(self.parents, self.rest_p[None], self.rest_e[None])
        return p[0], align_signs(e)[0]

    def as_bones(self, axis: tuple[float, ...]) -> Nodes:
        """The same nodes with other axes of their own: at rest, one axis of each is along its bone.

        Args:
            axis: Which one; Blender takes a bone to point along the file's y axis.
        """
        rest = np.array([_turn_to(np.array(axis), bone) for bone in self._bones()])
        e = multiply(self.e, multiply(conjugate(self.rest_e), rest))
        return replace(self, e=e, rest_e=rest)

    def _bones(self) -> Floats:
        """Bones at rest, of any length, shape (nodes, 3).

        A bone goes to that child on which most hangs, but not to one of a pair, such as shoulders;
        where there are only pairs, between them; the last one of a chain to its end. One without
        length goes on as the next does, else as the one before.
        """
        count = len(self.names)
        weight, along = [1] * count, np.full((count, 3), np.nan)
        for i in reversed(range(count)):
            below = sorted(self.children[i], key=lambda c: -weight[c])
            weights = [weight[c] for c in below]
            weight[i] += sum(weights)
            alone = [c for c in below if weights.count(weight[c]) == 1]
            ways = [self.rest_p[c] - self.rest_p[i] for c in alone]
            if below:
                ways += [
                    self.rest_p[below].mean(axis=0) - self.rest_p[i],
                    along[(alone or below)[0]],
                ]
            else:
                ways.append(self.ends[i])
            along[i] = next((way for way in ways if np.linalg.norm(way) > SHORT), np.nan)
        for i, parent in enumerate(self.parents):
            if np.isnan(along[i]).any():
                along[i] = along[parent] if parent >= 0 else (0.0, 0.0, 1.0)
        return along


SHORT = 1e-4
"""A bone of less than this has no direction [m]."""


def nodes_of(clip: Clip) -> Nodes:
    """The nodes that a clip shows: the joints of its source and its links."""
    character, rig = clip.character, clip.source
    moving = {link.name for link in character.links if link.joints}
    if rig is None or not moving or not moving.issubset(rig.names):
        rig = Rig(())
    p, e = forward_kinematics(character, clip.frames)
    rest_p, rest_e = forward_kinematics(character, character.rest_q[None])
    links = {link.name: i for i, link in enumerate(character.links)}
    rigid = [i for i, name in enumerate(rig.names) if name not in links]
    if rigid:
        P, E = (_swapped(x, rigid) for x in poses_of(character, rig, clip.frames))
        rest_P, rest_E = (_swapped(x, rigid) for x in poses_of(character, rig, character.rest_q))
        p, e = np.concatenate([p, P], axis=1), np.concatenate([e, E], axis=1)
        rest_p = np.concatenate([rest_p, rest_P], axis=1)
        rest_e = np.concatenate([rest_e, rest_E], axis=1)
    names = [link.name for link in character.links] + [rig.names[i] for i in rigid]
    above = {link.name: link.parent for link in character.links}
    for joint in rig.joints:  # a parent in the source is nearer than that among the links
        above[joint.name] = rig.names[joint.parent] if joint.parent >= 0 else None
    order = _ordered(names, above)
    index = {names[old]: new for new, old in enumerate(order)}
    ends = np.array([_end(character, rig, names[i], rest_e[0, i]) for i in order])
    return Nodes(
        tuple(names[i] for i in order),
        tuple(-1 if (up := above[names[i]]) is None else index[up] for i in order),
        tuple(i if i < len(links) else -1 for i in order),
        p[:, order],
        e[:, order],
        rest_p[0, order],
        rest_e[0, order],
        rest_e[0, order],
        ends,
    )


def align_signs(quat: Floats) -> Floats:
    """Unit quaternions (k, ..., 4) whose signs go the short way from frame to frame."""
    quat = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
    flips = np.sum(quat[1:] * quat[:-1], axis=-1) < 0.0
    quat[1:] *= np.where(np.cumsum(flips, axis=0) % 2 == 1, -1.0, 1.0)[..., None]
    return quat


def _swapped(x: Floats, rows: list[int]) -> Floats:
    """Rows of poses (joints, k, c) as (k, rows, c)."""
    swapped: Floats = x[rows].transpose(1, 0, 2)
    return swapped


def _ordered(names: list[str], above: dict[str, str | None]) -> list[int]:
    """Indices depth-first, parents before children, else in the order given."""
    index = {name: i for i, name in enumerate(names)}
    below: list[list[int]] = [[] for _ in names]
    todo: list[int] = []
    for i in reversed(range(len(names))):
        up = above[names[i]]
        (todo if up is None else below[index[up]]).append(i)
    order = []
    while todo:
        order.append(todo.pop())
        todo += below[order[-1]]
    return order


def _local(parents: tuple[int, ...], p: Floats, e: Floats) -> tuple[Floats, Floats]:
    up = np.array(parents)
    inner = np.flatnonzero(up >= 0)
    p_PL, e_PL = p.copy(), e.copy()
    back = conjugate(e[:, up[inner]])
    p_PL[:, inner] = rotate(back, p[:, inner] - p[:, up[inner]])
    e_PL[:, inner] = multiply(back, e[:, inner])
    return p_PL, e_PL


def _end(character: Character, rig: Rig, name: str, R: Floats) -> Floats:
    """Where a last bone ends at rest, from its joint: as the source says, else twice its centre."""
    if name in rig.names:
        end = rig.joints[rig.names.index(name)].end
        if end is not None:
            return rig.vectors(end)
    link = next((link for link in character.links if link.name == name), None)
    return np.full(3, np.nan) if link is None else rotate(R, 2.0 * np.array(link.com))


def _turn_to(axis: Floats, way: Floats) -> Floats:
    """The shortest turn from an axis to a direction, as a quaternion."""
    way = way / np.linalg.norm(way)
    quat = np.array([1.0 + axis @ way, *np.cross(axis, way)])
    size = np.linalg.norm(quat)
    if size < 1e-6:  # half a turn, about any axis at a right angle
        return np.array([0.0, *np.roll(axis, 1)])
    turn: Floats = quat / size
    return turn
