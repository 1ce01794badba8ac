"""Characters by name or from a file.

load_character("humanoid")          a built-in one; builtin_names() lists them
load_character("snake-99")          a snake of any length, 6 + 3 k degrees of freedom
load_character("my_robot.yaml")     a file
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Literal

from poise.character import Character
from poise.errors import CharacterError, unknown_name

SUFFIXES = (".yaml", ".yml")
"""Endings of the files that can be read and written."""

_BUILTIN = ("humanoid", "dog", "snake-36", "snake-72", "snake-195", "two-link")


def builtin_names() -> tuple[str, ...]:
    """Names of the built-in characters; besides them there is snake-N for any N = 6 + 3 k."""
    return _BUILTIN


def load_character(
    source: str | os.PathLike[str], base: Literal["free", "fixed"] | None = None
) -> Character:
    """Load a built-in character, or one from a file.

    Args:
        source: Name of a built-in character, or path to a .yaml or .yml file.
        base: "free" or "fixed" frees the root or welds it to the world; None leaves it as it is.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise CharacterError(f"a character is named by a string or a path, got {source!r:.80}")
    if isinstance(source, str) and (source in _BUILTIN or re.fullmatch(r"snake-\d{1,9}", source)):
        character = _build(source)
    else:
        character = _read(source)
    return character if base is None else character.with_base(base)


def save_character(character: Character, path: str | os.PathLike[str]) -> None:
    """Write a character to a .yaml or .yml file, lossless, whole or not at all."""
    from poise.characters.formats import yaml

    yaml.save(character, _checked_suffix(Path(path)))


def _read(source: str | os.PathLike[str]) -> Character:
    path = Path(source)
    named = isinstance(source, str) and not path.suffix and len(path.parts) < 2
    if named and not path.is_file():
        names = (*_BUILTIN, "snake-N")
        raise CharacterError(
            f"{unknown_name('character', source, names, 'built-in')}; "
            f"or a path to a file: {', '.join(SUFFIXES)}"
        )
    from poise.characters.formats import yaml

    return yaml.load(_checked_suffix(path))


def _checked_suffix(path: Path) -> Path:
    if path.suffix.lower() not in SUFFIXES:
        raise CharacterError(
            f"{path}: cannot tell a character file by {path.suffix or 'no suffix'!r}; "
            f"poise reads and writes {', '.join(SUFFIXES)}"
        )
    return path


@lru_cache(maxsize=64)
def _build(name: str) -> Character:
    """Make a built-in character; it is immutable, so one is enough."""
    if name == "humanoid":
        from poise.characters.builtin.humanoid import humanoid

        return humanoid()
    if name == "dog":
        from poise.characters.builtin.dog import dog

        return dog()
    if name == "two-link":
        from poise.characters.builtin.two_link import two_link

        return two_link()
    from poise.characters.builtin.snake import snake

    return snake(int(name.removeprefix("snake-")))
