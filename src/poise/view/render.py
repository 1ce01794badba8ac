"""Pictures without GL and without a display, drawn by the ray caster of the core."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import _core
from poise.errors import PoiseError
from poise.io.files import suffix_of, write_atomically
from poise.math.arrays import Floats, count, number, shaped
from poise.model.scene import SceneLike, scene_of
from poise.simulation.world import World
from poise.view import drawing
from poise.view.camera import AZIMUTH, Camera, check_size, follow
from poise.view.drawing import Colors, Drawable, Primitive, Rgb

Image = NDArray[np.uint8]

LIGHT = (0.75, -0.45, 1.2)  # towards it: high, ahead and to the right of one that looks along +x
SOFTNESS = 0.07  # tangent of the light's angular radius; the sun's is 0.005
SKY = ((0.91, 0.93, 0.95), (0.55, 0.66, 0.80))


def render(
    source: Drawable,
    q: ArrayLike | None = None,
    camera: Camera | None = None,
    *,
    size: tuple[int, int] = (960, 540),
    ghost: ArrayLike | None = None,
    also: Sequence[Primitive] = (),
    ground: bool | float = True,
    color: Colors = None,
    ghost_color: Rgb = drawing.GHOST,
    samples: int = 2,
    light: Sequence[float] = LIGHT,
    checks: float = drawing.CHECKS,
) -> Image:
    """Draws a scene.

    Args:
        source: A character, several, a World with its obstacles and ground, or primitives.
        q: Position, shape (nq,), of several characters one after another; None is where a World's
            first copy is, with what was thrown there, or the rest pose.
        camera: By `look_at`, `follow` or `follow_motion`; unless given, a three-quarter view of
            all that moves.
        size: Width and height [pixels].
        ghost: Position of a translucent reference, shape (nq,).
        also: Further things to draw, as `arrow`, `trail`, `marker` make them.
        ground: Whether there is a ground, or its height [m]. True is the World's own; for
            characters it lies at z = 0, and lower under those that a file puts with their root at
            the origin, while they stay there.
        color: One color for all, or colors by limb, link or part, also as part/limb and
            part/link, each red, green, blue in 0..1.
        ghost_color: Of the reference.
        samples: Edges are smoothed with samples x samples; 1 = not at all, at most 8.
        light: Direction towards the light.
        checks: Side of the ground's checks [m].

    Returns:
        Red, green, blue, shape (height, width, 3), uint8.
    """
    things = drawing.primitives_of(source, q, color)
    if ghost is not None:
        if drawing.is_primitives(source):
            raise PoiseError("primitives have no ghost: add translucent ones instead")
        things += drawing.ghost_drawing(cast(SceneLike, source), ghost, ghost_color)
    if not drawing.is_primitives(also):
        raise PoiseError("also must be a sequence of Primitive")
    things += also
    if isinstance(source, World) and q is None:
        poses = source.projectile_state.poses.reshape(source.n, -1, 8)[0]
        things += drawing.projectile_drawing(source.settings, poses)
    if camera is None:
        camera = follow(things, azimuth=drawing.heading(source, q) + AZIMUTH, size=size)
    if isinstance(source, World):
        things += drawing.static_drawing(source.settings, ground=ground is True)
        if ground is True and source.settings.contact is not None:
            ground = drawing.level_ground(source.settings)
    elif ground is True and not drawing.is_primitives(source):
        scene = scene_of(cast(SceneLike, source))
        ground = drawing.ground_under(scene, drawing.position_of(scene, scene, q)[None])
    image: Image = _trace_rays(things, camera, size, ground, samples, light, checks)[0]
    return image


def save_image(path: str | os.PathLike[str], image: ArrayLike) -> None:
    """Writes a picture to a PNG file.

    Args:
        path: Output file; ends in .png.
        image: Shape (height, width, 3), uint8.
    """
    data = png_bytes(image)
    if suffix_of(path, "pictures") != ".png":
        raise PoiseError(f"{os.fspath(path)}: pictures are written as .png")
    write_atomically(path, data)


def png_bytes(image: ArrayLike) -> bytes:
    """A picture as the bytes of a PNG file.

    Args:
        image: Shape (height, width, 3), uint8.
    """
    from PIL import Image as Pillow

    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise PoiseError(
            f"image is {pixels.dtype} of shape {pixels.shape}, expected uint8 (height, width, 3)"
        )
    data = io.BytesIO()
    Pillow.fromarray(pixels).save(data, format="png")
    return data.getvalue()


def _trace_rays(
    things: Sequence[Primitive],
    camera: Camera,
    size: tuple[int, int],
    ground: bool | float,
    samples: int,
    light: Sequence[float] = LIGHT,
    checks: float = drawing.CHECKS,
    buffers: bool = False,
) -> Any:
    """Picture, ids and depths (None without buffers), by the core."""
    width, height = check_size(size)
    if not isinstance(camera, Camera):
        raise PoiseError(f"camera must be made by look_at or follow, got {camera!r:.80}")
    eye, target, up = (
        shaped(getattr(camera, name), f"camera.{name}", (3,)) for name in ("eye", "target", "up")
    )
    ground_z = 0.0
    if not isinstance(ground, bool):
        ground_z = number(ground, "ground", positive=False, unit="m")
    distance = float(np.linalg.norm(target - eye))
    return _core.render(
        **_arrays(things),
        eye=eye,
        target=target,
        up=up,
        fov=number(camera.fov, "camera.fov", unit="rad"),
        width=width,
        height=height,
        samples=count(samples, "samples", most=8),
        ground=ground is not False,
        ground_z=ground_z,
        checks=number(checks, "checks", unit="m"),
        ground_color=np.array(drawing.GROUND),
        sky=np.array(SKY),
        light=shaped(light, "light", (3,)),
        softness=SOFTNESS,
        fade=max(3.0 * distance, 1.0) if math.isfinite(distance) else 1.0,
        buffers=buffers,
    )


def _arrays(things: Sequence[Primitive]) -> dict[str, Any]:
    """The primitives as the core takes them."""
    kinds = list(drawing.SIZES)
    n = len(things)

    def rows(values: list[tuple[float, ...]], width: int) -> Floats:
        return np.array(values, dtype=np.float64).reshape(n, width)

    return {
        "kind": np.array([kinds.index(p.kind) for p in things], dtype=np.int32),
        "pos": rows([tuple(p.pos) for p in things], 3),
        "quat": rows([tuple(p.quat) for p in things], 4),
        "size": rows([(*p.size, 0.0, 0.0, 0.0)[:3] for p in things], 3),
        "color": rows([(*p.color, p.opacity) for p in things], 4),
        "group": np.array([p.group for p in things], dtype=np.int32),
        "meshes": [None if p.mesh is None else p.mesh.compiled for p in things],
    }
