"""The support polygon."""

from __future__ import annotations

import math

from poise.math.polygon import Polygons, convex_hulls_of_rows
from poise.measure.touching import Copies, _check, closed, ground_contacts
from poise.simulation.contact.touches import Touches

STEEPEST = 0.5
"""Least upward component of the normal of a surface that supports: slopes below 60 degrees."""


def support_polygon(touches: Touches, copies: Copies = ()) -> Polygons:
    """The support polygon of each copy, from contacts with ground and obstacles that touch.

    Args:
        touches: Contacts, as of `world.contacts`; those of one character or foot by `contacts_of`.
        copies: Shape of the leading axes.
    """
    mine = closed(ground_contacts(touches))
    shape, carries = _check(mine, copies), mine.normal[:, 2] > STEEPEST
    corners, size = convex_hulls_of_rows(
        mine.point[carries, :2], mine.copy[carries], math.prod(shape)
    )
    return Polygons(corners.reshape(*shape, *corners.shape[1:]), size.reshape(shape))
