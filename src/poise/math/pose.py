"""Rigid poses in plain floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


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
