"""Selection of contact rows, and sums per copy: flat rows in, arrays with leading axes out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.anatomy.feet import feet_of
from poise.errors import PoiseError
from poise.math.arrays import Floats, floats
from poise.model.character import Character
from poise.model.scene import Scene, SceneLike, scene_of
from poise.simulation.contact import Contacts
from poise.simulation.world import World

Copies = int | tuple[int, ...]
Links = str | int | slice | Sequence[str] | Sequence[int]

NEAR = 1e-3
"""A contact with a gap below this is closed [m]; worlds report those that a step may close, too."""


class Wrench(NamedTuple):
    """A force, and the torque about a point.

    Attributes:
        force: [N], shape (..., 3).
        torque: [N·m], shape (..., 3).
    """

    force: Floats
    torque: Floats


# ---- selection


def contacts_of(character: SceneLike, contacts: Contacts, links: Links | None = None) -> Contacts:
    """Contacts of some links with all that is not among them, seen from those links.

    Where the link is `other` in a row, the row is reversed: force and normal are always those on
    the selected links.

    Args:
        character: The character, or a scene. Of a character that is one part of the contacts'
            scene, only its own contacts count, and links have the character's indices.
        contacts: Contacts, as of `world.contacts`.
        links: Names or indices, or a slice as of `world.part(name).links`; None is the whole
            scene, without projectiles.
    """
    scene = scene_of(character)
    contacts = contacts_in(scene, contacts)
    mine = np.zeros(_links_named(contacts, scene.nl), dtype=bool)
    mine[_indices(scene, links)] = True
    first = mine[contacts.link]
    second = (contacts.other >= 0) & mine[np.maximum(contacts.other, 0)]
    return contacts.turned(second & ~first).rows(first != second)


def contacts_in(scene: Scene, contacts: Contacts) -> Contacts:
    """The same contacts, with links numbered as those of a scene.

    The scene is the one that the contacts were found in, or a character that is one part of it.
    Contacts without a scene of their own stay as they are.
    """
    check_contacts(contacts)
    if not contacts.parts or _alike(scene.characters, contacts.characters):
        return contacts
    parts = list(contacts.parts)
    if len(scene.characters) > 1:
        raise PoiseError(
            f"the contacts are of a scene of {', '.join(parts)}, not of one of "
            f"{', '.join(scene.forest.parts)}: pass the world that they come from"
        )
    (one,) = scene.characters
    pairs = list(zip(parts, contacts.characters, strict=True))
    found = [name for name, x in pairs if x == one] or [x for x, c in pairs if _alike((c,), (one,))]
    if not found:
        raise PoiseError(
            f"character {one.name!r} is not in the scene of these contacts, which has "
            f"{', '.join(parts)}: pass the world that they come from, or one of its characters"
        )
    if len(found) > 1:
        raise PoiseError(
            f"character {one.name!r} is several parts of the scene: {', '.join(found)}; "
            f"say whose contacts are meant, as by contacts.of({found[-1]!r})"
        )
    return contacts.renumbered(found[0])


def contacts_from(
    source: object, contacts: Contacts | World | None, copies: Copies | None
) -> tuple[Contacts, Copies]:
    """Contacts, and the shape of their leading axes.

    Args:
        source: A world whose contacts are meant where `contacts` is None.
        contacts: Contacts; a world, or None with a world as source, means those of its last step.
        copies: Shape of the leading axes; None is that of the world, else ().
    """
    world = source if contacts is None else contacts
    if isinstance(world, World):
        if copies is None:
            copies = () if world.n == 1 else (world.n,)
        return world.contacts, copies
    check_contacts(contacts)
    assert isinstance(contacts, Contacts)
    return contacts, () if copies is None else copies


def check_contacts(contacts: object) -> None:
    """Raises an error for anything but contacts."""
    if not isinstance(contacts, Contacts):
        raise PoiseError(
            "contacts come from world.contacts or recording.contacts(i), got "
            f"{type(contacts).__name__}"
        )


def ground_contacts(contacts: Contacts, *, obstacles: bool = True) -> Contacts:
    """Contacts with what does not move: the ground and, if `obstacles`, obstacles."""
    check_contacts(contacts)
    return contacts.rows(contacts.other < 0 if obstacles else contacts.other == -1)


def closed(contacts: Contacts, gap: float = NEAR) -> Contacts:
    """Contacts that touch: they press, or their gap [m] is below this."""
    check_contacts(contacts)
    presses = np.sum(contacts.force * contacts.normal, axis=-1) > 0.0
    return contacts.rows(presses | (contacts.depth > -gap))


def stacked(frames: Sequence[Contacts], n: int = 1) -> Contacts:
    """Contacts of several frames of n copies as one, for `copies=(len(frames), n)`."""
    if isinstance(frames, Contacts):
        raise PoiseError("stacked takes a list of contacts, one for each frame; got one contacts")
    if not frames:
        raise PoiseError("stacked needs at least one frame of contacts")
    for frame in frames:
        _check(frame, (n,))
        if list(frame.parts) != list(frames[0].parts):
            raise PoiseError("stacked takes frames of one scene; these have different parts")
    shifted = [frame._replace(copy=frame.copy + i * n) for i, frame in enumerate(frames)]
    whole = Contacts._make(np.concatenate(column) for column in zip(*shifted, strict=True))
    whole.characters, whole.parts = frames[0].characters, frames[0].parts
    return whole


def feet_links(character: SceneLike) -> dict[str, list[int]]:
    """Links of each foot, with the toes that hang on it, by the foot's name in the scene."""
    scene = scene_of(character)
    names = scene.forest.link_names
    feet: dict[str, list[int]] = {}
    for one, part in zip(scene.characters, scene.forest.parts.values(), strict=True):
        for foot, links in _feet(one).items():
            feet[names[part.links.start + foot]] = [part.links.start + link for link in links]
    return feet


# ---- sums


def per_copy(contacts: Contacts, values: ArrayLike, copies: Copies = ()) -> Floats:
    """Sum of a value for each contact over the contacts of each copy; 0 where there are none.

    Args:
        contacts: Contacts, k rows.
        values: One for each row, shape (k, ...).
        copies: Shape of the leading axes.

    Returns:
        The leading axes, then those of a value.
    """
    shape = _check(contacts, copies)
    given = floats(values, "values")
    if given.ndim == 0 or len(given) != len(contacts.copy):
        raise PoiseError(
            f"values has shape {given.shape}, expected ({len(contacts.copy)}, ...): one for each "
            "contact"
        )
    columns = given.reshape(len(given), math.prod(given.shape[1:])).T
    sums = [np.bincount(contacts.copy, column, math.prod(shape)) for column in columns]
    # of no rows at all, bincount makes whole numbers
    return np.stack(sums, axis=-1).astype(np.float64).reshape((*shape, *given.shape[1:]))


def contact_wrench(
    contacts: Contacts | World, about: ArrayLike, copies: Copies | None = None
) -> Wrench:
    """Sum of the forces of these contacts, and of their torques about a point.

    Args:
        contacts: Contacts, seen from what the force acts on: `contacts_of`; or a world.
        about: In the world [m], shape (3,) or (..., 3).
        copies: Shape of the leading axes; that of the world unless given.
    """
    contacts, copies = contacts_from(None, contacts, copies)
    shape = _check(contacts, copies)
    point = _each(about, "about", shape, 3)
    torque = np.cross(contacts.point - point[contacts.copy], contacts.force)
    return Wrench(per_copy(contacts, contacts.force, shape), per_copy(contacts, torque, shape))


def link_wrenches(character: SceneLike, q: ArrayLike, contacts: Contacts) -> Floats:
    """What contacts do to every link: force at its origin, and torque [N, N·m], (..., nl, 6).

    In the form that `poise.dynamics` takes as `external`. Contacts between links act on both.

    Args:
        character: The character, or a scene.
        q: Positions at the beginning of the step, where the contacts were found, shape (..., nq).
        contacts: Contacts; their copies are counted along the leading axes of q.
    """
    scene = scene_of(character)
    contacts = contacts_in(scene, contacts)
    origin = dynamics.forward_kinematics(scene, q)[0]
    shape = _check(contacts, origin.shape[:-2])
    origin = origin.reshape(-1, scene.nl, 3)
    total = np.zeros((len(origin), scene.nl, 6))
    for link, sign in ((contacts.link, 1.0), (contacts.other, -1.0)):
        here = (link >= 0) & (link < scene.nl)  # neither the ground nor projectiles
        at = contacts.copy[here], link[here]
        force = sign * contacts.force[here]
        torque = np.cross(contacts.point[here] - origin[at], force)
        np.add.at(total, at, np.concatenate([force, torque], axis=-1))
    return total.reshape(*shape, scene.nl, 6)


# ---- details


@lru_cache(maxsize=64)
def _feet(character: Character) -> dict[int, list[int]]:
    """Links of each foot, by the foot's own."""
    at = {link.name: i for i, link in enumerate(character.links)}
    feet: dict[int, list[int]] = {}
    for foot, link in dict.fromkeys((point.foot, point.link) for point in feet_of(character)):
        feet.setdefault(at[foot], []).append(at[link])
    return feet


def _alike(some: Sequence[Character], others: Sequence[Character]) -> bool:
    """Whether characters have the same links, so that an index means the same in both."""
    if len(some) != len(others):
        return False
    pairs = zip(some, others, strict=True)
    return all(a is b or [x.name for x in a.links] == [x.name for x in b.links] for a, b in pairs)


def _check(contacts: Contacts, copies: Copies) -> tuple[int, ...]:
    """The leading axes as a tuple, if they hold the copies that the rows name."""
    check_contacts(contacts)
    shape = copies if isinstance(copies, tuple) else (copies,)
    if not all(isinstance(x, (int, np.integer)) and x >= 0 for x in shape):
        raise PoiseError(f"copies is {copies!r:.80}; it must be the shape of the leading axes")
    most = int(contacts.copy.max()) + 1 if len(contacts.copy) else 0
    if math.prod(shape) < most:
        raise PoiseError(
            f"there are contacts of {most} copies or more, but copies={copies}; "
            "copies is the shape of the leading axes: n, or (frames, n)"
        )
    return shape


def _each(value: ArrayLike, name: str, shape: tuple[int, ...], *tail: int) -> Floats:
    """An array for each copy in one flat axis, (copies, *tail); one for all is repeated."""
    array = floats(value, name)
    try:
        whole = np.broadcast_to(array, (*shape, *tail))
    except ValueError:
        expected = ", ".join(map(str, (*shape, *tail)))
        raise PoiseError(
            f"{name} has shape {array.shape}, expected ({expected}), or one for all copies"
        ) from None
    return whole.reshape(math.prod(shape), *tail)


def _links_named(contacts: Contacts, nl: int) -> int:
    """How many links there are, with those of projectiles."""
    return max([nl, *(int(x.max()) + 1 for x in (contacts.link, contacts.other) if len(x))])


def _indices(scene: Scene, links: Links | None) -> list[int]:
    if links is None:
        return list(range(scene.nl))
    if isinstance(links, slice):
        return list(range(scene.nl))[links]
    if isinstance(links, (str, int, np.integer)):
        return [scene.link_index(links)]
    return [scene.link_index(link) for link in links]
