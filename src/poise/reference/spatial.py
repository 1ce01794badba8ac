"""Featherstone's 6-D spatial algebra; rotations are quaternions of `poise.math.rotation`.

Quaternions are w x y z and turn child coordinates into parent coordinates. With half angle
phi/2 and axis n, exp(phi n) = (cos phi/2, n sin phi/2) and log is its inverse, the short way
round: |log q| <= pi, so that q and -q, the same rotation, have the same logarithm.

A spatial vector stacks angular over linear, [w; v] for motion and [n; f] for force, taken at
the origin of its frame. For a frame B with pose (R, p) in A (R turns B's coordinates into A's,
p is B's origin in A), motion vectors change coordinates by

    X_BA = [ R'        0  ]          X_AB = [ R      0 ]
           [ -R' [p]x  R' ]                 [ [p]x R  R ]

and force vectors by the transposes: f_A = X_BA' f_B. Featherstone, *Rigid Body Dynamics
Algorithms* (RBDA), 2.8; the cross products are his 2.31 and 2.32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def skew(x: ArrayLike) -> Array:
    """The 3x3 matrix [x]x with [x]x y = x cross y."""
    a, b, c = np.asarray(x, dtype=float)
    return np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])


def crossm(v: ArrayLike) -> Array:
    """The 6x6 matrix v x, which acts on motion vectors (RBDA 2.31)."""
    w, u = (skew(x) for x in np.split(np.asarray(v, dtype=float), 2))
    return np.block([[w, np.zeros((3, 3))], [u, w]])


def crossf(v: ArrayLike) -> Array:
    """The 6x6 matrix v x*, which acts on force vectors (RBDA 2.32)."""
    product: Array = -crossm(v).T
    return product


def transform_into(R: Array, p: Array) -> Array:
    """X_BA for a frame B with pose (R, p) in A: motion in A's coordinates into B's."""
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(p), R.T]])


def transform_out_of(R: Array, p: Array) -> Array:
    """X_AB for a frame B with pose (R, p) in A: motion in B's coordinates into A's."""
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def spatial_inertia(mass: float, com: ArrayLike, inertia: ArrayLike) -> Array:
    """The 6x6 inertia at the frame's origin (RBDA 2.63).

    Args:
        mass: Mass [kg].
        com: Center of mass in the frame [m], shape (3,).
        inertia: Rotational inertia about the center of mass, frame axes [kg·m²], shape (3, 3).
    """
    c = skew(com)
    return np.block(
        [[np.asarray(inertia) + mass * c @ c.T, mass * c], [mass * c.T, mass * np.eye(3)]]
    )


def linear_first(x: Array) -> Array:
    """Swap angular and linear rows: Featherstone's order into poise's, and back."""
    return np.concatenate([x[3:], x[:3]])
