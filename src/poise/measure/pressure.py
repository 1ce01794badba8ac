"""Ground reaction: force, centre of pressure, free moment; and the centroidal moment pivot.

With f and tau the force and torque of the ground about a point o at the height h above it, the
pressure's centre is where a force alone would have the same level torque (macchietto2008, 3.8, with
the signs put right):

    COP = o + (-(tau_y + h f_x) / f_z, (tau_x - h f_y) / f_z, -h)

The centroidal moment pivot is where that force would have to act to leave the angular momentum as
it is: below the mass centre c, along f,

    CMP = c - (f / f_z) (c_z - z_ground)

so that f_z |COP - CMP| is the length of the level part of the rate of angular momentum, where the
ground is all that acts besides gravity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.math.arrays import Floats, floats
from poise.measure.shapes import vectors
from poise.measure.touching import (
    Copies,
    Links,
    contact_wrench,
    contacts_of,
    feet_links,
    ground_contacts,
    per_copy,
)
from poise.model.scene import SceneLike
from poise.simulation.contact import Contacts


class Reaction(NamedTuple):
    """What the ground does.

    Attributes:
        force: [N], shape (..., 3); 0 in the air.
        point: Centre of pressure [m], shape (..., 3); NaN where the ground does not carry.
        moment: Free moment about the vertical through that point [N·m], shape (...); NaN likewise.
    """

    force: Floats
    point: Floats
    moment: Floats


def ground_reaction(
    character: SceneLike,
    touches: Contacts,
    links: Links | None = None,
    *,
    copies: Copies = (),
    ground: ArrayLike = 0.0,
    obstacles: bool = True,
) -> Reaction:
    """Force of the ground on some links, and where it acts.

    Args:
        character: The character, or a scene.
        touches: Contacts, as of `world.contacts`.
        links: Names or indices, or a slice as of `world.part(name).links`; None is all.
        copies: Shape of the leading axes.
        ground: Height of the level on which the point lies [m], a number or shape (...).
        obstacles: Whether obstacles count as ground.
    """
    mine = ground_contacts(contacts_of(character, touches, links), obstacles=obstacles)
    # about a point amid the contacts, so that far from the origin no digits are lost
    number = per_copy(mine, np.ones(len(mine.copy)), copies)
    about = per_copy(mine, mine.point, copies) / np.maximum(number, 1.0)[..., None]
    force, torque = contact_wrench(mine, about, copies)
    point = center_of_pressure(force, torque, about, ground)
    moment = torque[..., 2] - _cross_z(point - about, force)
    return Reaction(force, point, moment)


def foot_reactions(
    character: SceneLike,
    touches: Contacts,
    *,
    copies: Copies = (),
    ground: ArrayLike = 0.0,
    obstacles: bool = True,
) -> dict[str, Reaction]:
    """The reaction of the ground on each foot with its toes, by the foot's name."""
    return {
        name: ground_reaction(
            character, touches, links, copies=copies, ground=ground, obstacles=obstacles
        )
        for name, links in feet_links(character).items()
    }


def center_of_pressure(
    force: ArrayLike, torque: ArrayLike, about: ArrayLike, ground: ArrayLike = 0.0
) -> Floats:
    """Where on the ground a force alone has the same level torque, shape (..., 3) [m].

    Args:
        force: Of the ground [N], shape (..., 3).
        torque: Of the ground, about the point `about` [N·m], shape (..., 3).
        about: In the world [m], shape (..., 3).
        ground: Height of the ground [m], shape (...).

    Returns:
        NaN where the force does not point up: then there is no such point.
    """
    f, tau, o = vectors(force=force, torque=torque, about=about)
    h = o[..., 2] - floats(ground, "ground")
    fz = _carrying(f)
    x = o[..., 0] - (tau[..., 1] + h * f[..., 0]) / fz
    y = o[..., 1] + (tau[..., 0] - h * f[..., 1]) / fz
    return np.stack([x, y, o[..., 2] - h + 0.0 * fz], axis=-1)


def centroidal_moment_pivot(com: ArrayLike, force: ArrayLike, ground: ArrayLike = 0.0) -> Floats:
    """Where on the ground the force would leave the angular momentum as it is, (..., 3) [m].

    Args:
        com: Mass centre [m], shape (..., 3).
        force: Of the ground [N], shape (..., 3).
        ground: Height of the ground [m], shape (...).

    Returns:
        NaN where the force does not point up: then there is no such point.
    """
    c, f = vectors(com=com, force=force)
    height = c[..., 2] - floats(ground, "ground")
    cmp: Floats = c - f * (height / _carrying(f))[..., None]
    return cmp


def _carrying(force: Floats) -> Floats:
    """The upward part, NaN where it is not above zero."""
    return np.where(force[..., 2] > 0.0, force[..., 2], np.nan)


def _cross_z(a: Floats, b: Floats) -> Floats:
    cross: Floats = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return cross
