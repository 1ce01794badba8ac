"""M5, M7, M8: low friction, another body, and the momentum of a leg swing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from poise import dynamics
from poise.anatomy.feet import feet_of
from poise.errors import Diverged
from poise.experiments.figures import lines
from poise.experiments.macchietto2008.motions import follow
from poise.experiments.macchietto2008.setup import CHARACTER, random_push, stood_text
from poise.experiments.report import Claim, Item, Table
from poise.math.arrays import Progress
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.recording.summary import recording_table as table_of
from poise.recording.summary import stance_of
from poise.simulation.pushes import Push
from poise.simulation.run import run
from poise.trials.trial import Trial, prepare_trial

SLIPPERY = 0.03
SEED, PUSHES, STRENGTHS = 7, 10, (60.0, 80.0, 100.0)
"""Of M7: how many pushes, up to which force [N]."""
FAR = 5.0
"""Angular momentum above this is far from zero [N·m·s]."""


def m5(progress: Progress) -> Item:
    """A leg circle on a slippery ground."""
    trial = prepare_trial("leg-circle", CHARACTER, controller="balance")
    rows, found = [], {}
    for k, friction in enumerate((0.8, SLIPPERY)):
        found[friction] = follow(trial.with_world(friction=friction))
        rows.append([friction, *found[friction]["row"]])
        progress(0.5 * (k + 1))
    ice, rough = found[SLIPPERY], found[0.8]
    asked, given = _spin(trial.clip)
    return Item(
        "M5",
        "A leg circle on one foot at friction 0.03",
        "7.3, Fig. 7.4",
        "All objectives, on the rigid ground, where the plan knows the friction. About the "
        f"vertical the clip changes its angular momentum by up to {asked:.0f} N·m; one foot on "
        f"this ground can give about {given:.1f} N·m. So the body must turn against the leg.",
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


def m7(progress: Progress) -> Item:
    """The creature with a tail, under ten random pushes."""
    trial = prepare_trial("tail-biped-dance", "tail-biped", controller="balance")
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
    """Angular momentum about the center of mass in a leg swing."""
    recording = prepare_trial("leg-swing", CHARACTER, controller="balance").run(progress=progress)
    stance = stance_of(recording)
    most = float(np.linalg.norm(stance.momentum.angular, axis=1).max())
    curves = {
        f"about {axis}": {
            "simulated": (stance.time, stance.momentum.angular[:, k]),
            "the clip's": (stance.time, stance.target_angular[:, k]),
        }
        for k, axis in enumerate("xyz")
    }
    return Item(
        "M8",
        "Angular momentum in a leg swing",
        "Fig. 3.6",
        "About the center of mass, all objectives, on the rigid ground.",
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
                             title="Angular momentum about the center of mass, leg swing")},
    )  # fmt: skip


def _pushed(trial: Trial, pushes: list[Push], time: float) -> tuple[float | None, Recording]:
    """Follow a clip again and again under pushes, more than a world can have waiting."""
    again = math.ceil(time / trial.clip.duration)
    trial = replace(trial, clip=trial.clip.looped(again), duration=time)
    world, balance, _ = trial.build()
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
