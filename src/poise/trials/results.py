"""Results: the files of a trial in a folder; all of them, or none.

recording.npz   every frame, to resume bit for bit: `poise.load_recording`, `poise view`
recording.html  the same for any browser, without a network
motion.bvh      the simulated motion, on the rig of the clip's file if it has one
motion.glb      the same with its body, for Blender and game engines
overview.png    errors, torques, momentum, energy and ground force over time
video.mp4       a video
table.json      the numbers
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from poise.io.files import check_output_folder, made_by, write_atomically, write_output_folder
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.recording.summary import recording_table
from poise.simulation.pushes import Push
from poise.view.html import save_html
from poise.view.plots import overview
from poise.view.video import save_video

VIDEO, TABLE = "video.mp4", "table.json"
MOTION = ("motion.bvh", "motion.glb")
FILES = ("recording.npz", *MOTION, "overview.png", "recording.html", VIDEO, TABLE)
"""In the order in which they are written."""

Progress = Callable[[str, float], None]
"""Takes the name of a file, and the completed fraction of it, 0 to 1."""

Writer = Callable[[Path, Callable[[float], None]], None]
"""Writes a file to a path, and reports the completed fraction."""


def save_results(
    out: str | os.PathLike[str],
    recording: Recording,
    *,
    clip: Clip,
    name: str,
    like: Clip | None = None,
    video: bool = True,
    pushes: Sequence[Push] = (),
    table: dict[str, Any] | None = None,
    more: Mapping[str, Callable[[Path], None]] | None = None,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Writes all results of a trial into a folder.

    Args:
        out: The folder; it is created if it does not exist. Results of an earlier trial are
            replaced.
        recording: Of a world of one copy.
        clip: The reference.
        name: Title of the pictures.
        like: A clip on whose rig motion.bvh is written; None takes that of `clip`.
        video: Whether to write a video.
        pushes: Pushes to draw, with directions in the world.
        table: Numbers for table.json; None takes those of `recording_table`.
        more: Writers of further files, by their names.
        progress: Called with the name of a file and the completed fraction of it.

    Returns:
        The files by their names.
    """
    table = {**(recording_table(recording) if table is None else table), **made_by()}
    folder = check_out(out)
    writers = _writers(recording, clip, name, like, tuple(pushes), table)
    if not video:
        del writers[VIDEO]
    steps = {file: partial(_write, write, progress) for file, write in writers.items()}
    remove = set(FILES) - set(writers)
    return write_output_folder(folder, {**steps, **(more or {})}, remove)


def check_out(out: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> Path:
    """Raises if a folder cannot take results; see `check_output_folder`."""
    return check_output_folder(out, FILES, TABLE, inputs)


def motion_of(recording: Recording, clip: Clip) -> Clip:
    """The simulated motion, with name and rig of the reference clip."""
    simulated = recording.clip()
    source = clip.source if clip.character.same_body(simulated.character) else None
    return Clip(simulated.character, simulated.frames, simulated.fps, source=source, name=clip.name)


def _writers(
    recording: Recording,
    clip: Clip,
    name: str,
    like: Clip | None,
    pushes: tuple[Push, ...],
    table: dict[str, Any],
) -> dict[str, Writer]:
    """What writes each of FILES; see `save_results`."""
    data = (json.dumps(table, indent=1) + "\n").encode()
    drawing: dict[str, Any] = {"pushes": pushes, "title": name}
    motion = motion_of(recording, clip)
    return {
        "recording.npz": lambda path, _: recording.save(path),
        "motion.bvh": lambda path, report: _on_rig(motion, like, report).save(path),
        "motion.glb": lambda path, _: motion.save(path),
        "overview.png": lambda path, _: overview(path, recording, **drawing),
        "recording.html": lambda path, _: save_html(path, recording, **drawing),
        VIDEO: lambda path, report: save_video(path, recording, pushes=pushes, progress=report),
        TABLE: lambda path, _: write_atomically(path, data),
    }


def _write(write: Writer, progress: Progress | None, path: Path) -> None:
    """Writes a file and reports its progress under its name."""

    def report(fraction: float) -> None:
        if progress is not None:
            progress(path.name, fraction)

    report(0.0)
    write(path, report)
    report(1.0)


def _on_rig(motion: Clip, like: Clip | None, report: Callable[[float], None]) -> Clip:
    if like is None:
        return motion
    from poise.motion.retargeting.retarget import on_rig

    return on_rig(motion, like, progress=report)
