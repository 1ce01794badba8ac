"""The studio: a page in the browser in which characters are seen, pushed and recorded.

    with Studio("walk") as studio:
        print(studio.url)
        ...

A thread owns the simulation (`session`); the page draws its newest snapshot and sends it requests.
Messages of a browser are checked twice: their form by `message_filter`, their values by `requests`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from poise.studio.jobs import Source, session_options
from poise.studio.page import HOST, PORT, Page
from poise.studio.session import Session

__all__ = ["Session", "Studio"]


class Studio:
    """A session and its page; both run until they are stopped.

    Args:
        source: What to show first: a clip or a recording, or the name or file of one; None is a
            walk.
        beside: A recording, or its file, to compare with.
        out: Folder for saved files; it is made when it is needed. Recordings in it can be opened
            from the page. Requests of a page concern no other folder.
        host: Address to bind to. Anyone who can connect to it can use the studio.
        port: Port, or the next one that is free; 0 takes any.
        shadows: Whether the page begins with shadows; a browser without a GPU is quicker without.
        options: Other arguments of `Session`: character, controller, root, dt, count, ground, play.
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
        **options: Any,
    ) -> None:
        self.session = Session(out=Path(out), **session_options(source, beside), **options)
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
        """Stops the page and the session."""
        self.page.stop()
        self.session.stop()

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()
