"""Contacts: what touched what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.errors import PoiseError, check_known
from poise.math.arrays import Floats

if TYPE_CHECKING:
    from poise import _core
    from poise.model.character import Character
    from poise.model.forest import Part
    from poise.model.scene import Scene
    from poise.simulation.contact.collision_model import CollisionModel

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class _Columns(NamedTuple):
    copy: Ints
    link: Ints
    other: Ints
    point: Floats
    normal: Floats
    force: Floats
    depth: Floats


class CoreContacts(NamedTuple):
    """Contacts of several steps, with the columns of `_core.Contacts`."""

    copy: Ints
    collider: Ints
    other: Ints
    point: Floats
    normal: Floats
    impulse: Floats
    gap: Floats

    @classmethod
    def of(cls, contacts: _core.Contacts) -> CoreContacts:
        """The columns of one step."""
        return cls._make(getattr(contacts, name) for name in cls._fields)

    @classmethod
    def none(cls) -> CoreContacts:
        """No contacts."""
        which, vectors = np.zeros(0, np.int64), np.zeros((0, 3))
        return cls(which, which, which, vectors, vectors, vectors, np.zeros(0))

    @classmethod
    def joined(cls, several: Sequence[CoreContacts]) -> CoreContacts:
        """Contacts of the steps, one after another."""
        return cls._make(np.concatenate(column) for column in zip(*several, strict=True))


class Contacts(_Columns):
    """Contacts of the last step, of all copies, one row each.

    Contacts of a world or a recording know the parts of its scene: `of` selects those of one part.

    Attributes:
        copy: Which copy, shape (k,).
        link: Which link, by its index, shape (k,); projectiles come after the links of the scene.
        other: What it touches: a link, -1 the ground, -2 - i the obstacle i, shape (k,).
        point: Where, in the world [m], shape (k, 3).
        normal: Unit vector towards link, shape (k, 3).
        force: On link, the mean over the step [N], shape (k, 3).
        depth: How deep it was when the step began, below zero a gap [m], shape (k,).
        characters: The characters of the scene, in the order of its parts; () if unknown.
        parts: Slices of each part by its name, as of `world.part`; empty if unknown.
    """

    characters: tuple[Character, ...] = ()
    parts: Mapping[str, Part] = {}

    def within(self, scene: Scene) -> Contacts:
        """The same contacts, with the scene whose links they name."""
        return self._with(scene.characters, scene.forest.parts)

    def rows(self, which: Any) -> Contacts:
        """Some of the contacts.

        Args:
            which: Mask, indices or slice of the rows.
        """
        chosen = Contacts._make(column[which] for column in self)
        return chosen._with(self.characters, self.parts)

    def of(self, part: str) -> Contacts:
        """Contacts of one part of the scene, numbered and seen as if it were alone.

        `link` is always a link of the part, by its index in the part's own character. Links of
        other parts, and projectiles, have indices after those of the character. A contact between
        two links of the part is one row.

        Args:
            part: Name of the part, as in `world.part`.
        """
        renumbered = self.renumbered(part)
        count = len(renumbered.characters[0].links)
        own = renumbered.link < count
        met = (renumbered.other >= 0) & (renumbered.other < count)
        return renumbered.turned(met & ~own).rows(own | met)

    def renumbered(self, part: str) -> Contacts:
        """All contacts, with links numbered as by `of`."""
        if not self.parts:
            raise PoiseError("these contacts are of no world or recording: they have no parts")
        check_known("part", part, self.parts)
        links = self.parts[part].links
        first, count = links.start, links.stop - links.start
        # links before the part go behind it; ground, obstacles and links after it stay
        shift = [
            np.select([x < 0, x < first, x < links.stop], [0, count, -first], 0)
            for x in (self.link, self.other)
        ]
        character = self.characters[list(self.parts).index(part)]
        alone = self._replace(link=self.link + shift[0], other=self.other + shift[1])
        return alone._with((character,), {part: character.forest.parts[character.name]})

    def turned(self, which: Bools) -> Contacts:
        """With link and other exchanged in some rows, and force and normal reversed."""
        sign = np.where(which, -1.0, 1.0)[:, None]
        return self._replace(
            link=np.where(which, self.other, self.link).astype(np.int64),
            other=np.where(which, self.link, self.other).astype(np.int64),
            normal=sign * self.normal,
            force=sign * self.force,
        )

    def _replace(self, **columns: Any) -> Contacts:
        replaced: Contacts = super()._replace(**columns)
        return replaced._with(self.characters, self.parts)

    def _with(self, characters: tuple[Character, ...], parts: Mapping[str, Part]) -> Contacts:
        known = Contacts._make(self)
        known.characters, known.parts = characters, parts
        return known


def contacts_from_core(
    raw: _core.Contacts | CoreContacts, touch: CollisionModel | None, dt: float
) -> Contacts:
    """Contacts from those of the core, of one step or of several in a row.

    Args:
        raw: `_core.Contacts`, or the same columns of several steps.
        touch: The collision model; None if nothing can touch.
        dt: Time step [s].
    """
    link = np.zeros(0, np.int64) if touch is None else touch.colliders.link.astype(np.int64)
    # obstacles are -1 - k among the colliders, and the ground comes before them
    met = np.append(np.where(link < 0, link - 1, link), -1)[raw.other]
    return Contacts(
        raw.copy, link[raw.collider], met, raw.point, raw.normal, raw.impulse / dt, -raw.gap
    )
