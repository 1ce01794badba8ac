"""Clips as USD: a skeleton with a skinned mesh (UsdSkel), or one Xform per joint with its shapes.

z is up, units are metres and characters look along x, as in poise itself; in Blender, where they
look along -y, a USD is turned by a quarter against a GLB or BVH of the same clip. Time codes are
frames: `timeCodesPerSecond` is the clip's rate. Needs usd-core: `pip install poise[usd]`.

    /name            SkelRoot
    /name/skeleton   Skeleton: joints by path, where they were bound and where they rest
    /name/animation  SkelAnimation: poses of the joints in their parents, per frame
    /name/mesh       Mesh of all shapes in the rest pose, every point bound to one joint

Joints of a skeleton are turned so that their y is along the bone, which is how Blender shows bones.
Its numbers have 32 bits.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import ClipError
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Shape
from poise.model.geometry import triangles, triangles_in_world
from poise.motion.clip import Clip
from poise.motion.formats.glb_write import Nodes, linear_color, nodes_of

SUFFIXES = (".usd", ".usda", ".usdc")


def write(clip: Clip, path: str | os.PathLike[str], *, skin: bool = True) -> None:
    """Write a clip on its character; .usda is text, .usdc and .usd are binary.

    Skinned is the default: Blender and others make an armature with one action of it. Xforms come
    in as one object per joint.

    Args:
        clip: The motion.
        path: Where to.
        skin: A skeleton and one mesh bound to it; False: solids below moving Xforms.
    """
    try:
        from pxr import Tf, Usd
    except ImportError as error:
        raise ClipError(f"{path}: USD needs usd-core; run `pip install poise[usd]`") from error
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ClipError(f"{path}: USD files end in {', '.join(SUFFIXES)}")
    if not isinstance(skin, bool):
        raise ClipError(f"{path}: skin must be True or False, got {skin!r:.80}")
    part = None
    try:
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise ClipError(f"{path}: cannot be written: no folder {target.parent}")
        stage = Usd.Stage.CreateInMemory()
        _fill_stage(stage, clip, skin)
        # usd-core chooses the format by the ending, so the part keeps it
        part = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix.lower()}")
        stage.GetRootLayer().Export(str(part))
        os.replace(part, target)
    except (OSError, ValueError, Tf.ErrorException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ClipError(f"{path}: cannot be written: {reason}") from error
    finally:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink()


def _fill_stage(stage: Any, clip: Clip, skin: bool) -> None:
    """Put character and motion onto a stage."""
    from pxr import Tf, UsdGeom

    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(clip.fps)
    stage.SetFramesPerSecond(clip.fps)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(len(clip) - 1)
    nodes = nodes_of(clip)
    path = "/" + Tf.MakeValidIdentifier(clip.character.name)
    add = add_skeleton if skin else add_xforms
    root = add(stage, path, clip.character, nodes)
    root.SetCustomDataByKey("poise:character", clip.character.name)
    root.SetCustomDataByKey("poise:clip", clip.name)
    stage.SetDefaultPrim(root)


# UsdSkel: skeleton, animation and one bound mesh


def add_skeleton(stage: Any, path: str, character: Character, nodes: Nodes) -> Any:
    """Add a skinned character; the prim of its root."""
    from pxr import UsdSkel

    nodes = nodes.as_bones((0.0, 1.0, 0.0))
    root = UsdSkel.Root.Define(stage, path)
    skeleton = UsdSkel.Skeleton.Define(stage, f"{path}/skeleton")
    joints = _paths(nodes)
    skeleton.CreateJointsAttr(joints)
    skeleton.CreateJointNamesAttr(list(nodes.names))
    skeleton.CreateBindTransformsAttr(_matrices(nodes.rest_p, nodes.rest_e))
    skeleton.CreateRestTransformsAttr(_matrices(*nodes.local_rest()))
    animation = _add_animation(stage, f"{path}/animation", joints, nodes)
    binding = UsdSkel.BindingAPI.Apply(skeleton.GetPrim())
    binding.CreateAnimationSourceRel().SetTargets([animation.GetPath()])
    if any(link.shapes for link in character.links):
        mesh = _add_mesh(stage, f"{path}/mesh", character, nodes)
        UsdSkel.BindingAPI.Apply(mesh).CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    return root.GetPrim()


def _paths(nodes: Nodes, root: str = "", character: Character | None = None) -> list[str]:
    """Paths of the nodes; names become identifiers that differ.

    Args:
        nodes: The nodes.
        root: Path of what they hang on.
        character: The character whose shapes hang on the nodes, and have paths as well.
    """
    from pxr import Tf

    paths: list[str] = []
    taken = {root}
    for name, parent, number in zip(nodes.names, nodes.parents, nodes.links, strict=True):
        above = root if parent < 0 else paths[parent]
        path = first = "/".join(filter(None, (above, Tf.MakeValidIdentifier(name))))
        count = 2
        while path in taken:
            path, count = f"{first}_{count}", count + 1
        paths.append(path)
        shapes = character.links[number].shapes if character and number >= 0 else ()
        taken |= {path, *(f"{path}/shape_{k}" for k in range(len(shapes)))}
    return paths


def _matrices(p: Floats, e: Floats) -> Any:
    """Poses as matrices of USD, whose vectors are rows."""
    from pxr import Vt

    X = np.tile(np.eye(4), (len(p), 1, 1))
    X[:, :3, :3] = quat_matrix(e).transpose(0, 2, 1)
    X[:, 3, :3] = p
    return Vt.Matrix4dArray.FromNumpy(X)


def _add_animation(stage: Any, path: str, joints: list[str], nodes: Nodes) -> Any:
    from pxr import UsdSkel, Vt

    animation = UsdSkel.Animation.Define(stage, path)
    animation.CreateJointsAttr(joints)
    shift, turn = animation.CreateTranslationsAttr(), animation.CreateRotationsAttr()
    ones = np.ones((len(joints), 3), dtype=np.float16)
    animation.CreateScalesAttr(Vt.Vec3hArray.FromNumpy(ones))
    p, e = (x.astype(np.float32) for x in nodes.local())
    for frame in range(len(p)):
        shift.Set(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(p[frame])), frame)
        # USD keeps the real part last in memory
        turn.Set(Vt.QuatfArray.FromNumpy(np.ascontiguousarray(e[frame][:, [1, 2, 3, 0]])), frame)
    return animation


def _add_mesh(stage: Any, path: str, character: Character, nodes: Nodes) -> Any:
    """One mesh of all shapes, each in its colour; its prim."""
    from pxr import UsdGeom, UsdSkel, Vt

    points, faces, colors, joints, start = [], [], [], [], 0
    for i, number in enumerate(nodes.links):
        for shape in character.links[number].shapes if number >= 0 else ():
            found = triangles_in_world(shape, nodes.rest_p[i], nodes.link_rest_e[i])
            points.append(found.positions)
            faces.append(found.faces + start)
            colors.append(linear_color(shape.color))
            joints.append(np.full(len(found.positions), i))
            start += len(found.positions)
    mesh = UsdGeom.Mesh.Define(stage, path)
    xyz = np.concatenate(points).astype(np.float32)
    corners = np.concatenate(faces).ravel().astype(np.int32)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(xyz))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(corners))
    mesh.CreateFaceVertexCountsAttr([3] * (len(corners) // 3))
    mesh.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(np.stack([xyz.min(axis=0), xyz.max(axis=0)])))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    _add_materials(stage, mesh, colors, [len(part) for part in faces])
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    one = Vt.IntArray.FromNumpy(np.concatenate(joints).astype(np.int32))
    binding.CreateJointIndicesPrimvar(False, 1).Set(one)
    binding.CreateJointWeightsPrimvar(False, 1).Set([1.0] * len(xyz))
    binding.CreateGeomBindTransformAttr().Set(_matrices(np.zeros((1, 3)), np.eye(4)[:1])[0])
    return mesh.GetPrim()


def _add_materials(
    stage: Any, mesh: Any, colors: list[tuple[float, float, float, float]], counts: list[int]
) -> None:
    """A material for each colour, on the faces that have it.

    Args:
        stage: The stage.
        mesh: The mesh.
        colors: Colour and opacity of each part of the mesh, linear.
        counts: Faces of each part.
    """
    from pxr import Gf, Sdf, UsdGeom, UsdShade, Vt

    of_face = np.repeat(np.arange(len(counts)), counts)
    each = np.array(colors, dtype=np.float32)[of_face, :3]
    mesh.CreateDisplayColorPrimvar(UsdGeom.Tokens.uniform).Set(Vt.Vec3fArray.FromNumpy(each))
    for k, color in enumerate(dict.fromkeys(colors)):
        material = UsdShade.Material.Define(stage, f"{mesh.GetPath().GetParentPath()}/color_{k}")
        surface = UsdShade.Shader.Define(stage, f"{material.GetPath()}/surface")
        surface.CreateIdAttr("UsdPreviewSurface")
        surface.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(*color[:3]))
        surface.CreateInput("opacity", Sdf.ValueTypeNames.Float).Set(color[3])
        surface.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(0.8)
        material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
        own = np.flatnonzero([colors[part] == color for part in of_face]).astype(np.int32)
        subset = UsdShade.MaterialBindingAPI(mesh.GetPrim()).CreateMaterialBindSubset(
            f"color_{k}", Vt.IntArray.FromNumpy(own)
        )
        UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(material)


# Xforms with time samples, shapes as solids below them


def add_xforms(stage: Any, path: str, character: Character, nodes: Nodes) -> Any:
    """Add one Xform per node below one for the character; that one's prim."""
    from pxr import UsdGeom

    root = UsdGeom.Xform.Define(stage, path)
    paths = _paths(nodes, path, character)
    p, e = nodes.local()
    p_rest, e_rest = nodes.local_rest()
    for i, number in enumerate(nodes.links):
        form = UsdGeom.Xform.Define(stage, paths[i])
        form.GetPrim().SetCustomDataByKey("poise:link", nodes.names[i])
        _set_pose(form, p_rest[i], e_rest[i], p[:, i], e[:, i])
        if number >= 0:
            for k, shape in enumerate(character.links[number].shapes):
                _add_shape(stage, f"{paths[i]}/shape_{k}", shape)
    return root.GetPrim()


def _set_pose(form: Any, p_rest: Any, e_rest: Any, p: Any, e: Any) -> None:
    """Set where an Xform rests and, where it moves or there is one frame, where it is in each."""
    from pxr import Gf, UsdGeom

    shift = form.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble)
    turn = form.AddOrientOp(UsdGeom.XformOp.PrecisionDouble)
    shift.Set(Gf.Vec3d(*p_rest.tolist()))
    turn.Set(Gf.Quatd(*e_rest.tolist()))
    if len(p) == 1 or np.abs(p - p_rest).max(initial=0.0) > 1e-9:
        for frame, value in enumerate(p.tolist()):
            shift.Set(Gf.Vec3d(*value), frame)
    if len(e) == 1 or np.abs(e - e_rest).max(initial=0.0) > 1e-9:
        for frame, value in enumerate(e.tolist()):
            turn.Set(Gf.Quatd(*value), frame)


def _add_shape(stage: Any, path: str, shape: Shape) -> None:
    """A solid of USD for a shape."""
    from pxr import Gf, UsdGeom, Vt

    r, half = (*shape.size, 0.0, 0.0)[:2]
    pose, scale = True, None
    if shape.kind == "sphere":
        solid = UsdGeom.Sphere.Define(stage, path)
        solid.CreateRadiusAttr(r)
    elif shape.kind == "box":
        solid = UsdGeom.Cube.Define(stage, path)
        solid.CreateSizeAttr(2.0)
        scale = Gf.Vec3d(*shape.size)
    elif shape.kind == "mesh":
        solid, pose = UsdGeom.Mesh.Define(stage, path), False
        mesh = triangles(shape)
        solid.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(mesh.positions.astype(np.float32)))
        solid.CreateFaceVertexCountsAttr([3] * len(mesh.faces))
        solid.CreateFaceVertexIndicesAttr(mesh.faces.ravel().tolist())
        solid.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    else:
        define = UsdGeom.Capsule if shape.kind == "capsule" else UsdGeom.Cylinder
        solid = define.Define(stage, path)
        solid.CreateRadiusAttr(r)
        solid.CreateHeightAttr(2.0 * half)
        solid.CreateAxisAttr(UsdGeom.Tokens.z)
    if shape.kind != "mesh":
        solid.CreateExtentAttr(solid.ComputeExtentFromPlugins(solid, 0))
    *linear, alpha = linear_color(shape.color)
    solid.CreateDisplayColorAttr([Gf.Vec3f(*linear)])
    if alpha < 1.0:
        solid.CreateDisplayOpacityAttr([alpha])
    if pose:
        empty = np.empty((0, 3))
        _set_pose(solid, np.array(shape.pos), np.array(shape.quat), empty, np.empty((0, 4)))
    if scale is not None:
        solid.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(scale)
