"""A clip as a recording, so that videos and pages show both alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from poise.model.scene import scene_of
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.recording.frames import Block, Frames
from poise.simulation.contact import Plane
from poise.simulation.world import World
from poise.view.drawing import ground_under

SMOOTH = 60.0
"""Between the frames of a slower clip its spline is sampled at this rate or more [Hz]."""


def as_recording(motion: Any) -> Any:
    """A clip as a recording of its character on a level ground; anything else as it is.

    It has no contacts, torques and targets. The ground is that of `contact_sheet`.
    """
    if not isinstance(motion, Clip):
        return motion
    finer = max(1, math.ceil(SMOOTH / motion.fps))
    fps = finer * motion.fps
    time = np.arange((len(motion) - 1) * finer + 1) / fps
    q, v = motion.q(time), motion.v(time)
    ground = Plane(height=ground_under(scene_of(motion.character), q))
    world = World(motion.character, dt=1 / fps, ground=ground, projectiles=0, convex=False)
    frames = Frames(1, motion.character.nq, motion.character.nv)
    frames.extend(_block(time, q, v, world.gravity))
    return Recording._of(world.settings, 1 / fps, [], frames, None)


def _block(time: Any, q: Any, v: Any, gravity: Any) -> Block:
    """Frames without contacts, projectiles, memory and targets."""
    k = len(time)
    fixed = {
        "time": time[:, None],
        "q": q[:, None],
        "v": v[:, None],
        "torque": np.zeros((k, 1, v.shape[1])),
        "gravity": np.tile(gravity, (k, 1)),
        "remembers": np.zeros(k, dtype=bool),
    }
    none = np.zeros(k, dtype=np.int64)
    return Block(fixed, dict.fromkeys(("contact", "thrown", "memory", "target"), (none,)), None)
