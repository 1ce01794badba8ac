"""A tidy end: who is told to stop cleans up first."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn


def end_tidily() -> None:
    """From now on SIGTERM and SIGHUP run the blocks that clean up, as Ctrl-C does.

    The exit code is that of shells, 128 and the signal's number. What was ignored stays so.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
