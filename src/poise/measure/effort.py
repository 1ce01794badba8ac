"""Effort of the joints: torque, power, work; and high-frequency jitter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, broadcast, finite, floats, number
from poise.model.forest import KINDS
from poise.model.scene import SceneLike, scene_of

SHAKE = 15.0
"""Voluntary motion has no frequencies above this [Hz]."""


def joint_torque(character: SceneLike, tau: ArrayLike) -> Floats:
    """Size of the torque in each joint [N·m], of a slide the force [N], shape (..., joints).

    Of a ball joint it is the length of the vector; a free joint counts by its torque.

    Args:
        character: The character, or a scene.
        tau: Generalized forces, as of `world.torque`, shape (..., nv).
    """
    scene = scene_of(character)
    squared = np.square(_per_dof(tau, "tau", scene.nv))
    forest = scene.forest
    for adr in forest.v_adr[forest.kind == KINDS["free"]]:
        squared[..., adr : adr + 3] = 0.0
    return np.sqrt(np.add.reduceat(squared, forest.v_adr, axis=-1))


def torque_fraction(character: SceneLike, tau: ArrayLike) -> Floats:
    """Torque of each joint as a part of the most it can give, shape (..., joints).

    1 is all of it; NaN where nothing limits the joint. A ball limited by axis counts by the axis
    that is nearest to its limit.

    Args:
        character: The character, or a scene.
        tau: Generalized forces, as of `world.torque`, shape (..., nv).
    """
    scene = scene_of(character)
    forest = scene.forest
    limited = np.isfinite(forest.effort)
    effort = np.where(limited, np.maximum(forest.effort, 1e-9), np.nan)
    each = np.abs(_per_dof(tau, "tau", scene.nv)) / effort
    whole = np.sqrt(np.add.reduceat(np.square(each), forest.v_adr, axis=-1))
    largest = np.maximum.reduceat(each, forest.v_adr, axis=-1)
    fraction: Floats = np.where(forest.effort_per_axis == 1, largest, whole)
    return fraction


def power(tau: ArrayLike, v: ArrayLike) -> Floats:
    """Power in each degree of freedom, tau v [W], shape (..., nv); below zero where it brakes.

    Args:
        tau: Generalized forces, as of `world.torque`, shape (..., nv).
        v: Velocities, shape (..., nv).
    """
    tau, v = broadcast(tau=tau, v=v)
    return np.asarray(tau * v)


def joint_power(character: SceneLike, tau: ArrayLike, v: ArrayLike) -> Floats:
    """Power of each joint [W], shape (..., joints)."""
    scene = scene_of(character)
    each = power(_per_dof(tau, "tau", scene.nv), _per_dof(v, "v", scene.nv))
    total: Floats = np.add.reduceat(each, scene.forest.v_adr, axis=-1)
    return total


def work(tau: ArrayLike, before: ArrayLike, after: ArrayLike, dt: float) -> Floats:
    """Work that held forces do in a step, by degree of freedom [J], shape (..., nv).

    A force that is held while v goes evenly from `before` to `after` does tau (before + after)
    dt / 2; with an inertia that stays the same, that is the change of kinetic energy, exactly.

    Args:
        tau: Generalized forces of the step, as of `world.torque`, shape (..., nv).
        before: Velocities at the beginning of the step, shape (..., nv).
        after: Velocities at its end, shape (..., nv).
        dt: Length of the step [s].
    """
    tau, before, after = broadcast(tau=tau, before=before, after=after)
    return np.asarray(tau * (0.5 * (before + after)) * number(dt, "dt"))


def jitter(v: ArrayLike, dt: float, cutoff: float = SHAKE) -> Floats:
    """Root mean square over time of the acceleration above a frequency [rad/s², m/s²], (..., nv).

    The acceleration is the change of v over dt, seen through a Butterworth high-pass of fourth
    order that runs forth and back: it shifts nothing in time, and halves what is at the cutoff.

    Args:
        v: Velocities at k times, shape (k, ..., nv).
        dt: Time between them [s].
        cutoff: [Hz]; 0 takes the whole acceleration.
    """
    from scipy.signal import butter, sosfiltfilt

    dt, cutoff = number(dt, "dt"), number(cutoff, "cutoff", positive=False, unit="Hz")
    v = finite(floats(v, "v"), "v")
    if v.ndim < 2:
        raise PoiseError(f"v has shape {v.shape}, expected (k, ..., nv): the first axis is time")
    if cutoff < 0.0 or cutoff * 2.0 * dt >= 1.0:
        raise PoiseError(
            f"cutoff is {cutoff:g} Hz; every {dt:g} s it must be 0 or more and below "
            f"{0.5 / dt:g} Hz, since nothing faster can be seen"
        )
    # the filter mirrors this much at both ends
    least = 17 if cutoff else 2
    if len(v) < least:
        raise PoiseError(f"v has {len(v)} times; jitter needs {least} or more")
    a = np.diff(v, axis=0) / dt
    if cutoff:
        sections = butter(4, cutoff, "highpass", fs=1.0 / dt, output="sos")
        a = sosfiltfilt(sections, a, axis=0, padlen=15)
    rms: Floats = np.sqrt(np.mean(np.square(a), axis=0))
    return rms


def _per_dof(value: ArrayLike, name: str, nv: int) -> Floats:
    array = floats(value, name)
    if array.shape[-1:] != (nv,):
        raise PoiseError(f"{name} has shape {array.shape}, expected (..., {nv})")
    return array
