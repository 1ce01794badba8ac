"""Inverse dynamics by the recursion that Kane's equations give, in world axes.

Kavafoglu, *Real-time Physics-based Motion Control* (2018), section 3.8 (K). For a body B let B° be
its joint, B* its center of mass, r = B* - B° and, for each child C, p_C = C° - B*. w and al are the
angular velocity and acceleration of a body, g is gravity, P the parent.

Outward, the accelerations (3.7):

    a_B° = a_P* + al_P x p_B + w_P x (w_P x p_B)
    a_B* = a_B° + al_B x r + w_B x (w_B x r)

Inward, the total linear force (3.41) and the torque that acts on B through its joint (3.46):

    TLF_B = F_ext + m (g - a_B*) + sum over children of TLF_C
    tau_B = sum over children of [tau_C - p_C x TLF_C] - r x TLF_B + I al + w x I w - T_ext

F_ext acts at the center of mass; -tau_B acts on the parent. All joints of the thesis are balls.
Here a hinge takes the part of tau_B along its axis s, a slide that of the joint's force -TLF_B
along s, and a free root has its joint at the body's origin, where it takes -TLF_B and tau_B.
Through a slide p_B grows, which adds 2 w_P x s v + s a to a_B°.

Where we depart from what is printed:

- 3.28 starts a_D° from the parent's joint C°; by the definition of p_D it is the parent's center of
  mass.
- 3.19 and 3.33 to 3.46 have I al without w x I w. `as_printed=True` leaves it out as well.
- r of the root is zero there, because its speeds are those of its center of mass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.model.character import Character
from poise.reference.rnea import GRAVITY
from poise.reference.spatial import Array
from poise.reference.tree import (
    WORLD,
    Body,
    Placed,
    Tree,
    build_tree,
    check_length,
    external_forces,
    mass_properties,
    place_bodies,
)


class Arms(NamedTuple):
    """What a configuration makes of one body, in world axes."""

    joint: Array  # B° [m], (3,)
    center: Array  # B* [m], (3,)
    axis: Array  # s of a hinge or slide, (3,)
    R: Array  # rotation of the body, (3, 3)
    mass: float  # [kg]
    inertia: Array  # about B* [kg·m²], (3, 3)


class Motion(NamedTuple):
    """How one body moves, in world axes."""

    w: Array  # angular velocity [rad/s], (3,)
    al: Array  # angular acceleration [rad/s²], (3,)
    a: Array  # acceleration of B* [m/s²], (3,)


AT_REST = Motion(np.zeros(3), np.zeros(3), np.zeros(3))


def kane_inverse_dynamics(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
    as_printed: bool = False,
) -> Array:
    """Joint forces that give the acceleration a, by Kane's recursion.

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        a: Acceleration, dv/dt, shape (nv,).
        gravity: Acceleration of free fall [m/s²], shape (3,).
        external: Wrench on each link, world axes, force at the link's origin, shape (nl, 6).
        as_printed: Leave out w x I w, as the thesis does.

    Returns:
        tau [N, N·m], shape (nv,).
    """
    tree = build_tree(character)
    v, a = check_length("v", v, tree.nv), check_length("a", a, tree.nv)
    placed = place_bodies(tree, q)
    arms = [body_arms(body, at) for body, at in zip(tree.bodies, placed, strict=True)]
    motions = body_motions(tree, arms, v, a)
    F, T = forces_at_centers(tree, placed, arms, external)
    g = np.asarray(gravity, dtype=float)

    # inward: TLF and tau of a body are complete when its children, which come later, are done
    TLF, tau_B = F, -T
    tau = np.zeros(tree.nv)
    for i in reversed(range(len(tree.bodies))):
        body, arm, motion = tree.bodies[i], arms[i], motions[i]
        TLF[i] += arm.mass * (g - motion.a)
        tau_B[i] += arm.inertia @ motion.al - np.cross(arm.center - arm.joint, TLF[i])
        if not as_printed:
            tau_B[i] += np.cross(motion.w, arm.inertia @ motion.w)
        tau[body.v] = joint_force(body, arm, TLF[i], tau_B[i]) + body.joint.armature * a[body.v]
        if body.parent != WORLD:
            p = arm.joint - arms[body.parent].center
            TLF[body.parent] += TLF[i]
            tau_B[body.parent] += tau_B[i] - np.cross(p, TLF[i])
    return tau


def body_arms(body: Body, at: Placed) -> Arms:
    """Joint, center of mass, axis and inertia of a body in the world."""
    mass, anchor, c, inertia = mass_properties(body)
    R = at.X_WB.R
    return Arms(
        joint=at.X_WB.p + R @ anchor,
        center=at.X_WB.p + R @ c,
        axis=R @ np.asarray(body.joint.axis),
        R=R,
        mass=mass,
        inertia=R @ inertia @ R.T,
    )


def body_motions(tree: Tree, arms: list[Arms], v: Array, a: Array) -> list[Motion]:
    """The outward pass: w, al and a* of every body."""
    motions: list[Motion] = []
    for body, arm in zip(tree.bodies, arms, strict=True):
        P = AT_REST if body.parent == WORLD else motions[body.parent]
        v_B, a_B, kind = v[body.v], a[body.v], body.joint.kind
        w, al = P.w, P.al
        if kind == "free":
            w, al, a_joint = arm.R @ v_B[3:], arm.R @ a_B[3:], a_B[:3]
        else:
            p = arm.joint - (np.zeros(3) if body.parent == WORLD else arms[body.parent].center)
            a_joint = P.a + np.cross(P.al, p) + np.cross(P.w, np.cross(P.w, p))
        if kind == "slide":
            a_joint = a_joint + 2 * np.cross(P.w, arm.axis * v_B) + arm.axis * a_B
        if kind in ("ball", "hinge"):
            # the joint's own turning, w_B - w_P, is fixed in B but for v: its rate is w_P x w_J + a
            w_J, al_J = ((arm.R @ x if kind == "ball" else arm.axis * x) for x in (v_B, a_B))
            w, al = P.w + w_J, P.al + al_J + np.cross(P.w, w_J)
        r = arm.center - arm.joint
        motions.append(Motion(w, al, a_joint + np.cross(al, r) + np.cross(w, np.cross(w, r))))
    return motions


def joint_force(body: Body, arm: Arms, TLF: Array, tau_B: Array) -> Array:
    """The part of a joint's force -TLF and torque tau_B that its motor supplies."""
    kind = body.joint.kind
    if kind == "free":
        return np.concatenate([-TLF, arm.R.T @ tau_B])
    if kind == "ball":
        turned: Array = arm.R.T @ tau_B
        return turned
    return np.array([arm.axis @ (tau_B if kind == "hinge" else -TLF)])


def forces_at_centers(
    tree: Tree, placed: list[Placed], arms: list[Arms], external: ArrayLike | None
) -> tuple[Array, Array]:
    """F_ext at the centers of mass and T_ext, world axes, each of shape (bodies, 3).

    Args:
        external: Wrench on each link, world axes, force at the link's origin, shape (nl, 6).
    """
    F, T = np.zeros((len(arms), 3)), np.zeros((len(arms), 3))
    pushes = external_forces(tree, placed, external)
    for i, (at, arm, push) in enumerate(zip(placed, arms, pushes, strict=True)):
        # a push is torque about the body's origin, then force, in the body's frame
        F[i] = at.X_WB.R @ push[3:]
        T[i] = at.X_WB.R @ push[:3] - np.cross(arm.center - at.X_WB.p, F[i])
    return F, T
