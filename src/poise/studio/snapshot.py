"""Snapshots: what a page shows, made by the session some thirty times a second.

Arrays are read-only and never change: a reader may keep a snapshot. With nq, nl the sizes of the
scene, m the number of its characters (objects do not count) and k that of contacts. What is
undefined is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.control.gains import FREQUENCY
from poise.control.profiles import ProfileSpec
from poise.control.registry import ControllerEntry, find_controller
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.simulation.contact import Contacts, Projectiles
from poise.studio.scene_index import SceneIndex

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Measures:
    """A scene at one time, and its measures.

    Attributes:
        index: Index of the scene: characters, objects, balls, ground. A new scene has another
            `index.number`.
        time: Clock of the scene [s].
        q: Positions of the whole scene, shape (nq,).
        reference: Positions of the reference, shape (nq,), or None; objects are where they are.
        projectiles: Balls, as of `World.projectile_state`.
        contacts: Contacts with a force in the step before.
        torque_ratio: Torque of the joints of each link relative to its limit, or where there is
            none to what holds the character; 0 to 1 and, without a limit, above; shape (nl,).
        saturated: Links with a torque at its limit, shape (nl,).
        at_limit: Links with a joint at a limit of its range, shape (nl,).
        com: Centers of mass [m], shape (m, 3).
        velocity: Of the centers of mass [m/s], shape (m, 3).
        cop: Centers of pressure on the ground [m], shape (m, 3).
        cmp: Centroidal moment pivots on the ground [m], shape (m, 3).
        planned_cop: Planned centers of pressure [m], shape (m, 3).
        margin: Support margins of center of mass, CoP and CMP: horizontal distance to the edge of
            the support polygon [m], negative outside; shape (m, 3).
        ground_force: Ground reaction force on each character [N], shape (m, 3).
        support: Corners of each support polygon, counterclockwise, on the ground [m]; m arrays of
            shape (corners, 3).
        linear: Momentum [N s], shape (m, 3).
        angular: Angular momentum about the center of mass [N m s], shape (m, 3).
        kinetic: Energy [J], shape (m,).
        potential: Energy, of height above z = 0 [J], shape (m,).
        rotation: Error of the links against the reference, mean over links [degrees], shape (m,).
        position: Error of the links relative to the root, mean over links [m], shape (m,).
        root_offset: Distance of the root from that of the reference [m], shape (m,).
        fallen: Whether a character has fallen, where that is known, shape (m,).
    """

    index: SceneIndex
    time: float
    q: Floats
    reference: Floats | None
    projectiles: Projectiles
    contacts: Contacts
    torque_ratio: Floats
    saturated: Bools
    at_limit: Bools
    com: Floats
    velocity: Floats
    cop: Floats
    cmp: Floats
    planned_cop: Floats
    margin: Floats
    ground_force: Floats
    support: tuple[Floats, ...]
    linear: Floats
    angular: Floats
    kinetic: Floats
    potential: Floats
    rotation: Floats
    position: Floats
    root_offset: Floats
    fallen: Bools


class Tuning(NamedTuple):
    """Gains, strength and pins of a limb.

    Attributes:
        frequency: [Hz].
        damping: Ratio.
        strength: Factor of gains and effort limits.
        pin: Weight.
    """

    frequency: float
    damping: float
    strength: float
    pin: float


BODY = ""
"""The whole body among the limbs."""

DEFAULT_TUNING = Tuning(FREQUENCY, 1.0, 1.0, 0.0)
"""Tuning of a body of which nothing was chosen."""


@dataclass(frozen=True)
class Controls:
    """What was chosen; every page shows the same.

    Attributes:
        character: Name.
        clip: Name; "rest" holds the rest pose.
        count: Number of characters.
        controller: Name.
        root: "free", "soft" or "held".
        dt: Time step [s].
        ground: "plane", "hills" or "none".
        gravity: [m/s^2].
        friction: Of everything.
        speed: Chosen speed relative to real time.
        loop: Whether the clip, or the recording, starts again at its end.
        watch: Number of the character whose trail and curves are shown.
        tuning: By limb; "" is the whole body, for limbs without an entry.
        options: Options of the controller that were chosen; others have their defaults.
        adaptive: Whether the clip slows down where following it costs the balance.
        profiles: Profiles of strength and pins; see `poise.control.profiles`.
    """

    character: str
    clip: str
    count: int = 1
    controller: str = "spd"
    root: str = "soft"
    dt: float = 1.0 / 60.0
    ground: str = "plane"
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    friction: float = 0.8
    speed: float = 1.0
    loop: bool = True
    watch: int = 0
    tuning: dict[str, Tuning] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    adaptive: bool = False
    profiles: tuple[ProfileSpec, ...] = ()

    @property
    def entry(self) -> ControllerEntry:
        """The controller's entry in the registry."""
        return find_controller(self.controller)

    def option(self, name: str) -> Any:
        """An option of the controller; None if it has no such option."""
        return self.options.get(name, self.entry.options.defaults().get(name))

    @property
    def goals(self) -> dict[str, tuple[float, float, float]]:
        """Points that links, or ends of limbs, should reach [m]."""
        goals: dict[str, tuple[float, float, float]] = self.options.get("goals", {})
        return goals

    @property
    def balances(self) -> bool:
        """Whether the character stands on its feet alone: the controller plans their forces."""
        return "supports" in self.entry.options.info()

    def tuned(self, character: Character, limb: str | None, **values: float) -> Controls:
        """The same with other gains, strength or pins of a limb; of the body, limbs change, too.

        Args:
            character: The character whose limbs these are.
            limb: Name of the limb; None is the whole body.
            values: What changes.
        """
        if limb is not None and limb not in character.limbs:
            raise PoiseError(unknown_name("limb", limb, character.limbs))
        body = self.tuning.get(BODY, DEFAULT_TUNING)
        if limb is not None:
            own = self.tuning.get(limb, body)._replace(**values)
            return replace(self, tuning={**self.tuning, BODY: body, limb: own})
        changed = {name: own._replace(**values) for name, own in self.tuning.items()}
        return replace(self, tuning={**changed, BODY: body._replace(**values)})


class Job(NamedTuple):
    """Work beside the simulation: loading a clip, saving a file.

    Attributes:
        number: Counts up.
        what: Its description.
        progress: 0 to 1.
        state: "waiting", "running", "done" or "failed".
        message: Its result, or its error; one line.
        path: The file that was written, if it is one and done.
        token: Of the request.
    """

    number: int
    what: str
    progress: float = 0.0
    state: str = "waiting"
    message: str = ""
    path: Path | None = None
    token: str = ""


class Message(NamedTuple):
    """A message on the page.

    Attributes:
        number: Counts up: a larger one is new.
        text: One line.
        level: "info", "warning" or "error".
    """

    number: int = 0
    text: str = ""
    level: str = "info"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a page shows.

    Attributes:
        number: Counts up with every snapshot.
        measures: The scene that is shown, with its measures.
        beside: A recording to compare with at the same time, or None.
        mode: "live", or "recorded" while a recording is played.
        name: Of the recording that is played, or "".
        made: Its dtype and instruction set, or "".
        beside_name: Of the recording to compare with, or "".
        playing: Whether time advances.
        frame: Number of the shown frame of the history or recording.
        frames: Number of frames.
        start: Time of the first frame [s].
        end: Time of the last frame [s].
        pace: Simulated time per real time in the last second; 1 is real time.
        step_rate: Steps per second of real time in the last second.
        load: Fraction of the last second in which the session worked, 0 to 1.
        diverged: Why the simulation stopped, or "": `Restart`, or scrub back.
        trail: Path of the watched center of mass in the last seconds [m], shape (t, 3).
        recording: Whether a take is being recorded.
        taken: Length of the running take, or of the last one [s].
        controls: What was chosen.
        jobs: Work beside the simulation: running jobs and the last ones that ended.
        files: Names of the recordings in the output folder, the newest first.
        message: The last one.
    """

    number: int
    measures: Measures
    beside: Measures | None
    mode: str
    name: str
    made: str
    beside_name: str
    playing: bool
    frame: int
    frames: int
    start: float
    end: float
    pace: float
    step_rate: float
    load: float
    diverged: str
    trail: Floats
    recording: bool
    taken: float
    controls: Controls
    jobs: tuple[Job, ...]
    files: tuple[str, ...]
    message: Message
