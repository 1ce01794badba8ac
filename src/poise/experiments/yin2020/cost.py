"""Y4, Y5, Y8: frames per second of the methods, what stable PD adds, and growth with size.

Times are of one step of one character, float64, one thread, by the thread's clock; methods that are
compared take turns. MABA is embedded; the others form torques first and let the dynamics solve
again, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import poise
from poise.experiments import figures
from poise.experiments.report import Item, experiment
from poise.experiments.yin2020.setup import METHODS, Case, Tracker, clip_of, table_2
from poise.math.arrays import Progress
from poise.trials.timing import best_of

ROWS = 20  # steps in one call
PLAIN, BARE = "plain", "bare"  # explicit PD, and given forces, in the place of a method
EXTRA = {  # Table 3 [%]: DF, SF, MABA
    "humanoid": (31.1, 18.2, 2.1),
    "dog": (44.3, 25.7, 3.6),
    "snake-36": (28.0, 28.3, 1.7),
    "snake-72": (39.9, 53.9, 2.5),
    "snake-195": (64.4, 86.3, 3.7),
}
CHAINS = (8, 16, 32, 64, 128, 256, 512)  # ball joints
CLOSE = 150  # windows for times that hardly differ
LARGEST_DENSE = 128  # of them for the cubic methods


def step_times(
    clip: poise.Clip, dt: float, methods: Iterable[str], *, windows: int = 30
) -> dict[str, float]:
    """Seconds of a step by method.

    Args:
        clip: What is followed.
        dt: Time step [s].
        methods: "maba", "df", "sf", "pcg", PLAIN or BARE.
        windows: Among which the best counts.
    """
    calls = {method: _steps(clip, dt, method) for method in methods}
    took = best_of(calls, windows=windows, most=0.2 * windows)
    return {method: seconds / ROWS for method, seconds in took.items()}


@experiment("Y4", "Frames per second", "Table 2")
def y4(item: Item, progress: Progress) -> None:
    """One character, one thread, float64; steps of 1/30 s, the dog's 1/240 s. Absolute numbers
    depend on the machine and on what else a frame does: compare the leads of MABA over the best of
    the others.
    """
    cases, rows = table_2(), list[list[Any]]()
    for k, case in enumerate(cases):
        clip, dt = clip_of(case.model, case.motion), _step_of(case.model)
        rates = {m: 1.0 / took for m, took in step_times(clip, dt, METHODS).items()}
        rows.append(_row(case, rates))
        progress((k + 1) / len(cases))
    leads, printed = [row[-2] for row in rows], [row[-1] for row in rows]
    fastest = sum(lead > 1.0 for lead in leads)
    here = f"in {fastest} of {len(rows)} rows"
    item.claim("MABA is the fastest", "in every row", here, "all", fastest == len(rows))
    item.claim(
        "its lead over the best of the others",
        _range(printed, "x"),
        _range(leads, "x"),
        "at least the paper's in every row",
        all(a >= b for a, b in zip(leads, printed, strict=True)),
        "our frame holds nothing but the step, the paper's a whole engine's",
    )
    columns = [f"{m.upper()}, {where}" for where in ("here", "paper") for m in METHODS]
    item.table("frames per second", ["", *columns, "lead, here", "lead, paper"], rows)


@experiment("Y5", "Share of the SPD computation", "Table 3")
def y5(item: Item, progress: Progress) -> None:
    """What a step takes beyond one under given forces, as a share of it [%]. In the last column
    what MABA takes beyond explicit PD, which has to find the same errors of pose and velocity;
    below zero it is faster.
    """
    rows: list[list[Any]] = []
    for k, (model, printed) in enumerate(EXTRA.items()):
        clip = clip_of(model, {"humanoid": "walk", "dog": "dog-trot"}.get(model, "snake-slither"))
        dt = _step_of(model)
        # small differences need many windows, large ones few
        took = step_times(clip, dt, ("maba", PLAIN, BARE), windows=CLOSE)
        took |= step_times(clip, dt, ("df", "sf"))
        extra = [100.0 * (1.0 - took[BARE] / took[m]) for m in ("df", "sf", "maba")]
        rows.append([model, *extra, *printed, 100.0 * (1.0 - took[PLAIN] / took["maba"])])
        progress((k + 1) / len(EXTRA))
    maba, others = [row[3] for row in rows], [x for row in rows for x in row[1:3]]
    beyond = [row[-1] for row in rows]
    item.claim(
        "MABA adds little, the others much",
        "1.7 to 3.7 % / 18.2 to 86.3 %",
        f"{_range(maba, '%')} / {_range(others, '%')}",
        "MABA below a third of the others in every row",
        all(3.0 * row[3] < min(row[1:3]) for row in rows),
        "a step here takes microseconds, so that finding errors of pose, which any PD does, is a "
        "larger share of it than of an engine's frame",
    )
    item.claim(
        "solving it inside the dynamics adds next to nothing",
        "two lines of ABA change",
        f"{_range(beyond, '%')} beyond explicit PD",
        "below 5 % in every row",
        max(beyond) < 5.0,
    )
    columns = [f"{name}, {where}" for where in ("here", "paper") for name in ("DF", "SF", "MABA")]
    item.table("share of a step [%]", ["model", *columns, "MABA beyond PD, here"], rows)


@experiment("Y8", "Cost against size", "ours")
def y8(item: Item, progress: Progress) -> None:
    """Chains of ball joints; one step, one thread."""
    curves: dict[str, tuple[list[float], list[float]]] = {m: ([], []) for m in ("maba", "sf", "df")}
    for k, joints in enumerate(CHAINS):
        clip = clip_of(f"snake-{6 + 3 * joints}", "snake-slither")
        methods = curves if joints <= LARGEST_DENSE else ("maba",)
        for method, took in step_times(clip, 1 / 240, methods).items():
            curves[method][0].append(float(joints))
            curves[method][1].append(1e6 * took)
        progress((k + 1) / len(CHAINS))
    slopes = {method: _slope(*curve) for method, curve in curves.items()}
    item.claim(
        "MABA is linear, DF and SF are up to cubic",
        "O(n) / O(n³)",
        ", ".join(f"{method.upper()} {slope:.2f}" for method, slope in slopes.items()),
        "log-log slope of the larger half at most 1.1 / over 2",
        slopes["maba"] <= 1.1 and min(slopes["sf"], slopes["df"]) > 2.0,
    )
    shown = {method.upper(): curve for method, curve in curves.items()}
    item.figures["Y8"] = figures.lines({"": shown}, x="ball joints", y="µs", log="xy", height=4.0)


def _steps(clip: poise.Clip, dt: float, method: str) -> Callable[[], None]:
    """A call that takes ROWS steps from the clip's first state."""
    world = poise.World(
        clip.character, dt=dt, ground=False, contact=None, threads=1, momentum_correction=False
    )
    world.reset(clip.state(0.0))
    start = world.state.copy()
    command = _command(world, clip.targets(dt, dt, ROWS), method)

    def steps() -> None:
        world.reset(start)
        world.step(command, steps=ROWS)

    return steps


def _command(world: poise.World, targets: poise.Target, method: str) -> poise.Command:
    if method == BARE:
        return poise.Command(force=np.zeros(world.scene.nv))
    if method == PLAIN:
        servo = Tracker(world, form="pd")
        servo.gains = poise.Gains(world, 1e-3, 1e-4)  # as quick as others, and stable
    else:
        servo = Tracker(world, method, embedded=method == "maba")
    return servo(None, targets)


def _step_of(model: str) -> float:
    """The paper's step [s]."""
    return 1 / 240 if model == "dog" else 1 / 30


def _row(case: Case, rates: dict[str, float]) -> list[Any]:
    """Frames per second here and in the paper, and the lead of MABA in both."""
    leads = [
        all_["maba"] / max(all_[m] for m in METHODS if m != "maba")
        for all_ in (rates, case.printed)
    ]
    numbers = [*(rates[m] for m in METHODS), *(case.printed[m] for m in METHODS)]
    return [f"{case.model}, {case.motion}", *numbers, *leads]


def _range(values: Sequence[float], unit: str) -> str:
    return f"{min(values):.3g} to {max(values):.3g} {unit}"


def _slope(sizes: list[float], times: list[float]) -> float:
    """Of the larger half, in log-log."""
    k = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[k:]), np.log(times[k:]), 1)[0])
