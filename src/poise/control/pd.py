"""Proportional-derivative control: torques from the present error."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.control.gains import FREQUENCY, Gains, root_slices
from poise.control.plant import PartLike, Plant
from poise.control.servo import Servo, cut_to_effort
from poise.math.arrays import Floats, Ints, floats
from poise.math.rotation import exp, multiply, normalize, quat_matrices
from poise.model.forest import KINDS, Forest
from poise.model.scene import Scene, SceneLike, scene_of
from poise.simulation.command import Command, Target
from poise.simulation.controller import Requirements


class PD(Servo):
    """Explicit PD, and what the literature adds to it (kavafoglu2018, 2.2).

        tau_PD = -kp (q - q̄) - kd (v - v̄)
        tau    = tau_PD + bubbled + M ā + C v + weight, cut at the effort limits

    Each joint looks at its own error only. What that neglects can be added, part by part: the
    torques of the joints outboard, the target's own acceleration, the weight. The weight does not
    bubble up. Added parts act on free roots only where root="held".

    It is unstable where kd dt or kp dt² come near the inertia of a joint: see `check_gains`, and
    StablePD.

    Args:
        character: The World it acts in, a character, or several.
        gains: Gains, or None for `suggest_gains(character, frequency, damping, root=root)`.
        frequency: Natural frequency of the joints [Hz], unless gains are given.
        damping: Damping ratio, unless gains are given.
        root: "free", "soft" or "held"; see Servo.
        part: Which parts of the scene it acts on; None is all characters. See Servo.
        target_velocity: Damp the difference to the target's velocity; False damps all velocity.
        feedforward: Add what the target's acceleration takes, and compare with the target of now,
            reckoned back from that of t + dt (see `goal_of_now`).
        gravity_compensation: Add what carries the weight (see `gravity_force`).
        bubble_up: Add each joint's PD torque to its parent joint (see `bubbled`).
        strength: Factor of all torques and effort limits per link, shape (nl,) or (n, nl); may be
            assigned at any time.
        dt: How far ahead targets are [s]; taken from a World. None compares with the target as it
            is.
    """

    def __init__(
        self,
        character: SceneLike | Plant,
        gains: Gains | None = None,
        *,
        frequency: ArrayLike = FREQUENCY,
        damping: ArrayLike = 1.0,
        root: str = "free",
        part: PartLike = None,
        target_velocity: bool = True,
        feedforward: bool = False,
        gravity_compensation: bool = False,
        bubble_up: bool = False,
        strength: ArrayLike | None = None,
        dt: float | None = None,
    ) -> None:
        super().__init__(character, gains, frequency, damping, root, part, strength, dt)
        self.target_velocity = target_velocity
        self.feedforward = feedforward
        self.gravity_compensation = gravity_compensation
        self.bubble_up = bubble_up
        self._undriven = [] if self.root == "held" else root_slices(self.scene)
        self._seal()

    @property
    def requires(self) -> Requirements:
        """Feedforward reads where the target was one and two steps before."""
        return Requirements(past=self.feedforward)

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, its torque, and the parts of that which are on.

        Parts are "pd", "bubbled", "gravity", "feedforward"; strength and limits come after them.
        """
        q, v, target = self._inputs(state, target)
        goal, dt = target, self.dt or 0.0
        if self.feedforward and self.dt is not None:
            goal, dt = goal_of_now(self.scene, target, self.dt), 0.0
        factor = self.factor
        pd = self._pull(q, v, goal, dt)
        parts = {"pd": pd}
        if self.bubble_up:
            weak = pd if factor is None else factor * pd
            parts["bubbled"] = self._without_roots(bubbled(self.scene, q, weak))
        if self.gravity_compensation:
            weight = gravity_force(self.scene, q, gravity=self.gravity)
            parts["gravity"] = self._without_roots(weight)
        if self.feedforward:
            parts["feedforward"] = self._without_roots(acceleration_force(self.scene, q, v, goal))
        tau = np.asarray(sum(parts.values()))
        if factor is not None:
            tau = factor * tau
        if self.root == "soft":
            root = self.root_feedforward(target)
            tau = tau + root
            parts["feedforward"] = parts.get("feedforward", np.zeros(self.scene.nv)) + root
        tau = cut_to_effort(self, tau)
        return self._plant.lift(Command(force=tau)), {"torque": tau, **parts}

    def _pull(self, q: Floats, v: Floats, target: Target, dt: float) -> Floats:
        """-kp (q - q̄) - kd (v - v̄), the target's position taken back by dt v̄."""
        kp, kd = self.gains.kp, self.gains.kd
        if self.target_velocity or target.v is None:
            return dynamics.pd_force(self.scene, q, v, target, kp, kd, dt)
        spring = dynamics.pd_force(self.scene, q, v, target, kp, np.zeros(self.scene.nv), dt)
        return spring - kd * v

    def _without_roots(self, added: Floats) -> Floats:
        """What is added to PD, without the free roots unless they are held."""
        for at in self._undriven:
            added[..., at] = 0.0
        return added


# ---- feedforward: what the target's acceleration takes at the present state, without the weight
#
#     M(q) ā + C(q, v) v
#
# It is the acceleration of kavafoglu2018's eq. 2.3, made a torque by inverse dynamics. With gravity
# compensation beside it, a character on its target stays on it.


def acceleration_force(scene: Scene, q: Floats, v: Floats, target: Target) -> Floats:
    """M(q) ā + C(q, v) v (..., nv); zero where the target has no acceleration."""
    if target.a is None:
        return np.zeros(scene.nv)
    a = turned(scene, q, target.q, target.a)
    return dynamics.inverse_dynamics(scene, q, v, a, gravity=np.zeros(3))


def goal_of_now(scene: Scene, target: Target, dt: float) -> Target:
    """Where a target of t + dt is at t, how it moves, and the acceleration that takes it there.

    A world moves by v⁺ = v + dt a, q⁺ = q exp(dt v⁺). Let q1 and q2 be one and two steps before the
    target q̄. A character at q1 with the velocity u = log(q2^-1 q1) / dt is at q̄ a step later if its
    acceleration is (log(q1^-1 q̄) / dt - u) / dt. These three make tracking exact at any step.
    Without the past they are q̄ exp(-dt v̄), v̄ - dt ā and ā: first order in dt.

    Args:
        scene: The scene.
        target: The target at t + dt.
        dt: Time step [s].
    """
    if target.past is not None:
        before, earlier = target.past[..., 0, :], target.past[..., 1, :]
        u = _difference(scene, earlier, before) / dt
        return Target(before, u, (_difference(scene, before, target.q) / dt - u) / dt)
    if target.v is None:
        return target
    a = np.zeros(scene.nv) if target.a is None else target.a
    back = _moved(scene, target.q, -dt * target.v)
    return Target(back, target.v - dt * a, target.a)


def turned(scene: Scene, q: Floats, target_q: Floats, x: Floats) -> Floats:
    """The target's rates as the character's: those of balls from the target's child frame.

    Args:
        scene: The scene.
        q: Positions, shape (..., nq).
        target_q: Positions of the target, shape (..., nq).
        x: Velocities or accelerations of the target, shape (..., nv).

    Returns:
        Rᵀ R̄ x for ball joints and the turning of free ones, x for all else, (..., nv).
    """
    at = scene.forest.coordinates
    if not at.quat.size:
        return x
    own = quat_matrices(normalize(target_q[..., at.quat])) @ x[..., at.turn, None]
    own = (quat_matrices(normalize(q[..., at.quat])).swapaxes(-1, -2) @ own)[..., 0]
    out = np.array(np.broadcast_to(x, (*own.shape[:-2], x.shape[-1])))
    out[..., at.turn] = own
    return out


def _moved(scene: Scene, q: Floats, step: Floats) -> Floats:
    """q exp(step), shape (..., nq)."""
    at = scene.forest.coordinates
    lead = np.broadcast_shapes(q.shape[:-1], step.shape[:-1])
    out = np.array(np.broadcast_to(q, (*lead, q.shape[-1])))
    out[..., at.plain_q] += step[..., at.plain_v]
    out[..., at.quat] = normalize(multiply(out[..., at.quat], exp(step[..., at.turn])))
    return out


def _difference(scene: Scene, q0: Floats, q1: Floats) -> Floats:
    """log(q0^-1 q1), shape (..., nv): the force of a spring of unit stiffness from q0 to q1."""
    none = np.zeros(scene.nv)
    return dynamics.pd_force(scene, q0, none, (q1, None), 1.0, none)


# ---- gravity compensation: joint forces that carry a character's weight in its present pose
#
# Each outboard body, of mass m and with its center of mass at P, is carried by the force -m g.
# At a joint that lies at P_J and turns about the axis s, or slides along it (kavafoglu2018, 2.2.3):
#
#     turns    tau = s . Σ (P - P_J) x (-m g)
#     slides   tau = s . Σ -m g
#
# with the sum over the bodies outboard of the joint. The thesis prints the arm reversed, P_J - P
# (2.9, 2.10), which would add to the weight. The sum is the inverse dynamics of a character that
# neither moves nor accelerates, and as such it takes linear time.
#
# A free root counts as held: what it carries is given for it as well, and it is the controller's
# business whether to apply it. In flight nothing holds the root, and then the joints of a
# compensated character push where there is nothing to carry.


def gravity_force(
    character: SceneLike, q: ArrayLike, *, gravity: ArrayLike = dynamics.GRAVITY
) -> Floats:
    """Generalized forces that carry the weight [N, N·m], shape (..., nv).

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        gravity: [m/s^2], shape (3,).
    """
    scene = scene_of(character)
    rest = np.zeros(scene.nv)
    return dynamics.inverse_dynamics(scene, q, rest, rest, gravity=gravity)


# ---- torque bubble-up: each joint's torque is added to its parent joint, leaves first
#
# A joint torque τ_i acts on the body B_i, and -τ_i on its parent, so the parent feels τ_parent -
# τ_i where its controller meant τ_parent. The remedy (kavafoglu2018, 2.2.3, after Coros et al.
# 2010) is to add τ_i to the parent joint, which passes the sum on to its own parent, up to the
# root. As vectors in the world, with s the axes of a joint:
#
#     T_b     = s_b tau_b                       the joint's own force as a torque
#     added_b = s_b . Σ T_c, c outboard of b    what bubbles up to it
#
# A ball takes all three components, a hinge the one along its axis; either passes all of them on,
# because the bearing of a hinge carries the others. A slide has no torque and takes none.

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
