"""One animation of a glTF file: how the properties of its nodes go with time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.math.arrays import Floats
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
    """Which animation of a file is meant; -1 where it has none and none is asked for.

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
