"""The second part of a BVH file: the number of frames, their time, and a line of numbers for each.

A frame time with at least three digits that is a rounded 1/n, n whole, means n frames per second:
.0083333 is 120.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np

from poise.anatomy.rig import RigJoint
from poise.errors import ClipError
from poise.io.files import line_at
from poise.math.arrays import Floats
from poise.motion.formats.bvh_hierarchy import LARGEST_NUMBER, number_in

MOST_POSES = 4_000_000
"""Frames times joints that are read: an hour of 18 joints at 60 frames per second; about 2 s and
200 MB for each million."""

RATES = (0.01, 100_000.0)
"""Frames per second that are believed, least and most."""

BLOCK = 4 * 2**20
"""Bytes of motion that are parsed at a time."""


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
    said = _count(path, line_at(data, head.start(1)), head.group(1), len(joints))
    fps = _rate(path, line_at(data, head.start(2)), head.group(2))
    width = sum(len(joint.channels) for joint in joints)
    if width == 0:
        raise ClipError(f"{path}: no joint has channels, so nothing moves")
    rows = _rows(path, data, head.end(), width, said)
    if len(rows) != said:
        last = line_at(data, len(data.rstrip()))
        raise ClipError(
            f"{path}:{last}: the file says Frames: {said}, but holds {len(rows)}; "
            "it was cut off, or the number is wrong"
        )
    return fps, rows


def _count(path: Path, line: int, word: bytes, joints: int) -> int:
    """The number of frames, as far as it is one and not too large."""
    digits = word.lstrip(b"0")
    if not re.fullmatch(rb"\d+", digits):
        raise ClipError(f"{path}:{line}: Frames must be a positive number, got {_show(word)}")
    most = MOST_POSES // joints
    if len(digits) > len(str(most)) or int(digits) > most:
        shown = digits.decode() if len(digits) < 20 else f"a number of {len(digits)} digits"
        raise ClipError(
            f"{path}:{line}: Frames: {shown} of {joints} joints are too many; {most} are read"
        )
    return int(digits)


def _show(word: bytes) -> str:
    return repr(word[:60].decode("utf-8", "replace"))


def _rate(path: Path, line: int, word: bytes) -> float:
    """Frames per second from a printed frame time."""
    text = word.decode("ascii", "replace")
    time = number_in(text)
    if time is None or not 1.0 / RATES[1] <= time <= 1.0 / RATES[0]:
        raise ClipError(
            f"{path}:{line}: Frame Time must be seconds between {1 / RATES[1]:g} and "
            f"{1 / RATES[0]:g}, got {_show(word)}"
        )
    fps = 1.0 / time
    digits = re.fullmatch(r"\+?(\d*)\.(\d+)", text)
    if digits is None or len((digits[1] + digits[2]).lstrip("0")) < 3 or fps < 0.5:
        return fps
    half = 0.5000001 * 10.0 ** -len(digits[2]) + 1e-15
    whole = float(round(fps))
    return whole if abs(1.0 / whole - time) <= half else fps


def _rows(path: Path, data: bytes, start: int, width: int, said: int) -> Floats:
    """Parse the frames, a block of lines at a time."""
    blocks: list[Floats] = []
    count = 0
    while start < len(data):
        stop = min(start + BLOCK, len(data))
        if stop < len(data):
            ends = [data.find(end, stop, stop + BLOCK) for end in (b"\n", b"\r")]
            ends = [end for end in ends if end >= 0]
            if not ends and stop + BLOCK < len(data):
                line = line_at(data, stop)
                raise ClipError(f"{path}:{line}: is longer than {BLOCK // 2**20} MiB")
            stop = min(ends) + 1 if ends else len(data)
        block = _block(path, data, start, stop, width)
        blocks.append(block)
        count += len(block)
        if count > said:
            line = _frame_line(data, start, len(block) - (count - said))
            raise ClipError(
                f"{path}:{line}: the file says Frames: {said}, but goes on with more numbers"
            )
        start = stop
    return np.concatenate(blocks) if blocks else np.empty((0, width))


def _frame_line(data: bytes, start: int, row: int) -> int:
    """Line of a row, counted from the lines that are not blank after start."""
    first = line_at(data, start)
    at = -1
    for extra, line in enumerate(data[start : start + 2 * BLOCK].splitlines()):
        at += bool(line.strip())
        if at == row:
            return first + extra
    return first


def _block(path: Path, data: bytes, start: int, stop: int, width: int) -> Floats:
    """Numbers (rows, width) of the lines from start to stop."""
    text = data[start:stop]
    count = _count_words(path, data, start, text, width)
    values = _parse(text) if count else np.empty(0)
    if len(values) == count and (np.abs(values) <= LARGEST_NUMBER).all():
        return values.reshape(-1, width)
    words = text.split()
    bad = (i for i, word in enumerate(words) if number_in(word.decode("latin-1")) is None)
    at = next(bad, min(len(values), len(words) - 1))
    line = _frame_line(data, start, at // width)
    raise ClipError(
        f"{path}:{line}: channel {at % width + 1} must be a number, finite and below "
        f"{LARGEST_NUMBER:g} in size, got {_show(words[at])}"
    )


def _parse(text: bytes) -> Floats:
    """Numbers up to the first word that is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns where it stops, or refuses
        try:
            values: Floats = np.fromstring(text, sep=" ")
        except ValueError:
            values = np.empty(0)
    return values


def _count_words(path: Path, data: bytes, start: int, text: bytes, width: int) -> int:
    """Count words, and check that every line that is not blank has one for each channel."""
    chars = np.frombuffer(text, dtype=np.uint8)
    space = (chars == 32) | ((chars >= 9) & (chars <= 13))
    begins = ~space
    begins[1:] &= space[:-1]
    words = np.flatnonzero(begins)
    ends = np.flatnonzero((chars == 10) | (chars == 13))
    counts = np.diff(np.searchsorted(words, ends), prepend=0, append=len(words))
    wrong = counts[(counts != width) & (counts != 0)]
    if len(wrong):
        full = counts[counts != 0]
        row = int(np.argmax(full != width))
        line = _frame_line(data, start, row)
        raise ClipError(
            f"{path}:{line}: a frame has {width} numbers, one per channel; "
            f"this line has {int(full[row])}"
        )
    return int(counts.sum())
