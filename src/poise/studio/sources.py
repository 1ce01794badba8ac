"""What a studio is opened with: a clip or a recording, by name, file or object."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

from poise.errors import PoiseError
from poise.io.archive import Archive
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.recording.recording import load_recording

Source: TypeAlias = "str | os.PathLike[str] | Clip | Recording | None"


def chosen_by(source: Source, beside: Source = None) -> dict[str, Any]:
    """What a session is to be made with.

    Args:
        source: What to show first.
        beside: What to compare with.
    """
    chosen: dict[str, Any] = {"names": (called(source, "first"), called(beside, "second"))}
    if isinstance(source, (str, os.PathLike)) and is_recording(source):
        chosen["recording"] = load_recording(source)
    elif isinstance(source, Recording):
        chosen["recording"] = source
    elif source is not None:
        chosen["clip"] = source if isinstance(source, Clip) else os.fspath(source)
    if beside is not None:
        if isinstance(beside, (str, os.PathLike)):
            beside = load_recording(beside)
        if not isinstance(beside, Recording):
            raise PoiseError(f"beside must be a recording, got {beside!r:.80}")
        chosen["compare"] = beside
    return chosen


def called(source: Source, otherwise: str) -> str:
    """What to call a recording: its file with the folder, since those of `poise track` are alike.

    Args:
        source: The file, or something else.
        otherwise: The name of something else.
    """
    if not isinstance(source, (str, os.PathLike)):
        return otherwise
    path = Path(source)
    name = Path(path.absolute().parent.name, path.name).as_posix()
    return "".join(c for c in name if c.isprintable())[-80:]


def is_recording(source: str | os.PathLike[str]) -> bool:
    """Whether a file is a recording of ours, and not a clip."""
    path = Path(source)
    if path.suffix.lower() != ".npz" or not path.is_file():
        return False
    with Archive.open(path, PoiseError) as archive:
        return "scene" in archive.names and "frames" not in archive.names
