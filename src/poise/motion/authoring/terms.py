"""Terms of a space-time optimisation: what makes a motion true, and what keeps it near its sketch.

Each maker returns a function (motion, derivatives desired) -> rows of weighted residuals. Residuals
are made comparable: forces over body weight, torques over weight times height, lengths in
centimetres, angles in a tenth of a radian, so that a weight of 1 means about as much in each.

Terms of rates keep the jerk small and let forces change gently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from poise import dynamics
from poise.anatomy.feet import ContactPoint, positions
from poise.anatomy.rest_pose import rest_pose
from poise.math import rotation
from poise.math.arrays import Floats, Mask
from poise.model import configuration
from poise.model.character import Character
from poise.motion.authoring import ground_forces
from poise.motion.authoring.ground_forces import G
from poise.motion.authoring.spacetime import Motion, Rows, Term, cross_matrices, skew
from poise.motion.limits import excesses

CENTIMETRE = 0.01
TENTH = 0.1  # [rad]
STEP = 1e-6  # of finite differences

BARRIER = 1e-6
"""Forces below a thousandth of body weight begin to resist: a tenth of a percent is unexplained."""

Three = tuple[Floats, ...]
"""Derivatives by q, v and a."""


def ground(
    points: Sequence[ContactPoint],
    on: Mask,
    *,
    weight: ArrayLike = 1.0,
    torque: ArrayLike = 0.0,
    bounds: tuple[Floats, Floats] | None = None,
    strict: float = 1.0,
    friction: float = 0.7,
) -> Term:
    """Let the ground explain the motion, with little torque.

    Args:
        points: Points that may stand.
        on: Which do, (k, points).
        weight: Of the residual at the root, in percent of body weight, a number or (k,).
        torque: Of the joint torques, over body weight times the character's height; a number or
            (nv,).
        bounds: Least and largest torques [N m], (nv,) each.
        strict: Weight of 0.02 N m/kg beyond these bounds.
        friction: Friction coefficient.
    """
    weights = np.asarray(weight, dtype=np.float64)

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        character = motion.character
        found = _ground_forces(motion, points, on, friction)
        w = np.broadcast_to(100.0 * weights, len(motion.q))
        r = found.residual * w[:, None]
        scale = 1.0 / (character.mass * 9.81)
        size = np.broadcast_to(torque, character.nv) * scale * 10.0
        size = np.where(np.arange(character.nv) < 6, 0.0, size)
        over = np.zeros_like(found.torque)
        if bounds is not None:
            over = found.torque - np.clip(found.torque, *bounds)
            over[:, :6] = 0.0
        beyond = 500.0 * strict * scale
        out = [Rows(r), Rows(found.torque * size), Rows(over * beyond)]
        if not derivatives:
            return out
        D: Three = _dynamics(motion, found, points)
        scales = ground_forces.scales(character.mass, found.center)
        left = tuple(x * scales[..., None] for x in _wrench(motion, found, D))
        left, D = _project(left, D, found.response, _point_jacobians(motion, points))
        out[0] = Rows(r, *(x * w[:, None, None] for x in left))
        out[1] = Rows(out[1].r, *(x * size[:, None] for x in D))
        out[2] = Rows(out[2].r, *(x * (beyond * (over != 0.0))[..., None] for x in D))
        return out

    return term


def standing(
    points: Sequence[ContactPoint], anchors: Floats, weights: Floats, *, weight: float = 1.0
) -> Term:
    """Keep points at their anchors.

    Args:
        points: The points.
        anchors: Where they stand [m], (k, points, 3).
        weights: How much each counts in each direction, (k, points, 3).
        weight: Of a centimetre.
    """

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        at = positions(motion.character, points, motion.q)
        scale = weights * weight / CENTIMETRE
        r = ((at - anchors) * scale).reshape(len(at), -1)
        if not derivatives:
            return [Rows(r)]
        J = _point_jacobians(motion, points) * scale[..., None]
        return [Rows(r, J.reshape(*r.shape, motion.character.nv))]

    return term


def above(points: Sequence[ContactPoint], least: Floats, *, weight: float = 1.0) -> Term:
    """Keep points above the ground.

    Args:
        points: The points.
        least: Height that each must have at least [m], -inf where it does not matter, (k, points).
        weight: Of a centimetre.
    """

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        z = positions(motion.character, points, motion.q)[..., 2]
        missing = np.maximum(least - z, 0.0)
        r = missing * weight / CENTIMETRE
        if not derivatives:
            return [Rows(r)]
        J = _point_jacobians(motion, points)[:, :, 2]
        return [Rows(r, J * np.where(missing > 0.0, -weight / CENTIMETRE, 0.0)[..., None])]

    return term


def near(sketch: Floats, weights: Floats) -> Term:
    """Stay near the frames of a sketch; weights (k, nv) or (nv,), of 0.1 rad or 10 cm."""

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        scale = np.broadcast_to(weights, (len(sketch), motion.character.nv)) / TENTH
        away = configuration.difference(motion.character, motion.q, sketch)
        r = away * scale
        if not derivatives:
            return [Rows(r)]
        return [Rows(r, _by_step(motion.character, away) * scale[..., None])]

    return term


def _by_step(character: Character, away: Floats) -> Floats:
    """Derivative of q ⊖ q0 = away (k, nv) by a further step of q, (k, nv, nv).

    Of a rotation vector r it is 1 + [r]/2 + (1/t² - (1 + cos t)/(2 t sin t)) [r]², t = |r|.
    """
    out = np.tile(np.eye(character.nv), (len(away), 1, 1))
    for _, _, at in configuration.rotations(character):
        r = away[:, at]
        t = np.linalg.norm(r, axis=1)
        safe = np.clip(t, 1e-4, 3.0)
        k = 1.0 / safe**2 - (1.0 + np.cos(safe)) / (2.0 * safe * np.sin(safe))
        X = skew(r)
        out[:, at, at] += 0.5 * X + k[:, None, None] * (X @ X)
    return out


def limits(*, weight: float = 1.0, margin: float = 0.03) -> Term:
    """Keep joint limits, with a margin [rad]; weight of a tenth of a radian beyond."""

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        bounds = excesses(motion.character, motion.q)
        if not bounds:
            return []
        over = np.stack([bound.value for bound in bounds], axis=1) + margin
        r = np.maximum(over, 0.0) * weight / TENTH
        if not derivatives:
            return [Rows(r)]
        J = np.zeros((*r.shape, motion.character.nv))
        for i, bound in enumerate(bounds):
            J[:, i, bound.v] = bound.slope * (over[:, i, None] > 0.0) * weight / TENTH
        return [Rows(r, J)]

    return term


def center_over(goal: Floats, weights: Floats) -> Term:
    """Keep the center of mass at a goal (k, 3) [m]; weights (k, 3), of a centimetre."""

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        c = dynamics.center_of_mass(motion.character, motion.q)
        scale = weights / CENTIMETRE
        r = (c - goal) * scale
        if not derivatives:
            return [Rows(r)]
        A, _ = dynamics.centroidal_momentum(motion.character, motion.q, np.zeros_like(motion.v))
        return [Rows(r, A[:, :3] / motion.character.mass * scale[..., None])]

    return term


def at_rest(frames: Sequence[int], *, weight: float = 1.0) -> Term:
    """Stand still in some frames; weight of 1 rad/s."""

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        scale = np.zeros((len(motion.q), 1))
        scale[list(frames)] = weight
        r = motion.v * scale
        if not derivatives:
            return [Rows(r)]
        return [Rows(r, v=np.broadcast_to(scale, r.shape))]

    return term


# what terms share; computed once for a motion


def _ground_forces(
    motion: Motion, points: Sequence[ContactPoint], on: Mask, friction: float
) -> ground_forces.GroundForces:
    key = f"explained {id(points)} {id(on)}"
    if key not in motion.cache:
        motion.cache[key] = ground_forces.find_ground_forces(
            motion.character,
            motion.q,
            *motion.derivatives,
            points,
            on,
            friction=friction,
            barrier=BARRIER,
        )
    found = motion.cache[key]
    assert isinstance(found, ground_forces.GroundForces)
    return found


def _point_jacobians(motion: Motion, points: Sequence[ContactPoint]) -> Floats:
    """(k, points, 3, nv)."""
    key = f"jacobians {id(points)}"
    if key not in motion.cache:
        J = np.zeros((len(motion.q), len(points), 3, motion.character.nv))
        for i, point in enumerate(points):
            J[:, i] = dynamics.jacobian(motion.character, motion.q, point.link, point.pos)[:, :3]
        motion.cache[key] = J
    found = motion.cache[key]
    assert isinstance(found, np.ndarray)
    return found


def _dynamics(
    motion: Motion, found: ground_forces.GroundForces, points: Sequence[ContactPoint]
) -> Three:
    """Derivatives of the joint torques by q, v, a, (k, nv, nv) each, by finite differences.

    Ground forces stay as they are and go along with their points.
    """
    character, (q, v, a) = motion.character, (motion.q, motion.v, motion.a)
    k, nv = v.shape
    steps = STEP * np.eye(nv)[:, None]

    def torque(q: Floats, v: Floats) -> Floats:
        full = [np.broadcast_to(x, (nv, k, x.shape[-1])) for x in (q, v, a)]
        wrenches = _wrenches(character, points, q, found.forces)
        return dynamics.inverse_dynamics(character, *full, external=wrenches)

    pairs = [
        (torque(configuration.integrate(character, q, s), v), torque(q, v + s))
        for s in (steps, -steps)
    ]
    by_q, by_v = (
        ((ahead - behind) / (2.0 * STEP)).transpose(1, 2, 0)
        for ahead, behind in zip(*pairs, strict=True)
    )
    return by_q, by_v, dynamics.mass_matrix(character, q)


def _wrenches(
    character: Character, points: Sequence[ContactPoint], q: Floats, forces: Floats
) -> Floats:
    """Forces at points as wrenches on the links, at their origins, (..., nl, 6)."""
    p, R = dynamics.forward_kinematics(character, q)
    out = np.zeros((*p.shape[:-1], 6))
    index = rest_pose(character).index
    for i, point in enumerate(points):
        at = index[point.link]
        out[..., at, :3] += forces[:, i]
        out[..., at, 3:] += np.cross(rotation.rotate(R[..., at, :], point.pos), forces[:, i])
    return out


def _wrench(motion: Motion, found: ground_forces.GroundForces, D: Three) -> Three:
    """Derivatives of the wrench that is left at the root, in world axes, (k, 6, nv) each.

    About a fixed point, where the center of mass is now: N = R n + (x - c) x F.
    """
    q, left = motion.q, found.torque[:, :6]
    R = np.stack([rotation.rotate(q[:, 3:7], e) for e in np.eye(3)], axis=2)
    arm = skew(q[:, :3] - found.center)
    by_q, by_v, by_a = (
        np.concatenate([x[:, :3], R @ x[:, 3:6] + arm @ x[:, :3]], axis=1) for x in D
    )
    # the root's own step moves x and turns R
    by_q[:, 3:, :3] -= skew(left[:, :3])
    by_q[:, 3:, 3:6] -= R @ skew(left[:, 3:6])
    return by_q, by_v, by_a


def _project(
    left: Three, torque: Three, response: ground_forces.ForceResponse, J: Floats
) -> tuple[Three, Three]:
    """Derivatives of residual and torques, the ground forces responding (variable projection).

    Args:
        left: Of the residual, by q, v, a, with forces held, (k, 6, nv) each.
        torque: Of the torques, with forces held, (k, nv, nv) each.
        response: How forces respond.
        J: Jacobians of the points, (k, points, 3, nv).
    """
    by_residual = response.response
    pull = np.einsum("kncv,nc->kvn", J[:, response.point], response.force)
    by_force, by_pull = response.effect @ by_residual, pull @ by_residual
    return (
        tuple(w - by_force @ w for w in left),
        tuple(t - by_pull @ w for t, w in zip(torque, left, strict=True)),
    )


def mirror_matrix(character: Character, pairs: Mapping[str, str]) -> Floats:
    """The matrix (nv, nv) that mirrors a step, y to -y, where link frames rest along the world's.

    Args:
        character: The character.
        pairs: Of each joint the one on the other side, itself for those in the middle.
    """
    S = np.zeros((character.nv, character.nv))
    for joint in character.joints:
        rows, columns = character.v_slice(pairs[joint.name]), character.v_slice(joint)
        moves, turns = np.array([1.0, -1.0, 1.0]), np.array([-1.0, 1.0, -1.0])
        if joint.kind in ("free", "ball"):
            signs = np.concatenate([moves, turns])[-joint.nv :]
        else:
            image = np.array(joint.axis) * (turns if joint.kind == "hinge" else moves)
            signs = np.sign([image @ character.joint(pairs[joint.name]).axis])
        S[rows, columns] = np.diag(signs)
    return S


# rates

TENTH_SECOND = 0.1  # [s]


def smooth(weights: ArrayLike) -> Term:
    """Little jerk; weights of a jerk of 1000 rad/s³ (m/s³), a number or (nv,)."""

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        scale = np.broadcast_to(weights, motion.character.nv)
        jerk = _rate(motion, motion.a) / 1000.0 * scale
        if not derivatives:
            return [Rows(jerk)]
        # that joints also turn while they jerk is left out of the derivative
        return [Rows(jerk, j=np.ones(jerk.shape) / 1000.0 * scale)]

    return term


def pressing(weight: ArrayLike = 1.0) -> Term:
    """Let the ground's force change gently; weight of a body weight in a tenth of a second, a
    number or (k,).

    The force is F = m (c'' + g). A step d moves the center of mass by J d, hence the force by
    m (J d)'' = m (J d'' + 2 J' d' + J'' d).
    """

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        character = motion.character
        scale = np.broadcast_to(weight, len(motion.q)) * TENTH_SECOND / (character.mass * G)
        force = dynamics.inverse_dynamics(character, motion.q, motion.v, motion.a)[:, :3]
        rate = _rate(motion, force) * scale[:, None]
        if not derivatives:
            return [Rows(rate)]
        A, _ = dynamics.centroidal_momentum(character, motion.q, np.zeros_like(motion.v))
        J, slope, bend = _slopes(motion, A[:, :3])
        rows = _rate_rows(motion, rate, (bend, 2.0 * slope, J))
        return [Rows(rate, *(x * scale[:, None, None] for x in rows[1:] if x is not None))]

    return term


def _rate(motion: Motion, x: Floats) -> Floats:
    """Change of x (k, n) from each frame to the next, per second; of the last frame of a loop, to
    the first."""
    after = np.roll(x, -1, axis=0)
    if motion.travel is None:
        after[-1] = x[-1]
    return (after - x) * motion.fps


def _slopes(motion: Motion, x: Floats) -> tuple[Floats, ...]:
    """x (k, ...) and its first two rates, those of a spline through the frames."""
    k, loop = len(x), motion.travel is not None
    full = np.concatenate([x, x[:1]]) if loop else x
    ends = "periodic" if loop else "not-a-knot"
    spline = CubicSpline(np.arange(len(full)) / motion.fps, full, bc_type=ends)
    t = np.arange(k) / motion.fps
    return x, spline(t, 1), spline(t, 2)


def _rate_rows(motion: Motion, r: Floats, by: tuple[Floats, ...]) -> Rows:
    """Rows of `_rate` of something whose derivatives by d, d', d'' are `by`, (k, m, nv) each.

    Between two frames d is a cubic: d, d' and d'' in the next are sums of those in this one.
    """
    h = 1.0 / motion.fps
    (R, Q, P), (R1, Q1, P1) = by, (np.roll(x, -1, axis=0) for x in by)
    by_d = (R1 - R) / h
    by_v = (Q1 - Q) / h + R1
    by_a = (P1 - P) / h + Q1 + h / 2.0 * R1
    by_j = P1 + h / 2.0 * Q1 + h**2 / 6.0 * R1
    if motion.travel is None:
        for x in (by_d, by_v, by_a, by_j):
            x[-1] = 0.0
    # rows want derivatives by q, v, a: a step d of joints that turn also changes v and a
    w, dw = cross_matrices(motion, motion.v), cross_matrices(motion, motion.a)
    by_v = by_v - by_a @ w
    return Rows(r, by_d - by_v @ w - by_a @ dw, by_v, by_a, by_j)
