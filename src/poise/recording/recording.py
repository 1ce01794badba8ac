"""Recording: frames of a world at a constant rate, from which the simulation can resume."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from poise.errors import PoiseError, Sealed, check_known
from poise.math.arrays import Floats, finite, number
from poise.model.character import Character
from poise.model.same_body import check_clip_fits
from poise.model.scene import Scene, scene_of
from poise.motion.clip import Clip
from poise.recording import file, summary
from poise.recording.columns import Array, Columns, Frame, contacts_in, read_frame
from poise.simulation.command import Target
from poise.simulation.contact import Contacts, Projectiles
from poise.simulation.state import State
from poise.simulation.world import Divergence, World
from poise.simulation.world_config import WorldConfig

if TYPE_CHECKING:
    from poise.measure import Summary

PENDING = 64
"""Frames of a single copy that are written into the columns together: cheaper than one by one."""


MOST_STEPS = 1e9
"""From one frame to the next."""


class Recording(Sealed):
    """States with their memory, targets, contacts and torques of a world, at a constant rate.

    A frame whose memory is stored resumes the simulation bit for bit: every frame of a world of
    one copy; one per second of a world of several copies.

    Args:
        world: The world that `append` reads.
        fps: Frames per second, rounded so that a frame comes every so many whole steps.
    """

    _remedy = "a recording is read-only; append() adds frames"
    _remedies = dict.fromkeys(
        ("fps", "interval"), "Recording(world, fps=...) sets the rate of another one"
    ) | dict.fromkeys(("settings", "scene"), "they are those of the recorded world")

    _draw_html: ClassVar[Callable[[Any], str] | None] = None
    """Draws it for a notebook; `poise` sets it, because recording does not import view."""

    def __init__(self, world: World, fps: float = 60.0) -> None:
        if not isinstance(world, World):
            raise PoiseError(f"world must be a World, got {world!r:.80}")
        frames_per_step = number(fps, "fps", unit="Hz") * world.dt
        if frames_per_step * MOST_STEPS < 1.0:
            raise PoiseError(
                f"fps is {fps!r:.80}; a frame may come every {MOST_STEPS:g} steps at most"
            )
        steps = max(1, round(1.0 / frames_per_step))
        self.settings: WorldConfig = world.settings
        self.scene: Scene = world.scene._replace(overrides=None)
        self.interval = steps * world.dt
        self.diverged: list[Divergence] = []
        self._columns = Columns(world.n, self.scene.nq, self.scene.nv)
        self._pending: list[Frame] = []
        self._memory_every = max(1, round(self.fps))
        self._isa: str | None = world.isa
        self._world: World | None = world
        self._clock: Floats = np.zeros(world.n)
        self._seal()

    @classmethod
    def _of(
        cls,
        settings: WorldConfig,
        interval: float,
        lost: list[Divergence],
        columns: Columns,
        isa: str | None,
    ) -> Recording:
        """A complete recording, to which `append` cannot add."""
        self = cls.__new__(cls)
        self.settings, self.interval, self._isa = settings, interval, isa
        self.scene = scene_of(settings.character)
        self.diverged, self._columns, self._pending, self._world = lost, columns, [], None
        self._seal()
        return self

    # ---- recording

    def append(self, target: Any = None) -> bool:
        """Adds a frame of the world if one is due. Returns whether it was.

        The first frame is due at once, each further one when a clock has moved by `interval` since
        the last: call it after every step, or less often.

        Args:
            target: Target of the last command: a Target, or a State.
        """
        world = self._world
        if world is None:
            raise PoiseError("this recording is complete: record its world() to continue")
        clock = world._core.time()
        if len(self) and not self._is_due(clock):
            return False
        checked = None if target is None else self._check_target(target)
        # a reset may have changed masses and friction
        vars(self)["settings"] = world.settings
        with_memory = world.n == 1 or len(self) % self._memory_every == 0
        self._pending.append(read_frame(world, clock, with_memory, checked))
        self._clock = clock
        if len(self._pending) * world.n >= PENDING:
            self._flush()
        lost = world.diverged
        if lost:
            self.diverged += [loss for loss in lost if loss not in self.diverged]
        return True

    def _flush(self) -> None:
        """Writes pending frames into the columns."""
        if self._pending and self._world is not None:
            self._columns.extend(self._pending, self._world)
            self._pending = []

    def __copy__(self) -> Recording:
        """A recording of the same world with its own frames."""
        made = object.__new__(type(self))
        own = {"_columns": deepcopy(self._columns), "_pending": list(self._pending)}
        vars(made).update(vars(self), diverged=list(self.diverged), **own)
        return made

    def _is_due(self, clock: Floats) -> bool:
        if len(clock) == 1:
            moved = abs(float(clock[0]) - float(self._clock[0]))
        else:
            moved = float(np.abs(clock - self._clock).max())
        return moved >= self.interval - 0.5 * self.settings.dt

    def _check_target(self, target: Any) -> tuple[Floats, Floats]:
        """Positions and velocities of a target, checked."""
        target = target if type(target) is Target else Target.of(target)
        if target.rows is not None:
            raise PoiseError("a frame has one target, not rows of them; see Target.row")
        if target.clip is not None and len(self.scene.characters) == 1:
            check_clip_fits(target.clip, self.scene.characters[0])
        n, nq, nv = self.n, self.scene.nq, self.scene.nv
        q, v = target.q, target.v
        v = np.zeros((*q.shape[:-1], nv)) if v is None else v
        for name, array, size in (("target.q", q, nq), ("target.v", v, nv)):
            if array.shape not in ((size,), (n, size)) or array.ndim != q.ndim:
                raise PoiseError(
                    f"{name} has shape {array.shape}, expected ({size},) or ({n}, {size})"
                )
            # one product is enough to see that most arrays are finite
            if not math.isfinite(np.vdot(array, array)):
                finite(array, name)
        return (q[0].copy(), v[0].copy()) if n == 1 and q.ndim == 2 else (q.copy(), v.copy())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an .npz file, with the scene; an existing file is replaced whole or not at all."""
        file.write(self, path)

    # ---- reading

    @property
    def n(self) -> int:
        """Number of copies."""
        return self.settings.n

    @property
    def columns(self) -> Columns:
        """All columns."""
        self._flush()
        return self._columns

    @property
    def fps(self) -> float:
        """Frames per second."""
        return 1.0 / self.interval

    @property
    def dtype(self) -> str:
        """Precision of the recorded world: "float64" or "float32"."""
        return self.settings.dtype

    @property
    def isa(self) -> str | None:
        """Instruction set of the recorded world, as `World.isa`; None in files that lack it.

        `world` resumes bit for bit where this and `dtype` are those of the new world.
        """
        return self._isa

    @property
    def made(self) -> str:
        """Dtype and instruction set in words."""
        return f"{self.dtype}, {'unknown kernels' if self.isa is None else self.isa}"

    @property
    def time(self) -> Floats:
        """Clocks [s], shape (frames,) or (frames, n)."""
        return self._shape("time")

    @property
    def q(self) -> Floats:
        """Positions, shape (frames, nq) or (frames, n, nq)."""
        return self._shape("q")

    @property
    def v(self) -> Floats:
        """Velocities, shape (frames, nv) or (frames, n, nv)."""
        return self._shape("v")

    @property
    def torque(self) -> Floats:
        """As `World.torque`, of the step before each frame, (frames, nv) or (frames, n, nv)."""
        return self._shape("torque")

    @property
    def gravity(self) -> Floats:
        """[m/s^2], shape (frames, 3)."""
        return self.columns.column("gravity")

    @property
    def resumable(self) -> Array:
        """Indices of the frames from which the simulation resumes bit for bit."""
        return np.flatnonzero(self.columns.column("remembers"))

    def state(self, i: int) -> State:
        """The state of frame i; a cold start if its memory is not stored, see `resumable`."""
        i = self._index(i)
        memory: Floats | None = None
        if self.columns.columns["remembers"][i]:
            index, entries = self.columns.rows("memory", i)
            whole = np.zeros(self.n * self.columns.memory_size)
            whole[index] = entries
            memory = whole if self.n == 1 else whole.reshape(self.n, -1)
        return State(self.q[i].copy(), self.v[i].copy(), self.time[i].copy(), memory)

    def target(self, i: int) -> Target | None:
        """The target of frame i, or None."""
        q, v = self.columns.rows("target", self._index(i))
        return Target(q[0], v[0]) if len(q) else None

    def target_positions(self, copy: int = 0) -> Floats:
        """Targets of one copy in every frame, shape (frames, nq); NaN where there is none."""
        out = np.full((len(self), self.scene.nq), np.nan)
        rows = self.columns.arrays()["target_q"]
        if len(rows):
            has_target = self.columns.rows_per_frame("target") > 0
            out[has_target] = rows if rows.ndim == 2 else rows[:, copy]
        return out

    def contacts(self, i: int) -> Contacts:
        """Contacts of the step before frame i."""
        which, rows = self.columns.rows("contact", self._index(i))
        return contacts_in(which, rows).within(self.scene)

    def projectile_state(self, i: int) -> Projectiles:
        """Projectiles at frame i, as `World.projectile_state`; zero where not thrown."""
        which, rows = self.columns.rows("thrown", self._index(i))
        shape, at = (self.n, self.settings.projectile_count), (which[:, 0], which[:, 1])
        state = Projectiles(np.zeros(shape, bool), np.zeros((*shape, 7)), np.zeros((*shape, 6)))
        state.thrown[at], state.q[at], state.v[at] = True, rows[:, :7], rows[:, 7:]
        return state.at(0) if self.n == 1 else state

    def world(self, i: int = 0, *, threads: int | None = None) -> World:
        """A world with the recorded world's settings, in the state of frame i.

        Args:
            i: Which frame.
            threads: See World.
        """
        state = self.state(i)
        settings: dict[str, Any] = self.settings._asdict()
        world = World(list(settings.pop("character")), threads=threads, **settings)
        world.gravity = self.gravity[i]
        world.reset(state)
        return world

    def clip(
        self, name: str | None = None, *, copy: int = 0, start: int = 0, stop: int | None = None
    ) -> Clip:
        """The motion of one character.

        Args:
            name: Which part of the scene; None if there is only one.
            copy: Which copy.
            start: First frame.
            stop: Frame after the last; None takes all.
        """
        parts = self.scene.forest.parts
        if name is None and len(parts) > 1:
            raise PoiseError(f"a clip is of one character: name one of {', '.join(parts)}")
        name = next(iter(parts)) if name is None else name
        character = self.character(name)
        self.check_copy(copy)
        chosen = self.frames(start, stop)
        steps = np.diff(self.columns.column("time")[chosen.start : chosen.stop, copy])
        off = np.abs(steps - self.interval) > 0.01 * self.interval
        if off.any():
            k = int(np.argmax(off))
            raise PoiseError(
                f"between frames {chosen[k]} and {chosen[k + 1]} of copy {copy} are "
                f"{steps[k]:.6g} s, a clip has them every {self.interval:.6g} s: choose others "
                "by start and stop"
            )
        q = self.columns.column("q")[chosen.start : chosen.stop, copy, parts[name].q]
        return Clip(character, q, self.fps, name=name)

    def frames(self, start: int = 0, stop: int | None = None) -> range:
        """Numbers of the frames from `start` up to `stop`, at least one."""
        if not all(isinstance(k, (int, np.integer, type(None))) for k in (start, stop)):
            raise PoiseError(f"start and stop must be frames, got {start!r:.80}, {stop!r:.80}")
        chosen = range(len(self))[start:stop]
        if not chosen:
            raise PoiseError(f"there is no frame from {start} to {stop}; there are {len(self)}")
        return chosen

    def character(self, name: str) -> Character:
        """The character that is this part of the scene."""
        parts = list(self.scene.forest.parts)
        check_known("part", name, parts)
        return self.settings.character[parts.index(name)]

    def metrics(self) -> dict[str, Summary]:
        """Mean, 95th percentile and largest over frames and copies.

        rotation [degrees], position and world [m]: `measure.tracking_error`, where there is a
        target. torque [N·m, N]: of each joint. power [W]: of all joints. jitter [rad/s², m/s²].
        kinetic, potential [J]. ground_force [N]: on all. depth [m]: of the deepest contact.
        Quantities without data are left out. Contacts and torques are those of single steps.
        """
        self._index(0)
        return summary.metrics(self)

    def __len__(self) -> int:
        return self._columns.count + len(self._pending)

    def __repr__(self) -> str:
        names = ", ".join(repr(part) for part in self.scene.forest.parts)
        copies = "" if self.n == 1 else f", {self.n} copies"
        return f"Recording({names}{copies}, {len(self)} frames at {self.fps:g} fps, {self.made})"

    def _repr_html_(self) -> str | None:
        """A contact sheet, as a notebook shows it."""
        draw = Recording._draw_html
        return None if draw is None else draw(self)

    def _shape(self, name: str) -> Floats:
        column: Floats = self.columns.column(name)
        return column[:, 0] if self.n == 1 else column

    def check_copy(self, copy: object) -> None:
        """Raises unless it has a copy of that number."""
        if not _is_whole(copy) or copy not in range(self.n):
            raise PoiseError(f"copy is {copy!r:.80}; it must be 0 to {self.n - 1}")

    def _index(self, i: int) -> int:
        if not _is_whole(i) or not -len(self) <= i < len(self):
            raise PoiseError(f"there is no frame {i!r:.80}; there are {len(self)}")
        return int(i) % len(self)


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Reads a recording that `Recording.save` wrote.

    Args:
        path: The .npz file.
    """
    return Recording._of(*file.read(path))
