"""Motions: clips, and the files they come from and go to.

load_clip("walk")                   a clip of our own, by its name
load_clip("take.bvh")               on a character made from the file's own skeleton
load_clip("take.bvh", character)    on this character, prepared to be followed
"""

from __future__ import annotations

import importlib
import inspect
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poise.errors import ClipError, ClipNotice, unknown_name, warn_user
from poise.io.files import check_file, suffix_of
from poise.math.arrays import Progress
from poise.model.character import Character
from poise.motion.clip import Clip

if TYPE_CHECKING:
    from poise.motion.retargeting.matching import MapLike

DEEPMIMIC = {".txt": "deepmimic", ".json": "deepmimic"}
USD = {".usd": "usd", ".usda": "usd", ".usdc": "usd"}

READERS = {".bvh": "bvh", ".amc": "amc", ".glb": "glb", ".gltf": "glb", ".npz": "npz", **DEEPMIMIC}
"""Modules of poise.motion.formats that read files, by their ending."""

WRITERS = {".bvh": "bvh", ".glb": "glb", ".npz": "npz", **DEEPMIMIC, **USD}
"""Modules of poise.motion.formats that write files, by their ending."""


def load_clip(
    source: str | os.PathLike[str],
    character: Character | None = None,
    *,
    prepare: bool | None = None,
    map: MapLike = None,
    progress: Progress | None = None,
    **options: Any,
) -> Clip:
    """Load a motion: a file, or a clip of our own.

    Raw motion that gets a character is prepared, so that it can be followed in a world: a pose that
    was put in before the first frame is left out, noise is smoothed away, and standing feet come to
    the height of the ground. The notes of the clip list the changes, and a `ClipNotice` reports
    them once for each file.

    Args:
        source: Path to a .bvh, .amc, .glb, .gltf, .npz (ours or AMASS) or DeepMimic .txt/.json
            file, or to keyframes, .keys.yaml; or the name of a built-in clip.
        character: The character that moves. If its joints are those of the file, or it is the same
            body as the clip's (`Character.same_body`), it moves as the file says; else the motion
            is retargeted (`Clip.retargeted`). None takes the character
            of the clip, or makes one from the file's own skeleton.
        prepare: Whether raw motion is prepared; False gives the file as it is, retargeted only.
            None prepares it if a character is given. Built-in clips, keyframes and other clips that
            know their contacts and have no jumps are taken as they are.
        map: Which link moves which when retargeting: a dictionary or a YAML file.
        progress: Called while retargeting with the finished fraction, 0 to 1.
        options: What the format's own `read` takes besides: `poise.motion.formats`.
    """
    if prepare is not None and not isinstance(prepare, bool):
        raise ClipError(f"prepare must be True, False or None, got {prepare!r:.80}")
    if prepare or (prepare is None and character is not None):
        from poise.motion.preprocess import load_preprocessed

        return load_preprocessed(
            source, character, map=map, progress=progress, prepared=_notify_once, **options
        )
    clip, _ = read_motion(source, character, map, options)
    return fit_to_character(clip, character, source, map, progress)


_NOTIFIED: set[str] = set()
"""Files whose preparation was reported."""


def _notify_once(source: str | os.PathLike[str], notes: tuple[str, ...]) -> None:
    path = os.path.abspath(source)
    if notes and path not in _NOTIFIED:
        warn_user(
            f"{source}: prepared to be followed (prepare=False gives the file as it is): "
            f"{'; '.join(notes)}",
            ClipNotice,
        )
        _NOTIFIED.add(path)


def read_motion(
    source: str | os.PathLike[str] | Clip,
    character: Character | None,
    map: MapLike,
    options: dict[str, Any],
) -> tuple[Clip, bool]:
    """A motion as it is, and whether it is raw: not ours, and without contacts, or with jumps.

    Args:
        source: As of `load_clip`, or a clip.
        character: The character it is read onto if its joints are those of the file, without a map.
        map: As of `load_clip`.
        options: As of `load_clip`.
    """
    if isinstance(source, Clip):
        return source, _is_raw(source)
    if not isinstance(source, (str, os.PathLike)):
        raise ClipError(f"a clip is named by a path, got {source!r:.80}")
    path = Path(source)
    if not str(source).strip():
        raise ClipError("a clip is named by a path or a name, got an empty one")
    ours = isinstance(source, str) and not path.suffix and not os.path.exists(path)
    if options and (ours or path.name.endswith(".keys.yaml")):
        raise ClipError(f"{source}: takes no options, got {', '.join(options)}")
    if ours:
        from poise.motion.library import builtin_clip

        return builtin_clip(str(source)), False
    if path.name.endswith(".keys.yaml"):
        from poise.motion.keyframes import load_keyframes

        return load_keyframes(path).clip(), False
    clip = _read(path, character if map is None else None, options)
    return clip, _is_raw(clip)


def _is_raw(clip: Clip) -> bool:
    """Whether its contacts are unknown; retargeting does, but leaves a jump in its place."""
    return clip.contacts is None or bool(clip.jumps)


def fit_to_character(
    clip: Clip,
    character: Character | None,
    source: str | os.PathLike[str] | Clip,
    map: MapLike = None,
    progress: Progress | None = None,
) -> Clip:
    """A clip on a character, retargeted unless it is its own; errors name the source.

    Args:
        clip: The motion.
        character: The character that gets the motion; None is the clip's own.
        source: Where it came from.
        map: As of `load_clip`.
        progress: As of `load_clip`.
    """
    if character is None:
        return clip
    same = clip.with_character(character)
    if same is not None:
        return same
    try:
        return clip.retargeted(character, map=map, progress=progress)
    except ClipError as error:
        if isinstance(source, Clip):
            raise
        raise ClipError(f"{source}: {error}") from error


def _read(path: Path, character: Character | None, options: dict[str, Any]) -> Clip:
    """Read a file, onto a character if its joints are those of the file."""
    if os.path.isdir(path):
        check_file(path, ClipError)
    reader = _module(path, READERS, "read")
    check_file(path, ClipError)
    _check_options(reader.read, options, path)
    clip: Clip
    if path.suffix.lower() in (".npz", ".txt", ".json") and character is not None:
        # these files may not name their joints
        try:
            clip = reader.read(path, character=character, **options)
        except ClipError as error:
            try:
                clip = reader.read(path, **options)
            except ClipError:
                raise error from None
        return clip
    if character is None:
        clip = reader.read(path, **options)
        return clip
    make = reader.parse(path, **options)
    clip = make(None)
    if clip.source is None or clip.character.same_body(character):
        return clip
    moving = {link.name for link in character.links if link.joints}
    return make(character) if moving and moving.issubset(clip.source.names) else clip


def save_clip(
    clip: Clip,
    path: str | os.PathLike[str],
    *,
    like: Clip | str | os.PathLike[str] | None = None,
    **options: Any,
) -> None:
    """Write a motion to a file, whole or not at all; its ending says which format.

    Args:
        clip: The motion.
        path: Where to.
        like: A clip or file with the rig of the result: same joints, offsets and order.
        options: What the format's own `write` takes besides: `poise.motion.formats`.
    """
    suffix_of(path, "clips", ClipError)
    path = Path(path)
    write = _module(path, WRITERS, "written").write
    _check_options(write, options, path)
    if like is not None:
        from poise.motion.retargeting.retarget import on_rig

        clip = on_rig(clip, like)
    write(clip, path, **options)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path whose ending no writer knows."""
    _module(Path(path), WRITERS, "written")


def _module(path: Path, known: dict[str, str], verb: str) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".fbx":
        how = "write GLB" if verb == "written" else "export GLB or BVH (Blender: File > Export)"
        raise ClipError(f"{path}: FBX is closed; {how}")
    if suffix not in known:
        endings = ", ".join(sorted(known))
        raise ClipError(f"{path}: files that can be {verb} end in {endings}")
    return importlib.import_module(f"poise.motion.formats.{known[suffix]}")


def _check_options(function: Any, options: dict[str, Any], path: Path) -> None:
    """Refuse options that the format does not have."""
    known = list(inspect.signature(function).parameters)
    for name in options:
        if name not in known:
            own = [option for option in known if option not in ("clip", "path", "character")]
            raise ClipError(f"{path}: {unknown_name('option', name, own)}")


__all__ = ["Clip", "load_clip", "save_clip"]
