"""The page of the studio without a browser: what it says, what it hears, what it survives."""

from __future__ import annotations

import logging
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from poise.errors import PoiseError
from poise.simulation.contact.contacts import Contacts
from poise.studio import Studio, requests
from poise.studio.marks import torque_colors
from poise.studio.page import free_port
from poise.studio.readouts import fill_gaps, format_value, status
from poise.studio.snapshot import Message
from poise.view.overlays import arrow_vectors, pair_forces

viser = pytest.importorskip("viser")

CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1, 0, 0, 0], "position": [3, 0, 1], "fov": 0.8,
    "near": 0.01, "far": 1000, "image_height": 600, "image_width": 800, "look_at": [0, 0, 1],
    "up_direction": [0, 0, 1],
}  # fmt: skip


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with Studio("walk", out=tmp_path_factory.mktemp("studio"), port=0) as studio:
        yield studio


def until(true: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait for something to be true."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def socket_of(studio: Studio, **options: Any) -> Any:
    """A connection as a page makes one."""
    url = studio.url.replace("http", "ws").replace("localhost", "127.0.0.1")
    protocol: Any = f"viser-v{viser.__version__}"
    return connect(url, subprotocols=[protocol], max_size=None, close_timeout=0.5, **options)


def read_all(page: Any) -> None:
    """Read until the connection ends."""
    while True:
        page.recv(timeout=20)


def pages(studio: Studio) -> int:
    return len(studio.page.server.get_clients())


def test_junk_on_the_socket_is_dropped_and_logged(
    studio: Studio, caplog: pytest.LogCaptureFixture
) -> None:
    junk = [b"", b"junk", "text", os.urandom(300), msgspec.msgpack.encode([1]), b"\x91" * 50_000,
            msgspec.msgpack.encode({"type": "ShareUrlRequest"}),
            msgspec.msgpack.encode({"type": "GuiUpdateMessage", "uuid": "x", "updates": {}}),
    ]  # fmt: skip
    before = pages(studio)
    with caplog.at_level(logging.WARNING, "poise.studio"), socket_of(studio) as page:
        for message in junk:
            page.send(message)
        # the same connection still works: its camera makes it a page
        page.send(msgspec.msgpack.encode(CAMERA))
        assert until(lambda: pages(studio) == before + 1)
        assert len(page.recv(timeout=10)) > 0
    dropped = [r.getMessage() for r in caplog.records if "dropped message" in r.getMessage()]
    assert len(dropped) >= 3
    assert all(len(line) < 300 for line in dropped)
    assert studio.page.server._share_tunnel is None


def test_a_huge_message_costs_only_its_sender(studio: Studio) -> None:
    with socket_of(studio) as page:
        page.send(os.urandom(1 << 20))
        with pytest.raises(ConnectionClosed):
            read_all(page)
    with urllib.request.urlopen(studio.url, timeout=10) as answer:
        assert answer.status == 200


def test_a_page_of_another_site_is_turned_away(studio: Studio) -> None:
    with (
        socket_of(studio, origin="http://evil.example") as page,
        pytest.raises(ConnectionClosed, match="another site"),
    ):
        read_all(page)


def test_nothing_but_the_page_is_served(studio: Studio) -> None:
    for path in ("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "//x"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(studio.url + path, timeout=10)
        with refused.value:
            assert refused.value.code == 404


def test_a_page_that_never_reads_holds_nobody_up(studio: Studio) -> None:
    deaf = socket_of(studio)
    deaf.send(msgspec.msgpack.encode(CAMERA))
    assert until(lambda: pages(studio) >= 1)
    clock, updates = studio.session.newest.measures.time, studio.page.updates
    assert until(lambda: studio.page.updates > updates + 40)
    assert studio.session.newest.measures.time > clock + 0.3
    # it vanishes without a word
    deaf.socket.shutdown(socket.SHUT_RDWR)
    updates = studio.page.updates
    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        assert until(lambda: studio.page.updates > updates + 15)
    deaf.close()


def test_a_flood_does_not_stop_the_simulation(studio: Studio) -> None:
    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        clock = studio.session.newest.measures.time
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            page.send(msgspec.msgpack.encode(CAMERA))
    assert studio.session.newest.measures.time > clock + 0.3


def test_a_taken_port_gives_the_next(studio: Studio) -> None:
    port = studio.page.server.get_port()
    assert port < free_port("127.0.0.1", port) <= port + 100
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", 0))
        mine.listen()
        with pytest.raises(PoiseError, match="is free"):
            free_port("127.0.0.1", mine.getsockname()[1], tries=1)
    with pytest.raises(PoiseError, match="no-such-host"):
        free_port("no-such-host.invalid", 8080)


def test_words_of_others_are_no_html(studio: Studio) -> None:
    from dataclasses import replace

    newest = studio.session.newest
    told_off = replace(newest, message=Message(1, "<img src=x onerror=alert(1)>", "error"))
    text = status(told_off, 30.0)
    assert "<img" not in text
    assert "&lt;img" in text
    assert f"{newest.measures.time:.2f} s" in text


def test_a_recording_that_is_played_is_shown_with_its_dtype_and_instruction_set(
    studio: Studio,
) -> None:
    from dataclasses import replace

    newest = studio.session.newest
    assert "made by" not in status(newest, 30.0)
    assert "float64, avx2" in status(replace(newest, mode="recorded", made="float64, avx2"), 30.0)


def test_numbers_are_told_with_three_digits() -> None:
    assert [format_value(x, " N") for x in (1234.5, 99.96, 1.236, np.nan)] == [
        "1234 N", "100.0 N", "1.24 N", "–",
    ]  # fmt: skip


def test_gaps_of_curves_are_bridged() -> None:
    gaps = np.array([np.nan, 1.0, np.nan, np.nan, 2.0, np.nan])
    assert fill_gaps(gaps).tolist() == [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    assert np.isnan(fill_gaps(np.full(3, np.nan))).all()


def test_forces_on_a_link_are_one_arrow() -> None:
    contacts = Contacts(
        copy=np.zeros(3, dtype=np.int64),
        normal=np.tile([0.0, 0.0, 1.0], (3, 1)),
        depth=np.zeros(3),
        point=np.array([[0.0, 0, 0], [1.0, 0, 0], [5.0, 5, 0]]),
        force=np.array([[0.0, 0, 10], [0.0, 0, 30], [0.0, 0, 1000]]),
        link=np.array([3, 3, 4]),
        other=np.array([-1, -1, -1]),
    )
    start, force = pair_forces(contacts)
    way = arrow_vectors(force, 0.01, 2.0)
    assert np.allclose(start, [[0.75, 0.0, 0.0], [5.0, 5.0, 0.0]])
    # the second would be ten metres long
    assert np.allclose(way, [[0.0, 0.0, 0.4], [0.0, 0.0, 2.0]])


def test_torques_go_from_grey_to_red() -> None:
    rest, half, full, more = torque_colors(np.array([0.0, 0.5, 1.0, 7.0]))
    assert np.ptp(rest) < 0.15
    assert full[0] > 0.7 > 0.2 > full[1]
    assert np.allclose(full, more)
    assert half[1] > full[1]


def test_a_studio_ends_its_threads(tmp_path: Path) -> None:
    with Studio("squat", out=tmp_path / "new", port=0, play=False) as studio:
        assert studio.url.startswith("http://localhost:")
        assert not (tmp_path / "new").exists()
    assert not studio.page._thread.is_alive()
    assert studio.session._thread is not None
    assert not studio.session._thread.is_alive()


def test_the_mouse_pushes_drags_and_lets_go(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(studio.page.view, "_submit", asked.append)
    actors = studio.page.view._view
    assert actors is not None
    handle = actors.bodies.handles[0]
    copy, link = actors.bodies.link_of(handle, 0) or (None, None)
    assert copy == 0
    at: dict[str, Any] = {"name": handle.name, "instance_index": 0, "modifier": None, "owner": ""}
    click = {**at, "type": "SceneNodeClickMessage", "ray_origin": [3, 0, 1],
             "ray_direction": [-1, 0, 0], "screen_pos": [0.5, 0.5]}  # fmt: skip
    drag = {**at, "type": "SceneNodeDragMessage", "start_position": [0, 0, 1], "button": "left",
            "start_screen_pos": [0.5, 0.5], "end_position": [0, 1, 1],
            "end_screen_pos": [0.6, 0.5]}  # fmt: skip
    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        assert until(lambda: pages(studio) >= 1)
        page.send(msgspec.msgpack.encode(click))
        page.send(msgspec.msgpack.encode({**click, "modifier": "shift"}))
        for phase in ("start", "update", "end"):
            page.send(msgspec.msgpack.encode({**drag, "phase": phase}))
        # of an instance that does not exist nothing comes
        page.send(msgspec.msgpack.encode({**click, "instance_index": 99_999}))
        assert until(lambda: asked and isinstance(asked[-1], requests.Release))
    kinds = [requests.Push, requests.Throw, requests.Drag, requests.Drag, requests.Release]
    assert [type(request) for request in asked] == kinds
    assert all(request.link == link for request in asked)
    assert asked[0].direction == (-1.0, 0.0, 0.0)
    for request in asked:
        request.checked()


def test_a_control_shows_what_is_not_what_was_asked(studio: Studio) -> None:
    slider = studio.page.panel._control._sliders["frequency"]
    wrong = {"type": "GuiUpdateMessage", "uuid": slider._impl.uuid, "updates": {"value": 1e8}}
    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        assert until(lambda: pages(studio) >= 1)
        page.send(msgspec.msgpack.encode(wrong))
        assert until(lambda: slider.value == 1e8)
        assert until(lambda: "frequency" in studio.session.newest.message.text)
        assert until(lambda: slider.value == 8.0)


def test_a_file_is_saved_in_its_folder_whatever_its_name(studio: Studio) -> None:
    out = studio.session.folder.path
    before = set(out.parent.iterdir())
    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        assert until(lambda: pages(studio) >= 1)
        client = list(studio.page.server.get_clients().values())[-1]
        studio.page._downloads.request_file(client, "npz", "../../evil/../x")
        assert until(lambda: out.is_dir() and list(out.glob("*.npz")))
    assert set(out.parent.iterdir()) == before
    assert all(path.parent == out for path in out.rglob("*.npz"))


def test_the_command_says_where_and_warns_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from poise.cli import app

    given: dict[str, Any] = {}

    class Shown:
        url = "http://localhost:8081"

        def __init__(self, source: Any, **options: Any) -> None:
            given.update(options, source=source)

        def __enter__(self) -> Shown:
            return self

        def __exit__(self, *problem: object) -> None:
            given["ended"] = True

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("poise.cli.view.Studio", Shown)
    monkeypatch.setattr("poise.cli.view._wait", interrupt)
    ran = CliRunner().invoke(app, ["view", "walk", "--host", "0.0.0.0", "--no-browser"])
    assert ran.exit_code == 0, ran.output
    assert "http://localhost:8081 (port 8080 is taken)" in ran.output
    assert "0.0.0.0 is open to others" in ran.output
    assert given["ended"]
    assert (given["source"], given["host"], given["out"]) == ("walk", "0.0.0.0", Path("out/studio"))
    local = CliRunner().invoke(app, ["view", "--no-browser", "--port", "8081"])
    assert "open to others" not in local.output
    assert "taken" not in local.output
