"""The studio: a page in the browser in which characters are seen, pushed and recorded.

    with Studio("walk") as studio:
        print(studio.url)
        ...

A thread of its own owns the world (`session`); the page reads its newest snapshot and sends it
requests. What comes from a browser is checked twice: its form at the `gate`, its values by
`requests`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from poise.studio.jobs import Source, chosen_by
from poise.studio.page import HOST, PORT, Page
from poise.studio.session import Session

__all__ = ["Session", "Studio"]


class Studio:
    """A session and its page; it runs until it is stopped.

    Args:
        source: What to show first: a clip or a recording, or the name or file of one; None is a
            walk.
        beside: A recording, or its file, to compare with.
        out: Folder for what is saved; it is made when it is needed. Recordings in it can be opened
            from the page. Nothing a page asks for touches any other folder.
        host: Address to bind to. Whoever reaches it can drive the studio.
        port: Port, or the next one that is free; 0 takes any.
        shadows: Whether the page begins with shadows; a browser without a GPU is quicker without.
        choices: What else `Session` takes: character, controller, root, dt, count, ground, play.
    """

    def __init__(
        self,
        source: Source = None,
        *,
        beside: Source = None,
        out: str | os.PathLike[str] = "out/studio",
        host: str = HOST,
        port: int = PORT,
        shadows: bool = True,
        **choices: Any,
    ) -> None:
        self.session = Session(out=Path(out), **chosen_by(source, beside), **choices)
        self.session.start()
        try:
            self.page = Page(self.session, host, port, shadows)
        except BaseException:
            self.session.stop()
            raise

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        return self.page.url

    def stop(self) -> None:
        """End the page and the simulation."""
        self.page.stop()
        self.session.stop()

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()
