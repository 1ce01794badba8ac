"""The output folder: the only place where a page can have files written or read.

Names from a page are made harmless: letters, digits, "-", "_" and "." are left, no more than sixty.
What comes of them is a file in the folder itself, never elsewhere, and never one that is there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from poise.errors import PoiseError, unknown_name
from poise.recording import Recording, load_recording

LONGEST = 60
"""Letters of a file's name."""

MOST_LISTED = 200
"""Recordings that are listed."""

DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
"""Names that mean no file on Windows."""


class Folder:
    """A folder for recordings and what is made of them.

    Args:
        path: Where; it is made when the first file is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self._promised: set[str] = set()

    def recordings(self) -> tuple[str, ...]:
        """Names of the recordings, the newest first; a file that is none is found out later."""
        found = []
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name.endswith(".npz") and entry.is_file(follow_symlinks=False):
                        found.append((-entry.stat().st_mtime, entry.name))
        except OSError:
            return ()
        return tuple(name for _, name in sorted(found)[:MOST_LISTED])

    def load(self, name: str) -> Recording:
        """The recording of that name."""
        names = self.recordings()
        if name not in names:
            raise PoiseError(unknown_name("recording", name, names))
        return load_recording(self.path / name)

    def new(self, name: str, ending: str, otherwise: str = "take") -> Path:
        """The path of a file that is not there yet; the folder is.

        Args:
            name: What someone would like to call it.
            ending: Its ending, without a dot.
            otherwise: What to call it if nothing of the name is left.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PoiseError(f"{self.path}: cannot be made: {error.strerror}") from error
        stem = safe_name(name, otherwise)
        for i in range(1, 100_000):
            file = f"{stem}.{ending}" if i == 1 else f"{stem}-{i}.{ending}"
            if file not in self._promised and not os.path.lexists(self.path / file):
                self._promised.add(file)
                return self.path / file
        raise PoiseError(f"{self.path}: has too many files that are called {stem!r}")


def safe_name(name: str, otherwise: str = "take") -> str:
    """A name that is a plain file name on every system.

    Args:
        name: What someone would like.
        otherwise: What is taken if nothing of it is left.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name[:1000])
    plain = re.sub(r"\.{2,}", ".", plain).strip("-._")[:LONGEST].strip("-._")
    if not plain or DEVICES.match(plain):
        return otherwise if not plain else f"{otherwise}-{plain}"
    return plain
