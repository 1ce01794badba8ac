"""What a batch costs besides its steps: reading it, resetting it, and targets of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from memory import STATUS, kilobytes
from scenes import DT
from tables import Bound, Section, Table, micro
from timing import Array, Case, Plan, Timing, measure

from poise import Command, StablePD, State, Target, World, load_character
from poise.measure import fallen

COPIES = (1024, 2048, 4096)
TURN = 1024  # copies of a turn of reinforcement learning
RESET = 0.01  # of the copies that each turn resets
READ, TURNS, TARGETS = 0.10, 1.5, 1.10  # at most, relative to the step

HUMAN = load_character("humanoid")


def batch(plan: Plan) -> Section:
    """Reads, turns and targets, relative to the step of a standing humanoid in float32."""
    section = Section("batch", "reading and resetting a batch, humanoid standing, float32")
    copies = (16,) if plan.quick else COPIES
    size = copies[0]
    groups = {f"{n}": [_step(n), _read(n)] for n in copies}
    groups["turn"] = [_turn(size, whole=False), _turn(size, whole=True)]
    for name, contact in (("contact", "impulse"), ("no contact", None)):
        groups[f"targets, {name}"] = [
            _targets("shared", size, contact, own=False),
            _targets("per copy", size, contact, own=True),
        ]
    times = measure(groups, plan)
    section.timings += [timing for group in times.values() for timing in group.values()]
    section.tables.append(_reads(copies, times, section))
    section.tables.append(_ratios(times, section))
    if STATUS.exists():
        kept, peak = kilobytes("float32", copies[-1], 8)
        section.numbers["memory_kB"] = {"kept": kept, "peak": peak}
        section.notes.append(f"{kept:.1f} kB per character, at the peak {peak:.1f} kB")
    section.notes.append(
        f"one thread, dt 1/240, self-collision on; a turn is a step, q, v and contact flags into "
        f"arrays of float32, who has fallen, and a reset of {RESET:.0%} of the copies, a row each"
    )
    return section


def _reads(copies: tuple[int, ...], times: dict[str, dict[str, Timing]], to: Section) -> Table:
    rows = []
    for n in copies:
        step, read = times[f"{n}"]["step"], times[f"{n}"]["read q and v"]
        ratio = read.best / step.best
        rows.append((f"{n}", micro(step), micro(read), f"{ratio:.1%}"))
        to.numbers[f"read_{n}"] = ratio
        if n == COPIES[1]:
            claim = f"q and v of {n} copies, relative to a step"
            to.bounds.append(Bound(claim, ratio, most=READ))
    return Table("µs", ("copies", "step", "read q and v", "relative"), rows)


def _ratios(times: dict[str, dict[str, Timing]], to: Section) -> Table:
    rows = []
    for name, (one, two), most in (
        ("turn", ("step", "turn"), TURNS),
        ("targets, contact", ("shared", "per copy"), TARGETS),
        ("targets, no contact", ("shared", "per copy"), None),
    ):
        first, second = times[name][one], times[name][two]
        ratio = second.best / first.best
        rows.append((f"{name}: {two} / {one}", micro(first), micro(second), f"{ratio:.3f}"))
        to.numbers[name] = ratio
        if most is not None:
            to.bounds.append(Bound(f"{name}: {two} relative to {one}", ratio, most=most))
    return Table("µs", ("", "first", "second", "ratio"), rows)


# ---- cases


def _standing(n: int, contact: str | None = "impulse") -> tuple[World, StablePD]:
    world = World(HUMAN, n=n, dt=DT, dtype="float32", threads=1, contact=contact)
    if contact is None:
        world.gravity = (0.0, 0.0, 0.0)
    return world, StablePD(world)


def _case(name: str, world: World, reset: Callable[[], None], run: Callable[[], object]) -> Case:
    def end() -> Array:
        if world.diverged:
            raise FloatingPointError("a copy diverged")
        return world.state.q

    facts = {"engine": "poise", "n": world.n, "dtype": "float32", "threads": 1}
    return Case(name, 1, reset, run, end, facts)


def _settled(world: World, command: Command) -> None:
    for _ in range(60):
        world.step(command)


def _step(n: int) -> Case:
    world, servo = _standing(n)
    command = servo(world.state, Target(HUMAN.rest_q))
    _settled(world, command)
    return _case("step", world, lambda: None, lambda: world.step(command))


def _read(n: int) -> Case:
    world, servo = _standing(n)
    command = servo(world.state, Target(HUMAN.rest_q))
    _settled(world, command)
    q, v = np.empty((n, HUMAN.nq), np.float32), np.empty((n, HUMAN.nv), np.float32)
    # a step first: it leaves in the caches what a step leaves there
    return _case("read q and v", world, lambda: world.step(command), lambda: world.read(q=q, v=v))


def _turn(n: int, *, whole: bool) -> Case:
    """A turn, or its step alone in a world that is reset alike."""
    world, servo = _standing(n)
    command = servo(world.state, Target(HUMAN.rest_q))
    _settled(world, command)
    q, v = np.empty((n, HUMAN.nq), np.float32), np.empty((n, HUMAN.nv), np.float32)
    flags = np.empty((n, len(HUMAN.links)), bool)
    count = max(1, round(RESET * n))
    rows = State(np.tile(HUMAN.rest_q, (count, 1)), np.zeros((count, HUMAN.nv)))
    rng = np.random.default_rng(0)
    chosen = rng.permutation(n)[:count]

    def reset() -> None:
        world.reset(rows, where=chosen)

    def turn() -> None:
        world.step(command)
        world.read(q=q, v=v, link_contact=flags)
        fallen(world)
        world.reset(rows, where=chosen)

    if whole:
        return _case("turn", world, lambda: None, turn)
    return _case("step", world, reset, lambda: world.step(command))


def _targets(name: str, n: int, contact: str | None, *, own: bool) -> Case:
    world, servo = _standing(n, contact)
    q, v = HUMAN.rest_q, np.zeros(HUMAN.nv)
    target = Target(np.tile(q, (n, 1)), np.tile(v, (n, 1))) if own else Target(q, v)
    command = servo(world.state, target)
    _settled(world, command)
    return _case(name, world, lambda: None, lambda: world.step(command))
