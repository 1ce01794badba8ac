"""Clips as USD: one Xform per link with time samples, its shapes as solids below it.

z is up and units are metres, as in poise itself. Time codes are frames: `timeCodesPerSecond` is the
clip's rate. Needs usd-core: `pip install poise[usd]`.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from poise.character import Character, Shape
from poise.errors import ClipError
from poise.motion.clip import Clip
from poise.motion.formats.glb_mesh import triangles
from poise.motion.formats.glb_write import GREY, local_poses

SUFFIXES = (".usd", ".usda", ".usdc")


def write(clip: Clip, path: str | os.PathLike[str]) -> None:
    """Write a clip on its character; .usda is text, .usdc and .usd are binary."""
    try:
        from pxr import Tf, Usd
    except ImportError as error:
        raise ClipError(f"{path}: USD needs usd-core; run `pip install poise[usd]`") from error
    target = Path(os.path.realpath(path))
    if target.suffix.lower() not in SUFFIXES:
        raise ClipError(f"{path}: USD files end in {', '.join(SUFFIXES)}")
    # usd-core tells the format by the ending, so the part keeps it
    part = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix.lower()}")
    try:
        stage = Usd.Stage.CreateInMemory()
        _fill(stage, clip)
        if not target.parent.is_dir():
            raise ClipError(f"{path}: cannot be written: no folder {target.parent}")
        stage.GetRootLayer().Export(str(part))
        os.replace(part, target)
    except (OSError, ValueError, Tf.ErrorException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ClipError(f"{path}: cannot be written: {reason}") from error
    finally:
        part.unlink(missing_ok=True)


def _fill(stage: Any, clip: Clip) -> None:
    """Put character and motion onto a stage."""
    from pxr import UsdGeom

    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(clip.fps)
    stage.SetFramesPerSecond(clip.fps)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(len(clip) - 1)
    paths = _paths(clip.character)
    root = UsdGeom.Xform.Define(stage, paths[None])
    root.GetPrim().SetCustomDataByKey("poise:character", clip.character.name)
    root.GetPrim().SetCustomDataByKey("poise:clip", clip.name)
    stage.SetDefaultPrim(root.GetPrim())
    p, e = local_poses(clip.character, clip.frames)
    p_rest, e_rest = local_poses(clip.character, clip.character.rest_q[None])
    for i, link in enumerate(clip.character.links):
        form = UsdGeom.Xform.Define(stage, paths[link.name])
        form.GetPrim().SetCustomDataByKey("poise:link", link.name)
        moving = bool(link.joints)
        _pose(form, p_rest[0, i], e_rest[0, i], p[:, i] if moving else None, e[:, i])
        for k, shape in enumerate(link.shapes):
            _add_shape(stage, f"{paths[link.name]}/shape_{k}", shape)


def _paths(character: Character) -> dict[str | None, str]:
    """The place of each link on the stage; None: of the character. Names become identifiers."""
    from pxr import Tf

    paths: dict[str | None, str] = {None: "/" + Tf.MakeValidIdentifier(character.name)}
    taken = set(paths.values())
    for link in character.links:
        path = first = f"{paths[link.parent]}/{Tf.MakeValidIdentifier(link.name)}"
        number = 2
        while path in taken:
            path, number = f"{first}_{number}", number + 1
        paths[link.name] = path
        taken |= {path, *(f"{path}/shape_{k}" for k in range(len(link.shapes)))}
    return paths


def _pose(form: Any, p_rest: Any, e_rest: Any, p: Any, e: Any) -> None:
    """Set where an Xform rests and, unless p is None, where it is in each frame."""
    from pxr import Gf, UsdGeom

    shift = form.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble)
    turn = form.AddOrientOp(UsdGeom.XformOp.PrecisionDouble)
    shift.Set(Gf.Vec3d(*p_rest.tolist()))
    turn.Set(Gf.Quatd(*e_rest.tolist()))
    if p is None:
        return
    if len(p) == 1 or np.abs(p - p_rest).max() > 1e-9:
        for frame, value in enumerate(p.tolist()):
            shift.Set(Gf.Vec3d(*value), frame)
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
    color = shape.color or GREY
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    solid.CreateDisplayColorAttr([Gf.Vec3f(*linear)])
    if len(color) > 3:
        solid.CreateDisplayOpacityAttr([color[3]])
    if pose:
        _pose(solid, np.array(shape.pos), np.array(shape.quat), None, None)
    if scale is not None:
        solid.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(scale)
