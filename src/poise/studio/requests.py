"""What a page may ask of a session.

Each request is a frozen value. Nothing is checked when it is made; `checked` returns the same
request with every value checked, as `Session.ask` does before it accepts one: numbers are finite
and within bounds, texts are short and printable, choices are known. The types of the fields say
all of it. Names of links, clips and files are looked up by the session itself, in its own lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, inspect

from poise.control.gains import ROOTS
from poise.control.profiles import RECIPES
from poise.errors import LONGEST_NAME, PoiseError, shorten, unknown_name
from poise.simulation.pushes import DIRECTIONS

R = TypeVar("R", bound="Request")

GROUNDS = ("plane", "hills", "none")
"""Grounds of the studio."""

OBJECTS = ("box", "ball", "capsule")
"""Objects that can be added."""

KINDS = ("npz", "html", "bvh", "glb", "mp4", "gif", "png")
"""Endings of the files that can be saved."""

MAX_CHARACTERS = 20
MAX_OBJECTS = 16
MAX_GOALS = 8
MAX_PROFILES = 8
MAX_STEPS = 240

Text = Annotated[str, Meta(max_length=LONGEST_NAME)]
Index = Annotated[int, Meta(ge=0, le=100_000)]
Link: TypeAlias = Text | Index
Coordinate = Annotated[float, Meta(ge=-1000.0, le=1000.0)]
Point: TypeAlias = tuple[Coordinate, Coordinate, Coordinate]
Acceleration = Annotated[float, Meta(ge=-50.0, le=50.0)]

if TYPE_CHECKING:
    Root: TypeAlias = str
    Ground: TypeAlias = str
    Object: TypeAlias = str
    Kind: TypeAlias = str
    Direction: TypeAlias = str
    Profile: TypeAlias = str
else:
    Root, Ground = Literal[tuple(ROOTS)], Literal[GROUNDS]
    Object, Kind, Direction = Literal[OBJECTS], Literal[KINDS], Literal[tuple(DIRECTIONS)]
    Profile = Literal[tuple(RECIPES)]


class Request(msgspec.Struct, frozen=True):
    """Base of all requests."""

    def checked(self: R) -> R:
        """The same with plain, valid values; a PoiseError says which one is not valid."""
        values = {name: _plain(value) for name, value in msgspec.structs.asdict(self).items()}
        for name, value in values.items():
            if not all(text.isprintable() for text in _texts(value)):
                raise PoiseError(f"{type(self).__name__}.{name} is not printable: {_shown(value)}")
        try:
            return msgspec.convert(values, type(self))
        except (msgspec.ValidationError, OverflowError) as error:
            raise PoiseError(_explain(type(self), values)) from error


# ---- time


class Play(Request, frozen=True):
    """Go on, or pause. From an earlier frame it goes on from there, and what came later is gone."""

    on: bool = True


class Step(Request, frozen=True):
    """Pause, and go on by some steps of the world; of a recording, by frames, also backwards."""

    steps: Annotated[int, Meta(ge=-MAX_STEPS, le=MAX_STEPS)] = 1


class Scrub(Request, frozen=True):
    """Pause, and show a frame of the history, or of the recording; beyond its ends, the end."""

    frame: Annotated[int, Meta(ge=-1, le=2**31)]


class Restart(Request, frozen=True):
    """Back to the start of the clip; what was thrown, pushed and dragged is gone."""


class SetSpeed(Request, frozen=True):
    """Speed relative to real time: 1 is real time, below that slow motion."""

    factor: Annotated[float, Meta(ge=0.01, le=4.0)]


class SetLoop(Request, frozen=True):
    """Whether the clip, or the recording, starts again at its end."""

    on: bool


# ---- the scene


class Choose(Request, frozen=True):
    """Another character, clip, ...; what is None stays. It restarts the scene, but for dt.

    Args:
        character: One of `session.library.characters`.
        clip: One of `session.library.clips`, or "rest": the rest pose is held. A clip of another
            character is retargeted, which may take some seconds; the scene goes on meanwhile.
        count: Number of characters.
        controller: One of `poise.control.registry.CONTROLLERS`. "balance" prepares the clip, and
            sets a free root and steps of 1/120 s.
        root: How free roots are held: "free", "soft" or "held".
        dt: Time step [s].
        ground: "plane", "hills" or "none".
    """

    character: Text | None = None
    clip: Text | None = None
    count: Annotated[int, Meta(ge=1, le=MAX_CHARACTERS)] | None = None
    controller: Text | None = None
    root: Root | None = None
    dt: Annotated[float, Meta(ge=1e-4, le=0.05)] | None = None
    ground: Ground | None = None


class SetGravity(Request, frozen=True):
    """Gravity [m/s^2], from now on."""

    gravity: tuple[Acceleration, Acceleration, Acceleration]


class SetFriction(Request, frozen=True):
    """Friction of everything, from now on."""

    friction: Annotated[float, Meta(ge=0.0, le=5.0)]


class SetGains(Request, frozen=True):
    """Natural frequency [Hz] and damping ratio of the joints of a limb, or of all."""

    frequency: Annotated[float, Meta(ge=0.1, le=500.0)]
    damping: Annotated[float, Meta(ge=0.05, le=10.0)] = 1.0
    limb: Text | None = None


class SetStrength(Request, frozen=True):
    """Factor of gains and effort limits of a limb, or of all: 0 is limp."""

    strength: Annotated[float, Meta(ge=0.0, le=4.0)]
    limb: Text | None = None


class SetPin(Request, frozen=True):
    """Weight of the pins that hold the links of a limb, or all, to the reference: 0 is none."""

    pin: Annotated[float, Meta(ge=0.0, le=10.0)]
    limb: Text | None = None


class SetProfile(Request, frozen=True):
    """Let strength, or pins, change from now on by a named profile; None ends all profiles.

    Args:
        name: One of `poise.control.profiles.RECIPES`; None ends all.
        limb: Limb or link; None is what the profile is made for.
        hold: How long it stays, if it comes back [s].
    """

    name: Profile | None = None
    limb: Text | None = None
    hold: Annotated[float, Meta(ge=0.0, le=60.0)] = 1.0


# ---- options of the controller


class SetOption(Request, frozen=True):
    """Another value of an option of the controller, from now on.

    Args:
        name: One of the options of its entry in `poise.control.registry.CONTROLLERS`.
        value: As on the command line: "0.5", "track,linear"; "none" leaves it open.
    """

    name: Text
    value: Text


class SetAdaptive(Request, frozen=True):
    """Whether the clip slows down when following it would cost the balance."""

    on: bool = True


class SetGoal(Request, frozen=True):
    """A point that a link should reach while it balances; again, as it is dragged.

    Args:
        link: Name of a link, or of a limb: its outer end. "left_hand" is the end of an arm.
        to: Where to [m]; None is where it is now.
    """

    link: Text
    to: Point | None = None


class RemoveGoal(Request, frozen=True):
    """Remove the goal of a link, or all."""

    link: Text | None = None


# ---- edits


class AddObject(Request, frozen=True):
    """Put an object into the scene; all that is there stays as it is.

    Args:
        kind: "box", "ball" or "capsule".
        size: Its width, and the height of a box [m]; a capsule is twice as long.
        mass: [kg].
        position: Of its center [m]; None is in front of the character that is watched.
    """

    kind: Object
    size: Annotated[float, Meta(ge=0.05, le=2.0)] = 0.3
    mass: Annotated[float, Meta(ge=0.05, le=500.0)] = 5.0
    position: Point | None = None


class ClearObjects(Request, frozen=True):
    """Remove all objects and balls."""


class Throw(Request, frozen=True):
    """Throw a ball so that it hits a link.

    Args:
        link: Name or index; None is the chest, or the heaviest link.
        origin: From where [m]; None is from the side of the character.
        speed: [m/s].
    """

    link: Link | None = None
    origin: Point | None = None
    speed: Annotated[float, Meta(ge=0.5, le=40.0)] = 8.0


class Push(Request, frozen=True):
    """Push a link.

    Args:
        link: A name, of the first character if it names none, or the index in the scene.
        force: [N].
        direction: One of `poise.simulation.pushes.DIRECTIONS`, or a world vector of any length.
        duration: [s].
        at: Where, in the world [m]; None is the link's center of mass.
    """

    link: Link
    force: Annotated[float, Meta(ge=0.0, le=20_000.0)] = 200.0
    direction: Direction | Point = "forward"
    duration: Annotated[float, Meta(ge=1e-3, le=10.0)] = 0.1
    at: Point | None = None


class Drag(Request, frozen=True):
    """Drag a link by a spring, from now on until `Release`; again, as the mouse moves.

    Args:
        link: A name, or the index in the scene.
        to: Where to [m].
        point: By which point, in the link's frame [m]; None is its center of mass.
    """

    link: Link
    to: Point
    point: Point | None = None


class Release(Request, frozen=True):
    """Release a link, or all."""

    link: Link | None = None


# ---- views, recordings, files


class Watch(Request, frozen=True):
    """The character whose trail and curves are shown."""

    character: Annotated[int, Meta(ge=0, le=MAX_CHARACTERS - 1)]


class Record(Request, frozen=True):
    """Begin a take, or end it. The last take is kept until the next begins."""

    on: bool = True


class Save(Request, frozen=True):
    """Save files into the output folder: of the take, else of the history, or of what is open.

    Args:
        kinds: Endings, some of KINDS.
        name: Name of the files; other characters than letters, digits, "-", "_" and "." become "-".
            A name that is taken gets a number. Empty is the clip's.
        token: Comes back in the jobs that save, so that a page recognizes its own.
    """

    kinds: Annotated[tuple[Kind, ...], Meta(min_length=1, max_length=len(KINDS))] = ("npz",)
    name: Text = ""
    token: Text = ""


class Open(Request, frozen=True):
    """Show a recording of the output folder instead of the simulation."""

    name: Text


class Compare(Request, frozen=True):
    """Show a recording of the output folder beside what is shown; None removes it."""

    name: Text | None = None


class Live(Request, frozen=True):
    """Back from a recording to the simulation."""


# ---- messages


def _plain(value: Any) -> Any:
    """A value without NumPy's types, also in a list."""
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _shown(value: object) -> str:
    """A value for a message, one short line; numbers of thousands of digits cannot be written."""
    try:
        return " ".join(f"{value!r:.80}".split())
    except Exception:
        return f"a {type(value).__name__} that cannot be written"


def _explain(kind: type[Request], values: dict[str, Any]) -> str:
    """Which value is not valid, and what is."""
    for field in msgspec.structs.fields(kind):
        value = values[field.name]
        try:
            msgspec.convert(value, field.type)
        except (msgspec.ValidationError, OverflowError):
            where, allowed = f"{kind.__name__}.{field.name}", inspect.type_info(field.type)
            for names in _choices(allowed):
                unknown = [x for x in _texts(value) if x not in names]
                if unknown:
                    return f"{where}: {unknown_name(field.name.rstrip('s'), unknown[0], names)}"
            return f"{where} is {_shown(value)}; it must be {_describe(allowed)}"
    return f"{kind.__name__} is not valid"


def _texts(value: Any) -> list[str]:
    """The texts in a value, but for those that are too long."""
    found = value if isinstance(value, (list, tuple)) else (value,)
    return [x for x in found if isinstance(x, str) and len(x) <= LONGEST_NAME]


def _choices(allowed: inspect.Type) -> list[list[str]]:
    """Names among which a value of a type is chosen."""
    match allowed:
        case inspect.LiteralType():
            return [[str(name) for name in allowed.values]]
        case inspect.UnionType():
            return [names for one in allowed.types for names in _choices(one)]
        case inspect.VarTupleType():
            return _choices(allowed.item_type)
    return []


def _describe(allowed: inspect.Type) -> str:
    """The values of a type, in words."""
    match allowed:
        case inspect.BoolType():
            return "True or False"
        case inspect.IntType():
            return f"a whole number, {allowed.ge} to {allowed.le}"
        case inspect.FloatType():
            return f"{allowed.ge:g} to {allowed.le:g}"
        case inspect.StrType():
            return f"a printable text of at most {allowed.max_length} letters"
        case inspect.LiteralType():
            return f"one of {shorten(_choices(allowed)[0])}"
        case inspect.TupleType():
            return f"three numbers, {_describe(allowed.item_types[0])}"
        case inspect.VarTupleType():
            return f"some of {shorten(_choices(allowed)[0])}"
        case inspect.UnionType():
            some = (one for one in allowed.types if not isinstance(one, inspect.NoneType))
            return ", or ".join(map(_describe, some))
    raise TypeError(f"{allowed!r:.80} has no description")
