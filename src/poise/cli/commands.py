"""What all commands share: one line for an error, exit codes, `--debug` anywhere, quiet pipes.

0    done
1    it could not be done, or what was checked is bad
2    the command line itself is wrong
130  stopped by Ctrl-C
141  whoever read the output stopped reading
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from poise.errors import PoiseError, unknown_name

FAILED, MISUSED, STOPPED, UNREAD = 1, 2, 130, 141

FIRST = ("track", "balance", "view")
"""Commands that the help lists before the others."""


class Commands(TyperGroup):
    """The group of all commands; what goes wrong is one line, and a trace only on `--debug`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, in the order of the help."""
        return sorted(self.commands, key=lambda name: (name not in FIRST, name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name; a wrong one is told what there is."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(unknown_name("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `--debug` from any place before a `--`; no arguments at all ask for help."""
        end = args.index("--") if "--" in args else len(args)
        rest = [arg for arg in args[:end] if arg != "--debug"]
        debug = ["--debug"] if len(rest) < end else []
        return super().parse_args(ctx, [*debug, *rest, *args[end:]] or ["--help"])

    def invoke(self, ctx: Any) -> Any:  # typer's Context, whose home moves between versions
        """Run a command; an error of ours, or one that nobody foresaw, is told in a line."""
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
            # wrong usage is told by `main`, which knows how to word it
            if ctx.params["debug"] or _is_usage(error):
                raise
            raise _end(describe(error), FAILED) from error

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; unless `standalone_mode` is off this ends the program."""

        def run() -> Any:
            return super(Commands, self).main(
                args, prog_name, complete_var, False, windows_expand_args, **extra
            )

        if not standalone_mode:
            return run()
        sys.exit(exit_code(run))


def exit_code(run: Callable[[], Any]) -> int:
    """Run a command line to its end and return its exit code."""
    try:
        code = run()
        return _flushed(code if isinstance(code, int) else 0)
    except BrokenPipeError:
        _close_output()
        return UNREAD
    except typer.Abort:
        say("stopped")
        return STOPPED
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            _close_output()
            say(f"the output cannot be written: {describe(error)}")
            return FAILED
        if not _is_usage(error):
            raise  # --debug asked for it
        say_usage(error)
        return MISUSED


def describe(error: Exception) -> str:
    """What to say of an error in one line."""
    if isinstance(error, PoiseError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error} (unforeseen; --debug shows the trace)"


def say(text: str, name: str = "poise") -> None:
    """Print one line on stderr, red in a terminal."""
    typer.secho(f"{name}: {' '.join(text.split())}", fg="red", err=True)


def say_usage(error: Any) -> None:
    """Say in one line what is wrong with the command line, and where the help is."""
    name = error.ctx.command_path if getattr(error, "ctx", None) else "poise"
    say(f"{error.format_message().rstrip('.')} (help: {name} --help)", name)


def _end(text: str, code: int) -> typer.Exit:
    say(text)
    return typer.Exit(code)


def _is_usage(error: Exception) -> bool:
    # the class of these errors moves between versions of typer; what they offer does not
    return hasattr(error, "format_message") and hasattr(error, "ctx")


def _flushed(code: int) -> int:
    """Write out what is still buffered, here, where it can still be said what went wrong."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _close_output()
        if not code:  # else the reason was given before
            say(f"the output cannot be written: {error.strerror or error}")
        return code or FAILED
    return code


def _close_output() -> None:
    """Let what is still buffered go nowhere, or Python would complain when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
