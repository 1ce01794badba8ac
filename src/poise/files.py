"""Reading whole files within bounds, and writing them whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from poise.errors import PoiseError


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file; what was there is replaced whole or not at all.

    Args:
        path: Where to; links are followed.
        data: What the file shall hold.
    """
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.write(data)
        os.replace(part, path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PoiseError(f"{path}: cannot be written: {reason}") from error
    finally:
        _discard(part)


def read_bounded(
    path: str | os.PathLike[str], most: int, error: type[PoiseError] = PoiseError
) -> bytes:
    """Read a file of at most that many bytes.

    Args:
        path: Which file.
        most: Largest size that is read [bytes].
        error: What to raise where it cannot be read or is larger.
    """
    try:
        with open(path, "rb") as file:
            # a large file is not even read; what has no size, such as a pipe, is read up to there
            large = os.fstat(file.fileno()).st_size > most
            data = b"" if large else file.read(most + 1)
    except (OSError, ValueError) as reason:
        why = getattr(reason, "strerror", None) or reason
        raise error(f"{os.fspath(path)}: cannot be read: {why}") from reason
    if large or len(data) > most:
        raise error(
            f"{os.fspath(path)}: is larger than {most // 2**20} MiB; cut it into shorter pieces"
        )
    return data


def _discard(part: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        part.unlink(missing_ok=True)
