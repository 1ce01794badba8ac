"""A Character as a flat list of bodies, one joint each.

The algorithms walk a list in which every body has one joint and a parent earlier in the list:

- a link with several joints becomes as many bodies, all but the last without mass;
- a link without joints is welded: its inertia joins the body that carries it, or the world.

A body's frame is the frame of its link, after the joint has acted; so a hinge with axis s and
anchor r moves it about a point beside its origin. With J the joint's own motion, the pose in
the parent's frame is (link pose at q = 0) Trans(r) J(q) Trans(-r). The motion subspace S with
v_joint = S v, angular rows first, is constant in the body's frame but for the free joint:

    hinge  [s; r x s]       slide  [0; s]       ball  [1; [r]x]       free  [0  1; R'  0]

R is the rotation of the body. The free joint's speeds are the linear velocity in the world and
the angular velocity w in the body, so S turns with the body, and differentiating R' gives the
apparent rate S° v = [0; -w x R' v_linear], which Yin & Yin's equation 32 leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math import rotation
from poise.model.character import Character, Joint
from poise.reference import spatial
from poise.reference.spatial import Array

WORLD = -1


@dataclass(frozen=True)
class Pose:
    """Where a frame is: a rotation (unit quaternion and its matrix) and an origin."""

    quat: Array  # (4,)
    p: Array  # [m], (3,)
    R: Array  # (3, 3)

    @staticmethod
    def of(quat: ArrayLike, p: ArrayLike) -> Pose:
        quat = rotation.normalize(np.asarray(quat, dtype=float))
        return Pose(quat, np.asarray(p, dtype=float), rotation.quat_matrix(quat))

    def __matmul__(self, other: Pose) -> Pose:
        quat = rotation.normalize(rotation.multiply(self.quat, other.quat))
        return Pose(quat, self.p + self.R @ other.p, rotation.quat_matrix(quat))


IDENTITY = Pose.of((1, 0, 0, 0), (0, 0, 0))


@dataclass(frozen=True)
class Body:
    """One joint and what it carries."""

    joint: Joint
    parent: int  # index of the body before it, WORLD = -1
    X_PJ: Pose  # where the joint starts in the parent's frame: the body at q = 0
    inertia: Array  # spatial inertia in the body's frame, (6, 6)
    q: slice  # its part of q
    v: slice  # its part of v


@dataclass(frozen=True)
class Tree:
    """Bodies of one joint each, in depth-first order; links in the character's order."""

    bodies: tuple[Body, ...]
    link_body: tuple[int, ...]  # the body that carries each link, or WORLD
    X_BL: tuple[Pose, ...]  # each link's frame in that body
    nq: int
    nv: int


@dataclass(frozen=True)
class Placed:
    """What a configuration makes of one body."""

    X: Array  # motion vectors from the parent's coordinates into the body's, (6, 6)
    S: Array  # motion subspace in the body's frame, (6, joint.nv)
    X_WB: Pose  # the body in the world


@lru_cache(maxsize=64)
def build_tree(character: Character) -> Tree:
    """Splits a character into bodies of one joint each."""
    bodies: list[Body] = []
    inertias: dict[int, Array] = {}
    place: dict[str | None, tuple[int, Pose]] = {None: (WORLD, IDENTITY)}
    nq = nv = 0
    for link in character.links:
        parent, X_PL = place[link.parent]
        X_PL = X_PL @ Pose.of(link.quat, link.pos)
        for joint in link.joints:
            # a free joint's q is the pose in the world itself, whatever the link's rest pose
            X_PJ = IDENTITY if joint.kind == "free" else X_PL
            q, v = slice(nq, nq + joint.nq), slice(nv, nv + joint.nv)
            bodies.append(Body(joint, parent, X_PJ, np.zeros((6, 6)), q, v))
            parent, X_PL = len(bodies) - 1, IDENTITY
            nq, nv = q.stop, v.stop
        place[link.name] = parent, X_PL
        # inertia at the body's origin: I_B = X_LB' I_L X_LB
        X_LB = spatial.transform_into(X_PL.R, X_PL.p)
        I_L = spatial.spatial_inertia(link.mass, link.com, link.inertia)
        inertias[parent] = inertias.get(parent, np.zeros((6, 6))) + X_LB.T @ I_L @ X_LB
    return Tree(
        tuple(replace(b, inertia=inertias.get(i, b.inertia)) for i, b in enumerate(bodies)),
        tuple(place[link.name][0] for link in character.links),
        tuple(place[link.name][1] for link in character.links),
        nq,
        nv,
    )


def mass_properties(body: Body) -> tuple[float, Array, Array, Array]:
    """Mass [kg], anchor of the joint and center of mass [m], inertia about it [kg·m²].

    In the body's frame, shapes (), (3,), (3,) and (3, 3); without mass, the center is the anchor.
    """
    mass = float(body.inertia[3, 3])
    anchored = body.joint.kind in ("ball", "hinge")
    anchor = np.asarray(body.joint.pos, dtype=float) if anchored else np.zeros(3)
    # the spatial inertia holds m [c]x, and I about the origin
    c: Array = body.inertia[[2, 0, 1], [4, 5, 3]] / mass if mass > 0 else anchor
    inertia = body.inertia[:3, :3] - mass * ((c @ c) * np.eye(3) - np.outer(c, c))
    return mass, anchor, c, inertia


def joint_pose(joint: Joint, q: Array) -> Pose:
    """The body's frame after the joint has moved by q, in its frame at q = 0."""
    axis, r = np.asarray(joint.axis, dtype=float), np.asarray(joint.pos, dtype=float)
    if joint.kind == "free":
        return Pose.of(q[3:], q[:3])
    if joint.kind == "slide":
        return Pose.of(IDENTITY.quat, axis * q[0])
    turn = Pose.of(q if joint.kind == "ball" else rotation.exp(axis * q[0]), np.zeros(3))
    return Pose(turn.quat, r - turn.R @ r, turn.R)


def motion_subspace(joint: Joint, q: Array) -> Array:
    """S, shape (6, joint.nv): the body's velocity relative to its parent is S v."""
    axis, r = np.asarray(joint.axis, dtype=float), np.asarray(joint.pos, dtype=float)
    zero, one = np.zeros((3, 3)), np.eye(3)
    if joint.kind == "free":
        return np.block([[zero, one], [joint_pose(joint, q).R.T, zero]])
    if joint.kind == "ball":
        return np.vstack([one, spatial.skew(r)])
    if joint.kind == "hinge":
        return np.concatenate([axis, np.cross(r, axis)])[:, None]
    return np.concatenate([np.zeros(3), axis])[:, None]


def subspace_rate(joint: Joint, S: Array, v: Array) -> Array:
    """S° v, shape (6,): what the turning of S in its own frame adds to the acceleration."""
    if joint.kind != "free":
        return np.zeros(6)
    w_B, v_B = np.split(S @ v, 2)
    return np.concatenate([np.zeros(3), -np.cross(w_B, v_B)])


def place_bodies(tree: Tree, q: ArrayLike) -> list[Placed]:
    """Put every body where q says."""
    q = check_length("q", q, tree.nq)
    placed: list[Placed] = []
    for body in tree.bodies:
        X_PB = body.X_PJ @ joint_pose(body.joint, q[body.q])
        X_WP = IDENTITY if body.parent == WORLD else placed[body.parent].X_WB
        X = spatial.transform_into(X_PB.R, X_PB.p)
        placed.append(Placed(X, motion_subspace(body.joint, q[body.q]), X_WP @ X_PB))
    return placed


def velocities(tree: Tree, placed: list[Placed], v: Array) -> tuple[list[Array], list[Array]]:
    """Each body's velocity and velocity-product acceleration in its own frame.

    v_i = X v_parent + S v and c_i = v_i x S v + S° v; with them a_i = X a_parent + S a + c_i.
    """
    speeds: list[Array] = []
    biases: list[Array] = []
    for body, at in zip(tree.bodies, placed, strict=True):
        v_J = at.S @ v[body.v]
        v_P = np.zeros(6) if body.parent == WORLD else speeds[body.parent]
        speeds.append(at.X @ v_P + v_J)
        rate = subspace_rate(body.joint, at.S, v[body.v])
        biases.append(spatial.crossm(speeds[-1]) @ v_J + rate)
    return speeds, biases


def external_forces(tree: Tree, placed: list[Placed], external: ArrayLike | None) -> list[Array]:
    """Wrenches on links as one spatial force per body, in the body's frame.

    Args:
        external: Force and torque on each link, world axes, the force acting at the link's
            origin [N, N·m], shape (nl, 6); None for none.
    """
    forces = [np.zeros(6) for _ in tree.bodies]
    if external is None:
        return forces
    external = np.asarray(external, dtype=float)
    if external.shape != (len(tree.link_body), 6):
        raise PoiseError(
            f"external has shape {external.shape}; expected ({len(tree.link_body)}, 6)"
        )
    for index, X_BL, wrench in zip(tree.link_body, tree.X_BL, external, strict=True):
        if index != WORLD:
            # a frame with world axes at the link's origin, seen from the body
            R_BW = placed[index].X_WB.R.T
            X = spatial.transform_into(R_BW, X_BL.p)
            forces[index] += X.T @ spatial.linear_first(wrench)
    return forces


def check_length(name: str, x: ArrayLike, n: int) -> Array:
    """x as an array of n floats; the twins take one state at a time."""
    x = np.asarray(x, dtype=float)
    if x.shape != (n,):
        raise PoiseError(f"{name} has shape {x.shape}; expected ({n},), one state without batch")
    return x
