"""How the cost of contact grows: with contacts, with characters in a scene, and with copies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from contact import KD, KP, standing_case
from grounded import Hold
from limits import slope
from scenes import DT
from tables import Section, Table, micro
from timing import Array, Case, Plan, Timing, measure

from poise import Character, Command, Drive, Gains, State, Target, World, load_character

# the tests make free objects, and drop limp humanoids
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from falls import dampers, thrown_down
from objects import body

from poise.model.shape import Shape

BOXES = (1, 2, 4, 8, 16, 32)
CROWD = (1, 2, 4, 8, 16, 32, 64)
COPIES = (1, 4, 16, 64, 256, 1024, 4096)
SPACING = 1.2  # metres between the characters of a crowd
FEW = 3  # sizes of each series in a quick run: the first ones


def touching(plan: Plan) -> Section:
    """Boxes, crowds, copies, and the humanoid with more and more of it on the ground."""
    section = Section("contacts", "what contacts cost, µs of one thread per step, dt 1/240")
    human = load_character("humanoid")
    most = FEW if plan.quick else None
    boxes, crowd, copies = BOXES[:most], CROWD[:most], COPIES[:most]
    hold = Hold(KP, KD, DT)
    groups = {
        "boxes": [box_case(f"side by side {k}", k, plan, _beside) for k in boxes],
        "stack": [box_case(f"stack {k}", k, plan, _above) for k in boxes],
        "humanoid": [*_postures(human, plan)],
        "crowd": [crowd_case(human, m, plan) for m in crowd],
        "copies": [
            standing_case(
                f"{n} {dtype}", human, hold, plan, n, max(1, min(plan.rows, 200 // n)), dtype
            )
            for dtype in ("float64", "float32")
            for n in copies
        ],
    }
    times = measure(groups, plan)
    section.timings += [timing for group in times.values() for timing in group.values()]
    section.tables += [
        _box_table(boxes, times["boxes"], times["stack"]),
        Table(
            "the humanoid, float64",
            ("", "contacts", "µs"),
            [(n, f"{t.facts['contacts']:.0f}", micro(t)) for n, t in times["humanoid"].items()],
        ),
        _crowd_table(crowd, times["crowd"]),
        _copies_table(copies, times["copies"]),
    ]
    section.numbers["slopes"] = {
        name: slope(tuple(sizes), [times[name][case].best * count for case, count in of])
        for name, sizes, of in (
            ("boxes", boxes, [(f"side by side {k}", 1) for k in boxes]),
            ("stack", boxes, [(f"stack {k}", 1) for k in boxes]),
            ("crowd", crowd, [(f"crowd {m}", m) for m in crowd]),
        )
    }
    section.notes += [
        "boxes: of one scene, each with four contacts, side by side or on each other; crowd: "
        f"standing humanoids of one scene, spaced {SPACING} m, which may touch each other; copies: "
        "worlds of their own. Times of boxes are per step, the others per character-step.",
        "slopes of the logarithms of the time of a step: "
        + ", ".join(f"{n} {s:.2f}" for n, s in section.numbers["slopes"].items()),
    ]
    section.pictures["contacts.png"] = lambda path: picture(path, boxes, crowd, copies, times)
    return section


# ---- scenes


def box_case(
    name: str, count: int, plan: Plan, place: Callable[[int], tuple[float, float, float]]
) -> Case:
    """Boxes at rest in one scene."""
    shape = Shape("box", (0.1, 0.1, 0.05))
    boxes = [body(shape, name=f"box-{k}", pos=place(k)) for k in range(count)]
    world = World(boxes, dt=DT, threads=1, projectiles=0)
    steps = plan.rows if plan.quick else max(20, 1000 // count)
    return _case(name, world, None, steps, 1, plan)


def _beside(k: int) -> tuple[float, float, float]:
    return 0.5 * (k % 8), 0.5 * (k // 8), 0.05


def _above(k: int) -> tuple[float, float, float]:
    return 0.0, 0.0, 0.05 + 0.1 * k


def _postures(human: Character, plan: Plan) -> list[Case]:
    """In the air, on its feet, and lying."""
    command = Hold(KP, KD, DT).command(human)
    rows = plan.rows if plan.quick else 200
    off = World(human, dt=DT, threads=1, ground=False, gravity=(0.0, 0.0, 0.0))
    up = World(human, dt=DT, threads=1)
    down = thrown_down(human, "plane", [0], "float64", 1)
    down.step(dampers(human), steps=2 if plan.quick else 1200)
    flat = World(human, dt=DT, threads=1)
    flat.reset(State(down.state.q, down.state.v))
    return [
        _case("in the air", off, command, rows, 1, plan),
        _case("stands", up, command, rows, 1, plan),
        _case("lies", flat, dampers(human), rows, 1, plan),
    ]


def crowd_case(human: Character, count: int, plan: Plan) -> Case:
    """Standing humanoids in one scene."""
    side = int(np.ceil(np.sqrt(count)))
    people = []
    for k in range(count):
        root = replace(
            human.links[0],
            pos=(SPACING * (k % side), SPACING * (k // side), human.links[0].pos[2]),
        )
        people.append(Character(f"one-{k}", (root, *human.links[1:]), human.limbs))
    world = World(people, dt=DT, threads=1, projectiles=0)
    kp, kd = np.full(human.nv, KP), np.full(human.nv, KD)
    kp[:6] = kd[:6] = 0.0
    gains = Gains(people, np.tile(kp, count), np.tile(kd, count))
    drive = Drive(gains, Target(world.scene.forest.rest_q), form="implicit")
    steps = plan.rows if plan.quick else max(2, 200 // count)
    return _case(f"crowd {count}", world, Command(drive=drive), steps, count, plan)


def _case(
    name: str, world: World, command: Command | None, steps: int, characters: int, plan: Plan
) -> Case:
    world.step(command, steps=2 if plan.quick else 60)
    saved = world.state.copy()

    def run() -> None:
        world.step(command, steps=steps)

    def end() -> Array:
        return np.concatenate([world.state.q, world.state.v])

    facts = {"engine": "poise", "model": name, "n": 1, "dtype": "float64", "threads": 1}
    facts["contacts"] = len(world.contacts.copy)
    return Case(name, steps * characters, lambda: world.reset(saved), run, end, facts)


# ---- what is said


def _box_table(boxes: Sequence[int], beside: dict[str, Timing], stack: dict[str, Timing]) -> Table:
    rows = []
    for k in boxes:
        one, two = beside[f"side by side {k}"], stack[f"stack {k}"]
        found = f"{one.facts['contacts']}, {two.facts['contacts']}"
        each = [f"{1e6 * t.best / max(1, t.facts['contacts']):.2f}" for t in (one, two)]
        rows.append((str(k), found, micro(one), each[0], micro(two), each[1]))
    heads = ("boxes", "contacts", "side by side", "per contact", "a stack", "per contact")
    return Table("boxes of one scene, float64", heads, rows)


def _crowd_table(crowd: Sequence[int], times: dict[str, Timing]) -> Table:
    rows = [
        (str(m), f"{times[f'crowd {m}'].facts['contacts']}", micro(times[f"crowd {m}"]))
        for m in crowd
    ]
    heads = ("characters", "contacts", "µs per character-step")
    return Table("standing humanoids of one scene, float64", heads, rows)


def _copies_table(copies: Sequence[int], times: dict[str, Timing]) -> Table:
    rows = [(str(n), micro(times[f"{n} float64"]), micro(times[f"{n} float32"])) for n in copies]
    return Table(
        "copies of one standing humanoid, µs per character-step",
        ("copies", "float64", "float32"),
        rows,
    )


def picture(
    path: Path,
    boxes: Sequence[int],
    crowd: Sequence[int],
    copies: Sequence[int],
    times: dict[str, dict[str, Timing]],
) -> None:
    """Three plots side by side, logarithms both ways."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure = Figure(figsize=(12, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    for group, head in (("boxes", "side by side"), ("stack", "stack")):
        found = [times[group][f"{head} {k}"] for k in boxes]
        x = [t.facts["contacts"] for t in found]
        left.plot(x, [1e6 * t.best for t in found], "o-", label=f"boxes, {head}")
    for name, t in times["humanoid"].items():
        if t.facts["contacts"]:
            left.plot(t.facts["contacts"], 1e6 * t.best, "s", label=f"humanoid {name}")
    left.set(xlabel="contacts", ylabel="µs per step", title="cost against contacts")
    one = [times["crowd"][f"crowd {m}"].best * 1e6 for m in crowd]
    middle.plot(crowd, one, "o-", label="humanoids of one scene")
    middle.set(xlabel="characters", ylabel="µs per character-step", title="cost against characters")
    middle.set_ylim(1.0, 100.0 * np.ceil(max(one) / 100.0))
    for dtype in ("float64", "float32"):
        cost = [times["copies"][f"{n} {dtype}"].best * 1e6 for n in copies]
        right.plot(copies, cost, "o-", label=dtype)
    right.set_ylim(1.0, 100.0)
    right.set(xlabel="copies", ylabel="µs per character-step", title="cost against copies")
    for axes in (left, middle, right):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
