"""`poise track`: a character follows a clip; a recording, a film, BVH, GLB, plots and a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from poise.anatomy.body import place_of
from poise.anatomy.feet import ContactPoint, positions
from poise.cli import options
from poise.control.balance.config import OBJECTIVES
from poise.control.profiles import parse_profile
from poise.control.registry import DEFAULT
from poise.errors import Diverged, PoiseError
from poise.math.arrays import choice
from poise.motion import load_clip
from poise.recording import Recording
from poise.recording.summary import balance_table, recording_table, stance_of
from poise.simulation.pushes import parse_push
from poise.trials.results import check_out, save_results
from poise.trials.trial import OPTIONS, Trial, prepare_trial, step_text
from poise.view.plots import balance_plot

SPEEDS = ("fixed", "adaptive")
PLOT = "balance.png"


def track(
    clip: options.ClipName,
    character: options.CharacterName = None,
    controller: Annotated[str, options.option("One of the controllers below.", "NAME")] = DEFAULT,
    option: options.ControllerOption = None,
    dt: options.Step = None,
    push: options.Pushes = None,
    root: Annotated[
        str | None,
        options.option(
            "Root: soft spring, stiff spring, or unactuated.",
            "soft|held|free",
            "soft; balance free",
        ),
    ] = None,
    frequency: Annotated[
        float | None,
        options.option("Natural frequency of the joints.", "HZ", f"{OPTIONS['frequency']:g}"),
    ] = None,
    damping: Annotated[
        float | None, options.option("Damping ratio of the joints.", "RATIO", "1, critical")
    ] = None,
    cutoff: options.Cutoff = None,
    profile: options.Profiles = None,
    goal: options.Goals = None,
    duration: options.Duration = None,
    like: options.Like = None,
    ground: options.Ground = None,
    contact: options.Contact = None,
    friction: options.Friction = None,
    speed: options.Speed = "fixed",
    prepare: options.Prepare = True,
    video: options.Video = True,
    out: Annotated[
        Path | None,
        options.option("Where the results go.", "DIR", "out/CLIP or out/CLIP-balance"),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Let a character follow a clip in a physical world, and push it.

    \b
    It prints a short table, and leaves in DIR:
    recording.html  to look at in any browser: double click
    video.mp4  motion.bvh  motion.glb  overview.png  table.json
    recording.npz  to resume, and for poise view

    \b
    PUSH     LINK:FORCE[:DIRECTION]@TIME[+DURATION]
             DIRECTION: forward back left right up down, or x,y,z in the world
    PROFILE  NAME[:LIMB][@TIME[+DURATION]]
             NAME: limp weak flinch ragdoll stiff-upper loose-arms pinned

    \b
    Examples:
    poise track walk --push chest:300N:left@1s+0.2s
    poise track take.bvh --out out/take
    poise track take.bvh --character humanoid --like take.bvh
    poise track squat --root free --frequency 100
    poise track squat --controller balance --option gamma=0.5
    poise track walk --profile limp:left_arm@1s+0.5s
    """
    started = time.perf_counter()
    given = {"root": root, "frequency": frequency, "damping": damping}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    chosen |= options.parse_options(option or [], [controller])
    if goal:
        chosen["goals"] = options.parse_goals(goal)
    name, balances = Path(clip).stem, controller == "balance"
    folder = out or Path("out") / (f"{name}-balance" if balances else name)
    folder = check_out(folder, [clip, *([like] if like else [])])
    # before a large file is read
    pushes = [parse_push(text) for text in push or []]
    profiles = [parse_profile(text) for text in profile or []]
    choice(speed, "speed", SPEEDS)
    if contact is not None:
        choice(contact, "contact", ("penalty", "impulse"))
    with options.bars() as shown:
        rig = None if like is None else load_clip(like)
        trial = prepare_trial(
            clip, character, controller=controller, cutoff=cutoff, ground=ground,
            dt=None if dt is None else options.seconds(dt), prepare=prepare,
            world={"contact": contact, "friction": friction}, pushes=pushes, profiles=profiles,
            duration=duration, time_scaling=speed == "adaptive",
            progress=shown.bar("retargeting"), preparing=shown.bar("preparing"), **chosen,
        )  # fmt: skip
        recording, elapsed = _simulate(trial, shown)
        table, more = make_table(trial, recording, elapsed)
        files = save_results(
            folder, recording, clip=trial.clip, name=name, like=rig, video=video,
            pushes=trial.world_pushes, table=table, progress=shown.report, more=more,
        )  # fmt: skip
    if as_json:
        options.print_json({**table, "files": {key: str(path) for key, path in files.items()}})
        return
    print_table(table)
    typer.echo(f"all done in {time.perf_counter() - started:.1f} s:")
    for path in files.values():
        typer.echo(f"  {path}")


def _simulate(trial: Trial, shown: options.Bars) -> tuple[Recording, float]:
    """Runs a trial: the recording, and how long the simulation took [s]."""
    trial.clip.q(0.0)  # its spline is made, and SciPy loaded, before the clock runs
    before = time.perf_counter()
    try:
        recording = trial.run(progress=shown.bar("simulating"))
    except Diverged as error:
        advice = "take a smaller --dt, a lower --frequency, or --controller spd"
        if trial.controller == "balance":
            advice = "take a smaller --dt" + " or a smaller --push" * bool(trial.pushes)
        raise PoiseError(
            f"the simulation diverged at {error.time:.3g} s, first in joint {error.joint!r}: "
            f"{advice}"
        ) from error
    return recording, time.perf_counter() - before


# ---- the table


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
        about |= {
            "objectives": list(trial.options.get("objectives", OBJECTIVES)),
            "contact": trial.world["contact"],
            "friction": trial.world["friction"],
            "rate": trial.options.get("rate"),
            "pace": SPEEDS[trial.time_scaling],
        }
    return about


def make_table(
    trial: Trial, recording: Recording, elapsed: float
) -> tuple[dict[str, Any], dict[str, Callable[[Path], None]]]:
    """The results of a trial, ready for JSON; and writers of further files, by name.

    Args:
        trial: The trial.
        recording: What happened.
        elapsed: How long the simulation took [s].
    """
    speed = {"elapsed": elapsed, "real_time": float(recording.time[-1]) / elapsed}
    table = {**describe(trial), "speed": speed, **recording_table(recording)}
    if trial.controller != "balance":
        return table, {}
    stance, pushes, title = stance_of(recording), trial.world_pushes, trial.clip.name
    table |= {"balance": balance_table(stance), "goals": _goal_errors(trial, recording)}
    return table, {PLOT: lambda path: balance_plot(path, stance, pushes=pushes, title=title)}


def _goal_errors(trial: Trial, recording: Recording) -> dict[str, float]:
    """Distance of each link from its goal at the end [m]."""
    errors = {}
    for name, goal in trial.options.get("goals", {}).items():
        link, place = place_of(trial.character, name)
        at = positions(trial.character, [ContactPoint(link, link, place)], recording.q[-1])[0]
        errors[name] = float(np.linalg.norm(at - np.array(goal)))
    return errors


def print_table(table: dict[str, Any]) -> None:
    """Prints the results of a trial.

    Args:
        table: As of `make_table`.
    """
    balances = "balance" in table
    typer.secho(_balance_title(table) if balances else _title(table), bold=True)
    for note in (*table["pushes"], *table["profiles"], *table["notes"]):
        typer.echo(f"  {note}")
    if balances:
        _print_balance(table)
    else:
        _print_links(table)
        for line in filter(None, (_torque(table), _contacts(table), _end(table))):
            typer.echo(line)
    speed = table["speed"]
    typer.echo(
        f"speed: {speed['elapsed'] * speed['real_time']:.2f} s simulated in "
        f"{speed['elapsed']:.3g} s, {speed['real_time']:.3g} times real time"
    )


def _title(table: dict[str, Any]) -> str:
    return (
        f"{_body(table)}; {table['controller']} at {step_text(table['dt'])} s, "
        f"root {table['root']}, {table['duration']:.2f} s"
    )


def _body(table: dict[str, Any]) -> str:
    return (
        f"{table['clip']}: {table['character']}, {table['dof']} degrees of freedom, "
        f"{table['mass']:.3g} kg"
    )


ROWS = 24
"""Links that are shown; of more, those that are worst."""

HEAD = ("rotation [deg]", "in the body [m]", "in the world [m]")


def _print_links(table: dict[str, Any]) -> None:
    links = table["links"]
    shown = sorted(links, key=lambda name: -links[name]["rotation"]["p95"])[:ROWS]
    width = max(len(name) for name in (*shown, "all links"))
    pad = " " * width
    typer.secho(f"{pad}  {HEAD[0]:>15}  {HEAD[1]:>15}  {HEAD[2]:>16}  torque  contact", bold=True)
    two = f"{'mean':>7} {'most':>7}"
    typer.secho(f"{'link':{width}}  {two}  {two}   {two}   [N·m]  [% of t]", bold=True)
    for name in links:
        if name in shown:
            row = links[name]
            extra = f"  {row['torque']:6.1f}  {100 * row['touching']:7.0f}"
            typer.echo(f"{name:{width}}  {_errors(row)}{extra}")
    typer.echo(f"{'all links':{width}}  {_errors(table['tracking'])}")
    if len(links) > len(shown):
        typer.echo(f"and {len(links) - len(shown)} links with less error: table.json has them")


def _errors(row: dict[str, Any]) -> str:
    turned, inside, world = row["rotation"], row["position"], row["world"]
    return (
        f"{turned['mean']:7.2f} {turned['max']:7.2f}  {inside['mean']:7.4f} {inside['max']:7.4f}"
        f"   {world['mean']:7.4f} {world['max']:7.4f}"
    )


def _torque(table: dict[str, Any]) -> str:
    largest, hand = table["torque"], table["hand"]
    if largest is None:
        return ""
    text = f"largest torque: {largest['torque']:.4g} N·m in {largest['joint']}"
    text += f" at {largest['time']:.2f} s"
    if largest["limit"]:
        text += f", {100 * largest['torque'] / largest['limit']:.0f} % of its limit"
    if hand is not None and (hand["force"] or hand["torque"]):
        text += f"; on the root, from outside: {hand['force']:.4g} N, {hand['torque']:.4g} N·m"
    return text


def _contacts(table: dict[str, Any]) -> str:
    found = table["contacts"]
    if not found["links"]:
        return "contacts: none"
    weights = "" if found["weights"] is None else f" ({found['weights']:.2g} times its weight)"
    return (
        f"contacts: {found['links']} links, {found['mean']:.1f} points at a time; ground force up "
        f"to {found['ground_force']:.4g} N{weights}, {1e3 * found['depth']:.1f} mm deep"
    )


def _end(table: dict[str, Any]) -> str:
    if table["fallen"] is None:
        return ""
    return "at the end it lies on the ground" if table["fallen"] else "at the end it stands"


# ---- the table of a balancing character

MARGINS = {"com": "center of mass", "cop": "center of pressure", "cmp": "centroidal moment pivot"}


def _balance_title(table: dict[str, Any]) -> str:
    return (
        f"{_body(table)}; {' + '.join(table['objectives'])}; {table['contact']} contact, "
        f"friction {table['friction']:g}, {step_text(table['dt'])} s"
    )


def _print_balance(table: dict[str, Any]) -> None:
    found, tracked = table["balance"], table["tracking"]
    if found["stood"]:
        typer.secho("it stood", fg="green", bold=True)
    else:
        typer.secho(f"it fell at {found['fell']:.2f} s", fg="red", bold=True)
    turned, world = tracked["rotation"], tracked["world"]
    typer.echo(
        f"mean error: {turned['mean']:.2f} degrees (most {turned['max']:.1f}), "
        f"{100 * world['mean']:.1f} cm (most {100 * world['max']:.1f})"
    )
    for name, foot in found["feet"].items():
        typer.echo(
            f"{name.replace('_', ' ')}: moved {1e3 * foot['moved']:.1f} mm, tilted "
            f"{foot['tilted']:.1f} degrees while it should stand"
        )
    typer.echo(f"least margin inside the supports: {margins_text(found['margins'])}")
    typer.echo(_torque(table) or "largest torque: none")
    for name, error in table["goals"].items():
        typer.echo(f"goal {name}: {100 * error:.1f} cm away")


def margins_text(margins: dict[str, Any]) -> str:
    """Least margins of CoM, CoP and CMP over a recording, in centimeters.

    Args:
        margins: As of `poise.recording.summary.balance_table`.
    """
    parts = [
        f"{MARGINS[name]} {round(100 * one['least'], 1) + 0.0:.1f} cm"  # no -0.0
        for name, one in margins.items()
        if one["least"] is not None
    ]
    return ", ".join(parts) or "it never touched the ground"
