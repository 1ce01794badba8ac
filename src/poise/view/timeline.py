"""Timeline: a recording, or a clip, resampled at the picture rate of a video."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats, number
from poise.model import configuration
from poise.model.scene import Scene, scene_of
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.recording.columns import Columns
from poise.simulation.contact import Contacts, Plane
from poise.simulation.world import World
from poise.view.drawing import ground_under

MOST_PICTURES = 100_000
FASTEST = 240.0  # pictures a second


class Timeline:
    """One copy of a recording, sampled at equal intervals.

    Poses are interpolated between frames. Contacts are those of the nearest frame.

    Args:
        recording: The recording, or a clip.
        copy: Which copy.
        fps: Pictures per second.
        slow: How many times slower than real time it plays.

    Attributes:
        frame: Nearest frame of each picture, shape (k,).
        time: The clock [s], shape (k,).
        q: Positions, shape (k, nq).
        target: Positions of the target, shape (k, nq); NaN where there is none.
        thrown: Of each projectile 1 if it is thrown, else 0, and its position, shape
            (k, projectiles, 8).
    """

    def __init__(
        self, recording: Recording | Clip, *, copy: int = 0, fps: float = 30.0, slow: float = 1.0
    ) -> None:
        recording = as_recording(recording)
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
        clock = recording.columns.column("time")[:, copy]
        between = _Interpolation(recording.scene, at, self.frame, clock, recording.interval)
        aside = np.where(between.inside, at - self.frame, 0.0)
        self.time: Floats = clock[self.frame] + aside * recording.interval
        self.q: Floats = between.positions(recording.columns.column("q")[:, copy])
        targets = recording.target_positions(copy)
        # the first frame of a run has no target yet
        if np.isnan(targets[:1]).any() and len(targets) > 1:
            targets[0] = targets[1]
        self.target: Floats = between.positions(targets)
        self.thrown: Floats = between.projectiles(_thrown(recording, copy))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def has_target(self) -> bool:
        """Whether any picture has a target."""
        return bool(np.isfinite(self.target).all(axis=1).any()) if self.target.size else False

    @cached_property
    def camera_subjects(self) -> tuple[Scene, Floats]:
        """What a camera follows: characters with several links, or else all; and their positions.

        Positions have shape (k, nq of these).
        """
        scene = self.recording.scene
        parts = list(zip(scene.characters, scene.forest.parts.values(), strict=True))
        chosen = [pair for pair in parts if len(pair[0].links) > 1] or parts
        q = np.concatenate([self.q[:, part.q] for _, part in chosen], axis=1)
        return scene_of([character for character, _ in chosen]), q

    def contacts(self, k: int) -> Contacts:
        """Contacts of all copies at picture k."""
        return self.recording.contacts(int(self.frame[k]))


class _Interpolation:
    """Interpolates between the frames before and after each picture."""

    def __init__(
        self, scene: Scene, at: Floats, nearest: Any, clock: Floats, interval: float
    ) -> None:
        self.scene, self.nearest = scene, nearest
        self.before = np.minimum(at.astype(np.int64), max(len(clock) - 2, 0))
        self.fraction = at - self.before
        # no interpolation where the clock jumps, as after a reset
        after = np.minimum(self.before + 1, len(clock) - 1)
        even = np.abs(clock[after] - clock[self.before] - interval) < 0.01 * interval
        self.inside = even & (np.abs(at - nearest) > 1e-6)

    def positions(self, rows: Floats) -> Floats:
        """Positions (k, nq) from positions of frames (frames, nq)."""
        out: Floats = np.array(rows[self.nearest])
        known = np.asarray(np.isfinite(rows).all(axis=1))
        some = np.flatnonzero(self.inside & known[self.before] & known[self._after(rows)])
        if not some.size:
            return out
        a, b = rows[self.before[some]], rows[self.before[some] + 1]
        fraction = self.fraction[some, None]
        parts = self.scene.forest.parts.values()
        for part, character in zip(parts, self.scene.characters, strict=True):
            q0, q1 = a[:, part.q], b[:, part.q]
            step = fraction * configuration.difference(character, q1, q0)
            out[some, part.q] = configuration.integrate(character, q0, step)
        return out

    def projectiles(self, rows: Floats) -> Floats:
        """Projectiles (k, projectiles, 8) from those of frames; orientations of the nearest."""
        out: Floats = np.array(rows[self.nearest])
        a, b = rows[self.before], rows[self._after(rows)]
        there = (a[..., 0] > 0.0) & (b[..., 0] > 0.0) & self.inside[:, None]
        mixed = a[..., 1:4] + self.fraction[:, None, None] * (b[..., 1:4] - a[..., 1:4])
        out[..., 1:4] = np.where(there[..., None], mixed, out[..., 1:4])
        return out

    def _after(self, rows: Floats) -> Any:
        return np.minimum(self.before + 1, len(rows) - 1)


def _thrown(recording: Recording, copy: int) -> Floats:
    """Projectiles at every frame, shape (frames, projectiles, 8)."""
    columns = recording.columns.arrays()
    projectiles = np.zeros((len(recording), recording.settings.projectile_count, 8))
    projectiles[..., 4] = 1.0
    frame = np.repeat(np.arange(len(recording)), recording.columns.rows_per_frame("thrown"))
    which = columns["thrown_which"]
    mine = which[:, 0] == copy
    projectiles[frame[mine], which[mine, 1], 0] = 1.0
    projectiles[frame[mine], which[mine, 1], 1:] = columns["thrown"][mine, :7]
    return projectiles


def check(recording: Any, copy: Any) -> None:
    """Raises unless it is a recording with frames and has that copy."""
    if not isinstance(recording, Recording):
        raise PoiseError(f"expected a Recording or a Clip, got {type(recording).__name__}")
    if not len(recording):
        raise PoiseError("the recording has no frames: there is nothing to show")
    recording.check_copy(copy)


# ---- clips

SMOOTH = 60.0
"""The spline of a slower clip is sampled at this rate or more [Hz]."""


def as_recording(motion: Recording | Clip) -> Recording:
    """Converts a clip to a recording of its character on a level ground; others are returned.

    It has no contacts, torques and targets. The ground is that of `contact_sheet`.
    """
    if not isinstance(motion, Clip):
        return motion
    finer = max(1, math.ceil(SMOOTH / motion.fps))
    fps = finer * motion.fps
    time = np.arange((len(motion) - 1) * finer + 1) / fps
    q, v = motion.q(time), motion.v(time)
    ground = Plane(height=ground_under(scene_of(motion.character), q))
    world = World(motion.character, dt=1 / fps, ground=ground, projectiles=0, convex=False)
    gravity = np.tile(world.gravity, (len(time), 1))
    known = {"time": time[:, None], "q": q[:, None], "v": v[:, None], "gravity": gravity}
    columns = Columns(1, motion.character.nq, motion.character.nv, known)
    return Recording._of(world.settings, 1 / fps, [], columns, None)
