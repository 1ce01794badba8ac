"""Y4, Y5, Y8: frames per second of the methods, what stable PD adds, and growth with size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import poise
from poise.experiments import figures
from poise.experiments.report import Claim, Item, Table
from poise.experiments.timing import best
from poise.experiments.yin2020.setup import METHODS, Tracker, clip_of, table_2

ROWS = 20  # steps in one call
EXTRA = {  # Table 3 [%]
    "humanoid": (31.1, 18.2, 2.1),
    "dog": (44.3, 25.7, 3.6),
    "snake-36": (28.0, 28.3, 1.7),
    "snake-72": (39.9, 53.9, 2.5),
    "snake-195": (64.4, 86.3, 3.7),
}
CHAINS = (8, 16, 32, 64, 128, 256, 512)  # ball joints

Progress = Callable[[float], None]


def step_time(clip: poise.Clip, dt: float, method: str, form: str = "spd") -> float:
    """Seconds of a step of one character, float64, one thread.

    MABA is embedded; the others form torques first and let the dynamics solve again, as in the
    paper.
    """
    world = poise.World(clip.character, dt=dt, ground=False, contact=None, threads=1)
    world.reset(clip.state(0.0))
    servo = Tracker(world, method, form, embedded=method == "maba")
    if form == "pd":  # explicit PD takes as long with gains that it can stand
        servo.gains = poise.Gains(world, 1e-3, 1e-4)
    start = world.state.copy()
    command = servo(None, clip.targets(dt, dt, ROWS))

    def steps() -> None:
        world.reset(start)
        world.step(command, steps=ROWS)

    long = clip.character.nv > 100 and method != "maba"
    return best(steps, windows=4 if long else 12, calls=1 if long else 4) / ROWS


def y4(progress: Progress) -> Item:
    """Simulated frames per second."""
    cases, rows, fastest, ratios = table_2(), [], True, []
    for k, case in enumerate(cases):
        clip = clip_of(case.model, case.motion)
        dt = 1 / 240 if case.model == "dog" else 1 / 30
        rates = {m: 1.0 / step_time(clip, dt, m) for m in METHODS}
        fastest = fastest and max(rates, key=lambda m: rates[m]) == "maba"
        here = rates["maba"] / max(rates[m] for m in METHODS if m != "maba")
        paper = case.printed["maba"] / max(case.printed[m] for m in METHODS if m != "maba")
        ratios.append((here, paper))
        rows.append(
            [
                f"{case.model}, {case.motion}",
                *(rates[m] for m in METHODS),
                *(case.printed[m] for m in METHODS),
                here,
                paper,
            ]
        )
        progress((k + 1) / len(cases))
    above = sum(here >= paper for here, paper in ratios)
    item = Item(
        "Y4",
        "Frames per second",
        "Table 2",
        "One character, one thread, float64; steps of 1/30 s, the dog's 1/240 s. Absolute numbers "
        "depend on the machine and on what else a frame does: compare the ratios.",
    )
    item.claims = [
        Claim(
            "MABA is the fastest in every row",
            "in every row",
            "in every row" if fastest else "not in every row",
            "all",
            fastest,
        ),
        Claim(
            "its lead over the best of the others",
            "1.18 to 2.93 x",
            f"{min(h for h, _ in ratios):.3g} to {max(h for h, _ in ratios):.3g} x",
            "at least the paper's in every row",
            above == len(ratios),
            why="our frame holds nothing but the step" if above else "",
        ),
    ]
    columns = [
        "",
        *(f"{m.upper()}, here" for m in METHODS),
        *(f"{m.upper()}, paper" for m in METHODS),
        "lead, here",
        "lead, paper",
    ]
    item.tables = [Table("frames per second", columns, rows)]
    return item


def y5(progress: Progress) -> Item:
    """What the SPD computation adds to a step."""
    rows, small = [], True
    motion = {"humanoid": "walk", "dog": "dog-trot"}
    for k, (model, printed) in enumerate(EXTRA.items()):
        clip = clip_of(model, motion.get(model, "snake-slither"))
        dt = 1 / 240 if model == "dog" else 1 / 30
        plain = step_time(clip, dt, "maba", form="pd")
        shares: list[Any] = []
        for method in ("df", "sf", "maba"):
            taken = step_time(clip, dt, method)
            shares.append(100.0 * (taken - plain) / taken)
        small = small and shares[2] < 10.0 and shares[2] < min(shares[:2])
        rows.append([model, *shares, *printed])
        progress((k + 1) / len(EXTRA))
    item = Item(
        "Y5",
        "Share of the SPD computation",
        "Table 3",
        "What a step takes beyond a step of explicit PD, as a share of it [%].",
    )
    item.claims = [
        Claim(
            "MABA adds little, the others much",
            "1.7 to 3.7 % / 18 to 86 %",
            f"{min(r[3] for r in rows):.1f} to {max(r[3] for r in rows):.1f} % / "
            f"{min(min(r[1:3]) for r in rows):.0f} to {max(max(r[1:3]) for r in rows):.0f} %",
            "MABA below 10 % and below the others",
            small,
        )
    ]
    columns = [
        "model",
        "DF, here",
        "SF, here",
        "MABA, here",
        "DF, paper",
        "SF, paper",
        "MABA, paper",
    ]
    item.tables = [Table("[%]", columns, rows)]
    return item


def y8(progress: Progress) -> Item:
    """Cost against the number of joints."""
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for i, method in enumerate(("maba", "sf", "df")):
        sizes, times = [], []
        for joints in CHAINS[: 7 if method == "maba" else 5]:
            clip = clip_of(f"snake-{6 + 3 * joints}", "snake-slither")
            sizes.append(float(joints))
            times.append(1e6 * step_time(clip, 1 / 240, method))
        curves[method.upper()] = sizes, times
        progress((i + 1) / 3)
    slopes = {name: _slope(*curve) for name, curve in curves.items()}
    item = Item("Y8", "Cost against size", "ours", "Chains of ball joints; one step, one thread.")
    item.claims = [
        Claim(
            "MABA is linear, DF and SF are up to cubic",
            "O(n) / O(n³)",
            ", ".join(f"{name} {s:.2f}" for name, s in slopes.items()),
            "log-log slope at most 1.1 / over 2",
            slopes["MABA"] <= 1.1 and min(slopes["SF"], slopes["DF"]) > 2.0,
        )
    ]
    item.figures = {
        "Y8": figures.lines({"": curves}, x="ball joints", y="µs", log="xy", height=4.0)
    }
    return item


def _slope(sizes: list[float], times: list[float]) -> float:
    """Of the larger half, in log-log."""
    k = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[k:]), np.log(times[k:]), 1)[0])
