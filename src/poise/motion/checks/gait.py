"""Gaits: strides found from footfalls, and whether they are ones that people or dogs have.

A stride lasts from a touchdown of a foot to its next; the duty factor is the part of it in which
the foot stands, the phase of another foot the part after which that one touches down. Names go by
the footfalls, as Hildebrand 1965 (Science 150:701) and 1977 (Bioscience 27:766) have them:

    two legs     half a stride apart: walk if the duty factor is above one half, else run
    four legs    both pairs half a stride apart (symmetrical): pace if left hind and left fore come
                 together, trot if left hind and right fore do, walk in between;
                 else canter if one hind comes together with the opposite fore, or gallop

Published ranges are in `RANGES`. Both halves of a symmetrical gait should mirror each other.

How people and dogs walk and run: published ranges of speed, cadence, length and duty factor.

Each range spans what healthy adults, or sound dogs, do from slow to fast: wide enough for what has
been measured, too narrow for what has not. The figures hold for a leg (hip to ground) of `LEG`
metres. Others move alike at equal Froude numbers v^2 / (g l) (Alexander and Jayes 1983, J. Zool.
201:135): speeds scale with sqrt(l), lengths with l, cadences with 1 / sqrt(l).

`seen` marks the sources that were read for this table; the others are quoted from memory, and their
bounds are rounded outwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poise.anatomy.body import SIDES, body_of
from poise.anatomy.feet import feet_of, positions
from poise.anatomy.names import OTHER_SIDE
from poise.anatomy.rest_pose import rest_pose, size_of
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats, Mask, runs
from poise.model.character import Character
from poise.motion.checks.claims import Analysis, Finding
from poise.motion.clip import Clip
from poise.motion.editing.mirroring import Mirror

# published ranges

LEG = {"person": 0.90, "dog": 0.50}
"""Leg that the figures are of [m]: a person of 1.70 m; a shepherd of 0.6 m at the withers."""


class Range(NamedTuple):
    """What a number may be.

    Attributes:
        least: Smallest.
        most: Largest.
        source: Publication.
        seen: Whether the figures were read there, or are quoted from memory.
    """

    least: float
    most: float
    source: str
    seen: bool = False


class Ranges(NamedTuple):
    """Of one gait: speed [m/s], cadence [steps/min; strides/min of a dog], length of a step (of a
    dog's stride) [m], duty factor (part of the stride in which a foot stands)."""

    speed: Range
    cadence: Range
    length: Range
    duty: Range


MURRAY = "Murray, Drought and Kory 1964, J. Bone Joint Surg. 46-A:335"
OBERG = "Oberg, Karsznia and Oberg 1993, J. Rehabil. Res. Dev. 30:210, slow to fast"
TURN_TO_RUN = (
    "people begin to run at 1.9 to 2.1 m/s and 135 to 140 steps/min: Hum. Mov. Sci. 90:103117"
)
HOGBERG = "Hogberg 1952, Arbeitsphysiologie 14:431: at most 2.10 to 2.18 m"
NOVACHECK = "Novacheck 1998, Gait & Posture 7:77"
WEYAND = "Weyand et al. 2000, J. Appl. Physiol. 89:1991"
MAES = "Maes et al. 2008, J. Exp. Biol. 211:138: malinois from 0.4 to 10 m/s"
SWITCH = (
    "mongrels walked up to 0.93 to 1.21 m/s and switched to the gallop at 1.5 to 2.6 m/s: "
    "Gait transitions during unrestrained locomotion in dogs"
)
HEGLUND = "Heglund and Taylor 1988, J. Exp. Biol. 138:301"
JAYES = "Jayes and Alexander 1978, J. Zool. 185:289"
PACE = "three German shepherds paced at 2.4 m/s: J. Bionic Eng.; its limits are those of the trot"

RANGES: dict[str, Ranges] = {
    "walk": Ranges(
        Range(0.6, 2.1, TURN_TO_RUN, seen=True),
        Range(70.0, 140.0, f"{OBERG}; {TURN_TO_RUN}"),
        Range(0.45, 1.00, f"{OBERG}; {MURRAY}"),
        Range(0.54, 0.72, f"{MURRAY}: 0.61 at free speed, less when fast"),
    ),
    "run": Ranges(
        Range(1.8, 10.5, f"{TURN_TO_RUN}; {WEYAND}"),
        Range(135.0, 280.0, WEYAND),
        Range(0.60, 2.40, HOGBERG, seen=True),
        Range(0.18, 0.50, f"{NOVACHECK}: 0.39 running to 0.22 of elite sprinters"),
    ),
    "dog walk": Ranges(
        Range(0.4, 1.5, SWITCH, seen=True),
        Range(40.0, 120.0, MAES),
        Range(0.40, 1.10, MAES),
        Range(0.52, 0.80, JAYES),
    ),
    "dog pace": Ranges(
        Range(1.0, 4.0, PACE, seen=True),
        Range(80.0, 180.0, HEGLUND),
        Range(0.60, 1.80, MAES),
        Range(0.28, 0.62, JAYES),
    ),
    "dog trot": Ranges(
        Range(1.0, 4.5, f"{SWITCH}; {HEGLUND}"),
        Range(80.0, 180.0, HEGLUND),
        Range(0.60, 1.90, MAES),
        Range(0.28, 0.60, JAYES),
    ),
    "dog canter": Ranges(
        Range(1.5, 6.0, f"{SWITCH}; {MAES}"),
        Range(90.0, 200.0, HEGLUND),
        Range(0.80, 2.60, MAES),
        Range(0.20, 0.55, JAYES),
    ),
    "dog gallop": Ranges(
        Range(1.5, 12.0, f"{SWITCH}; {MAES}"),
        Range(90.0, 230.0, HEGLUND),
        Range(0.80, 3.80, MAES),
        Range(0.15, 0.50, JAYES),
    ),
}


def scale_ranges(gait: str, leg: float) -> Ranges:
    """The ranges of a gait for a leg of another length [m]."""
    size = leg / LEG["dog" if gait.startswith("dog") else "person"]
    factors = math.sqrt(size), 1.0 / math.sqrt(size), size, 1.0
    return Ranges(
        *(
            one._replace(least=one.least * factor, most=one.most * factor)
            for one, factor in zip(RANGES[gait], factors, strict=True)
        )
    )


# strides and gaits

MIRROR = 2.0  # [degrees]
UNEVEN = 0.25  # strides of a gait differ by less from their median
HALF = 0.12  # of half a stride: the feet of a pair in a symmetrical gait
TOGETHER = 0.125  # of a stride: Hildebrand's eighths
LOOP = 20.0  # [degrees]: joints of a loop differ by less from its first frame to its last
EVEN = 0.06  # of half the height: places of both sides at rest
TRAVEL = 0.2  # of the leg: a gait travels further in a stride

Foot = tuple[str, str]
"""Limb and side: ("leg", "left")."""


@dataclass(frozen=True)
class Stride:
    """A steady gait.

    Attributes:
        period: Of a stride [s].
        start: First footfall of the foot that counts [s].
        stop: Its last [s].
        speed: Over the ground [m/s].
        phases: Part of a stride after which each foot touches down, from 0 to 1.
        duty: Part of a stride in which each foot stands.
        leg: Length of the leg [m].
    """

    period: float
    start: float
    stop: float
    speed: float
    phases: dict[Foot, float]
    duty: dict[Foot, float]
    leg: float

    def lag(self, foot: Foot, other: Foot) -> float:
        """Part of a stride by which another foot comes later, from -0.5 to 0.5."""
        return (self.phases[other] - self.phases[foot] + 0.5) % 1.0 - 0.5

    @property
    def legs(self) -> int:
        return len(self.phases)

    @cached_property
    def symmetrical(self) -> bool:
        """Whether the feet of each pair are half a stride apart."""
        limbs = {limb for limb, _ in self.phases}
        lags = [abs(self.lag((limb, "left"), (limb, "right"))) for limb in limbs]
        return all(lag > 0.5 - HALF for lag in lags)

    @cached_property
    def name(self) -> str:
        """Of the gait; "" if it has none."""
        duty = float(np.mean(list(self.duty.values())))
        if self.legs == 2:
            return ("walk" if duty > 0.5 else "run") if self.symmetrical else ""
        left, right = (self._lag(side, side) for side in ("left", "right"))
        crossed = self._lag("left", "right"), self._lag("right", "left")
        if self.symmetrical:
            if max(left, right) < TOGETHER:
                return "dog pace"
            if max(crossed) < TOGETHER:
                return "dog trot"
            return "dog walk" if duty > 0.5 else ""
        return "dog canter" if min(crossed) < TOGETHER else "dog gallop"

    def _lag(self, hind: str, fore: str) -> float:
        return abs(self.lag(("leg", hind), ("arm", fore)))


def findings(analysis: Analysis) -> list[Finding]:
    """What there is to say about a gait; one finding if there is none."""
    claim = "the gait is one that is known"
    try:
        stride = stride_of(analysis)
    except ClipError as error:
        return [Finding(claim, None, where=str(error))]
    if not stride.name:
        return [Finding(claim, None, where="its footfalls are those of no gait in the table")]
    return [*check_ranges(stride), mirrors(analysis, stride)]


def stride_of(analysis: Analysis) -> Stride:
    """Find the strides of a clip, or say in a ClipError why there is no steady gait.

    A clip of one stride that ends as it began is taken as a loop.
    """
    character, clip = analysis.clip.character, analysis.clip
    contacts = analysis.contacts
    if not analysis.free or contacts.sliding:
        raise ClipError("it does not walk on feet")
    feet = {p: foot for p, foot in pairs_of_feet(character).items() if foot in contacts.feet}
    if len(feet) not in (2, 4):
        raise ClipError("it does not stand on two or four feet, left and right")
    on = {place: contacts.standing(foot) for place, foot in feet.items()}
    falls = {place: _touchdowns(x, analysis.whole) for place, x in on.items()}
    looped = max(map(len, falls.values())) < 2 and loops(clip)
    if looped:
        on = {place: np.tile(x[:-1], 3) for place, x in on.items()}
        falls = {place: _touchdowns(x, np.ones(len(x), dtype=bool)) for place, x in on.items()}
    if not all(falls.values()) or max(map(len, falls.values())) < 2:
        raise ClipError("it makes no whole stride")
    strides = [b - a for fall in falls.values() for a, b in pairwise(fall)]
    period = float(np.median(strides))
    if max(abs(s - period) for s in strides) > UNEVEN * period:
        raise ClipError("its strides are uneven: not a steady gait")
    main = max(falls.values(), key=len)
    start, stop = (0, len(clip) - 1) if looped else (main[0], main[-1])
    far = float(np.linalg.norm(analysis.center[stop, :2] - analysis.center[start, :2]))
    leg = leg_of(character)
    if far * period / (stop - start) < TRAVEL * leg:
        raise ClipError("it stays in place: not a gait that travels")
    return Stride(
        period=period / clip.fps,
        start=start / clip.fps,
        stop=stop / clip.fps,
        speed=far * clip.fps / (stop - start),
        phases={place: _phase(fall, main[0], period) for place, fall in falls.items()},
        duty={place: _duty(x, period) for place, x in on.items()},
        leg=leg,
    )


def loops(clip: Clip) -> bool:
    """Whether a clip ends in the pose in which it began, but for where it is."""
    character, (first, last) = clip.character, clip.frames[[0, -1]][:, None]
    off = [
        _angle(joint.kind, first[:, at], last[:, at]).max()
        for joint in character.joints[1:]
        for at in [character.q_slice(joint)]
        if joint.kind != "slide"
    ]
    return max(off, default=0.0) < LOOP


def pairs_of_feet(character: Character) -> dict[Foot, str]:
    """The feet of a character by limb and side."""
    body = body_of(character)
    found: dict[Foot, str] = {}
    for foot in dict.fromkeys(point.foot for point in feet_of(character)):
        # toes and claws may have no name of their own: then they are what they hang on
        place = body.limb_of(foot)
        if place is not None and place[1]:
            found.setdefault(place, foot)
    return {(limb, s): foot for (limb, s), foot in found.items() if (limb, OTHER_SIDE[s]) in found}


def leg_of(character: Character) -> float:
    """Height of the hips above the ground at rest [m]; of the hind legs, if there are four."""
    body = body_of(character)
    ground = float(positions(character, feet_of(character), character.rest_q)[..., 2].min())
    thighs = [name for side in SIDES for name in body.get("leg", side, "thigh")[:1]]
    hips = [body.rest.position(name)[2] - ground for name in thighs]
    if not hips or min(hips) <= 0.0:
        raise ClipError("it has no hips above the ground")
    return float(np.mean(hips))


def check_ranges(stride: Stride) -> list[Finding]:
    """Speed, cadence, length and duty factor against the published ranges."""
    name = stride.name
    ranges = scale_ranges(name, stride.leg)
    steps = 2.0 if stride.legs == 2 else 1.0
    what = "steps" if stride.legs == 2 else "strides"
    values = (
        ("speed", stride.speed, "m/s", ranges.speed),
        ("cadence", 60.0 * steps / stride.period, f"{what}/min", ranges.cadence),
        (f"{what[:-1]} length", stride.speed * stride.period / steps, "m", ranges.length),
        ("duty factor", float(np.mean(list(stride.duty.values()))), "", ranges.duty),
    )
    found = []
    for label, value, unit, bound in values:
        good = bool(bound.least <= value <= bound.most)
        claim = f"the {label} is one of a {name}"
        source = "" if good else bound.source + ("" if bound.seen else " (from memory)")
        found.append(Finding(claim, good, value, bound.most, unit, where=source, least=bound.least))
    return found


def mirrors(analysis: Analysis, stride: Stride) -> Finding:
    """Both halves of a symmetrical gait mirror each other: joints, and the tilt of the root."""
    claim = "both halves of the gait mirror each other"
    if not stride.symmetrical:
        return Finding(claim, None, where=f"a {stride.name} is not symmetrical")
    clip, half = analysis.clip, stride.period / 2.0
    times = analysis.times[analysis.times <= clip.duration - half + 1e-9]
    times = times[(times >= stride.start - 1e-9) & (times < stride.stop)]
    if not len(times):
        return Finding(claim, None, where="less than a stride and a half")
    try:
        off = mirror_angles(clip.character, clip.q(times), clip.q(times + half))
    except ClipError as error:
        return Finding(claim, None, where=str(error))
    joint = max(off, key=lambda name: float(off[name].max()))
    size, where = np.zeros(len(analysis.q)), np.zeros(len(analysis.q), dtype=bool)
    frames = np.rint(times * clip.fps).astype(int)
    size[frames], where[frames] = np.max(list(off.values()), axis=0), True
    return analysis.found(claim, size, MIRROR, "degrees", where, joint)


def mirror_angles(character: Character, q: Floats, later: Floats) -> dict[str, Floats]:
    """Angles between poses and the mirror images of others, by joint [degrees], (k,) each.

    Of the root it is the angle between the directions up, seen from it: its tilt.
    """
    mirror, body = Mirror.of(character), body_of(character)
    if abs(body.left[1]) < 0.99:
        raise ClipError("it does not look along x at rest: the mirror stands elsewhere")
    if not _is_symmetric(character):
        raise ClipError("it does not stand alike on both sides at rest: the mirror says nothing")
    places = {j.name: body.where(link.name) for link in character.links for j in link.joints}
    off: dict[str, Floats] = {}
    for joint in character.joints[1:]:
        place = places[joint.name]
        # fingers and what else is no limb may be held as they like
        if place is None or joint.kind == "slide":
            continue
        if place[1] and mirror.joint(joint.name) == joint:
            raise ClipError(f"joint {joint.name!r} has no side, left or right, in its name")
        other = mirror.joint(joint.name)
        image = mirror.values(joint.name, q[:, character.q_slice(joint)])
        now = later[:, character.q_slice(other)]
        off[other.name] = _angle(joint.kind, image, now)
    up, image = _up(character, later), mirror.places(_up(character, q))
    across = np.linalg.norm(np.cross(up, image), axis=1)
    tilt = np.arctan2(across, np.sum(up * image, axis=1))
    return off | {character.joints[0].name: np.degrees(tilt)}


def _up(character: Character, q: Floats) -> Floats:
    """Direction up seen from the root link, in the axes of its rest pose, (k, 3)."""
    seen = rotation.rotate(rotation.conjugate(q[:, 3:7]), np.array([0.0, 0.0, 1.0]))
    return rotation.rotate(rest_pose(character).R[0], seen)


def _is_symmetric(character: Character) -> bool:
    """Whether the links of both sides rest in mirrored places, all but."""
    mirror = Mirror.of(character)
    off = [mirror.asymmetry(link) for link, image in mirror.pairs.items() if link != image]
    return max(off, default=0.0) < EVEN * size_of(character)


def _angle(kind: str, x: Floats, y: Floats) -> Floats:
    """Angles between positions of a ball or hinge, (k, 4) or (k, 1) [degrees], (k,)."""
    if kind == "ball":
        turn = rotation.multiply(rotation.conjugate(x), y)
        return np.asarray(np.degrees(np.linalg.norm(rotation.log(turn), axis=1)))
    return np.asarray(np.degrees(np.abs(x - y)[:, 0]))


def _touchdowns(on: Mask, whole: Mask) -> list[int]:
    """Frames in which a foot comes down, not counting those where the pose jumps."""
    return [a for a, _ in runs(on) if a > 0 and whole[a]]


def _phase(falls: list[int], start: int, period: float) -> float:
    """Mean part of a stride after which a foot comes, as an angle has a mean."""
    turns = 2.0 * np.pi * (np.array(falls) - start) / period
    return float(np.angle(np.exp(1j * turns).mean()) / (2.0 * np.pi) % 1.0)


def _duty(on: Mask, period: float) -> float:
    """Part of a stride in which a foot stands, by whole stances and whole swings."""
    stances = [b - a for a, b in runs(on) if a > 0 and b < len(on)]
    if stances:
        return float(np.mean(stances)) / period
    swings = [b - a for a, b in runs(~on) if a > 0 and b < len(on)]
    return 1.0 - float(np.mean(swings)) / period if swings else float(np.mean(on))
