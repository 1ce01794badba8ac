"""What a character is: an immutable tree of links, joints, inertias and shapes.

All values are plain tuples of floats, checked and normalised when made, so that characters compare
by value and never change. The pose of a link in its parent at coordinates q is

    X_PL = X(pos, quat) * prod_k Trans(joint_k.pos) J_k(q_k) Trans(-joint_k.pos)

with the link's joints in order, as in MuJoCo. Units are SI and radians; quaternions are w x y z.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.errors import CharacterError, PoiseError, check_known, unknown_name
from poise.math.arrays import Floats, floats, number
from poise.model import configuration
from poise.model.forest import Forest, compile_forest
from poise.model.joint import Joint, JointKind
from poise.model.same_body import differences
from poise.model.shape import Shape, ShapeKind, solid
from poise.model.validation import (
    Matrix,
    Vector,
    check_direction,
    check_inertia,
    check_moving,
    check_name,
    check_number,
    check_vector,
    checked_limbs,
    depth_first,
    read_only,
    set_fields,
    tuple_of,
)

T = TypeVar("T")


@read_only("dataclasses.replace(link, mass=...) makes another, and Character(name, links) has it")
@dataclass(frozen=True)
class Link:
    """A rigid part of a character.

    Args:
        name: Name, unique in the character.
        parent: Name of the parent link; None for the root.
        pos: Origin of the link's frame in the parent's frame at q = 0 [m].
        quat: Orientation of the link's frame there, w x y z; normalised.
        joints: Joints by which it moves, in order; () welds it to its parent, or to the world.
        mass: Mass [kg].
        com: Center of mass in the link's frame [m].
        inertia: Inertia about the center of mass in link axes [kg m^2], 3x3, or its diagonal.
        shapes: What it looks like and collides with.
        density: Density of its shapes [kg/m^3], instead of mass, com and inertia: these are then
            those of the shapes, as `Link.from_shapes` computes them. It is not kept.
    """

    name: str
    parent: str | None = None
    pos: Vector = (0.0, 0.0, 0.0)
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    joints: tuple[Joint, ...] = ()
    mass: float = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: Matrix | Vector = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    shapes: tuple[Shape, ...] = ()
    density: InitVar[float | None] = None

    def __post_init__(self, density: float | None) -> None:
        check_name("a link's name", self.name)
        if density is not None:
            self._set_inertia(density)
        at = f"link {self.name!r}: "
        if self.parent is not None:
            check_name(at + "parent", self.parent)
        values: dict[str, Any] = {
            "pos": check_vector(at + "pos", self.pos, 3),
            "quat": check_direction(at + "quat", self.quat, 4),
            "joints": tuple_of(Joint, at + "joints", self.joints),
            "mass": check_number(at + "mass", self.mass, least=0.0),
            "com": check_vector(at + "com", self.com, 3),
            "inertia": check_inertia(at + "inertia", self.inertia),
            "shapes": tuple_of(Shape, at + "shapes", self.shapes),
        }
        if values["mass"] == 0.0 and np.any(values["inertia"]):
            raise CharacterError(f"{at}inertia without mass; give it mass, or a joint armature")
        set_fields(self, values)

    def _set_inertia(self, density: float) -> None:
        """Take mass, center of mass and inertia from the shapes."""
        for key in ("mass", "com", "inertia"):
            if np.any(getattr(self, key)):
                raise CharacterError(
                    f"link {self.name!r}: give density or {key}, not both: with a density, mass, "
                    "com and inertia are those of the shapes"
                )
        made = Link.from_shapes(self.name, None, self.shapes, density=density)
        set_fields(self, {"mass": made.mass, "com": made.com, "inertia": made.inertia})

    @classmethod
    def from_shapes(
        cls,
        name: str,
        parent: str | None,
        shapes: Sequence[Shape],
        *,
        density: float | None = None,
        mass: float | None = None,
        pos: Vector = (0.0, 0.0, 0.0),
        quat: Vector = (1.0, 0.0, 0.0, 0.0),
        joints: Sequence[Joint] = (),
    ) -> Link:
        """Make a link with the mass, center of mass and inertia of its shapes, of one density.

        Where shapes overlap, the overlap counts for each.

        Args:
            name: Name of the link.
            parent: Name of the parent link; None for the root.
            shapes: At least one shape.
            density: Density [kg/m^3]; 1000, that of water, if mass is not given either.
            mass: Total mass instead of a density [kg].
            pos: As of a Link.
            quat: As of a Link.
            joints: As of a Link.
        """
        check_name("a link's name", name)
        at = f"link {name!r}: "
        shapes = tuple_of(Shape, at + "shapes", shapes)
        if not shapes:
            raise CharacterError(
                f"{at}shapes are needed to take mass and inertia from; there are none"
            )
        if mass is not None and density is not None:
            raise CharacterError(f"{at}give mass or density, not both")
        volume = sum(shape.volume for shape in shapes)
        if not volume > 0.0:
            raise CharacterError(f"{at}shapes are so small that they have no volume")
        if mass is None:
            density = (
                1000.0 if density is None else check_number(at + "density", density, least=0.0)
            )
            mass = density * volume
        else:
            mass = check_number(at + "mass", mass, least=0.0)
        com, inertia = solid([(shape, mass * shape.volume / volume) for shape in shapes])
        return cls(name, parent, pos, quat, tuple(joints), mass, com, inertia, shapes)


@read_only("dataclasses.replace(character, name=..., links=...) makes another")
@dataclass(frozen=True, repr=False)
class Character:
    """A tree of links on a free or fixed base.

    Args:
        name: Name of the character.
        links: Links in any order; kept depth-first, so that q and v are laid out as in MuJoCo.
        limbs: Named sets of links.
    """

    name: str
    links: tuple[Link, ...]
    limbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name("a character's name", self.name)
        links = depth_first(
            self.name, tuple_of(Link, f"character {self.name!r}: links", self.links)
        )
        set_fields(self, {"links": links, "limbs": checked_limbs(self.limbs, links)})
        check_moving(self)

    @cached_property
    def forest(self) -> Forest:
        """The character alone, compiled for the core."""
        return compile_forest([self])

    @cached_property
    def joints(self) -> tuple[Joint, ...]:
        """All joints, in the order of q and v."""
        return tuple(joint for link in self.links for joint in link.joints)

    @cached_property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(joint.nq for joint in self.joints)

    @cached_property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return sum(joint.nv for joint in self.joints)

    @cached_property
    def mass(self) -> float:
        """Total mass [kg]."""
        return math.fsum(link.mass for link in self.links)

    @cached_property
    def depth(self) -> int:
        """Largest number of degrees of freedom from the root to a leaf."""
        depth: dict[str | None, int] = {None: 0}
        for link in self.links:
            depth[link.name] = depth[link.parent] + sum(joint.nv for joint in link.joints)
        return max(depth.values())

    @property
    def rest_q(self) -> NDArray[np.float64]:
        """The rest pose: a free root where its link is placed, all else zero, shape (nq,)."""
        rest: NDArray[np.float64] = self.forest.rest_q.copy()
        return rest

    def link(self, name: str) -> Link:
        """The link of that name."""
        return _find("link", name, self._links)

    def joint(self, name: str) -> Joint:
        """The joint of that name."""
        return _find("joint", name, self._joints)[0]

    def q_slice(self, joint: str | Joint) -> slice:
        """Where the coordinates of a joint are in q."""
        return _find("joint", getattr(joint, "name", joint), self._joints)[1]

    def v_slice(self, joint: str | Joint) -> slice:
        """Where the velocities of a joint are in v, and its forces in tau."""
        return _find("joint", getattr(joint, "name", joint), self._joints)[2]

    def integrate(self, q: ArrayLike, v: ArrayLike, dt: float = 1.0) -> Floats:
        """Positions q ⊕ v dt that velocities lead to, shape (..., nq); quaternions are normalized.

        The convention is that of MuJoCo's mj_integratePos: a free joint translates in world axes
        and rotates in body axes.

        Args:
            q: Positions, shape (..., nq).
            v: Velocities, held over the time step, shape (..., nv).
            dt: Time step [s].
        """
        dt = number(dt, "dt", positive=False)
        return configuration.integrate(self, self._rows("q", q), self._rows("v", v), dt)

    def difference(self, q1: ArrayLike, q0: ArrayLike) -> Floats:
        """Displacements q1 ⊖ q0 [m, rad], shape (..., nv), as of MuJoCo's mj_differentiatePos.

        The inverse of `integrate`: integrate(q0, difference(q1, q0)) is q1.

        Args:
            q1: Positions at the end, shape (..., nq).
            q0: Positions at the beginning, shape (..., nq).
        """
        return configuration.difference(self, self._rows("q1", q1), self._rows("q0", q0))

    def _rows(self, name: str, value: ArrayLike) -> Floats:
        """An array of positions or velocities, (..., nq) or (..., nv)."""
        size, word = (self.nv, "nv") if name == "v" else (self.nq, "nq")
        array = floats(value, name)
        if array.shape[-1:] != (size,):
            raise PoiseError(
                f"{name} has shape {array.shape}, expected (..., {size}): {word} of {self.name!r}"
            )
        return array

    def with_base(self, base: Literal["free", "fixed"]) -> Character:
        """The same character with its root free to move, or welded to the world where it rests."""
        root = self.links[0]
        kinds = [joint.kind for joint in root.joints]
        check_known("base", base, ("free", "fixed"), error=CharacterError)
        if (base == "free") == ("free" in kinds):
            return self
        if base == "fixed":
            return self._with_root(replace(root, joints=()))
        if kinds:
            raise CharacterError(
                f"the root link {root.name!r} hangs on the world by joint {root.joints[0].name!r}; "
                "for a free base, make that link the child of a link with a free joint"
            )
        name = "root"
        while name in self._joints:
            name += "-2"
        return self._with_root(replace(root, joints=(Joint(name, "free"),)))

    def same_body(self, other: Character, *, kinematics: bool = False) -> bool:
        """Whether another character has the same links and joints, numbers within 1e-9 relative.

        Links and joints have the same names, kinds and order. Names of the characters, limbs and
        colours do not count. Numbers may differ by rounding, as they do when they were computed on
        another CPU; `==` compares everything bit for bit.

        Args:
            other: The other character.
            kinematics: Only compare what decides where links are at coordinates q: names, kinds,
                axes and frames. Masses, shapes, limits, springs and efforts may differ, and where a
                free root rests.
        """
        return next(differences(self, _character(other), kinematics=kinematics), None) is None

    def differences(self, other: Character, *, kinematics: bool = False) -> list[str]:
        """What `same_body` finds to differ in another character, a line for each; [] if none.

        Each line says "this one against the other": "link 'left_shin': mass 2.79 against 3.1 kg".

        Args:
            other: The other character.
            kinematics: As of `same_body`.
        """
        return list(differences(self, _character(other), kinematics=kinematics))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the character to a YAML file, lossless."""
        from poise.model.formats import save_character

        save_character(self, path)

    @cached_property
    def _links(self) -> dict[str, Link]:
        return {link.name: link for link in self.links}

    @cached_property
    def _joints(self) -> dict[str, tuple[Joint, slice, slice]]:
        found, q, v = {}, 0, 0
        for joint in self.joints:
            found[joint.name] = (joint, slice(q, q + joint.nq), slice(v, v + joint.nv))
            q, v = q + joint.nq, v + joint.nv
        return found

    def _with_root(self, root: Link) -> Character:
        return Character(self.name, (root, *self.links[1:]), self.limbs)

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.links))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return (
            f"Character({self.name!r}, {len(self.links)} links, nv={self.nv}, {self.mass:.4g} kg)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Character, (self.name, self.links, dict(self.limbs))


def free_object(
    name: str,
    shape: Shape | Sequence[Shape],
    *,
    mass: float | None = None,
    density: float | None = None,
    pos: Vector = (0.0, 0.0, 0.0),
    quat: Vector = (1.0, 0.0, 0.0, 0.0),
) -> Character:
    """A rigid object that moves freely: a character of one link, with one free joint, "root".

    Its density is uniform: center of mass and inertia are those of its shapes.

    Args:
        name: Of the object and of its link.
        shape: Its shape, or several, in the object's frame; where they overlap, both count.
        mass: Total mass [kg].
        density: Instead of a mass [kg/m^3]; 1000, that of water, if neither is given.
        pos: Where it starts: its origin in the world [m].
        quat: How it is turned there, w x y z.
    """
    shapes = (shape,) if isinstance(shape, Shape) else shape
    root = (Joint("root", "free"),)
    link = Link.from_shapes(
        name, None, shapes, density=density, mass=mass, pos=pos, quat=quat, joints=root
    )
    return Character(name, (link,))


def is_free_object(character: Character) -> bool:
    """Whether a character is an object: nothing moves it but a free joint."""
    return [joint.kind for joint in character.joints] == ["free"]


def _character(value: object) -> Character:
    if not isinstance(value, Character):
        raise CharacterError(
            f"a body is compared with that of a Character, got {value!r:.80}; see load_character"
        )
    return value


def _find(noun: str, name: object, known: Mapping[str, T]) -> T:
    if not isinstance(name, str) or name not in known:
        raise CharacterError(unknown_name(noun, name, known))
    return known[name]


__all__ = [
    "Character",
    "Joint",
    "JointKind",
    "Link",
    "Matrix",
    "Shape",
    "ShapeKind",
    "Vector",
    "free_object",
    "is_free_object",
]
