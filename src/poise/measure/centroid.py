"""The character as a whole: center of mass, momentum and its rate, energy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.dynamics import GRAVITY
from poise.errors import PoiseError
from poise.math.arrays import Floats, floats, shaped
from poise.measure.contact_rows import contact_wrench, contacts_of
from poise.model.scene import SceneLike, scene_of
from poise.simulation.contact import Contacts


class Momentum(NamedTuple):
    """Momentum about the center of mass, or its rate; in world axes.

    Attributes:
        linear: [N·s], its rate [N], shape (..., 3).
        angular: [N·m·s], its rate [N·m], shape (..., 3).
    """

    linear: Floats
    angular: Floats


class Energy(NamedTuple):
    """Energy of motion, with that of the joints' rotors, and of height above z = 0.

    Attributes:
        kinetic: [J], shape (...).
        potential: [J], shape (...).
    """

    kinetic: Floats
    potential: Floats

    @property
    def total(self) -> Floats:
        """The sum [J], shape (...)."""
        return self.kinetic + self.potential


def mass(character: SceneLike) -> Floats:
    """Mass of the scene [kg], shape (); (n,) for a world whose copies differ."""
    scene = scene_of(character)
    own = scene.overrides
    if own is None or own.mass is None or own.fixed is None:
        return np.asarray(scene.forest.link_mass.sum())
    total: Floats = np.asarray(own.mass.sum(axis=-1) + own.fixed[..., 0])
    return total


def center_of_mass_velocity(character: SceneLike, q: ArrayLike, v: ArrayLike) -> Floats:
    """Velocity of the center of mass [m/s], shape (..., 3)."""
    return momentum(character, q, v).linear / mass(character)[..., None]


def momentum(character: SceneLike, q: ArrayLike, v: ArrayLike) -> Momentum:
    """Linear momentum, and angular momentum about the center of mass.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
    """
    A, _ = dynamics.centroidal_momentum(character, q, v)
    return _halves(_times(A, v, "v"))


def momentum_rate(character: SceneLike, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Momentum:
    """Rate of momentum under these accelerations.

    For a step of a world, q and v are those at its beginning and a is the change of v over dt.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        a: Accelerations, shape (..., nv).
    """
    A, bias = dynamics.centroidal_momentum(character, q, v)
    return _halves(_times(A, a, "a") + bias)


def external_rate(
    character: SceneLike,
    q: ArrayLike,
    contacts: Contacts,
    *,
    gravity: ArrayLike = GRAVITY,
) -> Momentum:
    """Rate of momentum that gravity and contacts cause. Pushes are not in it.

    Args:
        character: The character, or a scene.
        q: Positions at the beginning of the step, shape (..., nq).
        contacts: Contacts of the step; their copies are counted along the leading axes of q.
        gravity: [m/s^2], shape (3,).
    """
    c = dynamics.center_of_mass(character, q)
    force, torque = contact_wrench(contacts_of(character, contacts), c, c.shape[:-1])
    weight = mass(character)[..., None] * shaped(gravity, "gravity", (3,))
    return Momentum(force + weight, torque)


def energy(
    character: SceneLike, q: ArrayLike, v: ArrayLike, *, gravity: ArrayLike = GRAVITY
) -> Energy:
    """Kinetic and potential energy. Springs in joints and at contacts are not in it.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).
        gravity: [m/s^2], shape (3,).
    """
    return Energy(*dynamics.energy(character, q, v, gravity=gravity))


def _times(A: Floats, x: ArrayLike, name: str) -> Floats:
    given = floats(x, name)
    if given.shape[-1:] != A.shape[-1:]:
        raise PoiseError(f"{name} has shape {given.shape}, expected (..., {A.shape[-1]})")
    product: Floats = (A @ given[..., None])[..., 0]
    return product


def _halves(six: Floats) -> Momentum:
    return Momentum(six[..., :3], six[..., 3:])
