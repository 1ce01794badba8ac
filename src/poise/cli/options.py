"""What the commands share: arguments and options, options of the controllers, progress bars."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.control.options import OptionInfo, parse_option
from poise.control.registry import CONTROLLERS, find_controller
from poise.errors import PoiseError, check_known
from poise.math.arrays import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


def option(
    help: str, metavar: str | None = None, default: str | bool = True, name: str = ""
) -> Any:
    """An option of a command.

    Args:
        help: What it is, a sentence.
        metavar: What to write for it.
        default: Its default in words; True shows the value itself.
        name: As typed, "--dt"; that of the parameter unless given.
    """
    names = [name] if name else []
    return typer.Option(*names, metavar=metavar, help=help, show_default=default)


# ---- a clip, the character that follows it, and the world

ClipName = Annotated[
    str, typer.Argument(metavar="CLIP", help="The name of a clip (poise clips), or a file.")
]
CharacterName = Annotated[
    str | None,
    option(
        "The character that follows it: poise characters, or a file.",
        "NAME|FILE",
        "the clip's own",
    ),
]
ControllerOption = Annotated[
    list[str] | None,
    option("An option of the controller, as gamma=0.5; may be given again.", "NAME=VALUE"),
]
Step = Annotated[
    str | None, option("Time step.", "SECONDS", "1/60; balance 1/120, with penalty 1/1000")
]
Pushes = Annotated[
    list[str] | None, option("A force on a link, as above; may be given again.", "PUSH")
]
Goals = Annotated[
    list[str] | None,
    option(
        "For balance: a point that a link or limb should reach, LINK:X,Y,Z; may be given again.",
        "GOAL",
    ),
]
Profiles = Annotated[
    list[str] | None, option("Strength over time, as above; may be given again.", "PROFILE")
]
Duration = Annotated[float | None, option("How long.", "SECONDS", "as long as the clip")]
Ground = Annotated[
    bool | None,
    option(
        "Whether there is a ground.",
        default="yes, if the root is free",
        name="--ground/--no-ground",
    ),
]
Cutoff = Annotated[
    str | None,
    option("Low-pass cutoff of the clip; 0 disables filtering.", "HZ|auto", "auto for raw files"),
]
Contact = Annotated[
    str | None,
    option("The ground: rigid, with friction cones; or springs.", "impulse|penalty", "impulse"),
]
Friction = Annotated[float | None, option("Of feet and ground; 0.03 is slippery.", "NUMBER", "0.8")]
Speed = Annotated[
    str,
    option("Adaptive: the clip waits while following it would cost the balance.", "fixed|adaptive"),
]
Prepare = Annotated[
    bool,
    option(
        "For balance: level the feet, bring the center of mass over them.",
        name="--prepare/--no-prepare",
    ),
]

# ---- files and output

Source = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A built-in name or a file.")]
Like = Annotated[Path | None, option("A motion file on whose rig the result is written.", "FILE")]
Video = Annotated[bool, option("Make video.mp4.", name="--video/--no-video")]
AsJson = Annotated[bool, option("Print JSON instead of text.", name="--json")]


def print_json(value: Any) -> None:
    """Prints a value as JSON, for scripts."""
    typer.echo(json.dumps(value, indent=1))


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

GOAL_FORM = "LINK:X,Y,Z, as in left_hand:0.4,0.2,1.3"

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GOAL = re.compile(rf"(.+): ?({_NUMBER}), ?({_NUMBER}), ?({_NUMBER})")


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
        what = f"option of controller {', '.join(map(repr, controllers))}"
        check_known(what, key, known, "options")
        found[key] = parse_option(key, value, known[key])
    return found


def parse_goals(texts: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """Goals by link or limb, from `LINK:X,Y,Z` in world axes [m]."""
    goals: dict[str, tuple[float, float, float]] = {}
    for text in texts:
        found = _GOAL.fullmatch(text.strip())
        if found is None:
            raise PoiseError(f"goal {text!r:.80}: it must be {GOAL_FORM}")
        name = found[1].strip()
        if name in goals:
            raise PoiseError(f"goal {name!r} is given twice; it is one link, which takes one")
        goals[name] = (float(found[2]), float(found[3]), float(found[4]))
    return goals


def list_controllers() -> str:
    """The controllers and their own options, for the help."""
    shared = {"root", "frequency", "damping"}
    lines = []
    for name, entry in CONTROLLERS.items():
        paper = f" ({entry.paper})" if entry.paper else ""
        lines.append(f"{name}  {entry.summary}{paper}")
        own = [key for key, info in entry.options.info().items() if info.kind != "object"]
        own = [key for key in own if key not in shared]
        if own:
            lines.append(f"    options: {' '.join(own)}")
    return "\n".join(lines)


def with_controller_options(
    controller: str, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command one option for each option of a controller.

    The command is called with `option`, those that were given as `NAME=VALUE`.

    Args:
        controller: Name of the controller.
        without: Options that the command has itself.
    """
    options = find_controller(controller).options
    defaults = options.defaults()
    added = {
        name: inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None,
            annotation=_typer_option(name, info, defaults[name]),
        )
        for name, info in options.info().items()
        if name not in without and info.kind != "object"
    }  # fmt: skip

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own["option"]

        def run(**given: Any) -> None:
            texts = {name: given.pop(name) for name in added}
            command(
                **given, option=[f"{n}={text}" for n, text in texts.items() if text is not None]
            )

        parameters = own | added
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters.values()]
        )
        run.__annotations__ = {name: one.annotation for name, one in parameters.items()}
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


# ---- progress bars: on stderr, and only in a terminal


class Bars:
    """Several progress bars, one below the other."""

    def __init__(self, progress: RichProgress) -> None:
        self._progress = progress
        self._named: dict[str, Progress] = {}

    def bar(self, what: str) -> Progress:
        """A bar that shows from the first report on; at 1 it is done.

        Args:
            what: The words beside it.
        """
        task = self._progress.add_task(what, total=1.0, visible=False)
        return lambda done: self._progress.update(task, completed=done, visible=True)

    def report(self, what: str, done: float) -> None:
        """Updates a bar by its name, which is made at its first report.

        Args:
            what: The words beside it.
            done: The completed fraction, 0 to 1.
        """
        if what not in self._named:
            self._named[what] = self.bar(what)
        self._named[what](done)


@contextmanager
def bars() -> Iterator[Bars]:
    """Progress bars as long as the block runs."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        yield Bars(progress)


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """One progress bar as long as the block runs.

    Args:
        what: The words beside it.
    """
    with bars() as shown:
        yield shown.bar(what)
