"""Checks of the values that make up a character, and of the whole: one tree, different names, and
something to move for each joint."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from poise.errors import (
    LARGEST,
    LONGEST_NAME,
    CharacterError,
    ReadOnly,
    check_known,
    shorten,
    unknown_name,
)
from poise.model.inertia import composite_inertia

if TYPE_CHECKING:
    from poise.model.character import Character, Link

SMALLEST_LENGTH = 1e-12
"""Axes and quaternions shorter than this have no direction."""

SLACK = 1e-6
"""Relative slack for inertias: files carry about six digits."""

SINGULAR = 1e-12
"""A joint that carries less inertia than this, relative to what hangs on it, is singular."""

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
    """A sequence of one type as a tuple."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise CharacterError(f"{where} must be a sequence of {kind.__name__}, got {values!r:.80}")
    found = tuple(values)
    for i, value in enumerate(found):
        if not isinstance(value, kind):
            raise CharacterError(f"{where}[{i}] must be a {kind.__name__}, got {value!r:.80}")
    return found


# ---- values


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


# ---- the whole character


def depth_first(name: str, links: tuple[Link, ...]) -> tuple[Link, ...]:
    """Check that links form one tree, and put every parent before its children, depth-first."""
    at = f"character {name!r}"
    _check_names(at, links)
    names = [link.name for link in links]
    children: dict[str | None, list[Link]] = {None: [], **{name: [] for name in names}}
    for link in links:
        if link.parent not in children:
            raise CharacterError(
                f"link {link.name!r}: parent: {unknown_name('link', link.parent, names)}"
            )
        children[link.parent].append(link)
    roots = [repr(link.name) for link in children[None]]
    if len(roots) > 1:
        raise CharacterError(
            f"{at} has {len(roots)} roots: {shorten(roots)}; give all but one a parent, "
            "or make each its own character: a world takes several"
        )
    ordered, stack = [], children[None][::-1]
    while stack:
        ordered.append(stack.pop())
        stack += children[ordered[-1].name][::-1]
    if len(ordered) < len(links):
        raise CharacterError(f"{at}: {_cycle(links, ordered)}")
    return tuple(ordered)


def _check_names(at: str, links: tuple[Link, ...]) -> None:
    if not links:
        raise CharacterError(f"{at} has no links; it needs at least one")
    joints = [joint.name for link in links for joint in link.joints]
    for noun, names in (("link", [link.name for link in links]), ("joint", joints)):
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise CharacterError(f"{at} has two {noun}s named {twice!r}; {noun} names must differ")


def _cycle(links: Sequence[Link], reached: Sequence[Link]) -> str:
    """Name a cycle among the links that no root reaches."""
    parent = {link.name: link.parent for link in links}
    names = {link.name for link in reached}
    name: str = next(link.name for link in links if link.name not in names)
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = str(parent[name])
    loop = " -> ".join(repr(x) for x in [*path[path.index(name) :], name])
    return f"the parents of its links run in a circle: {loop}; one of them must be the root"


def checked_limbs(limbs: object, links: Sequence[Link]) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(limbs, Mapping):
        raise CharacterError(f"limbs must map names to tuples of link names, got {limbs!r:.80}")
    known = [link.name for link in links]
    checked = {}
    for limb, names in limbs.items():
        check_name("a limb's name", limb)
        names = tuple_of(str, f"limb {limb!r}", names)
        for name in names:
            check_known("link", name, known, at=f"limb {limb!r}: ", error=CharacterError)
        if len(set(names)) != len(names):
            raise CharacterError(f"limb {limb!r} names a link twice: {shorten(names)}")
        checked[limb] = names
    return MappingProxyType(checked)


def check_moving(character: Character) -> None:
    """Check that joints are placed where they may be, and that each has something to move."""
    for link in character.links:
        free = [joint.name for joint in link.joints if joint.kind == "free"]
        if free and link.parent is not None:
            raise CharacterError(
                f"joint {free[0]!r}: a free joint must be on the root link "
                f"{character.links[0].name!r}, not on {link.name!r}"
            )
        if free and len(link.joints) > 1:
            raise CharacterError(
                f"link {link.name!r}: free joint {free[0]!r} must be its only joint"
            )
    if character.mass <= 0.0:
        raise CharacterError(f"character {character.name!r} has no mass")
    _check_masses(character)
    _check_joint_inertias(character)


def _check_masses(character: Character) -> None:
    """Check that every moving body, welded links included, has mass."""
    forest = character.forest
    for link, body in zip(character.links, forest.link_body.tolist(), strict=True):
        if link.joints and forest.mass[body] == 0.0:
            end = body not in forest.parent
            raise CharacterError(
                f"link {link.name!r} moves by joint {link.joints[-1].name!r} but has no mass"
                + (": a massless chain end; " if end else "; ")
                + "give it mass, or take its joints away"
                + ("" if end else " and put them on the next link")
            )


def _check_joint_inertias(character: Character) -> None:
    """Check that every joint carries inertia in each of its directions, at q = 0."""
    forest = character.forest
    for b, (m, mc, Io) in enumerate(zip(*composite_inertia(forest), strict=True)):
        joint, link = character.joints[b], character.links[forest.link[b]]
        if joint.kind == "hinge":
            least = Io[2, 2]
        elif joint.kind == "ball":
            least = np.linalg.eigvalsh(Io)[0]
        elif joint.kind == "free":
            least = np.linalg.eigvalsh(Io - (mc @ mc * np.eye(3) - np.outer(mc, mc)) / m)[0]
        else:
            least = m
        if least + joint.armature <= SINGULAR * np.trace(Io):
            raise CharacterError(
                f"joint {joint.name!r} carries no inertia about its axis, or one of its axes; "
                f"give link {link.name!r} inertia, or the joint armature"
            )
