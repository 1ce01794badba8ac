"""Frames: what a recording holds, in columns that grow.

Some columns have one row per frame. Others have as many as there is to tell, and an `_end` per
frame: rows end[i - 1] to end[i] belong to frame i.

    time            clock of each copy [s], (n,)
    q, v, torque    (n, nq), (n, nv), (n, nv)
    gravity         (3,)
    remembers       1 if the memory of this frame is known
    contact         contact_which: copy, link, other; contact: point, normal, force, depth
    thrown          thrown_which: copy, projectile; thrown: q, v
    memory          memory_index, memory: the entries that are not zero, of (n, size) numbers
    target          target_q, target_v: (nq,), (nv,), or per copy (n, nq), (n, nv)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FLOAT, INT, FLAG = "<f8", "<i8", "|u1"
TABLES = {
    "contact": ("contact_which", "contact"),
    "thrown": ("thrown_which", "thrown"),
    "memory": ("memory_index", "memory"),
    "target": ("target_q", "target_v"),
}
"""Columns that share an `_end`."""

Layout = dict[str, tuple[tuple[int, ...], str]]


def layout(n: int, nq: int, nv: int) -> Layout:
    """Shape of a row, and type, of every column; those of targets may lose their axis of copies."""
    fixed: Layout = {
        "time": ((n,), FLOAT),
        "q": ((n, nq), FLOAT),
        "v": ((n, nv), FLOAT),
        "torque": ((n, nv), FLOAT),
        "gravity": ((3,), FLOAT),
        "remembers": ((), FLAG),
    }
    ends: Layout = {f"{table}_end": ((), INT) for table in TABLES}
    return {
        **fixed,
        **ends,
        "contact_which": ((3,), INT),
        "contact": ((10,), FLOAT),
        "thrown_which": ((2,), INT),
        "thrown": ((13,), FLOAT),
        "memory_index": ((), INT),
        "memory": ((), FLOAT),
        "target_q": ((n, nq), FLOAT),
        "target_v": ((n, nv), FLOAT),
    }


class Block(NamedTuple):
    """Some frames, to be added together.

    Attributes:
        fixed: Columns with one row per frame.
        tables: How many rows each frame has, and the columns.
        memory_size: How many numbers of memory a copy has, or None if no frame remembers.
    """

    fixed: dict[str, Array]
    tables: dict[str, tuple[Any, ...]]
    memory_size: int | None


class Frames:
    """Columns that grow by frames.

    Args:
        n: Number of copies.
        nq: Number of coordinates.
        nv: Number of velocities.
        columns: Full ones to start with, as `arrays` gives them.
        memory_size: How many numbers of memory a copy has.
    """

    def __init__(
        self,
        n: int,
        nq: int,
        nv: int,
        columns: dict[str, Array] | None = None,
        memory_size: int = 0,
    ) -> None:
        self.count = 0
        self.n = n
        self.memory_size = memory_size
        if columns is None:
            shapes = layout(n, nq, nv)
            columns = {name: np.empty((0, *tail), kind) for name, (tail, kind) in shapes.items()}
        else:
            self.count = len(columns["time"])
        self.columns = columns
        # rows of each table that belong to frames
        self._used = {table: len(columns[names[0]]) for table, names in TABLES.items()}

    def extend(self, block: Block) -> None:
        """Add frames. Until all of them are there, none counts."""
        fixed, used = dict(block.fixed), dict(self._used)
        for table, (counts, *rows) in block.tables.items():
            start = used[table]
            end = start + np.cumsum(counts)
            fixed[f"{table}_end"], used[table] = end, int(end[-1])
            if used[table] > start:
                for name, values in zip(TABLES[table], rows, strict=True):
                    self._put(name, start, values)
        for name, values in fixed.items():
            self._put(name, self.count, values)
        if block.memory_size is not None:
            self.memory_size = block.memory_size
        self.count, self._used = self.count + len(fixed["time"]), used

    def rows(self, table: str, i: int) -> list[Array]:
        """What the columns of a table tell about frame i."""
        end = self.columns[f"{table}_end"]
        start, stop = int(end[i - 1]) if i else 0, int(end[i])
        return [_locked(self.columns[name][start:stop]) for name in TABLES[table]]

    def column(self, name: str) -> Array:
        """A column with one row per frame."""
        return _locked(self.columns[name][: self.count])

    def arrays(self) -> dict[str, Array]:
        """All columns, as long as they are filled."""
        lengths = dict.fromkeys(self.columns, self.count)
        for table, names in TABLES.items():
            lengths |= dict.fromkeys(names, self._used[table])
        return {name: _locked(self.columns[name][:stop]) for name, stop in lengths.items()}

    @property
    def nbytes(self) -> int:
        """Size of what is filled [bytes]."""
        return sum(array.nbytes for array in self.arrays().values())

    def _put(self, name: str, start: int, values: Array) -> None:
        """Write rows of a column, and make room for them. Targets may be one for all copies."""
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


def _locked(array: Array) -> Array:
    view: Array = array.view()
    view.flags.writeable = False
    return view
