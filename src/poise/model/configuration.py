"""Configurations of a character: q ⊕ d and q1 ⊖ q0, for many frames at once.

A step d has the layout of v: world translation and body rotation vector for a free joint, a
rotation vector in the child's frame for a ball, a number for hinge and slide.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from poise.math import rotation
from poise.math.rotation import Floats
from poise.model.character import Character


def integrate(character: Character, q: ArrayLike, step: ArrayLike) -> Floats:
    """Returns q ⊕ step: poses (..., nq) after steps (..., nv) [m, rad], quaternions normalised."""
    q, step = np.asarray(q, dtype=np.float64), np.asarray(step, dtype=np.float64)
    lead = np.broadcast_shapes(q.shape[:-1], step.shape[:-1])
    out = np.array(np.broadcast_to(q, (*lead, character.nq)))
    for plain_q, plain_v, quat, turn in _blocks(character):
        out[..., plain_q] += step[..., plain_v]
        if quat is not None:
            moved = rotation.multiply(out[..., quat], rotation.exp(step[..., turn]))
            out[..., quat] = moved / np.linalg.norm(moved, axis=-1, keepdims=True)
    return out


def difference(character: Character, q0: ArrayLike, q1: ArrayLike) -> Floats:
    """Returns q1 ⊖ q0: the steps (..., nv) from poses q0 to q1, rotations the short way round."""
    q0, q1 = np.asarray(q0, dtype=np.float64), np.asarray(q1, dtype=np.float64)
    lead = np.broadcast_shapes(q0.shape[:-1], q1.shape[:-1])
    out = np.empty((*lead, character.nv))
    for plain_q, plain_v, quat, turn in _blocks(character):
        out[..., plain_v] = q1[..., plain_q] - q0[..., plain_q]
        if quat is not None:
            back = rotation.conjugate(q0[..., quat])
            out[..., turn] = rotation.log(rotation.multiply(back, q1[..., quat]))
    return out


def rotations(character: Character) -> list[tuple[str, slice, slice]]:
    """Joints with a quaternion: name, quaternion in q, rotation vector in v."""
    found = []
    for joint, (_, _, quat, turn) in zip(character.joints, _blocks(character), strict=True):
        if quat is not None:
            found.append((joint.name, quat, turn))
    return found


def _blocks(character: Character) -> Iterator[tuple[slice, slice, slice | None, slice]]:
    """Of each joint: its plain numbers in q and v, its quaternion in q, its rotation in v."""
    for joint in character.joints:
        q, v = character.q_slice(joint), character.v_slice(joint)
        plain = {"free": 3, "ball": 0}.get(joint.kind, 1)
        quat = slice(q.start + plain, q.stop) if joint.kind in ("free", "ball") else None
        yield (
            slice(q.start, q.start + plain),
            slice(v.start, v.start + plain),
            quat,
            slice(v.start + plain, v.stop),
        )
