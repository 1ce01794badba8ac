"""Clip: a motion of one character, as a spline through its frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import LARGEST, ClipError
from poise.math.arrays import Floats, count, floats, number
from poise.model.character import Character
from poise.model.scene import scene_of
from poise.model.sealed import Sealed
from poise.simulation.command import Target
from poise.simulation.state import State

if TYPE_CHECKING:
    from poise.anatomy.contact_schedule import Contacts
    from poise.anatomy.rig import Rig
    from poise.motion.jumps import Jump
    from poise.motion.retargeting.matching import MapLike


class Clip(Sealed):
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
        contacts: Which points stand on the ground in each frame, or None if nobody has looked.
        notes: What was done to it when and since it was read, a sentence each.
    """

    _remedy = "a clip does not change; its methods return new ones"
    _remedies = {  # noqa: RUF012
        "character": "clip.retargeted(character) is the motion on another one",
        "fps": "clip.resampled(fps) is the same motion at another rate, clip.at_speed(factor) "
        "a faster one, clip.with_frames(clip.frames, fps=fps) the same frames at another rate",
        "frames": "clip.with_frames(frames) is a clip of others",
        "contacts": "clip.with_frames(clip.frames, contacts=contacts) has others",
    }

    def __init__(
        self,
        character: Character,
        q: ArrayLike,
        fps: float,
        *,
        source: Rig | None = None,
        name: str = "",
        contacts: Contacts | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        if not isinstance(character, Character):
            raise ClipError(f"a clip moves a Character, got {character!r:.80}; see load_character")
        self.character = character
        self.fps = number(fps, "fps", unit="Hz")
        self.source = source
        self.name = name
        self.notes = notes
        frames = floats(q, "q")
        if frames.ndim != 2 or frames.shape[1] != character.nq or frames.shape[0] < 1:
            raise ClipError(f"q has shape {frames.shape}, expected (frames, {character.nq})")
        good = np.abs(frames) <= LARGEST  # not so of NaN
        if not good.all():
            row, column = (int(i) for i in np.argwhere(~good)[0])
            raise ClipError(
                f"frame {row}, column {column} is {frames[row, column]:g}; "
                f"it must be finite and below {LARGEST:g} in size"
            )
        self.frames = self._aligned(frames.copy())
        self.frames.flags.writeable = False
        if contacts is not None:
            contacts.check(character, len(frames))
        self.contacts = contacts
        self.notes = tuple(notes)
        self._seal()

    @cached_property
    def jumps(self) -> tuple[Jump, ...]:
        """Where the pose moves faster than any body can: `poise.motion.jumps`."""
        from poise.motion.jumps import find_jumps

        return find_jumps(self)

    def check_followable(self, time: ArrayLike | None) -> None:
        """Warn with `poise.UnfollowableTarget` of targets that follow a jump; once for each jump.

        Args:
            time: Of the targets that a controller is about to command [s], or None.
        """
        if self.jumps and time is not None:
            from poise.motion.jumps import warn_of_jumps

            warn_of_jumps(self, time)

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

    def target(self, t: ArrayLike, *, past: float | None = None) -> Target:
        """The target at time t [s]; with an array of times one row per copy.

        Args:
            t: [s], a number or shape (n,).
            past: If given, the target also has the positions one and two steps of this length
                before [s].
        """
        before = None if past is None else self._past(floats(t, "t"), number(past, "past"))
        return Target(*self._sample(t), past=before, time=t, clip=self)

    def targets(self, t: ArrayLike, dt: float, k: int) -> Target:
        """k rows of target, at t, t + dt, ... [s], each time the one before plus dt.

        Args:
            t: [s], a number, or shape (n,) for rows of n copies.
            dt: From row to row [s].
            k: How many.
        """
        # as a world's clock adds up its steps
        first, step, k = floats(t, "t"), number(dt, "dt"), count(k, "k")
        times = np.add.accumulate([first, *[np.full_like(first, step)] * (k - 1)], axis=0)
        return Target(*self._sample(times), rows=k, time=times, clip=self)

    def state(self, t: ArrayLike) -> State:
        """The state at time t [s] of the clip, a number or shape (n,); its clock is t."""
        q, v, _ = self._sample(t)
        return State(q, v, t, clip=self)

    def with_frames(
        self, frames: ArrayLike, *, fps: float | None = None, contacts: Contacts | None = None
    ) -> Clip:
        """A clip of the same character, name, source and notes with other frames.

        Args:
            frames: Poses, shape (k, nq).
            fps: Frames per second; None keeps the rate.
            contacts: Which points stand in the new frames, or None.
        """
        return self._replace(q=frames, fps=self.fps if fps is None else fps, contacts=contacts)

    def _replace(self, **changes: Any) -> Clip:
        """The same clip with other arguments of `Clip`."""
        names = ("character", "fps", "source", "name", "contacts", "notes")
        same = {name: getattr(self, name) for name in names}
        return Clip(**{**same, "q": self.frames, **changes})

    def smoothed(self, cutoff: float | None = None, *, feet: bool = True) -> Clip:
        """Without noise, standing feet where they stood: `poise.motion.editing.smoothing`.

        Args:
            cutoff: What is slower passes [Hz]; None finds it by residual analysis, 0 is off.
            feet: Keep standing feet in place.
        """
        from poise.motion.editing.smoothing import smoothed

        return smoothed(self, cutoff, feet=feet)

    def trimmed(self, start: float = 0.0, end: float | None = None) -> Clip:
        """The part from start to end [s]."""
        from poise.motion.editing.cutting import trimmed

        return trimmed(self, start, end)

    def resampled(self, fps: float) -> Clip:
        """The same motion at another rate [1/s]."""
        from poise.motion.editing.cutting import resampled

        return resampled(self, fps)

    def at_speed(self, factor: float) -> Clip:
        """The same motion `factor` times as fast."""
        from poise.motion.editing.cutting import at_speed

        return at_speed(self, factor)

    def warped(self, times: ArrayLike, new_times: ArrayLike) -> Clip:
        """The same motion at another pace: what happened at `times` happens at `new_times` [s]."""
        from poise.motion.editing.cutting import warped

        return warped(self, times, new_times)

    def moved(self, by: Sequence[float]) -> Clip:
        """Shifted by x, y, z [m]."""
        from poise.motion.editing.cutting import moved

        return moved(self, by)

    def turned(self, angle: float, about: Sequence[float] | None = None) -> Clip:
        """Turned about the vertical [rad] through a point [m]; None is where the root starts."""
        from poise.motion.editing.cutting import turned

        return turned(self, angle, about)

    def placed(self, position: Sequence[float] | None = None, heading: float | None = None) -> Clip:
        """With the root starting at x, y [m], looking along a heading [rad]."""
        from poise.motion.editing.cutting import placed

        return placed(self, position, heading)

    def grounded(self, ground: float = 0.0) -> Clip:
        """Shifted up or down so that its feet stand at the height of the ground [m]."""
        from poise.motion.editing.cutting import grounded

        return grounded(self, ground)

    def mirrored(self) -> Clip:
        """With left and right exchanged."""
        from poise.motion.editing.mirroring import mirrored

        return mirrored(self)

    def looped(
        self, cycles: int = 1, *, blend: float | None = None, turn: float | None = None
    ) -> Clip:
        """Again and again, travelling on: `poise.motion.editing.joining`.

        Args:
            cycles: How many rounds.
            blend: Time on each side of the seam over which it is faded [s].
            turn: By how much the heading changes in a round [rad]; None as in the clip.
        """
        from poise.motion.editing.joining import looped

        return looped(self, cycles, blend=blend, turn=turn)

    def blended(self, other: Clip, duration: float = 0.2, *, at: float | None = None) -> Clip:
        """Turning into another clip of the same character, over a duration [s]."""
        from poise.motion.editing.joining import blended

        return blended(self, other, duration, at=at)

    def retargeted(
        self,
        character: Character,
        *,
        map: MapLike = None,
        scale: float | None = None,
        level_feet: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> Clip:
        """The same motion on another character, standing feet in place: `poise.motion.retargeting`.

        Args:
            character: Who shall have it.
            map: Which link moves which, where names and shape do not tell.
            scale: Size of the character by that of the clip's; None takes it from the legs.
            level_feet: Make feet that stand flat, heel and toes on the ground.
            progress: Called with the share that is done, 0 to 1.
        """
        from poise.motion.retargeting.retarget import retarget

        made = retarget(
            self, character, map=map, scale=scale, level_feet=level_feet, progress=progress
        )
        return made.clip

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write to a file; its ending says which format, and that format which options."""
        from poise.motion import save_clip

        save_clip(self, path, **options)

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

    def _past(self, t: Floats, dt: float) -> Floats:
        """Positions at t - dt and at t - 2 dt, shape (..., 2, nq)."""
        now, v, _ = self._sample(t - dt)
        before = self.q(t - 2.0 * dt)
        early = t - 2.0 * dt < 0.0
        if early.any():
            # before it began it came as it began
            from poise.motion.poses import move

            before = np.where(early[..., None], move(self.character, now, -dt * v), before)
        return np.stack([now, before], axis=-2)

    def _sample(self, t: Any) -> tuple[Floats, Floats, Floats]:
        times = floats(t, "t")
        model = scene_of(self.character).model
        flat = np.ascontiguousarray(times.reshape(-1))
        q, v, a = _core.sample(model, self._coefficients, 0.0, self.fps, flat)
        shape = times.shape
        return q.reshape(*shape, -1), v.reshape(*shape, -1), a.reshape(*shape, -1)
