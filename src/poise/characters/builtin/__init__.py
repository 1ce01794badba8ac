"""The built-in characters: each is a file of numbers, and the Python that they were computed by.

`poise/characters/data` holds NAME.yaml, written from `poise.characters.builtin.NAME` by

    python -m poise.characters.builtin NAME ...      (all without names)

A character is loaded from its file, so that it has the same bits on every CPU; computed anew, its
numbers agree with the file's to rounding. snake-N and plank-N of other lengths are computed when
they are loaded, without the BLAS: they have the same bits on every CPU as well.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from poise.model.character import Character

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
FOLDER = Path(__file__).parent.parent / "data"


def read(name: str) -> Character:
    """A built-in character from its file."""
    from poise.model.formats import lines

    return lines.parse((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def build(name: str) -> Character:
    """Compute a built-in character, or snake-N or plank-N."""
    kind, _, number = name.rpartition("-")
    character: Character
    if kind in ("snake", "plank"):
        character = getattr(import_module(f"{__name__}.{kind}"), kind)(int(number))
        return character
    # the module and its function are called as the character is
    word = name.replace("-", "_")
    character = getattr(import_module(f"{__name__}.{word}"), word)()
    return character
