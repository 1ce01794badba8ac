"""A trial: a clip, the controller that follows it, and the world it happens in."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from poise.anatomy.body import heading
from poise.anatomy.feet import check_can_stand, has_free_root
from poise.characters import load_character
from poise.control.balance.config import Goals
from poise.control.profiles import PIN, ProfileSpec, apply_profiles
from poise.control.registry import DEFAULT, find_controller, make_controller
from poise.errors import PoiseError, shorten
from poise.math.arrays import Progress, number
from poise.model.character import Character
from poise.model.scene import scene_of
from poise.motion.clip import Clip
from poise.motion.limits import largest_excesses
from poise.recording import Recording
from poise.simulation.controller import ControllerLike, Motion
from poise.simulation.pushes import Push
from poise.simulation.run import run
from poise.simulation.state import State
from poise.simulation.world import World

SHORTEST_STEP, LONGEST_TIME = 1e-6, 3600.0
"""Bounds of time step and duration of a trial [s]."""

BEYOND = 2.0
"""Excesses over a joint's limits that are smaller are not noted [degrees]."""

MOST_PUSHES = 8
"""Pushes that a world can have waiting or running."""

OPTIONS: Mapping[str, Any] = {"root": "soft", "frequency": 16.0}
"""Options of a trial's controller where they differ from its own. Gains come from the inertia that
a joint carries at rest, and a foot carries little, but has to stand: slower ones give way under
dogs."""

WORLD: Mapping[str, Any] = {"dt": 1.0 / 60.0}
"""World of a trial, where the controller's entry has no defaults."""

PENALTY_STEP = 1.0 / 1000.0
"""Time step with contact by penalty, unless given [s]."""

WAITS = 2.0
"""How many times longer than the clip a time-scaled trial may take."""

LONGEST_BALANCE_STEP = 1.0 / 30.0
"""Steps that are longer [s] throw a balancing character about."""

LEAST_RATE = 30.0
"""Balance that is planned less often may not stand [1/s]."""

MAX_FRICTION = 100.0
"""Of feet and ground; feet stick to the ground long before."""


@dataclass(frozen=True)
class Trial:
    """A clip, the controller that follows it, and the world it happens in.

    Args:
        clip: The motion, on the character that follows it.
        controller: Name of the controller, one of `poise.control.registry.CONTROLLERS`.
        options: Options of the controller; those left out are those of OPTIONS and of its entry.
        world: Arguments of the World; those left out are those of the controller's entry.
        pushes: Forces on links, on the trial's clock.
        profiles: Strength and pins that change in time.
        duration: How long [s]; None is as long as the clip. After that its last pose is held.
        time_scaling: Whether the clip slows down while following it would cost the balance.
        notes: What was done to the clip before, for people to read.
    """

    clip: Clip
    controller: str = DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)
    pushes: tuple[Push, ...] = ()
    profiles: tuple[ProfileSpec, ...] = ()
    duration: float | None = None
    time_scaling: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        entry = find_controller(self.controller)
        known = entry.options.info()
        options = {name: value for name, value in OPTIONS.items() if name in known} | {
            name: value for name, value in self.options.items() if value is not None
        }
        entry.options.of(options, self.controller)
        object.__setattr__(self, "options", options)
        defaults = {**WORLD, **entry.defaults}
        if self.world.get("contact") == "penalty":
            defaults["dt"] = PENALTY_STEP
        given = {name: value for name, value in self.world.items() if value is not None}
        object.__setattr__(
            self, "world", {"ground": has_free_root(self.character), **defaults, **given}
        )
        if number(self.dt, "dt") < SHORTEST_STEP:
            raise PoiseError(f"dt is {self.dt:g} s; it must be {SHORTEST_STEP:g} s or more")
        if not self.character.nv:
            raise PoiseError(f"character {self.character.name!r} has no joint that moves")
        if number(self.time, "duration") > LONGEST_TIME:
            raise PoiseError(f"duration is {self.time:g} s; it must be {LONGEST_TIME:g} s or less")
        friction = self.world.get("friction", 0.0)
        if (
            isinstance(friction, (int, float))
            and not 0.0 <= number(friction, "friction", positive=False, unit="") <= MAX_FRICTION
        ):
            raise PoiseError(
                f"friction is {friction:g}; it must be 0 or more and {MAX_FRICTION:g} or less"
            )
        self._check_pushes()
        for profile in self.profiles:
            profile.of(self.character)
        PREPARATIONS.get(self.controller, PLAIN).check(self)

    @property
    def character(self) -> Character:
        """The character that follows the clip."""
        return self.clip.character

    @property
    def dt(self) -> float:
        """Time step [s]."""
        step: float = self.world["dt"]
        return step

    @property
    def root(self) -> str:
        """What holds a free root: "soft", "held" or "free"."""
        return str(self.options.get("root", "free"))

    @property
    def ground(self) -> bool:
        """Whether there is a ground."""
        return bool(self.world["ground"])

    @property
    def time(self) -> float:
        """How long it takes at most, on its own clock [s]."""
        if self.duration is not None:
            return self.duration
        return (WAITS if self.time_scaling else 1.0) * self.clip.duration

    @property
    def world_pushes(self) -> tuple[Push, ...]:
        """The pushes in world axes: forward is where the clip looks when a push starts."""
        clip = self.clip
        return tuple(
            push.in_world(heading(clip.character, clip.q(push.at))) for push in self.pushes
        )

    def _check_pushes(self) -> None:
        if len(self.pushes) > MOST_PUSHES:
            raise PoiseError(
                f"there are {len(self.pushes)} pushes; a world takes {MOST_PUSHES} at most"
            )
        for push in self.pushes:
            push.check_link(link.name for link in self.character.links)
            if push.at >= self.time:
                raise PoiseError(f"push {push}: comes after the end at {self.time:.4g} s")

    # ---- variants

    def with_world(self, **arguments: Any) -> Trial:
        """The same trial with other arguments of its World, as `dt`."""
        return replace(self, world={**self.world, **arguments})

    def with_controller(self, name: str, options: Mapping[str, Any] | None = None) -> Trial:
        """The same trial with another controller, in the world and on the clip that suit it.

        Args:
            name: Of the controller.
            options: Its options, None for those of this trial; those that the other controller
                does not have are left out.
        """
        if name == self.controller and options is None:
            return self
        entry, present = find_controller(name), find_controller(self.controller)
        given, known = self.options if options is None else options, entry.options.info()
        options = {key: value for key, value in given.items() if key in known}
        if name == self.controller:
            return replace(self, options=options)
        world = {
            key: value for key, value in self.world.items()
            if value != present.defaults.get(key, WORLD.get(key))
        }  # fmt: skip
        preparation = PREPARATIONS.get(name, PLAIN)
        preparation.check_character(self.character)
        clip, notes = preparation.prepare(self.clip, None)
        return replace(
            self, clip=clip, controller=name, options=options, world=world,
            notes=(*self.notes, *notes),
        )  # fmt: skip

    # ---- running it

    def build(self) -> tuple[World, ControllerLike, Motion]:
        """The world at its start, with the pushes waiting; the controller; and what it follows."""
        world = World(self.character, **self.world)
        world.reset(self.clip.state(0.0))
        for push in self.world_pushes:
            push.apply(world)
        options = dict(self.options)
        if "supports" in find_controller(self.controller).options.info():
            stands = self.clip.contacts is not None
            options.setdefault("supports", self.clip if stands else "clip")
        made: Any = make_controller(self.controller, world, **options)
        motion = made.scale_time(self.clip) if self.time_scaling else self.clip
        return world, apply_profiles(made, world, self.profiles), motion

    def run(self, *, fps: float = 60.0, progress: Progress | None = None) -> Recording:
        """Simulates it; with time scaling to the end of the clip, if it gets there.

        Args:
            fps: Frames per second of the recording.
            progress: Called with the fraction that is done, 0 to 1.
        """
        world, controller, motion = self.build()
        recording = Recording(world, fps=fps)
        scaled = self.time_scaling and self.duration is None
        until: Any = getattr(motion, "is_finished", None) if scaled else None

        def report(done: float) -> None:
            if progress is not None:
                progress(min(1.0, done / self.time))

        run(world, controller, motion, self.time, recording, report, until)
        return recording


def step_text(dt: float) -> str:
    """A step as people write it: 1/60, or 0.013."""
    rate = 1.0 / dt
    return f"1/{rate:.0f}" if abs(rate - round(rate)) < 1e-6 * rate else f"{dt:.4g}"


# ---- what a controller does to a clip, and what it refuses


class Preparation(NamedTuple):
    """What a controller needs of a character, a clip and a trial.

    Attributes:
        check_character: Refuses a character that the controller cannot drive.
        prepare: The clip as the controller follows it, and notes of what was changed.
        check: Refuses a trial that cannot be run.
        collides: Whether links collide, so that overlaps in the clip have to be left out.
    """

    check_character: Callable[[Character], None]
    prepare: Callable[[Clip, Progress | None], tuple[Clip, tuple[str, ...]]]
    check: Callable[[Trial], None]
    collides: bool = True


def _prepare_balance(clip: Clip, progress: Progress | None) -> tuple[Clip, tuple[str, ...]]:
    """Levels the feet and brings the center of mass over them."""
    from poise.motion.editing.prepare_balance import prepare_balance  # SciPy loads slowly

    made = prepare_balance(clip, progress=progress)
    return made.clip, made.notes


def _check_tracking(trial: Trial) -> None:
    if trial.time_scaling:
        raise PoiseError(
            f"controller {trial.controller!r} cannot scale the time of a clip; 'balance' can"
        )


def _check_balance(trial: Trial) -> None:
    if trial.dt > 1.001 * LONGEST_BALANCE_STEP:
        raise PoiseError(f"dt is {trial.dt:.4g} s; balance needs steps of 1/30 s or less")
    for profile in trial.profiles:
        if profile.name == PIN:
            raise PoiseError(f"profile {profile}: controller 'balance' has no pins; 'spd' has")
        if trial.world["contact"] != "impulse":
            raise PoiseError(f"profile {profile}: balance needs contact by impulses for a strength")
    if not trial.options.get("objectives", True):
        raise PoiseError("no objectives: any of track, linear, angular")
    objectives = tuple(trial.options.get("objectives", ()))
    for i, name in enumerate(objectives):
        if name in objectives[:i]:
            raise PoiseError(f"objective {name!r} is given twice")
    Goals(trial.character, scene_of(trial.character), trial.options.get("goals", {}))
    rate = trial.options.get("rate")
    if rate is not None and trial.world["contact"] == "impulse":
        raise PoiseError(
            "rate: with contact by impulses the balance plans in every step; leave it out, "
            "choose dt, or take contact by penalty"
        )
    if rate is not None and number(rate, "rate", unit="Hz") < LEAST_RATE:
        raise PoiseError(f"rate is {rate:g} Hz; it must be {LEAST_RATE:g} Hz or more")


PLAIN = Preparation(lambda character: None, lambda clip, progress: (clip, ()), _check_tracking)
"""Of controllers that follow any clip."""

PREPARATIONS = {
    "balance": Preparation(check_can_stand, _prepare_balance, _check_balance, collides=False)
}
"""By name of the controller; others are PLAIN."""


def prepare_trial(
    source: str | os.PathLike[str] | Clip,
    character: str | os.PathLike[str] | Character | None = None,
    *,
    controller: str = DEFAULT,
    dt: float | None = None,
    ground: bool | None = None,
    world: Mapping[str, Any] | None = None,
    cutoff: float | str | None = None,
    prepare: bool = True,
    pushes: Sequence[Push] = (),
    profiles: Sequence[ProfileSpec] = (),
    duration: float | None = None,
    time_scaling: bool = False,
    progress: Progress | None = None,
    preparing: Progress | None = None,
    **options: Any,
) -> Trial:
    """A trial from a clip or a file: loaded, retargeted, smoothed, and put onto the ground.

    A file is tracked by a character made from its own skeleton unless one is named. Its raw motion
    is preprocessed: a pose that was put in before the first frame, as in files of the CMU, is left
    out, noise is smoothed away, and feet that stand are brought to the height of the ground.
    Built-in clips, and others that have contacts, are taken as they are: `poise.motion.preprocess`.
    Links that overlap in the clip do not collide in the trial. For the controller "balance" feet
    become level and the center of mass is brought over them.

    Args:
        source: The name of a built-in clip, a file, or a clip.
        character: The character that follows it: a name, a file, or a character; None is the
            clip's own.
        controller: Name of the controller.
        dt: Time step [s]; None is the default of the controller.
        ground: Whether there is a ground; None has one for characters whose root is free.
        world: Further arguments of the World.
        cutoff: Low-pass cutoff [Hz]; "auto" finds it, 0 disables filtering; None is "auto" for raw
            motion and 0 for other clips.
        prepare: Whether the clip is prepared for the controller.
        pushes: Forces on links.
        profiles: Strength and pins that change in time.
        duration: How long [s]; None is as long as the clip.
        time_scaling: As of Trial.
        progress: Called while retargeting with the fraction that is done, 0 to 1.
        preparing: The same while preparing.
        options: Options of the controller.
    """
    find_controller(controller)
    preparation = PREPARATIONS.get(controller, PLAIN)
    body = load_character(character) if isinstance(character, (str, os.PathLike)) else character
    if body is not None:
        preparation.check_character(body)  # before retargeting, which takes long
    repair = prepare and preparation is not PLAIN
    from poise.motion.preprocess import load_preprocessed  # SciPy loads slowly

    clip = load_preprocessed(
        source,
        body,
        cutoff=cutoff,
        ground=ground is not False,
        repair_feet=repair,
        progress=progress,
    )
    preparation.check_character(clip.character)
    notes = list(clip.notes)
    given = {**(world or {}), "dt": dt, "ground": ground}
    if preparation.collides:
        given["exclude"] = _overlapping_links(clip, notes)
    _note_limits(clip, notes)
    # checked before the preparation, which takes long
    trial = Trial(
        clip, controller, options, given, tuple(pushes), tuple(profiles), duration, time_scaling,
        tuple(notes),
    )  # fmt: skip
    if not prepare:
        return trial
    made, more = preparation.prepare(clip, preparing)
    return replace(trial, clip=made, notes=(*trial.notes, *more))


def _overlapping_links(clip: Clip, notes: list[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of links that overlap in the clip, with a note."""
    found = overlapping_links(clip)
    if found:
        pairs = shorten((f"{one}/{two}" for one, two in found), 4)
        deep = 1e3 * max(found.values())
        notes.append(f"overlap in the clip, by {deep:.2g} mm at most, and do not collide: {pairs}")
    return tuple(found)


def _note_limits(clip: Clip, notes: list[str]) -> None:
    """Note joints that the clip moves beyond their limits, at which they hold."""
    found = largest_excesses(clip.character, clip.frames, BEYOND)
    if found:
        text = shorten((f"{joint} by {most:.0f} deg" for joint, most in found.items()), 4)
        notes.append(f"beyond the limits of joints, which hold: {text}")


# ---- links that a clip moves through each other
#
# Drawn and captured motions do that: the shapes of a body are stiff, flesh is not. In a physical
# world contact forces would separate such links, against the motion that they should follow.

DEEPEST = 1e-4
"""Links that overlap by less can collide [m]. A larger overlap causes large contact forces against
stiff joints: 1.5 mm at the hips of tail-biped-dance eleven times its weight."""

MOST_POSES = 256
"""Poses that are examined, evenly over the clip."""


def overlapping_links(clip: Clip, deepest: float = DEEPEST) -> dict[tuple[str, str], float]:
    """Pairs of links that overlap in a clip, and how deep at most [m].

    Args:
        clip: The motion.
        deepest: Smaller overlaps are left out [m].
    """
    times = np.linspace(0.0, clip.duration, min(len(clip), MOST_POSES))
    # one short step of a world without forces finds the contacts of each pose
    world = World(
        clip.character, n=len(times), dt=1e-6, ground=False, gravity=(0, 0, 0), projectiles=0
    )
    q = clip.q(times)
    world.reset(State(q if world.n > 1 else q[0]))
    world.step()
    contacts, names = world.contacts, world.scene.forest.link_names
    found: dict[tuple[str, str], float] = {}
    for one, two, depth in zip(contacts.link, contacts.other, contacts.depth, strict=True):
        pair = names[min(one, two)], names[max(one, two)]
        found[pair] = max(found.get(pair, 0.0), float(depth))
    return {pair: depth for pair, depth in found.items() if depth > deepest}
