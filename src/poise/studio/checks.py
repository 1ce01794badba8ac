"""Checks of what a page sends.

A check takes what a value is called in errors and the value, and gives the value, plain and good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from poise.errors import LONGEST_NAME, PoiseError, shorten, unknown_name

Check = Callable[[str, Any], Any]


def told(value: object) -> str:
    """A value for a message: short, and never a surprise; numbers of thousands of digits are."""
    try:
        return " ".join(f"{value!r:.80}".split())
    except Exception:
        return f"a {type(value).__name__} that cannot be written"


def real(least: float, most: float) -> Check:
    """A finite number within bounds, as a float."""

    def check(where: str, value: Any) -> float:
        real = isinstance(value, (int, float, np.integer, np.floating))
        # not so of NaN
        if not real or isinstance(value, bool) or not least <= value <= most:
            raise PoiseError(f"{where} is {told(value)}; it must be {least:g} to {most:g}")
        return float(value)

    return check


def whole(least: int, most: int) -> Check:
    """A whole number within bounds."""

    def check(where: str, value: Any) -> int:
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            raise PoiseError(
                f"{where} is {told(value)}; it must be a whole number, {least} to {most}"
            )
        return int(value)

    return check


def vector(most: float) -> Check:
    """Three finite numbers, none larger than that, as a tuple."""
    entry = real(-most, most)

    def check(where: str, value: Any) -> tuple[float, ...]:
        if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 3:
            raise PoiseError(f"{where} is {told(value)}; it must be three numbers")
        return tuple(entry(f"{where}[{i}]", x) for i, x in enumerate(value))

    return check


def one_of(noun: str, known: Sequence[str]) -> Check:
    """One of the names there are."""

    def check(where: str, value: Any) -> str:
        name = text(where, value)
        if name not in known:
            raise PoiseError(f"{where}: {unknown_name(noun, name, known)}")
        return name

    return check


def several(noun: str, known: Sequence[str]) -> Check:
    """Some of the names there are, each once."""
    entry = one_of(noun, known)

    def check(where: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, (tuple, list)) or not 0 < len(value) <= len(known):
            raise PoiseError(f"{where} is {told(value)}; it must be some of {shorten(known)}")
        return tuple(dict.fromkeys(entry(where, x) for x in value))

    return check


def flag(where: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise PoiseError(f"{where} is {told(value)}; it must be True or False")
    return bool(value)


def text(where: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not value.isprintable():
        raise PoiseError(
            f"{where} is {told(value)}; it must be a printable text of at most {LONGEST_NAME} "
            "letters"
        )
    return value


def either(first: Check, second: Check, kind: type) -> Check:
    """The second check for values of that kind, the first for all others."""
    return lambda where, value: (second if isinstance(value, kind) else first)(where, value)


def maybe(check: Check) -> Check:
    return lambda where, value: None if value is None else check(where, value)
