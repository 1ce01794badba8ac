"""GLB files: what goes out comes back, what others write is read, and bad files are refused."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from trees import random_character

from poise.characters import load_character
from poise.dynamics import forward_kinematics
from poise.errors import ClipError, PoiseError
from poise.model.character import Character, Shape
from poise.model.geometry import triangles
from poise.motion.clip import Clip
from poise.motion.formats import glb
from poise.motion.formats.glb_file import GlbFile
from poise.motion.formats.glb_skeleton import Motion

TO_WORLD = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""glTF has y up and looks along z, poise has z up and looks along x."""


def waving(character: Character, frames: int = 40, fps: float = 60.0, seed: int = 0) -> Clip:
    """A clip in which every joint moves."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames) / fps
    q = np.tile(character.rest_q, (frames, 1))
    for joint in character.joints:
        at = character.q_slice(joint)
        if joint.kind in ("hinge", "slide"):
            q[:, at.start] = rng.uniform(0.1, 0.5) * np.sin(5.0 * t + rng.uniform(0.0, 6.0))
            continue
        if joint.kind == "free":
            q[:, at.start] += t
            at = slice(at.start + 3, at.stop)
        # more than a full turn: signs of quaternions must not jump
        turn = Rotation.from_rotvec(np.outer(8.0 * t, _unit(rng.normal(size=3))))
        q[:, at] = turn.as_quat()[:, [3, 0, 1, 2]]
    return Clip(character, q, fps, name="wave")


def _unit(x: Any) -> Any:
    return x / np.linalg.norm(x)


def positions(clip: Clip) -> dict[str, Any]:
    """Paths of the link origins by name, each of shape (frames, 3)."""
    p, _ = forward_kinematics(clip.character, clip.frames)
    return {link.name: p[:, i] for i, link in enumerate(clip.character.links)}


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON and the binary data of a GLB."""
    size = struct.unpack("<I", data[12:16])[0]
    return json.loads(data[20 : 20 + size]), data[28 + size :]


def pack(found: Any, binary: bytes = b"") -> bytes:
    """A GLB of JSON (or its text) and binary data."""
    text = found if isinstance(found, bytes) else json.dumps(found).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<2I", len(text), 0x4E4F534A) + text
    if binary:
        binary += bytes(-len(binary) % 4)
        body += struct.pack("<2I", len(binary), 0x004E4942) + binary
    return struct.pack("<3I", 0x46546C67, 2, 12 + len(body)) + body


# out and back


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36", "two-link"])
def test_a_clip_comes_back_as_it_went(name: str, tmp_path: Path) -> None:
    clip = waving(load_character(name))
    glb.write(clip, tmp_path / "a.glb")
    back = glb.read(tmp_path / "a.glb")
    assert back.character == clip.character
    assert (back.fps, back.name, len(back)) == (clip.fps, "wave", len(clip))
    # 32-bit floats: seven digits
    np.testing.assert_allclose(back.frames, clip.frames, atol=1e-6)


@pytest.mark.parametrize("name", ["humanoid", "dog", "two-link"])
def test_the_skeleton_alone_shows_the_same_motion(name: str, tmp_path: Path) -> None:
    clip = waving(load_character(name))
    glb.write(clip, tmp_path / "a.glb")
    found, binary = parts((tmp_path / "a.glb").read_bytes())
    del found["asset"]["extras"]
    (tmp_path / "b.glb").write_bytes(pack(found, binary))
    back = glb.read(tmp_path / "b.glb")
    assert back.source is not None
    assert back.source.kind == "glb"
    expected, shown = positions(clip), positions(back)
    assert set(shown) == set(expected)
    for link, path in shown.items():
        np.testing.assert_allclose(path, expected[link], atol=1e-4)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), links=st.integers(1, 6))
def test_any_tree_of_joints_goes_out_and_back(
    seed: int, links: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("glb") / "a.glb"
    clip = waving(random_character(np.random.default_rng(seed), links), frames=5, seed=seed)
    glb.write(clip, path)
    back = glb.read(path)
    assert back.character == clip.character
    expected = positions(clip)
    for link, there in positions(back).items():
        np.testing.assert_allclose(there, expected[link], atol=1e-4)


def test_a_file_that_was_changed_is_read_from_its_nodes(tmp_path: Path) -> None:
    clip = waving(load_character("humanoid"))
    glb.write(clip, tmp_path / "a.glb")
    found, binary = parts((tmp_path / "a.glb").read_bytes())
    arm = next(n for n in found["nodes"] if n["name"] == "left_upper_arm")
    arm["translation"][0] += 0.1  # to the left
    (tmp_path / "b.glb").write_bytes(pack(found, binary))
    back = glb.read(tmp_path / "b.glb")
    before, after = positions(clip), positions(back)
    moved = np.linalg.norm(after["left_upper_arm"] - before["left_upper_arm"], axis=1)
    np.testing.assert_allclose(moved, 0.1, atol=1e-4)
    np.testing.assert_allclose(after["head"], before["head"], atol=1e-4)


def test_the_rig_a_clip_came_from_comes_back(tmp_path: Path) -> None:
    (tmp_path / "a.glb").write_bytes(foreign())
    clip = glb.read(tmp_path / "a.glb")
    glb.write(clip, tmp_path / "b.glb")
    assert glb.read(tmp_path / "b.glb").source == clip.source


@pytest.mark.data
def test_a_real_motion_comes_back(data_folder: Path, tmp_path: Path) -> None:
    from poise.motion import load_clip

    for file in ("cmu_bvh/02_01.bvh", "mass/motion/backflip.bvh"):
        clip = load_clip(data_folder / file)
        clip.save(tmp_path / "a.glb")
        back = load_clip(tmp_path / "a.glb")
        assert (back.source, back.fps, len(back)) == (clip.source, clip.fps, len(clip))
        expected = positions(clip)
        for link, path in positions(back).items():
            np.testing.assert_allclose(path, expected[link], atol=1e-4)


def test_y_is_up_and_rotations_are_short_and_of_length_one(tmp_path: Path) -> None:
    clip = waving(load_character("humanoid"))
    glb.write(clip, tmp_path / "a.glb")
    found, binary = parts((tmp_path / "a.glb").read_bytes())
    animation = found["animations"][0]
    for channel in animation["channels"]:
        sampler = animation["samplers"][channel["sampler"]]
        accessor = found["accessors"][sampler["output"]]
        view = found["bufferViews"][accessor["bufferView"]]
        width = {"VEC3": 3, "VEC4": 4}[accessor["type"]]
        start = view["byteOffset"] + accessor.get("byteOffset", 0)
        values = np.frombuffer(binary, "<f4", accessor["count"] * width, start).reshape(-1, width)
        if channel["target"]["path"] == "translation":
            np.testing.assert_allclose(values[:, 1], clip.frames[:, 2], atol=1e-6)
        else:
            np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1.0, atol=1e-6)
            assert np.all(np.sum(values[1:] * values[:-1], axis=1) > 0.0)


def test_another_rate_is_sampled_from_the_clip(tmp_path: Path) -> None:
    clip = waving(load_character("humanoid"), frames=61, fps=60.0)
    glb.write(clip, tmp_path / "a.glb")
    back = glb.read(tmp_path / "a.glb", fps=30.0)
    assert (len(back), back.fps) == (31, 30.0)
    np.testing.assert_allclose(back.frames[:, :3], clip.frames[::2, :3], atol=1e-5)


def test_a_character_alike_takes_the_motion(tmp_path: Path) -> None:
    humanoid = load_character("humanoid")
    clip = waving(humanoid)
    glb.write(clip, tmp_path / "a.glb")
    heavy = replace(humanoid, links=tuple(replace(x, mass=2 * x.mass) for x in humanoid.links))
    assert glb.read(tmp_path / "a.glb", character=heavy).character is heavy
    with pytest.raises(ClipError, match=r"a\.glb.*links that the file does not move"):
        glb.read(tmp_path / "a.glb", character=load_character("dog"))


def test_hinges_turn_on_and_on_in_long_motions(tmp_path: Path) -> None:
    character = load_character("two-link")
    angle = np.linspace(0.0, 50.0, 2500)
    clip = Clip(character, np.stack([angle, -angle], axis=1), 60.0)
    glb.write(clip, tmp_path / "a.glb")
    found, binary = parts((tmp_path / "a.glb").read_bytes())
    del found["asset"]["extras"]
    (tmp_path / "b.glb").write_bytes(pack(found, binary))
    back = glb.read(tmp_path / "b.glb", character=character)
    np.testing.assert_allclose(back.frames, clip.frames, atol=1e-5)


@pytest.mark.parametrize(
    "shape",
    [
        Shape("sphere", (0.3,), (1.0, 2.0, 3.0)),
        Shape("capsule", (0.2, 0.5), (1.0, 0.0, 0.0), (0.5, 0.5, -0.5, 0.5)),
        Shape("capsule", (0.2, 0.0)),
        Shape("cylinder", (0.2, 0.5), (0.0, 1.0, 0.0), (0.9, 0.1, 0.2, 0.3)),
        Shape("box", (0.1, 0.2, 0.3), (0.0, 0.0, 1.0), (0.9, 0.1, 0.2, 0.3)),
        Shape.mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], (0.1, 0.2, 0.3)),
    ],
)
def test_triangles_enclose_the_volume_of_their_shape(shape: Shape) -> None:
    mesh = triangles(shape)
    a, b, c = (mesh.positions[mesh.faces[:, i]] for i in range(3))
    normal = np.cross(b - a, c - a)
    # by the divergence theorem; 24 flat sides hold 3 % less than a round body
    assert np.sum(np.cross(a, b) * c) / 6.0 == pytest.approx(shape.volume, rel=0.035)
    assert np.all(np.sum(normal * mesh.normals[mesh.faces[:, 0]], axis=1) > 0.0)
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1.0, atol=1e-12)


# what others write


class Builder:
    """A GLB made by hand."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {"asset": {"version": "2.0"}, "accessors": []}
        self.found |= {"nodes": [], "bufferViews": []}
        self.binary = b""

    def accessor(self, values: Any, kind: str, dtype: str = "<f4", **more: Any) -> int:
        array = np.ascontiguousarray(values, dtype=dtype)
        codes = {"<f4": 5126, "<i2": 5122, "<u2": 5123}
        self.binary += bytes(-len(self.binary) % 4)
        view = {"buffer": 0, "byteOffset": len(self.binary), "byteLength": array.nbytes}
        self.found["bufferViews"].append(view)
        self.binary += array.tobytes()
        entry: dict[str, Any] = {
            "bufferView": len(self.found["bufferViews"]) - 1,
            "componentType": codes[dtype],
        }
        entry |= {"count": len(array), "type": kind, **more}
        if kind == "SCALAR":
            entry |= {"min": [float(array.min())], "max": [float(array.max())]}
        self.found["accessors"].append(entry)
        return len(self.found["accessors"]) - 1

    def animate(self, name: str, channels: list[tuple[int, str, str, Any, Any]]) -> None:
        """Channels: node, path, interpolation, times, values."""
        samplers: list[dict[str, Any]] = []
        targets: list[dict[str, Any]] = []
        for node, path, mode, times, values in channels:
            kind = "VEC4" if path == "rotation" else "VEC3"
            normalised = np.asarray(values).dtype == np.int16
            output = self.accessor(values, kind, "<i2", normalized=True) if normalised else None
            output = self.accessor(values, kind) if output is None else output
            samplers.append({"input": self.accessor(times, "SCALAR"), "output": output})
            samplers[-1]["interpolation"] = mode
            targets.append({"sampler": len(samplers) - 1, "target": {"node": node, "path": path}})
        animation = {"name": name, "samplers": samplers, "channels": targets}
        self.found.setdefault("animations", []).append(animation)

    def bytes(self) -> bytes:
        if self.binary:
            self.found["buffers"] = [{"byteLength": len(self.binary) + -len(self.binary) % 4}]
        roots = set(range(len(self.found["nodes"])))
        roots -= {c for node in self.found["nodes"] for c in node.get("children", [])}
        self.found["scenes"], self.found["scene"] = [{"nodes": sorted(roots)}], 0
        return pack({key: x for key, x in self.found.items() if x != []}, self.binary)


def quat(*rotvec: float) -> list[float]:
    """x y z w of a rotation vector."""
    found: list[float] = Rotation.from_rotvec(rotvec).as_quat().tolist()
    return found


KEYS = np.linspace(0.1, 1.1, 31)
"""Times of keys: 30 fps, not from zero."""


def foreign_builder() -> Builder:
    """A skin on three joints below a scaled and turned node, with keys of every kind."""
    b = Builder()
    b.found["nodes"] = [
        {"name": "armature", "children": [1], "scale": [0.01] * 3, "rotation": quat(0, 0.5, 0)},
        {"name": "hips", "children": [2], "translation": [0, 100, 0], "rotation": quat(0.3, 0, 0)},
        {"name": "spine", "children": [3], "translation": [0, 20, 0], "rotation": quat(0, 0, 0.2)},
        {"name": "head", "translation": [0, 30, 5]},
        {"name": "skinned", "mesh": 0, "skin": 0},
    ]
    turns = np.stack([quat(x, 0.3 * x, 0) for x in np.sin(5 * KEYS)])
    steps = np.round(np.stack([quat(0, x, 0) for x in np.cos(3 * KEYS)]) * 32767).astype(np.int16)
    few = np.array([0.1, 0.6, 1.1])
    cubic = np.zeros((3, 3, 4))
    cubic[:, 1] = [quat(0, 0, 0), quat(0.5, 0.2, 0), quat(0.3, 0, 0.6)]
    cubic[:, 0] = cubic[:, 2] = [[0.1, 0, 0, 0], [0, 0.3, 0, 0.1], [0, 0, 0.2, 0]]
    shift = np.stack([10 * KEYS, 100 + 5 * np.sin(KEYS), 0 * KEYS], axis=1)
    b.animate(
        "walk",
        [
            (1, "translation", "LINEAR", KEYS, shift),
            (1, "rotation", "LINEAR", KEYS, turns),
            (2, "rotation", "STEP", KEYS, steps),
            (3, "rotation", "CUBICSPLINE", few, cubic.reshape(-1, 4)),
        ],
    )
    b.animate("stand", [(1, "rotation", "LINEAR", KEYS[:2], turns[:2])])
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    position = b.accessor(corners, "VEC3", min=[0, 0, 0], max=[1, 1, 0])
    joints = b.accessor(np.zeros((3, 4)), "VEC4", "<u2")
    weights = b.accessor([[1, 0, 0, 0]] * 3, "VEC4")
    attributes = {"POSITION": position, "JOINTS_0": joints, "WEIGHTS_0": weights}
    b.found["meshes"] = [{"primitives": [{"attributes": attributes}]}]
    b.found["skins"] = [{"joints": [1, 2, 3]}]
    return b


def foreign() -> bytes:
    return foreign_builder().bytes()


def node_matrix(node: dict[str, Any], pose: dict[str, Any]) -> Any:
    """A node in its parent, 4x4."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=float).reshape(4, 4).T
    X = np.eye(4)
    turn = Rotation.from_quat(pose.get("rotation", node.get("rotation", [0, 0, 0, 1])))
    X[:3, :3] = turn.as_matrix() * node.get("scale", [1, 1, 1])
    X[:3, 3] = pose.get("translation", node.get("translation", [0, 0, 0]))
    return X


def second_opinion(t: float) -> list[Any]:
    """Where hips, spine and head of the foreign file are at time t, in our axes."""
    b = foreign_builder()
    pose: dict[int, dict[str, Any]] = {0: {}}
    i = min(int(np.searchsorted(KEYS, t + 1e-6)) - 1, len(KEYS) - 2)
    u = (t - KEYS[i]) / (KEYS[i + 1] - KEYS[i])
    shift = np.stack([10 * KEYS, 100 + 5 * np.sin(KEYS), 0 * KEYS], axis=1)
    r = [Rotation.from_quat(quat(x, 0.3 * x, 0)) for x in np.sin(5 * KEYS)]
    way = (r[i].inv() * r[i + 1]).as_rotvec()
    turn = r[i] * Rotation.from_rotvec(u * way)
    pose[1] = {"translation": shift[i] + u * (shift[i + 1] - shift[i]), "rotation": turn.as_quat()}
    last = int(np.searchsorted(KEYS, t + 1e-6)) - 1
    pose[2] = {"rotation": quat(0, np.cos(3 * KEYS[last]), 0)}
    # Hermite's cubic through Bernstein's points
    few, values = [0.1, 0.6, 1.1], [quat(0, 0, 0), quat(0.5, 0.2, 0), quat(0.3, 0, 0.6)]
    slopes = np.array([[0.1, 0, 0, 0], [0, 0.3, 0, 0.1], [0, 0, 0.2, 0]])
    k = 0 if t < 0.6 else 1
    u = (t - few[k]) / 0.5
    a, d = np.array(values[k]), np.array(values[k + 1])
    points = np.stack([a, a + slopes[k] / 6, d - slopes[k + 1] / 6, d])
    while len(points) > 1:
        points = (1 - u) * points[:-1] + u * points[1:]
    pose[3] = {"rotation": points[0]}
    X, found = np.eye(4), []
    for node in range(4):
        X = X @ node_matrix(b.found["nodes"][node], pose[node])
        found.append(TO_WORLD @ X[:3, 3])
    return found[1:]


def test_a_skin_below_a_scaled_node_with_keys_of_every_kind(tmp_path: Path) -> None:
    (tmp_path / "a.glb").write_bytes(foreign())
    clip = glb.read(tmp_path / "a.glb")
    assert [link.name for link in clip.character.links] == ["hips", "spine", "head"]
    assert (clip.fps, len(clip), clip.name) == (30.0, 31, "walk")
    there = positions(clip)
    for i, t in enumerate(KEYS):
        for name, p in zip(("hips", "spine", "head"), second_opinion(t), strict=True):
            # short integers: four digits
            np.testing.assert_allclose(there[name][i], p, atol=3e-5)


def test_rotations_turn_what_hangs_on_the_last_joint(tmp_path: Path) -> None:
    b = foreign_builder()
    b.found["nodes"][3]["children"] = [5]
    b.found["nodes"].append({"name": "nose", "translation": [0, 3, 9]})
    b.found["skins"][0]["joints"] = [1, 2, 3, 5]
    (tmp_path / "a.glb").write_bytes(b.bytes())
    clip = glb.read(tmp_path / "a.glb")
    head = [link.name for link in clip.character.links].index("head")
    p, e = forward_kinematics(clip.character, clip.frames)
    R = Rotation.from_quat(e[:, head][:, [1, 2, 3, 0]])
    assert clip.source is not None
    nose = R.apply(clip.source.offsets[clip.source.names.index("nose")]) + p[:, head]
    # the file's own way to the nose, at the keys of the cubic
    turn = Rotation.from_quat(quat(0.3, 0, 0.6))
    X = Rotation.from_quat(quat(0, 0.5, 0)) * Rotation.from_quat(quat(*_turn_of_hips(1.1)))
    X = X * Rotation.from_quat(quat(0, np.cos(3 * KEYS[-1]), 0)) * turn
    expected = p[-1, head] + TO_WORLD @ X.apply([0, 0.03, 0.09])
    np.testing.assert_allclose(nose[-1], expected, atol=3e-5)


def _turn_of_hips(t: float) -> tuple[float, float, float]:
    x = float(np.sin(5 * t))
    return x, 0.3 * x, 0.0


def test_an_animation_is_chosen_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.glb").write_bytes(foreign())
    assert len(glb.read(tmp_path / "a.glb", animation="stand")) == 2
    with pytest.raises(ClipError, match=r"no animation 'jump'; its animations: 0 walk, 1 stand"):
        glb.read(tmp_path / "a.glb", animation="jump")


def test_another_rate_is_sampled_between_the_keys(tmp_path: Path) -> None:
    (tmp_path / "a.glb").write_bytes(foreign())
    clip = glb.read(tmp_path / "a.glb", fps=100.0)
    assert (len(clip), clip.fps) == (101, 100.0)
    there = positions(clip)
    for i in (0, 13, 57, 99):
        t = 0.1 + i / 100
        for name, p in zip(("hips", "spine", "head"), second_opinion(t), strict=True):
            np.testing.assert_allclose(there[name][i], p, atol=3e-5)


def test_a_skeleton_without_animation_gives_one_frame(tmp_path: Path) -> None:
    b = foreign_builder()
    del b.found["animations"]
    (tmp_path / "a.glb").write_bytes(b.bytes())
    clip = glb.read(tmp_path / "a.glb")
    assert len(clip) == 1
    heights = [positions(clip)[name][0, 2] for name in ("hips", "spine")]
    np.testing.assert_allclose(heights, [1.0, 1.0 + 0.2 * np.cos(0.3)], atol=1e-6)


def test_the_bind_pose_is_the_rest_pose(tmp_path: Path) -> None:
    b = foreign_builder()
    # the nodes stand bent, the skin was bound upright, in the frame of the armature
    heights = np.array([100.0, 120.0, 150.0])
    inverse = np.tile(np.eye(4), (3, 1, 1))
    inverse[:, 1, 3] = -heights
    b.found["nodes"][3]["translation"] = [0, 30, 0]
    columns = inverse.transpose(0, 2, 1).reshape(3, 16)
    b.found["skins"][0]["inverseBindMatrices"] = b.accessor(columns, "MAT4")
    (tmp_path / "a.glb").write_bytes(b.bytes())
    clip = glb.read(tmp_path / "a.glb")
    spine, head = (clip.character.link(name) for name in ("spine", "head"))
    np.testing.assert_allclose([spine.pos, head.pos], [[0, 0, 0.2], [0, 0, 0.3]], atol=1e-6)


def test_nodes_with_matrices_and_mirrors_are_placed(tmp_path: Path) -> None:
    b = Builder()
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = Rotation.from_rotvec([0, 0.7, 0]).as_matrix() * 0.5, [1, 2, 3]
    b.found["nodes"] = [
        {"name": "world", "children": [1], "matrix": X.T.ravel().tolist()},
        {"name": "hip", "children": [2, 4], "scale": [-1, 1, 1], "translation": [0, 2, 0]},
        {"name": "knee", "children": [3], "translation": [0.2, -1, 0]},
        {"name": "foot", "translation": [0.0, -1, 0.1]},
        {"name": "lamp", "extensions": {"KHR_lights_punctual": {"light": 0}}},
    ]
    angle = np.linspace(0.0, 1.0, 11)
    turn = np.stack([quat(x, 0, 0) for x in angle])
    b.animate("a", [(n, "rotation", "LINEAR", angle / 2, turn) for n in (1, 2, 3)])
    (tmp_path / "a.glb").write_bytes(b.bytes())
    clip = glb.read(tmp_path / "a.glb")
    assert [link.name for link in clip.character.links] == ["hip", "knee", "foot"]
    there = positions(clip)
    for i in range(11):
        Y = np.eye(4)
        for node, name in enumerate(("world", "hip", "knee", "foot")):
            pose = {"rotation": turn[i]} if node else {}
            Y = Y @ node_matrix(b.found["nodes"][node], pose)
            if node:
                np.testing.assert_allclose(there[name][i], TO_WORLD @ Y[:3, 3], atol=1e-6)


def test_a_joint_that_leaves_its_place_slides(tmp_path: Path) -> None:
    b = foreign_builder()
    b.found["nodes"][1]["children"] = [2, 5]
    b.found["nodes"].append({"name": "foot", "translation": [0, -90, 0]})
    b.found["skins"][0]["joints"].append(5)
    shift = np.stack([0 * KEYS, 20 + 10 * KEYS, 0 * KEYS], axis=1)
    b.animate("slide", [(2, "translation", "LINEAR", KEYS, shift)])
    (tmp_path / "a.glb").write_bytes(b.bytes())
    clip = glb.read(tmp_path / "a.glb", animation="slide")
    assert [joint.kind for joint in clip.character.link("spine").joints] == ["slide"] * 3 + ["ball"]
    there = positions(clip)
    reach = np.linalg.norm(there["spine"] - there["hips"], axis=1)
    np.testing.assert_allclose(reach, 0.2 + 0.1 * KEYS, atol=1e-6)


def test_names_that_are_there_twice_get_numbers(tmp_path: Path) -> None:
    b = foreign_builder()
    for node in b.found["nodes"][1:4]:
        node["name"] = "bone"
    (tmp_path / "a.glb").write_bytes(b.bytes())
    names = [link.name for link in glb.read(tmp_path / "a.glb").character.links]
    assert names == ["bone", "bone_2", "bone_3"]


# bad input

Change = Callable[[dict[str, Any]], object]


def _set(*path: Any) -> Change:
    """A change that puts the last item at the path that the others are."""
    *keys, last, value = path

    def change(found: Any) -> None:
        for key in keys:
            found = found[key]
        found[last] = value

    return change


WRONG: dict[str, tuple[Change, str]] = {
    "node index": (_set("nodes", 0, "children", [77]), r"nodes\[0\]\.children is 77"),
    "children": (_set("nodes", 0, "children", 3), r"nodes\[0\]\.children must be a list"),
    "own parent": (_set("nodes", 3, "children", [1]), r"nodes\[1\] has two parents"),
    "circle": (lambda j: j["nodes"].append({"children": [5]}), r"nodes\[5\] is its own ancestor"),
    "no nodes": (_set("nodes", []), "has no nodes"),
    "nodes": (_set("nodes", {"a": 1}), "nodes must be a list of objects"),
    "rotation": (_set("nodes", 1, "rotation", [0, 0, 0, 0]), r"nodes\[1\]\.rotation has length 0*"),
    "translation": (_set("nodes", 1, "translation", [0, "1", 0]), "must be 3 numbers"),
    "huge": (_set("nodes", 1, "translation", [0, 1e300, 0]), "sensible size"),
    "scale zero": (_set("nodes", 1, "scale", [0, 0, 0]), r"nodes\[1\] .*scale of zero"),
    "matrix": (
        _set("nodes", 1, "matrix", np.eye(4).ravel().tolist()),
        r"nodes\[1\] has a matrix and is animated",
    ),
    "count": (_set("accessors", 1, "count", 10**12), r"byte \d+: accessors\[1\] needs"),
    "negative": (_set("accessors", 1, "count", -1), r"accessors\[1\]\.count is -1"),
    "few": (_set("accessors", 0, "count", 5), "5 values; its 31 times need 31"),
    "none": (_set("accessors", 1, "count", 0), r"accessors\[1\] is empty"),
    "type": (_set("accessors", 1, "type", "VEC2"), "must be SCALAR"),
    "component": (_set("accessors", 1, "componentType", 9), "componentType is 9"),
    "view": (_set("accessors", 1, "bufferView", 99), "index into the .* bufferViews"),
    "offset": (_set("accessors", 1, "byteOffset", 10**6), "needs .* bytes of bufferViews"),
    "long view": (_set("bufferViews", 1, "byteLength", 2**40), "its buffer has"),
    "stride": (_set("bufferViews", 1, "byteStride", 1), "byteStride is 1"),
    "uri": (_set("buffers", 0, "uri", "a.bin"), r"buffers\[0\] lies in 'a\.bin'"),
    "sparse": (_set("accessors", 1, "sparse", {}), r"accessors\[1\]\.sparse must be an object"),
    "interpolation": (
        _set("animations", 0, "samplers", 0, "interpolation", "BEZIER"),
        "must be one of LINEAR, STEP, CUBICSPLINE",
    ),
    "sampler": (_set("animations", 0, "channels", 0, "sampler", 9), "index into the 4 samplers"),
    "input": (_set("animations", 0, "samplers", 0, "input", None), "samplers.0..input is None"),
    "target": (_set("animations", 0, "channels", 0, "target", 1), "target must be an object"),
    "joints": (_set("skins", 0, "joints", [1, 2, -3]), "joints is -3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    change, message = WRONG[name]
    found, binary = parts(foreign())
    change(found)
    (tmp_path / "bad.glb").write_bytes(pack(found, binary))
    with pytest.raises(PoiseError, match=message) as caught:
        glb.read(tmp_path / "bad.glb")
    assert "bad.glb" in str(caught.value)


GOOD = foreign()
BROKEN = {
    "nothing": (b"", "byte 0: is cut short"),
    "a word": (b"glTF", "byte 4: is cut short"),
    "text": (b"HIERARCHY ROOT hips OFFSET 0 0 0", "must begin with 'glTF'"),
    "version": (GOOD[:4] + struct.pack("<I", 1) + GOOD[8:], "byte 4: is glTF version 1"),
    "length": (GOOD[:8] + struct.pack("<I", 2**32 - 1) + GOOD[12:], "byte 8: the header says"),
    "cut": (GOOD[:-10], "byte 8: the header says"),
    "json": (GOOD[:12] + struct.pack("<I", 2**31) + GOOD[16:], "byte 12: the JSON chunk says"),
    "kind": (GOOD[:16] + b"NOSJ" + GOOD[20:], "byte 16: the first chunk must be JSON"),
    "not json": (pack(b'{"nodes": oops}'), "byte 30: the JSON is wrong"),
    "nan": (pack(b'{"nodes": [{"translation": [NaN, 0, 0]}]}'), "NaN is not a number"),
    "utf": (pack(b'{"a": "\xff"}'), "byte 27: the JSON is not UTF-8"),
    "list": (pack(b"[1, 2]"), "must be an object"),
    "deep": (pack(b'{"nodes": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"), "nested too deeply"),
    "digits": (pack(b'{"nodes": ' + b"1" * 100_000 + b"}"), "JSON is wrong"),
    "empty": (pack({}), "has no nodes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused(name: str, tmp_path: Path) -> None:
    data, message = BROKEN[name]
    (tmp_path / "bad.glb").write_bytes(data)
    with pytest.raises(ClipError, match=message) as caught:
        glb.read(tmp_path / "bad.glb")
    assert "bad.glb" in str(caught.value)


def test_numbers_that_are_none_are_refused_with_their_place(tmp_path: Path) -> None:
    b = foreign_builder()
    turns = np.tile([0.0, 0.0, 0.0, 1.0], (31, 1))
    turns[7, 2] = np.nan
    b.animate("nan", [(1, "rotation", "LINEAR", KEYS, turns)])
    b.animate("zero", [(1, "rotation", "LINEAR", KEYS, 0.0 * np.ones((31, 4)))])
    b.animate("back", [(1, "translation", "LINEAR", KEYS[::-1], np.ones((31, 3)))])
    (tmp_path / "bad.glb").write_bytes(b.bytes())
    for name, message in (
        ("nan", r"byte \d+: accessors\[\d+\]\[7\] is not a finite number"),
        ("zero", "quaternion 0 has length 0"),
        ("back", "time 1 is not later"),
    ):
        with pytest.raises(ClipError, match=message):
            glb.read(tmp_path / "bad.glb", animation=name)


def test_a_folder_and_a_missing_file_are_no_glb(tmp_path: Path) -> None:
    with pytest.raises(ClipError, match="is not a file"):
        glb.read(tmp_path)
    with pytest.raises(ClipError, match="cannot be read"):
        glb.read(tmp_path / "missing.glb")


def test_absurd_rates_and_lengths_are_refused(tmp_path: Path) -> None:
    b = foreign_builder()
    shift = np.ones((2, 3))
    b.animate("ages", [(1, "translation", "LINEAR", [0.0, 1e9], shift)])
    b.animate("instant", [(1, "translation", "LINEAR", [0.0, 1e-30], shift)])
    (tmp_path / "bad.glb").write_bytes(b.bytes())
    for name in ("ages", "instant"):
        with pytest.raises(ClipError, match="give"):
            glb.read(tmp_path / "bad.glb", animation=name)
    for fps in (-1.0, float("nan"), float("inf"), 1e9):
        with pytest.raises(ClipError, match="fps must be positive and at most 10000"):
            glb.read(tmp_path / "bad.glb", fps=fps)


def test_a_few_keys_that_are_hours_apart_are_no_long_motion(tmp_path: Path) -> None:
    b = foreign_builder()
    times = [0.0, 1 / 30, 40_000.0]
    b.animate("hours", [(1, "translation", "LINEAR", times, np.ones((3, 3)))])
    path = tmp_path / "long.glb"
    path.write_bytes(b.bytes())
    start = time.process_time()
    with pytest.raises(ClipError, match=r"3 keys over 40000 s: .* give fewer fps"):
        glb.read(path, animation="hours")
    assert time.process_time() - start < 1.0  # hundredths of a second on an idle machine
    # what the message says helps
    assert len(glb.read(path, animation="hours", fps=0.1)) == 4001


def test_as_many_frames_as_keys_are_read(tmp_path: Path) -> None:
    # more frames than a file gets without keys: 500,000 of all joints
    b = foreign_builder()
    times = np.arange(200_000) / 30
    b.animate("dense", [(1, "translation", "LINEAR", times, np.ones((len(times), 3)))])
    (tmp_path / "dense.glb").write_bytes(b.bytes())
    motion = Motion(GlbFile(tmp_path / "dense.glb"), "dense")
    assert len(motion.times(30.0, 10)) == len(times)
    with pytest.raises(ClipError, match="at most 40000 are read"):
        motion.times(30.0, 100)


def test_a_skin_is_there_or_not(tmp_path: Path) -> None:
    clip = waving(load_character("two-link"), 2)
    for skin in (3, None, "no"):
        with pytest.raises(ClipError, match="skin must be True or False"):
            glb.write(clip, tmp_path / "x.glb", skin=skin)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_long_chains_and_many_nodes_take_bounded_time(tmp_path: Path) -> None:
    b = Builder()
    count = 50_000
    b.found["nodes"] = [{"children": [i + 1]} for i in range(count - 1)] + [{}]
    (tmp_path / "bad.glb").write_bytes(b.bytes())
    start = time.perf_counter()
    with pytest.raises(ClipError, match="a skeleton of 50000 joints"):
        glb.read(tmp_path / "bad.glb")
    b.found["nodes"] = [{"translation": [0, 1, 0], "children": [i + 1]} for i in range(499)] + [{}]
    (tmp_path / "chain.glb").write_bytes(b.bytes())
    with pytest.raises(PoiseError):
        glb.read(tmp_path / "chain.glb", animation="none")
    glb.read(tmp_path / "chain.glb")
    b.found["nodes"] = [{"scale": [1e14] * 3, "children": [i + 1]} for i in range(99)] + [{}]
    (tmp_path / "bad.glb").write_bytes(b.bytes())
    with pytest.raises(ClipError, match="absurd place or scale"):
        glb.read(tmp_path / "bad.glb")
    # a small skeleton deep below nodes that do nothing
    b.found["nodes"] = [{"children": [i + 1]} for i in range(20_000)] + [{"children": [20_001]}, {}]
    b.found["skins"] = [{"joints": [20_000, 20_001]}]
    (tmp_path / "bad.glb").write_bytes(b.bytes())
    with pytest.raises(ClipError, match="a skeleton below 20002 nodes"):
        glb.read(tmp_path / "bad.glb")
    assert time.perf_counter() - start < 20.0  # a few seconds on an idle machine


def test_a_file_of_hundreds_of_megabytes_is_not_read_whole(tmp_path: Path) -> None:
    found, binary = parts(foreign())
    head = pack(found, binary + bytes(4))
    size = 600 * 2**20
    at = len(head) - len(binary) - 4 - 8
    head = head[:at] + struct.pack("<I", size - at - 8) + head[at + 4 :]
    with open(tmp_path / "big.glb", "wb") as file:
        file.write(head[:8] + struct.pack("<I", size) + head[12:])
        file.truncate(size)  # a hole, not bytes
    start = time.perf_counter()
    assert len(glb.read(tmp_path / "big.glb")) == 31
    assert time.perf_counter() - start < 5.0
    found["bufferViews"][1]["byteLength"] = 500 * 2**20
    found["accessors"][1]["count"] = 100 * 2**20
    text = json.dumps(found).encode()
    text += b" " * (-len(text) % 4)
    with open(tmp_path / "big.glb", "wb") as file:
        file.write(struct.pack("<5I", 0x46546C67, 2, size, len(text), 0x4E4F534A) + text)
        file.write(struct.pack("<2I", size - 28 - len(text), 0x004E4942) + binary)
        file.truncate(size)
    with pytest.raises(ClipError, match="would take over 512 MB"):
        glb.read(tmp_path / "big.glb")


# fuzz


def small() -> bytes:
    """A small file of ours."""
    from poise.motion.formats.glb_write import dump

    return dump(waving(load_character("two-link"), frames=4))


NASTY: list[Any] = [None, -1, 0, 1, 10**18, 1e308, 2.5, "", "x", [], {}, [0], True, [[]]]


def try_to_read(data: bytes, path: Path) -> None:
    """Read; PoiseError is fine, anything else is not."""
    path.write_bytes(data)
    message = path.name
    try:
        glb.read(path)
    except PoiseError as error:
        message = str(error)
    assert path.name in message


@pytest.mark.parametrize("source", ["ours", "foreign"])
def test_no_flipped_or_missing_bytes_let_another_error_escape(source: str, tmp_path: Path) -> None:
    good = small() if source == "ours" else GOOD
    rng = np.random.default_rng(7)
    for _ in range(200):
        data = np.frombuffer(good, np.uint8).copy()
        for at in rng.integers(0, len(data), rng.integers(1, 9)):
            data[at] = rng.integers(0, 256)
        end = rng.integers(0, len(data)) if rng.random() < 0.25 else len(data)
        try_to_read(data[:end].tobytes(), tmp_path / "a.glb")


@pytest.mark.parametrize("source", ["ours", "foreign"])
def test_no_changed_value_lets_another_error_escape(source: str, tmp_path: Path) -> None:
    good, binary = parts(small() if source == "ours" else GOOD)
    places: list[list[Any]] = []

    def walk(value: Any, path: list[Any]) -> None:
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append([*path, key])
            if isinstance(value[key], (dict, list)):
                walk(value[key], [*path, key])

    walk(good, [])
    rng = np.random.default_rng(11)
    for _ in range(250):
        found = json.loads(json.dumps(good))
        for _ in range(rng.integers(1, 3)):
            path, value = places[rng.integers(len(places))], NASTY[rng.integers(len(NASTY))]
            try:
                _set(*path, value)(found)
            except (LookupError, TypeError):
                continue  # the place is gone
        try_to_read(pack(found, binary), tmp_path / "a.glb")


@settings(max_examples=100)
@given(data=st.binary(max_size=300))
def test_no_bytes_let_another_error_escape(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.glb"
    try_to_read(data, path)
    try_to_read(GOOD[:20] + data, path)
    try_to_read(pack(data), path)
