"""Stance: which links hold the character up, and how firmly, from 0 to 1.

A link stands as far as it should and as it can: it should by the schedule of a clip's contacts, by
the pose of the target, or by a list; and it can if it is near the ground, with the sole to it, and
under the body: who lies has no feet to stand on. Weights fade before a foot leaves and after it
arrives, so that nothing jumps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poise.control.balance.tasks import Tasks
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Floats, Ints, number
from poise.math.polygon import convex_hull, nearest_point
from poise.model.character import Character
from poise.motion.clip import Clip

if TYPE_CHECKING:
    from poise.anatomy.contact_schedule import Contacts

LEAVES = (0.005, 0.03)
"""A sole of the target this high [m] begins to be in the air, and is."""
LIFTS = (0.004, 0.015)
"""The same of the character itself."""
TILTS = (1.0 - math.cos(math.radians(30.0)), 1.0 - math.cos(math.radians(60.0)))
"""1 - cos of the angle between a sole and the target's at which it begins to stand on an edge that
carries nothing, and does: the feet of who lies on the ground are near to it, too."""
LEANS = (0.25, 0.5)
"""Distance of the mass centre from all soles by its height, at which a fall begins to be one that
no force of the soles can stop, and is. Who is pushed and recovers leans by less than half of it."""


class Soles(NamedTuple):
    """Links by which a character may stand.

    Attributes:
        names: Of the links.
        link: Their indices, shape (k,).
        point: Points of their soles, in their frames [m], shape (m, 3).
        owner: Which of the links a point belongs to, in order, shape (m,).
        first: Of each link, its first point, shape (k,).
    """

    names: tuple[str, ...]
    link: Ints
    point: Floats
    owner: Ints
    first: Ints

    @property
    def corners(self) -> Floats:
        """Owner and point of each, shape (m, 4)."""
        return np.column_stack([self.owner.astype(np.float64), self.point])

    def places(self, now: Tasks) -> Floats:
        """Where the points are [m], shape (m, 3); the links are the first points of the tasks."""
        turned = np.matmul(now.R[self.owner], self.point[:, :, None])[:, :, 0]
        out: Floats = now.p[self.owner] + turned
        return out

    def lowest(self, places: Floats) -> Floats:
        """Height of the lowest point of each link [m], shape (k,)."""
        low: Floats = np.minimum.reduceat(places[:, 2], self.first)
        return low


def soles_of(character: Character, links: Sequence[str] | None = None) -> Soles:
    """The feet of a character, or these links.

    Args:
        character: The character.
        links: Names; None is all feet.
    """
    from poise.anatomy.feet import feet_of, tip_of

    if links is not None and not links:
        raise PoiseError("no supports: name a link that holds the character up, or take 'clip'")
    if links is not None:
        known = [link.name for link in character.links]
        for name in links:
            if name not in known:
                raise PoiseError(unknown_name("link", name, known))
    points = feet_of(character)
    if links is not None:
        feet = {point.link for point in points}
        points = tuple(point for point in points if point.link in links)
        for name in dict.fromkeys(links):
            points += () if name in feet else tuple(tip_of(character, name))
    if not points:
        raise PoiseError(
            f"character {character.name!r} has no feet in its rest pose; supports=[...] says "
            "which links hold it up"
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


def tilt_of(here: Floats, there: Floats) -> Floats:
    """1 - cos of the angles between soles, whichever way they face, of orientations (k, 3, 3)."""
    out: Floats = 1.0 - (here[:, 2] * there[:, 2]).sum(axis=-1)
    return out


def lean_of(center: Floats, corners: Floats, ground: float) -> float:
    """How far the mass centre is beside the soles, by its height.

    Args:
        center: [m], shape (3,).
        corners: Of the soles [m], shape (m, 3).
        ground: Height of the ground [m].
    """
    away = center[:2] - nearest_point(convex_hull(corners[:, :2]), center[:2])
    return math.hypot(*away) / max(float(center[2]) - ground, 1e-3)


def faded(value: Floats, bounds: tuple[float, float]) -> Floats:
    """1 below the first bound, 0 above the second, smooth between."""
    full, none = bounds
    share = np.clip((none - value) / (none - full), 0.0, 1.0)
    out: Floats = share * share * (3.0 - 2.0 * share)
    return out


class Schedule:
    """When each link should stand, from the contacts of a clip.

    Args:
        clip: A clip with contacts, or Contacts and fps.
        fade: How long a weight takes to go from 1 to 0 before a link leaves, and back after it
            has come [s].
        fps: Frames per second, for Contacts.
    """

    def __init__(self, clip: Clip | Contacts, fade: float = 0.15, fps: float | None = None) -> None:
        from poise.math.arrays import runs

        contacts = clip.contacts if isinstance(clip, Clip) else clip
        if contacts is None:
            raise PoiseError(
                "this clip has no contacts; "
                "poise.motion.foot_contact.detect.detect_contacts finds them"
            )
        self.fps = clip.fps if isinstance(clip, Clip) else number(fps, "fps", unit="Hz")
        fade = number(fade, "fade")
        self.links = tuple(dict.fromkeys(point.link for point in contacts.points))
        frames = len(contacts.on)
        self.weight = np.zeros((frames, len(self.links)))
        time = np.arange(frames) / self.fps
        for j, link in enumerate(self.links):
            mine = [i for i, point in enumerate(contacts.points) if point.link == link]
            on = contacts.on[:, mine].any(axis=1)
            for start, stop in runs(on):
                # what stands at the ends of the clip stood before and stands after
                since = time - time[start] if start else np.full(frames, np.inf)
                until = time[stop - 1] - time if stop < frames else np.full(frames, np.inf)
                inside = slice(start, stop)
                left = np.minimum(since, until)[inside]
                self.weight[inside, j] = 1.0 - faded(np.minimum(left, fade), (0.0, fade))

    def __call__(self, time: Floats) -> Floats:
        """Weights of the links at times [s] of the clip, shape (..., links)."""
        at = np.clip(np.asarray(time) * self.fps, 0.0, len(self.weight) - 1.0)
        low = np.minimum(at.astype(int), max(len(self.weight) - 2, 0))
        high = np.minimum(low + 1, len(self.weight) - 1)
        share = (at - low)[..., None]
        out: Floats = (1.0 - share) * self.weight[low] + share * self.weight[high]
        return out
