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
import io
import math
import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from poise.anatomy.rig import (
    AXES,
    IDENTITY,
    Rig,
    RigJoint,
    forward_kinematics,
    frames_on,
    guess_unit,
    guess_up,
)
from poise.anatomy.skeleton import character_from_rig
from poise.errors import ClipError
from poise.io.files import decode, line_at, read_bounded
from poise.math.arrays import Floats
from poise.math.rotation import multiply, turn
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.formats import name_in_errors
from poise.motion.formats.bvh_write import write as write

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
    """Reads a BVH file.

    Args:
        path: The file.
        character: The character that moves; its links are named as the file's joints. None makes a
            character from the file's skeleton.
        unit: Metres per unit of the file; guessed from the skeleton's height unless given.
        up: Which axis points up, "y" or "z"; guessed from where the feet are unless given.
    """
    return parse(path, unit=unit, up=up)(character)


def parse(
    path: str | os.PathLike[str],
    *,
    unit: float | None = None,
    up: Literal["y", "z"] | None = None,
) -> Callable[[Character | None], Clip]:
    """Parses a BVH file once; the result makes its clip on a character, as `read` does."""
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
    return partial(clip_from_channels, path, rig, values)


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


# the hierarchy: joints with offsets and channels

MOST_JOINTS = 1000
LARGEST_NUMBER = 1e9

CHANNELS = ("Xposition", "Yposition", "Zposition", "Xrotation", "Yrotation", "Zrotation")


@dataclass
class _Draft:
    """A joint while its lines are read."""

    name: str
    parent: int
    line: int
    offset: tuple[float, ...] | None = None
    channels: tuple[str, ...] | None = None
    end: tuple[float, ...] | None = None


class Hierarchy:
    """Reads the first part of a file, word by word."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.words = self._words(text)
        self.drafts: list[_Draft] = []
        self.open: list[int] = []  # indices of joints whose brace is open

    def fail(self, line: int, what: str) -> ClipError:
        return ClipError(f"{self.path}:{line}: {what}")

    def joints(self) -> tuple[RigJoint, ...]:
        """The joints of the one tree."""
        line, word = self._next("HIERARCHY")
        if word.upper() != "HIERARCHY":
            raise self.fail(line, f"a BVH file starts with HIERARCHY, got {word!r:.80}")
        self._read_tree()
        names: dict[str, int] = {}
        for draft in self.drafts:
            if draft.name in names:
                raise self.fail(
                    draft.line,
                    f"joint {draft.name!r} is there already, in line "
                    f"{names[draft.name]}; names must differ",
                )
            names[draft.name] = draft.line
        return tuple(self._joint(draft) for draft in self.drafts)

    def _joint(self, draft: _Draft) -> RigJoint:
        if draft.offset is None:
            raise self.fail(draft.line, f"joint {draft.name!r} has no OFFSET")
        return RigJoint(draft.name, draft.parent, draft.offset, draft.channels or (), draft.end)

    def _words(self, text: str) -> Iterator[tuple[int, str]]:
        """Words with their lines; braces may stick to other words, names may have spaces."""
        number = 0
        for number, line in enumerate(io.StringIO(text, newline=None), 1):
            words = line.replace("{", " { ").replace("}", " } ").split()
            head = words[0].upper() if words else ""
            if head in ("ROOT", "JOINT") and len(words) > 1:
                yield number, words[0]
                # a name runs to the end of its line, or to a brace on it
                brace = words.index("{") if "{" in words else len(words)
                yield number, " ".join(words[1:brace])
                words = words[brace:]
            for word in words:
                yield number, word
        yield number, ""

    def _next(self, desired: str) -> tuple[int, str]:
        line, word = next(self.words)
        if word == "":
            raise self.fail(line, f"the hierarchy ends where {desired} should be")
        return line, word

    def _expect(self, symbol: str, where: str) -> None:
        line, word = self._next(symbol)
        if word.upper() != symbol:
            raise self.fail(line, f"expected {symbol} {where}, got {word!r:.80}")

    def _read_tree(self) -> None:
        for line, word in self.words:
            kind, inside = word.upper(), bool(self.open)
            if word == "":
                if inside:
                    raise self.fail(line, "the hierarchy ends before its last brace is closed")
                if not self.drafts:
                    raise self.fail(line, "the hierarchy has no ROOT")
            elif kind == "ROOT" and not inside:
                if self.drafts:
                    raise self.fail(line, "a second ROOT; poise reads files with one skeleton")
                self._open(-1, line)
            elif kind == "JOINT" and inside:
                self._open(self.open[-1], line)
            elif kind == "END" and inside:
                self._end_site(self.drafts[self.open[-1]])
            elif kind == "OFFSET" and inside:
                draft = self.drafts[self.open[-1]]
                if draft.offset is not None:
                    raise self.fail(line, f"joint {draft.name!r} has a second OFFSET")
                draft.offset = self._numbers()
            elif kind == "CHANNELS" and inside:
                self._channels(self.drafts[self.open[-1]])
            elif word == "}" and inside:
                self.open.pop()
            else:
                known = "ROOT, JOINT, End Site, OFFSET, CHANNELS or a brace"
                raise self.fail(line, f"expected {known}, got {word!r:.80}")

    def _open(self, parent: int, line: int) -> None:
        _, name = self._next("a joint's name")
        if name in ("{", "}") or not name.isprintable():
            raise self.fail(line, f"a joint without a printable name, got {name!r:.80}")
        if len(self.drafts) >= MOST_JOINTS:
            raise self.fail(line, f"more than {MOST_JOINTS} joints")
        self._expect("{", f"after joint {name!r}")
        self.open.append(len(self.drafts))
        self.drafts.append(_Draft(name[:200], parent, line))

    def _end_site(self, draft: _Draft) -> None:
        """End Site { OFFSET x y z }; a joint may have several, the longest counts."""
        line, word = self._next("Site")
        while word != "{":
            if word == "}" or word.upper() in ("OFFSET", "JOINT", "CHANNELS"):
                raise self.fail(line, f"expected {{ after End Site, got {word!r:.80}")
            line, word = self._next("{")
        self._expect("OFFSET", "of the End Site")
        end = self._numbers()
        if draft.end is None or math.hypot(*end) > math.hypot(*draft.end):
            draft.end = end
        self._expect("}", "after the End Site")

    def _numbers(self) -> tuple[float, ...]:
        numbers: list[float] = []
        for axis in "xyz":
            line, word = self._next(f"the {axis} of an OFFSET")
            found = floats_in([word])
            if found is None:
                raise self.fail(line, f"an OFFSET is three numbers, got {word!r:.80}")
            numbers += found
        return tuple(numbers)

    def _channels(self, draft: _Draft) -> None:
        line, word = self._next("the number of channels")
        if draft.channels is not None:
            raise self.fail(line, f"joint {draft.name!r} has a second CHANNELS")
        if word not in tuple("0123456"):
            raise self.fail(line, f"a joint has 0 to 6 CHANNELS, got {word!r:.80}")
        channels: list[str] = []
        for _ in range(int(word)):
            line, name = self._next("a channel")
            known = {c.lower(): c for c in CHANNELS}
            channel = known.get(name.lower())
            if channel is None:
                raise self.fail(
                    line,
                    f"joint {draft.name!r} has {word} channels, of which {name!r:.80} is none;"
                    f" they are {', '.join(CHANNELS)}",
                )
            if channel in channels:
                raise self.fail(line, f"joint {draft.name!r} has channel {channel} twice")
            channels.append(channel)
        draft.channels = tuple(channels)


def floats_in(words: Sequence[str]) -> list[float] | None:
    """Finite numbers of believable size in plain digits; None if a word is not one."""
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    text = "".join(words)
    plain = text.isascii() and "_" not in text
    return numbers if plain and all(abs(x) <= LARGEST_NUMBER for x in numbers) else None


# the frames: their number, their time, and a line of numbers for each

MOST_POSES = 4_000_000
"""Frames times joints that are read: an hour of 18 joints at 60 frames per second; about 2 s and
200 MB for each million."""

RATES = (0.01, 100_000.0)
"""Frames per second that are believed, least and most."""

LONGEST_LINE = 4 * 2**20
"""Characters of a line that are parsed."""


def read_frames(
    path: Path, data: bytes, start: int, joints: tuple[RigJoint, ...]
) -> tuple[float, Floats]:
    """Frames per second and channels from the part after the hierarchy."""
    pattern = rb"MOTION\s+Frames[ \t]*:?\s*(\S+)\s+Frame[ \t]+Time[ \t]*:?\s*(\S+)[ \t]*"
    head = re.compile(pattern, re.IGNORECASE).match(data, start, start + 4096)
    line = line_at(data, start)
    if head is None:
        raise ClipError(
            f"{path}:{line + 1}: MOTION must be followed by the lines 'Frames: n' and "
            "'Frame Time: seconds'"
        )
    frames, time = (word.decode("utf-8", "replace") for word in head.groups())
    stated = _count(path, line_at(data, head.start(1)), frames, len(joints))
    fps = _rate(path, line_at(data, head.start(2)), time)
    width = sum(len(joint.channels) for joint in joints)
    if width == 0:
        raise ClipError(f"{path}: no joint has channels, so nothing moves")
    rows = _rows(path, data, head.end(), width, stated)
    if len(rows) != stated:
        last = line_at(data, len(data.rstrip()))
        raise ClipError(
            f"{path}:{last}: the file says Frames: {stated}, but holds {len(rows)}; "
            "it was cut off, or the number is wrong"
        )
    return fps, rows


def _count(path: Path, line: int, word: str, joints: int) -> int:
    """The number of frames, as far as it is one and not too large."""
    digits = word.lstrip("0")
    if not re.fullmatch(r"[0-9]+", digits):
        raise ClipError(f"{path}:{line}: Frames must be a positive number, got {word!r:.62}")
    most = MOST_POSES // joints
    if len(digits) > len(str(most)) or int(digits) > most:
        shown = digits if len(digits) < 20 else f"a number of {len(digits)} digits"
        raise ClipError(
            f"{path}:{line}: Frames: {shown} of {joints} joints are too many; {most} are read"
        )
    return int(digits)


def _rate(path: Path, line: int, text: str) -> float:
    """Frames per second from a printed frame time."""
    time = (floats_in([text]) or [0.0])[0]
    if not 1.0 / RATES[1] <= time <= 1.0 / RATES[0]:
        raise ClipError(
            f"{path}:{line}: Frame Time must be seconds between {1 / RATES[1]:g} and "
            f"{1 / RATES[0]:g}, got {text!r:.62}"
        )
    fps = 1.0 / time
    digits = re.fullmatch(r"\+?(\d*)\.(\d+)", text)
    if digits is None or len((digits[1] + digits[2]).lstrip("0")) < 3 or fps < 0.5:
        return fps
    half = 0.5000001 * 10.0 ** -len(digits[2]) + 1e-15
    whole = float(round(fps))
    return whole if abs(1.0 / whole - time) <= half else fps


def _rows(path: Path, data: bytes, start: int, width: int, stated: int) -> Floats:
    """Channels (k, channels) of the lines from start on that are not blank."""
    table, count = array("d"), 0
    lines = io.TextIOWrapper(io.BytesIO(data[start:]), "ascii", "replace", newline=None)
    for number, line in enumerate(lines, line_at(data, start)):
        if len(line) > LONGEST_LINE:
            raise ClipError(f"{path}:{number}: is longer than {LONGEST_LINE // 2**20} MiB")
        words = line.split()
        if not words:
            continue
        if len(words) != width:
            raise ClipError(
                f"{path}:{number}: a frame has {width} numbers, one per channel; "
                f"this line has {len(words)}"
            )
        if count == stated:
            raise ClipError(
                f"{path}:{number}: the file says Frames: {stated}, but goes on with more numbers"
            )
        numbers = floats_in(words)
        if numbers is None:
            bad = next(i for i, word in enumerate(words) if floats_in([word]) is None)
            raise ClipError(
                f"{path}:{number}: channel {bad + 1} must be a number, finite and below "
                f"{LARGEST_NUMBER:g} in size, got {words[bad]!r:.62}"
            )
        table.extend(numbers)
        count += 1
    return np.array(table).reshape(count, width)


# channels to poses


def clip_from_channels(path: Path, rig: Rig, values: Floats, character: Character | None) -> Clip:
    """A clip from the channels (k, channels) of all joints, one after another, in degrees."""
    rotations, offsets = local_poses(rig, values)
    with name_in_errors(path):
        if character is None:
            still, sliding = _still(rig, rotations), _sliding(rig, offsets)
            character = character_from_rig(rig, still=still, sliding=sliding)
        q = frames_on(character, rig, *forward_kinematics(rig, rotations, offsets))
        return Clip(character, q, rig.fps, source=rig, name=path.stem)


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
