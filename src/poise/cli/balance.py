"""`poise balance`: a character follows a clip on its own feet, and is pushed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.options import AsJson, ClipName, Duration, Pushes
from poise.cli.simulated import simulated, tell_results

if TYPE_CHECKING:
    from poise.recording import Recording
    from poise.trials.balance_trial import BalanceTrial

PLOT = "balance.png"


def balance(
    clip: ClipName,
    character: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Who follows it: poise characters, or a file.",
            show_default="the clip's own",
        ),
    ] = None,
    push: Pushes = None,
    objectives: Annotated[
        str, typer.Option(metavar="NAMES", help="Any of track, linear, angular.")
    ] = "track,linear,angular",
    goal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GOAL",
            help="A point that a link or limb should reach: LINK:X,Y,Z; may be given again.",
        ),
    ] = None,
    friction: Annotated[
        float, typer.Option(metavar="NUMBER", help="Of feet and ground; 0.03 is slippery.")
    ] = 0.8,
    contact: Annotated[
        str,
        typer.Option(
            metavar="impulse|penalty",
            help="The ground: rigid, with friction cones; or springs, as in the thesis.",
        ),
    ] = "impulse",
    dt: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS", help="Time step.", show_default="1/120, with penalty 1/1000"
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="HZ",
            help="How often the balance plans, with penalty.",
            show_default="200; with impulse every step",
        ),
    ] = None,
    speed: Annotated[
        str,
        typer.Option(
            metavar="fixed|adaptive",
            help="Adaptive: the clip waits while following it would cost the balance.",
        ),
    ] = "fixed",
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare/--no-prepare", help="Level the feet, bring the mass centre over them."
        ),
    ] = True,
    cutoff: Annotated[
        str | None,
        typer.Option(
            metavar="HZ|auto",
            help="Smooth the clip before: what is slower passes, 0 is off.",
            show_default="auto for raw files",
        ),
    ] = None,
    duration: Duration = None,
    video: Annotated[bool, typer.Option("--video/--no-video", help="Make video.mp4.")] = True,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the results go.", show_default="out/CLIP-balance"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let a character follow a clip on its own feet, and push it.

    \b
    Nothing holds it: it keeps its balance by its momentum, or falls.
    It prints a short table, and leaves in DIR what poise track leaves, and
    balance.png  mass centre, COP, CMP over the supports; momentum; feet

    \b
    DIRECTION of a push: forward back left right up down, or x,y,z in the world.

    \b
    Examples:
    poise balance squat --push head:220N:forward@1s+0.1s
    poise balance leg-circle --friction 0.03
    poise balance butterflies --goal left_hand:0.4,0.3,1.4
    poise balance take.bvh --character humanoid-ball --speed adaptive
    """
    from poise.cli.balance_table import print_balance
    from poise.cli.progress import bars
    from poise.cli.track import seconds
    from poise.recording.balance import balance_table, stance_of
    from poise.recording.table import table as table_of
    from poise.simulation.pushes import parse_push
    from poise.trials.balance_trial import balance_trial_of, parse_goal, run_balance
    from poise.trials.results import check_out, save_results
    from poise.view.balance_plots import balance_plot

    started = time.perf_counter()
    name = Path(clip).stem
    out = check_out(out or Path("out") / f"{name}-balance", [clip])
    pushes, goals = [parse_push(text) for text in push or []], [parse_goal(g) for g in goal or []]
    step = None if dt is None else seconds(dt)
    with bars() as shown:
        trial = balance_trial_of(
            clip, character, prepare=prepare, dt=step, contact=contact, cutoff=cutoff,
            pushes=pushes, progress=shown.bar("retargeting"), preparing=shown.bar("preparing"),
            objectives=tuple(filter(None, objectives.replace(" ", "").split(","))),
            friction=friction, goals=tuple(goals), rate=rate, speed=speed, duration=duration,
        )  # fmt: skip
        advice = "take a smaller --dt" + " or a smaller --push" * bool(pushes)
        recording, elapsed = simulated(run_balance, trial, shown.bar("simulating"), advice)
        stance = stance_of(recording)
        table = {
            **_asked(trial),
            "speed": {"elapsed": elapsed, "real_time": float(recording.time[-1]) / elapsed},
            "balance": balance_table(stance),
            "goals": _misses(trial, recording),
            **table_of(recording),
        }
        files = save_results(
            out, recording, clip=trial.clip, name=name, video=video, pushes=trial.world_pushes,
            table=table, progress=shown.tell,
            more={PLOT: lambda path: balance_plot(
                path, stance, pushes=trial.world_pushes, title=name
            )},
        )  # fmt: skip
    tell_results(table, files, as_json=as_json, show=print_balance, started=started)


def _asked(trial: BalanceTrial) -> dict[str, Any]:
    """What was asked for, ready for JSON."""
    from poise.cli.track import describe

    return {
        **describe(trial),
        "controller": "balance",
        "objectives": list(trial.objectives),
        "contact": trial.contact,
        "friction": trial.friction,
        "rate": trial.rate,
        "pace": trial.speed,
    }


def _misses(trial: BalanceTrial, recording: Recording) -> dict[str, float]:
    """How far from its goal each link is at the end [m]."""
    import numpy as np

    from poise.anatomy.body import place_of
    from poise.anatomy.feet import Point, positions

    missed = {}
    for goal in trial.goals:
        link, place = place_of(trial.character, goal.link)
        at = positions(trial.character, [Point(link, link, place)], recording.q[-1])[0]
        missed[goal.link] = float(np.linalg.norm(at - np.array(goal.point)))
    return missed
