"""Pairs of shapes that may meet each other, and the probes that meet the ground.

All but those of one body, of a body and the one it hangs on, those that are excluded, those of
links that overlap in the rest pose and, if requested, those of one character.

Probes: the points of shapes that meet the ground.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import _core
from poise.errors import PoiseError, check_known
from poise.math.arrays import Floats, Ints
from poise.math.pose import Pose
from poise.model.forest import Forest
from poise.model.scene import Scene
from poise.model.shape import Shape
from poise.simulation.contact.colliders import Colliders
from poise.simulation.contact.ground import CoreGround, core_ground

if TYPE_CHECKING:
    from poise.simulation.contact.collision_model import CollisionModel

NONE = (0.0, 0.0, 0.0)
HULL_PROBES = 4
"""Corners of a mesh that meet the ground in a step."""
Probe = tuple[Any, Any, float, float, float, float]
"""Point and axis in the body's frame; radius, rim, turn, facet."""


class Probes(NamedTuple):
    """Probes as the core takes them."""

    collider: Ints  # (k,)
    point: Floats  # (k, 3)
    axis: Floats  # (k, 3)
    numbers: Floats  # radius, rim, turn, facet, (k, 4)


def probes_of(colliders: Colliders, ground: CoreGround) -> Probes:
    """The probes of all that moves, where there is a ground."""
    found: list[tuple[int, Probe]] = []
    for i, body in enumerate(colliders.body if ground.kind else ()):
        if body >= 0:
            probes = shape_probes(colliders.shapes[i], colliders.poses[i], ground.cell)
            found += [(i, probe) for probe in probes]
    return Probes(
        np.array([i for i, _ in found], dtype=np.int32),
        np.array([probe[0] for _, probe in found]).reshape(-1, 3),
        np.array([probe[1] for _, probe in found]).reshape(-1, 3),
        np.array([probe[2:] for _, probe in found]).reshape(-1, 4),
    )


def shape_probes(shape: Shape, pose: Pose, cell: float) -> list[Probe]:
    """Points of a shape that meet the ground.

    Args:
        shape: The shape.
        pose: Its pose in the body's frame.
        cell: Spacing of the ground's grid [m]; inf for flat ground.
    """
    flat = math.isinf(cell)

    def at(point: Any) -> tuple[float, ...]:
        return tuple(float(x) for x in (pose @ Pose(r=tuple(point))).r)

    def balls(points: Iterable[Any], radius: float) -> list[Probe]:
        # in a valley a ball lies on the facet below it and on those beside
        facets = (0,) if flat else (0, 1, 2)
        return [(at(p), NONE, radius, 0.0, 0.0, float(k)) for p in points for k in facets]

    def corners(points: Iterable[Any]) -> list[Probe]:
        # the facet below, and the one that it comes to within the step
        facets = (0,) if flat else (0, 1)
        return [(at(p), NONE, 0.0, 0.0, 0.0, float(k)) for p in points for k in facets]

    if shape.kind == "sphere":
        return balls([NONE], shape.size[0])
    if shape.kind == "capsule":
        radius, half = shape.size
        between = 0 if flat else min(6, math.ceil(2.0 * half / cell) - 1)
        heights = np.linspace(-half, half, 2 + max(between, 0)) if half > 0.0 else [0.0]
        return balls([(0.0, 0.0, z) for z in heights], radius)
    if shape.kind == "cylinder":
        radius, half = shape.size
        axis = (pose @ Pose(r=(0.0, 0.0, 1.0))).r
        axis = tuple(float(a - b) for a, b in zip(axis, pose.r, strict=True))
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
        # places for the corners that lie lowest in a step, and again for the facets they come to
        return corners([NONE] * HULL_PROBES)
    return corners(_box_points(shape.size, cell))


def _box_points(size: tuple[float, ...], cell: float) -> list[tuple[float, ...]]:
    """Corners of a box; on uneven ground points all over its faces, spaced as the grid is."""
    grid: list[Any] = [(-1.0, 1.0)] * 3
    if not math.isinf(cell):
        grid = [np.linspace(-1.0, 1.0, min(5, 1 + math.ceil(2.0 * s / cell))) for s in size]
    return [
        (x * size[0], y * size[1], z * size[2])
        for x in grid[0]
        for y in grid[1]
        for z in grid[2]
        if max(abs(x), abs(y), abs(z)) == 1.0
    ]


Keys = NDArray[np.int64]

MOST_PAIRS = 5_000_000
"""Of shapes that may meet: 100 humanoids or 3,100 free bodies, built in 2 s and less than 1 GB."""

BLOCK = 512  # rows of the table of all pairs that are looked at together
POINTS = np.array(
    [[1, 1, 1, 4, 4], [1, 2, 3, 4, 4], [1, 3, 4, 4, 4], [4, 4, 4, 4, 4], [4, 4, 4, 4, 4]],
    dtype=np.int32,
)
"""How many points two kinds of shapes may meet in."""


class Pairs(NamedTuple):
    """Pairs of colliders; the first hangs on a body."""

    a: Ints
    b: Ints

    def only(self, kept: Any) -> Pairs:
        """The pairs of a mask, or in an order."""
        return Pairs(self.a[kept], self.b[kept])


def pairs_of(
    scene: Scene,
    colliders: Colliders,
    self_collision: bool,
    excluded: Keys,
    convex: bool | None,
) -> Pairs:
    """Pairs of colliders that may meet, in the order in which they are solved.

    Args:
        scene: With the projectiles at its end.
        colliders: Of the scene and its obstacles.
        self_collision: Whether links of one part meet.
        excluded: Pairs of links that do not, as of `excluded_links`.
        convex: Whether meshes and cylinders meet others; None is True.
    """
    pairs = _meeting(scene, colliders, self_collision, excluded)
    if convex is False:
        pairs = pairs.only(~(colliders.convex[pairs.a] | colliders.convex[pairs.b]))
    return pairs.only(_order(scene.forest, colliders, pairs))


def overlaps(scene: Scene, touch: CollisionModel) -> Keys:
    """Pairs of links of one part that pass through each other in the rest pose, as keys.

    Args:
        scene: With the projectiles at its end.
        touch: Of the model "impulse".
    """
    link = touch.colliders.link
    part = _parts(scene.forest, link)
    one, two = part[touch.pairs.a], part[touch.pairs.b]
    # only those can count
    within = (one == two) & (one >= 0)
    if not within.any():
        return np.zeros(0, dtype=np.int64)
    # those pairs alone, without ground, friction and projectiles
    touch = touch._replace(
        ground=core_ground(False),
        friction=np.zeros(touch.surfaces),
        restitution=np.zeros(touch.surfaces),
        pairs=touch.pairs.only(within),
        projectiles=0,
        colliders=touch.colliders._replace(projectile=np.zeros_like(touch.colliders.projectile)),
    )
    # the contacts of a step are those at its start
    probe = _core.World(scene.model, scene.model, 1, 1e-6, False, 1, np.zeros(3), None, touch)
    probe.write(scene.forest.rest_q, np.zeros(scene.nv), np.zeros(1), None, None)
    probe.step(None, None, None, None, 1)
    found = probe.contacts()
    deep = found.gap < 0.0
    a, b = found.collider[deep], found.other[deep]
    return np.unique(link_keys(link[a], link[b], scene.nl))


def link_keys(one: Ints, two: Ints, links: int) -> Keys:
    """A number for each pair of links, whatever their order; below zero with an obstacle."""
    low, high = np.minimum(one, two).astype(np.int64), np.maximum(one, two)
    return np.asarray(low * links + high)


def excluded_links(exclude: Iterable[tuple[str, str]], names: Sequence[str], links: int) -> Keys:
    """The pairs of links that the user excludes, as keys.

    Args:
        exclude: Pairs of links that do not meet.
        names: Of the links as the user knows them.
        links: How many there are, with those of the projectiles.
    """
    if isinstance(exclude, (str, np.ndarray)) or not isinstance(exclude, Iterable):
        raise PoiseError(f"exclude must be pairs of links, got {exclude!r:.80}")
    found = []
    for pair in exclude:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise PoiseError(
                f"exclude: {pair!r:.80} is not a pair of links; exclude is a list of pairs, "
                "such as [('left_foot', 'right_foot')]"
            )
        for name in pair:
            check_known("link", name, names, at="exclude: ")
        found.append([names.index(name) for name in pair])
    one, two = np.array(found, dtype=np.int32).reshape(-1, 2).T
    return link_keys(one, two, links)


def _meeting(scene: Scene, c: Colliders, self_collision: bool, excluded: Keys) -> Pairs:
    """All pairs that may meet, those of the first collider first."""
    own, carrier = _parts(scene.forest, c.link), _carriers(scene.forest)
    found = [Pairs(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))]
    total = 0
    for start in range(0, len(c.body), BLOCK):
        row = np.arange(start, min(start + BLOCK, len(c.body)))[:, None]
        meets = (c.body[row] != c.body) & (row < np.arange(len(c.body)))
        same = (own[row] == own) & (own >= 0)
        if self_collision:
            held = (carrier[c.body][row] == c.body) | (carrier[c.body] == c.body[row])
            meets &= ~(same & held)
        else:
            meets &= ~same
        a, b = meets.nonzero()
        block = Pairs((a + start).astype(np.int32), b.astype(np.int32))
        if len(excluded):
            keys = link_keys(c.link[block.a], c.link[block.b], scene.nl)
            block = block.only(~np.isin(keys, excluded))
        found.append(block)
        total += len(block.a)
        if total > MOST_PAIRS:
            raise PoiseError(
                f"{len(c.body)} shapes make more than {MOST_PAIRS:,} pairs that may meet, the most "
                "that a world has: it needs fewer or simpler parts, several worlds, or contact=None"
            )
    a, b = (np.concatenate(column) for column in zip(*found, strict=True))
    # what stands still comes second
    turned = c.body[a] < 0
    return Pairs(np.where(turned, b, a), np.where(turned, a, b))


def _order(forest: Forest, c: Colliders, pairs: Pairs) -> NDArray[np.intp]:
    """Pairs of the last projectiles come last; all pairs of two trees are neighbours, and all of
    two bodies, so that the order in which bodies are solved is the same whatever touches."""
    a, b = pairs
    root = _roots(forest)
    body = c.body.astype(np.int64)
    last = np.maximum(c.projectile[a], c.projectile[b])
    return np.lexsort((body[b], body[a], root[body[b]], root[body[a]], last))


def _parts(forest: Forest, link: Ints) -> Ints:
    """The part of the scene that each collider belongs to, given its link; -1 for obstacles."""
    starts = np.array([part.links.start for part in forest.parts.values()])
    part = np.searchsorted(starts, link, side="right") - 1
    return np.where(link >= 0, part, -1).astype(np.int32)


def _roots(forest: Forest) -> Ints:
    """The root of the tree that each body belongs to; last that of the world, -1."""
    root = np.full(len(forest.parent) + 1, -1, dtype=np.int32)
    for i, parent in enumerate(forest.parent):
        root[i] = root[parent] if parent >= 0 else i
    return root


def _carriers(forest: Forest) -> Ints:
    """The body with mass that each body hangs on, massless ones skipped; last the world's, -2."""
    carrier = np.full(len(forest.parent) + 1, -2, dtype=np.int32)
    for i, parent in enumerate(forest.parent):
        up = int(parent)
        while up >= 0 and forest.mass[up] == 0:
            up = int(forest.parent[up])
        carrier[i] = up
    return carrier
