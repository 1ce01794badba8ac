"""Controllers by their names, as the command line and the studio choose them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.control.gains import FREQUENCY
from poise.control.inverse_dynamics import InverseDynamics
from poise.control.pd import PD
from poise.control.plant import PartLike
from poise.control.stable_pd import StablePD
from poise.errors import PoiseError, unknown_name
from poise.model.scene import SceneLike
from poise.simulation.command import Command

DEFAULT = "spd"

Controller = Callable[[Any, Any], Command]
"""(state, target) -> Command."""


class Named(NamedTuple):
    """A controller that can be asked for.

    Attributes:
        description: What it is, in one line.
        make: Makes it, from a scene and the options of `named_controller`.
    """

    description: str
    make: Callable[..., Controller]


def _compensated(source: SceneLike, **options: Any) -> PD:
    return PD(source, gravity_compensation=True, bubble_up=True, feedforward=True, **options)


def _standalone(source: SceneLike, **options: Any) -> StablePD:
    return StablePD(source, embedded=False, **options)


def _kane(
    source: SceneLike,
    *,
    root: str = "free",
    frequency: ArrayLike = FREQUENCY,
    damping: ArrayLike = 1.0,
    part: PartLike = None,
) -> InverseDynamics:
    stiffness = (2.0 * np.pi * np.asarray(frequency, dtype=np.float64)) ** 2
    return InverseDynamics(source, stiffness, damping=damping, root=root, part=part)


CONTROLLERS: dict[str, Named] = {
    "spd": Named("stable PD inside the dynamics: any gains at any step (yin2020)", StablePD),
    "spd-torque": Named(
        "stable PD as torques, for any engine: it does not see contact (yin2020, standalone)",
        _standalone,
    ),
    "pd": Named("explicit PD: simple, and unstable at large steps", PD),
    "pd-full": Named(
        "explicit PD with gravity compensation, bubble-up and feedforward (kavafoglu2018, 2.2)",
        _compensated,
    ),
    "kane": Named(
        "inverse dynamics by Kane's method: one stiffness for all joints (kavafoglu2018)", _kane
    ),
}


def named_controller(
    name: str,
    source: SceneLike,
    *,
    root: str = "free",
    frequency: ArrayLike | None = None,
    damping: ArrayLike | None = None,
    part: PartLike = None,
) -> Controller:
    """A controller by its name.

    Args:
        name: One of CONTROLLERS.
        source: The world, or a character.
        root: What holds free roots: "free", "soft" or "held"; see `poise.control.servo.Servo`.
        frequency: Natural frequency of the joints [Hz], a number or shape (nv,); None is the
            controller's own.
        damping: Damping ratio, 1 is critical, shaped alike; None is the controller's own.
        part: Which parts of the scene it acts on; None is all characters.
    """
    given = {"frequency": frequency, "damping": damping}
    options = {key: value for key, value in given.items() if value is not None}
    return named(name).make(source, root=root, part=part, **options)


def named(name: str) -> Named:
    """What there is under a name; a wrong one lists the near ones."""
    if name not in CONTROLLERS:
        raise PoiseError(unknown_name("controller", name, CONTROLLERS))
    return CONTROLLERS[name]
