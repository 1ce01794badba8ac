"""A GLB or glTF file, read with care: every length, index and number in it may lie.

A GLB is a header of 12 bytes (magic, version, length) and chunks (length, kind, bytes): first
JSON, then the binary data that the accessors in the JSON describe. A .gltf file is the JSON alone,
its data in files beside it or in itself.
"""

from __future__ import annotations

import json
import os
import stat
import struct
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from poise.errors import ClipError
from poise.math.arrays import Floats
from poise.motion.formats.glb_data import Buffer, Numbers

LARGEST_JSON = 16 * 2**20  # [bytes]
MOST_ITEMS = 100_000  # of one list, such as nodes
MAGIC, JSON, BIN = 0x46546C67, 0x4E4F534A, 0x004E4942


class GlbFile:
    """A GLB or .gltf file whose parts are checked when asked for; its numbers are in `numbers`.

    Args:
        path: The file; errors name it, and the byte or the JSON value that is wrong.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lists: dict[str, list[Any]] = {}
        chunk = None
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                self.fail("is not a file")
            with open(path, "rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                head = file.read(20)
                self.bare = path.suffix.lower() == ".gltf" and head[:4] != b"glTF"
                text = self._text(head, file) if self.bare else self._header(head, file)
                if not self.bare:
                    chunk = self._binary(file, 20 + len(text))
        except OSError as error:
            self.fail(f"cannot be read: {error.strerror or error}")
        except ValueError as error:  # a zero byte in the path
            self.fail(f"cannot be read: {error}")
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

    def finite_number(self, value: object, at: str, most: float = 1e9) -> float:
        """A positive number, at most so large."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(f"{at} must be a number, got {value!r:.40}")
        if not 0.0 < value <= most:
            self.fail(f"{at} must be positive and at most {most:g}, got {value!r:.40}")
        return float(value)
