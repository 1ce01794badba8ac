"""Terms of a space-time optimisation that ask for calm: little jerk, forces that change gently."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from poise import dynamics
from poise.math.arrays import Floats
from poise.motion.authoring.ground_forces import G
from poise.motion.authoring.spacetime import Motion, Rows, Term, turning

TENTH = 0.1  # [s]

Three = tuple[Floats, ...]


def smooth(weights: ArrayLike, *, calm: ArrayLike = 0.0) -> Term:
    """Little jerk, and little acceleration.

    Args:
        weights: Of a jerk of 1000 rad/s³ (m/s³), a number or (nv,).
        calm: Of an acceleration of 100 rad/s² (m/s²), a number or (nv,).
    """

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        nv = motion.character.nv
        one, two = (np.broadcast_to(x, nv) for x in (weights, calm))
        a = motion.a
        rise = _rate(motion, a) / 1000.0 * one
        out = [Rows(rise), Rows(a / 100.0 * two)]
        if not derivatives:
            return out
        # that joints also turn while they jerk is left out of the derivative
        size = np.ones((len(a), nv))
        return [Rows(rise, j=size / 1000.0 * one), Rows(out[1].r, a=size / 100.0 * two)]

    return term


def pressing(weight: ArrayLike = 1.0) -> Term:
    """Let the ground's force change gently; weight of a body weight in a tenth of a second, a
    number or (k,).

    The force is F = m (c'' + g). A step d moves the mass centre by J d, hence the force by
    m (J d)'' = m (J d'' + 2 J' d' + J'' d).
    """

    def term(motion: Motion, derivatives: bool) -> list[Rows]:
        character = motion.character
        scale = np.broadcast_to(weight, len(motion.q)) * TENTH / (character.mass * G)
        force = dynamics.inverse_dynamics(character, motion.q, motion.v, motion.a)[:, :3]
        rate = _rate(motion, force) * scale[:, None]
        if not derivatives:
            return [Rows(rate)]
        A, _ = dynamics.centroidal_momentum(character, motion.q, np.zeros_like(motion.v))
        J, slope, bend = _slopes(motion, A[:, :3])
        rows = _rate_rows(motion, rate, (bend, 2.0 * slope, J))
        return [Rows(rate, *(x * scale[:, None, None] for x in rows[1:] if x is not None))]

    return term


def _rate(motion: Motion, x: Floats) -> Floats:
    """Change of x (k, n) from each frame to the next, per second; of the last frame of a loop, to
    the first."""
    after = np.roll(x, -1, axis=0)
    if motion.travel is None:
        after[-1] = x[-1]
    return (after - x) * motion.fps


def _slopes(motion: Motion, x: Floats) -> Three:
    """x (k, ...) and its first two rates, those of a spline through the frames."""
    k, loop = len(x), motion.travel is not None
    full = np.concatenate([x, x[:1]]) if loop else x
    ends = "periodic" if loop else "not-a-knot"
    spline = CubicSpline(np.arange(len(full)) / motion.fps, full, bc_type=ends)
    t = np.arange(k) / motion.fps
    return x, spline(t, 1), spline(t, 2)


def _rate_rows(motion: Motion, r: Floats, by: Three) -> Rows:
    """Rows of `_rate` of something whose derivatives by d, d', d'' are `by`, (k, m, nv) each.

    Between two frames d is a cubic: d, d' and d'' in the next are sums of those in this one.
    """
    h = 1.0 / motion.fps
    (R, Q, P), (R1, Q1, P1) = by, (np.roll(x, -1, axis=0) for x in by)
    by_d = (R1 - R) / h
    by_v = (Q1 - Q) / h + R1
    by_a = (P1 - P) / h + Q1 + h / 2.0 * R1
    by_j = P1 + h / 2.0 * Q1 + h**2 / 6.0 * R1
    if motion.travel is None:
        for x in (by_d, by_v, by_a, by_j):
            x[-1] = 0.0
    # rows want derivatives by q, v, a: a step d of joints that turn also changes v and a
    w, dw = turning(motion, motion.v), turning(motion, motion.a)
    by_v = by_v - by_a @ w
    return Rows(r, by_d - by_v @ w - by_a @ dw, by_v, by_a, by_j)
