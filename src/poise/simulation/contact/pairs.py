"""Pairs: which shapes may meet each other.

All but those of one body, of a body and the one it hangs on, those that are excluded, those of
links that overlap in the rest pose and, if so asked, those of one character.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import _core
from poise.errors import PoiseError, unknown_name
from poise.model.forest import Forest
from poise.model.scene import Scene
from poise.simulation.contact.colliders import Colliders, Ints
from poise.simulation.contact.convex import convex_of

if TYPE_CHECKING:
    from poise.simulation.contact.touch import CollisionModel

Keys = NDArray[np.int64]

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
        """Those that a mask or an order tells."""
        return Pairs(self.a[kept], self.b[kept])


def pairs_of(
    scene: Scene,
    colliders: Colliders,
    *,
    self_collision: bool,
    exclude: Iterable[tuple[str, str]],
    names: Sequence[str],
    convex: bool | None,
) -> Pairs:
    """Pairs of colliders that may meet, in the order in which they are solved.

    Args:
        scene: With the spares at its end.
        colliders: Of the scene and its obstacles.
        self_collision: Whether links of one part meet.
        exclude: Pairs of links that do not.
        names: Of the links as the user knows them.
        convex: Whether meshes and cylinders meet others; None: where parts would pass through.
    """
    apart = _excluded(exclude, names, scene.nl)
    pairs = _meeting(scene, colliders, self_collision, apart)
    given = colliders.convex[pairs.a] | colliders.convex[pairs.b]
    if convex is None:
        convex = bool(_must_meet(scene, colliders, pairs.only(given)).any())
    if not convex:
        pairs = pairs.only(~given)
    return pairs.only(_order(scene.forest, colliders, pairs))


def overlaps(scene: Scene, touch: CollisionModel) -> Keys:
    """Pairs of links of one part that pass through each other in the rest pose, as keys.

    Args:
        scene: With the spares at its end.
        touch: Of the model "impulse".
    """
    link = touch.collider_link
    part = _parts(scene.forest, link)
    one, two = part[touch.pair_a], part[touch.pair_b]
    # only those can count
    within = (one == two) & (one >= 0)
    if not within.any():
        return np.zeros(0, dtype=np.int64)
    alone = _alone(touch, within)
    # the contacts of a step are those at its start
    probe = _core.World(scene.model, scene.model, 1, 1e-6, False, 1, np.zeros(3), None, alone)
    probe.write(scene.forest.rest_q, np.zeros(scene.nv), np.zeros(1), None, None)
    finder = convex_of(scene, alone)
    if finder is not None:
        rest = scene.forest.rest_q[None], np.zeros((1, scene.nv)), probe.projectiles()
        probe.set_contacts(finder.contacts(*rest, 0.0, np.zeros(3)))
    probe.step(None, None, None, None, 1)
    found = probe.contacts()
    deep = found.gap < 0.0
    a, b = found.collider[deep], found.other[deep]
    return np.unique(link_keys(link[a], link[b], scene.nl))


def _alone(touch: CollisionModel, kept: Any) -> CollisionModel:
    """Some of the pairs, without ground, surfaces and spares."""

    def count(k: int) -> Ints:
        return np.array([k], dtype=np.int32)

    return replace(
        touch,
        ground_kind=0,
        friction=np.zeros(touch.surfaces),
        restitution=np.zeros(touch.surfaces),
        pair_a=touch.pair_a[kept],
        pair_b=touch.pair_b[kept],
        pair_points=touch.pair_points[kept],
        projectiles=0,
        projectile_colliders=count(len(touch.collider_body)),
        projectile_probes=count(len(touch.probe_collider)),
        projectile_pairs=count(int(np.count_nonzero(kept))),
    )


def link_keys(one: Ints, two: Ints, links: int) -> Keys:
    """A number for each pair of links, whatever their order; below zero with an obstacle."""
    low, high = np.minimum(one, two).astype(np.int64), np.maximum(one, two)
    return np.asarray(low * links + high)


def _excluded(exclude: Iterable[tuple[str, str]], names: Sequence[str], links: int) -> Keys:
    """The pairs of links that the user excludes, as keys."""
    if isinstance(exclude, str) or not isinstance(exclude, Iterable):
        raise PoiseError(f"exclude must be pairs of links, got {exclude!r:.80}")
    found = []
    for pair in exclude:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise PoiseError(
                f"exclude: {pair!r:.80} is not a pair of links; exclude is a list of pairs, "
                "such as [('left_foot', 'right_foot')]"
            )
        for name in pair:
            if name not in names:
                raise PoiseError("exclude: " + unknown_name("link", name, names))
        found.append([names.index(name) for name in pair])
    one, two = np.array(found, dtype=np.int32).reshape(-1, 2).T
    return link_keys(one, two, links)


def _meeting(scene: Scene, c: Colliders, self_collision: bool, apart: Keys) -> Pairs:
    """All pairs that may meet, those of the first collider first."""
    own, carrier = _parts(scene.forest, c.link), _carriers(scene.forest)
    found = [Pairs(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))]
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
        if len(apart):
            keys = link_keys(c.link[block.a], c.link[block.b], scene.nl)
            block = block.only(~np.isin(keys, apart))
        found.append(block)
    a, b = (np.concatenate(column) for column in zip(*found, strict=True))
    # what stands still comes second
    turned = c.body[a] < 0
    return Pairs(np.where(turned, b, a), np.where(turned, a, b))


def _must_meet(scene: Scene, c: Colliders, pairs: Pairs) -> NDArray[np.bool_]:
    """Whether two parts of a scene would pass through each other, were a convex pair left out.

    Links of one part may, and so may what is thrown at a mesh, unless it is one itself.
    """
    part = _parts(scene.forest, c.link)
    a, b = pairs
    thrown = (c.spare > 0) & ~c.convex
    aimed = (thrown[a] & (c.spare[b] == 0)) | (thrown[b] & (c.spare[a] == 0))
    still = np.minimum(c.link[a], c.link[b]) < 0
    return np.asarray(still | (~aimed & (part[a] != part[b])))


def _order(forest: Forest, c: Colliders, pairs: Pairs) -> NDArray[np.intp]:
    """What concerns the last spares comes last; all pairs of two trees are neighbours, and all of
    two bodies, so that the order in which bodies are solved is the same whatever touches."""
    a, b = pairs
    root = _roots(forest)
    body = c.body.astype(np.int64)
    last = np.maximum(c.spare[a], c.spare[b])
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
