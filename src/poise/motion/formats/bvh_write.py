"""Clips to BVH files."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np

from poise import dynamics
from poise.anatomy.rig import (
    AXES,
    IDENTITY,
    Rig,
    RigJoint,
    poses_of,
)
from poise.io.files import write_atomically
from poise.math.arrays import Floats, children_of, depth_first
from poise.math.rotation import conjugate, multiply, quat_matrix, rotate
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.formats import name_in_errors

TURNS = ("Zrotation", "Yrotation", "Xrotation")
MOVES = ("Xposition", "Yposition", "Zposition")


def write(clip: Clip, path: str | os.PathLike[str]) -> None:
    """Write a clip as BVH, on the rig of the file it came from, whole or not at all.

    Names, order, offsets, channels, unit and up axis are those of the source; without one, they
    are made from the character: centimetres, y up. Joints that were merged are written rigid.

    Args:
        clip: The motion.
        path: Where to.
    """
    with name_in_errors(path):
        rig = bvh_rig(clip)
        values = channels_of(rig, *poses_of(clip.character, rig, clip.frames))
    text = _hierarchy_text(rig) + _motion_text(rig, values, clip.fps)
    write_atomically(path, text.encode("utf-8"))


def bvh_rig(clip: Clip) -> Rig:
    """The rig on which a clip is written: that of its source, as far as it is one of BVH."""
    source = clip.source
    moving = {link.name for link in clip.character.links if link.joints}
    if source is None or not moving or not moving.issubset(source.names):
        return rig_of(clip.character, clip.fps)
    if source.kind == "bvh":
        return replace(source, fps=clip.fps)
    joints = tuple(
        replace(joint, channels=(MOVES if i == 0 or joint.moves else ()) + TURNS, quat=IDENTITY)
        for i, joint in enumerate(source.joints)
    )
    return _depth_first(replace(source, joints=joints, kind="bvh", fps=clip.fps))


def _depth_first(rig: Rig) -> Rig:
    """The same rig with its joints in the order in which a BVH file has them."""
    order = depth_first([joint.parent for joint in rig.joints])
    where = {old: new for new, old in enumerate(order)}
    where[-1] = -1
    joints = [rig.joints[i] for i in order]
    return replace(rig, joints=tuple(replace(j, parent=where[j.parent]) for j in joints))


def rig_of(character: Character, fps: float) -> Rig:
    """A BVH rig from a character: one joint per link, centimetres, y up."""
    rest, turned = dynamics.forward_kinematics(character, character.rest_q)
    index = {link.name: i for i, link in enumerate(character.links)}
    empty = Rig((), "bvh", 0.01, "y", fps, character.name)
    parents = {link.parent for link in character.links}
    joints = []
    for i, link in enumerate(character.links):
        parent = -1 if link.parent is None else index[link.parent]
        offset = rest[i] - (rest[parent] if parent >= 0 else 0.0)
        off = any(j.kind in ("free", "slide") or any(j.pos) for j in link.joints)
        end = None
        if link.name not in parents:
            end = tuple(
                (rotate(turned[i], 2.0 * np.array(link.com)) @ empty.to_world / 0.01).tolist()
            )
        joints.append(
            RigJoint(
                link.name,
                parent,
                tuple((offset @ empty.to_world / 0.01).tolist()),
                (MOVES if off or parent < 0 else ()) + TURNS,
                end,
            )
        )
    return replace(empty, joints=tuple(joints))


def _hierarchy_text(rig: Rig) -> str:
    children = children_of([joint.parent for joint in rig.joints])
    lines = ["HIERARCHY"]
    # joints to open, and braces to close, the next one last
    todo: list[tuple[int | None, int]] = [(0, 0)]
    while todo:
        i, depth = todo.pop()
        pad = "\t" * depth
        if i is None:
            lines.append(pad + "}")
            continue
        joint = rig.joints[i]
        lines.append(f"{pad}{'JOINT' if depth else 'ROOT'} {joint.name}")
        lines.append(pad + "{")
        lines.append(f"{pad}\tOFFSET {_vector(joint.offset)}")
        names = "".join(f" {channel}" for channel in joint.channels)
        lines.append(f"{pad}\tCHANNELS {len(joint.channels)}{names}")
        end = joint.end
        if end is None and not children[i]:
            end = (0.0, 0.0, 0.0)  # every chain ends in an End Site
        if end is not None:
            lines += [f"{pad}\tEnd Site", pad + "\t{"]
            lines += [f"{pad}\t\tOFFSET {_vector(end)}", pad + "\t}"]
        todo.append((None, depth))
        todo += [(child, depth + 1) for child in reversed(children[i])]
    return "\n".join(lines) + "\n"


def _vector(values: tuple[float, ...]) -> str:
    return " ".join(f"{value + 0.0:.10g}" for value in values)


def _motion_text(rig: Rig, values: Floats, fps: float) -> str:
    decimals = max(6, math.ceil(8 + math.log10(rig.unit)))
    formats = [
        f"%.{decimals}f" if channel.endswith("position") else "%.6f"
        for joint in rig.joints
        for channel in joint.channels
    ]
    line = " ".join(formats)
    rows = "\n".join(line % tuple(row) for row in values.tolist())
    return f"MOTION\nFrames: {len(values)}\nFrame Time: {1.0 / fps:.12g}\n{rows}\n"


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
