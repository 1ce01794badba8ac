"""What a character is: an immutable tree of links, joints, inertias and shapes.

All values are plain tuples of floats, checked and normalised when made, so that characters compare
by value and never change. The pose of a link in its parent at coordinates q is

    X_PL = X(pos, quat) * prod_k Trans(joint_k.pos) J_k(q_k) Trans(-joint_k.pos)

with the link's joints in order, as in MuJoCo. Units are SI and radians; quaternions are w x y z.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from poise.errors import (
    CharacterError,
    check_direction,
    check_inertia,
    check_name,
    check_number,
    check_vector,
    shorten,
    unknown_name,
)
from poise.forest import Forest, compile_forest, composite_inertia, quat_from_z, quat_matrix

Vector = tuple[float, ...]
Matrix = tuple[Vector, Vector, Vector]
JointKind = Literal["free", "ball", "hinge", "slide"]
ShapeKind = Literal["sphere", "capsule", "box", "cylinder", "mesh"]
T = TypeVar("T")

SIZES = {"free": (7, 6), "ball": (4, 3), "hinge": (1, 1), "slide": (1, 1)}
"""Coordinates and degrees of freedom (nq, nv) of each joint kind."""

SHAPE_SIZES = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "mesh": 0}
"""How many numbers the size of each shape kind has."""

SINGULAR = 1e-12
"""A joint that carries less inertia than this, relative to what hangs on it, is singular."""

FLAT = 1e-6
"""A mesh thinner than this, relative to its length, has no inside."""


@dataclass(frozen=True)
class Joint:
    """A joint by which a link moves.

    Args:
        name: Name, unique in the character.
        kind: "free", "ball", "hinge" or "slide".
        axis: Axis of a hinge or slide, and the axis a of a ball's limits, in the link's frame;
            normalised.
        pos: Anchor of a ball or hinge in the link's frame [m].
        armature: Rotor inertia, the same for all axes [kg m^2; kg for a slide].
        damping: Passive damping [N m s/rad; N s/m].
        stiffness: Passive stiffness [N m/rad; N/m].
        reference: Where the passive spring rests: a number (hinge, slide), a quaternion (ball);
            None is the zero pose.
        limits: Lower and upper bound of a hinge or slide [rad; m], or None. For a ball (swing,
            lower, upper) [rad]: with q = q_swing q_twist, where q_twist turns about a and q_swing
            takes a to q a q^-1 the shortest way, that way is at most swing, in 0..pi, and the
            twist, in -pi..pi, lies between lower and upper.
        effort: Largest torque or force [N m; N], or None. For a ball one number bounds the length
            of the torque vector, three bound its components in the child frame.
    """

    name: str
    kind: JointKind
    axis: Vector = (0.0, 0.0, 1.0)
    pos: Vector = (0.0, 0.0, 0.0)
    armature: float = 0.0
    damping: float = 0.0
    stiffness: float = 0.0
    reference: float | Vector | None = None
    limits: Vector | None = None
    effort: float | Vector | None = None

    def __post_init__(self) -> None:
        check_name("a joint's name", self.name)
        at = f"joint {self.name!r}: "
        if self.kind not in list(SIZES):
            raise CharacterError(at + unknown_name("kind", self.kind, SIZES))
        values: dict[str, Any] = {
            "axis": check_direction(at + "axis", self.axis, 3),
            "pos": check_vector(at + "pos", self.pos, 3),
            "reference": _reference(at, self.kind, self.reference),
            "limits": _limits(at, self.kind, self.limits),
            "effort": _effort(at, self.kind, self.effort),
        }
        for key in ("armature", "damping", "stiffness"):
            values[key] = check_number(at + key, getattr(self, key), least=0.0)
        if self.kind == "free" and any(values["pos"]):
            raise CharacterError(
                f"{at}pos of a free joint must be (0, 0, 0): it is the link's origin"
            )
        if self.kind == "free" and values["stiffness"]:
            raise CharacterError(
                f"{at}stiffness of a free joint must be 0: it has no place to rest"
            )
        _set(self, values)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return SIZES[self.kind][0]

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return SIZES[self.kind][1]


@dataclass(frozen=True)
class Shape:
    """A solid fixed to a link, to draw, to collide and to take inertia from.

    Args:
        kind: "sphere", "capsule" or "cylinder" (along its z axis), "box", or "mesh": the convex
            hull of its vertices.
        size: Sphere (radius,); capsule (radius, half length of its cylinder); cylinder (radius,
            half length); box half sizes [m]; mesh ().
        pos: Origin of the shape's frame, the centre of all but meshes, in the link's frame [m].
        quat: Orientation in the link's frame, w x y z; normalised.
        color: Red, green, blue and, if not 1, alpha, each in 0..1; or None.
        vertices: Corners of a mesh in the shape's frame [m]; () for all others.
    """

    kind: ShapeKind
    size: Vector
    pos: Vector = (0.0, 0.0, 0.0)
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    color: Vector | None = None
    vertices: tuple[Vector, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in list(SHAPE_SIZES):
            raise CharacterError("shape: " + unknown_name("kind", self.kind, SHAPE_SIZES))
        size = check_vector(f"{self.kind}: size", self.size, SHAPE_SIZES[self.kind])
        # a capsule without cylinder part is a ball, and fine
        positive = size[:1] if self.kind == "capsule" else size
        if min(size, default=0.0) < 0.0 or 0.0 in positive:
            raise CharacterError(f"{self.kind}: size must be positive, got {size}")
        values: dict[str, Any] = {
            "size": size,
            "pos": check_vector(f"{self.kind}: pos", self.pos, 3),
            "quat": check_direction(f"{self.kind}: quat", self.quat, 4),
            "color": _color(f"{self.kind}: color", self.color),
            "vertices": _vertices(self.kind, self.vertices),
        }
        _set(self, values)

    @classmethod
    def capsule(
        cls,
        start: Sequence[float],
        end: Sequence[float],
        radius: float,
        color: Vector | None = None,
    ) -> Shape:
        """A capsule whose axis runs from start to end (the centres of its caps) [m]."""
        a = np.array(check_vector("capsule: start", start, 3))
        b = np.array(check_vector("capsule: end", end, 3))
        length = float(np.linalg.norm(b - a))
        quat = quat_from_z(tuple((b - a) / length)) if length > 0.0 else (1.0, 0.0, 0.0, 0.0)
        return cls("capsule", (radius, length / 2), tuple((a + b) / 2), quat, color)

    @classmethod
    def mesh(
        cls,
        vertices: Iterable[Sequence[float]],
        pos: Vector = (0.0, 0.0, 0.0),
        quat: Vector = (1.0, 0.0, 0.0, 0.0),
        color: Vector | None = None,
    ) -> Shape:
        """The convex hull of vertices, given in the shape's frame [m]."""
        return cls("mesh", (), pos, quat, color, tuple(vertices))  # type: ignore[arg-type]

    @property
    def volume(self) -> float:
        """Volume [m^3]."""
        if self.kind == "mesh":
            return self._moments[0]
        if self.kind == "box":
            return 8.0 * math.prod(self.size)
        r, half = (*self.size, 0.0)[:2]
        if self.kind == "cylinder":
            return math.pi * r * r * 2.0 * half
        return math.pi * r * r * (4.0 / 3.0 * r + 2.0 * half)

    @property
    def center(self) -> Vector:
        """Centre of volume in the shape's frame [m]: its origin, but for meshes."""
        return self._moments[1] if self.kind == "mesh" else (0.0, 0.0, 0.0)

    @cached_property
    def triangles(self) -> NDArray[np.int32]:
        """Faces of a mesh's hull: indices of vertices, counter-clockwise from outside, (k, 3)."""
        from scipy.spatial import ConvexHull, QhullError

        if self.kind != "mesh":
            raise CharacterError(f"a {self.kind} has no triangles; a mesh has")
        x = np.array(self.vertices)
        try:
            hull = ConvexHull(x)
        except QhullError as error:
            raise CharacterError("mesh: vertices have no hull; are they all different?") from error
        faces: NDArray[np.int32] = hull.simplices.astype(np.int32)
        a, b, c = np.moveaxis(x[faces], 1, 0)
        inward = np.sum(np.cross(b - a, c - a) * hull.equations[:, :3], axis=1) < 0.0
        faces[inward] = faces[inward][:, ::-1]
        faces.flags.writeable = False
        return faces

    def inertia(self, mass: float) -> NDArray[np.float64]:
        """Inertia about the centre, in the shape's axes [kg m^2], shape (3, 3)."""
        if self.kind == "mesh":
            second = mass * self._moments[2]
            return float(np.trace(second)) * np.eye(3) - second
        if self.kind == "box":
            x, y, z = (s * s for s in self.size)
            return mass / 3.0 * np.diag([y + z, x + z, x + y])
        if self.kind == "cylinder":
            rr, hh = (s * s for s in self.size)
            return mass * np.diag([rr / 4.0 + hh / 3.0, rr / 4.0 + hh / 3.0, rr / 2.0])
        # a cylinder of length h between the halves of a ball, each with its share of the mass
        r, h = self.size[0], 2.0 * (*self.size, 0.0)[1]
        cylinder = mass * h / (h + 4.0 / 3.0 * r)
        ball = mass - cylinder
        along = (cylinder / 2.0 + ball * 0.4) * r * r
        across = cylinder * (r * r / 4.0 + h * h / 12.0)
        across += ball * (0.4 * r * r + h * h / 4.0 + 0.375 * h * r)
        return np.diag([across, across, along])

    @cached_property
    def _moments(self) -> tuple[float, Vector, NDArray[np.float64]]:
        """Volume, centre, and second moment about it per volume, of a mesh.

        Sums over tetrahedra between an inner point o and the triangles a b c of the hull, with
        V = det(a, b, c) / 6 and s = a + b + c, all from o:
            integral of x = V s / 4,    integral of x x' = V (a a' + b b' + c c' + s s') / 20
        """
        x = np.array(self.vertices)
        o = x.mean(axis=0)
        corners = x[self.triangles] - o
        V, s = np.linalg.det(corners) / 6.0, corners.sum(axis=1)
        volume = V.sum()
        center = V @ s / (4.0 * volume)
        second = np.einsum("t,tki,tkj->ij", V, corners, corners)
        second += np.einsum("t,ti,tj->ij", V, s, s)
        second = second / (20.0 * volume) - np.outer(center, center)
        return float(volume), tuple((o + center).tolist()), second


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
        com: Centre of mass in the link's frame [m].
        inertia: Inertia about the centre of mass in link axes [kg m^2], 3x3, or its diagonal.
        shapes: What it looks like and collides with.
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

    def __post_init__(self) -> None:
        check_name("a link's name", self.name)
        at = f"link {self.name!r}: "
        if self.parent is not None:
            check_name(at + "parent", self.parent)
        values: dict[str, Any] = {
            "pos": check_vector(at + "pos", self.pos, 3),
            "quat": check_direction(at + "quat", self.quat, 4),
            "joints": _tuple_of(Joint, at + "joints", self.joints),
            "mass": check_number(at + "mass", self.mass, least=0.0),
            "com": check_vector(at + "com", self.com, 3),
            "inertia": check_inertia(at + "inertia", self.inertia),
            "shapes": _tuple_of(Shape, at + "shapes", self.shapes),
        }
        if values["mass"] == 0.0 and np.any(values["inertia"]):
            raise CharacterError(f"{at}inertia without mass; give it mass, or a joint armature")
        _set(self, values)

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
        """Make a link whose mass, centre and inertia are those of its shapes, of one density.

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
        at = f"link {name!r}: "
        shapes = _tuple_of(Shape, at + "shapes", shapes)
        if not shapes:
            raise CharacterError(
                f"{at}shapes are needed to take mass and inertia from; there are none"
            )
        if mass is not None and density is not None:
            raise CharacterError(f"{at}give mass or density, not both")
        volume = sum(shape.volume for shape in shapes)
        if mass is None:
            density = (
                1000.0 if density is None else check_number(at + "density", density, least=0.0)
            )
            mass = density * volume
        else:
            mass = check_number(at + "mass", mass, least=0.0)
        com, inertia = _solid([(shape, mass * shape.volume / volume) for shape in shapes])
        return cls(name, parent, pos, quat, tuple(joints), mass, com, inertia, shapes)


@dataclass(frozen=True)
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
        links = _depth_first(
            self.name, _tuple_of(Link, f"character {self.name!r}: links", self.links)
        )
        _set(self, {"links": links, "limbs": _limbs(self.limbs, links)})
        _check_moving(self)

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

    def with_base(self, base: Literal["free", "fixed"]) -> Character:
        """The same character with its root free to move, or welded to the world where it rests."""
        root = self.links[0]
        kinds = [joint.kind for joint in root.joints]
        if base not in ("free", "fixed"):
            raise CharacterError(unknown_name("base", base, ("free", "fixed")))
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the character to a YAML file, lossless."""
        from poise.characters import save_character

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

    def __reduce__(self) -> tuple[Any, ...]:
        return Character, (self.name, self.links, dict(self.limbs))


def _set(value: object, fields: Mapping[str, object]) -> None:
    """Set the checked fields of a frozen dataclass that is being made."""
    for key, x in fields.items():
        object.__setattr__(value, key, x)


def _find(noun: str, name: object, known: Mapping[str, T]) -> T:
    if not isinstance(name, str) or name not in known:
        raise CharacterError(unknown_name(noun, name, known))
    return known[name]


def _tuple_of(kind: type[T], where: str, values: object) -> tuple[T, ...]:
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise CharacterError(f"{where} must be a sequence of {kind.__name__}, got {values!r:.80}")
    found = tuple(values)
    for i, value in enumerate(found):
        if not isinstance(value, kind):
            raise CharacterError(f"{where}[{i}] must be a {kind.__name__}, got {value!r:.80}")
    return found


def _reference(at: str, kind: str, value: object) -> float | Vector | None:
    if value is None:
        return None
    if kind == "free":
        raise CharacterError(f"{at}reference of a free joint must be None: it has no spring")
    if kind == "ball":
        return check_direction(at + "reference", value, 4)
    return check_number(at + "reference", value)


def _limits(at: str, kind: str, value: object) -> Vector | None:
    if value is None:
        return None
    if kind == "free":
        raise CharacterError(f"{at}limits of a free joint must be None; all other kinds have them")
    if kind == "ball" and not (isinstance(value, (list, tuple, np.ndarray)) and len(value) == 3):
        raise CharacterError(
            f"{at}limits of a ball joint must be None or (swing, lower twist, upper twist), "
            f"got {value!r:.80}"
        )
    limits = check_vector(at + "limits", value, 3 if kind == "ball" else 2)
    lower, upper = limits[-2:]
    if lower > upper:
        raise CharacterError(f"{at}limits are reversed: lower {lower:g} > upper {upper:g}")
    # an angle written as pi may be one rounding above it
    if kind == "ball" and (limits[0] < 0.0 or max(map(abs, limits)) > math.pi + 1e-9):
        raise CharacterError(
            f"{at}limits of a ball joint must have swing in 0..pi and twist in -pi..pi, "
            f"got {limits}"
        )
    return limits


def _effort(at: str, kind: str, value: object) -> float | Vector | None:
    if value is None:
        return None
    if kind == "free":
        raise CharacterError(f"{at}effort of a free joint must be None: it has no motor")
    if kind == "ball" and isinstance(value, (list, tuple, np.ndarray)):
        efforts = check_vector(at + "effort", value, 3)
        return tuple(check_number(f"{at}effort[{i}]", x, least=0.0) for i, x in enumerate(efforts))
    return check_number(at + "effort", value, least=0.0)


def _color(where: str, value: object) -> Vector | None:
    if value is None:
        return None
    four = isinstance(value, (list, tuple, np.ndarray)) and len(value) == 4
    color = check_vector(where, value, 4 if four else 3)
    if min(color) < 0.0 or max(color) > 1.0:
        raise CharacterError(f"{where} must lie in 0..1, got {color}")
    return color if four else (*color, 1.0)


def _vertices(kind: str, value: object) -> tuple[Vector, ...]:
    if kind != "mesh":
        if isinstance(value, (list, tuple, np.ndarray)) and len(value) == 0:
            return ()
        raise CharacterError(f"{kind}: vertices must be (); only a mesh has them")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)) or len(value) < 4:
        raise CharacterError(f"mesh: vertices must be at least 4 points, got {value!r:.80}")
    vertices = tuple(check_vector(f"mesh: vertices[{i}]", x, 3) for i, x in enumerate(value))
    x = np.array(vertices)
    width = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    if not width[2] > FLAT * width[0]:
        raise CharacterError("mesh: vertices lie in a plane; a mesh needs volume")
    return vertices


def _solid(parts: Sequence[tuple[Shape, float]]) -> tuple[Vector, Matrix | Vector]:
    """Centre of mass, and inertia about it, of shapes with their masses."""
    masses = np.array([m for _, m in parts])
    if not masses.any():
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    centers = [shape.pos + quat_matrix(shape.quat) @ shape.center for shape, _ in parts]
    com = masses @ np.array(centers) / masses.sum()
    inertia = np.zeros((3, 3))
    for (shape, m), center in zip(parts, centers, strict=True):
        R, c = quat_matrix(shape.quat), center - com
        inertia += R @ shape.inertia(m) @ R.T + m * (c @ c * np.eye(3) - np.outer(c, c))
    # what rounding left of a zero would only make files longer
    inertia[np.abs(inertia) < 1e-15 * np.abs(inertia).max()] = 0.0
    x, y, z = map(tuple, inertia.tolist())
    return tuple(com.tolist()), (x, y, z)


def _limbs(limbs: object, links: Sequence[Link]) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(limbs, Mapping):
        raise CharacterError(f"limbs must map names to tuples of link names, got {limbs!r:.80}")
    known = [link.name for link in links]
    checked = {}
    for limb, names in limbs.items():
        check_name("a limb's name", limb)
        names = _tuple_of(str, f"limb {limb!r}", names)
        for name in names:
            if name not in known:
                raise CharacterError(f"limb {limb!r}: {unknown_name('link', name, known)}")
        if len(set(names)) != len(names):
            raise CharacterError(f"limb {limb!r} names a link twice: {shorten(names)}")
        checked[limb] = names
    return MappingProxyType(checked)


def _depth_first(name: str, links: tuple[Link, ...]) -> tuple[Link, ...]:
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


def _check_moving(character: Character) -> None:
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
