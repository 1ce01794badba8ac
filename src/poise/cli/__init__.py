"""The command line: `poise`. Each command is a module of this package."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from poise.cli.characters import characters
from poise.cli.clips import clips
from poise.cli.convert import convert
from poise.cli.doctor import doctor
from poise.errors import PoiseError

__all__ = ["app", "main"]


class Commands(TyperGroup):
    """The group of commands; an error of ours is one line, and a trace only on `--debug`."""

    def invoke(self, ctx: Any) -> Any:  # typer's Context, whose home moves between versions
        try:
            return super().invoke(ctx)
        except PoiseError as error:
            if ctx.params["debug"]:
                raise
            line = f"poise: {' '.join(str(error).split())}"
            Console(stderr=True, soft_wrap=True).print(line, style="red", markup=False)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"poise {version('poise')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,
) -> None:
    """Simulated characters that follow a motion, keep their balance and react to pushes."""


app.add_typer(characters, name="characters")
app.add_typer(clips, name="clips")
app.command()(convert)
app.command()(doctor)


def main() -> None:
    """Run the command line; the entry point `poise`."""
    app()
