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

from poise.experiments.figures import COLORS, new_figure, png
from poise.experiments.macchietto2008.setup import SERVO, SUBSETS, Outcome, push_standing
from poise.experiments.macchietto2008.setup import SERVO_HZ as SERVO_HZ
from poise.experiments.report import Claim, Item, Table, experiment
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
PRECISION = MOST / 2**ROUNDS
"""Step of the bisection [N]."""
RANDOM, BATCH, SEED = 1000, 50, 11
"""Random pushes in all, in one world, and their seed."""
FRACTION = 0.5
"""They are within this fraction of the limit."""


@experiment("M9", "The largest push survived, by body, direction and objectives", "ours")
def m9(item: Item, progress: Progress) -> None:
    """100 ms, level, while it stands on the rigid ground; found by bisection to {PRECISION:g} N, up
    to {MOST:g} N. {SERVO} holds the same pose without balance, as a statue with joints of
    {SERVO_HZ:g} Hz. Then {RANDOM} random pushes, of any direction, up to half of the limit of the
    link and the nearest directions; the same for {SERVO}.
    """
    methods = (*SUBSETS, SERVO)
    maps: dict[str, Floats] = {}
    for k, method in enumerate(methods):
        maps[method] = survival_map(method)
        item.tables.append(_table(method, maps[method]))
        progress(0.5 * (k + 1) / len(methods))
    everything = maps["all"]
    item.claim(
        "220 N on the head for 100 ms are within the map (M2)",
        "survived",
        f"limits on the head: {everything[0].min():.0f} to {everything[0].max():.0f} N",
        "220 N or more in every direction",
        bool((everything[0] >= 220.0).all()),
    )
    item.claims += [
        _more(everything, maps[method], method) for method in methods if method != "all"
    ]
    out, _ = random_pushes(RANDOM, everything, lambda done: progress(0.5 + 0.4 * done))
    servo, _ = random_pushes(
        RANDOM, everything, lambda done: progress(0.9 + 0.1 * done), method=SERVO
    )
    fallen, statues = (int((~each.stood).sum()) for each in (out, servo))
    item.claim(
        f"{RANDOM} random pushes within half of the limits: none falls",
        "-",
        f"{fallen} fall",
        "none",
        fallen == 0,
    )
    item.claim(
        f"under the same pushes {SERVO} without balance falls",
        "-",
        f"{statues} of {RANDOM} fall",
        "more than with balance",
        statues > fallen,
        "Within half of the limits a stiff statue stands, too; the maps differ beyond.",
    )
    item.tables += [_effort(out, "all"), _effort(servo, SERVO)]
    item.figures["M9"] = draw(maps)


@lru_cache(maxsize=8)
def survival_map(method: str) -> Floats:
    """The largest force survived [N], shape (links, angles), by bisection.

    Args:
        method: One of SUBSETS, or SERVO.
    """
    places = [(link, angle) for link in LINKS for angle in ANGLES]
    low, high = np.zeros(len(places)), np.full(len(places), MOST)
    for _ in range(ROUNDS):
        force = 0.5 * (low + high)
        cases = [(_push(*place, one),) for place, one in zip(places, force, strict=True)]
        stood = push_standing(cases, method, duration=LASTS).stood
        low, high = np.where(stood, force, low), np.where(stood, high, force)
    return low.reshape(len(LINKS), len(ANGLES))


def random_pushes(
    count: int,
    limits: Floats,
    progress: Progress | None = None,
    seed: int = SEED,
    method: str = "all",
) -> tuple[Outcome, list[Push]]:
    """Push at random within half of the limits.

    Args:
        count: How many.
        limits: As of `survival_map` [N].
        progress: Called with the completed fraction, 0 to 1.
        seed: Of the random numbers.
        method: One of SUBSETS, or SERVO.
    """
    rng = np.random.default_rng(seed)
    pushes = []
    for _ in range(count):
        i, angle = int(rng.integers(len(LINKS))), float(rng.uniform(-180.0, 180.0))
        most = FRACTION * limit_at(limits[i], angle)
        pushes.append(_push(LINKS[i], angle, max(most * rng.uniform(), 1.0)))
    parts = []
    for a in range(0, count, BATCH):
        parts.append(
            push_standing([(one,) for one in pushes[a : a + BATCH]], method, duration=LASTS)
        )
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
    figure = new_figure(11, 4.4)
    plots: Any = figure.subplots(1, len(LINKS), subplot_kw={"projection": "polar"})
    half = np.radians(ANGLES)
    angle = np.concatenate([half, 2.0 * np.pi - half[::-1]])
    for i, (link, axes) in enumerate(zip(LINKS, plots, strict=True)):
        for (method, found), color in zip(maps.items(), COLORS, strict=False):
            limits = np.concatenate([found[i], found[i][::-1]])
            axes.plot(angle, limits, color=color, lw=1.6, marker="o", markersize=3, label=method)
        axes.set_theta_zero_location("N")
        axes.set_xticks(np.radians([0, 90, 180, 270]), ["forward", "left", "back", "right"])
        axes.set_title(f"{link} [N]")
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return png(figure)


def _push(link: str, angle: float, force: float) -> Push:
    way = (math.cos(math.radians(angle)), math.sin(math.radians(angle)), 0.0)
    return Push(link, force, way, AT)


def _table(method: str, found: Floats) -> Table:
    rows = [[link, *(round(float(x)) for x in found[i])] for i, link in enumerate(LINKS)]
    return Table(f"{method}: largest force survived for 100 ms [N]", ("link", *NAMES), rows)


def _effort(out: Outcome, method: str) -> Table:
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
    title = f"{method}: {int(kept.sum())} of {len(kept)} random pushes survived"
    return Table(title, ("", "mean", "95 %", "most"), rows)


def _more(ours: Floats, theirs: Floats, method: str) -> Claim:
    """Whether all objectives survive more than another; less than a halving is no finding."""
    gain = float((ours - theirs).mean())
    better, worse = int((ours > theirs).sum()), int((ours < theirs).sum())
    return Claim(
        f"all objectives survive more than {method}",
        "-",
        f"{ours.mean():.0f} N against {theirs.mean():.0f} N on the average; more in {better}, less "
        f"in {worse} of {ours.size} places",
        f"more by {PRECISION:g} N on the average, the step of the bisection",
        gain > PRECISION,
        "Likely: once the desired center of mass is bounded by what the soles can give, little is "
        "left for the angular objective. Unbounded as in the thesis it decides at some gains (M1, "
        "M2).",
    )
