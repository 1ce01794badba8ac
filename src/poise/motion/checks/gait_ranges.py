"""How people and dogs walk and run: published ranges of speed, cadence, length and duty factor.

Each range spans what healthy adults, or sound dogs, do from slow to fast: wide enough for what has
been measured, too narrow for what has not. The figures hold for a leg (hip to ground) of `LEG`
metres. Others move alike at equal Froude numbers v^2 / (g l) (Alexander and Jayes 1983, J. Zool.
201:135): speeds scale with sqrt(l), lengths with l, cadences with 1 / sqrt(l).

`seen` tells which sources were read for this table; the others are quoted from memory, and their
bounds are rounded outwards.
"""

from __future__ import annotations

import math
from typing import NamedTuple

LEG = {"person": 0.90, "dog": 0.50}
"""Leg that the figures are of [m]: a person of 1.70 m; a shepherd of 0.6 m at the withers."""


class Range(NamedTuple):
    """What a number may be.

    Attributes:
        least: Smallest.
        most: Largest.
        source: Who measured it.
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


def scaled(gait: str, leg: float) -> Ranges:
    """The ranges of a gait for a leg of another length [m]."""
    ranges = RANGES[gait]
    size = leg / LEG["dog" if gait.startswith("dog") else "person"]
    speed, cadence, length, duty = ranges
    return Ranges(
        _times(speed, math.sqrt(size)),
        _times(cadence, 1.0 / math.sqrt(size)),
        _times(length, size),
        duty,
    )


def _times(x: Range, factor: float) -> Range:
    return x._replace(least=x.least * factor, most=x.most * factor)
