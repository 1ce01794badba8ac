"""A tidy end: who is told to stop cleans up first."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any, NoReturn

SOON = 0.02
"""After this time a request to stop that was lost is made again [s]."""


def end_tidily() -> None:
    """From now on SIGTERM and SIGHUP run the blocks that clean up, as Ctrl-C does.

    The exit code is that of shells, 128 and the signal's number. What was ignored stays so.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)
    if hasattr(signal, "setitimer"):
        sys.unraisablehook = _lost


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _lost(what: Any) -> None:
    """Python drops what is raised while it collects garbage: a request to stop is made again."""
    wanted = what.exc_value
    if not isinstance(wanted, (KeyboardInterrupt, SystemExit)):
        sys.__unraisablehook__(what)
        return

    def again(number: int, frame: FrameType | None) -> NoReturn:
        raise wanted

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, SOON)
