"""What lies around the step: threads, the call from Python, the import."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
from rivals import single_calls
from scenes import DT, moved, ours, paper_gains, stepping, sway
from tables import Bound, Section, Table, load, micro
from timing import Array, Case, Plan, measure

from poise import Character, StablePD, Target, World, dynamics, load_character

QUESTIONS = 100
"""Calls in a window."""


def threads(plan: Plan) -> Section:
    """Two threads against one."""
    section = Section("threads", "two threads against one, µs per character-step")
    rows = []
    groups = {
        model: [ours(str(k), load_character(model), **plan.many, threads=k) for k in (1, 2)]
        for model in ("humanoid", "snake-195")
    }
    for model, times in measure(groups, plan).items():
        section.timings += times.values()
        one, two = times["1"], times["2"]
        gain = one.best / two.best
        same = "the same" if one.hash == two.hash else "NOT THE SAME"
        rows.append(
            (f"{model}, {plan.batch} float64", micro(one), micro(two), f"{gain:.2f} x", same)
        )
        claim = f"{model}: two threads (on an idle machine)"
        section.bounds.append(Bound(claim, gain, least=1.8))
    columns = ("model", "one thread", "two threads", "faster", "end states")
    section.tables.append(Table("", columns, rows))
    section.numbers["load"] = load()
    section.notes.append(f"load {load()} on {os.cpu_count()} cores; a run alone makes 1 to 1.5")
    return section


def calls(plan: Plan) -> Section:
    """What a call from Python adds to the work of one step."""
    humanoid = load_character("humanoid")
    cases = [
        ours("many rows in one call", humanoid, **plan.one),
        single_calls("world.step(command)", humanoid, plan.rows),
        _controlled("world.step(controller(state, target))", humanoid, plan.rows),
    ]
    times = measure({"": cases}, plan)[""]
    work = times["many rows in one call"].best
    rows = [(n, micro(t), f"{1e6 * (t.best - work):.2f}") for n, t in times.items()]
    beyond = 1e6 * (times["world.step(command)"].best - work)
    queries = measure({"": list(_queries())}, plan)[""]
    kane = 1e6 * queries["kane_inverse_dynamics"].best
    return Section(
        "calls",
        "one character: µs per call",
        [
            Table("a step of the humanoid", ("how", "µs", "beyond the work"), rows),
            Table(
                "poise.dynamics of humanoid-51",
                ("function", "µs"),
                [(n, micro(t)) for n, t in queries.items()],
            ),
        ],
        [
            Bound("world.step(command) beyond the work", beyond, most=2.0, unit="µs"),
            Bound("inverse dynamics of 51 degrees of freedom", kane, most=10.0, unit="µs"),
        ],
        timings=[*times.values(), *queries.values()],
    )


def _queries() -> Iterator[Case]:
    """Functions of poise.dynamics, called with one state."""
    character = load_character("humanoid-51")
    draw = np.random.default_rng(51).normal(size=(3, character.nv))
    q, v, a = moved(character, 0.1 * draw[0]), draw[1], draw[2]
    facts = {"engine": "poise", "model": character.name, "n": 1, "dtype": "float64", "threads": 1}

    def case(name: str, ask: Callable[[], Array]) -> Case:
        def run() -> None:
            for _ in range(QUESTIONS):
                ask()

        return Case(name, QUESTIONS, lambda: None, run, ask, facts)

    yield case("kane_inverse_dynamics", lambda: dynamics.kane_inverse_dynamics(character, q, v, a))
    yield case("inverse_dynamics", lambda: dynamics.inverse_dynamics(character, q, v, a))
    yield case("forward_dynamics", lambda: dynamics.forward_dynamics(character, q, v, a))
    yield case("mass_matrix", lambda: dynamics.mass_matrix(character, q))


def _controlled(name: str, character: Character, steps: int) -> Case:
    """The loop of a user: a new target and a new command in each step."""
    w = World(character, dt=DT, threads=1, contact=None)
    controller = StablePD(character, paper_gains(character), form="spd")
    goals = list(moved(character, sway(character, steps)[0]))

    def run() -> None:
        for goal in goals:
            w.step(controller(w.state, Target(goal)))

    facts = {"engine": "poise", "model": character.name, "n": 1, "dtype": "float64", "rows": 1}
    return stepping(name, w, run, steps, facts | {"threads": 1, "form": "spd"})


IMPORTS = """
import time
start = time.perf_counter()
import numpy
between = time.perf_counter()
import poise
print(between - start, time.perf_counter() - between)
"""


def imports(plan: Plan) -> Section:
    """What importing poise adds to NumPy's own import, in fresh processes."""
    taken = np.array([_import_times() for _ in range(1 if plan.quick else 9)]) * 1e3
    best, median = taken.min(axis=0), np.median(taken, axis=0)
    rows = [
        (name, f"{best[i]:.1f}", f"{median[i]:.1f}") for i, name in enumerate(("numpy", "poise"))
    ]
    return Section(
        "import",
        "import in a fresh process",
        [Table("", ("package", "best ms", "median ms"), rows)],
        [Bound("import poise, after numpy", float(best[1]), most=100.0, unit="ms")],
        numbers={"numpy_ms": taken[:, 0].tolist(), "poise_ms": taken[:, 1].tolist()},
    )


def _import_times() -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True
    )
    numpy, poise = map(float, done.stdout.split())
    return numpy, poise
