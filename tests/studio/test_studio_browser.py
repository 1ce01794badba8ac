"""The studio as people use it: a real browser plays, throws, drags, tunes, scrubs, downloads."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from results_read import pictures, read_page, same_motion

from poise import load_recording
from poise.dynamics import forward_kinematics
from poise.math.rotation import quat_matrix
from poise.studio import Studio

SIZE = {"width": 960, "height": 620}
PATIENCE = 90_000
"""Without a GPU, on a busy machine, a page takes its time [ms]."""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with Studio("squat", out=tmp_path / "out", port=0, shadows=False) as studio:
        yield studio


def opened(browser: Any, studio: Studio) -> Any:
    """A page of the studio, at a coarse resolution."""
    before = len(studio.page.server.get_clients())
    page = browser.new_page(viewport=SIZE)
    page.set_default_timeout(PATIENCE)
    page.goto(f"{studio.url}/?fixedDpr=0.4")
    page.wait_for_selector(".poise-status")
    assert until(lambda: len(studio.page.server.get_clients()) == before + 1)
    return page


def until(true: Callable[[], Any], seconds: float = PATIENCE / 1000) -> bool:
    """Wait for something to be true."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


def picture(page: Any, name: str) -> Any:
    """What is seen, shape (height, width, 3); kept in $POISE_SHOTS, for people."""
    data = page.screenshot()
    folder = os.environ.get("POISE_SHOTS")
    if folder:
        Path(folder, f"{name}.png").write_bytes(data)
    return np.array(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def row(page: Any, label: str) -> Any:
    """The line of the panel with that label."""
    return page.get_by_text(label, exact=True).locator("xpath=ancestor::*[.//input][1]")


def pixel(page: Any, studio: Studio, link: str) -> tuple[float, float]:
    """Where a link is on the page."""
    measures = studio.session.newest.measures
    place = forward_kinematics(measures.index.scene, measures.q)[0][measures.index.link_index(link)]
    return spot(page, studio, place)


def spot(page: Any, studio: Studio, place: Any) -> tuple[float, float]:
    """Where a point of the world is on the page."""
    camera = next(iter(studio.page.server.get_clients().values())).camera
    there = place - studio.page.view.to_world((0.0, 0.0, 0.0)) - camera.position
    x, y, z = quat_matrix(camera.wxyz).T @ there
    box = page.locator("canvas").first.bounding_box()
    f = 0.5 * box["height"] / np.tan(camera.fov / 2)
    return box["x"] + box["width"] / 2 + f * x / z, box["y"] + box["height"] / 2 + f * y / z


def dragged(page: Any, studio: Studio, link: str, away: float) -> bool:
    """Press on a link and pull; whether it follows. One that moves may have gone meanwhile."""
    page.mouse.up()
    x, y = pixel(page, studio, link)
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(1, 6):
        page.mouse.move(x + 25 * k, y - 4 * k)
    return until(lambda: bool(studio.session.newest.measures.root_offset[0] > away), 20.0)


def test_a_person_plays_with_it(browser: Any, studio: Studio, tmp_path: Path) -> None:
    page, session = opened(browser, studio), studio.session

    # it is drawn: the middle of the picture is not of one colour
    assert until(lambda: np.ptp(picture(page, "loads")[150:450, 380:580].sum(axis=2)) > 200)

    # it plays; a click pauses it, another lets it go on
    clock = session.newest.measures.time
    assert until(lambda: session.newest.measures.time > clock + 0.2)
    page.get_by_role("button", name="Pause").click()
    assert until(lambda: not session.newest.playing)
    page.get_by_role("button", name="Play", exact=True).click()
    assert until(lambda: session.newest.playing)

    # a ball is thrown
    page.get_by_text("Act", exact=True).click()
    page.get_by_role("button", name="Throw a ball").click()
    assert until(lambda: session.newest.measures.projectiles.thrown.any())
    picture(page, "throws")

    # a limb is dragged, and comes back when it is let go
    away = session.newest.measures.root_offset[0]
    assert any(dragged(page, studio, "chest", away + 0.05) for _ in range(4))
    picture(page, "drags")
    page.mouse.up()
    assert until(lambda: session.newest.measures.root_offset[0] < away + 0.04)

    # a gain is changed
    page.get_by_text("Tune", exact=True).click()
    row(page, "Frequency").locator("input").last.fill("20")
    assert until(lambda: "" in session.newest.controls.tuning)
    assert session.newest.controls.tuning[""].frequency == 20.0

    # one looks back
    track = row(page, "Time").locator("[class*=Slider-track]").first.bounding_box()
    page.mouse.click(track["x"] + 0.3 * track["width"], track["y"] + track["height"] / 2)
    assert until(lambda: not session.newest.playing)
    shown = session.newest
    assert abs(shown.frame / (shown.frames - 1) - 0.3) < 0.05
    picture(page, "scrubs")

    # a recording is downloaded, and is what was seen
    page.get_by_text("Record", exact=True).first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Recording", exact=True).click()
    download.value.save_as(tmp_path / "got.npz")
    recording = load_recording(tmp_path / "got.npz")
    assert len(recording) == shown.frames
    assert np.array_equal(recording.q[shown.frame], shown.measures.q)
    picture(page, "downloads")
    page.close()


@pytest.mark.slow
def test_a_take_comes_home_as_bvh_glb_video_and_page(
    browser: Any, studio: Studio, tmp_path: Path
) -> None:
    page, session = opened(browser, studio), studio.session
    page.get_by_text("Record", exact=True).first.click()
    page.get_by_role("button", name="Record", exact=True).click()
    assert until(lambda: session.newest.taken > 0.5)
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Pause").click()
    assert until(lambda: not session.newest.playing and not session.newest.recording)
    got = {}
    for button in ("Recording", "BVH", "GLB", "Video", "HTML"):
        with page.expect_download() as download:
            page.get_by_role("button", name=button, exact=True).click()
        got[button] = tmp_path / download.value.suggested_filename
        download.value.save_as(got[button])
    picture(page, "took")

    # the take is opened, and shown beside itself
    page.get_by_role("button", name="Open", exact=True).click()
    assert until(lambda: session.newest.mode == "recorded")
    page.get_by_role("button", name="Compare beside").click()
    assert until(lambda: session.newest.beside is not None)
    updates = studio.page.updates
    assert until(lambda: studio.page.updates > updates + 10)
    picture(page, "compares")
    page.close()

    # all tell of the same take
    recording = load_recording(got["Recording"])
    assert recording.time[-1] - recording.time[0] > 0.5
    same_motion(got["BVH"], recording)
    same_motion(got["GLB"], recording)
    frames = pictures(got["Video"]).astype(int)
    assert abs(len(frames) / 30.0 - recording.clip().duration) < 0.1
    assert np.abs(frames[0] - frames[-1]).max() > 50
    assert read_page(got["HTML"]).duration == pytest.approx(len(recording) / 60.0, abs=0.05)


@pytest.mark.slow
def test_several_browsers_see_the_same(browser: Any, studio: Studio) -> None:
    one, two = opened(browser, studio), opened(browser, studio)
    one.get_by_role("button", name="Pause").click()
    two.get_by_role("button", name="Play", exact=True).wait_for()
    # one vanishes; the other goes on
    one.close()
    two.get_by_role("button", name="Play", exact=True).click()
    assert until(lambda: studio.session.newest.playing)
    updates = studio.page.updates
    assert until(lambda: studio.page.updates > updates + 10)
    two.close()
