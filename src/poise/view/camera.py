"""Cameras: fixed ones, and cameras that follow characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats, count, matrix, number, shaped
from poise.model.scene import SceneLike, scene_of
from poise.view.drawing import Drawable, heading, hull_points, primitives_of

LARGEST_SIDE = 16384
MOST_PIXELS = 2**25
FOV = math.radians(30.0)
AZIMUTH = math.radians(-50.0)  # of the camera: ahead and to the right
ELEVATION = math.radians(14.0)


@dataclass(frozen=True)
class Camera:
    """A pinhole camera.

    Args:
        eye: Position [m].
        target: The point at the center of the picture [m].
        up: Up direction of the picture.
        fov: Vertical field of view [rad].
    """

    eye: Sequence[float]
    target: Sequence[float]
    up: Sequence[float] = (0.0, 0.0, 1.0)
    fov: float = FOV

    def moved(self, by: ArrayLike) -> Camera:
        """The camera translated by a vector [m]."""
        step = shaped(by, "by", (3,))
        eye, target = (tuple(np.asarray(p) + step) for p in (self.eye, self.target))
        return Camera(eye, target, self.up, self.fov)


def look_at(
    eye: Sequence[float],
    target: Sequence[float],
    up: Sequence[float] = (0.0, 0.0, 1.0),
    fov: float = FOV,
) -> Camera:
    """A camera at `eye` that looks at `target` [m]; fov: vertical field of view [rad]."""
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
        azimuth: Direction of the camera, relative to the heading of the (first) character, to its
            left [rad].
        elevation: Its elevation above the horizon [rad].
        size: Width and height of the picture [pixels].
        fov: Vertical field of view [rad].
        margin: Fraction of the picture to leave free on each side.
    """
    width, height = check_size(size)
    balls = hull_points(primitives_of(source, q))
    azimuth = heading(source, q) + number(azimuth, "azimuth", positive=False, unit="rad")
    return frame(balls, azimuth, elevation, width / height, fov, margin)


def follow_motion(
    source: SceneLike,
    q: ArrayLike,
    *,
    smoothing: float = 12.0,
    falling: bool = False,
    azimuth: float = AZIMUTH,
    elevation: float = ELEVATION,
    size: tuple[int, int] = (960, 540),
    fov: float = FOV,
    margin: float = 0.07,
) -> list[Camera]:
    """Cameras of a video that follow a character horizontally and smoothly.

    Direction, height and distance are constant, so that poses are comparable and feet that leave
    the ground are visible.

    Args:
        source: A character, several, or a World.
        q: Positions, shape (k, nq).
        smoothing: Standard deviation of the Gaussian that averages the path of the camera
            [positions]; 0 disables it.
        falling: Whether the camera follows the height as well.
        azimuth: Direction of the camera, relative to the heading of the first pose, to the left
            [rad].
        elevation: See `follow`.
        size: See `follow`.
        fov: See `follow`.
        margin: See `follow`.

    Returns:
        One camera per position.
    """
    from scipy.ndimage import gaussian_filter1d

    width, height = check_size(size)
    scene = scene_of(source)
    rows = matrix(q, "q", scene.nq, least=1)
    place = forward_kinematics(scene, rows)[0]
    center = (place.min(axis=1) + place.max(axis=1)) / 2
    if not falling:
        center[:, 2] = 0.0
    if not 0.0 <= number(smoothing, "smoothing", positive=False, unit="positions") <= 1e6:
        raise PoiseError(f"smoothing is {smoothing:g}; it must be 0 or more, and not huge")
    if smoothing > 0.0:
        center = gaussian_filter1d(center, smoothing, axis=0, mode="nearest")
    # some of the poses determine the distance
    some = np.unique(np.rint(np.linspace(0, len(rows) - 1, min(len(rows), 64))).astype(int))
    balls = [hull_points(primitives_of(scene, rows[i])) - (*center[i], 0.0) for i in some]
    ahead = heading(scene, rows[0]) + number(azimuth, "azimuth", positive=False, unit="rad")
    fixed = frame(np.concatenate(balls), ahead, elevation, width / height, fov, margin)
    return [fixed.moved(c) for c in center]


def frame(
    balls: Floats, azimuth: float, elevation: float, aspect: float, fov: float, margin: float
) -> Camera:
    """The nearest camera from a direction that has all balls (k, 4) in the picture."""
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


def check_size(size: object) -> tuple[int, int]:
    """Width and height of a picture that can be drawn."""
    if not isinstance(size, Sequence) or isinstance(size, str) or len(size) != 2:
        raise PoiseError(f"size is {size!r:.80}; it must be (width, height) [pixels]")
    width, height = (count(x, "a side of size", most=LARGEST_SIDE) for x in size)
    if width * height > MOST_PIXELS:
        raise PoiseError(f"size {width} x {height} is too large: at most {MOST_PIXELS} pixels")
    return width, height
