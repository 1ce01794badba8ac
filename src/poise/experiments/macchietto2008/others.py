"""M5 to M8: low friction, dragged points, another body, and the momentum of a leg swing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from poise.arrays import Floats
from poise.balance_trial import STEPS, BalanceTrial, balance_trial_of, place_of, run_balance
from poise.command import Command
from poise.control.balance import Balance
from poise.errors import Diverged
from poise.experiments.figures import lines
from poise.experiments.macchietto2008.motions import follow
from poise.experiments.macchietto2008.setup import (
    CHARACTER,
    Progress,
    random_push,
    standing,
    stood_text,
)
from poise.experiments.report import Claim, Item, Table
from poise.motion.contacts import Point, positions
from poise.pushes import Push
from poise.recording import Recording
from poise.recording.balance import balance_table, stance_of
from poise.recording.table import table as table_of
from poise.run import run
from poise.world import World

SLIPPERY = 0.03
DRAG_TIME = 30.0  # [s]
DRAGGED = {
    "left_arm": ((0.25, 0.05, 0.30), 0.12),
    "right_arm": ((0.25, -0.05, 0.30), 0.12),
    "head": ((0.05, 0.0, -0.06), 0.04),
}
"""How far each point is drawn from where it is grasped, and the radius of its circle there [m]."""
DRAWN, PERIOD, APART = 3.0, 6.0, 4.0
"""Time in which a point is drawn there, of a round, and between two that are grasped [s]."""
FOLLOWED = 0.5
"""A point is followed if it misses by less than this part of what it would if nothing moved."""
SEED, PUSHES, STRENGTHS = 7, 10, (60.0, 80.0, 100.0)
"""Of M7: how many pushes, up to which force [N]."""
FAR = 5.0
"""Angular momentum above this is far from zero [N·m·s]."""


def m5(progress: Progress) -> Item:
    """A leg circle on a slippery ground."""
    trial = balance_trial_of("leg-circle", CHARACTER)
    rows, found = [], {}
    for k, friction in enumerate((0.8, SLIPPERY)):
        found[friction] = follow(replace(trial, friction=friction))
        rows.append([friction, *found[friction]["row"]])
        progress(0.5 * (k + 1))
    ice, rough = found[SLIPPERY], found[0.8]
    return Item(
        "M5",
        "A leg circle on one foot at friction 0.03",
        "7.3, Fig. 7.4",
        "All objectives, on the rigid ground, where the plan knows the friction.",
        [
            Claim(
                "it stays up",
                "stays up",
                stood_text(ice["fell"]),
                "no fall",
                ice["stood"],
            ),
            Claim(
                "it gives up tracking for that",
                "leans, tracks less accurately",
                f"{ice['error']:.2f} degrees, at friction 0.8 {rough['error']:.2f}; at the end the "
                f"body is turned by {ice['turned']:.0f} degrees about the vertical",
                "a larger mean error than at 0.8",
                bool(ice["error"] > rough["error"]),
            ),
        ],
        [Table("two grounds", ("friction", "outcome", "error [degrees]", "most", "world [cm]",
                               "feet move [mm]", "feet tilt [degrees]", "torque [N·m]",
                               "angular momentum [N·m·s]"), rows)],
    )  # fmt: skip


class Dragged:
    """A balance whose goals are grasped one after the other, and dragged on circles.

    Args:
        balance: The balance.
        q: The pose in which the points are grasped, shape (nq,).
    """

    def __init__(self, balance: Balance, q: Floats) -> None:
        self.balance, self.hold = balance, balance.hold
        self.places = {name: place_of(balance.character, name) for name in DRAGGED}
        self.grasped = {name: self.point(name, q) for name in DRAGGED}

    def point(self, name: str, q: Floats) -> Floats:
        """Where a point is in a pose [m]."""
        link, place = self.places[name]
        found: Floats = positions(self.balance.character, [Point(link, link, place)], q)[0]
        return found

    def wanted(self, t: float) -> dict[str, Floats]:
        """Where the points shall be at time t [s]."""
        out = {}
        for k, (name, (away, radius)) in enumerate(DRAGGED.items()):
            since = t - 1.0 - k * APART
            if since >= 0.0:
                angle = 2.0 * math.pi * since / PERIOD
                share = min(since / DRAWN, 1.0)
                circle = radius * np.array([0.0, math.sin(angle), math.cos(angle)])
                out[name] = self.grasped[name] + share * (np.array(away) + circle)
        return out

    def __call__(self, state: Any, target: Any) -> Command:
        """The command, after the goals have moved."""
        goals = self.wanted(float(np.asarray(state.time).flat[0]))
        self.balance.goals = {
            self.places[name][0]: (point, np.array(self.places[name][1]))
            for name, point in goals.items()
        }
        return self.balance(state, target)


def m6(progress: Progress) -> Item:
    """Three points, created and dragged."""
    character, start = standing()
    world = World(character, dt=STEPS["impulse"], spares=0, self_collision=False)
    world.reset(start)
    balance = Balance(world)
    dragged = Dragged(balance, start.q)
    recording = Recording(world, fps=30.0)
    fell: float | None = None
    try:
        run(world, dragged, start, DRAG_TIME, record=recording,
            progress=lambda t: progress(t / DRAG_TIME))  # fmt: skip
        found = balance_table(stance_of(recording))
        fell = found["fell"]
    except Diverged as lost:
        fell = float(lost.time)
    missed = _missed(recording, dragged)
    mean = {name: float(np.nanmean(each)) for name, each in missed.items()}
    idle = {
        name: float(np.nanmean(each)) for name, each in _missed(recording, dragged, True).items()
    }
    return Item(
        "M6",
        "Three points, created and dragged for 30 s",
        "7.4, Fig. 7.5",
        "Both hands and the head are grasped, one every four seconds, drawn away by 39, 39 and 8 "
        "cm, and led on circles of 12, 12 and 4 cm, while the character stands on the rigid "
        "ground.",
        [
            Claim("it balances", "balances", stood_text(fell), "no fall", fell is None),
            *(
                Claim(
                    f"the {name.replace('_', ' ')} follows its point",
                    "-",
                    f"to {100 * mean[name]:.1f} cm on the average; {100 * idle[name]:.1f} cm if "
                    "nothing moved",
                    f"below {100 * FOLLOWED:g} % of that",
                    mean[name] < FOLLOWED * idle[name],
                    "Arms that reach out move the mass centre; the trunk leans back for it, and "
                    "takes the head along.",
                )
                for name in DRAGGED
            ),
        ],
        figures={
            "M6": lines(
                {"distance of each point": {
                    name.replace("_", " "): (recording.time, 100.0 * each)
                    for name, each in missed.items()
                }},
                y="[cm]", title="Three dragged points",
            )
        },
    )  # fmt: skip


def m7(progress: Progress) -> Item:
    """The creature with a tail, under ten random pushes."""
    trial = balance_trial_of("tail-biped-dance", "tail-biped")
    calm = follow(trial)
    rows: list[list[object]] = [["none", *calm["row"][:3]]]
    first: tuple[float | None, Recording, list[Push]] | None = None
    for k, strength in enumerate(STRENGTHS):
        rng = np.random.default_rng(SEED)
        pushes = [
            random_push(rng, ("chest", "head", "pelvis"), 0.5 + i, strength) for i in range(PUSHES)
        ]
        fell, recording = _pushed(trial, pushes, PUSHES + 1.0)
        turned = table_of(recording)["tracking"]["rotation"]
        rows.append([f"up to {strength:g} N", stood_text(fell), round(turned["mean"], 2),
                     round(turned["max"], 1)])  # fmt: skip
        first = first or (fell, recording, pushes)
        progress((k + 1) / len(STRENGTHS))
    assert first is not None
    fell, recording, pushes = first
    stance = stance_of(recording)
    return Item(
        "M7",
        "A character that is no human, keyframed and pushed",
        "7.5, Fig. 7.6",
        f"tail-biped and its dance, again and again, under {PUSHES} random pushes of 100 ms, one a "
        f"second, seed {SEED}, from a fifth of the stated force up to it. The thesis prints no "
        "forces: the claim is made of the least of three that were tried, the table has all. No "
        "step is taken back: each push leaves the feet a little beside the clip's.",
        [
            Claim("it dances on its feet", "tracks", stood_text(calm["fell"]), "no fall",
                  calm["stood"]),
            Claim(f"it stands under ten pushes of up to {STRENGTHS[0]:g} N",
                  "tracks while perturbed", stood_text(fell), "no fall", fell is None),
        ],
        [Table("how it went", ("pushes", "outcome", "error [degrees]", "most"), rows)],
        {"M7": lines({"angular momentum": {
            axis: (stance.time, stance.momentum.angular[:, k]) for k, axis in enumerate("xyz")
        }}, y="[N·m·s]", title="tail-biped, pushed", marks=[one.at for one in pushes])},
    )  # fmt: skip


def m8(progress: Progress) -> Item:
    """Angular momentum about the mass centre in a leg swing."""
    recording = run_balance(balance_trial_of("leg-swing", CHARACTER), progress=progress)
    stance = stance_of(recording)
    most = float(np.linalg.norm(stance.momentum.angular, axis=1).max())
    curves = {
        f"about {axis}": {
            "simulated": (stance.time, stance.momentum.angular[:, k]),
            "the clip's": (stance.time, stance.asked[:, k]),
        }
        for k, axis in enumerate("xyz")
    }
    return Item(
        "M8",
        "Angular momentum in a leg swing",
        "Fig. 3.6",
        "About the mass centre, all objectives, on the rigid ground.",
        [
            Claim(
                "it is far from zero, and the character balances",
                "far from zero, balanced",
                f"up to {most:.1f} N·m·s, {stood_text(stance.fell)}",
                f"above {FAR:g} N·m·s, no fall",
                most > FAR and stance.fell is None,
            )
        ],
        figures={"M8": lines(curves, y="[N·m·s]", dashed=("the clip's",),
                             title="Angular momentum about the mass centre, leg swing")},
    )  # fmt: skip


def _missed(recording: Recording, dragged: Dragged, idle: bool = False) -> dict[str, Floats]:
    """How far each point is from where it should be [m]; NaN before it is grasped.

    Args:
        recording: What happened.
        dragged: The points.
        idle: How far it would be if it had stayed where it was grasped.
    """
    out = {name: np.full(len(recording), np.nan) for name in DRAGGED}
    for i, t in enumerate(recording.time):
        for name, point in dragged.wanted(float(t)).items():
            at = dragged.grasped[name] if idle else dragged.point(name, recording.q[i])
            out[name][i] = np.linalg.norm(at - point)
    return out


def _pushed(trial: BalanceTrial, pushes: list[Push], time: float) -> tuple[float | None, Recording]:
    """Follow a clip again and again under pushes, more than a world can have waiting."""
    again = math.ceil(time / trial.clip.duration)
    trial = replace(trial, clip=trial.clip.looped(again), duration=time)
    world, balance = trial.set_up()
    recording = Recording(world, fps=60.0)
    done = 0.0
    try:
        for push in (*pushes, None):
            end = time if push is None else push.at
            run(world, balance, trial.clip, end - done, record=recording)
            done = end
            if push is not None:
                world.push(push.link, push.force_vector(), push.duration)
    except Diverged as lost:
        return float(lost.time), recording
    return stance_of(recording).fell, recording
