"""Y1, Y2, Y3, Y6: models, tracking errors against the step, and the largest stable step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import poise
from poise.experiments import figures
from poise.experiments.report import Claim, Item, Table
from poise.experiments.timing import best
from poise.experiments.yin2020.setup import (
    MODELS,
    Tracker,
    clip_of,
    gains_of,
    is_stable,
    limb_error,
    tracked,
)

STEPS = (1 / 1000, 1 / 600, 1 / 300, 1 / 240, 1 / 120, 1 / 60, 1 / 30)  # [s]
LADDER = (
    1 / 4000,
    1 / 2000,
    1 / 1000,
    1 / 600,
    1 / 480,
    1 / 300,
    1 / 240,
    1 / 180,
    1 / 120,
    1 / 90,
    1 / 60,
    1 / 45,
    1 / 30,
    1 / 20,
    1 / 15,
)

TOE = "front_right_paw"
"""Of the dog: its links end there."""

Progress = Callable[[float], None]


def y1() -> Item:
    """The models."""
    rows, same = [], True
    for name, (dof, depth) in MODELS.items():
        character = poise.load_character(name)
        rows.append([name, dof, character.nv, depth, character.depth])
        same = same and (character.nv, character.depth) == (dof, depth)
    item = Item("Y1", "Models", "Table 1", "Our characters stand in for the paper's.")
    item.claims = [
        Claim(
            "degrees of freedom and deepest paths",
            "Table 1",
            "the same" if same else "not the same",
            "equal",
            same,
        )
    ]
    item.tables = [
        Table("", ["model", "DoF, paper", "DoF, here", "depth, paper", "depth, here"], rows)
    ]
    return item


def y2(progress: Progress) -> Item:
    """Humanoid, running: DF and MABA are the same, and stable to 1/30 s."""
    clip = clip_of("humanoid", "run")
    panels, apart, stable, rows = {}, 0.0, True, []
    for k, dt in enumerate(STEPS):
        runs = {name: tracked(clip, dt, name) for name in ("MABA", "DF")}
        errors = {n: (t, 1e3 * limb_error(clip, "right_foot", t, q)) for n, (t, q) in runs.items()}
        if dt in (1 / 1000, 1 / 120, 1 / 30):
            panels[f"dt = 1/{1 / dt:.0f} s"] = errors
        stable = stable and all(is_stable(clip, *run) for run in runs.values())
        if len(runs["MABA"][1]) == len(runs["DF"][1]):
            apart = max(apart, float(np.abs(runs["MABA"][1] - runs["DF"][1]).max()))
        else:
            apart = np.inf
        rows.append([f"1/{1 / dt:.0f}", *(float(e.mean()) for _, e in errors.values())])
        progress((k + 1) / len(STEPS))
    item = Item(
        "Y2",
        "Humanoid, running",
        "Fig. 5",
        "Distance of the right foot's joint from its place, relative to the root. The paper's "
        "gains; DF standalone, MABA embedded, float64; no ground.",
    )
    item.claims = [
        Claim(
            "DF and MABA are the same",
            "the same",
            f"positions at most {apart:.1e} apart",
            "below 1e-6",
            apart < 1e-6,
        ),
        Claim(
            "both are stable up to 1/30 s",
            "stable",
            "stable" if stable else "not stable",
            "every link within 0.5 m of its place",
            stable,
        ),
    ]
    item.tables = [Table("mean error [mm]", ["step [s]", "MABA", "DF"], rows)]
    item.figures = {"Y2": figures.lines(panels, y="error [mm]")}
    return item


def y3(progress: Progress) -> Item:
    """Dog, canter: DF standalone in float32 loses what MABA keeps."""
    clip = clip_of("dog", "dog-canter")
    ways = [(n, d) for d in ("float32", "float64") for n in ("MABA", "DF")]
    table, curves, fine = [], {}, {}
    for i, dt in enumerate(STEPS):
        row: list[object] = [f"1/{1 / dt:.0f}"]
        for name, dtype in ways:
            t, q = tracked(clip, dt, name, dtype=dtype)
            error = 1e3 * limb_error(clip, TOE, t, q)
            good = is_stable(clip, t, q)
            fine[name, dtype, dt] = good
            row.append(float(error.mean()) if good else "diverges")
            if dt in (1 / 300, 1 / 60, 1 / 30) and dtype == "float32":
                curves.setdefault(f"dt = 1/{1 / dt:.0f} s", {})[name] = (t, error)
        table.append(row)
        progress((i + 1) / len(STEPS))
    maba = all(good for (name, _, _), good in fine.items() if name == "MABA")
    coarse = [fine["DF", "float32", dt] for dt in (1 / 60, 1 / 30)]
    means = {row[0]: row for row in table}
    agree = _close(means["1/300"][1], means["1/300"][2])
    item = Item(
        "Y3",
        "Dog, canter",
        "Fig. 6",
        "The right front toe, relative to the root. DF standalone: torques are formed, and the "
        "dynamics solve again, as the authors had it in PhysX in float32; MABA embedded.",
    )
    item.claims = [
        Claim(
            "MABA is stable at every step",
            "stable",
            "stable" if maba else "not stable",
            "every link within 0.5 m of its place, both precisions",
            maba,
        ),
        Claim(
            "DF in float32 diverges from 1/60 s on",
            "diverges",
            " and ".join("stable" if good else "diverges" for good in coarse),
            "diverges at 1/60 and 1/30 s",
            not any(coarse),
            why=""
            if not any(coarse)
            else "rounding errors of the torque return times "
            + ", ".join(f"{_feedback(clip, dt):.2f} at 1/{1 / dt:.0f} s" for dt in (1 / 60, 1 / 30))
            + ": ours has less rounding than PhysX",
        ),
        Claim(
            "for steps up to 1/300 s they agree",
            "agree",
            f"{means['1/300'][1]} and {means['1/300'][2]} mm",
            "within 1 %",
            agree,
        ),
    ]
    columns = ["step [s]", *(f"{name}, {dtype}" for name, dtype in ways)]
    item.tables = [Table("mean error [mm]", columns, table)]
    item.figures = {"Y3": figures.lines(curves, y="error [mm]")}
    return item


def y6(progress: Progress) -> Item:
    """Dog, canter: the largest stable step, and how many run in real time on one thread."""
    clip = clip_of("dog", "dog-canter")
    ways = {"PD": ("PD", "float64"), "DF, float32": ("DF", "float32"), "MABA": ("MABA", "float32")}
    largest = {}
    for i, (label, (name, dtype)) in enumerate(ways.items()):
        steady = [dt for dt in LADDER if is_stable(clip, *tracked(clip, dt, name, dtype=dtype))]
        largest[label] = max(steady, default=0.0)
        if not steady:  # below the ladder: the bound of the linear equations
            largest[label] = _bound(clip)
        progress(0.6 * (i + 1) / len(ways))
    counts = {}
    for label, (name, _) in ways.items():
        if name != "PD" and largest[label]:
            counts[label] = _real_time(clip, largest[label], "maba" if name == "MABA" else "df")
        progress(0.6 + 0.2 * len(counts))
    item = Item(
        "Y6",
        "Dog: largest stable step, and dogs in real time",
        "Fig. 1",
        "The largest step of a ladder from 1/4000 to 1/15 s at which the canter stays stable under "
        "the paper's gains; where there is none, the bound of check_gains. Then steps a second on "
        "one thread, 1024 dogs in a batch of float32.",
    )
    item.claims = [
        Claim(
            "PD needs the smallest steps, MABA takes the largest",
            "PD < SPD < MABA",
            ", ".join(f"{k} 1/{1 / v:,.0f} s" for k, v in largest.items()),
            "PD below a tenth of MABA",
            largest["PD"] < 0.1 * largest["MABA"],
        ),
        Claim(
            "dogs in real time on one thread",
            "the paper's headline",
            f"{counts.get('MABA', 0):,.0f}",
            "over 1000",
            counts.get("MABA", 0) > 1000,
        ),
    ]
    rows = [[k, f"1/{1 / v:,.0f}", counts.get(k)] for k, v in largest.items()]
    item.tables = [Table("", ["method", "largest stable step [s]", "dogs in real time"], rows)]
    return item


def _real_time(clip: poise.Clip, dt: float, method: str) -> float:
    """Characters that one thread simulates in real time."""
    n = 1024 if method == "maba" else 64
    world = poise.World(
        clip.character, n=n, dt=dt, ground=False, contact=None, dtype="float32", threads=1
    )
    world.reset(clip.state(0.0))
    servo = Tracker(world, method, "spd", method == "maba")
    target = clip.target(0.2)
    seconds = best(lambda: world.step(servo(None, target)), windows=10, calls=3)
    return n * dt / seconds


def _close(a: object, b: object) -> bool:
    both = isinstance(a, float) and isinstance(b, float)
    return both and abs(float(a) - float(b)) < 0.01 * max(abs(float(a)), 1e-9)  # type: ignore[arg-type]


def _bound(clip: poise.Clip) -> float:
    """The largest stable step of explicit PD under the paper's gains [s]."""
    from poise.control.check_gains import check_gains

    character = clip.character
    return float(check_gains(character, 1 / 1000, gains_of(character), form="pd").largest_dt)


def _feedback(clip: poise.Clip, dt: float) -> float:
    """How much of the rounding errors of a torque in float32 comes back in the next step."""
    from poise.control.check_gains import check_gains

    character = clip.character
    found = check_gains(
        character,
        dt,
        gains_of(character),
        form="spd",
        embedded=False,
        dtype="float32",
        q=clip.q(0.2),
    )
    return float(found.feedback)
