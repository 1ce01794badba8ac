"""M3, M4: motions on two feet and on one, and clips that others recorded (7.2, Fig. 7.3)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import Diverged
from poise.experiments.macchietto2008.setup import (
    CHARACTER,
    SERVO,
    STEADY,
    SUBSETS,
    controller_for,
    stood_text,
)
from poise.experiments.report import Claim, Item, Table
from poise.math import rotation
from poise.math.arrays import Progress
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.recording.summary import balance_table, stance_of
from poise.recording.summary import recording_table as table_of
from poise.simulation.run import run
from poise.trials.trial import WAITS, Trial, prepare_trial

DOUBLE = ("butterflies", "toe-touch", "jab", "squat")
SINGLE = ("leg-swing", "side-kick", "forward-kick", "axe-kick")
REAL = {
    "cmu_bvh/49_18.bvh": "CMU 49_18, balance on one leg",
    "cmu_bvh/22_14.bvh": "CMU 22_14, squats",
    "cmu_bvh/10_01.bvh": "CMU 10_01, kick with a run-up",
    "mass/motion/balance.bvh": "MASS, balance",
}
MINUTE = 3.0
"""Mean rotation error below which a difference is minute [degrees]."""

COLUMNS = (
    "clip",
    "objectives",
    "outcome",
    "error [degrees]",
    "most",
    "in the world [cm]",
    "feet move [mm]",
    "feet tilt [degrees]",
    "torque [N·m]",
    "angular momentum [N·m·s]",
)
WHO = ("all", "tracking", SERVO)
AFTER = 0.5  # how long the last pose is held [s]


def m3(progress: Progress) -> Item:
    """Double support."""
    item = Item(
        "M3",
        "Double support: butterflies, toe touch, jab, squats",
        "7.2",
        "Our own clips of these motions, on the rigid ground. The last pose is held for "
        f"{AFTER:g} s. A difference is minute below {MINUTE:g} degrees on the average.",
    )
    found = _run_all(item, DOUBLE, WHO, progress)
    item.claims = [
        Claim(
            "with all objectives the motions are followed with a minute difference",
            "tracked accurately",
            _summary(found["all"]),
            f"all stand, mean error below {MINUTE:g} degrees",
            all(one["stood"] and one["error"] < MINUTE for one in found["all"].values()),
        ),
        Claim(
            "tracking alone holds double support, in general",
            "stable results",
            _summary(found["tracking"]),
            "most stand",
            sum(one["stood"] for one in found["tracking"].values()) > len(DOUBLE) // 2,
        ),
    ]
    return item


def m4(progress: Progress) -> Item:
    """Single support, and real clips."""
    item = Item(
        "M4",
        "Single support: leg swing, side kick, forward kick, axe kick",
        "7.2, Fig. 7.3",
        "Our own clips of these motions, on the rigid ground; and clips that others recorded, on "
        "the same character, prepared as poise balance does: feet level, joints within limits, the "
        "center of mass over the feet while it moves slowly, and forces that the ground can give. "
        "These are not part of poise: the folder is $POISE_DATA, or "
        "../shared/data from where the command runs.",
    )
    found = _run_all(item, SINGLE, WHO, lambda share: progress(0.6 * share))
    item.claims = [
        Claim(
            "with all objectives all of them are balanced",
            "balanced, with parameters of their own",
            _summary(found["all"]),
            "all stand, with the same parameters",
            all(one["stood"] for one in found["all"].values()),
        ),
        Claim(
            "tracking alone is not enough for some",
            "some fall",
            _summary(found["tracking"]),
            "one falls, or its error is twice as large",
            any(not one["stood"] or one["error"] > 2.0 * found["all"][name]["error"]
                for name, one in found["tracking"].items()),
            "Likely: our clips were made so that the ground explains them, unlike captures.",
        ),
        Claim(
            f"{SERVO} without balance loses its feet where balance does not (ours)",
            "-",
            _summary(found[SERVO]),
            f"one falls, or a foot tilts by more than {STEADY:g} degrees; none with all",
            any(map(_loses, found[SERVO].values())) and not any(map(_loses, found["all"].values())),
        ),
    ]  # fmt: skip
    _real(item, lambda share: progress(0.6 + 0.4 * share))
    return item


def follow(trial: Trial, who: str = "all") -> dict[str, Any]:
    """Run a trial of balance; a few numbers.

    Args:
        trial: What to do.
        who: One of SUBSETS, or SERVO in the balance's place.
    """
    try:
        if who == SERVO:
            world, _, _ = trial.build()
            recording = Recording(world)
            run(world, controller_for(world, who, trial.world["contact"]), trial.clip, trial.time,
                record=recording)  # fmt: skip
        else:
            recording = trial.with_controller("balance", {"objectives": SUBSETS[who]}).run()
    except Diverged as lost:
        unknown = {"error": np.inf, "tilt": np.inf, "turned": np.nan, "through": False, "row": []}
        return {"stood": False, "fell": lost.time, **unknown}
    table, found = table_of(recording), balance_table(stance_of(recording))
    turned, feet = table["tracking"]["rotation"], found["feet"].values()
    tilt = max((foot["tilted"] for foot in feet), default=0.0)
    return {
        "stood": found["stood"],
        "fell": found["fell"],
        "error": turned["mean"],
        "tilt": tilt,
        "turned": _turned(recording),
        "through": _through(recording, trial.clip),
        "row": [
            stood_text(found["fell"]),
            round(turned["mean"], 2),
            round(turned["max"], 1),
            round(100.0 * table["tracking"]["world"]["mean"], 1),
            round(1e3 * max((foot["moved"] for foot in feet), default=0.0), 1),
            round(tilt, 1),
            round(table["torque"]["torque"]),
            round(found["angular_momentum"]["most"], 1),
        ],
    }


def _run_all(
    item: Item, clips: Sequence[str], subsets: Sequence[str], progress: Progress
) -> dict[str, dict[str, dict[str, Any]]]:
    """Each clip with each subset of objectives; the table goes to the item."""
    found: dict[str, dict[str, dict[str, Any]]] = {who: {} for who in subsets}
    rows = []
    for k, name in enumerate(clips):
        trial = prepare_trial(name, CHARACTER, controller="balance")
        trial = replace(trial, duration=trial.clip.duration + AFTER)
        for j, who in enumerate(subsets):
            one = follow(trial, who)
            found[who][name] = one
            rows.append([name, who, *one["row"]])
            progress((k + (j + 1) / len(subsets)) / len(clips))
    item.tables.append(Table("how they are followed", COLUMNS, rows))
    return found


def _real(item: Item, progress: Progress) -> None:
    folder = data_folder()
    if folder is None:
        item.text += " They are left out: there is no such folder."
        return
    rows, stood = [], []
    for k, (path, name) in enumerate(REAL.items()):
        if (folder / path).is_file():
            trial = prepare_trial(folder / path, CHARACTER, time_scaling=True, controller="balance")
            one = follow(replace(trial, duration=WAITS * trial.clip.duration + AFTER))
            rows.append([name, "all", *one["row"]])
            stood.append(one["stood"] and one["through"])
        progress((k + 1) / len(REAL))
    item.tables.append(Table("clips that others recorded, prepared", COLUMNS, rows))
    item.claims.append(
        Claim(
            "recorded clips are balanced after preparation (ours)",
            "-",
            f"{sum(stood)} of {len(stood)} stand",
            f"all stand, to the end of the clip and {AFTER:g} s longer, at a speed that waits",
            all(stood),
            "The kick has a run-up: one leap from foot to foot at 2 m/s, the center of mass far "
            "beside the feet, and no time in which both stand. Balance takes no steps, and falls "
            "there.",
        )
    )


def data_folder() -> Path | None:
    """Where recorded clips are; None if they are not there."""
    given = os.environ.get("POISE_DATA")
    folder = Path(given) if given else Path("..") / "shared" / "data"
    return folder if folder.is_dir() else None


def _through(recording: Recording, clip: Clip) -> bool:
    """Whether the clip was asked for to its end: one that waits may not get there."""
    asked = recording.target(-1)
    return asked is not None and bool(np.allclose(asked.q, clip.frames[-1], atol=1e-6))


def _turned(recording: Recording) -> float:
    """By how much the root is turned about the vertical at the end, against the clip [degrees]."""
    asked = recording.target(-1)
    if asked is None:
        return np.nan
    turn = rotation.multiply(recording.q[-1, 3:7], rotation.conjugate(asked.q[3:7]))
    return abs(math.degrees(math.remainder(2.0 * math.atan2(turn[3], turn[0]), 2.0 * math.pi)))


def _loses(one: dict[str, Any]) -> bool:
    return not one["stood"] or one["tilt"] > STEADY


def _summary(found: dict[str, dict[str, Any]]) -> str:
    return ", ".join(
        f"{name} {stood_text(one['fell'])} ({one['error']:.1f} degrees off, feet tilt by "
        f"{one['tilt']:.1f})"
        for name, one in found.items()
    )
