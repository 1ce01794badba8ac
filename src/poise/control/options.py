"""Options of controllers as data: default, unit, bounds and help of each.

The command line, the studio and Python read the same fields::

    @dataclass(frozen=True)
    class MyOptions(ControllerOptions):
        gain: float = option(2.0, "Gain of the loop.", unit="1/s", low=0.0)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from poise.errors import PoiseError, check_known
from poise.math.arrays import choice, finite, floats, number

KINDS = ("number", "pair", "word", "words", "weights", "offset", "points", "flag", "object")
"""What a value is: a number, two, one of several words, some of them, {name: number}, a word or two
numbers, {name: (x, y, z)}, True or False, or an object that has no text."""


@dataclass(frozen=True)
class OptionInfo:
    """What is known of an option beside its default.

    Args:
        help: What it is, a sentence.
        kind: One of KINDS.
        unit: Of its numbers.
        low: Least value of its numbers.
        high: Largest value.
        positive: Whether numbers must be above `low`, and not only `low` or more.
        words: Words that it takes.
        arrays: Whether a number may be an array, one value for each velocity or copy.
        optional: Whether it may be None though its default is not.
    """

    help: str
    kind: str = "number"
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    positive: bool = False
    words: tuple[str, ...] = ()
    arrays: bool = False
    optional: bool = False

    def __post_init__(self) -> None:
        choice(self.kind, "kind", KINDS)

    @property
    def bounds(self) -> str:
        """Its range, for people: "0 or more", "from 0 to 100"."""
        least = f"above {self.low:g}" if self.positive else f"{self.low:g} or more"
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"from {self.low:g} to {self.high:g}"
        return least if math.isfinite(self.low) else f"{self.high:g} or less"

    @property
    def metavar(self) -> str:
        """What to write for it on the command line."""
        return {
            "number": self.unit or "NUMBER",
            "pair": "X,Y",
            "word": "|".join(self.words),
            "words": "NAMES",
            "weights": "NAME=NUMBER,...",
            "offset": f"{'|'.join(self.words)}|X,Y",
            "points": "NAME:X,Y,Z;...",
            "flag": "yes|no",
            "object": "OBJECT",
        }[self.kind]


def option(default: Any, help: str, **info: Any) -> Any:
    """A field of a ControllerOptions.

    Args:
        default: Its default; with None it may be left open.
        help: What it is, a sentence.
        info: As of OptionInfo.
    """
    metadata = {"option": OptionInfo(help, **info)}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class ControllerOptions:
    """Base of the options of a controller: a frozen dataclass whose fields are made by `option`.

    A value that is out of bounds or of another type raises a PoiseError that names the option.
    """

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):
            value, info = getattr(self, one.name), one.metadata["option"]
            if value is not None or not (info.optional or _default(one) is None):
                check_option(one.name, value, info)

    @classmethod
    def info(cls) -> dict[str, OptionInfo]:
        """What is known of each option, by name."""
        return {one.name: one.metadata["option"] for one in dataclasses.fields(cls)}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The defaults, by name."""
        return {one.name: _default(one) for one in dataclasses.fields(cls)}

    @classmethod
    def of(cls, given: Mapping[str, Any], controller: str) -> ControllerOptions:
        """The options with these values; an unknown name lists the near ones.

        Args:
            given: Values by name.
            controller: Name of the controller, for the error.
        """
        for name in given:
            check_known(f"option of controller {controller!r}", name, cls.info(), "options")
        return cls(**given)

    def values(self) -> dict[str, Any]:
        """All values by name."""
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}


def _default(one: dataclasses.Field[Any]) -> Any:
    if one.default_factory is not dataclasses.MISSING:
        return one.default_factory()
    return one.default


# ---- values


def check_option(name: str, value: Any, info: OptionInfo) -> None:
    """Refuse a value that the option does not take.

    Args:
        name: Of the option.
        value: Given.
        info: What the option takes.
    """
    if info.kind == "number":
        _check_number(name, value, info)
    elif info.kind == "pair" or (info.kind == "offset" and not isinstance(value, str)):
        _check_pair(name, value, info)
    elif info.kind in ("word", "offset"):
        if isinstance(value, str):
            check_known(name, value, info.words)
        choice(value, name, info.words)
    elif info.kind == "words":
        _check_words(name, value, info)
    elif info.kind in ("weights", "points"):
        if not isinstance(value, Mapping):
            form = "limb or link: weight" if info.kind == "weights" else "link: point"
            raise PoiseError(f"{name} is {value!r:.60}; it must be {{{form}}}")
        for key, one in value.items() if info.kind == "weights" else ():
            _check_number(f"{name}[{key!r}]", one, info)
    elif info.kind == "flag" and not isinstance(value, (bool, np.bool_)):
        raise PoiseError(f"{name} is {value!r:.60}; it must be True or False")


def _check_number(name: str, value: Any, info: OptionInfo) -> None:
    if info.arrays and not isinstance(value, (int, float)):
        array = finite(floats(value, name), name)
        least, most = float(array.min(initial=math.inf)), float(array.max(initial=-math.inf))
    elif isinstance(value, float) and value == math.inf == info.high:
        return
    else:
        least = most = number(
            value, name, positive=info.positive and info.low == 0.0, unit=info.unit
        )
    if least < info.low or most > info.high or (info.positive and least <= info.low):
        value = least if least < info.low or most <= info.high else most
        raise PoiseError(f"{name} is {value:g}; it must be {info.bounds}")


def _check_pair(name: str, value: Any, info: OptionInfo) -> None:
    words = "".join(f"{word!r}, or " for word in info.words)
    unit = f" [{info.unit}]" if info.unit else ""
    several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    if not several or getattr(value, "ndim", 1) == 0 or len(value) != 2:
        raise PoiseError(f"{name} is {value!r:.60}; it must be {words}a pair of numbers{unit}")
    for one in value:
        _check_number(name, one, info)


def _check_words(name: str, value: Any, info: OptionInfo) -> None:
    if not isinstance(value, Sequence):
        raise PoiseError(f"{name} is {value!r:.60}; it must be some of {info.words}")
    for one in (value,) if isinstance(value, str) else value:
        check_known(name.removesuffix("s"), one, info.words)


# ---- text


def parse_option(name: str, text: str, info: OptionInfo) -> Any:
    """The value of an option from text, as on a command line.

    Args:
        name: Of the option.
        text: As `info.metavar` has it; "none" leaves the option open.
        info: What the option takes.
    """
    text = text.strip()
    if text.lower() == "none":
        return None
    if info.kind == "word" or (info.kind == "offset" and text in info.words):
        return text
    if info.kind == "words":
        return tuple(filter(None, text.replace(" ", "").split(",")))
    if info.kind == "flag":
        if text.lower() not in ("yes", "no", "true", "false"):
            raise _not_read(name, text, info)
        return text.lower() in ("yes", "true")
    try:
        if info.kind == "weights":
            pairs = (one.partition("=") for one in text.split(","))
            return {key.strip(): float(value) for key, _, value in pairs}
        if info.kind == "points":
            pairs = (one.partition(":") for one in text.split(";"))
            return {key.strip(): _numbers(value, 3) for key, _, value in pairs}
        if info.kind in ("pair", "offset"):
            return _numbers(text, 2)
        return float(text)
    except ValueError:
        raise _not_read(name, text, info) from None


def _numbers(text: str, count: int) -> tuple[float, ...]:
    found = tuple(float(word) for word in text.split(","))
    if len(found) != count:
        raise ValueError
    return found


def _not_read(name: str, text: str, info: OptionInfo) -> PoiseError:
    return PoiseError(f"{name} is {text!r:.60}; it must be {info.metavar}")
