"""Assignments to attributes act, or are refused with what would act."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from poise import HeightField, Plane, PoiseError, Recording, Shape, World, load_character, load_clip

HUMANOID = load_character("humanoid")
REFUSED = [
    (load_clip("walk"), "fps", r"clip\.resampled\(fps\)"),
    (load_clip("walk"), "character", r"clip\.retargeted\(character\)"),
    (load_clip("walk"), "frames", r"clip\.with_frames\(frames\)"),
    (load_clip("walk"), "contacts", "contacts=contacts"),
    (load_clip("walk"), "duration", "a clip does not change"),
    (load_clip("walk"), "q", "a clip does not change"),
    (load_clip("walk"), "fsp", "unknown attribute of a Clip 'fsp'; did you mean 'fps'"),
    (Recording(World(HUMANOID, dt=0.01)), "fps", r"Recording\(world, fps=\.\.\.\)"),
    (Recording(World(HUMANOID, dt=0.01)), "interval", r"Recording\(world, fps=\.\.\.\)"),
    (Recording(World(HUMANOID, dt=0.01)), "settings", "those of the recorded world"),
    (Recording(World(HUMANOID, dt=0.01)), "q", "a recording is read-only"),
    (Recording(World(HUMANOID, dt=0.01)), "nam", "unknown attribute of a Recording 'nam'"),
    (Plane(), "height", r"another Plane\(normal, height\)"),
    (Plane(), "normal", r"another Plane\(normal, height\)"),
    (Plane(), "hight", "did you mean 'height'"),
    (HeightField(np.zeros((2, 2)), 1.0), "heights", "another HeightField"),
    (HeightField(np.zeros((2, 2)), 1.0), "spacing", "another HeightField"),
    (HUMANOID, "name", r"replace\(character, name="),
    (HUMANOID.links[0], "mass", r"replace\(link, mass="),
    (HUMANOID.joints[1], "damping", r"replace\(joint, damping="),
    (Shape("sphere", (1.0,)), "size", r"replace\(shape, size="),
]


@pytest.mark.parametrize(
    ("thing", "name", "remedy"), REFUSED, ids=[f"{type(x).__name__}.{n}" for x, n, _ in REFUSED]
)
def test_an_assignment_that_would_do_nothing_is_refused(thing: Any, name: str, remedy: str) -> None:
    before = getattr(thing, name, None)
    with pytest.raises(PoiseError, match=remedy) as caught:
        setattr(thing, name, 30)
    assert isinstance(caught.value, AttributeError)
    assert getattr(thing, name, None) is before or name in ("duration", "q", "fps")


def test_a_clip_can_be_renamed_copied_and_pickled() -> None:
    clip = copy.copy(load_clip("walk"))
    clip.name = "stroll"
    for one in (clip, copy.deepcopy(clip), pickle.loads(pickle.dumps(clip))):
        assert one.name == "stroll"
        np.testing.assert_array_equal(one.q(0.5), clip.q(0.5))
        with pytest.raises(PoiseError, match="fps of a Clip"):
            one.fps = 30.0


def test_a_recording_goes_on_after_a_refusal() -> None:
    world = World(HUMANOID, dt=1 / 60)
    recording: Any = Recording(world)
    recording.append()
    with pytest.raises(PoiseError):
        recording.fps = 30
    world.step()
    assert recording.append()
    assert recording.fps == pytest.approx(60)
