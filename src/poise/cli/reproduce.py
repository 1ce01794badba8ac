"""`poise reproduce`: the tables and figures of a work, brought back, with a verdict each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poise import experiments
from poise.cli import options
from poise.experiments.report import Claim, Item, plain, record_of


def reproduce(
    work: Annotated[
        str, typer.Argument(metavar="WORK", help="yin2020, macchietto2008 or kavafoglu2018.")
    ],
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[ITEM]...", help="Which, as K4; all if none.")
    ] = None,
    out: Annotated[
        Path | None, options.option("Where it goes.", "DIR", "out/reproduce/WORK[-ITEMS]")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run the experiments of a work: paper, here, verdict; a report as HTML and JSON.

    \b
    It leaves in DIR: report.html, report.json, and the figures as PNG.
    A claim that differs is no error: the report says why.

    \b
    Examples:
    poise reproduce kavafoglu2018
    poise reproduce yin2020 Y4 Y5 --out out/speed
    """
    with options.bars() as shown:
        made, paths = experiments.reproduce(work, items or [], out=out, progress=shown.report)
    if as_json:
        claims = [{"item": i.key, **record_of(claim)} for i in made for claim in i.claims]
        options.print_json(plain(claims))
        return
    for item in made:
        _print(item)
    typer.echo(str(paths["html"]))
    typer.echo(str(paths["json"]))


def _print(item: Item) -> None:
    typer.secho(f"{item.key}  {item.title}", bold=True)
    if item.skipped:
        typer.echo(f"  {item.text}")
    for claim in item.claims:
        _print_claim(claim)


def _print_claim(claim: Claim) -> None:
    color = {"holds": typer.colors.GREEN, "differs": typer.colors.RED}.get(claim.verdict)
    typer.echo("  " + typer.style(f"{claim.verdict:8}", fg=color) + claim.what)
    typer.echo(f"          paper: {claim.paper}; here: {claim.here} ({claim.criterion})")
    if claim.holds is False and claim.why:
        typer.echo(f"          {claim.why}")
