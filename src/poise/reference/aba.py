"""Forward dynamics and stable PD in linear time: ABA and MABA.

The articulated-body algorithm solves M a + h = tau without forming M. Yin & Yin's modified one
(Linear Time Stable PD Controllers, 2020, appendix A) solves it for joint forces that depend on
the acceleration they cause, tau = Q - K a:

    (M + K) a = Q - h

Pass 1, outward (eq. 30 to 33):

    v_i = X v_parent + S v                       (31)
    c_i = v_i x S v + S° v                       (32, which lacks S°: see tree.py)
    p_i = v_i x* I_i v_i - I_i X_iW g - f_ext    (33, which lacks gravity and external forces)

Pass 2, inward (34 to 42), where I^A and p^A say how body i answers to a force when all it
carries hangs on it, f = I^A a + p^A:

    I^A_i = I_i + sum X' I^a X                   (34)        p^A_i = p_i + sum X' p^a     (35)
    H = I^A S                                    (36)        D = S' H + K + armature      (37)
    u = Q - S' p^A                               (39)
    I^a = I^A - H D^-1 H'                        (41)        p^a = p^A + I^a c + H D^-1 u (42)

Pass 3, outward (43 to 46):

    a'_i = X a_parent + c_i                      (44)
    a = D^-1 (u - H' a'_i)                       (45)        a_i = a'_i + S a             (46)

K and Q are eq. 38 and 40, and their variants, in drive.py. With K = 0 and Q = tau it is ABA.

I^a must be kept symmetric: (41) and (45) use H' where S' I^A is meant, and on a chain of 63 ball
joints the rounding that separates the two grows until no digit of a is left.

D is a pivot of M + K. If it vanishes against the joint's entry of M + K (a gimbal lock gives
1e-33, not 0), some motion moves no mass, and there is no acceleration to find.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.model.character import Character
from poise.reference import spatial
from poise.reference.drive import Form, drive, target_arrays
from poise.reference.effort_limits import Limit, effort_limits, saturated, solve_bounded
from poise.reference.factor import solve_dense, solve_pcg, solve_sparse
from poise.reference.rnea import GRAVITY, bias_force, composite_inertias, mass_matrix
from poise.reference.spatial import Array
from poise.reference.tree import (
    WORLD,
    Body,
    Placed,
    Tree,
    build_tree,
    check_length,
    external_forces,
    place_bodies,
    velocities,
)

Method = Literal["maba", "df", "sf", "pcg"]

# pivots below this fraction of their diagonal entry are rounding, not inertia
SMALLEST_PIVOT = 1e-13


def forward_dynamics(
    character: Character, q: ArrayLike, v: ArrayLike, tau: ArrayLike, **loads: Any
) -> Array:
    """The acceleration that joint forces cause.

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        tau: Joint forces [N, N·m], shape (nv,).
        loads: gravity and external, as of maba.

    Returns:
        a = dv/dt, shape (nv,).
    """
    return maba(character, q, v, tau, np.zeros(np.shape(v)), **loads)


def stable_pd(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float,
    method: Method = "maba",
    form: Form = "implicit",
    **loads: Any,
) -> tuple[Array, Array]:
    """Acceleration and joint forces of a PD drive that is solved with the dynamics.

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        target: The pose and velocity to reach at t + dt: (q, v), or an object with .q and .v.
        kp: Stiffness [N·m/rad, N/m], a number or shape (nv,).
        kd: Damping [N·m·s/rad, N·s/m], a number or shape (nv,).
        dt: Time step [s].
        method: "maba" (linear time), or by the mass matrix: "df" dense Cholesky, "sf" sparse
            LTDL, "pcg" preconditioned conjugate gradients.
        form: "implicit", "spd", "explicit" or "pd"; see drive.py.
        loads: gravity and external, as of maba.

    Returns:
        a = dv/dt and tau = Q - K a, each of shape (nv,).
    """
    Q, K = drive(character, q, v, *target_arrays(target), kp, kd, dt, form)
    a = solve_drive(character, q, v, Q, K, method, **loads)
    return a, Q - K * a


def solve_drive(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    Q: ArrayLike,
    K: ArrayLike,
    method: Method = "maba",
    **loads: Any,
) -> Array:
    """a in (M + K) a = Q - h, with K the diagonal of a matrix, shape (nv,); loads as of maba."""
    if method == "maba":
        return maba(character, q, v, Q, K, **loads)
    b = np.asarray(Q, dtype=float) - bias_force(character, q, v, **loads)
    A = mass_matrix(character, q) + np.diag(np.asarray(K, dtype=float))
    if method == "df":
        return solve_dense(A, b)
    if method == "sf":
        return solve_sparse(character, A, b)
    if method == "pcg":
        return solve_pcg(A, b)
    raise PoiseError(f"unknown method {method!r}; expected 'maba', 'df', 'sf' or 'pcg'")


def maba(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    Q: ArrayLike,
    K: ArrayLike,
    *,
    gravity: ArrayLike = GRAVITY,
    external: ArrayLike | None = None,
) -> Array:
    """The modified articulated-body algorithm: a in (M + K) a = Q - h, in linear time.

    Args:
        q: Configuration, shape (nq,).
        v: Velocity, shape (nv,).
        Q: The part of the joint forces that is known beforehand, shape (nv,).
        K: How much each joint force falls with its acceleration, shape (nv,).
        gravity: Acceleration of free fall [m/s²], shape (3,).
        external: Wrench on each link, world axes, force at the link's origin, shape (nl, 6).
    """
    tree = build_tree(character)
    v, Q, K = (check_length(n, x, tree.nv) for n, x in (("v", v), ("Q", Q), ("K", K)))
    placed = place_bodies(tree, q)
    diagonal = _diagonal(tree, placed, K)
    g = np.asarray(gravity, dtype=float)

    # pass 1: velocities, and the force each body needs to keep a = 0
    speeds, c = velocities(tree, placed, v)
    pushes = external_forces(tree, placed, external)
    p: list[Array] = []
    for i, (body, at) in enumerate(zip(tree.bodies, placed, strict=True)):
        v_i, I_i = speeds[i], body.inertia
        g_i = np.concatenate([np.zeros(3), at.X_WB.R.T @ g])
        p.append(spatial.crossf(v_i) @ I_i @ v_i - I_i @ g_i - pushes[i])

    # pass 2: articulated inertias and bias forces
    n = len(tree.bodies)
    I_A = [body.inertia.copy() for body in tree.bodies]
    p_A = p
    H, D, u = ([np.empty(0)] * n for _ in range(3))
    for i in reversed(range(n)):
        body, at = tree.bodies[i], placed[i]
        H[i] = I_A[i] @ at.S
        D[i] = at.S.T @ H[i] + np.diag(K[body.v] + body.joint.armature)
        u[i] = Q[body.v] - at.S.T @ p_A[i]
        _check_pivot(D[i], diagonal[body.v], body)
        if body.parent != WORLD:
            I_a = I_A[i] - H[i] @ np.linalg.solve(D[i], H[i].T)
            p_a = p_A[i] + I_a @ c[i] + H[i] @ np.linalg.solve(D[i], u[i])
            # symmetric but for rounding, and kept so: on long chains the difference would grow
            I_a = (I_a + I_a.T) / 2
            I_A[body.parent] += at.X.T @ I_a @ at.X
            p_A[body.parent] += at.X.T @ p_a

    # pass 3: accelerations
    a = np.zeros(tree.nv)
    accelerations: list[Array] = []
    for i, (body, at) in enumerate(zip(tree.bodies, placed, strict=True)):
        a_P = np.zeros(6) if body.parent == WORLD else accelerations[body.parent]
        a_prime = at.X @ a_P + c[i]
        a[body.v] = np.linalg.solve(D[i], u[i] - H[i].T @ a_prime)
        accelerations.append(a_prime + at.S @ a[body.v])
    return a


def _diagonal(tree: Tree, placed: list[Placed], K: Array) -> Array:
    """The diagonal of M + K, the scale of the pivots."""
    diagonal: Array = K.copy()
    composite = composite_inertias(tree, placed)
    for body, at, I_c in zip(tree.bodies, placed, composite, strict=True):
        diagonal[body.v] += np.diag(at.S.T @ I_c @ at.S) + body.joint.armature
    return diagonal


def _check_pivot(D: Array, diagonal: Array, body: Body) -> None:
    """Refuse a joint that moves no mass."""
    scale = np.sqrt(np.outer(diagonal, diagonal))
    if not (diagonal > 0).all() or np.linalg.eigvalsh(D / scale)[0] < SMALLEST_PIVOT:
        raise PoiseError(
            f"joint {body.joint.name!r} moves no mass in this pose (singular mass matrix); "
            "give it armature, or its link mass, or turn its axes out of line"
        )


def limited_stable_pd(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    target: Any,
    kp: ArrayLike,
    kd: ArrayLike,
    dt: float,
    method: Method = "maba",
    form: Form = "implicit",
    *,
    limits: list[Limit] | None = None,
    **loads: Any,
) -> tuple[Array, Array]:
    """stable_pd with joint forces that stay within their limits: the bounded law of
    effort_limits.py, solved until it holds.

    Args:
        limits: Effort limits; the character's own unless given.
        Others: As in stable_pd. method is that of the drive without limits: where some joint
            saturates, the solution is by the mass matrix.

    Returns:
        a = dv/dt and tau, each of shape (nv,).
    """
    if limits is None:
        limits = effort_limits(character)
    Q, K = drive(character, q, v, *target_arrays(target), kp, kd, dt, form)
    a = solve_drive(character, q, v, Q, K, method, **loads)
    if not saturated(limits, Q - K * a).any():
        return a, Q - K * a
    M, h = mass_matrix(character, q), bias_force(character, q, v, **loads)
    return solve_bounded(M, h, Q, K, limits, a)
