"""Objects that refuse assignments without effect."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

from poise.errors import PoiseError, unknown_name


class Sealed:
    """Takes assignments only to the attributes that its class declares.

    A class declares what may be assigned by annotations in its body and by properties with a
    setter. Properties without one, and arguments of `__init__` that are no attributes, are fixed
    when the object is made. Names with an underscore are the object's own affair.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        kind: Any = type(self)
        if not name.startswith("_") and name not in _assignable(kind):
            raise PoiseError(_refusal(kind, name))
        super().__setattr__(name, value)


@lru_cache(maxsize=256)
def _assignable(kind: Any) -> frozenset[str]:
    """Names that may be assigned."""
    names: set[str] = set()
    for base in kind.__mro__:
        names.update(inspect.get_annotations(base))
        for name, value in vars(base).items():
            if isinstance(value, property) and value.fset is not None:
                names.add(name)
    return frozenset(name for name in names if not name.startswith("_"))


def _refusal(kind: Any, name: str) -> str:
    """Why a name cannot be assigned, and what would be right."""
    given = set(inspect.signature(kind).parameters)
    if name in given or hasattr(kind, name):
        made = f"{kind.__name__}(..., {name}=...)" if name in given else "another"
        return f"{name} is fixed when a {kind.__name__} is made; make {made}"
    return f"{kind.__name__}: {unknown_name('attribute', name, sorted(_assignable(kind)))}"
