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
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import ClipError, PoiseError
from poise.io.files import line_of_item, parse_json, read_text, write_atomically
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.formats.deepmimic_dog import dog_pieces, own_dog
from poise.motion.formats.deepmimic_layout import Layout, layout_of, unit

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
        character: Whose motion it is; None takes poise's humanoid or dog, by the number of columns.
        order: Names of the joints in the order of the file, the root left out, where the names of
            the character do not tell.
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
            from poise.characters import load_character

            character = load_character("humanoid")
        if character is None:
            raise reader.error(
                0,
                f"has {columns} columns; without a character only {HUMANOID_COLUMNS} (humanoid) "
                f"and {DOG_COLUMNS} (dog) can be read",
            )
        layout = layout_of(character, order, str(path))
    if columns != layout.columns:
        whose = f"character {character.name!r}" if character else "the dog"
        raise reader.error(
            0,
            f"has {columns} columns; {whose} needs {layout.columns}: duration, "
            f"root (7), joints ({layout.columns - 8})",
        )
    reader.check_rotations(frames, layout)
    fps, values, notes = _uniform(frames, layout, reader)
    if is_dog:
        character, q = own_dog(values)
    else:
        assert character is not None
        q = layout.q(values, character.nq)
    try:
        return Clip(character, q, fps, name=path.stem, notes=notes)
    except PoiseError as error:
        raise ClipError(f"{path}: {error}") from error


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


def _uniform(
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
    return fps, _between(values, layout, times, t), (note,)


def _between(values: Floats, layout: Layout, times: Floats, t: Floats) -> Floats:
    """Frames at times t: numbers in between, quaternions along the shortest turn."""
    i = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
    u = ((t - times[i]) / (times[i + 1] - times[i]))[:, None]
    found = (1.0 - u) * values[i] + u * values[i + 1]
    for _, at in layout.quaternions():
        part = slice(at - 1, at + 3)
        a, b = unit(values[i, part]), unit(values[i + 1, part])
        dot = np.sum(a * b, axis=1, keepdims=True)
        b = np.where(dot < 0.0, -b, b)
        angle = np.arctan2(np.linalg.norm(b - np.abs(dot) * a, axis=1)[:, None], np.abs(dot))
        # sin(u x) / sin(x), finite at 0
        near = angle < 1e-6
        sine = np.where(near, 1.0, np.sin(angle))
        weights = (np.where(near, s, np.sin(s * angle) / sine) for s in (1.0 - u, u))
        found[:, part] = unit(next(weights) * a + next(weights) * b)
    return found
