"""Reference implementation of the balance solver in NumPy, to read and to test the core against.

The balance problem of one state (M chapter 5), with equality constraints or friction cones:

    min ‖W_t (a_des - a)‖² + β_l ‖L̇_des - L̇‖² + β_a ‖Ḣ_des - Ḣ‖² + Σ β_p ‖p̈_des - p̈‖²
    subject to   J_sup a + J̇_sup v = a_sup

Supports that fade are no constraints but objectives, w / (1 - w) times `fading_weight`. With cones
all are objectives, of the weight `support_weight`, for friction may not let them stand still.

With a the generalized accelerations and v the velocities,

    L̇ = A_l a + r,   Ḣ = A_a a + s          momentum, about the center of mass c (M 5.7, 5.13),
    M a + h = tau + Jᵀ f                     motion (h with gravity),
    p̈ = J a + J̇ v                            points and links (appendices A and C).

Solved by LAPACK and daqp. Settings are those of a `poise.Balance` and its `params`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from poise import _core, dynamics
from poise.control.balance.balance import Balance, velocity_of
from poise.control.balance.supports import fade_out
from poise.errors import PoiseError
from poise.math.arrays import Floats, Ints
from poise.math.polygon import convex_hull, nearest_point
from poise.math.rotation import quat_matrix
from poise.model.scene import Scene
from poise.reference.drive import in_present_frames
from poise.reference.least_squares import Reduced, constrain, reduce
from poise.simulation.command import Target

# ---- ground forces inside friction cones, found together with the accelerations
#
# The root has no motor. With B its six rows of the mass matrix and of h,
#
#     B a + h = Σ_i G_i f_i,   f_i = Σ_e λ_ie d_e,   0 <= λ <= λ_max,
#
# d_e the edges of a friction pyramid. Let a(x) be the solution of the least squares without this, K
# its quadratic form in x = W (a - a_des), B' = B W^-1, and b = B a + h the wrench that the root
# then needs. Another wrench g on the root moves x by K^-1 B'ᵀ S^-1 (g - b), S = B' K^-1 B'ᵀ, at the
# cost (g - b)ᵀ S^-1 (g - b). So accelerations, torques and forces of the least total cost are those
# of
#
#     min_λ ‖C^-1 (G λ - b)‖² + ε ‖λ‖²,   0 <= λ <= λ_max,   S = C Cᵀ,
#
# with four unknowns per point of a sole, solved by daqp. Where b is inside the cones, nothing
# moves: this is the thesis's solution. A support that fades has its λ_max fade.

EDGES = 4
FORCE_REGULARIZATION = 1e-8
"""ε, relative to the largest entry of the quadratic form: forces are spread evenly."""


class Cones(NamedTuple):
    """Friction pyramids of a level ground.

    Attributes:
        edges: Of each point, with a normal part of 1, shape (k, EDGES, 3).
    """

    edges: Floats

    @classmethod
    def of(cls, friction: Floats) -> Cones:
        """Pyramids inside the round cones of coefficients of friction, shape (k,)."""
        around = (np.arange(EDGES) + 0.5) * (2.0 * math.pi / EDGES)
        ring = np.stack([np.cos(around), np.sin(around)], axis=1)
        edges = np.ones((len(friction), EDGES, 3))
        edges[..., :2] = friction[:, None, None] * ring
        return cls(edges)

    def wrenches(self, arms: Floats, turn: Floats) -> Floats:
        """Generalized force on a free root of each λ, shape (6, k EDGES).

        Args:
            arms: From the root's origin to the points [m], shape (k, 3).
            turn: Orientation of the root, shape (3, 3).
        """
        k = len(arms)
        out = np.empty((6, k, EDGES))
        x, y, z = (arms[:, i, None] for i in range(3))
        ex, ey, ez = (self.edges[..., i] for i in range(3))
        out[0], out[1], out[2] = ex, ey, ez
        torque = np.stack([y * ez - z * ey, z * ex - x * ez, x * ey - y * ex])
        out[3:] = np.tensordot(turn.T, torque, axes=1)
        return out.reshape(6, k * EDGES)

    def forces(self, magnitude: Floats) -> Floats:
        """Forces (k, 3) [N] of λ (k EDGES,)."""
        out: Floats = (magnitude.reshape(-1, EDGES, 1) * self.edges).sum(axis=1)
        return out


def solve_cones(G: Floats, wrench: Floats, S: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """λ within its bounds closest to a wrench in the metric S^-1, and S^-1 (G λ - wrench).

    Args:
        G: Wrench of each λ, shape (6, m).
        wrench: Desired wrench [N, N·m], shape (6,).
        S: Compliance of the solution, symmetric, shape (6, 6).
        upper: Upper bounds [N], shape (m,).
    """
    import daqp

    # forces in newtons beside torques in newton metres: to one scale first
    size = np.sqrt(np.maximum(S.diagonal(), 1e-12))
    scaled = S / np.outer(size, size)
    scaled[np.diag_indices(6)] += 1e-9
    C = np.linalg.cholesky(scaled)
    P = np.linalg.solve(C, G / size[:, None])
    r = np.linalg.solve(C, wrench / size)
    m = len(upper)
    if not m:
        # in the air: no forces
        return np.zeros(0), -np.linalg.solve(C.T, r) / size
    H = P.T @ P
    H[np.diag_indices(m)] += FORCE_REGULARIZATION * float(H.diagonal().max())
    # in units in which the solution is about one, so that the solver's tolerances fit
    unit = max(float(upper.max()), 1e-9)
    none, lower, kinds = np.zeros((0, m)), np.zeros(m), np.zeros(m, np.int32)
    x, _, flag, _ = daqp.solve(
        H, -(P.T @ r) / unit, none, upper / unit, lower, kinds, primal_tol=1e-11
    )
    if flag < 1:
        raise PoiseError(f"the forces of the ground were not found: daqp stops with {flag}")
    magnitude = np.clip(unit * np.asarray(x), 0.0, upper)
    correction = np.linalg.solve(C.T, P @ magnitude - r) / size
    return magnitude, correction


# ---- desired rates of momentum (M 5.9, 5.15 to 5.17, with its slips put right)
#
# Linear, horizontal axes only:
#
#     L̇_des = k_s m (c_des - c) + k_d (L_des - L) + L̇_mot
#
# (5.9 prints a minus before k_d: unstable.) c_des is a point given relative to the center s of the
# supports, with L_des = 0; or it moves as the center of mass of the motion does over its own
# supports, c_des = s + (c_mot - s_mot), with L_des and L̇_mot the motion's. It is kept inside the
# supports.
#
# Angular. A ground force f_z that acts at the center of pressure p while the linear momentum needs
# the centroidal moment pivot g = c - (c_z - z) L̇ / f_z changes the angular momentum by Ḣ = (p - g)
# x f. So if g lies inside the supports, p = g and Ḣ_des = 0, the thesis's choice. If it lies
# outside, p cannot follow: with p the closest point of the supports, Ḣ_des = (p - g) x f, the turn
# of the upper body that stops a fall which the feet alone cannot. `max_cmp_offset` bounds ‖p - g‖;
# 0 is the thesis.
#
# The weight of the angular objective is γ ‖p - g‖ (5.17), with f_z ‖p - g‖ = ‖Ḣ_xy‖: it depends on
# the solution itself, and the thesis takes it from the step before, which rings. Here it has two
# parts, β_a = γ ‖p - g‖ of the desired momentum and γ ‖x_xy‖ / f_z of x = Ḣ_des - Ḣ, the remaining
# error. The second is taken where it agrees with its own solution,
#
#     β = γ ‖x_xy(β)‖ / f_z,   x(β) = (1 + β T)^-1 x(0),   T = S K^-1 Sᵀ,
#
# by the eigenvalues of the 3 x 3 matrix T. With the thesis's Ḣ_des = 0 the first is 0, and β_a is
# γ ‖p - g‖ of the solution.


class MomentumTask(NamedTuple):
    """Desired rates of momentum.

    Attributes:
        linear: L̇_des, horizontal [N], shape (2,).
        angular: Ḣ_des [N·m], shape (3,).
        cop: Desired center of pressure [m], shape (2,).
        cmp: Centroidal moment pivot of L̇_des [m], shape (2,).
        com: c_des [m], shape (2,).
        capture_point_error: Distance from there to where the velocity of the center of mass leads
            it [m].
    """

    linear: Floats
    angular: Floats
    cop: Floats
    cmp: Floats
    com: Floats
    capture_point_error: float


def momentum_task(
    now: Tasks,
    v: Floats,
    supports: Floats,
    com: tuple[Floats, Floats, Floats],
    gains: Sequence[float],
    max_cmp_offset: float,
    gravity: float,
    ground: float = 0.0,
    capture_time: float = 0.3,
) -> MomentumTask:
    """Rates of momentum that keep the center of mass over the supports.

    Args:
        now: The state.
        v: Its velocities, shape (nv,).
        supports: Corners of the supports, counterclockwise [m], shape (m, 2), m >= 1.
        com: c_des [m], its velocity and acceleration, shape (2,) each.
        gains: k_s [1/s²], k_d [1/s].
        max_cmp_offset: Largest distance of the CMP from the supports [m]; inf is anywhere.
        gravity: Its size [m/s²].
        ground: Height of the ground [m].
        capture_time: 1/ω of an upright body, for the capture point error [s]. The velocity of the
            motion itself counts, too: at half of it, it is easier to hold.
    """
    mass = now.mass
    fz = mass * max(gravity, 1e-3)
    c, L = now.c[:2], now.A[:2] @ v
    goal = nearest_point(supports, com[0])
    linear = mass * (gains[0] * (goal - c) + com[2]) + gains[1] * (mass * com[1] - L)
    height = max(now.c[2] - ground, 1e-3)
    cmp = c - (height / fz) * linear
    cop = nearest_point(supports, cmp)
    offset = cmp - cop
    distance = math.hypot(offset[0], offset[1])
    if distance > max_cmp_offset:
        cmp = cop + (max_cmp_offset / distance) * offset
        offset = cmp - cop
        linear = (c - cmp) * (fz / height)
    # (p - g) x (0, 0, fz), horizontal
    angular = np.array([-offset[1] * fz, offset[0] * fz, 0.0])
    error = goal - c - capture_time * L / mass
    return MomentumTask(linear, angular, cop, cmp, goal, math.hypot(error[0], error[1]))


def consistent_weight(error: Floats, T: Floats, gamma: float, fz: float) -> float:
    """β = γ ‖x_xy(β)‖ / f_z, where the weight is consistent with the solution.

    Args:
        error: x(0) = Ḣ_des - Ḣ(0) [N·m], shape (3,).
        T: Compliance of Ḣ, symmetric, shape (3, 3).
        gamma: γ.
        fz: Vertical ground force [N].
    """
    t, U = np.linalg.eigh(T)
    part = error @ U
    level, ts = U[:2] * part, t.tolist()
    (a0, a1, a2), (b0, b1, b2) = level.tolist()
    low, high = 0.0, gamma / fz * math.hypot(a0 + a1 + a2, b0 + b1 + b2)
    for _ in range(12):
        beta = 0.5 * (low + high)
        k0, k1, k2 = (1.0 / (1.0 + beta * max(x, 0.0)) for x in ts)
        found = math.hypot(a0 * k0 + a1 * k1 + a2 * k2, b0 * k0 + b1 * k1 + b2 * k2)
        if gamma / fz * found > beta:
            low = beta
        else:
            high = beta
    return 0.5 * (low + high)


# ---- the problem of one state


class Tasks(NamedTuple):
    """Quantities of one state, in world axes; k points: origins of supports, then goals.

    Attributes:
        A: Momentum matrix, linear then angular, shape (6, nv).
        M: Mass matrix with armature, shape (nv, nv).
        J: Of the points, linear then angular, shape (k, 6, nv).
        h: Bias force with gravity [N, N·m], shape (nv,).
        rate: Ȧ v, the rate of momentum at a = 0 [N, N·m], shape (6,).
        c: Center of mass [m], shape (3,).
        bias: J̇ v of the points, shape (k, 6).
        p: Positions of the points [m], shape (k, 3).
        R: Orientations of their links, shape (k, 3, 3).
    """

    A: Floats
    M: Floats
    J: Floats
    h: Floats
    rate: Floats
    c: Floats
    bias: Floats
    p: Floats
    R: Floats

    @property
    def mass(self) -> float:
        """Of the whole [kg]: how a free root's velocity moves its momentum."""
        return float(self.A[0, 0])


def tasks_of(scene: Scene, q: Floats, v: Floats, gravity: Floats, points: Floats) -> list[Tasks]:
    """Tasks of each of n states.

    Args:
        scene: The scene, with the overrides of its World.
        q: Positions, shape (n, nq).
        v: Velocities, shape (n, nv).
        gravity: [m/s²], shape (3,).
        points: Link and place in its frame [m], shape (k, 4).
    """
    n = len(q)
    given: tuple[Any, Any] = (q[0], v[0]) if n == 1 else (q, v)
    found: Any = _core.balance_tasks(scene.model, scene.overrides, n, *given, gravity, points)
    return [Tasks(**{name: array[i] for name, array in found.items()}) for i in range(n)]


class Plan(NamedTuple):
    """The solution of one state.

    Attributes:
        a: Accelerations, shape (nv,).
        force: Of the ground, whole [N], shape (3,).
        rate: L̇ and Ḣ [N, N·m], shape (6,).
        beta: β_a.
        points: Where ground forces act [m], shape (k, 3); with cones only.
        forces: Ground forces [N], shape (k, 3).
        torque: Of the joints [N·m], shape (nv,), 0 at the root; with cones only.
        residual: Residual of the equality constraints [m/s², rad/s²].
        supports: Support weights, shape (s,).
        com: Desired center of mass [m], shape (2,), or None.
        capture_point_error: Distance from there to where the velocity leads it [m].
    """

    a: Floats
    force: Floats
    rate: Floats
    beta: float
    points: Floats
    forces: Floats
    torque: Floats | None
    residual: float
    supports: Floats
    com: Floats | None
    capture_point_error: float


class Rows(NamedTuple):
    """Rows of the least squares, in the accelerations themselves.

    Attributes:
        a_des: Of tracking, shape (nv,).
        weight: W_t > 0, shape (nv,).
        C: Supports, shape (6 s, nv): C a = d.
        d: Shape (6 s,).
        support_weight: Shape (s,).
        E: Further objectives with their weights, shape (m, nv): E a = e.
        e: Shape (m,).
    """

    a_des: Floats
    weight: Floats
    C: Floats
    d: Floats
    support_weight: Floats
    E: Floats
    e: Floats


class Ground(NamedTuple):
    """Friction cones of the sole points.

    Attributes:
        cones: Their edges.
        points: Of the soles [m], shape (k, 3).
        upper: λ_max [N], shape (k EDGES,).
        owner: Which support a point belongs to, shape (k,).
        turn: Orientation of the root, shape (3, 3).
        origin: Its position [m], shape (3,).
    """

    cones: Cones
    points: Floats
    upper: Floats
    owner: Ints
    turn: Floats
    origin: Floats


def solve(balance: Balance, state: Any, target: Any) -> list[Plan]:
    """The solutions of `Balance.solve`, one for each copy.

    Args:
        balance: The controller.
        state: One state or n.
        target: Target, or positions.
    """
    target = target if isinstance(target, Target) else Target.of(target)
    scene = balance.scene
    q, v = np.atleast_2d(state.q), np.atleast_2d(velocity_of(state, scene.nv))
    n, nq, nv = len(q), scene.nq, scene.nv
    tq = np.broadcast_to(target.q, (n, nq))
    tv = np.zeros((n, nv)) if target.v is None else np.broadcast_to(target.v, (n, nv))
    ta = np.zeros((n, nv)) if target.a is None else np.broadcast_to(target.a, (n, nv))
    points = np.asarray(balance.params.points)
    now = tasks_of(scene, q, v, balance.gravity, points)
    then = tasks_of(
        scene, np.ascontiguousarray(tq), np.ascontiguousarray(tv), balance.gravity, points
    )
    scheduled = balance._scheduled(target.time, n)
    return [
        _Copy(balance, now[i], then[i], None if scheduled is None else scheduled[i], i).solve(
            (q[i], v[i]), (tq[i], tv[i], ta[i])
        )
        for i in range(n)
    ]


class _Copy:
    """The problem of one copy.

    Args:
        balance: The controller.
        now: Tasks of the state.
        then: Tasks of the target.
        scheduled: Support weights of the schedule, shape (s,), or None.
        copy: Which copy.
    """

    def __init__(
        self, balance: Balance, now: Tasks, then: Tasks, scheduled: Floats | None, copy: int
    ) -> None:
        self.balance, self.params, self.soles = balance, balance.params, balance._soles
        self.now, self.then, self.scheduled, self.copy = now, then, scheduled, copy
        self.places = self._sole_points(now)
        self.upright = float(
            fade_out(np.array(lean(now.c, self.places, balance.ground)), self.params.lean_fade)
        )
        self.weight = self._support_weights()

    def solve(self, state: tuple[Floats, Floats], target: tuple[Floats, Floats, Floats]) -> Plan:
        """Accelerations, and with cones ground forces and torques."""
        (q, v), (tq, tv, ta) = state, target
        balance, now = self.balance, self.now
        k_s, k_d = stiffen(self.params, q)
        a_des = dynamics.pd_force(balance.character, q, v, (tq, tv), k_s, k_d)
        a_des += in_present_frames(balance.character, q, tq, ta)
        rows = self._rows(a_des, v)
        momentum = self._momentum(v, tv, ta)
        if momentum is not None and "linear" in balance.objectives:
            root = math.sqrt(balance.linear_weight)
            E = np.concatenate([rows.E, root * now.A[:2]])
            e = np.concatenate([rows.e, root * (momentum.linear - now.rate[:2])])
            rows = rows._replace(E=E, e=e)
        weight = now.mass * balance.gravity
        ground = self._ground(q)
        per = 1.0 / rows.weight
        reduced, residual = self._reduce(rows, per, cones=ground is not None)
        a = rows.a_des + per * reduced.x
        beta = 0.0
        if momentum is not None and "angular" in balance.objectives:
            reduced, beta = self._add_angular(reduced, a, per, momentum, weight)
            a = rows.a_des + per * reduced.x
        torque, points, forces = None, np.zeros((0, 3)), np.zeros((0, 3))
        if ground is not None:
            a, torque, forces = self._solve_ground(reduced, a, per, ground)
            # a fallen character touches the ground with links that are no supports
            points, torque = ground.points, self.upright * torque
        rate = now.A @ a + now.rate
        com = None if momentum is None else momentum.com
        error = 0.0 if momentum is None else momentum.capture_point_error
        return Plan(
            a, rate[:3] - weight, rate, beta, points, forces, torque, residual, self.weight, com,
            error,
        )  # fmt: skip

    # ---- supports

    def _sole_points(self, tasks: Tasks) -> Floats:
        """Positions of the sole points [m], shape (m, 3)."""
        soles = self.soles
        turned = np.matmul(tasks.R[soles.owner], soles.point[:, :, None])[:, :, 0]
        out: Floats = tasks.p[soles.owner] + turned
        return out

    def _lowest(self, places: Floats) -> Floats:
        """Height of the lowest point of each support over the ground [m], shape (s,)."""
        low: Floats = np.minimum.reduceat(places[:, 2], self.soles.first)
        return low - self.balance.ground

    def _support_weights(self) -> Floats:
        """Weight of each support, 0 to 1, shape (s,)."""
        params, s = self.params, len(self.soles.names)
        weight = fade_out(self._lowest(self.places), params.sole_height_fade)
        # 1 - cos of the angle between a sole and the target's, whatever their heading
        tilt = 1.0 - (self.now.R[:s, 2] * self.then.R[:s, 2]).sum(axis=-1)
        weight *= fade_out(tilt, params.tilt_fade)
        if not params.always_support:
            low = self._lowest(self._sole_points(self.then))
            desired = fade_out(low, params.target_height_fade)
            if self.scheduled is not None:
                desired = np.where(np.isfinite(self.scheduled), self.scheduled, desired)
            weight *= desired
        return weight * self.upright

    # ---- rows of the least squares

    def _rows(self, a_des: Floats, v: Floats) -> Rows:
        """Supports and goals."""
        now, then, params = self.now, self.then, self.params
        s, nv = len(self.soles.names), len(v)
        on = self.weight > 1e-3
        J = now.J[:s][on]
        k_s, k_d = params.support_gains
        desired = -k_d * (J @ v) - now.bias[:s][on]
        if k_s:
            # level, and as high as in the target
            here, there = now.R[:s][on], then.R[:s][on]
            tilt = cross(here.transpose(0, 2, 1), there.transpose(0, 2, 1)).sum(axis=1)
            desired[:, 3:5] += 0.5 * k_s * tilt[:, :2]
            desired[:, 2] += k_s * (then.p[:s, 2] - now.p[:s, 2])[on]
        # a sole that has come but does not touch yet: ground that gives way carries by depth alone
        desired[:, 2] -= params.press_acceleration * (self._lowest(self.places)[on] > 0.0)
        E, e = self._goal_rows(s, v)
        weight = np.asarray(params.tracking_weight)
        return Rows(a_des, weight, J.reshape(-1, nv), desired.reshape(-1), self.weight[on], E, e)

    def _goal_rows(self, first: int, v: Floats) -> tuple[Floats, Floats]:
        """Weighted rows of the goals (M 6.1): p̈_des = k_s (p_des - p) - k_d ṗ."""
        now, params, nv = self.now, self.params, len(v)
        goals = np.asarray(params.goals)
        if not len(goals):
            return np.zeros((0, nv)), np.zeros(0)
        J, p = now.J[first:, :3], now.p[first:]
        away = goals - p
        distance = np.sqrt((away * away).sum(axis=1, keepdims=True))
        scale = np.minimum(1.0, params.max_goal_distance / np.maximum(distance, 1e-9))
        k_s, k_d = params.goal_gains
        desired = k_s * (away * scale) - k_d * (J @ v)
        root = math.sqrt(params.goal_weight) * scale * scale
        e = root * (desired - now.bias[first:, :3])
        return (root[:, :, None] * J).reshape(-1, nv), e.reshape(-1)

    def _reduce(self, rows: Rows, per: Floats, cones: bool) -> tuple[Reduced, float]:
        """The solution without the angular objective, and the residual of its constraints."""
        params, w = self.params, rows.support_weight
        hard = np.zeros(len(w), dtype=bool) if cones else w >= params.hard_threshold
        factor = params.support_weight * w
        if not cones:
            factor = params.fading_weight * w / np.maximum(1.0 - w, 1e-9)
        each = np.repeat(hard, 6)
        held = constrain(rows.C[each] * per, rows.d[each] - rows.C[each] @ rows.a_des)
        by = np.repeat(factor, 6)[~each, None]
        E = np.concatenate([rows.E, by * rows.C[~each]])
        e = np.concatenate([rows.e, by[:, 0] * rows.d[~each]])
        return reduce(held, E * per, e - E @ rows.a_des), held.residual

    # ---- momentum

    def _momentum(self, v: Floats, tv: Floats, ta: Floats) -> MomentumTask | None:
        """Desired rates of momentum; None without supports, or if no momentum is regulated."""
        balance, now, then = self.balance, self.now, self.then
        if not {"linear", "angular"} & set(balance.objectives) or not (self.weight > 0.5).any():
            return None
        weight = self.weight[self.soles.owner]
        if not weight.sum() > 1e-3:
            return None
        s = weight @ self.places[:, :2] / weight.sum()
        corners = convex_hull(self.places[weight > 0.3, :2], balance.margin)
        if self.params.follow_motion:
            there = self._sole_points(then)
            s_mot = weight @ there[:, :2] / weight.sum()
            com = s + then.c[:2] - s_mot
            velocity = (then.A[:2] @ tv) / then.mass
            acceleration = (then.A[:2] @ ta + then.rate[:2]) / then.mass
        else:
            com = s + np.asarray(self.params.com_offset, dtype=np.float64)
            velocity = acceleration = np.zeros(2)
        return momentum_task(
            now, v, corners, (com, velocity, acceleration), balance.linear_gains,
            balance.max_cmp_offset, abs(float(balance.gravity[2])), balance.ground,
            self.params.capture_time,
        )  # fmt: skip

    def _add_angular(
        self, reduced: Reduced, a: Floats, per: Floats, momentum: MomentumTask, weight: Floats
    ) -> tuple[Reduced, float]:
        """The solution with the angular objective, at its consistent weight, and that weight."""
        now, gamma = self.now, self.balance.gamma
        E = now.A[3:] * per
        compliance = reduced.compliance(E)
        T = compliance @ E.T
        rate = now.A @ a + now.rate
        fz = max(rate[2] - weight[2], -0.1 * weight[2])
        error = momentum.angular - rate[3:]
        offset = momentum.cmp - momentum.cop
        beta = gamma * float(np.hypot(*offset)) + consistent_weight(error, T, gamma, fz)
        if beta <= 0.0:
            return reduced, 0.0
        return reduced.with_rows(compliance, T, error, beta), beta

    # ---- ground forces

    def _ground(self, q: Floats) -> Ground | None:
        balance, owner = self.balance, self.soles.owner
        if balance.ground_model == "equality":
            return None
        weight = self.weight[owner]
        on = weight > 1e-3
        pull = max(float(np.linalg.norm(balance.gravity)), 9.81)
        upper = 3.0 * self.now.mass * pull * weight[on]
        friction = np.asarray(self.params.friction)
        return Ground(
            Cones.of((friction[self.copy] if friction.ndim == 2 else friction)[owner[on]]),
            self.places[on],
            np.repeat(upper, EDGES),
            owner[on],
            quat_matrix(q[3:7]),
            q[:3],
        )

    def _solve_ground(
        self, reduced: Reduced, a: Floats, per: Floats, ground: Ground
    ) -> tuple[Floats, Floats, Floats]:
        """Consistent accelerations, torques and ground forces."""
        now = self.now
        B = now.M[:6] * per
        compliance = reduced.compliance(B)
        wrench = now.M[:6] @ a + now.h[:6]
        G = ground.cones.wrenches(ground.points - ground.origin, ground.turn)
        magnitude, correction = solve_cones(G, wrench, compliance @ B.T, ground.upper)
        a = a + per * (correction @ compliance)
        forces = ground.cones.forces(magnitude)
        torque = now.M @ a + now.h
        # forces at points of links, as wrenches at the links' origins
        arm = ground.points - now.p[ground.owner]
        wrenches = np.zeros((len(now.J), 6))
        np.add.at(wrenches, ground.owner, np.concatenate([forces, cross(arm, forces)], axis=1))
        torque -= np.tensordot(wrenches, now.J, axes=2)
        torque[:6] = 0.0
        return a, torque, forces


def lean(com: Floats, points: Floats, ground: float) -> float:
    """Horizontal distance of the center of mass from the soles, by its height.

    Args:
        com: [m], shape (3,).
        points: Of the soles [m], shape (m, 3).
        ground: Height of the ground [m].
    """
    away = com[:2] - nearest_point(convex_hull(points[:, :2]), com[:2])
    return math.hypot(*away) / max(float(com[2]) - ground, 1e-3)


def joint_excess(table: Floats, q: Floats) -> Floats:
    """Distance of joints from their range (M 6.2) [rad, m], for one q (nq,), shape (m,).

    Args:
        table: As of `poise.control.balance.config.joint_limit_table`, shape (m, 9).
        q: Positions, shape (nq,).
    """
    out = np.zeros(len(table))
    for i, (ball, at, _, *axis, swing_max, low, high) in enumerate(table.tolist()):
        start = int(at)
        if not ball:
            out[i] = max(low - q[start], q[start] - high, 0.0)
            continue
        w, u = q[start], q[start + 1 : start + 4]
        along = float(u @ axis)
        twist = 2.0 * math.atan2(along, w)
        twist -= 2.0 * np.pi * np.round(twist / (2.0 * np.pi))
        # ‖a' - a‖ is 2 sin(swing / 2), and the part of u across a is that by cos of half the twist
        across = math.sqrt(max(float(u @ u) - along**2, 0.0))
        swing = 2.0 * math.atan2(across, math.hypot(w, along))
        out[i] = max(swing - swing_max, 0.0) + max(low - twist, twist - high, 0.0)
    return out


def stiffen(params: _core.BalanceParams, q: Floats) -> tuple[Floats, Floats]:
    """Gains of tracking at one q (nq,), which grow beyond a joint's range; shape (nv,) each."""
    table = np.asarray(params.joint_limits)
    more = np.zeros(len(np.asarray(params.k_s)))
    for row, excess in zip(table, joint_excess(table, q), strict=True):
        first = int(row[2])
        more[first : first + (3 if row[0] else 1)] = excess
    stiffness, damping = params.limit_gains
    return params.k_s + stiffness * more, params.k_d + damping * more


def cross(a: Floats, b: Floats) -> Floats:
    """a x b along the last axis; NumPy's own takes five times as long for few vectors."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return out
