"""Takes: frames of the history that are kept, and become a recording."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from poise.control.named import Controller
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.recording import Recording
from poise.recording.frames import Frames
from poise.recording.notes import Note, block_of
from poise.simulation.contact.contacts import CoreContacts
from poise.simulation.world import World
from poise.studio.cast import is_object
from poise.studio.lineup import Lineup

LONGEST = 600.0
"""Of a take [s]."""

MOST_BYTES = 256 * 2**20
"""Of a take."""

TOGETHER = 256
"""Frames that are put in order together."""


class Entry(NamedTuple):
    """A frame, and what was in force after it; `mind` is what the controller remembers."""

    note: Note
    world: World
    controller: Controller
    lineup: Lineup
    mind: Floats | None = None

    @property
    def time(self) -> float:
        """[s]"""
        return float(self.note.time[0])

    @property
    def nbytes(self) -> int:
        """Size of the arrays [bytes]."""
        note = self.note
        memory = note.memory[:2] if note.memory else ()
        columns = [getattr(note.contacts, name) for name in CoreContacts._fields]
        columns += [note.projectiles.q, note.projectiles.v]
        arrays = (note.q, note.v, note.torque, *columns, *memory)
        return sum(array.nbytes for array in (*arrays, *(note.target or ())))


class Take:
    """Frames that are kept until they are saved, from when recording began.

    Args:
        entries: The first ones.
        title: What it is a take of.
    """

    def __init__(self, entries: Iterable[Entry] = (), title: str = "") -> None:
        self.entries, self.title = list(entries), title
        self._bytes = sum(entry.nbytes for entry in self.entries)

    @property
    def duration(self) -> float:
        """From the first frame to the last [s]."""
        return self.entries[-1].time - self.entries[0].time if self.entries else 0.0

    @property
    def full(self) -> bool:
        """Whether it is as long as a take may be."""
        return self._bytes > MOST_BYTES or self.duration > LONGEST

    def append(self, entry: Entry) -> None:
        """Add a frame."""
        self.entries.append(entry)
        self._bytes += entry.nbytes

    def copy(self) -> Take:
        """The frames so far, as a take of their own."""
        return Take(self.entries, self.title)

    @property
    def characters(self) -> list[str]:
        """Names of the characters in the last frame's scene."""
        scene = self.entries[-1].world.scene
        parts = list(zip(scene.forest.parts, scene.characters, strict=True))
        return [name for name, one in parts if not is_object(one)] or [parts[0][0]]

    def cut(self, time: float) -> None:
        """Forget what came after a time [s]: it was done again."""
        while self.entries and self.entries[-1].time > time + 1e-9:
            self._bytes -= self.entries.pop().nbytes

    def recording(self) -> Recording:
        """The frames as a recording; takes some milliseconds for each second."""
        entries = self._even()
        if not entries:
            raise PoiseError("there is nothing to save yet: play first")
        world, notes = entries[-1].world, [entry.note for entry in entries]
        frames = Frames(world.n, world.scene.nq, world.scene.nv)
        for start in range(0, len(notes), TOGETHER):
            frames.extend(block_of(notes[start : start + TOGETHER], world))
        interval = notes[-1].time[0] - notes[-2].time[0] if len(notes) > 1 else world.dt
        steps = max(1, round(float(interval) / world.dt))
        return Recording._of(world.settings, steps * world.dt, [], frames, world.isa)

    def _even(self) -> list[Entry]:
        """The last frames that are of one world and at a constant rate."""
        entries = self.entries
        if len(entries) < 3:
            return entries
        apart = entries[-1].time - entries[-2].time
        first = len(entries) - 2
        while first > 0 and (
            entries[first - 1].world is entries[-1].world
            and abs(entries[first].time - entries[first - 1].time - apart) < 0.1 * apart
        ):
            first -= 1
        return entries[first:]
