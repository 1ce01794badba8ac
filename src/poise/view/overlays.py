"""Overlays: arrows of forces and pushes, trails, markers, and the reference as a ghost.

They are primitives like all others: `render(character, q, also=[*arrow(...), *trail(...)])`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, matrix, number, shaped
from poise.math.rotation import quat_from_z, quat_matrix
from poise.model.scene import Scene
from poise.recording import Recording
from poise.simulation.contact import Contacts
from poise.simulation.pushes import Push
from poise.view import drawing
from poise.view.drawing import Primitive, Rgb
from poise.view.mesh import Mesh, solid
from poise.view.timeline import Timeline

FORCE = (0.87, 0.20, 0.16)
PATH = (0.93, 0.62, 0.13)
POINT = (0.95, 0.78, 0.10)

HEAD_WIDTH = 2.4  # of an arrow, in radii of its shaft
HEAD_LENGTH = 6.0
JUMP = 1e-9  # points nearer than this are one [m]
MOST_POINTS = 100_000


def arrow(
    start: ArrayLike,
    vector: ArrayLike,
    *,
    scale: float = 1.0,
    radius: float = 0.015,
    color: Rgb = FORCE,
    opacity: float = 1.0,
    tip: bool = False,
) -> list[Primitive]:
    """An arrow: a round shaft with a cone at its end; nothing where the vector is zero.

    Args:
        start: Its tail [m], shape (3,).
        vector: From tail to tip, shape (3,): [m], or any other unit times `scale`.
        scale: Meters per unit of the vector, as 0.002 for a force [m/N].
        radius: Of the shaft [m].
        color: Red, green, blue, in 0..1.
        opacity: 1 is solid.
        tip: Whether `start` is its tip instead, as of a push on a surface.
    """
    way = number(scale, "scale", positive=False, unit="m per unit") * finite(
        shaped(vector, "vector", (3,)), "vector"
    )
    begin = finite(shaped(start, "start", (3,)), "start")
    radius = number(radius, "radius", unit="m")
    length = float(np.linalg.norm(way))
    if length < JUMP:
        return []
    u = way / length
    if tip:
        begin = begin - way
    # a short arrow is thin, so that it stays an arrow
    radius = min(radius, length / (1.5 * HEAD_LENGTH))
    head = HEAD_LENGTH * radius
    quat = quat_from_z(u.tolist())
    shaft = (length - head) / 2
    looks: dict[str, Any] = {"color": color, "opacity": opacity}
    return [
        Primitive("cylinder", (radius, shaft), tuple(begin + shaft * u), quat, **looks),
        Primitive("mesh", (), tuple(begin + 2 * shaft * u), quat, mesh=_cone(radius), **looks),
    ]


def trail(
    points: ArrayLike,
    *,
    radius: float = 0.008,
    color: Rgb = PATH,
    opacity: float = 1.0,
) -> list[Primitive]:
    """A path through points: capsules from each to the next.

    Args:
        points: [m], shape (k, 3).
        radius: Of the line [m].
        color: Red, green, blue, in 0..1.
        opacity: 1 is solid.
    """
    path = matrix(points, "points", 3)
    if len(path) > MOST_POINTS:
        raise PoiseError(f"points has {len(path)} rows; a trail has at most {MOST_POINTS}")
    radius = number(radius, "radius", unit="m")
    step = np.diff(path, axis=0)
    length = np.linalg.norm(step, axis=1)
    return [
        Primitive(
            "capsule",
            (radius, length[i] / 2),
            tuple(path[i] + step[i] / 2),
            quat_from_z((step[i] / length[i]).tolist()),
            color,
            opacity,
        )
        for i in np.flatnonzero(length > JUMP)
    ]


def marker(
    point: ArrayLike, *, radius: float = 0.03, color: Rgb = POINT, opacity: float = 1.0
) -> list[Primitive]:
    """A ball at a point, such as the center of mass [m], shape (3,)."""
    at = finite(shaped(point, "point", (3,)), "point")
    return [
        Primitive(
            "sphere", (number(radius, "radius", unit="m"),), tuple(at), (1, 0, 0, 0), color, opacity
        )
    ]


@lru_cache(maxsize=64)
def _cone(radius: float) -> Mesh:
    """The head of an arrow along z, its base at the origin."""
    unit, r = solid("cone"), HEAD_WIDTH * radius
    vertices = unit.vertices.astype(np.float64) * (r, r, HEAD_LENGTH * radius)
    return Mesh(vertices, unit.faces.astype(np.int32), convex=True)


# ---- contact forces

LONGEST_ARROW = 1.0
"""Longest arrow of a force [m]: that of a hard landing would leave the picture."""

WEIGHT_ARROW = 0.5
"""Length of the arrow of a character's weight, unless a scale is given [m]."""


def force_drawing(touches: Contacts, scale: float, *, copy: int = 0) -> list[Primitive]:
    """Arrows of the total contact force between each two bodies, at most 1 m long.

    Args:
        touches: Contacts.
        scale: Length of an arrow [m/N].
        copy: Which copy.
    """
    points, forces = pair_forces(touches, copy=copy)
    ways = arrow_vectors(forces, scale)
    return [thing for pair in zip(points, ways, strict=True) for thing in arrow(*pair)]


def pair_forces(touches: Contacts, *, copy: int = 0) -> tuple[Floats, Floats]:
    """The total contact force between each two bodies, and where it acts.

    Args:
        touches: Contacts.
        copy: Which copy.

    Returns:
        Points [m] and forces on the first of the two [N], shapes (k, 3).
    """
    touches = touches.rows(touches.copy == copy)
    pairs, which = np.unique(
        np.stack([touches.link, touches.other], axis=1), axis=0, return_inverse=True
    )
    member = which.reshape(-1) == np.arange(len(pairs))[:, None]
    size = np.linalg.norm(touches.force, axis=1)
    total = member @ size
    some = total > 0.0
    point = (member * size)[some] @ touches.point / total[some, None]
    return point, member[some] @ touches.force


def arrow_vectors(forces: Floats, scale: float, longest: float = LONGEST_ARROW) -> Floats:
    """Arrows of forces (k, 3) [N] at a scale [m/N], no longer than that [m]."""
    size = np.linalg.norm(forces, axis=1, keepdims=True)
    short: Floats = forces * np.minimum(scale, longest / np.maximum(size, 1e-9))
    return short


def force_scale(recording: Recording, forces: bool | float = True) -> float:
    """Scale of force arrows [m/N]: as given, 0 for none, or so that a weight is half a meter."""
    if not isinstance(forces, bool):
        return abs(number(forces, "forces", positive=False, unit="m/N"))
    if not forces:
        return 0.0
    forest = recording.scene.forest
    mass = max(forest.link_mass[part.links].sum() for part in forest.parts.values())
    pull = float(np.linalg.norm(recording.gravity, axis=1).max())
    return WEIGHT_ARROW / max(float(mass) * (pull or 9.81), 1e-3)


# ---- pushes

PUSH = (0.95, 0.52, 0.05)
PUSH_RADIUS = 0.022
SHORTEST_PUSH = 0.35
"""Shortest arrow of a push [m]: that of a weak one stays visible."""

LINGER = 0.25
"""How long an arrow fades after its push [s]: a push of a tenth of a second is hardly visible."""


class PushArrow(NamedTuple):
    """Arrow of a push.

    Attributes:
        start: Its tail [m], shape (3,).
        vector: From tail to tip [m], shape (3,).
        radius: Of its shaft [m].
    """

    start: Floats
    vector: Floats
    radius: float


class PushArrows:
    """Arrows of the pushes of a recording, which does not store them.

    Args:
        timeline: The recording, sampled.
        pushes: In world directions; forward and the like are relative to the heading of the pushed
            character at that time.
        scale: Length of an arrow [m/N].
    """

    def __init__(self, timeline: Timeline, pushes: Sequence[Push], scale: float) -> None:
        if not isinstance(pushes, Sequence) or not all(isinstance(p, Push) for p in pushes):
            raise PoiseError("pushes must be a sequence of Push, as parse_push makes them")
        self._timeline, self._scale = timeline, scale
        scene = timeline.recording.scene
        self._links = [scene.link_index(push.link) for push in pushes]
        self._pushes = [
            push.in_world(self._heading(i, push.at)) if isinstance(push.direction, str) else push
            for push, i in zip(pushes, self._links, strict=True)
        ]

    def at(self, k: int) -> list[PushArrow]:
        """Arrows in picture k."""
        time, out = float(self._timeline.time[k]), []
        for push, link in zip(self._pushes, self._links, strict=True):
            over = time - push.at - push.duration
            if push.at <= time + 1e-9 and over < LINGER:
                left = 1.0 - max(over, 0.0) / LINGER
                out.append(self._arrow(k, push, link, PUSH_RADIUS * left))
        return out

    def _arrow(self, k: int, push: Push, link: int, radius: float) -> PushArrow:
        """An arrow that ends at the surface of the link's shapes."""
        scene, q = self._timeline.recording.scene, self._timeline.q[k]
        force = push.force_vector()
        along = force / np.linalg.norm(force)
        place, turn = forward_kinematics(scene, q)
        center = place[link] + quat_matrix(turn[link]) @ scene.forest.link_com[link]
        drawn = zip(drawing.shapes_of(scene), drawing.drawing_of(scene, q), strict=True)
        balls = drawing.hull_points(thing for (i, _), thing in drawn if i == link)
        reach = max([0.0, *(balls[:, 3] - (balls[:, :3] - center) @ along)])
        length = float(np.clip(self._scale * push.force, SHORTEST_PUSH, LONGEST_ARROW))
        vector = length * along
        return PushArrow(center - reach * along - vector, vector, radius)

    def _heading(self, link: int, time: float) -> float:
        """Heading of a link's character at a time [rad]."""
        scene, line = self._timeline.recording.scene, self._timeline
        k = int(np.argmin(np.abs(line.time - time)))
        parts = scene.forest.parts.values()
        root = next(
            part.links.start for part in parts if part.links.start <= link < part.links.stop
        )
        return drawing.heading_of(forward_kinematics(scene, line.q[k])[1][root])


# ---- reference

THINNESS = 0.95

ROTATION_RADIUS = 0.2
"""A rotation counts as the displacement of a point at this distance [m]."""

FADE_NEAR, FADE_FAR = 0.006, 0.03
"""The ghost of a link is invisible below the first distance and fully visible beyond the second
[m]."""


def link_distances(scene: Scene, q: Floats, goal: Floats) -> Floats:
    """Distance of each link from its target, rotations included [m], shape (..., nl).

    Args:
        scene: The scene.
        q: Positions, shape (..., nq).
        goal: Positions of the target, shape (..., nq).
    """
    place, turn = forward_kinematics(scene, q)
    there, turned = forward_kinematics(scene, goal)
    chord = np.minimum(
        np.linalg.norm(turn - turned, axis=-1), np.linalg.norm(turn + turned, axis=-1)
    )
    way: Floats = np.linalg.norm(place - there, axis=-1) + 2.0 * ROTATION_RADIUS * chord
    return way


def reference_drawing(scene: Scene, q: Floats, goal: Floats) -> list[Primitive]:
    """The target as a ghost, thinner than the character, which fades where the two coincide.

    Args:
        scene: The scene.
        q: Position of the character, shape (nq,).
        goal: Position of the target, shape (nq,).
    """
    distance = link_distances(scene, q, goal)
    visibility = ((distance - FADE_NEAR) / (FADE_FAR - FADE_NEAR)).clip(0.0, 1.0).tolist()
    ghost = scale_radii(drawing.ghost_drawing(scene, goal))
    for (link, _), thing in zip(drawing.shapes_of(scene), ghost, strict=True):
        thing.__dict__["opacity"] *= visibility[link]
    return [thing for thing in ghost if thing.opacity > 0.0]


def scale_radii(things: Iterable[Primitive], by: float = THINNESS) -> list[Primitive]:
    """Primitives with scaled radii; capsules and cylinders keep their lengths, meshes their size.

    A slightly thinner ghost is hidden inside a body that tracks it well.

    Args:
        things: Primitives.
        by: Factor of radii and of the sides of boxes.
    """
    out = []
    for thing in things:
        slim = object.__new__(Primitive)
        slim.__dict__.update(thing.__dict__)
        keep = thing.size[1:] if thing.kind in ("capsule", "cylinder") else ()
        size = (*(by * x for x in thing.size[: len(thing.size) - len(keep)]), *keep)
        slim.__dict__["size"] = thing.size if thing.kind == "plane" else size
        out.append(slim)
    return out
