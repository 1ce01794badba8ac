"""Drawings: lists of primitives with pose, size, color and opacity.

The ray caster draws such a list, and so can any other viewer: primitives do not depend on pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError, unknown_name
from poise.math import rotation
from poise.math.arrays import Floats, finite, floats
from poise.math.rotation import quat_from_z, quat_matrix
from poise.model.character import Character
from poise.model.geometry import reach_below
from poise.model.scene import Scene, SceneLike, scene_of
from poise.model.shape import Shape
from poise.model.validation import check_direction, check_number, check_vector
from poise.recording import Recording
from poise.simulation.contact import HeightField, Plane, default_projectiles
from poise.simulation.world_config import WorldConfig
from poise.view.mesh import DARK, TILES, Mesh

Kind = Literal["sphere", "capsule", "box", "cylinder", "plane", "mesh"]
Drawable: TypeAlias = "SceneLike | Sequence[Primitive]"

SIZES = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "plane": 1, "mesh": 0}
"""Length of the size of each kind, in the order of the core's kinds."""

GHOST = (0.16, 0.46, 0.92)
GHOST_OPACITY = 0.4


@dataclass(frozen=True, eq=False)
class Primitive:
    """One shape in a picture.

    Args:
        kind: "sphere", "capsule" or "cylinder" (along z), "box", "plane" (z = 0), "mesh".
        size: Sphere (radius,); capsule, cylinder (radius, half length); box half sizes; plane
            (side of its checks,), 0 = plain; mesh () [m].
        pos: Center, or origin of a mesh or plane [m].
        quat: Orientation, w x y z; normalized.
        color: Red, green, blue, in 0..1.
        opacity: 1 is opaque, below 1 translucent.
        group: Of translucent primitives of one group only the nearest surface is visible.
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
        q: Position, shape (nq,); None is the World's present position, or the rest pose.
        color: One color for all, or colors by limb, link or part, also as part/limb and
            part/link; by default those of the shapes.
        opacity: 1 is opaque.
        group: See Primitive.
    """
    if not 0.0 <= check_number("opacity", opacity) <= 1.0:
        raise PoiseError(f"opacity must be in 0..1, got {opacity:g}")
    scene = scene_of(source)
    position, quaternion = link_poses(source, scene, q)
    shapes = shapes_of(scene)
    if not shapes:
        return []
    colors = shape_colors(scene, color)
    index = np.array([i for i, _ in shapes])
    local = np.array([shape.pos for _, shape in shapes])
    turn = np.array([shape.quat for _, shape in shapes])
    at = position[index] + np.einsum("nij,nj->ni", quat_matrix(quaternion[index]), local)
    pose = zip(at.tolist(), rotation.multiply(quaternion[index], turn).tolist(), strict=True)
    return [
        _primitive(shape, pos, quat, rgb, opacity * alpha, group)
        for (_, shape), (pos, quat), (*rgb, alpha) in zip(shapes, pose, colors, strict=True)
    ]


def ghost_drawing(source: SceneLike, q: ArrayLike, color: Colors = GHOST) -> list[Primitive]:
    """The shapes of a translucent reference at one position."""
    return drawing_of(source, q, color=color, opacity=GHOST_OPACITY, group=-1)


def shapes_of(scene: Scene) -> list[tuple[int, Shape]]:
    """All shapes of a scene, each with the index of its link."""
    links = [link for part in scene.characters for link in part.links]
    return [(i, shape) for i, link in enumerate(links) for shape in link.shapes]


def is_primitives(source: Any) -> bool:
    """Whether a source is a list of primitives, and not a scene."""
    return isinstance(source, Sequence) and all(isinstance(p, Primitive) for p in source)


def primitives_of(source: Any, q: ArrayLike | None, color: Colors = None) -> list[Primitive]:
    """A source that is a list of primitives, or the primitives of a scene at q."""
    if not is_primitives(source):
        return drawing_of(source, q, color=color)
    if q is not None:
        raise PoiseError("primitives have poses: leave q out")
    return list(source)


def heading(source: Any, q: ArrayLike | None) -> float:
    """Heading of the first character [rad]; 0 for primitives."""
    if is_primitives(source):
        return 0.0
    return heading_of(link_poses(source, scene_of(source), q)[1][0])


def link_poses(source: SceneLike, scene: Scene, q: ArrayLike | None) -> tuple[Floats, Floats]:
    """Positions (nl, 3) and quaternions (nl, 4) of the links at one position."""
    return forward_kinematics(scene, position_of(source, scene, q))


def position_of(source: SceneLike, scene: Scene, q: ArrayLike | None) -> Floats:
    """One finite row q: as given, or the position of a World's first copy, or the rest pose."""
    if q is None:
        if isinstance(source, Recording):
            raise PoiseError(
                "a Recording has many positions: frame_drawing(recording, i) draws one, "
                "recording_sheet some, save_video all"
            )
        state = getattr(source, "state", None)
        q = scene.forest.rest_q if state is None else np.asarray(state.q).reshape(-1, scene.nq)[0]
    row = floats(q, "q")
    if row.shape != (scene.nq,):
        raise PoiseError(f"q has shape {row.shape}, expected ({scene.nq},): one position")
    return finite(row, "q")


def hull_points(primitives: Iterable[Primitive]) -> Floats:
    """Balls (x, y, z, radius) whose hull contains the primitives but planes, shape (k, 4)."""
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

    It is 0, except for characters whose root never leaves its rest position: then it is not above
    their lowest point at rest, because many files put the root at the origin.
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
    if thing.kind == "plane":
        return math.inf
    if thing.mesh is not None:
        down = quat_matrix(thing.quat)[2]
        return thing.pos[2] + float((thing.mesh.vertices @ down).min(initial=0.0))
    return thing.pos[2] - reach_below(cast(Shape, thing), np.eye(3))


def _primitive(
    shape: Shape, pos: Rgb, quat: Rgb, rgb: Rgb, opacity: float, group: int
) -> Primitive:
    kind: Any = shape.kind
    if kind not in list(SIZES) or kind == "plane":
        raise PoiseError(f"a shape of kind {kind!r} cannot be drawn")
    mesh = _mesh_of(shape) if kind == "mesh" else None
    values = (kind, shape.size, tuple(pos), tuple(quat), tuple(rgb), opacity, group, mesh)
    # shape, pose and color are checked already; without checks a primitive takes a tenth as long
    out = object.__new__(Primitive)
    out.__dict__.update(zip(PRIMITIVE_FIELDS, values, strict=True))
    return out


def _mesh_of(shape: Shape) -> Mesh:
    """The hull of a shape's vertices, cached on the shape."""
    kept: Mesh | None = shape.__dict__.get("_drawn")
    if kept is None:
        kept = Mesh(np.array(shape.vertices), shape.triangles, convex=True)
        shape.__dict__["_drawn"] = kept
    return kept


def heading_of(quat: ArrayLike) -> float:
    """Heading of a frame: direction of its x axis about z [rad]."""
    R = quat_matrix(quat)
    # an x axis that points up or down has no heading; then the y axis decides
    if math.hypot(R[0, 0], R[1, 0]) > 0.2:
        return math.atan2(R[1, 0], R[0, 0])
    return math.atan2(-R[0, 1], R[1, 1])


# ---- colors

Rgb = Sequence[float]
Colors: TypeAlias = "Rgb | Mapping[str, Rgb] | None"

PALETTE: tuple[tuple[float, float, float], ...] = (
    (0.33, 0.49, 0.66),
    (0.85, 0.56, 0.36),
    (0.45, 0.62, 0.47),
    (0.76, 0.44, 0.45),
    (0.56, 0.50, 0.70),
    (0.80, 0.70, 0.42),
    (0.42, 0.62, 0.66),
)
"""Colors of limbs whose shapes have none."""

LIMBS = ("torso", "left_leg", "right_leg", "head", "left_arm", "right_arm", "tail")
"""Limbs with a fixed color, so that characters of different files are comparable."""


def check_rgb(where: str, value: object) -> tuple[float, ...]:
    """Checks three numbers in 0..1."""
    rgb = check_vector(where, value, 3)
    if min(rgb) < 0.0 or max(rgb) > 1.0:
        raise PoiseError(f"{where} must be in 0..1, got {rgb}")
    return rgb


def shape_colors(scene: Scene, color: Colors) -> list[tuple[float, ...]]:
    """Red, green, blue and alpha of every shape of a scene, link by link.

    Args:
        scene: Whose shapes.
        color: One color for all; or colors by limb or link, which apply to every part that has
            it, by part, or by part/limb and part/link; later ones override earlier ones.
    """
    names = {
        part: _names(part, character)
        for part, character in zip(scene.forest.parts, scene.characters, strict=True)
    }
    chosen: dict[tuple[str, str], tuple[float, ...]] = {}
    every = None if color is None or isinstance(color, Mapping) else check_rgb("color", color)
    if isinstance(color, Mapping):
        for name, rgb in color.items():
            found = [(part, link) for part, own in names.items() for link in own.get(name, ())]
            if not found:
                known = list(dict.fromkeys(x for own in names.values() for x in own))
                raise PoiseError(unknown_name("limb or link", name, known, "limbs and links"))
            chosen.update(dict.fromkeys(found, check_rgb(f"color of {name!r}", rgb)))
    out = []
    for part, character in zip(names, scene.characters, strict=True):
        for link, rgba in _own_colors(character):
            out.append((*(every or chosen.get((part, link)) or rgba[:3]), rgba[3]))
    return out


def _names(part: str, character: Character) -> dict[str, tuple[str, ...]]:
    """Names that can have a color in a part, and the links of each."""
    links = {link.name: (link.name,) for link in character.links}
    own = {**links, **character.limbs}
    whole = {part: tuple(links)}
    return {**whole, **own, **{f"{part}/{name}": found for name, found in own.items()}}


def _own_colors(character: Character) -> list[tuple[str, tuple[float, ...]]]:
    """Link, and red, green, blue and alpha, of every shape of a character."""
    limb_of = {
        link: LIMBS.index(limb) if limb in LIMBS else i
        for i, (limb, links) in enumerate(character.limbs.items())
        for link in links
    }
    out = []
    for i, link in enumerate(character.links):
        own = PALETTE[limb_of.get(link.name, i) % len(PALETTE)]
        out += [(link.name, (*(shape.color or own), 1.0)[:4]) for shape in link.shapes]
    return out


# ---- surroundings

CHECKS = 0.5  # side of the ground's checks [m]
GROUND = ((0.60, 0.62, 0.65), (0.70, 0.72, 0.75))
STONE = (0.62, 0.60, 0.56)
"""Default color of obstacles."""

MARGIN = 16.0  # of the checkered ground around the motion [m]
HORIZON = 400.0  # half size of the plain ground [m]
MOST_BOARDS = 8  # of the checkered ground along each side


def static_drawing(settings: WorldConfig, *, ground: bool = True) -> list[Primitive]:
    """Obstacles, and a ground that is not level.

    Args:
        settings: Of a world.
        ground: Whether to draw that ground.
    """
    things = [_obstacle(shape) for shape in settings.obstacles]
    return things + _uneven_ground(settings) if ground else things


def _uneven_ground(settings: WorldConfig) -> list[Primitive]:
    things: list[Primitive] = []
    ground = settings.ground
    if isinstance(ground, Plane) and level_ground(settings) is False:
        at = tuple(ground.height * x for x in ground.normal)
        things.append(Primitive("plane", (CHECKS,), at, quat_from_z(ground.normal), GROUND[1]))
    if isinstance(ground, HeightField):
        ground = ground.of_copy(0)
        mesh = Mesh.height_field(ground.heights.T, ground.spacing)
        size = np.array(ground.heights.T.shape) - 1
        x, y = (np.array(ground.origin) + 0.5 * size * ground.spacing).tolist()
        things.append(Primitive("mesh", (), (x, y, 0.0), color=GROUND[1], mesh=mesh))
    return things


def level_ground(settings: WorldConfig) -> bool | float:
    """The argument `ground` of `render`: height of a level ground, or whether there is one."""
    ground = settings.ground
    if isinstance(ground, Plane):
        return ground.height if ground.normal[2] == 1.0 else False
    return ground is True


def ground_height(settings: WorldConfig) -> float | None:
    """Height of a level ground [m]; None if there is none, or it is not level."""
    height = level_ground(settings)
    return None if height is False else 0.0 if height is True else height


def ground_drawing(settings: WorldConfig, low: ArrayLike, high: ArrayLike) -> list[Primitive]:
    """A level ground for a browser: checkered boards and a plain surround; [] if there is none.

    Args:
        settings: Of a world.
        low: Least x and y of the motion [m], shape (2,) or more.
        high: Largest x and y.
    """
    height = ground_height(settings)
    if height is None:
        return []
    side = TILES * CHECKS
    a, b = (np.asarray(corner, dtype=np.float64)[:2] for corner in (low, high))
    count = np.clip(np.ceil((b - a + 2.0 * MARGIN) / side), 1, MOST_BOARDS).astype(int)
    # whole pairs of checks, so that the pattern does not shift when the ground is redrawn
    middle = np.rint((a + b) / 2 / (2 * CHECKS)) * 2 * CHECKS
    x, y = (middle[k] + side * (np.arange(count[k]) - (count[k] - 1) / 2) for k in (0, 1))
    at = [(i, j, height) for i in x.tolist() for j in y.tolist()]
    boards = [Primitive("plane", (CHECKS,), pos, color=GROUND[1]) for pos in at]
    # the plain surround is a little lower, which avoids flicker (z-fighting)
    plain = [0.5 * (1.0 + DARK) * x for x in GROUND[1]]
    x, y = middle.tolist()
    far = Primitive("box", (HORIZON, HORIZON, 0.01), (x, y, height - 0.03), color=plain)
    return [*boards, far]


def projectile_drawing(settings: WorldConfig, thrown: Floats) -> list[Primitive]:
    """Projectiles that are thrown.

    Args:
        settings: Of a world.
        thrown: Of each projectile whether it is thrown, and its position, shape
            (projectiles, 8) or more.
    """
    rows = zip(default_projectiles(settings.projectiles), thrown, strict=True)
    return [thing for body, row in rows if row[0] for thing in drawing_of(body, row[1:8])]


def _obstacle(shape: Shape) -> Primitive:
    rgb = (shape.color or STONE)[:3]
    opacity = shape.color[3] if shape.color else 1.0
    mesh = _mesh_of(shape) if shape.kind == "mesh" else None
    return Primitive(shape.kind, shape.size, shape.pos, shape.quat, rgb, opacity, mesh=mesh)
