"""Pictures of recordings: characters, projectiles, obstacles and ground."""

from __future__ import annotations

import base64
import html
import math
from typing import Any

import numpy as np

from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.scene import scene_of
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.recording.columns import Columns
from poise.simulation.contact import Plane
from poise.simulation.world import World
from poise.view.contact_sheet import cell_cameras, check_grid, contact_sheet, draw_sheet
from poise.view.drawing import (
    Colors,
    Primitive,
    drawing_of,
    ground_under,
    level_ground,
    projectile_drawing,
    static_drawing,
)
from poise.view.overlays import force_drawing, reference_drawing
from poise.view.render import Image, png_bytes, render
from poise.view.timeline import check


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
    return [*things, *static_drawing(recording.settings)]


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
    things = drawing_of(recording.scene, q, color=color)
    things += projectile_drawing(recording.settings, thrown)
    if goal is not None:
        things += reference_drawing(recording.scene, q, goal)
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
    part = range(len(recording))[start:stop]
    if not part:
        raise PoiseError(f"there is no frame from {start} to {stop}; there are {len(recording)}")
    chosen = np.rint(np.linspace(part.start, part.stop - 1, columns * rows)).astype(int).tolist()
    time, q = (recording.columns.column(name)[chosen, copy] for name in ("time", "q"))
    cameras = cell_cameras(recording.scene, q, azimuth, elevation, cell)
    ground = level_ground(recording.settings)

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


# ---- clips

SMOOTH = 60.0
"""The spline of a slower clip is sampled at this rate or more [Hz]."""


def as_recording(motion: Any) -> Any:
    """Converts a clip to a recording of its character on a level ground; others are returned.

    It has no contacts, torques and targets. The ground is that of `contact_sheet`.
    """
    if not isinstance(motion, Clip):
        return motion
    finer = max(1, math.ceil(SMOOTH / motion.fps))
    fps = finer * motion.fps
    time = np.arange((len(motion) - 1) * finer + 1) / fps
    q, v = motion.q(time), motion.v(time)
    ground = Plane(height=ground_under(scene_of(motion.character), q))
    world = World(motion.character, dt=1 / fps, ground=ground, projectiles=0, convex=False)
    gravity = np.tile(world.gravity, (len(time), 1))
    known = {"time": time[:, None], "q": q[:, None], "v": v[:, None], "gravity": gravity}
    columns = Columns(1, motion.character.nq, motion.character.nv, known)
    return Recording._of(world.settings, 1 / fps, [], columns, None)
