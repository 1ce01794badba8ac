"""Ground reaction: force, center of pressure, free moment, moment pivot, support polygon.

With f and tau the force and torque of the ground about a point o at the height h above it, the
center of pressure is where a force alone would have the same level torque (macchietto2008, 3.3 to
3.6, about any point):

    COP = o + (-(tau_y + h f_x) / f_z, (tau_x - h f_y) / f_z, -h)

The centroidal moment pivot is where that force would have to act to leave the angular momentum as
it is: below the center of mass c, along f,

    CMP = c - (f / f_z) (c_z - z_ground)

so that f_z |COP - CMP| is the length of the level part of the rate of angular momentum, where the
ground is all that acts besides gravity.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.math.arrays import Floats, broadcast_vectors, floats
from poise.math.polygon import Polygons, convex_hulls_of_rows
from poise.measure.contact_rows import (
    Copies,
    Links,
    _check,
    closed,
    contact_wrench,
    contacts_from,
    contacts_of,
    feet_links,
    ground_contacts,
    per_copy,
)
from poise.model.scene import SceneLike
from poise.simulation.contact import Contacts
from poise.simulation.world import World

STEEPEST = 0.5
"""Least upward component of the normal of a surface that supports: slopes below 60 degrees."""


class Reaction(NamedTuple):
    """What the ground does.

    Attributes:
        force: [N], shape (..., 3); 0 in the air.
        point: Center of pressure [m], shape (..., 3); NaN where the ground does not carry.
        moment: Free moment about the vertical through that point [N·m], shape (...); NaN likewise.
    """

    force: Floats
    point: Floats
    moment: Floats


def ground_reaction(
    character: SceneLike,
    contacts: Contacts | World | None = None,
    links: Links | None = None,
    *,
    copies: Copies | None = None,
    ground: ArrayLike = 0.0,
    obstacles: bool = True,
) -> Reaction:
    """Force of the ground on some links, and where it acts.

    Args:
        character: A world, whose last step is meant unless contacts are given; or the character, or
            a scene.
        contacts: Contacts, as of `world.contacts`.
        links: Names or indices, or a slice as of `world.part(name).links`; None is all.
        copies: Shape of the leading axes; that of the world unless contacts are given.
        ground: Height of the level on which the point lies [m], a number or shape (...).
        obstacles: Whether obstacles count as ground.
    """
    contacts, copies = contacts_from(character, contacts, copies)
    mine = ground_contacts(contacts_of(character, contacts, links), obstacles=obstacles)
    # about a point amid the contacts, so that far from the origin no digits are lost
    number = per_copy(mine, np.ones(len(mine.copy)), copies)
    about = per_copy(mine, mine.point, copies) / np.maximum(number, 1.0)[..., None]
    force, torque = contact_wrench(mine, about, copies)
    point = center_of_pressure(force, torque, about, ground)
    moment = torque[..., 2] - _cross_z(point - about, force)
    return Reaction(force, point, moment)


def foot_reactions(
    character: SceneLike, contacts: Contacts | World | None = None, **options: Any
) -> dict[str, Reaction]:
    """The reaction of the ground on each foot with its toes, by the foot's name.

    Args:
        character: As of `ground_reaction`.
        contacts: As of `ground_reaction`.
        options: copies, ground and obstacles, as of `ground_reaction`.
    """
    feet = feet_links(character).items()
    return {name: ground_reaction(character, contacts, links, **options) for name, links in feet}


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
    f, tau, o = broadcast_vectors(force=force, torque=torque, about=about)
    h = o[..., 2] - floats(ground, "ground")
    fz = _carrying(f)
    x = o[..., 0] - (tau[..., 1] + h * f[..., 0]) / fz
    y = o[..., 1] + (tau[..., 0] - h * f[..., 1]) / fz
    return np.stack([x, y, o[..., 2] - h + 0.0 * fz], axis=-1)


def centroidal_moment_pivot(com: ArrayLike, force: ArrayLike, ground: ArrayLike = 0.0) -> Floats:
    """Where on the ground the force would leave the angular momentum as it is, (..., 3) [m].

    Args:
        com: Center of mass [m], shape (..., 3).
        force: Of the ground [N], shape (..., 3).
        ground: Height of the ground [m], shape (...).

    Returns:
        NaN where the force does not point up: then there is no such point.
    """
    c, f = broadcast_vectors(com=com, force=force)
    height = c[..., 2] - floats(ground, "ground")
    cmp: Floats = c - f * (height / _carrying(f))[..., None]
    return cmp


def support_polygon(contacts: Contacts | World, copies: Copies | None = None) -> Polygons:
    """The support polygon of each copy, from contacts with ground and obstacles that touch.

    Args:
        contacts: A world, or contacts as of `world.contacts`; those of one character or foot by
            `contacts_of`.
        copies: Shape of the leading axes; that of the world unless given.
    """
    contacts, copies = contacts_from(None, contacts, copies)
    mine = closed(ground_contacts(contacts))
    shape, carries = _check(mine, copies), mine.normal[:, 2] > STEEPEST
    corners, size = convex_hulls_of_rows(
        mine.point[carries, :2], mine.copy[carries], math.prod(shape)
    )
    return Polygons(corners.reshape(*shape, *corners.shape[1:]), size.reshape(shape))


def _carrying(force: Floats) -> Floats:
    """The upward part, NaN where it is not above zero."""
    return np.where(force[..., 2] > 0.0, force[..., 2], np.nan)


def _cross_z(a: Floats, b: Floats) -> Floats:
    cross: Floats = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return cross
