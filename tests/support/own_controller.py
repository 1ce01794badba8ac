"""A controller of one's own, for tests of the registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import poise
from poise.control.options import ControllerOptions, option
from poise.simulation.controller import Requirements


@dataclass(frozen=True)
class HoldOptions(ControllerOptions):
    """Options of Hold."""

    gain: float = option(0.1, "Gain of the velocities.", unit="N·m·s/rad", low=0.0)


class Hold:
    """Damps every joint."""

    requires = Requirements()

    def __init__(self, source: Any, *, part: Any = None, gain: float = 0.1) -> None:
        self.plant, self.gain = poise.control.Plant.of(source, part), gain

    def __call__(self, state: Any, target: Any) -> poise.Command:
        """The command."""
        _, v = self.plant.own_state(state)
        return self.plant.lift(poise.Command(force=-self.gain * v))
