"""Profiles on the command line: read, checked, and what they do to a trial."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise import PoiseError
from poise.control.profiles import ProfileSpec, apply_profiles, parse_profile
from poise.trials.trial import prepare_trial


def test_profiles_are_read_as_people_write_them() -> None:
    assert parse_profile("limp:left_arm@1s+0.5s") == ProfileSpec("limp", "left_arm", 1.0, 0.5)
    assert parse_profile("ragdoll @ 2") == ProfileSpec("ragdoll", None, 2.0)
    assert str(parse_profile("loose-arms")) == "loose-arms@0s+1s"


@pytest.mark.parametrize("text", ["", ":left_arm", "limp@soon", "limp@1s+", "limp@-1s"])
def test_profiles_that_cannot_be_read_list_the_names(text: str) -> None:
    with pytest.raises(PoiseError, match="stiff-upper"):
        parse_profile(text)


def test_profiles_of_a_trial_are_checked_with_it() -> None:
    with pytest.raises(PoiseError, match="left_arm"):
        prepare_trial("walk", profiles=(ProfileSpec("limp", "left_arn"),))
    with pytest.raises(PoiseError, match="did you mean 'limp'"):
        prepare_trial("walk", profiles=(ProfileSpec("limb", "left_arm"),))


def test_an_arm_goes_limp_in_a_trial_and_nothing_else_does() -> None:
    limp = (ProfileSpec("limp", "left_arm", 0.0, 1.0),)
    runs = [
        prepare_trial("walk", root="held", ground=False, duration=0.6, profiles=profiles).run()
        for profiles in ((), limp)
    ]
    links = [link.name for link in poise.load_character("humanoid").links]
    ends = [poise.dynamics.forward_kinematics(run.scene, run.q[-1])[0] for run in runs]
    moved = np.linalg.norm(ends[1] - ends[0], axis=-1)
    assert moved[links.index("left_forearm")] > 0.02
    assert moved[links.index("right_foot")] < 0.01


def test_two_profiles_weaken_one_limb_twice() -> None:
    character = poise.load_character("humanoid")
    servo = poise.StablePD(character)
    both = [ProfileSpec("weak", "left_arm"), ProfileSpec("weak", "arms")]
    state = poise.State(character.rest_q, None, np.array(0.5))
    apply_profiles(servo, character, both)(state, poise.Target(character.rest_q))
    index = character.forest.link_names.index("left_forearm")
    assert servo.strength is not None
    assert servo.strength[index] == pytest.approx(1 / 9)
