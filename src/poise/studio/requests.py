"""What a page may ask of a session.

Each request is a frozen value. Nothing is checked when it is made; `checked` gives the same request
with every value looked at, as `Session.ask` does before it lets one in: numbers are finite and
within bounds, texts are short and printable, choices are known. Names of links, clips and files are
looked up by the session itself, in lists of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar, get_type_hints

from poise.control.balance.config import OBJECTIVES
from poise.control.gains import ROOTS
from poise.control.profiles import RECIPES
from poise.simulation.pushes import DIRECTIONS
from poise.studio import limits
from poise.studio.checks import (
    Check,
    either,
    flag,
    maybe,
    one_of,
    real,
    several,
    text,
    vector,
    whole,
)

Vector = Sequence[float]
R = TypeVar("R", bound="Request")

GROUNDS = ("plane", "hills", "none")
"""Grounds of the studio."""

OBJECTS = ("box", "ball", "capsule")
"""Objects that can be added."""

KINDS = ("npz", "html", "bvh", "glb", "mp4", "gif", "png")
"""Endings of the files that can be saved."""

LINK = either(whole(0, limits.MOST_LINKS), text, str)
PLACE = vector(limits.FARTHEST)
WAY = either(PLACE, one_of("direction", tuple(DIRECTIONS)), str)


_CHECKS: dict[type[Request], dict[str, Check]] = {}
"""The check of each value, by the kind of request."""


@dataclass(frozen=True)
class Request:
    """Base of all requests."""

    def checked(self: R) -> R:
        """The same with plain, good values; a PoiseError says which one is not."""
        kind = type(self)
        if kind not in _CHECKS:
            hints = get_type_hints(kind, include_extras=True)
            _CHECKS[kind] = {name: hint.__metadata__[0] for name, hint in hints.items()}
        values = {
            name: check(f"{kind.__name__}.{name}", getattr(self, name))
            for name, check in _CHECKS[kind].items()
        }
        return kind(**values)


# ---- time


@dataclass(frozen=True)
class Play(Request):
    """Go on, or pause. From an earlier frame it goes on from there, and what came later is gone."""

    on: Annotated[bool, flag] = True


@dataclass(frozen=True)
class Step(Request):
    """Pause, and go on by some steps of the world; of a recording, by frames, also backwards."""

    steps: Annotated[int, whole(-limits.MOST_STEPS, limits.MOST_STEPS)] = 1


@dataclass(frozen=True)
class Scrub(Request):
    """Pause, and show a frame of the history, or of the recording; beyond its ends, the end."""

    frame: Annotated[int, whole(-1, 2**31)]


@dataclass(frozen=True)
class Restart(Request):
    """Back to the start of the clip; what was thrown, pushed and dragged is gone."""


@dataclass(frozen=True)
class SetSpeed(Request):
    """Pace against real time: 1 is real time, below that slow motion."""

    factor: Annotated[float, real(limits.SLOWEST, limits.FASTEST)]


@dataclass(frozen=True)
class SetLoop(Request):
    """Whether the clip, or the recording, starts again at its end."""

    on: Annotated[bool, flag]


# ---- the scene


@dataclass(frozen=True)
class Choose(Request):
    """Another character, clip, ...; what is None stays. It restarts the scene, but for dt.

    Args:
        character: One of `session.characters`.
        clip: One of `session.clips`, or "rest": the rest pose is held. A clip of another character
            is retargeted, which may take some seconds; the scene goes on meanwhile.
        count: How many characters.
        controller: One of `session.controllers`. "balance" makes the clip ready, and brings a free
            root and steps of 1/120 s along.
        root: How free roots are held: "free", "soft" or "held".
        dt: Time step [s].
        ground: "plane", "hills" or "none".
    """

    character: Annotated[str | None, maybe(text)] = None
    clip: Annotated[str | None, maybe(text)] = None
    count: Annotated[int | None, maybe(whole(1, limits.MOST_CHARACTERS))] = None
    controller: Annotated[str | None, maybe(text)] = None
    root: Annotated[str | None, maybe(one_of("root", ROOTS))] = None
    dt: Annotated[float | None, maybe(real(limits.SHORTEST_STEP, limits.LONGEST_STEP))] = None
    ground: Annotated[str | None, maybe(one_of("ground", GROUNDS))] = None


@dataclass(frozen=True)
class SetGravity(Request):
    """Gravity [m/s^2], from now on."""

    gravity: Annotated[Vector, vector(limits.MOST_GRAVITY)]


@dataclass(frozen=True)
class SetFriction(Request):
    """Friction of everything, from now on."""

    friction: Annotated[float, real(0.0, limits.MOST_FRICTION)]


@dataclass(frozen=True)
class SetGains(Request):
    """How stiffly joints follow: natural frequency [Hz] and damping ratio, of a limb or of all."""

    frequency: Annotated[float, real(limits.LOWEST_FREQUENCY, limits.HIGHEST_FREQUENCY)]
    damping: Annotated[float, real(limits.LEAST_DAMPING, limits.MOST_DAMPING)] = 1.0
    limb: Annotated[str | None, maybe(text)] = None


@dataclass(frozen=True)
class SetStrength(Request):
    """Factor of gains and effort limits of a limb, or of all: 0 is limp."""

    value: Annotated[float, real(0.0, limits.MOST_STRENGTH)]
    limb: Annotated[str | None, maybe(text)] = None


@dataclass(frozen=True)
class SetPin(Request):
    """Weight of the pins that hold the links of a limb, or all, to the reference: 0 is none."""

    value: Annotated[float, real(0.0, limits.MOST_PIN)]
    limb: Annotated[str | None, maybe(text)] = None


@dataclass(frozen=True)
class SetProfile(Request):
    """Let strength, or pins, change from now on as a profile by name says; none is as before.

    Args:
        name: One of `poise.control.profiles.RECIPES`; None ends all.
        limb: Limb or link; None is what the profile is made for.
        hold: How long it stays, if it comes back [s].
    """

    name: Annotated[str | None, maybe(one_of("profile", tuple(RECIPES)))] = None
    limb: Annotated[str | None, maybe(text)] = None
    hold: Annotated[float, real(0.0, limits.LONGEST_HOLD)] = 1.0


# ---- balance


@dataclass(frozen=True)
class SetObjective(Request):
    """Switch an objective of the balance on or off: "track", "linear" or "angular"."""

    name: Annotated[str, one_of("objective", OBJECTIVES)]
    on: Annotated[bool, flag] = True


@dataclass(frozen=True)
class SetAdaptive(Request):
    """Whether the clip waits when following it would cost the balance."""

    on: Annotated[bool, flag] = True


@dataclass(frozen=True)
class SetGoal(Request):
    """A point that a link should reach while it balances; again, as it is dragged.

    Args:
        link: Name of a link, or of a limb: its outer end. "left_hand" is the end of an arm.
        to: Where to [m]; None is where it is now.
    """

    link: Annotated[str, text]
    to: Annotated[Vector | None, maybe(PLACE)] = None


@dataclass(frozen=True)
class RemoveGoal(Request):
    """Take the goal of a link away, or all."""

    link: Annotated[str | None, maybe(text)] = None


# ---- deeds


@dataclass(frozen=True)
class AddObject(Request):
    """Put an object into the scene; all that is there stays as it is.

    Args:
        kind: "box", "ball" or "capsule".
        size: Its width, and the height of a box [m]; a capsule is twice as long.
        mass: [kg].
        position: Of its middle [m]; None is in front of the character that is watched.
    """

    kind: Annotated[str, one_of("object", OBJECTS)]
    size: Annotated[float, real(limits.SMALLEST_OBJECT, limits.LARGEST_OBJECT)] = 0.3
    mass: Annotated[float, real(limits.LIGHTEST, limits.HEAVIEST)] = 5.0
    position: Annotated[Vector | None, maybe(PLACE)] = None


@dataclass(frozen=True)
class ClearObjects(Request):
    """Take all objects and balls away."""


@dataclass(frozen=True)
class Throw(Request):
    """Throw a ball so that it meets a link.

    Args:
        link: Name or index; None is the chest, or what is in the middle.
        origin: From where [m]; None is from the side of the character.
        speed: [m/s].
    """

    link: Annotated[str | int | None, maybe(LINK)] = None
    origin: Annotated[Vector | None, maybe(PLACE)] = None
    speed: Annotated[float, real(limits.SLOWEST_BALL, limits.FASTEST_BALL)] = 8.0


@dataclass(frozen=True)
class Push(Request):
    """Push a link.

    Args:
        link: A name, of the first character if it does not say whose, or the index in the scene.
        force: [N].
        direction: One of `poise.simulation.pushes.DIRECTIONS`, or a world vector of any length.
        duration: [s].
        at: Where, in the world [m]; None is the link's mass centre.
    """

    link: Annotated[str | int, LINK]
    force: Annotated[float, real(0.0, limits.MOST_FORCE)] = 200.0
    direction: Annotated[
        str | Vector, either(PLACE, one_of("direction", tuple(DIRECTIONS)), str)
    ] = "forward"
    duration: Annotated[float, real(limits.SHORTEST_PUSH, limits.LONGEST_PUSH)] = 0.1
    at: Annotated[Vector | None, maybe(PLACE)] = None


@dataclass(frozen=True)
class Drag(Request):
    """Drag a link by a spring, from now on until `Release`; again, as the mouse moves.

    Args:
        link: A name, or the index in the scene.
        to: Where to [m].
        point: By which point, in the link's frame [m]; None is its mass centre.
    """

    link: Annotated[str | int, LINK]
    to: Annotated[Vector, PLACE]
    point: Annotated[Vector | None, maybe(PLACE)] = None


@dataclass(frozen=True)
class Release(Request):
    """Let go of a link, or of all."""

    link: Annotated[str | int | None, maybe(LINK)] = None


# ---- looking, recordings, files


@dataclass(frozen=True)
class Watch(Request):
    """Whose trail and series are shown: which of the characters."""

    who: Annotated[int, whole(0, limits.MOST_CHARACTERS - 1)]


@dataclass(frozen=True)
class Record(Request):
    """Begin a take, or end it. The last take is kept until the next begins."""

    on: Annotated[bool, flag] = True


@dataclass(frozen=True)
class Save(Request):
    """Save files into the output folder: of the take, else of the history, or of what is open.

    Args:
        kinds: Endings, some of KINDS.
        name: What to call them; what is no letter, digit, "-", "_" or "." becomes "-". A name that
            is taken gets a number. Empty is the clip's.
        token: Comes back in the jobs that save, so that a page knows its own.
    """

    kinds: Annotated[tuple[str, ...], several("kind", KINDS)] = ("npz",)
    name: Annotated[str, text] = ""
    token: Annotated[str, text] = ""


@dataclass(frozen=True)
class Open(Request):
    """Show a recording of the output folder instead of the simulation."""

    name: Annotated[str, text]


@dataclass(frozen=True)
class Compare(Request):
    """Show a recording of the output folder beside what is shown; None takes it away."""

    name: Annotated[str | None, maybe(text)] = None


@dataclass(frozen=True)
class Live(Request):
    """Back from a recording to the simulation."""
