"""Ground forces that explain a motion, and what they leave unexplained.

Inverse dynamics of a motion needs six forces at the free root, which has no motor: they must come
from the ground. For each frame we look for forces f_i at the standing points p_i, inside
their friction cones, that explain the root's wrench w = [F, N] about the center of mass:

    min | W (w - sum_i [f_i, (p_i - c) x f_i]) |^2 + (epsilon / m g)^2 sum_i |f_i|^2

with W = diag(1 / (m g), 1 / (m g h)), h the height of the center of mass. Cones are pyramids of
eight edges, f_i = sum_e g_ie d_e, g_ie >= 0: a non-negative least-squares problem. What remains of
w is the residual; a motion without one is physically possible.

An optimizer needs forces that respond smoothly. With a barrier -mu sum_ie log g_ie besides,
no force ever leaves the ground quite, and all have derivatives (Nocedal and Wright, Numerical
Optimization, chapter 19).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.anatomy import feet
from poise.anatomy.feet import ContactPoint, has_free_root
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats, Mask
from poise.model.character import Character

EDGES = 8
"""Edges of the pyramid that stands for a friction cone."""

EPSILON = 1e-2
"""Weight of the forces themselves, against the residual: among many, the smallest."""

INSIDE = 40
"""Most steps of the interior point method; about 12 are enough."""

G = 9.81  # [m/s^2]


class ForceResponse(NamedTuple):
    """How forces along the edges of all cones respond to a change, n of them.

    Attributes:
        point: Of each edge its point, (n,).
        force: Force of a unit of it [N], (n, 3).
        effect: Its effect on the residual, in its units, (frames, 6, n).
        compliance: Of each edge, 0 where it cannot change, (frames, n).
    """

    point: NDArray[np.int64]
    force: Floats
    effect: Floats
    compliance: Floats

    @property
    def response(self) -> Floats:
        """Change of each edge in response to a change of the residual, (frames, n, 6).

        It is (A' A + D)^-1 A' = D^-1 A' (1 + A D^-1 A')^-1, A the effect and 1 / D the compliance.
        """
        return _response(self.effect, self.compliance)


class GroundForces(NamedTuple):
    """Ground forces of a motion, frame by frame.

    Attributes:
        forces: At the points, in the world [N], shape (frames, points, 3).
        torque: Generalized forces of all joints under these ground forces; at the root, the
            residual [N, N m], shape (frames, nv).
        residual: What the ground does not explain: force over weight, and moment about the center
            of mass over weight times its height, shape (frames, 6).
        center: Center of mass [m], shape (frames, 3).
        wrench: Force [N] and moment about the center of mass [N m] of the motion,
            (frames, 6).
        response: How the forces respond to a change.
    """

    forces: Floats
    torque: Floats
    residual: Floats
    center: Floats
    wrench: Floats
    response: ForceResponse


def find_ground_forces(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    points: Sequence[ContactPoint],
    on: ArrayLike,
    *,
    friction: float = 0.8,
    barrier: float = 0.0,
) -> GroundForces:
    """Find the ground forces of a motion.

    Args:
        character: A character with a free root.
        q: Positions, shape (frames, nq).
        v: Velocities, shape (frames, nv).
        a: Accelerations, shape (frames, nv).
        points: Points that may touch the ground.
        on: Which of them do, shape (frames, points).
        friction: Friction coefficient.
        barrier: mu, in squares of body weight; 0: none.
    """
    q, v, a = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (q, v, a))
    stands = np.asarray(on, dtype=bool).reshape(len(q), len(points))
    tau = dynamics.inverse_dynamics(character, q, v, a)
    center = dynamics.center_of_mass(character, q)
    wrench = root_wrench(character, q, tau, center)
    at = feet.positions(character, points, q) if points else np.zeros((len(q), 0, 3))
    arms = at - center[:, None]
    forces, response = cone_forces(character.mass, wrench, arms, stands, friction, center, barrier)
    left = wrench - _sum(forces, arms)
    torque = tau.copy()
    for i, point in enumerate(points):
        if stands[:, i].any():
            J = dynamics.jacobian(character, q, point.link, point.pos)[:, :3]
            torque -= np.einsum("kcv,kc->kv", J, forces[:, i])
    residual = left * scales(character.mass, center)
    return GroundForces(forces, torque, residual, center, wrench, response)


def root_wrench(character: Character, q: Floats, tau: Floats, about: Floats) -> Floats:
    """The root's generalized forces as a wrench in world axes about points (k, 3), shape (k, 6)."""
    if not has_free_root(character):
        raise ClipError(
            f"character {character.name!r} stands on a fixed base: no ground force moves it"
        )
    force = tau[:, :3]
    moment = rotation.rotate(q[:, 3:7], tau[:, 3:6]) + np.cross(q[:, :3] - about, force)
    return np.concatenate([force, moment], axis=1)


def cone_forces(
    mass: float,
    wrench: Floats,
    arms: Floats,
    on: Mask,
    friction: float,
    center: Floats,
    barrier: float = 0.0,
) -> tuple[Floats, ForceResponse]:
    """Forces in friction cones that come nearest to a wrench.

    Args:
        mass: Of the character [kg].
        wrench: To be explained, about the center of mass (k, 6).
        arms: From the center of mass to the points [m], (k, p, 3).
        on: Which points stand, (k, p).
        friction: Friction coefficient.
        center: Center of mass [m], (k, 3).
        barrier: mu, in squares of body weight; 0: none.

    Returns:
        Forces (k, p, 3) [N], and the response in which they can still change.
    """
    k, p = on.shape
    angle = np.arange(EDGES) * 2.0 * np.pi / EDGES
    edges = np.stack([friction * np.cos(angle), friction * np.sin(angle), np.ones(EDGES)], axis=1)
    # wrenches of forces of body weight along all edges of all points
    moments = np.cross(arms[:, :, None], edges)
    unit = np.concatenate([np.broadcast_to(edges, moments.shape), moments], axis=3)
    scale, weight = scales(mass, center), mass * G
    A = (unit.reshape(k, p * EDGES, 6) * (scale * weight)[:, None]).swapaxes(1, 2)
    solve = _inside if barrier else _nearest
    g, compliance = solve(A, wrench * scale, np.repeat(on, EDGES, axis=1), barrier)
    forces = weight * (g.reshape(k, p, EDGES) @ edges)
    response = ForceResponse(
        np.repeat(np.arange(p), EDGES), weight * np.tile(edges, (p, 1)), A, compliance
    )
    return forces, response


def _nearest(A: Floats, b: Floats, on: Mask, _: float) -> tuple[Floats, Floats]:
    """min |A g - b|^2 + epsilon^2 |g|^2, g >= 0, frame by frame; and compliances."""
    from scipy.optimize import nnls

    g = np.zeros(on.shape)
    for i in np.flatnonzero(on.any(axis=1)):
        n = int(on[i].sum())
        rows = np.vstack([A[i][:, on[i]], EPSILON * np.eye(n)])
        g[i, on[i]] = nnls(rows, np.concatenate([b[i], np.zeros(n)]))[0]
    return g, (g > 0.0) / EPSILON**2


def _inside(A: Floats, b: Floats, on: Mask, mu: float) -> tuple[Floats, Floats]:
    """The same with a barrier, for all frames at once, by a primal-dual interior point method.

    With z = mu / g the conditions are A' (A g - b) + epsilon^2 g - z = 0 and g z = mu. Newton steps
    go on towards smaller mu and stay inside.
    """
    if not on.any():
        return np.zeros(on.shape), np.zeros(on.shape)
    g, z = np.where(on, 0.1, 1.0), np.where(on, 1.0, 0.0)
    count = np.maximum(on.sum(axis=1, keepdims=True), 1)
    for _ in range(INSIDE):
        gap = np.sum(g * z, axis=1, keepdims=True) / count
        goal = np.maximum(0.1 * gap, mu)
        slope = _times(A.swapaxes(1, 2), _times(A, np.where(on, g, 0.0)) - b) + EPSILON**2 * g
        compliance = on / (EPSILON**2 + z / g)
        # (A' A + 1 / compliance) dg = -(slope - goal / g)
        side = compliance * (goal / g - slope)
        dg = side - _times(_response(A, compliance), _times(A, side))
        dz = np.where(on, goal / g - z - z / g * dg, 0.0)
        size = np.minimum(_room(g, dg), _room(z, dz))
        g, z = g + size * dg, z + size * dz
        if (np.abs(g * z - mu) <= 1e-3 * mu)[on].all() and (size == 1.0).all():
            break
    return np.where(on, g, 0.0), on / (EPSILON**2 + z / g)


def _room(x: Floats, dx: Floats) -> Floats:
    """How much of a step (k, n) keeps x above zero, (k, 1)."""
    most = np.where(dx < 0.0, -0.95 * x / np.minimum(dx, -1e-300), 1.0).min(axis=1, keepdims=True)
    return np.asarray(np.minimum(most, 1.0))


def _response(A: Floats, compliance: Floats) -> Floats:
    """(A' A + D)^-1 A' (k, n, 6) of matrices A (k, 6, n), 1 / D = compliance (k, n)."""
    scaled = A * compliance[:, None]
    inner = np.eye(A.shape[1]) + scaled @ A.swapaxes(1, 2)
    return np.asarray(np.linalg.solve(inner, scaled).swapaxes(1, 2))


def _times(A: Floats, x: Floats) -> Floats:
    return np.asarray((A @ x[..., None])[..., 0])


def _sum(forces: Floats, arms: Floats) -> Floats:
    """The wrench of forces (k, p, 3) at arms (k, p, 3), shape (k, 6)."""
    return np.concatenate([forces.sum(axis=1), np.cross(arms, forces).sum(axis=1)], axis=1)


def scales(mass: float, center: Floats) -> Floats:
    """One over weight, and one over weight times height of the center of mass, (k, 6)."""
    weight = mass * G
    height = np.maximum(np.abs(center[:, 2:3]), 0.05)
    one = np.full((len(center), 3), 1.0 / weight)
    return np.concatenate([one, np.broadcast_to(1.0 / (weight * height), one.shape)], axis=1)
