"""Zero-lag low-pass filter of sampled signals (Winter, Biomechanics and Motor Control)."""

from __future__ import annotations

import math

from scipy.signal import butter, sosfiltfilt

from poise.math.arrays import Floats


def lowpass(x: Floats, cutoff: float, fps: float) -> Floats:
    """Returns the columns of x (k, n) without frequencies above the cutoff [Hz], without delay."""
    # two passes of order 2: each may lose the square root of what both lose together
    correction = (math.sqrt(2.0) - 1.0) ** 0.25
    corner = 2.0 / math.pi * math.atan(math.tan(math.pi * cutoff / fps) / correction)
    sos = butter(2, corner, output="sos")
    pad = min(2 * pad_length(cutoff, fps), len(x) - 1)
    slow: Floats = sosfiltfilt(sos, x, axis=0, padtype="odd", padlen=pad)
    return slow


def pad_length(cutoff: float, fps: float) -> int:
    """Returns one period of the cutoff in frames, at least 3: the least length of a signal.

    The filter continues the signal by twice as many frames at both ends, or by its own length.
    """
    return max(3, math.ceil(min(fps / cutoff, 1e9)))
