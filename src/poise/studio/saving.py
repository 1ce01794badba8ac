"""Files that a take becomes, by their endings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from poise.math.arrays import Progress
from poise.recording import Recording
from poise.simulation.pushes import Push

SHEET = 8, 2  # poses side by side, and rows of them


class Material(NamedTuple):
    """What files are made of.

    Attributes:
        recording: What happened.
        part: The character whose motion goes into files that hold one.
        copy: Which copy.
        beside: A recording to show beside it, where a file can.
        pushes: To be drawn, where a file can.
        title: What it is.
    """

    recording: Recording
    part: str
    copy: int = 0
    beside: Recording | None = None
    pushes: Sequence[Push] = ()
    title: str = "poise"


def save(kind: str, path: Path, material: Material, progress: Progress) -> Path:
    """Write one file, whole or not at all.

    Args:
        kind: Its ending: one of `requests.KINDS`.
        path: Where to.
        material: What it is made of.
        progress: Called with the share that is done, 0 to 1, where it takes long.
    """
    recording, copy = material.recording, material.copy
    if kind == "npz":
        recording.save(path)
    elif kind in ("bvh", "glb"):
        recording.clip(material.part, copy=copy).save(path)
    elif kind == "html":
        from poise.view.html import save_html

        save_html(
            path, recording, beside=material.beside, copy=copy, pushes=material.pushes,
            title=material.title,
        )  # fmt: skip
    elif kind == "png":
        from poise.view.recorded import recording_sheet
        from poise.view.render import save_image

        columns, rows = SHEET
        save_image(path, recording_sheet(recording, copy=copy, columns=columns, rows=rows))
    else:
        from poise.view.video import save_video

        # one thread: the other cores are for the simulation that goes on meanwhile
        save_video(path, recording, copy=copy, pushes=material.pushes, threads=1, progress=progress)
    return path
