"""What the drives for MuJoCo share: a model, its scene, gains, and the look at data and target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.errors import PoiseError
from poise.interop.mujoco.gains import GainsLike, gains_of
from poise.interop.mujoco.sources import Source, source_of
from poise.math.arrays import Floats, choice, floats
from poise.model.character import Character
from poise.model.formats.mujoco_model import import_mujoco
from poise.model.scene import scene_of

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
