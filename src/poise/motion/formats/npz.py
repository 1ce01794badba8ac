"""Our own clip files, lossless; and arrays from .npz files of strangers, read with care.

A clip is an .npz archive of three arrays or four, without pickles:

    frames      the poses q, float64, shape (frames, nq)
    character   the character's YAML file, UTF-8 bytes
    meta        UTF-8 bytes of JSON: format "poise-clip", version 1, name, fps, and source, the rig
                of the file that the clip came from, or null
    contacts    which points stand, 0 or 1, uint8, shape (frames, points); then meta has a list of
                the same name with [foot, link, [x, y, z]] of each point, "sliding" if they slide,
                and "detected" if they were found from the motion. Left out if nobody looked

Everything comes back bit for bit, and the same clip gives the same bytes. A file of AMASS has the
same ending; `read` hands it on.
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.character import Character
from poise.characters.formats import yaml
from poise.errors import (
    CharacterError,
    ClipError,
    PoiseError,
    check_vector,
    shorten,
    unknown_name,
)
from poise.files import check_file, parse_json
from poise.motion.clip import Clip
from poise.motion.contacts import Contacts, Point
from poise.motion.rig import AXES, Rig, RigJoint

FORMAT = "poise-clip"
VERSION = 1
MEMBERS = ("frames", "character", "meta")
OPTIONAL = ("contacts",)
FLAGS = ("sliding", "detected")  # of contacts, in meta; false if absent

LARGEST_FILE = 512 * 2**20  # [bytes]
LARGEST_ARRAY = 256 * 2**20  # [bytes], unpacked
LARGEST_TEXT = 64 * 2**20  # [bytes], unpacked
LARGEST_DIRECTORY = 2**20  # [bytes]: some ten thousand members
LARGEST_HEADER = 4096  # [bytes]

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,  # encrypted; and RecursionError
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    AttributeError,
)
"""What zipfile and NumPy raise on files that are not what they say."""


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
        character: Whose motion it shall be; its joints must be those of the clip. None takes the
            character in the file.
        offsets: Of a clip of AMASS: the joints of its subject's model, see `amass.read`.
    """
    path = Path(path)
    with Archive.open(path) as archive:
        if "meta" not in archive.names and {"poses", "pose_body"} & archive.names:
            from poise.motion.formats import amass

            return amass.read(path, character, offsets=offsets)
        if offsets is not None:
            raise ClipError(f"{path}: is no clip of AMASS; only those take offsets")
        unknown = archive.names - {*MEMBERS, *OPTIONAL}
        missing = set(MEMBERS) - archive.names
        if missing:
            raise ClipError(
                f"{path}: is neither a clip of poise nor of AMASS: it needs "
                f"{shorten(sorted(missing))}, it has {shorten(sorted(archive.names), 12)}"
            )
        if unknown:
            raise ClipError(
                f"{path}: {unknown_name('array', sorted(unknown)[0], MEMBERS + OPTIONAL)}"
            )
        meta = parse_json(archive.text("meta"), f"{path}: meta", ClipError)
        text = archive.text("character")
        frames = archive.array("frames", "f", 2)
        on = archive.array("contacts", "u", 2) if "contacts" in archive.names else None
    if frames.dtype != np.dtype("<f8"):
        raise ClipError(f"{path}: frames: must be float64, got {frames.dtype}")
    name, fps, source = _meta(meta, f"{path}: meta")
    try:
        own = yaml.parse(text, f"{path}: character")
    except CharacterError as error:
        raise ClipError(str(error)) from error
    contacts = _contacts(meta, on, f"{path}: contacts")
    try:
        clip = Clip(_same(own, character), frames, fps, source=source, name=name, contacts=contacts)
    except PoiseError as error:
        raise ClipError(f"{path}: {error}") from error
    if np.abs(clip.frames - frames).max(initial=0.0) < 1e-12:
        # they were unit quaternions: normalised once more, they would differ in the last bit
        clip.frames = np.array(frames, dtype=np.float64, order="C")
        clip.frames.flags.writeable = False
    return clip


def _same(own: Character, wanted: Character | None) -> Character:
    """The wanted character, if it has the joints of the file's own."""
    if wanted is None:
        return own
    if not isinstance(wanted, Character):
        raise ClipError(f"a clip moves a Character, got {wanted!r:.80}")
    a, b = ([(joint.name, joint.kind) for joint in x.joints] for x in (own, wanted))
    if a != b:
        raise ClipError(
            f"the clip moves {own.name!r}, whose joints are not those of {wanted.name!r}: "
            f"{shorten((name for name, _ in a), 12)}"
        )
    return wanted


def _meta(meta: Any, where: str) -> tuple[str, float, Rig | None]:
    """Name, rate and rig."""
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ClipError(f"{where}: format must be {FORMAT!r}")
    if meta.get("version") != VERSION:
        raise ClipError(
            f"{where}: version must be {VERSION}, got {meta.get('version')!r:.80}; "
            "a newer poise may read it"
        )
    name, fps = meta.get("name"), meta.get("fps", 0)
    number = isinstance(fps, (int, float)) and not isinstance(fps, bool)
    if not isinstance(name, str) or not number or not 0.0 < fps < 1e9:
        raise ClipError(f"{where}: needs name, a text, and fps, a positive number")
    return name, float(fps), rig_from(meta.get("source"), where)


def _contacts(meta: Any, on: NDArray[Any] | None, where: str) -> Contacts | None:
    """Contacts from the array and the points in meta; both or neither."""
    given = meta.get("contacts")
    if on is None and given is None:
        return None
    if on is None or not isinstance(given, list):
        raise ClipError(f"{where}: needs the array, and the list of its points in meta")
    points = []
    for i, point in enumerate(given):
        try:
            foot, link, pos = point
            points.append(Point(foot, link, check_vector("pos", pos, 3)))
            named = isinstance(foot, str) and isinstance(link, str)
        except (TypeError, ValueError, CharacterError):
            named = False
        if not named:
            raise ClipError(
                f"{where}: point {i} must be [foot, link, [x, y, z]], got {point!r:.80}"
            )
    if on.shape[1] != len(points) or on.max(initial=0) > 1:
        raise ClipError(
            f"{where}: must be 0 or 1 for each frame and each of the {len(points)} points, got "
            f"shape {on.shape} and up to {on.max(initial=0)}"
        )
    flags = {name: meta.get(name, False) for name in FLAGS}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ClipError(f"{where}: {name!r} in meta must be true or false, got {flag!r:.80}")
    return Contacts(tuple(points), on.astype(bool), **flags)


def rig_from(data: Any, where: str) -> Rig | None:
    if data is None:
        return None
    try:
        joints = data["joints"]
        made = tuple(RigJoint(**{key: _tuple(x) for key, x in joint.items()}) for joint in joints)
        rig = Rig(**{key: _tuple(x) for key, x in {**data, "joints": made}.items()})
        _check_rig(rig)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        names = [field.name for field in fields(Rig)]
        raise ClipError(f"{where}: source is no rig of {shorten(names)}: {error!s:.120}") from error
    return rig


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _check_rig(rig: Rig) -> None:
    if rig.up not in ("y", "z"):
        raise ValueError(f"up is {rig.up!r:.80}")
    for number in (rig.unit, rig.fps):
        if not 0.0 < float(number) < np.inf:
            raise ValueError(f"unit and fps must be positive, got {number!r:.80}")
    if not all(isinstance(text, str) for text in (rig.kind, rig.name)):
        raise TypeError("kind and name must be text")
    if len(set(rig.names)) < len(rig.joints) or not all(isinstance(n, str) for n in rig.names):
        raise ValueError("names of joints must be texts that differ")
    for i, joint in enumerate(rig.joints):
        if type(joint.parent) is not int or not min(i, 1) - 1 <= joint.parent < max(i, 0):
            raise ValueError(f"the parent of joint {joint.name!r} must come before it")
        for vector, size in ((joint.offset, 3), (joint.quat, 4), (joint.end or (0.0,) * 3, 3)):
            values = np.array(vector, dtype=np.float64)
            if values.shape != (size,) or not (np.abs(values) < 1e15).all():
                raise ValueError(f"vectors of joint {joint.name!r} must be {size} numbers")
        for channel in joint.channels:
            if channel[:1] not in AXES or channel[1:] not in ("position", "rotation"):
                raise ValueError(f"channel {channel!r:.80} of joint {joint.name!r}")


# writing


def write(clip: Clip, path: str | Path) -> None:
    """Write a clip, whole or not at all."""
    from poise.files import write_atomically

    meta = {
        "format": FORMAT,
        "version": VERSION,
        "name": clip.name,
        "fps": clip.fps,
        "source": None if clip.source is None else asdict(clip.source),
    }
    if clip.contacts is not None:
        meta["contacts"] = [list(point) for point in clip.contacts.points]
        meta |= {name: True for name in FLAGS if getattr(clip.contacts, name)}
    members: dict[str, NDArray[Any]] = {
        "frames": np.asarray(clip.frames, dtype="<f8"),
        "character": _bytes(yaml.dump(clip.character)),
        "meta": _bytes(json.dumps(meta, ensure_ascii=False)),
    }
    if clip.contacts is not None:
        members["contacts"] = clip.contacts.on.astype(np.uint8)
    write_atomically(Path(path), pack(members))


def pack(members: dict[str, NDArray[Any]]) -> bytes:
    """The bytes of an .npz archive; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in members.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, array, version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, data.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


# arrays of strangers


class Archive:
    """An .npz file whose arrays are read one by one, after a look at what they say of themselves.

    Nothing is unpickled, and no memory is taken for more than the file really holds.
    """

    def __init__(self, path: Path, members: zipfile.ZipFile) -> None:
        self.path = path
        self._zip = members
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in members.infolist():
            name = info.filename.removesuffix(".npy")
            if name in self._infos:
                raise ClipError(f"{path}: holds two arrays named {name!r:.80}")
            self._infos[name] = info
        self.names = set(self._infos)

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Archive]:
        """Open an .npz file."""
        check_file(path, ClipError)
        with ExitStack() as stack:
            try:
                file = stack.enter_context(open(path, "rb"))
                archive = cls(path, stack.enter_context(_opened(file, path)))
            except BROKEN as error:
                raise ClipError(f"{path}: cannot be read: {error!s:.120}") from error
            yield archive

    def array(self, name: str, kinds: str, *dimensions: int) -> NDArray[Any]:
        """An array of the archive.

        Args:
            name: Which one.
            kinds: Letters of the NumPy kinds it may have: "f", "iuf", ...
            dimensions: How many axes it may have.
        """
        where = f"{self.path}: {name}"
        info = self._infos[name]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ClipError(f"{where}: is packed in a way that is not read; use numpy.savez")
        try:
            with self._zip.open(info) as file:
                array = read_array(file, info.file_size, where)
        except BROKEN as error:
            offset = info.header_offset
            raise ClipError(f"{where}: at byte {offset}: is broken: {error!s:.120}") from error
        if array.dtype.kind not in kinds or (dimensions and array.ndim not in dimensions):
            raise ClipError(
                f"{where}: has type {array.dtype} and shape {array.shape}; it must be of kind "
                f"{kinds!r} with {' or '.join(map(str, dimensions))} axes"
            )
        return array

    def text(self, name: str) -> str:
        """An array of bytes as text."""
        data = self.array(name, "u", 1)
        if data.dtype != np.uint8 or data.size > LARGEST_TEXT:
            raise ClipError(f"{self.path}: {name}: must be bytes, at most {LARGEST_TEXT}")
        try:
            return data.tobytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ClipError(
                f"{self.path}: {name}: byte {error.start} is not UTF-8: {error.reason}"
            ) from error


def read_array(file: IO[bytes], size: int, where: str) -> NDArray[Any]:
    """The one array in an .npy file of that size [bytes], which may lie about itself."""
    dtype, fortran, shape = _header(file, where)
    count = math.prod(shape)
    needed = count * dtype.itemsize
    if needed > min(size, LARGEST_ARRAY):
        raise ClipError(
            f"{where}: claims shape {shape} of {dtype}, {needed} bytes; there are {size}, "
            f"and at most {LARGEST_ARRAY} are read"
        )
    data = file.read(needed)
    if len(data) < needed or file.read(1):
        raise ClipError(f"{where}: is not as long as it says: {needed} bytes")
    flat = np.frombuffer(data, dtype=dtype, count=count)
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(file: IO[bytes], where: str) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    """Type, order and shape in the header of an .npy file of version 1, which is a Python dict.

    It is matched, not evaluated: NumPy's own reader lets errors of Python's parser through.
    """
    start = file.read(10)
    if start[:8] != b"\x93NUMPY\x01\x00" or len(start) < 10:
        raise ClipError(f"{where}: is no .npy array of version 1; numpy.save writes them")
    length = int.from_bytes(start[8:], "little")
    text = file.read(min(length, LARGEST_HEADER)).decode("latin-1")
    descr = re.search(r"'descr': ('[^']*'|.)", text)
    order = re.search(r"'fortran_order': (True|False)", text)
    # Python 2 wrote its long numbers with an L
    shape = re.search(r"'shape': \(((?:\d{1,18}L?, ?){0,8}(?:\d{1,18}L?)?)\)", text)
    if not descr or not order or not shape or len(text) < length:
        raise ClipError(f"{where}: has a header that is not of numpy.save: {text:.80}")
    if "O" in descr[1]:
        raise ClipError(f"{where}: holds pickled objects, which are not read: they can run code")
    if not re.fullmatch(r"'[<>|=]?([fiu][1248]|b1|[SU]\d{1,4})'", descr[1]):
        raise ClipError(f"{where}: holds {descr[1]:.80}; numbers and short texts are read")
    lengths = tuple(int(word) for word in re.findall(r"\d+", shape[1]))
    return np.dtype(descr[1].strip("'")), order[1] == "True", lengths


def _opened(file: IO[bytes], path: Path) -> zipfile.ZipFile:
    """The archive in a file, after a look at its directory: that is read into memory whole."""
    size = file.seek(0, io.SEEK_END)
    if size > LARGEST_FILE:
        raise ClipError(f"{path}: is larger than {LARGEST_FILE >> 20} MB, the most that is read")
    start = max(0, size - 65_600)
    file.seek(start)
    tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < 22:
        raise ClipError(f"{path}: is no .npz archive, or was cut off: at byte {size} it has no end")
    directory = int.from_bytes(tail[end + 12 : end + 16], "little")
    if directory > LARGEST_DIRECTORY or tail[max(0, end - 20) : end].startswith(b"PK\x06\x07"):
        raise ClipError(f"{path}: at byte {start + end}: its directory is too large for a clip")
    file.seek(0)
    return zipfile.ZipFile(file)
