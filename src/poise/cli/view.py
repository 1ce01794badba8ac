"""`poise view`: the studio, in the browser."""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from poise.cli import options
from poise.studio import Studio
from poise.studio.message_filter import is_local

PORT = 8080


def view(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="RECORDING|CLIP",
            help="A recording (.npz), a motion file, or the name of a clip.",
            show_default=False,
        ),
    ] = None,
    character: options.CharacterName = None,
    controller: Annotated[
        str, options.option("Name of the controller; those of poise track.", "NAME")
    ] = "spd",
    beside: Annotated[
        Path | None, options.option("A recording to compare with.", "RECORDING")
    ] = None,
    out: Annotated[Path, options.option("Folder for what is saved.")] = Path("out/studio"),
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; the next free one if it is taken.")
    ] = PORT,
    host: Annotated[
        str, options.option("Address to bind to; others than this machine's may then come.")
    ] = "127.0.0.1",
    browser: Annotated[
        bool, options.option("Whether to open a browser.", name="--browser/--no-browser")
    ] = True,
) -> None:
    """Open the studio: see a character move, push it, tune it, record it.

    It runs until Ctrl-C. What is saved from the page goes to the output folder.

    \b
    Examples:
    poise view
    poise view walk --character humanoid
    poise view forward-kick --controller balance
    poise view take.bvh
    poise view out/recording.npz --beside out/other.npz
    """
    if not is_local(host):
        typer.secho(
            f"poise: {host} is open to others: whoever reaches it can drive the studio",
            fg="yellow",
            err=True,
        )
    choices: dict[str, Any] = {"controller": controller}
    if character is not None:
        choices["character"] = character
    with Studio(source, beside=beside, out=out, host=host, port=port, **choices) as studio:
        taken = f" (port {port} is taken)" if port and not studio.url.endswith(f":{port}") else ""
        typer.echo(f"poise studio: {studio.url}{taken}")
        typer.echo(f"files go to: {out}")
        typer.echo("Ctrl-C ends it.")
        if browser and _has_screen():
            webbrowser.open(studio.url)
        try:
            _wait()
        except KeyboardInterrupt:
            typer.echo("ended")


def _wait() -> None:
    """Until Ctrl-C."""
    while True:
        time.sleep(0.5)


def _has_screen() -> bool:
    """Whether a browser could open; on a terminal alone it would take the terminal over."""
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or bool(shown)
