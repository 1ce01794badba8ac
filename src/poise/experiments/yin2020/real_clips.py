"""Y9: clips that others recorded, followed at 1/60 s with the root held.

DeepMimic's walk, run, cartwheel and backflip, its dog's canter, pace and trot, and two takes of the
CMU, a run and a backflip. They are not part of poise: the folder is $POISE_DATA, or ../shared/data
from where the command runs, with `deepmimic/motions` and `cmu_bvh`. Where it is missing the item
is skipped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from poise.control.registry import make_controller
from poise.experiments.report import Claim, Item, Table, data_folder, experiment
from poise.experiments.yin2020.setup import Tracker
from poise.math.arrays import Progress
from poise.simulation.world import World
from poise.trials.comparison import Outcome, attempt, evaluate, record_run
from poise.trials.trial import Trial, prepare_trial

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
