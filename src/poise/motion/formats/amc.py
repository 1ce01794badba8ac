"""ASF/AMC (Acclaim): a skeleton of bones in one file, their angles frame by frame in another.

A bone starts where its parent ends, and turns there:

    L = C M C^-1,   M = R_dn ... R_d2 R_d1      its degrees of freedom d1 d2 ... dn, first one first
                    C = R_z R_y R_x             its own axes, `axis x y z XYZ`

Lengths are in inches divided by the file's `length` (CMU: 0.45, so a unit is 0.056444 m). The files
have no frame rate; CMU's have 120 frames per second.
"""

from __future__ import annotations

import io
import math
import os
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from poise.anatomy.rig import AXES, Rig, RigJoint
from poise.errors import ClipError, unknown_name
from poise.io.files import read_text
from poise.math.arrays import Floats
from poise.math.rotation import multiply, turn
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.formats.bvh import MOST_JOINTS, MOST_POSES, clip_from_channels, floats_in

MOST_BYTES = 64 * 2**20


def read(
    path: str | os.PathLike[str],
    *,
    character: Character | None = None,
    asf: str | os.PathLike[str] | None = None,
    fps: float = 120.0,
) -> Clip:
    """Reads an AMC file and its skeleton.

    Args:
        path: The .amc file.
        character: The character that moves; its links are named as the bones. None makes a
            character from the skeleton.
        asf: The .asf file; unless given, the one beside it with the same name, with the name up to
            the first underscore (02_01.amc: 02.asf), or the only one in the folder.
        fps: Frames per second, which the file does not say.
    """
    return parse(path, asf=asf, fps=fps)(character)


def parse(
    path: str | os.PathLike[str],
    *,
    asf: str | os.PathLike[str] | None = None,
    fps: float = 120.0,
) -> Callable[[Character | None], Clip]:
    """Parses both files once; the result makes the clip on a character, as `read` does."""
    path = Path(path)
    if not (isinstance(fps, (int, float)) and math.isfinite(fps) and 0.0 < fps <= 1e5):
        raise ClipError(f"fps must be a positive number, got {fps!r:.80}")
    skeleton = read_asf(_find_skeleton(path) if asf is None else Path(asf))
    rig = skeleton.rig(float(fps), path.stem)
    return partial(clip_from_channels, path, rig, _read_frames(path, skeleton))


def _find_skeleton(path: Path) -> Path:
    """The skeleton that belongs to a motion."""
    names = [path.stem, path.stem.split("_")[0]]
    try:
        files = [p for p in path.parent.iterdir() if p.suffix.lower() == ".asf"]
    except OSError as error:
        raise ClipError(f"{path}: its folder cannot be read: {error.strerror}") from error
    for name in names:
        for file in files:
            if file.stem == name:
                return file
    if len(files) == 1:
        return files[0]
    raise ClipError(
        f"{path}: needs its skeleton, {names[-1]}.asf, beside it; or name it: read(path, asf=...)"
    )


def _read_frames(path: Path, skeleton: Skeleton) -> Floats:
    """Channels (k, channels) of all bones in the order of the rig, in file units and degrees."""
    moving = {bone.name: bone for bone in skeleton.bones.values() if bone.dof}
    start, at = {}, 0
    for bone in moving.values():
        start[bone.name] = (at, len(bone.dof))
        at += len(bone.dof)
    # bones that do not move take memory, too
    degrees, table = _Frames(path, start, at, MOST_POSES // len(skeleton.bones)).read()
    # into the order of the channels
    columns = [start[b.name][0] + i for b in moving.values() for i in _column_order(b)]
    values = table[:, columns]
    if not degrees:
        turns = [c.endswith("rotation") for b in moving.values() for c in channel_names(b)]
        values[:, turns] = np.degrees(values[:, turns])
    return values


def _column_order(bone: Bone) -> list[int]:
    """Which number of a bone's line each of its channels is."""
    moves = [i for i, d in enumerate(bone.dof) if d in MOVES]
    turns = [i for i, d in enumerate(bone.dof) if d in TURNS]
    return [*moves, *reversed(turns)]


class _Frames:
    """Reads the frames of an AMC file, line by line.

    Args:
        path: The file.
        start: Where the numbers of each bone go in a row, and how many it has.
        width: Numbers in a row.
        most: How many frames are read.
    """

    def __init__(
        self, path: Path, start: dict[str, tuple[int, int]], width: int, most: int
    ) -> None:
        self.path, self.start, self.width, self.most = path, start, width, most
        self.degrees = True
        self.table = array("d")
        self.first: int | None = None  # number of the first frame
        self.count = 0  # frames that are complete
        self.row: list[float] = []
        self.seen: set[str] = set()
        self.line = 0

    def read(self) -> tuple[bool, Floats]:
        """Whether angles are in degrees, and the numbers of the file, bones in rig order."""
        for number, line in enumerate(lines_of(self.path, MOST_BYTES), 1):
            self.line, words = number, line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0].startswith(":"):
                self.degrees = self.degrees and words[0].upper() != ":RADIANS"
            elif len(words) == 1 and words[0].isdecimal():
                self._begin(int(words[0][:12]))
            else:
                self._add_bone(words[0], words[1:])
        if self.first is None:
            raise self.fail("no frames; a frame starts with its number on a line")
        self._finish()
        return self.degrees, np.array(self.table).reshape(self.count, self.width)

    def fail(self, message: str) -> ClipError:
        return ClipError(f"{self.path}:{self.line}: {message}")

    def _begin(self, frame: int) -> None:
        if self.first is None:
            self.first = frame
        else:
            self._finish()
        due = self.first + self.count
        if frame != due:
            raise self.fail(f"frame {due} should come here, got {frame}; frames are missing")
        if self.count >= self.most:
            raise self.fail(f"more than {self.most} frames, the most that are read")
        self.row, self.seen = [0.0] * self.width, set()

    def _finish(self) -> None:
        missing = [name for name in self.start if name not in self.seen]
        if missing:
            raise self.fail(
                f"frame {self.count + (self.first or 0)} has no line for bone {missing[0]!r}; "
                "the file is cut off, or belongs to another skeleton"
            )
        self.table.extend(self.row)
        self.count += 1

    def _add_bone(self, name: str, words: list[str]) -> None:
        """Puts the numbers of one bone into the row of its frame."""
        if self.first is None:
            raise self.fail(f"expected the number of the first frame, got {name!r:.80}")
        if name not in self.start:
            raise self.fail(unknown_name("moving bone", name[:80], self.start))
        if name in self.seen:
            raise self.fail(f"bone {name!r} is in this frame already")
        at, size = self.start[name]
        numbers = floats_in(words)
        if numbers is None or len(numbers) != size:
            raise self.fail(
                f"bone {name!r} has {size} degrees of freedom, so {size} finite numbers are "
                f"needed, got {' '.join(words)!r:.80}"
            )
        self.seen.add(name)
        self.row[at : at + size] = numbers


# the skeleton (ASF): a tree of bones

MOST_SKELETON_BYTES = 4 * 2**20
INCH = 0.0254  # [m]

TURNS = {"RX": "Xrotation", "RY": "Yrotation", "RZ": "Zrotation"}
MOVES = {"TX": "Xposition", "TY": "Yposition", "TZ": "Zposition"}


@dataclass
class Bone:
    """A bone of an ASF file; the root is one without length."""

    name: str
    line: int
    direction: tuple[float, ...] = (0.0, 0.0, 0.0)
    length: float = 0.0
    axis: tuple[float, ...] = (0.0, 0.0, 0.0)
    axis_order: str = "XYZ"
    dof: tuple[str, ...] = ()
    parent: str | None = None
    children: list[str] = field(default_factory=list)


@dataclass
class Skeleton:
    """What an ASF file holds."""

    bones: dict[str, Bone]  # parents before children
    unit: float  # metres per file unit
    degrees: bool

    def rig(self, fps: float, name: str) -> Rig:
        """The rig: one joint per bone, at its start."""
        index = {bone: i for i, bone in enumerate(self.bones)}
        joints = []
        for bone in self.bones.values():
            above = Bone("", 0) if bone.parent is None else self.bones[bone.parent]
            end = _vector(bone) if not bone.children else None
            own = channel_names(bone), end, self._axes(bone)
            joints.append(RigJoint(bone.name, index.get(above.name, -1), _vector(above), *own))
        return Rig(tuple(joints), "amc", self.unit, "y", fps, name)

    def _axes(self, bone: Bone) -> tuple[float, ...]:
        """Orientation of a bone's own axes in the rest pose."""
        scale = math.pi / 180.0 if self.degrees else 1.0
        quat: Any = (1.0, 0.0, 0.0, 0.0)
        for letter, angle in zip(bone.axis_order, bone.axis, strict=True):
            quat = multiply(turn(np.eye(3)[AXES[letter]], angle * scale), quat)
        return tuple(np.asarray(quat).tolist())


def _vector(bone: Bone) -> tuple[float, ...]:
    return tuple(x * bone.length for x in bone.direction)


def channel_names(bone: Bone) -> tuple[str, ...]:
    """Names of channels, the rotation that acts last first, as BVH has them."""
    return tuple({**MOVES, **TURNS}[bone.dof[i]] for i in _column_order(bone))


def read_asf(path: Path) -> Skeleton:
    """Read an ASF file."""
    return _SkeletonReader(path).skeleton()


class _SkeletonReader:
    """Reads an ASF file, section by section."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = [
            (number, words)
            for number, line in enumerate(lines_of(path, MOST_SKELETON_BYTES), 1)
            if (words := line.split("#")[0].split())
        ]
        self.unit = INCH
        self.degrees = True
        self.bones = {"root": Bone("root", 0)}

    def fail(self, line: int, what: str) -> ClipError:
        return ClipError(f"{self.path}:{line}: {what}")

    def skeleton(self) -> Skeleton:
        """Read all sections."""
        sections: dict[str, list[tuple[int, list[str]]]] = {}
        rows: list[tuple[int, list[str]]] = []
        for number, words in self.rows:
            if words[0].startswith(":"):
                rows = sections.setdefault(words[0].lower(), [])
            elif not sections:
                raise self.fail(
                    number, f"expected a section, such as :version, got {words[0]!r:.80}"
                )
            else:
                rows.append((number, words))
        last = self.rows[-1][0] if self.rows else 1
        for name in (":root", ":bonedata", ":hierarchy"):
            if name not in sections:
                raise self.fail(last, f"section {name} is missing; the file is cut off, or no ASF")
        self._units(sections.get(":units", []))
        self._root(sections[":root"])
        self._bones(sections[":bonedata"])
        return Skeleton(self._hierarchy(sections[":hierarchy"], last), self.unit, self.degrees)

    def _units(self, rows: list[tuple[int, list[str]]]) -> None:
        for line, words in rows:
            if words[0] == "length":
                (length,) = self._numbers(line, words, 1)
                if not 1e-6 <= length <= 1e6:
                    raise self.fail(line, f"length must be positive, got {length:g}")
                self.unit = INCH / length
            elif words[0] == "angle":
                kind = words[1].lower() if len(words) > 1 else ""
                if kind not in ("deg", "rad"):
                    raise self.fail(line, f"angle must be deg or rad, got {kind!r:.80}")
                self.degrees = kind == "deg"

    def _root(self, rows: list[tuple[int, list[str]]]) -> None:
        root = self.bones["root"]
        for line, words in rows:
            if words[0] == "order":
                root.dof = self._dof(line, words[1:], {**MOVES, **TURNS})
            elif words[0] == "axis":
                root.axis_order = self._order(line, words[1:])
            elif words[0] == "orientation":
                root.axis = self._numbers(line, words, 3)
        if not root.dof:
            raise self.fail(
                rows[0][0] if rows else 1, "the root has no order, such as TX TY TZ RX RY RZ"
            )

    def _dof(self, line: int, words: list[str], known: dict[str, str]) -> tuple[str, ...]:
        dof = tuple(word.upper() for word in words)
        for d in dof:
            if d not in known:
                raise self.fail(
                    line, unknown_name("degree of freedom", d.lower(), map(str.lower, known))
                )
        if len(set(dof)) != len(dof):
            raise self.fail(line, f"a degree of freedom twice: {' '.join(words)!r:.80}")
        return dof

    def _order(self, line: int, words: list[str]) -> str:
        order = words[0].upper() if words else ""
        if sorted(order) != ["X", "Y", "Z"]:
            raise self.fail(line, f"an order of axes, such as XYZ, is needed, got {order!r:.80}")
        return order

    def _bones(self, rows: list[tuple[int, list[str]]]) -> None:
        bone: Bone | None = None
        for line, words in rows:
            key = words[0].lower()
            if key == "begin":
                if bone is not None:
                    raise self.fail(line, "begin before the last bone's end")
                bone = Bone("", line)
            elif bone is None:
                raise self.fail(line, f"expected begin, got {words[0]!r:.80}")
            elif key == "end":
                self._add(line, bone)
                bone = None
            else:
                self._bone_row(bone, key, line, words)
        if bone is not None:
            raise self.fail(rows[-1][0], f"bone {bone.name!r} has no end; the file is cut off")

    def _bone_row(self, bone: Bone, key: str, line: int, words: list[str]) -> None:
        if key == "name":
            bone.name = words[1] if len(words) > 1 else ""
        elif key == "direction":
            bone.direction = self._numbers(line, words, 3)
        elif key == "length":
            (bone.length,) = self._numbers(line, words, 1)
            if bone.length < 0.0:
                raise self.fail(line, f"a bone's length must not be negative, got {bone.length:g}")
        elif key == "axis":
            bone.axis = self._numbers(line, words, 3)
            bone.axis_order = self._order(line, words[4:])
        elif key == "dof":
            bone.dof = self._dof(line, words[1:], TURNS)

    def _add(self, line: int, bone: Bone) -> None:
        if not bone.name or not bone.name.isprintable():
            raise self.fail(bone.line, "a bone without a name")
        if bone.name in self.bones:
            raise self.fail(bone.line, f"bone {bone.name!r} is there already")
        if len(self.bones) >= MOST_JOINTS:
            raise self.fail(line, f"more than {MOST_JOINTS} bones")
        self.bones[bone.name] = bone

    def _numbers(self, line: int, words: list[str], size: int) -> tuple[float, ...]:
        numbers = floats_in(words[1 : 1 + size])
        if numbers is None or len(numbers) != size:
            raise self.fail(
                line, f"{words[0]} needs {size} numbers, got {' '.join(words[1:])!r:.80}"
            )
        return tuple(numbers)

    def _hierarchy(self, rows: list[tuple[int, list[str]]], last: int) -> dict[str, Bone]:
        """The bones, parents before children, depth-first."""
        for line, words in rows:
            if words[0].lower() in ("begin", "end"):
                continue
            for name in words:
                if name not in self.bones:
                    raise self.fail(line, unknown_name("bone", name, self.bones))
            for name in words[1:]:
                bone = self.bones[name]
                if bone.parent is not None or name == "root":
                    raise self.fail(line, f"bone {name!r} has a parent already")
                bone.parent = words[0]
                self.bones[words[0]].children.append(name)
        ordered: dict[str, Bone] = {}
        todo = ["root"]
        while todo:
            bone = self.bones[todo.pop()]
            ordered[bone.name] = bone
            todo += reversed(bone.children)
        lost = [name for name in self.bones if name not in ordered]
        if lost:
            raise self.fail(last, f"bone {lost[0]!r} does not hang on the root")
        return ordered


def lines_of(path: Path, most: int) -> Iterable[str]:
    """Lines of a file, one at a time."""
    text = read_text(path, most, ClipError)
    if not text.strip():
        raise ClipError(f"{path}: is empty")
    return io.StringIO(text, newline=None)
