"""Arrows of contact forces."""

from __future__ import annotations

import numpy as np

from poise.math.arrays import Floats, number
from poise.recording import Recording
from poise.simulation.contact import Contacts
from poise.view.drawing import Primitive
from poise.view.overlay import arrow

LONGEST = 1.0
"""Arrow of a force [m]: that of a hard landing would leave the picture."""

WEIGHT = 0.5
"""Arrow of a character's weight, unless a scale is given [m]."""


def force_drawing(touches: Contacts, scale: float, *, copy: int = 0) -> list[Primitive]:
    """Arrows of the forces between each two things that touch, where they act together.

    None is longer than 1 m.

    Args:
        touches: Contacts.
        scale: Length of an arrow [m/N].
        copy: Which copy.
    """
    points, forces = pair_forces(touches, copy=copy)
    ways = arrow_vectors(forces, scale)
    return [thing for pair in zip(points, ways, strict=True) for thing in arrow(*pair)]


def pair_forces(touches: Contacts, *, copy: int = 0) -> tuple[Floats, Floats]:
    """The force between each two things that touch, and where it acts.

    Args:
        touches: Contacts.
        copy: Which copy.

    Returns:
        Points [m] and forces on the first of the two [N], shapes (k, 3).
    """
    mine = touches.copy == copy
    points, forces = [], []
    for one, two in sorted(set(zip(touches.link[mine], touches.other[mine], strict=True))):
        rows = mine & (touches.link == one) & (touches.other == two)
        press = np.linalg.norm(touches.force[rows], axis=1)
        if press.sum() > 0.0:
            points.append(press @ touches.point[rows] / press.sum())
            forces.append(touches.force[rows].sum(axis=0))
    return np.reshape(points, (-1, 3)), np.reshape(forces, (-1, 3))


def arrow_vectors(forces: Floats, scale: float) -> Floats:
    """What arrows of forces (k, 3) [N] show at a scale [m/N]; none is longer than 1 m."""
    size = np.linalg.norm(forces, axis=1, keepdims=True)
    short: Floats = forces * np.minimum(scale, LONGEST / np.maximum(size, 1e-9))
    return short


def force_scale(recording: Recording, forces: bool | float = True) -> float:
    """Length of arrows of forces [m/N]: as given, none, or so that a weight is half a metre."""
    if not isinstance(forces, bool):
        return abs(number(forces, "forces", positive=False, unit="m/N"))
    if not forces:
        return 0.0
    forest = recording.scene.forest
    mass = max(forest.link_mass[part.links].sum() for part in forest.parts.values())
    pull = float(np.linalg.norm(recording.gravity, axis=1).max())
    return WEIGHT / max(float(mass) * (pull or 9.81), 1e-3)
