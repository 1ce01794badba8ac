"""Motions: clips, and the files they come from and go to.

load_clip("take.bvh")               on a character made from the file's own skeleton
load_clip("walk.txt", character)    on this character, whose joints must match the file's
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from poise.character import Character
from poise.errors import ClipError
from poise.motion.clip import Clip

READERS = {
    ".bvh": "bvh",
    ".amc": "amc",
    ".glb": "glb",
    ".npz": "npz",
    ".txt": "deepmimic",
    ".json": "deepmimic",
}
"""Modules of poise.motion.formats that read files, by their ending."""

WRITERS = {
    ".bvh": "bvh",
    ".glb": "glb",
    ".npz": "npz",
    ".txt": "deepmimic",
    ".json": "deepmimic",
    ".usd": "usd",
    ".usda": "usd",
    ".usdc": "usd",
}
"""Modules of poise.motion.formats that write files, by their ending."""


def load_clip(source: str | os.PathLike[str], character: Character | None = None) -> Clip:
    """Load a motion from a file.

    Args:
        source: Path to a .bvh, .amc, .glb, .npz (ours or AMASS) or DeepMimic .txt/.json file.
        character: Whose motion it shall be: its joints must be those of the file. None makes a
            character from the file's own skeleton.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise ClipError(f"a clip is named by a path, got {source!r:.80}")
    path = Path(source)
    module = _module(path, READERS, "read")
    if not path.is_file():
        raise ClipError(f"{path}: no such file")
    clip: Clip = module.read(path) if character is None else module.read(path, character=character)
    return clip


def save_clip(clip: Clip, path: str | os.PathLike[str]) -> None:
    """Write a motion to a file, whole or not at all; its ending says which format."""
    path = Path(path)
    _module(path, WRITERS, "written").write(clip, path)


def _module(path: Path, known: dict[str, str], verb: str) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".fbx":
        raise ClipError(f"{path}: FBX is closed; export GLB or BVH (Blender: File > Export)")
    if suffix not in known:
        endings = ", ".join(sorted(known))
        raise ClipError(f"{path}: files that can be {verb} end in {endings}")
    return importlib.import_module(f"poise.motion.formats.{known[suffix]}")


__all__ = ["Clip", "load_clip", "save_clip"]
