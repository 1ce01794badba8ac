"""Clip: a motion of one character, as a spline through its frames."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.arrays import Floats, floats, number
from poise.character import Character
from poise.command import Target
from poise.errors import ClipError
from poise.scene import scene_of
from poise.state import State

if TYPE_CHECKING:
    from poise.motion.rig import Rig


class Clip:
    """A motion: poses at a constant rate, one cubic spline through all their components.

    q, v and a come from that one spline and agree with each other: quaternions are normalised when
    sampled, v and a are the exact derivatives of the result. Before the first frame and after the
    last the pose is held, at rest.

    Args:
        character: Whose motion it is.
        q: Frames, shape (k, nq). Signs of quaternions are aligned in time.
        fps: Frames per second.
        source: The rig of the file it came from, or None.
        name: What to call it.
    """

    def __init__(
        self,
        character: Character,
        q: ArrayLike,
        fps: float,
        *,
        source: Rig | None = None,
        name: str = "",
    ) -> None:
        if not isinstance(character, Character):
            raise ClipError(f"a clip moves a Character, got {character!r:.80}")
        self.character = character
        self.fps = number(fps, "fps", unit="Hz")
        self.source = source
        self.name = name
        frames = floats(q, "q")
        if frames.ndim != 2 or frames.shape[1] != character.nq or frames.shape[0] < 1:
            raise ClipError(f"q has shape {frames.shape}, expected (frames, {character.nq})")
        if not np.isfinite(frames).all():
            row, column = (int(i) for i in np.argwhere(~np.isfinite(frames))[0])
            raise ClipError(f"frame {row}, column {column} is {frames[row, column]}, not a number")
        self.frames = self._aligned(frames.copy())
        self.frames.flags.writeable = False

    @property
    def duration(self) -> float:
        """Time from the first frame to the last [s]."""
        return (len(self.frames) - 1) / self.fps

    def q(self, t: ArrayLike) -> Floats:
        """Positions at time t [s], shape (..., nq)."""
        return self._sample(t)[0]

    def v(self, t: ArrayLike) -> Floats:
        """Velocities at time t [s], shape (..., nv)."""
        return self._sample(t)[1]

    def a(self, t: ArrayLike) -> Floats:
        """Accelerations at time t [s], shape (..., nv)."""
        return self._sample(t)[2]

    def target(self, t: float) -> Target:
        """Where the character should be at time t [s]; with an array of times one row per copy."""
        return Target(*self._sample(t))

    def targets(self, t: float, dt: float, k: int) -> Target:
        """k rows of target, at t, t + dt, ... [s]."""
        return Target(*self._sample(t + dt * np.arange(k)), rows=k)

    def state(self, t: ArrayLike) -> State:
        """The state in which a world starts at time t [s] of the clip; its clock is 0."""
        q, v, _ = self._sample(t)
        return State(q, v)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file; its ending says which format."""
        from poise.motion import save_clip

        save_clip(self, path)

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return (
            f"Clip({self.name!r}, {self.character.name!r}, {len(self.frames)} frames at "
            f"{self.fps:g} fps, {self.duration:.3g} s)"
        )

    def _aligned(self, frames: Floats) -> Floats:
        """Unit quaternions whose signs do not jump from frame to frame."""
        forest = self.character.forest
        for b, kind in enumerate(forest.kind):
            if kind > 1:
                continue
            at = int(forest.q_adr[b]) + (3 if kind == 0 else 0)
            quat = frames[:, at : at + 4]
            length = np.linalg.norm(quat, axis=1)
            if (np.abs(length - 1) > 1e-2).any():
                row = int(np.argmax(np.abs(length - 1) > 1e-2))
                joint = forest.joint_names[forest.joint[b]]
                raise ClipError(
                    f"frame {row}: the quaternion of joint {joint!r} has length {length[row]:g}, "
                    "it must be 1"
                )
            quat /= length[:, None]
            flips = np.sum(quat[1:] * quat[:-1], axis=1) < 0
            quat[1:] *= np.where(np.cumsum(flips) % 2 == 1, -1.0, 1.0)[:, None]
        return frames

    @cached_property
    def _coefficients(self) -> Floats:
        """Of the spline, (segments, 4, nq), constant term first."""
        k = len(self.frames)
        if k == 1:
            c = np.zeros((1, 4, self.character.nq))
            c[0, 0] = self.frames[0]
            return c
        from scipy.interpolate import CubicSpline

        spline = CubicSpline(np.arange(k) / self.fps, self.frames)
        return np.ascontiguousarray(spline.c[::-1].transpose(1, 0, 2))

    def _sample(self, t: Any) -> tuple[Floats, Floats, Floats]:
        times = floats(t, "t")
        model = scene_of(self.character).model
        flat = np.ascontiguousarray(times.reshape(-1))
        q, v, a = _core.sample(model, self._coefficients, 0.0, self.fps, flat)
        shape = times.shape
        return q.reshape(*shape, -1), v.reshape(*shape, -1), a.reshape(*shape, -1)
