"""The reference of a scene: several characters that follow one clip, side by side, in rounds.

A clip that loops is sampled in the middle one of three rounds, where its spline has neighbors on
both sides. Round r is that one moved r - 1 times by the step from one round to the next: a rotation
about the vertical and a shift over the ground.

Times are rounded to whole steps, so that a reference does not depend on how many steps are sampled
at once, to the last bit.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poise.anatomy.feet import has_free_root
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.scene import Scene
from poise.motion.clip import Clip
from poise.simulation.command import Target
from poise.simulation.contact import HeightField
from poise.studio.scene_index import ground_height
from poise.trials.trial import overlapping_links

UP = (0.0, 0.0, 1.0)
STRAIGHT = 1e-9
"""A round that turns by less goes straight on [rad]."""

WHOLE = 1e-6
"""Times nearer to a whole step count as one [steps]."""

SLOPE_STEP = 0.05
"""Over which slopes of the ground are taken [m]."""


@dataclass(frozen=True, eq=False)
class LoopedClip:
    """A clip, once or in rounds.

    Args:
        clip: One round.
        three_rounds: Three rounds, if it can be looped.
        overlaps: Pairs of links that it moves through each other: they do not collide.
        notes: How it was changed, for people to read.
    """

    clip: Clip
    three_rounds: Clip | None
    overlaps: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, clip: Clip, notes: tuple[str, ...] = ()) -> LoopedClip:
        """A clip that is looped if it can be; that may take a second."""
        pairs = tuple(overlapping_links(clip))
        try:
            return cls(clip, clip.looped(3), pairs, notes)
        except ClipError:
            return cls(clip, None, pairs, notes)

    @property
    def is_free(self) -> bool:
        """Whether its root moves freely."""
        return has_free_root(self.clip.character)

    @cached_property
    def _travel(self) -> tuple[float, complex]:
        """From one round to the next: turn [rad], and where the origin goes [m], as x + iy."""
        if self.three_rounds is None or not self.is_free:
            return 0.0, 0j
        k = len(self.clip) - 1
        a, b = self.three_rounds.frames[k], self.three_rounds.frames[2 * k]
        turn = rotation.multiply(b[3:7], rotation.conjugate(a[3:7]))
        angle = math.remainder(2.0 * math.atan2(turn[3], turn[0]), 2.0 * math.pi)
        shift = complex(b[0], b[1]) - cmath.exp(1j * angle) * complex(a[0], a[1])
        return angle, shift

    def sample(self, t: Floats, rounds: int | None) -> tuple[Floats, Floats, Floats]:
        """Positions, velocities and accelerations at times [s], shapes (k, nq), (k, nv), (k, nv).

        Args:
            t: Times from the start of the first round, shape (k,).
            rounds: Number of rounds, after which the last pose is held; None is no end.
        """
        if self.three_rounds is None:
            return self.clip._sample(t)
        number, within, ended = self._when(t, rounds)
        q, v, a = self.three_rounds._sample(self.clip.duration + within)
        v[ended], a[ended] = 0.0, 0.0
        if self.is_free:
            self._move(q, v, a, number - 1.0)
        return q, v, a

    @property
    def sampled(self) -> Clip:
        """The clip that is sampled: one round, or the middle one of three."""
        return self.clip if self.three_rounds is None else self.three_rounds

    def within(self, t: float, rounds: int | None) -> float:
        """The time in `sampled` that belongs to a time [s]; see `sample`."""
        if self.three_rounds is None:
            return min(max(t, 0.0), self.clip.duration)
        return self.clip.duration + float(self._when(np.array([t]), rounds)[1][0])

    def _when(self, t: Floats, rounds: int | None) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Round of each time, time within it [s], and whether all rounds have ended."""
        length = self.clip.duration
        at = np.maximum(t, 0.0)
        number = np.floor(at / length)
        ended = np.zeros(len(at), dtype=bool) if rounds is None else at >= rounds * length
        if rounds is not None:
            number = np.where(ended, rounds - 1, number)
        return number, np.where(ended, length, at - number * length), ended

    def _move(self, q: Floats, v: Floats, a: Floats, rounds: Floats) -> None:
        """Moves poses by so many rounds, in place."""
        angle, shift = self._travel
        if abs(angle) < STRAIGHT:
            q[:, 0] += rounds * shift.real
            q[:, 1] += rounds * shift.imag
            return
        turned = np.exp(1j * angle * rounds)
        moved = shift * (turned - 1.0) / (cmath.exp(1j * angle) - 1.0)
        for row, add in ((q, moved), (v, 0.0), (a, 0.0)):
            flat = (row[:, 0] + 1j * row[:, 1]) * turned + add
            row[:, 0], row[:, 1] = flat.real, flat.imag
        q[:, 3:7] = rotation.multiply(rotation.turn(UP, angle * rounds), q[:, 3:7])


@dataclass(frozen=True, eq=False)
class CrowdReference:
    """The reference of a whole scene: characters side by side; objects fall freely.

    Args:
        scene: The scene: characters that follow the clip, then objects.
        motion: The clip that they follow.
        places: Offset of each character from the clip [m], shape (characters, 2).
        dt: Time step [s].
        ground: Where the ground is uneven, roots follow its height.
        gravity: [m/s^2]; the acceleration of objects.
        begin: When the first round begins [s].
        rounds: Number of rounds; None is no end.
    """

    scene: Scene
    motion: LoopedClip
    places: Floats
    dt: float
    ground: HeightField | None = None
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    begin: float = 0.0
    rounds: int | None = None

    def target(self, t: float) -> Target:
        """The target of the scene at time t [s]; its time is that in `motion.sampled`."""
        step = round(t / self.dt)
        if abs(t - step * self.dt) > WHOLE * self.dt:
            return self._last(np.array([t]), *self._at(np.array([t])))
        if step not in self._kept:
            self._rows(step, 1)
        return self._kept[step]

    def targets(self, t: float, dt: float, k: int) -> Target:
        """k rows of target, one per step from t on."""
        return Target(*self._rows(round(t / self.dt), k), rows=k)

    def looped(self, on: bool, now: float) -> CrowdReference:
        """Without an end, or up to the end of the present round, from time now [s]."""
        length = self.motion.clip.duration
        if not on:
            done = math.floor((now - self.begin) / length) if length > 0 else 0
            return replace(self, rounds=max(1, done + 1))
        if self.rounds is None:
            return self
        # a motion that has ended goes on from its end
        late = max(0.0, now - self.begin - self.rounds * length)
        return replace(self, rounds=None, begin=self.begin + late)

    @cached_property
    def _kept(self) -> dict[int, Target]:
        """The last row, by its step: frames read it again."""
        return {}

    @cached_property
    def objects(self) -> list[tuple[slice, slice]]:
        """Where positions and velocities of the objects are."""
        parts = list(self.scene.forest.parts.values())
        return [(part.q, part.v) for part in parts[len(self.places) :]]

    def _rows(self, first: int, k: int) -> tuple[Floats, Floats, Floats]:
        """Rows of all characters at whole steps."""
        times = np.arange(first, first + k, dtype=np.float64) * self.dt
        q, v, a = self._at(times)
        self._kept.clear()
        self._kept[first + k - 1] = self._last(times, q, v, a)
        return q, v, a

    def _last(self, times: Floats, q: Floats, v: Floats, a: Floats) -> Target:
        """The target of the last row."""
        time = self.motion.within(float(times[-1]) - self.begin, self.rounds)
        return Target(q[-1].copy(), v[-1].copy(), a[-1].copy(), time=time)

    def _at(self, times: Floats) -> tuple[Floats, Floats, Floats]:
        """Rows of all characters at times [s], shape (k,)."""
        one = self.motion.sample(times - self.begin, self.rounds)
        k, m = len(times), len(self.places)
        scene, rest = self.scene, self.scene.forest.rest_q
        q: Floats = np.empty((k, scene.nq))
        v, a = np.zeros((2, k, scene.nv))
        for whole, row in zip((q, v, a), one, strict=True):
            size = row.shape[1]
            whole[:, : m * size] = np.tile(row, (1, m))
        if self.motion.is_free:
            self._place(q, v, m)
        for at, rate in self.objects:
            q[:, at] = rest[at]
            a[:, rate.start : rate.start + 3] = self.gravity
        return q, v, a

    def _place(self, q: Floats, v: Floats, m: int) -> None:
        """Shifts the roots to their places, and onto the ground."""
        nq, nv = self.motion.clip.character.nq, self.motion.clip.character.nv
        x, y, z = (q[:, i : m * nq : nq] for i in range(3))
        x += self.places[:, 0]
        y += self.places[:, 1]
        if self.ground is None:
            return
        z += ground_height(self.ground, x, y)
        # velocity along the slope, which is a difference over some centimeters
        for i, (dx, dy) in enumerate(((SLOPE_STEP, 0.0), (0.0, SLOPE_STEP))):
            ahead = ground_height(self.ground, x + dx, y + dy)
            behind = ground_height(self.ground, x - dx, y - dy)
            v[:, 2 : m * nv : nv] += (ahead - behind) / (2.0 * SLOPE_STEP) * v[:, i : m * nv : nv]
