"""Stable PD for MuJoCo: ours against the dense Cholesky recipe of imitation papers, in Python.

Both give the same torques. The recipe factors M + kd dt, with M and h as MuJoCo has them; fresh
ones take mj_forward, or a step split into mj_step1 and mj_step2. Ours needs qpos and qvel alone. A
batch of the recipe is a loop over MjData; ours takes rows, or a tuple of MjData. For a chain of 195
degrees of freedom the recipe spends its time inside LAPACK, which is quick; what grows with nv³
shows only beyond.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from engines import find_modules
from scenes import DT, moved, per_dof
from tables import Bound, Section, Table, micro
from timing import Array, Case, Plan, Timing, measure

from poise import Character, State, load_character

MODELS = ("humanoid", "dog", "snake-195")
KP, KD = 600.0, 60.0  # [N m/rad], [N m s/rad]
DATAS = 32
"""MjData in a batch: each has megabytes of its own."""

CALLS = {"humanoid": 200, "dog": 100, "snake-195": 20}
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
    groups = {m: list(_cases(found["mujoco"], load_character(m), plan)) for m in MODELS}
    rows, ratios = [], []
    for model, times in measure(groups, plan).items():
        section.timings += times.values()
        rows.append((model, *(micro(times[name]) for name in (*RECIPES, *OURS))))
        for recipe in RECIPES:
            found_ratios = {name: times[recipe].best / times[name].best for name in OURS}
            section.numbers["ratios"].setdefault(model, {})[recipe] = found_ratios
            ratios.append((f"{model}, {recipe}", *(f"{x:.1f} x" for x in found_ratios.values())))
        section.bounds += _bounds(model, times)
        section.numbers.setdefault("apart", {})[model] = times["one"].facts["from_recipe"]
    heads = ("one character", f"{DATAS} MjData", f"{plan.batch} rows")
    section.tables.append(Table("", ("model", "dense recipe", "with mj_forward", *heads), rows))
    section.tables.append(Table("how many times faster ours is", ("model", *heads), ratios))
    worst = max(section.numbers["apart"].values())
    section.notes.append(
        f"torques of recipe and ours differ by {worst:.1e} N m at most. recipe: M and h as MuJoCo "
        "has them from its last step; with mj_forward: those of the present state, as ours."
    )
    return section


def _bounds(model: str, times: dict[str, Timing]) -> list[Bound]:
    recipe = times["recipe"].best
    return [
        Bound(f"{model}, {name}: faster than the recipe", recipe / times[name].best, least=least)
        for name, least in {"one": 10.0, "MjData": 20.0, "rows": 20.0}.items()
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
    data, calls = datas[0], plan.rows if plan.quick else CALLS[character.name]

    def fresh(data: Any, goal: Array) -> Array:
        mujoco.mj_forward(model, data)
        return dense(data, goal)

    apart = float(np.abs(servo(data, goal) - dense(data, goal)).max())
    facts = {"engine": "poise", "model": character.name, "threads": 1, "n": 1}
    theirs = facts | {"engine": "NumPy, SciPy"}
    yield _repeated("recipe", dense, data, goal, calls, theirs)
    yield _repeated("recipe, fresh", fresh, data, goal, calls, theirs)
    yield _repeated("one", servo, data, goal, calls, facts | {"from_recipe": apart})
    yield _repeated("MjData", servo, datas, goal, 1, facts | {"n": DATAS}, DATAS)
    yield _repeated("rows", servo, rows, goal, 1, facts | {"n": plan.batch}, plan.batch)


def _repeated(
    name: str, servo: Any, data: Any, goal: Array, calls: int, facts: dict[str, Any], n: int = 1
) -> Case:
    """The same call again and again."""

    def run() -> None:
        for _ in range(calls):
            servo(data, goal)

    return Case(name, calls * n, lambda: None, run, lambda: servo(data, goal), facts)
