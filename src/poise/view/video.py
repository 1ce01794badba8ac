"""A recording or a clip as a video: drawn by the core, no display, no GL, no browser."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
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
from poise.view.camera import check_size, follow_motion
from poise.view.clip_recording import as_recording
from poise.view.colors import Colors
from poise.view.contact_sheet import INK
from poise.view.drawing import Primitive
from poise.view.encoder import Encoder
from poise.view.forces import force_drawing, force_scale
from poise.view.overlay import arrow
from poise.view.pushing import COLOR, PushArrows
from poise.view.recorded import pose_drawing
from poise.view.render import Image, render
from poise.view.surroundings import level, still_drawing
from poise.view.timeline import Timeline

SUFFIXES = (".mp4", ".gif")
AHEAD = 4
"""Pictures that may be drawn before they are written, for each thread."""

FALL = 3.0
"""A camera goes up and down with characters that do so by more than this [m]."""

SMOOTHING = 0.4
"""Over what time the path of the camera is averaged [s]."""


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
    """Write a recording or a clip as a video; the camera goes along with the characters.

    What was there before is replaced whole, or not at all.

    Args:
        path: Where to; ends in .mp4 or .gif.
        recording: The recording; or a clip, which is shown on a level ground at its own speed.
        size: Width and height [pixels]; of an .mp4 odd ones are made even, by one pixel more.
        fps: Pictures per second.
        slow: How many times slower than life it goes.
        copy: Which copy.
        ghost: Whether to draw, see-through, what was asked for.
        forces: Whether to draw arrows of contact forces, or their length [m/N]; that of a
            character's weight is half a metre unless given.
        pushes: Draw arrows of these, as `Trial.world_pushes` has them.
        color: As of `render`.
        stamp: Whether to write the time into a corner.
        samples: As of `render`.
        threads: How many draw; None takes as many as there are processors, and at most 8.
        progress: Called with the share that is done, 0 to 1.
    """
    suffix = suffix_of(path, "videos")
    if suffix not in SUFFIXES:
        raise PoiseError(f"{os.fspath(path)}: videos are written as {' or '.join(SUFFIXES)}")
    width, height = check_size(size)
    if suffix == ".mp4":
        width, height = width + width % 2, height + height % 2
    line = Timeline(as_recording(recording), copy=copy, fps=fps, slow=slow)
    film = _Film(line, (width, height), ghost, forces, pushes, color, samples)
    threads = min(os.cpu_count() or 1, 8) if threads is None else count(threads, "threads", most=64)
    try:
        with tempfile.TemporaryDirectory(prefix="poise-") as folder:
            part = Path(folder) / f"video{suffix}"
            with Encoder(part, (width, height), line.fps) as encoder:
                for k, picture in enumerate(_drawn(film, len(line), threads)):
                    encoder.add(_stamped(picture, float(line.time[k]), slow) if stamp else picture)
                    if progress is not None:
                        progress((k + 1) / len(line))
            data = part.read_bytes()
    except OSError as problem:
        reason = problem.strerror or problem
        raise PoiseError(f"{os.fspath(path)}: cannot be written: {reason}") from problem
    write_atomically(path, data)


class _Film:
    """The pictures of a video, each by its number."""

    def __init__(
        self,
        line: Timeline,
        size: tuple[int, int],
        ghost: bool,
        forces: bool | float,
        pushes: Sequence[Push],
        color: Colors,
        samples: int,
    ) -> None:
        self.line, self.size, self.ghost, self.color = line, size, ghost, color
        recording = line.recording
        self.samples = samples
        self.forces = force_scale(recording, forces)
        self.pushes = PushArrows(line, pushes, self.forces or force_scale(recording))
        self.still = still_drawing(recording.settings)
        self.ground = level(recording.settings)
        # as long as the camera sees it, a picture lasts slow / fps seconds of the motion
        per_second = recording.fps * (len(line) / max(len(recording), 1))
        self.cameras = follow_motion(
            *line.leads, smoothing=SMOOTHING * per_second, size=size, falling=_far_down(line)
        )

    def draw(self, k: int) -> Image:
        """Picture k, shape (height, width, 3), uint8."""
        return render(
            self.things(k),
            camera=self.cameras[k],
            size=self.size,
            ground=self.ground,
            samples=self.samples,
        )

    def things(self, k: int) -> list[Primitive]:
        """What is in picture k."""
        line, goal = self.line, self.line.goal[k]
        asked = goal if self.ghost and np.isfinite(goal).all() else None
        things = pose_drawing(line.recording, line.q[k], line.thrown[k], asked, color=self.color)
        if self.forces:
            things += force_drawing(line.touches(k), self.forces, copy=line.copy)
        for push in self.pushes.at(k):
            things += arrow(push.start, push.vector, radius=push.radius, color=COLOR)
        return things + self.still


def _far_down(line: Timeline) -> bool:
    """Whether the characters leave the height at which they begin."""
    height = forward_kinematics(*line.leads)[0][..., 2].mean(axis=1)
    return float(np.ptp(height)) > FALL


def _drawn(film: _Film, pictures: int, threads: int) -> Iterator[Image]:
    """All pictures in order; the core draws several at a time."""
    waiting: deque[Future[Image]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for k in range(pictures):
                waiting.append(pool.submit(film.draw, k))
                if len(waiting) >= AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _stamped(picture: Image, time: float, slow: float) -> Image:
    """The picture with the time in its lower left corner."""
    from PIL import Image as Pillow
    from PIL import ImageDraw

    text = f"{time:.2f} s" + ("" if slow == 1.0 else f"   {1.0 / slow:.3g}x")
    size = max(9, min(picture.shape[0] // 28, 40))
    page = Pillow.fromarray(picture)
    corner = (size // 2 + 2, picture.shape[0] - size // 2)
    ImageDraw.Draw(page).text(corner, text, fill=INK, font=_font(size), anchor="ls")
    return np.asarray(page)


@cache
def _font(size: int) -> Any:
    from matplotlib.font_manager import findfont
    from PIL import ImageFont

    return ImageFont.truetype(findfont("DejaVu Sans"), size)
