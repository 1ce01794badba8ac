"""A recording as one HTML file: it holds the motion, asks for no network, and moves."""

from __future__ import annotations

import io
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from films import ball, crowd, held, resting
from PIL import Image
from results_read import read_page

from poise import PoiseError, Recording, World, load_character, load_clip
from poise.dynamics import forward_kinematics
from poise.simulation.pushes import parse_push
from poise.view.html import save_html


def test_a_page_shows_a_clip_at_its_own_speed(tmp_path: Path) -> None:
    clip = load_clip("walk").trimmed(0.0, 1.0)
    save_html(tmp_path / "a.html", clip, fps=30, beside=clip.mirrored())
    page = read_page(tmp_path / "a.html")
    assert page.duration == pytest.approx(31 / 30)
    assert page.arrays("/ground/light_tiles", "batched_positions")
    for name in ("recording", "beside"):
        places = np.array(page.arrays(f"/{name}/bodies/tube", "batched_positions"))
        # every pose, each elsewhere: the first is the rest pose, where it is made
        assert len(places) >= 31
        assert (np.abs(np.diff(places[1:], axis=0)).max(axis=1) > 1e-4).all()


def test_a_page_holds_every_pose(tmp_path: Path) -> None:
    recording = ball(frames=13)
    save_html(tmp_path / "a.html", recording, fps=60, title="a <ball>")
    page = read_page(tmp_path / "a.html")
    places = np.array(page.arrays("/recording/bodies/sphere", "batched_positions"))
    # the first is the rest pose, where it starts
    assert places == pytest.approx(recording.q[:, :3], abs=1e-6)
    assert page.duration == pytest.approx(13 / 60)
    times = [time for time, message in page.messages if message["type"].endswith("UpdateMessage")]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(12 / 60)
    ghost = page.arrays("/recording/ghost/sphere_clear", "batched_positions")
    assert ghost[-1] == pytest.approx([0.0, 0.0, 1.1])
    assert "<title>a &lt;ball&gt;</title>" in (tmp_path / "a.html").read_text()


def test_a_page_shows_forces_pushes_and_the_mass_centre(tmp_path: Path) -> None:
    recording = held(0.4, push=300.0)
    save_html(tmp_path / "a.html", recording, pushes=[parse_push("chest:300N:left@0.1s")])
    page = read_page(tmp_path / "a.html")
    center = page.arrays("/recording/center_of_mass/sphere", "batched_positions")
    middle = forward_kinematics(recording.scene, recording.q)[0].mean(axis=1)
    assert np.linalg.norm(np.array(center)[-1] - middle[-1]) < 0.3
    sizes = [
        x.reshape(-1, 3)[:, 2] for x in page.arrays("/recording/pushes/cone", "batched_scales")
    ]
    assert max(size.max() for size in sizes) > 0.05
    assert len(page.arrays("/ground/dark_tiles", "batched_positions")) == 1


def test_arrows_of_forces_are_as_long_as_read_page(tmp_path: Path) -> None:
    save_html(tmp_path / "a.html", resting(), forces=2e-3, center_of_mass=False)
    page = read_page(tmp_path / "a.html")
    shaft, head = (
        page.arrays(f"/recording/forces/{part}", "batched_scales")[-1]
        for part in ("cylinder", "cone")
    )
    assert 2 * shaft[2] + head[2] == pytest.approx(2e-3 * 98.1, rel=0.02)


def test_two_recordings_stand_side_by_side(tmp_path: Path) -> None:
    one, two = held(0.2), held(0.4)
    save_html(tmp_path / "a.html", one, beside=two, names=("soft", "soft, longer"))
    page = read_page(tmp_path / "a.html")
    tubes = [
        np.array(page.arrays(f"/{name}/bodies/tube", "batched_positions")[0]).reshape(-1, 3)
        for name in ("recording", "beside")
    ]
    apart = (tubes[0] - tubes[1]).mean(axis=0)
    # it looks along x, so its right is -y
    assert apart[1] > 0.8
    assert apart[0] == pytest.approx(0.0, abs=1e-3)
    assert tubes[0][:, 1].min() > tubes[1][:, 1].max()
    assert page.duration == pytest.approx(13 / 30)
    texts = [message["props"]["text"] for _, message in page.messages if "Label" in message["type"]]
    assert texts == ["soft", "soft, longer"]


@pytest.mark.parametrize("n", [1, 2])
def test_crowds_on_hills_go_into_a_page(tmp_path: Path, n: int) -> None:
    recording = crowd(n)
    save_html(tmp_path / "a.html", recording, copy=n - 1)
    page = read_page(tmp_path / "a.html")
    made = {message["name"] for _, message in page.messages if "props" in message}
    for part in ("bodies/box", "thrown/sphere", "bodies/cylinder"):
        assert f"/recording/{part}" in made
    assert any(name.startswith("/obstacles/mesh") for name in made)
    assert "/obstacles/box" in made
    sizes = np.array(page.arrays("/recording/thrown/sphere", "batched_scales"))
    # it waits, without a size, and then flies
    assert sizes[1].max() == 0.0
    assert sizes[-1].max() == pytest.approx(0.1)


def test_ten_seconds_are_a_few_megabytes(tmp_path: Path) -> None:
    save_html(tmp_path / "short.html", held(1 / 30))
    save_html(tmp_path / "long.html", held(1 + 1 / 30, push=300.0))
    short, long = ((tmp_path / f"{name}.html").stat().st_size for name in ("short", "long"))
    assert short + 10 * (long - short) < 4e6


def test_no_port_is_opened(tmp_path: Path, monkeypatch: Any) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a port is opened")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    save_html(tmp_path / "a.html", ball(frames=2))


def test_the_same_recording_gives_the_same_page(tmp_path: Path) -> None:
    for name in "ab":
        save_html(tmp_path / f"{name}.html", crowd(frames=5))
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.slow
def test_a_page_opens_from_disk_without_a_network_and_moves(tmp_path: Path, browser: Any) -> None:
    """The ball, the only blue thing, is seen in different places."""
    save_html(tmp_path / "a.html", ball(frames=120, speed=2.0), ghost=False)
    context = browser.new_context(offline=True, viewport={"width": 480, "height": 300})
    page = context.new_page()
    page.set_default_timeout(300_000)
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto((tmp_path / "a.html").as_uri())
    page.wait_for_selector("canvas")
    places: list[float] = []
    for _ in range(20):
        page.wait_for_timeout(700)
        place = _blue(page.screenshot())
        if place is not None:
            places.append(place)
        if places and np.ptp(places) > 20.0:
            break
    context.close()
    assert not wrong
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert np.ptp(places) > 20.0


def _blue(shot: bytes) -> float | None:
    """How far from the left something blue is [pixels]; the bar below is left out."""
    with Image.open(io.BytesIO(shot)) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)[:-50]
    blue = pixels[..., 2] - pixels[..., 0] > 40
    return float(np.nonzero(blue)[1].mean()) if blue.sum() > 30 else None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fps": -1}, "fps is -1"),
        ({"copy": 3}, "copy is 3"),
        ({"pushes": [parse_push("cheat:1N@0s")]}, "unknown link 'cheat'"),
        ({"beside": "walk"}, "expected a Recording or a Clip, got str"),
        ({"forces": "many"}, "forces is 'many'"),
    ],
)
def test_bad_options_are_named(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(PoiseError, match=message):
        save_html(tmp_path / "a.html", ball(), **options)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PoiseError, match=r"pages are written as \.html"):
        save_html(tmp_path / "a.txt", ball())
    with pytest.raises(PoiseError, match="has no frames"):
        save_html(tmp_path / "a.html", Recording(World(load_character("lamp"), dt=1 / 60)))
    with pytest.raises(PoiseError, match="cannot be written"):
        save_html(tmp_path / "nowhere" / "a.html", ball(frames=1))
