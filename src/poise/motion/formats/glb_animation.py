"""The nodes of a glTF file and how they move: their tree, and their poses in the world.

Poses are those of the nodes in the world, so that scales and parents outside of the skeleton
count. With L(t) the linear part of a node's pose and L0 that at rest, L(t) L0^-1 is the rotation
away from rest in world axes, whatever way the node's own axes point and whatever its scale.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
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
                mix = _slerp if turns else _lerp
                found = mix(self.values[i], self.values[i + 1], u)
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


MOST_JOINTS = 500
MOST_POSES = 4_000_000
"""Frames times joints that are read; about 3 s and 100 MB for each million."""

FREE_POSES, POSES_PER_KEY = 500_000, 20
"""Frames times joints that a file gets whatever its keys are, and more for each of its keys: a few
keys an age apart are no long motion."""

MOST_FPS = 10_000.0
USUAL_FPS = 30.0
"""Rate of a motion with keys too far apart to show one."""


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
        all_keys = [c.times for channels in self.channels.values() for c in channels]
        keys = sum(map(len, all_keys))
        most = min(MOST_POSES, FREE_POSES + POSES_PER_KEY * keys)
        if frames * joints > most:
            self.file.fail(
                f"{keys} keys over {self.end - self.start:.6g} s: at {fps:g} fps {frames:.6g} "
                f"frames of {joints} joints, at most {most // joints} are read; give fewer fps"
            )
        t = self.start + np.arange(round(frames) + 1) / fps
        # on a key to the precision of the file means on it
        if all_keys:
            dense = max(all_keys, key=len)
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
