"""DeepMimic's dog on poise's own: its bones point elsewhere in the rest pose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply
from poise.model.character import Character, Link
from poise.motion.formats.deepmimic_layout import DOG, FRONT, HIND, Piece, raised, turned, unit

DOG_PARENTS = {
    "spine0": "root",
    "spine1": "spine0",
    "neck": "spine1",
    "head": "neck",
    "tail0": "root",
    "tail1": "tail0",
    **{f"{side}_{FRONT[0]}": "spine1" for side in ("left", "right")},
    **{f"{side}_{HIND[0]}": "root" for side in ("left", "right")},
    **{
        f"{side}_{child}": f"{side}_{parent}"
        for names in (FRONT, HIND)
        for parent, child in pairwise(names)
        for side in ("left", "right")
    },
}
DOG_ENDS = {"head": (1.0, 0.0, 0.0), "tail_tip": (-1.0, 0.0, 0.0)}
"""Where the last bones of our dog point at rest."""

DOG_HEIGHT = 0.61
"""How high the root of DeepMimic's dog stands in its clips [m]."""


def dog_pieces() -> tuple[Piece, ...]:
    pieces, at = [], 8
    for name in DOG:
        kind = "hinge" if name.endswith(("forearm", "_leg")) and "upper" not in name else "ball"
        pieces.append(Piece(name, kind, at, 0))
        at += pieces[-1].size
    return tuple(pieces)


def _dog_twins() -> dict[str, tuple[str, Sequence[float] | None]]:
    """Links of our dog: the file's joint that turns each, and where its bone points at rest.

    None: the link needs no correction, it points there already.
    """
    down, back, ahead = (0.0, 0.0, -1.0), (-1.0, 0.0, 0.0), (1.0, 0.0, 0.0)
    twins: dict[str, tuple[str, Sequence[float] | None]] = {
        "pelvis": ("root", None),
        "spine": ("spine0", None),
        "chest": ("spine1", None),
        "neck": ("neck", ahead),
        "head": ("head", down),
        "tail": ("tail0", back),
        "tail_tip": ("tail1", back),
    }
    for side in ("left", "right"):
        twins[f"front_{side}_scapula"] = ("spine1", None)
        twins[f"front_{side}_upper_arm"] = (f"{side}_shoulder", down)
        twins[f"front_{side}_forearm"] = (f"{side}_forearm", down)
        twins[f"front_{side}_paw"] = (f"{side}_hand", None)
        twins[f"hind_{side}_thigh"] = (f"{side}_upper_leg", down)
        twins[f"hind_{side}_shin"] = (f"{side}_leg", down)
        twins[f"hind_{side}_metatarsus"] = (f"{side}_foot", down)
        twins[f"hind_{side}_paw"] = (f"{side}_toe", None)
    return twins


def own_dog(values: Floats) -> tuple[Character, Floats]:
    """Our dog, and its coordinates: every bone points where the file's points, to our scale."""
    from poise.characters import load_character

    character = load_character("dog")
    turns = _dog_turns(values)
    children: dict[str | None, Link] = {}
    for link in character.links:
        children.setdefault(link.parent, link)
    twins, world = _dog_twins(), {}
    q = np.empty((len(values), character.nq))
    scale = character.links[0].pos[2] / DOG_HEIGHT
    q[:, :3] = scale * raised(values[:, :3])
    for link in character.links:
        joint, points = twins[link.name]
        world[link.name] = turns[joint]
        if points is not None:
            bone = children[link.name].pos if link.name in children else DOG_ENDS[link.name]
            world[link.name] = multiply(turns[joint], _between_directions(bone, points))
        part = character.q_slice(link.joints[0])
        if link.parent is None:
            q[:, 3:7] = world[link.name]
        else:
            q[:, part] = multiply(conjugate(world[link.parent]), world[link.name])
    return character, q


def _dog_turns(values: Floats) -> dict[str, Floats]:
    """Orientations of the file's links in the world."""
    turns = {"root": turned(unit(values[:, 3:7]))}
    for p in dog_pieces():
        part = values[:, p.at - 1 : p.at - 1 + p.size]
        if p.size == 4:
            turn = turned(unit(part))
        else:
            half = part[:, 0] / 2.0
            turn = np.stack([np.cos(half), 0.0 * half, -np.sin(half), 0.0 * half], axis=1)
        turns[p.name] = multiply(turns[DOG_PARENTS[p.name]], turn)
    return turns


def _between_directions(a: Sequence[float], b: Sequence[float]) -> Floats:
    """The shortest turn that takes direction a to direction b; they must not be opposite."""
    u, v = (np.array(x) / np.linalg.norm(x) for x in (a, b))
    return unit(np.array([[1.0 + u @ v, *np.cross(u, v)]]))
