"""How far a motion is from its reference: degrees and metres."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.errors import PoiseError
from poise.math.arrays import Floats, broadcast, floats, matrix
from poise.model.character import Character
from poise.model.configuration import difference
from poise.model.scene import SceneLike, scene_of


class TrackingError(NamedTuple):
    """How far links are from where the reference has them.

    Attributes:
        rotation: Angle between a link and its reference [degrees], shape (..., nl).
        position: Distance of its joint, each relative to its own root [m], shape (..., nl).
        world: Distance of its joint in the world [m], shape (..., nl).
    """

    rotation: Floats
    position: Floats
    world: Floats


class Summary(NamedTuple):
    """Mean, 95th percentile and largest of many numbers."""

    mean: float
    p95: float
    max: float


def tracking_error(character: SceneLike, q: ArrayLike, reference: ArrayLike) -> TrackingError:
    """Error of a pose against a reference pose, link by link.

    A link's place is that of its frame. The root of a scene of several parts is each part's own.

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        reference: Positions of the reference, shape (..., nq).
    """
    scene = scene_of(character)
    q, reference = broadcast(q=q, reference=reference)
    p, quat = dynamics.forward_kinematics(scene, q)
    p_ref, quat_ref = dynamics.forward_kinematics(scene, reference)
    inner = np.abs(np.sum(quat * quat_ref, axis=-1))
    # near zero the angle comes from the difference, where the cosine has no digits left
    chord = np.minimum(
        np.linalg.norm(quat - quat_ref, axis=-1), np.linalg.norm(quat + quat_ref, axis=-1)
    )
    angle = np.where(
        inner > 0.9,
        4.0 * np.arcsin(np.clip(chord / 2.0, 0, 1)),
        2.0 * np.arccos(np.clip(inner, 0, 1)),
    )
    offset = p - p_ref
    relative = offset.copy()
    for part in scene.forest.parts.values():
        relative[..., part.links, :] -= offset[..., part.links.start : part.links.start + 1, :]
    return TrackingError(
        np.degrees(angle), np.linalg.norm(relative, axis=-1), np.linalg.norm(offset, axis=-1)
    )


def summary(values: ArrayLike) -> Summary:
    """Mean, 95th percentile and largest."""
    array = floats(values, "values")
    if not array.size:
        raise PoiseError("a summary needs at least one number, got none")
    return Summary(float(array.mean()), float(np.percentile(array, 95)), float(array.max()))


def by_link(character: SceneLike, error: TrackingError) -> dict[str, dict[str, Summary]]:
    """Each link's errors over all leading axes: degrees, and metres relative to the root."""
    names = scene_of(character).forest.link_names
    return {
        name: {key: summary(values[..., i]) for key, values in error._asdict().items()}
        for i, name in enumerate(names)
    }


def turns_per_frame(character: Character, q: ArrayLike) -> Floats:
    """How far each joint turns from frame to frame [degrees], shape (k - 1, joints).

    Slides do not turn; a free joint counts by its rotation.
    """
    q = matrix(q, "q", character.nq)
    step = difference(character, q[1:], q[:-1])
    turns = np.zeros((len(step), len(character.joints)))
    for j, joint in enumerate(character.joints):
        if joint.kind != "slide":
            part = step[:, character.v_slice(joint)][:, -3:]
            turns[:, j] = np.degrees(np.linalg.norm(part, axis=1))
    return turns
