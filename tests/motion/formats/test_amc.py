"""ASF/AMC files: against the BVH of the same takes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from small_files import AMC, ASF

from poise.anatomy.rig import poses_of
from poise.errors import ClipError, PoiseError
from poise.math.rotation import rotate
from poise.motion import load_clip
from poise.motion.formats import amc, bvh

Floats = NDArray[np.float64]

SAME = {
    "root": "Hips",
    "lowerback": "LowerBack",
    "upperback": "Spine",
    "thorax": "Spine1",
    **{
        side[0] + bone: joint.format(side=side.title())
        for side in ("left", "right")
        for bone, joint in {
            "femur": "{side}UpLeg",
            "tibia": "{side}Leg",
            "foot": "{side}Foot",
            "toes": "{side}ToeBase",
        }.items()
    },
}
"""Bones, and the joints of CMU's BVH conversion at their starts."""

ABOVE_THORAX = {
    "lowerneck": "Neck",
    "upperneck": "Neck1",
    "head": "Head",
    "lclavicle": "LeftShoulder",
    "rclavicle": "RightShoulder",
    "lhumerus": "LeftArm",
    "rhumerus": "RightArm",
    "lradius": "LeftForeArm",
    "rradius": "RightForeArm",
    "lwrist": "LeftHand",
    "rwrist": "RightHand",
}


def write_pair(folder: Path, asf: str = ASF, motion: str = AMC) -> Path:
    (folder / "02.asf").write_text(asf)
    (folder / "02_01.amc").write_text(motion)
    return folder / "02_01.amc"


def axis_turn(axis: int, degrees: float) -> Floats:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def xyz(x: float, y: float, z: float) -> Floats:
    return axis_turn(2, z) @ axis_turn(1, y) @ axis_turn(0, x)


@pytest.mark.data
@pytest.mark.parametrize("take", ["02_01", "02_04"])
def test_the_same_take_from_bvh_and_from_amc_is_the_same_motion(
    take: str, data_folder: Path
) -> None:
    a = load_clip(data_folder / "cmu_asfamc" / f"{take}.amc")
    b = load_clip(data_folder / "cmu_bvh" / f"{take}.bvh")
    assert a.source is not None
    assert b.source is not None
    assert len(b) == len(a) + 1  # the BVH has a T-pose before
    pa, Ra = poses_of(a.character, a.source, a.frames)
    pb, _ = poses_of(b.character, b.source, b.frames[1:])
    at = {name: i for i, name in enumerate(a.source.names)}
    bt = {name: i for i, name in enumerate(b.source.names)}
    for bone, joint in SAME.items():
        np.testing.assert_allclose(pa[at[bone]], pb[bt[joint]], atol=1e-3, err_msg=bone)
    # the BVH leaves the bone of the thorax out: what is above hangs lower by just that bone
    bone = a.source.offsets[at["lowerneck"]]
    assert np.linalg.norm(bone) == pytest.approx(2.06807 * 0.0254 / 0.45, abs=1e-4)
    missing = rotate(Ra[at["thorax"]], bone)
    for name, joint in ABOVE_THORAX.items():
        np.testing.assert_allclose(pa[at[name]] - missing, pb[bt[joint]], atol=1e-2, err_msg=name)


def test_bones_turn_about_their_own_axes(tmp_path: Path) -> None:
    clip = amc.read(write_pair(tmp_path))
    assert clip.source is not None
    positions = poses_of(clip.character, clip.source, clip.frames)[0][:, 0]
    unit = 0.0254 / 0.45
    C = xyz(0, 0, 20)
    hip = np.array([1.0, 2.0, 3.0])
    knee = hip + xyz(10, 20, 30) @ C @ xyz(5, 6, 7) @ C.T @ [0.0, -7.5, 0.0]
    expected = np.array([hip, hip, knee])[:, [2, 0, 1]] * unit
    np.testing.assert_allclose(positions, expected, atol=1e-12)
    # the shin is a hinge about its own x axis
    (hinge,) = (j for j in clip.character.joints if j.kind == "hinge")
    np.testing.assert_allclose(hinge.axis, xyz(30, 0, 20)[[2, 0, 1], 0], atol=1e-12)
    np.testing.assert_allclose(
        clip.frames[:, clip.character.q_slice(hinge)][:, 0], np.radians([40.0, 41.0]), atol=1e-12
    )


def test_radians_mean_the_same_motion(tmp_path: Path) -> None:
    first = amc.read(write_pair(tmp_path))
    lines = []
    for line in AMC.replace(":DEGREES", ":RADIANS").splitlines():
        name, *numbers = line.split()
        if name in ("root", "lfemur", "ltibia"):
            keep = 3 if name == "root" else 0
            angles = [repr(float(np.radians(float(x)))) for x in numbers[keep:]]
            line = " ".join([name, *numbers[:keep], *angles])
        lines.append(line)
    second = amc.read(write_pair(tmp_path, motion="\n".join(lines)))
    np.testing.assert_allclose(second.frames, first.frames, atol=1e-12)


def test_the_skeleton_is_found_or_named(tmp_path: Path) -> None:
    path = write_pair(tmp_path)
    (tmp_path / "02.asf").rename(tmp_path / "other.asf")
    assert len(amc.read(path)) == 2
    (tmp_path / "third.asf").write_text(ASF)
    with pytest.raises(ClipError, match=r"02\.asf, beside it"):
        amc.read(path)
    assert amc.read(path, asf=tmp_path / "third.asf", fps=60.0).fps == 60.0


def test_a_motion_from_amc_is_written_as_bvh(tmp_path: Path) -> None:
    clip = amc.read(write_pair(tmp_path))
    clip.save(tmp_path / "out.bvh")
    assert clip.source is not None
    again = bvh.read(tmp_path / "out.bvh", unit=clip.source.unit)
    assert again.source is not None
    assert again.source.names == clip.source.names
    np.testing.assert_allclose(
        poses_of(again.character, again.source, again.frames)[0],
        poses_of(clip.character, clip.source, clip.frames)[0],
        atol=1e-6,
    )


BAD_ASF = {
    "empty": ("", "empty"),
    "no section": ("hello\n", ":1: expected a section"),
    "cut off": (ASF[:300], "missing|no end"),
    "unknown bone": (ASF.replace("lfemur ltibia", "lfemur lshin"), "unknown bone 'lshin'"),
    "two parents": (ASF.replace("lfemur ltibia", "root ltibia lfemur"), "parent already"),
    "lost bone": (ASF.replace("    lfemur ltibia\n", ""), "'ltibia' does not hang"),
    "same bone": (ASF.replace("name ltibia", "name lfemur"), "'lfemur' is there already"),
    "no number": (ASF.replace("length 7.5", "length long"), ":20: length needs 1 numbers"),
    "nan": (ASF.replace("length 7.5", "length nan"), ":20: length needs 1 numbers"),
    "negative": (ASF.replace("length 7.5", "length -1"), "negative"),
    "length 0": (ASF.replace("length 0.45", "length 0"), "positive"),
    "degree of freedom": (ASF.replace("dof rx ry rz", "dof rx rw"), "unknown degree of freedom"),
    "order": (ASF.replace("axis 0 0 20 XYZ", "axis 0 0 20 XXZ"), "such as XYZ"),
}


@pytest.mark.parametrize("name", list(BAD_ASF))
def test_bad_skeletons_are_refused_with_file_and_line(name: str, tmp_path: Path) -> None:
    text, message = BAD_ASF[name]
    with pytest.raises(ClipError, match=message) as error:
        amc.read(write_pair(tmp_path, asf=text))
    assert "02.asf" in str(error.value)


BAD_AMC = {
    "empty": ("", "empty"),
    "no frames": ("# nothing\n:DEGREES\n", "no frames"),
    "no frame number": (AMC.replace("1\nroot 1 ", "root 1 "), ":4: expected the number"),
    "unknown bone": (AMC.replace("ltibia 40", "lshin 40"), ":7: unknown moving bone 'lshin'"),
    "few numbers": (AMC.replace("lfemur 5 6 7", "lfemur 5 6"), ":6: .*3 degrees of freedom"),
    "nan": (AMC.replace("ltibia 40", "ltibia nan"), ":7: .*finite"),
    "twice": (AMC.replace("ltibia 40", "ltibia 40\nltibia 40"), ":8: .*already"),
    "missing bone": (AMC.replace("ltibia 40\n", ""), "frame 1 has no line for bone 'ltibia'"),
    "cut off": (AMC[:-10], "frame 2 has no line for bone 'ltibia'"),
    "missing frame": (AMC.replace("\n2\n", "\n3\n"), "frame 2 should come here, got 3"),
}


@pytest.mark.parametrize("name", list(BAD_AMC))
def test_bad_motions_are_refused_with_file_and_line(name: str, tmp_path: Path) -> None:
    text, message = BAD_AMC[name]
    with pytest.raises(ClipError, match=message) as error:
        amc.read(write_pair(tmp_path, motion=text))
    assert "02_01.amc" in str(error.value)


def test_frames_are_bounded_with_bones_that_do_not_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    motion = "".join(line for line in AMC.splitlines(True) if "ltibia" not in line)
    path = write_pair(tmp_path, ASF.replace("    dof rx\n", ""), motion)
    # two frames of three bones, two of which move
    monkeypatch.setattr(amc, "MOST_POSES", 6)
    assert len(amc.read(path)) == 2
    monkeypatch.setattr(amc, "MOST_POSES", 5)
    with pytest.raises(ClipError, match=r"02_01.amc:7: more than 1 frames"):
        amc.read(path)


def test_what_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    path = write_pair(tmp_path)
    path.write_bytes(AMC.encode().replace(b"lfemur 5 6 7", b"lf\xe9mur 5 6 7"))
    with pytest.raises(ClipError, match=r"02_01.amc:6: is not UTF-8"):
        amc.read(path)


@settings(max_examples=100)
@given(data=st.data())
def test_whatever_is_done_to_the_files_only_our_errors_escape(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    texts = [ASF.encode(), AMC.encode()]
    for _ in range(data.draw(st.integers(1, 3))):
        which = data.draw(st.integers(0, 1))
        text = texts[which]
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 40)))
        junk = data.draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from(
                    [b"", b"begin\n", b"end\n", b" nan ", b"1e300", b"\0", b":", b"1e8"]
                ),
                st.just(text[stop : stop + 50]),
            )
        )
        texts[which] = text[:start] + junk + text[stop:]
    folder = tmp_path_factory.getbasetemp()
    (folder / "fuzz.asf").write_bytes(texts[0])
    (folder / "fuzz.amc").write_bytes(texts[1])
    try:
        clip = amc.read(folder / "fuzz.amc")
    except PoiseError:
        return
    assert np.isfinite(clip.frames).all()
