"""Videos of recordings: drawn without a display, whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from films import ball, crowd, held, resting
from PIL import Image
from results_read import pictures

from poise import PoiseError, Recording, World, load_character, load_clip
from poise.simulation.pushes import Push, parse_push
from poise.view.overlays import LINGER, PushArrows
from poise.view.timeline import Timeline, as_recording
from poise.view.video import save_video

SMALL: dict[str, Any] = {"size": (160, 90), "samples": 1}


def test_a_video_shows_every_second_frame_of_sixty(tmp_path: Path) -> None:
    done: list[float] = []
    save_video(tmp_path / "a.mp4", held(0.5), **SMALL, progress=done.append)
    film = pictures(tmp_path / "a.mp4")
    assert film.shape == (16, 90, 160, 3)
    assert done == pytest.approx(np.arange(1, 17) / 16)
    # sky above, checks of the ground below, a body in the middle
    assert film[0, :8].mean() > 200
    assert film[0, -20:].std() > 8
    assert film[0, 20:70, 60:100].std() > 2 * film[0, 20:70, :30].std()


def test_a_thing_that_moves_is_seen_to(tmp_path: Path) -> None:
    save_video(tmp_path / "a.mp4", crowd(), **SMALL, stamp=False)
    film = pictures(tmp_path / "a.mp4").astype(float)
    assert np.abs(film[-1] - film[0]).max() > 60


@pytest.mark.parametrize(("fps", "frames"), [(60.0, 91), (120.0, 181), (4.0, 7)])
def test_a_clip_is_shown_at_its_own_speed(tmp_path: Path, fps: float, frames: int) -> None:
    clip = load_clip("walk").trimmed(0.0, 1.5).resampled(fps)
    assert len(clip) == frames
    save_video(tmp_path / "a.mp4", clip, **SMALL, stamp=False)
    film = pictures(tmp_path / "a.mp4").astype(float)
    # 1.5 s at 30 pictures a second, whatever the rate of the clip; it walks in all of them
    assert len(film) == 46
    assert (np.abs(np.diff(film, axis=0)).max(axis=(1, 2, 3)) > 20).all()
    # sky above, checks of the ground below
    assert film[0, :8].mean() > 200
    assert film[0, -20:].std() > 8


def test_between_its_frames_a_clip_follows_its_spline() -> None:
    clip = load_clip("walk").resampled(5.0)
    line = Timeline(as_recording(clip), fps=30.0)
    np.testing.assert_allclose(line.q, clip.q(line.time), rtol=0, atol=1e-6)
    assert line.time[-1] == pytest.approx(clip.duration)


@pytest.mark.parametrize("size", [(161, 91), (160, 91), (1, 1), (3, 200)])
def test_odd_sizes_are_made_even(tmp_path: Path, size: tuple[int, int]) -> None:
    save_video(tmp_path / "a.mp4", ball(), size=size, samples=1)
    film = pictures(tmp_path / "a.mp4")
    assert film.shape[1:3] == (size[1] + size[1] % 2, size[0] + size[0] % 2)


def test_a_gif_keeps_its_size_and_its_time(tmp_path: Path) -> None:
    save_video(tmp_path / "a.gif", held(0.5), size=(81, 45), samples=1, fps=20)
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.size == (81, 45)
        assert gif.n_frames == 11
        assert gif.info["duration"] == 50
        assert gif.info["loop"] == 0


def test_the_ghost_is_drawn_where_it_was_asked_to_be(tmp_path: Path) -> None:
    recording = ball()
    for ghost in (False, True):
        save_video(tmp_path / f"{ghost}.mp4", recording, **SMALL, ghost=ghost, stamp=False)
    plain, seen = (pictures(tmp_path / f"{ghost}.mp4")[2].astype(int) for ghost in (False, True))
    assert (np.abs(plain - seen).sum(axis=2) > 30).sum() > 5


def test_a_push_is_an_arrow_while_it_acts_and_a_little_after(tmp_path: Path) -> None:
    push = parse_push("chest:300N:left@0.1s+0.1s")
    recording = held(0.6, push=300.0)
    save_video(tmp_path / "a.mp4", recording, **SMALL, pushes=[push], stamp=False)
    film = pictures(tmp_path / "a.mp4").astype(int)
    red, green, blue = np.moveaxis(film, -1, 0)
    orange = ((red > 150) & (red - blue > 80) & (red - green > 30)).sum(axis=(1, 2))
    plain = orange[0]  # shoes are orange as well
    start, end = 3, 3 + round((0.1 + LINGER) * 30)
    assert (orange[start : start + 4] > plain + 10).all()
    assert abs(orange[end + 1] - plain) < 15


def test_an_arrow_of_a_push_ends_at_the_surface_and_points_along_it() -> None:
    line = Timeline(held(0.2))
    (arrow,) = PushArrows(line, [Push("chest", 200.0, "left", 0.0, 1.0)], 1e-3).at(2)
    assert arrow.vector == pytest.approx([0.0, 0.35, 0.0], abs=1e-6)
    tip = arrow.start + arrow.vector
    assert -0.3 < tip[1] < -0.05
    assert not PushArrows(line, [Push("chest", 200.0, "left", 5.0)], 1e-3).at(2)


def test_contact_forces_are_drawn_on_demand(tmp_path: Path) -> None:
    for forces in (0.0, 9e-3):  # the arrow is longer than the box is high
        save_video(tmp_path / f"{forces}.mp4", resting(), **SMALL, forces=forces)
    plain, seen = (pictures(tmp_path / f"{forces}.mp4")[-1].astype(int) for forces in (0.0, 9e-3))
    assert (np.abs(plain - seen).sum(axis=2) > 60).sum() > 5


@pytest.mark.parametrize("copy", [0, 2])
def test_any_copy_of_a_batch_can_be_shown(copy: int) -> None:
    recording = ball(n=3)
    line = Timeline(recording, copy=copy, fps=60)
    assert np.array_equal(line.q, recording.q[:, copy])
    assert line.q[-1, 0] == pytest.approx(9 / 60 * (copy + 1))


def test_slow_motion_shows_what_is_between_frames() -> None:
    recording = ball(frames=10)
    line = Timeline(recording, fps=60, slow=4.0)
    assert len(line) == 37
    assert line.time == pytest.approx(np.arange(37) / 240)
    # it flies evenly
    assert line.q[:, 0] == pytest.approx(line.time, abs=1e-9)
    assert np.diff(line.q[:, 0]).min() > 0.0


def test_rates_that_do_not_divide_are_smooth() -> None:
    line = Timeline(ball(frames=61), fps=25)
    assert np.diff(line.q[:, 0]) == pytest.approx(1 / 25)
    assert line.time[-1] == pytest.approx(1.0)


def test_where_the_clock_jumps_nothing_is_between() -> None:
    world = World(load_character("lamp"), dt=1 / 60)
    recording = Recording(world)
    start = world.state
    for _ in range(4):
        world.step()
        recording.append()
    world.reset(start)
    recording.append()
    line = Timeline(recording, fps=60, slow=4.0)
    frames = recording.q
    last = line.q[-4:]
    assert all((row == frames[3]).all() or (row == frames[4]).all() for row in last)


def test_a_thrown_ball_flies_between_frames() -> None:
    recording = crowd()
    line = Timeline(recording, fps=60, slow=2.0)
    thrown = line.thrown[:, 0]
    assert not thrown[:7, 0].any()
    assert thrown[7:, 0].all()
    step = np.diff(thrown[8:, 1])
    assert step == pytest.approx(step[0], rel=1e-3)
    assert thrown[::2, 1:] == pytest.approx(
        np.array([recording.projectile_state(i).q[0] for i in range(12)])
        + np.outer(1 - thrown[::2, 0], np.eye(7)[3])
    )


@pytest.mark.parametrize("n", [1, 2])
def test_crowds_on_hills_are_drawn(tmp_path: Path, n: int) -> None:
    save_video(tmp_path / "a.mp4", crowd(n, frames=6), **SMALL, copy=n - 1, forces=True)
    assert len(pictures(tmp_path / "a.mp4")) == 3


def test_one_frame_is_a_video_of_one_picture(tmp_path: Path) -> None:
    save_video(tmp_path / "a.mp4", ball(frames=1), **SMALL)
    assert len(pictures(tmp_path / "a.mp4")) == 1


def test_the_number_of_threads_changes_nothing(tmp_path: Path) -> None:
    for threads in (1, 3):
        save_video(tmp_path / f"{threads}.mp4", held(0.2), **SMALL, threads=threads)
    one, three = ((tmp_path / f"{threads}.mp4").read_bytes() for threads in (1, 3))
    assert one == three


# ---- bad input, and what is left behind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (0, 90)}, "a side of size is 0"),
        ({"size": 90}, r"it must be \(width, height\)"),
        ({"size": (100_000, 90)}, "a side of size is 100000"),
        ({"fps": 0}, "fps is 0"),
        ({"fps": 1e6}, "fps is 1e"),
        ({"slow": 0.0}, "slow is 0.0"),
        ({"slow": 1e9}, "pictures are too many"),
        ({"copy": 1}, "copy is 1; it must be 0 to 0"),
        ({"threads": 0}, "threads is 0"),
        ({"pushes": ["chest:1N@0s"]}, "pushes must be a sequence of Push"),
        ({"pushes": [parse_push("cheat:1N@0s")]}, "unknown link 'cheat'"),
        ({"forces": float("nan")}, "forces is nan"),
    ],
)
def test_bad_options_are_named(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(PoiseError, match=message):
        save_video(tmp_path / "a.mp4", ball(), **{**SMALL, **options})
    assert not list(tmp_path.iterdir())


def test_only_known_kinds_of_files_are_written(tmp_path: Path) -> None:
    with pytest.raises(PoiseError, match=r"a\.avi: videos are written as \.mp4 or \.gif"):
        save_video(tmp_path / "a.avi", ball())
    with pytest.raises(PoiseError, match="the recording has no frames"):
        save_video(tmp_path / "a.mp4", Recording(World(load_character("lamp"), dt=1 / 60)))
    with pytest.raises(PoiseError, match="expected a Recording or a Clip, got str"):
        save_video(tmp_path / "a.mp4", "walk")  # type: ignore[arg-type]
    with pytest.raises(PoiseError, match="cannot be written"):
        save_video(tmp_path / "nowhere" / "a.mp4", ball(frames=1), **SMALL)


def test_an_interrupt_leaves_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "a.mp4"
    old.write_bytes(b"old")

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_video(old, held(0.3), **SMALL, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]
    assert old.read_bytes() == b"old"


def test_an_encoder_that_fails_is_an_error(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/bin/false")
    with pytest.raises(PoiseError, match="the video cannot be written"):
        save_video(tmp_path / "a.mp4", held(0.3), **SMALL)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    with pytest.raises(PoiseError, match="ffmpeg"):
        save_video(tmp_path / "a.mp4", held(0.3), **SMALL)
    assert not list(tmp_path.iterdir())


def test_a_camera_looks_at_characters_and_not_at_what_rolls_away() -> None:
    recording = crowd()
    scene, q = Timeline(recording).camera_subjects
    assert [character.name for character in scene.characters] == ["lamp"]
    assert np.array_equal(q, recording.q[::2, : scene.nq])
    alone, _ = Timeline(ball()).camera_subjects
    assert alone.nq == 7


def test_a_camera_falls_with_who_falls() -> None:
    """It keeps its height over one that walks, and goes down with one that falls for seconds."""
    from poise.view.video import follow_line

    for seconds, falls in ((0.5, False), (1.5, True)):
        world = World(load_character("humanoid"), dt=1 / 60, ground=False)
        recording = Recording(world)
        recording.append()
        for _ in range(round(60 * seconds)):
            world.step()
            recording.append()
        cameras = follow_line(Timeline(recording), (160, 90))
        heights = [camera.target[2] for camera in cameras]
        assert bool(np.ptp(heights) > 1.0) is falls
