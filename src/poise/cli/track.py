"""`poise track`: a character follows a clip; a recording, a film, BVH, GLB, plots and a table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.options import (
    SPEEDS,
    AsJson,
    CharacterName,
    ClipName,
    Contact,
    ControllerOption,
    Cutoff,
    Duration,
    Friction,
    Ground,
    Prepare,
    Profiles,
    Pushes,
    Speed,
    Video,
    parse_options,
    seconds,
)
from poise.cli.simulated import simulated, tell_results
from poise.control.profiles import parse_profile
from poise.control.registry import DEFAULT
from poise.math.arrays import choice
from poise.simulation.pushes import parse_push
from poise.trials.trial import OPTIONS, Trial, prepare_trial

if TYPE_CHECKING:
    from poise.recording import Recording

ADVICE = "take a smaller --dt, a lower --frequency, or --controller spd"
"""Against divergence."""

PLOT = "balance.png"


def track(
    clip: ClipName,
    character: CharacterName = None,
    controller: Annotated[str, typer.Option(metavar="NAME", help="See below.")] = DEFAULT,
    option: ControllerOption = None,
    dt: Annotated[
        str | None,
        typer.Option(metavar="SECONDS", help="Time step.", show_default="1/60; balance 1/120"),
    ] = None,
    push: Pushes = None,
    root: Annotated[
        str | None,
        typer.Option(
            metavar="soft|held|free",
            help="Root: soft spring, stiff spring, or unactuated.",
            show_default="soft; balance free",
        ),
    ] = None,
    frequency: Annotated[
        float | None,
        typer.Option(
            metavar="HZ",
            help="Natural frequency of the joints.",
            show_default=f"{OPTIONS['frequency']:g}",
        ),
    ] = None,
    damping: Annotated[
        float | None,
        typer.Option(
            metavar="RATIO", help="Damping ratio of the joints.", show_default="1, critical"
        ),
    ] = None,
    cutoff: Cutoff = None,
    profile: Profiles = None,
    duration: Duration = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A motion file on whose rig motion.bvh is written."),
    ] = None,
    ground: Ground = None,
    contact: Contact = None,
    friction: Friction = None,
    speed: Speed = "fixed",
    prepare: Prepare = True,
    video: Video = True,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the results go.", show_default="out/CLIP or out/CLIP-balance"
        ),
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
    poise track squat --controller balance --option gamma=0.5
    poise track walk --profile limp:left_arm@1s+0.5s
    """
    given = {"root": root, "frequency": frequency, "damping": damping}
    options = {name: value for name, value in given.items() if value is not None}
    options |= parse_options(option or [], [controller])
    track_clip(
        clip, character, controller, options, dt=dt, push=push, profile=profile, cutoff=cutoff,
        duration=duration, like=like, ground=ground, contact=contact, friction=friction,
        speed=speed, prepare=prepare, video=video, out=out, as_json=as_json,
    )  # fmt: skip


def track_clip(
    clip: str,
    character: str | None,
    controller: str,
    options: dict[str, Any],
    *,
    dt: str | None,
    push: list[str] | None,
    profile: list[str] | None = None,
    cutoff: str | None,
    duration: float | None,
    like: Path | None = None,
    ground: bool | None = None,
    contact: str | None,
    friction: float | None,
    speed: str,
    prepare: bool,
    video: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run a trial, write its results, and print its table: `poise track` and `poise balance`.

    Args:
        clip: The name of a clip, or a file.
        character: The character that follows it, or None.
        controller: Name of the controller.
        options: Options of the controller; the others are those of `poise track`.
        dt: Time step, as text.
        push: Pushes, as text.
        profile: Profiles, as text.
        cutoff: Low-pass cutoff.
        duration: How long [s].
        like: A motion file on whose rig the result is written.
        ground: Whether there is a ground.
        contact: Model of contact.
        friction: Of feet and ground.
        speed: "fixed" or "adaptive".
        prepare: Whether the clip is prepared for the controller.
        video: Whether a video is made.
        out: Where the results go.
        as_json: Print the table as JSON.
    """
    from poise.cli.balance_table import print_balance
    from poise.cli.progress import bars
    from poise.cli.track_table import print_table
    from poise.trials.results import check_out, save_results

    started = time.perf_counter()
    name, balances = Path(clip).stem, controller == "balance"
    folder = out or Path("out") / (f"{name}-balance" if balances else name)
    folder = check_out(folder, [clip, *([like] if like else [])])
    pushes = [parse_push(text) for text in push or []]  # before a large file is read
    profiles = [parse_profile(text) for text in profile or []]
    choice(speed, "speed", SPEEDS)
    if contact is not None:
        choice(contact, "contact", ("penalty", "impulse"))
    with bars() as shown:
        rig = _rig(like)
        trial = prepare_trial(
            clip, character, controller=controller, cutoff=cutoff, ground=ground,
            dt=None if dt is None else seconds(dt), prepare=prepare,
            world={"contact": contact, "friction": friction}, pushes=pushes, profiles=profiles,
            duration=duration, time_scaling=speed == "adaptive",
            progress=shown.bar("retargeting"), preparing=shown.bar("preparing"), **options,
        )  # fmt: skip
        advice = "take a smaller --dt" + " or a smaller --push" * bool(pushes)
        recording, elapsed = simulated(
            trial, shown.bar("simulating"), advice if balances else ADVICE
        )
        table, more = _table(trial, recording, elapsed, name)
        files = save_results(
            folder, recording, clip=trial.clip, name=name, like=rig, video=video,
            pushes=trial.world_pushes, table=table, progress=shown.tell, more=more,
        )  # fmt: skip
    show = print_balance if balances else print_table
    tell_results(table, files, as_json=as_json, show=show, started=started)


def describe(trial: Trial) -> dict[str, Any]:
    """The settings of a trial, ready for JSON."""
    about = {
        "clip": trial.clip.name,
        "character": trial.character.name,
        "dof": trial.character.nv,
        "mass": trial.character.mass,
        "controller": trial.controller,
        "dt": trial.dt,
        "root": trial.root,
        "ground": trial.ground,
        "frequency": trial.options.get("frequency"),
        "damping": trial.options.get("damping"),
        "duration": trial.time,
        "pushes": [str(push) for push in trial.pushes],
        "profiles": [str(profile) for profile in trial.profiles],
        "notes": list(trial.notes),
    }
    if trial.controller == "balance":
        from poise.control.balance.config import OBJECTIVES

        about |= {
            "objectives": list(trial.options.get("objectives", OBJECTIVES)),
            "contact": trial.world["contact"],
            "friction": trial.world["friction"],
            "rate": trial.options.get("rate"),
            "pace": SPEEDS[trial.time_scaling],
        }
    return about


def _table(
    trial: Trial, recording: Recording, elapsed: float, name: str
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What came of a trial, ready for JSON; and further files by name, with what writes them."""
    from poise.recording.summary import recording_table as table_of

    table = describe(trial)
    if trial.controller != "balance":
        speed = {"elapsed": elapsed, "real_time": trial.time / elapsed}
        return {**table, "speed": speed, **table_of(recording)}, None
    from poise.recording.summary import balance_table, stance_of
    from poise.view.balance_plots import balance_plot

    stance = stance_of(recording)
    table |= {
        "speed": {"elapsed": elapsed, "real_time": float(recording.time[-1]) / elapsed},
        "balance": balance_table(stance),
        "goals": _goal_errors(trial, recording),
        **table_of(recording),
    }
    pushes = trial.world_pushes
    return table, {PLOT: lambda path: balance_plot(path, stance, pushes=pushes, title=name)}


def _goal_errors(trial: Trial, recording: Recording) -> dict[str, float]:
    """Distance of each link from its goal at the end [m]."""
    import numpy as np

    from poise.anatomy.body import place_of
    from poise.anatomy.feet import ContactPoint, positions

    errors = {}
    for name, goal in trial.options.get("goals", {}).items():
        link, place = place_of(trial.character, name)
        at = positions(trial.character, [ContactPoint(link, link, place)], recording.q[-1])[0]
        errors[name] = float(np.linalg.norm(at - np.array(goal)))
    return errors


def _rig(like: Path | None) -> Any:
    """The clip on whose rig the result shall be."""
    if like is None:
        return None
    from poise.motion import load_clip

    return load_clip(like)
