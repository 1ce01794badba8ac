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

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.model.character import Character
from poise.reference import spatial
from poise.reference.drive import Form, drive, target_arrays
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


# ---- stable PD with effort limits that hold in the same step
#
# A drive applies tau = Q - K a. Where that exceeds the limit of the joint, the joint applies a
# constant force instead: Q = limit in the direction of the drive's torque, K = 0. Which joints
# saturate depends on a, and a on them, so the dynamics is solved until both agree:
#
#     solve (M + K) a = Q - h, all joints driven
#     repeat: saturated = joints with |Q - K a| > limit at the a just found, but for those that
#                         are forces already and whose drive now has the opposite sign
#             stop if they are the same as before, and balls push the same way
#             make them forces, the others drives; solve again
#
# A saturated joint whose drive changes sign has passed its target under a force that no longer
# depends on a: it becomes a drive again before it may saturate to the other side. Without this rule
# joints flip from side to side, and in one of fifteen to one of three random trees a joint ends up
# pushing against its drive.
#
# From the seventh pass on a joint that has been made a force stays that force and the set only
# grows, which ends the search; in one of two hundred random trees of hinges and slides, or fewer, a
# joint then applies its limit where its drive needs less. Each pass is one solve in linear time.
# One pass is not enough: a joint that gives way unloads or loads its neighbors.
#
# A ball joint's limit is the length of its torque vector, and the direction that of the torque it
# desired in the pass before, which the passes bring to rest; with three numbers, each axis of the
# child's frame has its own limit, like a hinge.

# passes in which joints may leave the set again
FREE_PASSES = 6

# a ball's direction is settled when its force moves by less than this part of the limit
SETTLED = 1e-2


@dataclass(frozen=True)
class Limit:
    """The largest length of the joint forces tau[v] [N, N·m]."""

    v: slice
    effort: float


def effort_limits(character: Character) -> list[Limit]:
    """The limits that a character's joints carry, in the order of the joints."""
    limits: list[Limit] = []
    for body in build_tree(character).bodies:
        effort = body.joint.effort
        if effort is None:
            continue
        if np.ndim(effort) == 0:
            limits.append(Limit(body.v, float(np.asarray(effort))))
        else:
            axes = range(body.v.start, body.v.stop)
            limits += [
                Limit(slice(i, i + 1), float(x))
                for i, x in zip(axes, np.asarray(effort), strict=True)
            ]
    return limits


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
    """stable_pd with joint forces that stay within their limits.

    Args:
        limits: Effort limits; the character's own unless given.
        Others: As in stable_pd.

    Returns:
        a = dv/dt and tau, each of shape (nv,).
    """
    if limits is None:
        limits = effort_limits(character)
    Q, K = drive(character, q, v, *target_arrays(target), kp, kd, dt, form)
    Q_now, K_now = Q.copy(), K.copy()
    force: dict[int, Array] = {}  # what each saturated joint gives, by its place in limits
    passes = 0
    while True:
        a = solve_drive(character, q, v, Q_now, K_now, method, **loads)
        desired = saturated_forces(limits, Q - K * a)
        if passes < FREE_PASSES:
            desired = {i: f for i, f in desired.items() if i not in force or f @ force[i] >= 0}
        else:
            desired = {**desired, **force}
        if desired.keys() == force.keys() and all(
            np.linalg.norm(desired[i] - force[i]) <= SETTLED * limits[i].effort for i in force
        ):
            return a, Q_now - K_now * a
        force, passes = desired, passes + 1
        Q_now, K_now = Q.copy(), K.copy()
        for i, f in force.items():
            Q_now[limits[i].v], K_now[limits[i].v] = f, 0.0


def saturated_forces(limits: list[Limit], desired: Array) -> dict[int, Array]:
    """The joints whose drive exceeds their limit, with the force at the limit."""
    forces: dict[int, Array] = {}
    for i, limit in enumerate(limits):
        tau = desired[limit.v]
        length = float(np.linalg.norm(tau))
        if length > limit.effort:
            forces[i] = tau * (limit.effort / length)
    return forces
