"""Retargeting: feet where they stand, hands above the ground, files, and the way back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import retarget_claims as claims
from numpy.typing import NDArray
from typer.testing import CliRunner

import poise
from poise import dynamics
from poise.anatomy.feet import positions
from poise.anatomy.rig import poses_of
from poise.cli import app
from poise.errors import ClipError
from poise.math import rotation as quat
from poise.model.character import Character, Joint, Link, Shape
from poise.motion import Clip, limits, load_clip, save_clip
from poise.motion.foot_contact.planting import (
    Sole,
    close_gaps,
    is_pivoting,
    plant_foot,
    smooth_fall,
    yaw_of,
)
from poise.motion.retargeting.retarget import on_rig, retarget

pytestmark = pytest.mark.arithmetic

Floats = NDArray[np.float64]

# a walker of our own, so that something is tested without data


def biped(name: str, leg: float = 0.4, spread: float = 0.0, hinge: bool = True) -> Character:
    """Pelvis, chest and two legs with boxes for feet; `spread` turns the arms up at rest [rad]."""
    links = [
        Link.from_shapes(
            "pelvis",
            None,
            [Shape("sphere", (0.1,))],
            pos=(0.0, 0.0, 2 * leg + 0.06),
            joints=[Joint("root", "free")],
        ),
        Link.from_shapes(
            "chest",
            "pelvis",
            [Shape.capsule((0.0, 0.0, 0.0), (0.0, 0.0, 0.4), 0.1)],
            pos=(0.0, 0.0, 0.1),
            joints=[Joint("chest", "ball")],
        ),
    ]
    for side, y in (("left", 1.0), ("right", -1.0)):
        knee = Joint(f"{side}_knee", "hinge", axis=(0.0, 1.0, 0.0), limits=(-0.1, 2.5))
        bent = Joint(f"{side}_knee", "ball")
        bone = Shape.capsule((0.0, 0.0, 0.0), (0.0, 0.0, -leg), 0.05)
        out = (0.0, y * np.sin(spread), -np.cos(spread))
        arm = Shape.capsule((0.0, 0.0, 0.0), tuple(0.5 * x for x in out), 0.04)
        box = Shape("box", (0.12, 0.04, 0.02), (0.06, 0.0, -0.04))
        for link, parent, shape, pos, joint in (
            ("thigh", "pelvis", bone, (0.0, 0.1 * y, 0.0), Joint(f"{side}_hip", "ball")),
            ("shin", f"{side}_thigh", bone, (0.0, 0.0, -leg), knee if hinge else bent),
            ("foot", f"{side}_shin", box, (0.0, 0.0, -leg), Joint(f"{side}_ankle", "ball")),
            ("upper_arm", "chest", arm, (0.0, 0.2 * y, 0.35), Joint(f"{side}_shoulder", "ball")),
        ):
            links.append(
                Link.from_shapes(f"{side}_{link}", parent, [shape], pos=pos, joints=[joint])
            )
    return Character(name, tuple(links))


def squats(character: Character, depth: float = 0.8, k: int = 61) -> Clip:
    """Knees and hips bend, feet stay level where they are; arms rise to the front."""
    q = np.tile(character.rest_q, (k, 1))
    bend = depth * np.sin(np.linspace(0.0, np.pi, k)) ** 2
    across = np.array([0.0, 1.0, 0.0])
    for side in ("left", "right"):
        knee = character.joint(f"{side}_knee")
        turn = 2.0 * bend[:, None] if knee.kind == "hinge" else quat.turn(across, 2.0 * bend)
        q[:, character.q_slice(knee)] = turn
        for joint, angle in (("hip", -bend), ("ankle", -bend), ("shoulder", -1.5 * bend)):
            q[:, character.q_slice(f"{side}_{joint}")] = quat.turn(across, angle)
    foot = [link.name for link in character.links].index("left_foot")
    at = dynamics.forward_kinematics(character, q)[0][:, foot]
    q[:, :3] -= at - at[0]
    return Clip(character, q, 60.0, name="squats")


def test_to_itself_a_clip_stays_as_it_is() -> None:
    clip = squats(biped("a"))
    made = clip.retargeted(clip.character)
    p, _ = dynamics.forward_kinematics(clip.character, clip.frames)
    again, _ = dynamics.forward_kinematics(clip.character, made.frames)
    np.testing.assert_allclose(again, p, atol=2e-4)  # weak goals pull by a tenth of a millimetre


@pytest.mark.parametrize("leg", [0.25, 0.4, 0.7])
def test_a_larger_one_squats_larger(leg: float) -> None:
    clip, other = squats(biped("a")), biped("b", leg)
    made = retarget(clip, other)
    ratio = (2 * leg + 0.06) / 0.86
    assert made.scale == pytest.approx(ratio)
    drop = np.ptp(made.clip.frames[:, 2])
    # proportions differ by the foot alone, which does not scale
    assert drop == pytest.approx(ratio * np.ptp(clip.frames[:, 2]), rel=0.1)
    claims.limbs_point_alike(clip, made)
    claims.feet_stand(made)
    claims.no_joint_flips(clip, made)
    claims.nothing_in_the_ground(made)
    claims.no_jitter(clip, made)


def test_given_scale_counts() -> None:
    clip = squats(biped("a"))
    assert retarget(clip, biped("b", 0.7), scale=1.0).scale == 1.0
    with pytest.raises(ClipError, match="scale"):
        retarget(clip, biped("b"), scale=-1.0)


def test_arms_that_rest_up_do_as_arms_that_rest_down() -> None:
    down, up = biped("down"), biped("up", spread=np.pi / 2)
    clip = squats(down)
    made = retarget(clip, up)
    angles = claims.limb_directions(made.match, clip.frames, made.clip.frames)
    assert angles["left_upper_arm"].max() < 1.0
    back = retarget(made.clip, down)
    again = claims.limb_directions(back.match, made.clip.frames, back.clip.frames)
    assert again["left_upper_arm"].max() < 1.0


def test_a_hinge_carries_the_bend_of_a_ball_that_bends_askew() -> None:
    loose, tight = biped("loose", hinge=False), biped("tight")
    clip = squats(loose)
    # turn both links of the left leg about the bone of the thigh, as a rig with other axes has it
    q = clip.frames.copy()
    twist = quat.turn((0.0, 0.0, 1.0), np.array(0.7))
    hip, knee = (loose.q_slice(f"left_{x}") for x in ("hip", "knee"))
    q[:, hip] = quat.multiply(q[:, hip], twist)
    q[:, knee] = quat.multiply(quat.conjugate(twist), quat.multiply(q[:, knee], twist))
    ankle = loose.q_slice("left_ankle")
    q[:, ankle] = quat.multiply(quat.conjugate(twist), q[:, ankle])
    askew = Clip(loose, q, clip.fps)
    made = retarget(askew, tight)
    angles = claims.limb_directions(made.match, askew.frames, made.clip.frames)
    assert angles["left_thigh"].max() < 3.0
    assert angles["left_shin"].max() < 3.0


@pytest.mark.filterwarnings("ignore:feet are not kept")
def test_along_a_chain_of_sixty_links_turns_stay_turns() -> None:
    slither = load_clip("snake-slither").trimmed(0.0, 0.05)
    made = slither.retargeted(poise.load_character("snake-195"))
    # each error of a quaternion's length used to double from link to link
    balls = made.frames[:, 7:].reshape(len(made), -1, 4)
    assert np.abs(np.linalg.norm(balls, axis=-1) - 1.0).max() < 1e-12
    # segments that both have bend alike; those of the longer one follow straight
    theirs = slither.frames[:, 7:].reshape(len(made), -1, 4)
    assert np.allclose(np.abs((balls[:, :22] * theirs).sum(axis=-1)), 1.0, atol=1e-3)


def test_level_feet_are_level() -> None:
    clip = squats(biped("a"))
    q = clip.frames.copy()
    ankle = clip.character.q_slice("left_ankle")
    q[:, ankle] = quat.multiply(q[:, ankle], quat.turn((0.0, 1.0, 0.0), np.full(len(q), 0.3)))
    tilted = Clip(
        clip.character, q, clip.fps, contacts=retarget(clip, clip.character).clip.contacts
    )
    made = tilted.retargeted(biped("b", 0.5), level_feet=True)
    assert made.contacts is not None
    at = positions(made.character, made.contacts.points, made.frames)
    assert made.contacts.on.any(axis=0).all()
    assert np.abs(at[..., 2][made.contacts.on]).max() < 0.001


def test_limits_are_kept_where_asked() -> None:
    deep = squats(biped("a", hinge=False), depth=1.4)
    made = retarget(deep, biped("b"), limits=True)
    excess = max(x.value.max() for x in limits.excesses(made.clip.character, made.clip.frames))
    assert excess < 1e-9


def test_progress_goes_to_one() -> None:
    shares: list[float] = []
    squats(biped("a")).retargeted(biped("b"), progress=shares.append)
    assert shares[-1] == 1.0
    assert shares == sorted(shares)


# standing


def sole() -> Sole:
    corners = [(x, y, -0.05) for x in (-0.1, 0.2) for y in (-0.04, 0.04)]
    return Sole(
        0,
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.array(corners),
        np.array([-0.1, 0.0, -0.05]),
        np.array([0.2, 0.0, -0.05]),
        np.array([0.0, 1.0, 0.0]),
    )


def a_step(k: int = 120) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """A foot that stands, drifts and sinks a little, swings ahead and stands again."""
    t = np.linspace(0.0, 1.0, k)
    swing = np.clip((t - 0.4) / 0.2, 0.0, 1.0)
    p = np.stack(
        [0.02 * t + 0.6 * (1 - smooth_fall(swing)), 0.0 * t, 0.04 + 0.3 * swing * (1 - swing)], 1
    )
    pitch = 0.5 * np.sin(2 * np.pi * np.clip((t - 0.3) / 0.4, 0.0, 1.0)) + 0.03
    stands = (swing <= 0.0) | (swing >= 1.0)
    return p, quat.turn((0.0, 1.0, 0.0), pitch), stands


def test_a_planted_foot_neither_skates_nor_sinks() -> None:
    p, R, stands = a_step()
    new_p, new_R = plant_foot(sole(), p, R, stands, 120.0)
    at = new_p[:, None] + quat.rotate(new_R[:, None], sole().points[None])
    assert at[..., 2].min() > -1e-9
    low = at[..., 2].min(axis=1)
    np.testing.assert_allclose(low[stands], 0.0, atol=1e-9)
    flat = at[:36, :2]  # before the heel rises, its points stay where they are
    np.testing.assert_allclose(flat, np.broadcast_to(flat[:1], flat.shape), atol=1e-9)


def test_a_planted_foot_does_not_jump() -> None:
    p, R, stands = a_step()
    new_p, new_R = plant_foot(sole(), p, R, stands, 120.0)
    own = np.linalg.norm(np.diff(p, axis=0), axis=1).max()
    assert np.linalg.norm(np.diff(new_p, axis=0), axis=1).max() < 1.3 * own
    turn = quat.log(quat.multiply(quat.conjugate(new_R[:-1]), new_R[1:]))
    assert np.linalg.norm(turn, axis=1).max() < 0.08  # the foot's own fastest turn is 0.066 a frame


def test_a_foot_slows_down_before_it_stands() -> None:
    """Its source is still moving by 0.3 m/s when it counts as standing."""
    k, fps = 120, 120.0
    x = np.where(np.arange(k) < 60, 0.3 * (np.arange(k) - 60) / fps, 0.0)
    p = np.stack([x, 0.0 * x, np.full(k, 0.05)], axis=1)
    R = np.tile([1.0, 0.0, 0.0, 0.0], (k, 1))
    new_p, _ = plant_foot(sole(), p, R, np.arange(k) >= 56, fps)
    rough, smooth = (np.abs(np.diff(y[:, 0], 2)).max() * fps**2 for y in (p, new_p))
    assert rough == pytest.approx(36.0)  # 0.3 m/s in one frame
    assert smooth < rough / 2.5
    assert np.ptp(new_p[56:, 0]) < 1e-12


def test_a_foot_that_spins_on_its_toes_keeps_them_in_place() -> None:
    k, toe = 90, sole().toe
    spin = quat.turn((0.0, 0.0, 1.0), np.linspace(0.0, 3.0, k))
    R = quat.multiply(spin, quat.turn((0.0, 1.0, 0.0), np.full(k, 0.5)))
    p = np.array([1.0, 2.0, 0.0]) - quat.rotate(R, toe)
    new_p, new_R = plant_foot(sole(), p, R, np.ones(k, dtype=bool), 120.0)
    at = new_p + quat.rotate(new_R, toe)
    np.testing.assert_allclose(at, np.broadcast_to((1.0, 2.0, 0.0), at.shape), atol=1e-9)
    assert is_pivoting(R, np.ones(k, dtype=bool), 120.0).mean() > 0.8
    yaw = yaw_of(new_R)
    assert abs(yaw[-1] - yaw[0]) > 2.5


def test_a_gap_too_short_for_a_step_is_closed_in_place_and_widened_elsewhere() -> None:
    k = 60
    stands = np.ones(k, dtype=bool)
    stands[30:32] = False
    R = np.tile([1.0, 0.0, 0.0, 0.0], (k, 1))
    still, moved = np.zeros((k, 3)), np.zeros((k, 3))
    moved[31:, 0] = 0.2
    assert close_gaps(sole(), still, R, stands, 120.0).all()
    assert (~close_gaps(sole(), moved, R, stands, 120.0)).sum() >= 12  # a tenth of a second


# files and the way back


def test_loading_onto_a_character_retargets(data_folder: Path) -> None:
    humanoid = poise.load_character("humanoid")
    clip = load_clip(data_folder / "mass" / "motion" / "run.bvh", humanoid, prepare=False)
    assert clip.character == humanoid
    assert clip.contacts is not None


def test_written_like_its_source_a_clip_has_the_same_rig(data_folder: Path, tmp_path: Path) -> None:
    path = data_folder / "cmu_bvh" / "16_35.bvh"
    source = load_clip(path)
    clip = source.retargeted(poise.load_character("humanoid"))
    out = tmp_path / "back.bvh"
    save_clip(clip, out, like=path)
    back = load_clip(out)
    assert back.source is not None
    assert source.source is not None
    assert back.source.joints == source.source.joints
    p, _ = poses_of(source.character, source.source, source.frames)
    again, _ = poses_of(back.character, back.source, back.frames)
    # over there and back; the feet were put on the ground meanwhile
    assert np.median(np.linalg.norm(p - again, axis=-1)) < 0.05


def test_a_clip_on_its_own_rig_is_not_solved_again() -> None:
    clip = squats(biped("a"))
    assert (on_rig(clip, clip).frames == clip.frames).all()


def test_convert_retargets_and_goes_back(data_folder: Path, tmp_path: Path) -> None:
    take, there = data_folder / "mass" / "motion" / "run.bvh", tmp_path / "run.npz"
    args = [take, there, "--character", "humanoid-ball", "--cutoff", "6"]
    result = CliRunner().invoke(app, ["convert", *map(str, args)])
    assert result.exit_code == 0, result.output
    assert "smoothed at 6 Hz: moved by" in result.output
    assert load_clip(there).character.name == "humanoid-ball"
    back = tmp_path / "back.bvh"
    result = CliRunner().invoke(app, ["convert", str(there), str(back), "--like", str(take)])
    assert result.exit_code == 0, result.output
    assert "Character1_LeftForeArm" in back.read_text()
