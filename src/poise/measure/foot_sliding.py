"""How well feet stand: skating, sinking and floating of clips, slip and depth of contacts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import positions
from poise.math.arrays import Floats, floats
from poise.measure.contact_rows import Copies, _check, _each, contacts_from, contacts_in
from poise.model.character import Character
from poise.model.scene import Scene, SceneLike, scene_of
from poise.simulation.contact.contacts import Contacts, Ints
from poise.simulation.world import World


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


def slip(character: SceneLike, q: ArrayLike, v: ArrayLike, contacts: Contacts) -> Floats:
    """Speed at which the two sides of each contact slide along each other [m/s], shape (rows,).

    Times dt it is the way that a foot skates in the step.

    Args:
        character: The character, or a scene.
        q: Positions at the beginning of the step, where the contacts were found, (..., nq).
        v: Velocities at its end, shape (..., nv).
        contacts: Contacts of the step; their copies are counted along the leading axes of q.

    Returns:
        NaN for projectiles, and for parts of the scene beside the character: q and v do
        not hold them.
    """
    scene, q = scene_of(character), floats(q, "q")
    contacts = contacts_in(scene, contacts)
    shape = _check(contacts, q.shape[:-1])
    state = _each(q, "q", shape, scene.nq), _each(v, "v", shape, scene.nv)
    way = np.zeros((len(contacts.copy), 3))
    for link, sign in ((contacts.link, 1.0), (contacts.other, -1.0)):
        for one in np.unique(link[link >= 0]):
            rows = link == one
            at, copy = contacts.point[rows], contacts.copy[rows]
            way[rows] += sign * _point_velocity(scene, state, int(one), at, copy)
    normal = contacts.normal
    way -= np.sum(way * normal, axis=-1, keepdims=True) * normal
    speed: Floats = np.linalg.norm(way, axis=-1)
    return speed


def sinking(contacts: Contacts | World, copies: Copies | None = None) -> Floats:
    """Depth of the deepest contact of each copy, below zero a gap [m]; NaN without contacts.

    Args:
        contacts: Contacts, as of `world.contacts`; or a world.
        copies: Shape of the leading axes; that of the world unless given.
    """
    contacts, copies = contacts_from(None, contacts, copies)
    shape = _check(contacts, copies)
    deepest = np.full(int(np.prod(shape)), -np.inf)
    np.maximum.at(deepest, contacts.copy, contacts.depth)
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
