"""Spikes of a capture: joints that leave their course for a moment, and come back.

Where markers are lost or swapped, a foot or the twist of a limb flips by up to half a turn and is
back a few frames later. A low-pass smears such a spike and leaves most of it. So frames in which a
joint is far from its running median are taken out, and bridged by a monotone cubic (Fritsch and
Carlson) before anything is smoothed. The median of a motion that goes one way is that motion:
however fast, it stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import binary_dilation, median_filter

from poise import measure
from poise.math.arrays import Floats
from poise.model import configuration
from poise.motion.clip import Clip

WINDOW = 0.15
"""Time over which the median is taken [s]: spikes of less than half of it are found."""

FAR = 20.0
"""A joint that is farther than this from its median is in a spike [degrees]."""

BESIDE = 2
"""Frames before and after a spike that belong to it."""

LOST = 2.0
"""Where taking out what seems to be spikes turns the links by more than this in the mean [degrees],
the capture was lost for longer, and nobody knows what the body did: it is left as it is."""

LEAST_RATE = 60.0
"""Below this rate a spike cannot be told from a fast motion [Hz]."""


class Despiked(NamedTuple):
    """A clip without spikes.

    Attributes:
        clip: The clip.
        joints: How long each joint was in a spike [s].
        lost: Whether the capture was lost for so long that the clip was left as it is.
    """

    clip: Clip
    joints: dict[str, float]
    lost: bool = False


def without_spikes(clip: Clip) -> Despiked:
    """A clip whose joints do not leave their course for a moment.

    Args:
        clip: The motion, as it was captured. Cuts stay: a median leaves a step where it is.
    """
    size = 2 * round(WINDOW * clip.fps / 2.0) + 1
    if clip.fps < LEAST_RATE or len(clip) <= size:
        return Despiked(clip, {})
    frames, found = clip.frames.copy(), {}
    for name, at, _ in configuration.rotations(clip.character):
        spiky = _spikes(frames[:, at], size)
        if spiky.any() and (~spiky).sum() > 3:
            frames[:, at] = _bridged(frames[:, at], ~spiky)
            found[name] = float(spiky.sum() / clip.fps)
    if not found:
        return Despiked(clip, {})
    turned = measure.tracking_error(clip.character, frames, clip.frames).rotation
    if float(turned.mean()) > LOST:
        return Despiked(clip, found, lost=True)
    return Despiked(clip.with_frames(frames), found)


def _spikes(quat: Floats, size: int) -> NDArray[np.bool_]:
    """Which of the rotations (k, 4) are in a spike."""
    middle = median_filter(quat, size=(size, 1), mode="nearest")
    middle /= np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), 1e-9)
    away = 2.0 * np.arccos(np.clip(np.abs(np.sum(quat * middle, axis=1)), 0.0, 1.0))
    far = away > np.radians(FAR)
    return np.asarray(binary_dilation(far, iterations=BESIDE)) if far.any() else far


def _bridged(quat: Floats, good: NDArray[np.bool_]) -> Floats:
    """Rotations (k, 4) with those that are not good taken from the good ones beside them."""
    at = np.flatnonzero(good)
    k = np.clip(np.arange(len(quat)), at[0], at[-1])
    out = PchipInterpolator(at, quat[at], axis=0)(k)
    unit: Floats = out / np.linalg.norm(out, axis=1, keepdims=True)
    return unit
