"""Rotations: errors of ball and free joints, large and small angles and speeds, in both precisions.

With kp = 1 and kd = 0 the torque of explicit PD is minus the position error, and so is that of SPD,
with the error of the position predicted for the end of the step.
"""

from __future__ import annotations

import numpy as np
import pytest
import trees
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from poise import Command, Drive, Gains, State, Target, World, dynamics, reference
from poise.character import Character, Joint, Link
from poise.reference import spatial
from poise.reference.tree import build_tree

Array = NDArray[np.float64]

# quaternions carry some units in the last place into the rotation vector, at most pi long
PRECISION = {"float64": 4e-15, "float32": 2e-6}

AXES = [(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.48, -0.64, 0.6), (1e-9, 0.0, 1.0)]
both_dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
batches = pytest.mark.parametrize("n", [None, 5])

vectors = st.lists(st.floats(-4, 4), min_size=3, max_size=3).map(np.array)
rotations = vectors.map(spatial.exp)


def ball(kind: str = "ball") -> Character:
    """One link on one joint."""
    axis = (0.0, 0.6, 0.8) if kind in ("hinge", "slide") else (0.0, 0.0, 1.0)
    link = Link("link", joints=(Joint("joint", kind, axis=axis),), mass=1.0, inertia=(1.0, 1.0, 1.0))  # type: ignore[arg-type]
    return Character("one", (link,))


def free(quat: ArrayLike) -> Array:
    """Coordinates of a free joint at the origin."""
    return np.concatenate([np.zeros(3), quat])


def error(q: ArrayLike, target: ArrayLike, dtype: str, n: int | None = None) -> Array:
    """Rotation vector from the target to q in the child's frame, of a ball joint [rad]."""
    q = np.asarray(q, dtype=float)
    rows = q if n is None else np.tile(q, (n, 1))
    rest = np.zeros(3)
    out = -dynamics.pd_force(ball(), rows, rest, (target, rest), 1.0, 0.0, dtype=dtype)
    return out if n is None else out[n - 1]


def error_ahead(
    q: ArrayLike, v: ArrayLike, target: ArrayLike, dt: float, dtype: str, n: int | None = None
) -> Array:
    """The same for the position q exp(dt v), predicted for the end of a step."""
    v = np.asarray(v, dtype=float)
    rows = v if n is None else np.tile(v, (n, 1))
    bar = target, np.zeros(3)
    _, tau = dynamics.stable_pd(ball(), q, rows, bar, 1.0, 0.0, dt, form="spd", dtype=dtype)
    return -tau if n is None else -tau[n - 1]


# errors


@both_dtypes
@given(target=rotations)
@settings(max_examples=50)
def test_a_ball_at_its_target_has_no_error(target: Array, dtype: str) -> None:
    assert np.abs(error(target, target, dtype)).max() <= PRECISION[dtype]


@batches
@both_dtypes
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 2.0, 3.0, 3.14])
def test_the_error_is_angle_times_axis(
    angle: float, axis: tuple[float, ...], dtype: str, n: int | None
) -> None:
    r = angle * np.array(axis)
    identity = spatial.exp(np.zeros(3))
    assert error(spatial.exp(r), identity, dtype, n) == pytest.approx(r, abs=PRECISION[dtype])
