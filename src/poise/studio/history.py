"""What happened lately, to look at again and to go on from.

Frames are notes, as recordings keep them. Each of a small scene has the memory with which a world
goes on bit for bit. Memories of large scenes are large (they hold an impulse for every two things
that may touch), so there only some frames have one; from the last of these the way to any other
frame is simulated again, with all that was done on the way. As the same input gives the same
output, that comes to the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.recording.notes import Note, note_of
from poise.simulation.controller import ControllerLike as Controller
from poise.simulation.run import run
from poise.simulation.state import State
from poise.simulation.world import World
from poise.studio.lineup import Lineup
from poise.studio.takes import Entry, Take

MOST_BYTES = 192 * 2**20
"""Of all frames together."""

MOST_FRAMES = 60 * 60 * 10

CHEAP = 20_000
"""Numbers of memory that are looked through in a fraction of a millisecond."""

FARTHEST, FASTEST = 1e6, 1e5
"""Beyond this a world is lost though its numbers are finite [m, rad], [m/s, rad/s]."""

WILD = "the simulation left all bounds"

RHYTHM = 60
"""At least one frame in so many has its memory."""


class Runner:
    """A world, and the rules by which it goes on.

    Args:
        world: The world.
        controller: What moves it.
        lineup: The reference.

    Attributes:
        lost: Why it stands still, or "".
    """

    def __init__(self, world: World, controller: Controller, lineup: Lineup) -> None:
        self.world, self.controller, self.lineup = world, controller, lineup
        self.lost = ""

    def reset(self, state: State, mind: Floats | None = None) -> None:
        """Put the world into a state, and the controller into what it remembered then."""
        self.world.reset(state)
        self.lost = ""
        self.restore(mind)

    @property
    def mind(self) -> Floats | None:
        """What the controller remembers from step to step, or None."""
        memory: Floats | None = getattr(self.controller, "memory", None)
        return memory

    def restore(self, mind: Floats | None) -> None:
        """Let the controller remember that; None is a fresh start."""
        controller: Any = self.controller
        if hasattr(controller, "resume"):
            controller.resume(mind, self.time)
        elif hasattr(controller, "restore"):
            controller.restore(np.zeros_like(controller.memory) if mind is None else mind)

    @property
    def motion(self) -> Any:
        """What is followed: the lineup, or what the controller makes of it."""
        own = getattr(self.controller, "motion", None)
        return self.lineup if own is None else own(self.lineup)

    @property
    def time(self) -> float:
        """The world's clock [s]."""
        return float(self.world.time)

    def go(self, steps: int, record: History | None = None) -> None:
        """Go on by some steps; a world that is lost stands where it was last noted, or near.

        Args:
            steps: How many.
            record: Where frames are noted when they are due.
        """
        while steps > 0 and not self.lost:
            k = steps if record is None else min(steps, record.steps_left(self))
            run(self.world, self.controller, self.motion, k * self.world.dt)
            steps -= k
            self.lost = self._loss()
            if record is not None and self.lost != WILD:
                record.append(self)
            elif record is not None:
                last = record[-1].note
                self.world.reset(State(last.q[0], last.v[0], last.time[0]))

    def _loss(self) -> str:
        """Why the world cannot go on, or ""."""
        lost = self.world.diverged
        if lost:
            why = "was singular" if lost[0].singular else "left the finite numbers"
            return f"joint {lost[0].joint!r} {why} at {lost[0].time:.4g} s"
        q, v = self.world._core.read()
        wild = max(q.max(), -q.min()) > FARTHEST or max(v.max(), -v.min()) > FASTEST
        return WILD if wild else ""

    def planned(self) -> Floats | None:
        """Where the controller meant the pressure to be [m], shape (3,), if it says so."""
        plan = getattr(self.controller, "planned", None)
        return None if plan is None else plan(self.time)

    def asked(self) -> tuple[Floats, Floats]:
        """What the reference has at this time, (nq,) and (nv,); objects are where they are."""
        target = self.motion.target(self.time)
        assert target.v is not None
        if not self.lineup.objects:
            return target.q, target.v
        q, v = target.q.copy(), target.v.copy()
        now, moving = self.world._core.read()
        for at, rate in self.lineup.objects:
            q[at], v[rate] = now[0, at], moving[0, rate]
        return q, v

    def until(self, time: float) -> None:
        """Go on to a time [s]."""
        self.go(round((time - self.time) / self.world.dt))


Deed = Callable[[Runner], None]
"""Something that is done to a world, or to its rules, between two steps."""


class History:
    """Frames at a constant rate, as many as there is room for; and the deeds between them.

    Args:
        fps: Frames per second, rounded so that one comes every so many whole steps.
    """

    def __init__(self, fps: float = 60.0) -> None:
        self._fps = fps
        self._entries: deque[Entry] = deque()
        self._deeds: deque[tuple[float, Deed]] = deque()
        self._bytes = 0
        self._keys = 0  # frames with a memory
        self._since = 0  # frames since the last of them
        self._world: World | None = None
        self._rhythm = 1
        self.take: Take | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, i: int) -> Entry:
        return self._entries[i]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def interval(self, dt: float) -> float:
        """Time between frames of a world with steps dt [s]."""
        return max(1, round(1.0 / (self._fps * dt))) * dt

    def steps_left(self, runner: Runner) -> int:
        """Steps until the next frame is due."""
        dt = runner.world.dt
        since = runner.time - self._entries[-1].time if self._entries else 0.0
        return max(1, round((self.interval(dt) - since) / dt))

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._deeds.clear()
        self._bytes = self._keys = self._since = 0

    def append(self, runner: Runner, force: bool = False) -> Entry | None:
        """Note where a world is, if a frame is due, or now; instead of a frame of the same time.

        Args:
            runner: The world and its rules.
            force: Whether to note it in any case, with its memory.
        """
        world, last = runner.world, self._entries[-1] if self._entries else None
        clock = world._core.time()
        if last is not None and not force:
            moved = float(clock[0]) - last.time
            if moved < self.interval(world.dt) - 0.5 * world.dt:
                return None
        remembers = force or last is None or self._since + 1 >= self._rhythm_of(world)
        note = note_of(world, clock, remembers, runner.asked())
        if force:
            self._replace(float(clock[0]) - 0.5 * world.dt)
        entry = Entry(note, world, runner.controller, runner.lineup, runner.mind)
        self._entries.append(entry)
        self._since = 0 if remembers else self._since + 1
        self._count(entry, 1)
        self._forget()
        if self.take is not None:
            self.take.append(entry)
        return entry

    def did(self, time: float, deed: Deed) -> None:
        """Remember what was done at a time [s]."""
        self._deeds.append((time, deed))

    def rewind(self, i: int) -> State:
        """Forget all that came after frame i; the state there, with its memory."""
        entry = self._entries[i]
        start = next(k for k in range(i, -1, -1) if self._entries[k].note.memory is not None)
        state = _state(self._entries[start].note)
        if start < i:
            state = self._replayed(self._entries[start], state, entry.time)
        while len(self._entries) > i + 1:
            self._count(self._entries.pop(), -1)
        self._undo(entry.time)
        self._since = i - start
        if self.take is not None:
            self.take.cut(entry.time)
        return state

    def _replayed(self, start: Entry, state: State, time: float) -> State:
        """The state at a later time [s], simulated again with all that was done."""
        runner = Runner(start.world, start.controller, start.lineup)
        present, gravity = runner.world.state.copy(), runner.world.gravity
        mind = runner.mind
        runner.reset(state, start.mind)
        runner.world.gravity = start.note.gravity
        for at, deed in self._deeds:
            if start.time - 1e-9 <= at < time - 1e-9:
                runner.until(at)
                deed(runner)
        runner.until(time)
        state = runner.world.state.copy()
        # nobody should notice
        runner.reset(present, mind)
        runner.world.gravity = gravity
        return state

    def _replace(self, time: float) -> None:
        """Forget what is known of that time [s] and later: it will be noted anew."""
        while self._entries and self._entries[-1].time > time:
            self._count(self._entries.pop(), -1)
        self._undo(time)

    def _undo(self, time: float) -> None:
        """Forget the deeds at that time [s] and later."""
        while self._deeds and self._deeds[-1][0] >= time - 1e-9:
            self._deeds.pop()

    def _count(self, entry: Entry, sign: int) -> None:
        self._bytes += sign * entry.nbytes
        self._keys += sign * (entry.note.memory is not None)

    def _forget(self) -> None:
        """Make room; the first frame always has a memory."""
        crowded = self._bytes > MOST_BYTES or len(self._entries) > MOST_FRAMES
        while crowded and self._keys > 1:
            self._count(self._entries.popleft(), -1)
            if self._entries[0].note.memory is not None:
                crowded = self._bytes > MOST_BYTES or len(self._entries) > MOST_FRAMES
        first = self._entries[0].time
        while self._deeds and self._deeds[0][0] < first - 1e-9:
            self._deeds.popleft()

    def _rhythm_of(self, world: World) -> int:
        """One frame in so many has a memory."""
        if self._world is not world:
            size = int(world._core.memory().size)
            self._world, self._rhythm = world, min(RHYTHM, 1 + size // CHEAP)
        return self._rhythm


def _state(note: Note) -> State:
    """The state of a note that remembers."""
    assert note.memory is not None
    places, values, size = note.memory
    memory: Floats = np.zeros(size)
    memory[places] = values
    return State(note.q[0].copy(), note.v[0].copy(), note.time[0].copy(), memory)
