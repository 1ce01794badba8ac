"""Pushes as people write them: `chest:200N:left@1s+0.1s`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from poise.errors import LARGEST, PoiseError, check_known
from poise.math.arrays import Floats, number

if TYPE_CHECKING:
    from poise.simulation.world import World

DIRECTIONS = {
    "forward": (1.0, 0.0, 0.0),
    "back": (-1.0, 0.0, 0.0),
    "left": (0.0, 1.0, 0.0),
    "right": (0.0, -1.0, 0.0),
    "up": (0.0, 0.0, 1.0),
    "down": (0.0, 0.0, -1.0),
}
"""Directions of a character that looks along +x."""

DURATION = 0.1
"""Default duration of a push [s]."""

FORM = "LINK:FORCE[:DIRECTION]@TIME[+DURATION], as in chest:200N:left@1s+0.1s"

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_FORCE = re.compile(rf"([-+]?{_NUMBER}) ?(N|kN)?")
_WHEN = re.compile(rf"({_NUMBER}) ?(s|ms)?(?:\+({_NUMBER}) ?(s|ms)?)?")
_VECTOR = re.compile(rf"[-+]?{_NUMBER}(?:, ?[-+]?{_NUMBER}){{2}}")


@dataclass(frozen=True)
class Push:
    """A force on a link for a while.

    Args:
        link: Name of the link.
        force: Its size [N].
        direction: forward, back, left, right, up or down of the character, or a vector in the
            world, of any length.
        at: When it starts [s].
        duration: How long it takes [s].
    """

    link: str
    force: float
    direction: str | tuple[float, float, float] = "forward"
    at: float = 0.0
    duration: float = DURATION

    def __post_init__(self) -> None:
        for name, unit in (("force", "N"), ("duration", "s")):
            number(getattr(self, name), f"{name} of a push", unit=unit)
        if number(self.at, "time of a push", positive=False) < 0.0:
            raise PoiseError(f"a push at {self.at:g} s would be before the start")
        if max(self.force, self.at, self.duration) > LARGEST:
            raise PoiseError(f"force and times of a push must be below {LARGEST:g}")
        self.force_vector()

    def force_vector(self, heading: float = 0.0) -> Floats:
        """The force in world axes [N], shape (3,).

        Args:
            heading: Which way the character looks, from +x counterclockwise [rad].
        """
        if not isinstance(self.direction, str):
            along = np.array(self.direction, dtype=np.float64)
            length = float(np.linalg.norm(along)) if along.shape == (3,) else math.nan
            if not 0.0 < length < LARGEST:
                raise PoiseError(
                    f"direction of a push is {self.direction!r:.80}; it must be x,y,z of some "
                    f"length, or one of {', '.join(DIRECTIONS)}"
                )
            return along * (self.force / length)
        check_known("direction", self.direction, DIRECTIONS)
        x, y, z = DIRECTIONS[self.direction]
        c, s = math.cos(heading), math.sin(heading)
        return self.force * np.array([c * x - s * y, s * x + c * y, z])

    def in_world(self, heading: float) -> Push:
        """The same push with its direction as a vector in the world."""
        x, y, z = (self.force_vector(heading) / self.force).tolist()
        return replace(self, direction=(x, y, z))

    def check_link(self, names: Iterable[str]) -> None:
        """Refuse a link that is not among the names."""
        check_known("link", self.link, list(names), at=f"push {self}: ")

    def apply(self, world: World, heading: float = 0.0) -> None:
        """Adds it to a world; it acts at its time, on the link's center of mass.

        Args:
            world: The world.
            heading: As of `force_vector`.
        """
        self.check_link(world.scene.forest.link_names)
        world.push(self.link, self.force_vector(heading), self.duration, at=self.at)

    def __str__(self) -> str:
        way = self.direction
        text = way if isinstance(way, str) else ",".join(f"{x:.4g}" for x in way)
        return f"{self.link}:{self.force:g}N:{text}@{self.at:g}s+{self.duration:g}s"


def parse_push(text: str) -> Push:
    """Read a push: `LINK:FORCE[:DIRECTION]@TIME[+DURATION]`.

    FORCE is in N or kN, times are in s or ms. DIRECTION is forward (if left out), back, left,
    right, up or down of the character, or x,y,z in the world. Names of links may have colons.
    """
    where = f"push {text!r:.120}"
    if not isinstance(text, str):
        raise PoiseError(f"{where}: must be text: {FORM}")
    rest, at, time = text.strip().rpartition("@")
    if not at:
        raise PoiseError(f"{where}: its time is missing: {FORM}")
    when = parse_times(time)
    if when is None:
        raise PoiseError(f"{where}: {time!r:.40} is no time, such as 1s or 1s+0.1s: {FORM}")
    start, duration = when
    words = rest.split(":")
    place = next((i for i in (-1, -2) if len(words) > -i and _FORCE.fullmatch(words[i])), None)
    if place is None:
        raise PoiseError(f"{where}: its force is missing, such as 200N: {FORM}")
    link, force = ":".join(words[:place]), _FORCE.fullmatch(words[place])
    assert force is not None
    try:
        return Push(
            link.strip(),
            float(force[1]) * (1e3 if force[2] == "kN" else 1.0),
            _direction(words[-1].strip()) if place == -2 else "forward",
            start,
            DURATION if duration is None else duration,
        )
    except PoiseError as error:
        raise PoiseError(f"{where}: {error}") from None


def _direction(text: str) -> str | tuple[float, float, float]:
    if _VECTOR.fullmatch(text):
        x, y, z = (float(word) for word in text.split(","))
        return x, y, z
    return text


def parse_times(text: str) -> tuple[float, float | None] | None:
    """Start and duration [s] of `TIME[+DURATION]`, in s or ms; None where it is something else."""
    when = _WHEN.fullmatch(text.strip())
    if when is None:
        return None
    unit = [1e-3 if name == "ms" else 1.0 for name in (when[2], when[4])]
    return float(when[1]) * unit[0], None if when[3] is None else float(when[3]) * unit[1]
