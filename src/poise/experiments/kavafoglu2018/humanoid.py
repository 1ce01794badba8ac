"""K8, K9: sprints, jumps and sudden stops of the humanoid of 51 degrees of freedom; the cost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import poise
from poise import measure
from poise.experiments import figures
from poise.experiments.report import Item, experiment, printed_numbers
from poise.math.arrays import Floats, Progress
from poise.trials.comparison import record_run
from poise.trials.timing import best_of

STIFFNESS = 500.0  # [1/s²]
PD_FREQUENCY = 2.0  # of PD with its additions [Hz]: about the most that is stable at its step
STEP, PD_STEP = 1 / 100, 1 / 2000  # [s]
FAR = 2.0  # PD is far above ours from this factor on


class Errors(NamedTuple):
    """Errors of a run, infinite if it diverged.

    Attributes:
        time: [s], shape (k,).
        rotation: [degrees], shape (k, nl).
        position: Relative to the root [m], shape (k, nl).
    """

    time: Floats
    rotation: Floats
    position: Floats


@experiment("K8", "Humanoid: sprints, jumps and sudden stops", "Table 3.3, Figs. 3.20 to 3.25")
def k8(item: Item, progress: Progress) -> None:
    """Our humanoid-51 (16 links, 51 degrees of freedom, 52 kg) and our clip sprint-jump-stop stand
    in for the thesis's. The root is held as in the thesis. Ours at 1/100 s, stiffness
    {STIFFNESS:g}; PD with gravity compensation and bubble-up at 1/2000 s, joints of
    {PD_FREQUENCY:g} Hz, about the most that is stable there. With the ground, and for ours also
    without it.
    """
    clip = poise.load_clip("sprint-jump-stop", poise.load_character("humanoid-51"))
    air = follow(clip, STEP, ground=False)
    progress(0.1)
    ours = follow(clip, STEP)
    progress(0.2)
    pd = follow(clip, PD_STEP, pd=True)
    progress(0.9)
    coarse = float(follow(clip, STEP, pd=True).rotation.mean())
    printed = printed_numbers("kavafoglu2018")  # Table 3.3
    rows = [_row(row, clip.character, pd, ours, air) for row in printed]
    item.table("mean errors", COLUMNS, rows)
    pairs = [(row[4], row[3]) for row in rows] + [(row[9], row[8]) for row in rows]
    better = [here <= thesis for here, thesis in pairs if thesis is not None]
    item.claim(
        "ours, every body: mean error at or below the thesis's",
        "Table 3.3",
        f"{sum(better)} of {len(better)} errors are; the largest is "
        f"{max(row[4] for row in rows):.2g} degrees",
        "all",
        all(better),
    )
    far, mean = [row[2] > FAR * row[4] for row in rows], float(pd.rotation.mean())
    item.claim(
        "PD with additions at a twentieth of the step is far above it",
        "Table 3.3",
        f"{sum(far)} of {len(far)} bodies are over twice as far off; {mean:.3g} degrees on average",
        "all",
        all(far),
    )
    item.claim(
        "PD does not run at 1/100 s",
        "unstable",
        "diverges" if np.isinf(coarse) else f"{coarse:.3g} degrees on average",
        "diverges, or over ten times the error at 1/2000 s",
        np.isinf(coarse) or coarse > 10.0 * mean,
    )
    curves = {
        "PD with additions, 1/2000 s": (pd.time, pd.rotation.mean(axis=1)),
        "inverse dynamics, 1/100 s": (ours.time, ours.rotation.mean(axis=1)),
    }
    item.figures = {"K8": figures.lines({"mean over the bodies": curves}, y="error [degrees]")}


def follow(clip: poise.Clip, dt: float, *, ground: bool = True, pd: bool = False) -> Errors:
    """Follow a clip with the root held.

    Args:
        clip: The motion.
        dt: Time step [s].
        ground: Whether there is a ground.
        pd: By PD with gravity compensation and bubble-up; else by inverse dynamics.
    """
    world = poise.World(clip.character, dt=dt, ground=ground, self_collision=False)
    world.reset(clip.state(0.0))
    controller: Any = poise.InverseDynamics(world, STIFFNESS, root="held")
    if pd:
        # the root as stiff as the joints: it is held like one of them
        gains = poise.suggest_gains(
            world, PD_FREQUENCY, root="soft", root_frequency=PD_FREQUENCY, per_axis=True
        )
        controller = poise.PD(world, gains, root="held", gravity_compensation=True, bubble_up=True)
    recording, lost = record_run(world, controller, clip, clip.duration, fps=100.0)
    if lost is not None:
        nothing = np.full((2, len(clip.character.links)), np.inf)
        return Errors(np.array([0.0, clip.duration]), nothing, nothing)
    error = measure.tracking_error(clip.character, recording.q, clip.q(recording.time))
    return Errors(recording.time, error.rotation, error.position)


KINDS = ("PD, thesis", "PD, here", "Kane, thesis", "Kane, here")
COLUMNS = (
    "body",
    *(f"{kind} [°]" for kind in KINDS),
    "without ground [°]",
    *(f"{kind} [m]" for kind in KINDS),
)


def _row(
    printed: dict[str, str], character: poise.Character, pd: Errors, ours: Errors, air: Errors
) -> list[Any]:
    """A body's mean errors, as COLUMNS has them."""
    k = [link.name for link in character.links].index(printed["body"])
    theirs = {key: float(text) if text else None for key, text in printed.items() if key != "body"}
    return [
        printed["body"].replace("_", " "),
        theirs["pd_degrees"],
        float(pd.rotation[:, k].mean()),
        theirs["kane_degrees"],
        float(ours.rotation[:, k].mean()),
        float(air.rotation[:, k].mean()),
        theirs["pd_metres"],
        float(pd.position[:, k].mean()),
        theirs["kane_metres"],
        float(ours.position[:, k].mean()),
    ]


# ---- K9: the cost of inverse dynamics of the humanoid with 51 degrees of freedom

MANY = 1024  # states in a batch


@experiment("K9", "Cost of the inverse dynamics", "section 3.9")
def k9(item: Item, progress: Progress) -> None:
    """The recursion for the humanoid of 51 degrees of freedom, called from Python, best of many
    windows by the thread's clock.
    """
    character = poise.load_character("humanoid-51")
    rng = np.random.default_rng(9)
    q, v, a = character.rest_q, rng.normal(size=character.nv), rng.normal(size=character.nv)
    many = [np.tile(x, (MANY, 1)) for x in (q, v, a)]
    world = poise.World(character, dt=STEP, contact=None, ground=False)
    servo = poise.InverseDynamics(world, STIFFNESS, root="held")
    state, target = world.state, poise.Target(q, v, a)
    kane = poise.dynamics.kane_inverse_dynamics
    calls = {
        "kane_inverse_dynamics, one state": lambda: kane(character, q, v, a),
        f"the same for {MANY} states, each": lambda: kane(character, *many),
        "InverseDynamics, target to command": lambda: servo(state, target),
    }
    one, each, whole = (1e6 * took for took in best_of(calls, windows=60, most=5.0).values())
    each /= MANY
    item.claim(
        "51 degrees of freedom in real time",
        "under 1000 µs",
        f"{one:.1f} µs; {each:.2f} µs in a batch",
        "under 10 µs",
        one < 10.0,
    )
    item.table("time", ["", "µs"], list(zip(calls, (one, each, whole), strict=True)))
