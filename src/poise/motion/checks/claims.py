"""The physical claims about a clip: it falls with g, keeps its spin, stands, and needs no help."""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import savgol_filter

from poise.anatomy import feet
from poise.math.arrays import runs
from poise.motion.authoring import ground_forces
from poise.motion.checks.examined import (
    FALL,
    LIMIT,
    RESIDUAL,
    SLOW_SPIN,
    SPAN,
    SPIN,
    STEADY,
    STILL,
    STRETCH,
    Examined,
    Finding,
)
from poise.motion.editing import smoothing
from poise.motion.foot_contact.detect import speeds
from poise.motion.limits import excesses


def flows(examined: Examined) -> Finding:
    """The pose does not jump from one frame to the next."""
    claim = "the pose does not jump"
    jumps = examined.jumps
    if not jumps:
        return Finding(claim, True, 0.0, 0.0, "jumps")
    times = [float(examined.times[k]) for k in jumps]
    bad = tuple((t - 1.0 / examined.clip.fps, t) for t in times)
    hint = "a T-pose that was added?" if jumps == [1] else ""
    return Finding(claim, False, float(len(jumps)), 0.0, "jumps", times[0], hint, bad)


def falls(examined: Examined) -> Finding:
    """In flight the mass centre follows gravity.

    Its acceleration is that of the parabolas that fit the path best, each over `SPAN`.
    """
    claim = "in flight the mass centre falls with g"
    if not examined.free or not examined.flights:
        return Finding(claim, None, where=_grounded(examined))
    fps, off = examined.clip.fps, np.zeros(len(examined.q))
    for a, b in examined.flights:
        window = max(3, min(2 * round(SPAN * fps / 2) + 1, b - a - 1 + (b - a) % 2))
        path = savgol_filter(examined.center[a:b], window, 2, deriv=2, delta=1.0 / fps, axis=0)
        off[a:b] = np.linalg.norm(path + [0.0, 0.0, ground_forces.G], axis=1) / ground_forces.G
    where = examined.mask(examined.flights)
    return examined.found(claim, 100.0 * off, 100.0 * FALL, "% of g off", where)


def spins(examined: Examined) -> Finding:
    """In flight the angular momentum about the mass centre stays."""
    claim = "in flight the angular momentum is constant"
    if not examined.free or not examined.flights:
        return Finding(claim, None, where=_grounded(examined))
    length = examined.size
    least = SLOW_SPIN * examined.clip.character.mass * length * math.sqrt(ground_forces.G * length)
    spin, off = examined.spin, np.zeros(len(examined.q))
    for a, b in examined.flights:
        mean = spin[a:b].mean(axis=0)
        size = max(float(np.linalg.norm(mean)), least / SPIN)
        off[a:b] = np.linalg.norm(spin[a:b] - mean, axis=1) / size
    where = examined.mask(examined.flights)
    return examined.found(claim, 100.0 * off, 100.0 * SPIN, "% off its mean", where)


def stands(examined: Examined) -> Finding:
    """Standing points stay where they first stood."""
    claim = "standing feet do not move"
    contacts = examined.contacts
    if contacts.sliding:
        return Finding(claim, None, where="it slides")
    if not contacts.on.any():
        return Finding(claim, None, where="nothing stands")
    at = feet.positions(examined.clip.character, contacts.points, examined.q)
    on = contacts.on
    if contacts.detected:
        still = STILL * math.sqrt(ground_forces.G * examined.size)
        on = smoothing.firm(contacts, speeds(at, examined.clip.fps) < still)
    far = np.zeros(on.shape)
    for i, column in enumerate(on.T):
        for a, b in runs(column & examined.whole):
            far[a:b, i] = np.linalg.norm(at[a:b, i] - at[a, i], axis=1)
    worst = int(far.max(axis=0).argmax())
    foot = contacts.points[worst].foot
    size, where = far.max(axis=1), np.asarray(on.any(axis=1))
    return examined.found(claim, 1000.0 * size, 1000.0 * STEADY, "mm", where, foot)


def keeps_limits(examined: Examined) -> Finding:
    """Joints stay inside their limits."""
    claim = "joint limits are kept"
    character = examined.clip.character
    bounds = excesses(character, examined.q)
    if not bounds:
        return Finding(claim, None, where="no joint has limits")
    # a slide's millimetre is as bad as half a degree
    kind = {joint.name: joint.kind for joint in character.joints}
    scale = [LIMIT / STRETCH if kind[bound.joint] == "slide" else 1.0 for bound in bounds]
    over = np.stack([bound.value * s for bound, s in zip(bounds, scale, strict=True)])
    worst = bounds[int(over.max(axis=1).argmax())]
    size = np.degrees(np.maximum(over.max(axis=0), 0.0))
    what = f"{worst.joint}, {worst.what}" if size.any() else ""
    everywhere = np.ones(len(size), dtype=bool)
    if kind[worst.joint] == "slide":
        size *= 1000.0 * STRETCH / math.degrees(LIMIT)
        return examined.found(claim, size, 1000.0 * STRETCH, "mm beyond", everywhere, what)
    return examined.found(claim, size, math.degrees(LIMIT), "degrees beyond", everywhere, what)


def is_explained(examined: Examined) -> Finding:
    """The ground explains what moves the root."""
    claim = "the ground explains the motion"
    if not examined.free:
        return Finding(claim, None, where="its root is fixed")
    unit = "% of body weight unexplained"
    return examined.found(claim, 100.0 * examined.left, 100.0 * RESIDUAL, unit, examined.calm)


def _grounded(examined: Examined) -> str:
    """Why there is no flight to look at."""
    if not examined.free:
        return "its root is fixed"
    flies = bool(examined.contacts.flight.any())
    return "its flights are too short to tell" if flies else "it never flies"
