"""What control costs: stable against explicit PD, and each feature on top of the plain step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scenes import (
    DT,
    MODELS,
    ours,
    paper_gains,
    paper_kd,
    per_dof,
    stepping,
    target,
    with_joints,
)
from tables import Bound, Section, Table, micro, percent
from timing import Case, Plan, measure

from poise import Character, Gains, World, load_character

PAPER = {
    "humanoid": (2.1, 18.2, 31.1),
    "dog": (3.6, 25.7, 44.3),
    "snake-36": (1.7, 28.3, 28.0),
    "snake-72": (2.5, 53.9, 39.9),
    "snake-195": (3.7, 86.3, 64.4),
}
"""Extra time over the total [%], yin2020, Table 3: MABA, SF, DF."""

WEAK = 1e-9
"""Factor of the gains here: explicit PD diverges at the paper's, and the work does not depend."""


def overhead(plan: Plan) -> Section:
    """Stable PD against the same step with explicit PD torques; then the paper's percentages."""
    section = Section("overhead", "what stable PD adds to a step with explicit PD torques")
    rows: list[tuple[str, ...]] = []
    fractions: list[tuple[str, ...]] = []
    groups = measure({m: list(_overhead_cases(load_character(m), plan)) for m in MODELS}, plan)
    for model, times in groups.items():
        section.timings += times.values()
        for kind in ("one", "batch f64", "batch f32"):
            pd, spd, implicit = (times[f"{kind} {form}"] for form in ("pd", "spd", "implicit"))
            ratio = spd.best / pd.best
            more = percent(implicit.best / pd.best)
            free = percent(spd.best / times[f"{kind} none"].best)
            rows.append((f"{model}, {kind}", micro(pd), micro(spd), percent(ratio), more, free))
            claim = f"{model}, {kind}: spd beyond explicit PD"
            section.bounds.append(Bound(claim, 100 * (ratio - 1), most=5.0, unit="%"))
        plain = times["one pd"].best
        extra = [100 * (1 - plain / times[f"one {m}"].best) for m in ("spd", "sf", "df")]
        section.numbers[model] = {
            "extra_percent": dict(zip(("maba", "sf", "df"), extra, strict=True))
        }
        pairs = zip(PAPER[model], extra, strict=True)
        fractions.append((model, *(f"{here:.1f} ({paper:.1f})" for paper, here in pairs)))
    columns = ("model", "explicit PD µs", "spd µs", "spd adds", "implicit adds", "to no control")
    section.tables.append(Table("", columns, rows))
    heads = ("model", "MABA, embedded", "SF, standalone", "DF, standalone")
    title = "extra time over the total [%], one character, in brackets the paper's (with PhysX)"
    section.tables.append(Table(title, heads, fractions))
    section.notes.append(
        f"gains are {WEAK:g} of the paper's: at those explicit PD diverges; the work is the same. "
        "to no control: what spd adds to a step without any drive"
    )
    return section


def _overhead_cases(character: Character, plan: Plan) -> Iterator[Case]:
    gains = paper_gains(character, WEAK)
    one = plan.one | {"rows": min(plan.rows, 300), "gains": gains}
    batch = plan.many | {"gains": gains}
    for form in ("pd", "spd", "implicit"):
        yield ours(f"one {form}", character, **one, form=form)
        yield ours(f"batch f64 {form}", character, **batch, form=form)
        yield ours(f"batch f32 {form}", character, **batch, form=form, dtype="float32")
    # a chain of 63 balls that nothing damps is lost after some 400 steps
    yield _uncontrolled("one none", character, one["n"], min(one["rows"], 150))
    yield _uncontrolled("batch f64 none", character, plan.batch, plan.batch_rows)
    yield _uncontrolled("batch f32 none", character, plan.batch, plan.batch_rows, "float32")
    few = one | {"rows": min(plan.rows, 2 if character.nv > 100 else 20)}
    for method in ("sf", "df"):
        yield ours(f"one {method}", character, **few, method=method, embedded=False)


def _uncontrolled(
    name: str, character: Character, n: int, rows: int, dtype: str = "float64"
) -> Case:
    """A world that falls freely."""
    w = World(character, n=n, dt=DT, dtype=dtype, threads=1, contact=None)
    facts = {"engine": "poise", "model": character.name, "n": n, "dtype": dtype, "rows": rows}
    return stepping(name, w, lambda: w.step(steps=rows), n * rows, facts | {"threads": 1})


# ---- features


def features(plan: Plan) -> Section:
    """What each feature adds to a plain step of the humanoid."""
    section = Section("features", "what each feature adds to the humanoid's step, µs")
    cases = []
    for name, options in _features(plan.batch, plan.batch_rows).items():
        cases.append(ours(f"f64 {name}", **plan.many, **options))
        cases.append(ours(f"f32 {name}", **plan.many, **options, dtype="float32"))
    for name, options in _features(1, plan.rows).items():
        cases.append(ours(f"one {name}", **plan.one, **options))
    times = measure({"": cases}, plan)[""]
    section.timings += times.values()
    rows = []
    for name in _features(plan.batch, plan.batch_rows):
        cells = []
        for kind in ("one", "f64", "f32"):
            timing, plain = times.get(f"{kind} {name}"), times[f"{kind} {PLAIN}"]
            cells += (
                ["-", "-"] if timing is None else [micro(timing), percent(timing.best / plain.best)]
            )
        rows.append((name, *cells))
    columns = ("feature", "one", "adds", f"{plan.batch} f64", "adds", f"{plan.batch} f32", "adds")
    section.tables.append(Table("", columns, rows))
    return section


PLAIN = "plain: isotropic shared gains"


def _features(n: int, rows: int) -> dict[str, dict[str, Any]]:
    """Arguments of `ours`, by feature; some need more than one copy."""
    humanoid = load_character("humanoid")
    links = len(humanoid.links)
    draw = np.random.default_rng(7).uniform
    kp, kd = per_dof(humanoid, 2e4, 7.5e4), paper_kd(humanoid)
    axes = np.tile([1.0, 1.1, 1.2], humanoid.nv)[: humanoid.nv]
    hands = np.array([0.5 if "forearm" in link.name else 0.0 for link in humanoid.links])
    full = target(humanoid, rows, velocity=True, acceleration=True)
    out: dict[str, dict[str, Any]] = {
        PLAIN: {},
        "implicit form": {"form": "implicit"},
        "target velocity": {"goal": target(humanoid, rows, velocity=True)},
        "effort limits, not reached": {"character": with_joints(humanoid, effort=1e7)},
        "effort limits, reached": {"character": with_joints(humanoid, effort=20.0)},
        "gains per axis": {"gains": Gains(humanoid, kp * axes, kd * axes)},
        "armature, springs, dampers": {
            "character": with_joints(humanoid, armature=0.01, damping=1.0, stiffness=10.0)
        },
        "strength per link": {"strength": np.full(links, 0.9)},
        "pins on two links": {"pin": hands},
        "soft root: feedforward": {"goal": full, "feedforward": True},
    }
    if n > 1:
        own = draw(0.9, 1.1, (n, 1))
        masses = np.array([link.mass for link in humanoid.links])
        out |= {
            "gains per copy": {"gains": Gains(humanoid, kp * own, kd * own)},
            "masses per copy": {"world": {"mass": masses * draw(0.9, 1.1, (n, links))}},
            "strength per copy": {"strength": draw(0.8, 1.0, (n, links))},
            "targets per copy": {"goal": target(humanoid, rows, copies=n)},
        }
    return {name: {"character": humanoid} | options for name, options in out.items()}
