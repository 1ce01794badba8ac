"""A moving character on a USD stage as UsdSkel has it: skeleton, animation and one bound mesh.

    /name            SkelRoot
    /name/skeleton   Skeleton: joints by path, where they were bound and where they rest
    /name/animation  SkelAnimation: poses of the joints in their parents, per frame
    /name/mesh       Mesh of all shapes in the rest pose, every point bound to one joint

Joints are turned so that their y is along the bone, which is how Blender shows bones. Numbers have
32 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.model.character import Character
from poise.motion.formats.glb_mesh import linear_color, placed_triangles
from poise.motion.formats.glb_tree import Nodes


def add_skeleton(stage: Any, path: str, character: Character, nodes: Nodes) -> Any:
    """Add a skinned character; the prim of its root."""
    from pxr import UsdSkel

    nodes = nodes.as_bones((0.0, 1.0, 0.0))
    root = UsdSkel.Root.Define(stage, path)
    skeleton = UsdSkel.Skeleton.Define(stage, f"{path}/skeleton")
    joints = _joints(nodes)
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


def _joints(nodes: Nodes) -> list[str]:
    """Paths of the joints; names become identifiers that differ."""
    from pxr import Tf

    paths: list[str] = []
    taken: set[str] = set()
    for name, parent in zip(nodes.names, nodes.parents, strict=True):
        above = "" if parent < 0 else paths[parent] + "/"
        path = first = above + Tf.MakeValidIdentifier(name)
        count = 2
        while path in taken:
            path, count = f"{first}_{count}", count + 1
        paths.append(path)
        taken.add(path)
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
            found = placed_triangles(shape, nodes.rest_p[i], nodes.link_rest_e[i])
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
