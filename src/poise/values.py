"""What the immutable values that make up a character share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from poise.errors import CharacterError

Vector = tuple[float, ...]
Matrix = tuple[Vector, Vector, Vector]
T = TypeVar("T")


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
