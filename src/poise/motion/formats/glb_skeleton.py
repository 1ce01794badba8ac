"""The skeleton in a glTF file: which nodes are joints, where they rest, where bones end.

The joints are those of a skin and of the skins that share bones with it, and the nodes between
them; without a skin, the nodes that move and what hangs on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.motion.formats.glb_read import MOST_JOINTS, Motion

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
            if _flat(L[0]):
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
                    if node not in placed and up in placed and not _flat(stand[up][0][0]):
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
        if any(_flat(matrix[:3, :3]) for matrix in inverse):
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

    # what else they tell

    def ends(self) -> dict[int, Floats]:
        """Ends of the last bones, from their joints, as far as they can be told.

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


def _flat(L: Floats) -> bool:
    """Whether a linear map has no inverse worth the name."""
    return not abs(np.linalg.det(L)) > 1e-9 * np.abs(L).max() ** 3
