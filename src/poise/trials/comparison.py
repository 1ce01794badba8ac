"""Comparison: one clip, several controllers, several steps, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poise import dynamics, measure
from poise.errors import Diverged, PoiseError
from poise.math.arrays import Floats, Progress
from poise.measure import Summary, TrackingError
from poise.model.character import Character
from poise.model.forest import KINDS
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.simulation.command import Target
from poise.simulation.controller import ControllerLike
from poise.simulation.run import run
from poise.simulation.state import State
from poise.simulation.world import World
from poise.trials.timing import best
from poise.trials.trial import Trial, step_text

RATES = (16000, 8000, 4000, 2000, 1000, 600, 480, 300, 240, 180, 120, 90, 60, 45, 30, 20, 15)
LADDER = tuple(1 / rate for rate in RATES)
"""Steps among which the largest stable one is looked for [s]."""

SEARCHED = 1.0
"""How much of a clip that search simulates, at most [s]."""

LOST = 0.5
"""A run in which a link is further from its place than this, relative to the root, is lost [m]."""

STEPS = 40
"""That the cost of a step is the mean of."""


@dataclass(frozen=True)
class Outcome:
    """What came of a trial; numbers are those up to where it was lost.

    Attributes:
        trial: The trial.
        recording: What happened.
        lost: When a link was half a metre off, or the simulation diverged [s]; None if never.
        error: Tracking error of the frames; None if it was lost before the second.
        torque: Sizes of the joints' torques, without those of a free root [N·m, N], or None.
        energy: What the joints gave and took, without sign and without a free root [J], or None.
    """

    trial: Trial
    recording: Recording
    lost: float | None
    error: TrackingError | None
    torque: Summary | None
    energy: float | None

    @property
    def stable(self) -> bool:
        """Whether it was never lost."""
        return self.lost is None

    @property
    def frames(self) -> int:
        """How many frames are good, one at least."""
        if self.lost is None:
            return len(self.recording)
        return max(1, int(np.searchsorted(self.recording.time, self.lost - 1e-9)))

    @property
    def name(self) -> str:
        """Controller and step, for people."""
        return f"{self.trial.controller}, {step_text(self.trial.dt)} s"

    @property
    def loss_text(self) -> str:
        """How it ended, for people."""
        return "stable" if self.lost is None else f"lost at {self.lost:.2f} s"


def compare(
    trial: Trial,
    controllers: Sequence[str],
    steps: Sequence[float],
    *,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run a trial with every controller at every step.

    Args:
        trial: What is the same for all.
        controllers: Names, as of `poise.control.registry`.
        steps: Time steps [s].
        progress: Called with the fraction that is done, 0 to 1.
    """
    trials = {name: trial.with_controller(name) for name in controllers}
    return compare_trials(trials, steps, progress=progress)


def compare_trials(
    trials: Mapping[str, Trial], steps: Sequence[float], *, progress: Progress | None = None
) -> list[Outcome]:
    """Run the trials of several controllers at every step.

    Args:
        trials: By controller; `Trial.with_controller` makes them from one.
        steps: Time steps [s].
        progress: Called with the fraction that is done, 0 to 1.
    """
    if not trials or not steps:
        raise PoiseError("a comparison needs at least one controller and one step")
    every = [trial.with_world(dt=dt) for trial in trials.values() for dt in steps]
    outcomes = []
    for k, one in enumerate(every):
        outcomes.append(attempt(one))
        if progress is not None:
            progress((k + 1) / len(every))
    return outcomes


def record_run(
    world: World,
    controller: ControllerLike,
    motion: Any,
    duration: float,
    *,
    fps: float = 60.0,
    progress: Progress | None = None,
) -> tuple[Recording, float | None]:
    """Runs a world; returns the recording, and when it diverged [s], None if it did not.

    Args:
        world: The world, at its start.
        controller: As of `poise.run`.
        motion: As of `poise.run`.
        duration: How long [s].
        fps: Frames per second of the recording.
        progress: Called with the completed fraction, 0 to 1.
    """
    recording = Recording(world, fps=fps)

    def report(t: float) -> None:
        if progress is not None:
            progress(t / duration)

    try:
        run(world, controller, motion, duration, recording, report)
    except Diverged as error:
        return recording, error.time
    return recording, None


def attempt(trial: Trial, *, fps: float = 60.0) -> Outcome:
    """Run a trial, to its end or to where it diverges.

    Args:
        trial: The trial.
        fps: Frames per second of the recording.
    """
    return evaluate(trial, *record_run(*trial.build(), trial.time, fps=fps))


def largest_step(trial: Trial, *, ladder: Sequence[float] = LADDER) -> float | None:
    """The largest step of a ladder at which a trial is stable, or None [s].

    It goes down from the large end: large steps are quick, and unstable runs end early.

    Args:
        trial: The trial, of which SEARCHED seconds are simulated; its own step does not matter.
        ladder: Steps [s].
    """
    # pushes belong to the runs that are compared; some would come after the end
    short = replace(trial, duration=min(trial.time, SEARCHED), pushes=())
    for dt in sorted(ladder, reverse=True):
        try:
            one = short.with_world(dt=dt)
        except PoiseError:
            continue  # a step that the controller refuses
        if attempt(one).stable:
            return dt
    return None


def cost(trial: Trial) -> tuple[float, float | None]:
    """Seconds of a command and of a whole step; None for the latter if it diverges.

    A step is controller and world together, the mean of the clip's first ones. Embedded stable PD
    hands over targets of many steps at once, and its work is in the world's part.

    Args:
        trial: The trial.
    """
    world, controller, motion = replace(trial, pushes=()).build()
    start = world.state.copy()
    target = trial.clip.target(trial.dt)

    def steps() -> None:
        world.reset(start)
        run(world, controller, motion, STEPS * trial.dt)

    decide = best(lambda: controller(start, target), windows=10)
    try:
        return decide, best(steps, windows=10) / STEPS
    except Diverged:
        return decide, None


def evaluate(trial: Trial, recording: Recording, lost: float | None) -> Outcome:
    """The outcome of a run.

    Args:
        trial: The trial.
        recording: What happened.
        lost: When it diverged [s]; None if it reached its end.
    """
    scene = recording.scene
    error = measure.tracking_error(scene, recording.q, trial.clip.q(recording.time))
    near = np.isfinite(error.position).all(axis=1) & (error.position.max(axis=1) < LOST)
    if not near.all():
        lost = float(recording.time[near.argmin()])
    outcome = Outcome(trial, recording, lost, None, None, None)
    k = outcome.frames
    if k < 2:
        return outcome
    error = TrackingError(*(values[:k] for values in error))
    joints = scene.forest.kind != KINDS["free"]
    sizes = measure.joint_torque(scene, recording.torque[1:k])[:, joints]
    power = measure.joint_power(scene, recording.torque[1:k], recording.v[1:k])[:, joints]
    passed = np.diff(recording.time[:k])
    return replace(
        outcome,
        error=error,
        torque=measure.summary(sizes),
        energy=float((np.abs(power).sum(axis=1) * passed).sum()),
    )


# ---- side by side: one recording in which the characters of several runs move together

GAP = 0.4
"""Between neighbours, where they come nearest [m]."""

NEAREST = 1.2
"""From one to the next, however slim they are: their names need room [m]."""

TRAVEL = 0.5
"""A clip whose root ends further away than this has a direction [m]."""


def side_by_side(outcomes: Sequence[Outcome], *, fps: float = 30.0) -> Recording:
    """One recording in which the characters of several runs move side by side.

    They stand in a row across the way that the clip goes, in the order given. A run that was lost
    stops in its last good pose. The targets are the clip's poses. It shows poses: contacts and
    torques are those of the runs, which it does not hold.

    Args:
        outcomes: Runs of the same clip.
        fps: Frames per second.
    """
    if not outcomes:
        raise PoiseError("there is no run to show")
    clip, ground = outcomes[0].trial.clip, outcomes[0].trial.ground
    places = _places(clip, len(outcomes))
    free = clip.character.joints[0].kind == "free"
    characters = [
        _place(one.trial.character, _label(one), None if free else place)
        for one, place in zip(outcomes, places, strict=True)
    ]
    world = World(characters, dt=1.0 / fps, ground=ground, projectiles=0)  # never stepped
    recording = Recording(world, fps=fps)
    shift = np.zeros((len(outcomes), clip.character.nq))
    if free:
        shift[:, :2] = places
    for k in range(int(outcomes[0].trial.time * fps + 1e-9) + 1):
        t = k / fps
        poses = np.stack([_pose_at(one, t) for one in outcomes]) + shift
        world.reset(State(poses.ravel(), None, np.array(t)))
        recording.append(Target((clip.q(t) + shift).ravel()))
    return recording


def _label(one: Outcome) -> str:
    return one.name if one.stable else f"{one.name}, {one.loss_text}"


def _place(character: Character, name: str, place: Floats | None) -> Character:
    """The character under another name; a fixed one is moved to its place."""
    if place is None:
        return replace(character, name=name)
    root = character.links[0]
    x, y, z = root.pos
    moved = replace(root, pos=(x + float(place[0]), y + float(place[1]), z))
    return replace(character, name=name, links=(moved, *character.links[1:]))


def _places(clip: Clip, count: int) -> Floats:
    """Where each of them is put, across the way of the clip, shape (count, 2) [m]."""
    at, _ = dynamics.forward_kinematics(clip.character, clip.frames)
    way = at[-1, 0, :2] - at[0, 0, :2]
    length = float(np.hypot(*way))
    ahead = way / length if length > TRAVEL else np.array([1.0, 0.0])
    across = np.array([ahead[1], -ahead[0]])
    width = max(float(np.ptp(at[..., :2] @ across)) + GAP, NEAREST)
    return np.asarray(np.outer(width * (np.arange(count) - 0.5 * (count - 1)), across))


def _pose_at(one: Outcome, t: float) -> Floats:
    """Where the character of a run is at time t [s]."""
    frame = int(np.searchsorted(one.recording.time, t - 1e-9))
    return np.asarray(one.recording.q[min(frame, one.frames - 1)])
