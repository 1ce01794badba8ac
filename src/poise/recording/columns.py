"""Columns: what a recording stores of its frames, in arrays that grow.

Some columns have one row per frame. The others are tables with any number of rows per frame, and
an `_end` per frame: rows end[i - 1] to end[i] belong to frame i.

    time            clock of each copy [s], (n,)
    q, v, torque    (n, nq), (n, nv), (n, nv)
    gravity         (3,)
    remembers       1 if the memory of this frame is stored
    contact         contact_which: copy, link, other; contact: point, normal, force, depth
    thrown          thrown_which: copy, projectile; thrown: q, v
    memory          memory_index, memory: the entries that are not zero, of (n, size) numbers
    target          target_q, target_v: (nq,), (nv,), or per copy (n, nq), (n, nv)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.math.arrays import Floats
from poise.simulation.contact import Projectiles
from poise.simulation.contact.contacts import Contacts, CoreContacts, contacts_from_core
from poise.simulation.world import World

Array = NDArray[Any]
FLOAT, INT, FLAG = "<f8", "<i8", "|u1"
TABLES = {
    "contact": ("contact_which", "contact"),
    "thrown": ("thrown_which", "thrown"),
    "memory": ("memory_index", "memory"),
    "target": ("target_q", "target_v"),
}
"""Columns that share an `_end`."""

TABLE_COLUMNS = tuple(name for names in TABLES.values() for name in names)

Layout = dict[str, tuple[tuple[int, ...], str]]


class Frame(NamedTuple):
    """All copies of a world at one time, as the core returns them.

    Attributes:
        time: Clock of each copy [s], shape (n,).
        q: Positions, shape (n, nq).
        v: Velocities, shape (n, nv).
        torque: Of the step before, shape (n, nv).
        gravity: [m/s^2], shape (3,).
        contacts: Columns of the contact points of the step before.
        projectiles: Of all copies.
        memory: Indices and values of the entries that are not zero, and the size of one copy's
            memory; None if it is not stored.
        target: Positions and velocities of the target, or None.
    """

    time: Floats
    q: Floats
    v: Floats
    torque: Floats
    gravity: Floats
    contacts: CoreContacts
    projectiles: Projectiles
    memory: tuple[Array, Floats, int] | None
    target: tuple[Floats, Floats] | None


def read_frame(
    world: World, time: Floats, with_memory: bool, target: tuple[Floats, Floats] | None
) -> Frame:
    """Reads the present frame of a world.

    Args:
        world: The world.
        time: Its clocks.
        with_memory: Whether to store its memory.
        target: Positions and velocities of the target, or None.
    """
    core = world._core
    q, v = core.read()
    # at once: storing whole memories for later costs more than finding their entries
    memory = _nonzero(core.memory()) if with_memory else None
    torque, gravity = core.torque(), world.gravity
    contacts = CoreContacts.of(core.contacts())
    projectiles = Projectiles.of(core.projectiles())
    return Frame(time, q, v, torque, gravity, contacts, projectiles, memory, target)


def layout(n: int, nq: int, nv: int) -> Layout:
    """Shape of a row, and type, of every column; those of targets may lose their axis of copies."""
    return {
        "time": ((n,), FLOAT),
        "q": ((n, nq), FLOAT),
        "v": ((n, nv), FLOAT),
        "torque": ((n, nv), FLOAT),
        "gravity": ((3,), FLOAT),
        "remembers": ((), FLAG),
        **{f"{table}_end": ((), INT) for table in TABLES},
        "contact_which": ((3,), INT),
        "contact": ((10,), FLOAT),
        "thrown_which": ((2,), INT),
        "thrown": ((13,), FLOAT),
        "memory_index": ((), INT),
        "memory": ((), FLOAT),
        "target_q": ((n, nq), FLOAT),
        "target_v": ((n, nv), FLOAT),
    }


class Columns:
    """Columns that grow by frames.

    Args:
        n: Number of copies.
        nq: Number of coordinates.
        nv: Number of velocities.
        columns: The first frames: columns as `arrays` returns them; those that are missing are
            zero, and tables that are missing are empty.
        memory_size: Numbers of memory of one copy.
    """

    def __init__(
        self,
        n: int,
        nq: int,
        nv: int,
        columns: Mapping[str, Array] | None = None,
        memory_size: int = 0,
    ) -> None:
        self.n = n
        self.memory_size = memory_size
        columns = {} if columns is None else columns
        self.count = len(columns["time"]) if columns else 0
        self.columns: dict[str, Array] = {
            name: columns[name]
            if name in columns
            else np.zeros((0 if name in TABLE_COLUMNS else self.count, *tail), kind)
            for name, (tail, kind) in layout(n, nq, nv).items()
        }
        # rows of each table that belong to frames
        self._used = {table: len(self.columns[names[0]]) for table, names in TABLES.items()}

    def extend(self, frames: Sequence[Frame], world: World) -> None:
        """Appends frames of a world, all of them or none."""
        fixed = {
            name: np.array([getattr(frame, name) for frame in frames])
            for name in ("time", "q", "v", "torque", "gravity")
        }
        fixed["remembers"] = np.array([frame.memory is not None for frame in frames])
        used = dict(self._used)
        for table, (counts, *rows) in _tables(frames, world).items():
            start = used[table]
            end = start + np.cumsum(counts)
            fixed[f"{table}_end"], used[table] = end, int(end[-1])
            if used[table] > start:
                for name, values in zip(TABLES[table], rows, strict=True):
                    self._put(name, start, values)
        for name, values in fixed.items():
            self._put(name, self.count, values)
        sizes = [frame.memory[2] for frame in frames if frame.memory is not None]
        self.memory_size = sizes[0] if sizes else self.memory_size
        self.count, self._used = self.count + len(frames), used

    def rows(self, table: str, i: int) -> list[Array]:
        """Rows of frame i in the columns of a table."""
        end = self.columns[f"{table}_end"]
        start, stop = int(end[i - 1]) if i else 0, int(end[i])
        return [_read_only(self.columns[name][start:stop]) for name in TABLES[table]]

    def rows_per_frame(self, table: str) -> Array:
        """Number of rows that each frame has in a table, shape (frames,)."""
        return np.diff(self.column(f"{table}_end"), prepend=0)

    def column(self, name: str) -> Array:
        """A column with one row per frame."""
        return _read_only(self.columns[name][: self.count])

    def arrays(self) -> dict[str, Array]:
        """All columns, as long as they are filled."""
        lengths = dict.fromkeys(self.columns, self.count)
        for table, names in TABLES.items():
            lengths |= dict.fromkeys(names, self._used[table])
        return {name: _read_only(self.columns[name][:stop]) for name, stop in lengths.items()}

    @property
    def nbytes(self) -> int:
        """Size of the filled part [bytes]."""
        return sum(array.nbytes for array in self.arrays().values())

    def _put(self, name: str, start: int, values: Array) -> None:
        """Writes rows of a column and enlarges it; targets may be one for all copies."""
        column, stop = self.columns[name], start + len(values)
        if name in TABLES["target"]:
            column = self._fit(column, start, values)
        if stop > len(column):
            larger = np.empty((max(stop, 2 * len(column), 64), *column.shape[1:]), column.dtype)
            larger[:start] = column[:start]
            column = larger
        column[start:stop] = values if values.ndim == column.ndim else values[:, None]
        self.columns[name] = column

    def _fit(self, column: Array, filled: int, values: Array) -> Array:
        """A column of targets whose rows are as the first was, until one is per copy."""
        if values.ndim == 2 and not filled:
            return np.empty((0, values.shape[1]), FLOAT)
        if values.ndim == 3 and column.ndim == 2:
            shape = (len(column), self.n, column.shape[1])
            return np.array(np.broadcast_to(column[:, None], shape))
        return column


def contacts_in(which: Array, rows: Array) -> Contacts:
    """The contacts that are stored in rows: the inverse of `_contacts`."""
    copy, link, other = which.T
    return Contacts(copy, link, other, rows[:, :3], rows[:, 3:6], rows[:, 6:9], rows[:, 9])


def _tables(frames: Sequence[Frame], world: World) -> dict[str, tuple[Array, ...]]:
    """Of each table the rows per frame, and the new rows of its columns."""
    targets = [frame.target for frame in frames if frame.target is not None]
    return {
        "contact": _contacts([frame.contacts for frame in frames], world),
        "thrown": _thrown([frame.projectiles for frame in frames]),
        "memory": _memory([frame.memory for frame in frames]),
        "target": (np.array([frame.target is not None for frame in frames]), *_targets(targets)),
    }


def _contacts(raw: Sequence[CoreContacts], world: World) -> tuple[Array, ...]:
    """Counts, (copy, link, other) and (point, normal, force, depth)."""
    together = CoreContacts.joined(raw)
    copy, link, other, *numbers, depth = contacts_from_core(
        together, world._collision_model, world.dt
    )
    counts = np.array([len(one.copy) for one in raw])
    which = np.stack([copy, link, other], axis=1)
    return counts, which, np.concatenate([*numbers, depth[:, None]], axis=1)


def _thrown(frames: Sequence[Projectiles]) -> tuple[Array, ...]:
    """Counts, (copy, projectile) and (q, v) of the projectiles that are thrown."""
    thrown, q, v = (np.array(column) for column in zip(*frames, strict=True))
    which = thrown.nonzero()
    counts = np.bincount(which[0], minlength=len(frames))
    return counts, np.stack(which[1:], axis=1), np.concatenate([q[which], v[which]], axis=1)


def _nonzero(memory: Floats) -> tuple[Array, Floats, int]:
    """Indices and values of the entries that are not +0, and the size of a copy's memory."""
    flat = memory.reshape(-1)
    places = (flat.view(np.int64) != 0).nonzero()[0]
    return places, flat[places], memory.shape[1]


def _memory(entries: Sequence[tuple[Array, Floats, int] | None]) -> tuple[Array, ...]:
    """Counts, indices and values."""
    known = [entry or (np.zeros(0, np.int64), np.zeros(0), 0) for entry in entries]
    places, values, _ = zip(*known, strict=True)
    return np.array([len(at) for at in places]), np.concatenate(places), np.concatenate(values)


def _targets(targets: Sequence[tuple[Floats, Floats]]) -> tuple[Array, ...]:
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


def _read_only(array: Array) -> Array:
    view: Array = array.view()
    view.flags.writeable = False
    return view
