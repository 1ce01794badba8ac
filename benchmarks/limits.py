"""How near the core comes to what the machine can do, and how its cost grows."""

from __future__ import annotations

import numpy as np
from kernels import using
from scenes import MODELS, ours
from tables import Bound, Section, Table, micro
from timing import Case, Plan, measure

from poise import _core, load_character

REFERENCE = {"float64": 25e9, "float32": 50e9}
"""Multiply-adds per second of the core that the limits were measured on.

The snake of 195 took 2.25 µs for 63 ball joints of 903 flops, which was half of the peak.
"""

LIMITS = {
    "one": {"humanoid": 1.66, "dog": 3.06, "snake-195": 8.6},
    "float64": {"humanoid": 0.43, "dog": 0.79, "snake-195": 2.25},
    "float32": {"humanoid": 0.20, "dog": 0.37, "snake-195": 1.05},
}
"""A hand-tuned prototype of MABA: µs per character-step, PD and integration included."""

WITHIN = 1.15


def multiply_adds(plan: Plan) -> dict[str, float]:
    """Multiply-adds per second of one core in lanes, the best of several times.

    By row of LIMITS: a single character is judged by the lanes of its own instruction set.
    """
    chosen = _core.isa()
    return {
        kind: _rate(chosen["single" if kind == "one" else "batch"], kind == "float32", plan)
        for kind in LIMITS
    }


def _rate(isa: str, single_precision: bool, plan: Plan) -> float:
    with using(isa):
        return max(_core.multiply_add_rate(single_precision) for _ in range(1 if plan.quick else 5))


def fma(plan: Plan) -> Section:
    """The yardstick: how many multiply-adds the core does in a second."""
    rate = multiply_adds(plan)
    rows = [
        (kind, f"{rate[kind] / 1e9:.1f}", f"{REFERENCE[_dtype(kind)] / 1e9:.0f}") for kind in LIMITS
    ]
    table = Table("", ("lanes", "10⁹ multiply-adds/s", "reference"), rows)
    return Section("fma", "the core's multiply-add rate", [table], numbers={"rate": rate})


def limits(plan: Plan) -> Section:
    """Every model against the limit, scaled by the multiply-add rate."""
    section = Section("limits", "µs per character-step, beside the limit of the machine")
    rate = multiply_adds(plan)
    rows = []
    groups = measure({model: _limit_cases(model, plan) for model in MODELS}, plan)
    again = multiply_adds(plan)
    rate = {kind: max(r, again[kind]) for kind, r in rate.items()}
    for model, times in groups.items():
        section.timings += times.values()
        for kind in LIMITS:
            spd, implicit = times[f"{kind} spd"], times[f"{kind} implicit"]
            lanes = "one" if kind == "one" else f"{plan.batch} {kind}"
            limit = LIMITS[kind].get(model)
            scaled = None if limit is None else limit * REFERENCE[_dtype(kind)] / rate[kind]
            cells = (
                ("-", "-")
                if scaled is None
                else (f"{scaled:.3g}", f"{spd.best * 1e6 / scaled:.2f}")
            )
            rows.append((f"{model}, {lanes}", micro(spd), micro(implicit), *cells))
            if scaled is not None:
                claim = f"{model}, {lanes}: time over limit"
                section.bounds.append(Bound(claim, spd.best * 1e6 / scaled, most=WITHIN))
    columns = ("model, lanes", "spd", "implicit", "limit", "spd / limit")
    section.tables.append(Table("", columns, rows))
    section.numbers = {"rate": rate, "reference": REFERENCE, "limits_us": LIMITS}
    section.notes.append(
        "isotropic shared gains, no effort limits, dt 1/240, one thread; the limit is scaled by "
        f"{rate['one'] / 1e9:.1f} (one), {rate['float64'] / 1e9:.1f} and "
        f"{rate['float32'] / 1e9:.1f} (batches) 10⁹ multiply-adds/s"
    )
    return section


def _dtype(kind: str) -> str:
    return "float64" if kind == "one" else kind


def _limit_cases(model: str, plan: Plan) -> list[Case]:
    character = load_character(model)
    cases = []
    for form in ("spd", "implicit"):
        cases.append(ours(f"one {form}", character, **plan.one, form=form))
        for dtype in REFERENCE:
            name = f"{dtype} {form}"
            cases.append(ours(name, character, **plan.many, dtype=dtype, form=form))
    return cases


# ---- growth

SERIES = {"MABA": "maba", "MABA, batch": "maba", "SF": "sf", "DF": "df", "PCG": "pcg"}
"""Methods by the heads of their columns."""


def growth(plan: Plan) -> Section:
    """Cost of chains against their number of joints, and the slopes of the logarithms."""
    joints = (8, 16, 32) if plan.quick else (8, 16, 32, 64, 128, 256)
    section = Section("growth", "µs per character-step of a chain against its ball joints")
    best: dict[str, list[float]] = {name: [] for name in SERIES}
    rows: list[tuple[str, ...]] = []
    groups = measure({str(count): _growth_cases(count, plan) for count in joints}, plan)
    for count, times in groups.items():
        section.timings += times.values()
        for name in SERIES:
            best[name].append(times[name].best)
        rows.append((count, *(micro(times[name]) for name in SERIES)))
    slopes = {name: slope(joints, values) for name, values in best.items()}
    rows.append(("slope", *(f"{value:.2f}" for value in slopes.values())))
    section.tables.append(Table("", ("joints", *SERIES), rows))
    for name in ("MABA", "MABA, batch"):
        section.bounds.append(Bound(f"{name}: log-log slope", slopes[name], most=1.1, unit=""))
    section.numbers = {"joints": joints, "slopes": slopes}
    section.notes.append(f"one character float64; the batch has {plan.batch} copies")
    return section


def _growth_cases(joints: int, plan: Plan) -> list[Case]:
    character = load_character(f"snake-{6 + 3 * joints}")
    # as many steps as take some milliseconds; the factorisations grow by the cube
    linear, cubic = 16000 // joints, int(10 * (64 / joints) ** 2.5)
    cases = []
    for name, method in SERIES.items():
        if name.endswith("batch"):
            cases.append(ours(name, character, **plan.many))
        else:
            steps = min(plan.rows, linear if method == "maba" else max(1, cubic))
            cases.append(ours(name, character, n=1, rows=steps, method=method))
    return cases


def slope(x: tuple[int, ...], y: list[float]) -> float:
    """Slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
