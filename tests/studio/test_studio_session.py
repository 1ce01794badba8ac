"""The session: pacing, requests from any thread, files, recordings; nothing stops it."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studio_scenes import Clock, Studio, session_speed, until, wait_for

from poise import Clip, PoiseError, load_character, load_clip, load_recording
from poise.studio import requests, session
from poise.studio.handlers import HANDLERS, drop_overridden
from poise.studio.jobs import Jobs, session_options
from poise.studio.requests import (
    AddObject,
    Choose,
    ClearObjects,
    Compare,
    Drag,
    Live,
    Open,
    Play,
    Push,
    Record,
    Restart,
    Save,
    Scrub,
    SetFriction,
    SetGains,
    SetGravity,
    SetLoop,
    SetPin,
    SetSpeed,
    SetStrength,
    Step,
    Throw,
    Watch,
)
from poise.studio.session import MAX_DELAY, Pace, Session

# ---- pace


def test_the_simulation_is_never_ahead_of_the_clock(tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock)
    studio.ask(SetSpeed(0.5))
    studio.ask(Play())
    began = clock.now
    for passed in (0.004, 0.03, 0.05, 0.001, 0.09, 0.02):
        clock.now += passed
        studio.advance(1.0)
        due = 0.5 * (clock.now - began)
        assert due - 1 / 60 - 1e-9 < studio.simulation.time <= due + 1e-9


def test_what_cannot_be_caught_up_is_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock)
    studio.ask(Play())
    clock.now += 30.0
    studio.advance(1.0)
    assert studio.simulation.time == pytest.approx(MAX_DELAY)
    studio.advance(1.0)
    assert studio.simulation.time == pytest.approx(MAX_DELAY)
    clock.now += 1 / 60 + 1e-6
    studio.advance(1.0)
    assert studio.simulation.time == pytest.approx(MAX_DELAY + 1 / 60)


def test_steps_that_take_longer_than_they_last_do_not_pile_up() -> None:
    clock = Clock()
    pace, simulated = Pace(clock), 0.0
    pace.start(0.0, 1.0)
    for _ in range(100):
        steps = int((pace.allowed(simulated) - simulated) * 60 + 1e-6)
        assert steps <= round(60 * MAX_DELAY)
        simulated += steps / 60
        clock.now += 0.05 * max(1, steps)
        pace.worked(clock.now - 0.05 * max(1, steps), steps / 60, steps)
    speed, step_rate, load = pace.rates()
    assert speed == pytest.approx(1 / 3, rel=0.15)
    assert step_rate == pytest.approx(20.0, rel=0.15)
    assert load == pytest.approx(1.0)


def test_a_budget_is_kept_so_that_pages_see_it_move(tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock)
    advance = studio.simulation.advance

    def slow(steps: int) -> None:
        clock.now += 0.015
        advance(steps)

    studio.simulation.advance = slow  # type: ignore[method-assign]
    studio.ask(Play())
    clock.now += 0.1
    studio.advance(0.02)
    assert studio.simulation.time == pytest.approx(2 / 60)


# ---- what requests do


def test_a_day_in_the_studio(tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock)
    studio.ask(Play())
    asked: list[requests.Request] = [
        Push("chest", 100.0, "left"), SetGains(12.0, 0.8), SetStrength(0.5, "left_arm"),
        SetPin(1.0, "right_leg"), SetPin(0.0, "right_leg"), Throw(),
        Drag("head", (0.3, 0.0, 1.7)), requests.Release(),
        SetGravity((0.0, 0.0, -3.0)), SetFriction(0.3), AddObject("box"), AddObject("box"),
        SetLoop(False), SetLoop(True), Choose(controller="spd", root="held"), Choose(dt=1 / 120),
        Record(), Record(False), Watch(0), ClearObjects(),
    ]  # fmt: skip
    for one in asked:
        studio.ask(one)
        clock.now += 0.05
        studio.advance(1.0)
        snapshot = studio.make_snapshot()
        assert snapshot.message.level == "info", one
        assert snapshot.playing
    assert snapshot.measures.time > 0.8
    controls = snapshot.controls
    assert (controls.friction, controls.gravity[2], controls.dt) == (0.3, -3.0, 1 / 120)
    assert controls.tuning["left_arm"].strength == 0.5
    assert controls.tuning["right_leg"] == (12.0, 0.8, 1.0, 0.0)
    assert controls.tuning[""].frequency == 12.0
    studio.ask(Restart())
    snapshot = studio.make_snapshot()
    assert (snapshot.measures.time, snapshot.frame, snapshot.frames) == (0.0, 0, 1)
    assert tuple(studio.simulation.world.gravity) == (0.0, 0.0, -3.0)


def test_stepping_and_scrubbing(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.ask(Step(20))
    assert studio.make_snapshot().frames == 21
    studio.ask(Step(-3))
    snapshot = studio.make_snapshot()
    assert (snapshot.frame, snapshot.frames, snapshot.playing) == (17, 21, False)
    studio.ask(Scrub(5))
    assert studio.make_snapshot().measures.time == pytest.approx(5 / 60)
    studio.ask(Scrub(99999))
    assert studio.make_snapshot().frame == 20
    studio.ask(Scrub(10))
    studio.ask(Step(1))
    assert studio.make_snapshot().frames == 12


def test_the_trail_and_the_curves_end_where_one_looks(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.series.clear()
    for _ in range(30):
        studio.ask(Step(2))
        studio.make_snapshot()
    trail = studio.make_snapshot().trail
    assert len(trail) == 30
    studio.ask(Scrub(20))
    measures = studio.make_snapshot().measures
    assert len(studio.series.trail(0, measures.time)) == 10
    curves = studio.series.curves(0, measures.time)
    assert curves["time"][-1] == pytest.approx(20 / 60)
    assert {len(column) for column in curves.values()} == {10}
    plans = curves.pop("cop_error")  # there is no plan without balance
    assert np.isnan(plans).all()
    assert np.isfinite(list(curves.values())).all()
    # to go on from there forgets what came later
    studio.ask(Step(2))
    studio.make_snapshot()
    assert len(studio.series.trail(0, 22 / 60)) == 11


def test_another_scene_is_loaded_beside_and_the_last_choice_counts(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.ask(Choose(count=3))
    studio.ask(Choose(count=2))
    assert studio.make_snapshot().measures.index.count == 1
    assert studio.make_snapshot().controls.count == 2
    studio.finish_jobs()
    snapshot = studio.make_snapshot()
    assert snapshot.measures.index.count == 2
    assert [job.state for job in snapshot.jobs] == ["done", "done"]
    studio.ask(Watch(1))
    assert studio.make_snapshot().controls.watch == 1
    with pytest.raises(PoiseError, match="no character 5"):
        studio.ask(Watch(5))


def test_a_scene_that_cannot_be_loaded_leaves_the_present_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio = Studio(tmp_path)

    def broken(*given: Any) -> None:
        raise PoiseError("it cannot be")

    monkeypatch.setattr("poise.studio.handlers.set_up", broken)
    studio.ask(Choose(clip="run"))
    studio.finish_jobs()
    snapshot = studio.make_snapshot()
    assert snapshot.controls.clip == "walk"
    assert snapshot.message.text == "it cannot be"
    assert snapshot.jobs[-1].state == "failed"


# ---- recordings and files


def test_a_take_is_saved_opened_and_compared(tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path / "out", clock)
    studio.ask(Record())
    studio.ask(Push("chest", 50.0))
    studio.ask(Step(30))
    studio.ask(Record(False))
    assert studio.make_snapshot().taken == pytest.approx(0.5)
    studio.ask(Step(10))
    studio.ask(Save(("npz", "bvh", "glb"), "../my take", "page-7"))
    studio.finish_jobs()
    jobs = studio.make_snapshot().jobs
    assert [job.state for job in jobs] == ["done"] * 3, jobs
    assert [job.token for job in jobs] == ["page-7"] * 3
    assert {job.path for job in jobs} == {
        tmp_path / "out" / f"my-take.{kind}" for kind in ("npz", "bvh", "glb")
    }
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == [
        "my-take.bvh", "my-take.glb", "my-take.npz",
    ]  # fmt: skip
    recording = load_recording(tmp_path / "out" / "my-take.npz")
    assert len(recording) == 31
    body = load_character("humanoid")
    motion = load_clip(tmp_path / "out" / "my-take.bvh", body, prepare=False)
    assert np.abs(motion.frames[:, :3] - recording.q[:, :3]).max() < 1e-4

    studio.ask(Open("my-take.npz"))
    studio.ask(Compare("my-take.npz"))
    studio.finish_jobs()
    snapshot = studio.make_snapshot()
    assert (snapshot.mode, snapshot.name, snapshot.frames) == ("recorded", "my-take.npz", 31)
    studio.ask(Scrub(12))
    snapshot = studio.make_snapshot()
    assert np.array_equal(snapshot.measures.q, recording.q[12])
    assert snapshot.beside is not None
    assert np.array_equal(snapshot.beside.q, recording.q[12])
    assert snapshot.beside.index.number != snapshot.measures.index.number
    # it plays, comes to its end, and starts again if it is looped
    studio.ask(Play())
    clock.now += 0.05
    studio.advance(1.0)
    assert studio.make_snapshot().frame == 15
    studio.ask(SetLoop(False))
    for _ in range(10):
        clock.now += 0.09
        studio.advance(1.0)
    assert (studio.make_snapshot().frame, studio.playing) == (30, False)
    studio.ask(Play())
    assert studio.make_snapshot().frame == 0
    studio.ask(Save(("bvh",)))
    studio.finish_jobs()
    assert studio.jobs.all[-1].message == "my-take-2.bvh"
    studio.ask(Live())
    studio.ask(Compare(None))
    snapshot = studio.make_snapshot()
    assert (snapshot.mode, snapshot.beside, snapshot.frames) == ("live", None, 41)


def test_a_push_after_the_frame_that_one_goes_back_to_is_forgotten(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    for _ in range(2):
        studio.ask(Step(5))
        studio.ask(Push("chest", 50.0))
    studio.ask(Scrub(7))
    assert [push.at for push in studio.simulation.pushes] == pytest.approx([5 / 60, 10 / 60])
    studio.ask(Step(5))
    assert [push.at for push in studio.simulation.pushes] == pytest.approx([5 / 60])
    studio.ask(Restart())
    assert studio.simulation.pushes == []


def test_a_take_of_a_scene_that_is_gone_can_be_saved(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.ask(Record())
    studio.ask(Step(3))
    studio.ask(Choose(character="two-link"))
    studio.finish_jobs()
    assert studio.make_snapshot().measures.index.names == ("two-link",)
    assert not studio.make_snapshot().recording
    studio.ask(Save(("bvh",), "walker"))
    studio.finish_jobs()
    assert [job.message for job in studio.jobs.all][-1] == "walker.bvh"


@pytest.mark.parametrize("seed", [4, 10])
def test_whatever_is_asked_the_show_goes_on(tmp_path: Path, seed: int) -> None:
    clock, random = Clock(), np.random.default_rng(seed)
    studio = Studio(tmp_path, clock)
    studio.ask(Play())
    places = [tuple(random.uniform(-3.0, 3.0, 3).tolist()) for _ in range(20)]
    asked: list[requests.Request] = [
        Play(), Play(False), Step(7), Step(-9), Scrub(3), Restart(), SetSpeed(4.0), SetLoop(False),
        SetLoop(True), Choose(root="held"), Choose(dt=0.05), Choose(dt=1 / 90), Choose(count=2),
        Choose(ground="hills"), Choose(ground="none"), Choose(clip="rest"), Choose(clip="walk"),
        SetGravity(places[0]), SetFriction(0.0), SetGains(500.0, 0.05), SetGains(0.1, 10.0, "head"),
        SetStrength(0.0), SetStrength(4.0, "torso"), SetPin(10.0, "head"), ClearObjects(),
        AddObject("box", 2.0, 500.0, places[1]), AddObject("ball", 0.05, 0.05), Throw(speed=40.0),
        Throw("head", places[2]), Push(5, 20_000.0, places[3], 1.0, places[4]), Push("nobody"),
        Drag("chest", places[5], places[6]), requests.Release(), Record(), Record(False), Live(),
        Save(("npz",), "x"), Open("x.npz"), Compare("x.npz"), Compare(None), Watch(1),
    ]  # fmt: skip
    for one in random.permutation(np.array(asked, dtype=object)):
        try:
            studio.ask(one)
        except PoiseError:
            continue
        clock.now += 0.03
        if studio.playing:
            studio.advance(1.0)
        measures = studio.make_snapshot().measures
        for numbers in (measures.q, measures.com, measures.kinetic, measures.torque_ratio):
            assert np.isfinite(numbers).all(), one
    studio.finish_jobs()
    studio.jobs.stop()


def test_a_take_ends_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poise.studio.history.MAX_TAKE_DURATION", 0.2)
    clock = Clock()
    studio = Studio(tmp_path, clock)
    studio.ask(Record())
    studio.ask(Play())
    for _ in range(6):
        clock.now += 0.05
        studio.advance(1.0)
    snapshot = studio.make_snapshot()
    assert not snapshot.recording
    assert 0.2 < snapshot.taken < 0.3
    assert "can be saved" in snapshot.message.text


def test_without_a_take_the_past_is_saved(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.ask(Step(5))
    studio.ask(Save())
    studio.finish_jobs()
    assert len(load_recording(tmp_path / "walk.npz")) == 6
    studio.ask(Save())
    studio.finish_jobs()
    assert studio.make_snapshot().files == ("walk-2.npz", "walk.npz")


def test_files_of_every_kind(tmp_path: Path) -> None:
    pytest.importorskip("viser")
    pytest.importorskip("imageio_ffmpeg")
    studio = Studio(tmp_path)
    studio.ask(Push("chest", 80.0, "left"))
    studio.ask(Step(6))
    studio.ask(Save(("html", "png", "mp4")))
    studio.finish_jobs()
    assert [(job.state, job.message) for job in studio.jobs.all] == [
        ("done", "walk.html"), ("done", "walk.png"), ("done", "walk.mp4"),
    ]  # fmt: skip
    assert all((tmp_path / f"walk.{kind}").stat().st_size > 1000 for kind in ("html", "png", "mp4"))


@pytest.mark.parametrize("name", ["../x.npz", "/etc/passwd", "gone.npz", "a/b.npz"])
def test_only_recordings_of_the_folder_are_opened(tmp_path: Path, name: str) -> None:
    studio = Studio(tmp_path)
    for kind in (Open, Compare):
        with pytest.raises(PoiseError, match="unknown recording"):
            studio.ask(kind(name))


def test_a_folder_that_cannot_be_made_fails_the_job_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    studio = Studio(tmp_path / "file" / "out")
    studio.ask(Step(2))
    studio.ask(Save())
    studio.finish_jobs()
    job = studio.jobs.all[-1]
    assert job.state == "failed"
    assert "cannot be made" in job.message


def test_too_many_jobs_are_refused_and_a_stop_ends_those_that_run() -> None:
    jobs, going = Jobs(lambda: None), threading.Event()

    def endless(progress: Any) -> None:
        going.set()
        while True:
            progress(0.5)
            time.sleep(0.001)

    def crowd() -> None:
        for _ in range(100):
            jobs.start("save", "for ever", endless)

    with pytest.raises(PoiseError, match="too much to do"):
        crowd()
    going.wait(10.0)
    jobs.stop()
    assert not any(thread.is_alive() for thread in jobs._threads)


def test_an_error_of_ours_in_a_job_is_one_line_in_the_page(tmp_path: Path) -> None:
    jobs, done = Jobs(lambda: None), threading.Event()
    jobs.start("save", "x", lambda progress: 1 / 0, failed=lambda text: done.set())
    assert done.wait(10.0)
    assert jobs.all[0].message == "ZeroDivisionError: division by zero"


# ---- the thread


def test_it_goes_on_by_itself_and_can_be_asked(tmp_path: Path) -> None:
    with Session(out=tmp_path) as studio:
        first = studio.newest
        wait_for(studio, lambda s: s.measures.time > 0.1 and s.number > first.number + 2)
        assert studio.ask(Play(False))
        stopped = wait_for(studio, lambda s: not s.playing)
        assert studio.ask(Step(3))
        three = wait_for(studio, lambda s: s.measures.time > stopped.measures.time + 0.04)
        assert three.measures.time == pytest.approx(stopped.measures.time + 3 / 60)
        assert studio.ask(Scrub(0))
        assert wait_for(studio, lambda s: s.frame == 0).measures.time == 0.0
        assert set(studio.curves()) == set(session.Session.curves(studio))
        assert studio.folder.path == tmp_path
        assert "walk" in studio.library.clips_for("humanoid")
    assert studio._thread is not None
    assert not studio._thread.is_alive()


def test_bad_requests_are_dropped_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Session(out=tmp_path, play=False) as studio, caplog.at_level(logging.WARNING):
        bad: list[Any] = [
            SetSpeed(float("nan")), Push("chest", 1e30), "junk", None, object(), 7,
            Drag(0, (float("inf"), 0, 0)), Save(("exe",)), requests.Request(),
        ]  # fmt: skip
        assert not any(studio.ask(one) for one in bad)
        told = wait_for(studio, lambda s: s.message.number >= len(bad))
        assert told.message.level == "error"
        # names are looked up by the session, and near ones are told
        assert studio.ask(Push("chesst"))
        told = wait_for(studio, lambda s: "chesst" in s.message.text)
        assert "did you mean 'chest'" in told.message.text
    assert "SetSpeed.factor is nan" in caplog.text


def test_whatever_goes_wrong_the_thread_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setitem(HANDLERS, Throw, broken)  # type: ignore[misc]
    with Session(out=tmp_path) as studio:
        studio.ask(Throw())
        told = wait_for(studio, lambda s: "a fault of ours" in s.message.text)
        assert not told.playing
        studio.ask(Play())
        wait_for(studio, lambda s: s.playing and s.measures.time > told.measures.time + 0.05)


def test_a_flood_is_dropped_and_a_slider_counts_once(tmp_path: Path) -> None:
    studio = Session(out=tmp_path, play=False)  # not started: nobody takes anything out
    taken = sum(studio.ask(SetSpeed(0.5)) for _ in range(3000))
    assert taken <= session.MAX_QUEUED + 1
    slide = [Drag(1, (0.1 * i, 0.0, 1.0)) for i in range(5)]
    other = [SetGains(9.0, limb="head"), SetGains(5.0), SetGains(6.0), Step(), Step()]
    assert drop_overridden([*slide, *other]) == [slide[-1], other[0], *other[2:]]


def test_slow_readers_do_not_hold_it_up(tmp_path: Path) -> None:
    with Session(out=tmp_path) as studio:
        old = wait_for(studio, lambda s: s.measures.time > 0.02)
        q = old.measures.q.copy()
        readers = [threading.Thread(target=studio.wait, args=(10**9, 1.0)) for _ in range(20)]
        for reader in readers:
            reader.start()
        wait_for(studio, lambda s: s.measures.time > old.measures.time + 0.2)
        # what a reader holds stays as it was
        assert np.array_equal(old.measures.q, q)
        for reader in readers:
            reader.join()


@pytest.mark.arithmetic
def test_it_opens_with_what_it_is_given(tmp_path: Path) -> None:
    dog = load_clip("dog-trot")
    mine = Clip(dog.character, dog.frames[:60], dog.fps, name="my trot")
    studio = Session(clip=mine, out=tmp_path, count=2, root="held")
    controls = studio.newest.controls
    assert (controls.character, controls.clip, controls.count) == ("dog", "my trot", 2)
    assert studio.library.clips[0] == "my trot"
    studio = Studio(tmp_path)
    studio.ask(Step(3))
    recording = studio.simulation.recent().recording()
    studio = Session(out=tmp_path, recording=recording, compare=recording)
    assert studio.newest.mode == "recorded"
    assert studio.newest.beside is not None
    with pytest.raises(PoiseError, match="did you mean 'walk'"):
        Session(clip="wolk", out=tmp_path)
    with pytest.raises(PoiseError, match="did you mean 'spd'"):
        Session(controller="sdp", out=tmp_path)
    with pytest.raises(PoiseError, match="count is 21"):
        Session(count=21, out=tmp_path)


def test_a_lost_simulation_is_told_and_can_be_restarted(tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock, controller="pd")
    studio.ask(SetGains(400.0, 10.0))
    studio.ask(Play())
    for _ in range(60):
        clock.now += 0.05
        studio.advance(1.0)
    snapshot = studio.make_snapshot()
    assert "restart, or go back" in snapshot.diverged
    assert not snapshot.playing
    with pytest.raises(PoiseError, match="restart, or go back"):
        studio.ask(Play())
    studio.ask(Restart())
    snapshot = studio.make_snapshot()
    assert (snapshot.diverged, snapshot.measures.time) == ("", 0.0)
    studio.ask(Play())


def test_the_speed_of_a_session_is_measured() -> None:
    speed = session_speed(2, 0.3)
    assert speed.characters == 2
    assert 0.0 < speed.pace < 1.5
    assert 0.0 < speed.load < 1.5


@pytest.mark.slow
def test_twenty_characters_need_less_than_a_core() -> None:
    speed = session_speed(20, 5.0)
    # by processor time, as other work on the machine does not count
    assert speed.load / speed.pace < 0.8
    assert speed.pace < 1.05
    until(lambda: threading.active_count() < 50)


def test_recordings_are_called_by_their_files(tmp_path: Path) -> None:
    studio = Studio(tmp_path / "show")
    studio.ask(Step(3))
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        studio.simulation.recent().recording().save(tmp_path / folder / "recording.npz")
    files = [tmp_path / folder / "recording.npz" for folder in ("one", "two")]
    session = Session(out=tmp_path, **session_options(*files))
    names = session.newest.name, session.newest.beside_name
    assert names == ("one/recording.npz", "two/recording.npz")
    assert session_options(None, load_recording(files[0]))["names"] == ("first", "second")


def test_a_recording_that_was_given_is_played_to_its_end(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.ask(Step(3))
    studio.show_recording(studio.simulation.recent().recording(), "given")
    studio.ask(Step(100))
    assert (studio.make_snapshot().frame, studio.make_snapshot().frames) == (3, 4)
    studio.ask(Step(-2))
    assert studio.make_snapshot().frame == 1
    studio.ask(Restart())
    assert studio.make_snapshot().frame == 0
    # to do something to it is to go back to the simulation
    studio.ask(Push("chest", 10.0))
    assert studio.make_snapshot().mode == "live"
