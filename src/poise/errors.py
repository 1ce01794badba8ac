"""The errors of poise.

One base, `PoiseError`, and few children. A message names the thing that is wrong and says what
would be right; a wrong name lists the near and the known ones.
"""

from __future__ import annotations

import difflib
import inspect
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

LARGEST = 1e30
"""Numbers beyond this are refused: no character comes near, and products overflow."""

LONGEST_NAME = 200
"""Names with more characters are refused: messages quote them."""


class PoiseError(Exception):
    """Base of everything poise raises on purpose."""


class FallWarning(UserWarning):
    """A character has fallen that its controller should keep on its feet."""


class CharacterError(PoiseError):
    """A character, or the file it is read from, is wrong."""


class ClipError(PoiseError):
    """A motion, or the file it is read from, is wrong."""


class ReadOnly(PoiseError, AttributeError):
    """An attribute cannot be assigned; the message says what to do instead."""


class ClipNotice(UserWarning):
    """A motion file was changed while it was loaded, so that it can be followed."""


class UnfollowableTarget(UserWarning):
    """A controller got a target that no body can follow."""


class Diverged(PoiseError):
    """A simulation left the finite numbers.

    Args:
        time: Simulated time of the failed step [s].
        joint: Name of the joint in which it showed first.
        state: Last good state, ready for replay.
        copies: Indices of the copies that diverged.
        singular: Whether the mass matrix could not be inverted at that joint.
    """

    def __init__(
        self,
        time: float,
        joint: str,
        state: Any,
        copies: Sequence[int] = (0,),
        singular: bool = False,
    ) -> None:
        super().__init__(time, joint, state, tuple(copies), singular)
        self.singular = singular
        self.time = time
        self.joint = joint
        self.state = state
        self.copies = tuple(copies)

    def __str__(self) -> str:
        where = ""
        if self.copies != (0,):
            where = f" in {'copy' if len(self.copies) == 1 else 'copies'} {shorten(self.copies, 8)}"
        if self.singular:
            return (
                f"the mass matrix is singular at joint {self.joint!r} at t = {self.time:.6g} s"
                f"{where}: axes in line, or nothing to move; give the joint some armature"
            )
        return (
            f"the simulation diverged at t = {self.time:.6g} s{where}, first in joint "
            f"{self.joint!r}; the last good state is in the error's .state"
        )


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn about the line outside poise that led here.

    Args:
        message: What is the matter.
        category: Kind of the warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("poise."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def shorten(items: Iterable[object], most: int = 40) -> str:
    """Join items with commas; beyond `most` only say how many more there are."""
    items = list(items)
    text = ", ".join(str(item) for item in items[:most])
    return text if len(items) <= most else f"{text}, ... and {len(items) - most} more"


def unknown_name(noun: str, name: object, known: Iterable[str], plural: str | None = None) -> str:
    """Say that a name is unknown, which one may be meant, and which there are.

    Args:
        noun: What is being named: "link", "joint", "key".
        name: The unknown name.
        known: The names there are.
        plural: Plural of the noun; `noun + "s"` unless given.
    """
    known = list(known)
    # long names are cut: comparing takes the square of their length, and they are unreadable
    cut = [name[:80] for name in known]
    near = difflib.get_close_matches(str(name)[:80], cut, n=3, cutoff=0.6)
    # a link of a scene has the name of its part before its own
    near = [x for x in cut if x.endswith(f"/{str(name)[:80]}")][:3] or near
    hint = f" did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"unknown {noun} {name!r:.80};{hint} {plural or noun + 's'}: {shorten(cut) or '(none)'}"


def check_known(
    noun: str,
    name: Any,
    known: Collection[str],
    plural: str | None = None,
    *,
    at: str = "",
    error: type[PoiseError] = PoiseError,
) -> None:
    """Refuse a name that is not among the known ones.

    Args:
        noun: As of `unknown_name`, which has the message.
        name: The name.
        known: The names there are.
        plural: As of `unknown_name`.
        at: What the message begins with.
        error: What to raise.
    """
    if not isinstance(name, str) or name not in known:
        raise error(at + unknown_name(noun, name, known, plural))


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
