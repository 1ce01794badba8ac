"""Which points of the soles stand, frame by frame: found from how high and how fast they are.

A point stands while it is low and slow. Motion capture has noise of millimetres, soles that are
guessed from a skeleton are off by centimetres, and the floor of a capture is level only so far, so:

- speed is the distance over a thirtieth of a second, to the past or to the future, whichever is
  less: noise stays small at 120 frames per second, and the frame of a footfall counts at 16;
- height is taken above the ground near in time: where the lowest point stood within half a second;
- two pairs of thresholds (hysteresis): a contact begins where the tight ones hold and lasts while
  the loose ones do; short gaps are closed and short blips dropped.

Lengths scale with the size l of the character, speeds with sqrt(g l), as gaits do (Froude). A body
that travels fast skates more in captures: a tenth of its speed is added to the speed thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import uniform_filter1d

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint, feet_of, has_free_root, positions, tip_of
from poise.anatomy.rest_pose import size_of
from poise.errors import ClipError
from poise.math.arrays import Floats, Mask, number, runs
from poise.motion.clip import Clip

HEIGHTS = (0.06, 0.08)
"""Below these a contact begins and lasts, as parts of the character's size. Tuned on real clips."""

SPEEDS = (0.12, 0.18)
"""Below these a contact begins and lasts, as parts of sqrt(g size). Tuned on real clips."""

TRAVEL = 0.1
"""This part of the root's speed over the ground is added to the speeds. Tuned on real clips."""

SPAN = 1.0 / 30.0
"""Time over which a speed is taken [s]; one frame, if that is longer."""

NEAR = 0.5
"""The ground is where points stood within this time [s]."""

DRIFT = 0.06
"""The ground drifts by at most this part of the character's size."""

ROWS = 4096
"""Frames whose medians are taken together; bounds the memory."""

GAP = 0.06
"""Shorter gaps are closed [s]."""

BLIP = 0.05
"""Shorter contacts are dropped [s]."""


def detect_contacts(
    clip: Clip,
    points: Sequence[ContactPoint] | None = None,
    *,
    also: Iterable[str] = (),
    ground: float | None = None,
) -> ContactSchedule:
    """Find which points of the soles stand on the ground, frame by frame.

    Args:
        clip: The motion.
        points: The points; None takes those of the character's feet.
        also: Further links that may touch the ground, as the hands in a cartwheel.
        ground: Height of the ground [m]; None takes where the lowest points stood, and follows it
            where a capture drifts.
    """
    character = clip.character
    points = feet_of(character) if points is None else tuple(points)
    points = (*points, *(point for name in also for point in tip_of(character, name)))
    if not points:
        raise ClipError(
            f"character {character.name!r} has no feet: no link with a shape reaches the ground in "
            "its rest pose; give the points, or names of links as `also`"
        )
    p = positions(character, points, clip.frames)
    length = size_of(character)
    speed = speeds(p, clip.fps)
    pace = _root_speed(clip)[:, None]
    slow, still = (part * np.sqrt(9.81 * length) + TRAVEL * pace for part in SPEEDS)
    if ground is None:
        floor = _ground_near(p[..., 2], speed < slow, clip.fps, DRIFT * length)[:, None]
    else:
        floor = np.full((1, 1), number(ground, "ground", positive=False, unit="m"))
    height = p[..., 2] - floor
    begins = (speed < slow) & (height < HEIGHTS[0] * length)
    lasts = (speed < still) & (height < HEIGHTS[1] * length)
    on = [_close_gaps(a, b, clip.fps) for a, b in zip(begins.T, lasts.T, strict=True)]
    return ContactSchedule(points, np.stack(on, axis=1), detected=True)


def ground_height(clip: Clip, contacts: ContactSchedule | None = None) -> float:
    """Height of the ground [m]: the median of the lowest point that stands, over the frames.

    Without a contact it is the lowest height that any of the points reaches.
    """
    contacts = contacts or clip.contacts or detect_contacts(clip)
    z = positions(clip.character, contacts.points, clip.frames)[..., 2]
    low = np.where(contacts.on, z, np.inf).min(axis=1)
    stands = np.isfinite(low)
    return float(np.median(low[stands])) if stands.any() else float(z.min())


def speeds(p: Floats, fps: float) -> Floats:
    """Speeds of points (k, points, 3): to the past or the future, the lower one [m/s]."""
    step = min(max(1, round(SPAN * fps)), len(p) - 1)
    if step == 0:
        return np.zeros(p.shape[:-1])
    v = np.linalg.norm(p[step:] - p[:-step], axis=-1) * (fps / step)
    none = np.full((step, p.shape[1]), np.inf)
    lower: Floats = np.minimum(np.concatenate([v, none]), np.concatenate([none, v]))
    return lower


def _root_speed(clip: Clip) -> Floats:
    """Speed of the root over the ground, its mean over half a second [m/s], shape (k,)."""
    k = len(clip)
    if k == 1 or not has_free_root(clip.character):
        return np.zeros(k)
    v = np.gradient(clip.frames[:, :2], axis=0) * clip.fps
    mean = uniform_filter1d(v, max(1, round(0.5 * clip.fps)), axis=0, mode="nearest")
    return np.asarray(np.linalg.norm(mean, axis=-1))


def _ground_near(z: Floats, slow: Mask, fps: float, drift: float) -> Floats:
    """Height of the ground near each frame [m]: where the lowest of the points (k, points) stood.

    Frames in which the lowest point moves are left out.
    """
    k = len(z)
    lowest = np.argmin(z, axis=1)
    low, known = z[np.arange(k), lowest], slow[np.arange(k), lowest]
    if not known.any():
        return np.full(k, float(np.percentile(low, 10)))
    whole = float(np.median(low[known]))
    reach = max(1, round(NEAR * fps))
    padded = np.pad(np.where(known, low, np.inf), reach, constant_values=np.inf)
    windows = sliding_window_view(padded, 2 * reach + 1)
    here = np.concatenate([_medians(windows[a : a + ROWS], whole) for a in range(0, k, ROWS)])
    return np.asarray(np.clip(here, whole - drift, whole + drift))


def _medians(rows: Floats, otherwise: float) -> Floats:
    """Medians of what is finite in each row (k, n); of a row without, the other number."""
    rows = np.sort(rows, axis=1)
    count = np.isfinite(rows).sum(axis=1)
    i = np.arange(len(rows))
    some = np.maximum(count, 1)
    middle = (rows[i, (some - 1) // 2] + rows[i, some // 2]) / 2.0
    return np.where(count > 0, middle, otherwise)


def _close_gaps(begins: Mask, lasts: Mask, fps: float) -> Mask:
    """Contacts that begin tightly and last loosely, without short gaps and blips."""
    on = np.zeros(len(begins), dtype=bool)
    for a, b in runs(lasts):
        on[a:b] = begins[a:b].any()
    for a, b in runs(~on):
        if a > 0 and b < len(on) and b - a < GAP * fps:
            on[a:b] = True
    for a, b in runs(on):
        if b - a < BLIP * fps and b - a < len(on):
            on[a:b] = False
    return on
