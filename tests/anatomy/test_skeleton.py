"""Characters made from the skeletons of motion files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from poise.anatomy.names import is_animal, is_person, part_of, side_of
from poise.anatomy.rig import Rig, RigJoint
from poise.anatomy.skeleton import FRACTIONS, character_from_rig
from poise.errors import CharacterError
from poise.model.geometry import lowest_z
from poise.motion.formats import bvh

TURNS = ("Zrotation", "Yrotation", "Xrotation")


def rig(*joints: tuple[str, str, tuple[float, float, float]]) -> Rig:
    """A rig in metres, z up, from (name, parent, offset); chains end 0.1 m further on."""
    names = [name for name, _, _ in joints]
    parents = {parent for _, parent, _ in joints}
    made = []
    for name, parent, offset in joints:
        away = np.array(offset)
        on = away * (0.1 / max(float(np.linalg.norm(away)), 1e-9))
        end = None if name in parents else tuple(on.tolist())
        index = names.index(parent) if parent else -1
        made.append(RigJoint(name, index, offset, TURNS, end))
    return Rig(tuple(made), "bvh", 1.0, "z", 30.0, "made")


def person() -> Rig:
    sides = []
    for side, y in (("Left", 1.0), ("Right", -1.0)):
        sides += [
            (f"{side}UpLeg", "Hips", (0.0, 0.09 * y, -0.05)),
            (f"{side}Leg", f"{side}UpLeg", (0.0, 0.0, -0.42)),
            (f"{side}Foot", f"{side}Leg", (0.0, 0.0, -0.42)),
            (f"{side}ToeBase", f"{side}Foot", (0.14, 0.0, -0.05)),
            (f"{side}Arm", "Spine", (0.0, 0.19 * y, 0.38)),
            (f"{side}ForeArm", f"{side}Arm", (0.0, 0.28 * y, 0.0)),
            (f"{side}Hand", f"{side}ForeArm", (0.0, 0.25 * y, 0.0)),
        ]
    trunk = [
        ("Hips", "", (0.0, 0.0, 0.0)),
        ("Spine", "Hips", (0.0, 0.0, 0.12)),
        ("Head", "Spine", (0.0, 0.0, 0.5)),
    ]
    return rig(*trunk, *sides)


def test_a_person_has_published_masses() -> None:
    character = character_from_rig(person())
    stature = 0.84 / 0.491
    assert character.mass == pytest.approx(22.0 * stature**2)
    for link, part in {"LeftUpLeg": "thigh", "RightLeg": "shank", "LeftArm": "arm"}.items():
        share = character.link(link).mass / character.mass
        assert share == pytest.approx(FRACTIONS[part], rel=0.01)
    assert character_from_rig(person(), mass=50.0).mass == pytest.approx(50.0)


def test_it_stands_on_the_ground_with_frames_aligned_to_the_world() -> None:
    character = character_from_rig(person())
    positions, quats = poise.dynamics.forward_kinematics(character, character.rest_q)
    np.testing.assert_allclose(quats, np.tile([1.0, 0.0, 0.0, 0.0], (len(quats), 1)), atol=1e-15)
    at = {link.name: p for link, p in zip(character.links, positions, strict=True)}
    assert 0.0 < at["LeftToeBase"][2] < 0.1
    np.testing.assert_allclose(at["LeftHand"] - at["LeftForeArm"], [0.0, 0.25, 0.0], atol=1e-12)


def test_feet_have_boxes_to_stand_on() -> None:
    character = character_from_rig(person())
    (box,) = character.link("LeftFoot").shapes
    assert box.kind == "box"
    assert box.pos[0] > 0.0
    ankle = sum(character.link(n).pos[2] for n in ("Hips", "LeftUpLeg", "LeftLeg", "LeftFoot"))
    assert ankle + box.pos[2] - box.size[2] == pytest.approx(0.0, abs=0.03)


def test_limbs_are_named() -> None:
    limbs = character_from_rig(person()).limbs
    assert limbs["left_leg"] == ("LeftUpLeg", "LeftLeg", "LeftFoot", "LeftToeBase")
    assert limbs["right_arm"] == ("RightArm", "RightForeArm", "RightHand")
    assert limbs["torso"] == ("Hips", "Spine")


def test_what_is_no_human_has_the_density_of_water() -> None:
    chain = rig(*((f"part{i}", f"part{i - 1}" if i else "", (0.3, 0.0, 0.0)) for i in range(6)))
    character = character_from_rig(chain)
    for link in character.links:
        assert link.mass == pytest.approx(1000.0 * sum(s.volume for s in link.shapes))


def test_the_last_link_of_a_chain_has_its_length() -> None:
    parts = [(f"part{i}", f"part{i - 1}" if i else "", (0.0, 0.0, 0.1)) for i in range(4)]
    character = character_from_rig(rig(*parts))
    masses = [link.mass for link in character.links]
    assert masses == pytest.approx([masses[0]] * 4)


def test_a_single_bone_has_its_length() -> None:
    bone = RigJoint("prop", -1, (0.0, 0.0, 0.0), TURNS, (0.0, 0.0, 0.8))
    (link,) = character_from_rig(Rig((bone,), "bvh", 1.0, "z", 30.0)).links
    (capsule,) = link.shapes
    assert capsule.size[0] + capsule.size[1] == pytest.approx(0.4)


def test_a_wild_end_is_left_out_of_the_shapes() -> None:
    joints = [
        RigJoint("a", -1, (0.0, 0.0, 0.0), TURNS),
        RigJoint("b", 0, (0.0, 0.0, 0.3), TURNS, (0.0, 0.0, 3.0)),
    ]
    character = character_from_rig(Rig(tuple(joints), "bvh", 1.0, "z", 30.0))
    assert max(max(s.size) for link in character.links for s in link.shapes) < 0.3


def dog_again(tmp_path: Path) -> poise.Character:
    """Our dog, made anew from the skeleton it is written with."""
    dog = poise.load_character("dog")
    poise.Clip(dog, np.tile(dog.rest_q, (4, 1)), 30.0).save(tmp_path / "dog.bvh")
    return poise.load_clip(tmp_path / "dog.bvh").character


def test_a_dog_is_no_person(tmp_path: Path) -> None:
    dog, again = poise.load_character("dog"), dog_again(tmp_path)
    # bones tell lengths, not thicknesses; a person of its leg length would have half of it
    assert again.mass == pytest.approx(dog.mass, rel=0.25)
    assert {name: set(links) for name, links in again.limbs.items()} == {
        name: set(links) for name, links in dog.limbs.items()
    }


def test_a_dog_stands_on_four_paws(tmp_path: Path) -> None:
    again = dog_again(tmp_path)
    positions, _ = poise.dynamics.forward_kinematics(again, again.rest_q)
    for link, p in zip(again.links, positions, strict=True):
        low = min(p[2] + lowest_z(shape) for shape in link.shapes)
        # of our dog, front paws reach 2 cm lower than hind ones
        assert (low < 0.03) == ("paw" in link.name)


def on_all_fours(*more: tuple[str, str, tuple[float, float, float]]) -> Rig:
    """What has a person's names, but stands on four legs."""
    sides = []
    for side, y in (("Left", 0.1), ("Right", -0.1)):
        sides += [
            (f"{side}UpLeg", "Hips", (0.0, y, 0.0)),
            (f"{side}Leg", f"{side}UpLeg", (0.05, 0.0, -0.2)),
            (f"{side}Foot", f"{side}Leg", (-0.05, 0.0, -0.2)),
            (f"{side}Arm", "Spine", (0.3, y, 0.0)),
            (f"{side}ForeArm", f"{side}Arm", (-0.05, 0.0, -0.2)),
            (f"{side}Hand", f"{side}ForeArm", (0.05, 0.0, -0.2)),
        ]
    return rig(("Hips", "", (0.0, 0.0, 0.0)), ("Spine", "Hips", (0.3, 0.0, 0.0)), *sides, *more)


def test_what_stands_on_hands_and_feet_is_no_person() -> None:
    character = character_from_rig(on_all_fours())
    assert character.limbs["front_left_leg"] == ("LeftArm", "LeftForeArm", "LeftHand")
    assert character.limbs["hind_right_leg"] == ("RightUpLeg", "RightLeg", "RightFoot")
    for link in character.links:
        assert link.mass == pytest.approx(1000.0 * sum(s.volume for s in link.shapes))


def test_a_person_may_have_a_tail() -> None:
    parts = [
        (j.name, person().names[j.parent] if j.parent >= 0 else "", j.offset[:3])
        for j in person().joints
    ]
    tailed = character_from_rig(rig(*parts, ("Tail", "Hips", (-0.2, 0.0, 0.0))))  # type: ignore[arg-type]
    assert tailed.limbs["tail"] == ("Tail",)
    assert tailed.limbs["left_arm"] == ("LeftArm", "LeftForeArm", "LeftHand")


@pytest.mark.parametrize(
    ("names", "person", "animal"),
    [
        (["Hips", "LeftUpLeg", "LeftForeArm"], True, False),
        (["lfemur", "lradius"], True, False),
        (["base", "lower_arm", "upper_arm", "shade"], False, False),
        (["hind_left_thigh", "front_left_paw"], False, True),
        (["LeftUpLeg", "Tail1"], False, True),
        (["LeftForeLeg", "LeftLeg"], False, True),
        (["LeftUpLeg", "Ponytail"], True, False),
    ],
)
def test_names_tell_persons_and_animals(names: list[str], person: bool, animal: bool) -> None:
    assert (is_person(names), is_animal(names)) == (person, animal)


def test_joints_without_length_or_mass_are_merged() -> None:
    joints = [
        RigJoint("Hips", -1, (0.0, 0.0, 0.0), TURNS),
        RigJoint("HipJoint", 0, (0.0, 0.0, 0.0), TURNS),  # never turns, in place
        RigJoint("Thigh", 1, (0.0, 0.1, 0.0), TURNS),
        RigJoint("Twist", 2, (0.0, 0.0, -0.4), TURNS),  # no length, one joint after it
        RigJoint("Shin", 3, (0.0, 0.0, 0.0), TURNS, (0.0, 0.0, -0.4)),
        RigJoint("Marker", 2, (0.0, 0.1, 0.0), TURNS, (0.0, 0.0, 0.0)),  # an end without length
        RigJoint("Plate", 0, (0.0, 0.0, 0.3), (), (0.0, 0.0, 0.1)),  # no channels
    ]
    skeleton = Rig(tuple(joints), "bvh", 1.0, "z", 30.0)
    character = character_from_rig(skeleton, still={"HipJoint"})
    assert [link.name for link in character.links] == ["Hips", "Thigh", "Shin"]
    assert character.link("Thigh").parent == "Hips"


def test_one_and_two_rotations_are_hinges() -> None:
    joints = [
        RigJoint("a", -1, (0.0, 0.0, 0.0), TURNS),
        RigJoint("b", 0, (0.0, 0.0, 0.5), ("Yrotation",)),
        RigJoint("c", 1, (0.0, 0.0, 0.5), ("Xrotation", "Zrotation"), (0.0, 0.0, 0.5)),
    ]
    character = character_from_rig(Rig(tuple(joints), "bvh", 1.0, "y", 30.0))
    assert [joint.kind for joint in character.joints] == ["free", "hinge", "hinge", "hinge"]
    # y of a file with y up is z of the world
    assert character.joints[1].axis == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "part", "side"),
    [
        ("LeftUpLeg", "thigh", "left"),
        ("mixamorig:RightForeArm", "forearm", "right"),
        ("Character1_LeftToeBase", "toe", "left"),
        ("lfemur", "thigh", "left"),
        ("LowerBack", "trunk", ""),
        ("RightHip", "thigh", "right"),
        ("Hips", "pelvis", ""),
        ("upper_arm.L", "arm", "left"),
        ("shin_r", "shank", "right"),
        ("LThumb", "hand", "left"),
        ("tail3", "", ""),
    ],
)
def test_names_tell_parts_and_sides(name: str, part: str, side: str) -> None:
    assert (part_of(name), side_of(name)) == (part, side)


def test_a_skeleton_without_joints_is_refused() -> None:
    with pytest.raises(CharacterError, match="without joints"):
        character_from_rig(Rig(()))


@pytest.mark.data
@pytest.mark.parametrize("name", ["cmu_bvh/02_01.bvh", "mass/motion/walk.bvh"])
def test_real_skeletons_stand_and_fall_like_people(name: str, data_folder: Path) -> None:
    character = bvh.read(data_folder / name).character
    assert 0.8 < character.links[0].pos[2] < 1.1
    M = poise.dynamics.mass_matrix(character, character.rest_q)
    assert np.linalg.eigvalsh(M).min() > 0.0
    a = poise.dynamics.forward_dynamics(
        character, character.rest_q, np.zeros(character.nv), np.zeros(character.nv)
    )
    np.testing.assert_allclose(a[:3], [0.0, 0.0, -9.81], atol=1e-8)
