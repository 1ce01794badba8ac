"""A free root in inverse dynamics: what nothing drives, the ground must carry.

With b the six velocities of the root and j the rest, inverse dynamics of the wanted accelerations
gives forces on all of them, tau_b included, and no motor has that one. Forces f of the ground are
chosen inside their cones so that J_bᵀ f comes as near to tau_b as it can. What is missing,

    r = M_bb a_b + M_bj a_j + h_b - J_bᵀ f,     a_b <- a_b - M_bb⁻¹ r,

the root does not get; the joints keep the accelerations that they were asked for, and their torques
are those of inverse dynamics with the new a_b and f. Beyond the thesis, which holds the root by
hand (kavafoglu2018, its future work).

A character that has fallen cannot follow its target: whatever lies on the ground, or is under the
body, resists the desired accelerations, and the torques that insist on them throw it about. Its
torques fade with the tilt of its root and the height of its center of mass, compared with the
target's, and a light servo takes over (`FreeRoot.standing`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.control.balance.stance import faded
from poise.control.ground_forces import GroundForces
from poise.control.supports import Supports
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.model.forest import KINDS
from poise.model.scene import Scene

SMALLEST = 0.1
"""A character is taken to be no smaller than this [m]."""

TILTS = (math.radians(40.0), math.radians(70.0))
"""Angle between the vertical, seen from the root, and the same of the target [rad]: from the first
on the character is falling, at the second it has fallen. One that recovers tilts by less."""

TORQUES = (4.0, 8.0)
"""Largest torque by the character's weight times its size: what fast motions need is below the
first, and a character that is thrown about is above the second."""

DROPS = (0.25, 0.45)
"""How much lower the center of mass is than the target's, as a fraction of its height: alike."""


class Carried(NamedTuple):
    """What comes of it, for one state or a batch.

    Attributes:
        torque: Generalized forces, 0 at the root [N, N·m], shape (..., nv).
        acceleration: Of root and joints, shape (..., nv).
        points: Where the ground pushes [m], (k, 3) of each copy.
        forces: With what [N], (k, 3) of each copy.
    """

    torque: Floats
    acceleration: Floats
    points: list[Floats]
    forces: list[Floats]


class FreeRoot:
    """A scene with one free root, on a level ground.

    Args:
        scene: The scene.
        friction: Coefficient of the ground.
        ground: Its height [m].
    """

    def __init__(self, scene: Scene, friction: float, ground: float) -> None:
        self.scene, self.ground = scene, ground
        body = int(np.flatnonzero(scene.forest.kind == KINDS["free"])[0])
        self._link = int(scene.forest.link[body])
        v, at = int(scene.forest.v_adr[body]), int(scene.forest.q_adr[body])
        self._root = slice(v, v + 6)
        self._quat = slice(at + 3, at + 7)
        self.supports = Supports(scene)
        size = max(self.supports.extent(), SMALLEST)
        self.solve = GroundForces(friction, size)
        self._weight = 9.81 * size * float(scene.forest.mass.sum())

    def standing(self, q: Floats, target_q: Floats) -> Floats:
        """How far the character still stands as its target does, shape (...): 1, and 0 when fallen.

        Args:
            q: Positions (..., nq).
            target_q: Those of the target (..., nq).
        """
        up, desired_up = (self._up(x) for x in (q, target_q))
        cosine = np.clip((up * desired_up).sum(axis=-1), -1.0, 1.0)
        height, desired = (
            dynamics.center_of_mass(self.scene, x)[..., 2] - self.ground for x in (q, target_q)
        )
        drop = (desired - height) / np.maximum(desired, SMALLEST)
        return np.asarray(faded(np.arccos(cosine), TILTS) * faded(drop, DROPS))

    def within_reason(self, tau: Floats) -> Floats:
        """1, and 0 where a torque is beyond all reason, shape (...): the motion is lost.

        Args:
            tau: Generalized forces [N, N·m], shape (..., nv).
        """
        return np.asarray(faded(np.abs(tau).max(axis=-1) / self._weight, TORQUES))

    def _up(self, q: Floats) -> Floats:
        """The vertical in the axes of the root, shape (..., 3)."""
        return quat_matrix(q[..., self._quat])[..., 2, :]

    def __call__(
        self,
        q: Floats,
        v: Floats,
        tau: Floats,
        a: Floats,
        gravity: ArrayLike,
        external: Floats | None,
        as_printed: bool,
    ) -> Carried:
        """Torques with the root left to the ground.

        Args:
            q: Positions (..., nq).
            v: Velocities (..., nv).
            tau: Forces that would give the wanted accelerations, the root's included (..., nv).
            a: Those accelerations (..., nv).
            gravity: [m/s²], shape (3,).
            external: Known wrenches on the links (..., nl, 6), or None.
            as_printed: As of `dynamics.kane_inverse_dynamics`.
        """
        scene, root, lead = self.scene, self._root, tau.shape[:-1]
        q = np.broadcast_to(q, (*lead, scene.nq))
        at, turn = dynamics.forward_kinematics(scene, q)
        center = dynamics.center_of_mass(scene, q)
        wanted = self._wrench(at, turn, center, tau[..., root])
        known = np.zeros((scene.nl, 6)) if external is None else external
        wrench = np.array(np.broadcast_to(known, (*lead, scene.nl, 6)))
        points, forces = [], []
        for copy in np.ndindex(*lead):
            link, place = self.supports.near(at[copy], turn[copy], self.ground)
            force = self.solve(place, center[copy], wanted[copy])
            np.add.at(wrench[copy][:, :3], link, force)
            np.add.at(wrench[copy][:, 3:], link, np.cross(place - at[copy][link], force))
            points.append(place)
            forces.append(force)

        def needed(a: Floats) -> Floats:
            return dynamics.kane_inverse_dynamics(
                scene, q, v, a, gravity=gravity, external=wrench, as_printed=as_printed
            )

        inertia = dynamics.mass_matrix(scene, q)[..., root, root]
        a = np.array(a)
        a[..., root] -= np.linalg.solve(inertia, needed(a)[..., root, None])[..., 0]
        torque = needed(a)
        torque[..., root] = 0.0
        return Carried(torque, a, points, forces)

    def _wrench(self, at: Floats, turn: Floats, center: Floats, tau: Floats) -> Floats:
        """The root's force, and its torque about the mass centre, in world axes (..., 6)."""
        # its torque is given in its own axes, its force acts at its origin
        force = tau[..., :3]
        own = quat_matrix(turn[..., self._link, :]) @ tau[..., 3:, None]
        torque = own[..., 0] + np.cross(at[..., self._link, :] - center, force)
        return np.concatenate([force, torque], axis=-1)
