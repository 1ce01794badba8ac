"""What the immutable values that make up a character share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from poise.errors import CharacterError, ReadOnly

Vector = tuple[float, ...]
Matrix = tuple[Vector, Vector, Vector]
T = TypeVar("T")
C = TypeVar("C", bound=type)


def read_only(remedy: str) -> Callable[[C], C]:
    """Make a frozen dataclass say what to do instead of an assignment."""

    def decorate(cls: C) -> C:
        def refuse(self: object, name: str, value: Any) -> None:
            raise ReadOnly(f"{name} of a {cls.__name__} cannot be assigned: {remedy}")

        cls.__setattr__ = refuse  # type: ignore[method-assign,assignment]
        return cls

    return decorate


def set_fields(value: object, fields: Mapping[str, object]) -> None:
    """Set the checked fields of a frozen dataclass that is being made."""
    for key, x in fields.items():
        object.__setattr__(value, key, x)


def tuple_of(kind: type[T], where: str, values: object) -> tuple[T, ...]:
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise CharacterError(f"{where} must be a sequence of {kind.__name__}, got {values!r:.80}")
    found = tuple(values)
    for i, value in enumerate(found):
        if not isinstance(value, kind):
            raise CharacterError(f"{where}[{i}] must be a {kind.__name__}, got {value!r:.80}")
    return found
