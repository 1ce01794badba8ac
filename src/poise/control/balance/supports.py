"""Supports of a character: its soles, their friction, and when they should stand.

A link supports the character as far as it should and as it can. It should by the schedule of a
clip's contacts, by the pose of the target, or by a list. It can if it is near the ground, with the
sole level, and below the body; a fallen character has no valid supports. Weights fade before a foot
leaves and after it arrives, so that nothing jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of, tip_of
from poise.control.balance.config import MAX_FRICTION
from poise.control.plant import Plant
from poise.errors import PoiseError, check_known
from poise.math.arrays import Floats, Ints, number, runs
from poise.model.character import Character
from poise.simulation.contact.collision_model import FRICTION


class Soles(NamedTuple):
    """Links by which a character may stand.

    Attributes:
        names: Of the links.
        link: Their indices, shape (k,).
        point: Points of their soles, in their frames [m], shape (m, 3).
        owner: Which of the links a point belongs to, in order, shape (m,).
        first: First point of each link, shape (k,).
    """

    names: tuple[str, ...]
    link: Ints
    point: Floats
    owner: Ints
    first: Ints

    @property
    def origins(self) -> Floats:
        """Link and its origin, shape (k, 4)."""
        return np.column_stack([self.link, np.zeros((len(self.link), 3))])

    @property
    def points(self) -> Floats:
        """Owner and point of each, shape (m, 4)."""
        return np.column_stack([self.owner.astype(np.float64), self.point])


def find_soles(character: Character, links: Sequence[str] | None = None) -> Soles:
    """The soles of a character's feet, or of these links.

    Args:
        character: The character.
        links: Names; None is all feet.
    """
    if links is not None and not links:
        raise PoiseError("no supports: name a link that holds the character up, or take 'clip'")
    if links is not None:
        known = [link.name for link in character.links]
        for name in links:
            check_known("link", name, known)
    points = feet_of(character)
    if links is not None:
        feet = {point.link for point in points}
        points = tuple(point for point in points if point.link in links)
        for name in dict.fromkeys(links):
            points += () if name in feet else tuple(tip_of(character, name))
    if not points:
        raise PoiseError(
            f"character {character.name!r} has no feet in its rest pose; supports=[...] names the "
            "links that hold it up"
        )
    names = tuple(dict.fromkeys(point.link for point in points))
    points = tuple(sorted(points, key=lambda point: names.index(point.link)))
    owner = np.array([names.index(point.link) for point in points])
    index = {link.name: i for i, link in enumerate(character.links)}
    return Soles(
        names,
        np.array([index[name] for name in names]),
        np.array([point.pos for point in points], dtype=np.float64),
        owner,
        np.flatnonzero(np.diff(owner, prepend=-1)).astype(np.int32),
    )


def sole_friction(plant: Plant, friction: float | None, links: Ints) -> float | Floats:
    """Friction of soles and ground: as given, that of the world, or 0.8.

    Args:
        plant: The character in its world.
        friction: As given; None takes that of the world.
        links: Of the soles, in the character, shape (s,).

    Returns:
        A number, or where they differ one for each sole, shape (s,) or (n, s).
    """
    if friction is not None:
        return float(friction)
    settings = plant.settings
    if settings is None or settings.contact is None:
        return FRICTION
    given = settings.friction
    everywhere = given.ndim == 0 or given.shape[1:] == (1,)
    mine = given if everywhere else given[..., plant.links][..., links]
    rest = mine if everywhere else FRICTION
    ground = rest if settings.ground_friction is None else settings.ground_friction
    soles = np.minimum(np.sqrt(mine * ground), MAX_FRICTION)
    soles = np.ascontiguousarray(np.broadcast_to(soles, (*soles.shape[:-1], len(links))))
    return float(soles.flat[0]) if np.ptp(soles) == 0.0 else soles


def fade_out(value: Floats, bounds: Sequence[float]) -> Floats:
    """1 below the first bound, 0 above the second, smooth between."""
    full, none = bounds
    weight = np.clip((none - value) / (none - full), 0.0, 1.0)
    out: Floats = weight * weight * (3.0 - 2.0 * weight)
    return out


class Schedule:
    """When each link should stand, from the contacts of a clip.

    Args:
        clip: A clip with contacts, or a ContactSchedule and fps.
        fade: Time in which a weight goes from 1 to 0 before a link leaves, and back after it has
            come [s].
        fps: Frames per second, for a ContactSchedule.
    """

    def __init__(self, clip: Any, fade: float = 0.15, fps: float | None = None) -> None:
        contacts = clip if isinstance(clip, ContactSchedule) else clip.contacts
        if contacts is None:
            raise PoiseError(
                "this clip has no contacts; "
                "poise.motion.foot_contact.detect.detect_contacts finds them"
            )
        self.fps = number(fps, "fps", unit="Hz") if contacts is clip else float(clip.fps)
        fade = number(fade, "fade")
        self.links = tuple(dict.fromkeys(point.link for point in contacts.points))
        frames = len(contacts.on)
        self.weight = np.zeros((frames, len(self.links)))
        time = np.arange(frames) / self.fps
        for j, link in enumerate(self.links):
            mine = [i for i, point in enumerate(contacts.points) if point.link == link]
            on = contacts.on[:, mine].any(axis=1)
            for start, stop in runs(on):
                # contacts at the ends of the clip extend beyond them
                since = time - time[start] if start else np.full(frames, np.inf)
                until = time[stop - 1] - time if stop < frames else np.full(frames, np.inf)
                inside = slice(start, stop)
                left = np.minimum(since, until)[inside]
                self.weight[inside, j] = 1.0 - fade_out(np.minimum(left, fade), (0.0, fade))

    def __call__(self, time: Floats) -> Floats:
        """Weights of the links at times [s] of the clip, shape (..., links)."""
        at = np.clip(np.asarray(time) * self.fps, 0.0, len(self.weight) - 1.0)
        low = np.minimum(at.astype(int), max(len(self.weight) - 2, 0))
        high = np.minimum(low + 1, len(self.weight) - 1)
        part = (at - low)[..., None]
        out: Floats = (1.0 - part) * self.weight[low] + part * self.weight[high]
        return out
