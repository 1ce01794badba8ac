"""Numbers of a glTF file: accessors, the buffer views they look into, and the buffers below.

Only what is asked for is read, so that a file of hundreds of MB of pictures costs little. Buffers
are the binary chunk of a GLB, files beside the file, or text in the JSON itself.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from poise.math.arrays import Floats

if TYPE_CHECKING:
    from poise.motion.formats.glb_file import GlbFile

MOST_BYTES = 512 * 2**20  # of memory for numbers of the binary data, those read twice counted twice
COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
COMPRESSED = ("EXT_meshopt_compression", "KHR_meshopt_compression")


class Buffer(NamedTuple):
    """Where the bytes of a buffer are: a stretch of a file, or here."""

    path: Path
    start: int
    size: int
    data: bytes | None = None


class View(NamedTuple):
    """A buffer view: its buffer, where it begins there, its length and its stride (0: none)."""

    buffer: Buffer
    start: int
    length: int
    stride: int


class Numbers:
    """The numbers of a file, read when asked for, within bounds.

    Args:
        file: The file.
        chunk: Its binary chunk; None if it has none.
    """

    def __init__(self, file: GlbFile, chunk: Buffer | None) -> None:
        self.file = file
        self.chunk = chunk
        self.bytes_left = MOST_BYTES
        self.buffers: dict[int, Buffer] = {}

    def accessor(self, index: int, kinds: tuple[str, ...]) -> Floats:
        """The rows of an accessor, as floats, shape (count, components).

        Args:
            index: Which accessor.
            kinds: What it may hold, such as "VEC3".
        """
        file, at = self.file, f"accessors[{index}]"
        accessor = file.items("accessors")[index]
        kind, code = accessor.get("type"), accessor.get("componentType")
        if kind not in kinds:
            file.fail(f"{at}.type is {kind!r:.40}; here it must be {' or '.join(kinds)}")
        dtype = self._component(code, at, tuple(COMPONENTS))
        count = file.size_of(accessor, "count", at, None)
        if count == 0:
            file.fail(f"{at} is empty")
        width, sparse = SIZES[kind], accessor.get("sparse")
        if "bufferView" in accessor:
            raw = self._rows(accessor, at, count, width, dtype)
        elif sparse is None:
            file.fail(f"{at} has no data: it names no bufferView")
        else:
            self._take(count * width * (8 + dtype.itemsize), at)
            raw = np.zeros((count, width), dtype)
        if sparse is not None:
            self._change(raw, sparse, at)
        values = to_float64(raw)
        if not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values).all(axis=1)))
            place = None
            if "bufferView" in accessor:
                place = self._byte(self.view(accessor["bufferView"]))
            file.fail(f"{at}[{row}] is not a finite number", place)
        if code != 5126 and accessor.get("normalized") is True:
            values = np.maximum(values / np.iinfo(dtype).max, -1.0)
        return values

    def view(self, index: int) -> View:
        """A buffer view that lies within its buffer."""
        file, at = self.file, f"bufferViews[{index}]"
        view = file.items("bufferViews")[index]
        extensions = view.get("extensions")
        packed = [
            name for name in COMPRESSED if isinstance(extensions, dict) and name in extensions
        ]
        if packed:
            file.fail(f"{at} is compressed by {packed[0]}; export without compression")
        buffer = self._buffer(file.index(view, "buffer", "buffers", at))
        offset = file.size_of(view, "byteOffset", at)
        length = file.size_of(view, "byteLength", at, None)
        stride = file.size_of(view, "byteStride", at)
        if stride > 252:
            file.fail(f"{at}.byteStride is {stride}; the largest is 252")
        if offset + length > buffer.size:
            file.fail(f"{at} ends at {offset + length}, but its buffer has {buffer.size} bytes")
        return View(buffer, offset, length, stride)

    def read(self, view: View, start: int, size: int) -> bytes:
        """Bytes of a buffer view."""
        path, begin, _, data = view.buffer
        if data is not None:
            return data[view.start + start : view.start + start + size]
        at = begin + view.start + start
        try:
            with open(path, "rb") as file:
                file.seek(at)
                found = file.read(size)
        except OSError as error:
            self.file.fail(f"{path.name} cannot be read: {error.strerror or error}", at)
        if len(found) < size:
            self.file.fail(f"{path.name} is cut short", at + len(found))
        return found

    # the parts of an accessor

    def _component(self, code: object, at: str, known: tuple[int, ...]) -> np.dtype[Any]:
        if type(code) is not int or code not in known:
            self.file.fail(f"{at}.componentType is {code!r:.40}; it must be one of {[*known]}")
        return np.dtype(COMPONENTS[code])

    def _rows(
        self, holder: dict[str, Any], at: str, count: int, width: int, dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """Rows that lie in a buffer view, one behind another or between others."""
        file, size = self.file, width * dtype.itemsize
        number = file.index(holder, "bufferView", "bufferViews", at)
        view = self.view(number)
        offset = file.size_of(holder, "byteOffset", at)
        stride = view.stride or size
        if stride < size:
            file.fail(f"bufferViews[{number}].byteStride is {stride}; {at} needs {size}")
        needed = offset + (count - 1) * stride + size
        if needed > view.length:
            file.fail(
                f"{at} needs {needed} bytes of bufferViews[{number}], it has {view.length}",
                self._byte(view),
            )
        self._take(count * (stride + 8 * size), at)
        data = self.read(view, offset, (count - 1) * stride + size)
        rows = np.zeros(count * stride, dtype=np.uint8)
        rows[: len(data)] = np.frombuffer(data, dtype=np.uint8)
        packed = np.ascontiguousarray(rows.reshape(count, stride)[:, :size])
        return packed.view(dtype).reshape(count, width)

    def _change(self, rows: NDArray[Any], sparse: Any, at: str) -> None:
        """Put the values of a sparse accessor into its rows."""
        file, at = self.file, f"{at}.sparse"
        parts = sparse if isinstance(sparse, dict) else {}
        indices, values = parts.get("indices"), parts.get("values")
        if not isinstance(indices, dict) or not isinstance(values, dict):
            file.fail(f"{at} must be an object with indices and values")
        count = file.size_of(sparse, "count", at, None)
        if not 0 < count <= len(rows):
            file.fail(f"{at}.count is {count}; it must be from 1 to {len(rows)}")
        where = self._component(indices.get("componentType"), f"{at}.indices", (5121, 5123, 5125))
        places = self._rows(indices, f"{at}.indices", count, 1, where)[:, 0].astype(np.int64)
        if places[-1] >= len(rows) or np.any(np.diff(places) <= 0):
            file.fail(f"{at}.indices must increase and stay below {len(rows)}")
        rows[places] = self._rows(values, f"{at}.values", count, rows.shape[1], rows.dtype)

    def _take(self, size: int, at: str) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            self.file.fail(f"{at}: the animation would take over {MOST_BYTES >> 20} MB")

    def _byte(self, view: View) -> int | None:
        """Where a view begins in the file itself; None where it lies elsewhere."""
        here = view.buffer.data is None and view.buffer.path == self.file.path
        return view.buffer.start + view.start if here else None

    # buffers

    def _buffer(self, index: int) -> Buffer:
        if index not in self.buffers:
            self.buffers[index] = self._find(index)
        return self.buffers[index]

    def _find(self, index: int) -> Buffer:
        file, at = self.file, f"buffers[{index}]"
        uri = file.items("buffers")[index].get("uri")
        if uri is None:
            if index != 0 or self.chunk is None:
                file.fail(f"{at} has neither a uri nor a binary chunk")
            return self.chunk
        if not isinstance(uri, str):
            file.fail(f"{at}.uri must be text")
        if uri.startswith("data:"):
            return self._inline(uri, at)
        name = unquote(uri)
        # only what lies beside the file or below: a motion names no other files of this machine
        if "://" in name or name.startswith(("/", "\\")) or ".." in name or ":" in name[:2]:
            file.fail(f"{at}.uri is {uri!r:.80}; it must name a file beside this one")
        path = file.path.parent / name
        try:
            if not path.is_file():
                file.fail(f"{at} lies in {uri!r:.80}, and there is no such file beside this one")
            return Buffer(path, 0, path.stat().st_size)
        except (OSError, ValueError) as error:
            file.fail(f"{at}.uri is {uri!r:.80}, which cannot be read: {error!s:.80}")

    def _inline(self, uri: str, at: str) -> Buffer:
        head, comma, text = uri.partition(",")
        if not comma or not head.endswith(";base64"):
            self.file.fail(f"{at}.uri holds data; they must be base64")
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            self.file.fail(f"{at}.uri is no base64: {error!s:.80}")
        return Buffer(self.file.path, 0, len(data), data)


def to_float64(values: NDArray[Any]) -> Floats:
    """Numbers as float64; those that are none stay so, without a warning."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)
