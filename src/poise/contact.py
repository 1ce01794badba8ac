"""Contact: what can touch what, compiled for the core.

Every shape of every link is a collider, so are obstacles. The ground meets *probes*: balls and
corners of the shapes. Pairs of shapes meet each other, but for those of one link, of a link and
the link it hangs on, and those that overlap in the rest pose. Where meshes and cylinders touch is
found outside of the core, by poise.convex.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import _core
from poise.arrays import Floats, finite, floats, number
from poise.character import Character, Joint, Link
from poise.convex import CONVEX, Convex
from poise.errors import PoiseError, check_direction, unknown_name
from poise.forest import Forest
from poise.pose import Pose
from poise.scene import Scene
from poise.shape import Shape

Ints = NDArray[np.int32]

MODELS = {"impulse": 1, "penalty": 2}
KINDS = {"sphere": 0, "capsule": 1, "box": 2, "cylinder": 3, "mesh": 4}
POINTS = {frozenset((0,)): 1, frozenset((0, 1)): 1, frozenset((1,)): 2, frozenset((0, 2)): 1}
"""How many points two kinds of shapes may meet in; 3 for a capsule on a box, 4 for two boxes and
for all pairs with a cylinder or a mesh."""

HIGHEST = 1e6  # of a height field [m]
FRICTION = 0.8
MOST_SPARES = 32
SWEEPS = 100


class Plane:
    """A flat ground.

    Args:
        normal: Which way it faces.
        height: Distance from the world's origin along the normal [m].
    """

    def __init__(self, normal: Sequence[float] = (0.0, 0.0, 1.0), height: float = 0.0) -> None:
        self.normal = check_direction("plane: normal", normal, 3)
        self.height = number(height, "plane: height", positive=False)


class HeightField:
    """An uneven ground: heights over a grid. Beyond its rim it goes on level.

    Args:
        heights: [m], shape (rows, columns): rows along y, columns along x.
        spacing: Distance of grid points along x and y [m].
        origin: x and y of the first point; None puts the middle at the world's origin.
    """

    def __init__(
        self,
        heights: ArrayLike,
        spacing: float | tuple[float, float],
        origin: tuple[float, float] | None = None,
    ) -> None:
        self.heights = np.array(finite(floats(heights, "heights"), "heights"))
        if self.heights.ndim != 2 or min(self.heights.shape) < 2:
            raise PoiseError(f"heights has shape {self.heights.shape}, expected 2 x 2 or more")
        self.heights.flags.writeable = False
        if np.abs(self.heights).max() > HIGHEST:
            raise PoiseError(f"heights must be within {HIGHEST:g} m of 0")
        dx, dy = _two(spacing, "spacing") if isinstance(spacing, tuple) else (spacing, spacing)
        self.spacing = (number(dx, "spacing", unit="m"), number(dy, "spacing", unit="m"))
        if origin is None:
            rows, columns = self.heights.shape
            origin = (-0.5 * (columns - 1) * self.spacing[0], -0.5 * (rows - 1) * self.spacing[1])
        x, y = _two(origin, "origin")
        self.origin = (
            number(x, "origin[0]", positive=False, unit="m"),
            number(y, "origin[1]", positive=False, unit="m"),
        )


GroundLike = bool | Plane | HeightField


def _two(value: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise PoiseError(f"{name} must be two numbers, got {value!r:.80}")
    return value[0], value[1]


@dataclass(frozen=True, eq=False)
class Touch:
    """What the core takes; see cpp/include/poise/contact/touchables.hpp."""

    model: int
    sweeps: int
    surfaces: int
    friction: Floats
    restitution: Floats
    stiffness: float
    damping: float
    viscosity: float
    collider_body: Ints
    collider_link: Ints
    collider_surface: Ints
    collider_kind: Ints
    collider_size: Floats
    collider_p: Floats
    collider_E: Floats
    collider_reach: Floats
    probe_collider: Ints
    probe_point: Floats
    probe_axis: Floats
    probe_numbers: Floats
    pair_a: Ints
    pair_b: Ints
    pair_points: Ints
    bound_body: Ints
    bound_axis: Floats
    bound_limits: Floats
    ground_kind: int
    ground_plane: Floats
    ground_grid: Floats
    ground_height: Floats
    spares: int
    spare_colliders: Ints
    spare_probes: Ints
    spare_pairs: Ints
    shapes: tuple[Shape, ...] = ()  # of the colliders; the core does not read them


@dataclass
class _Collider:
    body: int
    link: int
    shape: Shape
    pose: Pose  # in the body's frame, or in the world
    surface: int
    spare: int  # 0, or the number of the spare it belongs to

    @property
    def reach(self) -> float:
        shape = self.shape
        if shape.kind == "sphere":
            return shape.size[0]
        if shape.kind == "capsule":
            return shape.size[0] + shape.size[1]
        if shape.kind == "mesh":
            return float(np.linalg.norm(np.array(shape.vertices), axis=1).max())
        if shape.kind == "cylinder":
            return math.hypot(*shape.size)
        return float(np.linalg.norm(shape.size))


def default_spares(spares: int | Sequence[Character]) -> list[Character]:
    """Objects that wait to be thrown: balls of 3 kg, or those given."""
    if isinstance(spares, (int, np.integer)) and not isinstance(spares, bool):
        if not 0 <= spares <= MOST_SPARES:
            raise PoiseError(f"spares is {spares}; it must be 0 to {MOST_SPARES}")
        return [_ball(i + 1) for i in range(spares)]
    if isinstance(spares, bool) or not isinstance(spares, Sequence):
        raise PoiseError(f"spares must be a number or a list of Characters, got {spares!r:.80}")
    for i, one in enumerate(spares):
        if not isinstance(one, Character):
            raise PoiseError(f"spares[{i}] must be a Character, got {one!r:.80}")
        kinds = [joint.kind for joint in one.joints]
        if kinds != ["free"] or len(one.links) != 1:
            raise PoiseError(f"spares[{i}] ({one.name!r}) must be one free link")
    if len(spares) > MOST_SPARES:
        raise PoiseError(f"{len(spares)} spares; at most {MOST_SPARES} can wait")
    return list(spares)


def check_obstacles(obstacles: Iterable[Shape]) -> list[Shape]:
    """Shapes that stand in the world."""
    if isinstance(obstacles, (Shape, str)) or not isinstance(obstacles, Iterable):
        raise PoiseError(f"obstacles must be a list of Shapes, got {obstacles!r:.80}")
    found = list(obstacles)
    for k, shape in enumerate(found):
        if not isinstance(shape, Shape):
            raise PoiseError(f"obstacles[{k}] must be a Shape, got {shape!r:.80}")
    return found


def _ball(number: int, radius: float = 0.1, mass: float = 3.0) -> Character:
    shape = Shape("sphere", (radius,), color=(0.85, 0.45, 0.2))
    moment = 0.4 * mass * radius * radius
    link = Link(
        "ball",
        joints=(Joint("flight", "free"),),
        mass=mass,
        inertia=(moment, moment, moment),
        shapes=(shape,),
    )
    return Character(f"spare-{number}", (link,))


def compile_touch(
    scene: Scene,
    *,
    ground: GroundLike = True,
    obstacles: Iterable[Shape] = (),
    model: str = "impulse",
    friction: Floats,
    restitution: Floats,
    self_collision: bool = True,
    exclude: Iterable[tuple[str, str]] = (),
    names: Sequence[str] | None = None,
    spares: int = 0,
    convex: bool | None = None,
    sweeps: int = SWEEPS,
    stiffness: float = 5e4,
    damping: float = 5e2,
    viscosity: float = 2e3,
) -> Touch:
    """Colliders, probes, pairs and joint limits of a scene whose last parts are spares.

    names: Of the links as the user knows them; with spares a single character has company.
    convex: Whether meshes and cylinders meet more than the ground; None asks what there is.
    """
    obstacles = check_obstacles(obstacles)
    for k, shape in enumerate(obstacles if convex is False else ()):
        if shape.kind in CONVEX:
            raise PoiseError(f"obstacles[{k}] is a {shape.kind}, which nothing meets: convex=False")
    colliders = _colliders(scene, obstacles, spares)
    surfaces = scene.nl + len(obstacles) + 1
    kind, plane, grid, height = _ground(ground)
    cell = float(min(grid[2:])) if kind == 2 else math.inf
    probes = []
    if kind:
        for i, c in enumerate(colliders):
            if c.body >= 0:
                probes += [(i, *probe) for probe in _probes(c, cell)]
    pairs = _pairs(scene, colliders, self_collision, exclude, names or scene.forest.link_names)
    if convex is None:
        convex = any(_must_meet(scene, colliders[a], colliders[b]) for a, b in pairs)
    if not convex:
        pairs = [(a, b) for a, b in pairs if not _is_convex(colliders[a], colliders[b])]
    # what concerns the last spares comes last; all pairs of two trees are neighbours, and all of two
    # bodies, so that the order in which bodies are solved is the same whatever touches
    root = _roots(scene.forest)
    pairs.sort(
        key=lambda pair: (
            max(colliders[i].spare for i in pair),
            *(root[colliders[i].body] for i in pair),
            *(colliders[i].body for i in pair),
        )
    )
    bounds = _bounds(scene)
    touch = Touch(
        model=MODELS[model],
        sweeps=sweeps,
        surfaces=surfaces,
        friction=friction,
        restitution=restitution,
        stiffness=stiffness,
        damping=damping,
        viscosity=viscosity,
        collider_body=_ints([c.body for c in colliders]),
        collider_link=_ints([c.link for c in colliders]),
        collider_surface=_ints([c.surface for c in colliders]),
        collider_kind=_ints([KINDS[c.shape.kind] for c in colliders]),
        collider_size=_rows([(*c.shape.size, 0.0, 0.0, 0.0)[:3] for c in colliders], 3),
        collider_p=_rows([c.pose.r for c in colliders], 3),
        collider_E=_rows([c.pose.E for c in colliders], 4),
        collider_reach=np.array([c.reach for c in colliders], dtype=np.float64),
        probe_collider=_ints([p[0] for p in probes]),
        probe_point=_rows([p[1] for p in probes], 3),
        probe_axis=_rows([p[2] for p in probes], 3),
        probe_numbers=_rows([p[3:] for p in probes], 4),
        pair_a=_ints([a for a, _ in pairs]),
        pair_b=_ints([b for _, b in pairs]),
        pair_points=_ints([_points(colliders[a], colliders[b]) for a, b in pairs]),
        bound_body=_ints([b[0] for b in bounds]),
        bound_axis=_rows([b[1] for b in bounds], 3),
        bound_limits=_rows([b[2] for b in bounds], 3),
        ground_kind=kind,
        ground_plane=plane,
        ground_grid=grid,
        ground_height=height,
        spares=spares,
        spare_colliders=_counts(spares, [c.spare for c in colliders]),
        spare_probes=_counts(spares, [colliders[p[0]].spare for p in probes]),
        spare_pairs=_ints([0] * (spares + 1)),
        shapes=tuple(c.shape for c in colliders),
    )
    touch = _count_pairs(touch, colliders)
    return _count_pairs(_without(touch, _overlaps(scene, touch)), colliders)


def _counts(spares: int, of: Sequence[int]) -> Ints:
    """How many rows there are with none, one, two, ... of the spares."""
    return _ints(sum(spare <= k for spare in of) for k in range(spares + 1))


def _count_pairs(touch: Touch, colliders: Sequence[_Collider]) -> Touch:
    of = [
        max(colliders[a].spare, colliders[b].spare)
        for a, b in zip(touch.pair_a, touch.pair_b, strict=True)
    ]
    return replace(touch, spare_pairs=_counts(touch.spares, of))


def _overlaps(scene: Scene, touch: Touch) -> set[frozenset[int]]:
    """Pairs of links of one part that pass through each other in the rest pose."""
    part: dict[int, int] = {}
    for k, p in enumerate(scene.forest.parts.values()):
        part |= dict.fromkeys(range(p.links.start, p.links.stop), k)
    zeros = _ints([0])
    alone = replace(
        touch,
        ground_kind=0,
        model=MODELS["impulse"],
        friction=np.zeros(touch.surfaces),
        restitution=np.zeros(touch.surfaces),
        spares=0,
        spare_colliders=zeros + len(touch.collider_body),
        spare_probes=zeros + len(touch.probe_collider),
        spare_pairs=zeros + len(touch.pair_a),
    )
    # the contacts of a step are those at its start
    probe = _core.World(scene.model, scene.model, 1, 1e-6, False, 1, np.zeros(3), None, alone)
    probe.write(scene.forest.rest_q, np.zeros(scene.nv), np.zeros(1), None, None)
    finder = convex_of(scene, alone)
    if finder is not None:
        rest = scene.forest.rest_q[None], np.zeros((1, scene.nv)), np.zeros((1, 0, 14))
        probe.meet(finder.touches(*rest, 0.0, np.zeros(3)))
    probe.step(None, None, None, None, None, None, None, None, 1, 0, 3, 0, True, False)
    which, _, _, _, gap = probe.contacts()
    found = set()
    for (_, a, b), depth in zip(which.astype(int), gap, strict=True):
        one, two = int(touch.collider_link[a]), int(touch.collider_link[b])
        if depth < 0.0 and one >= 0 and two >= 0 and part[one] == part[two]:
            found.add(frozenset((one, two)))
    return found


def _without(touch: Touch, links: set[frozenset[int]]) -> Touch:
    """Without the pairs of shapes that belong to these pairs of links."""
    link = touch.collider_link
    kept = [
        i
        for i, (a, b) in enumerate(zip(touch.pair_a, touch.pair_b, strict=True))
        if frozenset((int(link[a]), int(link[b]))) not in links
    ]
    if len(kept) == len(touch.pair_a):
        return touch
    return replace(
        touch,
        pair_a=touch.pair_a[kept],
        pair_b=touch.pair_b[kept],
        pair_points=touch.pair_points[kept],
    )


def _colliders(scene: Scene, obstacles: Sequence[Shape], spares: int) -> list[_Collider]:
    forest, characters = scene.forest, len(scene.characters) - spares
    moving: list[_Collider] = []
    waiting: list[_Collider] = []
    i = 0
    for part, character in enumerate(scene.characters):
        for link in character.links:
            frame = Pose(tuple(forest.link_E[i]), tuple(forest.link_p[i]))
            for shape in link.shapes:
                body, pose = int(forest.link_body[i]), frame @ Pose(shape.quat, shape.pos)
                spare = max(0, part - characters + 1)
                (waiting if spare else moving).append(_Collider(body, i, shape, pose, i, spare))
            i += 1
    still = []
    for k, shape in enumerate(obstacles):
        still.append(_Collider(-1, -1 - k, shape, Pose(shape.quat, shape.pos), scene.nl + k, 0))
    return [*moving, *still, *waiting]


def _probes(c: _Collider, cell: float) -> list[tuple[Any, ...]]:
    """Points of a shape that meet the ground: (point, axis, radius, rim, turn, facet)."""
    none = (0.0, 0.0, 0.0)
    shape = c.shape
    flat = math.isinf(cell)

    def at(point: Any) -> tuple[float, ...]:
        return tuple(float(x) for x in (c.pose @ Pose(r=tuple(point))).r)

    def balls(points: Iterable[Any], radius: float) -> list[tuple[Any, ...]]:
        # in a valley a ball lies on the facet below it and on those beside
        facets = (0,) if flat else (0, 1, 2)
        return [(at(p), none, radius, 0.0, 0.0, float(k)) for p in points for k in facets]

    def corners(points: Iterable[Any]) -> list[tuple[Any, ...]]:
        # the facet below, and the one that it comes to within the step
        facets = (0,) if flat else (0, 1)
        return [(at(p), none, 0.0, 0.0, 0.0, float(k)) for p in points for k in facets]

    if shape.kind == "sphere":
        return balls([none], shape.size[0])
    if shape.kind == "capsule":
        radius, half = shape.size
        between = 0 if flat else min(6, math.ceil(2.0 * half / cell) - 1)
        heights = np.linspace(-half, half, 2 + max(between, 0)) if half > 0.0 else [0.0]
        return balls([(0.0, 0.0, z) for z in heights], radius)
    if shape.kind == "cylinder":
        radius, half = shape.size
        axis = (c.pose @ Pose(r=(0.0, 0.0, 1.0))).r
        axis = tuple(float(a - b) for a, b in zip(axis, c.pose.r, strict=True))
        turns = (0.0, 2.0 * math.pi / 3.0, -2.0 * math.pi / 3.0)
        ends = [(0.0, 0.0, -half), (0.0, 0.0, half)]
        if flat:
            return [(at(end), axis, 0.0, radius, turn, 0.0) for end in ends for turn in turns]
        # on uneven ground those that go round would leave places where the others stood
        fixed = [
            (radius * math.cos(a), radius * math.sin(a), z)
            for _, _, z in ends
            for a in np.linspace(0.0, 2.0 * math.pi, 8, endpoint=False)
        ]
        return [*((at(end), axis, 0.0, radius, 0.0, 0.0) for end in ends), *corners(fixed)]
    if shape.kind == "mesh":
        return corners(np.array(shape.vertices)[np.unique(shape.triangles)])
    grid: list[Any] = [(-1.0, 1.0)] * 3
    if not flat:
        grid = [np.linspace(-1.0, 1.0, min(5, 1 + math.ceil(2.0 * s / cell))) for s in shape.size]
    points = [
        (x * shape.size[0], y * shape.size[1], z * shape.size[2])
        for x in grid[0]
        for y in grid[1]
        for z in grid[2]
        if max(abs(x), abs(y), abs(z)) == 1.0
    ]
    return corners(points)


def _points(a: _Collider, b: _Collider) -> int:
    kinds = frozenset((KINDS[a.shape.kind], KINDS[b.shape.kind]))
    return POINTS.get(kinds, 4 if kinds == {2} or _is_convex(a, b) else 3)


def _is_convex(a: _Collider, b: _Collider) -> bool:
    """Whether a mesh or a cylinder takes part."""
    return a.shape.kind in CONVEX or b.shape.kind in CONVEX


def _must_meet(scene: Scene, a: _Collider, b: _Collider) -> bool:
    """Whether two parts of a scene would pass through each other, were this pair left out.

    Links of one part may, and so may what is thrown at a mesh, unless it is one itself.
    """
    if not _is_convex(a, b):
        return False
    if min(a.link, b.link) < 0:
        return True
    for one, two in ((a, b), (b, a)):
        if one.spare and one.shape.kind not in CONVEX and not two.spare:
            return False
    for part in scene.forest.parts.values():
        links = range(part.links.start, part.links.stop)
        if a.link in links:
            return b.link not in links
    return True


def convex_of(scene: Scene, touch: Touch) -> Convex | None:
    """What finds the touches of meshes and cylinders, if they meet anything."""
    kinds = np.array([KINDS[shape.kind] for shape in touch.shapes], dtype=int)
    if not len(touch.pair_a) or max(kinds[touch.pair_a].max(), kinds[touch.pair_b].max()) < 3:
        return None
    return Convex(scene, touch)


def _pairs(
    scene: Scene,
    colliders: Sequence[_Collider],
    self_collision: bool,
    exclude: Iterable[tuple[str, str]],
    names: Sequence[str],
) -> list[tuple[int, int]]:
    forest = scene.forest
    apart = set()
    if isinstance(exclude, str) or not isinstance(exclude, Iterable):
        raise PoiseError(f"exclude must be pairs of links, got {exclude!r:.80}")
    for pair in exclude:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise PoiseError(f"exclude: {pair!r:.80} is not a pair of links")
        one, two = pair
        for name in pair:
            if name not in names:
                raise PoiseError("exclude: " + unknown_name("link", name, names))
        apart.add(frozenset((names.index(one), names.index(two))))
    part = np.zeros(len(forest.link_names), dtype=int)
    for k, p in enumerate(forest.parts.values()):
        part[p.links] = k
    carrier = _carriers(forest)
    pairs = []
    for i, a in enumerate(colliders):
        for j in range(i + 1, len(colliders)):
            b = colliders[j]
            if a.body == b.body:
                continue
            if a.link >= 0 and b.link >= 0:
                same = part[a.link] == part[b.link]
                if same and not self_collision:
                    continue
                if frozenset((a.link, b.link)) in apart:
                    continue
                if same and (carrier[a.body] == b.body or carrier[b.body] == a.body):
                    continue
            pairs.append((i, j) if a.body >= 0 else (j, i))
    return pairs


def _roots(forest: Forest) -> dict[int, int]:
    """The root of the tree that each body belongs to."""
    root = {-1: -1}
    for i, parent in enumerate(forest.parent):
        root[i] = root[int(parent)] if parent >= 0 else i
    return root


def _carriers(forest: Forest) -> dict[int, int]:
    """The body with mass that each body hangs on: massless ones between are skipped."""
    carrier = {-1: -2}
    for i, parent in enumerate(forest.parent):
        up = int(parent)
        while up >= 0 and forest.mass[up] == 0:
            up = int(forest.parent[up])
        carrier[i] = up
    return carrier


def _bounds(scene: Scene) -> list[tuple[int, Any, Any]]:
    joints = [joint for character in scene.characters for joint in character.joints]
    bounds: list[tuple[int, Any, Any]] = []
    for body, joint in enumerate(joints):
        if joint.limits is None:
            continue
        if joint.kind == "ball":
            bounds.append((body, joint.axis, joint.limits))
        else:
            bounds.append((body, (0.0, 0.0, 1.0), (math.pi, *joint.limits)))
    return bounds


def _ground(ground: GroundLike) -> tuple[int, Floats, Floats, Floats]:
    none, grid = np.zeros((2, 2)), np.array([0.0, 0.0, 1.0, 1.0])
    if ground is True:
        ground = Plane()
    if isinstance(ground, Plane):
        return 1, np.array([*ground.normal, ground.height]), grid, none
    if isinstance(ground, HeightField):
        grid = np.array([*ground.origin, *ground.spacing])
        return 2, np.array([0.0, 0.0, 1.0, 0.0]), grid, ground.heights
    if ground is False:
        return 0, np.array([0.0, 0.0, 1.0, 0.0]), grid, none
    raise PoiseError(f"ground must be True, False, a Plane or a HeightField, got {ground!r:.80}")


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int32)


def _rows(values: Iterable[Any], size: int) -> Floats:
    return np.array(list(values), dtype=np.float64).reshape(-1, size)
