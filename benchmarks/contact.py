"""What standing on the ground costs: ours, and the peers that stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bullet import bullet_stander
from dart import dart_stander
from grounded import MUJOCO, Hold, Stander, find_engines, mujoco_stander, standing
from scenes import DT, start
from tables import Bound, Section, Table, micro
from timing import Array, Case, Plan, Timing, measure

from poise import Character, World, load_character

KP, KD = 1e3, 1e2  # [N m/rad, N m s/rad]
"""Enough to stand on; soft enough for MuJoCo's integrators that take springs explicitly."""

REQUIRED = {"batch f32": 10.0, "batch f64": 6.0, "one": 2.0}
"""How many times MuJoCo's best: steps per second."""

SCENES = {"links meet": True, "ground only": False}
NEAR = 0.1  # starts are so much nearer to the rest pose than elsewhere: nothing balances here
SETTLED = 2.0  # [s] before the clock runs
BRIEFLY = 0.5  # [s]; who falls later is timed while it stands


def contact(plan: Plan) -> Section:
    """The humanoid stands; µs per character-step on one thread."""
    section = Section("contact", "the humanoid stands: µs per character-step, dt 1/240, one thread")
    engines, missing = find_engines()
    section.notes += [f"{name} is skipped: {why}" for name, why in missing.items()]
    section.numbers = {"skipped": missing, "ratios": {}}
    human = load_character("humanoid")
    groups: dict[str, list[Case]] = {}
    fates: dict[str, dict[str, str]] = {}
    for scene, meet in SCENES.items():
        hold = Hold(KP, KD, DT, self_collision=meet)
        peers = list(_peers(engines, human, hold, plan))
        fates[scene] = {stander.name: fate for stander, fate, _ in peers}
        cases = [case for _, _, case in peers if case is not None]
        groups[scene] = [*_ours(human, hold, plan), *cases]
    for scene, times in measure(groups, plan).items():
        section.timings += times.values()
        section.tables.append(_table(scene, times, fates[scene]))
        section.bounds += _bounds(scene, times, fates[scene], section)
    section.notes += [
        f"joints of {KP:g} N m/rad and {KD:g} N m s/rad, root free, friction 0.8; "
        f"each has stood {SETTLED:g} s when the clock starts, and every copy of a batch came from "
        "another pose. Who falls later than "
        f"{BRIEFLY:g} s is timed while it stands, and does not count as a peer that stands.",
        "links meet: the same pairs of links in all engines, those of our world. Peers: joint "
        "springs and dampers, their own defaults else; MuJoCo by rollout, DART by its step. "
        "PyBullet has position motors instead, which know no stiffness. Ours and MuJoCo have the "
        "joints' limits, too; they are not reached.",
    ]
    return section


# ---- ours


def _ours(human: Character, hold: Hold, plan: Plan) -> list[Case]:
    # short windows, as the peers have: on a busy machine long ones are cut up. But several steps:
    # at rest some need a solve and others none
    one, batch = min(plan.rows, 200), 2 if plan.quick else 10
    return [
        standing_case("one", human, hold, plan, 1, one),
        standing_case("batch f64", human, hold, plan, plan.batch, batch),
        standing_case("batch f32", human, hold, plan, plan.batch, batch, "float32"),
    ]


def standing_case(
    name: str,
    human: Character,
    hold: Hold,
    plan: Plan,
    n: int,
    rows: int,
    dtype: str = "float64",
) -> Case:
    """n copies that have come to stand from poses of their own."""
    world = World(
        human, n=n, dt=hold.dt, dtype=dtype, threads=1, self_collision=hold.self_collision
    )
    world.reset(start(human, n, size=NEAR))
    command = hold.command(human)
    world.step(command, steps=_settling(hold, plan))
    saved = world.state.copy()

    def end() -> Array:
        q = world.state.q
        if world.diverged or not standing(human, q[..., :7]):
            raise FloatingPointError(f"{name}: a copy does not stand: this timing means nothing")
        return np.concatenate([q.ravel(), world.state.v.ravel()])

    facts = {"engine": "poise", "model": human.name, "n": n, "dtype": dtype, "rows": rows}
    facts |= {"threads": 1, "contacts": len(world.contacts.copy) / n}
    facts |= {"links_meet": hold.self_collision}

    def run() -> None:
        world.step(command, steps=rows)

    return Case(name, n * rows, lambda: world.reset(saved), run, end, facts)


def _settling(hold: Hold, plan: Plan) -> int:
    return 24 if plan.quick else round(SETTLED / hold.dt)


# ---- theirs


def _peers(
    engines: dict[str, Any], human: Character, hold: Hold, plan: Plan
) -> Iterator[tuple[Stander, str, Case | None]]:
    """Each peer, how it fares, and what to time of it."""
    made: list[Callable[[], Stander | None]] = []
    if "mujoco" in engines:
        mujoco = engines["mujoco"]
        made += [lambda i=i: mujoco_stander(mujoco, human, hold, i) for i in MUJOCO]  # type: ignore[misc]
    if "dart" in engines:
        made.append(lambda: dart_stander(engines["dart"], human, hold))
    if "pybullet" in engines:
        made.append(lambda: bullet_stander(engines["pybullet"], human, hold))
    for make in made:
        stander = make()
        if stander is not None:
            yield stander, *_fate(stander, human, hold, plan)


def _fate(stander: Stander, human: Character, hold: Hold, plan: Plan) -> tuple[str, Case | None]:
    mass = sum(link.mass for link in human.links)
    if not np.isclose(stander.mass, mass, rtol=1e-9):
        raise ValueError(f"{stander.name} has {stander.mass:g} kg, ours {mass:g} kg")
    rows = stander.watch(2 * _settling(hold, plan))
    stood = np.array([standing(human, row) for row in rows[:, :7]])
    k = plan.rows if plan.quick else 100
    if stood.all():
        return "stands", _peer_case(stander, human, hold, k, lambda: None)
    lost = int(np.argmin(stood)) * hold.dt
    verb = "falls" if np.isfinite(rows).all() else "diverges"
    fate = f"{verb} at {lost:.2g} s"
    if lost < BRIEFLY:
        return fate, None
    # while it stands
    return fate, _peer_case(stander, human, hold, k, stander.again)


def _peer_case(
    stander: Stander, human: Character, hold: Hold, k: int, reset: Callable[[], None]
) -> Case:
    def end() -> Array:
        row: Array = stander.watch(1)[0]
        if not standing(human, row[:7]):
            raise FloatingPointError(f"{stander.name} has fallen: this timing means nothing")
        return row

    reset()
    stander.step(k)
    facts = {"engine": stander.name, "model": human.name, "n": 1, "threads": 1}
    facts |= {"contacts": stander.contacts(), "links_meet": hold.self_collision}
    return Case(stander.name, k, reset, lambda: stander.step(k), end, facts)


# ---- what is said


def _table(scene: str, times: dict[str, Timing], fates: dict[str, str]) -> Table:
    rows = [
        (
            name,
            micro(timing),
            f"{1.0 / timing.best:,.0f}",
            f"{timing.facts['contacts']:.1f}",
            fates.get(name, "stands"),
        )
        for name, timing in times.items()
    ]
    rows += [(name, "-", "-", "-", fate) for name, fate in fates.items() if name not in times]
    return Table(scene, ("", "µs", "steps/s", "contacts", ""), rows)


def _bounds(
    scene: str, times: dict[str, Timing], fates: dict[str, str], section: Section
) -> list[Bound]:
    upright = [name for name, fate in fates.items() if fate == "stands"]
    rivals = [times[name] for name in upright if name.startswith("MuJoCo")]
    if not rivals:
        return []
    best = min(rivals, key=lambda timing: timing.best)
    ratios = {name: best.best / times[name].best for name in REQUIRED}
    section.numbers["ratios"][scene] = {"by": best.name, **ratios}
    return [
        Bound(f"{scene}, {name}: times {best.name}", ratios[name], least=least)
        for name, least in REQUIRED.items()
    ]
