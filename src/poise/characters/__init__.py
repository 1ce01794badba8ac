"""Characters by name or from a file.

load_character("humanoid")          a built-in one; builtin_names() lists them
load_character("snake-99")          a snake of any length, 6 + 3 k degrees of freedom
load_character("plank-3")           a chain of any number of planks
load_character("my_robot.yaml")     a file: YAML, MJCF, URDF, MASS, DeepMimic, BVH, AMC, GLB
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from poise.characters.builtin import NAMES, build, read
from poise.errors import CharacterError, unknown_name
from poise.io.files import suffix_of
from poise.model.character import Character
from poise.model.same_body import same_character

MOTIONS = (".bvh", ".amc", ".glb", ".gltf")
"""Endings of motion files from whose skeleton a character is made."""

READERS = (".yaml", ".yml", ".xml", ".urdf", ".txt", ".json", *MOTIONS)
"""Endings of the files that can be read."""

WRITERS = (".yaml", ".yml", ".xml")
"""Endings of the files that can be written."""

_NUMBERED = re.compile(r"(snake|plank)-\d{1,9}", re.ASCII)


def builtin_names() -> tuple[str, ...]:
    """Names of the built-in characters.

    Besides them there is snake-N for any N = 6 + 3 k, and plank-N for any N.
    """
    return NAMES


def load_character(
    source: str | os.PathLike[str], base: Literal["free", "fixed"] | None = None
) -> Character:
    """Load a built-in character, or one from a file.

    Args:
        source: Name of a built-in character, or path to a file: poise YAML (.yaml, .yml), MJCF or
            MASS (.xml), URDF, DeepMimic (.txt, .json), or a motion from whose skeleton a character
            is made (.bvh, .amc, .glb, .gltf).
        base: "free" or "fixed" frees the root or welds it to the world; None leaves it as it is. A
            URDF file says neither: None frees the root unless it is bolted down.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise CharacterError(f"a character is named by a string or a path, got {source!r:.80}")
    if isinstance(source, str) and (source in NAMES or _NUMBERED.fullmatch(source)):
        character = _builtin(source)
    else:
        return _read(source, base)
    return character if base is None else character.with_base(base)


def save_character(character: Character, path: str | os.PathLike[str]) -> None:
    """Write a character to a file, whole or not at all.

    Args:
        character: The character.
        path: .yaml or .yml is lossless; .xml is MJCF.
    """
    suffix_of(path, "characters", CharacterError)
    path = _checked_suffix(Path(path), WRITERS, "writes")
    if path.suffix.lower() == ".xml":
        _format("mjcf").write(character, path)
    else:
        _format("yaml").save(character, path)


def _read(source: str | os.PathLike[str], base: Literal["free", "fixed"] | None) -> Character:
    path = Path(source)
    named = isinstance(source, str) and not path.suffix and len(path.parts) < 2
    if named and not os.path.isfile(path):
        names = (*NAMES, "snake-N", "plank-N")
        raise CharacterError(
            f"{unknown_name('character', source, names, 'built-in')}; "
            f"or a path to a file: {', '.join(READERS)}"
        )
    if os.path.isdir(path):
        raise CharacterError(f"{path}: is not a file")
    suffix = _checked_suffix(path, READERS, "reads").suffix.lower()
    character: Character
    if suffix == ".urdf":
        character = _format("urdf").read(path, base=base)
        return character
    if suffix in MOTIONS:
        from poise.motion import load_clip

        character = load_clip(path).character
    elif suffix == ".xml":
        # MASS and MJCF share the ending
        mass = _format("mass")
        character = mass.load(path) if mass.recognises(path) else _format("mjcf").read(path)
    elif suffix in (".txt", ".json"):
        character = _format("deepmimic").load(path)
    else:
        character = _format("yaml").load(path)
    try:
        return character if base is None else character.with_base(base)
    except CharacterError as error:
        raise CharacterError(f"{path}: {error}") from error


def _format(name: str) -> Any:
    return import_module(f"poise.model.formats.{name}")


def _checked_suffix(path: Path, known: tuple[str, ...], verb: str) -> Path:
    if path.suffix.lower() == ".fbx":
        raise CharacterError(f"{path}: FBX is closed; export GLB or BVH (Blender: File > Export)")
    if path.suffix.lower() not in known:
        raise CharacterError(
            f"{path}: cannot tell a character file by {path.suffix or 'no suffix'!r}; "
            f"poise {verb} {', '.join(known)}"
        )
    return path


@lru_cache(maxsize=64)
def _builtin(name: str) -> Character:
    """A built-in character; it is immutable, so one is enough."""
    return read(name) if name in NAMES else build(name)


def as_builtin(character: Character) -> Character:
    """The loaded built-in character in place of one that is the same but for rounding.

    The one in a file may have been computed on another CPU.
    """
    if character.name not in NAMES:
        return character
    known = _builtin(character.name)
    return known if same_character(character, known) else character
