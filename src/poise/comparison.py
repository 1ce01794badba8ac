"""Comparison: one clip, several controllers, several steps, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poise import measure
from poise.arrays import Floats
from poise.character import Character
from poise.control.named import named, named_controller
from poise.errors import Diverged, PoiseError
from poise.measure import Summary, TrackingError
from poise.recording import Recording
from poise.state import State
from poise.trial import Trial, run_trial
from poise.world import World

LADDER = (1 / 2000, 1 / 1000, 1 / 600, 1 / 480, 1 / 300, 1 / 240, 1 / 180, 1 / 120, 1 / 90, 1 / 60,
          1 / 45, 1 / 30, 1 / 20, 1 / 15)  # fmt: skip
"""Steps among which the largest stable one is looked for [s]."""

LOST = 1.0
"""A run whose links are further off than this, relative to the root, is not stable [m]."""

APART = 1.6
"""Between characters that stand side by side [m]."""

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    Attributes:
        trial: The trial.
        recording: What happened, up to where it diverged.
        stable: Whether it reached its end, no link more than a metre off.
        error: Tracking error of its frames, or None.
        torque: Sizes of the joints' torques [N·m, N], or None.
        power: Mean of what the joints' drives gave and took, without sign [W], or None.
        seconds: Of one step, controller and world together, the mean.
    """

    trial: Trial
    recording: Recording | None
    stable: bool
    error: TrackingError | None
    torque: Summary | None
    power: float | None
    seconds: float

    @property
    def name(self) -> str:
        """Controller and step, for people."""
        return f"{self.trial.controller}, 1/{1.0 / self.trial.dt:.0f} s"


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
        controllers: Names, as of `poise.control.named`.
        steps: Time steps [s].
        progress: Called with the share that is done, 0 to 1.
    """
    if not controllers or not steps:
        raise PoiseError("a comparison needs at least one controller and one step")
    for name in controllers:
        named(name)
    runs = [(name, dt) for name in controllers for dt in steps]
    outcomes = []
    for k, (name, dt) in enumerate(runs):
        outcomes.append(attempt(replace(trial, controller=name, dt=dt)))
        if progress is not None:
            progress((k + 1) / len(runs))
    return outcomes


def attempt(trial: Trial) -> Outcome:
    """Run a trial, to its end or to where it diverges."""
    start = time.perf_counter()
    try:
        recording = run_trial(trial)
    except Diverged:
        return Outcome(trial, None, False, None, None, None, time.perf_counter() - start)
    seconds = (time.perf_counter() - start) / max(1, round(trial.time / trial.dt))
    clip, scene = trial.clip, recording.scene
    error = measure.tracking_error(scene, recording.q, clip.q(recording.time))
    stable = bool(np.isfinite(error.position).all() and error.position.max() < LOST)
    torque = measure.summary(measure.joint_torque(scene, recording.torque)[:, 1:])
    power = float(np.abs(measure.power(recording.torque, recording.v).sum(axis=-1)).mean())
    return Outcome(trial, recording, stable, error, torque, power, seconds)


def largest_step(trial: Trial, *, ladder: Sequence[float] = LADDER) -> float | None:
    """The largest step of a ladder at which a trial is stable, as are all smaller ones [s].

    Args:
        trial: The trial; its step does not matter.
        ladder: Steps, ascending [s].
    """
    found = None
    # from the large end: most are stable there, and large steps are quick
    for dt in reversed(ladder):
        if attempt(replace(trial, dt=dt)).stable:
            found = dt
            break
    return found


def side_by_side(outcomes: Sequence[Outcome], *, fps: float = 30.0) -> Recording:
    """One recording in which the characters of several runs move side by side.

    It shows poses: contacts and torques are those of the runs, which it does not hold.

    Args:
        outcomes: Runs of the same clip; those that diverged at once are left out.
        fps: Frames per second.
    """
    shown = [one for one in outcomes if one.recording is not None]
    if not shown:
        raise PoiseError("no run has anything to show: all diverged")
    cast = [replace_name(one.trial.character, one.name) for one in shown]
    ground = shown[0].trial.ground
    world = World(cast, dt=1.0 / fps, ground=ground, contact=None, spares=0)
    recording = Recording(world, fps=fps)
    longest = max(one.trial.time for one in shown)
    for k in range(int(longest * fps) + 1):
        q = [_pose_at(one, k / fps, i, len(shown)) for i, one in enumerate(shown)]
        world.reset(State(np.concatenate(q), None, np.array(k / fps)))
        recording.append()
    return recording


def replace_name(character: Character, name: str) -> Character:
    """The same character under another name."""
    return replace(character, name=name)


def _pose_at(one: Outcome, t: float, i: int, count: int) -> Floats:
    """Where the i-th of some characters is at time t [s], moved aside."""
    recording = one.recording
    assert recording is not None
    frame = int(np.searchsorted(recording.time, t - 1e-9))
    q = recording.q[min(frame, len(recording) - 1)].copy()
    joints: Any = one.trial.character.joints
    if joints and joints[0].kind == "free":
        q[1] += APART * (i - 0.5 * (count - 1))
    return np.asarray(q)


def controller_cost(trial: Trial, calls: int = 200) -> float:
    """Seconds of one call of the controller itself, in the clip's first state."""
    world = World(trial.character, dt=trial.dt, ground=trial.ground)
    world.reset(trial.clip.state(0.0))
    servo = named_controller(
        trial.controller, world, root=trial.root, frequency=trial.frequency, damping=trial.damping
    )
    target, state = trial.clip.target(trial.dt), world.state
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            servo(state, target)
        best = min(best, (time.perf_counter() - start) / calls)
    return float(best)
