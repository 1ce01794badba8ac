"""Rotations: quaternions w x y z and matrices in arrays; leading axes are batch axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from poise.math.arrays import Floats

SMALL = 1e-8
"""Half angles below this take the first terms of the series [rad]."""


def multiply(a: ArrayLike, b: ArrayLike) -> Floats:
    """Products of quaternions (..., 4)."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, dtype=np.float64), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, dtype=np.float64), -1, 0)
    out = np.empty((*np.broadcast_shapes(aw.shape, bw.shape), 4))
    out[..., 0] = aw * bw - ax * bx - ay * by - az * bz
    out[..., 1] = aw * bx + ax * bw + ay * bz - az * by
    out[..., 2] = aw * by - ax * bz + ay * bw + az * bx
    out[..., 3] = aw * bz + ax * by - ay * bx + az * bw
    return out


def conjugate(a: ArrayLike) -> Floats:
    """Inverses of unit quaternions (..., 4)."""
    return np.asarray(a, dtype=np.float64) * [1.0, -1.0, -1.0, -1.0]


def rotate(a: ArrayLike, p: ArrayLike) -> Floats:
    """Vectors (..., 3) turned by unit quaternions (..., 4)."""
    a, p = np.asarray(a, dtype=np.float64), np.asarray(p, dtype=np.float64)
    w, u = a[..., :1], a[..., 1:]
    t = 2.0 * np.cross(u, p)
    turned: Floats = p + w * t + np.cross(u, t)
    return turned


def turn(axis: ArrayLike, angle: ArrayLike) -> Floats:
    """Quaternions of turns by angles [rad] (...) about a unit axis (3,)."""
    half = np.asarray(angle, dtype=np.float64)[..., None] / 2.0
    return np.concatenate([np.cos(half), np.sin(half) * np.asarray(axis)], axis=-1)


def exp(r: ArrayLike) -> Floats:
    """Quaternions (..., 4) of rotation vectors (..., 3) [rad]."""
    r = np.asarray(r, dtype=np.float64)
    half = np.linalg.norm(r, axis=-1, keepdims=True) / 2.0
    scale = 0.5 * np.sinc(half / np.pi)
    return np.concatenate([np.cos(half), scale * r], axis=-1)


def log(a: ArrayLike) -> Floats:
    """Rotation vectors (..., 3) [rad] of unit quaternions (..., 4), the short way round."""
    a = np.asarray(a, dtype=np.float64)
    a = np.where(a[..., :1] < 0.0, -a, a)
    sine = np.linalg.norm(a[..., 1:], axis=-1, keepdims=True)
    half = np.arctan2(sine, a[..., :1])
    scale = np.where(sine > SMALL, 2.0 * half / np.maximum(sine, SMALL), 2.0)
    return np.asarray(scale * a[..., 1:])


def between(a: ArrayLike, b: ArrayLike) -> Floats:
    """Quaternions of the shortest turns that take directions a to b, (..., 3) each."""
    a, b = _unit(a), _unit(b)
    w = 1.0 + np.sum(a * b, axis=-1, keepdims=True)
    out = np.concatenate([w, np.cross(a, b)], axis=-1)
    # opposite directions: half a turn about any axis across
    across = np.cross(a, np.where(np.abs(a[..., :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
    back = np.concatenate([np.zeros_like(w), across], axis=-1)
    out = np.where(w < 1e-9, back, out)
    return np.asarray(out / np.linalg.norm(out, axis=-1, keepdims=True))


def align_signs(quat: Floats) -> Floats:
    """Unit quaternions (k, ..., 4) whose signs go the short way from frame to frame.

    Those that are so already stay the same, to the bit.
    """
    length = np.linalg.norm(quat, axis=-1, keepdims=True)
    quat = np.where(np.abs(length - 1.0) < 1e-15, quat, quat / length)
    flips = np.sum(quat[1:] * quat[:-1], axis=-1) < 0.0
    quat[1:] *= np.where(np.cumsum(flips, axis=0) % 2 == 1, -1.0, 1.0)[..., None]
    return quat


def slerp(a: Floats, b: Floats, u: Floats) -> Floats:
    """Quaternions at fractions u (n, 1) of the shorter arcs from a to b, unit, (n, 4) each."""
    dot = np.sum(a * b, axis=1, keepdims=True)
    b, dot = np.where(dot < 0.0, -b, b), np.abs(dot)
    angle = np.arctan2(np.linalg.norm(b - dot * a, axis=1)[:, None], dot)
    # sin(u x) / sin(x), finite at 0
    near = angle < 1e-6
    sine = np.where(near, 1.0, np.sin(angle))
    wa, wb = (np.where(near, x, np.sin(x * angle) / sine) for x in (1.0 - u, u))
    return normalize(wa * a + wb * b)


def mean(a: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """The mean rotation (4,) of quaternions (k, 4), in the sense of least squares."""
    a = np.asarray(a, dtype=np.float64).reshape(-1, 4)
    w = np.ones(len(a)) if weights is None else np.asarray(weights, dtype=np.float64)
    found: Floats = np.linalg.eigh(np.einsum("k,ki,kj->ij", w, a, a))[1][:, -1]
    return found if found[0] >= 0.0 else -found


def quat_matrix(quat: ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(quat, dtype=np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _coefficients() -> Floats:
    """The nine entries of |q|² R as sums of the sixteen products q_i q_j, shape (16, 9)."""
    w, x, y, z = range(4)
    entries = (
        ((w, w, 1), (x, x, 1), (y, y, -1), (z, z, -1)),
        ((x, y, 2), (w, z, -2)),
        ((x, z, 2), (w, y, 2)),
        ((x, y, 2), (w, z, 2)),
        ((w, w, 1), (x, x, -1), (y, y, 1), (z, z, -1)),
        ((y, z, 2), (w, x, -2)),
        ((x, z, 2), (w, y, -2)),
        ((y, z, 2), (w, x, 2)),
        ((w, w, 1), (x, x, -1), (y, y, -1), (z, z, 1)),
    )
    table = np.zeros((4, 4, 9))
    for k, terms in enumerate(entries):
        for i, j, factor in terms:
            table[i, j, k] = factor
    return table.reshape(16, 9)


_TABLE = _coefficients()


def quat_matrices(quat: Floats) -> Floats:
    """Rotation matrices (..., 3, 3) of many unit quaternions (..., 4) in few array operations.

    As `quat_matrix`, but for the rounding of the last bit.
    """
    pairs = quat[..., :, None] * quat[..., None, :]
    lead = quat.shape[:-1]
    return (pairs.reshape(*lead, 16) @ _TABLE).reshape(*lead, 3, 3)


def normalize(quat: Floats) -> Floats:
    """Quaternions (..., 4) scaled to length 1."""
    return np.asarray(quat / np.sqrt((quat * quat).sum(axis=-1, keepdims=True)))


def quat_from_matrix(R: Floats) -> Floats:
    """Unit quaternions (..., 4) of rotation matrices (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    quat: Floats = Rotation.from_matrix(R).as_quat()[..., [3, 0, 1, 2]]
    return quat


def quat_from_z(axis: Sequence[float]) -> tuple[float, ...]:
    """Quaternion of a rotation that takes +z to a unit axis."""
    x, y, z = axis
    # the shortest one; below the horizon, first turn z to -z about x, then go the shortest way
    quat = (1.0 + z, -y, x, 0.0) if z >= 0.0 else (-y, 1.0 - z, 0.0, x)
    length = math.hypot(*quat)
    return tuple(x / length for x in quat)


def product(a: Floats, b: Floats) -> Floats:
    """The matrix product a b of small matrices, shapes (..., i, k) and (..., k, j).

    Terms are added in order, so that the bits do not depend on the BLAS, as those of `a @ b` do.
    """
    found: Floats = a[..., :, :1] * b[..., :1, :]
    for k in range(1, a.shape[-1]):
        found = found + a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return found


def _unit(x: ArrayLike) -> Floats:
    x = np.asarray(x, dtype=np.float64)
    unit: Floats = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return unit
