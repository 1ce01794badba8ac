"""What a page shows: one immutable value, made by the session some thirty times a second.

Arrays are read-only and never change: a reader keeps a snapshot as long as it likes. With nq, nl
the sizes of the scene, m the number of its characters (objects do not count) and k that of
contacts. What is not there is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from poise.math.arrays import Floats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from poise.control.asked_profiles import AskedProfile
    from poise.studio.cast import Cast

    Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts of the last step that press.

    Attributes:
        point: Where [m], shape (k, 3).
        force: On the link, the mean over the step [N], shape (k, 3).
        link: Index of the link, shape (k,); those of balls come after the scene's.
        other: What it touches: a link, -1 the ground, -2 - i the obstacle i, shape (k,).
    """

    point: Floats
    force: Floats
    link: NDArray[np.int64]
    other: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Moment:
    """A scene at one time, and what is measured there.

    Attributes:
        cast: Who is in the scene: characters, objects, balls, ground. A new scene is a new object,
            with another `cast.number`.
        time: Clock of the scene [s].
        q: Positions of the whole scene, shape (nq,).
        reference: Where the reference has it, shape (nq,), or None; objects are where they are.
        thrown: Balls, as of `World.thrown`: 1 if it is out, q (7), v (6); shape (projectiles, 14).
        contacts: What presses on what.
        torque: Torque of the joints of each link against its limit, or where there is none against
            what carries the character; 0 to 1 and, without a limit, above; shape (nl,).
        saturated: Links with a torque at its limit, shape (nl,).
        at_limit: Links with a joint at a limit of its range, shape (nl,).
        com: Mass centres [m], shape (m, 3).
        velocity: Of the mass centres [m/s], shape (m, 3).
        cop: Centres of pressure on the ground [m], shape (m, 3).
        cmp: Centroidal moment pivots on the ground [m], shape (m, 3).
        planned: Centres of pressure that the controller planned [m], shape (m, 3).
        margin: How far inside of the support mass centre, COP and CMP are, seen from above [m],
            below zero outside; shape (m, 3).
        ground_force: On each character [N], shape (m, 3).
        support: Corners of each support polygon, anticlockwise, on the ground [m]; m arrays of
            shape (corners, 3).
        linear: Momentum [N s], shape (m, 3).
        angular: Angular momentum about the mass centre [N m s], shape (m, 3).
        kinetic: Energy [J], shape (m,).
        potential: Energy, of height above z = 0 [J], shape (m,).
        rotation: Error of the links against the reference, mean over links [degrees], shape (m,).
        position: Error of the links relative to the root, mean over links [m], shape (m,).
        away: Distance of the root from where the reference has it [m], shape (m,).
        fallen: Whether a character lies, as far as one can tell, shape (m,).
    """

    cast: Cast
    time: float
    q: Floats
    reference: Floats | None
    thrown: Floats
    contacts: Contacts
    torque: Floats
    saturated: Bools
    at_limit: Bools
    com: Floats
    velocity: Floats
    cop: Floats
    cmp: Floats
    planned: Floats
    margin: Floats
    ground_force: Floats
    support: tuple[Floats, ...]
    linear: Floats
    angular: Floats
    kinetic: Floats
    potential: Floats
    rotation: Floats
    position: Floats
    away: Floats
    fallen: Bools


class Tuning(NamedTuple):
    """How a limb follows: gains, strength and pins.

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


@dataclass(frozen=True)
class Controls:
    """What was chosen, so that every page shows the same.

    Attributes:
        character: Name.
        clip: Name; "rest" holds the rest pose.
        count: How many characters.
        controller: Name.
        root: "free", "soft" or "held".
        dt: Time step [s].
        ground: "plane", "hills" or "none".
        gravity: [m/s^2].
        friction: Of everything.
        speed: Pace that was asked for.
        loop: Whether the clip, or the recording, starts again at its end.
        watch: Whose trail and series are shown.
        tuning: By limb; "" is the whole body, of which limbs without an entry take theirs.
        objectives: Of balance: any of "track", "linear", "angular".
        adaptive: Whether with balance the clip waits when following it would cost the balance.
        goals: With balance: points that links, or ends of limbs, should reach [m].
        profiles: How strength and pins change in time; see `poise.control.asked_profiles`.
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
    objectives: tuple[str, ...] = ("track", "linear", "angular")
    adaptive: bool = False
    goals: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    profiles: tuple[AskedProfile, ...] = ()


class Job(NamedTuple):
    """Work beside the simulation: loading a clip, saving a file.

    Attributes:
        number: Counts up.
        what: What it does, for people.
        share: How much is done, 0 to 1.
        state: "waiting", "running", "done" or "failed".
        message: What came of it, or what went wrong; one line.
        path: The file that was written, if it is one and done.
        token: Of the request.
    """

    number: int
    what: str
    share: float = 0.0
    state: str = "waiting"
    message: str = ""
    path: Path | None = None
    token: str = ""


class Message(NamedTuple):
    """Something to tell the people at the page.

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
        moment: The scene that is shown.
        beside: A recording to compare with at the same time, or None.
        mode: "live", or "recorded" while a recording is played.
        name: Of the recording that is played, or "".
        made: Its dtype and instruction set, or "".
        beside_name: Of the recording to compare with, or "".
        playing: Whether time goes on.
        frame: Which frame of the history or recording is shown.
        frames: How many there are.
        start: Time of the first frame [s].
        end: Time of the last frame [s].
        pace: Simulated time per real time in the last second; 1 is real time.
        step_rate: Steps per second of real time in the last second.
        load: Share of the last second that the session was at work, 0 to 1.
        diverged: Why the simulation stopped, or "": `Restart`, or scrub back.
        trail: Way of the watched mass centre in the last seconds [m], shape (t, 3), oldest first.
        recording: Whether a take runs.
        taken: Length of the take, of the running or of the last one [s].
        controls: What was chosen.
        jobs: Work beside the simulation, that which runs and the last that ended.
        files: Names of the recordings in the output folder, the newest first.
        message: The last one.
    """

    number: int
    moment: Moment
    beside: Moment | None
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
