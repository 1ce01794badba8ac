"""Notes of a world: taken quickly, frame by frame, and put in order many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from poise.math.arrays import Floats
from poise.recording.frames import Array, Block
from poise.simulation.contact.collision_model import projectile_table
from poise.simulation.contact.contacts import Contacts, CoreContacts, contacts_from_core
from poise.simulation.world import World


class Note(NamedTuple):
    """One frame, as the core tells it."""

    time: Floats
    q: Floats
    v: Floats
    torque: Floats
    gravity: Floats
    contacts: CoreContacts
    projectiles: Floats  # as of `projectile_table`
    memory: tuple[Array, Floats, int] | None  # places and values of what is not zero; size
    target: tuple[Floats, Floats] | None


def note_of(
    world: World, time: Floats, remembers: bool, target: tuple[Floats, Floats] | None
) -> Note:
    """Where a world is now.

    Args:
        world: Which world.
        time: Its clocks.
        remembers: Whether to keep its memory.
        target: What was asked for, or None.
    """
    core = world._core
    q, v = core.read()
    # at once: to keep whole memories for later costs more than to look through them
    memory = _entries(core.memory()) if remembers else None
    torque, gravity = core.torque(), world.gravity
    contacts = CoreContacts.of(core.contacts())
    projectiles = projectile_table(core.projectiles())
    return Note(time, q, v, torque, gravity, contacts, projectiles, memory, target)


def block_of(notes: Sequence[Note], world: World) -> Block:
    """Notes as rows of columns."""
    fixed = {
        name: np.array([getattr(note, name) for note in notes])
        for name in ("time", "q", "v", "torque", "gravity")
    }
    fixed["remembers"] = np.array([note.memory is not None for note in notes])
    targets = [note.target for note in notes if note.target is not None]
    tables = {
        "contact": _contacts([note.contacts for note in notes], world),
        "thrown": _thrown(np.array([note.projectiles for note in notes])),
        "memory": _memory([note.memory for note in notes]),
        "target": ([note.target is not None for note in notes], *_wide(targets)),
    }
    sizes = [note.memory[2] for note in notes if note.memory is not None]
    return Block(fixed, tables, sizes[0] if sizes else None)


def _contacts(raw: Sequence[CoreContacts], world: World) -> tuple[Array, ...]:
    """Counts, (copy, link, other) and (point, normal, force, depth)."""
    together = CoreContacts.joined(raw)
    copy, link, other, *numbers, depth = contacts_from_core(together, world._touch, world.dt)
    counts = np.array([len(one.copy) for one in raw])
    which = np.stack([copy, link, other], axis=1)
    return counts, which, np.concatenate([*numbers, depth[:, None]], axis=1)


def contacts_in(which: Array, rows: Array) -> Contacts:
    """The contacts that were put into rows: the inverse of `_contacts`."""
    copy, link, other = which.T
    return Contacts(copy, link, other, rows[:, :3], rows[:, 3:6], rows[:, 6:9], rows[:, 9])


def _thrown(projectiles: Floats) -> tuple[Array, ...]:
    """Counts, (copy, projectile) and (q, v) of the projectiles that have been thrown."""
    out = projectiles[..., 0].nonzero()
    counts = np.bincount(out[0], minlength=len(projectiles))
    return counts, np.stack(out[1:], axis=1), projectiles[out][:, 1:]


def _entries(memory: Floats) -> tuple[Array, Floats, int]:
    """Where the memory is not zero, what it is there, its size; a zero with a sign counts."""
    flat = memory.reshape(-1)
    places = (flat.view(np.int64) != 0).nonzero()[0]
    return places, flat[places], memory.shape[1]


def _memory(entries: Sequence[tuple[Array, Floats, int] | None]) -> tuple[Array, ...]:
    """Counts, places and values."""
    known = [entry or (np.zeros(0, np.int64), np.zeros(0), 0) for entry in entries]
    places, values, _ = zip(*known, strict=True)
    return np.array([len(at) for at in places]), np.concatenate(places), np.concatenate(values)


def _wide(targets: Sequence[tuple[Floats, Floats]]) -> tuple[Array, ...]:
    """Positions and velocities; all per copy if some are."""
    if not targets:
        return np.zeros((0, 0)), np.zeros((0, 0))
    found = []
    for rows in zip(*targets, strict=True):
        shapes = {row.shape for row in rows}
        wide = max(shapes, key=len)
        same = rows if len(shapes) == 1 else [np.broadcast_to(row, wide) for row in rows]
        found.append(np.array(same))
    return tuple(found)
