"""Balance: what one plan takes, and how much faster than real time characters balance.

One balance step is all that a call does: matrices, solve, and inverse dynamics. In the thesis's
form the inverse dynamics are the world's, in every step; here they are computed beside the plan.
The reference implementation does the same in NumPy, with LAPACK and daqp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scenes import moved
from tables import Bound, Section, Table, micro
from timing import Array, Case, Plan, measure

from poise import Balance, Character, State, Target, World, dynamics, load_character
from poise.reference import balance as reference

MODEL = "humanoid-51"
CALLS = 20
"""Plans in a window."""
RATE, STEP = 200, 1e-3
"""Of the thesis's loop: plans a second, and the time step of its ground [s]."""
COPIES, SLOW = 64, 30
"""Characters in a batch, and how often they plan [1/s]."""
MOST = {"thesis": 150.0, "cones": 400.0}
"""A balance step may take this long [µs]."""


def balancing(plan: Plan) -> Section:
    """Plans, and whole loops."""
    section = Section("balance", f"balance of {MODEL}")
    character = load_character(MODEL)
    planned = measure({form: list(_plans(form, character)) for form in MOST}, plan)
    rows = []
    for form, times in planned.items():
        section.timings += times.values()
        ours, numpy = times["core"], times["twin"]
        rows.append((form, micro(ours), micro(numpy), f"{numpy.best / ours.best:.0f} x"))
        claim = f"a balance step, {form}"
        section.bounds.append(Bound(claim, 1e6 * ours.best, most=MOST[form], unit="µs"))
    columns = ("form", "core", "NumPy, LAPACK, daqp", "faster")
    section.tables.append(Table("one balance step, µs", columns, rows))
    loops = measure({"": list(_loops(character, plan))}, plan)[""]
    section.timings += loops.values()
    seconds = [(name, f"{1 / t.best:.1f}", f"{1e3 * t.best:.1f}") for name, t in loops.items()]
    heads = ("loop", "times real time", "ms per second")
    section.tables.append(Table("seconds of balance", heads, seconds))
    one, *batches = loops
    section.bounds.append(Bound(f"{one}, times real time", 1 / loops[one].best, least=20.0))
    for name in batches:
        section.bounds.append(Bound(f"{name}, times real time", 1 / loops[name].best, least=1.0))
    return section


def _plans(form: str, character: Character) -> Iterator[Case]:
    contact = "penalty" if form == "thesis" else "impulse"
    world = World(character, dt=STEP, contact=contact, self_collision=False, threads=1)
    balance = Balance(world, threads=1)
    draw = np.random.default_rng(2008).normal(size=(2, character.nv))
    draw[0, :6] = 0.0
    state = State(moved(character, 0.01 * draw[0]), 0.01 * draw[1])
    rest = np.zeros(character.nv)
    target = Target(character.rest_q, rest, rest)

    def ours() -> Array:
        solution = balance.solve(state, target)
        if form == "cones":
            return np.asarray(solution.torque[0])
        a = np.asarray(solution.acceleration[0])
        return dynamics.inverse_dynamics(character, state.q, state.v, a)

    def numpys() -> Array:
        found = reference.solve(balance, state, target)[0]
        if found.torque is not None:
            return found.torque
        return dynamics.inverse_dynamics(character, state.q, state.v, found.a)

    facts = {"model": character.name, "n": 1, "threads": 1, "form": form}
    for name, ask in (("core", ours), ("twin", numpys)):

        def run(ask: Any = ask) -> None:
            for _ in range(CALLS):
                ask()

        yield Case(name, CALLS, lambda: None, run, ask, facts | {"engine": name})


def _loops(character: Character, plan: Plan) -> Iterator[Case]:
    """A second each, of one character on one thread and of a batch on all cores."""
    hard: dict[str, Any] = {"contact": "penalty", "stiffness": 2e6}
    yield _loop(f"one, {RATE} Hz over 1 ms", character, 1, RATE, STEP, plan, threads=1, **hard)
    yield _loop(f"{COPIES}, {SLOW} Hz over 1 ms", character, COPIES, SLOW, STEP, plan, **hard)
    yield _loop(f"{COPIES}, {SLOW} Hz and steps", character, COPIES, SLOW, 1 / SLOW, plan)


def _loop(
    name: str,
    character: Character,
    n: int,
    rate: int,
    dt: float,
    plan: Plan,
    threads: int | None = None,
    **given: Any,
) -> Case:
    world = World(character, n=n, dt=dt, self_collision=False, threads=threads, **given)
    balance = Balance(world, rate=rate, threads=threads)
    start, target = State(character.rest_q), Target(character.rest_q)
    steps = max(1, round(1 / (rate * dt)))
    plans = 2 if plan.quick else round(1 / (steps * dt))

    def run() -> None:
        for _ in range(plans):
            world.step(balance(world.state, target), steps=steps)

    def end() -> Array:
        q = np.atleast_2d(world.state.q)
        assert (q[:, 2] > 0.9 * character.rest_q[2]).all(), "somebody fell"
        return q

    facts = {"model": character.name, "n": n, "rate": rate, "dt": dt, "threads": world.threads}
    return Case(name, 1, lambda: world.reset(start), run, end, facts | {"engine": "poise"})
