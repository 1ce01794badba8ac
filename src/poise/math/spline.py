"""Smooth curves through keys: cubic B-splines of numbers and of rotations.

A curve through rotations is the cumulative cubic B-spline of Kim, Kim and Shin (1995, eq. 4)

    q(t) = p_0 prod_i exp(w_i C_i(t)),    C_i(t) = sum_{j >= i} B_j(t)

with the keys' times as knots. C_i is twice continuously differentiable, so q is. B_j spans the four
intervals about key j. At key k only three of them are not zero: B_{k-1} = l_k, B_k, B_{k+1} = r_k.
The curve passes from key k to the next by

    exp(-r_k w_{k+1}) exp(l_k w_k) exp((1 - l_{k+1}) w_{k+1}) exp(r_{k+1} w_{k+2}) = q_k^-1 q_{k+1}

which is solved for the w by Newton steps; on numbers, it is the linear system of a cubic spline.
Unlike logarithms of control points, the w may be longer than half a turn: a swing to and fro needs
that.

A closed curve has w_{i+k} = w_i. An open one has fourfold knots at both ends, and comes to rest
there: its first and its last w are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline
from scipy.sparse import csc_array
from scipy.sparse.linalg import spsolve

from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats

WIDEST = np.radians(175.0)
"""Largest turn between two keys [rad]: near half a turn either way round is as short."""

PARTS = 4
"""In how many parts the turns are brought to their size while the curve is solved."""

EXACT = 1e-11
"""How closely rotations are met [rad]."""


def curve(times: Floats, values: Floats, t: ArrayLike, period: float | None = None) -> Floats:
    """Values (..., n) at times t [s] of the cubic B-spline through keys.

    Args:
        times: Of the keys [s], increasing, shape (k,).
        values: Of the keys, shape (k, n).
        t: When [s].
        period: Of a closed curve [s]; None: the curve rests before the first key and after the
            last.
    """
    from scipy.interpolate import CubicSpline

    t = np.asarray(t, dtype=np.float64)
    if len(times) == 1:
        return np.array(np.broadcast_to(values[0], (*t.shape, values.shape[1])))
    if period is None:
        spline = CubicSpline(times, values, bc_type="clamped")
        return np.asarray(spline(np.clip(t, times[0], times[-1])))
    closed = np.append(times, times[0] + period)
    spline = CubicSpline(closed, np.append(values, values[:1], axis=0), bc_type="periodic")
    return np.asarray(spline(times[0] + np.mod(t - times[0], period)))


@dataclass(frozen=True, eq=False)
class RotationCurve:
    """A curve through rotations.

    Args:
        times: Of the keys [s], increasing, two or more; of a closed curve within one period, one
            or more; shape (k,).
        keys: Unit quaternions, shape (k, 4).
        period: Of a closed curve [s]; None: the curve is open, and at rest at its ends.
        onward: Quaternion that takes one period to the next, from the left.
    """

    times: Floats
    keys: Floats
    period: float | None
    onward: Floats

    @cached_property
    def steps(self) -> Floats:
        """Rotation vectors from each key to the next, the short way round [rad], (m, 3)."""
        after = np.roll(self.keys, -1, axis=0)
        after[-1] = rotation.multiply(self.onward, after[-1])
        steps = rotation.log(rotation.multiply(rotation.conjugate(self.keys), after))
        steps = steps if self.period is not None else steps[:-1]
        far = np.linalg.norm(steps, axis=1)
        if far.max() > WIDEST:
            raise TooFar(int(far.argmax()), float(far.max()))
        return steps

    @cached_property
    def knots(self) -> Floats:
        """Knots of the basis [s]."""
        k, t = len(self.times), self.times
        if self.period is None:
            return np.concatenate([[t[0]] * 3, t, [t[-1]] * 3])
        i = np.arange(-4, k + 4)
        knots: Floats = t[i % k] + self.period * (i // k)
        return knots

    def basis(self, t: Floats) -> Floats:
        """B_{k-1} .. B_{k+2} at times t (n,), each in the interval after its key k; (n, 4)."""
        # the design matrix has four entries in each row
        found: Floats = BSpline.design_matrix(t, self.knots, 3).data.reshape(-1, 4)
        return found

    @cached_property
    def at_keys(self) -> Floats:
        """B_{k-1} .. B_{k+2} at key k, (k, 4)."""
        found = self.basis(self.times)
        if self.period is None:
            # the last key ends the interval before it
            found[-1] = [0.0, 0.0, 1.0, 0.0]
        return found

    def around(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """The w_k, w_{k+1}, w_{k+2} of each step, (m, 3) each."""
        i = np.arange(len(self.steps))
        return w[i], w[(i + 1) % len(w)], w[(i + 2) % len(w)]

    @cached_property
    def omega(self) -> Floats:
        """The rotation vectors w [rad], (k, 3); of an open curve (k + 1, 3)."""
        if self.period is not None and len(self.times) == 1:
            return self.steps
        w = np.zeros((len(self.times) + (self.period is None), 3))
        # from small turns on to the whole ones, so that no step is met by way of a needless turn
        for fraction in np.arange(1, PARTS + 1) / PARTS:
            w, e = self._solved(fraction * self.steps, w)
        if np.abs(e).max() > 1e-7 or np.abs(w).max() > 4.0 * np.pi:
            bad = e if np.abs(e).max() > 1e-7 else self.around(w)[1]
            worst = int(np.abs(bad).max(axis=1).argmax())
            raise TooFar(worst, float(np.linalg.norm(self.steps[worst])))
        return w

    def _solved(self, steps: Floats, w: Floats) -> tuple[Floats, Floats]:
        """The w for these steps, and their residuals (m, 3) [rad], from a guess."""
        goal, m = rotation.exp(steps), len(steps)
        l0, r0 = self.at_keys[:m, :1], self.at_keys[:m, 2:3]
        l1, r1 = (np.roll(self.at_keys, -1, axis=0)[:m, i : i + 1] for i in (0, 2))

        def residuals(w0: Floats, w1: Floats, w2: Floats) -> Floats:
            got = _product(-r0 * w1, l0 * w0, (1.0 - l1) * w1, r1 * w2)
            return rotation.log(rotation.multiply(rotation.conjugate(got), goal))

        e = residuals(*self.around(w))
        for _ in range(20):
            if np.abs(e).max() < EXACT:
                break
            step = self._newton_step(residuals, w, e)
            for fraction in (1.0, 0.5, 0.25, 0.1, 0.02):
                new = residuals(*self.around(w + fraction * step))
                if np.linalg.norm(new) < np.linalg.norm(e):
                    break
            else:
                break
            w, e = w + fraction * step, new
        return w, e

    def _newton_step(self, residuals: Callable[..., Floats], w: Floats, e: Floats) -> Floats:
        """The step of w that brings the residuals e to zero, by central differences."""
        near, of, h = self.around(w), np.arange(len(e)), 1e-6
        rows, columns, values = [], [], []
        for part, axis in np.ndindex(3, 3):
            d = h * np.eye(3)[axis]
            ahead, back = (
                residuals(*(x + way * d if i == part else x for i, x in enumerate(near)))
                for way in (1.0, -1.0)
            )
            slope = (ahead - back) / (2.0 * h)
            for row in range(3):
                rows.append(3 * of + row)
                columns.append(3 * ((of + part) % len(w)) + axis)
                values.append(slope[:, row])
        where = (np.concatenate(rows), np.concatenate(columns))
        J = csc_array((np.concatenate(values), where), shape=(e.size, w.size))
        free = slice(0, None) if self.period is not None else slice(3, -3)
        step = np.zeros(w.size)
        step[free] = spsolve(J[:, free], -e.reshape(-1))
        return step.reshape(w.shape)

    def __call__(self, t: ArrayLike) -> Floats:
        """Unit quaternions (..., 4) at times t [s]; an open curve holds its ends."""
        t = np.asarray(t, dtype=np.float64)
        flat, cycle = t.reshape(-1), np.zeros(t.size)
        last = self.times[-1]
        if self.period is not None:
            cycle = np.floor((flat - self.times[0]) / self.period)
            flat, last = flat - cycle * self.period, self.times[0] + self.period
        flat = np.clip(flat, self.times[0], last)
        k = np.clip(np.searchsorted(self.times, flat, side="right") - 1, 0, len(self.steps) - 1)
        b, at = self.basis(flat), self.at_keys[k]
        w0, w1, w2 = (x[k] for x in self.around(self.omega))
        start = _product(-at[:, 2:3] * w1, (at[:, :1] - 1.0) * w0)
        rest = _product(
            b[:, 1:].sum(axis=1)[:, None] * w0, b[:, 2:].sum(axis=1)[:, None] * w1, b[:, 3:] * w2
        )
        out = rotation.multiply(rotation.multiply(self.keys[k], start), rest)
        turns = rotation.exp(cycle[:, None] * rotation.log(self.onward))
        return rotation.multiply(turns, out).reshape(*t.shape, 4)


class TooFar(ClipError):
    """No curve: the rotation from one key to the next is half a turn.

    Args:
        index: Number of the key after which it happens.
        angle: From that key to the next [rad].
    """

    def __init__(self, index: int, angle: float) -> None:
        far = np.degrees(angle)
        if angle > WIDEST:
            why = "either way round is as short"
        else:
            why = "no smooth curve leads through them so fast"
        super().__init__(f"the next key is {far:.0f} degrees away, and {why}; put a key between")
        self.index, self.angle = index, angle


def turning(
    times: Floats,
    keys: Floats,
    t: ArrayLike,
    period: float | None = None,
    onward: ArrayLike = (1.0, 0.0, 0.0, 0.0),
) -> Floats:
    """Unit quaternions (..., 4) at times t [s] of the B-spline through rotations.

    Args:
        times: Of the keys [s], increasing, shape (k,).
        keys: Unit quaternions, shape (k, 4).
        t: When [s].
        period: Of a closed curve [s]; None: the curve rests before the first key and after the
            last.
        onward: Quaternion that takes one period of a closed curve to the next, from the left.
    """
    t = np.asarray(t, dtype=np.float64)
    if period is None and len(times) == 1:
        return np.array(np.broadcast_to(keys[0], (*t.shape, 4)))
    return RotationCurve(times, keys, period, np.asarray(onward, dtype=np.float64))(t)


def _product(*turns: Floats) -> Floats:
    out = rotation.exp(turns[0])
    for turn in turns[1:]:
        out = rotation.multiply(out, rotation.exp(turn))
    return out
