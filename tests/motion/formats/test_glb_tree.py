"""Nodes of GLB files: all joints of the source are there, bones point along, the skin follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import find_data
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from test_glb import TO_WORLD, node_matrix, pack, parts, waving
from trees import random_character

from poise.anatomy.rig import Rig, RigJoint, poses_of
from poise.characters import load_character
from poise.dynamics import forward_kinematics
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint, Link, Shape
from poise.model.geometry import triangles
from poise.motion import load_clip
from poise.motion.clip import Clip
from poise.motion.formats import glb

FILES = sorted((find_data() or Path("missing")).glob("**/*.bvh"))
both = pytest.mark.parametrize("skin", [True, False], ids=["skinned", "rigid"])


class Shown:
    """What a GLB of ours shows, read from the format alone: nodes in the world at every key."""

    def __init__(self, data: bytes) -> None:
        self.found, self.binary = parts(data)
        self.nodes = self.found["nodes"]
        self.names = [node["name"] for node in self.nodes]
        self.parent = {c: i for i, n in enumerate(self.nodes) for c in n.get("children", [])}
        self.poses: dict[int, dict[str, Any]] = {}
        animation = self.found["animations"][0]
        for channel in animation["channels"]:
            target, sampler = channel["target"], animation["samplers"][channel["sampler"]]
            values = self.array(sampler["output"])
            self.poses.setdefault(target["node"], {})[target["path"]] = values
        self.times = self.array(animation["samplers"][0]["input"])[:, 0]

    def array(self, index: int) -> Any:
        accessor = self.found["accessors"][index]
        view = self.found["bufferViews"][accessor["bufferView"]]
        dtype = {5126: "<f4", 5123: "<u2", 5121: "u1", 5125: "<u4"}[accessor["componentType"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}[accessor["type"]]
        start = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        values = np.frombuffer(self.binary, dtype, accessor["count"] * width, start)
        return values.reshape(-1, width)

    def place(self, node: int, key: int | None) -> Any:
        """Of a node in the world, 4x4, in the file's axes; None: as the nodes stand."""
        pose = {}
        if key is not None:
            pose = {path: values[key] for path, values in self.poses.get(node, {}).items()}
        X = node_matrix(self.nodes[node], pose)
        return self.place(self.parent[node], key) @ X if node in self.parent else X

    def position(self, name: str, key: int) -> Any:
        return TO_WORLD @ self.place(self.names.index(name), key)[:3, 3]


def source_paths(clip: Clip) -> tuple[Rig, Any]:
    """The rig that a clip came from, and where its joints are, (joints, frames, 3)."""
    assert clip.source is not None
    return clip.source, poses_of(clip.character, clip.source, clip.frames)[0]


def merged() -> Clip:
    """A clip whose source has joints that the character has not: above, between and below."""
    joints = (
        RigJoint("extra", -1),
        RigJoint("hips", 0, (0.0, 1.0, 0.0), ("Xposition", "Yposition", "Zposition")),
        RigJoint("nothing", 1),
        RigJoint("knee", 2, (0.0, -0.4, 0.1)),
        RigJoint("mark", 3, (0.1, 0.0, 0.2), end=(0.0, 0.0, 0.1)),
    )
    ball, solid = Joint("knee", "ball"), [Shape("sphere", (0.1,), (0.0, 0.0, -0.1))]
    hips = Link.from_shapes("hips", None, solid, joints=[Joint("root", "free")], pos=(0, 0, 1))
    knee = Link.from_shapes("knee", "hips", solid, joints=[ball], pos=(0.1, 0.0, -0.4))
    clip = waving(Character("legs", (hips, knee)), frames=7)
    return Clip(clip.character, clip.frames, 60.0, source=Rig(joints), name="merged")


@both
def test_merged_joints_have_nodes_in_the_hierarchy_of_the_source(
    skin: bool, tmp_path: Path
) -> None:
    clip = merged()
    glb.write(clip, tmp_path / "a.glb", skin=skin)
    shown = Shown((tmp_path / "a.glb").read_bytes())
    rig, paths = source_paths(clip)
    assert shown.names[:5] == list(rig.names)
    assert [shown.parent.get(i) for i in range(1, 5)] == [0, 1, 2, 3]
    for i, name in enumerate(rig.names):
        for key in range(len(clip)):
            np.testing.assert_allclose(shown.position(name, key), paths[i, key], atol=1e-6)


@pytest.mark.data
@pytest.mark.skipif(not FILES, reason="no data folder: set POISE_DATA or put it at ../shared/data")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@both
def test_all_joints_of_a_real_file_come_back(file: Path, skin: bool, tmp_path: Path) -> None:
    clip = load_clip(file)
    glb.write(clip, tmp_path / "a.glb", skin=skin)
    data = (tmp_path / "a.glb").read_bytes()
    back = glb.read(tmp_path / "a.glb")
    rig, paths = source_paths(clip)
    assert back.source == rig
    np.testing.assert_allclose(source_paths(back)[1], paths, atol=1e-4)
    # and the nodes alone, as others read them
    shown = Shown(data)
    for key in (0, len(clip) // 2, len(clip) - 1):
        for i, name in enumerate(rig.names):
            np.testing.assert_allclose(shown.position(name, key), paths[i, key], atol=1e-4)


@pytest.mark.data
@both
def test_a_real_skeleton_is_read_from_the_nodes_alone(
    skin: bool, data_folder: Path, tmp_path: Path
) -> None:
    for file in ("cmu_bvh/02_01.bvh", "mass/motion/backflip.bvh"):
        clip = load_clip(data_folder / file)
        glb.write(clip, tmp_path / "a.glb", skin=skin)
        found, binary = parts((tmp_path / "a.glb").read_bytes())
        del found["asset"]["extras"]
        (tmp_path / "b.glb").write_bytes(pack(found, binary))
        back = glb.read(tmp_path / "b.glb")
        (rig, paths), (other, places) = source_paths(clip), source_paths(back)
        assert set(other.names) == set(rig.names)
        order = [other.names.index(name) for name in rig.names]
        np.testing.assert_allclose(places[order], paths, atol=1e-4)


@pytest.mark.parametrize("name", ["humanoid", "dog", "two-link"])
def test_the_skinned_mesh_is_where_the_shapes_are(name: str, tmp_path: Path) -> None:
    clip = waving(load_character(name), frames=5)
    glb.write(clip, tmp_path / "a.glb")
    shown = Shown((tmp_path / "a.glb").read_bytes())
    skin = shown.found["skins"][0]
    bind = shown.array(skin["inverseBindMatrices"]).reshape(-1, 4, 4).transpose(0, 2, 1)
    p, e = forward_kinematics(clip.character, clip.frames)
    for key in (0, 4):
        # by glTF's rule: joint in the world, times inverse bind matrix, times vertex
        moves = np.array([shown.place(node, key) for node in skin["joints"]]) @ bind
        points = []
        for primitive in shown.found["meshes"][0]["primitives"]:
            attributes = primitive["attributes"]
            xyz = shown.array(attributes["POSITION"])
            joints = shown.array(attributes["JOINTS_0"])
            assert np.all(shown.array(attributes["WEIGHTS_0"]) == [255, 0, 0, 0])
            X = moves[joints[:, 0]]
            points.append((X[:, :3, :3] @ xyz[:, :, None])[:, :, 0] + X[:, :3, 3])
        expected = [
            triangles(shape).positions @ quat_matrix(e[key, i]).T + p[key, i]
            for i, link in enumerate(clip.character.links)
            for shape in link.shapes
        ]
        a, b = np.concatenate(points) @ TO_WORLD.T, np.concatenate(expected)
        # the mesh is sorted by colour, so each point looks for its own; 32 bits: seven digits
        assert len(a) == len(b)
        assert max(cKDTree(a).query(b)[0].max(), cKDTree(b).query(a)[0].max()) < 1e-5


def test_bones_point_along_y_to_the_next_joint(tmp_path: Path) -> None:
    glb.write(waving(load_character("humanoid"), frames=2), tmp_path / "a.glb")
    shown = Shown((tmp_path / "a.glb").read_bytes())
    bones = (("left_thigh", "left_shin"), ("right_upper_arm", "right_forearm"), ("chest", "head"))
    for upper, lower in bones:
        child = shown.nodes[shown.names.index(lower)]
        x, y, z = child["translation"]
        assert shown.parent[shown.names.index(lower)] == shown.names.index(upper)
        assert abs(x) + abs(z) < 1e-6
        assert y > 0.1


def test_a_skin_has_an_armature_of_the_character_s_name(tmp_path: Path) -> None:
    glb.write(waving(load_character("dog"), frames=2), tmp_path / "a.glb")
    found, _ = parts((tmp_path / "a.glb").read_bytes())
    armature, mesh = (found["nodes"][i] for i in found["scenes"][0]["nodes"])
    assert (armature["name"], mesh["name"], mesh["skin"]) == ("dog", "dog_mesh", 0)
    assert found["nodes"][found["skins"][0]["skeleton"]] is armature
    assert len(found["skins"][0]["joints"]) == len(found["nodes"]) - 2


@pytest.mark.parametrize("seed", range(4))
def test_any_tree_comes_back_rigid(seed: int, tmp_path: Path) -> None:
    clip = waving(random_character(np.random.default_rng(seed), 6), frames=4, seed=seed)
    glb.write(clip, tmp_path / "a.glb", skin=False)
    back = glb.read(tmp_path / "a.glb")
    assert back.character == clip.character
    np.testing.assert_allclose(back.frames, clip.frames, atol=1e-5)


def test_links_turn_in_the_file_as_in_the_clip(tmp_path: Path) -> None:
    clip = waving(load_character("humanoid"), frames=3)
    glb.write(clip, tmp_path / "a.glb", skin=False)
    shown = Shown((tmp_path / "a.glb").read_bytes())
    e = forward_kinematics(clip.character, clip.frames)[1]
    for i, link in enumerate(clip.character.links):
        R = TO_WORLD @ shown.place(shown.names.index(link.name), 2)[:3, :3] @ TO_WORLD.T
        expected = Rotation.from_quat(e[2, i][[1, 2, 3, 0]]).as_matrix()
        np.testing.assert_allclose(R, expected, atol=1e-6)
