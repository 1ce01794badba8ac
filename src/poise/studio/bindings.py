"""Bindings between the controls of a page, the requests they send and the values they show."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from poise.studio.requests import Request
from poise.studio.snapshot import Snapshot

GRACE = 1.0
"""A control that was moved is not set for so long [s]."""

Ask = Callable[[Request], bool]


class Bindings:
    """Controls, the requests that they send, and the values that they show.

    All pages share the controls, and the result of a request may differ from the request; so each
    control is set to the present value from time to time.

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
            request: Makes a request from its value, or None.
            shown: The value that it should show.

        Returns:
            The handle.
        """

        # coroutines keep their order, and `ask` takes no time
        async def moved(event: Any) -> None:
            if event.client is not None:
                self._send(request(handle.value))

        handle.on_update(moved)
        if shown is not None:
            self._shown.append((handle, shown))
        return handle

    def button(self, handle: Any, request: Callable[[Any], Request | None]) -> Any:
        """A button, or a group of them; `request` takes viser's event."""

        async def pressed(event: Any) -> None:
            self._send(request(event))

        handle.on_click(pressed)
        return handle

    def key(self, handle: Any, request: Callable[[Any], Request | None]) -> Any:
        """A command with a key."""

        async def triggered(event: Any) -> None:
            self._send(request(event))

        handle.on_trigger(triggered)
        return handle

    def _send(self, request: Request | None) -> None:
        if request is not None:
            self.ask(request)

    def sync(self, snapshot: Snapshot) -> None:
        """Sets all controls to the present values."""
        now = time.time()
        for handle, shown in self._shown:
            if now - handle.update_timestamp > GRACE:
                set_value(handle, shown(snapshot))


def set_value(handle: Any, value: Any) -> None:
    """Sets the value of a control, unless it has it, or cannot have it."""
    options = getattr(handle, "options", None)
    if options is not None and value not in options:
        return
    if handle.value != value:
        handle.value = value


def set_visible(handle: Any, visible: bool) -> None:
    """Shows or hides a control."""
    if handle.visible != visible:
        handle.visible = visible


def set_options(handle: Any, options: tuple[str, ...]) -> None:
    """Sets the options of a list, if they have changed."""
    if options and tuple(handle.options) != options:
        handle.options = options
