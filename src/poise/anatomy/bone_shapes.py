"""Shapes of the links of a skeleton: capsules along bones, girdles across, soles under the feet.

Thicknesses are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply, quat_from_z, rotate
from poise.model.character import Shape, Vector

if TYPE_CHECKING:
    from poise.anatomy.skeleton import Bones

RADII = {
    "head": (0.055, 0.13),
    "neck": (0.030, 0.13),
    "trunk": (0.065, 0.19),
    "shoulder": (0.035, 0.08),
    "pelvis": (0.055, 0.15),
    "arm": (0.027, 0.075),
    "forearm": (0.022, 0.052),
    "hand": (0.014, 0.045),
    "thigh": (0.042, 0.125),
    "shank": (0.030, 0.06),
    "foot": (0.020, 0.04),
    "toe": (0.015, 0.03),
}
"""Radii of the capsules of people, as fractions of stature, and of quadrupeds, of the trunk."""

ENDS = {"head": 0.13, "neck": 0.05, "hand": 0.10, "foot": 0.12}
"""Lengths of ends that the skeleton leaves open, as fractions of stature."""

LONGEST_END = 0.2
"""Ends of a person longer than this fraction of the height are left out of the shapes: some files
have wild ones."""

LONGEST_OTHER_END = 1.5
"""Those of others: longer than this many times the longest bone between joints."""

ANKLE = 0.039  # height of the ankle, as a fraction of stature


def _radius(bones: Bones, i: int, length: float) -> float:
    """Radius of the capsule of a bone."""
    person, quadruped = RADII.get(bones.parts[i], (0.0, 0.0))
    radius = person * (bones.stature or 0.0) or quadruped * (bones.trunk or 0.0)
    if not radius:
        return min(0.2 * length, 0.05 * bones.height)
    thick = bones.parts[i] in ("head", "trunk", "pelvis")
    return radius if thick else min(radius, 0.5 * length)


def _points(bones: Bones, i: int) -> list[Floats]:
    """Where the bones of a link end, from its origin: joints and ends that move with it."""
    short = 0.005 * bones.height
    points = [p for p in bones.inner[i] if np.linalg.norm(p) > short]
    if bones.ends_body(i):
        short = 0.03 * bones.height
    longest = _longest_end(bones)
    leaves = [p for p in bones.outer[i] if short < np.linalg.norm(p) <= longest]
    return points or leaves or _open_end(bones, i)


def _longest_end(bones: Bones) -> float:
    """Length up to which ends are believed [m]."""
    if bones.stature is not None:
        return LONGEST_END * bones.height
    longest = float(np.linalg.norm(bones.rig.offsets[1:], axis=1).max(initial=0.0))
    return LONGEST_OTHER_END * longest if longest > 0.0 else np.inf


def _open_end(bones: Bones, i: int) -> list[Floats]:
    """A bone for an end that the skeleton leaves open: on in the direction of its parent."""
    four = None if bones.trunk is None else 1.5 * bones.trunk
    length = ENDS.get(bones.parts[i], 0.0) * (bones.stature or four or bones.height)
    along = bones.rig.offsets[i]
    size = float(np.linalg.norm(along))
    if bones.children[i] or length == 0.0 or size < 1e-6 * bones.height:
        return []
    return [along / size * length]


def shapes_of(bones: Bones, i: int) -> list[Shape]:
    points = _points(bones, i)
    part = bones.parts[i]
    if bones.stature is not None and part in ("foot", "toe") and points:
        return [_sole(bones, i, max(points, key=lambda p: float(np.linalg.norm(p))))]
    shapes = []
    if bones.stature is not None and part in ("pelvis", "trunk"):
        shapes = _girdle(bones, i, points)
    capsules = [p for p in points if not shapes or not _is_wide(bones, p)]
    if bones.trunk is not None and part in ("pelvis", "trunk"):
        # one along the middle, none to the legs
        middle = [p for p in points if abs(p @ bones.left) < 0.1 * np.linalg.norm(p)]
        capsules = middle or points
    for p in _distinct(capsules):
        length = float(np.linalg.norm(p))
        radius = _radius(bones, i, length)
        if bones.stature is not None and part in ("pelvis", "trunk") and length < 2.2 * radius:
            across = 0.03 * bones.stature * bones.left
            ends = tuple(0.5 * p - across), tuple(0.5 * p + across)
            shapes.append(Shape.capsule(*ends, 0.85 * radius))
            continue
        inset = min(radius, 0.45 * length) / length
        if bones.trunk is not None and part in ("pelvis", "trunk"):
            inset = 0.1  # a smooth back
        shapes.append(Shape.capsule(tuple(p * inset), tuple(p * (1.0 - inset)), radius))
    if shapes:
        return shapes
    radius = _radius(bones, i, 0.04 * bones.height)
    return [Shape("sphere", (max(radius, 1e-4),))]


def _is_wide(bones: Bones, p: Floats) -> bool:
    """Whether a bone goes to the side."""
    return bool(abs(p @ bones.left) > 0.3 * np.linalg.norm(p))


def _girdle(bones: Bones, i: int, points: list[Floats]) -> list[Shape]:
    """A capsule across, from the left hip to the right one, or between the shoulders."""
    wide = [p for p in points if _is_wide(bones, p)]
    left = max(wide, key=lambda p: float(p @ bones.left), default=None)
    right = min(wide, key=lambda p: float(p @ bones.left), default=None)
    if left is None or right is None or (left @ bones.left) * (right @ bones.left) >= 0.0:
        return []
    radius = _radius(bones, i, 0.0)
    middle = (left + right) / 2.0
    if bones.parts[i] == "trunk":  # the ribs are below the shoulders
        middle = middle * 0.5
    across = (left - right) / 2.0
    half = max(float(np.linalg.norm(across)) - radius, 0.2 * radius)
    across = across / np.linalg.norm(across) * half
    return [Shape.capsule(tuple(middle - across), tuple(middle + across), radius)]


def _sole(bones: Bones, i: int, bone: Floats) -> Shape:
    """The box of a foot: along its bone, its sole at a right angle to the shank."""
    stature = bones.stature or bones.height
    up = np.array([0.0, 0.0, 1.0])
    shank = i if bones.parts[i] == "foot" else bones.rig.joints[i].parent
    along = bones.rig.offsets[shank]
    size = float(np.linalg.norm(along))
    # a skeleton may rest with its legs apart and its feet turned with them
    if size > 0.0 and -along[2] / size < np.cos(np.radians(15.0)):
        up = -along / size
    forward = bone - (bone @ up) * up
    reach = float(np.linalg.norm(forward))
    if reach < 0.3 * float(np.linalg.norm(bone)):
        up, forward = np.array([1.0, 0.0, 0.0]), bone
        reach = float(np.linalg.norm(forward))
    forward = forward / reach
    if not any(bones.kept[c] for c in bones.children[i]) and bones.parts[i] == "foot":
        reach += 0.035 * stature  # toes that the skeleton has not
    left = np.cross(up, forward)
    foot = bones.parts[i] == "foot"
    top = 0.3 * ANKLE * stature if foot else 0.008 * stature
    sole = _sole_height(bones, i, bone, up)
    # toes stand on the plane of the foot they hang on
    above = bones.owner[bones.rig.joints[i].parent]
    if not foot and bones.parts[above] == "foot":
        down = bones.rig.rest[i] - bones.rig.rest[above]
        sole = _sole_height(bones, above, down, up) - float(down @ up)
    heel = -0.3 * reach if foot else 0.0
    half = np.array([(reach - heel) / 2.0, 0.027 * stature, (top - sole) / 2.0])
    pos = forward * (reach + heel) / 2.0 + up * (top + sole) / 2.0
    quat = _quat(np.stack([forward, left, up], axis=1))
    return Shape("box", tuple(half.tolist()), tuple(pos.tolist()), quat)


def _sole_height(bones: Bones, i: int, bone: Floats, up: Floats) -> float:
    """Height of the sole over the joint, a negative number [m]."""
    stature = bones.stature or bones.height
    sole = min(float(bone @ up), 0.0) - 0.010 * stature
    return min(sole, -ANKLE * stature) if bones.parts[i] == "foot" else sole


def _distinct(points: list[Floats]) -> list[Floats]:
    """Points that are not near each other: of several, the one that is farthest out."""
    distinct: list[Floats] = []
    for p in sorted(points, key=lambda p: -float(np.linalg.norm(p))):
        if all(np.linalg.norm(p - other) > 0.25 * np.linalg.norm(other) for other in distinct):
            distinct.append(p)
    return distinct


def _quat(R: Floats) -> Vector:
    """Quaternion of a rotation matrix: first z, then what is left about it."""
    first = quat_from_z(tuple(R[:, 2].tolist()))
    x = rotate(conjugate(first), R[:, 0])
    angle = float(np.arctan2(x[1], x[0]))
    whole = multiply(first, (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)))
    return tuple(whole.tolist())
