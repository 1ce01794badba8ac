"""Files that a run leaves, read by other means: pages, videos, clips."""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import poise
from poise import dynamics


class Page(NamedTuple):
    """Messages of a page with their times [s], and its duration [s]."""

    messages: list[tuple[float, dict[str, Any]]]
    duration: float

    def arrays(self, node: str, name: str) -> list[Any]:
        """What a property of a node is in the course of time, from when it is made."""
        found = []
        for _, message in self.messages:
            if message.get("name") == node:
                changes = message.get("props") or message.get("updates") or {}
                if name in changes:
                    found.append(changes[name])
        return found


def read_page(path: Path) -> Page:
    """Read the data inside a page."""
    import msgspec
    import zstandard

    text = path.read_text()
    found = re.search('__VISER_EMBED_DATA__="([^"]*)"', text)
    assert found is not None
    data = base64.b64decode(found[1])
    inner = zstandard.ZstdDecompressor().decompressobj().decompress(data[8:])
    size = int.from_bytes(inner[:8], "little")
    page = msgspec.msgpack.decode(inner[8 : 8 + size])
    at, buffers = 8 + size, []
    for length in page["binaryBufferLengths"]:
        at += -at % 8
        buffers.append(inner[at : at + length])
        at += length
    messages = [(time, _filled(message, buffers)) for time, message in page["messages"]]
    return Page(messages, page["durationSeconds"])


def _filled(value: Any, buffers: list[bytes]) -> Any:
    """The message with arrays in place of their numbers."""
    if not isinstance(value, dict):
        return value
    if "__binary_index" in value:
        return np.frombuffer(buffers[value["__binary_index"]], value["dtype"])
    return {key: _filled(part, buffers) for key, part in value.items()}


def pictures(path: Path) -> NDArray[np.uint8]:
    """All pictures of a video, shape (k, height, width, 3)."""
    import imageio_ffmpeg

    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path)]
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-fps_mode", "passthrough", "pipe:1"]
    done = subprocess.run([*command, *raw], capture_output=True, check=True)
    size = re.search(rb"Video: .* (\d+)x(\d+)", done.stderr)
    assert size is not None
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, int(size[2]), int(size[1]), 3)


def places(clip: poise.Clip) -> dict[str, np.ndarray]:
    p, _ = dynamics.forward_kinematics(clip.character, clip.frames)
    return {link.name: p[:, i] for i, link in enumerate(clip.character.links)}


def same_motion(path: Path, recording: poise.Recording) -> None:
    """A file, read by itself, has all joints where the simulation had them, to 0.1 mm."""
    found, expected = places(poise.load_clip(path)), places(recording.clip())
    both = found.keys() & expected.keys()
    assert both
    for name in both:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-4, err_msg=name)
