"""Touches: what touched what."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.arrays import Floats

if TYPE_CHECKING:
    from poise.contact.touch import Touch

Ints = NDArray[np.int64]


class Touches(NamedTuple):
    """Contacts of the last step, of all copies, one row each.

    Attributes:
        copy: Which copy, shape (k,).
        link: Which link, by its index, shape (k,); spares come after the links of the scene.
        other: What it touches: a link, -1 the ground, -2 - i the obstacle i, shape (k,).
        point: Where, in the world [m], shape (k, 3).
        normal: Unit vector towards link, shape (k, 3).
        force: On link, the mean over the step [N], shape (k, 3).
        depth: How deep it was when the step began, below zero a gap [m], shape (k,).
    """

    copy: Ints
    link: Ints
    other: Ints
    point: Floats
    normal: Floats
    force: Floats
    depth: Floats


def touches_of(raw: tuple[Floats, ...], touch: Touch | None, dt: float) -> Touches:
    """Contacts as the core tells them, of one step or of several in a row.

    Args:
        raw: copy and two colliders (k, 3), point, normal, impulse, gap.
        touch: What can touch what; None if nothing can.
        dt: Time step [s].
    """
    which, point, normal, impulse, gap = raw
    copy, collider, other = which.astype(np.int64).T
    link = np.zeros(0, dtype=np.int64) if touch is None else touch.collider_link
    # obstacles are -1 - k among the colliders, and the ground comes before them
    met = np.append(np.where(link < 0, link - 1, link), -1)[other]
    return Touches(copy, link[collider], met, point, normal, impulse / dt, -gap)
