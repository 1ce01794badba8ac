"""Smoothing: a low-pass without delay that leaves standing feet where they stand.

The filter is a Butterworth of second order, run forward and backward: fourth order, no phase, and
-3 dB at the cutoff after both passes (the corner of each pass is moved up; Winter, Biomechanics and
Motor Control of Human Movement, 3.4.4). Numbers are filtered as they are, rotations as the four
components of their quaternions, whose signs are aligned in time, and normalised again: a steady
turn passes unchanged, however fast. At its ends the clip is continued by point reflection, so that
first and last pose and their velocities stay.

The cutoff comes from residual analysis (Winter, 3.4.4.3): the residual between raw and filtered
positions, over the cutoff, falls steeply while there is motion in it and as a line where there is
only noise. That line, extended to 0 Hz, is the noise of the clip; the cutoff is where the
residual equals it. One cutoff serves the whole clip: a foot is the sum of the joints above it, and
joints of different bandwidth would pull it about. The links of real takes need 4 to 9 Hz each,
those of one take rarely for more than 2 Hz from their common one.

A filter smears a footfall over its stance. So each point that stands firmly is brought back, by
inverse kinematics, to where it stood before, less the noise. In the air the correction fades; it is
itself free of what is faster than twice the cutoff, so that no joint jerks for it.

A jump from one frame to the next (the T-pose that files of the CMU begin with) is a cut: the sides
are filtered each for itself.

Spikes of a capture: joints that leave their course for a moment, and come back.

Where markers are lost or swapped, a foot or the twist of a limb flips by up to half a turn and is
back a few frames later. A low-pass smears such a spike and leaves most of it. So frames in which a
joint is far from its running median are taken out, and bridged by a monotone cubic (Fritsch and
Carlson) before anything is smoothed. The median of a motion that goes one way is that motion:
however fast, it stays.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import binary_dilation, median_filter
from scipy.signal import savgol_filter

from poise import dynamics, measure
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of, positions
from poise.anatomy.rest_pose import size_of
from poise.errors import ClipError
from poise.math.arrays import Floats, Mask, number
from poise.math.filtering import lowpass, pad_length
from poise.model import configuration
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.foot_contact.detect import detect_contacts, speeds
from poise.motion.foot_contact.locking import lock_points

NOISE = (10.0, 20.0)
"""Cutoffs at which the residual of a clip holds noise alone [Hz]."""

USUAL = 6.0
"""Cutoff where the rate is too low to see the noise [Hz]: Winter's for gait."""

STANCE = 0.25
"""Time over which the place of a standing point is averaged [s]."""

STILL = 0.08
"""A point slower than this part of sqrt(g size) stands firmly: it is kept in place."""

KEEP = 3e-3
"""Weight of keeping joints and root while feet are brought back [1/rad^2, 1/m^2]. Tuned: ten times
as much leaves noise in the feet, a tenth lets a stretched leg pump."""

JUMP = 0.05
"""A cut moves the links from one frame to the next by this part of the character's size, in the
mean, and five times as far as the frames beside it."""


class Displacement(NamedTuple):
    """How far the joints of a clip were moved [mm]: mean, 95 % and most, over links and frames."""

    mean: float
    p95: float
    max: float

    def __str__(self) -> str:
        return f"moved by {self.mean:.1f} mm (95 %: {self.p95:.1f} mm, most: {self.max:.1f} mm)"


def smooth(clip: Clip, cutoff: float | None = None, *, feet: bool = True) -> Clip:
    """Low-passes a clip without delay; standing feet stay where they stood.

    Args:
        clip: The motion.
        cutoff: Low-pass cutoff [Hz]; None takes `residual_cutoff`, 0 changes nothing.
        feet: Keep standing feet in place; their contacts are found unless the clip has them.
    """
    if cutoff is None:
        cutoff = residual_cutoff(clip)
    elif number(cutoff, "cutoff", positive=False, unit="Hz") == 0.0:
        return clip
    _check_cutoff(cutoff, clip)
    pieces = uncut_segments(clip)
    longest, least = max(b - a for a, b in pieces), pad_length(cutoff, clip.fps)
    if longest <= least:
        raise ClipError(
            f"the clip has {longest} frames in one piece, and a filter of {cutoff:g} Hz at "
            f"{clip.fps:g} fps needs more than {least}: raise the cutoff, or turn "
            "smoothing off with cutoff 0"
        )
    contacts = clip.contacts
    if feet and contacts is None and feet_of(clip.character):
        contacts = detect_contacts(clip)
    frames = clip.frames.copy()
    for a, b in pieces:
        if b - a > least:
            part = clip.with_frames(clip.frames[a:b])
            frames[a:b] = _filter(clip.character, part.frames, cutoff, clip.fps)
            if feet and contacts is not None:
                standing = replace(contacts, on=contacts.on[a:b])
                frames[a:b] = _lock_feet(part, frames[a:b], standing, cutoff)
    return clip.with_frames(frames, contacts=contacts)


def displacement(before: Clip, after: Clip) -> Displacement:
    """How far smoothing, or another edit that keeps the frames, moved the joints in the world."""
    same = before.character.same_body(after.character)
    if not same or before.frames.shape != after.frames.shape:
        raise ClipError(f"{before!r} and {after!r} must have the same character and frames")
    p, _ = dynamics.forward_kinematics(before.character, before.frames)
    new, _ = dynamics.forward_kinematics(after.character, after.frames)
    far = 1000.0 * np.linalg.norm(new - p, axis=-1)
    return Displacement(float(far.mean()), float(np.percentile(far, 95)), float(far.max()))


def residual_cutoff(clip: Clip) -> float:
    """The cutoff [Hz] of a clip by Winter's residual analysis of its joints' positions.

    Below 50 frames per second noise cannot be distinguished from motion; then it is 6 Hz, or 0.4 of
    the rate. It is never below 2 Hz.
    """
    most = 0.4 * clip.fps
    a, b = max(uncut_segments(clip), key=lambda part: part[1] - part[0])
    if most < NOISE[1] or b - a <= pad_length(2.0, clip.fps):
        return min(USUAL, most)
    p, _ = dynamics.forward_kinematics(clip.character, clip.frames[a:b])
    flat = p.reshape(b - a, -1)
    tried = np.arange(2.0, NOISE[1] + 0.01, 0.5)
    off = (flat - lowpass(flat, cutoff, clip.fps) for cutoff in tried)
    return _knee(tried, np.array([np.sqrt(np.mean(x * x)) for x in off]))


def _knee(tried: Floats, residual: Floats) -> float:
    """Where the residual falls to the noise: its line in the range of noise, taken to 0 Hz."""
    tail = tried >= NOISE[0]
    noise = float(np.polyfit(tried[tail], residual[tail], 1)[1])
    below = np.flatnonzero(residual <= noise)
    if not len(below):
        return float(NOISE[0])
    pair = [below[0], max(below[0] - 1, 0)]
    return float(np.interp(noise, residual[pair], tried[pair]))


def _check_cutoff(cutoff: float, clip: Clip) -> None:
    number(cutoff, "cutoff", unit="Hz")
    if cutoff > 0.45 * clip.fps:
        raise ClipError(
            f"a cutoff of {cutoff:g} Hz is too high for {clip.fps:g} fps: at most "
            f"{0.45 * clip.fps:g} Hz, or 0 for no smoothing"
        )


def _filter(character: Character, frames: Floats, cutoff: float, fps: float) -> Floats:
    out = lowpass(frames, cutoff, fps)
    for _, quat, _ in configuration.rotations(character):
        out[:, quat] /= np.linalg.norm(out[:, quat], axis=1, keepdims=True)
    return out


def uncut_segments(clip: Clip) -> list[tuple[int, int]]:
    """Stretches without a cut: first frame, frame after the last."""
    p, _ = dynamics.forward_kinematics(clip.character, clip.frames)
    step = np.sqrt(np.mean(np.sum(np.diff(p, axis=0) ** 2, axis=-1), axis=-1))
    beside = np.maximum(np.append(step[1:], 0.0), np.append(0.0, step[:-1]))
    cuts = 1 + np.flatnonzero((step > JUMP * size_of(clip.character)) & (step > 5.0 * beside))
    edges = [0, *cuts.tolist(), len(clip)]
    return list(pairwise(edges))


# standing feet


def _lock_feet(clip: Clip, frames: Floats, contacts: ContactSchedule, cutoff: float) -> Floats:
    """Filtered frames, corrected so that standing points are where they were in the clip's own."""
    character, fps = clip.character, clip.fps
    stood, now = (positions(character, contacts.points, q) for q in (clip.frames, frames))
    slow = speeds(stood, fps) < STILL * math.sqrt(9.81 * size_of(character))
    held = replace(contacts, on=still_contacts(contacts, slow))
    if not held.on.any():
        return frames
    for i, a, b in held.point_phases():
        stood[a:b, i] = _smooth_places(stood[a:b, i], fps)
    cutoff = min(2.0 * cutoff, 0.45 * fps)
    return lock_points(clip, frames, held, stood - now, cutoff=cutoff, joints=KEEP, root=KEEP)


def still_contacts(contacts: ContactSchedule, still: Mask) -> Mask:
    """The part of each contact from the first to the last frame in which the point is still."""
    found = np.zeros_like(contacts.on)
    for i, a, b in contacts.point_phases():
        at = np.flatnonzero(still[a:b, i])
        if len(at):
            found[a + at[0] : a + at[-1] + 1, i] = True
    return found


def _smooth_places(p: Floats, fps: float) -> Floats:
    """Places of a point over its stance (k, 3), by parabolas over a quarter of a second, twice.

    Once, fast noise comes through: the fit of a parabola has side lobes of a fifth.
    """
    window = min(2 * round(STANCE * fps / 2) + 1, len(p) - 1 + len(p) % 2)
    if window < 5:
        return np.broadcast_to(p.mean(axis=0), p.shape)
    for _ in range(2):
        p = np.asarray(savgol_filter(p, window, 2, axis=0, mode="interp"))
    return p


# spikes

WINDOW = 0.15
"""Time over which the median is taken [s]: spikes of less than half of it are found."""

FAR = 20.0
"""A joint that is farther than this from its median is in a spike [degrees]."""

BESIDE = 2
"""Frames before and after a spike that belong to it."""

LOST = 2.0
"""Where taking out what seems to be spikes turns the links by more than this in the mean [degrees],
the capture was lost for longer and cannot be restored: it is left as it is."""

LEAST_RATE = 60.0
"""Below this rate a spike cannot be distinguished from a fast motion [Hz]."""


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


def remove_spikes(clip: Clip) -> Despiked:
    """Removes spikes: joints that leave their course for a moment.

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
            frames[:, at] = _interpolate(frames[:, at], ~spiky)
            found[name] = float(spiky.sum() / clip.fps)
    if not found:
        return Despiked(clip, {})
    turned = measure.tracking_error(clip.character, frames, clip.frames).rotation
    if float(turned.mean()) > LOST:
        return Despiked(clip, found, lost=True)
    return Despiked(clip.with_frames(frames), found)


def _spikes(quat: Floats, size: int) -> Mask:
    """Which of the rotations (k, 4) are in a spike."""
    middle = median_filter(quat, size=(size, 1), mode="nearest")
    middle /= np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), 1e-9)
    away = 2.0 * np.arccos(np.clip(np.abs(np.sum(quat * middle, axis=1)), 0.0, 1.0))
    far = away > np.radians(FAR)
    return np.asarray(binary_dilation(far, iterations=BESIDE)) if far.any() else far


def _interpolate(quat: Floats, good: Mask) -> Floats:
    """Rotations (k, 4) with those that are not good taken from the good ones beside them."""
    at = np.flatnonzero(good)
    k = np.clip(np.arange(len(quat)), at[0], at[-1])
    out = PchipInterpolator(at, quat[at], axis=0)(k)
    unit: Floats = out / np.linalg.norm(out, axis=1, keepdims=True)
    return unit
