"""Clips as DeepMimic's JSON files (Peng et al. 2018), read and written.

    {"Loop": "wrap", "Frames": [[duration, x, y, z, w, x, y, z, joint, joint, ...], ...]}

A frame holds how long it lasts [s], the position [m] and orientation (quaternion w x y z) of the
root, and the joints in the order of the character's file: a quaternion for a spherical joint, an
angle for a revolute one (about its z). The file's axes are x forward, y up, z to the right; here
(x, y, z) becomes (x, -z, y), and quaternions follow. The duration of the last frame counts for
nothing: there is no frame after it.

The files carry no skeleton. Given a character, its joints are found by name where it has those of
DeepMimic's humanoid or dog, else they are those of the file in the order of q. The humanoid's root
is the middle of the hips: a character whose root link lies elsewhere is placed by its hips. Given
none, a file of 44 columns moves poise's own humanoid and one of 84 columns poise's own dog, whose
bones are turned as the file's; any other needs a character.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from poise.characters import load_character
from poise.errors import ClipError, shorten, unknown_name
from poise.io.files import line_of_item, parse_json, read_text, write_atomically
from poise.math.arrays import Floats
from poise.math.rotation import (
    between,
    conjugate,
    multiply,
    normalize,
    quat_matrix,
    rotate,
    slerp,
    turn,
)
from poise.model.character import Character, Joint, Link
from poise.motion.clip import Clip
from poise.motion.formats import name_in_errors

# columns of a file to coordinates of a character, and back

HUMANOID = (
    "chest",
    "neck",
    *(f"right_{name}" for name in ("hip", "knee", "ankle", "shoulder", "elbow")),
    *(f"left_{name}" for name in ("hip", "knee", "ankle", "shoulder", "elbow")),
)
"""Joints of DeepMimic's humanoid that move, in the order of its clips."""

FRONT = ("shoulder", "forearm", "hand", "finger")
HIND = ("upper_leg", "leg", "foot", "toe")
DOG = (
    *("spine0", "spine1", "neck", "head"),
    *(f"{side}_{name}" for names in (FRONT, HIND) for side in ("left", "right") for name in names),
    *("tail0", "tail1"),
)
"""Joints of DeepMimic's dog that move, in the order of its clips."""


@dataclass(frozen=True)
class Piece:
    """Columns of one joint: where they are in the file and in q."""

    name: str
    kind: str
    at: int  # first column in the file
    q: int  # first column in q
    sign: float = 1.0

    @property
    def size(self) -> int:
        return 4 if self.kind == "ball" else 1


@dataclass(frozen=True)
class Layout:
    """How the columns of a file become coordinates."""

    root: str | None
    pieces: tuple[Piece, ...]
    hips: Floats  # where the file's root is, in the frame of the root link [m]

    @property
    def columns(self) -> int:
        return 8 + sum(piece.size for piece in self.pieces)

    def quaternions(self) -> list[tuple[str, int]]:
        """Names and first columns of all quaternions."""
        return [(self.root or "root", 4), *((p.name, p.at) for p in self.pieces if p.size == 4)]

    def q(self, values: Floats, nq: int) -> Floats:
        """Coordinates of frames whose durations have been cut off."""
        q = np.empty((len(values), nq))
        q[:, 3:7] = quat_to_z_up(values[:, 3:7])
        q[:, :3] = to_z_up(values[:, :3]) - rotate(q[:, 3:7], self.hips)
        for p in self.pieces:
            part = values[:, p.at - 1 : p.at - 1 + p.size]
            q[:, p.q : p.q + p.size] = quat_to_z_up(part) if p.size == 4 else p.sign * part
        return q

    def values(self, q: Floats) -> Floats:
        """The inverse of q."""
        values = np.empty((len(q), self.columns - 1))
        values[:, :3] = to_y_up(q[:, :3] + rotate(q[:, 3:7], self.hips))
        values[:, 3:7] = quat_to_y_up(q[:, 3:7])
        for p in self.pieces:
            part = q[:, p.q : p.q + p.size]
            turned = quat_to_y_up(part) if p.size == 4 else p.sign * part
            values[:, p.at - 1 : p.at - 1 + p.size] = turned
        return values


def layout_of(character: Character, order: Sequence[str] | None, where: str) -> Layout:
    """The layout of a character's clips."""
    if not isinstance(character, Character):
        raise ClipError(f"{where}: a clip moves a Character, got {character!r:.80}")
    joints = {joint.name: joint for joint in character.joints}
    root = character.joints[0] if character.joints else None
    if root is None or root.kind != "free":
        raise ClipError(
            f"{where}: DeepMimic's clips have a free root; {character.name!r} is fixed to the "
            "world: take character.with_base('free')"
        )
    names = _order(joints, root, order, where)
    pieces, at = [], 8
    for name in names:
        joint = joints[name]
        first = character.q_slice(name).start
        # a revolute joint turns about the file's z, which is -y here
        sign = -1.0 if joint.kind == "hinge" and joint.axis[1] > 1.0 - 1e-9 else 1.0
        pieces.append(Piece(name, joint.kind, at, first, sign))
        at += joint.nq
    return Layout(root.name, tuple(pieces), _hips(character, set(names)))


def _order(
    joints: dict[str, Joint], root: Joint, order: Sequence[str] | None, where: str
) -> tuple[str, ...]:
    known = set(joints) - {root.name}
    if order is not None:
        listed = tuple(order) if isinstance(order, (list, tuple)) else ()
        if len(listed) != len(known) or any(name not in known for name in map(str, listed)):
            wrong = next((name for name in listed if str(name) not in known), None)
            reason = unknown_name("joint", wrong, sorted(known)) if wrong else "some are missing"
            raise ClipError(f"{where}: order must name every joint but the root once: {reason}")
        if len(set(map(str, listed))) < len(listed):
            raise ClipError(f"{where}: order names a joint twice: {shorten(listed)}")
        return tuple(map(str, listed))
    for names in (HUMANOID, DOG):
        if known == set(names):
            return names
    return tuple(name for name in joints if name != root.name)


def _hips(character: Character, names: set[str]) -> Floats:
    """The middle of the hips in the frame of the root link, for humanoids that have them there."""
    root = character.links[0].name
    hips = [
        np.array(link.pos) + quat_matrix(link.quat) @ np.array(joint.pos)
        for link in character.links
        for joint in link.joints
        if joint.name in ("left_hip", "right_hip") and link.parent == root
    ]
    if names != set(HUMANOID) or len(hips) != 2:
        return np.zeros(3)
    middle: Floats = (hips[0] + hips[1]) / 2.0
    return middle


def to_z_up(p: Floats) -> Floats:
    """Vectors with the file's y up, with z up."""
    raised: Floats = p[:, [0, 2, 1]] * [1.0, -1.0, 1.0]
    return raised


def to_y_up(p: Floats) -> Floats:
    """The inverse of raising."""
    lowered: Floats = p[:, [0, 2, 1]] * [1.0, 1.0, -1.0]
    return lowered


def quat_to_z_up(q: Floats) -> Floats:
    """Quaternions of any length of the file, as unit quaternions with z up."""
    q = normalize(q)
    return np.concatenate([q[:, :1], to_z_up(q[:, 1:])], axis=1)


def quat_to_y_up(q: Floats) -> Floats:
    return np.concatenate([q[:, :1], to_y_up(q[:, 1:])], axis=1)


# files

LARGEST_FILE = 32 * 2**20  # [bytes]
MOST_VALUES = 5_000_000  # numbers in a clip after resampling
SHORTEST, LONGEST = 1e-5, 100.0  # durations of a frame that are read [s]
FARTHEST = 1e6  # positions [m] and angles [rad] that are read
LOOSE = 0.3  # how far quaternions may be from length one: DeepMimic's dog has some at 0.83
SAME_RATE = 1e-6  # durations that differ by less, relatively, are one rate
HUMANOID_COLUMNS, DOG_COLUMNS = 44, 84


def read(
    path: str | Path, character: Character | None = None, *, order: Sequence[str] | None = None
) -> Clip:
    """Read a clip.

    Frames of different durations are resampled to one rate, their median, linearly and along the
    shortest turn, as DeepMimic plays them; the clip's notes say so. A single frame without a
    duration is taken at 30 fps.

    Args:
        path: The file.
        character: The character that moves; None takes poise's humanoid or dog, by the number of
            columns.
        order: Names of the joints in the order of the file, the root left out, where the names of
            the character are not enough.
    """
    path = Path(path)
    text = read_text(path, LARGEST_FILE, ClipError)
    reader = _Reader(text, str(path))
    frames = reader.frames()
    columns = frames.shape[1]
    is_dog = character is None and order is None and columns == DOG_COLUMNS
    if is_dog:
        layout = Layout(None, dog_pieces(), np.zeros(3))
    else:
        if character is None and columns == HUMANOID_COLUMNS:
            character = load_character("humanoid")
        if character is None:
            raise reader.error(
                0,
                f"has {columns} columns; without a character only {HUMANOID_COLUMNS} (humanoid) "
                f"and {DOG_COLUMNS} (dog) can be read",
            )
        layout = layout_of(character, order, str(path))
    if columns != layout.columns:
        owner = f"character {character.name!r}" if character else "the dog"
        raise reader.error(
            0,
            f"has {columns} columns; {owner} needs {layout.columns}: duration, "
            f"root (7), joints ({layout.columns - 8})",
        )
    reader.check_rotations(frames, layout)
    fps, values, notes = _resample(frames, layout, reader)
    if is_dog:
        character, q = retarget_dog(values)
    else:
        assert character is not None
        q = layout.q(values, character.nq)
    with name_in_errors(path):
        return Clip(character, q, fps, name=path.stem, notes=notes)


def write(
    clip: Clip, path: str | Path, *, order: Sequence[str] | None = None, loop: bool = False
) -> None:
    """Write a clip, whole or not at all; what `read` gives for its character is the clip again.

    Args:
        clip: What to write; its character needs a free root.
        path: The file.
        order: Names of the joints in the order of the file, the root left out; as `read` has it
            unless given.
        loop: Whether the file says that the motion starts over after its end.
    """
    layout = layout_of(clip.character, order, str(path))
    values = layout.values(clip.frames)
    durations = np.full((len(values), 1), 1.0 / clip.fps)
    if len(values) > 1:
        durations[-1] = 0.0
    rows = np.concatenate([durations, values + 0.0], axis=1).tolist()
    frames = ",\n".join("[" + ", ".join(map(repr, row)) + "]" for row in rows)
    text = f'{{\n"Loop": "{"wrap" if loop else "none"}",\n"Frames":\n[\n{frames}\n]\n}}\n'
    write_atomically(path, text.encode(), ClipError)


class _Reader:
    """The frames of a file, checked."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name

    def frames(self) -> Floats:
        """All frames, shape (k, columns)."""
        data = parse_json(self.text, self.name, ClipError)
        frames = data.get("Frames") if isinstance(data, dict) else None
        if not isinstance(frames, list):
            raise ClipError(f"{self.name}:1: is no DeepMimic clip: needs 'Frames', a list of lists")
        if not frames:
            line = line_of_item(self.text, "Frames", 0, "[")
            raise ClipError(f"{self.name}:{line}: 'Frames' is empty; a clip needs at least one")
        for i, row in enumerate(frames):
            self.check_row(i, row, frames[0])
        try:
            array = np.array(frames, dtype=np.float64)
        except OverflowError as error:
            raise self.error(0, f"a number is too large: {error}") from error
        bad = np.argwhere(~(np.abs(array) <= FARTHEST))
        if len(bad):
            i, j = map(int, bad[0])
            raise self.error(i, f"column {j} is {array[i, j]:g}; numbers must be within 1e6")
        return array

    def check_row(self, i: int, row: Any, first: Any) -> None:
        if not isinstance(row, list) or not set(map(type, row)) <= {int, float}:
            raise self.error(i, f"must be a list of numbers, got {row!r:.80}")
        if len(row) < 8:
            raise self.error(i, f"has {len(row)} columns; duration and root alone are 8")
        if len(row) != len(first):
            raise self.error(i, f"has {len(row)} columns, the first frame {len(first)}")

    def check_rotations(self, frames: Floats, layout: Layout) -> None:
        for name, at in layout.quaternions():
            length = np.linalg.norm(frames[:, at : at + 4], axis=1)
            bad = np.abs(length - 1.0) > LOOSE
            if bad.any():
                i = int(np.argmax(bad))
                raise self.error(
                    i,
                    f"columns {at} to {at + 3}, the quaternion of joint {name!r}, have length "
                    f"{length[i]:.4g}; it must be about 1",
                )

    def error(self, frame: int, message: str) -> ClipError:
        line = line_of_item(self.text, "Frames", frame, "[")
        return ClipError(f"{self.name}:{line}: frame {frame} {message}")


def _resample(
    frames: Floats, layout: Layout, reader: _Reader
) -> tuple[float, Floats, tuple[str, ...]]:
    """Rate, frames without durations, at equal steps of time, and what was done to them."""
    durations, values = frames[:-1, 0], frames[:, 1:]
    bad = ~((durations >= SHORTEST) & (durations <= LONGEST))
    if bad.any():
        i = int(np.argmax(bad))
        raise reader.error(
            i, f"lasts {durations[i]:g} s; a frame lasts {SHORTEST:g} to {LONGEST:g} s"
        )
    if not len(durations):
        last = float(frames[0, 0])
        return (1.0 / last if SHORTEST <= last <= LONGEST else 30.0), values, ()
    if np.ptp(durations) <= SAME_RATE * durations.min():
        same = np.ptp(durations) == 0.0
        return 1.0 / float(durations[0] if same else durations.mean()), values, ()
    times = np.concatenate([[0.0], np.cumsum(durations)])
    steps = max(1, round(times[-1] / float(np.median(durations))))
    if steps * values.shape[1] > MOST_VALUES:
        longest, most = int(np.argmax(durations)), MOST_VALUES // values.shape[1]
        raise reader.error(
            longest,
            f"lasts {durations[longest]:g} s, others {np.median(durations):g} s: at one rate "
            f"{steps} frames, at most {most} are read",
        )
    t = np.linspace(0.0, times[-1], steps + 1)
    fps = steps / float(times[-1])
    note = (
        f"resampled from {len(values)} to {len(t)} frames at {fps:.4g} fps: they last "
        f"{durations.min():.4g} to {durations.max():.4g} s"
    )
    return fps, _interpolate(values, layout, times, t), (note,)


def _interpolate(values: Floats, layout: Layout, times: Floats, t: Floats) -> Floats:
    """Frames at times t: numbers in between, quaternions along the shortest turn."""
    i = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
    u = ((t - times[i]) / (times[i + 1] - times[i]))[:, None]
    found = (1.0 - u) * values[i] + u * values[i + 1]
    for _, at in layout.quaternions():
        part = slice(at - 1, at + 3)
        a, b = normalize(values[i, part]), normalize(values[i + 1, part])
        found[:, part] = slerp(a, b, u)
    return found


# DeepMimic's dog on poise's own: its bones point elsewhere in the rest pose

DOG_PARENTS = {
    "spine0": "root",
    "spine1": "spine0",
    "neck": "spine1",
    "head": "neck",
    "tail0": "root",
    "tail1": "tail0",
    **{f"{side}_{FRONT[0]}": "spine1" for side in ("left", "right")},
    **{f"{side}_{HIND[0]}": "root" for side in ("left", "right")},
    **{
        f"{side}_{child}": f"{side}_{parent}"
        for names in (FRONT, HIND)
        for parent, child in pairwise(names)
        for side in ("left", "right")
    },
}
DOG_ENDS = {"head": (1.0, 0.0, 0.0), "tail_tip": (-1.0, 0.0, 0.0)}
"""Where the last bones of our dog point at rest."""

DOG_HEIGHT = 0.61
"""How high the root of DeepMimic's dog stands in its clips [m]."""


def dog_pieces() -> tuple[Piece, ...]:
    pieces, at = [], 8
    for name in DOG:
        kind = "hinge" if name.endswith(("forearm", "_leg")) and "upper" not in name else "ball"
        pieces.append(Piece(name, kind, at, 0))
        at += pieces[-1].size
    return tuple(pieces)


def _dog_sources() -> dict[str, tuple[str, Sequence[float] | None]]:
    """Links of our dog: the file's joint that turns each, and where its bone points at rest.

    None: the link needs no correction, it points there already.
    """
    down, back, ahead = (0.0, 0.0, -1.0), (-1.0, 0.0, 0.0), (1.0, 0.0, 0.0)
    sources: dict[str, tuple[str, Sequence[float] | None]] = {
        "pelvis": ("root", None),
        "spine": ("spine0", None),
        "chest": ("spine1", None),
        "neck": ("neck", ahead),
        "head": ("head", down),
        "tail": ("tail0", back),
        "tail_tip": ("tail1", back),
    }
    for side in ("left", "right"):
        sources[f"front_{side}_scapula"] = ("spine1", None)
        sources[f"front_{side}_upper_arm"] = (f"{side}_shoulder", down)
        sources[f"front_{side}_forearm"] = (f"{side}_forearm", down)
        sources[f"front_{side}_paw"] = (f"{side}_hand", None)
        sources[f"hind_{side}_thigh"] = (f"{side}_upper_leg", down)
        sources[f"hind_{side}_shin"] = (f"{side}_leg", down)
        sources[f"hind_{side}_metatarsus"] = (f"{side}_foot", down)
        sources[f"hind_{side}_paw"] = (f"{side}_toe", None)
    return sources


def retarget_dog(values: Floats) -> tuple[Character, Floats]:
    """Our dog, and its coordinates: every bone points where the file's points, to our scale."""
    character = load_character("dog")
    turns = _dog_turns(values)
    children: dict[str | None, Link] = {}
    for link in character.links:
        children.setdefault(link.parent, link)
    sources, world = _dog_sources(), {}
    q = np.empty((len(values), character.nq))
    scale = character.links[0].pos[2] / DOG_HEIGHT
    q[:, :3] = scale * to_z_up(values[:, :3])
    for link in character.links:
        joint, points = sources[link.name]
        world[link.name] = turns[joint]
        if points is not None:
            bone = children[link.name].pos if link.name in children else DOG_ENDS[link.name]
            world[link.name] = multiply(turns[joint], between(bone, points))
        part = character.q_slice(link.joints[0])
        if link.parent is None:
            q[:, 3:7] = world[link.name]
        else:
            q[:, part] = multiply(conjugate(world[link.parent]), world[link.name])
    return character, q


def _dog_turns(values: Floats) -> dict[str, Floats]:
    """Orientations of the file's links in the world."""
    turns = {"root": quat_to_z_up(values[:, 3:7])}
    for p in dog_pieces():
        part = values[:, p.at - 1 : p.at - 1 + p.size]
        own = quat_to_z_up(part) if p.size == 4 else turn((0.0, -1.0, 0.0), part[:, 0])
        turns[p.name] = multiply(turns[DOG_PARENTS[p.name]], own)
    return turns
