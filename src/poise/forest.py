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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.errors import PoiseError, shorten

if TYPE_CHECKING:
    from poise.character import Character, Joint, Link

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

KINDS = {"free": 0, "ball": 1, "hinge": 2, "slide": 3}
"""Number of each joint kind in `Forest.kind`."""


class Part(NamedTuple):
    """Where one character lives in the forest's arrays."""

    q: slice
    v: slice
    links: slice


class Pose(NamedTuple):
    """A rigid pose: rotation as a quaternion w x y z, then position; in plain floats."""

    E: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
    r: tuple[float, ...] = (0.0, 0.0, 0.0)

    def __matmul__(self, other: Pose) -> Pose:
        x, y, z = _rotate(self.E, other.r)
        E = _multiply(self.E, other.E)
        return Pose(E, (self.r[0] + x, self.r[1] + y, self.r[2] + z))

    def inverse(self) -> Pose:
        w, x, y, z = self.E
        px, py, pz = _rotate((w, -x, -y, -z), self.r)
        return Pose((w, -x, -y, -z), (-px, -py, -pz))


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
    mc: Floats  # mass times centre of mass [kg m], shape (nb, 3)
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


def merge_inertia(
    forest: Forest, link_mass: ArrayLike, link_com: ArrayLike, link_inertia: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """Gather the inertia of links into that of bodies; leading axes are batch axes.

    Args:
        forest: The forest.
        link_mass: Mass of each link [kg], shape (..., nl).
        link_com: Centre of mass in the link's frame [m], shape (..., nl, 3).
        link_inertia: About the centre of mass, in link axes [kg m^2], shape (..., nl, 3, 3).

    Returns:
        mass (..., nb), mc (..., nb, 3) and Io (..., nb, 6), as in the forest.
    """
    nl, nb = len(forest.link_body), len(forest.parent)
    m = _link_array("link_mass", link_mass, (nl,))
    com = _link_array("link_com", link_com, (nl, 3))
    inertia = _link_array("link_inertia", link_inertia, (nl, 3, 3))
    batch = np.broadcast_shapes(m.shape[:-1], com.shape[:-2], inertia.shape[:-3])

    # each link by itself, in the frame of its body: c = p + R com, I_o = R I R' + m (c'c 1 - c c')
    R = quat_matrix(forest.link_E)
    c = forest.link_p + (R @ com[..., None])[..., 0]
    about_origin = R @ inertia @ R.swapaxes(-1, -2) + m[..., None, None] * _square(c)

    # link by link, so that the sum does not depend on the batch
    mass, mc, Io = np.zeros((*batch, nb)), np.zeros((*batch, nb, 3)), np.zeros((*batch, nb, 6))
    for i, b in enumerate(forest.link_body):
        if b >= 0:
            mass[..., b] += m[..., i]
            mc[..., b, :] += m[..., i, None] * c[..., i, :]
            Io[..., b, :] += _six(about_origin[..., i, :, :])
    return mass, mc, Io


def fixed_mass(forest: Forest, link_mass: Floats) -> Floats:
    """Mass of the links that are welded to the world, and its moment about the origin (..., 4)."""
    at = forest.link_p + (quat_matrix(forest.link_E) @ forest.link_com[..., None])[..., 0]
    m = np.where(forest.link_body < 0, link_mass, 0.0)
    return np.concatenate([m.sum(axis=-1, keepdims=True), m @ at], axis=-1)


def composite_inertia(
    forest: Forest, numbers: tuple[Floats | None, ...] | None = None
) -> tuple[Floats, Floats, Floats]:
    """Inertia that each joint carries at q = 0: its body and all outboard, as one rigid body.

    Args:
        forest: The forest.
        numbers: A world's own mass, mc and Io, each None or with leading axes.

    Returns:
        mass (..., nb), mc (..., nb, 3) and Io (..., nb, 3, 3), about each body's internal origin.
    """
    own = (numbers or (None, None, None))[:3]
    mass, mc, six = (
        given if mine is None else mine
        for given, mine in zip((forest.mass, forest.mc, forest.Io), own, strict=True)
    )
    mass, mc, Io = mass.copy(), mc.copy(), _matrix(six)
    R = quat_matrix(forest.E)
    for b in range(mass.shape[-1] - 1, -1, -1):
        p, r = forest.parent[b], forest.r[b]
        if p < 0:
            continue
        # shift from the child's origin to the parent's, which lies at -r
        m = mass[..., b, None]
        h = mc[..., b, :] @ R[b].T
        rh = r[:, None] * h[..., None, :]
        trace = np.trace(rh, axis1=-2, axis2=-1)[..., None, None]
        mass[..., p] += mass[..., b]
        mc[..., p, :] += h + m * r
        Io[..., p, :, :] += R[b] @ Io[..., b, :, :] @ R[b].T + m[..., None] * _square(r)
        Io[..., p, :, :] += 2.0 * trace * np.eye(3) - rh - rh.swapaxes(-1, -2)
    return mass, mc, Io


def quat_matrix(quat: ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(quat, dtype=np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quat_from_z(axis: Sequence[float]) -> tuple[float, ...]:
    """Quaternion of a rotation that takes +z to a unit axis."""
    x, y, z = axis
    # the shortest one; below the horizon, first turn z to -z about x, then go the shortest way
    quat = (1.0 + z, -y, x, 0.0) if z >= 0.0 else (-y, 1.0 - z, 0.0, x)
    length = math.hypot(*quat)
    return tuple(x / length for x in quat)


class _Rows:
    """The forest while it grows: one list per array, one entry per body, link or coordinate."""

    def __init__(self) -> None:
        self.body: list[dict[str, Any]] = []
        self.link: list[dict[str, Any]] = []
        self.dof: list[dict[str, float]] = []
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
        per_axis = isinstance(joint.effort, tuple)
        self.body.append(
            {
                "parent": parent,
                "kind": KINDS[joint.kind],
                "q_adr": len(self.spring_q),
                "v_adr": len(self.dof),
                "joint": len(self.body),
                "link": len(self.link),
                "effort_per_axis": int(per_axis),
                "E": X_PB.E,
                "r": X_PB.r,
                "name": prefix + joint.name,
            }
        )
        self.spring_q += _spring(joint)
        for i in range(joint.nv):
            effort = joint.effort[i] if isinstance(joint.effort, tuple) else joint.effort
            self.dof.append(
                {
                    "armature": joint.armature,
                    "damping": joint.damping,
                    "stiffness": joint.stiffness,
                    "effort": math.inf if effort is None else effort,
                }
            )

    def forest(self, parts: dict[str, Part]) -> Forest:
        """Turn the rows into arrays."""
        links = [row["link"] for row in self.link]
        body, X = zip(*(row["place"] for row in self.link), strict=True)
        nb = len(self.body)
        ints: Any = {key: _ints(row[key] for row in self.body) for key in _BODY_INTS}
        floats: Any = {key: _floats(row[key] for row in self.dof) for key in _DOF_FLOATS}
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


_BODY_INTS = ("parent", "kind", "q_adr", "v_adr", "joint", "link", "effort_per_axis")
_DOF_FLOATS = ("armature", "damping", "stiffness", "effort")


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
    for name in names:
        fresh = (name, *(f"{name}-{i}" for i in range(2, len(names) + 2)))
        used[next(x for x in fresh if x not in used)] = None
    return list(used)


def _link_array(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if array.shape[-len(shape) :] != shape:
        wanted = ", ".join(("...", *map(str, shape)))
        raise PoiseError(f"{name} must have shape ({wanted}), got {array.shape}")
    return array


def _square(c: Floats) -> Floats:
    """c'c 1 - c c': the inertia of a unit mass at c about the origin."""
    cc: Floats = np.sum(c * c, axis=-1)[..., None, None]
    return cc * np.eye(3) - c[..., :, None] * c[..., None, :]


def _six(matrix: Floats) -> Floats:
    """Symmetric matrices (..., 3, 3) as xx yy zz xy xz yz."""
    return matrix[..., (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]


def _matrix(six: Floats) -> Floats:
    """The inverse of `_six`."""
    return six[..., [[0, 3, 4], [3, 1, 5], [4, 5, 2]]]


def _floats(rows: Iterable[Any], *shape: int) -> Floats:
    return np.array(list(rows), dtype=np.float64).reshape(-1, *shape)


def _ints(rows: Iterable[int]) -> Ints:
    return np.array(list(rows), dtype=np.int32)


def _multiply(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    """Product of two quaternions."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def _rotate(quat: Sequence[float], p: Sequence[float]) -> tuple[float, float, float]:
    """A vector turned by a quaternion: p + 2 w (u x p) + 2 u x (u x p)."""
    w, x, y, z = quat
    tx, ty, tz = 2 * (y * p[2] - z * p[1]), 2 * (z * p[0] - x * p[2]), 2 * (x * p[1] - y * p[0])
    return (
        p[0] + w * tx + y * tz - z * ty,
        p[1] + w * ty + z * tx - x * tz,
        p[2] + w * tz + x * ty - y * tx,
    )
