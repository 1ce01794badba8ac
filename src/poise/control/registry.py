"""Controllers by name, with their options: the command line, the studio and Python read this table.

A new controller is one class and one entry of CONTROLLERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.control.balance.balance import Balance
from poise.control.balance.config import BalanceOptions
from poise.control.gains import FREQUENCY, ROOTS
from poise.control.inverse_dynamics import InverseDynamics
from poise.control.options import ControllerOptions, option
from poise.control.pd import PD
from poise.control.plant import PartLike, Plant
from poise.control.stable_pd import StablePD
from poise.dynamics import FORMS, METHODS
from poise.errors import check_known
from poise.model.scene import SceneLike
from poise.simulation.controller import Controller

DEFAULT = "spd"


@dataclass(frozen=True)
class ServoOptions(ControllerOptions):
    """Options of the controllers that pull joints to a target."""

    root: str = option(
        "free", "Root: unactuated, soft spring, or stiff spring.", kind="word", words=ROOTS
    )
    frequency: ArrayLike = option(
        FREQUENCY,
        "Natural frequency of the joints.",
        unit="Hz",
        low=0.0,
        positive=True,
        arrays=True,
    )
    damping: ArrayLike = option(
        1.0, "Damping ratio of the joints; 1 is critical.", low=0.0, positive=True, arrays=True
    )


@dataclass(frozen=True)
class StablePDOptions(ServoOptions):
    """Options of stable PD inside the dynamics."""

    form: str = option(
        "implicit", "Form of the drive; implicit is stable at any step.", kind="word", words=FORMS
    )
    method: str = option(
        "maba", "Solver: maba in linear time, or a baseline.", kind="word", words=METHODS
    )


@dataclass(frozen=True)
class ControllerEntry:
    """A controller of the table.

    Args:
        summary: What it is, in one line.
        paper: The work that it comes from, or "".
        make: Makes it, from a world or character, `part` and the fields of `options`.
        options: Its options, a ControllerOptions.
        defaults: Arguments of the World that it works best in, where they differ from a World's.
    """

    summary: str
    paper: str
    make: Callable[..., Controller]
    options: type[ControllerOptions] = ServoOptions
    defaults: Mapping[str, Any] = field(default_factory=dict)


def _kane(
    source: SceneLike | Plant, *, root: str, frequency: ArrayLike, damping: ArrayLike,
    part: PartLike,
) -> InverseDynamics:  # fmt: skip
    stiffness = (2.0 * np.pi * np.asarray(frequency, dtype=np.float64)) ** 2
    return InverseDynamics(source, stiffness, damping=damping, root=root, part=part)


CONTROLLERS: dict[str, ControllerEntry] = {
    "spd": ControllerEntry(
        "stable PD inside the dynamics: any gains at any step", "yin2020", StablePD, StablePDOptions
    ),
    "spd-torque": ControllerEntry(
        "stable PD as torques, for any engine: it does not see contact",
        "yin2020, standalone",
        partial(StablePD, embedded=False),
        StablePDOptions,
    ),
    "pd": ControllerEntry("explicit PD: simple, and unstable at large steps", "", PD),
    "pd-full": ControllerEntry(
        "explicit PD with gravity compensation, bubble-up and feedforward",
        "kavafoglu2018, 2.2",
        partial(PD, gravity_compensation=True, bubble_up=True, feedforward=True),
    ),
    "kane": ControllerEntry(
        "inverse dynamics by Kane's method: one stiffness for all joints", "kavafoglu2018", _kane
    ),
    "balance": ControllerEntry(
        "balance by momentum: nothing holds the root, and the feet carry the character",
        "macchietto2008",
        Balance,
        BalanceOptions,
        # thighs that touch in a clip would push the feet apart. A character of 65 kg sinks into
        # ground of this stiffness [N/m] by less than a tenth of a millimeter.
        {
            "dt": 1.0 / 120.0,
            "contact": "impulse",
            "friction": 0.8,
            "stiffness": 2e6,
            "self_collision": False,
            "projectiles": 0,
        },
    ),
}
"""Controllers by name."""


def find_controller(name: str) -> ControllerEntry:
    """The entry of a name; an unknown one lists the near ones."""
    check_known("controller", name, CONTROLLERS)
    return CONTROLLERS[name]


def make_controller(
    name: str, source: SceneLike | Plant, *, part: str | Sequence[str] | None = None, **options: Any
) -> Controller:
    """Makes a controller by name.

    Args:
        name: One of `poise.control.registry.CONTROLLERS`: "spd", "spd-torque", "pd", "pd-full",
            "kane", "balance".
        source: The World it acts in, or a character.
        part: Which parts of the scene it acts on; None is all characters.
        options: As of the entry's `options`; what is left out has the default there.
    """
    entry = find_controller(name)
    return entry.make(source, part=part, **entry.options.of(options, name).values())
