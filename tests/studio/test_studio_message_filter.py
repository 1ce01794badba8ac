"""The gate of the studio: only what the page itself would say gets through."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poise.studio.message_filter import (
    BURST,
    MAX_MESSAGE,
    RATE,
    RateLimit,
    find_error,
    is_cross_origin,
    is_local,
)

CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1, 0, 0, 0], "position": [1, 2, 3.5], "fov": 0.8,
    "near": 0.01, "far": 1000, "image_height": 600, "image_width": 800, "look_at": [0, 0, 1],
    "up_direction": [0, 0, 1],
}  # fmt: skip
UPDATE = {"type": "GuiUpdateMessage", "uuid": "a-b", "updates": {"value": 3}}
CLICK = {
    "type": "SceneNodeClickMessage", "name": "/world/live/bodies/dome", "instance_index": 3,
    "ray_origin": [0, 0, 1], "ray_direction": [1, 0, 0], "screen_pos": [0.5, 0.5],
    "modifier": None, "owner": "",
}  # fmt: skip
DRAG = {
    "type": "SceneNodeDragMessage", "phase": "start", "name": "/world/live/bodies/dome",
    "instance_index": 3, "start_position": [0, 0, 1], "start_screen_pos": [0.5, 0.5],
    "end_position": [0, 1, 1], "end_screen_pos": [0.6, 0.5], "button": "left", "modifier": None,
    "owner": "",
}  # fmt: skip
MOVED = {
    "type": "TransformControlsUpdateMessage", "name": "/world/goal-1", "wxyz": [1, 0, 0, 0],
    "position": [0, 0, 1.5], "owner": "",
}  # fmt: skip
GRASPED = {"type": "TransformControlsDragStartMessage", "name": "/world/goal-1", "owner": ""}
LET_GO = {"type": "TransformControlsDragEndMessage", "name": "/world/goal-1", "owner": ""}
COMMAND = {"type": "CommandTriggerMessage", "uuid": "a-b"}


def packed(message: Any) -> bytes:
    return msgspec.msgpack.encode(message)


SAID = [CAMERA, UPDATE, CLICK, DRAG, MOVED, GRASPED, LET_GO, COMMAND]


@pytest.mark.parametrize("message", SAID, ids=lambda m: m["type"])
def test_what_the_page_says_gets_through(message: dict[str, Any]) -> None:
    assert find_error(packed(message)) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc1\xff\x00",
        "a text",
        packed([1, 2]),
        packed({"type": "NoSuchMessage"}),
        # opens a tunnel to the public
        packed({"type": "ShareUrlRequest"}),
        packed({"type": "RunJavascriptMessage", "source": "alert(1)"}),
        # would fill the memory
        packed({"type": "FileTransferStartUpload", "source_component_uuid": "a",
                "transfer_uuid": "b", "filename": "../../x", "mime_type": "a/b", "part_count": 9,
                "size_bytes": 2**60}),
        # would take a control its callbacks
        packed({**UPDATE, "updates": {"value": 1, "update_cb": []}}),
        packed({**UPDATE, "updates": {"removed": True}}),
        packed({**UPDATE, "updates": {"value": math.nan}}),
        packed({**UPDATE, "updates": {"value": "x" * 1000}}),
        packed({**UPDATE, "updates": {"value": {"a": 1}}}),
        packed({**CAMERA, "position": [0, 0, math.inf]}),
        packed({**CAMERA, "position": [0, 0]}),
        packed({**CAMERA, "more": 1}),
        packed({**DRAG, "instance_index": -1}),
        packed({**DRAG, "end_position": ["a", 0, 0]}),
        packed({**DRAG, "phase": "middle"}),
        packed({**MOVED, "position": [0, 0, math.nan]}),
        packed({**MOVED, "scale": 9.0}),
        packed({k: v for k, v in DRAG.items() if k != "name"}),
        b"\x91" * 50_000,
        packed({**UPDATE, "updates": {"value": "x" * MAX_MESSAGE}}),
    ],
)  # fmt: skip
def test_what_it_would_not_say_is_objected_to(raw: bytes) -> None:
    wrong = find_error(raw)
    assert wrong is not None
    assert 0 < len(wrong) < 250
    assert "\n" not in wrong


@given(st.binary(max_size=200))
def test_random_bytes_never_raise(raw: bytes) -> None:
    assert find_error(raw) is None or isinstance(find_error(raw), str)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.sampled_from(SAID), st.data())
def test_messages_with_a_wrong_value_never_raise(message: dict[str, Any], data: Any) -> None:
    key = data.draw(st.sampled_from(sorted(message)))
    find_error(packed({**message, key: data.draw(json_like)}))


def test_who_talks_too_much_is_not_heard() -> None:
    now = 0.0
    budget = RateLimit(clock=lambda: now)
    assert sum(budget.spend() for _ in range(5000)) == BURST
    now = 1.0
    assert sum(budget.spend() for _ in range(5000)) == RATE


@pytest.mark.parametrize(
    ("origin", "host", "bound", "answer"),
    [
        (None, "localhost:8080", "127.0.0.1", False),
        ("http://localhost:8080", "localhost:8080", "127.0.0.1", False),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", False),
        ("http://studio.lan:8080", "studio.lan:8080", "0.0.0.0", False),
        ("http://evil.example", "localhost:8080", "127.0.0.1", True),
        ("http://localhost:3000", "localhost:8080", "127.0.0.1", True),
        # a name of theirs that they made to point here
        ("http://evil.example:8080", "evil.example:8080", "127.0.0.1", True),
        ("null", "localhost:8080", "127.0.0.1", True),
    ],
)
def test_pages_of_other_sites_are_turned_away(
    origin: str | None, host: str, bound: str, answer: bool
) -> None:
    assert is_cross_origin(origin, host, bound) is answer


def test_only_the_loopback_is_local() -> None:
    assert all(map(is_local, ("localhost", "127.0.0.1", "127.8.9.1", "::1", "LOCALHOST")))
    assert not any(map(is_local, ("0.0.0.0", "192.168.1.5", "studio.lan", "", "::")))
