"""A recording as a table: how each link followed, what joints and ground did; ready for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise import measure
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.forest import KINDS
from poise.recording.metrics import all_contacts, tracking
from poise.recording.recording import Recording

GRAVITY_LEAST = 1e-9
"""Below this there is no weight [m/s^2]."""


def table(recording: Recording) -> dict[str, Any]:
    """Tracking, torques and contacts of a recording of one copy.

    Torques and contacts are those of the steps before the frames.

    Returns:
        A dictionary.

        - tracking: Over all links, mean, p95 and max of rotation [degrees], position relative to
          the root and in the world [m].
        - links: By link, the same, and torque: the largest in its joints [N·m, N], touching: the
          part of the time in which it touches anything.
        - torque: The largest in any joint: torque [N·m, N], joint, time [s], limit (or None).
        - hand: The largest force [N] and torque [N·m] on free roots, which no joint gives.
        - contacts: Of how many links, mean number of contacts, largest ground force [N], and in
          weights (None without gravity), deepest [m].
        - fallen: Whether a character lies at the end; None where that cannot be told of any.
    """
    if recording.n != 1:
        raise PoiseError(f"a table is of one copy; the recording has {recording.n}")
    if not len(recording):
        raise PoiseError("nothing was recorded: append() notes a frame")
    names = recording.scene.forest.link_names
    errors = tracking(recording)
    torque, touching = _link_torques(recording), _touching(recording)
    by_link = {} if errors is None else measure.by_link(recording.scene, errors)
    return {
        "tracking": None if errors is None else _summaries(errors._asdict()),
        "links": {
            name: {
                **{key: one._asdict() for key, one in by_link.get(name, {}).items()},
                "torque": float(torque[i]),
                "touching": float(touching[i]),
            }
            for i, name in enumerate(names)
        },
        "torque": _largest_torque(recording),
        "hand": _hand(recording),
        "contacts": _contacts(recording, touching),
        "fallen": _fallen(recording),
    }


def _summaries(values: dict[str, Floats]) -> dict[str, dict[str, float]]:
    return {name: measure.summary(value)._asdict() for name, value in values.items()}


def _joint_torques(recording: Recording) -> Floats:
    """Sizes of the torques of all joints but free ones, which stay 0; shape (frames, joints)."""
    sizes = measure.joint_torque(recording.scene, recording.torque)
    sizes[:, recording.scene.forest.kind == KINDS["free"]] = 0.0
    return sizes


def _link_torques(recording: Recording) -> Floats:
    """The largest torque in the joints of each link, shape (nl,)."""
    largest = np.zeros(recording.scene.nl)
    np.maximum.at(largest, recording.scene.forest.link, _joint_torques(recording).max(axis=0))
    return largest


def _largest_torque(recording: Recording) -> dict[str, Any] | None:
    forest = recording.scene.forest
    sizes = _joint_torques(recording)
    if not sizes.any():
        return None
    frame, body = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
    limit = float(forest.effort[forest.v_adr[body]])
    return {
        "torque": float(sizes[frame, body]),
        "joint": forest.joint_names[forest.joint[body]],
        "time": float(recording.time[frame]),
        "limit": limit if np.isfinite(limit) else None,
    }


def _hand(recording: Recording) -> dict[str, float] | None:
    """The largest force and torque on free roots."""
    forest = recording.scene.forest
    roots = forest.v_adr[forest.kind == KINDS["free"]]
    if not len(roots):
        return None
    whole = np.stack([recording.torque[:, v : v + 6] for v in roots])
    force, torque = (np.linalg.norm(part, axis=-1).max() for part in np.split(whole, 2, axis=-1))
    return {"force": float(force), "torque": float(torque)}


def _touching(recording: Recording) -> Floats:
    """The part of the time in which each link touches anything, shape (nl,)."""
    touches = measure.closed(all_contacts(recording))
    nl = recording.scene.nl
    on = np.zeros((len(recording), nl), dtype=bool)
    for link in (touches.link, touches.other):
        here = (link >= 0) & (link < nl)
        on[touches.copy[here], link[here]] = True
    return np.asarray(on[1:].mean(axis=0) if len(on) > 1 else on.mean(axis=0))


def _contacts(recording: Recording, touching: Floats) -> dict[str, Any]:
    touches = all_contacts(recording)
    copies = len(recording)
    counts = np.bincount(measure.closed(touches).copy, minlength=copies)[1:]
    force = measure.ground_reaction(recording.scene, touches, copies=copies).force
    largest = float(np.linalg.norm(force, axis=-1).max())
    weight = recording.scene.forest.link_mass.sum() * np.linalg.norm(recording.gravity[0])
    return {
        "links": int((touching > 0.0).sum()),
        "mean": float(counts.mean()) if len(counts) else 0.0,
        "ground_force": largest,
        "weights": float(largest / weight) if weight > GRAVITY_LEAST else None,
        "depth": float(measure.ground_contacts(touches).depth.max(initial=0.0)),
    }


def _fallen(recording: Recording) -> bool | None:
    """Whether any character has fallen; objects do not fall."""
    found = []
    for part in recording.scene.forest.parts:
        try:
            last = recording.contacts(-1)
            found.append(measure.fallen(recording.scene, recording.q[-1], last, part=part))
        except PoiseError:  # no head, or no feet
            continue
    return bool(np.any(found)) if found else None
