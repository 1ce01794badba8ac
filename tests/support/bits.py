"""Values of characters to the last bit."""

from __future__ import annotations

import struct
from dataclasses import fields, is_dataclass
from typing import Any


def bits(value: Any) -> Any:
    """A character as nested tuples with every float as its eight bytes."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if is_dataclass(value):
        return tuple(bits(getattr(value, f.name)) for f in fields(value))
    if isinstance(value, tuple):
        return tuple(bits(x) for x in value)
    return dict(value) if hasattr(value, "items") else value
