"""K8 and K9: sprints, jumps and sudden stops of the humanoid of 51 degrees of freedom."""

from __future__ import annotations

import csv
import time
from importlib import resources
from typing import Any

import numpy as np

import poise
from poise import measure
from poise.experiments import figures
from poise.experiments.report import Claim, Item, Table

STIFFNESS = 500.0  # [1/s²]
PD_FREQUENCY = 2.0  # of PD with its additions [Hz]: about the most that is stable at its step
STEP, PD_STEP = 1 / 100, 1 / 2000  # [s]


def k8() -> Item:
    """Every body's error at or below the thesis's own; PD with compensation far above it."""
    character = poise.load_character("humanoid-51")
    clip = poise.load_clip("sprint-jump-stop", character)
    air = _track(clip, STEP, ground=False)
    ground = _track(clip, STEP, ground=True)
    pd = _track(clip, PD_STEP, ground=True, pd=True)
    coarse = _track(clip, STEP, ground=True, pd=True)
    names = [link.name for link in character.links]
    rows, better, far = [], [], []
    for row in _paper():
        k = names.index(row["body"])
        ours = float(ground.rotation[:, k].mean()), float(ground.position[:, k].mean())
        theirs = float(pd.rotation[:, k].mean()), float(pd.position[:, k].mean())
        rows.append(
            [
                row["body"].replace("_", " "),
                _number(row["pd_degrees"]),
                theirs[0],
                _number(row["kane_degrees"]),
                ours[0],
                float(air.rotation[:, k].mean()),
                _number(row["pd_metres"]),
                theirs[1],
                _number(row["kane_metres"]),
                ours[1],
            ]
        )
        better.append(ours[0] <= float(row["kane_degrees"]))
        if row["kane_metres"]:
            better.append(ours[1] <= float(row["kane_metres"]))
        far.append(theirs[0] > 2.0 * max(ours[0], 1e-9))
    item = Item(
        "K8",
        "Humanoid: sprints, jumps and sudden stops",
        "Table 3.3, Figs. 3.20 to 3.25",
        "Our humanoid-51 (16 links, 51 degrees of freedom, 52 kg) and our clip sprint-jump-stop "
        "stand in for the thesis's. The root is held as in the thesis. Ours at 1/100 s, stiffness "
        f"{STIFFNESS:g}; PD with gravity compensation and bubble-up at 1/2000 s, joints of "
        f"{PD_FREQUENCY:g} Hz. With the ground, and for ours also without it.",
    )
    item.claims = [
        Claim(
            "ours, every body: mean error at or below the thesis's",
            "Table 3.3",
            f"{sum(better)} of {len(better)} errors are",
            "all",
            all(better),
        ),
        Claim(
            "PD with additions at a twentieth of the step is far above it",
            "Table 3.3",
            f"{sum(far)} of {len(far)} bodies are over twice as far off",
            "all",
            all(far),
        ),
        Claim(
            "PD does not run at 1/100 s",
            "unstable",
            f"{float(coarse.rotation.mean()):.3g} degrees on average",
            "diverges, or over ten times the error at 1/2000 s",
            not np.isfinite(coarse.rotation).all()
            or float(coarse.rotation.mean()) > 10 * float(pd.rotation.mean()),
        ),
    ]
    columns = [
        "body",
        "PD, thesis [°]",
        "PD, here [°]",
        "Kane, thesis [°]",
        "Kane, here [°]",
        "without ground [°]",
        "PD, thesis [m]",
        "PD, here [m]",
        "Kane, thesis [m]",
        "Kane, here [m]",
    ]
    item.tables = [Table("mean errors", columns, rows)]
    item.figures = {
        "K8": figures.lines(
            {
                "mean over the bodies": {
                    "PD with additions, 1/2000 s": (pd.time, pd.rotation.mean(axis=1)),
                    "inverse dynamics, 1/100 s": (ground.time, ground.rotation.mean(axis=1)),
                }
            },
            y="error [degrees]",
        )
    }
    return item


def k9() -> Item:
    """Inverse dynamics of 51 degrees of freedom."""
    character = poise.load_character("humanoid-51")
    rng = np.random.default_rng(9)
    q, v, a = character.rest_q, rng.normal(size=character.nv), rng.normal(size=character.nv)
    call = lambda: poise.dynamics.kane_inverse_dynamics(character, q, v, a)  # noqa: E731
    n = 1024
    rows = [np.tile(x, (n, 1)) for x in (q, v, a)]
    batch = lambda: poise.dynamics.kane_inverse_dynamics(character, *rows)  # noqa: E731
    world = poise.World(character, dt=STEP, contact=None, ground=False)
    servo = poise.InverseDynamics(world, STIFFNESS, root="held")
    target = poise.Target(q, v, a)
    one, many = 1e6 * _best(call), 1e6 * _best(batch, 3) / n
    whole = 1e6 * _best(lambda: servo(world.state, target))
    core = 1e6 * _best(_bare(character, q, v, a))
    item = Item(
        "K9",
        "Cost of the inverse dynamics",
        "section 3.9",
        "The recursion for the humanoid of 51 degrees of freedom, best of many windows.",
    )
    item.claims = [
        Claim(
            "51 degrees of freedom in real time",
            "under 1000 µs",
            f"{core:.1f} µs",
            "under 10 µs",
            core < 10.0,
        )
    ]
    rows_ = [
        ["the core, one call from Python", core],
        ["poise.dynamics.kane_inverse_dynamics", one],
        ["the same for 1024 states, each", many],
        ["InverseDynamics, target to command", whole],
    ]
    item.tables = [Table("µs", ["", "µs"], rows_)]
    return item


class _Errors:
    """Errors of a run: rotation [degrees] and position [m], (k, nl); infinite once it diverged."""

    def __init__(self, time: Any, rotation: Any, position: Any) -> None:
        self.time, self.rotation, self.position = time, rotation, position


def _track(clip: poise.Clip, dt: float, *, ground: bool, pd: bool = False) -> _Errors:
    world = poise.World(clip.character, dt=dt, ground=ground, self_collision=False)
    world.reset(clip.state(0.0))
    controller: Any = poise.InverseDynamics(world, STIFFNESS, root="held")
    if pd:
        # the root as stiff as the joints: it is held like one of them
        gains = poise.suggest_gains(
            world, PD_FREQUENCY, root="soft", root_frequency=PD_FREQUENCY, per_axis=True
        )
        controller = poise.PD(world, gains, root="held", gravity_compensation=True, bubble_up=True)
    recording = poise.Recording(world, fps=100)
    try:
        poise.run(world, controller, clip, clip.duration, record=recording)
    except poise.Diverged:
        nothing = np.full((2, len(clip.character.links)), np.inf)
        return _Errors(np.array([0.0, clip.duration]), nothing, nothing)
    wanted = clip.q(recording.time)
    error = measure.tracking_error(clip.character, recording.q, wanted)
    return _Errors(recording.time, error.rotation, error.position)


def _paper() -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath("paper.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def _number(text: str) -> float | None:
    return float(text) if text else None


def _bare(character: poise.Character, q: Any, v: Any, a: Any) -> Any:
    """The core's function with prepared arguments."""
    from poise import _core
    from poise.dynamics import _WHAT
    from poise.scene import scene_of

    model, down, origin = scene_of(character).model, np.array([0.0, 0.0, -9.81]), np.zeros(3)
    what, q = _WHAT.index("kane"), np.array(q)
    return lambda: _core.answer(
        model,
        None,
        what,
        1,
        False,
        q,
        v,
        a,
        None,
        None,
        None,
        None,
        None,
        None,
        down,
        1.0,
        3,
        0,
        False,
        0,
        origin,
    )


def _best(call: Any, calls: int = 100) -> float:
    """Seconds of one call: the best of many windows."""
    best = np.inf
    for _ in range(30):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return float(best)
