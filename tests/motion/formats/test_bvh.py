"""BVH files, read and written: against pybvh, and a short reader written from the format alone."""

from __future__ import annotations

import itertools
import re
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from bad_files import unreadable_paths, write_hole
from conftest import find_data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import poise
from poise.anatomy.rig import poses_of
from poise.errors import ClipError, PoiseError
from poise.motion import Clip
from poise.motion.formats import bvh

Floats = NDArray[np.float64]

DATA = find_data()
FILES = [] if DATA is None else sorted((*DATA.glob("cmu_bvh/*.bvh"), *DATA.glob("mass/*/*.bvh")))
real_files = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def positions(clip: Clip) -> Floats:
    """Positions (frames, joints, 3) of all joints of the file, in the world [m]."""
    assert clip.source is not None
    found: Floats = poses_of(clip.character, clip.source, clip.frames)[0].swapaxes(0, 1)
    return found


def read_plainly(text: str) -> tuple[list[str], Floats]:
    """Names, and positions (frames, joints, 3) in file units and axes: the format, nothing more."""
    head, motion = text.split("MOTION")
    words = head.split()
    names: list[str] = []
    parents: list[int] = []
    stack: list[int] = []
    offsets: list[list[float]] = []
    channels: list[list[str]] = []
    for i, word in enumerate(words):
        if word in ("ROOT", "JOINT"):
            parents.append(stack[-1] if stack else -1)
            names.append(words[i + 1])
            channels.append([])
        elif word == "{":
            stack.append(len(names) - 1)
        elif word == "}":
            stack.pop()
        elif word == "OFFSET" and len(offsets) < len(names):
            offsets.append([float(x) for x in words[i + 1 : i + 4]])
        elif word == "CHANNELS":
            channels[-1] = words[i + 2 : i + 2 + int(words[i + 1])]
    numbers = motion.split("Time:")[1].split()[1:]
    rows = np.array(numbers, dtype=float).reshape(-1, sum(len(c) for c in channels))
    out = np.zeros((len(rows), len(names), 3))
    for k, row in enumerate(rows):
        values = iter(row)
        turned: list[Floats] = []
        for j, parent in enumerate(parents):
            offset, R = np.array(offsets[j]), np.eye(3)
            for channel in channels[j]:
                axis, value = "XYZ".index(channel[0]), next(values)
                if "position" in channel:
                    offset[axis] = value
                else:
                    R = R @ axis_turn(axis, np.radians(value))
            base = np.eye(3) if parent < 0 else turned[parent]
            out[k, j] = (0 if parent < 0 else out[k, parent]) + base @ offset
            turned.append(base @ R)
    return names, out


def axis_turn(axis: int, angle: float) -> Floats:
    c, s = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def file(
    root: str = "Xposition Yposition Zposition Zrotation Xrotation Yrotation",
    joint: str = "Zrotation Xrotation Yrotation",
    frames: int = 7,
    time_: str = "0.0333333",
) -> str:
    """A little person of 160 units who moves at random."""

    def channels(names: str) -> str:
        return f"CHANNELS {len(names.split())} {names}"

    def chain(*bones: tuple[str, str]) -> str:
        name, offset = bones[0]
        rest = chain(*bones[1:]) if len(bones) > 1 else "End Site\n{\nOFFSET 0 -6 9\n}\n"
        return f"JOINT {name}\n{{\nOFFSET {offset}\n{channels(joint)}\n{rest}}}\n"

    leg = ("Hip", "10 -8 0"), ("Knee", "1 -40 2"), ("Ankle", "0 -41 -1")
    legs = [
        chain(*((side + name, sign + offset) for name, offset in leg))
        for side, sign in (("Left", ""), ("Right", "-"))
    ]
    spine = chain(("Chest", "0 20 -1"), ("Neck", "1 30 0"), ("Head", "0 15 3"))
    head = f"HIERARCHY\nROOT Hips\n{{\nOFFSET 0 0 0\n{channels(root)}\n{''.join(legs)}{spine}}}\n"
    rng = np.random.default_rng(4)
    width = len(root.split()) + 9 * len(joint.split())
    rows = rng.uniform(-170, 170, (frames, width))
    # joints below the root stay at their offsets
    if "position" in joint:
        offsets = re.findall(r"OFFSET (.*)\nCHANNELS", head)[1:]
        for k, offset in enumerate(offsets):
            at = len(root.split()) + k * len(joint.split())
            rows[:, at : at + 3] = [float(x) for x in offset.split()]
    lines = "\n".join(" ".join(f"{x:.4f}" for x in row) for row in rows)
    return f"{head}MOTION\nFrames: {frames}\nFrame Time: {time_}\n{lines}\n"


def read_text(tmp_path: Path, text: str | bytes, **options: object) -> Clip:
    path = tmp_path / "take.bvh"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    clip: Clip = bvh.read(path, **options)  # type: ignore[arg-type]
    return clip


def check_against_plain(clip: Clip, text: str) -> None:
    assert clip.source is not None
    names, expected = read_plainly(text)
    assert list(clip.source.names) == names
    np.testing.assert_allclose(positions(clip), clip.source.vectors(expected), atol=1e-9)


# real files


@pytest.mark.data
@real_files
def test_joint_positions_equal_those_of_two_other_readers(path: Path) -> None:
    pybvh = pytest.importorskip("pybvh")
    clip = bvh.read(path)
    assert clip.source is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = pybvh.read_bvh_file(str(path)).joint_positions()
    np.testing.assert_allclose(positions(clip), clip.source.vectors(other), atol=1e-6)
    every = slice(None, None, 50)
    text = path.read_text()
    head, rows = text.split("Frame Time:")[0], text.split("Frame Time:")[1].strip().splitlines()
    _, plain = read_plainly("\n".join([head + "Frame Time: 1", *rows[1:][every]]))
    np.testing.assert_allclose(positions(clip)[every], clip.source.vectors(plain), atol=1e-6)


@pytest.mark.data
@real_files
def test_a_file_that_is_written_again_is_the_same_motion(path: Path, tmp_path: Path) -> None:
    clip = bvh.read(path)
    clip.save(tmp_path / "again.bvh")
    again = bvh.read(tmp_path / "again.bvh")
    assert clip.source is not None
    assert again.source is not None
    assert again.fps == clip.fps
    assert again.fps == 120.0
    assert len(again) == len(clip)
    np.testing.assert_allclose(positions(again), positions(clip), atol=1e-5)
    # the same names, order, offsets and channels, so that it overlays the source in Blender
    assert again.source.names == clip.source.names
    for a, b in zip(again.source.joints, clip.source.joints, strict=True):
        assert (a.parent, a.channels) == (b.parent, b.channels)
        np.testing.assert_allclose(a.offset, b.offset, atol=1e-9 * (1 + np.abs(b.offset).max()))


@pytest.mark.data
@real_files
def test_the_unit_brings_a_person_to_human_size(path: Path) -> None:
    clip = bvh.read(path)
    assert clip.source is not None
    expected = 0.0254 / 0.45 if "cmu" in str(path) else 0.01
    assert clip.source.unit == pytest.approx(expected)
    assert clip.source.up == "y"
    assert 40.0 < clip.character.mass < 90.0


@pytest.mark.data
def test_the_hips_are_above_the_feet_in_the_first_frame(data_folder: Path) -> None:
    clip = bvh.read(data_folder / "cmu_bvh" / "02_01.bvh")
    assert clip.source is not None
    where = dict(zip(clip.source.names, positions(clip)[0], strict=True))
    assert where["Hips"][2] > where["LeftFoot"][2] + 0.7
    # the left is at +y of someone who looks along +x
    assert where["LeftArm"][1] > where["RightArm"][1]
    assert where["LeftToeBase"][0] > where["LeftFoot"][0]


def test_45_seconds_at_120_frames_load_in_time(tmp_path: Path) -> None:
    text = file(frames=7)
    rows = text.split("0.0333333\n")[1].splitlines()
    head = text.split("MOTION")[0]
    # as many channels as CMU has: 96
    extra = "".join(
        f"JOINT X{i}\n{{\nOFFSET 1 2 3\nCHANNELS 3 Zrotation Yrotation Xrotation\n"
        "End Site\n{\nOFFSET 0 5 0\n}\n}\n"
        for i in range(21)
    )
    head = head.rstrip()[:-1] + extra + "}\n"
    line = rows[0] + " 1.2345" * 63
    lines = "\n".join([line] * 5400)
    path = tmp_path / "long.bvh"
    path.write_text(f"{head}MOTION\nFrames: 5400\nFrame Time: .0083333\n{lines}\n")
    start = time.process_time()
    clip = bvh.read(path)
    took = time.process_time() - start
    assert clip.duration == pytest.approx(5399 / 120)
    assert took < 1.5


# dialects


@pytest.mark.parametrize("order", list(itertools.permutations("XYZ")), ids="".join)
def test_any_order_of_rotations_is_read_and_written(order: tuple[str, ...], tmp_path: Path) -> None:
    turns = " ".join(f"{axis}rotation" for axis in order)
    text = file(f"Xposition Yposition Zposition {turns}", turns)
    clip = read_text(tmp_path, text)
    check_against_plain(clip, text)
    clip.save(tmp_path / "again.bvh")
    np.testing.assert_allclose(
        positions(bvh.read(tmp_path / "again.bvh")), positions(clip), atol=1e-6
    )


@pytest.mark.parametrize(
    ("root", "joint"),
    [
        ("Zrotation Xrotation Yrotation Zposition Yposition Xposition", "Yrotation Zrotation"),
        ("Yposition Yrotation", "Xrotation"),
        (
            "Xposition Yposition Zposition Zrotation Xrotation Yrotation",
            "Xposition Yposition Zposition Zrotation Xrotation Yrotation",
        ),
    ],
)
def test_joints_with_few_or_six_channels(root: str, joint: str, tmp_path: Path) -> None:
    text = file(root, joint)
    clip = read_text(tmp_path, text)
    check_against_plain(clip, text)
    kinds = {j.kind for j in clip.character.joints}
    assert "slide" not in kinds
    clip.save(tmp_path / "again.bvh")
    np.testing.assert_allclose(
        positions(bvh.read(tmp_path / "again.bvh")), positions(clip), atol=1e-6
    )


def test_joints_that_slide_in_their_parents_keep_their_places(tmp_path: Path) -> None:
    text = file(joint="Xposition Yposition Zposition Zrotation Xrotation Yrotation")
    head, rows = text.split("Frame Time: 0.0333333\n")
    table = np.array(rows.split(), dtype=float).reshape(7, -1)
    table[:, 6:9] += np.random.default_rng(1).uniform(-5, 5, (7, 3))
    rows = "\n".join(" ".join(f"{x:.4f}" for x in row) for row in table)
    text = f"{head}Frame Time: 0.0333333\n{rows}\n"
    clip = read_text(tmp_path, text)
    check_against_plain(clip, text)
    assert sum(joint.kind == "slide" for joint in clip.character.joints) == 3


def extra_root(text: str, joint: str) -> str:
    """The same file below one more joint that stays where it is."""
    head, rest = text.split("MOTION")
    head = head.replace("HIERARCHY\nROOT Hips", "JOINT Hips")
    head = f"HIERARCHY\nROOT World\n{{\nOFFSET 0 0 0\nCHANNELS 6 {joint}\n{head}}}\n"
    first, rows = rest.split("0.0333333\n")
    rows = "\n".join("0 0 0 0 0 0 " + row for row in rows.splitlines())
    return f"{head}MOTION{first}0.0333333\n{rows}\n"


def test_an_extra_root_is_not_part_of_the_character(tmp_path: Path) -> None:
    text = extra_root(file(), "Xposition Yposition Zposition Zrotation Xrotation Yrotation")
    clip = read_text(tmp_path, text)
    assert clip.character.links[0].name == "Hips"
    assert clip.character.joints[0].kind == "free"
    check_against_plain(clip, text)
    clip.save(tmp_path / "again.bvh")
    np.testing.assert_allclose(
        positions(bvh.read(tmp_path / "again.bvh")), positions(clip), atol=1e-6
    )


def variants(text: str) -> dict[str, bytes]:
    return {
        "windows": text.replace("\n", "\r\n").encode(),
        "old mac": text.replace("\n", "\r").encode(),
        "tabs": text.replace(" ", "\t").replace("End\tSite", "End Site").encode(),
        "no last line end": text.rstrip().encode(),
        "blank lines": text.replace("\n", "\n\n").encode(),
        "byte order mark": b"\xef\xbb\xbf" + text.encode(),
        "braces on the line": text.replace("\n{", " {").encode(),
        "lower case": text.replace("CHANNELS", "Channels").replace("MOTION", "Motion").encode(),
        "no colon": text.replace("Frames:", "Frames").encode(),
    }


@pytest.mark.parametrize("name", list(variants("")))
def test_ways_to_write_the_same_file(name: str, tmp_path: Path) -> None:
    expected = positions(read_text(tmp_path, file()))
    clip = read_text(tmp_path, variants(file())[name].replace(b"Frame\tTime", b"Frame Time"))
    np.testing.assert_array_equal(positions(clip), expected)


def test_a_name_may_have_spaces(tmp_path: Path) -> None:
    clip = read_text(tmp_path, file().replace("LeftKnee", "Left Knee of Ann"))
    assert clip.character.link("Left Knee of Ann").parent == "LeftHip"


def test_z_up_is_seen_where_the_feet_are(tmp_path: Path) -> None:
    text = re.sub(r"OFFSET (\S+) (\S+) (\S+)", r"OFFSET \1 \3 \2", file())
    clip = read_text(tmp_path, text)
    assert clip.source is not None
    assert clip.source.up == "z"
    check_against_plain(clip, text)
    assert bvh.read(tmp_path / "take.bvh", up="y").source.up == "y"  # type: ignore[union-attr]


@pytest.mark.parametrize("unit", [1.0, 0.01, 0.0254, 0.0254 / 0.45, 0.001])
def test_the_unit_is_found_and_can_be_given(unit: float, tmp_path: Path) -> None:
    def scaled(match: re.Match[str]) -> str:
        return "OFFSET " + " ".join(repr(float(x) * 0.01 / unit) for x in match[1].split())

    text = re.sub(r"OFFSET (.*)", scaled, file())
    clip = read_text(tmp_path, text)
    assert clip.source is not None
    assert clip.source.unit == pytest.approx(unit)
    given_unit = read_text(tmp_path, text, unit=0.5).source
    assert given_unit is not None
    assert given_unit.unit == 0.5


@pytest.mark.parametrize(
    ("printed", "fps"),
    [
        (".0083333", 120.0),
        ("0.00833333", 120.0),
        ("0.0333333", 30.0),
        ("0.0167", 60.0),
        ("0.04", 25.0),
        ("0.0417083", 1 / 0.0417083),
        ("0.03", 1 / 0.03),
        ("1e-2", 100.0),
    ],
)
def test_frame_times_are_read_as_they_were_meant(printed: str, fps: float, tmp_path: Path) -> None:
    clip = read_text(tmp_path, file(time_=printed))
    assert clip.fps == pytest.approx(fps, rel=1e-12)
    clip.save(tmp_path / "again.bvh")
    assert bvh.read(tmp_path / "again.bvh").fps == pytest.approx(fps, rel=1e-10)


def test_a_clip_goes_onto_a_character_with_the_same_names(tmp_path: Path) -> None:
    first = read_text(tmp_path, file())
    clip = read_text(tmp_path, file(), character=first.character)
    assert clip.character is first.character
    with pytest.raises(ClipError, match="links that the file does not move"):
        read_text(tmp_path, file(), character=poise.load_character("humanoid"))


# writing without a source


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36", "two-link"])
def test_a_clip_without_a_file_is_written_from_its_character(name: str, tmp_path: Path) -> None:
    character = poise.load_character(name)
    rng = np.random.default_rng(2)
    q = np.tile(character.rest_q, (5, 1))
    for joint in character.joints:
        at = character.q_slice(joint)
        if joint.kind in ("ball", "free"):
            quat = rng.normal(size=(5, 4))
            q[:, at.stop - 4 : at.stop] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
        else:
            q[:, at] = rng.uniform(-1, 1, (5, 1))
    clip = Clip(character, q, 50.0)
    clip.save(tmp_path / "made.bvh")
    _, plain = read_plainly((tmp_path / "made.bvh").read_text())
    # centimetres and y up: x forward of the world is z of the file
    expected = poise.dynamics.forward_kinematics(character, clip.frames)[0]
    np.testing.assert_allclose(plain[..., [2, 0, 1]] * 0.01, expected, atol=1e-5)


def test_angles_survive_the_pole(tmp_path: Path) -> None:
    text = file(frames=2).split("0.0333333\n")[0]
    rows = "0 0 0 10 90 20 " + "30 -90 40 " * 9
    clip = read_text(tmp_path, f"{text}0.0333333\n{rows}\n{rows}\n")
    clip.save(tmp_path / "again.bvh")
    np.testing.assert_allclose(
        positions(bvh.read(tmp_path / "again.bvh")), positions(clip), atol=1e-6
    )


def test_nothing_is_left_behind_where_it_cannot_write(tmp_path: Path) -> None:
    clip = read_text(tmp_path, file())
    with pytest.raises(PoiseError, match="cannot be written"):
        bvh.write(clip, tmp_path / "missing" / "out.bvh")
    assert [p.name for p in tmp_path.iterdir()] == ["take.bvh"]


# bad input

GOOD = file()
LINES = GOOD.splitlines()
FIRST_FRAME = LINES.index("Frame Time: 0.0333333") + 2  # as editors count

BAD = {
    "no bytes": ("", "empty"),
    "blank": (" \n\t\n", "empty"),
    "not a BVH": ("hello\nworld\n", "MOTION"),
    "no hierarchy": (GOOD.replace("HIERARCHY", "HELLO"), ":1: .*HIERARCHY"),
    "cut in the hierarchy": (GOOD[:300], "MOTION"),
    "open brace": (GOOD.replace("}\nMOTION", "MOTION"), "brace"),
    "no root": ("HIERARCHY\nMOTION\nFrames: 1\nFrame Time: 1\n0\n", "ROOT"),
    "two roots": (GOOD.replace("MOTION", "ROOT B\n{\nOFFSET 0 0 0\n}\nMOTION"), "second ROOT"),
    "same name": (
        GOOD.replace("RightKnee", "LeftKnee"),
        r"'LeftKnee' is there already, in line 10",
    ),
    "no offset": (GOOD.replace("OFFSET 1 -40 2\n", ""), "no OFFSET"),
    "short offset": (GOOD.replace("OFFSET 1 -40 2", "OFFSET 1 -40"), "three numbers"),
    "wild offset": (GOOD.replace("OFFSET 1 -40 2", "OFFSET 1 nan 2"), ":12: .*three numbers"),
    "wrong count": (GOOD.replace("CHANNELS 3", "CHANNELS 4", 1), "4 channels"),
    "count is a word": (GOOD.replace("CHANNELS 3", "CHANNELS x", 1), "0 to 6"),
    "unknown channel": (GOOD.replace("3 Zrotation", "3 Wrotation", 1), "Xposition, Yposition"),
    "channel twice": (GOOD.replace("Zrotation Xrot", "Zrotation Zrot", 1), "twice"),
    "no frames line": (GOOD.replace("Frames: 7\n", ""), "Frames: n"),
    "frames below one": (GOOD.replace("Frames: 7", "Frames: 0"), "positive"),
    "frames no number": (GOOD.replace("Frames: 7", "Frames: many"), "positive"),
    "too few frames": (GOOD.replace("Frames: 7", "Frames: 8"), "says Frames: 8, but holds 7"),
    "too many frames": (
        GOOD.replace("Frames: 7", "Frames: 6"),
        f":{FIRST_FRAME + 6}: .*says Frames: 6",
    ),
    "absurdly many frames": (GOOD.replace("Frames: 7", "Frames: 99999999999"), "too many"),
    "frames beyond belief": (GOOD.replace("Frames: 7", "Frames: 1000000000000"), "0 .*too many"),
    "frames of many digits": (GOOD.replace("Frames: 7", f"Frames: {'9' * 500}"), "500 digits"),
    "frame time zero": (GOOD.replace("0.0333333", "0"), "Frame Time"),
    "frame time negative": (GOOD.replace("0.0333333", "-0.01"), "Frame Time"),
    "frame time nan": (GOOD.replace("0.0333333", "nan"), "Frame Time"),
    "frame time absurd": (GOOD.replace("0.0333333", "1e9"), "Frame Time"),
    "a number missing": (
        "\n".join([*LINES[:FIRST_FRAME], LINES[FIRST_FRAME].rsplit(" ", 1)[0], *LINES[-5:]]),
        f":{FIRST_FRAME + 1}: .*33 numbers.*has 32",
    ),
    "a number too many": (
        "\n".join([*LINES[:-1], LINES[-1] + " 5"]),
        f":{FIRST_FRAME + 6}: .*has 34",
    ),
    "cut in a frame": (GOOD[:-40], f":{FIRST_FRAME + 6}:"),
    "nan in a frame": (
        "\n".join([*LINES[:-1], LINES[-1].rsplit(" ", 1)[0] + " nan"]),
        f":{FIRST_FRAME + 6}: channel 33 .*'nan'",
    ),
    "inf in a frame": ("\n".join([*LINES[:-1], LINES[-1].rsplit(" ", 1)[0] + " inf"]), "'inf'"),
    "word in a frame": ("\n".join([*LINES[:-1], LINES[-1].rsplit(" ", 1)[0] + " 1.2.3"]), "1.2.3"),
    "digits that are not plain": (
        "\n".join([*LINES[:-1], LINES[-1].rsplit(" ", 2)[0] + " 1_0 2"]),
        f":{FIRST_FRAME + 6}: channel 32 .*'1_0'",
    ),
    "no channels": (re.sub(r"CHANNELS .*", "CHANNELS 0", GOOD), "nothing moves"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_files_are_refused_with_file_and_line(name: str, tmp_path: Path) -> None:
    text, message = BAD[name]
    with pytest.raises(ClipError, match=message) as error:
        read_text(tmp_path, text)
    assert "take.bvh" in str(error.value)


def test_a_turn_is_kept_where_still_joints_follow_in_the_same_place(tmp_path: Path) -> None:
    turns = "CHANNELS 3 Zrotation Xrotation Yrotation\n"
    still = "".join(f"JOINT still{i}\n{{\nOFFSET 0 0 0\n{turns}" for i in range(2))
    text = (
        f"HIERARCHY\nROOT hips\n{{\nOFFSET 0 0 0\nCHANNELS 6 Xposition Yposition Zposition "
        f"Zrotation Xrotation Yrotation\nJOINT spine\n{{\nOFFSET 0 10 0\n{turns}{still}"
        f"JOINT chest\n{{\nOFFSET 0 50 0\n{turns}End Site\n{{\nOFFSET 0 40 0\n}}\n{'}' * 5}\n"
        "MOTION\nFrames: 2\nFrame Time: 0.1\n"
    )
    rows = [[0.0] * 18, [0.0] * 6 + [30.0, 40.0, 50.0] + [0.0] * 9]
    text += "".join(" ".join(map(str, row)) + "\n" for row in rows)
    clip = read_text(tmp_path, text, unit=0.01, up="y")
    found = positions(clip) / 0.01
    expected = read_plainly(text)[1][..., [2, 0, 1]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_what_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    data = GOOD.encode().replace(b"LeftKnee", b"Left\xe9Knee")
    with pytest.raises(ClipError, match=r"take.bvh:10: is not UTF-8 text \(byte 0xe9\)"):
        read_text(tmp_path, data)
    with pytest.raises(ClipError, match=r"take.bvh:1: is UTF-16, .*save it as UTF-8"):
        read_text(tmp_path, GOOD.encode("utf-16"))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = write_hole(tmp_path / "huge.bvh", 3 * 2**30)
    start = time.process_time()
    with pytest.raises(ClipError, match="larger than"):
        bvh.read(path)
    assert time.process_time() - start < 1.0


def test_frames_of_all_joints_are_bounded(tmp_path: Path) -> None:
    # 10 joints: 400,000 frames are read, which the file then does not hold
    for frames, message in (("400000", "but holds 7"), ("400001", "too many; 400000 are read")):
        with pytest.raises(ClipError, match=message):
            read_text(tmp_path, GOOD.replace("Frames: 7", f"Frames: {frames}"))


def test_a_missing_file_and_wrong_options_are_named(tmp_path: Path) -> None:
    for path in unreadable_paths(tmp_path, ".bvh"):
        with pytest.raises(ClipError, match=r"cannot be read|not a file"):
            bvh.read(path)
    for options in ({"unit": 0.0}, {"unit": float("nan")}, {"unit": 1e300}, {"up": "x"}):
        with pytest.raises(ClipError, match="must be"):
            read_text(tmp_path, GOOD, **options)


def test_too_many_joints_end_in_an_error(tmp_path: Path) -> None:
    deep = "".join(f"JOINT j{i}\n{{\nOFFSET 0 1 0\nCHANNELS 0\n" for i in range(3000))
    text = (
        f"HIERARCHY\nROOT r\n{{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n{deep}{'}' * 3001}\nMOTION\n"
    )
    with pytest.raises(ClipError, match="more than 1000 joints"):
        read_text(tmp_path, text + "Frames: 1\nFrame Time: 0.1\n0\n")


@settings(max_examples=150)
@given(data=st.data())
def test_whatever_is_done_to_a_file_only_our_errors_escape(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    good = file(frames=2).encode()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(good)))
        stop = data.draw(st.integers(start, min(len(good), start + 60)))
        junk = data.draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from(
                    [
                        b"",
                        b"{",
                        b"}",
                        b" nan ",
                        b"1e300",
                        b"-0",
                        b"\0",
                        b"JOINT a\n{\n",
                        b"MOTION\n",
                    ]
                ),
                st.just(good[stop : stop + 50]),
            )
        )
        good = good[:start] + junk + good[stop:]
    path = tmp_path_factory.getbasetemp() / "fuzz.bvh"
    path.write_bytes(good)
    try:
        clip = bvh.read(path)
    except PoiseError:
        return
    assert np.isfinite(clip.frames).all()


@pytest.mark.parametrize("name", ["dog", "lamp", "two-link", "tail-biped", "snake-36"])
def test_what_is_no_person_comes_back_in_its_own_size(name: str, tmp_path: Path) -> None:
    character = poise.load_character(name)
    poise.Clip(character, np.tile(character.rest_q, (4, 1)), 30.0).save(tmp_path / "a.bvh")
    rig = poise.load_clip(tmp_path / "a.bvh").source
    # 60 units from paws to head are centimetres of a dog, not inches of a person
    assert rig is not None
    assert rig.unit == 0.01


def test_a_unit_scales_the_character_of_a_skeleton(tmp_path: Path) -> None:
    path = tmp_path / "take.bvh"
    path.write_text(file())
    guessed, given_unit = poise.load_character(path), poise.load_character(path, unit=0.02)
    ratio = np.linalg.norm(given_unit.links[2].pos) / np.linalg.norm(guessed.links[2].pos)
    assert ratio == pytest.approx(2.0)
