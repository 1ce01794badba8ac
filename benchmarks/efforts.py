"""Effort limits: what they cost, and that stable PD stays stable with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tables import Bound, Section, Table, micro
from timing import Array, Case, Plan, measure

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    State,
    Target,
    World,
    load_character,
    load_clip,
    suggest_gains,
)
from poise.errors import Diverged

MOST = 1.3  # times the cost without limits
EFFORT = 200.0  # [N m] of every joint
COPIES = 64
DT = 1 / 240
FREQUENCIES, LIMITS, STEPS = (8.0, 16.0, 60.0), (200.0, 100.0, 50.0), (1 / 60, 1 / 120, 1 / 240)
SWITCH, SECONDS = 0.25, 3.0  # [s]


def efforts(plan: Plan) -> Section:
    """Standing and walking with limits and without; then the sweep of stiff commands."""
    section = Section("efforts", "effort limits: µs per character-step, dt 1/240, one thread")
    human = load_character("humanoid")
    groups = {}
    for scene, make in {"stands": _standing, "walks": _walking}.items():
        for size, n, dtype in (("one f64", 1, "float64"), ("batch f32", COPIES, "float32")):
            n = min(n, plan.batch)
            groups[f"{scene}, {size}"] = [
                make("without", human, n, dtype, plan),
                make("with", limited(human, EFFORT), n, dtype, plan),
            ]
    rows = []
    for name, times in measure(groups, plan).items():
        section.timings += times.values()
        ratio = times["with"].best / times["without"].best
        fraction = times["with"].facts["saturated"]
        cells = (micro(times["without"]), micro(times["with"]), f"{ratio:.2f}", f"{fraction:.1%}")
        rows.append((name, *cells))
        section.bounds.append(Bound(f"{name}: with limits / without", ratio, most=MOST))
    columns = ("", "without", "with", "ratio", "copies saturated")
    section.tables.append(Table(f"limits of {EFFORT:g} N m", columns, rows))
    section.tables.append(_sweep(human, plan, section))
    section.notes += [
        "walks: follows the walk from a phase of its own with a free root for a second, falls "
        "included; stands: 1e3 N m/rad, after 2 s. Saturated: steps of copies with a joint at its "
        "limit.",
        "sweep: rest and squat commanded in turn every 0.25 s for 3 s; cells that diverge of those "
        "with limits of 200, 100, 50 N m and steps of 1/60, 1/120, 1/240 s. In the air at 60 Hz "
        "limbs turn by a radian in a step, and velocity terms, not the drive, are what fails.",
    ]
    return section


def limited(character: Character, effort: float) -> Character:
    """The character with this limit in every joint."""
    links = (
        replace(
            link,
            joints=tuple(
                replace(joint, effort=None if joint.kind == "free" else effort)
                for joint in link.joints
            ),
        )
        for link in character.links
    )
    return Character(character.name, tuple(links))


# ---- cost


def _standing(name: str, human: Character, n: int, dtype: str, plan: Plan) -> Case:
    world = World(human, n=n, dt=DT, dtype=dtype, threads=1)
    gains = Gains(human, 1e3, 1e2)
    command = Command(drive=Drive(gains, Target(human.rest_q)))
    world.step(command, steps=24 if plan.quick else 480)
    steps = 2 if plan.quick else 40
    return _case(name, world, [command] * steps)


def _walking(name: str, human: Character, n: int, dtype: str, plan: Plan) -> Case:
    world = World(human, n=n, dt=DT, dtype=dtype, threads=1)
    clip, gains = load_clip("walk", human), suggest_gains(human)
    phase = np.random.default_rng(1).uniform(0, clip.duration, n)

    def at(time: float) -> State:
        return clip.state(phase + time) if n > 1 else clip.state(time)

    start = at(0.0)
    world.reset(State(start.q, start.v))
    commands = []
    for k in range(2 if plan.quick else 240):
        target = at((k + 1) * DT)
        commands.append(Command(drive=Drive(gains, Target(target.q, target.v))))
    return _case(name, world, commands)


def _case(name: str, world: World, commands: list[Command]) -> Case:
    saved, n = world.state.copy(), world.n
    fraction = 0.0
    for command in commands:
        world.step(command)
        fraction += float(np.atleast_2d(world.saturated).any(axis=1).mean()) / len(commands)

    def run() -> None:
        for command in commands:
            world.step(command)

    def end() -> Array:
        if world.diverged:
            raise FloatingPointError(f"{name}: a copy diverged: this timing means nothing")
        return np.concatenate([world.state.q.ravel(), world.state.v.ravel()])

    facts = {"engine": "poise", "n": n, "threads": 1, "steps": len(commands), "saturated": fraction}
    return Case(name, n * len(commands), lambda: world.reset(saved), run, end, facts)


# ---- stability


def _sweep(human: Character, plan: Plan, section: Section) -> Table:
    frames = load_clip("squat", human).frames
    poses = human.rest_q, frames[np.argmin(frames[:, 2])]
    rows = []
    for frequency in FREQUENCIES:
        cells = []
        for ground in (False, True):
            for dtype in ("float64", "float32"):
                lost = sum(
                    _diverges(human, poses, frequency, effort, dt, ground, dtype)
                    for effort in (LIMITS[:1] if plan.quick else LIMITS)
                    for dt in (STEPS[:1] if plan.quick else STEPS)
                )
                cells.append(f"{lost} of {1 if plan.quick else 9}")
                where = f"{frequency:g} Hz, {'ground' if ground else 'air'}, {dtype}"
                section.numbers[where] = lost
                if frequency < 60 or ground:
                    section.bounds.append(
                        Bound(f"{where}: cells that diverge", lost, most=0, unit="cells")
                    )
        rows.append((f"{frequency:g} Hz", *cells))
    return Table("sweep", ("", "air f64", "air f32", "ground f64", "ground f32"), rows)


def _diverges(
    human: Character,
    poses: tuple[Array, Array],
    frequency: float,
    effort: float,
    dt: float,
    ground: bool,
    dtype: str,
) -> bool:
    body = limited(human, effort)
    if ground:
        world = World(body, dt=dt, dtype=dtype)
    else:
        world = World(body, dt=dt, dtype=dtype, gravity=(0, 0, 0), contact=None)
    world.reset(State(human.rest_q))
    gains = suggest_gains(body, frequency)
    try:
        for k in range(round(SECONDS / SWITCH)):
            command = Command(drive=Drive(gains, Target(poses[k % 2])))
            world.step(command, steps=round(SWITCH / dt))
    except Diverged:
        return True
    return bool(np.abs(world.state.v).max() > 1e3)
