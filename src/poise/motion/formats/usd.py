"""Clips as USD: a skeleton with a skinned mesh (UsdSkel), or one Xform per joint with its shapes.

z is up, units are metres and characters look along x, as in poise itself; in Blender, where they
look along -y, a USD is turned by a quarter against a GLB or BVH of the same clip. Time codes are
frames: `timeCodesPerSecond` is the clip's rate. Needs usd-core: `pip install poise[usd]`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

from poise.errors import ClipError
from poise.motion.clip import Clip
from poise.motion.formats.glb_tree import nodes_of

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
        _fill(stage, clip, skin)
        # usd-core tells the format by the ending, so the part keeps it
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


def _fill(stage: Any, clip: Clip, skin: bool) -> None:
    """Put character and motion onto a stage."""
    from pxr import Tf, UsdGeom

    from poise.motion.formats.usd_skel import add_skeleton
    from poise.motion.formats.usd_xforms import add_xforms

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
