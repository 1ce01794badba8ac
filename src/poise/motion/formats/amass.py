"""Clips from AMASS (Mahmood et al. 2019): .npz files of body-model parameters.

    poses               rotation vectors of the joints [rad], (frames, 66 or more): the 22 of the
                        body first, hands after them; or root_orient (frames, 3) and
                        pose_body (frames, 63)
    trans               where the model is [m], (frames, 3), z up
    mocap_framerate     frames per second; or mocap_frame_rate

The body model that turns these numbers into a skeleton (SMPL-H) is licensed and not in the files.
poise brings a skeleton of its own: the 22 joints, named as the model names them, in a T-pose, with
lengths from the proportions of a grown person of 1.70 m (Winter, *Biomechanics and Motor Control of
Human Movement*, 4th ed. 2009, Figure 4.1, after Drillis and Contini; what the figure does not show
is ours). Angles are the file's, so the motion is right, but hands and feet are only about where
they were; the model's joints of a subject can be given as `offsets`. `betas` and `gender`,
which mean nothing without the model, and the hands are not read. The files are licensed, too: this
reader is tested on files that the tests write.

The model's axes are x to the left, y up, z ahead, those of the files' world have z up. Pickled
arrays are refused where they are needed and never opened elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.anatomy.rig import Rig, RigJoint, forward_kinematics, frames_on
from poise.anatomy.skeleton import character_from_rig
from poise.errors import ClipError, PoiseError, shorten
from poise.io.archive import BROKEN, Archive, read_array
from poise.io.files import read_bounded
from poise.math.arrays import Floats, floats
from poise.math.rotation import conjugate, exp, multiply
from poise.model.character import Character, Link
from poise.motion.clip import Clip
from poise.motion.formats import name_in_errors

STATURE = 1.70  # [m]

# of each joint: its parent, and the offset from it as a fraction of stature, x left, y up, z ahead
SKELETON: dict[str, tuple[str, tuple[float, float, float]]] = {
    "pelvis": ("", (0.0, 0.0, 0.0)),
    "left_hip": ("pelvis", (0.050, -0.035, 0.0)),
    "right_hip": ("pelvis", (-0.050, -0.035, 0.0)),
    "spine1": ("pelvis", (0.0, 0.061, 0.0)),
    "left_knee": ("left_hip", (0.0, -0.245, 0.0)),
    "right_knee": ("right_hip", (0.0, -0.245, 0.0)),
    "spine2": ("spine1", (0.0, 0.079, 0.0)),
    "left_ankle": ("left_knee", (0.0, -0.246, 0.0)),
    "right_ankle": ("right_knee", (0.0, -0.246, 0.0)),
    "spine3": ("spine2", (0.0, 0.037, 0.0)),
    "left_foot": ("left_ankle", (0.0, -0.028, 0.075)),
    "right_foot": ("right_ankle", (0.0, -0.028, 0.075)),
    "neck": ("spine3", (0.0, 0.128, 0.0)),
    "left_collar": ("spine3", (0.040, 0.062, 0.0)),
    "right_collar": ("spine3", (-0.040, 0.062, 0.0)),
    "head": ("neck", (0.0, 0.050, 0.010)),
    "left_shoulder": ("left_collar", (0.072, 0.014, 0.0)),
    "right_shoulder": ("right_collar", (-0.072, 0.014, 0.0)),
    "left_elbow": ("left_shoulder", (0.186, 0.0, 0.0)),
    "right_elbow": ("right_shoulder", (-0.186, 0.0, 0.0)),
    "left_wrist": ("left_elbow", (0.146, 0.0, 0.0)),
    "right_wrist": ("right_elbow", (-0.146, 0.0, 0.0)),
}

ENDS: dict[str, tuple[float, float, float]] = {
    "left_foot": (0.0, 0.0, 0.040),
    "right_foot": (0.0, 0.0, 0.040),
    "head": (0.0, 0.080, 0.0),
    "left_wrist": (0.108, 0.0, 0.0),
    "right_wrist": (-0.108, 0.0, 0.0),
}
"""Ends of the last bones, as fractions of stature."""

MODEL_NAMES = {"shoulder": "upper_arm", "foot": "toe", "ankle": "foot"}
"""What the model calls a shoulder is, as a link, an upper arm; and so on."""

NAMES = tuple(SKELETON)
TURNS = ("Zrotation", "Xrotation", "Yrotation")
MOVES = ("Xposition", "Yposition", "Zposition")
COLUMNS = 3 * len(NAMES)
RATES = ("mocap_framerate", "mocap_frame_rate")
SLOWEST, FASTEST = 1.0, 10_000.0  # rates that are read [Hz]
FARTHEST = 1e6  # positions that are read [m]
LARGEST_TURN = 1e3  # rotation vectors that are read [rad]
MOST_FRAMES = 200_000  # half an hour at 120 Hz
SHORTEST = 1e-3  # bone [m]
LARGEST_OFFSETS = 2**20  # [bytes]


def read(
    path: str | Path,
    character: Character | None = None,
    *,
    offsets: str | Path | ArrayLike | None = None,
) -> Clip:
    """Read a clip.

    Args:
        path: The file.
        character: The character that moves; its links must be named as the model's joints. None
            makes one from the skeleton.
        offsets: Of each joint from its parent in the model's T-pose [m], x left, y up, z ahead,
            shape (22, 3), the pelvis' from the model's origin; or a .npy file of them, or an .npz
            file with them as "offsets" or with the joints' positions as "joints" or "J", which is
            their name in the model's own file. None is poise's own neutral skeleton.
    """
    path = Path(path)
    with Archive.open(path, ClipError) as archive:
        fps = _rate(archive)
        poses = _poses(archive)
        where = _values(archive, "trans", 3, FARTHEST)[:, :3]
    if len(where) != len(poses):
        raise ClipError(f"{path}: poses have {len(poses)} frames, trans {len(where)}")
    if len(poses) > MOST_FRAMES:
        raise ClipError(f"{path}: has {len(poses)} frames; at most {MOST_FRAMES} are read")
    own = None if offsets is None else _offsets(offsets)
    rig = neutral_rig(own, fps)
    if character is None:
        character = _neutral() if own is None else _character(rig)
    pelvis = np.zeros(3) if own is None else own[0]
    rotations, places = _world(rig, poses, where + pelvis)
    positions, turned = forward_kinematics(rig, rotations, places)
    with name_in_errors(path):
        q = frames_on(character, rig, positions, turned)
        return Clip(character, q, fps, source=rig, name=path.stem)


def neutral_rig(offsets: Floats | None = None, fps: float = 30.0) -> Rig:
    """The skeleton of the body model's 22 joints, with poise's own lengths or given ones.

    Args:
        offsets: Of each joint from its parent [m], x left, y up, z ahead, shape (22, 3).
        fps: Frames per second.
    """
    joints = []
    for i, (name, (parent, fraction)) in enumerate(SKELETON.items()):
        offset = STATURE * np.array(fraction) if offsets is None else offsets[i]
        end = tuple((STATURE * np.array(ENDS[name])).tolist()) if name in ENDS else None
        if parent:
            joint = RigJoint(name, NAMES.index(parent), tuple(offset.tolist()), TURNS, end)
        else:
            joint = RigJoint(name, -1, (0.0, 0.0, 0.0), MOVES + TURNS, end)
        joints.append(joint)
    return Rig(tuple(joints), kind="amass", unit=1.0, up="y", fps=fps, name="amass")


@lru_cache(maxsize=1)
def _neutral() -> Character:
    return _character(neutral_rig())


def _character(rig: Rig) -> Character:
    """A character whose links have the model's names, with the masses of what they are."""
    aliases = {name: _alias(name) for name in rig.names}
    joints = tuple(replace(joint, name=aliases[joint.name]) for joint in rig.joints)
    try:
        made = character_from_rig(replace(rig, joints=joints), "amass")
    except PoiseError as error:
        raise ClipError(f"the skeleton makes no character: {error}") from error
    names = {alias: name for name, alias in aliases.items()}

    def renamed(link: Link) -> Link:
        parent = None if link.parent is None else names[link.parent]
        parts = tuple(replace(j, name=names.get(j.name, j.name)) for j in link.joints)
        return replace(link, name=names[link.name], parent=parent, joints=parts)

    limbs = {limb: tuple(names[x] for x in links) for limb, links in made.limbs.items()}
    return Character("amass", tuple(map(renamed, made.links)), limbs)


def _alias(name: str) -> str:
    side, _, part = name.rpartition("_")
    return f"{side}_{MODEL_NAMES.get(part, part)}" if side else name


def _world(rig: Rig, poses: Floats, pelvis: Floats) -> tuple[Floats, Floats]:
    """Rotations from the rest pose in our axes (joints, k, 4), and offsets (joints, k, 3)."""
    k = len(poses)
    turns = poses.reshape(k, len(NAMES), 3).transpose(1, 0, 2)
    # inside the body, turns are about the model's axes, which lie in ours by to_world; outside,
    # the file's axes are ours, and the model's rest pose in them is turned by to_world
    rotations = exp(turns @ rig.to_world.T)
    half = np.array([0.5, 0.5, 0.5, 0.5])  # the quaternion of to_world: x to y, y to z, z to x
    rotations[0] = multiply(exp(turns[0]), conjugate(half))
    places = np.broadcast_to(rig.offsets[:, None, :], (len(NAMES), k, 3)).copy()
    places[0] = pelvis
    return rotations, places


# what is in the file


def _rate(archive: Archive) -> float:
    name = next((name for name in RATES if name in archive.names), None)
    if name is None:
        raise ClipError(f"{archive.path}: needs {' or '.join(RATES)}, the frames per second")
    values = archive.array(name, "iuf", 0, 1).reshape(-1)
    fps = float(values[0]) if len(values) == 1 else 0.0
    if not SLOWEST <= fps <= FASTEST:
        raise ClipError(
            f"{archive.path}: {name} must be one number from {SLOWEST:g} to {FASTEST:g} Hz, "
            f"got {shorten(values.tolist(), 4)}"
        )
    return fps


def _poses(archive: Archive) -> Floats:
    """Rotation vectors of the 22 joints, (k, 66)."""
    if "poses" in archive.names:
        return _values(archive, "poses", COLUMNS, LARGEST_TURN)[:, :COLUMNS]
    if {"root_orient", "pose_body"} <= archive.names:
        root = _values(archive, "root_orient", 3, LARGEST_TURN)[:, :3]
        body = _values(archive, "pose_body", COLUMNS - 3, LARGEST_TURN)[:, : COLUMNS - 3]
        if len(root) != len(body):
            raise ClipError(
                f"{archive.path}: root_orient has {len(root)} frames, pose_body {len(body)}"
            )
        return np.concatenate([root, body], axis=1)
    raise ClipError(
        f"{archive.path}: is no clip of AMASS: needs poses, or root_orient and pose_body"
    )


def _values(archive: Archive, name: str, columns: int, most: float) -> Floats:
    if name not in archive.names:
        raise ClipError(f"{archive.path}: needs the array {name!r}; it has {_list(archive)}")
    array = archive.array(name, "f", 2)
    if len(array) < 1 or array.shape[1] < columns:
        raise ClipError(
            f"{archive.path}: {name} has shape {array.shape}; it needs a frame or more, and "
            f"{columns} columns or more"
        )
    return _checked(array[:, :columns], f"{archive.path}: {name}", most)


def _checked(array: Any, where: str, most: float) -> Floats:
    values: Floats = np.ascontiguousarray(array, dtype=np.float64)
    bad = np.argwhere(~(np.abs(values) <= most))
    if len(bad):
        i, j = map(int, bad[0])
        raise ClipError(
            f"{where}: row {i}, column {j} is {values[i, j]:g}; numbers must be within {most:g}"
        )
    return values


def _offsets(source: Any) -> Floats:
    """Offsets of the 22 joints, from an array or a file."""
    where = "offsets"
    if isinstance(source, (str, Path)):
        where, array = str(source), _offsets_file(Path(source))
    else:
        try:
            array = floats(source, "offsets")
        except PoiseError as error:
            raise ClipError(str(error)) from error
    if array.ndim != 2 or len(array) < len(NAMES) or array.shape[1] != 3:
        raise ClipError(f"{where}: has shape {array.shape}, expected ({len(NAMES)}, 3)")
    values = _checked(array[: len(NAMES)], where, 1e3)
    for name, length in zip(NAMES[1:], np.linalg.norm(values[1:], axis=1), strict=True):
        if length < SHORTEST:
            raise ClipError(f"{where}: joint {name!r} is {length:g} m from its parent; too near")
    return values


def _offsets_file(path: Path) -> Floats:
    if path.suffix.lower() != ".npz":
        data = read_bounded(path, LARGEST_OFFSETS, ClipError)
        try:
            array = read_array(BytesIO(data), len(data), str(path), ClipError)
        except BROKEN as error:
            raise ClipError(f"{path}: is no .npy file: {error!s:.120}") from error
        if array.dtype.kind != "f":
            raise ClipError(f"{path}: must hold floats, got {array.dtype}")
        return array.astype(np.float64)
    with Archive.open(path, ClipError) as archive:
        if "offsets" in archive.names:
            return archive.array("offsets", "f", 2).astype(np.float64)
        name = next((name for name in ("joints", "J") if name in archive.names), None)
        if name is None:
            raise ClipError(f"{path}: needs 'offsets', 'joints' or 'J'; it has {_list(archive)}")
        places = archive.array(name, "f", 2).astype(np.float64)
    if len(places) < len(NAMES) or places.shape[1] != 3:
        raise ClipError(f"{path}: {name} has shape {places.shape}, expected ({len(NAMES)}, 3)")
    above = [NAMES.index(parent) if parent else -1 for parent, _ in SKELETON.values()]
    return np.array([places[i] - (places[p] if p >= 0 else 0.0) for i, p in enumerate(above)])


def _list(archive: Archive) -> str:
    return shorten(sorted(archive.names), 12) or "none"
