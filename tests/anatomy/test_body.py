"""Which link is which: by names of many makers, by the tree alone, and by a map."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.anatomy.body import body_of
from poise.anatomy.names import role_of
from poise.errors import ClipError
from poise.model.character import Character
from poise.motion import Clip, load_clip
from poise.motion.retargeting.matching import match
from poise.motion.retargeting.retarget import retarget


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


def test_a_map_gives_one_foot_to_one_side() -> None:
    humanoid = poise.load_character("humanoid")
    with pytest.raises(ClipError, match="'right_foot' move both 'left_foot' and 'right_foot'"):
        match(humanoid, humanoid, {"left_foot": "right_foot", "right_foot": "right_foot"})
    with pytest.raises(ClipError, match="each side takes its own"):
        match(humanoid, humanoid, {"left_foot": "right_foot"})
    match(humanoid, humanoid, {"left_foot": "right_foot", "right_foot": "left_foot"})


def test_links_that_are_no_limb_match_by_equal_names() -> None:
    long, short = poise.load_character("snake-72"), poise.load_character("snake-36")
    found = match(long, short)
    assert found.unmatched_target == []
    assert all(pair.target == pair.source for pair in found.pairs)
    ignored = match(long, short, {"ignore": ["segment_3"]})
    assert ignored.unmatched_target == ["segment_3"]


def test_a_short_snake_moves_the_front_of_a_long_one() -> None:
    long, short = poise.load_character("snake-72"), poise.load_character("snake-36")
    found = match(short, long)
    assert found.unmatched_source == []
    assert "segment_20" in found.unmatched_target


def test_a_snake_bends_as_the_longer_one_does() -> None:
    long, short = poise.load_character("snake-72"), poise.load_character("snake-36")
    q = np.tile(long.rest_q, (9, 1))
    half = np.linspace(0.0, 0.2, 9)
    joint = long.link("segment_3").joints[0]
    q[:, long.q_slice(joint)] = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # snakes have no feet
        made = retarget(Clip(long, q, 30.0), short).clip
    turned = made.frames[-1, short.q_slice(short.link("segment_3").joints[0])]
    # the root, which follows the path of the hips, may take a share
    assert 2.0 * np.arccos(abs(turned[0])) == pytest.approx(0.4, abs=0.05)


# what does not match


def swapped(character: Character) -> Character:
    """The same character whose left is named right."""

    def other(name: str) -> str:
        return name.replace("left", "#").replace("right", "left").replace("#", "right")

    links = [
        replace(
            x,
            name=other(x.name),
            parent=None if x.parent is None else other(x.parent),
            joints=tuple(replace(joint, name=other(joint.name)) for joint in x.joints),
        )
        for x in character.links
    ]
    return Character("swapped", tuple(links))


@pytest.mark.parametrize("name", ["humanoid", "humanoid-51", "humanoid-ball", "tail-biped", "dog"])
def test_sides_that_are_named_the_wrong_way_round_are_refused(name: str) -> None:
    right = poise.load_character(name)
    wrong = swapped(right)
    for one, other in ((right, wrong), (wrong, right)):
        clip = Clip(one, one.rest_q[None].repeat(5, axis=0), 30.0)
        with pytest.raises(ClipError, match=r"'swapped': its feet point backward.*swapped\?"):
            retarget(clip, other)


def without(character: Character, *names: str) -> Character:
    return Character("stump", tuple(x for x in character.links if x.name not in names))


def test_shins_are_no_feet() -> None:
    humanoid = poise.load_character("humanoid")
    stump = without(humanoid, "left_foot", "right_foot")
    for one, other in ((humanoid, stump), (stump, humanoid)):
        clip = Clip(one, one.rest_q[None].repeat(5, axis=0), 30.0)
        with pytest.warns(
            UserWarning, match="only one of each pair is a foot.*'left_shin'"
        ) as seen:
            assert retarget(clip, other).clip.contacts is None
        assert seen[0].filename == __file__
        with pytest.raises(ClipError, match="only one of each pair is a foot"):
            retarget(clip, other, keep_feet=True)


def test_the_foot_that_is_left_is_held() -> None:
    humanoid = poise.load_character("humanoid")
    clip = Clip(humanoid, humanoid.rest_q[None].repeat(5, axis=0), 30.0)
    with pytest.warns(UserWarning, match="'right_shin' with 'right_foot'"):
        made = retarget(clip, without(humanoid, "right_foot")).clip
    assert made.contacts is not None
    standing = {made.contacts.points[i].foot for i in made.contacts.on.any(axis=0).nonzero()[0]}
    assert standing == {"left_foot"}


def test_shins_stand_as_shins_do() -> None:
    stump = without(poise.load_character("humanoid"), "left_foot", "right_foot")
    clip = Clip(stump, stump.rest_q[None].repeat(5, axis=0), 30.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert retarget(clip, stump).clip.contacts is not None


def test_a_fixed_root_is_named_as_the_reason() -> None:
    humanoid = poise.load_character("humanoid")
    clip = Clip(humanoid, humanoid.rest_q[None].repeat(5, axis=0), 30.0)
    with pytest.warns(UserWarning, match="'humanoid' does not stand, its root is fixed") as seen:
        clip.retargeted(poise.load_character("humanoid", base="fixed"))
    assert seen[0].filename == __file__


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
