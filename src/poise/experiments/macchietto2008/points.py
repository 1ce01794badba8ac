"""M6: points that are grasped and dragged while the character balances (7.4, Fig. 7.5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from poise.anatomy.body import place_of
from poise.anatomy.feet import ContactPoint, positions
from poise.control.balance import Balance
from poise.errors import Diverged
from poise.experiments.figures import lines
from poise.experiments.macchietto2008.setup import STEPS, standing, stood_text
from poise.experiments.report import Claim, Item
from poise.math.arrays import Floats, Progress
from poise.recording import Recording
from poise.recording.summary import balance_table, stance_of
from poise.simulation.command import Command
from poise.simulation.run import run
from poise.simulation.world import World

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
    world = World(character, dt=STEPS["impulse"], projectiles=0, self_collision=False)
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
