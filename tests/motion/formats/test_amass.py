"""AMASS: poses on poise's own skeleton, against rotation matrices in the model's own axes.

The real files are licensed, so the tests write theirs.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poise import dynamics
from poise.errors import ClipError
from poise.math.arrays import Floats
from poise.motion import load_clip
from poise.motion.clip import Clip
from poise.motion.formats import amass

PARENTS = (-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19)


def motion(frames: int = 7, columns: int = 156) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    poses = 0.3 * rng.normal(size=(1, columns)) + 0.05 * rng.normal(size=(frames, columns)).cumsum(
        0
    )
    poses[:, :3] += [np.pi / 2, 0.0, 0.0]  # upright: the model's y is up, the world's z
    return {
        "poses": poses,
        "trans": 0.1 * rng.normal(size=(frames, 3)) + [0.0, 0.0, 0.95],
        "mocap_framerate": np.array(120.0),
        "gender": np.array("neutral"),
        "betas": np.zeros(16),
        "dmpls": np.zeros((frames, 8)),
    }


def write(path: Path, values: dict[str, Any], packed: bool = False) -> Path:
    (np.savez_compressed if packed else np.savez)(path, **values)
    return path


def about(turn: Floats) -> Floats:
    """Rodrigues' formula."""
    angle = np.linalg.norm(turn)
    if angle == 0.0:
        return np.eye(3)
    x, y, z = turn / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: Floats = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    return turned


def expected(poses: Floats, trans: Floats, offsets: Floats) -> Floats:
    """Positions of the 22 joints in a frame, as the body model has them, (22, 3)."""
    R = np.empty((22, 3, 3))
    p = np.empty((22, 3))
    for i, parent in enumerate(PARENTS):
        turn = about(poses[3 * i : 3 * i + 3])
        if parent < 0:
            R[i], p[i] = turn, trans + offsets[0]
        else:
            R[i] = R[parent] @ turn
            p[i] = p[parent] + R[parent] @ offsets[i]
    return p


def assert_positions(clip: Clip, values: dict[str, Any], offsets: Floats) -> None:
    p, _ = dynamics.forward_kinematics(clip.character, clip.frames)
    at = [[link.name for link in clip.character.links].index(name) for name in amass.NAMES]
    for i in range(len(clip)):
        want = expected(values["poses"][i], values["trans"][i], offsets)
        np.testing.assert_allclose(p[i, at], want, atol=1e-9)


def own_offsets() -> Floats:
    rig = amass.neutral_rig()
    return np.array([joint.offset for joint in rig.joints])


@pytest.mark.parametrize("columns", [66, 72, 156, 165])
def test_joints_are_where_the_body_model_has_them(columns: int, tmp_path: Path) -> None:
    values = motion(columns=columns)
    clip = amass.read(write(tmp_path / "clip.npz", values, packed=columns == 156))
    assert (clip.fps, len(clip), clip.character.nv) == (120.0, 7, 69)
    assert_positions(clip, values, own_offsets())


def test_offsets_of_a_subject_take_the_place_of_ours(tmp_path: Path) -> None:
    values = motion()
    path = write(tmp_path / "clip.npz", values)
    offsets = 1.1 * own_offsets() + 0.01 * np.random.default_rng(1).normal(size=(22, 3))
    joints = np.zeros((24, 3))
    for i, parent in enumerate(PARENTS):
        joints[i] = offsets[i] + (joints[parent] if parent >= 0 else 0.0)
    np.save(tmp_path / "offsets.npy", offsets)
    np.savez(tmp_path / "offsets.npz", offsets=offsets.astype(np.float64))
    np.savez(tmp_path / "joints.npz", joints=joints)
    np.savez(tmp_path / "model.npz", J=joints, bs_type=np.array(["lrotmin"], dtype=object))
    names = ("offsets.npy", "offsets.npz", "joints.npz", "model.npz")
    files = [tmp_path / name for name in names]
    for source in (offsets, offsets.tolist(), *files, str(files[0])):
        assert_positions(amass.read(path, offsets=source), values, offsets)


def test_load_clip_hands_the_offsets_on(tmp_path: Path) -> None:
    values, offsets = motion(), 1.1 * own_offsets()
    path = write(tmp_path / "clip.npz", values)
    assert_positions(load_clip(path, offsets=offsets), values, offsets)
    load_clip(path).save(tmp_path / "ours.npz")
    with pytest.raises(ClipError, match="is no clip of AMASS"):
        load_clip(tmp_path / "ours.npz", offsets=offsets)


@pytest.mark.parametrize("name", ["mocap_framerate", "mocap_frame_rate"])
def test_both_names_of_the_rate_are_known(name: str, tmp_path: Path) -> None:
    values = motion()
    values[name] = np.array(59.94)
    if name == "mocap_frame_rate":
        del values["mocap_framerate"]
    assert amass.read(write(tmp_path / "clip.npz", values)).fps == 59.94


def test_a_quarter_turn_about_x_makes_the_model_stand(tmp_path: Path) -> None:
    # the model's y is up, the world's z: without a turn it lies on its back, its head towards y
    values = motion()
    values["poses"] = np.zeros((7, 156))
    lying = amass.read(write(tmp_path / "a.npz", values))
    values["poses"][:, 0] = np.pi / 2
    standing = amass.read(write(tmp_path / "b.npz", values))
    for clip, up, left in ((lying, 1, 0), (standing, 2, 0)):
        p, _ = dynamics.forward_kinematics(clip.character, clip.frames[0])
        at = {link.name: p[i] for i, link in enumerate(clip.character.links)}
        assert at["head"][up] - at["left_ankle"][up] > 1.2
        assert at["left_wrist"][left] - at["right_wrist"][left] > 1.2
        assert abs(at["head"][3 - up] - at["pelvis"][3 - up]) < 0.05


def test_split_poses_are_read(tmp_path: Path) -> None:
    values = motion()
    split = {
        "root_orient": values["poses"][:, :3],
        "pose_body": values["poses"][:, 3:66],
        "trans": values["trans"],
        "mocap_frame_rate": np.array([60]),
    }
    clip = amass.read(write(tmp_path / "clip.npz", split))
    assert clip.fps == 60.0
    assert_positions(clip, values, own_offsets())


def test_the_neutral_skeleton_stands_upright_and_looks_ahead() -> None:
    rig = amass.neutral_rig()
    rest = dict(zip(rig.names, rig.rest, strict=True))
    assert rest["head"][2] - rest["left_foot"][2] == pytest.approx(1.53, abs=0.1)
    assert rest["left_wrist"][1] > 0.5 > -0.5 > rest["right_wrist"][1]
    assert rest["left_foot"][0] > 0.1


def test_load_clip_knows_the_file_by_its_arrays(tmp_path: Path) -> None:
    path = write(tmp_path / "clip.npz", motion())
    np.testing.assert_array_equal(load_clip(path).frames, amass.read(path).frames)
    again = load_clip(path, amass.read(path).character, prepare=False)
    assert again.source == amass.read(path).source


def test_a_pickle_that_is_not_needed_is_never_opened(tmp_path: Path) -> None:
    values = {**motion(), "labels": np.array([Bomb()], dtype=object)}
    assert len(amass.read(write(tmp_path / "clip.npz", values))) == 7


# bad input


class Bomb:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was opened",))


def changed(**more: Any) -> dict[str, Any]:
    return {key: x for key, x in {**motion(), **more}.items() if x is not None}


def spoilt(name: str, value: float) -> dict[str, Any]:
    values = motion()
    values[name][3, 2] = value
    return values


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "pickle": (changed(poses=np.array([[Bomb()]], dtype=object)), "poses: holds pickled objects"),
    "no poses": (changed(poses=None), "is neither|needs poses"),
    "no trans": (changed(trans=None), "needs the array 'trans'"),
    "no rate": (changed(mocap_framerate=None), "needs mocap_framerate"),
    "zero rate": (changed(mocap_framerate=0.0), "must be one number from 1"),
    "absurd rate": (changed(mocap_framerate=1e9), "must be one number from 1"),
    "NaN rate": (changed(mocap_framerate=np.nan), "must be one number from 1"),
    "two rates": (changed(mocap_framerate=np.ones(2)), "must be one number from 1"),
    "text rate": (changed(mocap_framerate="120"), "must be of kind"),
    "NaN": (spoilt("poses", np.nan), "poses: row 3, column 2 is nan"),
    "infinite": (spoilt("trans", np.inf), "trans: row 3, column 2 is inf"),
    "far": (spoilt("trans", 1e20), r"trans: row 3, column 2 is 1e\+20"),
    "few columns": (changed(poses=np.zeros((7, 63))), r"poses has shape \(7, 63\)"),
    "no frames": (changed(poses=np.zeros((0, 156))), r"poses has shape \(0, 156\)"),
    "flat": (changed(poses=np.zeros(156)), "must be of kind"),
    "whole": (changed(poses=np.zeros((7, 156), int)), "must be of kind"),
    "frames": (changed(trans=np.zeros((8, 3))), "poses have 7 frames, trans 8"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_file_and_reason(case: str, tmp_path: Path) -> None:
    values, reason = BAD[case]
    path = write(tmp_path / "bad.npz", values)
    with pytest.raises(ClipError, match=reason) as caught:
        amass.read(path)
    assert str(caught.value).startswith(f"{path}:")


def npy(shape: str, data: bytes, descr: str = "'<f8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    header = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


LIES = {
    "huge": npy("(1000000000000, 156)", b"\0" * 800),
    "overflowing": npy("(4294967296, 4294967296, 4294967296)", b""),
    "negative": npy("(-7, 156)", b"\0" * 800),
    "too long": npy("(7, 156)", b"\0" * (8 * 7 * 156 + 1)),
    "too short": npy("(7, 156)", b"\0" * (8 * 7 * 156 - 1)),
    "no header": b"\x93NUMPY\x01\x00\xff\xff{",
    "no tuple": npy("7", b"\0" * 56),
    "nonsense": b"nonsense",
    "empty": b"",
    "an expression": npy("(" + "-" * 60 + "7,)", b"\0" * 56),
    "a structure": npy("(7,)", b"\0" * 56, "[('a', '<f8')]"),
    "an object": npy("(7,)", b"\0" * 56, "'|O'"),
    "unknown type": npy("(7,)", b"\0" * 56, "'<q9'"),
    "wide text": npy("(1,)", b"\0" * 56, "'<U999999999'"),
    "version 2": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
}


@pytest.mark.parametrize("lie", LIES)
def test_arrays_that_lie_about_themselves_are_refused(lie: str, tmp_path: Path) -> None:
    path = write(tmp_path / "bad.npz", changed(poses=None))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("poses.npy", LIES[lie])
    with pytest.raises(ClipError, match="poses") as caught:
        amass.read(path)
    assert str(caught.value).startswith(f"{path}:")


def test_a_bomb_of_zeros_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("poise.io.archive.LARGEST_ARRAY", 2**20)
    path = write(tmp_path / "bad.npz", changed(poses=np.zeros((2000, 156))), packed=True)
    with pytest.raises(ClipError, match="at most 1048576 are read"):
        amass.read(path)


@pytest.mark.parametrize(
    "offsets",
    [
        np.zeros((21, 3)),
        np.zeros((22, 2)),
        np.full((22, 3), np.nan),
        "none.npy",
        [[1, 2], [3]],
        "text",
        np.zeros((22, 3)),
    ],
    ids=["few", "narrow", "NaN", "missing", "ragged", "no file", "a point"],
)
def test_bad_offsets_are_refused(offsets: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "clip.npz", motion())
    with pytest.raises(ClipError):
        amass.read(path, offsets=offsets)


def test_bad_files_of_offsets_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "clip.npz", motion())
    buffer = io.BytesIO()
    np.save(buffer, np.array([[Bomb()]], dtype=object), allow_pickle=True)
    files = {"a.npy": buffer.getvalue(), "b.npy": b"", "c.npz": b"PK", "d.npy": LIES["huge"]}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ClipError, match=name):
            amass.read(path, offsets=tmp_path / name)
