"""Side by side: one recording in which the characters of several runs move together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from poise import dynamics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.simulation.command import Target
from poise.simulation.state import State
from poise.simulation.world import World
from poise.trials.comparison import Outcome

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
    cast = [
        _called(one.trial.character, _label(one), None if free else place)
        for one, place in zip(outcomes, places, strict=True)
    ]
    world = World(cast, dt=1.0 / fps, ground=ground, projectiles=0)  # never stepped
    recording = Recording(world, fps=fps)
    shift = np.zeros((len(outcomes), clip.character.nq))
    if free:
        shift[:, :2] = places
    for k in range(int(outcomes[0].trial.time * fps + 1e-9) + 1):
        t = k / fps
        did = np.stack([_pose_at(one, t) for one in outcomes]) + shift
        asked = clip.q(t) + shift
        world.reset(State(did.ravel(), None, np.array(t)))
        recording.append(Target(asked.ravel()))
    return recording


def _label(one: Outcome) -> str:
    return one.name if one.stable else f"{one.name}, {one.loss_text}"


def _called(character: Character, name: str, place: Floats | None) -> Character:
    """The character under another name; a fixed one hangs in its place."""
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
