"""A directive for Sphinx: what a command's `--help` says, from the command itself.

```{command-help} poise clips check
```
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from typer.main import get_command

from poise.cli import app
from poise.cli.app import load_command


class CommandHelp(Directive):
    """Usage, description, examples and options of one command."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The nodes that stand for the directive."""
        path = str(self.arguments[0])
        command = find(path)
        return [_literal(usage(path, command)), *_described(command.help), _options(command)]


def find(path: str) -> Any:
    """The command that one types so: "poise clips check"."""
    _, *names = path.split()
    command: Any = load_command(names[0]) if names else get_command(app)
    for name in names[1:]:
        command = command.commands[name]
    return command


def usage(path: str, command: Any) -> str:
    """The line that shows what goes where."""
    arguments = [p.metavar or p.name.upper() for p in command.params if p.opts[0][:1] != "-"]
    rest = ["COMMAND ..."] if getattr(command, "commands", None) else []
    return " ".join([path, *arguments, "[OPTIONS]", *rest])


def _described(text: str) -> list[nodes.Node]:
    """Paragraphs of a docstring; those whose lines are kept become literal."""
    found: list[nodes.Node] = []
    for block in text.split("\n\n"):
        kept = block.startswith("\b\n")
        lines = block.removeprefix("\b\n").strip("\n")
        if lines.startswith("Examples:\n"):
            found += [nodes.paragraph("", "Examples:"), _literal(lines.split("\n", 1)[1], "sh")]
        elif kept:
            found.append(_literal(lines))
        else:
            found.append(nodes.paragraph("", " ".join(lines.replace("`", "").split())))
    return found


def _options(command: Any) -> nodes.Node:
    """A definition list of arguments and options."""
    listed = nodes.definition_list()
    for parameter in command.params:
        if parameter.name == "help":
            continue
        term = nodes.term("", "", nodes.literal("", _names(parameter)))
        words = " ".join(parameter.help.split())
        about = nodes.definition("", nodes.paragraph("", words + _default(parameter)))
        listed += nodes.definition_list_item("", term, about)
    return listed


def _names(parameter: Any) -> str:
    """How an option is typed: its names, and what follows them."""
    if not parameter.opts[0].startswith("-"):
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    kind = getattr(getattr(parameter, "type", None), "name", "")
    return f"{names} {parameter.metavar or kind.upper() or 'VALUE'}"


def _default(parameter: Any) -> str:
    """What holds unless it is given, in brackets."""
    if isinstance(getattr(parameter, "show_default", None), str):
        return f" [{parameter.show_default}]"
    plain = isinstance(parameter.default, (str, int, float)) and parameter.default is not False
    if not plain or parameter.required:
        return ""
    shown = (
        f"{parameter.default:.4g}" if isinstance(parameter.default, float) else parameter.default
    )
    return f" [{'on' if shown is True else shown}]"


def _literal(text: str, language: str = "text") -> nodes.Node:
    return nodes.literal_block(text, text, language=language)


def setup(sphinx: Any) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    sphinx.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
