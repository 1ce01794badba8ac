"""Ground forces that explain a motion, and what they leave unexplained.

Inverse dynamics of a motion asks for six forces at the free root that nothing there can give: they
must come from the ground. For each frame we look for forces f_i at the standing points p_i, inside
their friction cones, that explain the root's wrench w = [F, N] about the mass centre:

    min | W (w - sum_i [f_i, (p_i - c) x f_i]) |^2 + (epsilon / m g)^2 sum_i |f_i|^2

with W = diag(1 / (m g), 1 / (m g h)), h the height of the mass centre. Cones are pyramids of eight
edges, f_i = sum_e g_ie d_e, g_ie >= 0: a non-negative least-squares problem. What remains of w is
the residual: a motion without one could be true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.character import Character
from poise.errors import ClipError
from poise.motion import contacts, quaternions
from poise.motion.contacts import Point
from poise.motion.quaternions import Floats

EDGES = 8
"""Edges of the pyramid that stands for a friction cone."""

EPSILON = 1e-2
"""Weight of the forces themselves, against the residual: among many, the smallest."""

G = 9.81  # [m/s^2]


class Ways(NamedTuple):
    """Edges of cones along which forces act in a frame, and may act more or less.

    Attributes:
        point: Of each edge its point, (n,).
        force: Force of a unit of it [N], (n, 3).
        effect: Its effect on the residual, in its units, (6, n).
    """

    point: NDArray[np.int64]
    force: Floats
    effect: Floats

    @property
    def inverse(self) -> Floats:
        """How much of each edge answers a change of the residual, (n, 6)."""
        A = self.effect
        n = A.shape[1]
        answer: Floats = np.linalg.solve(A.T @ A + EPSILON**2 * np.eye(n), A.T)
        return answer


class Explained(NamedTuple):
    """Ground forces of a motion, frame by frame.

    Attributes:
        forces: At the points, in the world [N], shape (frames, points, 3).
        torque: Generalized forces of all joints under these ground forces; at the root, the
            residual [N, N m], shape (frames, nv).
        residual: What the ground does not explain: force over weight, and moment about the mass
            centre over weight times its height, shape (frames, 6).
        center: Mass centre [m], shape (frames, 3).
        wrench: Force [N] and moment about the mass centre [N m] that the motion asks for,
            (frames, 6).
        ways: Of each frame the ways in which the forces can still change.
    """

    forces: Floats
    torque: Floats
    residual: Floats
    center: Floats
    wrench: Floats
    ways: list[Ways]


def explain(
    character: Character,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    points: Sequence[Point],
    on: ArrayLike,
    *,
    friction: float = 0.8,
) -> Explained:
    """Find the ground forces of a motion.

    Args:
        character: A character with a free root.
        q: Positions, shape (frames, nq).
        v: Velocities, shape (frames, nv).
        a: Accelerations, shape (frames, nv).
        points: Points that may touch the ground.
        on: Which of them do, shape (frames, points).
        friction: Friction coefficient.
    """
    q, v, a = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (q, v, a))
    stands = np.asarray(on, dtype=bool).reshape(len(q), len(points))
    tau = dynamics.inverse_dynamics(character, q, v, a)
    center = dynamics.center_of_mass(character, q)
    wrench = root_wrench(character, q, tau, center)
    at = contacts.positions(character, points, q) if points else np.zeros((len(q), 0, 3))
    arms = at - center[:, None]
    forces, ways = cone_forces(character.mass, wrench, arms, stands, friction, center)
    left = wrench - _sum(forces, arms)
    torque = tau.copy()
    for i, point in enumerate(points):
        if stands[:, i].any():
            J = dynamics.jacobian(character, q, point.link, point.pos)[:, :3]
            torque -= np.einsum("kcv,kc->kv", J, forces[:, i])
    residual = left * scales(character.mass, center)
    return Explained(forces, torque, residual, center, wrench, ways)


def root_wrench(character: Character, q: Floats, tau: Floats, about: Floats) -> Floats:
    """The root's generalized forces as a wrench in world axes about points (k, 3), shape (k, 6)."""
    if character.joints[0].kind != "free":
        raise ClipError(
            f"character {character.name!r} stands on a fixed base: no ground force moves it"
        )
    force = tau[:, :3]
    moment = quaternions.rotate(q[:, 3:7], tau[:, 3:6]) + np.cross(q[:, :3] - about, force)
    return np.concatenate([force, moment], axis=1)


def cone_forces(
    mass: float,
    wrench: Floats,
    arms: Floats,
    on: NDArray[np.bool_],
    friction: float,
    center: Floats,
) -> tuple[Floats, list[Ways]]:
    """Forces in friction cones that come nearest to a wrench.

    Args:
        mass: Of the character [kg].
        wrench: To be explained, about the mass centre (k, 6).
        arms: From the mass centre to the points [m], (k, p, 3).
        on: Which points stand, (k, p).
        friction: Friction coefficient.
        center: Mass centre [m], (k, 3).

    Returns:
        Forces (k, p, 3) [N], and of each frame the ways in which they can still change.
    """
    from scipy.optimize import nnls

    k, p = on.shape
    angle = np.arange(EDGES) * 2.0 * np.pi / EDGES
    edges = np.stack([friction * np.cos(angle), friction * np.sin(angle), np.ones(EDGES)], axis=1)
    forces = np.zeros((k, p, 3))
    ways: list[Ways] = []
    scale, weight = scales(mass, center), mass * G
    goal = wrench * scale
    for i in range(k):
        standing = np.flatnonzero(on[i])
        if not len(standing):
            ways.append(Ways(standing, np.zeros((0, 3)), np.zeros((6, 0))))
            continue
        moments = np.cross(arms[i, standing][:, None], edges[None])
        unit = np.concatenate([np.broadcast_to(edges, moments.shape), moments], axis=2)
        A = (unit.reshape(-1, 6) * (scale[i] * weight)).T
        n = A.shape[1]
        g, _ = nnls(np.vstack([A, EPSILON * np.eye(n)]), np.concatenate([goal[i], np.zeros(n)]))
        forces[i, standing] = weight * (g.reshape(-1, EDGES) @ edges)
        used = np.flatnonzero(g)
        ways.append(Ways(standing[used // EDGES], weight * edges[used % EDGES], A[:, used]))
    return forces, ways


def _sum(forces: Floats, arms: Floats) -> Floats:
    """The wrench of forces (k, p, 3) at arms (k, p, 3), shape (k, 6)."""
    return np.concatenate([forces.sum(axis=1), np.cross(arms, forces).sum(axis=1)], axis=1)


def scales(mass: float, center: Floats) -> Floats:
    """One over weight, and one over weight times height of the mass centre, (k, 6)."""
    weight = mass * G
    height = np.maximum(np.abs(center[:, 2:3]), 0.05)
    one = np.full((len(center), 3), 1.0 / weight)
    return np.concatenate([one, np.broadcast_to(1.0 / (weight * height), one.shape)], axis=1)
