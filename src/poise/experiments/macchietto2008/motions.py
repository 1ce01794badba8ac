"""M3, M4, M5, M6, M8: motions on two feet and on one, recorded clips, low friction, dragged points,
and the momentum of a leg swing (7.2 to 7.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poise import dynamics
from poise.anatomy.body import place_of
from poise.anatomy.feet import ContactPoint, feet_of, positions
from poise.control.balance import Balance
from poise.errors import Diverged
from poise.experiments.figures import lines
from poise.experiments.macchietto2008.setup import (
    CHARACTER,
    SERVO,
    STEADY,
    STEPS,
    SUBSETS,
    controller_for,
    standing,
    stood_text,
)
from poise.experiments.report import Item, data_folder, experiment
from poise.math import rotation
from poise.math.arrays import Floats, Progress
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.recording.summary import balance_table, recording_table, stance_of
from poise.simulation.command import Command
from poise.simulation.run import run
from poise.simulation.world import World
from poise.trials.comparison import record_run
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

NUMBERS = (
    "outcome",
    "error [degrees]",
    "most",
    "in the world [cm]",
    "feet move [mm]",
    "feet tilt [degrees]",
    "torque [N·m]",
    "angular momentum [N·m·s]",
)
"""Columns of a row of `follow`."""
COLUMNS = ("clip", "objectives", *NUMBERS)
METHODS = ("all", "tracking", SERVO)
AFTER = 0.5  # how long the last pose is held [s]


@experiment("M3", "Double support: butterflies, toe touch, jab, squats", "7.2")
def m3(item: Item, progress: Progress) -> None:
    """Our own clips of these motions, on the rigid ground. The last pose is held for {AFTER:g} s. A
    difference is minute below {MINUTE:g} degrees on the average.
    """
    found = _run_all(item, DOUBLE, progress)
    item.claim(
        "with all objectives the motions are followed with a minute difference",
        "tracked accurately",
        _summary(found["all"]),
        f"all stand, mean error below {MINUTE:g} degrees",
        all(one["stood"] and one["error"] < MINUTE for one in found["all"].values()),
    )
    item.claim(
        "tracking alone holds double support, in general",
        "stable results",
        _summary(found["tracking"]),
        "most stand",
        sum(one["stood"] for one in found["tracking"].values()) > len(DOUBLE) // 2,
    )


@experiment("M4", "Single support: leg swing, side kick, forward kick, axe kick", "7.2, Fig. 7.3")
def m4(item: Item, progress: Progress) -> None:
    """Our own clips of these motions, on the rigid ground; and clips that others recorded, on the
    same character, prepared as poise balance does: feet level, joints within limits, the center of
    mass over the feet while it moves slowly, and forces that the ground can give. These are not
    part of poise: the folder is $POISE_DATA, or ../shared/data from where the command runs.
    """
    found = _run_all(item, SINGLE, lambda done: progress(0.6 * done))
    item.claim(
        "with all objectives all of them are balanced",
        "balanced, with parameters of their own",
        _summary(found["all"]),
        "all stand, with the same parameters",
        all(one["stood"] for one in found["all"].values()),
    )
    item.claim(
        "tracking alone is not enough for some",
        "some fall",
        _summary(found["tracking"]),
        "one falls, or its error is twice as large",
        any(
            not one["stood"] or one["error"] > 2.0 * found["all"][name]["error"]
            for name, one in found["tracking"].items()
        ),
        "Likely: our clips were made so that the ground explains them, unlike captures.",
    )
    item.claim(
        f"{SERVO} without balance loses its feet where balance does not (ours)",
        "-",
        _summary(found[SERVO]),
        f"one falls, or a foot tilts by more than {STEADY:g} degrees; none with all",
        any(map(_loses, found[SERVO].values())) and not any(map(_loses, found["all"].values())),
    )
    _add_recorded(item, lambda done: progress(0.6 + 0.4 * done))


def follow(trial: Trial, method: str = "all") -> dict[str, Any]:
    """Run a trial of balance; a few numbers.

    Args:
        trial: What to do.
        method: One of SUBSETS, or SERVO in the balance's place.
    """
    try:
        if method == SERVO:
            world, _, _ = trial.build()
            recording = Recording(world)
            run(world, controller_for(world, method), trial.clip, trial.time, record=recording)
        else:
            recording = trial.with_controller("balance", {"objectives": SUBSETS[method]}).run()
    except Diverged as lost:
        unknown = {"error": np.inf, "tilt": np.inf, "turned": np.nan, "through": False, "row": []}
        return {"stood": False, "fell": lost.time, **unknown}
    table, found = recording_table(recording), balance_table(stance_of(recording))
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
    item: Item, clips: Sequence[str], progress: Progress
) -> dict[str, dict[str, dict[str, Any]]]:
    """Each clip with each of METHODS; the table goes to the item."""
    found: dict[str, dict[str, dict[str, Any]]] = {method: {} for method in METHODS}
    rows = []
    for k, name in enumerate(clips):
        trial = prepare_trial(name, CHARACTER, controller="balance")
        trial = replace(trial, duration=trial.clip.duration + AFTER)
        for j, method in enumerate(METHODS):
            one = found[method][name] = follow(trial, method)
            rows.append([name, method, *one["row"]])
            progress((k + (j + 1) / len(METHODS)) / len(clips))
    item.table("tracking", COLUMNS, rows)
    return found


def _add_recorded(item: Item, progress: Progress) -> None:
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
    item.table("clips that others recorded, prepared", COLUMNS, rows)
    item.claim(
        "recorded clips are balanced after preparation (ours)",
        "-",
        f"{sum(stood)} of {len(stood)} stand",
        f"all stand, to the end of the clip and {AFTER:g} s longer, at a speed that waits",
        all(stood),
        "The kick has a run-up: one leap from foot to foot at 2 m/s, the center of mass far "
        "beside the feet, and no time in which both stand. Balance takes no steps, and falls "
        "there.",
    )


def _through(recording: Recording, clip: Clip) -> bool:
    """Whether the target reached the end of the clip: one that waits may not get there."""
    target = recording.target(-1)
    return target is not None and bool(np.allclose(target.q, clip.frames[-1], atol=1e-6))


def _turned(recording: Recording) -> float:
    """By how much the root is turned about the vertical at the end, against the clip [degrees]."""
    target = recording.target(-1)
    if target is None:
        return np.nan
    turn = rotation.multiply(recording.q[-1, 3:7], rotation.conjugate(target.q[3:7]))
    return abs(math.degrees(math.remainder(2.0 * math.atan2(turn[3], turn[0]), 2.0 * math.pi)))


def _loses(one: dict[str, Any]) -> bool:
    return not one["stood"] or one["tilt"] > STEADY


def _summary(found: dict[str, dict[str, Any]]) -> str:
    return ", ".join(
        f"{name} {stood_text(one['fell'])} ({one['error']:.1f} degrees off, feet tilt by "
        f"{one['tilt']:.1f})"
        for name, one in found.items()
    )


# ---- M5, M8: a leg circle on low friction, and the momentum of a leg swing

SLIPPERY = 0.03
FAR = 5.0
"""Angular momentum above this is far from zero [N·m·s]."""


@experiment("M5", "A leg circle on one foot at friction 0.03", "7.3, Fig. 7.4")
def m5(item: Item, progress: Progress) -> None:
    """All objectives, on the rigid ground, where the plan knows the friction."""
    trial = prepare_trial("leg-circle", CHARACTER, controller="balance")
    found = {}
    for k, friction in enumerate((0.8, SLIPPERY)):
        found[friction] = follow(trial.with_world(friction=friction))
        progress(0.5 * (k + 1))
    ice, rough = found[SLIPPERY], found[0.8]
    needed, possible = _spin(trial.clip)
    item.text += (
        f" About the vertical the clip changes its angular momentum by up to {needed:.0f} N·m; one "
        f"foot on this ground can give about {possible:.1f} N·m. So the body must turn against the "
        "leg."
    )
    item.claim("it stays up", "stays up", stood_text(ice["fell"]), "no fall", ice["stood"])
    item.claim(
        "it gives up tracking for that",
        "leans, tracks less accurately",
        f"{ice['error']:.2f} degrees, at friction 0.8 {rough['error']:.2f}; at the end the body is "
        f"turned by {ice['turned']:.0f} degrees about the vertical",
        "a larger mean error than at 0.8",
        bool(ice["error"] > rough["error"]),
    )
    rows = [[friction, *one["row"]] for friction, one in found.items()]
    item.table("two grounds", ("friction", *NUMBERS), rows)


def _spin(clip: Clip) -> tuple[float, float]:
    """Largest rate of angular momentum about the vertical in a clip, and what friction can give
    under one foot: its weight by the friction and the mean arm of a sole's points [N·m]."""
    time = np.arange(len(clip)) / clip.fps
    A, bias = dynamics.centroidal_momentum(clip.character, clip.frames, clip.v(time))
    rate = (A[:, 5] * clip.a(time)).sum(axis=1) + bias[:, 5]
    feet = feet_of(clip.character)
    sole = np.array([point.pos[:2] for point in feet if point.foot == feet[0].foot])
    arm = float(np.linalg.norm(sole - sole.mean(axis=0), axis=1).mean())
    return float(np.abs(rate).max()), SLIPPERY * clip.character.mass * 9.81 * arm


@experiment("M8", "Angular momentum in a leg swing", "Fig. 3.6")
def m8(item: Item, progress: Progress) -> None:
    """About the center of mass, all objectives, on the rigid ground."""
    recording = prepare_trial("leg-swing", CHARACTER, controller="balance").run(progress=progress)
    stance = stance_of(recording)
    most = float(np.linalg.norm(stance.momentum.angular, axis=1).max())
    item.claim(
        "it is far from zero, and the character balances",
        "far from zero, balanced",
        f"up to {most:.1f} N·m·s, {stood_text(stance.fell)}",
        f"above {FAR:g} N·m·s, no fall",
        most > FAR and stance.fell is None,
    )
    curves = {
        f"about {axis}": {
            "simulated": (stance.time, stance.momentum.angular[:, k]),
            "the clip's": (stance.time, stance.target_angular[:, k]),
        }
        for k, axis in enumerate("xyz")
    }
    title = "Angular momentum about the center of mass, leg swing"
    item.figures["M8"] = lines(curves, y="[N·m·s]", dashed=("the clip's",), title=title)


# ---- M6: points that are grasped and dragged while the character balances (7.4, Fig. 7.5)

DRAG_TIME = 30.0  # [s]
DRAGGED = {
    "left_arm": ((0.25, 0.05, 0.30), 0.12),
    "right_arm": ((0.25, -0.05, 0.30), 0.12),
    "head": ((0.05, 0.0, -0.06), 0.04),
}
"""How far each point is drawn from where it is grasped, and the radius of its circle there [m]."""
DRAWN, PERIOD, DELAY = 3.0, 6.0, 4.0
"""Time in which a point is drawn there, of a round, and between two that are grasped [s]."""
FOLLOWED = 0.5
"""A point is followed if its error is below this fraction of the error without any motion."""


class Dragged:
    """A balance whose goals are grasped one after the other, and dragged on circles.

    Args:
        balance: The balance.
        q: The pose in which the points are grasped, shape (nq,).
    """

    def __init__(self, balance: Balance, q: Floats) -> None:
        self.balance, self.requires = balance, balance.requires
        self.places = {name: place_of(balance.character, name) for name in DRAGGED}
        self.grasped = {name: self.point(name, q) for name in DRAGGED}

    def point(self, name: str, q: Floats) -> Floats:
        """Where a point is in a pose [m]."""
        link, place = self.places[name]
        found: Floats = positions(self.balance.character, [ContactPoint(link, link, place)], q)[0]
        return found

    def goals(self, t: float) -> dict[str, Floats]:
        """Goals of the points at time t [s], world axes [m]."""
        out = {}
        for k, (name, (away, radius)) in enumerate(DRAGGED.items()):
            since = t - 1.0 - k * DELAY
            if since >= 0.0:
                angle = 2.0 * math.pi * since / PERIOD
                drawn = min(since / DRAWN, 1.0)
                circle = radius * np.array([0.0, math.sin(angle), math.cos(angle)])
                out[name] = self.grasped[name] + drawn * (np.array(away) + circle)
        return out

    def __call__(self, state: Any, target: Any) -> Command:
        """The command, after the goals have moved."""
        now = self.goals(float(np.asarray(state.time).flat[0]))
        self.balance.goals = {
            self.places[name][0]: (point, np.array(self.places[name][1]))
            for name, point in now.items()
        }
        return self.balance(state, target)


@experiment("M6", "Three points, created and dragged for 30 s", "7.4, Fig. 7.5")
def m6(item: Item, progress: Progress) -> None:
    """Both hands and the head are grasped, one every four seconds, drawn away by 39, 39 and 8 cm,
    and led on circles of 12, 12 and 4 cm, while the character stands on the rigid ground.
    """
    character, start = standing()
    world = World(character, dt=STEPS["impulse"], projectiles=0, self_collision=False)
    world.reset(start)
    dragged = Dragged(Balance(world), start.q)
    recording, fell = record_run(world, dragged, start, DRAG_TIME, fps=30.0, progress=progress)
    if fell is None:
        fell = stance_of(recording).fell
    item.claim("it balances", "balances", stood_text(fell), "no fall", fell is None)
    errors, idle = _goal_errors(recording, dragged), _goal_errors(recording, dragged, idle=True)
    for name, each in errors.items():
        mean, still = float(np.nanmean(each)), float(np.nanmean(idle[name]))
        item.claim(
            f"the {name.replace('_', ' ')} follows its point",
            "-",
            f"to {100 * mean:.1f} cm on the average; {100 * still:.1f} cm if nothing moved",
            f"below {100 * FOLLOWED:g} % of that",
            mean < FOLLOWED * still,
        )
    curves = {
        name.replace("_", " "): (recording.time, 100.0 * each) for name, each in errors.items()
    }
    item.figures["M6"] = lines(
        {"distance of each point": curves}, y="[cm]", title="Three dragged points"
    )


def _goal_errors(recording: Recording, dragged: Dragged, idle: bool = False) -> dict[str, Floats]:
    """How far each point is from where it should be [m]; NaN before it is grasped.

    Args:
        recording: What happened.
        dragged: The points.
        idle: How far it would be if it had stayed where it was grasped.
    """
    out = {name: np.full(len(recording), np.nan) for name in DRAGGED}
    for i, t in enumerate(recording.time):
        for name, point in dragged.goals(float(t)).items():
            at = dragged.grasped[name] if idle else dragged.point(name, recording.q[i])
            out[name][i] = np.linalg.norm(at - point)
    return out
