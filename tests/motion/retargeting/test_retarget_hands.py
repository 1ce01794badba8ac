"""Hands that stand in the source, as those of a cartwheel, stand in the target."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import retarget_claims as claims
from test_retarget import biped

import poise
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import positions, tip_of
from poise.errors import ClipError
from poise.model.character import Character, Shape
from poise.motion import Clip
from poise.motion.checks import check
from poise.motion.library import builtin_clip
from poise.motion.retargeting.retarget import Retargeted, retarget

HANDS = {
    "humanoid": ("left_forearm", "right_forearm"),
    "humanoid-51": ("left_hand", "right_hand"),
    "humanoid-ball": ("left_forearm", "right_forearm"),
}
on_people = pytest.mark.parametrize("name", HANDS)


@lru_cache
def cartwheel(name: str) -> tuple[Clip, Retargeted]:
    """The cartwheel of the humanoid, and what it is on a character."""
    clip = builtin_clip("cartwheel")
    return clip, retarget(clip, poise.load_character(name))


def standing(clip: Clip, link: str) -> np.ndarray:
    assert clip.contacts is not None
    return clip.contacts.standing(link)


@on_people
def test_hands_stand_when_the_sources_do(name: str) -> None:
    clip, made = cartwheel(name)
    for theirs, ours in zip(HANDS["humanoid"], HANDS[name], strict=True):
        assert (standing(clip, theirs) == standing(made.clip, ours)).all()


@on_people
def test_tips_of_standing_hands_neither_skate_nor_sink_nor_float(name: str) -> None:
    """By the source's times and the tips of the links, not by what the result says of itself."""
    clip, made = cartwheel(name)
    for theirs, ours in zip(HANDS["humanoid"], HANDS[name], strict=True):
        tip = tip_of(made.clip.character, ours)
        at = positions(made.clip.character, tip, made.clip.frames)[standing(clip, theirs)]
        assert np.linalg.norm(at[..., :2] - at[0, :, :2], axis=-1).max() < claims.SKATE
        assert np.abs(at[..., 2]).max() < claims.SINK


@on_people
def test_what_else_retargeting_keeps_is_kept(name: str) -> None:
    clip, made = cartwheel(name)
    claims.limbs_point_alike(clip, made)
    claims.feet_stand(made)
    claims.no_joint_flips(clip, made)
    claims.nothing_in_the_ground(made)
    claims.no_jitter(clip, made)


@on_people
def test_a_cartwheel_never_flies(name: str) -> None:
    found = {finding.claim: finding for finding in check(cartwheel(name)[1].clip)}
    for claim in ("in flight the center of mass falls with g", "standing feet do not move"):
        assert found[claim].good is not False
    assert found["in flight the center of mass falls with g"].where == "it never flies"


def test_there_and_back_hands_stand_as_before() -> None:
    clip, made = cartwheel("humanoid-51")
    back = retarget(made.clip, clip.character)
    claims.feet_stand(back)
    for hand in HANDS["humanoid"]:
        assert (standing(back.clip, hand) == standing(clip, hand)).all()


def with_balls(character: Character) -> Character:
    """The same with a ball at the end of each forearm, as some models have it."""
    links = []
    for link in character.links:
        if link.name in HANDS["humanoid"]:
            link = replace(link, shapes=(Shape("sphere", (0.04,), (0.0, 0.0, -0.36)),))
        links.append(link)
    return replace(character, links=tuple(links))


def test_a_round_hand_stands_on_one_point() -> None:
    clip = builtin_clip("cartwheel")
    made = retarget(clip, with_balls(clip.character))
    claims.feet_stand(made)
    claims.nothing_in_the_ground(made)
    assert made.clip.contacts is not None
    assert len(made.clip.contacts.of("left_forearm")) == 1


def test_a_hand_of_which_a_part_stands_stands_on_one_point() -> None:
    clip = builtin_clip("cartwheel")
    assert clip.contacts is not None
    on = clip.contacts.on.copy()
    on[:, clip.contacts.of("left_forearm")[1:]] = False
    part = Clip(
        clip.character, clip.frames, clip.fps, contacts=ContactSchedule(clip.contacts.points, on)
    )
    made = retarget(part, poise.load_character("humanoid-51"))
    claims.feet_stand(made)
    claims.nothing_in_the_ground(made)
    assert made.clip.contacts is not None
    assert len(made.clip.contacts.of("left_hand")) == 1
    assert len(made.clip.contacts.of("right_hand")) == 4


def test_detected_contacts_are_those_of_feet() -> None:
    clip = builtin_clip("cartwheel")
    assert clip.contacts is not None
    found = replace(clip.contacts, detected=True)
    taken = Clip(clip.character, clip.frames, clip.fps, contacts=found)
    made = taken.retargeted(poise.load_character("humanoid-51"))
    assert made.contacts is not None
    assert made.contacts.feet == ("left_foot", "right_foot")


def test_hands_that_the_target_has_not_are_named() -> None:
    clip = builtin_clip("cartwheel")
    with pytest.warns(UserWarning, match="not kept in place: 'left_forearm', 'right_forearm'"):
        made = clip.retargeted(biped("without forearms"))
    assert made.contacts is not None
    assert made.contacts.feet == ("left_foot", "right_foot")
    with pytest.raises(ClipError, match="'left_forearm', 'right_forearm' of 'humanoid'"):
        retarget(clip, biped("without forearms"), keep_feet=True)
