"""Writes the files of the built-in characters: python -m poise.characters NAME ...

A file whose numbers agree with the computed ones to rounding is left as it is: other bits would
change what every simulation of the character gives.
"""

from __future__ import annotations

import sys
from pathlib import Path

from poise.characters import FOLDER, NAMES, build, read_builtin
from poise.errors import CharacterError, check_known
from poise.io.files import write_atomically
from poise.model.formats.yaml import dump_lines, parse_lines
from poise.model.same_body import same_character


def write(name: str, folder: Path = FOLDER) -> bool:
    """Write the file of a built-in character; whether there was something new to write."""
    check_known("character", name, NAMES, "built-in", error=CharacterError)
    made, path = build(name), folder / f"{name}.yaml"
    if path.exists() and same_character(made, parse_lines(path.read_text(encoding="utf-8"))):
        return False
    write_atomically(path, dump_lines(made).encode("utf-8"), CharacterError)
    return True


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        print(
            f"{name}: {'written' if write(name) else 'as before'}, {read_builtin(name).mass:.6g} kg"
        )
