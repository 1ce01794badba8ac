"""Raw motion that is loaded onto a character is made ready to be followed."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from poise import Clip, ClipNotice, measure
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of, positions
from poise.math import rotation
from poise.motion import load_clip
from poise.motion.editing.smoothing import remove_spikes
from poise.motion.limits import excesses
from poise.motion.preprocess import (
    CLEAR,
    load_preprocessed,
    preprocess,
    raise_swing_feet,
    reduce_limit_excess,
)
from poise.studio.library import Library
from poise.trials.trial import prepare_trial

HUMANOID = poise.load_character("humanoid")
quiet = pytest.mark.filterwarnings("ignore::poise.errors.ClipNotice")


def take(folder: Path, name: str = "take.bvh", *, pose: bool = True) -> Path:
    """A walk as a file of somebody else: a pose put in before, above the ground."""
    walk = poise.load_clip("walk").moved((0.0, 0.0, 0.1))
    rest = walk.character.rest_q.copy()
    rest[:2] = walk.frames[0, :2] - 0.5
    frames = np.concatenate([rest[None], walk.frames]) if pose else walk.frames
    walk.with_frames(frames).save(folder / name)
    return folder / name


def far(clip: Clip) -> float:
    """How far joints are beyond their limits at most [rad]."""
    return max(float(one.value.max()) for one in excesses(clip.character, clip.frames))


@quiet
def test_a_file_on_a_character_is_prepared_and_says_what_was_done(tmp_path: Path) -> None:
    clip = load_clip(take(tmp_path), HUMANOID)
    as_it_is = load_clip(tmp_path / "take.bvh", HUMANOID, prepare=False)
    assert len(as_it_is) - len(clip) == 1
    assert as_it_is.notes == ()
    words = ("the file's unit", "left out the first", "smoothed at", "lowered by 0.")
    for word in words:
        assert any(note.startswith(word) for note in clip.notes), word
    assert not clip.jumps
    assert as_it_is.jumps


def test_it_is_said_once_for_a_file(tmp_path: Path) -> None:
    path = take(tmp_path)
    with pytest.warns(ClipNotice, match=r"take\.bvh: prepared to be followed.*left out") as told:
        load_clip(path, HUMANOID)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_clip(path, HUMANOID)


def test_a_file_without_a_character_and_our_own_clips_stay_as_they_are(tmp_path: Path) -> None:
    path = take(tmp_path)
    own = load_clip(path)
    assert own.notes == ()
    assert len(own) == len(load_clip("walk")) + 1
    walk = load_clip("walk", poise.load_clip("walk").character)
    assert walk is poise.load_clip("walk")
    walk.save(tmp_path / "walk.npz")
    again = load_clip(tmp_path / "walk.npz", walk.character)
    assert again.notes == ()
    assert np.array_equal(again.frames, walk.frames)


@quiet
def test_a_file_is_prepared_on_its_own_skeleton_where_asked(tmp_path: Path) -> None:
    path = take(tmp_path)
    own = load_clip(path, prepare=True)
    assert own.character == load_clip(path).character
    assert np.array_equal(own.frames, prepare_trial(path).clip.frames)


@quiet
def test_python_command_line_and_studio_load_alike(tmp_path: Path) -> None:
    path = take(tmp_path)
    clip = load_clip(path, HUMANOID)
    trial = prepare_trial(path, HUMANOID)
    assert np.array_equal(clip.frames, trial.clip.frames)
    library = Library()
    name = library.add_clip(path)
    motion = library.motion("humanoid", name)
    assert np.array_equal(motion.clip.frames, clip.frames)
    assert motion.notes == clip.notes == trial.notes[: len(clip.notes)]


def test_command_line_and_studio_do_not_warn(tmp_path: Path) -> None:
    path = take(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepare_trial(path, HUMANOID)
        prepare_trial(path, HUMANOID, prepare=False, controller="balance")
        Library().add_clip(path)


@quiet
def test_a_unit_that_is_given_is_not_said_to_be_guessed(tmp_path: Path) -> None:
    clip = load_clip(take(tmp_path), HUMANOID, unit=0.01)
    assert not any("unit" in note for note in clip.notes)


def test_notes_stay_with_edits() -> None:
    walk = poise.load_clip("walk")
    noted = Clip(walk.character, walk.frames, walk.fps, name="walk", notes=("one",))
    assert noted.trimmed(0.5).notes == ("one",)
    assert preprocess(noted, raw=False, cutoff=6.0).notes[0] == "one"


def spiked(frames: int, angle: float = 2.5) -> Clip:
    """A walk at 120 frames per second with a foot turned for some of them."""
    walk = poise.load_clip("walk").resampled(120.0)
    q = walk.frames.copy()
    at = walk.character.q_slice(walk.character.joint("left_ankle"))
    turn = rotation.turn(np.array([0.0, 1.0, 0.0]), np.array(angle))
    q[100 : 100 + frames, at] = rotation.multiply(q[100 : 100 + frames, at], turn)
    return walk.with_frames(q)


def test_a_spike_is_taken_out_and_the_rest_stays() -> None:
    walk, clip = spiked(0), spiked(6)
    made, joints, lost = remove_spikes(clip)
    assert not lost
    assert list(joints) == ["left_ankle"]
    assert joints["left_ankle"] == pytest.approx(10 / 120)
    error = measure.tracking_error(HUMANOID, made.frames, walk.frames).rotation
    assert error.max() < 6.0
    assert error[:90].max() < 1e-9
    assert error[120:].max() < 1e-9


def test_a_walk_has_no_spikes_and_a_foot_that_stays_turned_is_none() -> None:
    assert remove_spikes(spiked(0)).joints == {}
    turned = spiked(200)
    made = remove_spikes(turned).clip
    np.testing.assert_allclose(made.frames[110:290], turned.frames[110:290], atol=1e-12)


def test_half_of_what_is_beyond_limits_is_taken_back_and_feet_stay() -> None:
    walk = poise.load_clip("walk")
    q = walk.frames.copy()
    at = walk.character.q_slice(walk.character.joint("right_elbow"))
    q[:, at] = 3.2  # 0.6 rad beyond
    clip = walk.with_frames(q, contacts=walk.contacts)
    made, joints = reduce_limit_excess(clip)
    assert list(joints) == ["right_elbow"]
    assert far(made) == pytest.approx(far(clip) / 2.0, rel=0.01)
    assert walk.contacts is not None
    moved = positions(walk.character, walk.contacts.points, made.frames) - positions(
        walk.character, walk.contacts.points, walk.frames
    )
    assert np.abs(moved[walk.contacts.on]).max() < 1e-4
    assert reduce_limit_excess(walk).clip is walk


def test_feet_clear_the_ground_while_they_swing() -> None:
    walk = poise.load_clip("walk")
    points = feet_of(HUMANOID)
    on = np.ones((len(walk), len(points)), dtype=bool)
    left = [point.foot == "left_foot" for point in points]
    on[60:120, left] = False
    # it stands with bent knees, and the left foot swings on the spot
    q = np.repeat(HUMANOID.rest_q[None], len(walk), axis=0)
    for side in ("left", "right"):
        for name, angle in (("hip", 0.3), ("knee", 0.6), ("ankle", 0.3)):
            joint = HUMANOID.joint(f"{side}_{name}")
            turn = rotation.turn(np.array(joint.axis), np.array(angle))
            q[:, HUMANOID.q_slice(joint)] = angle if joint.kind == "hinge" else turn
    low = positions(HUMANOID, points, q)[..., 2].min()
    q[:, 2] -= low
    made, rise = raise_swing_feet(Clip(HUMANOID, q, 60.0, contacts=ContactSchedule(points, on)))
    height = positions(HUMANOID, points, made.frames)[..., 2]
    assert rise == pytest.approx(CLEAR, rel=0.05)
    assert height[75:105, left].min() > 0.7 * CLEAR
    assert np.abs(height[:, ~np.array(left)]).max() < 2e-3
    assert np.abs(height[:40, left]).max() < 2e-3


def test_a_foot_in_the_air_is_turned_no_farther_than_its_ankle(data_folder: Path) -> None:
    source = load_clip(data_folder / "cmu_bvh" / "88_07.bvh").trimmed(1 / 120)
    clip = source.retargeted(HUMANOID)
    assert clip.contacts is not None
    over = {f"{one.joint} {one.what}": one.value for one in excesses(HUMANOID, clip.frames)}
    twist = over["left_ankle upper twist"]
    flying = ~clip.contacts.standing("left_foot")
    # the capture bends it by 100 degrees
    assert np.degrees(twist[flying].mean()) < 5.0


def test_the_cutoff_of_an_option_counts(tmp_path: Path) -> None:
    path = take(tmp_path)
    found = [load_preprocessed(path, HUMANOID, cutoff=cutoff) for cutoff in (0, 4.0, None)]
    assert not any("smoothed" in note for note in found[0].notes)
    assert any("smoothed at 4 Hz" in note for note in found[1].notes)
    assert any("smoothed at" in note for note in found[2].notes)
