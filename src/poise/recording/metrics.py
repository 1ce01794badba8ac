"""A recording in a few numbers, all by `poise.measure`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poise import measure
from poise.math.arrays import Floats
from poise.measure.effort import SHAKE
from poise.model.scene import Scene
from poise.recording.notes import contacts_in
from poise.simulation.contact import Contacts

if TYPE_CHECKING:
    from poise.recording.recording import Recording

LEAST = 17
"""Frames that jitter needs."""


def metrics(recording: Recording) -> dict[str, measure.Summary]:
    """As of `Recording.metrics`."""
    errors = tracking(recording)
    found = {} if errors is None else errors._asdict()
    found |= {**_effort(recording), **_energy(recording)}
    copies = (len(recording), recording.n)
    touches = all_contacts(recording)
    if len(touches.copy):
        force = measure.ground_reaction(recording.scene, touches, copies=copies).force
        found["ground_force"] = np.linalg.norm(force, axis=-1)
        depth = measure.sinking(touches, copies)
        found["depth"] = depth[np.isfinite(depth)]
    return {name: measure.summary(x) for name, x in found.items() if x.size}


def all_contacts(recording: Recording) -> Contacts:
    """Contacts of all frames; `copy` counts through frames and copies: (frames, n)."""
    columns = recording.frames.arrays()
    frame = np.repeat(np.arange(len(recording)), np.diff(columns["contact_end"], prepend=0))
    touches = contacts_in(columns["contact_which"], columns["contact"]).within(recording.scene)
    return touches._replace(copy=touches.copy + frame * recording.n)


def tracking(recording: Recording) -> measure.TrackingError | None:
    """Errors in the k frames that had a target, shape (k, n, nl) each; None where none had."""
    columns = recording.frames.arrays()
    goal = columns["target_q"]
    if not len(goal):
        return None
    # a frame has one target or none
    asked = np.diff(columns["target_end"], prepend=0) > 0
    q = columns["q"][asked]
    goal = np.broadcast_to(goal if goal.ndim == 3 else goal[:, None], q.shape)
    return measure.tracking_error(recording.scene, q, goal)


def _effort(recording: Recording) -> dict[str, Floats]:
    columns, scene = recording.frames.arrays(), recording.scene
    torque, v = columns["torque"], columns["v"]
    if not scene.nv:
        return {}
    found = {
        "torque": measure.joint_torque(scene, torque),
        "power": measure.joint_power(scene, torque, v).sum(axis=-1),
    }
    even = np.abs(np.diff(columns["time"], axis=0) - recording.interval) < 1e-6
    if even.all() and len(v) > LEAST and recording.fps > 2.0 * SHAKE:
        found["jitter"] = measure.jitter(v, recording.interval)
    return found


def _energy(recording: Recording) -> dict[str, Floats]:
    columns = recording.frames.arrays()
    scene = with_numbers(recording)
    rows = zip(columns["q"], columns["v"], columns["gravity"], strict=True)
    each = np.array([measure.energy(scene, q, v, gravity=gravity) for q, v, gravity in rows])
    return {"kinetic": each[:, 0], "potential": each[:, 1]}


def with_numbers(recording: Recording) -> Scene:
    """The scene with the world's own masses, if it has any."""
    settings = recording.settings
    if settings.mass is None and settings.inertia is None and settings.armature is None:
        return recording.scene
    return recording.world().scene
