"""M1, M2: pushes on the upper body while it stands (7.1, Fig. 7.2)."""

from __future__ import annotations

import math

from poise.experiments.macchietto2008 import wishes
from poise.experiments.macchietto2008.setup import (
    GROUNDS,
    STEADY,
    SUBSETS,
    Outcome,
    push_standing,
    stood_text,
)
from poise.experiments.report import Claim, Item, Table
from poise.math.arrays import Progress
from poise.simulation.pushes import Push

SERIES = (
    Push("chest", 150.0, "forward", 0.5),
    Push("head", 150.0, "left", 1.5),
    Push("chest", 150.0, "back", 2.5),
    Push("left_upper_arm", 150.0, "right", 3.5),
)
SERIES_TIME = 5.0  # [s]
WAYS = ("forward", "back", "left")
LADDER = (140.0, 160.0, 180.0, 200.0, 220.0, 240.0)
"""Pushes backwards on the head, one stronger than the other [N]."""
COLUMNS = ("objectives", "ground", "push", "outcome", "feet tilt [degrees]", "feet move [mm]",
           "largest torque [N·m]")  # fmt: skip


def m1(progress: Progress) -> Item:
    """A series of pushes of 150 N for 100 ms."""
    rows, found = [], {}
    tries = [(who, ground) for ground in GROUNDS for who in SUBSETS]
    for k, (who, ground) in enumerate(tries):
        out = push_standing([SERIES], who, ground, duration=SERIES_TIME)
        found[who, ground] = out
        rows.append(_row(who, ground, "series", out, 0))
        progress(0.5 * (k + 1) / len(tries))
    swept = wishes.sweep([SERIES], SERIES_TIME, lambda share: progress(0.5 + 0.5 * share))
    item = Item(
        "M1",
        "A series of pushes, 150 N for 100 ms each",
        "7.1",
        "Chest forward, head to the left, chest back, left upper arm to the right, one a second; "
        f"the thesis does not print where its pushes act. Feet are steady below {STEADY:g} "
        "degrees. Both grounds: the thesis's springs, and rigid contact with friction cones. Then "
        "with the thesis's own desired center of mass, in the middle of the feet and unbounded.",
        tables=[
            Table("what became of it", COLUMNS, rows),
            wishes.table(swept, ("series",)),
        ],
    )
    for ground in GROUNDS:
        everything, linear, track = (
            found[who, ground] for who in ("all", "tracking, linear", "tracking")
        )
        item.claims += [
            Claim(
                f"all objectives, {ground}: it stands, its feet are steady",
                "stands, feet steady",
                _text(everything),
                f"no fall, tilt below {STEADY:g} degrees",
                bool(everything.stood[0] and everything.tilt[0] < STEADY),
            ),
            Claim(
                f"tracking alone, {ground}: it stands, its feet teeter",
                "stands, feet teeter",
                _text(track),
                "no fall, tilt above that with all objectives",
                bool(track.stood[0] and track.tilt[0] > everything.tilt[0]),
                "On the rigid ground soles do not give way; on springs they do teeter.",
            ),
            Claim(
                f"tracking and linear, {ground}: it falls after the second push",
                "falls after the second push",
                _text(linear),
                "falls after 1.5 s",
                bool(not linear.stood[0] and linear.fell[0] > SERIES[1].at),
                "The desired center of mass is bounded here by what the supports can give. The "
                "thesis suspects that its own pulls too hard; the last claim tries that.",
            ),
        ]
    item.claims.append(
        wishes.claim(
            swept,
            "with the thesis's wish: all objectives stand, tracking and linear falls",
            "all stands, tracking and linear falls",
        )
    )
    return item


def m2(progress: Progress) -> Item:
    """One push of 220 N for 100 ms on the head."""
    cases = [(Push("head", 220.0, way, 0.5),) for way in WAYS]
    tries = [(who, ground) for ground in GROUNDS for who in SUBSETS]
    rows, found = [], {}
    for k, (who, ground) in enumerate(tries):
        out = push_standing(cases, who, ground, duration=3.5)
        found[who, ground] = out
        rows += [_row(who, ground, way, out, i) for i, way in enumerate(WAYS)]
        progress(0.5 * (k + 1) / len(tries))
    ladder = {ground: _ladder(ground) for ground in GROUNDS}
    swept = wishes.sweep(cases, 3.5, lambda share: progress(0.6 + 0.4 * share))
    item = Item(
        "M2",
        "One push on the head, 220 N for 100 ms",
        "7.1, Fig. 7.2",
        "Forward, back and to the left, while it stands; the thesis does not print from where. "
        "Backwards with all objectives also weaker and stronger ones: the heels are near.",
        tables=[
            Table("what became of it", COLUMNS, rows),
            Table(
                "backwards, all objectives",
                ("ground", *(f"{force:g} N" for force in LADDER)),
                [[ground, *map(stood_text, fell)] for ground, fell in ladder.items()],
            ),
            wishes.table(swept, WAYS),
        ],
    )
    for ground in GROUNDS:
        everything = found["all", ground]
        item.claims.append(
            Claim(
                f"all objectives, {ground}: it stands",
                "stands",
                _ways(everything),
                "stands in all three directions",
                bool(everything.stood.all()),
                f"Backwards it stands up to {_most(ladder[ground]):g} N of those tried: the mass "
                "center stays where the pose has it, near the heels. The last claim has it over "
                "the middle of the feet.",
            )
        )
        # each set by itself: one that falls does not speak for the other
        for who in ("tracking", "tracking, linear"):
            out = found[who, ground]
            item.claims.append(
                Claim(
                    f"{who} without the angular objective, {ground}: it falls",
                    "falls",
                    _ways(out),
                    "falls in a direction in which it stands with all",
                    bool((~out.stood & everything.stood).any()),
                    "The desired center of mass is bounded here by what the soles can give, and "
                    "may leave the angular objective little to mend; the last claim has another.",
                )
            )
    item.claims.append(
        wishes.claim(
            swept,
            "with the thesis's wish: all objectives stand, tracking and linear falls",
            "stands with the angular objective, falls without",
        )
    )
    return item


def _ladder(ground: str) -> list[float]:
    """When it falls under each push of the ladder [s]; inf where it does not."""
    cases = [(Push("head", force, "back", 0.5),) for force in LADDER]
    fell: list[float] = push_standing(cases, "all", ground, duration=3.5).fell.tolist()
    return fell


def _most(fell: list[float]) -> float:
    """The largest push of the ladder below which all are survived [N]."""
    most = 0.0
    for force, at in zip(LADDER, fell, strict=True):
        if math.isfinite(at):
            break
        most = force
    return most


def _row(who: str, ground: str, push: str, out: Outcome, i: int) -> list[object]:
    return [
        who, ground, push, stood_text(float(out.fell[i])), round(float(out.tilt[i]), 1),
        round(1e3 * float(out.moved[i]), 1), round(float(out.torque[i])),
    ]  # fmt: skip


def _text(out: Outcome) -> str:
    return f"{stood_text(float(out.fell[0]))}, feet tilt by {out.tilt[0]:.1f} degrees"


def _ways(out: Outcome) -> str:
    return ", ".join(
        f"{way}: {stood_text(float(t))}" for way, t in zip(WAYS, out.fell, strict=True)
    )
