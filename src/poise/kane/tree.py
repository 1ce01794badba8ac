"""The tree whose equations of motion are derived: bodies, one joint each.

K, section 3.7, Figure 3.1: B° is the joint of body B, B* its center of mass,

    p_B = B° - P*   from the center of mass of the parent to the joint, fixed in the parent
    r_B = B* - B°   from the joint to the center of mass, fixed in B

What is not given stays a symbol: `Body("A", "R")` has the mass m_A, the arms p_A1 ... and r_A1 ...
and the inertia I_A11 .... The components of p are along the axes of the parent, of r and of the
inertia along the body's own; with q = 0 and no `rest`, these are the same axes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import sympy

from poise.errors import PoiseError, check_known, shorten, unknown_name
from poise.kane.vectors import ONE, ZERO, Expr, Mat, Vec, exact, matrix, vector
from poise.math.rotation import quat_from_matrix
from poise.model.character import Character, Joint, Link
from poise.model.joint import SIZES
from poise.reference.spatial import Array
from poise.reference.tree import build_tree, mass_properties

WORLD = -1


@dataclass(frozen=True)
class Body:
    """One joint and the rigid body that it carries; numbers, SymPy expressions, or left open.

    Args:
        name: Name, unique in the tree.
        parent: Name of the parent; None for the world.
        joint: "ball", "hinge", "slide", or "free" for a body that hangs on nothing.
        axis: Unit axis of a hinge or slide in the body's frame.
        p: From the parent's center of mass to the joint, in the parent's frame [m]; of a slide,
            where the joint is at q = 0. Symbols unless given, zero for a free body.
        r: From the joint to the center of mass, in the body's frame [m]. Symbols unless given; zero
            for a free body, whose speeds are then those of its center of mass, as in the thesis.
        mass: [kg]; a symbol unless given.
        inertia: About the center of mass, in the body's frame [kg·m²]: 3x3 or its diagonal; symbols
            unless given.
        rest: Rotation of the body's frame in the parent's at q = 0, 3x3.
        armature: Rotor inertia [kg·m², kg].
    """

    name: str
    parent: str | None = None
    joint: str = "ball"
    axis: Any = (0, 0, 1)
    p: Any = None
    r: Any = None
    mass: Any = None
    inertia: Any = None
    rest: Any = ONE
    armature: Any = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise PoiseError(f"a body's name must be a non-empty string, got {self.name!r:.80}")
        check_known("joint", self.joint, SIZES, at=f"body {self.name!r}: ")
        if self.joint == "free" and self.parent is not None:
            raise PoiseError(
                f"body {self.name!r} is free and has the parent {self.parent!r}; free bodies have "
                "none"
            )
        for key, (read, expected) in _READ.items():
            given = getattr(self, key)
            given = self._open(key) if given is None else given
            try:
                value = read(given)
            except (TypeError, ValueError, sympy.SympifyError):
                raise PoiseError(
                    f"body {self.name!r}: {key} must be {expected}, got {given!r:.80}"
                ) from None
            object.__setattr__(self, key, value)

    def _open(self, key: str) -> Any:
        """Symbols for what is not given; a free body is where its center of mass is."""
        if self.joint == "free" and key in ("p", "r"):
            return ZERO
        if identifier(self.name) != self.name:
            raise PoiseError(
                f"body {self.name!r}: {key} is open and would be a symbol; give it, or a name of "
                "letters, digits and underscores"
            )
        if key == "mass":
            return sympy.Symbol(f"m_{self.name}")
        if key != "inertia":
            return [sympy.Symbol(f"{key}_{self.name}{k}") for k in (1, 2, 3)]
        pairs = [[(min(i, j), max(i, j)) for j in (1, 2, 3)] for i in (1, 2, 3)]
        return [[sympy.Symbol(f"I_{self.name}{i}{j}") for i, j in row] for row in pairs]

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return SIZES[self.joint][0]

    @property
    def nv(self) -> int:
        """Number of speeds."""
        return SIZES[self.joint][1]


@dataclass(frozen=True)
class Point:
    """A point fixed in a body, on which a force may act.

    Args:
        name: What it is called.
        body: Index of the body; -1 is the world.
        arm: From the body's center of mass, in the body's frame [m].
    """

    name: str
    body: int
    arm: Vec = ZERO


@dataclass(frozen=True)
class Tree:
    """Bodies in an order in which parents come before their children.

    Args:
        bodies: The bodies.
        gravity: Acceleration of free fall [m/s²]; along -z with a symbol g unless given.
        points: Where external forces act; the centers of mass unless given.
        name: What the tree is called.
    """

    bodies: tuple[Body, ...]
    gravity: Any = (0, 0, -sympy.Symbol("g"))
    points: tuple[Point, ...] | None = None
    name: str = "tree"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bodies", tuple(self.bodies))
        if not self.bodies:
            raise PoiseError("a tree needs at least one body")
        before: list[str] = []
        for body in self.bodies:
            if body.name in before:
                raise PoiseError(f"two bodies are named {body.name!r}; names must differ")
            if body.parent is not None and body.parent not in before:
                known = unknown_name("body", body.parent, before, "bodies before it")
                raise PoiseError(f"body {body.name!r}: parent: {known}")
            before.append(body.name)
        try:
            gravity = vector(self.gravity)
        except (TypeError, ValueError, sympy.SympifyError):
            raise PoiseError(
                f"gravity must be 3 numbers or expressions, got {self.gravity!r:.80}"
            ) from None
        object.__setattr__(self, "gravity", gravity)
        if self.points is None:
            points = tuple(Point(body.name, i) for i, body in enumerate(self.bodies))
            object.__setattr__(self, "points", points)

    @cached_property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(body.nq for body in self.bodies)

    @cached_property
    def nv(self) -> int:
        """Number of speeds."""
        return sum(body.nv for body in self.bodies)

    def index(self, name: str) -> int:
        """Place of the body of that name."""
        names = [body.name for body in self.bodies]
        check_known("body", name, names, "bodies")
        return names.index(name)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Index of the parent of each body; -1 is the world."""
        return tuple(
            WORLD if body.parent is None else self.index(body.parent) for body in self.bodies
        )

    @cached_property
    def parameters(self) -> tuple[Expr, ...]:
        """The symbols that were left open, by name."""
        bodies = sympy.Tuple(*(_values(body) for body in self.bodies))
        arms = [point.arm for point in self.points or ()]
        found = sympy.Tuple(bodies, *self.gravity, *arms).free_symbols
        symbols = sorted(found, key=lambda symbol: str(symbol.name))
        for one, next_one in pairwise(symbols):
            if one.name == next_one.name:
                raise PoiseError(
                    f"two different symbols are named {one.name!r}: give both the same assumptions"
                )
        return tuple(symbols)

    def with_values(self, values: Mapping[Any, Any]) -> Tree:
        """The same tree with numbers or expressions in place of symbols.

        Args:
            values: By symbol, or by its name.
        """
        known = {str(symbol): symbol for symbol in self.parameters}
        for name in values:
            check_known("parameter", str(name), known)
        put = {known[str(name)]: exact(value) for name, value in values.items()}
        bodies = tuple(
            replace(body, **dict(zip(_READ, _values(body).xreplace(put), strict=True)))
            for body in self.bodies
        )
        points = tuple(
            replace(point, arm=vector(x.xreplace(put) for x in point.arm))
            for point in self.points or ()
        )
        return Tree(bodies, sympy.Tuple(*self.gravity).xreplace(put), points, self.name)


def identifier(name: str) -> str:
    """A name of letters, digits and underscores, for symbols and for C."""
    return re.sub(r"[^0-9A-Za-z_]+", "_", name)


def _tensor(value: Any) -> Mat:
    """Three rows, or a diagonal."""
    rows = list(value)
    if any(isinstance(row, Iterable) for row in rows):
        return matrix(rows)
    x, y, z = vector(rows)
    return (x, exact(0), exact(0)), (exact(0), y, exact(0)), (exact(0), exact(0), z)


def _axis(value: Any) -> Vec:
    """A unit vector; numbers are scaled to it, symbols are taken as they are."""
    axis = vector(value)
    if any(x.free_symbols for x in axis):
        return axis
    length = math.hypot(*map(float, axis))
    if not length > 0:
        raise ValueError
    return axis if length == 1 else vector(float(x) / length for x in axis)


_READ: dict[str, tuple[Callable[[Any], Any], str]] = {
    "axis": (_axis, "3 numbers that are not all zero"),
    "p": (vector, "3 numbers"),
    "r": (vector, "3 numbers"),
    "mass": (exact, "a number"),
    "inertia": (_tensor, "3x3 numbers or the 3 of its diagonal"),
    "rest": (matrix, "3x3 numbers"),
    "armature": (exact, "a number"),
}
"""How the fields of a Body are read, and what they are."""


def _values(body: Body) -> Expr:
    """The numbers and expressions of a body, in the order of `_READ`."""
    return sympy.Tuple(*(getattr(body, key) for key in _READ))


# ---- trees from characters and back, and the seven bodies of the thesis

GRAVITY = (0.0, 0.0, -9.81)


def tree_of(character: Character, *, gravity: Any = GRAVITY) -> Tree:
    """The tree of a character: its joints, arms and inertias as numbers.

    Welded links join the body that carries them; a link with several joints is as many bodies, all
    but the last without mass. Coordinates and speeds are in the character's order, and external
    forces act at the origins of its links.

    Args:
        character: The character; its shapes do not matter.
        gravity: Acceleration of free fall [m/s²], three numbers or expressions.
    """
    flat = build_tree(character)
    names = _body_names(character)
    masses = [mass_properties(body) for body in flat.bodies]
    centers = [c for _, _, c, _ in masses]
    bodies = []
    for i, body in enumerate(flat.bodies):
        joint, (mass, anchor, c, inertia) = body.joint, masses[i]
        start = body.X_PJ.p + body.X_PJ.R @ anchor
        p = start if body.parent == WORLD else start - centers[body.parent]
        bodies.append(
            Body(
                names[i],
                None if body.parent == WORLD else names[body.parent],
                joint.kind,
                axis=joint.axis,
                p=None if joint.kind == "free" else p,
                r=c - anchor,
                mass=mass,
                inertia=inertia,
                rest=body.X_PJ.R,
                armature=joint.armature,
            )
        )
    points = [
        Point(link.name, at, _arm(X_BL.p, centers, at))
        for link, at, X_BL in zip(character.links, flat.link_body, flat.X_BL, strict=True)
    ]
    return Tree(tuple(bodies), gravity, tuple(points), character.name)


def character_of(tree: Tree) -> Character:
    """The character of a tree of numbers: one link for each body, its frame at the joint.

    Args:
        tree: A tree without open symbols, gravity aside, and with one body that hangs on nothing.
    """
    numbers = tree.with_values({x: 9.81 for x in tree.parameters if str(x) == "g"})
    if numbers.parameters:
        raise PoiseError(
            f"a character needs numbers for {shorten(numbers.parameters, 8)}; "
            "give them with with_values"
        )
    links = []
    for i, body in enumerate(numbers.bodies):
        parent = numbers.parents[i]
        # the parent's frame is at its own joint, r before its center of mass
        pos = np.array(body.p, float)
        if parent != WORLD:
            pos = pos + np.array(numbers.bodies[parent].r, float)
        joint = Joint(
            body.name,
            body.joint,  # type: ignore[arg-type]
            axis=tuple(map(float, body.axis)),
            armature=float(body.armature),
        )
        links.append(
            Link(
                body.name,
                body.parent,
                tuple(pos),
                tuple(quat_from_matrix(np.array(body.rest, float)).tolist()),
                (joint,),
                float(body.mass),
                tuple(map(float, body.r)),
                np.array(body.inertia, float).tolist(),
            )
        )
    return Character(tree.name, tuple(links))


def seven_bodies(*, numbers: bool = False) -> Tree:
    """The multibody system S of the thesis, Figure 3.1.

    R is free, its children are A and C; D and G hang on C, E on D, H on G. All joints are balls.

    Args:
        numbers: The thesis prints none for S and all stays symbols; True makes each body the
            cylinder of its section 3.9, 30 cm long, 7 cm wide, 1.54 kg.
    """
    parents = {"A": "R", "C": "R", "D": "C", "E": "D", "G": "C", "H": "G"}
    if not numbers:
        bodies = [Body("R", joint="free"), *(Body(name, on) for name, on in parents.items())]
        return Tree(tuple(bodies), name="S")
    half, mass, radius = 0.15, 1.54, 0.035
    across = mass * (radius**2 / 4.0 + (2.0 * half) ** 2 / 12.0)
    solid: dict[str, Any] = {"mass": mass, "inertia": (across, across, mass * radius**2 / 2.0)}
    # all along -z but C, which points up; D and G leave its upper end to either side
    p = dict.fromkeys(parents, (0.0, 0.0, -half))
    r = p | {"C": (0.0, 0.0, half)}
    p |= {"C": (0.0, 0.0, half), "D": (radius, 0.0, half), "G": (-radius, 0.0, half)}
    bodies = [Body("R", joint="free", **solid)]
    bodies += [Body(name, on, p=p[name], r=r[name], **solid) for name, on in parents.items()]
    return Tree(tuple(bodies), GRAVITY, name="S")


def _body_names(character: Character) -> list[str]:
    """The link's name, or the joint's where a link has several."""
    taken = {link.name for link in character.links}
    names: list[str] = []
    for link in character.links:
        if len(link.joints) == 1:
            names.append(link.name)
            continue
        for joint in link.joints:
            # a joint may be called as another link is
            names.append(f"{link.name}.{joint.name}" if joint.name in taken else joint.name)
    return names


def _arm(origin: Array, centers: list[Array], body: int) -> Vec:
    return vector(origin if body == WORLD else origin - centers[body])
