"""The gate of the studio: what a page may say, checked before the server hears it.

viser trusts its pages: one message may set any field of a control, another opens a public tunnel.
Here every message is checked against the few kinds that the studio's page sends. What is not one
of them is dropped and logged, and the connection stays. Pages of other sites are turned away, and
so is who talks too much.
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

LARGEST_MESSAGE = 1 << 16
"""Bytes in a message; the largest that the page sends has some hundred."""

MOST_PAGES = 32
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


class _Said(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    """A message of the page: no more fields than these."""


class _Camera(_Said, tag="ViewerCameraMessage"):
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


class _Update(_Said, tag="GuiUpdateMessage"):
    uuid: Text
    updates: _Updates


class _Click(_Said, tag="SceneNodeClickMessage"):
    name: Text
    instance_index: Index | None
    ray_origin: Point
    ray_direction: Point
    screen_pos: Pair
    modifier: Text | None
    owner: Text = ""


class _Drag(_Said, tag="SceneNodeDragMessage"):
    phase: Literal["start", "update", "end"]
    name: Text
    instance_index: Index | None
    start_position: Point
    start_screen_pos: Pair
    end_position: Point
    end_screen_pos: Pair
    button: Literal["left", "middle", "right"]
    modifier: Text | None
    owner: Text = ""


class _Moved(_Said, tag="TransformControlsUpdateMessage"):
    name: Text
    wxyz: Turn
    position: Point
    owner: Text = ""


class _Grasped(_Said, tag="TransformControlsDragStartMessage"):
    name: Text
    owner: Text = ""


class _LetGo(_Said, tag="TransformControlsDragEndMessage"):
    name: Text
    owner: Text = ""


class _Command(_Said, tag="CommandTriggerMessage"):
    uuid: Text


_READER = msgspec.msgpack.Decoder(
    _Camera | _Update | _Click | _Drag | _Moved | _Grasped | _LetGo | _Command
)


def objection(raw: object) -> str | None:
    """What is wrong with a message from the socket, or None.

    Args:
        raw: The message: bytes, or the text of a text frame.
    """
    if not isinstance(raw, bytes):
        return "a text, where the page sends bytes"
    if len(raw) > LARGEST_MESSAGE:
        return f"{len(raw)} bytes, more than the {LARGEST_MESSAGE} that are read"
    try:
        _READER.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as problem:
        return " ".join(str(problem).split())[:200]
    return None


class Budget:
    """How many messages a page may still send: it grows with time, up to BURST."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._left, self._seen = clock, BURST, clock()

    def spend(self) -> bool:
        """Take one message from the budget; False if there is none left."""
        now = self._clock()
        self._left = min(BURST, self._left + RATE * (now - self._seen))
        self._seen = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


def foreign(origin: str | None, host: str | None, bound: str) -> bool:
    """Whether a page of another site asks: a page may open sockets to any address it knows.

    Args:
        origin: The header of that name; programs that are no browsers send none.
        host: The header of that name: what the page calls this server.
        bound: The address that the server is bound to.
    """
    if origin is None:
        return False
    asked = urlsplit(f"//{host or ''}")
    if urlsplit(origin).netloc != asked.netloc:
        return True
    # a name that another site made to point here is not one of ours
    return is_local(bound) and not is_local(asked.hostname or "")


def is_local(host: str) -> bool:
    """Whether a host's name is that of this machine's loopback."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guard(server: Any, bound: str) -> None:
    """Put the gate before a viser server; who is connected already has to come again.

    Args:
        server: A viser.ViserServer.
        bound: The address that it is bound to.
    """
    sockets = server._websock_server
    if not hasattr(sockets, "_live_connections"):
        raise PoiseError("this version of viser is not known to the studio; 1.1.1 is")

    async def meet(connection: Any) -> None:
        """Check who comes; then put our ear between the socket and viser."""
        live = sockets._live_connections
        socket = live[connection.client_id]
        headers = socket.request.headers
        if foreign(headers.get("Origin"), headers.get("Host"), bound):
            log.warning("turned away a page of %.200r", headers.get("Origin"))
            await socket.close(1008, "another site")
        elif len(live) > MOST_PAGES:
            log.warning("turned away a page: %d are open", MOST_PAGES)
            await socket.close(1013, "too many pages")
        socket.protocol.max_message_size = LARGEST_MESSAGE
        socket.recv = _careful(socket.recv, connection.client_id)

    sockets.on_client_connect(meet)
    sockets.disconnect_all_clients()
    server.get_event_loop().call_soon_threadsafe(
        server.get_event_loop().set_exception_handler, _log_problem
    )


def _careful(
    recv: Callable[[], Coroutine[Any, Any, Any]], page: int
) -> Callable[[], Coroutine[Any, Any, bytes]]:
    """A recv that only ever returns messages without objection."""
    budget, dropped = Budget(), 0

    async def receive() -> bytes:
        nonlocal dropped
        while True:
            raw: bytes = await recv()
            wrong = objection(raw) if budget.spend() else "too many messages"
            if wrong is None:
                return raw
            dropped += 1
            # the first, and then ever fewer: a flood does not fill the log
            if dropped & (dropped - 1) == 0:
                log.warning("page %d: dropped message %d: %s", page, dropped, wrong)
            await asyncio.sleep(0)

    return receive


def _log_problem(loop: Any, context: dict[str, Any]) -> None:
    """One line for what fails inside the server."""
    problem = context.get("exception") or context.get("message")
    log.warning("a message failed: %.300r", problem)
