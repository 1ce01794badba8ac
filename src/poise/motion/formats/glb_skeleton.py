"""The skeleton in a glTF file: which nodes are joints, where they rest, where bones end.

The joints are those of a skin and of the skins that share bones with it, and the nodes between
them; without a skin, the nodes that move and what hangs on them.

Joints without length or mass are merged into their parents for the dynamics. In a written file
they are there again, rigid, with the names and the hierarchy of the source; as in BVH.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from poise.anatomy.rig import Rig, poses_of
from poise.dynamics import forward_kinematics
from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply, rotate
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.formats.glb_animation import MOST_JOINTS, Motion

SHIFT = 0.01
"""Joints that move in their parents by more than this share of the skeleton's size may slide."""

Places = dict[int, tuple[Floats, Floats]]
"""Linear part (1, 3, 3) and position (1, 3) of each node."""


class Skeleton:
    """The joints of a motion.

    Args:
        motion: The nodes of a file.

    Attributes:
        joints: Nodes that are joints, depth-first, the root first.
        rest: Where they rest: as a skin binds them, else as the nodes stand.
    """

    def __init__(self, motion: Motion) -> None:
        self.motion = motion
        self.skins = self._skins()
        self.skinned = {node for nodes, _ in self.skins for node in nodes}
        if self.skins:
            chosen = self._closed(self.skinned)
        else:
            chosen = self._below(self._common(set(motion.channels) or set(motion.order)))
        self.joints = [node for node in motion.order if node in chosen]
        self._check(len(self.joints))
        stand = motion.place(self.joints, None)
        bound = self._bound(stand)
        self.rest: Places = {node: bound.get(node, stand[node]) for node in self.joints}
        for node, (L, _) in self.rest.items():
            if _is_singular(L[0]):
                motion.file.fail(f"nodes[{node}] ({motion.name(node)!r}) has a scale of zero")
        self._size = np.ptp([p[0] for _, p in self.rest.values()], axis=0).max()
        self._keep_places()

    def _check(self, count: int) -> None:
        if count > MOST_JOINTS:
            self.motion.file.fail(f"a skeleton of {count} joints; at most {MOST_JOINTS} are read")

    # which nodes

    def _skins(self) -> list[tuple[list[int], dict[str, Any]]]:
        """Joints and skin: that most of whose joints move first, then those that share bones."""
        motion, found = self.motion, []
        for i, skin in enumerate(motion.file.items("skins")):
            joints = motion.file.indices(skin, "joints", "nodes", f"skins[{i}]")
            if joints:
                found.append((joints, skin))
        if not found:
            return []
        found.sort(key=lambda entry: -sum(joint in motion.channels for joint in entry[0]))
        # a skin belongs to the same body if it uses its bones, or hangs on one of them
        bones = self._closed(set(found[0][0]))
        below = set(bones)
        below.update(node for node in motion.order if motion.parent[node] in below)
        chosen = found[:1]
        for joints, skin in found[1:]:
            if joints[0] in below or any(joint in bones for joint in joints):
                chosen.append((joints, skin))
                bones.update(joints)
                self._check(len(bones))
        return chosen

    def _closed(self, joints: set[int]) -> set[int]:
        """Joints, the nodes between them, and one root above all."""
        self._check(len(joints))
        root = self._common(joints)
        chosen, outside = {root}, {-1}
        for joint in joints:
            path, node = [], joint
            while node not in chosen and node not in outside:
                path.append(node)
                node = self.motion.parent[node]
            (chosen if node in chosen else outside).update(path)
        return chosen

    def _common(self, nodes: set[int]) -> int:
        """The lowest node above all the given ones; of several trees, in that with most of them."""
        order, parent = self.motion.order, self.motion.parent
        count = dict.fromkeys(order, 0)
        for node in nodes:
            count[node] = 1
        for node in reversed(order):
            if parent[node] != -1:
                count[parent[node]] += count[node]
        root = max((n for n in order if parent[n] == -1), key=lambda n: count[n])
        while root not in nodes:
            below = [c for c in self.motion.nodes[root].get("children", []) if count[c] > 0]
            if len(below) != 1:
                break
            root = below[0]
        return root

    def _below(self, root: int) -> set[int]:
        """A node and what hangs on it; cameras and lights are no joints."""
        motion, chosen = self.motion, {root}
        for node in motion.order:
            values = motion.nodes[node]
            extensions = values.get("extensions")
            lamp = isinstance(extensions, dict) and "KHR_lights_punctual" in extensions
            idle = node not in motion.channels and not values.get("children")
            if motion.parent[node] in chosen and not (idle and ("camera" in values or lamp)):
                chosen.add(node)
        return chosen

    # where they rest

    def _bound(self, stand: Places) -> Places:
        """The bind pose, if there is one of the size that the nodes have.

        Bind matrices live in the world, or in the frame of the node above the first joint. Joints
        that no skin binds stay in their parents as they stand.
        """
        bind: dict[int, Floats] = {}
        for nodes, skin in self.skins:
            bind = {**self._bind(nodes, skin), **bind}
        first = next((node for node in self.joints if node in bind), None)
        if first is None:
            return {}
        frames = [np.eye(4)]
        above = self.motion.parent[first]
        if above != -1:
            frames.append(_matrix(self.motion.place([above], None)[above]))
        for frame in frames:
            placed = {node: frame @ bind[node] for node in self.joints if node in bind}
            if self._same_size(placed, stand):
                for node in self.joints[self.joints.index(first) :]:
                    up = self.motion.parent[node]
                    if node not in placed and up in placed and not _is_singular(stand[up][0][0]):
                        own = np.linalg.solve(_matrix(stand[up]), _matrix(stand[node]))
                        placed[node] = placed[up] @ own
                return {n: (m[None, :3, :3], m[None, :3, 3]) for n, m in placed.items()}
        return {}

    def _bind(self, nodes: list[int], skin: dict[str, Any]) -> dict[int, Floats]:
        """Bind matrices of one skin; none if they are missing or cannot be inverted."""
        file = self.motion.file
        if "inverseBindMatrices" not in skin:
            return {}
        number = file.index(skin, "inverseBindMatrices", "accessors", "skin")
        inverse = file.numbers.accessor(number, ("MAT4",)).reshape(-1, 4, 4).transpose(0, 2, 1)
        inverse = inverse[: len(nodes)].copy()
        if len(inverse) < len(nodes) or np.abs(inverse).max() > 1e15:
            return {}
        if any(_is_singular(matrix[:3, :3]) for matrix in inverse):
            return {}
        inverse = np.concatenate(
            [inverse[:, :3], np.tile([[[0.0, 0, 0, 1]]], (len(nodes), 1, 1))], 1
        )
        matrices = np.linalg.inv(inverse)
        return dict(zip(nodes, matrices, strict=True)) if np.isfinite(matrices).all() else {}

    def _same_size(self, placed: dict[int, Floats], stand: Places) -> bool:
        """Whether bones are as long in both."""
        parent = self.motion.parent
        bones = [(parent[node], node) for node in placed if parent[node] in placed]
        a = sum(np.linalg.norm(placed[c][:3, 3] - placed[p][:3, 3]) for p, c in bones)
        b = sum(np.linalg.norm(stand[c][1][0] - stand[p][1][0]) for p, c in bones)
        return bool(abs(a - b) <= 0.02 * b)

    def _keep_places(self) -> None:
        """Put joints that do not slide where they are in their parents while the file moves.

        Bones can be longer or shorter there than where the skin was bound.
        """
        for node in self.joints[1:]:
            L, p = self.rest[self.motion.parent[node]]
            values = self._translations(node)
            place = np.median(values, axis=0)
            if np.linalg.norm((values - place) @ L[0].T, axis=1).max() <= SHIFT * self._size:
                self.rest[node] = (self.rest[node][0], p + L[0] @ place)

    def _translations(self, node: int) -> Floats:
        """Where a node is in its parent, at the keys of the animation, shape (k, 3)."""
        for channel in self.motion.channels.get(node, []):
            if channel.path == "translation":
                cubic = channel.mode == "CUBICSPLINE"
                return channel.values[:, 1] if cubic else channel.values
        return self.motion.local(node, None)[1]

    # ends and slides

    def ends(self) -> dict[int, Floats]:
        """Ends of the last bones, from their joints, as far as they are known.

        Files name where bones begin, not where they end. The last bone of a chain goes on along
        its own y axis if the others do, as Blender's, else straight on, half as far as the bone
        before it.
        """
        motion, rest = self.motion, self.rest
        inner = {motion.parent[node] for node in self.joints[1:]}
        along, ends = [], {}
        for node in self.joints[1:]:
            L, p = rest[motion.parent[node]]
            bone, y = rest[node][1][0] - p[0], L[0][:, 1]
            size = np.linalg.norm(bone) * np.linalg.norm(y)
            if size > 0.0:
                along.append(bone @ y / size)
            if node not in inner:
                ends[node] = 0.5 * bone
        if along and np.median(along) > 0.9:
            for node, bone in ends.items():
                y = rest[node][0][0][:, 1]
                ends[node] = y / np.linalg.norm(y) * np.linalg.norm(bone)
        known = {*motion.channels, *self.skinned}
        return {
            node: bone
            for node, bone in ends.items()
            if node in known and not motion.name(node).lower().endswith(("end", "nub", "site"))
        }

    def shifts(self, node: int) -> bool:
        """Whether a joint leaves its place in its parent, by more than files round."""
        if self.motion.parent[node] not in self.rest:
            return False
        L, p = self.rest[self.motion.parent[node]]
        place = np.linalg.solve(L[0], self.rest[node][1][0] - p[0])
        moved = np.linalg.norm((self._translations(node) - place) @ L[0].T, axis=1).max()
        return bool(moved > SHIFT * self._size)


def _matrix(place: tuple[Floats, Floats]) -> Floats:
    """A place as one matrix, 4x4."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = place[0][0], place[1][0]
    return X


def _is_singular(L: Floats) -> bool:
    """Whether a linear map has no inverse worth the name."""
    return not abs(np.linalg.det(L)) > 1e-9 * np.abs(L).max() ** 3


# writing


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
        rest = np.array([_rotation_to(np.array(axis), bone) for bone in self._bones()])
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
        P, E = (_frames_first(x, rigid) for x in poses_of(character, rig, clip.frames))
        rest_P, rest_E = (
            _frames_first(x, rigid) for x in poses_of(character, rig, character.rest_q)
        )
        p, e = np.concatenate([p, P], axis=1), np.concatenate([e, E], axis=1)
        rest_p = np.concatenate([rest_p, rest_P], axis=1)
        rest_e = np.concatenate([rest_e, rest_E], axis=1)
    names = [link.name for link in character.links] + [rig.names[i] for i in rigid]
    above = {link.name: link.parent for link in character.links}
    for joint in rig.joints:  # a parent in the source is nearer than that among the links
        above[joint.name] = rig.names[joint.parent] if joint.parent >= 0 else None
    order = _depth_first(names, above)
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


def _frames_first(x: Floats, rows: list[int]) -> Floats:
    """Rows of poses (joints, k, c) as (k, rows, c)."""
    swapped: Floats = x[rows].transpose(1, 0, 2)
    return swapped


def _depth_first(names: list[str], above: dict[str, str | None]) -> list[int]:
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
    """Where a last bone ends at rest, from its joint: as the source says, else twice its center."""
    if name in rig.names:
        end = rig.joints[rig.names.index(name)].end
        if end is not None:
            return rig.vectors(end)
    link = next((link for link in character.links if link.name == name), None)
    return np.full(3, np.nan) if link is None else rotate(R, 2.0 * np.array(link.com))


def _rotation_to(axis: Floats, way: Floats) -> Floats:
    """The shortest turn from an axis to a direction, as a quaternion."""
    way = way / np.linalg.norm(way)
    quat = np.array([1.0 + axis @ way, *np.cross(axis, way)])
    size = np.linalg.norm(quat)
    if size < 1e-6:  # half a turn, about any axis at a right angle
        return np.array([0.0, *np.roll(axis, 1)])
    turn: Floats = quat / size
    return turn
