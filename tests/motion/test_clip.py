"""Clips: one spline whose position, velocity and acceleration agree."""

from __future__ import annotations

import numpy as np
import pytest
from free_world import World
from trees import random_character, random_state

from poise import StablePD, load_character, run
from poise.errors import ClipError, PoiseError
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.reference import difference, move

HUMANOID = load_character("humanoid")


def wandering(character: Character, seed: int, k: int = 40, step: float = 0.1) -> Clip:
    """A smooth random walk of all joints."""
    rng = np.random.default_rng(seed)
    q, v = [np.asarray(random_state(rng, character)[0])], np.zeros(character.nv)
    for _ in range(k - 1):
        v = 0.8 * v + step * rng.normal(size=character.nv)
        q.append(np.asarray(move(character, q[-1], v, 1.0)))
    return Clip(character, np.array(q), 30.0)


@pytest.mark.parametrize("seed", range(6))
def test_velocity_is_the_derivative_of_position(seed: int) -> None:
    character = random_character(np.random.default_rng(seed), 6)
    clip = wandering(character, seed)
    times, h = np.linspace(0.05, clip.duration - 0.05, 30), 1e-5
    ends = [(clip.q(t - h), clip.q(t + h)) for t in times]
    numeric = np.array([difference(character, b, a) for a, b in ends]) / (2 * h)
    # central differences of h = 1e-5 leave about h² times the third derivative, and 1e-11 / h
    assert np.abs(numeric - clip.v(times)).max() < 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_acceleration_is_the_derivative_of_velocity(seed: int) -> None:
    clip = wandering(random_character(np.random.default_rng(seed), 6), seed)
    times, h = np.linspace(0.05, clip.duration - 0.05, 31)[:-1], 1e-6
    numeric = (clip.v(times + h) - clip.v(times - h)) / (2 * h)
    assert np.abs(numeric - clip.a(times)).max() < 1e-5 * np.abs(clip.a(times)).max()


def test_frames_are_met_exactly() -> None:
    clip = wandering(HUMANOID, 1)
    times = np.arange(len(clip)) / clip.fps
    assert np.abs(clip.q(times) - clip.frames).max() < 1e-13


def test_signs_of_quaternions_are_aligned_in_time() -> None:
    clip = wandering(HUMANOID, 2)
    frames = clip.frames.copy()
    frames[::2, 3:7] *= -1.0
    again = Clip(HUMANOID, frames, 30.0)
    flipped = np.sign(np.sum(again.frames[0, 3:7] * clip.frames[0, 3:7]))
    assert np.allclose(flipped * again.frames[:, 3:7], clip.frames[:, 3:7], atol=1e-15)


def test_outside_the_pose_is_held_at_rest() -> None:
    clip = wandering(HUMANOID, 3)
    assert np.allclose(clip.q(-1.0), clip.frames[0], atol=1e-14)
    assert np.allclose(clip.q(99.0), clip.frames[-1], atol=1e-13)
    assert not clip.v(99.0).any()
    assert not clip.a(-1.0).any()


def test_rows_of_targets_are_the_targets_one_by_one() -> None:
    clip = wandering(HUMANOID, 4)
    rows = clip.targets(0.1, 1 / 60, 5)
    one = clip.target(0.1 + 3 / 60)
    assert rows.rows == 5
    assert np.allclose(rows.q[3], one.q, atol=1e-14)
    assert rows.v is not None
    assert one.v is not None
    assert np.allclose(rows.v[3], one.v, atol=1e-12)


def test_a_held_humanoid_follows_a_clip() -> None:
    clip = wandering(HUMANOID, 5, step=0.01)
    world = World(HUMANOID, dt=1 / 240)
    world.reset(clip.state(0.0))
    run(world, StablePD(HUMANOID, root="held"), clip, clip.duration)
    gap = difference(HUMANOID, world.state.q, clip.q(clip.duration))
    assert np.abs(np.asarray(gap)[6:]).max() < 0.05


def test_a_clip_of_one_frame_stands_still() -> None:
    clip = Clip(HUMANOID, HUMANOID.rest_q[None], 30.0)
    assert clip.duration == 0.0
    assert np.allclose(clip.q(0.3), HUMANOID.rest_q)
    assert not clip.v(0.0).any()


@pytest.mark.parametrize(
    ("q", "fps", "words"),
    [
        (np.zeros((3, 2)), 30.0, "expected"),
        (np.full((3, HUMANOID.nq), np.nan), 30.0, "frame 0"),
        (np.zeros((3, HUMANOID.nq)), 30.0, "length 0"),
        (np.tile(HUMANOID.rest_q, (3, 1)), 0.0, "fps"),
        (np.tile(HUMANOID.rest_q, (3, 1)), np.inf, "fps"),
        (np.zeros((0, HUMANOID.nq)), 30.0, "expected"),
    ],
)
def test_bad_frames_are_refused_by_name(q: np.ndarray, fps: float, words: str) -> None:
    with pytest.raises(PoiseError, match=words):
        Clip(HUMANOID, q, fps)


def test_a_clip_needs_a_character() -> None:
    with pytest.raises(ClipError, match="Character"):
        Clip("humanoid", np.zeros((1, 1)), 30.0)  # type: ignore[arg-type]
