"""Arguments and options that several commands have, and those that come from the controllers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from poise.control.options import OptionInfo, parse_option
from poise.control.registry import CONTROLLERS, find_controller
from poise.errors import PoiseError, unknown_name

ClipName = Annotated[
    str, typer.Argument(metavar="CLIP", help="The name of a clip (poise clips), or a file.")
]
CharacterName = Annotated[
    str | None,
    typer.Option(
        "--character",
        metavar="NAME|FILE",
        help="The character that follows it: poise characters, or a file.",
        show_default="the clip's own",
    ),
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
Cutoff = Annotated[
    str | None,
    typer.Option(
        "--cutoff",
        metavar="HZ|auto",
        help="Low-pass cutoff of the clip; 0 disables filtering.",
        show_default="auto for raw files",
    ),
]
Contact = Annotated[
    str | None,
    typer.Option(
        "--contact",
        metavar="impulse|penalty",
        help="The ground: rigid, with friction cones; or springs.",
        show_default="impulse",
    ),
]
Friction = Annotated[
    float | None,
    typer.Option(
        "--friction",
        metavar="NUMBER",
        help="Of feet and ground; 0.03 is slippery.",
        show_default="0.8",
    ),
]
Speed = Annotated[
    str,
    typer.Option(
        "--speed",
        metavar="fixed|adaptive",
        help="Adaptive: the clip waits while following it would cost the balance.",
    ),
]
Prepare = Annotated[
    bool,
    typer.Option(
        "--prepare/--no-prepare",
        help="For balance: level the feet, bring the center of mass over them.",
    ),
]
ControllerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the controller, as gamma=0.5; may be given again.",
    ),
]
Video = Annotated[bool, typer.Option("--video/--no-video", help="Make video.mp4.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the table as JSON.")]

SPEEDS = ("fixed", "adaptive")


def seconds(text: str) -> float:
    """A time step as people write it: 1/60, 0.01, 1e-3.

    Args:
        text: A number or a fraction [s].
    """
    try:
        return float(Fraction(text.replace(" ", "")))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise PoiseError(f"--dt is {text!r:.40}; it must be seconds, as 1/60 or 0.01") from None


# ---- options of the controllers


def parse_options(texts: Sequence[str], controllers: Sequence[str]) -> dict[str, Any]:
    """Values of `NAME=VALUE`; an unknown name lists the options that there are.

    Args:
        texts: As given.
        controllers: Names of controllers, one of which must have the option.
    """
    known: dict[str, OptionInfo] = {}
    for name in controllers:
        known |= find_controller(name).options.info()
    found = {}
    for text in texts:
        key, equals, value = (word.strip() for word in text.partition("="))
        key = key.replace("-", "_")
        if not equals:
            raise PoiseError(f"option {text!r:.60}: it must be NAME=VALUE, as gamma=0.5")
        if key not in known:
            what = f"option of controller {', '.join(map(repr, controllers))}"
            raise PoiseError(unknown_name(what, key, known, "options"))
        found[key] = parse_option(key, value, known[key])
    return found


def list_controllers() -> str:
    """The controllers and their own options, for the help."""
    shared = {"root", "frequency", "damping"}
    lines = []
    for name, entry in CONTROLLERS.items():
        paper = f" ({entry.paper})" if entry.paper else ""
        own = [key for key, info in entry.options.info().items() if info.kind != "object"]
        own = [key for key in own if key not in shared]
        lines.append(f"{name}  {entry.summary}{paper}")
        if own:
            lines.append(f"    options: {' '.join(own)}")
    return "\n".join(lines)


class ControllerCommand(TyperCommand):
    """A command whose help lists the controllers that there are when it is shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        for parameter in self.params:
            if parameter.name in ("controller", "controllers"):
                more = ", with commas" if parameter.name == "controllers" else ""
                parameter.help = f"Any of {', '.join(CONTROLLERS)}{more}."  # type: ignore[attr-defined]
        self.epilog = f"\b\nControllers:\n{list_controllers()}"
        super().format_help(ctx, formatter)


def with_controller_options(
    controller: str, but: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one option for each option of a controller.

    The command is called with `options`, the values of those that were given.

    Args:
        controller: Name of the controller.
        but: Options that the command has itself.
    """
    known = {
        name: info
        for name, info in find_controller(controller).options.info().items()
        if name not in but and info.kind != "object"
    }
    defaults = find_controller(controller).options.defaults()

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = {n: p for n, p in signature.parameters.items() if n != "options"}
        made = {
            name: inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None,
                annotation=_typer_option(name, info, defaults[name]),
            )
            for name, info in known.items()
        }  # fmt: skip

        def run(**given: Any) -> None:
            texts = {name: given.pop(name) for name in known}
            options = {
                name: parse_option(name, text, known[name])
                for name, text in texts.items()
                if text is not None
            }
            command(**given, options=options)

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.values()]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature([*parameters, *made.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {n: p.annotation for n, p in (own | made).items()}
        return run

    return decorate


def _typer_option(name: str, info: OptionInfo, default: Any) -> Any:
    return Annotated[
        str | None,
        typer.Option(
            f"--{name.replace('_', '-')}",
            metavar=info.metavar,
            help=info.help,
            show_default=_text(default),
            rich_help_panel="Options of the controller",
        ),
    ]


def _text(default: Any) -> str | bool:
    if default is None or default == {}:
        return False
    if isinstance(default, (tuple, list)):
        return ",".join(f"{x:g}" if isinstance(x, float) else str(x) for x in default)
    if isinstance(default, Mapping):
        return ",".join(f"{key}={value:g}" for key, value in default.items())
    return f"{default:g}" if isinstance(default, float) else str(default)
