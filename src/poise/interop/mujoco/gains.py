"""Gains for a model: numbers, tables by joint, or a frequency and a damping ratio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.control.gains import HELD_KD, HELD_KP, Gains, root_slices, suggest_gains
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Floats, choice, floats, number
from poise.model.scene import Scene

ROOTS = ("free", "held")

GainsLike = ArrayLike | Mapping[str, float]


def gains_of(
    scene: Scene,
    kp: GainsLike | None,
    kd: GainsLike | None,
    frequency: ArrayLike,
    damping: ArrayLike,
    root: str,
) -> Gains:
    """Gains of a scene; see StablePD for what may be given."""
    choice(root, "root", ROOTS)
    if (kp is None) != (kd is None):
        raise PoiseError("give both kp and kd, or neither and a frequency")
    if kp is None or kd is None:
        return suggest_gains(scene, frequency, damping, root=root)
    held = root == "held"
    return Gains(
        scene,
        _spread(scene, kp, "kp", HELD_KP if held else 0.0),
        _spread(scene, kd, "kd", HELD_KD if held else 0.0),
    )


def _spread(scene: Scene, k: Any, name: str, at_root: float) -> Floats:
    """One gain per degree of freedom; arrays are taken as they are."""
    if not isinstance(k, Mapping):
        k = floats(k, name)
        if k.ndim:
            return np.asarray(k)
    out = np.zeros(scene.nv) if isinstance(k, Mapping) else np.full(scene.nv, float(k))
    for at in root_slices(scene):
        out[at] = at_root
    if isinstance(k, Mapping):
        for joint, value in k.items():
            at = _slice(scene, joint)
            out[at] = number(value, f"{name}[{joint!r}]", positive=False, unit="N·m/rad")
    return out


def _slice(scene: Scene, joint: str) -> slice:
    """Velocities of a joint."""
    forest = scene.forest
    if joint not in forest.joint_names:
        raise PoiseError(unknown_name("joint", joint, forest.joint_names))
    b = forest.joint_names.index(joint)
    v = int(forest.v_adr[b])
    return slice(v, v + (6, 3, 1, 1)[int(forest.kind[b])])
