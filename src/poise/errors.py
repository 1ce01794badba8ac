"""The errors of poise, and the checks at its door.

One base, `PoiseError`, and few children. A message names the thing that is wrong and says what
would be right; a wrong name lists the near and the known ones.
"""

from __future__ import annotations

import difflib
import math
import sys
import warnings
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

LARGEST = 1e30
"""Numbers beyond this are refused: no character comes near, and products overflow."""

SMALLEST_LENGTH = 1e-12
"""Axes and quaternions shorter than this have no direction."""

LONGEST_NAME = 200
"""Names with more characters are refused: messages quote them."""

SLACK = 1e-6
"""Relative slack for inertias: files carry about six digits."""


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
    # long names are cut: comparing takes the square of their length, and nobody reads them
    cut = [name[:80] for name in known]
    near = difflib.get_close_matches(str(name)[:80], cut, n=3, cutoff=0.6)
    # a link of a scene has the name of its part before its own
    near = [x for x in cut if x.endswith(f"/{str(name)[:80]}")][:3] or near
    hint = f" did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"unknown {noun} {name!r:.80};{hint} {plural or noun + 's'}: {shorten(cut) or '(none)'}"


def check_name(where: str, value: object) -> str:
    """Return a name, or say what makes a usable one."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise CharacterError(f"{where} must be a printable, non-empty string, got {value!r:.80}")
    if len(value) > LONGEST_NAME:
        raise CharacterError(
            f"{where} must have at most {LONGEST_NAME} characters, got {len(value)}: {value!r:.80}"
        )
    return value


def check_number(where: str, value: object, *, least: float | None = None) -> float:
    """Return a finite float, at least `least` if that is given; -0 becomes 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise CharacterError(f"{where} must be a number, got {value!r:.80}")
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or abs(number) > LARGEST:
        raise CharacterError(f"{where} must be finite and below {LARGEST:g} in size, got {number}")
    if least is not None and number < least:
        raise CharacterError(f"{where} must be at least {least:g}, got {number:g}")
    return number


def check_vector(where: str, value: object, size: int) -> tuple[float, ...]:
    """Return `size` finite floats as a tuple."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    numbers = f"{size} numbers" if size != 1 else "a sequence of 1 number"
    if not isinstance(value, (list, tuple)):
        raise CharacterError(f"{where} must be {numbers}, got {value!r:.80}")
    if len(value) != size:
        raise CharacterError(f"{where} must be {numbers}, got {len(value)}")
    return tuple(check_number(f"{where}[{i}]", x) for i, x in enumerate(value))


def check_direction(where: str, value: object, size: int) -> tuple[float, ...]:
    """Return `size` numbers scaled to length one; an axis or quaternion of length zero is refused.

    What is already of length one to rounding stays as it is, bit for bit.
    """
    vector = check_vector(where, value, size)
    length = math.hypot(*vector)
    if length < SMALLEST_LENGTH:
        unit = "(0, 0, 1)" if size == 3 else "(1, 0, 0, 0)"
        raise CharacterError(f"{where} has length zero; it needs a direction, such as {unit}")
    if abs(length - 1.0) <= 1e-15:
        return vector
    return tuple(x / length + 0.0 for x in vector)


def check_inertia(where: str, value: object) -> tuple[tuple[float, ...], ...]:
    """Return a physical inertia, 3x3 and symmetric; three numbers are its diagonal.

    The principal moments a <= b <= c of any distribution of mass obey 0 <= a and c <= a + b.
    """
    if isinstance(value, np.ndarray) and value.ndim == 2:
        value = value.tolist()
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != 3:
        raise CharacterError(
            f"{where} must be 3x3 numbers, or the 3 of its diagonal, got {value!r:.80}"
        )
    if isinstance(value[0], (list, tuple, np.ndarray)):
        inertia = np.array([check_vector(f"{where}[{i}]", row, 3) for i, row in enumerate(value)])
    else:
        inertia = np.diag(check_vector(where, value, 3))
    size = np.abs(inertia).max()
    if np.abs(inertia - inertia.T).max() > SLACK * size:
        raise CharacterError(f"{where} must be symmetric, got {inertia.tolist()}")
    inertia = (inertia + inertia.T) / 2.0 + 0.0
    a, b, c = np.linalg.eigvalsh(inertia)
    moments = f"its principal moments are {a:.6g}, {b:.6g}, {c:.6g} kg m^2"
    if a < -SLACK * size:
        raise CharacterError(f"{where} must be positive; {moments}")
    if c - a - b > SLACK * size:
        raise CharacterError(
            f"{where} is not physical: {moments}, and none may be larger than the sum of the others"
        )
    return tuple(tuple(row) for row in inertia.tolist())
