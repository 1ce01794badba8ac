"""How well feet stand: skating, sinking and floating of clips, slip and depth of contacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.math.arrays import Floats, floats
from poise.measure.touching import Copies, _check, _each, contacts_in
from poise.model.scene import Scene, SceneLike, scene_of
from poise.simulation.contact.contacts import Contacts, Ints

if TYPE_CHECKING:
    from poise.anatomy.contact_schedule import Contacts as ContactSchedule
    from poise.model.character import Character


class Footing(NamedTuple):
    """How well points stand while they are in contact, one number for each contact.

    Attributes:
        point: Index of the point among those of the contacts.
        start: First frame of each contact.
        stop: Frame after the last.
        skate: Largest distance over the ground from where the point touched first [m].
        sink: Largest depth below the ground [m].
        rise: Largest height above the ground [m].
    """

    point: list[int]
    start: list[int]
    stop: list[int]
    skate: Floats
    sink: Floats
    rise: Floats


def footing(
    character: Character, q: ArrayLike, contacts: ContactSchedule, ground: float = 0.0
) -> Footing:
    """Skating, sinking and floating of the points that stand.

    Args:
        character: The character.
        q: Frames, shape (k, nq).
        contacts: Which points stand in each frame.
        ground: Height of the ground [m].
    """
    from poise.anatomy.contact_schedule import positions

    at = positions(character, contacts.points, floats(q, "q"))
    phases = contacts.point_phases()
    skate, sink, rise = np.zeros((3, len(phases)))
    for n, (i, a, b) in enumerate(phases):
        here = at[a:b, i]
        skate[n] = np.linalg.norm(here[:, :2] - here[0, :2], axis=1).max()
        sink[n] = max(ground - here[:, 2].min(), 0.0)
        rise[n] = max(here[:, 2].max() - ground, 0.0)
    point, start, stop = ([phase[n] for phase in phases] for n in range(3))
    return Footing(point, start, stop, skate, sink, rise)


def slip(character: SceneLike, q: ArrayLike, v: ArrayLike, touches: Contacts) -> Floats:
    """Speed at which the two sides of each contact slide along each other [m/s], shape (rows,).

    Times dt it is the way that a foot skates in the step.

    Args:
        character: The character, or a scene.
        q: Positions at the beginning of the step, where the contacts were found, (..., nq).
        v: Velocities at its end, shape (..., nv).
        touches: Contacts of the step; their copies are counted along the leading axes of q.

    Returns:
        NaN for what was thrown in, and for parts of the scene beside the character: q and v do
        not hold them.
    """
    scene, q = scene_of(character), floats(q, "q")
    touches = contacts_in(scene, touches)
    shape = _check(touches, q.shape[:-1])
    state = _each(q, "q", shape, scene.nq), _each(v, "v", shape, scene.nv)
    way = np.zeros((len(touches.copy), 3))
    for link, sign in ((touches.link, 1.0), (touches.other, -1.0)):
        for one in np.unique(link[link >= 0]):
            rows = link == one
            at, copy = touches.point[rows], touches.copy[rows]
            way[rows] += sign * _point_velocity(scene, state, int(one), at, copy)
    normal = touches.normal
    way -= np.sum(way * normal, axis=-1, keepdims=True) * normal
    speed: Floats = np.linalg.norm(way, axis=-1)
    return speed


def sinking(touches: Contacts, copies: Copies = ()) -> Floats:
    """Depth of the deepest contact of each copy, below zero a gap [m]; NaN without contacts."""
    shape = _check(touches, copies)
    deepest = np.full(int(np.prod(shape)), -np.inf)
    np.maximum.at(deepest, touches.copy, touches.depth)
    return np.where(np.isinf(deepest), np.nan, deepest).reshape(shape)


def _point_velocity(
    scene: Scene, state: tuple[Floats, Floats], link: int, at: Floats, copy: Ints
) -> Floats:
    """Velocity of points of a link, one for each row; NaN for links that the scene has not."""
    if link >= scene.nl:
        return np.full(at.shape, np.nan)
    q, v = state
    copies, row = np.unique(copy, return_inverse=True)
    if scene.copies:  # numbers per copy: the core answers about all of them or none
        copies, row = np.arange(len(q)), copy
    origin = dynamics.forward_kinematics(scene, q[copies])[0][row, link]
    twist = np.einsum("nij,nj->ni", dynamics.jacobian(scene, q[copies], link), v[copies])[row]
    velocity: Floats = twist[:, :3] + np.cross(twist[:, 3:], at - origin)
    return velocity
