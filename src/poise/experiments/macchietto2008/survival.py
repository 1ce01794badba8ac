"""M9 (ours): the largest push survived, by link, direction and objectives; and random ones.

The limit of each place is found by bisection: all places of one controller are copies in one world,
each with its own force. A force counts as survived if the character has not fallen when the time is
over. Left and right are alike: only the left half is searched, the rest is mirrored.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from poise.experiments.macchietto2008.setup import SERVO, SERVO_HZ, SUBSETS, Outcome, push_standing
from poise.experiments.report import Claim, Item, Table
from poise.math.arrays import Floats, Progress
from poise.simulation.pushes import Push

LINKS = ("head", "chest", "pelvis")
ANGLES = (0.0, 45.0, 90.0, 135.0, 180.0)
"""Directions, from forward to the left [degrees]."""
NAMES = ("forward", "forward left", "left", "back left", "back")
MOST, ROUNDS = 640.0, 5
"""Largest force tried [N], and halvings: the limit is known to a 32nd of it."""
AT, LASTS = 0.05, 3.0
"""When the push comes, and how long a copy is watched [s]."""
RANDOM, BATCH, SEED = 1000, 50, 11
"""Random pushes in all, in one world, and where chance begins."""
SHARE = 0.5
"""They are within this part of the limit."""


def m9(progress: Progress) -> Item:
    """The map, and random pushes within half of its limits."""
    whos = (*SUBSETS, SERVO)
    maps: dict[str, Floats] = {}
    for k, who in enumerate(whos):
        maps[who] = survival_map(who)
        progress(0.5 * (k + 1) / len(whos))
    out, _ = random_pushes(RANDOM, maps["all"], lambda share: progress(0.5 + 0.4 * share))
    servo, _ = random_pushes(RANDOM, maps["all"], lambda share: progress(0.9 + 0.1 * share),
                             who=SERVO)  # fmt: skip
    fallen, statues = (int((~each.stood).sum()) for each in (out, servo))
    item = Item(
        "M9",
        "The largest push survived, by body, direction and objectives",
        "ours",
        "100 ms, level, while it stands on the rigid ground; found by bisection to "
        f"{MOST / 2**ROUNDS:g} N, up to {MOST:g} N. {SERVO} holds the same pose without balance, "
        f"as a statue with joints of {SERVO_HZ:g} Hz. "
        f"Then {RANDOM} random pushes, of any direction, up to half of the limit of the link and "
        f"the nearest directions; the same for {SERVO}.",
        tables=[
            *(_table(who, maps[who]) for who in whos),
            _effort(out, "all"),
            _effort(servo, SERVO),
        ],
        figures={"M9": draw(maps)},
    )
    everything = maps["all"]
    item.claims = [
        Claim(
            "220 N on the head for 100 ms are within the map (M2)",
            "survived",
            f"limits on the head: {_range(everything[0])}",
            "220 N or more in every direction",
            bool((everything[0] >= 220.0).all()),
        ),
        *(_more(everything, maps[who], who) for who in whos if who != "all"),
        Claim(
            f"{RANDOM} random pushes within half of the limits: none falls",
            "-",
            f"{fallen} fall",
            "none",
            fallen == 0,
        ),
        Claim(
            f"under the same pushes {SERVO} without balance falls",
            "-",
            f"{statues} of {RANDOM} fall",
            "more than with balance",
            statues > fallen,
            "Within half of the limits a stiff statue stands, too; the maps differ beyond.",
        ),
    ]
    return item


@lru_cache(maxsize=8)
def survival_map(who: str) -> Floats:
    """The largest force survived [N], shape (links, angles), by bisection.

    Args:
        who: One of SUBSETS, or SERVO.
    """
    places = [(link, angle) for link in LINKS for angle in ANGLES]
    low, high = np.zeros(len(places)), np.full(len(places), MOST)
    for _ in range(ROUNDS):
        force = 0.5 * (low + high)
        cases = [(_push(*place, one),) for place, one in zip(places, force, strict=True)]
        stood = push_standing(cases, who, duration=LASTS).stood
        low, high = np.where(stood, force, low), np.where(stood, high, force)
    return low.reshape(len(LINKS), len(ANGLES))


def random_pushes(
    count: int,
    limits: Floats,
    progress: Progress | None = None,
    seed: int = SEED,
    who: str = "all",
) -> tuple[Outcome, list[Push]]:
    """Push at random within half of the limits.

    Args:
        count: How many.
        limits: As of `survival_map` [N].
        progress: Called with the share that is done, 0 to 1.
        seed: Where chance begins.
        who: One of SUBSETS, or SERVO.
    """
    rng = np.random.default_rng(seed)
    pushes = []
    for _ in range(count):
        i, angle = int(rng.integers(len(LINKS))), float(rng.uniform(-180.0, 180.0))
        most = SHARE * limit_at(limits[i], angle)
        pushes.append(_push(LINKS[i], angle, max(most * rng.uniform(), 1.0)))
    parts = []
    for a in range(0, count, BATCH):
        parts.append(push_standing([(one,) for one in pushes[a : a + BATCH]], who, duration=LASTS))
        if progress is not None:
            progress(min(1.0, (a + BATCH) / count))
    return Outcome(*(np.concatenate(each) for each in zip(*parts, strict=True))), pushes


def limit_at(row: Floats, angle: float) -> float:
    """The lesser limit of the two nearest directions of the map [N].

    Args:
        row: Limits of a link, shape (angles,).
        angle: Direction, either side [degrees].
    """
    place = abs(angle) / (ANGLES[1] - ANGLES[0])
    below = min(math.floor(place), len(ANGLES) - 1)
    return float(min(row[below], row[min(below + 1, len(ANGLES) - 1)]))


def draw(maps: dict[str, Floats]) -> bytes:
    """The map as a figure, PNG: one round plot for each link, one line for each controller."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from poise.experiments.figures import COLORS

    figure = Figure(figsize=(11, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    plots: Any = figure.subplots(1, len(LINKS), subplot_kw={"projection": "polar"})
    half = np.radians(ANGLES)
    angle = np.concatenate([half, 2.0 * np.pi - half[::-1]])
    for i, (link, axes) in enumerate(zip(LINKS, plots, strict=True)):
        for (who, found), color in zip(maps.items(), COLORS, strict=False):
            limits = np.concatenate([found[i], found[i][::-1]])
            axes.plot(angle, limits, color=color, lw=1.6, marker="o", markersize=3, label=who)
        axes.set_theta_zero_location("N")
        axes.set_xticks(np.radians([0, 90, 180, 270]), ["forward", "left", "back", "right"])
        axes.set_title(f"{link} [N]")
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    data = io.BytesIO()
    figure.savefig(data, dpi=110, format="png")
    return data.getvalue()


def _push(link: str, angle: float, force: float) -> Push:
    way = (math.cos(math.radians(angle)), math.sin(math.radians(angle)), 0.0)
    return Push(link, force, way, AT)


def _table(who: str, found: Floats) -> Table:
    rows = [[link, *(round(float(x)) for x in found[i])] for i, link in enumerate(LINKS)]
    return Table(f"{who}: largest force survived for 100 ms [N]", ("link", *NAMES), rows)


def _effort(out: Outcome, who: str) -> Table:
    """Energy, torque, limits and feet over the random pushes that were survived."""
    kept = out.stood
    rows = []
    for name, values, unit in (
        ("largest torque in a joint", out.torque, "N·m"),
        ("work of the joints, both ways", out.work, "J"),
        ("beyond a joint's limits", out.beyond, "degrees"),
        ("tilt of a foot", out.tilt, "degrees"),
        ("way of a foot", 1e3 * out.moved, "mm"),
    ):
        each = values[kept] if kept.any() else np.zeros(1)
        rows.append([f"{name} [{unit}]", *(round(float(x), 1) for x in (
            each.mean(), np.percentile(each, 95.0), each.max()))])  # fmt: skip
    title = f"{who}: {int(kept.sum())} of {len(kept)} random pushes survived"
    return Table(title, ("", "mean", "95 %", "most"), rows)


def _more(ours: Floats, theirs: Floats, who: str) -> Claim:
    """Whether all objectives survive more than another; less than a halving is no finding."""
    step = MOST / 2**ROUNDS
    gain = float((ours - theirs).mean())
    better, worse = int((ours > theirs).sum()), int((ours < theirs).sum())
    return Claim(
        f"all objectives survive more than {who}",
        "-",
        f"{ours.mean():.0f} N against {theirs.mean():.0f} N on the average; more in {better}, less "
        f"in {worse} of {ours.size} places",
        f"more by {step:g} N on the average, the step of the bisection",
        gain > step,
        "Likely: once the center of mass is asked only for what the soles can give, little is left "
        "for the angular objective. With the thesis's wish it decides at some gains (M1, M2).",
    )


def _range(row: Floats) -> str:
    return f"{row.min():.0f} to {row.max():.0f} N"
