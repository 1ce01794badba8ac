"""Command lines of `poise` that stand in help and documents, checked without running them."""

from __future__ import annotations

import shlex
from typing import Any

from typer.main import get_command

from poise.cli import app
from poise.cli.app import COMMANDS, load_command


def commands() -> dict[str, Any]:
    """All commands and groups by what one types: "poise", "poise clips", "poise clips check"."""
    found: dict[str, Any] = {"poise": get_command(app)}
    for name in COMMANDS:
        found[f"poise {name}"] = load_command(name)
        found.update(_below(f"poise {name}", found[f"poise {name}"]))
    return found


def _below(path: str, group: Any) -> Any:
    for name, command in getattr(group, "commands", {}).items():
        yield f"{path} {name}", command
        yield from _below(f"{path} {name}", command)


def check_line(line: str, *, whole: bool = True) -> None:
    """Raise what the command line itself would, were this typed: unknown options, bad values.

    Args:
        line: What would be typed.
        whole: Whether arguments that are missing are wrong, too.
    """
    words = shlex.split(line, comments=True)
    for sign in (">", "|", "||", "&&"):
        words = words[: words.index(sign)] if sign in words else words
    known = commands()
    assert words[0] == "poise", line
    path, rest = "poise", words[1:]
    while rest and f"{path} {rest[0]}" in known:
        path, rest = f"{path} {rest[0]}", rest[1:]
    assert path != "poise" or set(rest) <= {"--help", "--version"}, f"no such command: {line}"
    if {"--help", "--version"} & set(rest):
        return
    try:
        known[path].make_context(path, [word for word in rest if word != "--debug"])
    except Exception as error:
        if whole or type(error).__name__ != "MissingParameter":
            raise
