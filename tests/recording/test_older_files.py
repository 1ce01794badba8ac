"""Files that an earlier version wrote: they open, and hold what they held."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.motion.keyframes.file import load_keyframes

FILES = Path(__file__).parents[1] / "support/older_files"
EXPECTED = np.load(FILES / "expected.npz")


@pytest.mark.parametrize("name", ["mixed", "balanced"])
def test_recordings_open_and_go_on(name: str) -> None:
    recording = poise.load_recording(FILES / f"{name}.npz")
    last = len(recording) - 1
    balls = recording.projectile_state(last)
    found: dict[str, Any] = {
        "q": recording.q,
        "v": recording.v,
        "torque": recording.torque,
        "memory": recording.state(last).memory,
        "force": recording.contacts(last).force,
        "thrown": np.concatenate([balls.poses, balls.v], axis=-1),
        "target": recording.target(last).q,  # type: ignore[union-attr]
    }
    for key, array in found.items():
        if array is not None:
            expected = EXPECTED[f"{name} {key}"]
            np.testing.assert_allclose(array, expected, rtol=1e-12, atol=1e-9, err_msg=key)
    world = recording.world(last)
    np.testing.assert_array_equal(world.state.q, recording.q[last])
    world.step()
    assert not world.diverged
    assert 0.0 < np.abs(world.state.q - recording.q[last]).max() < 0.1


def test_a_world_resumes_with_its_iterations_and_tolerance(tmp_path: Path) -> None:
    arm = poise.load_character("two-link")
    world = poise.World(arm, dt=1 / 60, iterations=7, tolerance=1e-3)
    recording = poise.Recording(world)
    recording.append()
    recording.save(tmp_path / "it.npz")
    resumed = poise.load_recording(tmp_path / "it.npz").world(0)
    for one in (resumed, pickle.loads(pickle.dumps(world))):
        assert (one.iterations, one.tolerance) == (7, 1e-3)
    older = poise.load_recording(FILES / "mixed.npz").world(0)
    assert (older.iterations, older.tolerance) == (poise.World(arm, dt=1 / 60).iterations, None)


@pytest.mark.parametrize("ending", ["npz", "bvh", "glb", "txt"])
def test_clips_open(ending: str) -> None:
    # a text file does not say whose joints it has
    own: Any = {"character": poise.load_clip("squat").character, "prepare": False}
    clip = poise.load_clip(FILES / f"clip.{ending}", **(own if ending == "txt" else {}))
    np.testing.assert_allclose(clip.frames, EXPECTED[f"clip.{ending}"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("ending", ["yaml", "xml"])
def test_characters_open(ending: str) -> None:
    character = poise.load_character(FILES / f"character.{ending}")
    q = poise.World(character, dt=1 / 60, contact=None).state.q
    found = poise.dynamics.mass_matrix(character, q)
    np.testing.assert_allclose(found, EXPECTED[f"character.{ending}"], rtol=0, atol=1e-12)


def test_keyframes_open() -> None:
    assert load_keyframes(FILES / "jab.keys.yaml").character.name == "humanoid-ball"
