"""Fields of a world that are read in bulk: their names, shapes and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from poise.errors import PoiseError, check_known
from poise.math.arrays import Ints
from poise.model.scene import Scene

LinkPairs: TypeAlias = Sequence[tuple[str | int, str | int]] | NDArray[Any]
"""Pairs of links by name or index; the second may be "ground"."""

GROUND = -1
"""The ground among what a link touches; -2 - i is the obstacle i."""

STATE = ("q", "v", "time")

FLAGS = ("link_contact", "pair_contact")
"""Fields that are boolean."""

SHAPES: dict[str, tuple[int | str, ...]] = {
    "q": ("nq",),
    "v": ("nv",),
    "time": (),
    "torque": ("nv",),
    "link_position": ("nl", 3),
    "link_quat": ("nl", 4),
    "link_velocity": ("nl", 3),
    "link_angular_velocity": ("nl", 3),
    "link_contact": ("nl",),
    "link_contact_force": ("nl", 3),
    "pair_contact": ("pairs",),
    "pair_contact_force": ("pairs", 3),
}
"""Shape of each field in one copy."""


def new_array(name: str, scene: Scene, n: int, counts: tuple[int, int], dtype: str) -> NDArray[Any]:
    """An array for a field of so many links and pairs; a world of one has no leading axis."""
    check_known("field", name, SHAPES)
    sizes = {"nq": scene.nq, "nv": scene.nv, "nl": counts[0], "pairs": counts[1]}
    shape = [sizes[size] if isinstance(size, str) else size for size in SHAPES[name]]
    return np.empty(shape if n == 1 else [n, *shape], bool if name in FLAGS else dtype)


def link_indices(scene: Scene, links: Sequence[str | int] | NDArray[Any]) -> Ints:
    """Indices of links, given by names or indices, shape (k,)."""
    if isinstance(links, str) or not isinstance(links, (Sequence, np.ndarray)):
        raise PoiseError(f"links must be a list of links, got {links!r:.80}")
    if isinstance(links, np.ndarray) and links.dtype.kind in "iu":
        return np.ascontiguousarray(links, dtype=np.int32)
    return np.array([scene.link_index(link) for link in links], dtype=np.int32)


def pair_indices(scene: Scene, obstacles: int, pairs: LinkPairs) -> Ints:
    """Indices of pairs of links, shape (k, 2); those that are indices already are checked.

    Args:
        scene: The scene whose links they name.
        obstacles: How many obstacles there are.
        pairs: Names or indices; the second may be "ground" or -1, or -2 - i for the obstacle i.
    """
    if isinstance(pairs, np.ndarray) and pairs.dtype.kind in "iu":
        found = pairs
    else:
        if isinstance(pairs, str) or not isinstance(pairs, (Sequence, np.ndarray)):
            raise PoiseError(f"pairs must be pairs of links, got {pairs!r:.80}")
        rows = []
        for pair in pairs:
            if isinstance(pair, str) or not isinstance(pair, (Sequence, np.ndarray)):
                raise PoiseError(f'pairs: each is two links, or a link and "ground"; got {pair!r}')
            if len(pair) != 2:
                raise PoiseError(f"pairs: each is two links, got {pair!r:.80}")
            rows.append((scene.link_index(pair[0]), _other(scene, pair[1])))
        found = np.array(rows, dtype=np.int32).reshape(-1, 2)
    if found.ndim != 2 or found.shape[1] != 2:
        raise PoiseError(f"pairs has shape {found.shape}, expected (k, 2)")
    known = (found[:, 0] >= 0) & (found < scene.nl).all(axis=1)
    known &= (found[:, 1] >= -1 - obstacles) & (found[:, 0] != found[:, 1])
    if not known.all():
        one, two = found[int(np.argmin(known))].tolist()
        raise PoiseError(
            f"pairs: {one} and {two} are no pair; links are 0 to {scene.nl - 1}, the ground is -1, "
            f"and obstacles, of which there are {obstacles}, are -2, -3, ..."
        )
    return np.ascontiguousarray(found, dtype=np.int32)


def _other(scene: Scene, link: str | int) -> int:
    if isinstance(link, str) and link == "ground" and link not in scene.forest.link_names:
        return GROUND
    if isinstance(link, (int, np.integer)) and link < 0:
        return int(link)
    return scene.link_index(link)
