"""Our own clip files, lossless.

A clip is an .npz archive of three arrays or four, without pickles:

    frames      the poses q, float64, shape (frames, nq)
    character   the character's YAML file, UTF-8 bytes
    meta        UTF-8 bytes of JSON: format "poise-clip", version 1, name, fps, and source, the rig
                of the file that the clip came from, or null; notes, a list of texts, if there are
    contacts    which points stand, 0 or 1, uint8, shape (frames, points); then meta has a list of
                the same name with [foot, link, [x, y, z]] of each point, "sliding" if they slide,
                and "detected" if they were found from the motion. Left out if unknown

Everything comes back bit for bit, and the same clip gives the same bytes. A file of AMASS has the
same ending; `read` hands it on.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint
from poise.anatomy.rig import AXES, Rig, RigJoint
from poise.characters import as_builtin
from poise.errors import CharacterError, ClipError, shorten, unknown_name
from poise.io.archive import Archive, pack, text_bytes
from poise.io.files import parse_json, write_atomically
from poise.model.character import Character
from poise.model.formats import yaml
from poise.model.validation import check_vector
from poise.motion.clip import Clip
from poise.motion.formats import amass, name_in_errors

FORMAT = "poise-clip"
VERSION = 1
MEMBERS = ("frames", "character", "meta")
OPTIONAL = ("contacts",)
FLAGS = ("sliding", "detected")  # of contacts, in meta; false if absent

# reading


def read(
    path: str | Path,
    character: Character | None = None,
    *,
    offsets: str | Path | ArrayLike | None = None,
) -> Clip:
    """Read a clip that poise wrote, or one of AMASS.

    Args:
        path: The file.
        character: The character that moves; its joints must be those of the clip. None takes the
            character in the file.
        offsets: Of a clip of AMASS: the joints of its subject's model, see `amass.read`.
    """
    path = Path(path)
    with Archive.open(path, ClipError) as archive:
        if "meta" not in archive.names and {"poses", "pose_body"} & archive.names:
            return amass.read(path, character, offsets=offsets)
        if offsets is not None:
            raise ClipError(f"{path}: is no clip of AMASS; only those take offsets")
        unknown = archive.names - {*MEMBERS, *OPTIONAL}
        missing = set(MEMBERS) - archive.names
        if missing and {"scene", "contact_which"} <= archive.names:
            raise ClipError(f"{path}: is a recording: load_recording(path).clip() is its motion")
        if missing:
            raise ClipError(
                f"{path}: is neither a clip of poise nor of AMASS: it needs "
                f"{shorten(sorted(missing))}, it has {shorten(sorted(archive.names), 12)}"
            )
        if unknown:
            raise ClipError(
                f"{path}: {unknown_name('array', sorted(unknown)[0], MEMBERS + OPTIONAL)}"
            )
        data = parse_json(archive.text("meta"), f"{path}: meta", ClipError)
        text = archive.text("character")
        frames = archive.array("frames", "f", 2)
        on = archive.array("contacts", "u", 2) if "contacts" in archive.names else None
    if frames.dtype != np.dtype("<f8"):
        raise ClipError(f"{path}: frames: must be float64, got {frames.dtype}")
    meta = _meta(data, f"{path}: meta")
    source = rig_from(meta.source, f"{path}: meta")
    try:
        own = as_builtin(yaml.parse(text, f"{path}: character"))
    except CharacterError as error:
        raise ClipError(str(error)) from error
    with name_in_errors(path):
        clip = Clip(
            _checked_character(own, character),
            frames,
            meta.fps,
            source=source,
            name=meta.name,
            contacts=_contacts(meta, on),
            notes=meta.notes,
        )
    if np.abs(clip.frames - frames).max(initial=0.0) < 1e-12:
        # they were unit quaternions: normalised once more, they would differ in the last bit
        vars(clip)["frames"] = np.array(frames, dtype=np.float64, order="C")
        clip.frames.flags.writeable = False
    return clip


def _checked_character(own: Character, desired: Character | None) -> Character:
    """The desired character, if it has the joints of the file's own."""
    if desired is None:
        return own
    if not isinstance(desired, Character):
        raise ClipError(f"a clip moves a Character, got {desired!r:.80}")
    a, b = ([(joint.name, joint.kind) for joint in x.joints] for x in (own, desired))
    if a != b:
        raise ClipError(
            f"the clip moves {own.name!r}, whose joints are not those of {desired.name!r}: "
            f"{shorten((name for name, _ in a), 12)}"
        )
    return desired


class Meta(msgspec.Struct):
    """What `meta` holds besides format and version."""

    name: str
    fps: Annotated[float, msgspec.Meta(gt=0.0, lt=1e9)]
    source: Any = None
    notes: tuple[str, ...] = ()
    contacts: tuple[tuple[str, str, tuple[float, float, float]], ...] | None = None
    sliding: bool = False
    detected: bool = False


def _meta(data: Any, where: str) -> Meta:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ClipError(f"{where}: format must be {FORMAT!r}")
    if data.get("version") != VERSION:
        raise ClipError(
            f"{where}: version must be {VERSION}, got {data.get('version')!r:.80}; "
            "a newer poise may read it"
        )
    try:
        return msgspec.convert(data, Meta)
    except msgspec.ValidationError as error:
        raise ClipError(
            f"{where}: {error}; it needs name, a text, and fps, a positive number; notes are "
            "texts, points of contacts [foot, link, [x, y, z]], flags true or false"
        ) from error


def _contacts(meta: Meta, on: NDArray[Any] | None) -> ContactSchedule | None:
    """Contacts from the array and the points in meta; both or neither."""
    if on is None and meta.contacts is None:
        return None
    if on is None or meta.contacts is None:
        raise ClipError("contacts: needs the array, and the list of its points in meta")
    points = tuple(
        ContactPoint(foot, link, check_vector(f"contacts: point {i}: pos", pos, 3))
        for i, (foot, link, pos) in enumerate(meta.contacts)
    )
    if on.shape[1] != len(points) or on.max(initial=0) > 1:
        raise ClipError(
            f"contacts: must be 0 or 1 for each frame and each of the {len(points)} points, got "
            f"shape {on.shape} and up to {on.max(initial=0)}"
        )
    return ContactSchedule(points, on.astype(bool), sliding=meta.sliding, detected=meta.detected)


def rig_from(data: Any, where: str) -> Rig | None:
    """The rig in the data of a JSON text; None if there is none."""
    if data is None:
        return None
    try:
        # the constructors refuse unknown keys, msgspec other types
        loose = Rig(**{**data, "joints": [RigJoint(**joint) for joint in data["joints"]]})
        rig = msgspec.convert(asdict(loose), Rig)
        _check_rig(rig)
    except (TypeError, ValueError, LookupError, OverflowError, RecursionError) as error:
        names = [field.name for field in fields(Rig)]
        raise ClipError(f"{where}: source is no rig of {shorten(names)}: {error!s:.120}") from error
    return rig


def _check_rig(rig: Rig) -> None:
    """Raises a ValueError where values of the right types make no rig."""
    for number in (rig.unit, rig.fps):
        if not 0.0 < number < np.inf:
            raise ValueError(f"unit and fps must be positive, got {number!r:.80}")
    if len(set(rig.names)) < len(rig.joints):
        raise ValueError("names of joints must be texts that differ")
    for i, joint in enumerate(rig.joints):
        if not min(i, 1) - 1 <= joint.parent < i:
            raise ValueError(f"the parent of joint {joint.name!r} must come before it")
        for vector, size in ((joint.offset, 3), (joint.quat, 4), (joint.end or (0.0,) * 3, 3)):
            if len(vector) != size or not all(abs(x) < 1e15 for x in vector):
                raise ValueError(f"vectors of joint {joint.name!r} must be {size} numbers")
        for channel in joint.channels:
            if channel[:1] not in AXES or channel[1:] not in ("position", "rotation"):
                raise ValueError(f"channel {channel!r:.80} of joint {joint.name!r}")


# writing


def write(clip: Clip, path: str | Path, resolution: float = 0.0) -> None:
    """Write a clip, whole or not at all.

    Args:
        clip: What to write.
        path: Where.
        resolution: Poses are rounded to its multiples [m, rad]: their last bits are noise that no
            compression makes smaller. 0 keeps all.
    """
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "name": clip.name,
        "fps": clip.fps,
        "source": None if clip.source is None else asdict(clip.source),
    }
    if clip.notes:
        meta["notes"] = list(clip.notes)
    if clip.contacts is not None:
        meta["contacts"] = [list(point) for point in clip.contacts.points]
        meta |= {name: True for name in FLAGS if getattr(clip.contacts, name)}
    frames = resolution * np.round(clip.frames / resolution) if resolution else clip.frames
    members: dict[str, NDArray[Any]] = {
        "frames": np.asarray(frames, dtype="<f8"),
        "character": text_bytes(yaml.dump(clip.character)),
        "meta": text_bytes(json.dumps(meta, ensure_ascii=False)),
    }
    if clip.contacts is not None:
        members["contacts"] = clip.contacts.on.astype(np.uint8)
    write_atomically(Path(path), pack(members))
