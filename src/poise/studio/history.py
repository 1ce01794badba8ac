"""The past of a simulation: frames to look at and to go on from, and takes.

Frames are as recordings store them. In a small scene each has the memory with which a world
continues bit for bit. Memories of large scenes are large (an impulse for every pair that may
touch), so only some frames have one, the checkpoints; any other frame is reached from the last
checkpoint by simulating again, with the edits in between. As the same input gives the same output,
the result has the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.character import is_free_object
from poise.recording import Recording
from poise.recording.columns import Columns, Frame
from poise.simulation.controller import ControllerLike as Controller
from poise.simulation.state import State
from poise.simulation.world import World
from poise.studio.crowd_reference import CrowdReference

if TYPE_CHECKING:
    from poise.studio.simulation import Simulation

MAX_BYTES = 192 * 2**20
"""Of all frames together."""

MAX_FRAMES = 60 * 60 * 10

SMALL_MEMORY = 20_000
"""Numbers of memory that are searched in a fraction of a millisecond."""

MAX_CHECKPOINT_INTERVAL = 60
"""At least one frame in so many is a checkpoint."""

MAX_TAKE_DURATION = 600.0
"""[s]"""

MAX_TAKE_BYTES = 256 * 2**20

FRAMES_PER_BLOCK = 256
"""Frames of a take that are put into a recording together."""

Edit = Callable[["Simulation"], None]
"""A change of a world or its control between two steps, which can be repeated."""


class ControlSetup(NamedTuple):
    """What decides the next step.

    Attributes:
        controller: The controller.
        reference: The reference.
        adaptive: Whether the clip slows down where the controller can scale its time.
    """

    controller: Controller
    reference: CrowdReference
    adaptive: bool = False


class Memory(NamedTuple):
    """What goes on from step to step beside the world.

    Attributes:
        controller: Memory of the controller, or None.
        scaling: Time in the clip [s] and speed of a clip that slows down, shape (2, 1), or None.
    """

    controller: Floats | None = None
    scaling: Floats | None = None


FRESH = Memory()
"""The memory of a start."""


class Entry(NamedTuple):
    """A frame, and the control in force after it.

    Attributes:
        frame: The frame.
        world: Its world.
        control: The control.
        memory: What they go on from.
    """

    frame: Frame
    world: World
    control: ControlSetup
    memory: Memory

    @property
    def time(self) -> float:
        """[s]"""
        return float(self.frame.time[0])

    @property
    def is_checkpoint(self) -> bool:
        """Whether the frame has the memory of its world."""
        return self.frame.memory is not None

    @property
    def state(self) -> State:
        """The state of the world at a checkpoint."""
        frame = self.frame
        assert frame.memory is not None
        places, values, size = frame.memory
        memory: Floats = np.zeros(size)
        memory[places] = values
        return State(frame.q[0].copy(), frame.v[0].copy(), frame.time[0].copy(), memory)

    @property
    def nbytes(self) -> int:
        """Size of the arrays [bytes]."""
        frame = self.frame
        memory = frame.memory[:2] if frame.memory else ()
        arrays = (frame.q, frame.v, frame.torque, *frame.projectiles, *frame.contacts, *memory)
        return sum(array.nbytes for array in (*arrays, *(frame.target or ())))


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
    def is_full(self) -> bool:
        """Whether it is as long as a take may be."""
        return self._bytes > MAX_TAKE_BYTES or self.duration > MAX_TAKE_DURATION

    def append(self, entry: Entry) -> None:
        """Adds a frame."""
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
        return [name for name, one in parts if not is_free_object(one)] or [parts[0][0]]

    def truncate(self, time: float) -> None:
        """Removes the frames after a time [s]: it is simulated again from there."""
        while self.entries and self.entries[-1].time > time + 1e-9:
            self._bytes -= self.entries.pop().nbytes

    def recording(self) -> Recording:
        """The frames as a recording; takes some milliseconds for each second."""
        entries = self._evenly_spaced()
        if not entries:
            raise PoiseError("there is nothing to save yet: play first")
        world, frames = entries[-1].world, [entry.frame for entry in entries]
        columns = Columns(world.n, world.scene.nq, world.scene.nv)
        for start in range(0, len(frames), FRAMES_PER_BLOCK):
            columns.extend(frames[start : start + FRAMES_PER_BLOCK], world)
        interval = frames[-1].time[0] - frames[-2].time[0] if len(frames) > 1 else world.dt
        steps = max(1, round(float(interval) / world.dt))
        return Recording._of(world.settings, steps * world.dt, [], columns, world.isa)

    def _evenly_spaced(self) -> list[Entry]:
        """The last frames that are of one world and at a constant rate."""
        entries = self.entries
        if len(entries) < 3:
            return entries
        interval = entries[-1].time - entries[-2].time
        first = len(entries) - 2
        while first > 0 and (
            entries[first - 1].world is entries[-1].world
            and abs(entries[first].time - entries[first - 1].time - interval) < 0.1 * interval
        ):
            first -= 1
        return entries[first:]


class History:
    """The last frames at a constant rate, within bounds, and the edits between them.

    Args:
        fps: Frames per second, rounded so that one comes every so many whole steps.

    Attributes:
        take: The take to which new frames are also added, or None.
    """

    def __init__(self, fps: float = 60.0) -> None:
        self._fps = fps
        self._entries: deque[Entry] = deque()
        self._edits: deque[tuple[float, Edit]] = deque()
        self._bytes = 0
        self._checkpoints = 0
        self._since_checkpoint = 0  # frames
        self._world: World | None = None
        self._checkpoint_interval = 1
        self.take: Take | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, i: int) -> Entry:
        return self._entries[i]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def clear(self) -> None:
        """Removes everything."""
        self._entries.clear()
        self._edits.clear()
        self._bytes = self._checkpoints = self._since_checkpoint = 0

    # ---- when a frame is due

    def steps_to_next(self, time: float, dt: float) -> int:
        """Steps of dt [s] from a time [s] to the next frame."""
        since = time - self._entries[-1].time if self._entries else 0.0
        return max(1, round((self._interval(dt) - since) / dt))

    def is_due(self, time: float, dt: float) -> bool:
        """Whether a world with steps dt [s] should store a frame at a time [s]."""
        if not self._entries:
            return True
        return time - self._entries[-1].time >= self._interval(dt) - 0.5 * dt

    def needs_checkpoint(self, world: World) -> bool:
        """Whether the next frame should have the memory of its world."""
        if self._world is not world:
            size = int(world._core.memory().size)
            interval = min(MAX_CHECKPOINT_INTERVAL, 1 + size // SMALL_MEMORY)
            self._world, self._checkpoint_interval = world, interval
        return not self._entries or self._since_checkpoint + 1 >= self._checkpoint_interval

    def _interval(self, dt: float) -> float:
        """Time between frames of a world with steps dt [s]."""
        return max(1, round(1.0 / (self._fps * dt))) * dt

    # ---- what happened

    def append(self, entry: Entry) -> None:
        """Adds a frame, and removes the oldest ones beyond the bounds."""
        self._entries.append(entry)
        self._since_checkpoint = 0 if entry.is_checkpoint else self._since_checkpoint + 1
        self._count(entry, 1)
        self._make_room()
        if self.take is not None:
            self.take.append(entry)

    def record_edit(self, time: float, edit: Edit) -> None:
        """Adds an edit at a time [s]."""
        self._edits.append((time, edit))

    # ---- going back

    def checkpoint(self, i: int) -> int:
        """Number of the last checkpoint at or before frame i."""
        return next(k for k in range(i, -1, -1) if self._entries[k].is_checkpoint)

    def edits(self, start: float, end: float) -> list[tuple[float, Edit]]:
        """Edits from a time [s] on and before another, with their times."""
        return [(at, edit) for at, edit in self._edits if start - 1e-9 <= at < end - 1e-9]

    def rewind(self, i: int) -> None:
        """Removes all that came after frame i."""
        time = self._entries[i].time
        self.truncate(time)
        self._since_checkpoint = i - self.checkpoint(i)
        if self.take is not None:
            self.take.truncate(time)

    def truncate(self, time: float) -> None:
        """Removes frames after a time [s], and edits from then on."""
        while self._entries and self._entries[-1].time > time:
            self._count(self._entries.pop(), -1)
        while self._edits and self._edits[-1][0] >= time - 1e-9:
            self._edits.pop()

    def _count(self, entry: Entry, sign: int) -> None:
        self._bytes += sign * entry.nbytes
        self._checkpoints += sign * entry.is_checkpoint

    def _make_room(self) -> None:
        """Removes the oldest frames; the first one that stays is a checkpoint."""
        crowded = self._bytes > MAX_BYTES or len(self._entries) > MAX_FRAMES
        while crowded and self._checkpoints > 1:
            self._count(self._entries.popleft(), -1)
            if self._entries[0].is_checkpoint:
                crowded = self._bytes > MAX_BYTES or len(self._entries) > MAX_FRAMES
        first = self._entries[0].time
        while self._edits and self._edits[0][0] < first - 1e-9:
            self._edits.popleft()
