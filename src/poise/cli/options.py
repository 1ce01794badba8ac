"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

ClipName = Annotated[
    str, typer.Argument(metavar="CLIP", help="The name of a clip (poise clips), or a file.")
]
Pushes = Annotated[
    list[str] | None,
    typer.Option(
        "--push", metavar="PUSH", help="LINK:FORCE[:DIRECTION]@TIME[+DURATION]; may be given again."
    ),
]
Profiles = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="PROFILE",
        help="Strength that changes: NAME[:LIMB][@TIME[+DURATION]]; may be given again.",
    ),
]
Duration = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="How long.", show_default="as long as the clip"),
]
Ground = Annotated[
    bool | None,
    typer.Option(
        "--ground/--no-ground",
        help="Whether there is a ground.",
        show_default="yes, if the root is free",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the table as JSON.")]
