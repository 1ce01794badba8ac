"""Files of characters: YAML, MJCF, URDF, MASS, DeepMimic."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poise.errors import CharacterError
from poise.io.files import suffix_of

if TYPE_CHECKING:
    from poise.model.character import Character

WRITERS = (".yaml", ".yml", ".xml")
"""Endings of the files that can be written."""


def save_character(character: Character, path: str | os.PathLike[str]) -> None:
    """Write a character to a file, whole or not at all.

    Args:
        character: The character.
        path: .yaml or .yml is lossless; .xml is MJCF.
    """
    suffix_of(path, "characters", CharacterError)
    path = check_suffix(Path(path), WRITERS, "writes")
    if path.suffix.lower() == ".xml":
        format_module("mjcf").write(character, path)
    else:
        format_module("yaml").save(character, path)


def format_module(name: str) -> Any:
    """The module of a format, imported when it is needed."""
    return import_module(f"poise.model.formats.{name}")


def check_suffix(path: Path, known: tuple[str, ...], verb: str) -> Path:
    """The path, or an error if poise does not read or write files of its ending."""
    if path.suffix.lower() == ".fbx":
        raise CharacterError(f"{path}: FBX is closed; export GLB or BVH (Blender: File > Export)")
    if path.suffix.lower() not in known:
        raise CharacterError(
            f"{path}: no format of characters has the ending {path.suffix or 'no suffix'!r}; "
            f"poise {verb} {', '.join(known)}"
        )
    return path
