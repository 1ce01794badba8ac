"""GLB files: skeleton and animation, to and from Blender and other programs.

Reading takes the skeleton of a skin, or the nodes that move, and one animation, sampled at a
constant rate; the character is made from the skeleton. Joints turn, and slide where they leave
their place by more than a hundredth of the skeleton's size. A file that poise wrote brings its own
character and comes back as it went.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from poise.anatomy.rig import Rig, RigJoint, frames_on
from poise.anatomy.skeleton import character_from_rig
from poise.characters import as_builtin
from poise.dynamics import forward_kinematics
from poise.errors import ClipError
from poise.io.files import write_atomically
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.model.character import Character
from poise.model.formats import yaml
from poise.motion.clip import Clip
from poise.motion.formats import name_in_errors
from poise.motion.formats.glb_file import GlbFile, to_float64
from poise.motion.formats.glb_skeleton import MOST_FPS, MOST_POSES, Motion, Skeleton, rotations
from poise.motion.formats.glb_write import AXES, dump, to_file
from poise.motion.formats.npz import rig_from

CHUNK = 1024
"""Frames that are worked on at a time, so that long motions of large files fit into memory."""

SAME = 1e-3
"""A file of ours whose nodes are further from its q than this [m, rad] was changed since."""


def write(clip: Clip, path: str | os.PathLike[str], *, skin: bool = True) -> None:
    """Write a clip on its character as GLB.

    Skinned is the default because it is what one expects in Blender: one armature with all joints
    of the source as bones, one action, and one mesh that follows, ready to be retargeted or
    exported again. Rigid nodes come into Blender as one object per link, each animated by itself;
    they suit viewers and engines that need one object per link.

    Args:
        clip: The motion.
        path: Where to.
        skin: One skinned mesh on an armature; False: a rigid mesh on each node.
    """
    if not isinstance(skin, bool):
        raise ClipError(f"{path}: skin must be True or False, got {skin!r:.80}")
    write_atomically(path, dump(clip, skin=skin))


def read(
    path: str | os.PathLike[str],
    *,
    character: Character | None = None,
    fps: float | None = None,
    animation: str | int | None = None,
) -> Clip:
    """Reads a clip from GLB or .gltf; a file without animation gives one frame.

    Args:
        path: The file.
        character: The character that moves, its links named as the nodes of the file; None makes a
            character from the skeleton.
        fps: Frames per second of the clip; None takes the rate of the file's keys.
        animation: Name of the animation, or its number from 0; None takes the first.
    """
    return parse(path, fps=fps, animation=animation)(character)


def parse(
    path: str | os.PathLike[str],
    *,
    fps: float | None = None,
    animation: str | int | None = None,
) -> Callable[[Character | None], Clip]:
    """Parses a file once; the result makes its clip on a character, as `read` does."""
    file = GlbFile(Path(path))
    with name_in_errors(path):
        rate = None if fps is None else file.finite_number(fps, "fps", MOST_FPS)
        motion = Motion(file, animation)
        stored = _stored_clip(motion)

    def make(character: Character | None) -> Clip:
        with name_in_errors(path):
            if stored is not None and (
                character is None or _has_same_coordinates(character, stored.character)
            ):
                return _on_character(stored, character or stored.character, rate)
            return _from_nodes(motion, character, rate)

    return make


def _from_nodes(motion: Motion, character: Character | None, fps: float | None) -> Clip:
    """The clip that the nodes of a file show."""
    file, skeleton = motion.file, Skeleton(motion)
    joints = skeleton.joints
    rate = motion.fps() if fps is None else fps
    t = motion.times(rate, len(joints))
    rig = _rig(skeleton, rate)
    if character is None:
        pairs = list(zip(joints, rig.names, strict=True))
        character = character_from_rig(
            rig,
            file.path.stem,
            still=[name for node, name in pairs if node not in motion.channels],
            sliding=[name for node, name in pairs if skeleton.shifts(node)],
        )
    frames = [_frames(skeleton, character, rig, t[i : i + CHUNK]) for i in range(0, len(t), CHUNK)]
    q = np.concatenate(frames)
    for joint in character.joints:
        if joint.kind == "hinge":  # turns go on from one chunk to the next
            at = character.q_slice(joint)
            q[:, at] = np.unwrap(q[:, at], axis=0)
    return Clip(character, q, rate, source=rig, name=motion.title or file.path.stem)


def _rig(skeleton: Skeleton, fps: float) -> Rig:
    """The skeleton as a rig: offsets as the joints rest, in the file's axes."""
    motion, joints, rest = skeleton.motion, skeleton.joints, skeleton.rest
    index = {node: i for i, node in enumerate(joints)}
    names = _unique([motion.name(node) for node in joints])
    ends = skeleton.ends()
    found = []
    for i, node in enumerate(joints):
        parent = index.get(motion.parent[node], -1) if i else -1
        above = rest[joints[parent]][1][0] if parent >= 0 else np.zeros(3)
        found.append(
            RigJoint(
                names[i],
                parent,
                tuple((rest[node][1][0] - above).tolist()),
                end=None if node not in ends else tuple(ends[node].tolist()),
                quat=tuple(rotations(rest[node][0], np.eye(3)[None])[0].tolist()),
            )
        )
    return Rig(tuple(found), "glb", up="y", fps=fps, name=names[0])


def _frames(skeleton: Skeleton, character: Character, rig: Rig, t: Floats) -> Floats:
    """q at times t, shape (n, nq)."""
    joints, rest = skeleton.joints, skeleton.rest
    placed = skeleton.motion.place(joints, t)
    positions = rig.vectors([placed[node][1] for node in joints])
    turned = np.array([rotations(placed[node][0], rest[node][0]) for node in joints])
    # a rotation vector is a vector: it goes to the world's axes like one
    turned[..., 1:] = turned[..., 1:] @ rig.to_world.T
    return frames_on(character, rig, positions, turned)


def _unique(names: list[str]) -> list[str]:
    """Names with numbers behind those that are there twice."""
    seen: dict[str, int] = {}
    taken, found = set(names), []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        while seen[name] > 1 and f"{name}_{seen[name]}" in taken:
            seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
        taken.add(found[-1])
    return found


def _stored_clip(motion: Motion) -> Clip | None:
    """The clip that poise stored in a file, if its nodes still move so; else None."""
    file = motion.file
    asset = file.json.get("asset")
    extras = asset.get("extras") if isinstance(asset, dict) else None
    ours = extras.get("poise") if isinstance(extras, dict) else None
    if not isinstance(ours, dict) or ours.get("version") != 1:
        return None
    at = "asset.extras.poise"
    text = ours.get("character")
    if not isinstance(text, str):
        file.fail(f"{at}.character must be text")
    character = as_builtin(yaml.parse(text, f"{file.path}: {at}.character"))
    fps = file.finite_number(ours.get("fps"), f"{at}.fps")
    view = file.numbers.view(file.index(ours, "q", "bufferViews", at))
    frames = file.size_of(ours, "frames", at, None)
    size = frames * character.nq * 4
    if frames == 0 or size != view.length:
        file.fail(f"{at}: {frames} frames of {character.nq} numbers are not {view.length} bytes")
    data = file.numbers.read(view, 0, size)
    q = to_float64(np.frombuffer(data, dtype="<f4").reshape(frames, -1))
    source = rig_from(ours.get("source"), f"{file.path}: {at}")
    clip = Clip(character, q, fps, source=source, name=file.text(ours, "name", ""))
    return clip if _nodes_follow(motion, clip) else None


def _nodes_follow(motion: Motion, clip: Clip) -> bool:
    """Whether the nodes of a file move as the links of a clip do."""
    named = {motion.name(node): node for node in reversed(motion.order)}
    nodes = [named.get(link.name, -1) for link in clip.character.links]
    if -1 in nodes or abs(motion.end - motion.start - clip.duration) > 1.5 / clip.fps:
        return False
    # the axes of a node may be a bone's, but it turns from its rest as the link does
    stand = motion.place(nodes, None)
    rest = quat_matrix(forward_kinematics(clip.character, clip.character.rest_q)[1])
    for i in range(0, len(clip), CHUNK):
        rows = np.arange(i, min(i + CHUNK, len(clip)))
        placed = motion.place(nodes, motion.start + rows / clip.fps)
        p, e = forward_kinematics(clip.character, clip.frames[rows])
        turned = (quat_matrix(e) @ rest.transpose(0, 2, 1))[..., AXES, :][..., AXES]
        for k, node in enumerate(nodes):
            L, shown = placed[node]
            if np.abs(shown - to_file(p[:, k])).max() > SAME:
                return False
            if np.abs(L - turned[:, k] @ stand[node][0]).max() > SAME:
                return False
    return True


def _has_same_coordinates(a: Character, b: Character) -> bool:
    """Whether the coordinates of one character are those of the other."""

    def layout(character: Character) -> list[Any]:
        return [
            (link.name, [(joint.name, joint.kind) for joint in link.joints])
            for link in character.links
        ]

    one, two = (np.array([joint.axis for joint in x.joints]) for x in (a, b))
    return layout(a) == layout(b) and np.allclose(one, two, rtol=0.0, atol=1e-9)


def _on_character(clip: Clip, character: Character, fps: float | None) -> Clip:
    """The clip on a character like its own, at another rate if that is given."""
    q, rate = clip.frames, clip.fps
    if fps is not None and fps != rate:
        frames = round(clip.duration * fps) + 1
        most = MOST_POSES // len(character.links)
        if frames > most:
            raise ClipError(f"{frames} frames at {fps:g} fps, at most {most} are read; give fewer")
        q, rate = clip.q(np.arange(frames) / fps), fps
    if q is clip.frames and character is clip.character:
        return clip
    return clip.replace(character=character, q=q, fps=rate)
