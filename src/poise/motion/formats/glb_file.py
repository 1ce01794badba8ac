"""A GLB file, read with care: every length, index and number in it may lie.

A file is a header of 12 bytes (magic, version, length) and chunks (length, kind, bytes): first
JSON, then the binary data that the accessors in the JSON describe. Only what is asked for is read
from the binary data, so that a file of hundreds of MB of pictures costs little.
"""

from __future__ import annotations

import json
import math
import os
import stat
import struct
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from poise.arrays import Floats
from poise.errors import ClipError

LARGEST_JSON = 16 * 2**20  # [bytes]
MOST_BYTES = 512 * 2**20  # of memory for numbers of the binary data, those read twice counted twice
MOST_ITEMS = 100_000  # of one list, such as nodes
MAGIC, JSON, BIN = 0x46546C67, 0x4E4F534A, 0x004E4942

COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}


class GlbFile:
    """A GLB file whose parts are checked when asked for.

    Args:
        path: The file; errors name it, and the byte or the JSON value that is wrong.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes_left = MOST_BYTES
        self.lists: dict[str, list[Any]] = {}
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                self.fail("is not a file")
            with open(path, "rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                text = self._header(file.read(20), file)
                self._binary(file, 20 + len(text))
        except OSError as error:
            self.fail(f"cannot be read: {error.strerror or error}")
        except ValueError as error:  # a zero byte in the path
            self.fail(f"cannot be read: {error}")
        self.json = self._parse(text)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise a ClipError that names the file and, where known, the byte."""
        where = f"{self.path}: " if at is None else f"{self.path}: byte {at}: "
        raise ClipError(where + message)

    # the container

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

    def _binary(self, file: Any, start: int) -> None:
        """Find the binary chunk, if there is one."""
        self.bin_start, self.bin_size = start, 0
        if self.size - start < 8:
            return
        file.seek(start)
        size, kind = struct.unpack("<2I", file.read(8))
        if kind != BIN:
            return
        if size > self.size - start - 8:
            self.fail(
                f"the binary chunk says {size} bytes, but only {self.size - start - 8} follow",
                start,
            )
        self.bin_start, self.bin_size = start + 8, size

    def _parse(self, text: bytes) -> dict[str, Any]:
        def refuse(word: str) -> NoReturn:
            raise ValueError(f"{word} is not a number of JSON")

        try:
            found = json.loads(text.decode("utf-8"), parse_constant=refuse)
        except UnicodeDecodeError as error:
            self.fail(f"the JSON is not UTF-8: {error.reason}", 20 + error.start)
        except json.JSONDecodeError as error:
            at = len(error.doc[: error.pos].encode())
            self.fail(f"the JSON is wrong: {error.msg}", 20 + at)
        except ValueError as error:
            self.fail(f"the JSON is wrong: {error}", 20)
        except RecursionError:
            self.fail("the JSON is nested too deeply", 20)
        if not isinstance(found, dict):
            self.fail("the JSON must be an object", 20)
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
        count = len(self.items(of))
        for value in found:
            if type(value) is not int or not 0 <= value < count:
                self.checked_index(value, of, f"{at}.{key}")
        return found

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

    # the binary data

    def accessor(self, index: int, kinds: tuple[str, ...]) -> Floats:
        """The rows of an accessor, as floats, shape (count, components).

        Args:
            index: Which accessor.
            kinds: What it may hold, such as "VEC3".
        """
        at = f"accessors[{index}]"
        accessor = self.items("accessors")[index]
        kind, code = accessor.get("type"), accessor.get("componentType")
        if kind not in kinds:
            self.fail(f"{at}.type is {kind!r:.40}; here it must be {' or '.join(kinds)}")
        if not isinstance(code, int) or code not in COMPONENTS:
            self.fail(f"{at}.componentType is {code!r:.40}; it must be one of {[*COMPONENTS]}")
        if "sparse" in accessor:
            self.fail(f"{at} is sparse; write the file without sparse accessors")
        if "bufferView" not in accessor:
            self.fail(f"{at} has no data")
        count = self.size_of(accessor, "count", at, None)
        dtype = np.dtype(COMPONENTS[code])
        width = SIZES[kind]
        start, raw = self._view_bytes(accessor, at, count, width * dtype.itemsize)
        values = to_float64(raw.view(dtype).reshape(count, width))
        if not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values).all(axis=1)))
            self.fail(f"{at}[{row}] is not a finite number", start)
        if code != 5126 and accessor.get("normalized") is True:
            values = np.maximum(values / np.iinfo(dtype).max, -1.0)
        return values

    def _view_bytes(
        self, accessor: dict[str, Any], at: str, count: int, size: int
    ) -> tuple[int, Any]:
        """Where the rows of an accessor begin in the file, and their bytes, packed."""
        number = self.index(accessor, "bufferView", "bufferViews", at)
        begin, length, stride = self.view(number)
        offset = self.size_of(accessor, "byteOffset", at)
        stride = stride or size
        if stride < size:
            self.fail(f"bufferViews[{number}].byteStride is {stride}; {at} needs {size}")
        needed = offset + (count - 1) * stride + size if count else 0
        if needed > length:
            self.fail(f"{at} needs {needed} bytes of bufferViews[{number}], it has {length}", begin)
        if count == 0:
            self.fail(f"{at} is empty", begin)
        self.bytes_left -= count * (stride + 8 * size)
        if self.bytes_left < 0:
            self.fail(f"{at}: the animation would take over {MOST_BYTES >> 20} MB", begin)
        data = self.read(begin + offset, (count - 1) * stride + size)
        rows = np.zeros(count * stride, dtype=np.uint8)
        rows[: len(data)] = np.frombuffer(data, dtype=np.uint8)
        return begin + offset, np.ascontiguousarray(rows.reshape(count, stride)[:, :size])

    def view(self, index: int) -> tuple[int, int, int]:
        """Where a buffer view begins in the file, its length and its stride (0: none) [bytes]."""
        at = f"bufferViews[{index}]"
        view = self.items("bufferViews")[index]
        extensions = view.get("extensions")
        if isinstance(extensions, dict) and "EXT_meshopt_compression" in extensions:
            self.fail(f"{at} is compressed by EXT_meshopt_compression; export without compression")
        buffer = self.index(view, "buffer", "buffers", at)
        if buffer != 0 or "uri" in self.items("buffers")[0]:
            self.fail(f"{at} lies in another file; export as one GLB that holds all its data")
        offset = self.size_of(view, "byteOffset", at)
        length = self.size_of(view, "byteLength", at, None)
        stride = self.size_of(view, "byteStride", at)
        if stride > 252:
            self.fail(f"{at}.byteStride is {stride}; the largest is 252")
        if offset + length > self.bin_size:
            self.fail(
                f"{at} ends at {offset + length}, but the binary chunk has {self.bin_size} bytes",
                self.bin_start,
            )
        return self.bin_start + offset, length, stride

    def read(self, start: int, size: int) -> bytes:
        """Bytes of the file."""
        try:
            with open(self.path, "rb") as file:
                file.seek(start)
                data = file.read(size)
        except OSError as error:
            self.fail(f"cannot be read: {error.strerror or error}", start)
        if len(data) < size:
            self.fail("is cut short", start + len(data))
        return data

    def finite_number(self, value: object, at: str) -> float:
        """A positive, finite number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(f"{at} must be a number, got {value!r:.40}")
        if not 0.0 < value < 1e9 or not math.isfinite(value):
            self.fail(f"{at} must be positive and finite, got {value!r:.40}")
        return float(value)


def to_float64(values: NDArray[Any]) -> Floats:
    """Numbers as float64; those that are none stay so, without a warning."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)
