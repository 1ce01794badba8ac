"""`poise track`: a character follows a clip; a recording, a film, BVH, GLB, plots and a table."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.options import AsJson, ClipName, Duration, Ground, Profiles, Pushes
from poise.cli.simulated import simulated, tell_results
from poise.control.profiles import parse_profile
from poise.control.registry import CONTROLLERS, DEFAULT
from poise.errors import PoiseError
from poise.simulation.pushes import parse_push
from poise.trials.trial import FREQUENCY, Trial, run_trial, trial_of

if TYPE_CHECKING:
    from poise.recording import Recording

ADVICE = "take a smaller --dt, a lower --frequency, or --controller spd"
"""Against divergence."""


def track(
    clip: ClipName,
    character: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Who follows it; a file is followed by a character made from its own skeleton.",
        ),
    ] = None,
    controller: Annotated[
        str, typer.Option(metavar="NAME", help=f"How: {', '.join(CONTROLLERS)}.")
    ] = DEFAULT,
    dt: Annotated[str, typer.Option(metavar="SECONDS", help="Time step.")] = "1/60",
    push: Pushes = None,
    root: Annotated[
        str,
        typer.Option(
            metavar="soft|held|free",
            help="What holds the root: it gives way and comes back, stiffly, or nothing.",
        ),
    ] = "soft",
    frequency: Annotated[
        float, typer.Option(metavar="HZ", help="How fast joints follow.")
    ] = FREQUENCY,
    damping: Annotated[
        float | None,
        typer.Option(metavar="RATIO", help="How much they are damped.", show_default="1, critical"),
    ] = None,
    cutoff: Annotated[
        str | None,
        typer.Option(
            metavar="HZ|auto",
            help="Smooth the clip before: what is slower passes, 0 is off.",
            show_default="auto for raw files",
        ),
    ] = None,
    profile: Profiles = None,
    duration: Duration = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A motion file on whose rig motion.bvh is written."),
    ] = None,
    ground: Ground = None,
    video: Annotated[bool, typer.Option("--video/--no-video", help="Make video.mp4.")] = True,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the results go.", show_default="out/CLIP"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let a character follow a clip in a physical world, and push it.

    \b
    It prints a short table, and leaves in DIR:
    recording.html  to look at in any browser: double click
    video.mp4  motion.bvh  motion.glb  overview.png  table.json
    recording.npz  to resume, and for poise view

    \b
    DIRECTION of a push: forward back left right up down, or x,y,z in the world.
    NAME of a profile: limp weak flinch ragdoll stiff-upper loose-arms pinned.

    \b
    Examples:
    poise track walk --push chest:300N:left@1s+0.2s
    poise track take.bvh --out out/take
    poise track take.bvh --character humanoid --like take.bvh
    poise track squat --root free --frequency 100
    poise track walk --profile limp:left_arm@1s+0.5s
    """
    from poise.cli.progress import bars
    from poise.cli.track_table import print_table
    from poise.trials.results import check_out, save_results

    started = time.perf_counter()
    name = Path(clip).stem
    out = check_out(out or Path("out") / name, [clip, *([like] if like else [])])
    with bars() as shown:
        rig = _rig(like)
        trial = _trial(
            clip, character, cutoff, ground, push or [], shown.bar("retargeting"),
            controller=controller, dt=seconds(dt), root=root, frequency=frequency,
            damping=damping, duration=duration,
            profiles=tuple(map(parse_profile, profile or [])),
        )  # fmt: skip
        recording, elapsed = simulated(run_trial, trial, shown.bar("simulating"), ADVICE)
        table = {**describe(trial), "speed": _speed(trial, elapsed), **_table(recording)}
        files = save_results(
            out, recording, clip=trial.clip, name=name, like=rig, video=video,
            pushes=trial.world_pushes, table=table, progress=shown.tell,
        )  # fmt: skip
    tell_results(table, files, as_json=as_json, show=print_table, started=started)


def seconds(text: str) -> float:
    """A time step as people write it: 1/60, 0.01, 1e-3.

    Args:
        text: A number or a fraction [s].
    """
    try:
        return float(Fraction(text.replace(" ", "")))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise PoiseError(f"--dt is {text!r:.40}; it must be seconds, as 1/60 or 0.01") from None


def describe(trial: Trial) -> dict[str, Any]:
    """What was asked for, ready for JSON."""
    return {
        "clip": trial.clip.name,
        "character": trial.character.name,
        "dof": trial.character.nv,
        "mass": trial.character.mass,
        "controller": trial.controller,
        "dt": trial.dt,
        "root": trial.root,
        "ground": trial.ground,
        "frequency": trial.frequency,
        "damping": trial.damping,
        "duration": trial.time,
        "pushes": [str(push) for push in trial.pushes],
        "profiles": [str(profile) for profile in trial.profiles],
        "notes": list(trial.notes),
    }


def _trial(
    clip: str,
    character: str | None,
    cutoff: str | None,
    ground: bool | None,
    pushes: list[str],
    progress: Any,
    **options: Any,
) -> Trial:
    parsed = [parse_push(text) for text in pushes]  # before a large file is read
    return trial_of(
        clip, character, cutoff=cutoff, ground=ground, pushes=parsed, progress=progress, **options
    )


def _rig(like: Path | None) -> Any:
    """The clip on whose rig the result shall be."""
    if like is None:
        return None
    from poise.motion import load_clip

    return load_clip(like)


def _speed(trial: Trial, elapsed: float) -> dict[str, float]:
    """How long the simulation took [s], and how many times faster than real time that is."""
    return {"elapsed": elapsed, "real_time": trial.time / elapsed}


def _table(recording: Recording) -> dict[str, Any]:
    from poise.recording.table import table

    return table(recording)
