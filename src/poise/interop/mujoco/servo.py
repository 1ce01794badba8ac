"""What the drives for MuJoCo share: a model, its scene, gains, and the look at data and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.control.gains import HELD_KD, HELD_KP, Gains, root_slices, suggest_gains
from poise.errors import PoiseError, unknown_name
from poise.interop.mujoco.states import Source, source_of
from poise.math.arrays import Floats, choice, floats, number
from poise.model.character import Character
from poise.model.formats.mujoco_model import import_mujoco
from poise.model.scene import Scene, scene_of

NOTHING: Any = object()


class Servo:
    """A model and the gains of its joints.

    Args:
        model: A mujoco.MjModel.
        characters: Those of the model, one for each tree that moves.
        kp: As of StablePD; so are the others.
    """

    def __init__(
        self,
        model: Any,
        characters: Sequence[Character],
        kp: GainsLike | None,
        kd: GainsLike | None,
        frequency: ArrayLike,
        damping: ArrayLike,
        root: str,
        form: str,
    ) -> None:
        self.model = model
        self.scene = scene_of(characters)
        self.gains = gains_of(self.scene, kp, kd, frequency, damping, root)
        self.form = dynamics.FORMS[choice(form, "form", dynamics.FORMS)]
        # the model's own, which change with it
        self._option = model.opt
        self._gravity: Floats = np.zeros(3) if _weightless(model) else model.opt.gravity
        self._data: Any = NOTHING
        self._source: Any = NOTHING

    @property
    def dt(self) -> float:
        """Time step of the model [s]."""
        dt: float = self._option.timestep
        return dt

    def _of_model(self, model: Any, data: Any, target: Any) -> tuple[Any, Any]:
        """Data and target of a call that begins with the model."""
        if model is not self.model:
            raise PoiseError(
                "this servo was made from another model: call it as servo(data, target), or as "
                "servo(model, data, target) with the model it was made from"
            )
        return data, target

    def _look_at(self, data: Any) -> Source:
        """The arrays behind data, kept where they stay the same."""
        source = source_of(data)
        nq, nv = self.scene.nq, self.scene.nv
        q, v = source.q, source.v
        if q.shape[-1:] != (nq,) or v.shape[-1:] != (nv,):
            raise PoiseError(
                f"q has shape {q.shape} and v {v.shape}; this model has nq = {nq} and nv = {nv}"
            )
        if source.steady:
            self._data, self._source = data, source
        return source


def pair_of(target: Any) -> tuple[Floats, Floats | None]:
    """Positions and velocities of a target; the latter may be None."""
    if type(target) is np.ndarray:
        return target, None
    if type(target) is tuple and len(target) == 2:
        q, v = target
    elif hasattr(target, "q"):
        q, v = target.q, target.v if getattr(target, "moving", True) else None
    else:
        q, v = target, None
    return floats(q, "target.q"), None if v is None else floats(v, "target.v")


def _weightless(model: Any) -> bool:
    """Whether the model's options turn gravity off."""
    return bool(int(model.opt.disableflags) & int(import_mujoco().mjtDisableBit.mjDSBL_GRAVITY))


# ---- gains of a model: numbers, tables by joint, or a frequency and a damping ratio

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
