"""Y1, Y2, Y3, Y6, Y9: models, tracking errors by step, the largest stable step, others' clips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import poise
from poise.control.registry import make_controller
from poise.experiments import figures
from poise.experiments.report import Claim, Item, Table, data_folder, experiment
from poise.experiments.yin2020.setup import (
    JOINTS,
    MODELS,
    Run,
    Tracker,
    clip_of,
    follow,
    gains_of,
    is_stable,
    largest_step,
    limb_error,
    own_units,
)
from poise.math.arrays import Progress
from poise.simulation.world import World
from poise.trials.comparison import Outcome, attempt, evaluate, record_run
from poise.trials.timing import best
from poise.trials.trial import Trial, prepare_trial, step_text

STEPS = (1 / 1000, 1 / 600, 1 / 300, 1 / 240, 1 / 120, 1 / 60, 1 / 30)  # [s]
SHOWN = (1 / 300, 1 / 120, 1 / 60, 1 / 30)  # in the figures [s]
UNITS = (1, 2, 4, 8, 16, 32, 64)  # of rounding, see `following`
WAYS = [(way, dtype) for dtype in ("float32", "float64") for way in ("MABA", "DF")]

ANKLE, TOE = "right_foot", "front_right_paw"
"""Links whose errors the paper shows: a foot begins at the ankle, and the dog ends at its paws."""


@experiment("Y1", "Models", "Table 1")
def y1(item: Item, progress: Progress) -> None:
    """Our characters stand in for the paper's."""
    rows = []
    for name, (dof, depth) in MODELS.items():
        character = poise.load_character(name)
        rows.append([name, dof, character.nv, depth, character.depth])
    same = all(row[1] == row[2] and row[3] == row[4] for row in rows)
    here = "the same" if same else "not the same"
    item.claim("degrees of freedom and deepest paths", "Table 1", here, "equal", same)
    item.table("", ["model", "DoF, paper", "DoF, here", "depth, paper", "depth, here"], rows)


@experiment("Y2", "Humanoid, running", "Fig. 5")
def y2(item: Item, progress: Progress) -> None:
    """Distance of the right ankle from its place, relative to the root. The paper's gains; DF
    standalone, MABA embedded, float64; no ground.
    """
    clip = clip_of("humanoid", "run")
    rows, curves, most, stable = [], {}, 0.0, True
    for k, dt in enumerate(STEPS):
        runs = {way: follow(clip, dt, way) for way in ("MABA", "DF")}
        errors = {way: 1e3 * limb_error(clip, ANKLE, run) for way, run in runs.items()}
        rows.append([step_text(dt), *(float(error.mean()) for error in errors.values())])
        if dt in SHOWN:
            curves[f"dt = {step_text(dt)} s"] = {w: (runs[w].time, errors[w]) for w in runs}
        most = max(most, _difference(runs["MABA"], runs["DF"]))
        stable = stable and all(is_stable(clip, run) for run in runs.values())
        progress((k + 1) / len(STEPS))
    item.claim(
        "DF and MABA are the same",
        "near identical",
        f"positions differ by at most {most:.1e}",
        "below 1e-6",
        most < 1e-6,
    )
    item.claim(
        "both are stable up to 1/30 s",
        "stable",
        "stable" if stable else "not stable",
        "every link within 0.5 m of its place",
        stable,
    )
    item.table("mean error [mm]", ["step [s]", "MABA", "DF"], rows)
    item.figures["Y2"] = figures.lines(curves, y="error [mm]", dashed=("DF",))


Runs = dict[tuple[str, str, float], Run]
"""Runs by way, precision and step."""


@experiment("Y3", "Dog, canter", "Fig. 6")
def y3(item: Item, progress: Progress) -> None:
    """The right front toe, relative to the root. DF standalone: torques are formed, and the
    dynamics solve again, as the authors had it in PhysX in float32; MABA embedded. The last table
    adds rounding errors to the torques of DF: so many units of float32, relative to K a, which the
    torque Q - K a is a small difference to.
    """
    clip = clip_of("dog", "dog-canter")
    runs: Runs = {}
    for i, dt in enumerate(STEPS):
        for way, dtype in WAYS:
            runs[way, dtype, dt] = follow(clip, dt, way, dtype=dtype)
        progress(0.6 * (i + 1) / len(STEPS))
    stands = _stands(clip, lambda done: progress(0.6 + 0.3 * done))
    rough = _like_the_paper(stands)
    ours = {dt: own_units(clip, dt) for dt in SHOWN}
    _claim_dog(item, clip, runs, ours)
    item.claim(
        "the reason is rounding of the torque that is handed over",
        "less numerical errors",
        "no rounding does what the paper saw"
        if rough is None
        else f"with {rough} units of rounding DF diverges at 1/60 and 1/30 s, not at 1/120 s",
        "there is a rounding with which DF does what the paper saw",
        rough is not None,
    )
    item.tables = [_errors_of_dog(clip, runs), _rounding(clip, stands, ours)]
    item.figures["Y3"] = _figure_of_dog(clip, runs, rough)


def feedback(clip: poise.Clip, dt: float) -> float:
    """How much of the rounding errors of a torque in float32 comes back in the next step."""
    character = clip.character
    found = poise.check_gains(
        character, dt, gains_of(character), form="spd", embedded=False, dtype="float32",
        q=clip.q(0.2),
    )  # fmt: skip
    return float(found.feedback)


def _difference(one: Run, other: Run) -> float:
    if len(one.q) != len(other.q):
        return np.inf
    return float(np.abs(one.q - other.q).max())


def _stands(clip: poise.Clip, progress: Progress) -> dict[float, list[int]]:
    """By step, the units of rounding that DF stands."""
    found: dict[float, list[int]] = {}
    for i, dt in enumerate(SHOWN):
        found[dt] = [u for u in UNITS if is_stable(clip, follow(clip, dt, "DF", units=u))]
        progress((i + 1) / len(SHOWN))
    return found


def _like_the_paper(stands: dict[float, list[int]]) -> int | None:
    """Units of rounding with which DF diverges from 1/60 s on and holds below, if there are any."""
    fits = [
        u for u in UNITS if all((u in held) == (dt < 1 / 100) for dt, held in stands.items())
    ]  # fmt: skip
    return fits[0] if fits else None


def _claim_dog(item: Item, clip: poise.Clip, runs: Runs, ours: dict[float, float]) -> None:
    fine = {key: is_stable(clip, run) for key, run in runs.items()}
    maba = all(good for (way, _, _), good in fine.items() if way == "MABA")
    item.claim(
        "MABA is stable at every step",
        "stable",
        "stable" if maba else "not stable",
        "every link within 0.5 m of its place, both precisions",
        maba,
    )
    coarse = [fine["DF", "float32", dt] for dt in (1 / 60, 1 / 30)]
    why = (
        f"our torques are off as if by {ours[1 / 60]:.1f} units of rounding, which DF stands; see "
        "the last claim and table"
    )
    item.claim(
        "DF standalone in float32 diverges from 1/60 s on",
        "diverges",
        " and ".join("stable" if good else "diverges" for good in coarse),
        "diverges at 1/60 and 1/30 s",
        not any(coarse),
        why if any(coarse) else "",
    )
    means = {
        (way, dt): float(limb_error(clip, TOE, run).mean())
        for (way, dtype, dt), run in runs.items()
        if dtype == "float32" and dt <= 1 / 300
    }
    most = max(abs(means["DF", dt] / means["MABA", dt] - 1.0) for _, dt in means)
    item.claim(
        "for steps up to 1/300 s they agree",
        "comparable",
        f"mean errors differ by at most {100 * most:.2g} %",
        "within 1 %",
        most < 0.01,
    )


def _errors_of_dog(clip: poise.Clip, runs: Runs) -> Table:
    rows = []
    for dt in STEPS:
        row: list[object] = [step_text(dt)]
        for way, dtype in WAYS:
            run = runs[way, dtype, dt]
            mean = float(1e3 * limb_error(clip, TOE, run).mean())
            row.append(mean if is_stable(clip, run) else "diverges")
        rows.append(row)
    columns = ["step [s]", *(f"{way}, {dtype}" for way, dtype in WAYS)]
    return Table("mean error [mm]", columns, rows)


def _rounding(clip: poise.Clip, stands: dict[float, list[int]], ours: dict[float, float]) -> Table:
    rows = []
    for dt, held in stands.items():
        most, back = max(held, default=0), feedback(clip, dt)
        fails = min((u for u in UNITS if u not in held), default=None)
        rows.append([step_text(dt), most, fails, ours[dt], back, most * back])
    columns = ["step [s]", "units that DF stands", "and does not stand", "units that ours makes",
               "returns of one unit", "times what it stands"]  # fmt: skip
    return Table("rounding errors; returns are those of check_gains", columns, rows)


def _figure_of_dog(clip: poise.Clip, runs: Runs, rough: int | None) -> bytes:
    panels = {}
    for dt in SHOWN:
        shown = {way: runs[way, "float32", dt] for way in ("MABA", "DF")}
        if rough is not None:
            shown[f"DF, {rough} units of rounding"] = follow(clip, dt, "DF", units=rough)
        panels[f"dt = {step_text(dt)} s"] = {
            name: (run.time, 1e3 * limb_error(clip, TOE, run)) for name, run in shown.items()
        }
    return figures.lines(panels, y="error [mm]", log="y", dashed=("DF",), bottom=1.0)


# ---- Y6: the largest stable step of each method, why it is so, and how many dogs run in real time
#
# What bounds a step h, with m the least inertia that a direction of the joints feels:
#
#     PD         kd h + kp h²/2 < 2 m                   lightest axis of the smallest link
#     SPD        3 kp h² < 4 m + 2 kd h                 where m is small: h < 2 kd / (3 kp)
#     implicit   none
#     DF, standalone, in addition: rounding errors of the torque come back times ε kd h / m, or
#     ε (kd h + kp h²) / m in the implicit form; see `poise.check_gains`.

RATES = (4000, 2000, 1000, 600, 480, 300, 240, 180, 120, 90, 60, 45, 30, 25, 20, 15)
LADDER = tuple(1 / rate for rate in RATES)  # [s]
ROUGH = 16  # units of rounding with which DF fails where the paper's did: Y3
MANY, FEW = 1024, 64  # dogs in a batch, of MABA and of DF

REACH_WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "DF standalone, float32": ("DF", {"dtype": "float32"}),
    f"DF standalone, {ROUGH} units of rounding": ("DF", {"units": ROUGH}),
    "MABA embedded, float32": ("MABA", {"dtype": "float32"}),
}
DF, ROUGH_DF, MABA = REACH_WAYS
FORMS = ("spd", "implicit")


@experiment("Y6", "Dog: largest stable step, and dogs in real time", "Fig. 1")
def y6(item: Item, progress: Progress) -> None:
    """The largest step of a ladder at which the canter stays stable under the paper's gains. SPD in
    the paper's form is bounded by 3 kp h² < 4 m + 2 kd h, whoever solves it; the implicit form has
    no bound. DF standalone hands a torque from one solve to another, and its rounding errors return
    a step later, the larger the step (Y3). MABA hands over nothing. Then steps a second on one
    thread, {MANY} dogs in a batch of float32 for MABA, {FEW} for DF.
    """
    clip = clip_of("dog", "dog-canter")
    # explicit PD is below the ladder: the bound of the linear equations
    pd = largest_step(clip, LADDER, "PD") or _bound(clip)
    largest = {}
    for i, (name, (way, options)) in enumerate(REACH_WAYS.items()):
        for form in FORMS:
            largest[name, form] = largest_step(clip, LADDER, way, form=form, **options)
        progress(0.7 * (i + 1) / len(REACH_WAYS))
    dogs = {
        name: _real_time(clip, largest[name, "spd"], "maba" if name == MABA else "df")
        for name in REACH_WAYS
    }
    limit = 2.0 * JOINTS[1] / (3.0 * JOINTS[0])
    item.text += (
        f" The ladder is from {step_text(LADDER[0])} to {step_text(LADDER[-1])} s. Explicit PD is "
        "bounded by its damping: kd h < 2 m, and the lightest axis of our dog has m = "
        f"{0.5 * JOINTS[1] * pd:.1e} kg·m². The bound of SPD for light links is {step_text(limit)} "
        "s."
    )
    _claim_steps(item, pd, largest, limit)
    item.claim(
        "dogs in real time on one thread",
        "a number in Fig. 1, not in the text",
        f"{dogs[MABA]:,.0f} with MABA, {dogs[DF]:,.0f} with DF",
        "over 1000, and over ten times those of DF",
        dogs[MABA] > max(1000.0, 10.0 * dogs[DF]),
    )
    rows: list[list[Any]] = [["PD, explicit", step_text(pd), None, None]]
    for name in REACH_WAYS:
        rows.append([name, *(step_text(largest[name, form]) for form in FORMS), dogs[name]])
    columns = ["method", "largest stable step [s]", "implicit form", "dogs in real time"]
    item.table("one thread", columns, rows)


def _claim_steps(
    item: Item, pd: float, largest: dict[tuple[str, str], float], limit: float
) -> None:
    df, rough, maba = (largest[name, "spd"] for name in REACH_WAYS)
    item.claim(
        "PD needs by far the smallest steps",
        "PD < SPD < MABA",
        f"{step_text(pd)} s, MABA {step_text(maba)} s",
        "below a tenth of MABA's",
        pd < 0.1 * maba,
    )
    why = (
        f"both end at the bound of the form, {step_text(limit)} s: ours rounds too little to fail "
        f"before. With {ROUGH} units of rounding DF ends at {step_text(rough)} s"
    )
    item.claim(
        "DF standalone in float32 takes smaller steps than MABA",
        "smaller",
        f"{step_text(df)} and {step_text(maba)} s",
        "smaller",
        df < maba,
        "" if df < maba else why,
    )
    df, maba = largest[DF, "implicit"], largest[MABA, "implicit"]
    item.claim(
        "the same without that bound, in the implicit form",
        "-",
        f"{step_text(df)} and {step_text(maba)} s",
        "smaller",
        df < maba,
    )


def _real_time(clip: poise.Clip, dt: float, method: str) -> float:
    """Characters that one thread simulates in real time."""
    n = MANY if method == "maba" else FEW
    world = poise.World(
        clip.character, n=n, dt=dt, ground=False, contact=None, dtype="float32", threads=1
    )
    world.reset(clip.state(0.0))
    command = Tracker(world, method, "spd", method == "maba")(None, clip.target(dt))
    return n * dt / best(lambda: world.step(command))


def _bound(clip: poise.Clip) -> float:
    """The largest stable step of explicit PD under the paper's gains [s]."""
    gains = gains_of(clip.character)
    return float(poise.check_gains(clip.character, 1 / 1000, gains, form="pd").largest_dt)


# ---- Y9: clips that others recorded, followed at 1/60 s with the root held
#
# DeepMimic's walk, run, cartwheel and backflip, its dog's canter, pace and trot, and two takes of
# the CMU, a run and a backflip. They are not part of poise: the folder is $POISE_DATA, or
# ../shared/data from where the command runs, with `deepmimic/motions` and `cmu_bvh`. Where it is
# missing the item is skipped.

DT = 1 / 60  # [s]
CLIPS = (
    *(f"deepmimic/motions/humanoid3d_{name}.txt" for name in ("walk", "run", "cartwheel")),
    "deepmimic/motions/humanoid3d_backflip.txt",
    *(f"deepmimic/motions/dog3d_{name}.txt" for name in ("canter", "pace", "trot")),
    "cmu_bvh/16_35.bvh",
    "cmu_bvh/87_04.bvh",
)
DEGREES, METRES = 10.0, 0.03  # mean errors below these count as followed
PAPER = "MABA, the paper's gains"
AIR, GROUND = "in the air", "on the ground"


@experiment("Y9", "Clips that others recorded", "ours")
def y9(item: Item, progress: Progress) -> None:
    """Each is followed by a character made from its own skeleton, at 1/60 s, the root held; joints
    of 16 Hz, and the paper's gains. Raw files are smoothed before, as poise track does. In the air
    nothing touches, as in the paper. On the ground, joints hold at their limits, and links do not
    pass through each other, also where they do in a clip: the largest errors are there, mostly of
    hands and feet.
    """
    folder = data_folder()
    found = [folder / name for name in CLIPS if (folder / name).is_file()] if folder else []
    if not found:
        item.text += " Skipped: no data folder; set POISE_DATA to one with deepmimic and cmu_bvh."
        return
    runs: dict[tuple[str, str], list[Outcome]] = {}
    for k, path in enumerate(found):
        flying = prepare_trial(path, root="held", dt=DT, ground=False)
        for name in (PAPER, "spd", "kane"):
            runs.setdefault((name, AIR), []).append(in_the_air(flying, name))
        standing = prepare_trial(path, root="held", dt=DT, ground=True)
        for name in ("spd", "kane"):
            outcome = attempt(replace(standing, controller=name))
            runs.setdefault((name, GROUND), []).append(outcome)
        progress((k + 1) / len(found))
    for (name, where), tries in runs.items():
        item.claims.append(_claim(f"{name} follows all of them {where}", tries))
        item.table(f"{name}, {where}", COLUMNS, [_row(one) for one in tries])
    item.tables.append(_worst(runs["spd", AIR]))


def in_the_air(trial: Trial, name: str) -> Outcome:
    """Follow a clip where nothing touches.

    Args:
        trial: Clip, step and gains.
        name: Of a controller, or PAPER.
    """
    world = World(trial.character, dt=trial.dt, ground=False, contact=None)
    world.reset(trial.clip.state(0.0))
    controller: Any = Tracker(world)
    if name != PAPER:
        controller = make_controller(
            name, world, root=trial.root, frequency=trial.options["frequency"]
        )
    return evaluate(trial, *record_run(world, controller, trial.clip, trial.time))


COLUMNS = (
    "clip", "DoF", "time [s]", "mean [°]", "95 % [°]", "most [°]",
    "mean [mm]", "95 % [mm]", "most [mm]",
)  # fmt: skip


def _claim(what: str, tries: list[Outcome]) -> Claim:
    lost = [f"{_name(one.trial)} ({one.loss_text})" for one in tries if not _followed(one)]
    return Claim(
        what,
        "-",
        f"{len(tries) - len(lost)} of {len(tries)}" + ("; not " + ", ".join(lost) if lost else ""),
        f"stable to the end, mean errors below {DEGREES:g} degrees and {1e3 * METRES:g} mm",
        not lost,
        why="where links touch: inverse dynamics does not know of contact, and fingers have "
        "inertias of some 5e-6 kg·m²"
        if lost
        else "",
    )


def _followed(one: Outcome) -> bool:
    if not one.stable or one.error is None:
        return False
    means = float(one.error.rotation.mean()), float(one.error.position.mean())
    return means[0] < DEGREES and means[1] < METRES


def _row(one: Outcome) -> list[object]:
    trial = one.trial
    row: list[object] = [_name(trial), trial.character.nv, trial.time]
    if not one.stable or one.error is None:
        return [*row, one.loss_text, *[None] * 5]
    for values, unit in ((one.error.rotation, 1.0), (one.error.position, 1e3)):
        numbers = values.mean(), np.percentile(values, 95.0), values.max()
        row += [float(unit * x) for x in numbers]
    return row


def _worst(tries: list[Outcome]) -> Table:
    """Links by mean error, the three worst of each clip."""
    rows = []
    for one in tries:
        if one.error is None:
            continue
        mean = one.error.rotation.mean(axis=0)
        names = [link.name for link in one.trial.character.links]
        worst = [f"{names[i]} {mean[i]:.2f}" for i in np.argsort(-mean)[:3]]
        rows.append([_name(one.trial), *worst])
    return Table("spd in the air: links with the largest mean errors [°]",
                 ["clip", "first", "second", "third"], rows)  # fmt: skip


def _name(trial: Trial) -> str:
    return trial.clip.name.removeprefix("humanoid3d_").replace("dog3d_", "dog, ")
