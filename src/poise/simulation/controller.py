"""Protocols of what `poise.run` joins: controllers, the motions they follow, and recorders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, count
from poise.simulation.command import Command, Target
from poise.simulation.state import State


@dataclass(frozen=True)
class Requirements:
    """What a controller consumes, and how often it is called.

    Args:
        rows: Whether it takes several target rows in one call, one for each step; else it gets one
            target.
        steps: Number of steps for which one command is held.
        past: Whether it reads `target.past`, the positions one and two steps before the target.
    """

    rows: bool = False
    steps: int = 1
    past: bool = False

    def __post_init__(self) -> None:
        count(self.steps, "steps")

    @classmethod
    def of(cls, controller: Any) -> Requirements:
        """The `requires` of a controller; the defaults for a plain function, which has none."""
        requires = getattr(controller, "requires", None)
        if requires is None:
            return cls()
        if not isinstance(requires, Requirements):
            raise PoiseError(
                f"requires of a {type(controller).__name__} must be Requirements, got "
                f"{requires!r:.80}"
            )
        return requires

    @classmethod
    def joined(cls, several: Iterable[Requirements]) -> Requirements:
        """Requirements of controllers that are called together: what serves all of them."""
        found = list(several)
        return cls(
            rows=all(one.rows for one in found),
            steps=min(one.steps for one in found),
            past=any(one.past for one in found),
        )


class Controller(Protocol):
    """Computes the command for a state and a target; a plain function is one, too."""

    @property
    def requires(self) -> Requirements:
        """What it consumes, and how often it is called."""

    def __call__(self, state: State, target: Target) -> Command:
        """The command for a state and the target at the end of the step."""


class Stateful(Controller, Protocol):
    """A controller that resumes bit for bit from its memory."""

    @property
    def memory(self) -> Floats:
        """What it keeps from step to step."""

    def restore(self, memory: ArrayLike) -> None:
        """Continue from a memory."""


class Motion(Protocol):
    """A reference over time, such as a clip. `poise.run` takes one with `target` alone as well.

    Where `target` has a keyword `past`, a step [s], controllers that require the past get targets
    with the positions one and two such steps before.
    """

    def target(self, t: float) -> Target:
        """The target at time t [s]."""

    def targets(self, t: float, dt: float, k: int) -> Target:
        """k rows of target, at t, t + dt, ... [s]."""


class Recorder(Protocol):
    """Receives the target at a constant rate; what else it records it reads from its world."""

    interval: float
    """Time from one frame to the next [s]."""

    def append(self, target: Target | None = None) -> Any:
        """Record a frame.

        Args:
            target: Target of the last step; None before the first.
        """


ControllerLike = Callable[[Any, Any], Command]
"""A Controller, or a function of state and target."""
