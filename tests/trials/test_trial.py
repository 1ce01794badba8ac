"""Trials: pushes as people write them, controllers by name, clips made ready, what comes of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise import PoiseError, measure
from poise.anatomy.body import heading
from poise.control.registry import CONTROLLERS, make_controller
from poise.simulation.pushes import Push, parse_push
from poise.trials.trial import Trial, overlapping_links, prepare_trial

# ---- pushes


@pytest.mark.parametrize(
    ("text", "push"),
    [
        ("chest:200N:left@1.0s", Push("chest", 200.0, "left", 1.0)),
        ("head:220N:left@1s+0.1s", Push("head", 220.0, "left", 1.0, 0.1)),
        ("chest:200@1", Push("chest", 200.0, "forward", 1.0)),
        ("chest:1.5kN:up@500ms+50ms", Push("chest", 1500.0, "up", 0.5, 0.05)),
        ("chest:2e2N:0,-1,.5@0+1e-1", Push("chest", 200.0, (0.0, -1.0, 0.5), 0.0, 0.1)),
        ("mixamorig:Hips:50N@2", Push("mixamorig:Hips", 50.0, "forward", 2.0)),
        ("mixamorig:Hips:50 N:back@2 s", Push("mixamorig:Hips", 50.0, "back", 2.0)),
        ("a@b:50N@2", Push("a@b", 50.0, "forward", 2.0)),
    ],
)
def test_a_push_is_read_as_it_is_written(text: str, push: Push) -> None:
    assert parse_push(text) == push
    assert parse_push(str(push)) == push


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chest:200N:left", "its time is missing"),
        ("chest:200N:left@soon", "'soon' is no time"),
        ("chest:200N@-1", "'-1' is no time"),
        ("chest@1s", "its force is missing"),
        ("chest:-200N@1s", "must be a positive number [N]"),
        ("chest:hard:left@1s", "its force is missing"),
        ("chest:200N:lft@1s", "did you mean 'left'"),
        ("chest:200N:0,0,0@1s", "of some length"),
        ("chest:200N:1,0@1s", "unknown direction"),
        ("chest:0N@1s", "force of a push is 0.0"),
        ("chest:200N@1s+0s", "duration of a push is 0.0"),
        ("chest:1e99N@1s", "must be below"),
        ("chest:1e999N@1s", "force of a push is inf"),
        ("", "its time is missing"),
    ],
)
def test_a_wrong_push_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(PoiseError, match=r"^push ") as raised:
        parse_push(text)
    assert words in str(raised.value)


def test_directions_are_those_of_the_character() -> None:
    ways = ("forward", "back", "left", "right", "up", "down")
    along = np.array([Push("a", 2.0, way).force_vector() for way in ways])
    expected = [[2, 0, 0], [-2, 0, 0], [0, 2, 0], [0, -2, 0], [0, 0, 2], [0, 0, -2]]
    assert np.array_equal(along, expected)
    # who looks along +y has -x to the left
    turned = Push("a", 2.0, "left").force_vector(math.pi / 2)
    np.testing.assert_allclose(turned, [-2.0, 0.0, 0.0], atol=1e-15)


def test_a_vector_is_of_the_world_and_only_says_where_to() -> None:
    push = Push("a", 10.0, (0.0, 3.0, 4.0))
    np.testing.assert_allclose(push.force_vector(1.0), [0.0, 6.0, 8.0])
    left = Push("a", 10.0, "left")
    np.testing.assert_allclose(left.in_world(0.4).force_vector(2.0), left.force_vector(0.4))


def test_a_heading_is_where_the_clip_looks() -> None:
    clip = poise.load_clip("walk")
    character, turned = clip.character, clip.turned(2.0)
    ahead = heading(character, clip.q(1.0))
    assert abs(ahead) < 0.2
    assert heading(character, turned.q(1.0)) == pytest.approx(2.0 + ahead)
    wave = poise.load_clip("two-link-wave")
    assert heading(wave.character, wave.q(1.0)) == 0.0


# ---- controllers by name


@pytest.mark.parametrize(("name", "kind"), [("spd", poise.StablePD), ("pd", poise.PD)])
def test_a_controller_is_made_by_its_name(
    name: str, kind: type[poise.StablePD] | type[poise.PD]
) -> None:
    world = poise.World(poise.load_character("two-link"), dt=1e-3)
    made = make_controller(name, world, frequency=3.0, damping=0.5)
    assert isinstance(made, kind)
    expected = poise.suggest_gains(world, 3.0, 0.5)
    assert np.array_equal(made.gains.kp, expected.kp)
    assert np.array_equal(made.gains.kd, expected.kd)
    assert CONTROLLERS[name].summary


def test_a_wrong_controller_lists_the_near_ones() -> None:
    with pytest.raises(PoiseError, match=r"unknown controller 'sdp'; did you mean 'spd'"):
        make_controller("sdp", poise.load_character("two-link"))


# ---- a trial is checked before it runs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"controller": "pid"}, "unknown controller 'pid'; did you mean 'pd'"),
        ({"root": "sott"}, "unknown root 'sott'; did you mean 'soft'"),
        ({"dt": 0.0}, "dt is 0.0"),
        ({"dt": 1e-9}, "it must be 1e-06 s or more"),
        ({"duration": -1.0}, "duration is -1.0"),
        ({"duration": 1e6}, "3600 s or less"),
        ({"frequency": 0.0}, "frequency is 0.0"),
        ({"damping": -1.0}, "damping is -1.0"),
        ({"pushes": (Push("uper", 1.0),)}, "unknown link 'uper'; did you mean 'upper'"),
        ({"pushes": (Push("upper", 1.0, at=9.0),)}, "comes after the end at 5 s"),
        ({"pushes": (Push("upper", 1.0),) * 9}, "9 pushes"),
    ],
)
def test_a_wrong_trial_says_what_is_wrong(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PoiseError) as raised:
        prepare_trial("two-link-wave", **options)
    assert words in str(raised.value)


def test_a_character_without_joints_is_refused() -> None:
    stone = poise.Character("stone", (poise.Link("stone", mass=1.0),))
    with pytest.raises(PoiseError, match="no joint that moves"):
        Trial(poise.Clip(stone, np.zeros((2, 0)), 1.0))


# ---- what comes of it


def rotation(recording: poise.Recording) -> measure.Summary:
    return recording.metrics()["rotation"]


def test_a_walk_is_followed() -> None:
    told: list[float] = []
    trial = prepare_trial("walk")
    recording = trial.run(progress=told.append)
    assert rotation(recording).p95 < 1.0
    assert recording.metrics()["world"].max < 0.02
    assert len(recording) == round(60 * trial.time) + 1
    assert told == sorted(told)
    assert told[-1] == 1.0


def aside(root: str) -> np.ndarray:
    """How far to the left of the clip the pelvis is, pushed there after half a second [m]."""
    trial = prepare_trial("walk", root=root, pushes=[parse_push("chest:300N:left@0.5s+0.2s")])
    recording = trial.run()
    return np.asarray(recording.q[:, 1] - trial.clip.q(recording.time)[:, 1])


def test_a_soft_root_gives_way_and_comes_back_and_a_held_one_hardly_moves() -> None:
    soft, held = aside("soft"), aside("held")
    assert np.abs(soft[:31]).max() < 5e-3  # until then nothing pushes
    assert 0.04 < soft.max() < 0.2
    assert np.abs(soft[-30:]).max() < 0.25 * soft.max()
    assert held.max() < 0.2 * soft.max()


def test_a_free_root_falls() -> None:
    recording = prepare_trial("walk", root="free", duration=3.0).run()
    assert measure.fallen(recording.scene, recording.q[-1], recording.contacts(-1))


def test_without_ground_nothing_carries() -> None:
    trial = prepare_trial("squat", root="free", ground=False, duration=0.5)
    recording = trial.run()
    # free fall of the center of mass
    z = measure.center_of_mass(trial.character, recording.q)[:, 2]
    assert z[-1] - z[0] == pytest.approx(-0.5 * 9.81 * 0.5**2, rel=0.1)


def test_what_hangs_on_the_world_has_no_ground_unless_asked() -> None:
    assert not prepare_trial("two-link-wave").ground
    assert prepare_trial("two-link-wave", ground=True).ground
    assert prepare_trial("walk").ground


def test_the_last_pose_is_held_after_the_clip() -> None:
    trial = prepare_trial("two-link-wave", duration=6.0)
    recording = trial.run()
    assert recording.time[-1] == pytest.approx(6.0)
    target = recording.target(-1)
    assert target is not None
    np.testing.assert_allclose(target.q, trial.clip.frames[-1], atol=1e-12)


def test_explicit_pd_needs_small_steps() -> None:
    with pytest.raises(poise.Diverged):
        prepare_trial("walk", controller="pd", duration=1.0).run()
    fine = prepare_trial("two-link-wave", controller="pd", dt=1e-3, duration=0.5)
    assert rotation(fine.run()).max < 2.0


# ---- clips made ready


def test_links_that_overlap_in_the_clip_do_not_collide() -> None:
    trial = prepare_trial("squat")
    deep = overlapping_links(trial.clip)
    assert deep[("spine", "left_thigh")] > 0.01
    assert set(trial.world["exclude"]) == set(deep)
    assert "do not collide" in " ".join(trial.notes)
    # where they did, the spine could not follow
    free, blocked = (one.run() for one in (trial, Trial(trial.clip, duration=trial.clip.duration)))
    assert rotation(free).max < 1.0
    assert rotation(blocked).max > 5.0
    assert not overlapping_links(poise.load_clip("walk"))


def test_a_clip_beyond_the_limits_of_joints_is_told() -> None:
    clip = poise.load_clip("walk")
    knee = clip.character.joints[[j.name for j in clip.character.joints].index("left_knee")]
    assert knee.limits is not None
    frames = clip.frames.copy()
    frames[:, clip.character.q_slice(knee)] = knee.limits[1] + math.radians(10.0)
    told = [
        n
        for n in prepare_trial(clip.with_frames(frames, contacts=clip.contacts)).notes
        if "limits" in n
    ]
    assert told == ["beyond the limits of joints, which hold: left_knee by 10 deg"]
    assert not prepare_trial("walk").notes


def raw_take(tmp_path: Path, *, lift: float = 0.0, pose: bool = False) -> Path:
    """A walk as a file of somebody else: without contacts, off the ground, a pose put in before."""
    clip = poise.load_clip("walk").moved((0.0, 0.0, lift))
    frames = clip.frames.copy()
    if pose:
        rest = clip.character.rest_q
        rest[:2] = frames[0, :2] - 0.5
        frames = np.concatenate([rest[None], frames])
    path = tmp_path / "take.bvh"
    clip.with_frames(frames).save(path)
    return path


def test_a_file_is_followed_by_a_character_of_its_own_skeleton(tmp_path: Path) -> None:
    trial = prepare_trial(raw_take(tmp_path))
    assert trial.character == poise.load_clip(tmp_path / "take.bvh").character
    assert trial.clip.contacts is not None
    assert any("smoothed at" in note for note in trial.notes)
    assert rotation(trial.run()).p95 < 3.0


def test_raw_motion_is_put_onto_the_ground(tmp_path: Path) -> None:
    trial = prepare_trial(raw_take(tmp_path, lift=0.3))
    assert any("lowered by 0.27" in note for note in trial.notes)
    up = prepare_trial(tmp_path / "take.bvh", ground=False)
    # the soles that were made from the skeleton are not those of the humanoid
    assert up.clip.frames[0, 2] - trial.clip.frames[0, 2] == pytest.approx(0.3, abs=0.04)


def test_a_pose_that_was_put_in_is_left_out(tmp_path: Path) -> None:
    trial = prepare_trial(raw_take(tmp_path, pose=True))
    assert trial.notes[1] == "left out the first 0.0167 s: a pose that was put in"
    assert trial.time == pytest.approx(poise.load_clip("walk").duration)


def test_raw_motion_on_another_character_is_made_ready_as_well(tmp_path: Path) -> None:
    trial = prepare_trial(raw_take(tmp_path, pose=True), "humanoid-51")
    assert trial.notes[1].startswith("left out the first 0.0167 s")
    assert any(note.startswith("smoothed at") for note in trial.notes)
    assert trial.clip.notes == trial.notes[: len(trial.clip.notes)]
    ours = prepare_trial("walk", "humanoid-51")
    assert not any(note.startswith(("left out", "smoothed")) for note in ours.notes)


def test_smoothing_is_as_one_likes(tmp_path: Path) -> None:
    path = raw_take(tmp_path)
    found = {
        cutoff: prepare_trial(path, cutoff=cutoff).clip.frames for cutoff in (None, "auto", "0")
    }
    assert np.array_equal(found[None], found["auto"])
    assert np.abs(found["0"] - found["auto"]).max() > 1e-6
    assert not prepare_trial("walk").notes
    assert "smoothed at 5 Hz" in prepare_trial("walk", cutoff=5.0).notes[0]
    with pytest.raises(PoiseError, match="it must be auto, 0 or a number of Hz"):
        prepare_trial("walk", cutoff="much")


def test_a_clip_too_short_to_smooth_is_taken_as_it_is(tmp_path: Path) -> None:
    clip = poise.load_clip("walk")
    clip.with_frames(clip.frames[:3]).save(tmp_path / "short.bvh")
    assert "not smoothed: it is too short" in prepare_trial(tmp_path / "short.bvh").notes
    with pytest.raises(PoiseError, match="needs more than"):
        prepare_trial(tmp_path / "short.bvh", cutoff="auto")


@pytest.mark.arithmetic
def test_a_clip_goes_onto_the_character_that_is_named() -> None:
    told: list[float] = []
    trial = prepare_trial("walk", "humanoid-51", progress=told.append)
    assert trial.character == poise.load_character("humanoid-51")
    assert told
    same = prepare_trial(poise.load_clip("walk"), poise.load_character("humanoid"))
    assert same.clip is poise.load_clip("walk")


def test_wrong_names_list_the_near_ones(tmp_path: Path) -> None:
    raw_take(tmp_path)
    with pytest.raises(PoiseError, match="did you mean 'walk'"):
        prepare_trial("wolk")
    with pytest.raises(PoiseError, match=r"No such file .*did you mean 'take\.bvh'"):
        prepare_trial(tmp_path / "tale.bvh")
    with pytest.raises(PoiseError, match="did you mean 'humanoid'"):
        prepare_trial("walk", "humanoit")
    with pytest.raises(PoiseError, match="No such file"):
        prepare_trial(tmp_path / "something-else.npz")
