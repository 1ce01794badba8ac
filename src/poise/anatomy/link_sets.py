"""Sets of links by name: limbs, limbs of a kind, all."""

from __future__ import annotations

import numpy as np

from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Ints
from poise.model.scene import Scene, SceneLike, scene_of

KINDS_OF_LIMBS = ("arm", "leg")
"""Limbs whose names end so are also known together, as "arms" and "legs"."""


def links_of(character: SceneLike, name: str) -> Ints:
    """Indices of the links that a name means.

    Args:
        character: The character, or a scene.
        name: "all"; a limb; "arms" or "legs", all limbs of that kind; or a link. In a scene of
            several parts a limb is that of all parts, `part/limb` that of one.
    """
    scene = scene_of(character)
    names = scene.forest.link_names
    sets = _sets(scene)
    if name in sets:
        return np.array(sorted(names.index(link) for link in sets[name]), dtype=np.int32)
    if name in names:
        return np.array([names.index(name)], dtype=np.int32)
    raise PoiseError(unknown_name("limb or link", name, [*sets, *names], "limbs and links"))


def _sets(scene: Scene) -> dict[str, set[str]]:
    """Names of sets of links: all, limbs, and limbs of a kind."""
    sets: dict[str, set[str]] = {"all": set(scene.forest.link_names)}
    several = len(scene.characters) > 1
    for part, character in zip(scene.forest.parts, scene.characters, strict=True):
        prefix = f"{part}/" if several else ""
        for limb, links in character.limbs.items():
            own = {prefix + link for link in links}
            for called in {limb, prefix + limb}:
                sets.setdefault(called, set()).update(own)
            for kind in KINDS_OF_LIMBS:
                if limb.endswith(kind):
                    sets.setdefault(kind + "s", set()).update(own)
    return sets
