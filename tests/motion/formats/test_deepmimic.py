"""DeepMimic's characters and clips: against a reader written from the format alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_files import refusal, unreadable_paths, write_hole
from conftest import find_data
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from poise import dynamics
from poise.characters import load_character
from poise.errors import CharacterError, ClipError
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.model.formats import deepmimic as characters
from poise.motion.clip import Clip
from poise.motion.formats import deepmimic

DATA = find_data()
FOLDER = DATA / "deepmimic" if DATA else None
CLIPS = sorted((FOLDER / "motions").glob("*.txt")) if FOLDER else []

needs_data = pytest.mark.skipif(not CLIPS, reason="no data folder: set POISE_DATA")


# a short reader, from the format alone, in the file's own axes


def rotation(w: float, x: float, y: float, z: float) -> Floats:
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return np.array(
        [
            [1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
            [s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)],
            [s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)],
        ]
    )


def about(axis: int, angle: float) -> Floats:
    quat = [np.cos(angle / 2), 0.0, 0.0, 0.0]
    quat[1 + axis] = np.sin(angle / 2)
    return rotation(*quat)


def joint_positions(skeleton: dict[str, Any], frame: list[float]) -> dict[str, Floats]:
    """Positions of all joints by name, z up and x ahead."""
    found: list[tuple[Floats, Floats]] = []
    values = list(frame[8:])
    for joint in skeleton["Skeleton"]["Joints"]:
        if joint["Parent"] < 0:
            found.append((rotation(*frame[4:8]), np.array(frame[1:4])))
            continue
        R, p = found[joint["Parent"]]
        p = p + R @ [joint["AttachX"], joint["AttachY"], joint["AttachZ"]]
        for axis in (2, 1, 0):
            R = R @ about(axis, joint["AttachTheta" + "XYZ"[axis]])
        if joint["Type"] == "spherical":
            R, values = R @ rotation(*values[:4]), values[4:]
        elif joint["Type"] == "revolute":
            R, values = R @ about(2, values[0]), values[1:]
        elif joint["Type"] == "prismatic":
            p, values = p + R @ [values[0], 0.0, 0.0], values[1:]
        found.append((R, p))
    assert not values
    names = [joint["Name"] for joint in skeleton["Skeleton"]["Joints"]]
    return {name: np.array([p[0], -p[2], p[1]]) for name, (_, p) in zip(names, found, strict=True)}


def link_positions(clip: Clip) -> dict[str, Floats]:
    p, _ = dynamics.forward_kinematics(clip.character, clip.frames)
    return {link.name: p[:, i] for i, link in enumerate(clip.character.links)}


def at_equal_steps(skeleton: dict[str, Any], rows: Floats, clip: Clip) -> Floats:
    """Frames of a file at the times of a clip's: numbers in between, rotations by SciPy's slerp."""
    times = np.concatenate([[0.0], np.cumsum(rows[:-1, 0])])
    t = np.minimum(np.arange(len(clip)) / clip.fps, times[-1])
    found = np.stack([np.interp(t, times, column) for column in rows.T], axis=1)
    kinds = [joint["Type"] for joint in skeleton["Skeleton"]["Joints"][1:]]
    sizes = [{"spherical": 4, "fixed": 0}.get(kind, 1) for kind in kinds]
    starts = 8 + np.concatenate([[0], np.cumsum(sizes)])
    for at in (4, *(start for start, size in zip(starts, sizes, strict=False) if size == 4)):
        quat = slice(at, at + 4)
        turns = Slerp(times, Rotation.from_quat(rows[:, quat], scalar_first=True))
        found[:, quat] = turns(t).as_quat(scalar_first=True)
    return found


def assert_same_positions(skeleton: dict[str, Any], frames: Any, clip: Clip) -> None:
    ours = link_positions(clip)
    for i, frame in enumerate(frames):
        for name, p in joint_positions(skeleton, frame).items():
            np.testing.assert_allclose(ours[name][i], p, atol=1e-9)


def skeleton_of(path: Path) -> Path:
    return path.parents[1] / "characters" / f"{path.stem.split('_')[0]}.txt"


# a small character of our own, with every kind of joint and shape


def attach(x: float = 0.0, y: float = 0.0, z: float = 0.0, *theta: float) -> dict[str, float]:
    turned = (*theta, 0.0, 0.0, 0.0)
    angles = {f"AttachTheta{a}": turned[i] for i, a in enumerate("XYZ")}
    return {"AttachX": x, "AttachY": y, "AttachZ": z, **angles}


def small() -> dict[str, Any]:
    joints = [
        ("root", "none", -1, attach(7.0, 8.0, 9.0), {}),
        ("left_hip", "spherical", 0, attach(0.1, -0.2, -0.3, 0.3, -0.5, 0.7), {"TorqueLim": 40}),
        ("tail0", "revolute", 0, attach(-0.2, 0.0, 0.1, 0.0, 0.4), {"LimLow0": -1, "LimHigh0": 2}),
        ("tail1", "fixed", 2, attach(-0.2), {}),
        ("left_knee", "prismatic", 1, attach(0.0, -0.4, 0.0), {"ForceLim": 5}),
    ]
    shapes = [
        ("box", 5.0, [0.2, 0.4, 0.6]),
        ("capsule", 2.0, [0.1, 0.3]),
        ("sphere", 1.0, [0.2]),
        ("cylinder", 0.5, [0.1, 0.2]),
        ("sphere", 0.4, [0.1]),
    ]
    return {
        "Skeleton": {
            "Joints": [
                {"ID": i, "Name": name, "Type": kind, "Parent": parent, **place, **more}
                for i, (name, kind, parent, place, more) in enumerate(joints)
            ]
        },
        "BodyDefs": [
            {
                "ID": i,
                "Name": joints[i][0],
                "Shape": kind,
                "Mass": mass,
                **attach(0.01, 0.02, 0.03),
                **{f"Param{j}": x for j, x in enumerate(params)},
                **{f"Color{c}": 0.5 for c in "RGB"},
            }
            for i, (kind, mass, params) in enumerate(shapes)
        ],
    }


ORDER = ["left_hip", "tail0", "left_knee"]


def frames(count: int = 5) -> list[list[float]]:
    rng = np.random.default_rng(3)
    quats = rng.normal(size=(count, 2, 4))
    quats /= np.linalg.norm(quats, axis=2, keepdims=True)
    rest = rng.normal(size=(count, 5))
    return [
        [0.02, *rest[i, :3], *quats[i, 0], *quats[i, 1], *rest[i, 3:]]
        for i in range(count)  # root, left_hip, tail0, left_knee
    ]


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def small_character() -> Character:
    return characters.parse(json.dumps(small()), "small.txt")


# real files


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("path", CLIPS, ids=lambda path: path.stem)
def test_joints_are_where_the_short_reader_has_them(path: Path) -> None:
    skeleton = json.loads(skeleton_of(path).read_text())
    clip = deepmimic.read(path, characters.load(skeleton_of(path)))
    rows = np.array(json.loads(path.read_text())["Frames"])
    if np.ptp(rows[:-1, 0]) > 0.0:
        assert f"resampled from {len(rows)} to {len(clip)} frames" in " ".join(clip.notes)
        rows = at_equal_steps(skeleton, rows, clip)
    else:
        assert clip.fps == 1.0 / rows[0][0]
        assert clip.notes == ()
    assert len(clip) == len(rows)
    assert_same_positions(skeleton, rows.tolist(), clip)


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("path", CLIPS, ids=lambda path: path.stem)
@pytest.mark.parametrize("own", [False, True], ids=["its character", "our character"])
def test_a_real_clip_written_and_read_is_the_same(path: Path, own: bool, tmp_path: Path) -> None:
    clip = deepmimic.read(path, None if own else characters.load(skeleton_of(path)))
    deepmimic.write(clip, tmp_path / "again.txt")
    again = deepmimic.read(tmp_path / "again.txt", clip.character)
    np.testing.assert_allclose(again.frames, clip.frames, atol=1e-9)
    assert again.fps == pytest.approx(clip.fps, rel=1e-15)


@pytest.mark.data
@needs_data
def test_real_characters_keep_masses_limits_and_efforts() -> None:
    assert FOLDER is not None
    humanoid = characters.load(FOLDER / "characters" / "humanoid3d.txt")
    dog = characters.load(FOLDER / "characters" / "dog3d.txt")
    assert (humanoid.nv, dog.nv) == (34, 64)
    assert (humanoid.mass, dog.mass) == pytest.approx((45.0, 29.25))
    assert humanoid.joint("right_knee").limits == (-3.14, 0.0)
    assert humanoid.joint("chest").effort == 200.0
    assert len(humanoid.limbs["left_arm"]) == 3
    assert dog.joint("neck").limits is None


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("name", ["humanoid3d", "dog3d"])
def test_real_characters_stand_on_the_ground(name: str) -> None:
    assert FOLDER is not None
    character = characters.load(FOLDER / "characters" / f"{name}.txt")
    height = character.rest_q[2]
    assert 0.5 < height < 1.0
    assert character.links[0].pos[:2] == (0.0, 0.0)  # the dog's file has its root at z = 50


@pytest.mark.data
@needs_data
def test_our_humanoid_turns_its_links_as_the_file_does() -> None:
    assert FOLDER is not None
    path = FOLDER / "motions" / "humanoid3d_walk.txt"
    theirs = deepmimic.read(path, characters.load(skeleton_of(path)))
    ours = deepmimic.read(path)
    assert ours.character == load_character("humanoid")
    twins = {"right_knee": "right_shin", "left_elbow": "left_forearm", "left_ankle": "left_foot"}
    (p, R), (P, S) = (dynamics.forward_kinematics(c.character, c.frames) for c in (theirs, ours))
    for name, twin in twins.items():
        i = [link.name for link in theirs.character.links].index(name)
        j = [link.name for link in ours.character.links].index(twin)
        np.testing.assert_allclose(np.abs(np.sum(R[:, i] * S[:, j], axis=1)), 1.0, atol=1e-9)
    hips = [[link.name for link in c.character.links] for c in (theirs, ours)]
    middle = p[:, hips[0].index("left_hip")] + p[:, hips[0].index("right_hip")]
    same = P[:, hips[1].index("left_thigh")] + P[:, hips[1].index("right_thigh")]
    np.testing.assert_allclose(same, middle, atol=1e-9)


@pytest.mark.data
@needs_data
def test_bones_of_our_dog_point_as_those_of_the_file() -> None:
    assert FOLDER is not None
    path = FOLDER / "motions" / "dog3d_trot.txt"
    theirs = link_positions(deepmimic.read(path, characters.load(skeleton_of(path))))
    clip = deepmimic.read(path)
    ours = link_positions(clip)
    assert clip.character == load_character("dog")
    pairs = {
        ("left_upper_leg", "left_leg"): ("hind_left_thigh", "hind_left_shin"),
        ("right_leg", "right_foot"): ("hind_right_shin", "hind_right_metatarsus"),
        ("right_forearm", "right_hand"): ("front_right_forearm", "front_right_paw"),
        ("tail0", "tail1"): ("tail", "tail_tip"),
        ("neck", "head"): ("neck", "head"),
    }
    for (a, b), (c, d) in pairs.items():
        u, v = theirs[b] - theirs[a], ours[d] - ours[c]
        cosine = np.sum(u * v, axis=1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
        np.testing.assert_allclose(cosine, 1.0, atol=1e-9)
    paws = np.stack([ours[f"hind_{side}_paw"][:, 2] for side in ("left", "right")])
    assert 0.0 < paws.min() < 0.1


# files of our own


def test_every_joint_kind_moves_as_the_format_says(tmp_path: Path) -> None:
    path = write_json(tmp_path / "clip.txt", {"Loop": "none", "Frames": frames()})
    clip = deepmimic.read(path, small_character(), order=ORDER)
    assert_same_positions(small(), frames(), clip)
    assert clip.fps == 50.0


def test_the_order_of_a_file_is_told_by_its_character(tmp_path: Path) -> None:
    path = write_json(tmp_path / "small.txt", small())
    assert list(characters.joint_order(path)) == ORDER


def test_shapes_and_joints_of_a_character_are_kept() -> None:
    character = small_character()
    assert character.mass == pytest.approx(8.9)
    assert [joint.kind for joint in character.joints] == ["free", "ball", "slide", "hinge"]
    assert character.joint("left_hip").effort == 40.0
    assert character.joint("left_knee").effort == 5.0
    assert character.joint("tail0").limits == (-1.0, 2.0)
    assert character.link("tail1").joints == ()
    box = character.link("root").shapes[0]
    assert box.size == pytest.approx((0.1, 0.3, 0.2))
    assert box.pos == pytest.approx((0.01, -0.03, 0.02))
    assert character.link("left_hip").shapes[0].size == pytest.approx((0.05, 0.15))


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36", "humanoid-51"])
def test_writing_is_the_inverse_of_reading(name: str, tmp_path: Path) -> None:
    character = load_character(name)
    rng = np.random.default_rng(7)
    q = character.rest_q + 0.2 * rng.normal(size=(12, character.nq))
    for joint in character.joints:
        if joint.kind in ("ball", "free"):
            part = q[:, character.q_slice(joint)][:, -4:]
            part /= np.linalg.norm(part, axis=1, keepdims=True)
    clip = Clip(character, q, 37.0)
    deepmimic.write(clip, tmp_path / "clip.txt")
    again = deepmimic.read(tmp_path / "clip.txt", character)
    np.testing.assert_allclose(again.frames, clip.frames, atol=1e-12)
    assert again.fps == pytest.approx(37.0, rel=1e-15)


def test_frames_of_different_durations_are_put_to_one_rate(tmp_path: Path) -> None:
    character = load_character("humanoid")
    rows = []
    for i, duration in enumerate([0.1, 0.2, 0.1, 0.1, 0.0]):
        time = [0.0, 0.1, 0.3, 0.4, 0.5][i]
        row = [duration, time, 1.0, 0.0, *about_z(3.0 * time)]
        sides = [*[1, 0, 0, 0], 0.0, *[1, 0, 0, 0] * 2, time]
        rows.append([*row, *[1, 0, 0, 0] * 2, *sides, *sides])
    path = write_json(tmp_path / "clip.txt", {"Frames": rows})
    clip = deepmimic.read(path, character)
    assert len(clip) == 6
    assert clip.fps == pytest.approx(10.0)
    t = np.arange(6) / 10.0
    np.testing.assert_allclose(clip.frames[:, 0], t, atol=1e-12)
    # the file turns about its y at a steady 3 rad/s, which is our z
    np.testing.assert_allclose(clip.frames[:, 6], np.sin(1.5 * t), atol=1e-12)
    elbow = clip.frames[:, character.q_slice("left_elbow")][:, 0]
    np.testing.assert_allclose(elbow, t, atol=1e-12)


def about_z(angle: float) -> list[float]:
    """The turn about our z, the file's y."""
    return [float(np.cos(angle / 2)), 0.0, float(np.sin(angle / 2)), 0.0]


def test_one_frame_is_a_clip(tmp_path: Path) -> None:
    path = write_json(tmp_path / "clip.txt", {"Frames": [[0.0, *frames()[0][1:]]]})
    clip = deepmimic.read(path, small_character(), order=ORDER)
    assert (len(clip), clip.fps) == (1, 30.0)


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = tmp_path / "clip.txt"
    text = json.dumps({"Frames": frames()}, indent=1).replace("\n", "\r\n").replace(" ", "\t")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert len(deepmimic.read(path, small_character(), order=ORDER)) == 5


# bad input


def changed(row: int, column: int, value: Any) -> list[list[Any]]:
    rows: list[list[Any]] = frames()
    rows[row][column] = value
    return rows


BAD_CLIPS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "1: is empty"),
    "not JSON": (b'{"Frames":\n [[0.1, 1', "2: is not JSON"),
    "not UTF-8": (b'{\n"Frames": "\xff"}', "2: is not UTF-8"),
    "no frames key": (b"[]", "needs 'Frames'"),
    "no frames": (b'{"Frames": []}', "1: 'Frames' is empty"),
    "NaN": (b'{"Frames":\n[\n[0.1, NaN]]}', "3: NaN is not a number"),
    "deep": (b"[" * 100_000, "nested too deeply|is not JSON"),
    "a key twice": (b'{"Frames": [],\n"Frames": []}', "2: key 'Frames' is there twice"),
    "long number": (b'{"Frames": [[' + b"9" * 5000 + b"]]}", "is not JSON"),
    "null frame": (b'{"Frames": [null]}', "must be a list of numbers"),
    "short frame": (b'{"Frames": [[1, 2]]}', "has 2 columns; duration and root"),
    "text": (json.dumps({"Frames": changed(1, 3, "1")}).encode(), "frame 1 must be a list"),
    "true": (json.dumps({"Frames": changed(1, 3, True)}).encode(), "frame 1 must be a list"),
    "huge": (json.dumps({"Frames": changed(2, 3, 1e300)}).encode(), "frame 2 column 3"),
    "infinite": (b'{"Frames": [[1e999, 1, 1, 1, 1, 1, 1, 1]]}', "frame 0 column 0 is inf"),
    "huge whole": (json.dumps({"Frames": changed(2, 3, 10**400)}).encode(), "too large"),
    "ragged": (
        json.dumps({"Frames": [*frames(), frames()[0][:-1]]}).encode(),
        "frame 5 has 13 columns, the first frame 14",
    ),
    "no time": (json.dumps({"Frames": changed(1, 0, 0.0)}).encode(), "frame 1 lasts 0 s"),
    "back in time": (json.dumps({"Frames": changed(1, 0, -0.1)}).encode(), "frame 1 lasts -0.1 s"),
    "an age": (json.dumps({"Frames": changed(1, 0, 1e5)}).encode(), "frame 1 lasts 100000 s"),
    "a long frame among short ones": (
        json.dumps(
            {"Frames": [[90.0 if i == 1 else 1e-4, *row[1:]] for i, row in enumerate(frames())]}
        ).encode(),
        "frame 1 lasts 90 s, others 0.0001 s: .* at most 384615 are read",
    ),
    "no turn": (
        json.dumps({"Frames": [[0.1, *[0.0] * 13]] * 2}).encode(),
        "quaternion of joint 'root', have length 0",
    ),
}


@pytest.mark.parametrize("case", BAD_CLIPS)
def test_bad_clips_are_refused_with_file_and_reason(case: str, tmp_path: Path) -> None:
    data, reason = BAD_CLIPS[case]
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(ClipError, match=reason) as caught:
        deepmimic.read(path, small_character(), order=ORDER)
    assert str(caught.value).startswith(f"{path}:")


def test_the_line_of_a_bad_frame_is_named(tmp_path: Path) -> None:
    text = json.dumps({"Frames": changed(2, 5, 1e9)}).replace("], [", "],\n[")
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(ClipError, match=r"bad\.txt:3: frame 2 column 5 is 1e\+09"):
        deepmimic.read(path, small_character(), order=ORDER)


def test_a_clip_that_does_not_fit_its_character_says_what_does(tmp_path: Path) -> None:
    path = write_json(tmp_path / "clip.txt", {"Frames": frames()})
    with pytest.raises(ClipError, match="has 14 columns; character 'humanoid' needs 44"):
        deepmimic.read(path, load_character("humanoid"))
    with pytest.raises(ClipError, match="without a character only 44"):
        deepmimic.read(path)
    with pytest.raises(ClipError, match="free root"):
        deepmimic.read(path, load_character("humanoid").with_base("fixed"))
    for order in (["left_hip"], ["tail9", *ORDER[1:]], [ORDER[0], *ORDER[:2]], "abc", [None] * 3):
        with pytest.raises(ClipError, match="order"):
            deepmimic.read(path, small_character(), order=order)  # type: ignore[arg-type]


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    for path in unreadable_paths(tmp_path, ".txt"):
        with pytest.raises(ClipError, match=r"cannot be read|not a file"):
            deepmimic.read(path)
        with pytest.raises(CharacterError, match=r"cannot be read|not a file"):
            characters.load(path)


def test_a_file_of_hundreds_of_megabytes_is_refused_unread(tmp_path: Path) -> None:
    path = write_hole(tmp_path / "large.txt")
    with pytest.raises(ClipError, match="larger than"):
        deepmimic.read(path)
    with pytest.raises(CharacterError, match="larger than"):
        characters.load(path)


def broken(section: str, i: int, key: str, value: Any) -> dict[str, Any]:
    data = small()
    part = data["Skeleton"]["Joints"] if section == "Joints" else data["BodyDefs"]
    if value is None:
        del part[i][key]
    else:
        part[i][key] = value
    return data


BAD_CHARACTERS: dict[str, tuple[Any, str]] = {
    "no skeleton": ({}, "needs 'Skeleton'"),
    "no joints": ({"Skeleton": {"Joints": []}, "BodyDefs": []}, "needs 1 to"),
    "too few bodies": ({**small(), "BodyDefs": []}, "5 joints, 0 bodies"),
    "a list": ([], "needs 'Skeleton'"),
    "a number for a joint": (
        {"Skeleton": {"Joints": [1]}, "BodyDefs": [1]},
        "must be an object, got 1",
    ),
    "twice": (broken("Joints", 2, "Name", "left_hip"), "two joints are named 'left_hip'"),
    "nameless": (broken("Joints", 2, "Name", None), "Name must be"),
    "unknown type": (broken("Joints", 1, "Type", "sphercal"), "did you mean 'spherical'"),
    "planar": (broken("Joints", 1, "Type", "planar"), "unknown Type"),
    "forward parent": (broken("Joints", 1, "Parent", 3), "ID of a joint before it"),
    "own parent": (broken("Joints", 1, "Parent", 1), "ID of a joint before it"),
    "second root": (broken("Joints", 1, "Parent", -1), "only the first joint is a root"),
    "free inside": (broken("Joints", 1, "Type", "none"), "Type of the root"),
    "bad ID": (broken("BodyDefs", 1, "ID", 7), "ID must be 1"),
    "text": (broken("Joints", 1, "AttachX", "0.1"), "AttachX must be a number"),
    "infinite": (broken("Joints", 1, "AttachX", 1e308), "AttachX must be finite"),
    "negative mass": (broken("BodyDefs", 1, "Mass", -1), "Mass must be at least 0"),
    "no mass": (broken("BodyDefs", 1, "Mass", 0), "no mass"),
    "no size": (broken("BodyDefs", 1, "Param0", None), "Param0 must be a number"),
    "flat": (broken("BodyDefs", 0, "Param1", 0), "size must be positive"),
    "unknown shape": (broken("BodyDefs", 0, "Shape", "cone"), "unknown Shape 'cone'"),
    "negative effort": (broken("Joints", 1, "TorqueLim", -5), "TorqueLim must be at least 0"),
}


@pytest.mark.parametrize("case", BAD_CHARACTERS)
def test_bad_characters_are_refused_with_file_and_reason(case: str, tmp_path: Path) -> None:
    data, reason = BAD_CHARACTERS[case]
    path = write_json(tmp_path / "bad.txt", data)
    with pytest.raises(CharacterError, match=reason) as caught:
        characters.load(path)
    assert str(caught.value).startswith(f"{path}:")


def test_the_line_of_a_bad_joint_is_named() -> None:
    text = json.dumps(broken("Joints", 2, "AttachY", "up")).replace("}, {", "},\n{")
    with pytest.raises(CharacterError, match=r"^bad:3: joint 'tail0': AttachY"):
        characters.parse(text, "bad")


TEXT = json.dumps({"Frames": frames(3)}).encode()
CHARACTER = json.dumps(small()).encode()
PUTS = st.binary(max_size=8) | st.sampled_from(
    [b"null", b"1e999", b"-", b"[", b"[]", b"{}", b'"x"', b"NaN", b"true", b"0", b"-1"]
)


@given(st.sampled_from([TEXT, CHARACTER]), st.integers(0, 10_000), st.integers(0, 60), PUTS)
def test_no_other_error_escapes_from_characters(data: bytes, at: int, cut: int, put: bytes) -> None:
    at %= len(data)
    text = (data[:at] + put + data[at + cut :]).decode("latin-1")
    said = refusal(lambda: characters.parse(text, "fuzz.txt"))
    assert said is None or said.startswith("fuzz.txt:")


@given(st.integers(0, 10_000), st.integers(0, 60), PUTS)
def test_no_other_error_escapes_from_clips(
    tmp_path_factory: pytest.TempPathFactory, at: int, cut: int, put: bytes
) -> None:
    at %= len(TEXT)
    path = tmp_path_factory.getbasetemp() / "fuzz.txt"
    path.write_bytes(TEXT[:at] + put + TEXT[at + cut :])
    said = refusal(lambda: deepmimic.read(path, small_character(), order=ORDER))
    assert said is None or said.startswith(f"{path}:")
