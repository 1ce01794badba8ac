"""Clip: a motion of one character, as a spline through its frames; and its jumps.

A jump is a step from frame to frame that no body can follow. A T-pose before the first frame, a
cut, or the twist of a joint that flips by half a turn moves a joint farther between two frames than
muscles, or any motors, could.

A step is a jump if the joint is faster in it than FASTEST, and FACTOR times as fast as it is CLOSE
before and after: it would have to start and stop within that time. Limits of speed alone do not
distinguish a throw from a flip. The fastest limb that turns about one axis is the forearm of a
pitcher, 2,300 to 2,600 degrees per second at the elbow (40 to 45 rad/s), and the shoulder's twist
reaches 7,240 +- 1,090 (126 rad/s; Fleisig and others, Journal of Biomechanics 32, 1999, 1371-1375);
but the arm needs about 30 ms to get there. From rest to 40 rad/s and back within 17 ms on each side
means 2,400 rad/s^2 twice, with opposite signs: 500 N·m at an outstretched arm of 0.2 kg m^2, where
shoulders have less than 150. Hips do not travel faster than a sprinter, 12.4 m/s.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import LARGEST, ClipError, Sealed, UnfollowableTarget, warn_user
from poise.math.arrays import Floats, Mask, Progress, count, floats, number
from poise.math.rotation import align_signs
from poise.model import configuration
from poise.model.character import Character
from poise.model.scene import scene_of
from poise.motion import editing
from poise.simulation.command import Target
from poise.simulation.state import State

if TYPE_CHECKING:
    from poise.anatomy.contact_schedule import ContactSchedule
    from poise.anatomy.rig import Rig
    from poise.motion.retargeting.matching import MapLike

FASTEST, FASTEST_TRAVEL = 40.0, 15.0
"""Speeds of a joint that turns [rad/s] and of one that travels [m/s], above which a step may be a
jump."""

FACTOR = 5.0
"""A jump is this many times as fast as its joint shortly before and after."""

CLOSE = 1.0 / 60.0
"""What is shortly before and after [s], or one frame where frames are farther apart."""

LONGEST_STEP = 1.0 / 30.0
"""Targets this long after a jump command it [s]: steps of a world may be longer than frames."""


class Jump(NamedTuple):
    """A step between two frames that no body can follow.

    Attributes:
        time: Of the frame before it [s].
        joint: The joint that is farthest beyond what it can do.
        speed: Mean speed of that joint in the step [rad/s, or m/s if it travels].
        travels: Whether it is a distance that jumps, and not an angle.
    """

    time: float
    joint: str
    speed: float
    travels: bool = False


class Clip(Sealed):
    """A motion: poses at a constant rate, one cubic spline through all their components.

    q, v and a come from that one spline and agree with each other: quaternions are normalised when
    sampled, v and a are the exact derivatives of the result. Before the first frame and after the
    last the pose is held, at rest.

    Args:
        character: The character that moves.
        q: Frames, shape (k, nq). Signs of quaternions are aligned in time.
        fps: Frames per second.
        source: The rig of the file it came from, or None.
        name: What to call it.
        contacts: Which points stand on the ground in each frame, or None if unknown.
        notes: What was done to it when and since it was read, a sentence each.
    """

    _draw_html: ClassVar[Callable[[Any], str] | None] = None
    """Draws it for a notebook; `poise` sets it, because motion does not import view."""

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
        contacts: ContactSchedule | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        if not isinstance(character, Character):
            raise ClipError(f"a clip moves a Character, got {character!r:.80}; see load_character")
        self.character = character
        self.fps = number(fps, "fps", unit="Hz")
        self.source = source
        self.name = name
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
            if not hasattr(contacts, "check"):
                raise ClipError(f"contacts must be a ContactSchedule, got {contacts!r:.80}")
            contacts.check(character, len(frames))
        self.contacts = contacts
        if isinstance(notes, (str, np.ndarray)) or not isinstance(notes, Iterable):
            raise ClipError(f"notes must be several texts, got {notes!r:.80}")
        self.notes = tuple(notes)
        self._reported: set[Jump] = set()  # jumps that `check_followable` has warned of
        self._seal()

    @cached_property
    def jumps(self) -> tuple[Jump, ...]:
        """Where the pose moves faster than any body can: `poise.motion.clip`."""

        return find_jumps(self)

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
        self,
        frames: ArrayLike,
        *,
        fps: float | None = None,
        contacts: ContactSchedule | None = None,
    ) -> Clip:
        """A clip of the same character, name, source and notes with other frames.

        Args:
            frames: Poses, shape (k, nq).
            fps: Frames per second; None keeps the rate.
            contacts: Which points stand in the new frames, or None.
        """
        return self.replace(q=frames, fps=self.fps if fps is None else fps, contacts=contacts)

    def with_character(self, character: Character) -> Clip | None:
        """The same frames on a character that is the same body; None if it must be retargeted.

        Args:
            character: `Character.same_body` decides whether the frames fit it.
        """
        if self.character is character or self.character == character:
            return self
        if not self.character.same_body(character):
            return None
        return self.replace(character=character)

    def check_followable(self, time: ArrayLike) -> None:
        """Warns with `poise.UnfollowableTarget` of jumps just before targets; once for each jump.

        Args:
            time: Of the targets [s].
        """
        times = floats(time, "time")
        for jump in self.jumps:
            after = times - jump.time
            near = (after > 0.0) & (after <= 1.0 / self.fps + LONGEST_STEP)
            if jump not in self._reported and near.any():
                warn_user(_jump_message(self, jump), UnfollowableTarget)
                self._reported.add(jump)

    def replace(self, **changes: Any) -> Clip:
        """The same clip with other arguments of `Clip`."""
        names = ("character", "fps", "source", "name", "contacts", "notes")
        same = {name: getattr(self, name) for name in names}
        return Clip(**{**same, "q": self.frames, **changes})

    def smoothed(self, cutoff: float | None = None, *, feet: bool = True) -> Clip:
        """Without noise, standing feet where they stood: `poise.motion.editing.smoothing`.

        Args:
            cutoff: Low-pass cutoff [Hz]; None finds it by residual analysis, 0 disables filtering.
            feet: Keep standing feet in place.
        """
        return editing.smoothing.smooth(self, cutoff, feet=feet)

    def trimmed(self, start: float = 0.0, end: float | None = None) -> Clip:
        """The part from start to end [s]."""
        return editing.cutting.trim(self, start, end)

    def resampled(self, fps: float) -> Clip:
        """The same motion at another rate [1/s]."""
        return editing.cutting.resample(self, fps)

    def at_speed(self, factor: float) -> Clip:
        """The same motion `factor` times as fast."""
        return editing.cutting.change_speed(self, factor)

    def warped(self, times: ArrayLike, new_times: ArrayLike) -> Clip:
        """The same motion at another pace: what happened at `times` happens at `new_times` [s]."""
        return editing.cutting.warp_time(self, times, new_times)

    def moved(self, by: Sequence[float]) -> Clip:
        """Shifted by x, y, z [m]."""
        return editing.cutting.translate(self, by)

    def turned(self, angle: float, about: Sequence[float] | None = None) -> Clip:
        """Turned about the vertical [rad] through a point [m]; None is where the root starts."""
        return editing.cutting.turn(self, angle, about)

    def placed(self, position: Sequence[float] | None = None, heading: float | None = None) -> Clip:
        """With the root starting at x, y [m], looking along a heading [rad]."""
        return editing.cutting.place(self, position, heading)

    def grounded(self, ground: float = 0.0) -> Clip:
        """Shifted up or down so that its feet stand at the height of the ground [m]."""
        return editing.cutting.ground_clip(self, ground)

    def mirrored(self) -> Clip:
        """With left and right exchanged."""
        return editing.mirroring.mirror(self)

    def balanced(self) -> Clip:
        """Standing feet level, the center of mass over them: `editing.prepare_balance`.

        `notes` of the result say what was changed.
        """
        prepared = editing.prepare_balance.prepare_balance(self)
        return prepared.clip.replace(notes=(*self.notes, *prepared.notes))

    def looped(
        self, cycles: int = 1, *, blend: float | None = None, turn: float | None = None
    ) -> Clip:
        """Again and again, travelling on: `poise.motion.editing.joining`.

        Args:
            cycles: How many rounds.
            blend: Time on each side of the seam over which it is faded [s].
            turn: By how much the heading changes in a round [rad]; None as in the clip.
        """
        return editing.joining.loop(self, cycles, blend=blend, turn=turn)

    def blended(self, other: Clip, duration: float = 0.2, *, at: float | None = None) -> Clip:
        """Turning into another clip of the same character, over a duration [s]."""
        return editing.joining.blend(self, other, duration, at=at)

    def retargeted(
        self,
        character: Character,
        *,
        map: MapLike = None,
        scale: float | None = None,
        level_feet: bool = False,
        progress: Progress | None = None,
    ) -> Clip:
        """The same motion on another character, standing feet in place: `poise.motion.retargeting`.

        Args:
            character: The character that gets the motion.
            map: Which link moves which, where names and shape are not enough.
            scale: Size of the character by that of the clip's; None takes it from the legs.
            level_feet: Make feet that stand flat, heel and toes on the ground.
            progress: Called with the finished fraction, 0 to 1.
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

    def _repr_html_(self) -> str | None:
        """A contact sheet, as a notebook shows it."""
        draw = Clip._draw_html
        return None if draw is None else draw(self)

    def _aligned(self, frames: Floats) -> Floats:
        """Unit quaternions whose signs do not jump from frame to frame."""
        for joint, at, _ in configuration.rotations(self.character):
            length = np.linalg.norm(frames[:, at], axis=1)
            if (np.abs(length - 1) > 1e-2).any():
                row = int(np.argmax(np.abs(length - 1) > 1e-2))
                raise ClipError(
                    f"frame {row}: the quaternion of joint {joint!r} has length {length[row]:g}, "
                    "it must be 1"
                )
            frames[:, at] = align_signs(frames[:, at])
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
            before = np.where(
                early[..., None], configuration.integrate(self.character, now, -dt * v), before
            )
        return np.stack([now, before], axis=-2)

    def _sample(self, t: Any) -> tuple[Floats, Floats, Floats]:
        times = floats(t, "t")
        model = scene_of(self.character).model
        flat = np.ascontiguousarray(times.reshape(-1))
        q, v, a = _core.sample(model, self._coefficients, 0.0, self.fps, flat)
        shape = times.shape
        return tuple(x.reshape(*shape, x.shape[-1]) for x in (q, v, a))


def find_jumps(clip: Clip) -> tuple[Jump, ...]:
    """The jumps of a clip, in time; steps of several joints, or one after the other, are one.

    Args:
        clip: The motion.
    """
    if len(clip) < 2:
        return ()
    speed, names, travels = _speeds(clip)
    limit = np.where(travels, FASTEST_TRAVEL, FASTEST)
    around = _around(speed, max(1, round(CLOSE * clip.fps)))
    excess = np.where(speed > FACTOR * around, speed / limit, 0.0)
    steps = np.flatnonzero(excess.max(axis=1, initial=0.0) > 1.0)
    found = []
    for together in np.split(steps, 1 + np.flatnonzero(np.diff(steps) > 1)):
        if len(together):
            row, column = np.unravel_index(excess[together].argmax(), excess[together].shape)
            at, joint = int(together[row]), int(column)
            name, fast = names[joint], float(speed[at, joint])
            found.append(Jump(at / clip.fps, name, fast, bool(travels[joint])))
    return tuple(found)


def _jump_message(clip: Clip, jump: Jump) -> str:
    step = jump.speed / clip.fps
    if jump.travels:
        what = f"travels {step:.3g} m within one frame ({jump.speed:.0f} m/s)"
    else:
        what = (
            f"turns by {math.degrees(step):.0f} degrees within one frame ({jump.speed:.0f} rad/s)"
        )
    where = f"clip {clip.name!r}, {jump.time:.4g} s: joint {jump.joint!r}"
    return (
        f"{where} {what}; no body follows that. load_clip(path, character) prepares a file "
        "(without prepare=False); "
        f"clip.trimmed({jump.time + 1.0 / clip.fps:.4g}) begins after the jump"
    )


def _speeds(clip: Clip) -> tuple[Floats, list[str], Mask]:
    """Speeds of joints from frame to frame (k - 1, n), their names, and which of them travel."""
    step = configuration.difference(clip.character, clip.frames[1:], clip.frames[:-1]) * clip.fps
    columns, names, travels = [], [], []
    for joint in clip.character.joints:
        own = step[:, clip.character.v_slice(joint)]
        parts = [(own[:, :3], True), (own[:, 3:], False)] if joint.kind == "free" else []
        for part, far in parts or [(own, joint.kind == "slide")]:
            columns.append(np.linalg.norm(part, axis=1))
            names.append(joint.name)
            travels.append(far)
    speed = np.stack(columns, axis=1) if columns else np.zeros((len(step), 0))
    return speed, names, np.array(travels, dtype=bool)


def _around(speed: Floats, frames: int) -> Floats:
    """The larger of the speeds so many steps before and after; none where the clip ends."""
    pad = np.zeros((frames, speed.shape[1]))
    before = np.concatenate([pad, speed])[: len(speed)]
    after = np.concatenate([speed, pad])[frames:]
    larger: Floats = np.maximum(before, after)
    return larger
