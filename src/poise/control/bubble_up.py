"""Torque bubble-up: each joint's torque is added to its parent joint, leaves first.

A joint torque τ_i acts on the body B_i, and -τ_i on its parent. So the parent feels τ_parent - τ_i
where its controller meant τ_parent. The cure (kavafoglu2018, 2.2.3, after Coros et al. 2010) is to
add τ_i to the parent joint, which passes the sum on to its own parent, up to the root. As vectors
in the world, with s the axes of a joint:

    T_b     = s_b tau_b                       what the joint's own force means as a torque
    added_b = s_b . Σ T_c, c outboard of b    what bubbles up to it

A ball takes all three components, a hinge the one along its axis; either passes all of them on,
because what a hinge cannot take its bearing carries. A slide has no torque and takes none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.math.arrays import Floats, Ints, floats
from poise.math.rotation import normalize, quat_matrices
from poise.model.forest import KINDS, Forest
from poise.model.scene import Scene, SceneLike, scene_of

_TURNING = {
    KINDS["free"]: ((3, 0), (4, 1), (5, 2)),
    KINDS["ball"]: ((0, 0), (1, 1), (2, 2)),
    KINDS["hinge"]: ((0, 2),),
    KINDS["slide"]: (),
}
"""Which velocities of a joint turn it, and about which axis of its body's internal frame."""


def bubbled(character: SceneLike, q: ArrayLike, tau: ArrayLike) -> Floats:
    """What bubbles up to each joint from the joints outboard of it [N·m], shape (..., nv).

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        tau: Generalized forces of the joints alone [N, N·m], shape (..., nv).
    """
    scene = scene_of(character)
    tau = floats(tau, "tau")
    plan = _plan(scene.forest)
    R = _orientations(scene, plan, floats(q, "q"))
    batch = np.broadcast_shapes(R.shape[:-3], tau.shape[:-1])
    # each joint's force as a vector: in its body's frame, then in the world
    own = np.zeros((*batch, len(plan.outboard), 3, 1))
    own[..., plan.body, plan.axis, 0] = tau[..., plan.dof]
    T = (R @ own)[..., 0]
    # those of all outboard bodies, along the joint's axes
    arrived = R.swapaxes(-1, -2) @ (plan.outboard @ T)[..., None]
    added = np.zeros((*batch, scene.nv))
    added[..., plan.dof] = arrived[..., plan.body, plan.axis, 0]
    return added


class _Plan(NamedTuple):
    """Where torques come from and where they go, in one forest."""

    dof: Ints  # velocities that turn something, shape (nt,)
    body: Ints  # whose they are, shape (nt,)
    axis: Ints  # about which axis of that body's internal frame, shape (nt,)
    outboard: Floats  # 1 where the column's body is outboard of the row's, shape (nb, nb)
    last: Ints  # bodies of each link's last joint, the one it is fixed to
    R_LB: Floats  # their internal frames in their links, shape (len(last), 3, 3)
    before: tuple[Ints, ...]  # bodies of the joints before that, one step back at a time
    E: Floats  # internal frames in those of the parents at q = 0, shape (nb, 3, 3)


@lru_cache(maxsize=32)
def _plan(forest: Forest) -> _Plan:
    rows = [
        (forest.v_adr[b] + dof, b, axis)
        for b, kind in enumerate(forest.kind)
        for dof, axis in _TURNING[int(kind)]
    ]
    dof, body, axis = np.array(rows, dtype=np.int32).reshape(-1, 3).T
    nb = len(forest.parent)
    outboard = np.zeros((nb, nb))
    for b in range(nb - 1, 0, -1):
        p = forest.parent[b]
        if p >= 0:
            outboard[p] += outboard[b]
            outboard[p, b] = 1.0
    # the joints of a link follow each other
    ends = np.append(forest.link[1:] != forest.link[:-1], True)
    last = np.flatnonzero(ends).astype(np.int32)
    before, level = [], last
    while level.size:
        level = level[level > 0] - 1
        level = level[~ends[level]]
        before.append(level)
    R_LB = quat_matrices(forest.link_E[forest.link[last]]).swapaxes(-1, -2)
    return _Plan(dof, body, axis, outboard, last, R_LB, tuple(before[:-1]), quat_matrices(forest.E))


def _orientations(scene: Scene, plan: _Plan, q: Floats) -> Floats:
    """Internal frames of the bodies in the world, as matrices (..., nb, 3, 3)."""
    forest = scene.forest
    links = dynamics.forward_kinematics(scene, q)[1]
    ends = quat_matrices(links[..., forest.link[plan.last], :]) @ plan.R_LB
    if not plan.before:
        return ends
    out = np.empty((*ends.shape[:-3], len(forest.parent), 3, 3))
    out[..., plan.last, :, :] = ends
    for level in plan.before:
        # back over the next joint: how it has turned, and how it was placed
        moved = plan.E[level + 1] @ quat_matrices(_turns(forest, level + 1, q))
        out[..., level, :, :] = out[..., level + 1, :, :] @ moved.swapaxes(-1, -2)
    return out


def _turns(forest: Forest, bodies: Ints, q: Floats) -> Floats:
    """How far joints have turned in their internal frames, quaternions (..., len(bodies), 4)."""
    out = np.zeros((*q.shape[:-1], len(bodies), 4))
    out[..., 0] = 1.0
    kind, at = forest.kind[bodies], forest.q_adr[bodies]
    hinge, ball = kind == KINDS["hinge"], kind == KINDS["ball"]
    half = q[..., at[hinge]] / 2.0
    out[..., hinge, 0], out[..., hinge, 3] = np.cos(half), np.sin(half)
    out[..., ball, :] = normalize(q[..., at[ball][:, None] + np.arange(4)])
    return out
