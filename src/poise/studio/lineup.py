"""Several characters that follow one clip, side by side, round after round: the reference.

A clip that loops is sampled in the middle one of three rounds, where its spline knows what comes
before and after. Round r is that one carried r - 1 times by the step from one round to the next: a
turn about the vertical and a shift over the ground.

Times are taken as whole steps, so that a reference does not depend on how many steps are asked for
at once, to the last bit.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.scene import Scene
from poise.motion.clip import Clip
from poise.simulation.command import Target
from poise.simulation.contact import HeightField
from poise.studio.cast import ground_height
from poise.trials.overlaps import overlapping_links

UP = (0.0, 0.0, 1.0)
STRAIGHT = 1e-9
"""A round that turns by less walks straight on [rad]."""

SLOPE_STEP = 0.05
"""Over which slopes of the ground are taken [m]."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """A clip, once or again and again.

    Args:
        clip: One round.
        thrice: Three rounds, if it can be looped.
        apart: Pairs of links that it moves through each other: they must not touch.
        notes: What was done to it, for people to read.
    """

    clip: Clip
    thrice: Clip | None
    apart: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, clip: Clip, notes: tuple[str, ...] = ()) -> Rounds:
        """A clip that is looped if it can be; that may take a second."""
        apart = tuple(overlapping_links(clip))
        try:
            return cls(clip, clip.looped(3), apart, notes)
        except ClipError:
            return cls(clip, None, apart, notes)

    @property
    def free(self) -> bool:
        """Whether its root moves freely."""
        joints = self.clip.character.joints
        return bool(joints) and joints[0].kind == "free"

    @cached_property
    def _travel(self) -> tuple[float, complex]:
        """From one round to the next: turn [rad], and where the origin goes [m], as x + iy."""
        if self.thrice is None or not self.free:
            return 0.0, 0j
        k = len(self.clip) - 1
        a, b = self.thrice.frames[k], self.thrice.frames[2 * k]
        turn = rotation.multiply(b[3:7], rotation.conjugate(a[3:7]))
        angle = math.remainder(2.0 * math.atan2(turn[3], turn[0]), 2.0 * math.pi)
        shift = complex(b[0], b[1]) - cmath.exp(1j * angle) * complex(a[0], a[1])
        return angle, shift

    def sample(self, t: Floats, last: int | None) -> tuple[Floats, Floats, Floats]:
        """Positions, velocities and accelerations at times [s], shapes (k, nq), (k, nv), (k, nv).

        Args:
            t: Times from the start of the first round, shape (k,).
            last: How many rounds there are, after which the last pose is held; None is no end.
        """
        if self.thrice is None:
            return self.clip._sample(t)
        number, within, ended = self._when(t, last)
        q, v, a = self.thrice._sample(self.clip.duration + within)
        v[ended], a[ended] = 0.0, 0.0
        if self.free:
            self._carry(q, v, a, number - 1.0)
        return q, v, a

    @property
    def sampled(self) -> Clip:
        """The clip that is sampled: one round, or the middle one of three."""
        return self.clip if self.thrice is None else self.thrice

    def within(self, t: float, last: int | None) -> float:
        """The time in `sampled` that belongs to a time [s]; see `sample`."""
        if self.thrice is None:
            return min(max(t, 0.0), self.clip.duration)
        return self.clip.duration + float(self._when(np.array([t]), last)[1][0])

    def _when(self, t: Floats, last: int | None) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """In which round times are, how far into it [s], and whether all rounds have ended."""
        length = self.clip.duration
        at = np.maximum(t, 0.0)
        number = np.floor(at / length)
        ended = np.zeros(len(at), dtype=bool) if last is None else at >= last * length
        if last is not None:
            number = np.where(ended, last - 1, number)
        return number, np.where(ended, length, at - number * length), ended

    def _carry(self, q: Floats, v: Floats, a: Floats, rounds: Floats) -> None:
        """Carry poses by so many rounds, in place."""
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
class Lineup:
    """The reference of a whole scene: characters side by side, objects left alone.

    Args:
        scene: The scene: characters that follow the clip, then objects.
        rounds: What they follow.
        places: Where each starts, beside where the clip has it [m], shape (characters, 2).
        dt: Time step [s].
        ground: Where the ground is uneven, roots follow its height.
        gravity: [m/s^2]; objects fall, so that nothing holds them.
        begun: When the first round begins [s].
        last: How many rounds there are; None is no end.
    """

    scene: Scene
    rounds: Rounds
    places: Floats
    dt: float
    ground: HeightField | None = None
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    begun: float = 0.0
    last: int | None = None

    def target(self, t: float) -> Target:
        """Where everyone should be at time t [s]."""
        step = round(t / self.dt)
        kept = self._kept.get(step)
        if kept is None:
            self._rows(step, 1)
            kept = self._kept[step]
        return kept

    def targets(self, t: float, dt: float, k: int) -> Target:
        """k rows of target, from t on, a step apart."""
        return Target(*self._rows(round(t / self.dt), k), rows=k)

    def between(self, t: float) -> Target:
        """Where everyone should be at time t [s], which need not be a whole step."""
        q, v, a = self._at(np.array([t]))
        return Target(q[0], v[0], a[0])

    def within(self, t: float) -> float:
        """The time in `rounds.sampled` that belongs to time t [s]."""
        return self.rounds.within(t - self.begun, self.last)

    def looped(self, on: bool, now: float) -> Lineup:
        """Going on for ever, or to the end of the present round, from time now [s]."""
        length = self.rounds.clip.duration
        if not on:
            done = math.floor((now - self.begun) / length) if length > 0 else 0
            return replace(self, last=max(1, done + 1))
        if self.last is None:
            return self
        # who has come to the end goes on from there
        late = max(0.0, now - self.begun - self.last * length)
        return replace(self, last=None, begun=self.begun + late)

    @cached_property
    def _kept(self) -> dict[int, Target]:
        """The last row that was asked for, by its step: notes and pictures ask for it again."""
        return {}

    @cached_property
    def objects(self) -> list[tuple[slice, slice]]:
        """Where positions and velocities of the objects are."""
        parts = list(self.scene.forest.parts.values())
        return [(part.q, part.v) for part in parts[len(self.places) :]]

    def _rows(self, first: int, k: int) -> tuple[Floats, Floats, Floats]:
        """Rows of all characters at whole steps."""
        q, v, a = self._at(np.arange(first, first + k, dtype=np.float64) * self.dt)
        self._kept.clear()
        self._kept[first + k - 1] = Target(q[-1].copy(), v[-1].copy(), a[-1].copy())
        return q, v, a

    def _at(self, times: Floats) -> tuple[Floats, Floats, Floats]:
        """Rows of all characters at times [s], shape (k,)."""
        one = self.rounds.sample(times - self.begun, self.last)
        k, m = len(times), len(self.places)
        scene, rest = self.scene, self.scene.forest.rest_q
        q: Floats = np.empty((k, scene.nq))
        v, a = np.zeros((2, k, scene.nv))
        for whole, row in zip((q, v, a), one, strict=True):
            size = row.shape[1]
            whole[:, : m * size] = np.tile(row, (1, m))
        if self.rounds.free:
            self._place(q, v, m)
        for at, rate in self.objects:
            q[:, at] = rest[at]
            a[:, rate.start : rate.start + 3] = self.gravity
        return q, v, a

    def _place(self, q: Floats, v: Floats, m: int) -> None:
        """Shift the roots to their places, and onto the ground."""
        nq, nv = self.rounds.clip.character.nq, self.rounds.clip.character.nv
        x, y, z = (q[:, i : m * nq : nq] for i in range(3))
        x += self.places[:, 0]
        y += self.places[:, 1]
        if self.ground is None:
            return
        z += ground_height(self.ground, x, y)
        # so that it rises as it goes: the slope by a difference over some centimetres
        for i, (dx, dy) in enumerate(((SLOPE_STEP, 0.0), (0.0, SLOPE_STEP))):
            ahead = ground_height(self.ground, x + dx, y + dy)
            behind = ground_height(self.ground, x - dx, y - dy)
            v[:, 2 : m * nv : nv] += (ahead - behind) / (2.0 * SLOPE_STEP) * v[:, i : m * nv : nv]
