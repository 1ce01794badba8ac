"""Whether a character has fallen."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.errors import ClipError, PoiseError, unknown_name
from poise.math.arrays import Floats, floats
from poise.math.pose import quat_matrix
from poise.measure.touching import (
    Copies,
    check_touches,
    closed,
    contacts_in,
    contacts_of,
    feet_links,
    ground_contacts,
    per_copy,
)
from poise.model.character import Character
from poise.model.scene import Scene, SceneLike, scene_of
from poise.simulation.contact import Contacts

Bools = NDArray[np.bool_]

FALLEN = 0.6
"""A head below this fraction of its standing height belongs to a fallen character."""


def fallen(
    character: SceneLike,
    q: ArrayLike,
    touches: Contacts | None = None,
    *,
    part: str | None = None,
    ground: ArrayLike = 0.0,
    allowed: Iterable[str] | None = None,
) -> Bools:
    """Whether the head is below 60 % of its standing height, or `lying` says so; shape (...).

    Args:
        character: The character, or a scene.
        q: Positions, shape (..., nq).
        touches: Contacts, their copies counted along the leading axes of q; None looks at the
            head alone. Only those of the character count.
        part: Which one, in a scene of several; with a character, which part of the scene that
            `touches` is of.
        ground: Height of the ground below the head [m], a number or shape (...).
        allowed: Links that may touch the ground; None is `allowed_on_ground`.
    """
    if touches is not None:
        touches, part = _own(character, touches, part)
    low: Bools = np.asarray(head_height(character, q, part=part, ground=ground) < FALLEN)
    if touches is None:
        return low
    copies = floats(q, "q").shape[:-1]
    return low | lying(character, touches, part=part, copies=copies, allowed=allowed)


def head_height(
    character: SceneLike, q: ArrayLike, *, part: str | None = None, ground: ArrayLike = 0.0
) -> Floats:
    """Height of the head's mass centre above ground, as a fraction of that at rest; shape (...).

    At rest it counts from the lowest point of the soles, so the rest pose is taken as standing.
    """
    scene = scene_of(character)
    name, one = _part(scene, part)
    head, standing = _standing(one)
    at = _height(scene, q, scene.forest.parts[name].links.start + head)
    return np.asarray((at - floats(ground, "ground")) / standing)


def lying(
    character: SceneLike,
    touches: Contacts,
    *,
    part: str | None = None,
    copies: Copies = (),
    allowed: Iterable[str] | None = None,
) -> Bools:
    """Whether anything but feet and hands touches the ground; shape (...).

    Obstacles do not count: one may sit on a chair.
    """
    touches, part = _own(character, touches, part)
    scene = scene_of(character)
    name, one = _part(scene, part)
    links = scene.forest.parts[name].links
    may = allowed_on_ground(one) if allowed is None else allowed
    feet = [links.start + _index(one, link) for link in may]
    down = closed(ground_contacts(contacts_of(scene, touches, links), obstacles=False))
    wrong = ~np.isin(down.link, feet)
    return np.asarray(per_copy(down, wrong, copies) > 0.0)


def head_of(character: Character) -> str:
    """Name of the head: the last link of the limb "head", else told by names and the rest pose."""
    if not isinstance(character, Character):
        raise PoiseError(f"expected a Character, got {character!r:.80}")
    limb = character.limbs.get("head")
    if limb:
        return limb[-1]
    head = _roles(character).get(("head", ""), {}).get("head")
    if not head:
        raise PoiseError(f"character {character.name!r} has no head; a limb 'head' says which")
    return head[-1]


@lru_cache(maxsize=64)
def allowed_on_ground(character: Character) -> tuple[str, ...]:
    """Links that touch the ground without a fall: feet, toes, hands.

    Where an arm ends without a hand, its last link is one.
    """
    found = [character.links[i].name for links in feet_links(character).values() for i in links]
    for (limb, _), roles in _roles(character).items():
        if limb == "arm":
            found += roles.get("hand") or [names[-1] for names in roles.values() if names][-1:]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=64)
def _standing(character: Character) -> tuple[int, float]:
    """Index of the head, and its height above the soles at rest."""
    from poise.anatomy.contact_schedule import feet_of, positions

    head, soles, q = _index(character, head_of(character)), feet_of(character), character.rest_q
    if not soles:
        raise PoiseError(
            f"character {character.name!r} has no feet in its rest pose: it does not stand"
        )
    floor = positions(character, soles, q)[:, 2].min()
    return head, float(_height(scene_of(character), q, head) - floor)


def _roles(character: Character) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Links by limb, side and role; nothing where the body cannot be told."""
    from poise.anatomy.body import body_of

    try:
        return body_of(character).links
    except ClipError:
        return {}


def _own(character: SceneLike, touches: Contacts, part: str | None) -> tuple[Contacts, str | None]:
    """A character's contacts and no part, where `part` names it in the scene of the contacts."""
    check_touches(touches)
    scene = scene_of(character)
    if part is None or len(scene.characters) > 1 or len(touches.parts) < 2:
        return touches, part
    return contacts_in(scene, touches.of(part)), None


def _part(scene: Scene, part: str | None) -> tuple[str, Character]:
    parts = list(scene.forest.parts)
    if part is None:
        if len(parts) > 1:
            raise PoiseError(f"the scene has several parts; say which: {', '.join(parts)}")
        part = parts[0]
    if part not in parts:
        raise PoiseError(unknown_name("part", part, parts))
    return part, scene.characters[parts.index(part)]


def _index(character: Character, link: str) -> int:
    return character.links.index(character.link(link))


def _height(scene: Scene, q: ArrayLike, link: int) -> Floats:
    p, quat = dynamics.forward_kinematics(scene, q)
    up = quat_matrix(quat[..., link, :])[..., 2, :]
    height: Floats = p[..., link, 2] + up @ scene.forest.link_com[link]
    return height
