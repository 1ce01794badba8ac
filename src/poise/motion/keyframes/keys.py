"""Keyframes: a motion by its keys, and the smooth frames between them.

Every joint has its own track of keys, so has the place and the turn of the root. Between the keys
run cubic B-splines (`math.spline`): they pass through the keys and are twice continuously
differentiable; a loop closes, any other motion begins and ends at rest. Then inverse kinematics
brings limbs to their targets: `Reach` at the time of its key (`targets`), `Stand` with a
foothold at all its frames (`contacts`). Files: `file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint, feet_of, has_free_root, positions
from poise.errors import ClipError
from poise.math import rotation, spline
from poise.math.arrays import Floats, Mask, number
from poise.model.character import Character, Vector
from poise.motion.authoring.spacetime import Travel
from poise.motion.clip import Clip

MOST_FRAMES = 36_000
"""Most frames of a clip: ten minutes at 60 per second."""

WHOLE = 0.01
"""A duration may be this far from a whole number of frames, since it is typed in decimals."""

UP = (0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Track:
    """Keys of one joint, or of the root's place or turn.

    Args:
        times: [s], increasing, shape (k,).
        values: Unit quaternions (k, 4), places (k, 3) [m], or angles and lengths (k, 1) [rad, m].
        hold: How firmly each key counts for an optimiser, 0 to 1, shape (k,).
        lines: Where they stand in the file; 0: they do not.
    """

    times: Floats
    values: Floats
    hold: Floats
    lines: tuple[int, ...]

    def with_keys(self, more: Track) -> Track:
        """With the keys of another track besides, in place of those at the same times."""
        kept = [i for i, t in enumerate(self.times) if np.abs(more.times - t).min() > 1e-9]
        times, values, hold, lines = (
            np.concatenate([np.asarray(old)[kept], new])
            for old, new in (
                (self.times, more.times),
                (self.values, more.values),
                (self.hold, more.hold),
                (self.lines, more.lines),
            )
        )
        order = np.argsort(times)
        return Track(times[order], values[order], hold[order], tuple(lines[order].tolist()))


@dataclass(frozen=True)
class Stand:
    """A time in which a foot, or a part of it, stands.

    Attributes:
        foot: Name of the foot, or of another link that stands on its outer end.
        part: "heel", "toe", or "" for all of it.
        start: When it begins to stand [s].
        stop: The last moment it stands [s]; in a loop this may lie in the next cycle.
        foothold: Where it stands flat: x, y of the link's origin [m], turn from rest about z [rad].
            Of a link that is no foot: x, y of its outer end [m]. None: anywhere.
        line: Of the interval in the file.
        foothold_line: Of the foothold in the file.
    """

    foot: str
    part: str
    start: float
    stop: float
    foothold: Vector | None = None
    line: int = 0
    foothold_line: int = 0


@dataclass(frozen=True)
class Reach:
    """Desired place of a link's outer end at the time of a key.

    Attributes:
        link: Name of the link.
        time: [s].
        target: In the world [m].
        line: In the file.
    """

    link: str
    time: float
    target: Vector
    line: int = 0


@dataclass(frozen=True, eq=False)
class Keyframes:
    """A motion by its keys.

    Args:
        name: Name of the clip.
        character: The character that moves.
        fps: Frames per second of the clip.
        duration: [s]; of a loop, of one cycle.
        joints: Tracks by joint; a joint without a track stays zero.
        root_pos: Track of the root's place; None: where it rests.
        root_turn: Track of the root's orientation in the world; None: as it rests.
        stands: When feet stand, and where.
        reaches: Targets of inverse kinematics.
        loop: How the root travels in one cycle: x -> R x + shift; None: no loop.
        mirrored: Whether the second half of the loop mirrors the first; both are here.
        options: Whatever else the file says under `options`, for others to read.
        source: What errors call the file.
    """

    name: str
    character: Character
    fps: float
    duration: float
    joints: Mapping[str, Track]
    root_pos: Track | None = None
    root_turn: Track | None = None
    stands: tuple[Stand, ...] = ()
    reaches: tuple[Reach, ...] = ()
    loop: Travel | None = None
    mirrored: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = "keyframes"

    def frames(self, fps: float | None = None) -> Floats:
        """Poses from time 0 to the end, both included, shape (k, nq).

        Of a loop the last pose is the first one, travelled on.

        Args:
            fps: Frames per second; the file's unless given.
        """
        from poise.motion.keyframes.contacts import place_feet

        times = self.times(fps)
        return place_feet(self, times, self.q(times))

    def clip(self, fps: float | None = None) -> Clip:
        """The motion as a clip."""
        rate = self.fps if fps is None else fps
        return Clip(self.character, self.frames(fps), rate, name=self.name)

    def times(self, fps: float | None = None) -> Floats:
        """Times of the frames [s], shape (k,)."""
        rate = self.fps if fps is None else number(fps, "fps", unit="Hz")
        count = self.duration * rate
        if count > MOST_FRAMES:
            raise ClipError(f"{self.source}: over {MOST_FRAMES} frames at {rate:g} per second")
        whole = round(count)
        if whole < 1 or abs(count - whole) > WHOLE:
            near = [f"{max(n, 1) / rate:.4f}" for n in (int(count), int(count) + 1)]
            raise ClipError(
                f"{self.source}: {self.duration:g} s are no whole number of frames at {rate:g} per "
                f"second; {' and '.join(near)} s are"
            )
        return np.linspace(0.0, self.duration, whole + 1)

    def q(self, t: ArrayLike) -> Floats:
        """Poses at times t [s], reaches met, footholds not; shape (n, nq)."""
        return self._sampled(np.atleast_1d(np.asarray(t, dtype=np.float64)), self.posed)

    @cached_property
    def posed(self) -> Mapping[str, Track]:
        """The joints' tracks with keys where inverse kinematics brought them to their reaches."""
        if not self.reaches:
            return self.joints
        from poise.motion.keyframes.targets import meet_reaches

        times = np.array(sorted({reach.time for reach in self.reaches}))
        return meet_reaches(self, times, self._sampled(times, self.joints))

    def contacts(self, k: int | None = None) -> ContactSchedule:
        """Which points stand in k frames from time 0 to the end; the file's frames unless given."""
        times = self.times() if k is None else np.linspace(0.0, self.duration, k)
        on = np.zeros((len(times), len(self.points)), dtype=bool)
        for stand in self.stands:
            of = self.points_of(stand.foot, stand.part)
            on[np.ix_(np.any(self.standing(stand, times), axis=1), of)] = True
        return ContactSchedule(self.points, on)

    def standing(self, stand: Stand, times: Floats) -> Mask:
        """Whether times lie in a stand of the cycle before, this, or the next; bool (k, 3)."""
        cycles = np.array([-1.0, 0.0, 1.0]) * (self.duration if self.loop else 0.0)
        t = times[:, None] - cycles
        on: Mask = (t > stand.start - 1e-6) & (t < stand.stop + 1e-6)
        return on if self.loop else on & [False, True, False]

    @cached_property
    def points(self) -> tuple[ContactPoint, ...]:
        """The points that may stand: those of the feet, and of other links that are named."""
        feet = feet_of(self.character)
        named = dict.fromkeys(stand.foot for stand in self.stands)
        return feet_of(self.character, also=[x for x in named if x not in {p.foot for p in feet}])

    def points_of(self, foot: str, part: str = "") -> list[int]:
        """Which points belong to a foot, its heel or its toe: its rear or front ones at rest."""
        of = [i for i, point in enumerate(self.points) if point.foot == foot]
        if not part:
            return of
        x = positions(self.character, [self.points[i] for i in of], self.character.rest_q)[:, 0]
        middle = (x.min() + x.max()) / 2.0
        return [i for i, at in zip(of, x, strict=True) if (at < middle) == (part == "heel")]

    def _sampled(self, t: Floats, joints: Mapping[str, Track]) -> Floats:
        """Poses (n, nq) of tracks."""
        character = self.character
        out = np.tile(character.rest_q, (len(t), 1))
        period = self.duration if self.loop else None
        for name, track in joints.items():
            smooth = spline.turning if character.joint(name).kind == "ball" else spline.curve
            with_ends = self._with_ends(track)
            out[:, character.q_slice(name)] = self._named(
                f"joint {name!r}", track, smooth, with_ends.times, with_ends.values, t, period
            )
        if has_free_root(character):
            self._place_root(out, t)
        return out

    def _place_root(self, out: Floats, t: Floats) -> None:
        """Write place and turn of the root into poses; a loop travels even without keys."""
        rest, zero, one = self.character.rest_q, np.zeros(1), np.ones(1)
        pos = self.root_pos or Track(zero, rest[None, :3], one, (0,))
        turn = self.root_turn or Track(zero, rest[None, 3:7], one, (0,))
        if self.loop is None:
            pos, turn = self._with_ends(pos), self._with_ends(turn)
            out[:, :3] = spline.curve(pos.times, pos.values, t)
            onward, period = np.array([1.0, 0.0, 0.0, 0.0]), None
        else:
            still = self._travelled(pos.times, pos.values, -1.0)
            out[:, :3] = self._travelled(t, spline.curve(pos.times, still, t, self.duration), 1.0)
            onward, period = rotation.turn(UP, self.loop.turn), self.duration
        out[:, 3:7] = self._named(
            "turn of the root", turn, spline.turning, turn.times, turn.values, t, period, onward
        )

    def _travelled(self, t: Floats, x: Floats, way: float) -> Floats:
        """Places (k, 3) moved along with the loop's travel up to times t, or back by way -1."""
        assert self.loop is not None
        part = t / self.duration
        shift, angle = np.array(self.loop.shift), self.loop.turn
        if abs(angle) < 1e-6:
            return np.asarray(x + way * part[:, None] * shift)
        # the travel turns about a fixed point c = R c + shift, and climbs
        cosine, sine = np.cos(angle), np.sin(angle)
        level = np.array([[1.0 - cosine, sine], [-sine, 1.0 - cosine]])
        c = np.append(np.linalg.solve(level, shift[:2]), 0.0)
        turned: Floats = rotation.rotate(rotation.turn(UP, way * part * angle), x - c) + c
        turned[:, 2] += way * part * shift[2]
        return turned

    def _with_ends(self, track: Track) -> Track:
        """A track that lasts from 0 to the end: it holds its first and its last key."""
        if self.loop is not None:
            return track
        times, values = track.times, track.values
        if times[0] > 1e-9:
            times, values = np.append(0.0, times), np.append(values[:1], values, axis=0)
        if times[-1] < self.duration - 1e-9:
            times = np.append(times, self.duration)
            values = np.append(values, values[-1:], axis=0)
        return Track(times, values, track.hold, track.lines)

    def _named(self, what: str, track: Track, smooth: Any, *args: Any) -> Floats:
        """Samples a spline; an error names keys with too large a step between them."""
        try:
            values: Floats = smooth(*args)
        except spline.TooFar as error:
            # the times of the curve may hold one more key before the first of the track
            time = float(args[0][error.index])
            line = track.lines[int(np.abs(track.times - time).argmin())]
            raise ClipError(f"{self.source}:{line}: {what}, key at {time:g} s: {error}") from error
        return values
