"""M1, M2 with the thesis's own wish for the center of mass, over a range of its gain.

Balance bounds what it asks of the center of mass by what the soles can give (`max_cmp_offset`), and
lets it be where the motion has it. The thesis bounds nothing and draws it to the middle of the feet
(5.9); it prints no gains. So both are tried at several k_s, critically damped, on the thesis's
ground.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from poise.experiments.macchietto2008.setup import Outcome, push_standing, stood_text
from poise.experiments.report import Claim, Table
from poise.math.arrays import Progress
from poise.simulation.pushes import Push

STIFFNESSES = (15.0, 25.0, 40.0, 60.0)
"""k_s of the center of mass that are tried [1/s²]."""
PAIR = ("all", "tracking, linear")

Found = dict[tuple[str, float], Outcome]


def thesis_wish(k_s: float) -> dict[str, Any]:
    """Settings of a balance that asks of the center of mass what the thesis does."""
    return {
        "desired_com": (0.0, 0.0),
        "max_cmp_offset": math.inf,
        "linear_gains": (k_s, 2.0 * math.sqrt(k_s)),
    }


def sweep(cases: Sequence[Sequence[Push]], duration: float, progress: Progress) -> Found:
    """What becomes of pushes with and without the angular objective, at each k_s."""
    found: Found = {}
    tries = [(who, k_s) for k_s in STIFFNESSES for who in PAIR]
    for i, (who, k_s) in enumerate(tries):
        found[who, k_s] = push_standing(
            cases, who, "penalty", duration=duration, **thesis_wish(k_s)
        )
        progress((i + 1) / len(tries))
    return found


def table(found: Found, names: Sequence[str]) -> Table:
    """Outcome and tilt of each case."""
    rows = []
    for (who, k_s), out in found.items():
        each = zip(out.fell.tolist(), out.tilt.tolist(), strict=True)
        rows.append([f"{k_s:g}", who, *(f"{stood_text(t)}, tilt {x:.1f}" for t, x in each)])
    title = "the thesis's wish for the center of mass, penalty, by its k_s [1/s²]; tilt in degrees"
    return Table(title, ("k_s", "objectives", *names), rows)


def claim(found: Found, what: str, paper: str) -> Claim:
    """Whether at some k_s all objectives stand in every case, and without the angular one not."""
    does = [
        k_s
        for k_s in STIFFNESSES
        if found["all", k_s].stood.all() and not found["tracking, linear", k_s].stood.all()
    ]
    tried = ", ".join(f"{k_s:g}" for k_s in STIFFNESSES)
    here = ", ".join(f"{k_s:g}" for k_s in does) or "none"
    return Claim(
        what,
        paper,
        f"so at k_s {here} of {tried}",
        "so at one of the k_s that were tried, on the thesis's ground",
        bool(does),
        "The thesis prints no gains. These were chosen after others had been tried; none was found "
        "that does so both in M1 and in M2.",
    )
