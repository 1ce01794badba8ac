"""From a frame of a world or of a recording to all that is measured in it.

Only what is shown is measured: some thirty times a second, not in every step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import dynamics, measure
from poise.math.arrays import Floats
from poise.measure.centroid import Momentum
from poise.measure.support import Support
from poise.recording import Recording
from poise.recording.notes import Note
from poise.simulation.contact.collision_model import projectile_table
from poise.simulation.contact.contacts import Contacts, contacts_from_core
from poise.simulation.world import World
from poise.studio.cast import Cast, Group
from poise.studio.snapshot import Contacts as PressingContacts
from poise.studio.snapshot import Moment

Bools = NDArray[np.bool_]

NEAR_LIMIT = math.radians(0.2)
"""A joint this near to a bound, or beyond it, is at it [rad, m]."""

FULL = 0.999
"""A torque of this share of its limit is at it."""

ANY_FORCE = 1e-6
"""Contacts with less do not press [N]."""


class Frame(NamedTuple):
    """One copy of a scene at one time.

    Attributes:
        time: [s].
        q: Positions, shape (nq,).
        v: Velocities, shape (nv,).
        torque: Of the step before, shape (nv,).
        gravity: [m/s^2], shape (3,).
        touches: Contacts of the step before.
        thrown: Projectiles, shape (projectiles, 14).
        reference: Positions that were asked for, shape (nq,), or None.
        planned: Where the first character's pressure was meant to be [m], shape (3,), or None.
    """

    time: float
    q: Floats
    v: Floats
    torque: Floats
    gravity: Floats
    touches: Contacts
    thrown: Floats
    reference: Floats | None
    planned: Floats | None = None


def frame_of_note(note: Note, world: World) -> Frame:
    """The frame that was noted in a world of one copy."""
    touches = contacts_from_core(note.contacts, world._touch, world.dt)
    reference = None if note.target is None else note.target[0]
    return Frame(
        float(note.time[0]), note.q[0], note.v[0], note.torque[0], note.gravity, touches,
        projectile_table(note.projectiles)[0], reference,
    )  # fmt: skip


def frame_of_recording(recording: Recording, i: int, copy: int = 0) -> Frame:
    """One copy in one frame of a recording."""
    frames = recording.frames
    touches = recording.contacts(i)
    touches = touches.rows(touches.copy == copy)
    touches = touches._replace(copy=np.zeros_like(touches.copy))
    asked = recording.target(i)
    goal = None if asked is None else asked.q if asked.q.ndim == 1 else asked.q[copy]
    thrown = recording.thrown(i)
    q, v, torque = (frames.column(name)[i, copy] for name in ("q", "v", "torque"))
    return Frame(
        float(frames.column("time")[i, copy]),
        q,
        v,
        torque,
        frames.column("gravity")[i],
        touches,
        thrown if recording.n == 1 else thrown[copy],
        goal,
    )


def moment_of(cast: Cast, frame: Frame) -> Moment:
    """All that is measured in a frame."""
    m = cast.count
    com, velocity, linear, angular = (np.zeros((m, 3)) for _ in range(4))
    kinetic, potential = np.zeros((2, m))
    rotation, position, away = np.full((3, m), np.nan)
    fallen: Bools = np.zeros(m, dtype=bool)
    mine = _of_characters(cast, frame.touches)
    for group in cast.groups:
        at, one = group.rows, group.character
        q, v = frame.q[group.q], frame.v[group.v]
        com[at] = measure.center_of_mass(one, q)
        momentum: Momentum = measure.momentum(one, q, v)
        linear[at], angular[at] = momentum
        velocity[at] = momentum.linear / max(one.mass, 1e-12)
        kinetic[at], potential[at] = dynamics.energy(one, q, v, gravity=frame.gravity)
        if frame.reference is not None:
            error = measure.tracking_error(one, q, frame.reference[group.q])
            rotation[at], position[at] = error.rotation.mean(axis=-1), error.position.mean(axis=-1)
            away[at] = error.world[:, 0]
        fallen[at] = _fallen(cast, group, q, mine)
    level = cast.ground(com[:, 0], com[:, 1])
    reaction = measure.ground_reaction(cast.scene, mine, copies=m, ground=level)
    pivot = measure.centroidal_moment_pivot(com, reaction.force, level)
    share, saturated = _torques(cast, frame.torque)
    planned = np.full((m, 3), np.nan)
    if frame.planned is not None:
        planned[0] = frame.planned
    flat = measure.support_polygon(mine, copies=m)
    margin = np.stack([measure.support_margin(flat, at) for at in (com, reaction.point, pivot)])
    moment = Moment(
        cast=cast, time=frame.time, q=frame.q, reference=frame.reference, thrown=frame.thrown,
        contacts=_pressing(frame.touches), torque=share, saturated=saturated,
        at_limit=_at_limit(cast, frame.q), com=com, velocity=velocity, cop=reaction.point,
        cmp=pivot, planned=planned, margin=margin.T, ground_force=reaction.force,
        support=_support(cast, flat), linear=linear,
        angular=angular, kinetic=kinetic, potential=potential, rotation=rotation,
        position=position, away=away, fallen=fallen,
    )  # fmt: skip
    _lock(moment)
    return moment


def _of_characters(cast: Cast, touches: Contacts) -> Contacts:
    """Contacts of characters with the ground and obstacles; `copy` says which character."""
    inside = touches.link < cast.scene.nl
    who = np.where(inside, cast.who[np.where(inside, touches.link, 0)], -1)
    keep = (who >= 0) & (touches.other < 0)
    return Contacts._make(column[keep] for column in touches._replace(copy=who))


def _fallen(cast: Cast, group: Group, q: Floats, mine: Contacts) -> Bools:
    """Whether characters of a group lie, by their heads and by what touches the ground."""
    if not group.stands:
        return np.zeros(len(q), dtype=bool)
    place: Floats = q[:, :2] if group.character.joints[0].kind == "free" else np.zeros((len(q), 2))
    row = np.full(cast.count, -1)
    row[group.rows] = np.arange(len(group.rows))
    here = row[mine.copy] >= 0
    own = Contacts._make(column[here] for column in mine)
    who = row[own.copy]
    own = own._replace(copy=who, link=own.link - group.links[who, 0])
    level = cast.ground(place[:, 0], place[:, 1])
    return measure.fallen(group.character, q, own, ground=level)


def _support(cast: Cast, support: Support) -> tuple[Floats, ...]:
    """Corners of the support polygons, on the ground."""
    flat, sizes = support
    height = cast.ground(flat[..., 0], flat[..., 1])[..., None]
    corners = np.concatenate([flat, height], axis=-1)
    return tuple(one[:size] for one, size in zip(corners, sizes.tolist(), strict=True))


def _torques(cast: Cast, torque: Floats) -> tuple[Floats, Bools]:
    """Largest share of torque of the joints of each link, and whether one is at its limit."""
    forest = cast.scene.forest
    size = np.sqrt(np.add.reduceat(np.square(torque), forest.v_adr))
    share, full = np.zeros(cast.scene.nl), np.zeros(cast.scene.nl, dtype=bool)
    np.maximum.at(share, forest.link, size / cast.scale)
    np.logical_or.at(full, forest.link, size >= FULL * cast.effort)
    return share, full


def _at_limit(cast: Cast, q: Floats) -> Bools:
    """Links with a joint at a bound: see `poise.model.joint.Joint` for those of balls."""
    bounds = cast.limits
    out: Bools = np.zeros(cast.scene.nl, dtype=bool)
    x = q[bounds.at]
    out[bounds.link[(x < bounds.low + NEAR_LIMIT) | (x > bounds.high - NEAR_LIMIT)]] = True
    turn = q[bounds.balls]
    along = np.sum(turn[:, 1:] * bounds.axis, axis=1)
    # the axis goes to q a q^-1; its cosine with a comes from what of q lies across a
    across = np.square(turn[:, 1:]).sum(axis=1) - along**2
    swing = np.arccos(np.clip(1.0 - 2.0 * across, -1.0, 1.0))
    twist = np.remainder(2.0 * np.arctan2(along, turn[:, 0]) + np.pi, 2.0 * np.pi) - np.pi
    widest, low, high = bounds.bounds.T
    beyond = (swing > widest - NEAR_LIMIT) | (twist < low + NEAR_LIMIT)
    out[bounds.ball_link[beyond | (twist > high - NEAR_LIMIT)]] = True
    return out


def _pressing(touches: Contacts) -> PressingContacts:
    """Contacts with a force."""
    keep = np.square(touches.force).sum(axis=1) > ANY_FORCE**2
    return PressingContacts(
        touches.point[keep], touches.force[keep], touches.link[keep], touches.other[keep]
    )


def _lock(moment: Moment) -> None:
    """Make arrays read-only."""
    contacts = moment.contacts
    for value in (*vars(moment).values(), *moment.support, *vars(contacts).values()):
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
