"""BVH: a hierarchy of joints with offsets and channels, then one line of numbers per frame.

    R = R_c1(a1) R_c2(a2) R_c3(a3)      the rotation channels c1 c2 c3, in their order, in degrees
    p = positions, where a joint has position channels; they replace its offset

Any order of channels, three or six per joint, fewer, or none; extra roots; tabs and spaces; line
ends of any system. The frames are kept as they are, also a T-pose that was put in as the first.

The format has no unit and no up axis: `guess_unit` and `guess_up` of `poise.anatomy.rig` say how
they are found. A frame time with at least three digits that is a rounded 1/n, n whole, means n
frames per second: .0083333 is 120.
"""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import Literal

from poise.anatomy.rig import Rig, RigJoint, guess_unit, guess_up
from poise.errors import ClipError
from poise.io.files import decode, line_at, read_bounded
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.formats.bvh_channels import clip_from_channels
from poise.motion.formats.bvh_frames import read_frames
from poise.motion.formats.bvh_hierarchy import Hierarchy
from poise.motion.formats.bvh_write import write

MOST_BYTES = 128 * 2**20
"""Larger files are refused: 20 minutes of CMU's skeleton at 120 frames per second."""

UNITS_READ = (1e-6, 1e3)
"""Metres per unit of a file that are believed, least and most."""

MOST_HEAD_BYTES = 16 * 2**20


def read(
    path: str | os.PathLike[str],
    *,
    character: Character | None = None,
    unit: float | None = None,
    up: Literal["y", "z"] | None = None,
) -> Clip:
    """Read a BVH file.

    Args:
        path: The file.
        character: Whose motion it shall be; its links are named as the file's joints. None makes a
            character from the file's skeleton.
        unit: Metres per unit of the file; guessed from the skeleton's height unless given.
        up: Which axis points up, "y" or "z"; guessed from where the feet are unless given.
    """
    path = Path(path)
    joints, fps, values = _read_file(path)
    up = guess_up(joints) if up is None else up
    if up not in ("y", "z"):
        raise ClipError(f"up must be 'y' or 'z', got {up!r:.80}")
    unit = guess_unit(joints, up) if unit is None else unit
    least, most = UNITS_READ
    if not (isinstance(unit, (int, float)) and least <= unit <= most):
        raise ClipError(f"unit must be {least:g} to {most:g} metres, got {unit!r:.80}")
    rig = Rig(joints, "bvh", float(unit), up, fps, path.stem)
    return clip_from_channels(rig, values, character, path)


def _read_file(path: Path) -> tuple[tuple[RigJoint, ...], float, Floats]:
    """Joints, frames per second, and channels (k, channels) of a file."""
    data = read_bounded(path, MOST_BYTES, ClipError)
    if not data.strip():
        raise ClipError(f"{path}: is empty; a BVH file starts with HIERARCHY")
    # a joint may be called MOTION, but not alone on its line
    pattern = rb"(?:^|[\r\n}])[ \t]*(MOTION)[ \t]*(?=[\r\n]|$)"
    found = re.compile(pattern, re.IGNORECASE).search(data, 0, MOST_HEAD_BYTES)
    if found is None:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ClipError(f"{path}:1: is UTF-16, not UTF-8 text; save it as UTF-8")
        last = line_at(data, min(len(data), MOST_HEAD_BYTES))
        raise ClipError(
            f"{path}:{last}: no line MOTION up to here; the file is cut off, or no BVH file"
        )
    start = found.start(1)
    joints = Hierarchy(path, decode(data[:start], str(path), ClipError)).joints()
    return joints, *read_frames(path, data, start, joints)


__all__ = ["read", "write"]
