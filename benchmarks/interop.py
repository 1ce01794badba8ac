"""Stable PD for MuJoCo: ours against the dense Cholesky recipe of imitation papers, in Python.

Both give the same torques. The recipe (egopose, rfc, uhc and what came of them) factors M + kd dt,
with M and h as MuJoCo has them; fresh ones take mj_forward, or a step split into mj_step1 and
mj_step2. Ours needs qpos and qvel alone. A batch of the recipe is a loop over MjData; ours takes
rows, or a tuple of MjData. For a chain of 195 degrees of freedom the recipe still spends its time
inside LAPACK, in the cache; what grows with nv³ shows at 600.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from engines import find_modules
from scenes import DT, moved, per_dof
from tables import Bound, Section, Table, micro
from timing import Array, Case, Plan, Timing, measure

from poise import Character, State, load_character

REQUIRED = {"humanoid": 10.0, "dog": 10.0, "snake-195": 100.0, "snake-600": 100.0}
"""How many times faster one character is to be."""

KP, KD = 600.0, 60.0  # [N m/rad], [N m s/rad]
DATAS = 32
"""MjData in a batch: each has megabytes of its own."""

WINDOW = 2e-3
"""Calls are repeated for about this long [s]: short windows find the calm moments of a machine."""

OURS = ("one", "MjData", "rows")
RECIPES = ("recipe", "recipe, fresh")


def interop(plan: Plan) -> Section:
    """Every model: the recipe, with M at hand and with mj_forward, and ours."""
    section = Section("mujoco", "torques of stable PD for MuJoCo, µs per character, one thread")
    found, missing = find_modules({"mujoco": "mujoco"})
    section.numbers = {"skipped": missing, "ratios": {}}
    if missing:
        section.notes += [f"{name} is skipped: {why}" for name, why in missing.items()]
        return section
    groups = {m: list(_cases(found["mujoco"], load_character(m), plan)) for m in REQUIRED}
    rows, ratios = [], []
    for model, times in measure(groups, plan).items():
        section.timings += times.values()
        rows.append((model, *(micro(times[name]) for name in (*RECIPES, *OURS))))
        for recipe in RECIPES:
            found_ratios = {name: times[recipe].best / times[name].best for name in OURS}
            section.numbers["ratios"].setdefault(model, {})[recipe] = found_ratios
            ratios.append((f"{model}, {recipe}", *(f"{x:.1f} x" for x in found_ratios.values())))
        section.bounds += _bounds(model, times)
        section.numbers.setdefault("difference", {})[model] = times["one"].facts["from_recipe"]
    heads = ("one character", f"{DATAS} MjData", f"{plan.batch} rows")
    section.tables.append(Table("", ("model", "dense recipe", "with mj_forward", *heads), rows))
    section.tables.append(Table("how many times faster ours is", ("model", *heads), ratios))
    worst = max(section.numbers["difference"].values())
    section.bounds.append(Bound("relative difference of torques", worst, most=1e-9, unit=""))
    section.notes.append(
        "recipe: M and h as MuJoCo has them from its last step; with mj_forward: those of the "
        "present state, as ours."
    )
    section.notes.append(
        "snake-195, one character: LAPACK needs about 0.15 ms for the Cholesky factors, so that a "
        "hundredfold would leave us 3 µs for the whole call. The ratio grows with nv²."
    )
    return section


def _bounds(model: str, times: dict[str, Timing]) -> list[Bound]:
    recipe = times["recipe"].best
    return [
        Bound(f"{model}, {name}: faster than the recipe", recipe / times[name].best, least=least)
        for name, least in {"one": REQUIRED[model], "MjData": 20.0, "rows": 20.0}.items()
    ]


def _cases(mujoco: Any, character: Character, plan: Plan) -> Iterator[Case]:
    from poise.interop import mujoco as interop

    model = interop.model_of(character, dt=DT, ground=False)
    # nothing of its joint limits: mj_forward is for M and h alone
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    servo = interop.StablePD(model, KP, KD, form="spd", limits=False, threads=1)
    dense = interop.DenseStablePD(model, servo.gains.kp, servo.gains.kd)
    draw = np.random.default_rng(2020).normal(size=(2, plan.batch, character.nv))
    q = moved(character, draw[0] * per_dof(character, 0.02, 0.1))
    v = draw[1] * per_dof(character, 0.05, 0.2)
    goal = np.array(model.qpos0)
    datas = tuple(mujoco.MjData(model) for _ in range(DATAS))
    rows = State(q, v)
    for i, data in enumerate(datas):
        interop.write_state(data, State(q[i % len(q)], v[i % len(v)]))
        mujoco.mj_forward(model, data)
    data = datas[0]

    def fresh(data: Any, goal: Array) -> Array:
        mujoco.mj_forward(model, data)
        return dense(data, goal)

    exact = dense(data, goal)
    difference = float(np.abs(servo(data, goal) - exact).max() / np.abs(exact).max())
    facts = {"engine": "poise", "model": character.name, "threads": 1, "n": 1}
    theirs = facts | {"engine": "NumPy, SciPy"}
    yield _repeated("recipe", lambda: dense(data, goal), plan, theirs)
    yield _repeated("recipe, fresh", lambda: fresh(data, goal), plan, theirs)
    yield _repeated("one", lambda: servo(data, goal), plan, facts | {"from_recipe": difference})
    yield _repeated("MjData", lambda: servo(datas, goal), plan, facts | {"n": DATAS})
    yield _repeated("rows", lambda: servo(rows, goal), plan, facts | {"n": plan.batch})


def _repeated(name: str, call: Callable[[], Array], plan: Plan, facts: dict[str, Any]) -> Case:
    """The same call again and again."""
    calls = plan.rows if plan.quick else _calls(call)

    def run() -> None:
        for _ in range(calls):
            call()

    return Case(name, calls * facts["n"], lambda: None, run, call, facts)


def _calls(call: Callable[[], Array]) -> int:
    """How many calls fill a window."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return max(1, round(WINDOW / min(taken)))
