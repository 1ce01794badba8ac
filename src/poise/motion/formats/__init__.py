"""Motion files, one module per format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from poise.errors import ClipError, PoiseError


@contextmanager
def name_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors inside become a ClipError that names the file."""
    try:
        yield
    except PoiseError as error:
        if isinstance(error, ClipError) and str(path) in str(error):
            raise
        raise ClipError(f"{path}: {error}") from error
