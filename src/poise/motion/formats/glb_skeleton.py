"""The nodes of a glTF file, how they move, and the skeleton that they are.

Poses are those of the nodes in the world, so that scales and parents outside of the skeleton
count. With L(t) the linear part of a node's pose and L0 that at rest, L(t) L0^-1 is the rotation
away from rest in world axes, whatever way the node's own axes point and whatever its scale.

The joints are those of a skin and of the skins that share bones with it, and the nodes between
them; without a skin, the nodes that move and what hangs on them.

Joints without length or mass are merged into their parents for the dynamics. In a written file
they are there again, rigid, with the names and the hierarchy of the source; as in BVH.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.math.rotation import quat_from_matrix, quat_matrix, slerp
from poise.motion.formats.glb_file import GlbFile

INTERPOLATIONS = ("LINEAR", "STEP", "CUBICSPLINE")
PATHS = {"translation": "VEC3", "rotation": "VEC4", "scale": "VEC3"}
LARGEST = 1e15
"""Numbers beyond this are absurd."""

Channels = dict[int, list["Channel"]]
"""The channels of each node that moves."""


@dataclass(frozen=True)
class Channel:
    """How one property of a node goes with time."""

    path: str  # translation, rotation or scale
    mode: str  # LINEAR, STEP or CUBICSPLINE
    times: Floats  # [s], increasing, shape (k,)
    values: Floats  # shape (k, c); of a cubic (k, 3, c): tangent in, value, tangent out

    def at(self, t: Floats) -> Floats:
        """Values at times t, shape (n, c)."""
        turns = self.path == "rotation"
        if len(self.times) == 1:
            value = self.values[:, 1] if self.mode == "CUBICSPLINE" else self.values
            found = np.repeat(value, len(t), axis=0)
        elif self.mode == "STEP":
            found = self.values[np.clip(np.searchsorted(self.times, t, "right") - 1, 0, None)]
        else:
            i = np.clip(np.searchsorted(self.times, t, "right") - 1, 0, len(self.times) - 2)
            h = (self.times[i + 1] - self.times[i])[:, None]
            u = np.clip((t - self.times[i])[:, None] / h, 0.0, 1.0)
            if self.mode == "CUBICSPLINE":
                found = _hermite(self.values, i, h, u)
            else:
                a, b = self.values[i], self.values[i + 1]
                found = slerp(a, b, u) if turns else a + u * (b - a)
        if turns:
            found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found


def choose(file: GlbFile, animation: str | int | None) -> int:
    """Index of the chosen animation; -1 if the file has none and none is given.

    Args:
        file: The file.
        animation: Name or number, from 0; None is the first.
    """
    names = animation_names(file)
    if animation is None:
        return 0 if names else -1
    if isinstance(animation, str) and animation in names:
        return names.index(animation)
    number = int(animation) if str(animation).isdecimal() and len(str(animation)) < 9 else -1
    if isinstance(animation, bool) or not 0 <= number < len(names):
        known = ", ".join(f"{i} {name}" for i, name in enumerate(names[:40])) or "none at all"
        file.fail(f"has no animation {animation!r:.80}; its animations: {known}")
    return number


def animation_names(file: GlbFile) -> list[str]:
    """Names of all animations, made up for those without."""
    found = file.items("animations")
    return [file.text(a, "name", f"animation_{i}") for i, a in enumerate(found)]


def read_channels(file: GlbFile, number: int) -> Channels:
    """The channels of one animation that move nodes; others, such as weights, are left out."""
    animation, at = file.items("animations")[number], f"animations[{number}]"
    samplers = file.items_of(animation, "samplers", at + ".")
    times: dict[int, Floats] = {}
    found: Channels = {}
    for i, channel in enumerate(file.items_of(animation, "channels", at + ".")):
        here = f"{at}.channels[{i}]"
        target = channel.get("target")
        if not isinstance(target, dict):
            file.fail(f"{here}.target must be an object")
        path = target.get("path")
        if path == "pointer" and "/nodes/" in str(target.get("extensions")):
            file.fail(f"{here} moves a node by KHR_animation_pointer; export without it")
        if not isinstance(path, str) or path not in PATHS or "node" not in target:
            continue
        node = file.index(target, "node", "nodes", here)
        which = channel.get("sampler")
        if type(which) is not int or not 0 <= which < len(samplers):
            file.fail(f"{here}.sampler must be an index into the {len(samplers)} samplers")
        if any(other.path == path for other in found.get(node, [])):
            file.fail(f"{here}: a second channel for {path} of node {node}")
        here = f"{at}.samplers[{which}]"
        clock = file.index(samplers[which], "input", "accessors", here)
        if clock not in times:
            times[clock] = _times(file, clock)
        made = _channel(file, path, samplers[which], times[clock], here)
        found.setdefault(node, []).append(made)
    return found


def _times(file: GlbFile, index: int) -> Floats:
    times = file.numbers.accessor(index, ("SCALAR",))[:, 0]
    if np.any(np.diff(times) <= 0.0):
        row = int(np.argmax(np.diff(times) <= 0.0)) + 1
        file.fail(f"accessors[{index}]: time {row} is not later than the one before")
    return times


def _channel(file: GlbFile, path: str, sampler: dict[str, Any], times: Floats, at: str) -> Channel:
    mode = sampler.get("interpolation", "LINEAR")
    if not isinstance(mode, str) or mode not in INTERPOLATIONS:
        known = ", ".join(INTERPOLATIONS)
        file.fail(f"{at}.interpolation is {mode!r:.40}; it must be one of {known}")
    output = file.index(sampler, "output", "accessors", at)
    values = file.numbers.accessor(output, (PATHS[path],))
    per_key = 3 if mode == "CUBICSPLINE" else 1
    if len(values) != per_key * len(times):
        file.fail(
            f"{at}: accessors[{output}] has {len(values)} values; its {len(times)} times need "
            f"{per_key * len(times)}"
        )
    if np.abs(values).max() > LARGEST:
        file.fail(f"accessors[{output}] holds {np.abs(values).max():g}, which is absurd")
    if per_key == 3:
        values = values.reshape(len(times), 3, -1)
    if path == "rotation":
        length = np.linalg.norm(values[:, 1] if per_key == 3 else values, axis=1)
        if length.min() < 1e-3:
            row = int(np.argmin(length))
            file.fail(f"accessors[{output}]: quaternion {row} has length {length[row]:g}")
        if per_key == 1:
            values = values / length[:, None]
    return Channel(path, mode, times, values)


def _hermite(values: Floats, i: Any, h: Floats, u: Floats) -> Floats:
    """glTF's cubic: values (k, 3, c) are tangent in, value, tangent out."""
    p0, m0 = values[i, 1], h * values[i, 2]
    p1, m1 = values[i + 1, 1], h * values[i + 1, 0]
    u2, u3 = u * u, u * u * u
    at_start = (2 * u3 - 3 * u2 + 1) * p0 + (u3 - 2 * u2 + u) * m0
    found: Floats = at_start + (3 * u2 - 2 * u3) * p1 + (u3 - u2) * m1
    return found


MOST_JOINTS = 500
MOST_POSES = 4_000_000
"""Frames times joints that are read; about 3 s and 100 MB for each million."""

FREE_POSES, POSES_PER_KEY = 500_000, 20
"""Frames times joints that a file gets whatever its keys are, and more for each of its keys: a few
keys far from each other in time are no long motion."""

MOST_FPS = 10_000.0
USUAL_FPS = 30.0
"""Rate of a motion with too few keys to show one."""


class Motion:
    """The nodes of a file and one of its animations.

    Args:
        file: The file.
        animation: Name or number of the animation; None takes the first.
    """

    def __init__(self, file: GlbFile, animation: str | int | None = None) -> None:
        self.file = file
        self.nodes = file.items("nodes")
        if not self.nodes:
            file.fail("has no nodes, so no skeleton")
        self.parent = self._parents()
        self.order = self._order()
        number = choose(file, animation)
        self.title = "" if number < 0 else animation_names(file)[number]
        self.channels: Channels = {} if number < 0 else read_channels(file, number)
        self.start, self.end = self._span()

    # the tree of nodes

    def _parents(self) -> list[int]:
        parent = [-1] * len(self.nodes)
        for i, node in enumerate(self.nodes):
            for child in self.file.indices(node, "children", "nodes", f"nodes[{i}]"):
                if parent[child] != -1:
                    self.file.fail(f"nodes[{child}] has two parents: {parent[child]} and {i}")
                parent[child] = i
        return parent

    def _order(self) -> list[int]:
        """All nodes, depth-first, parents before children."""
        order: list[int] = []
        stack = [i for i in reversed(range(len(self.nodes))) if self.parent[i] == -1]
        while stack:
            order.append(stack.pop())
            stack += reversed(self.nodes[order[-1]].get("children", []))
        if len(order) < len(self.nodes):
            lost = min(set(range(len(self.nodes))) - set(order))
            self.file.fail(f"nodes[{lost}] is its own ancestor: nodes must form a tree")
        return order

    def ancestors(self, node: int) -> list[int]:
        """A node, its parent and so on to the root."""
        path = [node]
        while self.parent[path[-1]] != -1:
            path.append(self.parent[path[-1]])
        return path

    def name(self, node: int) -> str:
        """The name of a node, made up if it has none."""
        return self.file.text(self.nodes[node], "name", f"node_{node}")

    # the animation

    @cached_property
    def key_times(self) -> list[Floats]:
        """Times of the keys of each channel [s]."""
        return [channel.times for channels in self.channels.values() for channel in channels]

    def _span(self) -> tuple[float, float]:
        """Time of the first key and of the last [s]."""
        starts, ends = ([float(t[k]) for t in self.key_times] for k in (0, -1))
        return min(starts, default=0.0), max(ends, default=0.0)

    def fps(self) -> float:
        """The rate of the keys: that of the channel with the most of them [Hz]."""
        times = max(self.key_times, key=len, default=np.zeros(0))
        steps = np.diff(times)
        # a few keys, as an animator sets them, show no rate
        if len(steps) == 0 or np.median(steps) > 0.11:
            return USUAL_FPS
        step = float(np.median(steps))
        if np.ptp(steps) < 0.02 * step:
            step = float(times[-1] - times[0]) / len(steps)
        fps = 1.0 / max(step, 1e-9)
        # times have 24 bits: 30.00002 is 30
        return float(round(fps)) if abs(fps - round(fps)) < 2e-4 * fps and fps > 1.0 else fps

    def times(self, fps: float, joints: int) -> Floats:
        """Times of uniform frames from the first key to the last [s]."""
        if not 0.0 < fps <= MOST_FPS:
            self.file.fail(f"a rate of {fps:g} frames per second is absurd; give fps")
        frames = (self.end - self.start) * fps
        keys = sum(map(len, self.key_times))
        most = min(MOST_POSES, FREE_POSES + POSES_PER_KEY * keys)
        if frames * joints > most:
            self.file.fail(
                f"{keys} keys over {self.end - self.start:.6g} s: at {fps:g} fps {frames:.6g} "
                f"frames of {joints} joints, at most {most // joints} are read; give fewer fps"
            )
        t = self.start + np.arange(round(frames) + 1) / fps
        # on a key to the precision of the file means on it
        if self.key_times:
            dense = max(self.key_times, key=len)
            near = np.clip(np.searchsorted(dense, t), 1, max(len(dense) - 1, 1))
            for i in (near - 1, np.minimum(near, len(dense) - 1)):
                close = np.abs(dense[i] - t) < 1e-3 / fps + 2e-7 * np.abs(t)
                t = np.where(close, dense[i], t)
        return t

    # poses

    def rest(self, node: int) -> tuple[Floats, Floats, Floats] | Floats:
        """A node's own translation, rotation (x y z w) and scale; or its matrix, 4x4."""
        values, at = self.nodes[node], f"nodes[{node}]"
        if "matrix" in values:
            flat = self.file.vector(values, "matrix", np.eye(4).ravel().tolist(), at)
            return np.ascontiguousarray(flat.reshape(4, 4).T)
        t = self.file.vector(values, "translation", [0.0] * 3, at)
        r = self.file.vector(values, "rotation", [0.0, 0.0, 0.0, 1.0], at)
        s = self.file.vector(values, "scale", [1.0] * 3, at)
        if np.linalg.norm(r) < 1e-3:
            self.file.fail(f"{at}.rotation has length zero; a quaternion has length one")
        return t, r / np.linalg.norm(r), s

    def local(self, node: int, t: Floats | None) -> tuple[Floats, Floats]:
        """A node in its parent: linear parts (n, 3, 3) and positions (n, 3); None: at rest."""
        rest = self.rest(node)
        channels = {} if t is None else {c.path: c for c in self.channels.get(node, [])}
        n = 1 if t is None else len(t)
        if isinstance(rest, np.ndarray):
            if channels:
                self.file.fail(f"nodes[{node}] has a matrix and is animated; it must have TRS")
            return np.repeat(rest[None, :3, :3], n, axis=0), np.repeat(rest[None, :3, 3], n, axis=0)
        parts = []
        for path, value in zip(PATHS, rest, strict=True):
            if t is not None and path in channels:
                parts.append(channels[path].at(t))
            else:
                parts.append(np.repeat(value[None], n, axis=0))
        shift, turn, scale = parts
        return quat_matrix(turn[:, [3, 0, 1, 2]]) * scale[:, None, :], shift

    def place(self, nodes: Iterable[int], t: Floats | None) -> dict[int, tuple[Floats, Floats]]:
        """Nodes in the world: linear parts (n, 3, 3) and positions (n, 3); None: at rest."""
        desired = {ancestor for node in nodes for ancestor in self.ancestors(node)}
        if len(desired) > 2 * MOST_JOINTS:
            self.file.fail(f"a skeleton below {len(desired)} nodes; at most {MOST_JOINTS} are read")
        placed: dict[int, tuple[Floats, Floats]] = {}
        for node in self.order:
            if node in desired:
                L, p = self.local(node, t)
                if self.parent[node] != -1:
                    L_P, p_P = placed[self.parent[node]]
                    L, p = L_P @ L, p_P + (L_P @ p[:, :, None])[:, :, 0]
                size = max(np.abs(p).max(), np.abs(L).max())
                if not size < 1e15:
                    self.file.fail(f"nodes[{node}] has an absurd place or scale: {size:g}")
                placed[node] = L, p
        return placed


def rotations(L: Floats, L0: Floats) -> Floats:
    """Rotations nearest to L L0^-1, as quaternions w x y z, shape (n, 4)."""
    D = L @ np.linalg.inv(L0)
    size = np.cbrt(np.linalg.det(D))
    D = D / np.where(np.abs(size) > 1e-9, size, 1.0)[:, None, None]
    bent = np.abs(D @ D.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2)) > 1e-5
    if bent.any():
        U, _, Vt = np.linalg.svd(D[bent])
        U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
        D[bent] = U @ Vt
    return quat_from_matrix(D)


# the joints

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
