"""Quaternions w x y z and rigid poses, in plain floats or arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class Pose(NamedTuple):
    """A rigid pose: rotation as a quaternion w x y z, then position; in plain floats."""

    E: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
    r: tuple[float, ...] = (0.0, 0.0, 0.0)

    def __matmul__(self, other: Pose) -> Pose:
        x, y, z = _rotate(self.E, other.r)
        E = _multiply(self.E, other.E)
        return Pose(E, (self.r[0] + x, self.r[1] + y, self.r[2] + z))

    def inverse(self) -> Pose:
        w, x, y, z = self.E
        px, py, pz = _rotate((w, -x, -y, -z), self.r)
        return Pose((w, -x, -y, -z), (-px, -py, -pz))


def quat_matrix(quat: ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(quat, dtype=np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def product(a: Floats, b: Floats) -> Floats:
    """The matrix product a b of small matrices, shapes (..., i, k) and (..., k, j).

    Terms are added in order, so that the bits do not depend on the BLAS, as those of `a @ b` do.
    """
    found: Floats = a[..., :, :1] * b[..., :1, :]
    for k in range(1, a.shape[-1]):
        found = found + a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return found


def quat_from_z(axis: Sequence[float]) -> tuple[float, ...]:
    """Quaternion of a rotation that takes +z to a unit axis."""
    x, y, z = axis
    # the shortest one; below the horizon, first turn z to -z about x, then go the shortest way
    quat = (1.0 + z, -y, x, 0.0) if z >= 0.0 else (-y, 1.0 - z, 0.0, x)
    length = math.hypot(*quat)
    return tuple(x / length for x in quat)


def _multiply(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    """Product of two quaternions."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def _rotate(quat: Sequence[float], p: Sequence[float]) -> tuple[float, float, float]:
    """A vector turned by a quaternion: p + 2 w (u x p) + 2 u x (u x p)."""
    w, x, y, z = quat
    tx, ty, tz = 2 * (y * p[2] - z * p[1]), 2 * (z * p[0] - x * p[2]), 2 * (x * p[1] - y * p[0])
    return (
        p[0] + w * tx + y * tz - z * ty,
        p[1] + w * ty + z * tx - x * tz,
        p[2] + w * tz + x * ty - y * tx,
    )
