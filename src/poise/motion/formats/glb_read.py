"""Skeleton and animation of a GLB file, as Blender and others write them.

The skeleton is the joints of a skin, or, without one, the nodes that move and what hangs on them.
Poses are those of the nodes in the world, so that scales and parents outside of the skeleton
count. With L(t) the linear part of a node's pose and L0 that at rest, L(t) L0^-1 is the rotation
away from rest in world axes, whatever way the node's own axes point and whatever its scale.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.arrays import Floats
from poise.motion.formats.glb_file import GlbFile

MOST_JOINTS = 500
MOST_POSES = 8_000_000  # frames times joints
MOST_FPS = 10_000.0
USUAL_FPS = 30.0
"""Rate of a motion whose keys are too far apart to tell one."""

SHIFT = 0.01
"""Joints that move in their parents by more than this share of the skeleton's size may slide."""

INTERPOLATIONS = ("LINEAR", "STEP", "CUBICSPLINE")
PATHS = {"translation": "VEC3", "rotation": "VEC4", "scale": "VEC3"}


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
                mix = _slerp if turns else _lerp
                found = mix(self.values[i], self.values[i + 1], u)
        if turns:
            found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found


class Motion:
    """The nodes of a file and one of its animations.

    Args:
        file: The file.
        animation: Name of the animation; None takes the first.
    """

    def __init__(self, file: GlbFile, animation: str | None = None) -> None:
        self.file = file
        self.nodes = file.items("nodes")
        if not self.nodes:
            file.fail("has no nodes, so no skeleton")
        self.parent = self._parents()
        self.order = self._order()
        self.channels = self._channels(animation)
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

    def _channels(self, animation: str | None) -> dict[int, list[Channel]]:
        animations = self.file.items("animations")
        if not animations:
            if animation is not None:
                self.file.fail(f"has no animation {animation!r}: it has none at all")
            return {}
        names = [self.file.text(a, "name", f"animation_{i}") for i, a in enumerate(animations)]
        if animation is not None and animation not in names:
            known = ", ".join(names[:40])
            self.file.fail(f"has no animation {animation!r:.80}; its animations: {known}")
        chosen = 0 if animation is None else names.index(animation)
        return self._read_channels(animations[chosen], f"animations[{chosen}]")

    def _read_channels(self, animation: dict[str, Any], at: str) -> dict[int, list[Channel]]:
        file = self.file
        samplers = file.items_of(animation, "samplers", at + ".")
        times: dict[int, Floats] = {}
        found: dict[int, list[Channel]] = {}
        for i, channel in enumerate(file.items_of(animation, "channels", at + ".")):
            here = f"{at}.channels[{i}]"
            target = channel.get("target")
            if not isinstance(target, dict):
                file.fail(f"{here}.target must be an object")
            path = target.get("path")
            if not isinstance(path, str) or path not in PATHS or "node" not in target:
                continue  # weights of meshes, and what extensions move
            node = file.index(target, "node", "nodes", here)
            number = channel.get("sampler")
            if type(number) is not int or not 0 <= number < len(samplers):
                file.fail(f"{here}.sampler must be an index into the {len(samplers)} samplers")
            if any(other.path == path for other in found.get(node, [])):
                file.fail(f"{here}: a second channel for {path} of node {node}")
            sampler = samplers[number]
            here = f"{at}.samplers[{number}]"
            clock = file.index(sampler, "input", "accessors", here)
            if clock not in times:
                times[clock] = self._times(clock)
            found.setdefault(node, []).append(self._channel(path, sampler, times[clock], here))
        return found

    def _times(self, index: int) -> Floats:
        times = self.file.accessor(index, ("SCALAR",))[:, 0]
        if np.any(np.diff(times) <= 0.0):
            row = int(np.argmax(np.diff(times) <= 0.0)) + 1
            self.file.fail(f"accessors[{index}]: time {row} is not later than the one before")
        return times

    def _channel(self, path: str, sampler: dict[str, Any], times: Floats, at: str) -> Channel:
        file = self.file
        mode = sampler.get("interpolation", "LINEAR")
        if not isinstance(mode, str) or mode not in INTERPOLATIONS:
            known = ", ".join(INTERPOLATIONS)
            file.fail(f"{at}.interpolation is {mode!r:.40}; it must be one of {known}")
        output = file.index(sampler, "output", "accessors", at)
        values = file.accessor(output, (PATHS[path],))
        per_key = 3 if mode == "CUBICSPLINE" else 1
        if len(values) != per_key * len(times):
            file.fail(
                f"{at}: accessors[{output}] has {len(values)} values; its {len(times)} times need "
                f"{per_key * len(times)}"
            )
        if np.abs(values).max() > 1e15:
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

    def _span(self) -> tuple[float, float]:
        """Time of the first key and of the last [s]."""
        times = [channel.times for channels in self.channels.values() for channel in channels]
        if not times:
            return 0.0, 0.0
        return min(float(t[0]) for t in times), max(float(t[-1]) for t in times)

    def fps(self) -> float:
        """The rate of the keys: that of the channel with the most of them [Hz]."""
        all_channels = [channel for channels in self.channels.values() for channel in channels]
        if not all_channels:
            return USUAL_FPS
        times = max((channel.times for channel in all_channels), key=len)
        steps = np.diff(times)
        # a few keys, as an animator sets them, do not tell a rate
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
        if frames * joints > MOST_POSES:
            self.file.fail(
                f"{frames:.0f} frames of {joints} joints are more than {MOST_POSES}; give fewer fps"
            )
        t = self.start + np.arange(round(frames) + 1) / fps
        # on a key to the precision of the file means on it
        keys = [c.times for channels in self.channels.values() for c in channels]
        if keys:
            dense = max(keys, key=len)
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
        return _matrices(turn) * scale[:, None, :], shift

    def place(self, nodes: Iterable[int], t: Floats | None) -> dict[int, tuple[Floats, Floats]]:
        """Nodes in the world: linear parts (n, 3, 3) and positions (n, 3); None: at rest."""
        wanted = {ancestor for node in nodes for ancestor in self.ancestors(node)}
        if len(wanted) > 2 * MOST_JOINTS:
            self.file.fail(f"a skeleton below {len(wanted)} nodes; at most {MOST_JOINTS} are read")
        placed: dict[int, tuple[Floats, Floats]] = {}
        for node in self.order:
            if node in wanted:
                L, p = self.local(node, t)
                if self.parent[node] != -1:
                    L_P, p_P = placed[self.parent[node]]
                    L, p = L_P @ L, p_P + (L_P @ p[:, :, None])[:, :, 0]
                size = max(np.abs(p).max(), np.abs(L).max())
                if not size < 1e15:
                    self.file.fail(f"nodes[{node}] has an absurd place or scale: {size:g}")
                placed[node] = L, p
        return placed

    # the skeleton

    def skeleton(self) -> list[int]:
        """The nodes that are joints, depth-first, the root first."""
        skin = self.skin()
        if skin is not None:
            joints = self.file.indices(skin, "joints", "nodes", "skin")
            chosen = self._closed(set(joints))
        else:
            chosen = self._below(self._common(set(self.channels) or set(self.order)))
        found = [node for node in self.order if node in chosen]
        if len(found) > MOST_JOINTS:
            self.file.fail(f"a skeleton of {len(found)} joints; at most {MOST_JOINTS} are read")
        return found

    def skin(self) -> dict[str, Any] | None:
        """The skin most of whose joints move; None if there is none."""
        best, most = None, -1
        for i, skin in enumerate(self.file.items("skins")):
            joints = self.file.indices(skin, "joints", "nodes", f"skins[{i}]")
            moving = sum(joint in self.channels for joint in joints)
            if joints and moving > most:
                best, most = skin, moving
        return best

    def _closed(self, joints: set[int]) -> set[int]:
        """Joints, the nodes between them, and one root above all."""
        root = self._common(joints)
        chosen = {root}
        for joint in joints:
            path = self.ancestors(joint)
            if root in path:
                chosen.update(path[: path.index(root)])
        return chosen

    def _common(self, nodes: set[int]) -> int:
        """The lowest node above all the given ones; of several trees, in that with most of them."""
        count = dict.fromkeys(self.order, 0)
        for node in nodes:
            count[node] = 1
        for node in reversed(self.order):
            if self.parent[node] != -1:
                count[self.parent[node]] += count[node]
        root = max((n for n in self.order if self.parent[n] == -1), key=lambda n: count[n])
        while root not in nodes:
            below = [c for c in self.nodes[root].get("children", []) if count[c] > 0]
            if len(below) != 1:
                break
            root = below[0]
        return root

    def _below(self, root: int) -> set[int]:
        """A node and what hangs on it; cameras and lights are no joints."""
        chosen = {root}
        for node in self.order:
            values = self.nodes[node]
            extensions = values.get("extensions")
            lamp = isinstance(extensions, dict) and "KHR_lights_punctual" in extensions
            idle = node not in self.channels and not values.get("children")
            if self.parent[node] in chosen and not (idle and ("camera" in values or lamp)):
                chosen.add(node)
        return chosen

    def rest_places(self, joints: list[int]) -> dict[int, tuple[Floats, Floats]]:
        """Where the joints rest: by the skin's inverse bind matrices, else as the nodes stand."""
        stand = self.place(joints, None)
        bound = self._bound(joints, stand)
        return {node: bound.get(node, stand[node]) for node in joints}

    def _bound(
        self, joints: list[int], stand: dict[int, tuple[Floats, Floats]]
    ) -> dict[int, tuple[Floats, Floats]]:
        """The bind pose of the skin, if it has one of the size that the nodes have.

        Bind matrices live in the world, or in the frame of the node above the skeleton.
        """
        skin = self.skin()
        if skin is None or "inverseBindMatrices" not in skin:
            return {}
        number = self.file.index(skin, "inverseBindMatrices", "accessors", "skin")
        inverse = self.file.accessor(number, ("MAT4",)).reshape(-1, 4, 4).transpose(0, 2, 1)
        nodes = skin["joints"]
        # a joint that is not in the skin has no bind pose, and its children none relative to it
        if len(inverse) < len(nodes) or not set(joints) <= {*nodes}:
            return {}
        inverse = inverse[: len(nodes)]
        scale = np.abs(inverse[:, :3, :3]).max(axis=(1, 2))
        if np.any(np.abs(np.linalg.det(inverse[:, :3, :3])) <= 1e-9 * scale**3):
            return {}
        bind = dict(zip(nodes, np.linalg.inv(inverse), strict=True))
        if not all(np.isfinite(matrix).all() for matrix in bind.values()):
            return {}
        above = self.parent[joints[0]]
        frames = [np.eye(4)]
        if above != -1:
            L, p = stand[above] if above in stand else self.place([above], None)[above]
            frames.append(np.eye(4))
            frames[1][:3, :3], frames[1][:3, 3] = L[0], p[0]
        for frame in frames:
            placed = {node: frame @ matrix for node, matrix in bind.items()}
            if self._same_size(joints, placed, stand):
                return {n: (m[None, :3, :3], m[None, :3, 3]) for n, m in placed.items()}
        return {}

    def ends(self, joints: list[int], rest: dict[int, tuple[Floats, Floats]]) -> dict[int, Floats]:
        """Ends of the last bones, from their joints, as far as they can be told.

        Files name where bones begin, not where they end. The last bone of a chain goes on along
        its own y axis if the others do, as Blender's, else straight on, half as far as the bone
        before it.
        """
        inner = {self.parent[node] for node in joints[1:]}
        along, ends = [], {}
        for node in joints[1:]:
            L, p = rest[self.parent[node]]
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
        skin = self.skin()
        known = {*self.channels, *(skin["joints"] if skin else ())}
        return {
            node: bone
            for node, bone in ends.items()
            if node in known and not self.name(node).lower().endswith(("end", "nub", "site"))
        }

    def shifts(self, node: int, joints: list[int], rest: dict[int, tuple[Floats, Floats]]) -> bool:
        """Whether a joint leaves its place in its parent, by more than files round."""
        channel = next((c for c in self.channels.get(node, []) if c.path == "translation"), None)
        if channel is None or self.parent[node] not in rest:
            return False
        L, p = rest[self.parent[node]]
        place = np.linalg.solve(L[0], rest[node][1][0] - p[0])
        values = channel.values[:, 1] if channel.mode == "CUBICSPLINE" else channel.values
        moved = np.linalg.norm((values - place) @ L[0].T, axis=1).max()
        points = np.array([rest[joint][1][0] for joint in joints])
        return bool(moved > SHIFT * np.ptp(points, axis=0).max())

    def _same_size(
        self, joints: list[int], placed: dict[int, Floats], stand: dict[int, tuple[Floats, Floats]]
    ) -> bool:
        bones = [(self.parent[node], node) for node in joints[1:]]
        a = [np.linalg.norm(placed[c][:3, 3] - placed[p][:3, 3]) for p, c in bones]
        b = [np.linalg.norm(stand[c][1][0] - stand[p][1][0]) for p, c in bones]
        return bool(abs(sum(a) - sum(b)) <= 0.02 * sum(b))


def rotations(L: Floats, L0: Floats) -> Floats:
    """Rotations nearest to L L0^-1, as quaternions w x y z, shape (n, 4)."""
    from scipy.spatial.transform import Rotation

    D = L @ np.linalg.inv(L0)
    size = np.cbrt(np.linalg.det(D))
    D = D / np.where(np.abs(size) > 1e-9, size, 1.0)[:, None, None]
    bent = np.abs(D @ D.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2)) > 1e-5
    if bent.any():
        U, _, Vt = np.linalg.svd(D[bent])
        U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
        D[bent] = U @ Vt
    quat: Floats = Rotation.from_matrix(D).as_quat()[:, [3, 0, 1, 2]]
    return quat


def _matrices(quat: Floats) -> Floats:
    """Rotation matrices of unit quaternions x y z w."""
    from poise.forest import quat_matrix

    return quat_matrix(quat[:, [3, 0, 1, 2]])


def _lerp(a: Floats, b: Floats, u: Floats) -> Floats:
    return a + u * (b - a)


def _slerp(a: Floats, b: Floats, u: Floats) -> Floats:
    """Along the shorter arc from a to b."""
    dot = np.sum(a * b, axis=1, keepdims=True)
    b = np.where(dot < 0.0, -b, b)
    angle = np.arccos(np.clip(np.abs(dot), 0.0, 1.0))
    sine = np.sin(angle)
    near = sine < 1e-4
    sine = np.where(near, 1.0, sine)
    wa = np.where(near, 1.0 - u, np.sin((1.0 - u) * angle) / sine)
    wb = np.where(near, u, np.sin(u * angle) / sine)
    return wa * a + wb * b


def _hermite(values: Floats, i: Any, h: Floats, u: Floats) -> Floats:
    """glTF's cubic: values (k, 3, c) are tangent in, value, tangent out."""
    p0, m0 = values[i, 1], h * values[i, 2]
    p1, m1 = values[i + 1, 1], h * values[i + 1, 0]
    u2, u3 = u * u, u * u * u
    at_start = (2 * u3 - 3 * u2 + 1) * p0 + (u3 - 2 * u2 + u) * m0
    found: Floats = at_start + (3 * u2 - 2 * u3) * p1 + (u3 - u2) * m1
    return found
