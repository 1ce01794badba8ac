"""The peers beside us, in the same minutes on the same machine."""

from __future__ import annotations

from typing import Any

from engines import find_peers, mujoco_cases, pinocchio_cases
from scenes import DT, MODELS, ours, paper_gains, stepping, target
from tables import Bound, Section, Table, micro
from timing import Case, Plan, Timing, measure

from poise import Character, Command, Drive, World, load_character

MUJOCO_ROWS = {"humanoid": 200, "dog": 100, "snake-36": 150, "snake-72": 40, "snake-195": 5}
"""Steps in a rollout, so that it takes a few milliseconds."""

OURS = ("1000 rows", "single calls", "batch f64", "batch f32")
PIN = ("pin.aba", "pin step")


def peers(plan: Plan) -> Section:
    """Ours, Pinocchio and MuJoCo, every model."""
    found, missing = find_peers()
    section = Section("peers", "µs per character-step, one thread, contacts off")
    section.notes += [f"{name} is skipped: {why}" for name, why in missing.items()]
    section.numbers = {"skipped": missing, "ratios": {}}
    rows: list[tuple[str, ...]] = []
    details: list[tuple[str, ...]] = []
    groups = measure({m: _cases(load_character(m), found, plan) for m in MODELS}, plan)
    for model, times in groups.items():
        section.timings += times.values()
        rolled = {n: t for n, t in times.items() if t.facts["engine"] == "mujoco"}
        best = min(rolled.values(), key=lambda t: t.best) if rolled else None
        rows.append(_row(model, times, best))
        details += [_detail(model, t) for t in times.values() if "from_ours" in t.facts]
        section.bounds += _bounds(model, times, best)
        section.numbers["ratios"][model] = _ratios(times, best)
    columns = ("model", *OURS, *PIN, "MuJoCo's best", "by")
    section.tables.append(Table("ours, and theirs", columns, rows))
    section.tables.append(_ratio_table(section.numbers["ratios"]))
    if details:
        heads = ("model, integrator, PD by", "µs", "difference")
        section.tables.append(Table("steps of the peers, MuJoCo's by rollout", heads, details))
    section.notes += [
        "ours: form spd, PD, solve and integration, a target of many rows in one call "
        "(single calls: one row each). pin.aba: the solve alone, called from Python with armature "
        "= Kd dt; pin step: with PD and integration around it, in NumPy.",
        "difference: largest difference of q at the end, ours in the form that takes the same step "
        "(Euler, implicitfast: explicit; discrete: implicit; pin: spd). discrete and pin take the "
        "turn of a step to first order, and pin's root has its armature in its own frame.",
    ]
    return section


def _cases(character: Character, found: dict[str, Any], plan: Plan) -> list[Case]:
    """All that is timed for one model."""
    cases = [
        ours("1000 rows", character, **plan.one),
        single_calls("single calls", character, plan.rows),
        ours("batch f64", character, **plan.many),
        ours("batch f32", character, **plan.many, dtype="float32"),
    ]
    if "pinocchio" in found:
        rows = plan.rows if plan.quick else max(50, 15000 // character.nv)
        cases += pinocchio_cases(found["pinocchio"], character, rows)
    if "mujoco" in found:
        rows = plan.rows if plan.quick else MUJOCO_ROWS[character.name]
        cases += mujoco_cases(found["mujoco"], character, rows)
    return cases


def single_calls(name: str, character: Character, calls: int) -> Case:
    """One character, one row of target in each call."""
    w = World(character, dt=DT, threads=1, contact=None)
    goal = target(character, 1).row(0)
    command = Command(drive=Drive(paper_gains(character), goal, form="spd"))

    def run() -> None:
        step = w.step
        for _ in range(calls):
            step(command)

    facts = {"engine": "poise", "model": character.name, "n": 1, "dtype": "float64", "rows": 1}
    return stepping(name, w, run, calls, facts | {"threads": 1, "form": "spd"})


def _row(model: str, times: dict[str, Timing], best: Timing | None) -> tuple[str, ...]:
    cells = [micro(times[name]) if name in times else "-" for name in (*OURS, *PIN)]
    return (model, *cells, *(("-", "-") if best is None else (micro(best), best.name)))


def _detail(model: str, timing: Timing) -> tuple[str, ...]:
    difference = timing.facts["from_ours"]
    return (
        f"{model}, {timing.name}",
        micro(timing),
        "-" if difference is None else f"{difference:.1e}",
    )


def _ratios(times: dict[str, Timing], best: Timing | None) -> dict[str, dict[str, float]]:
    """How many times slower each peer is than each of ours."""
    theirs: dict[str, Timing] = {n: times[n] for n in PIN if n in times}
    if best is not None:
        theirs["MuJoCo's best"] = best
    return {
        name: {mine: timing.best / times[mine].best for mine in OURS}
        for name, timing in theirs.items()
    }


def _ratio_table(ratios: dict[str, dict[str, dict[str, float]]]) -> Table:
    rows = [
        (f"{model}, {peer}", *(f"{value:.1f} x" for value in values.values()))
        for model, peers in ratios.items()
        for peer, values in peers.items()
    ]
    return Table("how many times faster ours is", ("model, peer", *OURS), rows)


def _bounds(model: str, times: dict[str, Timing], best: Timing | None) -> list[Bound]:
    out = []
    if model == "humanoid" and "pin.aba" in times:
        aba = times["pin.aba"].best
        for name, least in (("1000 rows", 3.0), ("batch f64", 12.0), ("batch f32", 25.0)):
            claim = f"humanoid, {name}: faster than pin.aba from Python"
            out.append(Bound(claim, aba / times[name].best, least=least))
    if model == "snake-195" and best is not None:
        claim = f"snake-195, batch f64: faster than MuJoCo's best ({best.name})"
        out.append(Bound(claim, best.best / times["batch f64"].best, least=200.0))
    return out
