"""Archives: arrays in .npz files, written the same each time, and read with care from strangers."""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from poise.errors import PoiseError
from poise.io.files import check_file

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


def text_bytes(text: str) -> NDArray[np.uint8]:
    """A text as an array, which `Archive.text` reads."""
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


class Archive:
    """An .npz file whose arrays are read one by one, after a look at what they say of themselves.

    Nothing is unpickled, and no memory is taken for more than the file really holds.

    Attributes:
        path: Which file.
        error: What is raised where something is wrong with it.
        sizes: How large the arrays say they are, unpacked and with their headers [bytes].
    """

    def __init__(self, path: Path, members: zipfile.ZipFile, error: type[PoiseError]) -> None:
        self.path, self.error = path, error
        self._zip = members
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in members.infolist():
            name = info.filename.removesuffix(".npy")
            if name in self._infos:
                raise error(f"{path}: holds two arrays named {name!r:.80}")
            self._infos[name] = info
        self.sizes = {name: info.file_size for name, info in self._infos.items()}
        self.names = set(self._infos)

    @classmethod
    @contextmanager
    def open(cls, path: Path, error: type[PoiseError] = PoiseError) -> Iterator[Archive]:
        """Open an .npz file.

        Args:
            path: Which file.
            error: What to raise where something is wrong with it.
        """
        check_file(path, error)
        with ExitStack() as stack:
            try:
                file = stack.enter_context(open(path, "rb"))
                archive = cls(path, stack.enter_context(_opened(file, path, error)), error)
            except BROKEN as problem:
                raise error(f"{path}: cannot be read: {problem!s:.120}") from problem
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
            raise self.error(f"{where}: is packed in a way that is not read; use numpy.savez")
        try:
            with self._zip.open(info) as file:
                array = read_array(file, info.file_size, where, self.error)
        except BROKEN as error:
            offset = info.header_offset
            raise self.error(f"{where}: at byte {offset}: is broken: {error!s:.120}") from error
        if array.dtype.kind not in kinds or (dimensions and array.ndim not in dimensions):
            raise self.error(
                f"{where}: has type {array.dtype} and shape {array.shape}; it must be of kind "
                f"{kinds!r} with {' or '.join(map(str, dimensions))} axes"
            )
        return array

    def text(self, name: str) -> str:
        """An array of bytes as text."""
        data = self.array(name, "u", 1)
        if data.dtype != np.uint8 or data.size > LARGEST_TEXT:
            raise self.error(f"{self.path}: {name}: must be bytes, at most {LARGEST_TEXT}")
        try:
            return data.tobytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error(
                f"{self.path}: {name}: byte {error.start} is not UTF-8: {error.reason}"
            ) from error


def read_array(
    file: IO[bytes], size: int, where: str, error: type[PoiseError] = PoiseError
) -> NDArray[Any]:
    """The one array in an .npy file of that size [bytes], which may lie about itself.

    Args:
        file: The file, open.
        size: How long it is [bytes].
        where: What errors call it.
        error: What to raise.
    """
    dtype, fortran, shape = _header(file, where, error)
    count = math.prod(shape)
    needed = count * dtype.itemsize
    if needed > min(size, LARGEST_ARRAY):
        raise error(
            f"{where}: claims shape {shape} of {dtype}, {needed} bytes; there are {size}, "
            f"and at most {LARGEST_ARRAY} are read"
        )
    data = file.read(needed)
    if len(data) < needed or file.read(1):
        raise error(f"{where}: is not as long as it says: {needed} bytes")
    flat = np.frombuffer(data, dtype=dtype, count=count)
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(
    file: IO[bytes], where: str, error: type[PoiseError]
) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    """Type, order and shape in the header of an .npy file of version 1, which is a Python dict.

    It is matched, not evaluated: NumPy's own reader lets errors of Python's parser through.
    """
    start = file.read(10)
    if start[:8] != b"\x93NUMPY\x01\x00" or len(start) < 10:
        raise error(f"{where}: is no .npy array of version 1; numpy.save writes them")
    length = int.from_bytes(start[8:], "little")
    text = file.read(min(length, LARGEST_HEADER)).decode("latin-1")
    descr = re.search(r"'descr': ('[^']*'|.)", text)
    order = re.search(r"'fortran_order': (True|False)", text)
    # Python 2 wrote its long numbers with an L
    shape = re.search(r"'shape': \(((?:\d{1,18}L?, ?){0,8}(?:\d{1,18}L?)?)\)", text)
    if not descr or not order or not shape or len(text) < length:
        raise error(f"{where}: has a header that is not of numpy.save: {text:.80}")
    if "O" in descr[1]:
        raise error(f"{where}: holds pickled objects, which are not read: they can run code")
    if not re.fullmatch(r"'[<>|=]?([fiu][1248]|b1|[SU]\d{1,4})'", descr[1]):
        raise error(f"{where}: holds {descr[1]:.80}; numbers and short texts are read")
    lengths = tuple(int(word) for word in re.findall(r"\d+", shape[1]))
    return np.dtype(descr[1].strip("'")), order[1] == "True", lengths


def _opened(file: IO[bytes], path: Path, error: type[PoiseError]) -> zipfile.ZipFile:
    """The archive in a file, after a look at its directory: that is read into memory whole."""
    size = file.seek(0, io.SEEK_END)
    if size > LARGEST_FILE:
        raise error(f"{path}: is larger than {LARGEST_FILE >> 20} MB, the most that is read")
    start = max(0, size - 65_600)
    file.seek(start)
    tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < 22:
        raise error(f"{path}: is no .npz archive, or was cut off: at byte {size} it has no end")
    directory = int.from_bytes(tail[end + 12 : end + 16], "little")
    if directory > LARGEST_DIRECTORY or tail[max(0, end - 20) : end].startswith(b"PK\x06\x07"):
        raise error(f"{path}: at byte {start + end}: its directory is too large")
    file.seek(0)
    return zipfile.ZipFile(file)
