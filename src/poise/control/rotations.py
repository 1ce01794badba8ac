"""Rotation matrices of many quaternions in few array operations."""

from __future__ import annotations

import numpy as np

from poise.math.arrays import Floats


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


def matrices(quat: Floats) -> Floats:
    """Rotation matrices (..., 3, 3) of quaternions w x y z (..., 4) of length 1."""
    pairs = quat[..., :, None] * quat[..., None, :]
    lead = quat.shape[:-1]
    return (pairs.reshape(*lead, 16) @ _TABLE).reshape(*lead, 3, 3)


def unit(quat: Floats) -> Floats:
    """Quaternions (..., 4) scaled to length 1."""
    return np.asarray(quat / np.sqrt((quat * quat).sum(axis=-1, keepdims=True)))
