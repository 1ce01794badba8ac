"""Files, read whole within bounds, and written whole or not at all.

Readers of all formats start here: `read_bounded` for bytes, `read_text` for UTF-8, `parse_json` for
JSON with care. What is not a plain file is refused, since pipes and devices may never end.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import json
import os
import re
import secrets
import shutil
import signal
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from poise import _core
from poise.errors import PoiseError

try:
    import fcntl
except ImportError:  # Windows: leftovers of killed processes stay
    fcntl = None  # type: ignore[assignment]

MOST_COMPARED = 2000
"""Names of a folder with which one that is not there is compared."""

MADE_BY = "made by"
"""Key of the JSON record that marks an output folder as ours."""

RESULTS = ".results-"
"""How the hidden folders start in which output is collected."""

MOST_SEARCHED = 10_000
"""Entries of a folder among which the leftovers of killed processes are looked for."""

LARGEST_RECORD = 16 * 2**20  # [bytes]


def write_atomically(
    path: str | os.PathLike[str], data: bytes, error: type[PoiseError] = PoiseError
) -> None:
    """Write a file; what was there is replaced whole or not at all.

    Args:
        path: Where to; links are followed.
        data: What the file shall hold.
        error: What to raise where it cannot be written.
    """
    named = os.fspath(path)
    try:
        path = Path(os.path.realpath(path))
        path.with_name(".part")  # a path without a name raises
    except (OSError, ValueError) as problem:
        raise error(f"{named!r}: cannot be written: {_reason(problem)}") from problem
    _remove_stale(path.parent, f".{path.name}.", is_ours=Path.is_file, remove=Path.unlink)
    part, lock = None, None
    try:
        part, lock = _claim(path.parent, f".{path.name}.", lambda new: new.touch(exist_ok=False))
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except (OSError, ValueError) as problem:
        raise error(f"{path}: cannot be written: {_reason(problem)}") from problem
    finally:
        with contextlib.suppress(OSError, ValueError):
            if part is not None:
                part.unlink(missing_ok=True)
        _unlock(lock)


def suffix_of(path: object, what: str, error: type[PoiseError] = PoiseError) -> str:
    """The ending of a path, in small letters.

    Args:
        path: Where to write.
        what: What is written there, for the error: "videos".
        error: What to raise if it is no path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise error(f"{what} are written to a path, got {path!r:.80}")
    return os.path.splitext(os.fspath(path))[1].lower()


def check_file(
    path: str | os.PathLike[str], error: type[PoiseError] = PoiseError, name: str | None = None
) -> int:
    """Check that a path leads to a plain file; return its size [bytes].

    Args:
        path: Which file.
        error: What to raise if it does not.
        name: What errors call it; its path unless given.
    """
    name = os.fspath(path) if name is None else name
    try:
        status = os.stat(path)
    except (OSError, ValueError) as problem:  # ValueError: a zero byte in the path
        name = name if name.isprintable() else repr(name)
        raise error(f"{name}: cannot be read: {_reason(problem)}{called_alike(path)}") from problem
    if not stat.S_ISREG(status.st_mode):
        raise error(f"{name}: is not a file")
    return status.st_size


def called_alike(path: str | os.PathLike[str]) -> str:
    """Of a file that is not there, a hint which ones are called alike; "" if none is."""
    try:
        path = Path(path)
        there = [] if path.exists() else islice(path.parent.iterdir(), MOST_COMPARED)
        names = [entry.name for entry in there]
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(path.name[:80], names, n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def read_bounded(
    path: str | os.PathLike[str],
    most: int,
    error: type[PoiseError] = PoiseError,
    name: str | None = None,
) -> bytes:
    """Read a file of at most that many bytes; a larger one is not even read.

    Args:
        path: Which file.
        most: Largest size that is read [bytes].
        error: What to raise where it cannot be read or is larger.
        name: What errors call it; its path unless given.
    """
    size = check_file(path, error, name)
    name = os.fspath(path) if name is None else name
    data = b""
    try:
        if size <= most:
            with open(path, "rb") as file:
                data = file.read(most + 1)
    except OSError as problem:
        raise error(f"{name}: cannot be read: {_reason(problem)}") from problem
    if max(size, len(data)) > most:
        raise error(f"{name}: is larger than {most >> 20} MiB, the most that is read")
    return data


def read_text(path: str | os.PathLike[str], most: int, error: type[PoiseError] = PoiseError) -> str:
    """Read a UTF-8 text of at most that many bytes; a byte order mark is left out."""
    return decode(read_bounded(path, most, error), os.fspath(path), error)


def decode(data: bytes, name: str, error: type[PoiseError] = PoiseError) -> str:
    """The text of UTF-8 bytes; a byte order mark is left out.

    Args:
        data: The bytes.
        name: What errors call their file.
        error: What to raise where they are no UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        # the mark is not counted in the problem's offset
        at = problem.start + (len(data) - len(problem.object))
        line = line_at(data, at)
        raise error(
            f"{name}:{line}: is not UTF-8 text (byte {data[at]:#04x}); save it as UTF-8"
        ) from problem


def line_at(data: bytes, offset: int) -> int:
    """Number of the line at an offset, from 1; line ends of any system."""
    ends = data.count(b"\n", 0, offset) or data.count(b"\r", 0, offset)
    return ends + 1


def parse_json(text: str, name: str, error: type[PoiseError] = PoiseError) -> Any:
    """The value of a JSON text without NaN, infinities and repeated keys.

    Args:
        text: The text.
        name: What errors call its file.
        error: What to raise where it is wrong.
    """

    def refuse(constant: str) -> None:
        place = re.search(rf"(?<![\w\"]){constant}", text)
        line = text.count("\n", 0, place.start()) + 1 if place else 1
        raise error(f"{name}:{line}: {constant} is not a number; every number must be finite")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key, count in counts.items() if count > 1)
            place = [m.start() for m in re.finditer(re.escape(json.dumps(twice)), text)][1:2]
            line = text.count("\n", 0, place[0]) + 1 if place else 1
            raise error(f"{name}:{line}: key {twice!r:.80} is there twice in one object")
        return found

    if not text.strip():
        raise error(f"{name}:1: is empty")
    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        raise error(f"{name}:{problem.lineno}: is not JSON: {problem.msg}") from problem
    except RecursionError as problem:
        raise error(f"{name}:1: is nested too deeply") from problem
    except ValueError as problem:  # a whole number of thousands of digits
        raise error(f"{name}:1: is not JSON: {problem}") from problem


def line_of_item(text: str, key: str, index: int, opener: str) -> int:
    """The line on which item `index` of the JSON list under a key opens, or the list itself."""
    start = re.search(rf'"{key}"\s*:\s*\[', text)
    if start is None:
        return 1
    place = start.end()
    for _ in range(index + 1):
        found = text.find(opener, place)
        if found < 0:
            break
        place = found + 1
    return text.count("\n", 0, place) + 1


# ---- output folders


def made_by() -> dict[str, str]:
    """The entry of a JSON record that marks its folder as one of ours; a later run replaces it."""
    return {MADE_BY: f"poise {_core.build_info()['version']}"}


def check_output_folder(
    out: str | os.PathLike[str],
    files: Iterable[str],
    record: str,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> Path:
    """Raises if a folder cannot be written, or if the output would replace files of others.

    Args:
        out: The folder; it need not exist.
        files: Names of the output files.
        record: The one of them with `made_by`: JSON.
        inputs: Files that are read and must stay.
    """
    path = Path(out)
    try:
        _check_place(path)
        there = [path / file for file in files if os.path.lexists(path / file)]
        for file in there:
            for source in inputs:
                if os.path.exists(source) and os.path.samefile(source, file):
                    raise PoiseError(f"{file}: is the file to be read; choose another folder")
        if there and not _is_ours(path / record):
            raise PoiseError(
                f"{there[0]}: is there already, and no earlier run left it; choose another folder"
            )
    except (OSError, ValueError) as problem:
        raise PoiseError(f"{out!s:.200}: cannot be written: {_reason(problem)}") from problem
    return path


def write_output_folder(
    out: Path, writers: Mapping[str, Callable[[Path], None]], remove: Iterable[str] = ()
) -> dict[str, Path]:
    """Writes files into a folder: all of them, or none.

    They are written into a hidden folder first and moved when all are complete. A program that is
    interrupted leaves the files of the run before, or none. One that is killed leaves the hidden
    folder, too; the next run removes it.

    Args:
        out: The folder; it is created if it does not exist.
        writers: By file name, what writes the file to a given path.
        remove: Names of files of an earlier run, to be removed at the end.

    Returns:
        The files by their names.
    """
    new = not out.exists()
    stage, lock = out, None
    try:
        out.mkdir(parents=True, exist_ok=True)
        _remove_stale(out, RESULTS, is_ours=_holds_files_alone, remove=shutil.rmtree)
        stage, lock = _claim(out, RESULTS, Path.mkdir)
        for file, write in writers.items():
            write(stage / file)
        for file in writers:
            os.replace(stage / file, out / file)
        for file in remove:
            (out / file).unlink(missing_ok=True)
        new = False
    except (OSError, ValueError) as problem:
        raise PoiseError(f"{out}: cannot be written: {_reason(problem)}") from problem
    except PoiseError as error:
        # messages name the final path, not the hidden folder
        hidden = f"{os.path.realpath(stage)}{os.sep}"
        raise PoiseError(str(error).replace(hidden, f"{out}{os.sep}")) from error
    finally:
        with _interrupts_ignored():
            if stage is not out:
                shutil.rmtree(stage, ignore_errors=True)
            _unlock(lock)
            if new:
                with contextlib.suppress(OSError):
                    out.rmdir()
    return {file: out / file for file in writers}


# Parts are locked by the process that writes them. The system frees the lock when the process ends,
# however it ends: a part that nobody holds is stale.


def _claim(folder: Path, start: str, make: Callable[[Path], object]) -> tuple[Path, int | None]:
    """Makes a part of its own in a folder, and locks it; returns it and its lock."""
    while True:
        part = folder / f"{start}{secrets.token_hex(4)}.part"
        make(part)
        lock = _lock(part, wait=True)
        # another process may have taken it for a stale one before it was locked
        with contextlib.suppress(OSError):
            there = os.stat(part)
            if lock is None or os.path.samestat(os.fstat(lock), there):
                return part, lock
        _unlock(lock)


def _remove_stale(
    folder: Path, start: str, is_ours: Callable[[Path], bool], remove: Callable[[Path], object]
) -> None:
    """Removes the parts that processes left which were killed; those of others stay."""
    name = re.compile(re.escape(start) + r"[0-9a-f]{8}\.part")
    with contextlib.suppress(OSError, ValueError), os.scandir(folder) as entries:
        found = [
            entry.name for entry in islice(entries, MOST_SEARCHED) if name.fullmatch(entry.name)
        ]
        for part in (folder / entry for entry in found):
            if part.is_symlink() or not is_ours(part):
                continue
            lock = _lock(part, wait=False)
            if lock is None:
                continue
            with contextlib.suppress(OSError):
                remove(part)
            _unlock(lock)


def _lock(part: Path, *, wait: bool) -> int | None:
    """A lock on a file or folder; None if it is held, or where the system has none."""
    if fcntl is None:
        return None
    try:
        lock = os.open(part, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _holds_files_alone(folder: Path) -> bool:
    return folder.is_dir() and all(entry.is_file() for entry in folder.iterdir())


def _check_place(path: Path) -> None:
    """Raises if a path is not a folder, or a folder that cannot be created."""
    for place in (path, *path.parents):
        try:
            status = os.stat(place)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(status.st_mode):
            raise PoiseError(f"{place}: is a file; results need a folder")
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return


def _is_ours(record: Path) -> bool:
    """Whether a JSON record has the entry `made_by`."""
    try:
        found = parse_json(read_text(record, LARGEST_RECORD), str(record))
    except PoiseError:
        return False
    return isinstance(found, dict) and str(found.get(MADE_BY, "")).startswith("poise ")


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignores a second Ctrl-C, which would interrupt the cleanup after the first."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reason(problem: Exception) -> object:
    return getattr(problem, "strerror", None) or problem
