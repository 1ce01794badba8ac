"""`poise compare`: one clip under several controllers and steps, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.control.named import CONTROLLERS
from poise.errors import PoiseError

if TYPE_CHECKING:
    from poise.comparison import Outcome


def compare(
    clip: Annotated[
        str, typer.Argument(metavar="CLIP", help="The name of a clip (poise clips), or a file.")
    ],
    controllers: Annotated[
        str, typer.Option(metavar="NAMES", help=f"With commas: {', '.join(CONTROLLERS)}.")
    ] = ",".join(CONTROLLERS),
    dt: Annotated[
        str, typer.Option(metavar="SECONDS", help="Time steps, with commas.")
    ] = "1/30,1/60,1/120",
    character: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Who follows the clip.")
    ] = None,
    root: Annotated[
        str, typer.Option(metavar="soft|held|free", help="What holds the root.")
    ] = "held",
    frequency: Annotated[float, typer.Option(metavar="HZ", help="How fast joints follow.")] = 8.0,
    ground: Annotated[
        bool, typer.Option("--ground/--no-ground", help="Whether there is a ground.")
    ] = True,
    push: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PUSH", help="LINK:FORCE[:DIRECTION]@TIME[+DURATION]; may be given again."
        ),
    ] = None,
    largest: Annotated[
        bool, typer.Option("--largest/--no-largest", help="Look for the largest stable step.")
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the results go.", show_default="out/compare"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Compare controllers on one clip: errors, torques, power, cost, the largest stable step.

    \b
    It leaves in DIR:
    compare.html  the characters side by side, in any browser
    compare.png  errors by link and over time     table.json

    \b
    Examples:
    poise compare walk --controllers pd,spd,kane
    poise compare squat --dt 1/60 --push chest:200N:left@1s
    """
    from poise.cli.progress import bars
    from poise.cli.track import seconds
    from poise.comparison import compare as run
    from poise.comparison import controller_cost, largest_step, side_by_side
    from poise.pushes import parse_push
    from poise.results import check_out
    from poise.trial import trial_of
    from poise.view.comparison import save_comparison
    from poise.view.html import save_html

    folder = check_out(out or Path("out") / "compare", [clip])
    names = [name.strip() for name in controllers.split(",") if name.strip()]
    steps = [seconds(text) for text in dt.split(",") if text.strip()]
    with bars() as shown:
        trial = trial_of(
            clip,
            character,
            ground=ground,
            root=root,
            frequency=frequency,
            pushes=[parse_push(text) for text in push or []],
        )
        outcomes = run(trial, names, steps, progress=shown.bar("simulating"))
        table = [row(one) for one in outcomes]
        for name in names:
            tell = shown.bar(f"{name}: steps")
            mine = [r for r in table if r["controller"] == name]
            from dataclasses import replace

            own = replace(trial, controller=name)
            found = largest_step(own) if largest else None
            tell(0.9)
            cost = controller_cost(own)
            for r in mine:
                r.update(largest_step=found, controller_seconds=cost)
            tell(1.0)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / "compare.html", folder / "compare.png", folder / "table.json"]
        save_html(paths[0], side_by_side(outcomes), ghost=False, title=f"{trial.clip.name}")
        save_comparison(paths[1], outcomes)
        from poise.files import write_atomically

        write_atomically(paths[2], json.dumps(table, indent=1).encode())
    if as_json:
        typer.echo(json.dumps(table, indent=1))
        return
    _print(table)
    for path in paths:
        typer.echo(f"  {path}")


def row(one: Outcome) -> dict[str, Any]:
    """A run as a row of the table, ready for JSON; angles in degrees."""
    from poise import measure

    error, torque = one.error, one.torque
    links = one.trial.character.links
    return {
        "controller": one.trial.controller,
        "dt": one.trial.dt,
        "stable": one.stable,
        "rotation": None if error is None else measure.summary(error.rotation)._asdict(),
        "position": None if error is None else measure.summary(error.position)._asdict(),
        "torque": None if torque is None else torque._asdict(),
        "power": one.power,
        "step_seconds": one.seconds,
        "links": None
        if error is None
        else {
            link.name: {
                "rotation": float(error.rotation[:, i].mean()),
                "position": float(error.position[:, i].mean()),
            }
            for i, link in enumerate(links)
        },
    }


def _print(table: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    if not table:
        raise PoiseError("nothing was compared")
    shown = Table(
        "controller",
        "dt",
        "mean [°]",
        "95 % [°]",
        "mean [mm]",
        "largest torque",
        "power [W]",
        "µs a step",
        "µs to decide",
        "largest stable dt",
    )
    for r in table:
        step = f"1/{1.0 / r['dt']:.0f}"
        largest = r.get("largest_step")
        tail = [
            f"{1e6 * r['controller_seconds']:.0f}",
            f"1/{1.0 / largest:.0f}" if largest else "-",
        ]
        if r["rotation"] is None or not r["stable"]:
            shown.add_row(r["controller"], step, "diverges", "", "", "", "", "", *tail)
            continue
        shown.add_row(
            r["controller"],
            step,
            f"{r['rotation']['mean']:.3g}",
            f"{r['rotation']['p95']:.3g}",
            f"{1e3 * r['position']['mean']:.3g}",
            f"{r['torque']['max']:.0f}",
            f"{r['power']:.0f}",
            f"{1e6 * r['step_seconds']:.0f}",
            *tail,
        )
    Console(soft_wrap=True).print(shown)
