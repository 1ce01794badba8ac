"""The application: its commands, errors in one line, exit codes, `--debug` anywhere, signals.

0    done
1    it failed, or a check failed
2    the command line is wrong
130  interrupted by Ctrl-C
141  the output pipe was closed
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from poise import __version__
from poise.cli.options import list_controllers
from poise.errors import PoiseError, unknown_name

FAILED, MISUSED, STOPPED, UNREAD = 1, 2, 130, 141

COMMANDS = {
    "track": "Let a character follow a clip in a physical world, and push it.",
    "balance": "Let a character follow a clip on its own feet, and push it.",
    "view": "Open the studio: see a character move, push it, tune it, record it.",
    "bench": "Measure how fast characters are simulated here: one, and a batch in both precisions.",
    "characters": "List the built-in characters; `show` prints one, or one from a file, in full.",
    "clips": "List the built-in clips; `show` draws one, `check` says what is unphysical in it.",
    "compare": "Compare controllers on one clip: error, torque, energy, cost, largest stable step.",
    "convert": "Convert a motion, or a character, from one file to another.",
    "doctor": "Print what is installed here, and try it out; the exit code is 1 if anything fails.",
    "reproduce": "Run the experiments of a work: paper, here, verdict; a report as HTML and JSON.",
}
"""Commands and their help in one line, in the order of the help. The module `poise.cli.NAME` of a
command is imported when the command is used."""

USE_CONTROLLERS = ("track", "compare")
"""Commands whose help lists the controllers."""

SOON = 0.02
"""A lost request to stop is raised again after this time [s]."""


class Commands(TyperGroup):
    """The group of all commands; errors are one line, with a traceback only on `--debug`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        """Name and help of a command, without its options; None if there is none."""
        return TyperCommand(name, help=COMMANDS[name]) if name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Imports the command that is named; the error of an unknown one lists all."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(unknown_name("command", args[0], COMMANDS))
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(str(name)), rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accepts `--debug` anywhere before a `--`; without arguments prints the help."""
        end = args.index("--") if "--" in args else len(args)
        rest = [arg for arg in args[:end] if arg != "--debug"]
        debug = ["--debug"] if len(rest) < end else []
        return super().parse_args(ctx, [*debug, *rest, *args[end:]] or ["--help"])

    def invoke(self, ctx: Any) -> Any:  # typer's Context, whose home moves between versions
        """Runs a command; an error, foreseen or not, is printed in one line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _end("stopped", STOPPED) from None
        except BrokenPipeError:
            _close_output()
            raise typer.Exit(UNREAD) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            # usage errors are printed by `exit_code`
            if ctx.params["debug"] or _is_usage(error):
                raise
            raise _end(describe(error), FAILED) from error

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Runs the command line; unless `standalone_mode` is off this ends the program."""
        run = partial(super().main, *args, standalone_mode=False, **options)  # type: ignore[misc]
        return sys.exit(exit_code(run)) if standalone_mode else run()


def load_command(name: str) -> Any:
    """Imports the module of a command; returns the command with its options.

    Args:
        name: One of COMMANDS.
    """
    found = getattr(import_module(f"poise.cli.{name}"), name)
    if isinstance(found, typer.Typer):
        return get_command(found)
    made = typer.Typer(add_completion=False)
    epilog = f"\b\nControllers:\n{list_controllers()}" if name in USE_CONTROLLERS else None
    made.command(name, epilog=epilog)(found)
    return get_command(made)


def exit_code(run: Callable[[], Any]) -> int:
    """Runs a command line to its end and returns its exit code."""
    try:
        code = run()
        return _flush(code if isinstance(code, int) else 0)
    except BrokenPipeError:
        _close_output()
        return UNREAD
    except typer.Abort:
        print_error("stopped")
        return STOPPED
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            _close_output()
            print_error(f"the output cannot be written: {describe(error)}")
            return FAILED
        if not _is_usage(error):
            raise  # as --debug requests
        print_usage_error(error)
        return MISUSED


def describe(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, PoiseError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error} (unforeseen; --debug shows the trace)"


def print_error(text: str, name: str = "poise") -> None:
    """Prints one line to stderr, red in a terminal."""
    typer.secho(f"{name}: {' '.join(text.split())}", fg="red", err=True)


def print_usage_error(error: Any) -> None:
    """Prints in one line what is wrong with the command line, and where the help is."""
    name = error.ctx.command_path if getattr(error, "ctx", None) else "poise"
    print_error(f"{error.format_message().rstrip('.')} (help: {name} --help)", name)


def _end(text: str, code: int) -> typer.Exit:
    print_error(text)
    return typer.Exit(code)


def _is_usage(error: Exception) -> bool:
    # the class of these errors differs between versions of typer; its attributes do not
    return hasattr(error, "format_message") and hasattr(error, "ctx")


def _flush(code: int) -> int:
    """Flushes the output while an error can still be reported."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _close_output()
        if not code:  # else the reason was given before
            print_error(f"the output cannot be written: {error.strerror or error}")
        return code or FAILED
    return code


def _close_output() -> None:
    """Discards buffered output, which Python would otherwise report at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ---- signals


def handle_signals() -> None:
    """Cleans up on SIGTERM and SIGHUP, as on Ctrl-C.

    The exit code is that of shells, 128 plus the signal's number. Ignored signals stay ignored.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)
    if hasattr(signal, "setitimer"):
        sys.unraisablehook = _raise_again


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _raise_again(what: Any) -> None:
    """Raises a request to stop again: Python drops exceptions during garbage collection."""
    request = what.exc_value
    if not isinstance(request, (KeyboardInterrupt, SystemExit)):
        sys.__unraisablehook__(what)
        return

    def again(number: int, frame: FrameType | None) -> NoReturn:
        raise request

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, SOON)


# ---- the application

app = typer.Typer(name="poise", cls=Commands, add_completion=False, pretty_exceptions_enable=False)


def _print_version(requested: bool) -> None:
    if requested:
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


def main() -> None:
    """Runs the command line; the entry point `poise`."""
    handle_signals()
    app(prog_name="poise")
