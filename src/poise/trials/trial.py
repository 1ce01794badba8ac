"""A trial: a clip, who follows it and how; what `poise track` runs."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from poise.anatomy.body import heading
from poise.control.asked_profiles import AskedProfile, profiled
from poise.control.gains import ROOTS
from poise.control.named import DEFAULT, Controller, named, named_controller
from poise.errors import PoiseError, shorten, unknown_name
from poise.math.arrays import Progress, number
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.preprocess import load_preprocessed
from poise.recording import Recording
from poise.simulation.pushes import Push
from poise.simulation.run import run
from poise.simulation.world import World

SHORTEST_STEP, LONGEST_TIME = 1e-6, 3600.0
"""Of a trial [s]: what is beyond would not end today."""

BEYOND = 2.0
"""A clip that asks for less beyond a joint's limits is not worth a word [degrees]."""

MOST_PUSHES = 8
"""That a world can have waiting or running."""

FREQUENCY = 16.0
"""How fast joints follow unless told otherwise [Hz]. Gains come from what a joint carries at rest,
and a foot carries little, but has to stand: slower ones give way under dogs."""


@dataclass(frozen=True)
class Trial:
    """A clip, who follows it and how.

    Args:
        clip: The motion, on the character that follows it.
        controller: Name of the controller: `poise.control.named`.
        dt: Time step [s].
        root: What holds a free root: "soft", "held" or "free".
        ground: Whether there is a ground, the plane z = 0.
        pushes: Forces on links, on the trial's clock.
        frequency: Natural frequency of the joints [Hz]; None is the controller's own.
        damping: Damping ratio; None is the controller's own.
        duration: How long [s]; None is as long as the clip. After that its last pose is held.
        profiles: Strength and pins that change in time.
        exclude: Pairs of links that do not touch each other.
        notes: What was done to the clip before, for people to read.
    """

    clip: Clip
    controller: str = DEFAULT
    dt: float = 1.0 / 60.0
    root: str = "soft"
    ground: bool = True
    pushes: tuple[Push, ...] = ()
    frequency: float | None = FREQUENCY
    damping: float | None = None
    duration: float | None = None
    profiles: tuple[AskedProfile, ...] = ()
    exclude: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        named(self.controller)
        if self.root not in ROOTS:
            raise PoiseError(unknown_name("root", self.root, ROOTS))
        for name, unit in (("frequency", "Hz"), ("damping", "ratio")):
            if getattr(self, name) is not None:
                number(getattr(self, name), name, unit=unit)
        if number(self.dt, "dt") < SHORTEST_STEP:
            raise PoiseError(f"dt is {self.dt:g} s; it must be {SHORTEST_STEP:g} s or more")
        if not self.character.nv:
            raise PoiseError(f"character {self.character.name!r} has no joint that moves")
        if number(self.time, "duration") > LONGEST_TIME:
            raise PoiseError(f"duration is {self.time:g} s; it must be {LONGEST_TIME:g} s or less")
        self._check_pushes()
        for profile in self.profiles:
            profile.of(self.character)

    @property
    def character(self) -> Character:
        """Who follows the clip."""
        return self.clip.character

    @property
    def time(self) -> float:
        """How long it takes, on its own clock [s]."""
        return self.clip.duration if self.duration is None else self.duration

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


def run_trial(trial: Trial, *, fps: float = 60.0, progress: Progress | None = None) -> Recording:
    """Simulate a trial.

    Args:
        trial: What to do.
        fps: Frames per second of the recording.
        progress: Called with the share that is done, 0 to 1.
    """
    world, controller = set_up(trial)
    recording = Recording(world, fps=fps)
    tell = None if progress is None else _share(progress, trial.time)
    run(world, controller, trial.clip, trial.time, record=recording, progress=tell)
    return recording


def set_up(trial: Trial) -> tuple[World, Controller]:
    """The world of a trial at its start, pushes waiting, and the controller.

    Args:
        trial: What to do.
    """
    world = World(trial.character, dt=trial.dt, ground=trial.ground, exclude=trial.exclude)
    world.reset(trial.clip.state(0.0))
    for push in trial.world_pushes:
        push.apply(world)
    controller = named_controller(
        trial.controller,
        world,
        root=trial.root,
        frequency=trial.frequency,
        damping=trial.damping,
    )
    return world, profiled(controller, world, trial.profiles)


def trial_of(
    source: str | os.PathLike[str] | Clip,
    character: str | os.PathLike[str] | Character | None = None,
    *,
    cutoff: float | str | None = None,
    ground: bool | None = None,
    pushes: Sequence[Push] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Trial:
    """A trial from a clip or a file: loaded, retargeted, smoothed, and put onto the ground.

    A file is tracked by a character made from its own skeleton unless one is named. Its raw motion
    gets ready: a pose that was put in before the first frame, as in files of the CMU, is left out,
    noise is smoothed away, and feet that stand are brought to the height of the ground. Built-in
    clips, and others that know their contacts, are taken as they are: `poise.motion.preprocess`.
    Links that overlap in the clip do not touch each other in the trial.

    Args:
        source: The name of a built-in clip, a file, or a clip.
        character: Who follows it: a name, a file, or a character; None is the clip's own.
        cutoff: What is slower passes [Hz]; "auto" finds it, 0 is off; None is "auto" for raw motion
            and off for other clips.
        ground: Whether there is a ground; None has one for characters whose root is free.
        pushes: Forces on links.
        progress: Called while retargeting with the share that is done, 0 to 1.
        options: As of Trial.
    """
    who = body_of(character)
    clip = load_preprocessed(
        source, who, cutoff=cutoff, ground=ground is not False, progress=progress
    )
    return trial_of_ready(clip, ground=ground, pushes=pushes, **options)


def trial_of_ready(
    clip: Clip, *, ground: bool | None = None, pushes: Sequence[Push] = (), **options: Any
) -> Trial:
    """A trial from a clip that can be followed; its notes, and what else is to be known of it.

    Args:
        clip: The motion, on the character that follows it.
        ground: As of `trial_of`.
        pushes: Forces on links.
        options: As of Trial.
    """
    free = bool(clip.character.joints) and clip.character.joints[0].kind == "free"
    notes = list(clip.notes)
    exclude = _through_each_other(clip, notes)
    _tell_limits(clip, notes)
    return Trial(
        clip,
        ground=free if ground is None else ground,
        pushes=tuple(pushes),
        exclude=exclude,
        notes=tuple(notes),
        **options,
    )


def body_of(character: str | os.PathLike[str] | Character | None) -> Character | None:
    """A character by its name or file, or as it is."""
    from poise.characters import load_character

    if isinstance(character, (str, os.PathLike)):
        return load_character(character)
    return character


def _through_each_other(clip: Clip, notes: list[str]) -> tuple[tuple[str, str], ...]:
    from poise.trials.overlaps import overlapping_links

    found = overlapping_links(clip)
    if found:
        pairs = shorten((f"{one}/{two}" for one, two in found), 4)
        deep = 1e3 * max(found.values())
        notes.append(f"overlap in the clip, by {deep:.2g} mm at most, and do not collide: {pairs}")
    return tuple(found)


def _tell_limits(clip: Clip, notes: list[str]) -> None:
    """Joints hold at their limits, however strongly a clip asks for more."""
    from poise.motion.limits import excesses

    turning = {joint.name for joint in clip.character.joints if joint.kind != "slide"}
    found: dict[str, float] = {}
    for one in excesses(clip.character, clip.frames):
        most = math.degrees(float(one.value.max()))
        if one.joint in turning and most > BEYOND:
            found[one.joint] = max(most, found.get(one.joint, 0.0))
    if found:
        text = shorten((f"{joint} by {most:.0f} deg" for joint, most in found.items()), 4)
        notes.append(f"beyond the limits of joints, which hold: {text}")


def _share(progress: Progress, whole: float) -> Progress:
    return lambda done: progress(min(1.0, done / whole))
