"""Characters by name or from a file.

load_character("humanoid")          a built-in one; builtin_names() lists them
load_character("snake-99")          a snake of any length, 6 + 3 k degrees of freedom
load_character("plank-3")           a chain of any number of planks
load_character("my_robot.yaml")     a file: YAML, MJCF, URDF, MASS, DeepMimic, BVH, AMC, GLB

A built-in character is a file of numbers, and the Python that they were computed by. The folder
`data` holds NAME.yaml, written from the functions of `humanoid`, `dog`, `mechanisms` and so on by

    python -m poise.characters NAME ...      (all without names)

A character is loaded from its file, so that it has the same bits on every CPU; computed anew, its
numbers agree with the file's to rounding. snake-N and plank-N of other lengths are computed when
they are loaded, without the BLAS: they have the same bits on every CPU as well.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from poise.errors import CharacterError, unknown_name
from poise.model.character import Character
from poise.model.formats import check_suffix, format_module
from poise.model.same_body import same_character

NAMES = (
    "humanoid",
    "dog",
    "snake-36",
    "snake-72",
    "snake-195",
    "two-link",
    "humanoid-51",
    "humanoid-ball",
    "tail-biped",
    "lamp",
    "plank-8",
)
"""Names of the built-in characters."""

FOLDER = Path(__file__).parent / "data"
"""Where their files are."""

MOTIONS = (".bvh", ".amc", ".glb", ".gltf")
"""Endings of motion files from whose skeleton a character is made."""

UNITLESS = (".bvh",)
"""Endings of files that do not state their unit of length."""

READERS = (".yaml", ".yml", ".xml", ".urdf", ".txt", ".json", *MOTIONS)
"""Endings of the files that can be read."""

_NUMBERED = re.compile(r"(snake|plank)-\d{1,9}", re.ASCII)


def builtin_names() -> tuple[str, ...]:
    """Names of the built-in characters.

    Besides them there is snake-N for any N = 6 + 3 k, and plank-N for any N.
    """
    return NAMES


def load_character(
    source: str | os.PathLike[str],
    base: Literal["free", "fixed"] | None = None,
    *,
    unit: float | None = None,
) -> Character:
    """Load a built-in character, or one from a file.

    Args:
        source: Name of a built-in character, or path to a file: poise YAML (.yaml, .yml), MJCF or
            MASS (.xml), URDF, DeepMimic (.txt, .json), or a motion from whose skeleton a character
            is made (.bvh, .amc, .glb, .gltf).
        base: "free" or "fixed" frees the root or welds it to the world; None leaves it as it is. A
            URDF file says neither: None frees the root unless it is bolted down.
        unit: Metres per unit of a .bvh file, which does not state its own; None guesses it from the
            size of the skeleton. Other formats have a unit of their own.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise CharacterError(f"a character is named by a string or a path, got {source!r:.80}")
    if unit is not None and Path(source).suffix.lower() not in UNITLESS:
        raise CharacterError(
            f"{source}: unit is for files that do not state their own, {', '.join(UNITLESS)}; "
            "leave it out"
        )
    if isinstance(source, str) and (source in NAMES or _NUMBERED.fullmatch(source)):
        character = _builtin(source)
    else:
        return _read(source, base, {} if unit is None else {"unit": unit})
    return character if base is None else character.with_base(base)


def _read(
    source: str | os.PathLike[str],
    base: Literal["free", "fixed"] | None,
    options: dict[str, Any],
) -> Character:
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
    suffix = check_suffix(path, READERS, "reads").suffix.lower()
    character: Character
    if suffix == ".urdf":
        character = format_module("urdf").read(path, base=base)
        return character
    if suffix in MOTIONS:
        from poise.motion import load_clip

        character = load_clip(path, **options).character
    elif suffix == ".xml":
        # MASS and MJCF share the ending
        mass = format_module("mass")
        character = mass.load(path) if mass.recognises(path) else format_module("mjcf").read(path)
    elif suffix in (".txt", ".json"):
        character = format_module("deepmimic").load(path)
    else:
        character = format_module("yaml").load(path)
    try:
        return character if base is None else character.with_base(base)
    except CharacterError as error:
        raise CharacterError(f"{path}: {error}") from error


@lru_cache(maxsize=64)
def _builtin(name: str) -> Character:
    """A built-in character; it is immutable, so one is enough."""
    return read_builtin(name) if name in NAMES else build(name)


def as_builtin(character: Character) -> Character:
    """The loaded built-in character in place of one that is the same but for rounding.

    The one in a file may have been computed on another CPU.
    """
    if character.name not in NAMES:
        return character
    known = _builtin(character.name)
    return known if same_character(character, known) else character


def read_builtin(name: str) -> Character:
    """A built-in character from its file."""
    from poise.model.formats.yaml import parse_lines

    return parse_lines((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def build(name: str) -> Character:
    """Compute a built-in character, or snake-N or plank-N."""
    kind, _, number = name.rpartition("-")
    character: Character
    if kind in ("snake", "plank"):
        character = getattr(import_module("poise.characters.mechanisms"), kind)(int(number))
        return character
    # the module and its function are called as the character is
    word = name.replace("-", "_")
    module = "mechanisms" if word in ("two_link", "lamp") else word
    character = getattr(import_module(f"poise.characters.{module}"), word)()
    return character
