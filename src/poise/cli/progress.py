"""Bars on the terminal for what takes its time; on stderr, and only where somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

Tell = Callable[[float], None]
"""Takes the share that is done, 0 to 1."""


class Bars:
    """Several bars, one below the other: one for each thing that is done."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._named: dict[str, Tell] = {}

    def bar(self, what: str) -> Tell:
        """A bar that shows from the first time it is told of; at 1 it is done.

        Args:
            what: The words beside it.
        """
        task = self._progress.add_task(what, total=1.0, visible=False)
        return lambda share: self._progress.update(task, completed=share, visible=True)

    def tell(self, what: str, share: float) -> None:
        """A bar by its name, made when it is first told of.

        Args:
            what: The words beside it.
            share: How much is done, 0 to 1.
        """
        if what not in self._named:
            self._named[what] = self.bar(what)
        self._named[what](share)


@contextmanager
def bars(*, transient: bool = True) -> Iterator[Bars]:
    """Bars as long as the block runs.

    Args:
        transient: Whether they go away at the end.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=transient, disable=quiet) as progress:
        yield Bars(progress)


@contextmanager
def progress(what: str) -> Iterator[Tell]:
    """One bar as long as the block runs.

    Args:
        what: The words beside it.
    """
    with bars() as shown:
        yield shown.bar(what)
