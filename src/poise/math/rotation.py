"""Quaternions w x y z in arrays; leading axes are batch axes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

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


def mean(a: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """The mean rotation (4,) of quaternions (k, 4), in the sense of least squares."""
    a = np.asarray(a, dtype=np.float64).reshape(-1, 4)
    w = np.ones(len(a)) if weights is None else np.asarray(weights, dtype=np.float64)
    found: Floats = np.linalg.eigh(np.einsum("k,ki,kj->ij", w, a, a))[1][:, -1]
    return found if found[0] >= 0.0 else -found


def _unit(x: ArrayLike) -> Floats:
    x = np.asarray(x, dtype=np.float64)
    unit: Floats = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return unit
