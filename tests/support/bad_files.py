"""Files that no reader may trip over, and what readers say against them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from poise.errors import PoiseError

Edits = list[tuple[int, int, bytes]]


def refusal(read: Callable[[], object]) -> str | None:
    """What a reader says against its input; None if it takes it."""
    try:
        read()
    except PoiseError as error:
        return str(error)
    return None


def write_file(path: Path, text: str | bytes) -> Path:
    """Write a file, and return where it is."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_hole(path: Path, size: int = 600 * 2**20) -> Path:
    """Write a file of that many zeros, which take no room on the disk."""
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def unreadable_paths(folder: Path, suffix: str) -> list[Path]:
    """Paths that lead to no file: nothing, a folder, a pipe, a device, a loop, impossible names."""
    places = {name: folder / f"{name}{suffix}" for name in ("folder", "pipe", "device", "loop")}
    places["folder"].mkdir()
    os.mkfifo(places["pipe"])
    places["device"].symlink_to("/dev/zero")
    places["loop"].symlink_to(places["loop"])
    long = folder / f"{'a' * 5000}{suffix}"
    return [folder / f"none{suffix}", *places.values(), long, Path(f"a\0b{suffix}")]


def edits(length: int) -> st.SearchStrategy[Edits]:
    """Up to four changes to a text of that length: where, how many bytes to cut, what to put."""
    edit = st.tuples(st.integers(0, length - 1), st.integers(0, 12), st.binary(max_size=6))
    return st.lists(edit, min_size=1, max_size=4)


def edited(text: str, changes: Edits) -> bytes:
    """The text with the changes made."""
    data = text.encode()
    for at, cut, put in changes:
        data = data[:at] + put + data[at + cut :]
    return data
