"""A GLB or glTF file, read with care: every length, index and number in it may lie.

A GLB is a header of 12 bytes (magic, version, length) and chunks (length, kind, bytes): first
JSON, then the binary data that the accessors in the JSON describe. A .gltf file is the JSON alone,
its data in files beside it or in itself.

Only the numbers that are needed are read, so that hundreds of MB of pictures cost little. Buffers
are the binary chunk of a GLB, files beside the file, or text in the JSON itself.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from poise.errors import ClipError
from poise.io.files import check_file
from poise.math.arrays import Floats

LARGEST_JSON = 16 * 2**20  # [bytes]
MOST_ITEMS = 100_000  # of one list, such as nodes
MAGIC, JSON, BIN = 0x46546C67, 0x4E4F534A, 0x004E4942


class GlbFile:
    """A GLB or .gltf file whose parts are checked at first use; its numbers are in `numbers`.

    Args:
        path: The file; errors name it, and the byte or the JSON value that is wrong.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lists: dict[str, list[Any]] = {}
        chunk = None
        self.size = check_file(path, ClipError)
        try:
            with open(path, "rb") as file:
                head = file.read(20)
                self.bare = path.suffix.lower() == ".gltf" and head[:4] != b"glTF"
                text = self._text(head, file) if self.bare else self._header(head, file)
                if not self.bare:
                    chunk = self._binary(file, 20 + len(text))
        except OSError as error:
            self.fail(f"cannot be read: {error.strerror or error}")
        self.json = self._parse(text, 0 if self.bare else 20)
        self.numbers = Numbers(self, chunk)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise a ClipError that names the file and, where known, the byte."""
        where = f"{self.path}: " if at is None else f"{self.path}: byte {at}: "
        raise ClipError(where + message)

    # the container

    def _text(self, head: bytes, file: Any) -> bytes:
        """All of a .gltf file."""
        if self.size > LARGEST_JSON:
            self.fail(f"has {self.size} bytes of JSON; at most {LARGEST_JSON} are read; export GLB")
        rest: bytes = file.read(LARGEST_JSON)
        return head + rest

    def _header(self, head: bytes, file: Any) -> bytes:
        """Check the header; the bytes of the JSON chunk."""
        if len(head) < 20:
            self.fail(f"is cut short: {len(head)} bytes; a GLB has at least 20", len(head))
        magic, version, length, size, kind = struct.unpack("<5I", head)
        if magic != MAGIC:
            self.fail("is not GLB: it must begin with 'glTF'", 0)
        if version != 2:
            self.fail(f"is glTF version {version}; poise reads version 2", 4)
        if length > self.size:
            self.fail(f"the header says {length} bytes, but the file has {self.size}", 8)
        if kind != JSON:
            self.fail("the first chunk must be JSON", 16)
        if size > length - 20:
            self.fail(f"the JSON chunk says {size} bytes, but only {length - 20} follow", 12)
        if size > LARGEST_JSON:
            self.fail(f"the JSON chunk has {size} bytes; at most {LARGEST_JSON} are read", 12)
        self.size = length
        text: bytes = file.read(size)
        if len(text) < size:
            self.fail("is cut short", 20 + len(text))
        return text

    def _binary(self, file: Any, start: int) -> Buffer | None:
        """The binary chunk, if there is one."""
        if self.size - start < 8:
            return None
        file.seek(start)
        size, kind = struct.unpack("<2I", file.read(8))
        if kind != BIN:
            return None
        left = self.size - start - 8
        if size > left:
            self.fail(f"the binary chunk says {size} bytes, but only {left} follow", start)
        return Buffer(self.path, start + 8, size)

    def _parse(self, text: bytes, start: int) -> dict[str, Any]:
        def refuse(word: str) -> NoReturn:
            raise ValueError(f"{word} is not a number of JSON")

        try:
            found = json.loads(text.decode("utf-8"), parse_constant=refuse)
        except UnicodeDecodeError as error:
            self.fail(f"the JSON is not UTF-8: {error.reason}", start + error.start)
        except json.JSONDecodeError as error:
            at = len(error.doc[: error.pos].encode())
            self.fail(f"the JSON is wrong: {error.msg}", start + at)
        except ValueError as error:
            self.fail(f"the JSON is wrong: {error}", start)
        except RecursionError:
            self.fail("the JSON is nested too deeply", start)
        if not isinstance(found, dict):
            self.fail("the JSON must be an object", start)
        return found

    # values of the JSON

    def items(self, key: str) -> list[Any]:
        """A list of objects in the JSON, such as nodes; empty if it is not there."""
        if key not in self.lists:
            self.lists[key] = self.items_of(self.json, key, "")
        return self.lists[key]

    def items_of(self, inside: dict[str, Any], key: str, at: str) -> list[Any]:
        """A list of objects inside an object."""
        found = inside.get(key, [])
        if not isinstance(found, list) or not all(isinstance(x, dict) for x in found):
            self.fail(f"{at}{key} must be a list of objects")
        if len(found) > MOST_ITEMS:
            self.fail(f"{at}{key} has {len(found)} entries; at most {MOST_ITEMS} are read")
        return found

    def index(self, inside: dict[str, Any], key: str, of: str, at: str) -> int:
        """An index into a list of the JSON."""
        return self.checked_index(inside.get(key), of, f"{at}.{key}")

    def checked_index(self, value: object, of: str, at: str) -> int:
        """The value, if it is an index into a list of the JSON."""
        count = len(self.items(of))
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
            self.fail(f"{at} is {value!r:.40}; it must be an index into the {count} {of}")
        return value

    def indices(self, inside: dict[str, Any], key: str, of: str, at: str) -> list[int]:
        """A list of indices into a list of the JSON."""
        found = inside.get(key, [])
        if not isinstance(found, list) or len(found) > MOST_ITEMS:
            self.fail(f"{at}.{key} must be a list of indices")
        return [self.checked_index(value, of, f"{at}.{key}") for value in found]

    def size_of(self, inside: dict[str, Any], key: str, at: str, default: int | None = 0) -> int:
        """A whole number, 0 or more."""
        value = inside.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
            self.fail(f"{at}.{key} is {value!r:.40}; it must be a whole number, 0 or more")
        return value

    def vector(self, inside: dict[str, Any], key: str, default: list[float], at: str) -> Floats:
        """Numbers, as many as the default has."""
        value = inside.get(key, default)
        good = isinstance(value, list) and len(value) == len(default)
        if not good or not all(isinstance(x, (int, float)) for x in value):
            self.fail(f"{at}.{key} must be {len(default)} numbers, got {value!r:.80}")
        if not all(abs(x) < 1e15 for x in value):
            self.fail(f"{at}.{key} must be finite and of sensible size, got {value!r:.80}")
        return np.array(value, dtype=np.float64)

    def text(self, inside: dict[str, Any], key: str, default: str) -> str:
        """A text that can be printed; the default if there is none."""
        value = inside.get(key)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            return default
        return value[:200]

    def finite_number(self, value: object, at: str, most: float = 1e9) -> float:
        """A positive number, at most so large."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(f"{at} must be a number, got {value!r:.40}")
        if not 0.0 < value <= most:
            self.fail(f"{at} must be positive and at most {most:g}, got {value!r:.40}")
        return float(value)


# accessors, the buffer views they read from, and the buffers below

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
    """The numbers of a file, read at first use, within bounds.

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
