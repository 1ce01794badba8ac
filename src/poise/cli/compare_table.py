"""The tables that `poise compare` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from poise.trials.comparison import LADDER, step_text

if TYPE_CHECKING:
    from poise.trials.trial import Trial

ACROSS = 6
"""Runs beside each other in the table of links."""


def print_table(trial: Trial, table: list[dict[str, Any]]) -> None:
    """Print a line for each run.

    Args:
        trial: What is the same for all.
        table: Rows as of `poise.cli.compare.row`, with steps and costs.
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
        table: Rows as of `poise.cli.compare.row`.
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
