"""Where links are, and how the motion of their points follows from v and a.

For a point fixed in a link, with twist t = [velocity of the point; angular velocity] in world
axes,

    t = J v        dt/dt = J a + J° v,        J° v = jacobian_bias

A column of J is the motion subspace of one joint on the path to the root, moved to a frame at
the point with world axes. The bias is the acceleration at a = 0: the recursion of inverse
dynamics, a_i = X a_parent + c_i, gives the spatial acceleration; the acceleration a point
really has adds w x v_point (RBDA 2.10).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import check_known
from poise.math import rotation
from poise.model.character import Character
from poise.reference import spatial
from poise.reference.spatial import Array
from poise.reference.tree import (
    IDENTITY,
    WORLD,
    Placed,
    Pose,
    Tree,
    build_tree,
    check_length,
    place_bodies,
    velocities,
)

ORIGIN = (0.0, 0.0, 0.0)


def forward_kinematics(character: Character, q: ArrayLike) -> tuple[Array, Array]:
    """Poses of the link frames in the world.

    Args:
        q: Configuration, shape (nq,).

    Returns:
        Positions [m], shape (nl, 3), and unit quaternions w x y z, shape (nl, 4).
    """
    tree = build_tree(character)
    placed = place_bodies(tree, q)
    poses = [link_pose(tree, placed, i) for i in range(len(tree.X_BL))]
    return np.array([X.p for X in poses]), np.array([X.quat for X in poses])


def jacobian(character: Character, q: ArrayLike, link: str, point: ArrayLike = ORIGIN) -> Array:
    """Jacobian of a point of a link: linear rows, then angular, world axes, shape (6, nv).

    Args:
        q: Configuration, shape (nq,).
        link: Name of the link.
        point: The point, fixed in the link, in its frame [m], shape (3,).
    """
    tree = build_tree(character)
    placed = place_bodies(tree, q)
    i = link_index(character, link)
    X_WL = link_pose(tree, placed, i)
    p_WP = X_WL.p + X_WL.R @ np.asarray(point, dtype=float)
    J = np.zeros((6, tree.nv))
    body = tree.link_body[i]
    while body != WORLD:
        at = placed[body]
        X = spatial.transform_out_of(at.X_WB.R, at.X_WB.p - p_WP)
        J[:, tree.bodies[body].v] = spatial.linear_first(X @ at.S)
        body = tree.bodies[body].parent
    return J


def jacobian_bias(
    character: Character, q: ArrayLike, v: ArrayLike, link: str, point: ArrayLike = ORIGIN
) -> Array:
    """J° v of a point of a link: its acceleration when a = 0, linear then angular, shape (6,).

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        link: Name of the link.
        point: The point, fixed in the link, in its frame [m], shape (3,).
    """
    tree = build_tree(character)
    placed = place_bodies(tree, q)
    i = link_index(character, link)
    body = tree.link_body[i]
    if body == WORLD:
        return np.zeros(6)
    speeds, biases = velocities(tree, placed, check_length("v", v, tree.nv))
    a = bias_accelerations(tree, placed, biases)[body]
    # move velocity and acceleration to the point, in world axes
    X_WL = link_pose(tree, placed, i)
    p_WP = X_WL.p + X_WL.R @ np.asarray(point, dtype=float)
    X_WB = placed[body].X_WB
    X = spatial.transform_out_of(X_WB.R, X_WB.p - p_WP)
    w, u = np.split(X @ speeds[body], 2)
    angular, linear = np.split(X @ a, 2)
    return np.concatenate([linear + np.cross(w, u), angular])


def center_of_mass(character: Character, q: ArrayLike) -> Array:
    """The center of mass of all links in the world [m], shape (3,)."""
    position, quat = forward_kinematics(character, q)
    mass = np.array([link.mass for link in character.links])
    centers = [
        p + rotation.rotate(r, link.com)
        for link, p, r in zip(character.links, position, quat, strict=True)
    ]
    c: Array = mass @ np.array(centers) / mass.sum()
    return c


def link_pose(tree: Tree, placed: list[Placed], i: int) -> Pose:
    """Link i's frame in the world."""
    body = tree.link_body[i]
    return (IDENTITY if body == WORLD else placed[body].X_WB) @ tree.X_BL[i]


def link_index(character: Character, name: str) -> int:
    """The place of a link in character.links."""
    names = [link.name for link in character.links]
    check_known("link", name, names)
    return names.index(name)


def bias_accelerations(tree: Tree, placed: list[Placed], biases: list[Array]) -> list[Array]:
    """Spatial acceleration of every body when a = 0 and nothing pulls: a_i = X a_parent + c_i."""
    a: list[Array] = []
    for body, at, c in zip(tree.bodies, placed, biases, strict=True):
        a_P = np.zeros(6) if body.parent == WORLD else a[body.parent]
        a.append(at.X @ a_P + c)
    return a
