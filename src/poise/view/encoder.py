"""Encoder: pictures become a video file, by ffmpeg."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from poise.errors import PoiseError
from poise.view.render import Image

QUALITY = 20  # of x264: 0 is lossless, 51 the worst
# players that are not told take one of two ways to turn pictures into colours, by their size
COLORS = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]


class Encoder:
    """Takes pictures of one size and writes them to a file when it is left.

    A GIF has 256 colours, chosen from all of its pictures: they are kept, without loss, until all
    are there. What is needed on the way stands in the same folder.

    Args:
        path: Where to; ends in .mp4 or .gif.
        size: Width and height [pixels].
        fps: Pictures per second.
    """

    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        self._path, self._size = path, size
        self._program = _ffmpeg()
        self._gif = path.suffix.lower() == ".gif"
        first = path.with_suffix(".mkv") if self._gif else path
        looks = ["-c:v", "libx264rgb", "-preset", "ultrafast", "-qp", "0"]
        if not self._gif:
            looks = [
                "-vf", "scale=out_color_matrix=bt709:out_range=tv", "-c:v", "libx264",
                "-preset", "veryfast", "-crf", str(QUALITY), "-pix_fmt", "yuv420p", *COLORS,
                "-movflags", "+faststart",
            ]  # fmt: skip
        width, height = size
        self._first = first
        command = [
            *self._start(), "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
            "-r", f"{fps:.6f}", "-i", "pipe:0", "-an", *looks, os.fspath(first),
        ]  # fmt: skip
        self._log = path.with_suffix(".log")
        try:
            with open(self._log, "wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    # an interrupt is for us, and we end it
                    start_new_session=True,
                )
        except OSError as problem:
            raise PoiseError(f"{self._program}: cannot be run: {problem.strerror}") from problem

    def add(self, picture: Image) -> None:
        """Add a picture, shape (height, width, 3)."""
        stream = self._process.stdin
        assert stream is not None
        try:
            stream.write(picture.tobytes())
        except OSError:
            self._finish()
            raise PoiseError("the video cannot be written: ffmpeg stopped") from None

    def __enter__(self) -> Encoder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._process.kill()
            self._process.communicate()
            return
        self._finish()
        if self._gif:
            self._second_pass()

    def _finish(self) -> None:
        """Let ffmpeg end; what it complains about becomes an error."""
        self._process.communicate()
        _check(self._process.returncode, self._log.read_bytes())

    def _second_pass(self) -> None:
        """The GIF from the lossless file."""
        palette = self._path.with_suffix(".png")
        kept = ["-i", os.fspath(self._first)]
        self._run(*kept, "-vf", "palettegen=stats_mode=full", "-update", "1", os.fspath(palette))
        how = "paletteuse=dither=bayer:bayer_scale=4:diff_mode=rectangle"
        self._run(*kept, "-i", os.fspath(palette), "-lavfi", how, os.fspath(self._path))

    def _run(self, *arguments: str) -> None:
        done = subprocess.run([*self._start(), *arguments], capture_output=True, check=False)
        _check(done.returncode, done.stderr)

    def _start(self) -> list[str]:
        return [self._program, "-y", "-nostdin", "-hide_banner", "-loglevel", "error"]


def _check(code: int | None, said: bytes) -> None:
    if code:
        lines = said.decode(errors="replace").strip().splitlines() or [_reason(code)]
        raise PoiseError(f"the video cannot be written: ffmpeg says: {lines[-1]:.200}")


def _reason(code: int) -> str:
    """An exit code in words; without any of its own, ffmpeg ends with 256 - errno."""
    known = errno.errorcode.get(256 - code)
    return f"{os.strerror(256 - code)} ({code})" if known else f"it ended with {code}"


def _ffmpeg() -> str:
    try:
        import imageio_ffmpeg

        program: Any = imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError) as problem:
        raise PoiseError(
            f"a video needs ffmpeg ({problem}): pip install imageio-ffmpeg"
        ) from problem
    return str(program)
