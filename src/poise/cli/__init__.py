"""The command line: `poise`. Each command is a module of this package."""

from __future__ import annotations

from typing import Annotated

import typer

from poise import __version__
from poise.cli.balance import balance
from poise.cli.bench import bench
from poise.cli.characters import characters
from poise.cli.clips import clips
from poise.cli.commands import Commands
from poise.cli.compare import compare
from poise.cli.convert import convert
from poise.cli.doctor import doctor
from poise.cli.ending import end_tidily
from poise.cli.options import ControllerCommand
from poise.cli.reproduce import reproduce
from poise.cli.track import track
from poise.cli.view import view

__all__ = ["app", "main"]

app = typer.Typer(name="poise", cls=Commands, add_completion=False, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"poise {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the trace of an error; anywhere in the line.")
    ] = False,
) -> None:
    """Simulated characters that follow a motion and react to pushes.

    \b
    Examples:
    poise track walk --push chest:300N:left@1s+0.2s
    poise balance squat --push head:220N@1s
    poise view
    poise convert take.bvh take.glb

    \b
    Exit codes: 0 done; 1 it could not be done, or a check is bad;
    2 the command line is wrong; 130 stopped by Ctrl-C, 143 by SIGTERM.
    """


app.command(cls=ControllerCommand)(track)
app.command()(balance)
app.command()(view)
app.command(cls=ControllerCommand)(compare)
app.command()(reproduce)
app.add_typer(characters, name="characters")
app.add_typer(clips, name="clips")
app.command()(convert)
app.command()(bench)
app.command()(doctor)


def main() -> None:
    """Run the command line; the entry point `poise`."""
    end_tidily()
    app(prog_name="poise")
