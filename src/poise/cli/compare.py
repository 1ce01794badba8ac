"""`poise compare`: one clip under several controllers and steps, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.options import (
    AsJson,
    CharacterName,
    ClipName,
    ControllerOption,
    Duration,
    Ground,
    Profiles,
    Pushes,
    parse_options,
    seconds,
)
from poise.control.registry import CONTROLLERS, find_controller
from poise.errors import PoiseError
from poise.trials.trial import OPTIONS

if TYPE_CHECKING:
    from poise.trials.comparison import Outcome
    from poise.trials.trial import Trial

TABLE = "table.json"
FILES = ("compare.html", "compare.npz", "compare.png", TABLE)


def compare(
    clip: ClipName,
    controllers: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="See below.", show_default="all that hold a root in any world"
        ),
    ] = None,
    option: ControllerOption = None,
    dt: Annotated[
        str, typer.Option(metavar="SECONDS", help="Time steps, with commas.")
    ] = "1/30,1/60,1/120",
    character: CharacterName = None,
    root: Annotated[
        str,
        typer.Option(
            metavar="soft|held|free",
            help="Root: soft spring, stiff spring, or unactuated; balance is free.",
        ),
    ] = "held",
    frequency: Annotated[
        float, typer.Option(metavar="HZ", help="Natural frequency of the joints.")
    ] = OPTIONS["frequency"],
    duration: Duration = None,
    ground: Ground = None,
    push: Pushes = None,
    profile: Profiles = None,
    links: Annotated[
        bool, typer.Option("--links", help="Print the mean error of each link, too.")
    ] = False,
    largest: Annotated[
        bool, typer.Option("--largest/--no-largest", help="Look for the largest stable step.")
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the results go.", show_default="out/compare-CLIP"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare controllers on one clip: error, torque, energy, cost, the largest stable step.

    \b
    It prints a table, and leaves in DIR:
    compare.html  the characters side by side, in any browser: double click
    compare.png  errors over time and by link, torque, energy
    compare.npz  the recording, for poise view     table.json  the numbers

    \b
    Examples:
    poise compare walk --controllers pd,spd,kane
    poise compare squat --dt 1/60 --push chest:200N:left@1s
    poise compare squat --controllers spd,balance --dt 1/120
    """
    from poise.cli.compare_table import print_links, print_table
    from poise.cli.progress import bars
    from poise.control.profiles import parse_profile
    from poise.io.files import check_output_folder
    from poise.simulation.pushes import parse_push
    from poise.trials.comparison import compare_trials
    from poise.trials.trial import PREPARATIONS, prepare_trial

    folder = out or Path("out") / f"compare-{Path(clip).stem}"
    check_output_folder(folder, FILES, TABLE, [clip])
    names = _names(controllers)
    given = {"root": root, "frequency": frequency, **parse_options(option or [], names)}
    steps = list(dict.fromkeys(seconds(text) for text in dt.split(",") if text.strip()))
    pushes = [parse_push(text) for text in push or []]
    profiles = tuple(map(parse_profile, profile or []))
    with bars() as shown:
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
        typer.echo(json.dumps(table, indent=1))
        return
    print_table(trial, table)
    if links:
        print_links(table)
    for path in paths:
        typer.echo(f"  {path}")


def row(one: Outcome) -> dict[str, Any]:
    """A run as a row of the table, ready for JSON; errors in degrees and metres."""
    from poise import measure

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
    table: list[dict[str, Any]], trials: dict[str, Trial], largest: bool, tell: Any
) -> None:
    """Add to each row the largest stable step of its controller [s], and what a step costs [s]."""
    from poise.trials.comparison import cost, largest_step

    done, whole = 0, len(trials) * largest + len(table)
    for name, trial in trials.items() if largest else ():
        found = largest_step(trial)
        for r in table:
            if r["controller"] == name:
                r["largest_step"] = found
        done += 1
        tell(done / whole)
    for r in table:
        decide, step = cost(trials[r["controller"]].with_world(dt=r["dt"]))
        r.update(decide_seconds=decide, step_seconds=step)
        done += 1
        tell(done / whole)


def _save(
    folder: Path, outcomes: list[Outcome], table: list[dict[str, Any]], trial: Trial, report: Any
) -> list[Path]:
    """Writes all results, or nothing."""
    from poise.cli.track import describe
    from poise.io.files import made_by, write_atomically, write_output_folder
    from poise.trials.comparison import side_by_side
    from poise.view.html import save_html
    from poise.view.plots import save_comparison

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
