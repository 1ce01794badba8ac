"""`poise compare`: one clip under several controllers and steps, side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.options import AsJson, ClipName, Duration, Ground, Profiles, Pushes
from poise.control.registry import CONTROLLERS, named
from poise.trials.trial import FREQUENCY

if TYPE_CHECKING:
    from poise.trials.comparison import Outcome
    from poise.trials.trial import Trial

FILES = ("compare.html", "compare.npz", "compare.png", "table.json")


def compare(
    clip: ClipName,
    controllers: Annotated[str, typer.Option(metavar="NAMES", help="With commas.")] = ",".join(
        CONTROLLERS
    ),
    dt: Annotated[
        str, typer.Option(metavar="SECONDS", help="Time steps, with commas.")
    ] = "1/30,1/60,1/120",
    character: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Who follows the clip.")
    ] = None,
    root: Annotated[
        str, typer.Option(metavar="soft|held|free", help="What holds the root.")
    ] = "held",
    frequency: Annotated[
        float, typer.Option(metavar="HZ", help="How fast joints follow.")
    ] = FREQUENCY,
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
    """
    from poise.cli.compare_table import print_links, print_table
    from poise.cli.progress import bars
    from poise.cli.track import seconds
    from poise.control.profiles import parse_profile
    from poise.simulation.pushes import parse_push
    from poise.trials.comparison import compare as run
    from poise.trials.results import check_out
    from poise.trials.trial import trial_of

    folder = out or Path("out") / f"compare-{Path(clip).stem}"
    check_out(folder, [clip], files=FILES)
    names = _names(controllers)
    steps = list(dict.fromkeys(seconds(text) for text in dt.split(",") if text.strip()))
    pushes = [parse_push(text) for text in push or []]
    profiles = tuple(map(parse_profile, profile or []))
    with bars() as shown:
        trial = trial_of(
            clip, character, ground=ground, root=root, frequency=frequency, duration=duration,
            pushes=pushes, profiles=profiles, progress=shown.bar("retargeting"),
        )  # fmt: skip
        outcomes = run(trial, names, steps, progress=shown.bar("simulating"))
        table = [row(one) for one in outcomes]
        _add_steps(table, trial, names, largest, shown.bar("steps, costs"))
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


def _names(controllers: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in controllers.split(",") if name.strip()))
    for name in names:
        named(name)
    return names


def _add_steps(
    table: list[dict[str, Any]], trial: Trial, names: list[str], largest: bool, tell: Any
) -> None:
    """Add to each row the largest stable step of its controller [s], and what a step costs [s]."""
    from poise.trials.comparison import cost, largest_step

    done, whole = 0, len(names) * largest + len(table)
    for name in names * largest:
        found = largest_step(replace(trial, controller=name))
        for r in table:
            if r["controller"] == name:
                r["largest_step"] = found
        done += 1
        tell(done / whole)
    for r in table:
        decide, step = cost(replace(trial, controller=r["controller"], dt=r["dt"]))
        r.update(decide_seconds=decide, step_seconds=step)
        done += 1
        tell(done / whole)


def _save(
    folder: Path, outcomes: list[Outcome], table: list[dict[str, Any]], trial: Trial, tell: Any
) -> list[Path]:
    """Write all results, or nothing."""
    import os

    from poise.cli.track import describe
    from poise.io.files import write_atomically
    from poise.trials.comparison_recording import side_by_side
    from poise.trials.results import maker, staged
    from poise.view.comparison import save_comparison
    from poise.view.html import save_html

    about = {
        key: value for key, value in describe(trial).items() if key not in ("controller", "dt")
    }
    record = {**about, **maker(), "runs": table}
    both = side_by_side(outcomes)
    with staged(folder) as stage:
        save_html(
            stage / FILES[0],
            both,
            mass_center=False,
            captions=[one.name for one in both.scene.characters],
            title=f"{trial.clip.name}, side by side",
            progress=tell,
        )
        both.save(stage / FILES[1])
        save_comparison(stage / FILES[2], outcomes)
        write_atomically(stage / FILES[3], json.dumps(record, indent=1).encode())
        for file in FILES:
            os.replace(stage / file, folder / file)
    return [folder / file for file in FILES]
