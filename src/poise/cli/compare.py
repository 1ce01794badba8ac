"""`poise compare`: one clip under several controllers and steps, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from poise import measure
from poise.cli import options
from poise.cli.track import describe
from poise.control.profiles import parse_profile
from poise.control.registry import CONTROLLERS, find_controller
from poise.errors import PoiseError
from poise.io.files import check_output_folder, made_by, write_atomically, write_output_folder
from poise.math.arrays import Progress
from poise.simulation.pushes import parse_push
from poise.trials.comparison import (
    LADDER,
    Outcome,
    compare_trials,
    cost,
    largest_step,
    side_by_side,
)
from poise.trials.trial import OPTIONS, PREPARATIONS, Trial, prepare_trial, step_text
from poise.view.html import save_html
from poise.view.plots import save_comparison

TABLE = "table.json"
FILES = ("compare.html", "compare.npz", "compare.png", TABLE)


def compare(
    clip: options.ClipName,
    controllers: Annotated[
        str | None,
        options.option(
            "Some of the controllers below, with commas.",
            "NAMES",
            "all but balance",
        ),
    ] = None,
    option: options.ControllerOption = None,
    dt: Annotated[str, options.option("Time steps, with commas.", "SECONDS")] = "1/30,1/60,1/120",
    character: options.CharacterName = None,
    root: Annotated[
        str,
        options.option(
            "Root: soft spring, stiff spring, or unactuated; balance is free.", "soft|held|free"
        ),
    ] = "held",
    frequency: Annotated[float, options.option("Natural frequency of the joints.", "HZ")] = OPTIONS[
        "frequency"
    ],
    duration: options.Duration = None,
    ground: options.Ground = None,
    push: options.Pushes = None,
    profile: options.Profiles = None,
    links: Annotated[
        bool, options.option("Print the mean error of each link, too.", name="--links")
    ] = False,
    largest: Annotated[
        bool,
        options.option("Look for the largest stable step.", name="--largest/--no-largest"),
    ] = True,
    out: Annotated[
        Path | None, options.option("Where the results go.", "DIR", "out/compare-CLIP")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare controllers on one clip: error, torque, energy, cost, largest stable step.

    \b
    It prints a table, and leaves in DIR:
    compare.html  the characters side by side, in any browser: double click
    compare.png  errors over time and by link, torque, energy
    compare.npz  the recording, for poise view     table.json  the numbers

    \b
    PUSH     LINK:FORCE[:DIRECTION]@TIME[+DURATION]
             DIRECTION: forward back left right up down, or x,y,z in the world
    PROFILE  NAME[:LIMB][@TIME[+DURATION]]
             NAME: limp weak flinch ragdoll stiff-upper loose-arms pinned

    \b
    Examples:
    poise compare walk --controllers pd,spd,kane
    poise compare squat --dt 1/60 --push chest:200N:left@1s
    poise compare squat --controllers spd,balance --dt 1/120
    """
    folder = out or Path("out") / f"compare-{Path(clip).stem}"
    check_output_folder(folder, FILES, TABLE, [clip])
    names = _names(controllers)
    given = {"root": root, "frequency": frequency, **options.parse_options(option or [], names)}
    steps = list(dict.fromkeys(options.seconds(text) for text in dt.split(",") if text.strip()))
    pushes = [parse_push(text) for text in push or []]
    profiles = tuple(map(parse_profile, profile or []))
    with options.bars() as shown:
        # on the clip as it is; controllers that need another prepare their own
        first = next((name for name in names if name not in PREPARATIONS), names[0])
        known = find_controller(first).options.info()
        trial = prepare_trial(
            clip, character, controller=first, ground=ground, duration=duration, pushes=pushes,
            profiles=profiles, progress=shown.bar("retargeting"), preparing=shown.bar("preparing"),
            **{name: value for name, value in given.items() if name in known},
        )  # fmt: skip
        trials = {name: trial.with_controller(name, given) for name in names}
        outcomes = compare_trials(trials, steps, progress=shown.bar("simulating"))
        table = [row(one) for one in outcomes]
        _add_steps(table, trials, largest, shown.bar("steps, costs"))
        paths = _save(folder, outcomes, table, trial, shown.bar("writing"))
    if as_json:
        options.print_json(table)
        return
    print_table(trial, table)
    if links:
        print_links(table)
    for path in paths:
        typer.echo(f"  {path}")


def row(one: Outcome) -> dict[str, Any]:
    """A run as a row of the table, ready for JSON; errors in degrees and metres."""
    error, torque = one.error, one.torque
    scene = one.recording.scene
    of = {} if error is None else measure.by_link(scene, error)
    return {
        "controller": one.trial.controller,
        "dt": one.trial.dt,
        "stable": one.stable,
        "lost": one.lost,
        "rotation": None if error is None else measure.summary(error.rotation)._asdict(),
        "position": None if error is None else measure.summary(error.position)._asdict(),
        "torque": None if torque is None else torque._asdict(),
        "energy": one.energy,
        "links": {
            name: {key: summary._asdict() for key, summary in found.items()}
            for name, found in of.items()
        },
    }


def _names(controllers: str | None) -> list[str]:
    """The controllers to compare; by default those that need no world of their own."""
    if controllers is None:
        return [name for name, entry in CONTROLLERS.items() if not entry.defaults]
    names = list(dict.fromkeys(name.strip() for name in controllers.split(",") if name.strip()))
    for name in names:
        find_controller(name)
    if not names:
        raise PoiseError("a comparison needs at least one controller and one step")
    return names


def _add_steps(
    table: list[dict[str, Any]], trials: dict[str, Trial], largest: bool, report: Progress
) -> None:
    """Add to each row the largest stable step of its controller [s], and what a step costs [s]."""
    done, whole = 0, len(trials) * largest + len(table)
    for name, trial in trials.items() if largest else ():
        found = largest_step(trial)
        for r in table:
            if r["controller"] == name:
                r["largest_step"] = found
        done += 1
        report(done / whole)
    for r in table:
        decide, step = cost(trials[r["controller"]].with_world(dt=r["dt"]))
        r.update(decide_seconds=decide, step_seconds=step)
        done += 1
        report(done / whole)


def _save(
    folder: Path,
    outcomes: list[Outcome],
    table: list[dict[str, Any]],
    trial: Trial,
    report: Progress,
) -> list[Path]:
    """Writes all results, or nothing."""
    about = {
        key: value for key, value in describe(trial).items() if key not in ("controller", "dt")
    }
    record = {**about, **made_by(), "runs": table}
    both = side_by_side(outcomes)
    captions = [one.name for one in both.scene.characters]
    title = f"{trial.clip.name}, side by side"
    writers: dict[str, Callable[[Path], None]] = {
        "compare.html": lambda path: save_html(
            path, both, center_of_mass=False, captions=captions, title=title, progress=report
        ),
        "compare.npz": both.save,
        "compare.png": lambda path: save_comparison(path, outcomes),
        TABLE: lambda path: write_atomically(path, json.dumps(record, indent=1).encode()),
    }
    return list(write_output_folder(folder, writers).values())


# ---- the printed tables

ACROSS = 6
"""Runs beside each other in the table of links."""


def print_table(trial: Trial, table: list[dict[str, Any]]) -> None:
    """Print a line for each run.

    Args:
        trial: What is the same for all.
        table: Rows as of `row`, with steps and costs.
    """
    typer.secho(
        f"{trial.clip.name}: {trial.character.name}, {trial.character.nv} degrees of freedom, "
        f"root {trial.root}, {trial.time:.2f} s",
        bold=True,
    )
    for note in (*map(str, (*trial.pushes, *trial.profiles)), *trial.notes):
        typer.echo(f"  {note}")
    width = max(len("controller"), *(len(r["controller"]) for r in table))
    head = f"{'controller':{width}} {'step':>7} {'error [deg]':>15} {'[mm]':>6} {'torque':>7}"
    typer.secho(f"{head} {'energy':>7} {'µs/step':>8} {'of it':>6}  largest", bold=True)
    head = f"{'':{width}} {'[s]':>7} {'mean':>7} {'95 %':>7} {'mean':>6} {'[N·m]':>7}"
    typer.secho(f"{head} {'[J]':>7} {'':>8} {'decide':>6}  step [s]", bold=True)
    for r in table:
        typer.echo(f"{r['controller']:{width}} {step_text(r['dt']):>7} {_numbers(r)}  {_reach(r)}")


def print_links(table: list[dict[str, Any]]) -> None:
    """Print the mean rotation error of each link, the runs beside each other.

    Args:
        table: Rows as of `row`.
    """
    runs = [r for r in table if r["links"]]
    for k in range(0, len(runs), ACROSS):
        some = runs[k : k + ACROSS]
        names = list(some[0]["links"])
        width = max(map(len, names))
        typer.secho(f"{'mean [deg]':{width}} " + " ".join(f"{r['controller']:>11}" for r in some))
        typer.secho(f"{'':{width}} " + " ".join(f"{step_text(r['dt']):>11}" for r in some))
        for name in names:
            cells = (f"{r['links'][name]['rotation']['mean']:11.3f}" for r in some)
            typer.echo(f"{name:{width}} {' '.join(cells)}")


def _numbers(r: dict[str, Any]) -> str:
    if not r["stable"]:
        return f"{'lost at ' + format(r['lost'], '.2f') + ' s':<63}"[:63]
    turned, moved = r["rotation"], r["position"]
    return (
        f"{_short(turned['mean']):>7} {_short(turned['p95']):>7} {_short(1e3 * moved['mean']):>6} "
        f"{r['torque']['max']:7.0f} {r['energy']:7.0f} {1e6 * r['step_seconds']:8.1f} "
        f"{1e6 * r['decide_seconds']:6.1f}"
    )


def _short(value: float) -> str:
    """Three digits, however small."""
    return "0" if value == 0.0 else f"{value:.3f}" if 1e-3 <= value < 10.0 else f"{value:.3g}"


def _reach(r: dict[str, Any]) -> str:
    if "largest_step" not in r:
        return "-"
    if r["largest_step"] is None:
        return f"below {step_text(min(LADDER))}"
    text = step_text(r["largest_step"])
    return f"{text} or more" if r["largest_step"] == max(LADDER) else text
