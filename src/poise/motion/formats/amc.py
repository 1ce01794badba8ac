"""ASF/AMC (Acclaim): a skeleton of bones in one file, their angles frame by frame in another.

A bone starts where its parent ends, and turns there:

    L = C M C^-1,   M = R_dn ... R_d2 R_d1      its degrees of freedom d1 d2 ... dn, first one first
                    C = R_z R_y R_x             its own axes, `axis x y z XYZ`

Lengths are in inches divided by the file's `length` (CMU: 0.45, so a unit is 0.056444 m). The files
have no frame rate; CMU's have 120 frames per second.
"""

from __future__ import annotations

import math
import os
from array import array
from pathlib import Path

import numpy as np

from poise.errors import ClipError, unknown_name
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.formats.asf import (
    MOVES,
    TURNS,
    Bone,
    Skeleton,
    channel_names,
    floats_in,
    lines_of,
    read_asf,
)
from poise.motion.formats.bvh_channels import clip_from_channels
from poise.motion.formats.bvh_frames import MOST_POSES

MOST_BYTES = 64 * 2**20


def read(
    path: str | os.PathLike[str],
    *,
    character: Character | None = None,
    asf: str | os.PathLike[str] | None = None,
    fps: float = 120.0,
) -> Clip:
    """Read an AMC file and its skeleton.

    Args:
        path: The .amc file.
        character: Whose motion it shall be; its links are named as the bones. None makes a
            character from the skeleton.
        asf: The .asf file; unless given, the one beside it with the same name, with the name up to
            the first underscore (02_01.amc: 02.asf), or the only one in the folder.
        fps: Frames per second, which the file does not say.
    """
    path = Path(path)
    if not (isinstance(fps, (int, float)) and math.isfinite(fps) and 0.0 < fps <= 1e5):
        raise ClipError(f"fps must be a positive number, got {fps!r:.80}")
    skeleton = read_asf(_beside(path) if asf is None else Path(asf))
    rig = skeleton.rig(float(fps), path.stem)
    return clip_from_channels(rig, _read_frames(path, skeleton), character, path)


def _beside(path: Path) -> Path:
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
    degrees, table = _table(path, start, at, MOST_POSES // len(skeleton.bones))
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


def _table(
    path: Path, start: dict[str, tuple[int, int]], width: int, most: int
) -> tuple[bool, Floats]:
    """Whether angles are in degrees, and the numbers as the file has them, bones in rig order.

    Args:
        path: The file.
        start: Where the numbers of each bone go in a row, and how many it has.
        width: Numbers in a row.
        most: How many frames are read.
    """
    degrees = True
    table = array("d")
    count = 0
    row: list[float] = []
    seen: set[str] = set()
    first: int | None = None
    number = 0

    def finish() -> None:
        missing = [name for name in start if name not in seen]
        if missing:
            raise ClipError(
                f"{path}:{number}: frame {count + (first or 0)} has no line for bone "
                f"{missing[0]!r}; the file is cut off, or belongs to another skeleton"
            )
        table.extend(row)

    for number, line in enumerate(lines_of(path, MOST_BYTES), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0].startswith(":"):
            degrees = degrees and words[0].upper() != ":RADIANS"
            continue
        if len(words) == 1 and words[0].isdecimal():
            frame = int(words[0][:12])
            if first is None:
                first = frame
            else:
                finish()
                count += 1
            if frame != first + count:
                raise ClipError(
                    f"{path}:{number}: frame {first + count} should come here, got {frame}; "
                    "frames are missing"
                )
            if count >= most:
                raise ClipError(f"{path}:{number}: more than {most} frames, the most that are read")
            row, seen = [0.0] * width, set()
            continue
        _bone_line(path, number, words, start, first, seen, row)
    if first is None:
        raise ClipError(f"{path}:{number}: no frames; a frame starts with its number on a line")
    finish()
    return degrees, np.array(table).reshape(count + 1, width)


def _bone_line(
    path: Path,
    number: int,
    words: list[str],
    start: dict[str, tuple[int, int]],
    first: int | None,
    seen: set[str],
    row: list[float],
) -> None:
    """Put the numbers of one bone into the row of its frame."""
    name = words[0]
    if first is None:
        raise ClipError(
            f"{path}:{number}: expected the number of the first frame, got {name!r:.80}"
        )
    if name not in start:
        raise ClipError(f"{path}:{number}: {unknown_name('moving bone', name[:80], start)}")
    if name in seen:
        raise ClipError(f"{path}:{number}: bone {name!r} is in this frame already")
    at, size = start[name]
    numbers = floats_in(words[1:])
    if numbers is None or len(numbers) != size:
        raise ClipError(
            f"{path}:{number}: bone {name!r} has {size} degrees of freedom, so {size} finite "
            f"numbers are needed, got {' '.join(words[1:])!r:.80}"
        )
    seen.add(name)
    row[at : at + size] = numbers
