"""Profiles as people write them: `limp:left_arm@1s+0.5s`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.control.profiles import RECIPES, Profile, Profiled, named_profile
from poise.errors import PoiseError
from poise.math.arrays import Floats, number
from poise.model.scene import SceneLike

PIN = "pinned"
"""The profile that is one of pins; the others are of strength."""

FORM = "NAME[:LIMB][@TIME[+DURATION]], as in limp:left_arm@1s+0.5s"

_NUMBER = r"(?:\d+\.?\d*|\.\d+)"
_WHEN = re.compile(rf"({_NUMBER}) ?s?(?:\+({_NUMBER}) ?s?)?")


@dataclass(frozen=True)
class AskedProfile:
    """A profile by name, for a character that comes later.

    Args:
        name: One of `poise.control.profiles.RECIPES`.
        limb: Limb or link; None is what the profile is made for.
        at: When it begins [s].
        hold: How long it stays, if it comes back [s].
    """

    name: str
    limb: str | None = None
    at: float = 0.0
    hold: float = 1.0

    def __post_init__(self) -> None:
        for key in ("at", "hold"):
            if number(getattr(self, key), f"{key} of a profile", positive=False) < 0.0:
                raise PoiseError(f"{key} of a profile must be 0 or more [s]")

    def of(self, character: SceneLike) -> Profile:
        """The profile of a character.

        Args:
            character: The character, or a scene.
        """
        return named_profile(character, self.name, limb=self.limb, at=self.at, hold=self.hold)

    def __str__(self) -> str:
        limb = f":{self.limb}" if self.limb else ""
        return f"{self.name}{limb}@{self.at:g}s+{self.hold:g}s"


def parse_profile(text: str) -> AskedProfile:
    """Read a profile: `NAME[:LIMB][@TIME[+DURATION]]`, times in s.

    Args:
        text: As `limp:left_arm@1s+0.5s`.
    """
    who, at, time = text.strip().partition("@")
    name, _, limb = who.partition(":")
    when = _WHEN.fullmatch(time.strip()) if at else None
    if not name.strip() or (at and when is None):
        raise PoiseError(f"profile {text!r:.80}: it must be {FORM}; names: {', '.join(RECIPES)}")
    given = {} if when is None else {"at": float(when[1])}
    if when is not None and when[2] is not None:
        given["hold"] = float(when[2])
    return AskedProfile(name.strip(), limb.strip() or None, **given)


def profiled(controller: Any, character: SceneLike, asked: Sequence[AskedProfile]) -> Any:
    """The controller with strength and pins that follow profiles; itself if there are none.

    Strengths of several profiles multiply; of several pins the strongest counts.

    Args:
        controller: The controller.
        character: The character, or the world.
        asked: The profiles.
    """
    strength = [one.of(character) for one in asked if one.name != PIN]
    pins = [one.of(character) for one in asked if one.name == PIN]
    if not asked:
        return controller
    return Profiled(
        controller,
        strength=_together(strength, np.multiply),
        pin=_together(pins, np.maximum),
    )


def _together(profiles: Sequence[Profile], join: np.ufunc) -> Callable[[Floats], Floats] | None:
    if not profiles:
        return None
    return lambda t: np.asarray(join.reduce([profile(t) for profile in profiles]))
