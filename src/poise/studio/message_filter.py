"""The message filter: checks what a page sends before the server reads it.

viser trusts its pages: one message may set any field of a control, another opens a public tunnel.
Here every message is checked against the few kinds that the studio's page sends. Others are dropped
and logged, and the connection stays. Pages of other sites are rejected, and so are messages at a
higher rate than a page sends.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from poise.errors import PoiseError

log = logging.getLogger("poise.studio")

MAX_MESSAGE = 1 << 16
"""Bytes in a message; the largest that the page sends has some hundred."""

MAX_PAGES = 32
"""Browsers at a time."""

RATE, BURST = 400.0, 800.0
"""Messages per second that a page may send in the long run, and at once. It sends some fifty."""

Number = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
Text = Annotated[str, msgspec.Meta(max_length=200)]
Index = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Pair = tuple[Number, Number]
Point = tuple[Number, Number, Number]
Turn = tuple[Number, Number, Number, Number]
Value = bool | Number | Text | Annotated[list[Number], msgspec.Meta(max_length=4)]


class _Message(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    """A message of the page; unknown fields are errors."""


class _Camera(_Message, tag="ViewerCameraMessage"):
    wxyz: Turn
    position: Point
    fov: Number
    near: Number
    far: Number
    image_height: Index
    image_width: Index
    look_at: Point
    up_direction: Point


class _Updates(msgspec.Struct, forbid_unknown_fields=True):
    value: Value


class _Update(_Message, tag="GuiUpdateMessage"):
    uuid: Text
    updates: _Updates


class _NodeMessage(_Message, kw_only=True):
    """A message about a node of the scene."""

    name: Text
    owner: Text = ""


class _Click(_NodeMessage, tag="SceneNodeClickMessage"):
    instance_index: Index | None
    ray_origin: Point
    ray_direction: Point
    screen_pos: Pair
    modifier: Text | None


class _Drag(_NodeMessage, tag="SceneNodeDragMessage"):
    phase: Literal["start", "update", "end"]
    instance_index: Index | None
    start_position: Point
    start_screen_pos: Pair
    end_position: Point
    end_screen_pos: Pair
    button: Literal["left", "middle", "right"]
    modifier: Text | None


class _HandleUpdate(_NodeMessage, tag="TransformControlsUpdateMessage"):
    wxyz: Turn
    position: Point


class _HandleStart(_NodeMessage, tag="TransformControlsDragStartMessage"):
    """Begins a drag."""


class _HandleEnd(_NodeMessage, tag="TransformControlsDragEndMessage"):
    """Ends a drag."""


class _Command(_Message, tag="CommandTriggerMessage"):
    uuid: Text


_DECODER = msgspec.msgpack.Decoder(
    _Camera | _Update | _Click | _Drag | _HandleUpdate | _HandleStart | _HandleEnd | _Command
)


def find_error(raw: object) -> str | None:
    """What is wrong with a message from the socket, or None.

    Args:
        raw: The message: bytes, or the text of a text frame.
    """
    if not isinstance(raw, bytes):
        return "a text, where the page sends bytes"
    if len(raw) > MAX_MESSAGE:
        return f"{len(raw)} bytes, more than the {MAX_MESSAGE} that are read"
    try:
        _DECODER.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as problem:
        return " ".join(str(problem).split())[:200]
    return None


class RateLimit:
    """Number of messages that a page may send: it grows with time, up to BURST."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._left, self._seen = clock, BURST, clock()

    def spend(self) -> bool:
        """Counts one message; returns False if it is one too many."""
        now = self._clock()
        self._left = min(BURST, self._left + RATE * (now - self._seen))
        self._seen = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


def is_cross_origin(origin: str | None, host: str | None, bound: str) -> bool:
    """Whether a request comes from a page of another site: any page may open sockets to us.

    Args:
        origin: The header of that name; programs other than browsers send none.
        host: The header of that name: the name of this server for the page.
        bound: The address that the server is bound to.
    """
    if origin is None:
        return False
    requested = urlsplit(f"//{host or ''}")
    if urlsplit(origin).netloc != requested.netloc:
        return True
    # another site may have made a name of its own point here (DNS rebinding)
    return is_local(bound) and not is_local(requested.hostname or "")


def is_local(host: str) -> bool:
    """Whether a host's name is that of this machine's loopback."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def install_filter(server: Any, bound: str) -> None:
    """Puts the filter before a viser server; pages that are connected have to connect again.

    Args:
        server: A viser.ViserServer.
        bound: The address that it is bound to.
    """
    sockets = server._websock_server
    if not hasattr(sockets, "_live_connections"):
        raise PoiseError("this version of viser is not known to the studio; 1.1.1 is")

    async def on_connect(connection: Any) -> None:
        """Checks the origin, then puts the filter between the socket and viser."""
        live = sockets._live_connections
        socket = live[connection.client_id]
        headers = socket.request.headers
        if is_cross_origin(headers.get("Origin"), headers.get("Host"), bound):
            log.warning("rejected a page of %.200r", headers.get("Origin"))
            await socket.close(1008, "another site")
        elif len(live) > MAX_PAGES:
            log.warning("rejected a page: %d are open", MAX_PAGES)
            await socket.close(1013, "too many pages")
        socket.protocol.max_message_size = MAX_MESSAGE
        socket.recv = _filtered(socket.recv, connection.client_id)

    sockets.on_client_connect(on_connect)
    sockets.disconnect_all_clients()
    server.get_event_loop().call_soon_threadsafe(
        server.get_event_loop().set_exception_handler, _log_error
    )


def _filtered(
    recv: Callable[[], Coroutine[Any, Any, Any]], page: int
) -> Callable[[], Coroutine[Any, Any, bytes]]:
    """A recv that only returns valid messages."""
    limit, dropped = RateLimit(), 0

    async def receive() -> bytes:
        nonlocal dropped
        while True:
            raw: bytes = await recv()
            error = find_error(raw) if limit.spend() else "too many messages"
            if error is None:
                return raw
            dropped += 1
            # the 1st, 2nd, 4th, 8th, ...: a flood does not fill the log
            if dropped & (dropped - 1) == 0:
                log.warning("page %d: dropped message %d: %s", page, dropped, error)
            await asyncio.sleep(0)

    return receive


def _log_error(loop: Any, context: dict[str, Any]) -> None:
    """Logs an error inside the server in one line."""
    problem = context.get("exception") or context.get("message")
    log.warning("a message failed: %.300r", problem)
