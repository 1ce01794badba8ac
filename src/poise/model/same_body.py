"""Whether two characters are one body, to rounding, and in what they differ.

Numbers that were computed on another CPU, or with another BLAS, differ in their last bits; bodies
are the same if they differ by less than `TOLERANCE`, relatively. What a number is measured against:

    lengths                 the largest distance between two joints, or from a joint to a shape
    masses                  the larger of the two, and a millionth of the whole body's
    inertias                the larger matrix
    axes, quaternions       1; a quaternion and its negative are the same
    angles, gains, efforts  the larger of the two, and 1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from poise.errors import PoiseError

if TYPE_CHECKING:
    from poise.model.character import Character, Link
    from poise.model.joint import Joint
    from poise.model.shape import Shape

TOLERANCE = 1e-9
"""Numbers that differ by less, relatively, are the same."""

SMALLEST_FRACTION = 1e-6
"""Masses are compared to no finer than `TOLERANCE` times this fraction of the body's mass."""

JOINT_NUMBERS = {
    "reference": "rad, m",
    "limits": "rad, m",
    "effort": "N m, N",
    "armature": "kg m^2, kg",
    "damping": "N m s/rad, N s/m",
    "stiffness": "N m/rad, N/m",
}
"""Numbers of a joint that do not decide where it moves its link, and their units."""


def differences(one: Character, two: Character, *, kinematics: bool = False) -> Iterator[str]:
    """In what the body of one character differs from that of another, the most important first.

    Args:
        one: A character.
        two: Another.
        kinematics: Leave out what does not decide where links are at coordinates q: masses, shapes,
            limits, springs, efforts, and where a free root rests.
    """
    if one is two or one.links == two.links:
        return
    layout = list(_layout(one, two))
    if layout:
        yield from layout
        return
    compare = _Bodies(one, two)
    for a, b in zip(one.links, two.links, strict=True):
        at = f"link {a.name!r}: "
        if not (kinematics and _is_free(a)):
            yield from compare.lengths(at + "pos", a.pos, b.pos)
            yield from compare.quats(at + "quat", a.quat, b.quat)
        for i, j in zip(a.joints, b.joints, strict=True):
            yield from compare.joints(i, j, kinematics)
        if not kinematics:
            yield from compare.inertias(at, a, b)
            yield from compare.shapes(at, a.shapes, b.shapes)


def same_character(one: Character, two: Character) -> bool:
    """Whether two characters are the same but for rounding: body, name, limbs and colours."""
    if one.name != two.name or one.limbs != two.limbs:
        return False
    colors = [[shape.color for link in c.links for shape in link.shapes] for c in (one, two)]
    return colors[0] == colors[1] and next(differences(one, two), None) is None


class OfCharacter(Protocol):
    """A motion: it has a name, and the character whose coordinates it holds."""

    name: str

    @property
    def character(self) -> Character:
        """The character."""


def check_clip_fits(clip: OfCharacter, character: Character) -> None:
    """Raises an error if the coordinates of a clip mean something else for a character.

    Args:
        clip: A motion.
        character: The character that tracks it; masses, shapes and limits may differ from those of
            the clip's own character.
    """
    if clip.character is character:
        return
    found = next(differences(clip.character, character, kinematics=True), None)
    if found is None:
        return
    bodies = f"{clip.character.name!r}, not of this {character.name!r}"
    raise PoiseError(
        f"clip {clip.name!r} is a motion of {bodies}: {found}; load_clip(source, character) and "
        "clip.retargeted(character) put it onto another body"
    )


def _layout(one: Character, two: Character) -> Iterator[str]:
    """How names, kinds and order of links and joints differ."""
    for a, b in ((one, two), (two, one)):
        names = {link.name for link in b.links}
        place = "the other" if a.name == b.name else repr(b.name)
        for link in a.links:
            if link.name not in names:
                yield f"link {link.name!r} of {a.name!r} is missing in {place}"
    others = {link.name: link for link in two.links}
    for link in one.links:
        other = others.get(link.name, link)
        at = f"link {link.name!r}: "
        if link.parent != other.parent:
            yield f"{at}parent {link.parent!r} against {other.parent!r}"
        mine, theirs = _kinds(link), _kinds(other)
        if mine != theirs:
            yield f"{at}joints {mine or 'none'} against {theirs or 'none'}"
    order = [[link.name for link in c.links] for c in (one, two)]
    if order[0] != order[1] and sorted(order[0]) == sorted(order[1]):
        mine, theirs = next(pair for pair in zip(*order, strict=True) if pair[0] != pair[1])
        yield f"links are in another order: {mine!r} against {theirs!r}"


def _kinds(link: Link) -> str:
    return ", ".join(f"{joint.name} ({joint.kind})" for joint in link.joints)


def _is_free(link: Link) -> bool:
    return bool(link.joints) and link.joints[0].kind == "free"


class _Bodies:
    """Compares numbers of two characters of the same layout."""

    def __init__(self, one: Character, two: Character) -> None:
        self.size = max(map(_size, (one, two)))
        self.mass = max(one.mass, two.mass)

    def joints(self, a: Joint, b: Joint, kinematics: bool) -> Iterator[str]:
        at = f"joint {a.name!r}: "
        # a ball turns about every axis: its own only says what its limits mean
        if a.kind in ("hinge", "slide") or (a.kind == "ball" and not kinematics):
            yield from _numbers(at + "axis", a.axis, b.axis, 1.0)
        yield from self.lengths(at + "pos", a.pos, b.pos)
        if kinematics:
            return
        for name, units in JOINT_NUMBERS.items():
            x, y = getattr(a, name), getattr(b, name)
            unit = units.split(", ")[-1 if a.kind == "slide" else 0]
            quaternion = name == "reference" and a.kind == "ball"
            if (x is None) != (y is None):
                yield f"{at}{name} {_text(x)} against {_text(y)}"
            elif x is not None and quaternion:
                yield from self.quats(at + name, x, y)
            elif x is not None:
                yield from _numbers(at + name, x, y, max(1.0, *map(abs, _flat((x, y)))), unit)

    def inertias(self, at: str, a: Link, b: Link) -> Iterator[str]:
        scale = max(a.mass, b.mass, SMALLEST_FRACTION * self.mass)
        yield from _numbers(at + "mass", a.mass, b.mass, scale, "kg")
        yield from self.lengths(at + "com", a.com, b.com)
        largest = max(map(abs, _flat((a.inertia, b.inertia))))
        yield from _numbers(at + "inertia", a.inertia, b.inertia, largest, "kg m^2")

    def shapes(self, at: str, a: Sequence[Shape], b: Sequence[Shape]) -> Iterator[str]:
        kinds = [[(shape.kind, len(shape.vertices)) for shape in shapes] for shapes in (a, b)]
        if kinds[0] != kinds[1]:
            names = [", ".join(kind for kind, _ in one) or "none" for one in kinds]
            yield f"{at}shapes {names[0]} against {names[1]}"
            return
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            here = f"{at}{x.kind} {i}: "
            yield from self.lengths(here + "size", x.size, y.size)
            yield from self.lengths(here + "pos", x.pos, y.pos)
            yield from self.quats(here + "quat", x.quat, y.quat)
            yield from self.lengths(here + "vertices", _flat(x.vertices), _flat(y.vertices))

    def lengths(self, what: str, a: Sequence[float], b: Sequence[float]) -> Iterator[str]:
        yield from _numbers(what, a, b, max(self.size, *map(abs, (*a, *b, 0.0))), "m")

    def quats(self, what: str, a: Sequence[float], b: Sequence[float]) -> Iterator[str]:
        same = sum(x * y for x, y in zip(a, b, strict=True)) >= 0.0
        yield from _numbers(what, a, b if same else tuple(-x for x in b), 1.0)


def _numbers(what: str, a: Any, b: Any, scale: float, unit: str = "") -> Iterator[str]:
    """Say so if numbers differ by more than the tolerance times a scale."""
    x, y = _flat(a), _flat(b)
    far = [abs(i - j) for i, j in zip(x, y, strict=False)]
    if len(x) == len(y) and max(far, default=0.0) <= TOLERANCE * scale:
        return
    if len(x) == len(y) > 4:
        # of a matrix or many vertices, what differs most
        worst = far.index(max(far))
        what, a, b = f"{what}[{worst}]", x[worst], y[worst]
    digits = next((n for n in (4, 7, 10) if _text(a, n) != _text(b, n)), 17)
    yield f"{what} {_text(a, digits)} against {_text(b, digits)}{unit and ' ' + unit}"


def _text(value: Any, digits: int = 4) -> str:
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_text(x, digits) for x in value)})"
    return "none" if value is None else f"{value:.{digits}g}"


def _flat(value: Any) -> list[float]:
    return [x for y in value for x in _flat(y)] if isinstance(value, (tuple, list)) else [value]


def _size(character: Character) -> float:
    """The largest distance between two joints, or from a joint to a shape [m]."""
    found = []
    for link in character.links:
        # the resting place of a free root is no measure of its size
        found += [] if _is_free(link) else [*link.pos]
        found += [x for joint in link.joints for x in joint.pos]
        found += [
            x for shape in link.shapes for x in _flat((shape.pos, shape.size, shape.vertices))
        ]
    return max(map(abs, found), default=0.0)
