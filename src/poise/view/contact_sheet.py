"""Pictures of motions: frames of recordings, and contact sheets, poses side by side with times."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, count, matrix, number
from poise.model.scene import Scene, scene_of
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.simulation.world import World
from poise.view import drawing
from poise.view.camera import Camera, check_size, follow_motion
from poise.view.drawing import Colors, Primitive
from poise.view.overlays import force_drawing, reference_drawing
from poise.view.render import Image, png_bytes, render
from poise.view.timeline import check

GAP = 2  # between the cells [pixels]
PAPER = 255
INK = (40, 44, 52)


# ---- frames of recordings


def frame_drawing(
    recording: Recording,
    i: int,
    *,
    copy: int = 0,
    color: Colors = None,
    ghost: bool = False,
    forces: float = 0.0,
) -> list[Primitive]:
    """Primitives of one frame; `render` adds a level ground.

    Args:
        recording: The recording.
        i: Which frame.
        copy: Which copy.
        color: Of the characters; see `render`.
        ghost: Whether to draw the target, translucent.
        forces: Scale of the arrows of contact forces [m/N]; 0 draws none. The forces are those of
            the step before the frame.
    """
    q, thrown = _frame(recording, i, copy)
    target = recording.target(i) if ghost else None
    rows = None if target is None else target.q.reshape(-1, recording.scene.nq)
    reference = None if rows is None else rows[copy if len(rows) > 1 else 0]
    things = pose_drawing(recording, q, thrown, reference, color=color)
    if forces:
        things += force_drawing(recording.contacts(i), forces, copy=copy)
    return [*things, *drawing.static_drawing(recording.settings)]


def pose_drawing(
    recording: Recording,
    q: Floats,
    thrown: Floats,
    goal: Floats | None = None,
    *,
    color: Colors = None,
) -> list[Primitive]:
    """What moves in a recording at one time: characters, projectiles, and a ghost.

    Args:
        recording: The recording.
        q: Position, shape (nq,).
        thrown: Of each projectile whether it is thrown, and its position, shape
            (projectiles, 8) or more.
        goal: Position of the ghost, shape (nq,); None draws none.
        color: Of the characters; see `render`.
    """
    things = drawing.drawing_of(recording.scene, q, color=color)
    things += drawing.projectile_drawing(recording.settings, thrown)
    if goal is not None:
        things += reference_drawing(recording.scene, q, goal)
    return things


# ---- sheets


def contact_sheet(
    motion: Any,
    *,
    columns: int = 8,
    rows: int = 1,
    cell: tuple[int, int] = (180, 260),
    fps: float | None = None,
    ghost: ArrayLike | None = None,
    azimuth: float = math.radians(-60.0),
    elevation: float = math.radians(10.0),
    ground: bool | float = True,
    color: Colors = None,
    labels: bool = True,
    samples: int = 2,
) -> Image:
    """Draws poses of a motion at equal intervals, from the first to the last.

    The camera follows the character and keeps its height, direction and distance, so that poses
    are comparable and feet that leave the ground are visible.

    Args:
        motion: A Clip, or a pair of a character (or scene) and positions, shape (k, nq). A World
            is drawn with its obstacles and its ground.
        columns: Poses side by side.
        rows: Rows of them.
        cell: Width and height of one pose [pixels].
        fps: Rate of the positions of a pair [Hz]; without it the labels are numbers of frames.
        ghost: Translucent references, one to each position of a pair or frame of a clip,
            shape (k, nq).
        azimuth: Direction of the camera, relative to the heading of the first pose, to the left
            [rad].
        elevation: Its elevation above the horizon [rad].
        ground: See `render`.
        color: See `render`.
        labels: Whether to write the times.
        samples: See `render`.

    Returns:
        Red, green, blue, shape (height, width, 3), uint8.
    """
    scene, frames, rate = _frames(motion, fps)
    columns, rows, cell = check_grid(columns, rows, cell)
    ghosts = None if ghost is None else matrix(ghost, "ghost", scene.nq, least=1)
    if ghosts is not None and len(ghosts) != len(frames):
        raise PoiseError(f"ghost has {len(ghosts)} rows; the motion has {len(frames)}")

    chosen = np.rint(np.linspace(0, len(frames) - 1, columns * rows)).astype(int)
    cameras = cell_cameras(scene, frames[chosen], azimuth, elevation, cell)
    world = motion[0] if isinstance(motion, tuple) and isinstance(motion[0], World) else None
    if ground is True and world is None:
        ground = drawing.ground_under(scene, frames[chosen])

    shown = scene if world is None else world

    def draw(k: int) -> Image:
        i = chosen[k]
        return render(
            shown, frames[i], cameras[k], size=cell, ghost=None if ghosts is None else ghosts[i],
            ground=ground, color=color, samples=samples,
        )  # fmt: skip

    texts = [f"{i / rate:.2f} s" if rate else f"{i}" for i in chosen] if labels else []
    return draw_sheet(columns, rows, cell, draw, texts)


def _frames(motion: Any, fps: float | None) -> tuple[Scene, Floats, float | None]:
    """Scene, positions (k, nq) and their rate."""
    if isinstance(motion, tuple) and len(motion) == 2:
        scene = scene_of(motion[0])
        rate = None if fps is None else number(fps, "fps", unit="Hz")
        return scene, matrix(motion[1], "q", scene.nq, least=1), rate
    if not isinstance(motion, Clip):
        raise PoiseError(
            f"expected a Clip, or a pair (character, positions), got {type(motion).__name__}; "
            "a Recording is drawn by recording_sheet"
        )
    if fps is not None:
        raise PoiseError("a clip has its own rate: leave fps out")
    scene = scene_of(motion.character)
    return scene, matrix(motion.frames, "q", scene.nq, least=1), float(motion.fps)


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
    """Draws frames at equal intervals, from the first to the last, each with its time.

    Args:
        recording: The recording.
        copy: Which copy.
        start: First frame.
        stop: Frame after the last; None takes all.
        columns: Poses side by side.
        rows: Rows of them.
        cell: Width and height of one pose [pixels].
        azimuth: See `contact_sheet`.
        elevation: See `contact_sheet`.
        color: See `render`.
        ghost: See `frame_drawing`.
        forces: See `frame_drawing`.
        samples: See `render`.

    Returns:
        Red, green, blue, shape (height, width, 3), uint8.
    """
    columns, rows, cell = check_grid(columns, rows, cell)
    _frame(recording, -1, copy)
    part = recording.frames(start, stop)
    chosen = np.rint(np.linspace(part.start, part.stop - 1, columns * rows)).astype(int).tolist()
    time, q = (recording.columns.column(name)[chosen, copy] for name in ("time", "q"))
    cameras = cell_cameras(recording.scene, q, azimuth, elevation, cell)
    ground = drawing.level_ground(recording.settings)

    def draw(k: int) -> Image:
        i = chosen[k]
        things = frame_drawing(recording, i, copy=copy, color=color, ghost=ghost, forces=forces)
        return render(things, camera=cameras[k], size=cell, ground=ground, samples=samples)

    return draw_sheet(columns, rows, cell, draw, [f"{t:.2f} s" for t in time])


def notebook_html(motion: Recording | Clip) -> str:
    """A small contact sheet with a caption, as HTML: `_repr_html_` of clips and recordings."""
    caption = html.escape(repr(motion))
    if not len(motion):
        return f"<p>{caption}</p>"
    looks: dict[str, Any] = {"columns": 6, "cell": (120, 170)}
    if isinstance(motion, Clip):
        image = contact_sheet(motion, **looks)
    else:
        image = recording_sheet(motion, ghost=True, **looks)
    data = base64.b64encode(png_bytes(image)).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{caption}"/><p>{caption}</p>'


def _frame(recording: Recording, i: int, copy: int) -> tuple[Floats, Floats]:
    """Positions and projectiles of one copy in one frame."""
    check(recording, copy)
    thrown, q = recording.projectile_state(i).poses, recording.q[i]
    return (q, thrown) if recording.n == 1 else (q[copy], thrown[copy])


# ---- the sheet


def check_grid(columns: int, rows: int, cell: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
    """Columns, rows and size of a cell of a sheet that can be drawn."""
    columns, rows = count(columns, "columns", most=256), count(rows, "rows", most=256)
    width, height = check_size(cell)
    check_size((columns * (width + GAP) - GAP, rows * (height + GAP) - GAP))
    return columns, rows, (width, height)


def cell_cameras(
    scene: Scene, q: Floats, azimuth: float, elevation: float, cell: tuple[int, int]
) -> list[Camera]:
    """Cameras of the cells, one for each position (k, nq)."""
    return follow_motion(
        scene, q, smoothing=0.0, azimuth=azimuth, elevation=elevation, size=cell,
        fov=math.radians(20.0),
    )  # fmt: skip


def draw_sheet(
    columns: int,
    rows: int,
    cell: tuple[int, int],
    draw: Callable[[int], Image],
    texts: Sequence[str],
) -> Image:
    """Draws cells side by side, in rows.

    Args:
        columns: Cells side by side.
        rows: Rows of them.
        cell: Width and height of a cell [pixels].
        draw: Draws cell k.
        texts: Of the upper left corner of each cell, or none.
    """
    width, height = cell
    shape = rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, 3
    sheet: Image = np.full(shape, PAPER, np.uint8)
    corners = [(x * (width + GAP), y * (height + GAP)) for y in range(rows) for x in range(columns)]
    for k, (x, y) in enumerate(corners):
        sheet[y : y + height, x : x + width] = draw(k)
    if not texts:
        return sheet
    size = max(9, min(width // 10, 28))
    return write_labels(sheet, texts, [(x + size // 2, y + size // 3) for x, y in corners], size)


def write_labels(
    image: Image,
    texts: Sequence[str],
    corners: Sequence[tuple[int, int]],
    size: int,
    anchor: str = "la",
) -> Image:
    """The picture with texts at these pixels (x, y), in matplotlib's font; anchors are Pillow's."""
    from PIL import Image as Pillow
    from PIL import ImageDraw

    picture = Pillow.fromarray(image)
    draw = ImageDraw.Draw(picture)
    for text, corner in zip(texts, corners, strict=True):
        draw.text(corner, text, fill=INK, font=_font(size), anchor=anchor)
    return np.array(picture)


@cache
def _font(size: int) -> Any:
    from matplotlib.font_manager import findfont
    from PIL import ImageFont

    return ImageFont.truetype(findfont("DejaVu Sans"), size)
