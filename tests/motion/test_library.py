"""The built-in clips: they are there, they are true, and their keyframes make them again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import poise
from poise import dynamics
from poise.anatomy.feet import positions
from poise.model import configuration
from poise.motion import library
from poise.motion.checks import check

pytestmark = pytest.mark.arithmetic

NAMES = (
    "walk", "run", "cartwheel", "backflip", "sprint-jump-stop",
    "dog-pace", "dog-trot", "dog-canter", "snake-slither",
    "butterflies", "toe-touch", "jab", "squat", "leg-swing", "side-kick", "forward-kick",
    "axe-kick", "leg-circle",
    "tail-biped-dance", "lamp-hop", "two-link-pose", "two-link-wave",
)  # fmt: skip


def test_all_clips_are_there_with_their_keyframes() -> None:
    assert sorted(library.builtin_clips()) == sorted(NAMES)
    assert set(library.sources()) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_poses_are_multiples_of_the_resolution(name: str) -> None:
    """Their last bits would be a third of the package."""
    with np.load(library.builtin_clips()[name]) as archive:
        steps = archive["frames"] / library.RESOLUTION
    np.testing.assert_array_equal(steps, np.round(steps))


@pytest.mark.parametrize("name", NAMES)
def test_a_clip_of_ours_could_be_true(name: str) -> None:
    clip = poise.load_clip(name)
    bad = [str(finding) for finding in check(clip) if finding.good is False]
    assert not bad, bad
    if clip.character.joints[0].kind == "free":
        assert clip.contacts is not None


SINGLE = ("leg-swing", "side-kick", "forward-kick", "axe-kick", "leg-circle", "tail-biped-dance")


@pytest.mark.parametrize("name", SINGLE)
def test_on_one_foot_the_mass_centre_stays_over_it(name: str) -> None:
    clip = poise.load_clip(name)
    contacts = clip.contacts
    assert contacts is not None
    at = positions(clip.character, contacts.points, clip.frames)[..., :2]
    center = dynamics.center_of_mass(clip.character, clip.frames)[:, :2]
    of = np.array([point.foot for point in contacts.points])
    standing = {f: np.asarray(contacts.on[:, of == f].any(axis=1)) for f in set(of)}
    alone = np.flatnonzero(np.sum(list(standing.values()), axis=0) == 1)
    assert len(alone) > 0.3 * clip.fps
    for k in alone:
        foot = next(foot for foot, on in standing.items() if on[k])
        sole = ConvexHull(at[k, of == foot])
        outside = (sole.equations[:, :2] @ center[k] + sole.equations[:, 2]).max()
        assert outside < 0.03, f"{outside:.3f} m beside {foot} at {k / clip.fps:.2f} s"


def test_an_unknown_clip_lists_the_known_ones() -> None:
    with pytest.raises(poise.PoiseError, match="walk"):
        poise.load_clip("wlak")


def test_unknown_keyframes_list_the_known_ones() -> None:
    with pytest.raises(poise.PoiseError, match=r"keyframes: .*walk"):
        library.make("wlak")


def test_a_clip_of_ours_moves_another_character() -> None:
    other = poise.load_character("humanoid-51")
    clip = poise.load_clip("walk", other)
    assert clip.character == other
    assert clip.duration == pytest.approx(poise.load_clip("walk").duration)


def again(name: str) -> float:
    """How far the clip that its keyframes make is from the one that is kept [rad, m]."""
    from poise.motion.authoring.author import author
    from poise.motion.keyframes import load_keyframes

    made, kept = author(load_keyframes(library.sources()[name])), library.builtin_clip(name)
    assert made.frames.shape == kept.frames.shape
    return float(np.abs(configuration.difference(kept.character, made.frames, kept.frames)).max())


def test_keyframes_make_the_clip_again() -> None:
    # another CPU rounds otherwise, and an optimiser carries that on; 5 mm and 0.3 degrees
    assert again("two-link-wave") < 0.005


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name in library.sources()])
def test_all_keyframes_make_their_clips_again(name: str) -> None:
    assert again(name) < 0.005
