"""A moving character on a USD stage as Xforms with time samples, shapes as solids below them."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.model.character import Character, Shape
from poise.motion.formats.glb_mesh import linear_color, triangles
from poise.motion.formats.glb_tree import Nodes


def add_xforms(stage: Any, path: str, character: Character, nodes: Nodes) -> Any:
    """Add one Xform per node below one for the character; that one's prim."""
    from pxr import UsdGeom

    root = UsdGeom.Xform.Define(stage, path)
    paths = _paths(path, character, nodes)
    p, e = nodes.local()
    p_rest, e_rest = nodes.local_rest()
    for i, number in enumerate(nodes.links):
        form = UsdGeom.Xform.Define(stage, paths[i])
        form.GetPrim().SetCustomDataByKey("poise:link", nodes.names[i])
        _pose(form, p_rest[i], e_rest[i], p[:, i], e[:, i])
        if number >= 0:
            for k, shape in enumerate(character.links[number].shapes):
                _add_shape(stage, f"{paths[i]}/shape_{k}", shape)
    return root.GetPrim()


def _paths(root: str, character: Character, nodes: Nodes) -> list[str]:
    """The place of each node on the stage. Names become identifiers that differ."""
    from pxr import Tf

    paths: list[str] = []
    taken = {root}
    for name, parent, number in zip(nodes.names, nodes.parents, nodes.links, strict=True):
        above = root if parent < 0 else paths[parent]
        path = first = f"{above}/{Tf.MakeValidIdentifier(name)}"
        count = 2
        while path in taken:
            path, count = f"{first}_{count}", count + 1
        paths.append(path)
        shapes = character.links[number].shapes if number >= 0 else ()
        taken |= {path, *(f"{path}/shape_{k}" for k in range(len(shapes)))}
    return paths


def _pose(form: Any, p_rest: Any, e_rest: Any, p: Any, e: Any) -> None:
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
        _pose(solid, np.array(shape.pos), np.array(shape.quat), empty, np.empty((0, 4)))
    if scale is not None:
        solid.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(scale)
