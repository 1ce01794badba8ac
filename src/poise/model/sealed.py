"""Objects whose attributes are set when they are made, and not by assignment later."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from poise.errors import ReadOnly, unknown_name


class Sealed:
    """Refuses assignments that would have no effect, and says what has the effect instead.

    A subclass calls `_seal()` when it is made. From then on a public attribute can be assigned
    only if the object has it and neither `_remedies` nor the class names it, or if it is a property
    with a setter.
    """

    _remedies: ClassVar[Mapping[str, str]] = {}
    """By attribute, what to do instead of an assignment."""

    _remedy: ClassVar[str] = ""
    """What to do instead, for methods, properties and all attributes not in `_remedies`."""

    _sealed = False

    def _seal(self) -> None:
        # a user's subclass may have attributes of its own
        self._sealed = type(self).__module__.partition(".")[0] == "poise"

    def __setattr__(self, name: str, value: Any) -> None:
        if self._sealed and not name.startswith("_"):
            self._check_assigned(name)
        object.__setattr__(self, name, value)

    def _check_assigned(self, name: str) -> None:
        kind, remedy = type(self).__name__, self._remedies.get(name)
        found = getattr(type(self), name, None)
        if isinstance(found, property) and found.fset is not None:
            return
        if remedy is None and found is not None:
            remedy = self._remedy
        if (
            not remedy
            and name in inspect.signature(type(self)).parameters
            and (found is not None or name not in vars(self))
        ):
            remedy = f"it is given when one is made, {kind}(..., {name}=...)"
        if remedy == "":
            remedy = "it is a method, or computed from other attributes"
        if remedy is not None:
            raise ReadOnly(f"{name} of a {kind} cannot be assigned: {remedy}")
        own = [key for key in vars(self) if not key.startswith("_")]
        if name not in own:
            known = [*own, *(key for key in dir(type(self)) if not key.startswith("_"))]
            raise ReadOnly(unknown_name(f"attribute of a {kind}", name, known, "attributes"))
