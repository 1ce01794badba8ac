"""Planting of feet: from the desired path of a foot to one on which it stands still.

A foot stands from the frame in which its heel or toes touch to the one in which both have left.
In that time it has one place and one heading on the ground, those that are nearest to what it would
do; one that turns on the ground turns about the point that stays. It is level while it would be so
within a few degrees; pitched farther up or down it stands on the edge of its heel or toes. Between
two standings it goes where it would, plus a correction that fades from one standing and grows to
the next, so that the foot comes to rest without a jerk, and it does not go below the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import distance_transform_edt, gaussian_filter1d, maximum_filter1d

from poise.math import rotation
from poise.math.arrays import Floats, Mask, runs
from poise.math.rotation import conjugate, multiply, rotate

FADE = 0.25
"""Time in which a correction fades after a standing, at most [s]."""

LIFT = 0.05
"""Time over which a foot that would swing into the ground is lifted, before and after [s]."""

ASIDE = (0.015, 0.2)
"""How far a foot that slows down may get beside its source by that alone [m, rad]."""

EDGE = 3
"""Frames at the edge of a standing that say how fast a correction changes there."""

LEVEL = 0.10
"""A standing foot that would be pitched by less than this is level [rad]."""

PLAY = 0.2
"""A standing foot that turns by less than this to either side keeps its heading [rad]."""

SOFT = 0.02
"""A foot that turns on the ground starts and ends its turn within about this time [s]."""

STEP = 0.1
"""A foot that is off the ground for less than this has not made a step [s]..."""

NEAR = 0.03
"""... if it comes down within this distance [m]."""

UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Sole:
    """A sole. Places and directions are from its link's origin, in world axes, while it is level.

    Attributes:
        link: Index of the link.
        level: Orientation of the link in which the sole is level and looks along `forward`, (4,).
        local: Points of the sole in the link's frame [m], shape (n, 3).
        heel: Middle of the rear edge [m], shape (3,).
        toe: Middle of the front edge, or the joint of toes that are links of their own [m], (3,).
        left: Direction to the left, level, shape (3,).
        height: How far `toe` is above the ground while the sole is level [m].
        always_level: Whether it is level whenever it stands.
    """

    link: int
    level: Floats
    local: Floats
    heel: Floats
    toe: Floats
    left: Floats
    height: float = 0.0
    always_level: bool = False

    @property
    def points(self) -> Floats:
        """Points of the sole [m], shape (n, 3)."""
        return rotate(self.level, self.local)

    @property
    def middle(self) -> Floats:
        """The point between heel and toe [m], shape (3,)."""
        return (self.heel + self.toe) / 2.0

    def turns(self, R: Floats) -> Floats:
        """Rotations (k, 4) from level of a link with orientations R (k, 4)."""
        return multiply(R, conjugate(self.level))


def plant_foot(
    sole: Sole,
    p: Floats,
    R: Floats,
    stands: Mask,
    fps: float,
    pieces: Sequence[tuple[int, int]] = (),
) -> tuple[Floats, Floats]:
    """Plants a foot: places (k, 3) and orientations (k, 4) of its link that stand still.

    Args:
        sole: The sole.
        p: Where the link would go [m], shape (k, 3).
        R: How it would be turned, shape (k, 4).
        stands: When it stands, shape (k,).
        fps: Frames per second.
        pieces: Stretches of frames without a cut, each for itself; one unless given.
    """
    D = sole.turns(R)
    new_p, new_D = p.copy(), D.copy()
    for first, last in pieces or [(0, len(p))]:
        piece = slice(first, last)
        now_p, now_D = new_p[piece], new_D[piece]
        phases = runs(stands[piece])
        for a, b in phases:
            now_p[a:b], now_D[a:b] = _standing_poses(sole, p[piece][a:b], D[piece][a:b], fps)
        _fade_between_standings(now_p, now_D, p[piece], D[piece], sole, phases, fps)
        _lift_swing(now_p, now_D, sole, stands[piece], fps)
    return new_p, multiply(new_D, sole.level)


def pitch_of(sole: Sole, D: Floats) -> Floats:
    """Pitch of a foot that stands, positive with the heel up [rad], shape (k,); 0 if level.

    Args:
        sole: The sole.
        D: Its rotations from level, shape (k, 4).
    """
    if sole.always_level:
        return np.zeros(len(D))
    yaw = 2.0 * np.arctan2(D[:, 3], D[:, 0])
    pitch = rotation.log(multiply(rotation.turn(UP, -yaw), D)) @ sole.left
    beyond = np.maximum(np.abs(pitch) - LEVEL, 0.0)
    soft = np.where(beyond < LEVEL, beyond * beyond / (2.0 * LEVEL), beyond - LEVEL / 2.0)
    return np.sign(pitch) * soft


def yaw_of(D: Floats) -> Floats:
    """Heading of a foot turned from level by D (k, 4) [rad], without jumps, shape (k,)."""
    return np.unwrap(2.0 * np.arctan2(D[:, 3], D[:, 0]))


def standing_heading(yaw: Floats, fps: float) -> Floats:
    """Heading of a foot that stands: constant, unless it turns on the ground.

    A foot that turns by more than twice `PLAY` drags its heading behind, as a joint with play does.
    """
    low, high = float(yaw.min()), float(yaw.max())
    if high - low < 2.0 * PLAY:
        return np.full(len(yaw), float(yaw.mean()))
    out = np.empty_like(yaw)
    # start where it stays longest
    at = float(np.clip(yaw[: max(1, len(yaw) // 4)].mean(), yaw[0] - PLAY, yaw[0] + PLAY))
    for i, x in enumerate(yaw):
        at = min(max(at, x - PLAY), x + PLAY)
        out[i] = at
    smooth: Floats = gaussian_filter1d(out, SOFT * fps, mode="nearest")
    return smooth


def is_pivoting(D: Floats, stands: Mask, fps: float) -> Mask:
    """When a foot that stands, turned from level by D (k, 4), turns on the ground, shape (k,)."""
    turns = np.zeros(len(D), dtype=bool)
    for a, b in runs(stands):
        moves = np.abs(np.diff(standing_heading(yaw_of(D[a:b]), fps))) > 1e-4
        turns[a : b - 1] |= moves
        turns[a + 1 : b] |= moves
    return turns


def close_gaps(sole: Sole, p: Floats, R: Floats, stands: Mask, fps: float) -> Mask:
    """Standings without short gaps: closed where the foot stays in place, else made long enough."""
    stands = stands.copy()
    middle = p + rotate(sole.turns(R), sole.middle)
    least = max(round(STEP * fps), 2)
    for (a, b), (c, d) in pairwise(runs(stands)):
        short = least - (c - b)
        if short <= 0:
            continue
        before, after = middle[max(a, b - least) : b], middle[c : min(d, c + least)]
        away = np.linalg.norm(before.mean(axis=0)[:2] - after.mean(axis=0)[:2])
        if away < NEAR:
            stands[b:c] = True
        else:
            stands[max(b - (short + 1) // 2, (a + b) // 2) : b] = False
            stands[c : min(c + (short + 1) // 2, (c + d) // 2)] = False
    return stands


def _standing_poses(sole: Sole, p: Floats, D: Floats, fps: float) -> tuple[Floats, Floats]:
    """One standing: places and turns from level."""
    turn = rotation.turn(UP, standing_heading(yaw_of(D), fps))
    pitch = pitch_of(sole, D)
    middle = _pivot_point(sole, p, D, turn)
    # where that point is by the heel and the toes, while they stand
    places = []
    for on, edge in ((pitch <= 0.0, sole.heel), (pitch >= 0.0, sole.toe)):
        at = p[on] + rotate(D[on], edge)
        places.append(at[:, :2] - rotate(turn[on], edge - middle)[:, :2])
    place = np.append(np.concatenate(places).mean(axis=0), 0.0)
    out_D = multiply(turn, rotation.turn(sole.left, pitch))
    on_heel = pitch <= 0.0
    edge = np.where(on_heel[:, None], sole.heel, sole.toe)
    pivot = place + rotate(turn, edge - middle)
    pivot[:, 2] = np.where(on_heel, 0.0, sole.height)
    return pivot - rotate(out_D, edge), out_D


def _pivot_point(sole: Sole, p: Floats, D: Floats, turn: Floats) -> Floats:
    """The point of the sole that stays in place: its middle, or about which it turns."""
    if np.ptp(turn, axis=0).max() < 1e-9:
        return sole.middle
    tried = [sole.heel + part * (sole.toe - sole.heel) for part in (0.0, 0.25, 0.5, 0.75, 1.0)]
    strays = [float(np.var((p + rotate(D, point))[:, :2], axis=0).sum()) for point in tried]
    return tried[int(np.argmin(strays))]


def closeness(on: Mask, reach: float) -> Floats:
    """1 where true, falling to 0 within `reach` frames."""
    return smooth_fall(frames_from(on) / max(reach, 1.0))


def frames_from(on: Mask, periodic: bool = False) -> Floats:
    """Frames from each one to the nearest that is on, as `on`; infinite if there is none.

    Args:
        on: Which frames are on, shape (k,), or (k, points) for each point.
        periodic: Whether the first frame follows the last.
    """
    if on.ndim == 2:
        far: Floats = np.full(on.shape, np.inf)
        for i, column in enumerate(on.T):
            far[:, i] = frames_from(column, periodic)
        return far
    if not on.any():
        return np.full(len(on), np.inf)
    if periodic:
        return frames_from(np.tile(on, 3))[len(on) : 2 * len(on)]
    return np.asarray(distance_transform_edt(~on))


def smooth_fall(x: ArrayLike) -> Floats:
    """From 1 at 0 to 0 at 1, with level ends."""
    x = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
    falls: Floats = 1.0 - x * x * x * (10.0 - 15.0 * x + 6.0 * x * x)
    return falls


def _fade_between_standings(
    new_p: Floats,
    new_D: Floats,
    p: Floats,
    D: Floats,
    sole: Sole,
    stands: list[tuple[int, int]],
    fps: float,
) -> None:
    """Between standings: what the foot would do, and the corrections of its neighbours."""
    was = p + rotate(D, sole.middle)
    now = new_p + rotate(new_D, sole.middle)
    turn = rotation.log(multiply(new_D, conjugate(D)))
    both = np.concatenate([now - was, turn], axis=1)
    edges = [0, *(x for stand in stands for x in stand), len(p)]
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        if a == b:
            continue
        span = FADE * fps
        if a > 0 and b < len(p):
            span = min(span, b - a + 1.0)
        k = np.arange(a, b)
        after, before = (k - a + 1.0).astype(np.float64), (b - k).astype(np.float64)
        fix = np.zeros((b - a, 6))
        if a > 0:
            fix += _fade_out(after, both[:a][-EDGE:], span)
        if b < len(p):
            fix += _fade_out(before, both[b:][:EDGE][::-1], span)
        new_D[k] = multiply(rotation.exp(fix[:, 3:]), D[k])
        new_p[k] = was[k] + fix[:, :3] - rotate(new_D[k], sole.middle)


def _fade_out(k: Floats, last: Floats, span: float) -> Floats:
    """From the last of some values (n, 6), with the slope they end with, to zero after a span.

    A foot that stands comes to rest at once, its source does not: with the slope of their
    difference the foot slows down before. Each slope ends so soon that it leads not too far.
    """
    out: Floats = smooth_fall(k / span)[:, None] * last[-1]
    slope = (last[-1] - last[0]) / max(len(last) - 1, 1)
    for part, most in ((slice(0, 3), ASIDE[0]), (slice(3, 6), ASIDE[1])):
        speed = float(np.linalg.norm(slope[part]))
        time = min(span, 5.0 * most / max(speed, 1e-9))
        u = np.clip(k / max(time, 1.0), 0.0, 1.0)[:, None]
        # of slope 1 at 0, level at 1, without curvature at both; it rises to 0.2
        out[:, part] += time * slope[part] * u * (1.0 - u) ** 3 * (1.0 + 3.0 * u)
    return out


def _lift_swing(p: Floats, D: Floats, sole: Sole, stands: Mask, fps: float) -> None:
    """Lift a swinging foot out of the ground, over some time."""
    free = 1.0 - closeness(stands, 2.0 * LIFT * fps)
    for weight in (free, np.where(stands, 0.0, 1.0)):
        z = p[:, None, 2] + rotate(D[:, None, :], sole.points[None])[..., 2]
        need = np.where(stands, 0.0, np.maximum(-z.min(axis=1), 0.0))
        if not need.any():
            return
        p[:, 2] += weight * (spread_in_time(need, LIFT * fps) if weight is free else need)


def spread_in_time(need: Floats, reach: float) -> Floats:
    """What is needed (k,), and smoothly rising to it and falling from it within `reach` frames."""
    n = max(round(reach), 1)
    window = np.hanning(2 * n + 1)[1:-1]
    wide = maximum_filter1d(need, 2 * n - 1, mode="nearest")
    return np.convolve(np.pad(wide, n - 1, "edge"), window / window.sum(), "valid")
