"""What a picture shows: a list of primitives with pose, size, colour and opacity.

The ray caster draws such a list, and so may any other viewer. Nothing here knows of pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Floats, finite, floats
from poise.math.rotation import multiply, quat_matrix
from poise.model.character import Shape
from poise.model.scene import Scene, SceneLike, scene_of
from poise.model.validation import check_direction, check_number, check_vector
from poise.recording import Recording
from poise.view.colors import Colors, Rgb, check_rgb, shape_colors
from poise.view.mesh import Mesh

Kind = Literal["sphere", "capsule", "box", "cylinder", "plane", "mesh"]
Drawable: TypeAlias = "SceneLike | Sequence[Primitive]"

SIZES = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "plane": 1, "mesh": 0}
"""How many numbers the size of each kind has, in the order of the core's kinds."""

GHOST = (0.16, 0.46, 0.92)
GHOST_OPACITY = 0.4


@dataclass(frozen=True, eq=False)
class Primitive:
    """One thing in a picture.

    Args:
        kind: "sphere", "capsule" or "cylinder" (along z), "box", "plane" (z = 0), "mesh".
        size: Sphere (radius,); capsule, cylinder (radius, half length); box half sizes; plane
            (side of its checks,), 0 = plain; mesh () [m].
        pos: Centre, or origin of a mesh or plane [m].
        quat: Orientation, w x y z; normalised.
        color: Red, green, blue, in 0..1.
        opacity: 1 is solid; below that one sees through it.
        group: Of see-through primitives of one group only the nearest surface shows.
        mesh: Of kind "mesh".
    """

    kind: Kind
    size: Sequence[float]
    pos: Sequence[float] = (0.0, 0.0, 0.0)
    quat: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    color: Rgb = (0.7, 0.7, 0.7)
    opacity: float = 1.0
    group: int = 0
    mesh: Mesh | None = None

    def __post_init__(self) -> None:
        if self.kind not in list(SIZES):
            raise PoiseError("primitive: " + unknown_name("kind", self.kind, SIZES))
        at = f"{self.kind}: "
        size = check_vector(at + "size", self.size, SIZES[self.kind])
        if size and (min(size) < 0.0 or (size[0] == 0.0 and self.kind != "plane")):
            raise PoiseError(f"{at}size must be positive, got {size}")
        if (self.mesh is not None) != (self.kind == "mesh"):
            raise PoiseError(f"{at}a mesh belongs to kind 'mesh', and to no other")
        values: dict[str, Any] = {
            "size": size,
            "pos": check_vector(at + "pos", self.pos, 3),
            "quat": check_direction(at + "quat", self.quat, 4),
            "color": check_rgb(at + "color", self.color),
            "opacity": check_number(at + "opacity", self.opacity, least=0.0),
        }
        if values["opacity"] > 1.0:
            raise PoiseError(f"{at}opacity must be in 0..1, got {values['opacity']:g}")
        for key, value in values.items():
            object.__setattr__(self, key, value)


PRIMITIVE_FIELDS = tuple(field.name for field in fields(Primitive))


def drawing_of(
    source: SceneLike,
    q: ArrayLike | None = None,
    *,
    color: Colors = None,
    opacity: float = 1.0,
    group: int = 0,
) -> list[Primitive]:
    """The shapes of a scene at one position.

    Args:
        source: A character, several, or a World.
        q: Position, shape (nq,); None is where a World is, or the rest pose.
        color: One colour for all, or colours by limb, link or part, also as part/limb and
            part/link; shapes have their own unless given.
        opacity: 1 is solid.
        group: As of a Primitive.
    """
    if not 0.0 <= check_number("opacity", opacity) <= 1.0:
        raise PoiseError(f"opacity must be in 0..1, got {opacity:g}")
    scene = scene_of(source)
    position, quaternion = link_poses(source, scene, q)
    shapes = [
        (i, shape)
        for i, link in enumerate(link for part in scene.characters for link in part.links)
        for shape in link.shapes
    ]
    if not shapes:
        return []
    colors = shape_colors(scene, color)
    index = np.array([i for i, _ in shapes])
    local = np.array([shape.pos for _, shape in shapes])
    turn = np.array([shape.quat for _, shape in shapes])
    at = position[index] + np.einsum("nij,nj->ni", quat_matrix(quaternion[index]), local)
    pose = zip(at.tolist(), multiply(quaternion[index], turn).tolist(), strict=True)
    return [
        _primitive(shape, pos, quat, rgb, opacity * alpha, group)
        for (_, shape), (pos, quat), (*rgb, alpha) in zip(shapes, pose, colors, strict=True)
    ]


def is_primitives(source: Any) -> bool:
    """Whether a source is a list of primitives, and not a scene."""
    return isinstance(source, Sequence) and all(isinstance(p, Primitive) for p in source)


def things_of(source: Any, q: ArrayLike | None, color: Colors = None) -> list[Primitive]:
    """The primitives of a source: its own, or those of a scene at q."""
    if not is_primitives(source):
        return drawing_of(source, q, color=color)
    if q is not None:
        raise PoiseError("primitives have their own poses: leave q out")
    return list(source)


def heading(source: Any, q: ArrayLike | None) -> float:
    """Where the first character looks [rad]; primitives look along x."""
    if is_primitives(source):
        return 0.0
    return heading_of(link_poses(source, scene_of(source), q)[1][0])


def link_poses(source: SceneLike, scene: Scene, q: ArrayLike | None) -> tuple[Floats, Floats]:
    """Positions (nl, 3) and quaternions (nl, 4) of the links at one position."""
    return forward_kinematics(scene, position_of(source, scene, q))


def position_of(source: SceneLike, scene: Scene, q: ArrayLike | None) -> Floats:
    """One row q, finite: as given, or where a World's first copy is, or the rest pose."""
    if q is None:
        if isinstance(source, Recording):
            raise PoiseError(
                "a Recording has many positions: frame_drawing(recording, i) is one to render, "
                "recording_sheet shows some, save_video all"
            )
        state = getattr(source, "state", None)
        q = scene.forest.rest_q if state is None else np.asarray(state.q).reshape(-1, scene.nq)[0]
    row = floats(q, "q")
    if row.shape != (scene.nq,):
        raise PoiseError(f"q has shape {row.shape}, expected ({scene.nq},): one position")
    return finite(row, "q")


def hull_points(primitives: Iterable[Primitive]) -> Floats:
    """Balls (x, y, z, radius) whose hull holds the primitives, planes left out, shape (k, 4)."""
    rows: list[Floats] = []
    for p in primitives:
        c, R = np.array(p.pos), quat_matrix(p.quat)
        if p.kind == "sphere":
            rows.append(np.append(c, p.size[0])[None])
        elif p.kind in ("capsule", "cylinder"):
            ends = c + np.outer((-p.size[1], p.size[1]), R[:, 2])
            rows.append(np.column_stack([ends, np.full(2, p.size[0])]))
        elif p.kind in ("box", "mesh"):
            low, high = -np.array(p.size), np.array(p.size)
            if p.mesh is not None:
                if not len(p.mesh.vertices):
                    continue
                low, high = p.mesh.vertices.min(axis=0), p.mesh.vertices.max(axis=0)
            corner = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
            points = c + np.where(corner, high, low) @ R.T
            rows.append(np.column_stack([points, np.zeros(8)]))
    return np.concatenate(rows) if rows else np.zeros((0, 4))


def ground_under(scene: Scene, q: Floats) -> float:
    """Height of the ground [m] under positions q, shape (k, nq).

    It is 0, but where characters stay at the place that their file gives the root, it is not above
    their lowest point at rest: many files put the root at the origin.
    """
    at, rest = 0, scene.forest.rest_q
    for part in scene.characters:
        free = bool(part.joints) and part.joints[0].kind == "free"
        if free and not (q[:, at : at + 3] == rest[at : at + 3]).all():
            return 0.0
        at += part.nq
    return min([0.0, *map(lowest, drawing_of(scene, rest))])


def lowest(thing: Primitive) -> float:
    """Height of a primitive's lowest point [m]; a plane has none."""
    down = quat_matrix(thing.quat)[2]
    if thing.kind == "plane":
        return math.inf
    if thing.mesh is not None:
        return thing.pos[2] + float((thing.mesh.vertices @ down).min(initial=0.0))
    if thing.kind == "box":
        return thing.pos[2] - float(np.abs(down) @ thing.size)
    radius, half = (*thing.size, 0.0)[:2]
    along = min(abs(float(down[2])), 1.0)
    if thing.kind == "cylinder":
        radius *= math.sqrt(1.0 - along**2)
    return thing.pos[2] - radius - half * along


def _primitive(
    shape: Shape, pos: Rgb, quat: Rgb, rgb: Rgb, opacity: float, group: int
) -> Primitive:
    kind: Any = shape.kind
    if kind not in list(SIZES) or kind == "plane":
        raise PoiseError(f"a shape of kind {kind!r} cannot be drawn")
    mesh = _mesh_of(shape) if kind == "mesh" else None
    values = (kind, shape.size, tuple(pos), tuple(quat), tuple(rgb), opacity, group, mesh)
    # shape, pose and colour have been checked: a primitive without its own checks takes a tenth
    out = object.__new__(Primitive)
    out.__dict__.update(zip(PRIMITIVE_FIELDS, values, strict=True))
    return out


def _mesh_of(shape: Shape) -> Mesh:
    """The hull of a shape's vertices; made once and kept on it."""
    kept: Mesh | None = shape.__dict__.get("_drawn")
    if kept is None:
        kept = Mesh(np.array(shape.vertices), shape.triangles, convex=True)
        shape.__dict__["_drawn"] = kept
    return kept


def heading_of(quat: ArrayLike) -> float:
    """Direction about z in which the x axis of a frame points [rad]."""
    R = quat_matrix(quat)
    # an x axis that points up or down says nothing; then the sideways axis does
    if math.hypot(R[0, 0], R[1, 0]) > 0.2:
        return math.atan2(R[1, 0], R[0, 0])
    return math.atan2(-R[0, 1], R[1, 1])
