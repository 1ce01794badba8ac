"""Wires: from the controls of a page to requests, and from what was chosen back to the controls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from poise.studio.requests import Request
from poise.studio.snapshot import Snapshot

GRACE = 1.0
"""A control that someone moves is left alone for so long [s]."""

Ask = Callable[[Request], bool]


class Wires:
    """Controls and what they ask for.

    All pages share the controls, and what a session made of a request may differ from what was
    asked; so each control is told from time to time what is.

    Args:
        ask: Takes a request, as `Session.ask`.
    """

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._shown: list[tuple[Any, Callable[[Snapshot], Any]]] = []

    def input(
        self,
        handle: Any,
        request: Callable[[Any], Request | None],
        shown: Callable[[Snapshot], Any] | None = None,
    ) -> Any:
        """A control with a value.

        Args:
            handle: Of viser.
            request: What its value asks for; None asks for nothing.
            shown: The value it should show.

        Returns:
            The handle.
        """

        # coroutines come in order, and asking takes no time
        async def moved(event: Any) -> None:
            if event.client is not None:
                wish = request(handle.value)
                if wish is not None:
                    self.ask(wish)

        handle.on_update(moved)
        if shown is not None:
            self._shown.append((handle, shown))
        return handle

    def button(self, handle: Any, request: Callable[[Any], Request | None]) -> Any:
        """A button, or a group of them; `request` gets viser's event."""

        async def pressed(event: Any) -> None:
            wish = request(event)
            if wish is not None:
                self.ask(wish)

        handle.on_click(pressed)
        return handle

    def key(self, handle: Any, request: Callable[[Any], Request | None]) -> Any:
        """A command with a key."""

        async def struck(event: Any) -> None:
            wish = request(event)
            if wish is not None:
                self.ask(wish)

        handle.on_trigger(struck)
        return handle

    def sync(self, snapshot: Snapshot) -> None:
        """Let all controls show what is."""
        now = time.time()
        for handle, shown in self._shown:
            if now - handle.update_timestamp > GRACE:
                put(handle, shown(snapshot))


def put(handle: Any, value: Any) -> None:
    """Give a control a value, unless it has it, or cannot have it."""
    options = getattr(handle, "options", None) if hasattr(handle, "options") else None
    if options is not None and value not in options:
        return
    if handle.value != value:
        handle.value = value


def show(handle: Any, visible: bool) -> None:
    """Show a control, or hide it."""
    if handle.visible != visible:
        handle.visible = visible


def offer(handle: Any, options: tuple[str, ...]) -> None:
    """Give a list other options, if they are others."""
    if options and tuple(handle.options) != options:
        handle.options = options
