"""A recording or a clip as a video: drawn by the core and encoded by ffmpeg, without a display."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.io.files import suffix_of, write_atomically
from poise.math.arrays import count
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.simulation.pushes import Push
from poise.view.camera import Camera, check_size, follow_motion
from poise.view.contact_sheet import pose_drawing, write_labels
from poise.view.drawing import Colors, level_ground, static_drawing
from poise.view.overlays import PUSH, PushArrows, arrow, force_drawing, force_scale
from poise.view.render import Image, render
from poise.view.timeline import Timeline

SUFFIXES = (".mp4", ".gif")
AHEAD = 4
"""Pictures drawn ahead of the encoder, per thread."""

FALL = 3.0
"""The camera follows the height of characters if it changes by more than this [m]."""

SMOOTHING = 0.4
"""Time over which the path of the camera is averaged [s]."""


def save_video(
    path: str | os.PathLike[str],
    recording: Recording | Clip,
    *,
    size: tuple[int, int] = (960, 540),
    fps: float = 30.0,
    slow: float = 1.0,
    copy: int = 0,
    ghost: bool = True,
    forces: bool | float = False,
    pushes: Sequence[Push] = (),
    color: Colors = None,
    stamp: bool = True,
    samples: int = 2,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Writes a recording or a clip as a video; the camera follows the characters.

    An existing file is replaced whole or not at all.

    Args:
        path: Output file; ends in .mp4 or .gif.
        recording: The recording; or a clip, which is shown on a level ground at its own speed.
        size: Width and height [pixels]; of an .mp4 odd ones are made even, by one pixel more.
        fps: Pictures per second.
        slow: How many times slower than real time it plays.
        copy: Which copy.
        ghost: Whether to draw the target, translucent.
        forces: Whether to draw arrows of contact forces, or their scale [m/N]; by default the
            weight of a character is half a meter long.
        pushes: Draw arrows of these pushes; see `Trial.world_pushes`.
        color: See `render`.
        stamp: Whether to write the time into a corner.
        samples: See `render`.
        threads: Number of drawing threads; None takes one per processor, at most 8.
        progress: Called with the completed fraction, 0 to 1.
    """
    suffix = suffix_of(path, "videos")
    if suffix not in SUFFIXES:
        raise PoiseError(f"{os.fspath(path)}: videos are written as {' or '.join(SUFFIXES)}")
    width, height = check_size(size)
    if suffix == ".mp4":
        width, height = width + width % 2, height + height % 2
    line = Timeline(recording, copy=copy, fps=fps, slow=slow)
    draw = _film(line, (width, height), ghost, forces, pushes, color, samples)
    threads = min(os.cpu_count() or 1, 8) if threads is None else count(threads, "threads", most=64)
    try:
        with tempfile.TemporaryDirectory(prefix="poise-") as folder:
            part = Path(folder) / f"video{suffix}"
            with Encoder(part, (width, height), line.fps) as encoder:
                for k, picture in enumerate(_draw_all(draw, len(line), threads)):
                    if stamp:
                        picture = _write_time(picture, float(line.time[k]), slow)
                    encoder.add(picture)
                    if progress is not None:
                        progress((k + 1) / len(line))
            data = part.read_bytes()
    except OSError as problem:
        reason = problem.strerror or problem
        raise PoiseError(f"{os.fspath(path)}: cannot be written: {reason}") from problem
    write_atomically(path, data)


def _film(
    line: Timeline,
    size: tuple[int, int],
    ghost: bool,
    forces: bool | float,
    pushes: Sequence[Push],
    color: Colors,
    samples: int,
) -> Callable[[int], Image]:
    """A function that draws picture k of a video, shape (height, width, 3), uint8."""
    recording = line.recording
    scale = force_scale(recording, forces)
    arrows = PushArrows(line, pushes, scale or force_scale(recording))
    still, ground = static_drawing(recording.settings), level_ground(recording.settings)
    cameras = follow_line(line, size)

    def draw(k: int) -> Image:
        target = line.target[k]
        reference = target if ghost and np.isfinite(target).all() else None
        things = pose_drawing(recording, line.q[k], line.thrown[k], reference, color=color)
        if scale:
            things += force_drawing(line.contacts(k), scale, copy=line.copy)
        for push in arrows.at(k):
            things += arrow(push.start, push.vector, radius=push.radius, color=PUSH)
        things += still
        return render(things, camera=cameras[k], size=size, ground=ground, samples=samples)

    return draw


def follow_line(line: Timeline, size: tuple[int, int]) -> list[Camera]:
    """Cameras of a video; they follow the height of characters that rise or fall far."""
    subjects = line.camera_subjects
    height = forward_kinematics(*subjects)[0][..., 2].mean(axis=1)
    # pictures per second of the motion
    per_second = line.recording.fps * (len(line) / max(len(line.recording), 1))
    falling = float(np.ptp(height)) > FALL
    return follow_motion(*subjects, smoothing=SMOOTHING * per_second, size=size, falling=falling)


def _draw_all(draw: Callable[[int], Image], pictures: int, threads: int) -> Iterator[Image]:
    """All pictures in order; several are drawn at a time."""
    waiting: deque[Future[Image]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for k in range(pictures):
                waiting.append(pool.submit(draw, k))
                if len(waiting) >= AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _write_time(picture: Image, time: float, slow: float) -> Image:
    """The picture with the time in its lower left corner."""
    text = f"{time:.2f} s" + ("" if slow == 1.0 else f"   {1.0 / slow:.3g}x")
    size = max(9, min(picture.shape[0] // 28, 40))
    corner = (size // 2 + 2, picture.shape[0] - size // 2)
    return write_labels(picture, [text], [corner], size, anchor="ls")


# ---- encoding

QUALITY = 20  # of x264: 0 is lossless, 51 the worst
# without these tags players choose a color matrix by the size of the picture
COLORS = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]


class Encoder:
    """Encodes pictures of one size into a video file, by ffmpeg; a context manager.

    A GIF has 256 colors, chosen from all of its pictures: these are stored losslessly until the
    last one. Intermediate files are in the same folder.

    Args:
        path: Output file; ends in .mp4 or .gif.
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
                    # an interrupt reaches only this process, which then stops ffmpeg
                    start_new_session=True,
                )
        except OSError as problem:
            raise PoiseError(f"{self._program}: cannot be run: {problem.strerror}") from problem

    def add(self, picture: Image) -> None:
        """Adds a picture, shape (height, width, 3)."""
        stream = self._process.stdin
        assert stream is not None
        try:
            stream.write(picture.tobytes())
        except OSError:
            self._finish()
            raise PoiseError("the video cannot be written: ffmpeg stopped") from None

    def __enter__(self) -> Encoder:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is not None:
            self._process.kill()
            self._process.communicate()
            return
        self._finish()
        if self._gif:
            self._second_pass()

    def _finish(self) -> None:
        """Waits for ffmpeg; raises its error message if it failed."""
        self._process.communicate()
        _check(self._process.returncode, self._log.read_bytes())

    def _second_pass(self) -> None:
        """Writes the GIF from the lossless file."""
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


def _check(code: int | None, output: bytes) -> None:
    if code:
        lines = output.decode(errors="replace").strip().splitlines() or [_reason(code)]
        raise PoiseError(f"the video cannot be written: ffmpeg says: {lines[-1]:.200}")


def _reason(code: int) -> str:
    """An exit code in words; ffmpeg exits with 256 - errno after a system error."""
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
