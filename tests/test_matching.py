"""Which link is which: by names of many makers, by the tree alone, and by a map."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import poise
from poise.character import Character
from poise.errors import ClipError
from poise.motion import Clip, load_clip
from poise.motion.bodies import body_of, role_of
from poise.motion.matching import match
from poise.motion.retarget import retarget


def unnamed(character: Character) -> tuple[Character, dict[str, str]]:
    """The same character with names that say nothing, and the old name of each link."""
    new = {link.name: f"b{i}" for i, link in enumerate(character.links)}
    links = [
        replace(x, name=new[x.name], parent=None if x.parent is None else new[x.parent])
        for x in character.links
    ]
    return Character("unnamed", tuple(links)), {b: a for a, b in new.items()}


# names


@pytest.mark.parametrize(
    ("name", "role", "side"),
    [
        ("mixamorig:LeftUpLeg", "thigh", "left"),
        ("mixamorig:RightToeBase", "toe", "right"),
        ("Character1_LeftForeArm", "forearm", "left"),
        ("lfemur", "thigh", "left"),
        ("rhumerus", "arm", "right"),
        ("FemurR", "thigh", "right"),
        ("HandL", "hand", "left"),
        ("thigh_l", "thigh", "left"),
        ("calf.R", "shank", "right"),
        ("L_Foot", "foot", "left"),
        ("left_hip", "thigh", "left"),
        ("right_elbow", "forearm", "right"),
        ("left_lower_arm", "forearm", "left"),
        ("front_left_scapula", "shoulder", "left"),
        ("front_right_paw", "hand", "right"),
        ("hind_left_metatarsus", "foot", "left"),
        ("hind_left_paw", "toe", "left"),
        ("FL_thigh", "arm", "left"),
        ("tail1", "tail", ""),
        ("Spine2", "trunk", ""),
        ("cube", "", ""),
    ],
)
def test_a_name_tells_role_and_side(name: str, role: str, side: str) -> None:
    assert role_of(name) == (role, side)


@pytest.mark.parametrize("source", ["humanoid", "humanoid-51", "humanoid-ball"])
@pytest.mark.parametrize("target", ["humanoid", "humanoid-51", "humanoid-ball"])
def test_our_people_match_one_another(source: str, target: str) -> None:
    found = match(poise.load_character(source), poise.load_character(target))
    left = [name for name in found.unmatched_target if "hand" not in name]
    assert left == []
    for pair in found.pairs:
        for side in ("left", "right"):
            assert (side in pair.target) == (side in pair.source)


def test_deepmimics_dog_matches_ours(data_folder: Path) -> None:
    theirs = poise.load_character(data_folder / "deepmimic" / "characters" / "dog3d.txt")
    found = match(theirs, poise.load_character("dog"))
    pairs = {pair.target: pair.source for pair in found.pairs}
    assert pairs["front_left_forearm"] == "left_forearm"
    assert pairs["hind_right_metatarsus"] == "right_foot"
    assert pairs["tail_tip"] == "tail1"
    # their shoulder carries the forearm: it is an upper arm, and there is no shoulder blade
    assert found.unmatched_target == ["front_left_scapula", "front_right_scapula"]


@pytest.mark.parametrize("file", ["cmu_bvh/02_01.bvh", "mass/motion/walk.bvh", "mass/human.xml"])
def test_real_skeletons_match_all_of_the_humanoid(data_folder: Path, file: str) -> None:
    path = data_folder / file
    theirs = load_clip(path).character if path.suffix == ".bvh" else poise.load_character(path)
    assert match(theirs, poise.load_character("humanoid-51")).unmatched_target == []


# the tree


@pytest.mark.parametrize("name", ["humanoid", "humanoid-51", "humanoid-ball", "dog"])
def test_without_names_the_tree_tells_the_same(name: str) -> None:
    character = poise.load_character(name)
    bare, old = unnamed(character)
    by_tree = {
        limb: {role: [old[x] for x in links] for role, links in roles.items()}
        for limb, roles in body_of(bare).links.items()
    }
    assert by_tree == body_of(character).links


def test_a_motion_goes_to_a_character_without_names() -> None:
    humanoid = poise.load_character("humanoid")
    bare, old = unnamed(humanoid)
    for pair in match(humanoid, bare).pairs:
        assert old[pair.target] == pair.source


# a map


def test_a_map_overrides_and_ignores(tmp_path: Path) -> None:
    humanoid, other = poise.load_character("humanoid"), poise.load_character("humanoid-51")
    path = tmp_path / "map.yaml"
    path.write_text("left_hand: right_forearm\nhead: null\nignore: [right_foot]\n")
    pairs = {pair.target: pair.source for pair in match(humanoid, other, path).pairs}
    assert pairs["left_hand"] == "right_forearm"
    assert "head" not in pairs
    assert "right_foot" not in pairs
    told = {"left_hand": "right_forearm", "head": None, "ignore": ["right_foot"]}
    assert {p.target: p.source for p in match(humanoid, other, told).pairs} == pairs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("left_hnad: left_forearm\n", r"map\.yaml:1: .*did you mean 'left_hand'"),
        ("\nleft_hand: left_foreram\n", r"map\.yaml:2: .*did you mean 'left_forearm'"),
        ("ignore: [nobody]\n", r"map\.yaml:1: unknown link 'nobody'"),
        ("ignore: 3\n", r"map\.yaml:1: ignore must be a list"),
        ("- left_hand\n", r"map\.yaml:1: a map must be"),
        ("left_hand: [a\n", r"map\.yaml:"),
    ],
)
def test_a_bad_map_is_named_by_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text)
    with pytest.raises(ClipError, match=message):
        match(poise.load_character("humanoid"), poise.load_character("humanoid-51"), path)


def test_a_map_that_is_no_map_is_refused() -> None:
    humanoid = poise.load_character("humanoid")
    with pytest.raises(ClipError, match="a dictionary or the path"):
        match(humanoid, humanoid, 3)  # type: ignore[arg-type]


# what does not match


def test_nothing_in_common_lists_both_sides() -> None:
    humanoid, snake = poise.load_character("humanoid"), poise.load_character("snake-36")
    with pytest.raises(ClipError, match=r"do not match.*not matched of 'snake-36'.*left_thigh"):
        match(humanoid, snake)


def test_two_left_feet_are_told_apart_by_nobody() -> None:
    humanoid = poise.load_character("humanoid")
    foot = humanoid.link("left_foot")
    twin = replace(
        foot,
        name="left_ankle_2",
        joints=(replace(foot.joints[0], name="left_ankle_2"),),
        parent="left_thigh",
    )
    two = Character("two", (*humanoid.links, twin))
    with pytest.raises(ClipError, match="left foot: 'left_foot' and 'left_ankle_2'"):
        match(humanoid, two)
    match(humanoid, two, {"ignore": ["left_ankle_2"]})


def test_a_character_without_feet_is_warned_of_or_refused() -> None:
    humanoid = poise.load_character("humanoid")
    stump = Character(
        "stump",
        tuple(
            x
            for x in humanoid.links
            if "foot" not in x.name and "shin" not in x.name and "thigh" not in x.name
        ),
    )
    clip = Clip(humanoid, humanoid.rest_q[None].repeat(5, axis=0), 30.0)
    with pytest.warns(UserWarning, match="feet are not kept in place"):
        retarget(clip, stump)
    with pytest.raises(ClipError, match=r"feet are not kept in place.*matched: "):
        retarget(clip, stump, keep_feet=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        retarget(clip, stump, keep_feet=False)


def test_two_legs_are_not_put_on_four() -> None:
    humanoid, dog = poise.load_character("humanoid"), poise.load_character("dog")
    clip = Clip(humanoid, humanoid.rest_q[None].repeat(5, axis=0), 30.0)
    with pytest.raises(ClipError, match="'dog' stands on four legs and 'humanoid' does not"):
        retarget(clip, dog)


def test_a_match_prints_a_table() -> None:
    found = match(poise.load_character("humanoid-51"), poise.load_character("humanoid"))
    rows = str(found).splitlines()
    assert rows[0].split() == ["humanoid", "humanoid-51"]
    assert "left_forearm     left_lower_arm" in rows
    assert rows[-1] == "not matched of humanoid-51: spine, left_hand, right_hand"
