"""Channels and poses: what the numbers of a frame mean, both ways.

R = R_c1(a1) R_c2(a2) R_c3(a3)      the rotation channels c1 c2 c3, in their order, in degrees
p = positions, where a joint has position channels; they replace its offset
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from poise.anatomy.rig import AXES, IDENTITY, Rig, forward_kinematics, frames_on
from poise.anatomy.skeleton import character_from_rig
from poise.errors import ClipError, PoiseError
from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply, quat_matrix, rotate, turn
from poise.model.character import Character
from poise.motion.clip import Clip


def clip_from_channels(rig: Rig, values: Floats, character: Character | None, path: Path) -> Clip:
    """A clip from the channels (k, channels) of all joints, one after another, in degrees."""
    rotations, offsets = local_poses(rig, values)
    try:
        if character is None:
            still, sliding = _still(rig, rotations), _sliding(rig, offsets)
            character = character_from_rig(rig, still=still, sliding=sliding)
        q = frames_on(character, rig, *forward_kinematics(rig, rotations, offsets))
        return Clip(character, q, rig.fps, source=rig, name=path.stem)
    except PoiseError as error:
        raise ClipError(f"{path}: {error}") from error


def local_poses(rig: Rig, values: Floats) -> tuple[Floats, Floats]:
    """Rotations (joints, k, 4) of joints in their parents, and offsets (joints, k or 1, 3) [m].

    Args:
        rig: The rig.
        values: Channels of all joints, in file units and degrees, (k, channels).
    """
    k = len(values)
    rotations = np.empty((len(rig.joints), k, 4))
    rotations[:] = IDENTITY
    wide = k if any(joint.moves for joint in rig.joints) else 1
    offsets = np.repeat(rig.offsets[:, None], wide, axis=1)
    column = 0
    for i, joint in enumerate(rig.joints):
        turned: Floats | None = None
        for channel in joint.channels:
            axis = AXES[channel[0]]
            number = values[:, column]
            column += 1
            if channel.endswith("position"):
                # this channel replaces the offset along its axis
                along = rig.to_world[:, axis]
                offsets[i] += np.outer(number * rig.unit - offsets[i] @ along, along)
            else:
                step = turn(rig.axis(i, axis), np.radians(number))
                turned = step if turned is None else multiply(turned, step)
        if turned is not None:
            rotations[i] = turned
    return rotations, offsets


def _still(rig: Rig, rotations: Floats) -> set[str]:
    """Names of joints that never turn."""
    most = np.abs(rotations[..., 1:]).max(axis=(1, 2))
    return {name for name, size in zip(rig.names, most, strict=True) if size < 1e-9}


def _sliding(rig: Rig, offsets: Floats) -> set[str]:
    """Names of joints below the root whose place in the parent is not their offset."""
    size = float(np.ptp(rig.rest, axis=0).max())
    away = np.abs(offsets - rig.offsets[:, None]).max(axis=(1, 2))
    return {name for name, d in zip(rig.names[1:], away[1:], strict=True) if d > 1e-4 * size}


def channels_of(rig: Rig, positions: Floats, rotations: Floats) -> Floats:
    """Channels (k, channels) of joints at these poses, in file units and degrees.

    Args:
        rig: The rig.
        positions: Of the joints in the world [m], (joints, k, 3).
        rotations: Of the joints from the rest pose, world axes, (joints, k, 4).
    """
    columns: list[Floats] = []
    for i, joint in enumerate(rig.joints):
        p = joint.parent
        back = conjugate(rotations[p]) if p >= 0 else np.array(IDENTITY)
        origin = positions[p] if p >= 0 else 0.0
        offset = rotate(back, positions[i] - origin) @ rig.to_world / rig.unit
        turned = multiply(back, rotations[i])
        turned[:, 1:] = turned[:, 1:] @ rig.to_world
        angles = iter(np.degrees(euler_angles(turned, joint.turns)).T)
        for channel in joint.channels:
            axis = AXES[channel[0]]
            columns.append(offset[:, axis] if channel.endswith("position") else next(angles))
    return np.stack(columns, axis=1)


def euler_angles(quats: Floats, axes: tuple[int, ...]) -> Floats:
    """Angles [rad] (k, len(axes)) with R = R_axes[0] R_axes[1] R_axes[2], continuous in time.

    With one or two axes, R is taken to be made of turns about these alone.

    Args:
        quats: Rotations (k, 4).
        axes: Up to three different axes, 0 1 2 for x y z.
    """
    if not axes:
        return np.empty((len(quats), 0))
    i, j, k = (axes + tuple({0, 1, 2} - set(axes)))[:3]
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    R = quat_matrix(quats)
    if len(axes) < 3:
        first = np.arctan2(sign * R[:, k, j], R[:, j, j])
        second = np.arctan2(sign * R[:, i, k], R[:, i, i])
        few: Floats = np.unwrap(np.stack([first, second], axis=1)[:, : len(axes)], axis=0)
        return few
    cos = np.hypot(R[:, i, i], R[:, i, j])
    middle = np.arctan2(sign * R[:, i, k], cos)
    # at the pole only the sum of first and last counts: the last is 0
    pole = cos < 1e-9
    first = np.arctan2(-sign * R[:, j, k], R[:, k, k])
    first = np.where(pole, np.arctan2(sign * R[:, k, j], R[:, j, j]), first)
    last = np.where(pole, 0.0, np.arctan2(-sign * R[:, i, j], R[:, i, i]))
    angles: Floats = np.unwrap(np.stack([first, middle, last], axis=1), axis=0)
    return angles
