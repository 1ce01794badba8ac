"""Pictures of recordings: characters, obstacles, ground, and what was thrown."""

from __future__ import annotations

import math

import numpy as np

from poise.arrays import Floats, count
from poise.contact import HeightField, Plane, Touches, default_spares
from poise.errors import PoiseError
from poise.pose import quat_from_z
from poise.recording import Recording
from poise.settings import Settings
from poise.shape import Shape
from poise.view.camera import check_size, follow_motion
from poise.view.contact_sheet import GAP, PAPER, _written
from poise.view.drawing import GHOST, GHOST_OPACITY, Colors, Primitive, drawing_of
from poise.view.mesh import Mesh
from poise.view.overlay import arrow
from poise.view.render import CHECKS, GROUND, Image, render

STONE = (0.62, 0.60, 0.56)
"""Colour of obstacles that have none."""

LONGEST = 1.0
"""Arrow of a force [m]: that of a hard landing would leave the picture."""


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
    spares = default_spares(recording.settings.spares)
    things = drawing_of(recording.scene, q, color=color)
    for spare, row in zip(spares, thrown, strict=True):
        if row[0]:
            things += drawing_of(spare, row[1:8])
    asked = recording.target(i) if ghost else None
    if asked is not None:
        goal = asked.q if asked.q.ndim == 1 else asked.q[copy]
        things += drawing_of(recording.scene, goal, color=GHOST, opacity=GHOST_OPACITY, group=-1)
    if forces:
        things += force_drawing(recording.contacts(i), forces, copy=copy)
    return [*things, *still_drawing(recording.settings)]


def force_drawing(touches: Touches, scale: float, *, copy: int = 0) -> list[Primitive]:
    """Arrows of the forces between each two things that touch, where they act together.

    None is longer than 1 m.

    Args:
        touches: Contacts.
        scale: Length of an arrow [m/N].
        copy: Which copy.
    """
    mine = touches.copy == copy
    things: list[Primitive] = []
    for one, two in sorted(set(zip(touches.link[mine], touches.other[mine], strict=True))):
        rows = mine & (touches.link == one) & (touches.other == two)
        force, press = touches.force[rows], np.linalg.norm(touches.force[rows], axis=1)
        if press.sum() > 0.0:
            point, whole = press @ touches.point[rows] / press.sum(), force.sum(axis=0)
            most = LONGEST / max(float(np.linalg.norm(whole)), 1e-9)
            things += arrow(point, whole, scale=min(scale, most))
    return things


def still_drawing(settings: Settings) -> list[Primitive]:
    """Obstacles, and a ground that is not level."""
    things = [_obstacle(shape) for shape in settings.obstacles]
    ground = settings.ground
    if isinstance(ground, Plane) and level(settings) is False:
        at = tuple(ground.height * x for x in ground.normal)
        things.append(Primitive("plane", (CHECKS,), at, quat_from_z(ground.normal), GROUND[1]))
    if isinstance(ground, HeightField):
        mesh = Mesh.height_field(ground.heights.T, ground.spacing)
        size = np.array(ground.heights.T.shape) - 1
        x, y = (np.array(ground.origin) + 0.5 * size * ground.spacing).tolist()
        things.append(Primitive("mesh", (), (x, y, 0.0), color=GROUND[1], mesh=mesh))
    return things


def level(settings: Settings) -> bool | float:
    """The ground as `render` takes it: its height, or whether there is one."""
    ground = settings.ground
    if isinstance(ground, Plane):
        return ground.height if ground.normal[2] == 1.0 else False
    return ground is True


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
    """Positions, and spares, of one copy in one frame."""
    if not isinstance(recording, Recording):
        raise PoiseError(f"expected a Recording, got {type(recording).__name__}")
    if not isinstance(copy, (int, np.integer)) or not 0 <= copy < recording.n:
        raise PoiseError(f"copy is {copy!r:.80}; it must be 0 to {recording.n - 1}")
    thrown, q = recording.thrown(i), recording.q[i]
    return (q, thrown) if recording.n == 1 else (q[copy], thrown[copy])


def _obstacle(shape: Shape) -> Primitive:
    rgb = (shape.color or STONE)[:3]
    opacity = shape.color[3] if shape.color else 1.0
    mesh = None
    if shape.kind == "mesh":
        mesh = Mesh(np.array(shape.vertices), shape.triangles, convex=True)
    return Primitive(shape.kind, shape.size, shape.pos, shape.quat, rgb, opacity, mesh=mesh)
