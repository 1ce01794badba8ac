"""A trial of balance: a clip, who keeps on its feet while following it, and what disturbs it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from poise.anatomy.body import place_of
from poise.anatomy.feet import check_can_stand
from poise.control.balance import Balance
from poise.control.balance.balance import OBJECTIVES
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Progress, choice, number
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.preprocess import load_preprocessed
from poise.recording import Recording
from poise.simulation.pushes import Push
from poise.simulation.run import run
from poise.simulation.world import World
from poise.trials.trial import Trial, body_of, trial_of_ready

CONTACTS = {"penalty": "thesis", "impulse": "cones"}
"""Models of contact, and the form of the balance that goes with each."""

STEPS = {"penalty": 1.0 / 1000.0, "impulse": 1.0 / 120.0}
"""Time steps unless told otherwise [s]."""

LONGEST_STEP = 1.0 / 30.0
"""Steps that are longer [s] throw a character about."""

LEAST_RATE = 30.0
"""It is enough to stand [1/s]; who plans less often may not."""

MOST_FRICTION = 100.0
"""Feet stick to the ground long before that."""

STIFFNESS = 2e6
"""Of the penalty ground [N/m]: a character of 65 kg sinks by less than a tenth of a millimetre."""

NOT_FOR_BALANCE = {"controller", "root", "ground", "exclude", "frequency", "damping", "profiles"}
"""Settings of a Trial that mean nothing here: it stands on level ground, and balance says how."""

SPEEDS = ("fixed", "adaptive")
WAITS = 2.0
"""How many times longer than the clip it may take at adaptive speed."""

GOAL_FORM = "LINK:X,Y,Z, as in left_hand:0.4,0.2,1.3"

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GOAL = re.compile(rf"(.+): ?({_NUMBER}), ?({_NUMBER}), ?({_NUMBER})")


class Goal(NamedTuple):
    """A point that a link should reach.

    Attributes:
        link: Name of the link, or of a limb: its outer end.
        point: In the world [m].
    """

    link: str
    point: tuple[float, float, float]

    def __str__(self) -> str:
        return f"{self.link}:{','.join(f'{x:g}' for x in self.point)}"


def parse_goal(text: str) -> Goal:
    """Read a goal: `LINK:X,Y,Z`, in world axes [m]."""
    found = _GOAL.fullmatch(text.strip())
    if found is None:
        raise PoiseError(f"goal {text!r:.80}: it must be {GOAL_FORM}")
    x, y, z = (float(word) for word in found.groups()[1:])
    return Goal(found[1].strip(), (x, y, z))


@dataclass(frozen=True)
class BalanceTrial(Trial):
    """A clip that a character follows on its own feet; nothing holds its root.

    Its links pass through each other: thighs that touch in a clip push its feet apart.

    Args:
        objectives: Any of "track", "linear", "angular".
        contact: "penalty" or "impulse".
        friction: Of feet and ground.
        goals: Points that links should reach.
        rate: How often the balance plans [1/s], with contact by penalty; None is its own.
        speed: "fixed", or "adaptive": the clip waits when following it would cost the balance.
    """

    objectives: tuple[str, ...] = OBJECTIVES
    contact: str = "impulse"
    friction: float = 0.8
    goals: tuple[Goal, ...] = ()
    rate: float | None = None
    speed: str = "fixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self.contact, "contact", tuple(CONTACTS))
        choice(self.speed, "speed", SPEEDS)
        if self.dt > 1.001 * LONGEST_STEP:
            raise PoiseError(f"dt is {self.dt:.4g} s; balance needs steps of 1/30 s or less")
        if self.rate is not None:
            self._check_rate(self.rate)
        if not 0.0 <= number(self.friction, "friction", positive=False, unit="") <= MOST_FRICTION:
            raise PoiseError(
                f"friction is {self.friction:g}; it must be 0 or more and {MOST_FRICTION:g} or less"
            )
        self._check_objectives()
        self._check_goals()

    def _check_rate(self, rate: float) -> None:
        if self.contact == "impulse":
            raise PoiseError(
                "rate: with contact by impulses the balance plans in every step; leave it out, "
                "choose dt, or take contact by penalty"
            )
        if number(rate, "rate", unit="Hz") < LEAST_RATE:
            raise PoiseError(f"rate is {rate:g} Hz; it must be {LEAST_RATE:g} Hz or more")

    def _check_objectives(self) -> None:
        if not self.objectives:
            raise PoiseError(f"no objectives: any of {', '.join(OBJECTIVES)}")
        for i, name in enumerate(self.objectives):
            if name not in OBJECTIVES:
                raise PoiseError(unknown_name("objective", name, OBJECTIVES))
            if name in self.objectives[:i]:
                raise PoiseError(f"objective {name!r} is given twice")

    def _check_goals(self) -> None:
        """One goal for each link, however it is called."""
        taken: dict[str, Goal] = {}
        for goal in self.goals:
            link, _ = place_of(self.character, goal.link)
            if link in taken:
                raise PoiseError(
                    f"goals {taken[link]} and {goal}: both are of link {link!r}, which takes one"
                )
            taken[link] = goal

    @property
    def time(self) -> float:
        """How long it takes at most, on its own clock [s]."""
        waits = self.speed == "adaptive" and self.duration is None
        return WAITS * self.clip.duration if waits else super().time

    def set_up(self) -> tuple[World, Balance]:
        """The world at its start, pushes waiting, and the controller."""
        world = World(
            self.character,
            dt=self.dt,
            contact=self.contact,
            friction=self.friction,
            stiffness=STIFFNESS,
            self_collision=False,
            projectiles=0,
        )
        world.reset(self.clip.state(0.0))
        for push in self.world_pushes:
            push.apply(world)
        options: dict[str, Any] = {} if self.rate is None else {"rate": self.rate}
        balance = Balance(
            world,
            objectives=self.objectives,
            supports=self.clip if self.clip.contacts is not None else "clip",
            goals=dict(self._goal(goal) for goal in self.goals),
            form=CONTACTS[self.contact],
            **options,
        )
        return world, balance

    def _goal(self, goal: Goal) -> tuple[str, Any]:
        link, place = place_of(self.character, goal.link)
        return link, (np.array(goal.point), np.array(place))


def balance_trial_of(
    source: str | os.PathLike[str] | Clip,
    character: str | os.PathLike[str] | Character | None = None,
    *,
    prepare: bool = True,
    dt: float | None = None,
    contact: str = "impulse",
    cutoff: float | str | None = None,
    pushes: Sequence[Push] = (),
    progress: Progress | None = None,
    preparing: Progress | None = None,
    **options: Any,
) -> BalanceTrial:
    """A trial of balance from a clip or a file.

    Args:
        source: The name of a built-in clip, a file, or a clip.
        character: Who follows it; None is the clip's own.
        prepare: Whether feet become level and the mass centre is brought over them before:
            `poise.motion.editing.prepare_balance`.
        dt: Time step [s]; None takes what suits the contact.
        contact: As of BalanceTrial.
        cutoff: As of `trial_of`.
        pushes: Forces on links.
        progress: Called while retargeting with the share that is done, 0 to 1.
        preparing: The same while preparing.
        options: As of BalanceTrial.
    """
    choice(contact, "contact", tuple(CONTACTS))
    known = {field.name for field in fields(BalanceTrial)} - NOT_FOR_BALANCE
    for name in options:
        if name not in known:
            raise PoiseError(unknown_name("option of a trial of balance", name, sorted(known)))
    step = STEPS[contact] if dt is None else dt
    of_trial = {field.name for field in fields(Trial)}
    shared = {name: value for name, value in options.items() if name in of_trial}
    body = body_of(character)
    if body is not None:
        check_can_stand(body)  # before retargeting, which takes long
    clip = load_preprocessed(source, body, cutoff=cutoff, repair_feet=prepare, progress=progress)
    check_can_stand(clip.character)
    plain = trial_of_ready(clip, dt=step, root="free", pushes=pushes, **shared)
    values = {field.name: getattr(plain, field.name) for field in fields(Trial)}
    # links pass through each other here
    notes = [note for note in plain.notes if not note.startswith("overlap")]
    values["notes"] = tuple(notes)
    own = {name: value for name, value in options.items() if name not in of_trial}
    # before the preparation, which takes long
    trial = BalanceTrial(**values, contact=contact, **own)
    if not prepare:
        return trial
    from poise.motion.editing.prepare_balance import prepare_balance

    made = prepare_balance(trial.clip, progress=preparing)
    return replace(trial, clip=made.clip, notes=(*trial.notes, *made.notes))


def run_balance(
    trial: BalanceTrial, *, fps: float = 60.0, progress: Progress | None = None
) -> Recording:
    """Simulate a trial of balance; at adaptive speed to the end of the clip, if it gets there.

    Args:
        trial: What to do.
        fps: Frames per second of the recording.
        progress: Called with the share that is done, 0 to 1.
    """
    world, balance = trial.set_up()
    recording = Recording(world, fps=fps)
    paced = balance.paced(trial.clip) if trial.speed == "adaptive" else None
    until = paced.through if paced is not None and trial.duration is None else None

    def tell(done: float) -> None:
        if progress is not None:
            progress(min(1.0, done / trial.time))

    run(world, balance, paced or trial.clip, trial.time, recording, tell, until)
    return recording
