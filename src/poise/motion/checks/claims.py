"""The physical claims about a clip: it falls with g, keeps its spin, stands, and needs no help.

A clip as the checks see it: flights, contacts, the forces that explain it; and a finding.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import savgol_filter

from poise import dynamics
from poise.anatomy.body import SIDES, body_of
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of, has_free_root, positions
from poise.anatomy.rest_pose import size_of
from poise.math.arrays import Floats, Mask, runs
from poise.motion.authoring import ground_forces
from poise.motion.clip import Clip
from poise.motion.editing import smoothing
from poise.motion.foot_contact.detect import detect_contacts, speeds
from poise.motion.limits import excesses

FALL = 0.05  # of g
SPIN = 0.10  # of the angular momentum
STEADY = 0.005  # [m]
RESIDUAL = 0.10  # of body weight, and of body weight times the height of the center of mass
LIMIT = math.radians(0.5)
STRETCH = 0.001  # of a slide's limits [m]
IMPACT = 0.05  # [s] before and after a touchdown
FRICTION = 0.8

EDGE = 1
"""Frames at the ends of a flight that do not count: there the spline still feels the ground."""

CUT = 2
"""Frames on either side of a cut that do not count."""

SPAN = 0.1
"""The acceleration of a fall is that of a parabola through so much of the path [s]."""

SLOW_SPIN = 0.02
"""Angular momentum below this is none, in units of m l sqrt(g l), l half the character's height."""

STILL = 0.04
"""Detected contacts begin and end while the foot still moves. They count from where it first is
slower than this part of sqrt(g size) to where it last is."""

BRIDGE = 0.05
"""Bad times closer than this are one [s]."""


Span = tuple[float, float]


class Finding(NamedTuple):
    """One check of a clip.

    Attributes:
        claim: What should be true.
        good: Whether it is; None: it does not apply.
        value: The worst number found.
        bound: What it may be.
        unit: Of both.
        time: When it is worst [s], or None.
        where: Which joint, foot or phase; of a check that does not apply, why.
        bad: Times in which it is not true [s].
        least: What the number must be at least; None: anything down to zero.
    """

    claim: str
    good: bool | None
    value: float = 0.0
    bound: float = 0.0
    unit: str = ""
    time: float | None = None
    where: str = ""
    bad: tuple[Span, ...] = ()
    least: float | None = None

    def __str__(self) -> str:
        mark = {True: "good", False: "BAD", None: "-"}[self.good]
        if self.good is None:
            return f"{mark:5}{self.claim}: {self.where}"
        least = "at most" if self.least is None else f"{self.least:.3g} to"
        value = f"{self.value:.3g} {self.unit}".rstrip()
        text = f"{mark:5}{self.claim}: {value} ({least} {self.bound:.3g})"
        text += f", {self.where}" if self.where else ""
        if self.good or self.time is None:
            return text
        return f"{text}, worst at {self.time:.2f} s; bad {spans(self.bad)}"

    def row(self) -> dict[str, Any]:
        """Ready for JSON."""
        return self._asdict() | {"bad": [list(span) for span in self.bad]}


def spans(bad: tuple[Span, ...], most: int = 6) -> str:
    """Times as text: the first few of them."""
    shown = [f"{a:.2f}..{b:.2f}" for a, b in bad[:most]]
    more = f" and {len(bad) - most} more" if len(bad) > most else ""
    return ", ".join(shown) + " s" + more


class Analysis:
    """Quantities of a clip that checks need; those that take long are computed at first use.

    Attributes:
        clip: The clip.
        q: Its frames, shape (k, nq).
        times: Of the frames [s], shape (k,).
        free: Whether the root is free.
        size: Of the character [m].
        parts: Stretches without a cut: first frame, frame after the last.
        jumps: Frames at which the pose is not what it was before: cuts.
        whole: Frames that are not beside a cut, shape (k,).
    """

    def __init__(self, clip: Clip) -> None:
        self.clip, self.q = clip, clip.frames
        self.times = np.arange(len(clip)) / clip.fps
        self.free, self.size = has_free_root(clip.character), size_of(clip.character)
        self.parts = smoothing.uncut_segments(clip)
        self.jumps = [a for a, _ in self.parts[1:]]
        self.whole = np.ones(len(clip), dtype=bool)
        for frame in self.jumps:
            self.whole[max(frame - CUT, 0) : frame + CUT] = False

    @cached_property
    def contacts(self) -> ContactSchedule:
        """Those the clip was made with; else detected, of hands too; none without feet.

        Contacts that were detected before an edit are detected anew, of the same points.
        """
        character, own = self.clip.character, self.clip.contacts
        if own is not None and not own.detected:
            return own
        points = feet_of(character) if own is None else own.points
        standing = {point.link for point in points}
        if not standing:
            return ContactSchedule((), np.zeros((len(self.clip), 0), dtype=bool))
        body = body_of(character)
        # of a dog the hands are feet, or carry them
        carriers = standing | {character.link(name).parent for name in standing}
        hands = [name for side in SIDES for name in body.chain("arm", side)[-1:]]
        hands = [x for x in hands if character.link(x).shapes and x not in carriers]
        return detect_contacts(self.clip, points, also=hands)

    @cached_property
    def rates(self) -> tuple[Floats, Floats]:
        """Velocities and accelerations, (k, nv) each, of the stretches between cuts."""
        v, a = np.zeros((2, len(self.q), self.clip.character.nv))
        for start, stop in self.parts:
            part = self.clip.with_frames(self.q[start:stop])
            t = self.times[: stop - start]
            v[start:stop], a[start:stop] = part.v(t), part.a(t)
        return v, a

    @cached_property
    def spin(self) -> Floats:
        """Angular momentum about the center of mass [N m s], (k, 3)."""
        v, _ = self.rates
        A, _ = dynamics.centroidal_momentum(self.clip.character, self.q, v)
        return np.asarray(np.einsum("kcv,kv->kc", A[:, 3:], v))

    @cached_property
    def center(self) -> Floats:
        """Center of mass [m], (k, 3)."""
        return dynamics.center_of_mass(self.clip.character, self.q)

    @cached_property
    def explained(self) -> ground_forces.GroundForces:
        points, on = self.contacts.points, self.contacts.on
        return ground_forces.find_ground_forces(
            self.clip.character, self.q, *self.rates, points, on, friction=FRICTION
        )

    @cached_property
    def left(self) -> Floats:
        """What the ground does not explain, in parts of body weight, (k,)."""
        left = self.explained.residual
        force, moment = (np.linalg.norm(x, axis=1) for x in (left[:, :3], left[:, 3:]))
        return np.asarray(np.maximum(force, moment))

    @cached_property
    def flights(self) -> list[tuple[int, int]]:
        """Frames of each flight, without those next to the ground or to a cut."""
        cut = [(a + EDGE * (a > 0), b - EDGE) for a, b in runs(self.contacts.flight)]
        whole = [(a + c, a + d) for a, b in cut if b > a for c, d in runs(self.whole[a:b])]
        return [(a, b) for a, b in whole if b - a >= 3]

    @cached_property
    def calm(self) -> Mask:
        """Frames outside of impacts and cuts, (k,)."""
        calm: Mask = self.whole.copy()
        reach = math.ceil(IMPACT * self.clip.fps)
        for _, start, _ in self.contacts.point_phases():
            if start > 0:
                calm[max(start - reach, 0) : start + reach + 1] = False
        return calm

    def found(
        self, claim: str, size: Floats, bound: float, unit: str, where: Mask, what: str = ""
    ) -> Finding:
        """The largest of numbers (k,) in some of the frames, and when they are beyond a bound."""
        if not where.any():
            return Finding(claim, None, where="no frame to look at")
        inside = np.where(where, size, -np.inf)
        k = int(inside.argmax())
        value, time = float(size[k]), float(self.times[k])
        bad = self.spans(np.asarray(inside > bound))
        return Finding(claim, value <= bound, value, bound, unit, time, what, bad)

    def spans(self, bad: Mask) -> tuple[Span, ...]:
        """Stretches of frames as times [s]; those close to each other are one."""
        joined: list[Span] = []
        for a, b in runs(bad):
            start, stop = float(self.times[a]), float(self.times[b - 1])
            if joined and start - joined[-1][1] < BRIDGE:
                start = joined.pop()[0]
            joined.append((start, stop))
        return tuple(joined)

    @cached_property
    def in_flight(self) -> Mask:
        """Frames of the flights of a free root, (k,)."""
        mask = np.zeros(len(self.q), dtype=bool)
        for a, b in self.flights if self.free else ():
            mask[a:b] = True
        return mask


# claims


def check_continuity(analysis: Analysis) -> Finding:
    """The pose does not jump from one frame to the next."""
    claim = "the pose does not jump"
    jumps = analysis.jumps
    if not jumps:
        return Finding(claim, True, 0.0, 0.0, "jumps")
    times = [float(analysis.times[k]) for k in jumps]
    bad = tuple((t - 1.0 / analysis.clip.fps, t) for t in times)
    hint = "a T-pose that was added?" if jumps == [1] else ""
    return Finding(claim, False, float(len(jumps)), 0.0, "jumps", times[0], hint, bad)


def check_free_fall(analysis: Analysis) -> Finding:
    """In flight the center of mass follows gravity.

    Its acceleration is that of the parabolas that fit the path best, each over `SPAN`.
    """
    claim = "in flight the center of mass falls with g"
    if not analysis.in_flight.any():
        return Finding(claim, None, where=_grounded(analysis))
    fps, off = analysis.clip.fps, np.zeros(len(analysis.q))
    for a, b in analysis.flights:
        window = max(3, min(2 * round(SPAN * fps / 2) + 1, b - a - 1 + (b - a) % 2))
        path = savgol_filter(analysis.center[a:b], window, 2, deriv=2, delta=1.0 / fps, axis=0)
        off[a:b] = np.linalg.norm(path + [0.0, 0.0, ground_forces.G], axis=1) / ground_forces.G
    return analysis.found(claim, 100.0 * off, 100.0 * FALL, "% of g off", analysis.in_flight)


def check_angular_momentum(analysis: Analysis) -> Finding:
    """In flight the angular momentum about the center of mass stays."""
    claim = "in flight the angular momentum is constant"
    if not analysis.in_flight.any():
        return Finding(claim, None, where=_grounded(analysis))
    length = analysis.size
    least = SLOW_SPIN * analysis.clip.character.mass * length * math.sqrt(ground_forces.G * length)
    spin, off = analysis.spin, np.zeros(len(analysis.q))
    for a, b in analysis.flights:
        mean = spin[a:b].mean(axis=0)
        size = max(float(np.linalg.norm(mean)), least / SPIN)
        off[a:b] = np.linalg.norm(spin[a:b] - mean, axis=1) / size
    return analysis.found(claim, 100.0 * off, 100.0 * SPIN, "% off its mean", analysis.in_flight)


def check_standing_feet(analysis: Analysis) -> Finding:
    """Standing points stay where they first stood."""
    claim = "standing feet do not move"
    contacts = analysis.contacts
    if contacts.sliding:
        return Finding(claim, None, where="it slides")
    if not contacts.on.any():
        return Finding(claim, None, where="nothing stands")
    at = positions(analysis.clip.character, contacts.points, analysis.q)
    on = contacts.on
    if contacts.detected:
        still = STILL * math.sqrt(ground_forces.G * analysis.size)
        on = smoothing.still_contacts(contacts, speeds(at, analysis.clip.fps) < still)
    far = np.zeros(on.shape)
    for i, column in enumerate(on.T):
        for a, b in runs(column & analysis.whole):
            far[a:b, i] = np.linalg.norm(at[a:b, i] - at[a, i], axis=1)
    worst = int(far.max(axis=0).argmax())
    foot = contacts.points[worst].foot
    size, where = far.max(axis=1), np.asarray(on.any(axis=1))
    return analysis.found(claim, 1000.0 * size, 1000.0 * STEADY, "mm", where, foot)


def check_limits(analysis: Analysis) -> Finding:
    """Joints stay inside their limits."""
    claim = "joint limits are kept"
    character = analysis.clip.character
    bounds = excesses(character, analysis.q)
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
        return analysis.found(claim, size, 1000.0 * STRETCH, "mm beyond", everywhere, what)
    return analysis.found(claim, size, math.degrees(LIMIT), "degrees beyond", everywhere, what)


def check_ground_reaction(analysis: Analysis) -> Finding:
    """The ground explains what moves the root."""
    claim = "the ground explains the motion"
    if not analysis.free:
        return Finding(claim, None, where="its root is fixed")
    unit = "% of body weight unexplained"
    return analysis.found(claim, 100.0 * analysis.left, 100.0 * RESIDUAL, unit, analysis.calm)


def _grounded(analysis: Analysis) -> str:
    """Why there is no flight to look at."""
    if not analysis.free:
        return "its root is fixed"
    flies = bool(analysis.contacts.flight.any())
    return "its flights are too short to check" if flies else "it never flies"
