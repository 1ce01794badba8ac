"""Timeline: a recording as a film shows it, so many pictures a second."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats, number
from poise.model import configuration
from poise.model.scene import Scene, scene_of
from poise.recording import Recording
from poise.simulation.contact import Contacts

MOST_PICTURES = 100_000
FASTEST = 240.0  # pictures a second


class Timeline:
    """One copy of a recording at equal distances in time.

    Where a picture falls between two frames, poses are between theirs. Contacts are those of the
    nearest frame.

    Args:
        recording: The recording.
        copy: Which copy.
        fps: Pictures per second.
        slow: How many times slower than life it goes.

    Attributes:
        frame: Nearest frame of each picture, shape (k,).
        time: The clock [s], shape (k,).
        q: Positions, shape (k, nq).
        goal: What was asked for, shape (k, nq); NaN where nothing was.
        thrown: For each projectile 1 or 0, and its position, shape (k, projectiles, 8).
    """

    def __init__(
        self, recording: Recording, *, copy: int = 0, fps: float = 30.0, slow: float = 1.0
    ) -> None:
        check(recording, copy)
        self.fps = number(fps, "fps", unit="Hz")
        if self.fps > FASTEST:
            raise PoiseError(f"fps is {self.fps:g}; at most {FASTEST:g} can be shown")
        step = recording.fps / self.fps / number(slow, "slow", unit="1")
        count = int((len(recording) - 1) / step + 1e-6) + 1
        if count > MOST_PICTURES:
            raise PoiseError(f"{count} pictures are too many; at most {MOST_PICTURES} are made")
        self.recording, self.copy = recording, copy
        at = np.minimum(step * np.arange(count), len(recording) - 1.0)
        self.frame = np.rint(at).astype(np.int64)
        clock = recording.frames.column("time")[:, copy]
        between = _Between(recording.scene, at, self.frame, clock, recording.interval)
        aside = np.where(between.inside, at - self.frame, 0.0)
        self.time: Floats = clock[self.frame] + aside * recording.interval
        self.q: Floats = between.mixed(recording.frames.column("q")[:, copy])
        goals = goals_of(recording, copy)
        # a run notes where it starts before it asks for anything
        if np.isnan(goals[:1]).any() and len(goals) > 1:
            goals[0] = goals[1]
        self.goal: Floats = between.mixed(goals)
        self.thrown: Floats = between.flights(_thrown(recording, copy))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def has_goal(self) -> bool:
        """Whether anything was asked for at all."""
        return bool(np.isfinite(self.goal).all(axis=1).any()) if self.goal.size else False

    @cached_property
    def leads(self) -> tuple[Scene, Floats]:
        """Who a camera looks at: the characters of several links, or all; and their positions."""
        scene = self.recording.scene
        parts = list(zip(scene.characters, scene.forest.parts.values(), strict=True))
        chosen = [pair for pair in parts if len(pair[0].links) > 1] or parts
        q = np.concatenate([self.q[:, part.q] for _, part in chosen], axis=1)
        return scene_of([character for character, _ in chosen]), q

    def touches(self, k: int) -> Contacts:
        """Contacts of all copies at picture k."""
        return self.recording.contacts(int(self.frame[k]))


class _Between:
    """Where pictures fall between frames, and what is between what the frames have."""

    def __init__(
        self, scene: Scene, at: Floats, nearest: Any, clock: Floats, interval: float
    ) -> None:
        self.scene, self.nearest = scene, nearest
        self.before = np.minimum(at.astype(np.int64), max(len(clock) - 2, 0))
        self.share = at - self.before
        # where the clock jumps, as after a reset, nothing is between
        after = np.minimum(self.before + 1, len(clock) - 1)
        even = np.abs(clock[after] - clock[self.before] - interval) < 0.01 * interval
        self.inside = even & (np.abs(at - nearest) > 1e-6)

    def mixed(self, rows: Floats) -> Floats:
        """Positions (k, nq) of positions of frames (frames, nq)."""
        out: Floats = np.array(rows[self.nearest])
        known = np.asarray(np.isfinite(rows).all(axis=1))
        some = np.flatnonzero(self.inside & known[self.before] & known[self._after(rows)])
        if not some.size:
            return out
        a, b = rows[self.before[some]], rows[self.before[some] + 1]
        share = self.share[some, None]
        parts = self.scene.forest.parts.values()
        for part, character in zip(parts, self.scene.characters, strict=True):
            q0, q1 = a[:, part.q], b[:, part.q]
            step = share * configuration.difference(character, q0, q1)
            out[some, part.q] = configuration.integrate(character, q0, step)
        return out

    def flights(self, rows: Floats) -> Floats:
        """Projectiles (k, projectiles, 8) between those of frames, turned as in the frames."""
        out: Floats = np.array(rows[self.nearest])
        a, b = rows[self.before], rows[self._after(rows)]
        there = (a[..., 0] > 0.0) & (b[..., 0] > 0.0) & self.inside[:, None]
        mixed = a[..., 1:4] + self.share[:, None, None] * (b[..., 1:4] - a[..., 1:4])
        out[..., 1:4] = np.where(there[..., None], mixed, out[..., 1:4])
        return out

    def _after(self, rows: Floats) -> Any:
        return np.minimum(self.before + 1, len(rows) - 1)


def goals_of(recording: Recording, copy: int) -> Floats:
    """What was asked for at every frame, shape (frames, nq); NaN where nothing was."""
    columns = recording.frames.arrays()
    goals = np.full((len(recording), recording.scene.nq), np.nan)
    asked = np.diff(columns["target_end"], prepend=0) > 0
    rows = columns["target_q"]
    if len(rows):
        goals[asked] = rows if rows.ndim == 2 else rows[:, copy]
    return goals


def _thrown(recording: Recording, copy: int) -> Floats:
    """Projectiles at every frame, shape (frames, projectiles, 8)."""
    columns = recording.frames.arrays()
    projectiles = np.zeros((len(recording), recording.settings.waiting, 8))
    projectiles[..., 4] = 1.0
    frame = np.repeat(np.arange(len(recording)), np.diff(columns["thrown_end"], prepend=0))
    which = columns["thrown_which"]
    mine = which[:, 0] == copy
    projectiles[frame[mine], which[mine, 1], 0] = 1.0
    projectiles[frame[mine], which[mine, 1], 1:] = columns["thrown"][mine, :7]
    return projectiles


def check(recording: Any, copy: Any) -> None:
    """Refuse what is no recording, has no frames, or has no such copy."""
    if not isinstance(recording, Recording):
        raise PoiseError(f"expected a Recording or a Clip, got {type(recording).__name__}")
    if not len(recording):
        raise PoiseError("the recording has no frames: there is nothing to show")
    whole = isinstance(copy, (int, np.integer)) and not isinstance(copy, bool)
    if not whole or not 0 <= copy < recording.n:
        raise PoiseError(f"copy is {copy!r:.80}; it must be 0 to {recording.n - 1}")
