"""Instruction sets beside each other, and a batch at rest beside one in motion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scenes import DT, ours, paper_gains, stepping, target
from tables import Bound, Section, Table, micro
from timing import Case, Plan, measure

from poise import (
    Character,
    Command,
    Drive,
    Target,
    World,
    _core,
    load_character,
    suggest_gains,
)

MODELS = ("humanoid", "dog", "snake-72")
PLACES = {"in the air": False, "on the ground": True}
SIZES = {"one float64": "float64", "batch float64": "float64", "batch float32": "float32"}

# on the ground
GROUND_DT = 1 / 120  # [s]
GROUND_BATCH = 256  # copies, at most: windows of milliseconds, which a busy machine rarely cuts up
GROUND_ROWS = 10  # steps in a window of a batch: at rest some need a solve and others none
FREQUENCY = 30.0  # of the joints [Hz]: stiff enough to stand
SETTLED = 1.0  # [s] before the clock runs

WITHIN = 1.1
"""A batch at rest takes at most so many times what one in motion takes."""

DECAY = 2000
"""Steps until the velocities' squares, in float32, are below the smallest normal number."""


@contextmanager
def using(isa: str) -> Iterator[None]:
    """Worlds that are made within run the kernels of one instruction set."""
    _core.choose_isa(isa)
    try:
        yield
    finally:
        _core.choose_isa("")


def kernels(plan: Plan) -> Section:
    """Every instruction set that this CPU has, on the same cases."""
    sets = _core.supported_isas()
    section = Section("kernels", "µs per character-step by instruction set, one thread")
    groups = {
        f"{model} {place}, {size}": [
            _case(isa, load_character(model), size, touches, plan)
            for isa in sets
            # one character has no kernels of AVX-512
            if isa != "avx512" or not size.startswith("one")
        ]
        for model in MODELS
        for place, touches in PLACES.items()
        for size in SIZES
    }
    rows = []
    for name, times in measure(groups, plan).items():
        section.timings += times.values()
        cells = [micro(times[isa]) if isa in times else "-" for isa in sets]
        both = {"avx2", "avx512"} <= set(times)
        gain = f"{times['avx2'].best / times['avx512'].best:.2f} x" if both else "-"
        rows.append((name, *cells, gain))
    section.tables.append(Table("", ("case", *sets, "avx2 / avx512"), rows))
    chosen = _core.isa()
    section.numbers = {"default": chosen, "sets": sets}
    section.notes.append(
        f"default here: {chosen['single']} for one character, {chosen['batch']} for a batch; a "
        f"batch has {plan.batch} copies in the air (contacts off, dt 1/240) and {GROUND_BATCH} on "
        "the ground (dt 1/120, 1 s after the start)"
    )
    return section


def _case(isa: str, character: Character, size: str, touches: bool, plan: Plan) -> Case:
    sizes = plan.one if size.startswith("one") else plan.many
    with using(isa):
        if not touches:
            return ours(isa, character, **sizes, dtype=SIZES[size])
        return _standing(isa, character, dtype=SIZES[size], quick=plan.quick, **sizes)


def _standing(
    name: str, character: Character, *, n: int, rows: int, dtype: str, quick: bool
) -> Case:
    """n copies that hold the rest pose on the ground, the root free."""
    n, rows = min(n, GROUND_BATCH), min(rows, 100) if n == 1 else 2 if quick else GROUND_ROWS
    world = World(character, n=n, dt=GROUND_DT, dtype=dtype, threads=1)
    hold = Drive(suggest_gains(character, FREQUENCY, root="free"), Target(character.rest_q))
    command = Command(drive=hold)
    world.step(command, 4 if quick else round(SETTLED / GROUND_DT))
    saved = world.state.copy()
    facts = {"engine": "poise", "model": character.name, "n": n, "dtype": dtype, "rows": rows}
    facts |= {"threads": 1, "isa": world.isa, "contacts": len(world.contacts.copy) / n}

    def end() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.concatenate([world.state.q.ravel(), world.state.v.ravel()])

    return Case(
        name, n * rows, lambda: world.reset(saved), lambda: world.step(command, rows), end, facts
    )


# ---- at rest


def rest(plan: Plan) -> Section:
    """At rest, products of velocities are denormal numbers: they must not cost more."""
    section = Section("rest", "a batch of dogs at rest beside one in motion: µs per character-step")
    dog = load_character("dog")
    groups = {
        dtype: [_held("motion", dog, dtype, plan), _held("rest", dog, dtype, plan)]
        for dtype in ("float64", "float32")
    }
    rows = []
    for dtype, times in measure(groups, plan).items():
        section.timings += times.values()
        ratio = times["rest"].best / times["motion"].best
        rows.append((dtype, micro(times["motion"]), micro(times["rest"]), f"{ratio:.2f}"))
        claim = f"dog, {plan.batch} {dtype}: at rest over in motion"
        section.bounds.append(Bound(claim, ratio, most=WITHIN))
    section.tables.append(Table("", ("dtype", "motion", "rest", "rest / motion"), rows))
    section.notes.append(f"no contact, no gravity; at rest: {DECAY} steps after a start in motion")
    return section


def _held(name: str, dog: Character, dtype: str, plan: Plan) -> Case:
    """Copies that follow the sway, or that have come to rest in the rest pose."""
    n, rows = plan.batch, plan.batch_rows
    world = World(dog, n=n, dt=DT, dtype=dtype, threads=1, contact=None, gravity=(0.0, 0.0, 0.0))
    still = Target(np.broadcast_to(dog.rest_q, (rows, dog.nq)).copy(), rows=rows)
    goal = still if name == "rest" else target(dog, rows)
    command = Command(drive=Drive(paper_gains(dog), goal, form="spd"))

    def run() -> None:
        world.step(command, rows)

    facts = {"engine": "poise", "model": dog.name, "n": n, "dtype": dtype, "rows": rows}
    case = stepping(name, world, run, n * rows, facts | {"threads": 1, "isa": world.isa})
    if name == "motion":
        return case
    case.reset()
    for _ in range(0, 8 if plan.quick else DECAY, rows):
        run()
    saved = world.state.copy()
    return Case(name, case.units, lambda: world.reset(saved), run, case.end, case.facts)
