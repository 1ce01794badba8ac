"""The compiled forest: what the core takes.

A *body* is one joint and what it carries. Links without joints are merged into the body of their
parent (or into the world, body -1); a link with k joints gives k bodies, the first k - 1 massless.
Bodies come depth-first, in the order of the links. Every body has an internal frame B, fixed to it:

    origin       at the joint's anchor; free, slide: at the link's origin
    orientation  free, ball: that of the link; hinge, slide: the joint's axis is +z

so that the core turns about z and shifts along z and needs no axis. With L the frame of a link, P
that of its parent link, and X_AB the pose of B in A, all at q = 0:

    first joint of a link   X_BpB = X_BpP X_PL X_LB     (Bp: the body that carries the parent link)
    next joints             X_BpB = X_LBp^-1 X_LB       (Bp: the body of the joint before)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.errors import PoiseError, shorten
from poise.math.arrays import Floats, Ints
from poise.math.pose import Pose
from poise.math.rotation import quat_from_z
from poise.model.inertia import merge_inertia

if TYPE_CHECKING:
    from poise.model.character import Character, Joint, Link

KINDS = {"free": 0, "ball": 1, "hinge": 2, "slide": 3}
"""Number of each joint kind in `Forest.kind`."""


class Part(NamedTuple):
    """Where one character lives in the forest's arrays."""

    q: slice
    v: slice
    links: slice


class Coordinates(NamedTuple):
    """Where rotations and all else are in q and v."""

    quat: Ints  # quaternions of ball and free joints in q, shape (k, 4)
    turn: Ints  # their angular velocities in v, shape (k, 3)
    plain_q: Ints  # all else in q, shape (m,)
    plain_v: Ints  # and in v, shape (m,)


@dataclass(frozen=True, eq=False)
class Forest:
    """Several characters as one set of arrays, C-contiguous, float64 and int32."""

    # topology, one row per body
    parent: Ints  # parent body, -1 = world, shape (nb,)
    kind: Ints  # 0 free, 1 ball, 2 hinge, 3 slide, shape (nb,)
    q_adr: Ints  # first coordinate, shape (nb,)
    v_adr: Ints  # first velocity, shape (nb,)
    joint: Ints  # index into joint_names, shape (nb,)
    link: Ints  # link whose joint it is, shape (nb,)

    # internal frame in the parent body's internal frame at q = 0; free: identity
    E: Floats  # rotation, w x y z, shape (nb, 4)
    r: Floats  # position [m], shape (nb, 3)

    # inertia in the internal frame; zeros for massless bodies
    mass: Floats  # [kg], shape (nb,)
    mc: Floats  # mass times center of mass [kg m], shape (nb, 3)
    Io: Floats  # about the internal origin, xx yy zz xy xz yz [kg m^2], shape (nb, 6)

    # joints, one entry per velocity; spring_q and rest_q per coordinate
    armature: Floats  # [kg m^2, kg], shape (nv,)
    damping: Floats  # passive [N m s/rad, N s/m], shape (nv,)
    stiffness: Floats  # passive [N m/rad, N/m], shape (nv,)
    effort: Floats  # largest torque or force, inf = none [N m, N], shape (nv,)
    effort_per_axis: Ints  # 1 for a ball limited per axis, not in length, shape (nb,)
    spring_q: Floats  # where passive springs rest, shape (nq,)
    rest_q: Floats  # the rest pose, shape (nq,)

    # links: pose in the internal frame of their body (in the world for body -1), and own inertia
    link_body: Ints  # shape (nl,)
    link_p: Floats  # [m], shape (nl, 3)
    link_E: Floats  # w x y z, shape (nl, 4)
    link_mass: Floats  # [kg], shape (nl,)
    link_com: Floats  # in the link's frame [m], shape (nl, 3)
    link_inertia: Floats  # about the com, in link axes [kg m^2], shape (nl, 3, 3)

    # names and sizes
    link_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    parts: dict[str, Part]
    nq: int
    nv: int

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arguments of the core's queries, for one state, by name."""
        per_dof = ("v", "a", "tau", "target_v", "target_a", "kp", "kd")
        return {
            **dict.fromkeys(("q", "target_q"), (self.nq,)),
            **dict.fromkeys(per_dof, (self.nv,)),
            "external": (len(self.link_names), 6),
            "past": (2, self.nq),
        }

    @cached_property
    def coordinates(self) -> Coordinates:
        """Where rotations and all else are in q and v."""
        ball, free = self.kind == KINDS["ball"], self.kind == KINDS["free"]
        q = np.concatenate([self.q_adr[ball], self.q_adr[free] + 3])[:, None] + np.arange(4)
        v = np.concatenate([self.v_adr[ball], self.v_adr[free] + 3])[:, None] + np.arange(3)
        rest_q, rest_v = np.setdiff1d(np.arange(self.nq), q), np.setdiff1d(np.arange(self.nv), v)
        return Coordinates(*(x.astype(np.int32) for x in (q, v, rest_q, rest_v)))

    @cached_property
    def body_of_dof(self) -> NDArray[np.intp]:
        """The body that each velocity moves, shape (nv,)."""
        return np.repeat(np.arange(len(self.kind)), np.array([6, 3, 1, 1])[self.kind])

    @cached_property
    def link_of_dof(self) -> Ints:
        """The link that each velocity moves, shape (nv,)."""
        return self.link[self.body_of_dof]


def compile_forest(characters: Sequence[Character], names: Sequence[str] | None = None) -> Forest:
    """Compile characters into one forest.

    Args:
        characters: The parts of a scene, in the order of their coordinates.
        names: A name for each part; unless given, the characters' own, numbered where they repeat.
    """
    part_names = _part_names(characters, names)
    rows = _Rows()
    parts = {}
    for name, character in zip(part_names, characters, strict=True):
        prefix = f"{name}/" if len(characters) > 1 else ""
        parts[name] = rows.add_character(character, prefix)
    return rows.forest(parts)


_BODY_INTS = ("parent", "kind", "q_adr", "v_adr", "joint", "link", "effort_per_axis")
_DOF_FLOATS = ("armature", "damping", "stiffness", "effort")


class _Rows:
    """The forest while it grows: one list per array, one entry per body, link or coordinate."""

    def __init__(self) -> None:
        self.body: list[dict[str, Any]] = []
        self.link: list[dict[str, Any]] = []
        self.dof: list[tuple[float, ...]] = []
        self.spring_q: list[float] = []
        self.rest_q: list[float] = []

    def add_character(self, character: Character, prefix: str) -> Part:
        """Append all links of a character; return where they are."""
        q, v, first = len(self.rest_q), len(self.dof), len(self.link)
        index = {link.name: first + i for i, link in enumerate(character.links)}
        for link in character.links:
            parent = -1 if link.parent is None else index[link.parent]
            self.add_link(link, parent, prefix)
        return Part(
            slice(q, len(self.rest_q)), slice(v, len(self.dof)), slice(first, len(self.link))
        )

    def add_link(self, link: Link, parent: int, prefix: str) -> None:
        """Append a link and the bodies of its joints."""
        # X: pose of the link in the internal frame of its body so far
        body, X = (-1, Pose()) if parent < 0 else self.link[parent]["place"]
        X = X @ Pose(link.quat, link.pos)
        for joint in link.joints:
            X_LB = _internal_frame(joint)
            X_PB = Pose() if joint.kind == "free" else X @ X_LB
            self.add_joint(joint, body, X_PB, prefix)
            self.rest_q += _rest(joint, link)
            body, X = len(self.body) - 1, X_LB.inverse()
        self.link.append({"name": prefix + link.name, "place": (body, X), "link": link})

    def add_joint(self, joint: Joint, parent: int, X_PB: Pose, prefix: str) -> None:
        """Append the body of a joint."""
        self.body.append(
            {
                "parent": parent,
                "kind": KINDS[joint.kind],
                "q_adr": len(self.spring_q),
                "v_adr": len(self.dof),
                "joint": len(self.body),
                "link": len(self.link),
                "effort_per_axis": int(isinstance(joint.effort, tuple)),
                "E": X_PB.E,
                "r": X_PB.r,
                "name": prefix + joint.name,
            }
        )
        self.spring_q += _spring(joint)
        efforts = joint.effort if isinstance(joint.effort, tuple) else (joint.effort,) * joint.nv
        for effort in efforts:
            bound = math.inf if effort is None else effort
            self.dof.append((joint.armature, joint.damping, joint.stiffness, bound))

    def forest(self, parts: dict[str, Part]) -> Forest:
        """Turn the rows into arrays."""
        links = [row["link"] for row in self.link]
        body, X = zip(*(row["place"] for row in self.link), strict=True)
        nb = len(self.body)
        ints: Any = {key: _ints(row[key] for row in self.body) for key in _BODY_INTS}
        dofs = np.ascontiguousarray(_floats(self.dof, 4).T)
        floats: Any = dict(zip(_DOF_FLOATS, dofs, strict=True))
        forest = Forest(
            **ints,
            E=_floats((row["E"] for row in self.body), 4),
            r=_floats((row["r"] for row in self.body), 3),
            mass=np.zeros(nb),
            mc=np.zeros((nb, 3)),
            Io=np.zeros((nb, 6)),
            **floats,
            spring_q=_floats(self.spring_q),
            rest_q=_floats(self.rest_q),
            link_body=_ints(body),
            link_p=_floats((x.r for x in X), 3),
            link_E=_floats((x.E for x in X), 4),
            link_mass=_floats(link.mass for link in links),
            link_com=_floats((link.com for link in links), 3),
            link_inertia=_floats((link.inertia for link in links), 3, 3),
            link_names=tuple(row["name"] for row in self.link),
            joint_names=tuple(row["name"] for row in self.body),
            parts=parts,
            nq=len(self.rest_q),
            nv=len(self.dof),
        )
        inertia = merge_inertia(forest, forest.link_mass, forest.link_com, forest.link_inertia)
        return replace(forest, mass=inertia[0], mc=inertia[1], Io=inertia[2])


def _internal_frame(joint: Joint) -> Pose:
    """X_LB: the internal frame of a joint's body in the frame of its link."""
    if joint.kind == "hinge":
        return Pose(quat_from_z(joint.axis), joint.pos)
    if joint.kind == "slide":
        return Pose(quat_from_z(joint.axis))
    return Pose(r=joint.pos)


def _rest(joint: Joint, link: Link) -> tuple[float, ...]:
    """Coordinates at rest: a free link where its frame is placed, all others at zero."""
    if joint.kind == "free":
        return (*link.pos, *link.quat)
    return (1.0, 0.0, 0.0, 0.0) if joint.kind == "ball" else (0.0,)


def _spring(joint: Joint) -> tuple[float, ...]:
    """Coordinates at which the passive spring rests."""
    if joint.kind == "free":
        return (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    if joint.kind == "ball":
        return joint.reference if isinstance(joint.reference, tuple) else (1.0, 0.0, 0.0, 0.0)
    return (joint.reference if isinstance(joint.reference, float) else 0.0,)


def _part_names(characters: Sequence[Character], names: Sequence[str] | None) -> list[str]:
    if not characters:
        raise PoiseError("a forest needs at least one character")
    if names is None:
        return _numbered([character.name for character in characters])
    if len(names) != len(characters) or len(set(names)) != len(names):
        raise PoiseError(
            f"names must be {len(characters)} different ones, one for each character, "
            f"got {shorten(map(repr, names)) or 'none'}"
        )
    return list(names)


def _numbered(names: list[str]) -> list[str]:
    """Make names different: a repeated one becomes name-2, name-3, ..."""
    used: dict[str, None] = {}
    after: dict[str, int] = {}  # the number to try next
    for name in names:
        fresh = name
        while fresh in used:
            after[name] = after.get(name, 1) + 1
            fresh = f"{name}-{after[name]}"
        used[fresh] = None
    return list(used)


def _floats(rows: Iterable[Any], *shape: int) -> Floats:
    return np.array(list(rows), dtype=np.float64).reshape(-1, *shape)


def _ints(rows: Iterable[int]) -> Ints:
    return np.array(list(rows), dtype=np.int32)
