"""Configurations on their manifold: q ⊕ v dt and q1 ⊖ q0, for many frames at once.

A tangent vector has the layout of v: world translation and body rotation vector for a free joint, a
rotation vector in the child's frame for a ball, a number for hinge and slide. The convention is
that of MuJoCo's mj_integratePos and mj_differentiatePos.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from poise.math import rotation
from poise.math.arrays import Floats

if TYPE_CHECKING:
    from poise.model.character import Character


def integrate(character: Character, q: ArrayLike, v: ArrayLike, dt: float = 1.0) -> Floats:
    """Positions q ⊕ v dt, shape (..., nq); quaternions come out normalized.

    Args:
        character: The character.
        q: Positions, shape (..., nq).
        v: Velocities, held over the time step [m/s, rad/s], shape (..., nv).
        dt: Time step [s]; with 1, v is a displacement [m, rad].
    """
    q, step = np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64) * dt
    lead = np.broadcast_shapes(q.shape[:-1], step.shape[:-1])
    out = np.array(np.broadcast_to(q, (*lead, character.nq)))
    for plain_q, plain_v, quat, turn in _blocks(character):
        out[..., plain_q] += step[..., plain_v]
        if quat is not None:
            moved = rotation.multiply(out[..., quat], rotation.exp(step[..., turn]))
            out[..., quat] = moved / np.linalg.norm(moved, axis=-1, keepdims=True)
    return out


def difference(character: Character, q1: ArrayLike, q0: ArrayLike) -> Floats:
    """Displacements q1 ⊖ q0 that lead from q0 to q1 [m, rad], shape (..., nv).

    Rotations go the short way round.

    Args:
        character: The character.
        q1: Positions at the end, shape (..., nq).
        q0: Positions at the beginning, shape (..., nq).
    """
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
    """Ball and free joints: name, quaternion in q, rotation vector in v."""
    found = []
    for joint, (_, _, quat, turn) in zip(character.joints, _blocks(character), strict=True):
        if quat is not None:
            found.append((joint.name, quat, turn))
    return found


def _blocks(character: Character) -> Iterator[tuple[slice, slice, slice | None, slice]]:
    """For each joint: its plain numbers in q and v, its quaternion in q, its rotation in v."""
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
