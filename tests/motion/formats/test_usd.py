"""USD files: what usd-core reads from them is where the links are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_glb import waving
from test_glb_tree import merged
from trees import random_character

from poise.anatomy.rig import poses_of
from poise.characters import load_character
from poise.dynamics import forward_kinematics
from poise.errors import ClipError
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint, Link, Shape
from poise.model.geometry import triangles
from poise.motion import load_clip
from poise.motion.clip import Clip
from poise.motion.formats import usd


@pytest.fixture
def pxr() -> Any:
    return pytest.importorskip(
        "pxr.Usd", reason="usd-core is not installed: pip install poise[usd]"
    )


def places(path: Path, frame: int) -> dict[str, Any]:
    """Poses of the links in the world at a frame, 4x4, as usd-core has them."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(path))
    found = {}
    for prim in stage.Traverse():
        link = prim.GetCustomDataByKey("poise:link")
        if link is not None:
            X = UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(frame)
            found[link] = np.array(X).T
    return found


def check(clip: Clip, path: Path) -> None:
    usd.write(clip, path, skin=False)
    p, e = forward_kinematics(clip.character, clip.frames)
    R = quat_matrix(e)
    for frame in (0, len(clip) // 2, len(clip) - 1):
        shown = places(path, frame)
        assert len(shown) == len(clip.character.links)
        for i, link in enumerate(clip.character.links):
            np.testing.assert_allclose(shown[link.name][:3, 3], p[frame, i], atol=1e-9)
            np.testing.assert_allclose(shown[link.name][:3, :3], R[frame, i], atol=1e-9)


@pytest.mark.parametrize("suffix", ["usda", "usdc", "usd"])
def test_links_are_where_the_clip_has_them(suffix: str, pxr: Any, tmp_path: Path) -> None:
    check(waving(load_character("humanoid")), tmp_path / f"a.{suffix}")


@pytest.mark.parametrize("seed", range(5))
def test_any_tree_of_joints_is_written(seed: int, pxr: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    check(waving(random_character(rng, 6), frames=3, seed=seed), tmp_path / "a.usda")


@pytest.mark.parametrize("skin", [True, False])
def test_the_stage_says_up_unit_and_rate(skin: bool, pxr: Any, tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom

    clip = waving(load_character("dog"), frames=12, fps=24.0)
    usd.write(clip, tmp_path / "a.usda", skin=skin)
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert (stage.GetTimeCodesPerSecond(), stage.GetEndTimeCode()) == (24.0, 11.0)
    assert stage.GetDefaultPrim().GetName() == "dog"


class Skinned:
    """A skinned character as UsdSkel shows it."""

    def __init__(self, path: Path) -> None:
        from pxr import Usd, UsdSkel

        self.stage = Usd.Stage.Open(str(path))
        root = UsdSkel.Root(self.stage.GetDefaultPrim())
        self.cache = UsdSkel.Cache()
        self.cache.Populate(root, Usd.PrimDefaultPredicate)
        (self.binding,) = self.cache.ComputeSkelBindings(root, Usd.PrimDefaultPredicate)
        self.query = self.cache.GetSkelQuery(self.binding.GetSkeleton())
        self.names = list(self.binding.GetSkeleton().GetJointNamesAttr().Get())

    def joints(self, frame: int) -> dict[str, Any]:
        """Poses of the joints in the world, 4x4."""
        from pxr import UsdGeom

        found = self.query.ComputeJointWorldTransforms(UsdGeom.XformCache(frame))
        return dict(zip(self.names, np.array(found).transpose(0, 2, 1), strict=True))

    def points(self, frame: int) -> Any:
        """The points of the mesh, moved by their joints."""
        from pxr import UsdGeom, Vt

        (target,) = self.binding.GetSkinningTargets()
        points = Vt.Vec3fArray(UsdGeom.PointBased(target.GetPrim()).GetPointsAttr().Get())
        moves = self.query.ComputeSkinningTransforms(frame)
        assert target.ComputeSkinnedPoints(moves, points, frame)
        return np.array(points)


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36"])
def test_the_skeleton_moves_as_the_clip(name: str, pxr: Any, tmp_path: Path) -> None:
    clip = waving(load_character(name), frames=9)
    usd.write(clip, tmp_path / "a.usdc")
    shown = Skinned(tmp_path / "a.usdc")
    p, e = forward_kinematics(clip.character, clip.frames)
    rest = quat_matrix(forward_kinematics(clip.character, clip.character.rest_q)[1])
    bind = np.array(shown.query.GetJointWorldBindTransforms()).transpose(0, 2, 1)
    for frame in (0, 4, 8):
        joints = shown.joints(frame)
        for i, link in enumerate(clip.character.links):
            X = joints[link.name]
            np.testing.assert_allclose(X[:3, 3], p[frame, i], atol=1e-5)
            # a bone has axes of its own, but turns from where it was bound as the link does
            turned = X[:3, :3] @ bind[shown.names.index(link.name)][:3, :3].T
            expected = quat_matrix(e[frame, i]) @ rest[i].T
            np.testing.assert_allclose(turned, expected, atol=1e-5)


def test_the_skinned_mesh_is_where_the_shapes_are(pxr: Any, tmp_path: Path) -> None:
    clip = waving(load_character("humanoid"), frames=5)
    usd.write(clip, tmp_path / "a.usdc")
    p, e = forward_kinematics(clip.character, clip.frames)
    expected = [
        triangles(shape).positions @ quat_matrix(e[4, i]).T + p[4, i]
        for i, link in enumerate(clip.character.links)
        for shape in link.shapes
    ]
    points = Skinned(tmp_path / "a.usdc").points(4)
    np.testing.assert_allclose(points, np.concatenate(expected), atol=1e-5)


def test_names_of_joints_are_those_of_the_source(pxr: Any, tmp_path: Path) -> None:
    clip = merged()
    usd.write(clip, tmp_path / "a.usda")
    shown = Skinned(tmp_path / "a.usda")
    assert clip.source is not None
    assert shown.names == list(clip.source.names)
    paths, _ = poses_of(clip.character, clip.source, clip.frames)
    for i, name in enumerate(shown.names):
        np.testing.assert_allclose(shown.joints(3)[name][:3, 3], paths[i, 3], atol=1e-5)


@pytest.mark.parametrize("skin", [True, False])
def test_the_validators_of_usd_core_find_nothing(skin: bool, pxr: Any, tmp_path: Path) -> None:
    checks = pytest.importorskip("pxr.UsdValidation", reason="this usd-core has no validators")
    usd.write(waving(load_character("dog"), frames=3), tmp_path / "a.usdc", skin=skin)
    context = checks.ValidationContext(checks.ValidationRegistry().GetOrLoadAllValidators())
    found = context.Validate(pxr.Stage.Open(str(tmp_path / "a.usdc")))
    assert [(error.GetName(), error.GetMessage()) for error in found] == []


@pytest.mark.data
@pytest.mark.parametrize("file", ["cmu_bvh/02_01.bvh", "mass/motion/backflip.bvh"])
def test_all_joints_of_a_real_file_are_there(
    file: str, pxr: Any, data_folder: Path, tmp_path: Path
) -> None:
    clip = load_clip(data_folder / file)
    usd.write(clip, tmp_path / "a.usdc")
    shown = Skinned(tmp_path / "a.usdc")
    assert clip.source is not None
    paths, _ = poses_of(clip.character, clip.source, clip.frames)
    assert set(shown.names) == set(clip.source.names)
    for frame in (0, len(clip) // 2, len(clip) - 1):
        joints = shown.joints(frame)
        for i, name in enumerate(clip.source.names):
            np.testing.assert_allclose(joints[name][:3, 3], paths[i, frame], atol=1e-5)


def test_every_shape_is_as_large_as_it_is(pxr: Any, tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom

    shapes = [
        Shape("sphere", (0.3,), (1.0, 0.0, 0.0)),
        Shape("capsule", (0.2, 0.5), color=(1.0, 0.0, 0.0, 0.5)),
        Shape("cylinder", (0.2, 0.5), quat=(0.5, 0.5, 0.5, 0.5)),
        Shape("box", (0.1, 0.2, 0.3), (0.0, 0.0, 1.0)),
        Shape.mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]),
    ]
    link = Link.from_shapes("a", None, shapes, joints=[Joint("root", "free")])
    character = Character("solids", (link,))
    usd.write(Clip(character, character.rest_q[None], 30.0), tmp_path / "a.usda", skin=False)
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    sizes = [(0.6,) * 3, (0.4, 0.4, 1.4), (1.0, 0.4, 0.4), (0.2, 0.4, 0.6), (1.0, 1.0, 1.0)]
    for k, size in enumerate(sizes):
        prim = stage.GetPrimAtPath(f"/solids/a/shape_{k}")
        cache = UsdGeom.BBoxCache(Usd.TimeCode(0), [UsdGeom.Tokens.default_])
        box = cache.ComputeWorldBound(prim).ComputeAlignedRange()
        np.testing.assert_allclose(box.GetSize(), size, atol=1e-6)


def test_names_that_usd_does_not_take_stay_apart(pxr: Any, tmp_path: Path) -> None:
    free, solid = Joint("root", "free"), [Shape("sphere", (0.1,))]
    links = [Link.from_shapes("left hip", None, solid, joints=[free])]
    for i, name in enumerate(["a b", "a.b", "shape_0", "1", "Hüfte"]):
        joint = Joint(f"j{i}", "ball", pos=(0.0, 0.0, 1.0))
        links.append(Link.from_shapes(name, "left hip", solid, joints=[joint]))
    check(waving(Character("two words", tuple(links)), frames=3), tmp_path / "a.usda")


def test_without_usd_core_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(ClipError, match=r"pip install poise\[usd\]"):
        usd.write(waving(load_character("two-link"), frames=2), tmp_path / "a.usda")


def test_a_skin_is_there_or_not(pxr: Any, tmp_path: Path) -> None:
    with pytest.raises(ClipError, match="skin must be True or False"):
        usd.write(waving(load_character("two-link"), 2), tmp_path / "x.usda", skin=3)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_said_and_leaves_nothing(pxr: Any, tmp_path: Path) -> None:
    clip = waving(load_character("two-link"), frames=2)
    with pytest.raises(ClipError, match=r"missing.*cannot be written"):
        usd.write(clip, tmp_path / "missing" / "a.usda")
    with pytest.raises(ClipError, match=r"\.usda, \.usdc"):
        usd.write(clip, tmp_path / "a.xyz")
    (tmp_path / "folder.usda").mkdir()
    with pytest.raises(ClipError, match="cannot be written"):
        usd.write(clip, tmp_path / "folder.usda")
    for name in ("a" * 300 + ".usda", "a\0.usda"):
        with pytest.raises(ClipError, match="cannot be written"):
            usd.write(clip, tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.usda"]
