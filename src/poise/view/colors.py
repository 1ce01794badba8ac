"""Colours of the shapes of a scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from poise.errors import PoiseError, unknown_name
from poise.model.character import Character
from poise.model.scene import Scene
from poise.model.validation import check_vector

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
"""Colours of limbs whose shapes have none."""

LIMBS = ("torso", "left_leg", "right_leg", "head", "left_arm", "right_arm", "tail")
"""Limbs that have a colour of their own, so that characters of different files compare."""


def check_rgb(where: str, value: object) -> tuple[float, ...]:
    """Three numbers in 0..1."""
    rgb = check_vector(where, value, 3)
    if min(rgb) < 0.0 or max(rgb) > 1.0:
        raise PoiseError(f"{where} must be in 0..1, got {rgb}")
    return rgb


def shape_colors(scene: Scene, color: Colors) -> list[tuple[float, ...]]:
    """Red, green, blue and alpha of every shape of a scene, link by link.

    Args:
        scene: Whose shapes.
        color: One colour for all; or colours by limb or link, which hold in every part that has
            it, by part, or by part/limb and part/link; later ones before earlier ones.
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
    """What a colour can be given to in a part, and the links that it is then given to."""
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
