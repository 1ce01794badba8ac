"""`poise reproduce`: the tables and figures of a work, brought back, with a verdict each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    work: Annotated[
        str, typer.Argument(metavar="WORK", help="yin2020, macchietto2008 or kavafoglu2018.")
    ],
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[ITEM]...", help="Which, as K4; all if none.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where it goes.", show_default="out/reproduce/WORK"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
) -> None:
    """Run the experiments of a work: paper, here, verdict; a report as HTML and JSON.

    \b
    Examples:
    poise reproduce kavafoglu2018
    poise reproduce yin2020 Y4 Y5 --out out/speed
    """
    from poise.cli.progress import bars
    from poise.experiments import reproduce as run

    with bars() as shown:
        tellers = {}

        def tell(key: str, share: float) -> None:
            if key not in tellers:
                tellers[key] = shown.bar(key)
            tellers[key](share)

        made, paths = run(work, [item.upper() for item in items or []], out=out, progress=tell)
    if as_json:
        claims = [
            {"item": item.key, **claim.__dict__, "verdict": claim.verdict}
            for item in made
            for claim in item.claims
        ]
        typer.echo(json.dumps(claims, indent=1))
        return
    for item in made:
        typer.secho(f"{item.key}  {item.title}", bold=True)
        for claim in item.claims:
            color = {"holds": typer.colors.GREEN, "differs": typer.colors.RED}.get(claim.verdict)
            typer.echo("  " + typer.style(f"{claim.verdict:8}", fg=color) + claim.what)
            typer.echo(f"          paper: {claim.paper}; here: {claim.here} ({claim.criterion})")
    typer.echo(str(paths["html"]))
    typer.echo(str(paths["json"]))
