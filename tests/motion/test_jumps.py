"""Jumps of clips are found, and named when a controller is first told to follow them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from poise import Clip, UnfollowableTarget
from poise.math import rotation
from poise.motion.clip import find_jumps
from poise.motion.library import builtin_clips

HUMANOID = poise.load_character("humanoid")


def flipped(joint: str = "left_shoulder", angle: float = 3.0, frame: int = 60) -> Clip:
    """A walk of which one joint is turned about its axis for three frames."""
    walk = poise.load_clip("walk")
    frames = walk.frames.copy()
    found = walk.character.joint(joint)
    at = walk.character.q_slice(found)
    turn = rotation.turn(np.array(found.axis), np.array(angle))
    for i in range(frame, frame + 3):
        frames[i, at] = rotation.multiply(frames[i, at], turn)
    return walk.with_frames(frames)


@pytest.mark.parametrize("name", builtin_clips())
def test_our_own_clips_do_not_jump(name: str) -> None:
    assert poise.load_clip(name).jumps == ()


def test_a_twist_that_flips_is_found_there_and_back() -> None:
    clip = flipped()
    assert [jump.joint for jump in clip.jumps] == ["left_shoulder"] * 2
    first, last = (round(jump.time * clip.fps) for jump in clip.jumps)
    assert (first, last) == (59, 62)
    assert clip.jumps[0].speed == pytest.approx(3.0 * clip.fps, rel=0.05)
    assert clip.jumps is clip.jumps  # they are looked for once


def test_a_place_that_jumps_is_found() -> None:
    squat = poise.load_clip("squat")
    frames = squat.frames.copy()
    frames[50:, 0] += 1.0
    (jump,) = find_jumps(squat.with_frames(frames))
    assert jump.travels
    assert jump.joint == squat.character.joints[0].name
    assert jump.speed == pytest.approx(squat.fps, rel=0.05)


def test_what_is_fast_for_a_while_is_no_jump() -> None:
    walk = poise.load_clip("walk").resampled(120.0)
    at = walk.character.q_slice(walk.character.joint("right_elbow"))
    frames = walk.frames.copy()
    # an elbow that stretches by 100 degrees within 60 ms, as in a throw: 45 rad/s at most
    u = np.clip((np.arange(len(frames)) / walk.fps - 1.0) / 0.06, 0.0, 1.0)
    frames[:, at] = (1.75 * (1.0 - u * u * (3.0 - 2.0 * u)))[:, None]
    assert not walk.with_frames(frames).jumps


@pytest.mark.parametrize(
    ("file", "joint"), [("wild/05_05.bvh", "right_hip"), ("cmu_bvh/16_35.bvh", "right_elbow")]
)
def test_raw_takes_jump(data_folder: Path, file: str, joint: str) -> None:
    clip = poise.load_clip(data_folder / file, HUMANOID, prepare=False)
    assert joint in {jump.joint for jump in clip.jumps}


def _follow(world: poise.World, servo: poise.StablePD, clip: Clip) -> None:
    for t in world.until(1.5):
        world.step(servo(world.state, clip.target(t + world.dt)))


def test_a_target_after_a_jump_is_named_once() -> None:
    clip = flipped()
    world = poise.World(HUMANOID, dt=1 / 60)
    world.reset(clip.state(0.0))
    servo = poise.StablePD(HUMANOID, root="soft")
    with pytest.warns(UnfollowableTarget) as told:
        _follow(world, servo, clip)
    assert len(told) == 2
    text = str(told[0].message)
    assert text.startswith(f"clip 'walk', {59 / clip.fps:.4g} s: joint 'left_shoulder' turns by 17")
    assert "no body follows that" in text
    assert "clip.trimmed(" in text
    assert told[0].filename == __file__


def test_targets_before_the_jump_say_nothing_and_rows_do() -> None:
    clip = flipped()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clip.target(0.5).check_followable()
        clip.targets(0.0, 1 / 60, 20).check_followable()
        clip.target(2.0).check_followable()
        poise.Target(clip.frames[60]).check_followable()
    with pytest.warns(UnfollowableTarget):
        clip.targets(0.0, 1 / 60, 90).check_followable()


def test_balance_names_it_as_well() -> None:
    ball = poise.load_character("humanoid-ball")
    squat = poise.load_clip("squat", ball)
    frames = squat.frames.copy()
    frames[30:, 0] += 1.0
    clip = squat.with_frames(frames, contacts=squat.contacts)
    world = poise.World(ball, dt=1 / 120)
    world.reset(clip.state(0.0))
    with pytest.warns(UnfollowableTarget, match=r"travels 0\.99\d m within one frame"):
        poise.Balance(world)(world.state, clip.target(30.5 / clip.fps))
