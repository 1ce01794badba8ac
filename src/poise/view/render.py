"""Pictures without GL and without a display, drawn by the ray caster of the core."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import _core
from poise.arrays import Floats, count, number, shaped
from poise.errors import PoiseError
from poise.files import write_atomically
from poise.scene import SceneLike, scene_of
from poise.view.drawing import (
    GHOST,
    GHOST_OPACITY,
    SIZES,
    Colors,
    Primitive,
    Rgb,
    drawing_of,
    heading_of,
    hull_points,
    link_poses,
)

Image = NDArray[np.uint8]
Drawable: TypeAlias = "SceneLike | Sequence[Primitive]"

LARGEST_SIDE = 16384
MOST_PIXELS = 2**25

FOV = math.radians(30.0)
AZIMUTH = math.radians(-50.0)  # of the camera: ahead and to the right
ELEVATION = math.radians(14.0)
LIGHT = (0.75, -0.45, 1.2)  # towards it: high, ahead and to the right of one that looks along +x
SOFTNESS = 0.07  # tangent of the light's angular radius; the sun's is 0.005
GROUND = ((0.60, 0.62, 0.65), (0.70, 0.72, 0.75))
SKY = ((0.91, 0.93, 0.95), (0.55, 0.66, 0.80))


@dataclass(frozen=True)
class Camera:
    """Where a picture is taken from.

    Args:
        eye: Position [m].
        target: The point in the middle of the picture [m].
        up: What is up in the picture.
        fov: Vertical opening angle [rad].
    """

    eye: Sequence[float]
    target: Sequence[float]
    up: Sequence[float] = (0.0, 0.0, 1.0)
    fov: float = FOV


class Buffers(NamedTuple):
    """What each pixel's middle shows."""

    ids: NDArray[np.int32]  # index of the primitive, -1 the ground, -2 the sky, shape (h, w)
    depth: NDArray[np.float32]  # distance from the eye to it [m], shape (h, w)


def look_at(
    eye: Sequence[float],
    target: Sequence[float],
    up: Sequence[float] = (0.0, 0.0, 1.0),
    fov: float = FOV,
) -> Camera:
    """A camera at `eye` that looks at `target` [m]; fov: vertical opening angle [rad]."""
    return Camera(eye, target, up, fov)


def follow(
    source: Drawable,
    q: ArrayLike | None = None,
    *,
    azimuth: float = AZIMUTH,
    elevation: float = ELEVATION,
    size: tuple[int, int] = (960, 540),
    fov: float = FOV,
    margin: float = 0.09,
) -> Camera:
    """A camera that shows all of a character, in three-quarter view.

    Args:
        source: A character, several, a World, or primitives.
        q: Position, shape (nq,), as of `render`.
        azimuth: Where the camera stands, counted from straight ahead of the (first) character,
            to its left [rad].
        elevation: How far above the horizon it stands [rad].
        size: Width and height of the picture [pixels].
        fov: Vertical opening angle [rad].
        margin: Part of the picture to leave free on each side.
    """
    width, height = check_size(size)
    balls = hull_points(_primitives(source, q))
    azimuth = _heading(source, q) + number(azimuth, "azimuth", positive=False, unit="rad")
    return frame(balls, azimuth, elevation, width / height, fov, margin)


def frame(
    balls: Floats, azimuth: float, elevation: float, aspect: float, fov: float, margin: float
) -> Camera:
    """A camera from a direction, as near as it may come with all balls (k, 4) in the picture."""
    azimuth = number(azimuth, "azimuth", positive=False, unit="rad")
    elevation = number(elevation, "elevation", positive=False, unit="rad")
    if not abs(elevation) < math.radians(89.9):
        raise PoiseError(f"elevation is {elevation:g} rad; it must lie within ±π/2")
    if not 0.001 < number(fov, "fov", unit="rad") < 3.1:
        raise PoiseError(f"fov is {fov:g} rad; it must lie between 0.001 and 3.1")
    if not 0.0 <= number(margin, "margin", positive=False, unit="1") < 0.45:
        raise PoiseError(f"margin is {margin:g}; it must be 0 or more and below 0.45")
    if not len(balls):
        balls = np.array([[0.0, 0.0, 0.0, 1.0]])
    ca, sa, ce, se = math.cos(azimuth), math.sin(azimuth), math.cos(elevation), math.sin(elevation)
    back = np.array([ce * ca, ce * sa, se])
    right = np.array([-sa, ca, 0.0])
    up = np.cross(back, right)
    origin = balls[:, :3].mean(axis=0)
    x, y, z = ((balls[:, :3] - origin) @ axis for axis in (right, up, back))
    r = balls[:, 3]
    target = (
        origin
        + right * ((x + r).max() + (x - r).min()) / 2
        + up * ((y + r).max() + (y - r).min()) / 2
    )
    x, y, z = ((balls[:, :3] - target) @ axis for axis in (right, up, back))
    ty = math.tan(fov / 2) * (1 - 2 * margin)
    distance = 0.0
    for along, tangent in ((np.abs(x), ty * aspect), (np.abs(y), ty)):
        needed = z + (along + r * math.sqrt(1 + tangent**2)) / tangent
        distance = max(distance, float(needed.max()))
    return Camera(tuple(target + max(distance, 0.1) * back), tuple(target), fov=fov)


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
    ghost_color: Rgb = GHOST,
    samples: int = 2,
    light: Sequence[float] = LIGHT,
    checks: float = 0.5,
) -> Image:
    """Draw a scene.

    Args:
        source: A character, several, a World, or primitives.
        q: Position, shape (nq,); None is where a World is, or the rest pose.
        camera: From `look_at` or `follow`; one that shows all in three-quarter view unless given.
        size: Width and height [pixels].
        ghost: Position of a see-through reference, shape (nq,).
        also: Further things to draw.
        ground: Whether there is a ground at z = 0, or its height [m].
        color: One colour for all, or colours by limb or link, each red, green, blue in 0..1.
        ghost_color: Of the reference.
        samples: Edges are smoothed with samples x samples; 1 = not at all, at most 8.
        light: Direction towards the light.
        checks: Side of the ground's checks [m].

    Returns:
        Red, green, blue, shape (height, width, 3), uint8.
    """
    image: Image = _draw(
        source,
        q,
        camera,
        size,
        ghost=ghost,
        also=also,
        ground=ground,
        color=color,
        ghost_color=ghost_color,
        samples=samples,
        light=light,
        checks=checks,
    )[0]
    return image


def probe(
    source: Drawable,
    q: ArrayLike | None = None,
    camera: Camera | None = None,
    *,
    size: tuple[int, int] = (960, 540),
    ground: bool | float = True,
) -> Buffers:
    """What the pixels of `render` show: primitives of `drawing_of`, and how far away they are."""
    out = _draw(source, q, camera, size, ground=ground, samples=1, buffers=True)
    return Buffers(out[1], out[2])


def save_image(path: str | os.PathLike[str], image: ArrayLike) -> None:
    """Write a picture to a PNG file.

    Args:
        path: Where to; ends in .png.
        image: Shape (height, width, 3), uint8.
    """
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise PoiseError(
            f"image is {pixels.dtype} of shape {pixels.shape}, expected uint8 (height, width, 3)"
        )
    if os.path.splitext(os.fspath(path))[1].lower() != ".png":
        raise PoiseError(f"{os.fspath(path)}: pictures are written as .png")
    from matplotlib.image import imsave

    data = io.BytesIO()
    imsave(data, np.ascontiguousarray(pixels), format="png")
    write_atomically(path, data.getvalue())


def check_size(size: object) -> tuple[int, int]:
    """Width and height of a picture that can be drawn."""
    if not isinstance(size, Sequence) or isinstance(size, str) or len(size) != 2:
        raise PoiseError(f"size is {size!r:.80}; it must be (width, height) [pixels]")
    width, height = (count(x, "a side of size", most=LARGEST_SIDE) for x in size)
    if width * height > MOST_PIXELS:
        raise PoiseError(f"size {width} x {height} is too large: at most {MOST_PIXELS} pixels")
    return width, height


def _is_primitives(source: Any) -> bool:
    return isinstance(source, Sequence) and all(isinstance(p, Primitive) for p in source)


def _primitives(source: Any, q: ArrayLike | None, color: Colors = None) -> list[Primitive]:
    if not _is_primitives(source):
        return drawing_of(source, q, color=color)
    if q is not None:
        raise PoiseError("primitives have their own poses: leave q out")
    return list(source)


def _draw(
    source: Drawable,
    q: ArrayLike | None,
    camera: Camera | None,
    size: tuple[int, int],
    *,
    ghost: ArrayLike | None = None,
    also: Sequence[Primitive] = (),
    ground: bool | float = True,
    color: Colors = None,
    ghost_color: Rgb = GHOST,
    samples: int = 2,
    light: Sequence[float] = LIGHT,
    checks: float = 0.5,
    buffers: bool = False,
) -> Any:
    width, height = check_size(size)
    things = _primitives(source, q, color)
    if not _is_primitives(also):
        raise PoiseError("also must be a sequence of Primitive")
    if ghost is not None:
        if _is_primitives(source):
            raise PoiseError("primitives have no ghost: add see-through ones instead")
        things += drawing_of(
            cast(SceneLike, source), ghost, color=ghost_color, opacity=GHOST_OPACITY, group=-1
        )
    things += also
    if camera is None:
        heading = _heading(source, q)
        camera = follow(things, azimuth=heading + AZIMUTH, size=(width, height))
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
        ground_color=np.array(GROUND),
        sky=np.array(SKY),
        light=shaped(light, "light", (3,)),
        softness=SOFTNESS,
        fade=max(3.0 * distance, 1.0) if math.isfinite(distance) else 1.0,
        buffers=buffers,
    )


def _heading(source: Any, q: ArrayLike | None) -> float:
    """Where the first character looks [rad]; primitives look along x."""
    if _is_primitives(source):
        return 0.0
    return heading_of(link_poses(source, scene_of(source), q)[1][0])


def _arrays(things: Sequence[Primitive]) -> dict[str, Any]:
    """The primitives as the core takes them."""
    kinds = list(SIZES)
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
