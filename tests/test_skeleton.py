"""Characters made from the skeletons of motion files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from poise.characters.skeleton import FRACTIONS, character_from_rig, part_of, side_of
from poise.errors import CharacterError
from poise.motion.formats import bvh
from poise.motion.rig import Rig, RigJoint

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
