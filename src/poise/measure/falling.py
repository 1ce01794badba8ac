"""Whether a character has fallen."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.anatomy.body import head_of, limbs_of
from poise.anatomy.feet import feet_of, positions
from poise.errors import PoiseError, check_known
from poise.math.arrays import Floats, floats
from poise.measure.contact_rows import (
    Copies,
    check_contacts,
    closed,
    contacts_from,
    contacts_in,
    contacts_of,
    feet_links,
    ground_contacts,
    per_copy,
)
from poise.model.character import Character
from poise.model.scene import Scene, SceneLike, scene_of
from poise.simulation.contact import Contacts
from poise.simulation.world import World

Bools = NDArray[np.bool_]

FALLEN = 0.6
"""A head below this fraction of its standing height belongs to a fallen character."""


def fallen(
    character: SceneLike,
    q: ArrayLike | None = None,
    contacts: Contacts | None = None,
    *,
    part: str | None = None,
    ground: ArrayLike = 0.0,
    allowed: Iterable[str] | None = None,
) -> Bools:
    """Whether the head is below 60 % of its standing height, or `body_on_ground`; shape (...).

    Args:
        character: A world, whose state and contacts are meant unless q is given; or the character,
            or a scene.
        q: Positions, shape (..., nq).
        contacts: Contacts, their copies counted along the leading axes of q; None uses the
            head alone. Only those of the character count.
        part: Which one, in a scene of several; with a character, which part of the scene that
            `contacts` is of.
        ground: Height of the ground below the head [m], a number or shape (...).
        allowed: Links that may touch the ground; None is `allowed_on_ground`.
    """
    if q is None:
        if not isinstance(character, World):
            raise PoiseError("q is missing; only a World has a state of its own")
        if contacts is None:
            return _fallen_now(character, part, ground, allowed)
        q, contacts = character.state.q, character.contacts if contacts is None else contacts
    if contacts is not None:
        contacts, part = _own(character, contacts, part)
    low: Bools = np.asarray(head_height(character, q, part=part, ground=ground) < FALLEN)
    if contacts is None:
        return low
    copies = floats(q, "q").shape[:-1]
    return low | body_on_ground(character, contacts, part=part, copies=copies, allowed=allowed)


def _fallen_now(
    world: World, part: str | None, ground: ArrayLike, allowed: Iterable[str] | None
) -> Bools:
    """The same of a world's present state, read in bulk."""
    scene = world.scene
    name, one = _part(scene, part)
    head, standing = _standing(one)
    head += scene.forest.parts[name].links.start
    pairs = _pairs_with_ground(scene.characters, name, None if allowed is None else tuple(allowed))
    now = world.read("link_position", "link_quat", "pair_contact", links=[head], pairs=pairs)
    at = now["link_position"][..., 0, 2] + _rise(now["link_quat"][..., 0, :], scene, head)
    low = (at - floats(ground, "ground")) / standing < FALLEN
    return np.asarray(low | now["pair_contact"].any(axis=-1))


@lru_cache(maxsize=64)
def _pairs_with_ground(
    characters: tuple[Character, ...], part: str, allowed: tuple[str, ...] | None
) -> NDArray[np.int32]:
    """A part's links that may not touch the ground, each with the ground, shape (k, 2)."""
    scene = scene_of(characters)
    _, one = _part(scene, part)
    links = scene.forest.parts[part].links
    may = allowed_on_ground(one) if allowed is None else allowed
    feet = {links.start + _index(one, link) for link in may}
    rows = [(link, -1) for link in range(links.start, links.stop) if link not in feet]
    return np.array(rows, dtype=np.int32).reshape(-1, 2)


def head_height(
    character: SceneLike, q: ArrayLike, *, part: str | None = None, ground: ArrayLike = 0.0
) -> Floats:
    """Height of the head's center of mass above ground, as a fraction of that at rest; shape (...).

    At rest it counts from the lowest point of the soles, so the rest pose is taken as standing.
    """
    scene = scene_of(character)
    name, one = _part(scene, part)
    head, standing = _standing(one)
    at = _height(scene, q, scene.forest.parts[name].links.start + head)
    return np.asarray((at - floats(ground, "ground")) / standing)


def body_on_ground(
    character: SceneLike,
    contacts: Contacts | None = None,
    *,
    part: str | None = None,
    copies: Copies | None = None,
    allowed: Iterable[str] | None = None,
) -> Bools:
    """Whether anything but feet and hands touches the ground; shape (...).

    Obstacles do not count: a character may sit on a chair. Without contacts, those of a world's
    last step are meant.
    """
    contacts, copies = contacts_from(character, contacts, copies)
    contacts, part = _own(character, contacts, part)
    scene = scene_of(character)
    name, one = _part(scene, part)
    links = scene.forest.parts[name].links
    may = allowed_on_ground(one) if allowed is None else allowed
    feet = [links.start + _index(one, link) for link in may]
    down = closed(ground_contacts(contacts_of(scene, contacts, links), obstacles=False))
    wrong = ~np.isin(down.link, feet)
    return np.asarray(per_copy(down, wrong, copies) > 0.0)


@lru_cache(maxsize=64)
def allowed_on_ground(character: Character) -> tuple[str, ...]:
    """Links that touch the ground without a fall: feet, toes, hands.

    Where an arm ends without a hand, its last link is one.
    """
    found = [character.links[i].name for links in feet_links(character).values() for i in links]
    for (limb, _), roles in limbs_of(character).items():
        if limb == "arm":
            found += roles.get("hand") or [names[-1] for names in roles.values() if names][-1:]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=64)
def _standing(character: Character) -> tuple[int, float]:
    """Index of the head, and its height above the soles at rest."""
    head, soles, q = _index(character, head_of(character)), feet_of(character), character.rest_q
    if not soles:
        raise PoiseError(
            f"character {character.name!r} has no feet in its rest pose: it does not stand"
        )
    floor = positions(character, soles, q)[:, 2].min()
    return head, float(_height(scene_of(character), q, head) - floor)


def _own(character: SceneLike, contacts: Contacts, part: str | None) -> tuple[Contacts, str | None]:
    """A character's contacts and no part, where `part` names it in the scene of the contacts."""
    check_contacts(contacts)
    scene = scene_of(character)
    if part is None or len(scene.characters) > 1 or len(contacts.parts) < 2:
        return contacts, part
    return contacts_in(scene, contacts.of(part)), None


def _part(scene: Scene, part: str | None) -> tuple[str, Character]:
    parts = list(scene.forest.parts)
    if part is None:
        if len(parts) > 1:
            raise PoiseError(f"the scene has several parts; say which: {', '.join(parts)}")
        part = parts[0]
    check_known("part", part, parts)
    return part, scene.characters[parts.index(part)]


def _index(character: Character, link: str) -> int:
    return character.links.index(character.link(link))


def _height(scene: Scene, q: ArrayLike, link: int) -> Floats:
    p, quat = dynamics.forward_kinematics(scene, q)
    height: Floats = p[..., link, 2] + _rise(quat[..., link, :], scene, link)
    return height


def _rise(quat: Floats, scene: Scene, link: int) -> Floats:
    """Height of a link's center of mass above its frame's origin [m]."""
    w, x, y, z = np.moveaxis(quat, -1, 0)
    a, b, c = scene.forest.link_com[link]
    # the last row of the rotation matrix
    rise: Floats = 2.0 * (x * z - w * y) * a + 2.0 * (y * z + w * x) * b
    rise += (1.0 - 2.0 * (x * x + y * y)) * c
    return rise
