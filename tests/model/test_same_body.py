"""The same body, to rounding: what counts, what does not, and what it decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.characters import as_builtin, builtin_names, load_character
from poise.errors import CharacterError, ClipError
from poise.model.character import Character, Joint, Link, Shape
from poise.motion.clip import Clip
from poise.motion.preprocess import load_preprocessed
from poise.motion.retargeting.retarget import on_rig
from poise.studio.library import Library
from poise.trials.results import motion_of
from poise.trials.trial import prepare_trial

HUMANOID = load_character("humanoid")
WALK = poise.load_clip("walk")


def shaken(character: Character, by: float, seed: int = 0) -> Character:
    """The same character, each number off by up to `by`, relatively."""
    rng = np.random.default_rng(seed)

    def off(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(off, x))
        return x * (1.0 + by * rng.uniform(-1.0, 1.0)) if isinstance(x, float) else x

    def inertia(rows: Any) -> Any:
        x = np.array(off(rows))
        return (x + x.T) / 2.0

    links = [
        replace(
            link,
            pos=off(link.pos),
            com=off(link.com),
            mass=off(link.mass),
            inertia=inertia(link.inertia),
            joints=tuple(replace(j, pos=off(j.pos), axis=off(j.axis)) for j in link.joints),
            shapes=tuple(
                replace(s, size=off(s.size), pos=off(s.pos), vertices=off(s.vertices))
                for s in link.shapes
            ),
        )
        for link in character.links
    ]
    return replace(character, links=tuple(links))


def changed(name: str, **values: Any) -> Character:
    """The humanoid with other values in one link."""
    links = (replace(x, **values) if x.name == name else x for x in HUMANOID.links)
    return replace(HUMANOID, links=tuple(links))


@pytest.mark.parametrize("name", builtin_names())
def test_rounding_leaves_the_body_and_a_millionth_does_not(name: str) -> None:
    character = load_character(name)
    near, far = shaken(character, 1e-13), shaken(character, 1e-6)
    assert near != character
    assert near.same_body(character)
    assert character.differences(near) == []
    assert not far.same_body(character)
    assert not far.same_body(character, kinematics=True)


SHIN = HUMANOID.link("left_shin")
KNEE = SHIN.joints[0]


@pytest.mark.parametrize(
    ("values", "moves", "line"),
    [
        ({"mass": 3.1}, False, "link 'left_shin': mass 2.79 against 3.1 kg"),
        ({"com": (0.0, 0.0, -0.2)}, False, "'left_shin': com (-0.003907, 0, -0.1712) against (0, "),
        ({"inertia": (1, 1, 1)}, False, "link 'left_shin': inertia[8] 0.002934 against 1 kg m^2"),
        ({"shapes": ()}, False, "link 'left_shin': shapes capsule, capsule against none"),
        ({"pos": (0.0, 0.0, -0.5)}, True, "link 'left_shin': pos (0, 0, -0.407) against (0, 0, -0"),
        ({"quat": (0, 1, 0, 0)}, True, "link 'left_shin': quat (1, 0, 0, 0) against (0, 1, 0, 0)"),
        ({"parent": "pelvis"}, True, "link 'left_shin': parent 'left_thigh' against 'pelvis'"),
        ({"joints": ()}, True, "link 'left_shin': joints left_knee (hinge) against none"),
        (
            {"joints": (replace(KNEE, limits=None),)},
            False,
            "joint 'left_knee': limits (-0.05, 2.6) against none",
        ),
        (
            {"joints": (replace(KNEE, stiffness=1e-3),)},
            False,
            "joint 'left_knee': stiffness 0 against 0.001 N m/rad",
        ),
        (
            {"joints": (replace(KNEE, axis=(0.0, -1.0, 0.0)),)},
            True,
            "joint 'left_knee': axis (0, 1, 0) against (0, -1, 0)",
        ),
    ],
)
def test_what_differs_is_named(values: dict[str, Any], moves: bool, line: str) -> None:
    other = changed("left_shin", **values)
    assert any(line in found for found in HUMANOID.differences(other)), HUMANOID.differences(other)
    assert not HUMANOID.same_body(other)
    assert HUMANOID.same_body(other, kinematics=True) is not moves


def test_links_that_only_one_has_are_named_first() -> None:
    dog = load_character("dog")
    assert HUMANOID.differences(dog)[0].endswith("of 'humanoid' is missing in 'dog'")
    fewer = replace(HUMANOID, links=HUMANOID.links[:-1], limbs={})
    (found,) = fewer.differences(HUMANOID)
    assert found == f"link {HUMANOID.links[-1].name!r} of 'humanoid' is missing in the other"


def test_names_limbs_and_colours_of_a_character_are_not_its_body() -> None:
    painted = [replace(shape, color=(1.0, 0.0, 0.0)) for shape in SHIN.shapes]
    other = replace(changed("left_shin", shapes=tuple(painted)), name="hero", limbs={})
    assert other != HUMANOID
    assert HUMANOID.same_body(other)
    assert HUMANOID.same_body(HUMANOID)


def test_where_a_free_root_rests_and_the_axis_of_a_ball_do_not_move_links() -> None:
    root, chest = HUMANOID.link("pelvis"), HUMANOID.link("chest")
    raised = changed("pelvis", pos=(0.0, 0.0, 2.0))
    turned = changed("chest", joints=(replace(chest.joints[0], axis=(1.0, 0.0, 0.0)),))
    for other in (raised, turned):
        assert not HUMANOID.same_body(other)
        assert HUMANOID.same_body(other, kinematics=True)
    negative = changed("pelvis", quat=tuple(-x for x in root.quat))
    assert HUMANOID.same_body(negative)


def test_links_in_another_order_are_another_body() -> None:
    def tree(*names: str) -> Character:
        root = Link("root", joints=(Joint("free", "free"),), mass=1.0, inertia=(1.0, 1.0, 1.0))
        arms = [
            Link.from_shapes(x, "root", [Shape("sphere", (0.1,))], joints=[Joint(x, "hinge")])
            for x in names
        ]
        return Character("tree", (root, *arms))

    (found,) = tree("a", "b").differences(tree("b", "a"))
    assert found == "links are in another order: 'a' against 'b'"


def test_a_small_body_is_compared_by_its_own_size() -> None:
    def grain(size: float) -> Character:
        link = Link.from_shapes(
            "grain", None, [Shape("sphere", (size,))], joints=[Joint("free", "free")]
        )
        return Character("grain", (link,))

    assert grain(1e-6).same_body(grain(1e-6 * (1.0 + 1e-12)))
    assert not grain(1e-6).same_body(grain(1e-6 * (1.0 + 1e-6)))


def test_a_body_is_compared_with_a_character_only() -> None:
    wrong: Any = "humanoid"
    with pytest.raises(CharacterError, match="with that of a Character, got 'humanoid'"):
        HUMANOID.same_body(wrong)


# what it decides

FOREIGN = shaken(HUMANOID, 1e-13)
"""The humanoid as another CPU may have computed it."""


def on(character: Character) -> Clip:
    return Clip(character, WALK.frames, WALK.fps, name="walk", contacts=WALK.contacts)


@pytest.mark.parametrize("ending", ["npz", "glb"])
def test_a_file_of_another_cpu_moves_the_built_in_character(ending: str, tmp_path: Path) -> None:
    on(FOREIGN).save(tmp_path / f"walk.{ending}")
    assert poise.load_clip(tmp_path / f"walk.{ending}").character is HUMANOID
    again = poise.load_clip(tmp_path / f"walk.{ending}", HUMANOID, prepare=False)
    assert again.character is HUMANOID
    np.testing.assert_allclose(again.frames, WALK.frames, atol=1e-6)  # glb has single precision


def test_a_recording_of_another_cpu_is_of_the_built_in_character(tmp_path: Path) -> None:
    world = poise.World(FOREIGN, dt=1 / 60)
    recording = poise.Recording(world)
    recording.append()
    recording.save(tmp_path / "a.npz")
    loaded = poise.load_recording(tmp_path / "a.npz")
    assert loaded.scene.characters[0] is HUMANOID
    assert loaded.clip().character is HUMANOID
    rigged = Clip(HUMANOID, WALK.frames, WALK.fps, source=poise.load_clip("run").source)
    assert motion_of(recording, rigged).character is FOREIGN


def test_a_character_that_only_resembles_a_built_in_one_stays_what_it_is() -> None:
    painted = changed("left_shin", shapes=tuple(replace(s, color=None) for s in SHIN.shapes))
    for other in (painted, replace(HUMANOID, limbs={}), changed("left_shin", mass=3.1)):
        assert as_builtin(other) is other
    assert as_builtin(replace(FOREIGN, name="hero")).name == "hero"
    assert as_builtin(FOREIGN) is HUMANOID


def test_a_clip_of_the_same_body_is_not_retargeted() -> None:
    foreign = on(FOREIGN)
    made = prepare_trial(foreign, HUMANOID).clip
    assert made.character is HUMANOID
    assert np.array_equal(made.frames, prepare_trial(WALK, HUMANOID).clip.frames)
    assert poise.load_clip("walk", FOREIGN).character is FOREIGN
    assert np.array_equal(poise.load_clip("walk", FOREIGN).frames, WALK.frames)
    raw = foreign.replace(contacts=None)
    assert load_preprocessed(raw, HUMANOID, repair_feet=True).character is HUMANOID
    assert np.array_equal(on_rig(foreign, WALK).frames, WALK.frames)


def test_clips_of_one_body_are_blended_and_of_two_refused_with_what_differs() -> None:
    assert WALK.blended(on(FOREIGN)).character is HUMANOID
    heavy = on(changed("left_shin", mass=3.1))
    with pytest.raises(ClipError, match=r"mass 2.79 against 3.1 kg\); retarget it first"):
        WALK.blended(heavy)


def test_the_studio_lists_a_character_once_whatever_cpu_computed_it() -> None:
    library = Library()
    assert library.add_character(shaken(load_character("dog"), 1e-13)) == "dog"
    own = replace(HUMANOID, name="hero")
    assert library.add_character(own) == library.add_character(shaken(own, 1e-13)) == "hero"
    assert library.add_character(changed("left_shin", mass=3.1)) == "humanoid-2"
    assert "dog-2" not in library.characters


def test_notes_of_a_clip_are_kept_in_its_file_and_by_edits(tmp_path: Path) -> None:
    clip = Clip(HUMANOID, WALK.frames, WALK.fps, notes=("resampled from 9 to 10 frames",))
    clip.save(tmp_path / "a.npz")
    assert poise.load_clip(tmp_path / "a.npz").notes == clip.notes
    short = clip.trimmed(0.1, 0.3)
    assert short.notes == short.retargeted(load_character("humanoid-51")).notes == clip.notes
    assert on_rig(clip, WALK).notes == clip.notes
    assert WALK.notes == ()
