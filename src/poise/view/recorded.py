"""Pictures of recordings: characters, obstacles, ground, and what was thrown."""

from __future__ import annotations

import math

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats, count
from poise.recording import Recording
from poise.view.camera import check_size, follow_motion
from poise.view.colors import Colors
from poise.view.contact_sheet import GAP, PAPER, _written
from poise.view.drawing import Primitive, drawing_of
from poise.view.forces import force_drawing
from poise.view.ghosts import ghost_drawing
from poise.view.render import Image, render
from poise.view.surroundings import level, still_drawing, thrown_drawing


def frame_drawing(
    recording: Recording,
    i: int,
    *,
    copy: int = 0,
    color: Colors = None,
    ghost: bool = False,
    forces: float = 0.0,
) -> list[Primitive]:
    """What is there in one frame; a level ground is left to `render`.

    Args:
        recording: The recording.
        i: Which frame.
        copy: Which copy.
        color: Of the characters, as of `render`.
        ghost: Whether to draw, see-through, what was asked for.
        forces: Length of the arrows of contact forces [m/N]; 0 draws none. They are those of the
            step before the frame.
    """
    q, thrown = _frame(recording, i, copy)
    asked = recording.target(i) if ghost else None
    goal = None if asked is None else asked.q.reshape(-1, recording.scene.nq)
    goal = None if goal is None else goal[copy if len(goal) > 1 else 0]
    things = pose_drawing(recording, q, thrown, goal, color=color)
    if forces:
        things += force_drawing(recording.contacts(i), forces, copy=copy)
    return [*things, *still_drawing(recording.settings)]


def pose_drawing(
    recording: Recording,
    q: Floats,
    thrown: Floats,
    goal: Floats | None = None,
    *,
    color: Colors = None,
) -> list[Primitive]:
    """What moves in a recording, at one time: characters, what was thrown, and a ghost.

    Args:
        recording: The recording.
        q: Position, shape (nq,).
        thrown: Whether each projectile is there, and its position, shape (projectiles, 8) or more.
        goal: Position of the ghost, shape (nq,); None draws none.
        color: Of the characters, as of `render`.
    """
    things = drawing_of(recording.scene, q, color=color)
    things += thrown_drawing(recording.settings, thrown)
    if goal is not None:
        things += ghost_drawing(recording.scene, q, goal)
    return things


def recording_sheet(
    recording: Recording,
    *,
    copy: int = 0,
    start: int = 0,
    stop: int | None = None,
    columns: int = 8,
    rows: int = 1,
    cell: tuple[int, int] = (180, 260),
    azimuth: float = math.radians(-60.0),
    elevation: float = math.radians(10.0),
    color: Colors = None,
    ghost: bool = False,
    forces: float = 0.0,
    samples: int = 2,
) -> Image:
    """Frames at equal distances, from the first to the last, each with its time.

    Args:
        recording: The recording.
        copy: Which copy.
        start: First frame.
        stop: Frame after the last; None takes all.
        columns: Poses side by side.
        rows: Rows of them.
        cell: Width and height of one pose [pixels].
        azimuth: As of `contact_sheet`.
        elevation: As of `contact_sheet`.
        color: As of `render`.
        ghost: As of `frame_drawing`.
        forces: As of `frame_drawing`.
        samples: As of `render`.

    Returns:
        Red, green, blue, shape (height, width, 3), uint8.
    """
    columns, rows = count(columns, "columns", most=256), count(rows, "rows", most=256)
    width, height = check_size(cell)
    check_size((columns * (width + GAP) - GAP, rows * (height + GAP) - GAP))
    _frame(recording, -1, copy)
    part = range(len(recording))[start:stop]
    if not part:
        raise PoiseError(f"there is no frame from {start} to {stop}; there are {len(recording)}")
    chosen = np.rint(np.linspace(part.start, part.stop - 1, columns * rows)).astype(int)
    q = recording.frames.column("q")[chosen, copy]
    cameras = follow_motion(
        recording.scene, q, smoothing=0.0, azimuth=azimuth, elevation=elevation,
        size=(width, height), fov=math.radians(20.0),
    )  # fmt: skip
    shape = rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, 3
    sheet: Image = np.full(shape, PAPER, np.uint8)
    corners, texts = [], []
    for k, i in enumerate(chosen.tolist()):
        x, y = k % columns * (width + GAP), k // columns * (height + GAP)
        things = frame_drawing(recording, i, copy=copy, color=color, ghost=ghost, forces=forces)
        sheet[y : y + height, x : x + width] = render(
            things, camera=cameras[k], size=(width, height), ground=level(recording.settings),
            samples=samples,
        )  # fmt: skip
        corners.append((x, y))
        texts.append(f"{recording.frames.column('time')[i, copy]:.2f} s")
    return _written(sheet, texts, corners, max(9, min(width // 10, 28)))


def _frame(recording: Recording, i: int, copy: int) -> tuple[Floats, Floats]:
    """Positions, and projectiles, of one copy in one frame."""
    if not isinstance(recording, Recording):
        raise PoiseError(f"expected a Recording, got {type(recording).__name__}")
    if not isinstance(copy, (int, np.integer)) or not 0 <= copy < recording.n:
        raise PoiseError(f"copy is {copy!r:.80}; it must be 0 to {recording.n - 1}")
    thrown, q = recording.thrown(i), recording.q[i]
    return (q, thrown) if recording.n == 1 else (q[copy], thrown[copy])
