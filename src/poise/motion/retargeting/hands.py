"""Hands that stand, as those of a cartwheel: they are held in place as feet are.

A clip says by its own contacts that a hand stands; contacts that are detected are those of feet. A
hand is the end of an arm, and stands on its tip. If the source's does so with all of its points,
upright within some degrees, the target's tip lies level; else it stands on its lowest point alone
and turns about it as it likes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from poise.anatomy.body import Body
from poise.anatomy.contact_schedule import Contacts
from poise.anatomy.feet import Point, positions, tip_of
from poise.errors import ClipError, shorten
from poise.math import rotation
from poise.math.arrays import Floats, Mask
from poise.math.rotation import conjugate, multiply, rotate
from poise.model.geometry import surface_points
from poise.motion.clip import Clip
from poise.motion.foot_contact.planting import Sole, tidied
from poise.motion.retargeting.matching import Match
from poise.motion.retargeting.rested import Rested
from poise.motion.retargeting.standing import Foot, is_foot, outside, part_at_cuts
from poise.motion.retargeting.transfer import Wanted

UPRIGHT = 0.35
"""A hand that leans by more than this while it stands does so on one point [rad]."""

FLAT = 0.005
"""A tip whose corners are this far from level is round [m]."""

SHORT = 0.01
"""A hand whose middle is this near to its joint has no direction of its own [m]."""

ENDS = ("forearm", "hand")
"""What may be the end of an arm."""

PAD = 0.03 * np.array([(1.0, 1.0, 0.0), (1.0, -1.0, 0.0), (-1.0, 1.0, 0.0), (-1.0, -1.0, 0.0)])
"""Corners of the level square that a round tip is held by [m], shape (4, 3)."""

DOWN = np.array([0.0, 0.0, -1.0])


def hands_of_match(
    clip: Clip, found: Match, wanted: Wanted, feet: Sequence[Foot], required: bool
) -> list[Foot]:
    """Hands of the target that stand because the source's do.

    Warns of what else stands in the source and does not in the target, or raises if `required`.

    Args:
        clip: The source.
        found: Which link moves which.
        wanted: What the target shall do.
        feet: Its feet, which are looked after.
        required: Whether all that stands must be held.
    """
    contacts = clip.contacts
    if contacts is None or contacts.detected or contacts.sliding:
        return []
    body = Rested(found.target)
    limbs = {found.target.limb_of(foot.name) for foot in feet}
    first = {found.source.limb_of(name): name for name in reversed(contacts.feet)}
    hands, left = [], []
    for name in contacts.feet:
        limb = found.source.limb_of(name)
        if not contacts.standing(name).any():
            continue
        if limb not in limbs and _is_end(found.source, name):
            end = _end_of(found.target, limb)
            if end is not None:
                limbs.add(limb)
                hands.append(_make_hand(body, end, contacts, name, wanted, clip.fps))
                continue
        # of a foot, its first link says when it stands; a toe of its own says no more
        if limb not in limbs or not (first[limb] == name or is_foot(found.source, name)):
            left.append(name)
    if left:
        _tell(found, left, required)
    return hands


def _tell(found: Match, left: list[str], required: bool) -> None:
    ours, theirs = found.target.character.name, found.source.character.name
    text = (
        f"not kept in place: {shorten([repr(name) for name in left], 8)} of {theirs!r} that "
        f"stand; {ours!r} has no such foot or hand; {found.in_line()}"
    )
    if required:
        raise ClipError(text)
    warnings.warn(text, stacklevel=outside())


def _is_end(body: Body, name: str) -> bool:
    """Whether a link is a hand, or a forearm that is the end of its arm."""
    limb = body.limb_of(name)
    return limb is not None and limb[0] == "arm" and _end_of(body, limb) == name


def _end_of(body: Body, limb: tuple[str, str] | None) -> str | None:
    """The last link of an arm that has a shape: its hand, or its forearm; None without one."""
    if limb is None or limb[0] != "arm":
        return None
    ends = [name for role in ENDS for name in body.get(*limb, role)]
    solid = [name for name in ends if body.character.link(name).shapes]
    return solid[-1] if solid else None


def _make_hand(
    body: Rested, name: str, contacts: Contacts, other: str, wanted: Wanted, fps: float
) -> Foot:
    """A hand that stands when that of the source does."""
    tip = _tip(body, name)
    hand = _on_points(body, name, tip, contacts.standing(other))
    i = hand.sole.link
    stands = tidied(hand.sole, wanted.p[:, i], wanted.R[:, i], hand.stands, fps)
    part_at_cuts(stands, wanted, fps)
    R = wanted.R[stands, i]
    up = rotate(multiply(R, conjugate(hand.sole.level)), -DOWN)
    own = contacts.on[hand.stands][:, contacts.of(other)]
    firm = bool(own.all() and (up[:, 2] > np.cos(UPRIGHT)).all())
    if not firm and len(R):
        low = int(np.argmin(rotate(R[:, None], hand.local)[..., 2].mean(axis=0)))
        tip = tip[low : low + 1]
    return _on_points(body, name, tip, stands, firm)


def _tip(body: Rested, name: str) -> tuple[Point, ...]:
    """The corners of a flat end of a hand, or the one point in which a round one or a finger ends.

    Fingers of their own stay as they are at rest.
    """
    points, along = _outline(body, name), _along(body, name)
    at = _in_hand(body, name, points)
    far = at @ along
    corners = tip_of(body.character, name)
    if far.max() - min(float(along @ corner.pos) for corner in corners) < FLAT:
        return tuple(corners)
    return (points[int(np.argmax(far))],)


def _outline(body: Rested, name: str) -> list[Point]:
    """Points of the shapes of a hand and of what hangs on it."""
    inside, points = {name}, []
    for link in body.character.links:  # parents come first
        if link.name == name or link.parent in inside:
            inside.add(link.name)
            for shape in link.shapes:
                cloud = surface_points(shape).tolist()
                points += [Point(name, link.name, tuple(pos)) for pos in cloud]
    return points


def _in_hand(body: Rested, name: str, points: Sequence[Point]) -> Floats:
    """Where points are at rest in the frame of a hand [m], shape (n, 3)."""
    placed = positions(body.character, points, body.character.rest_q)
    return rotate(conjugate(body.turned(name)), placed - body.at(name))


def _along(body: Rested, name: str) -> Floats:
    """Direction of a hand, in its frame (3,)."""
    link = body.character.link(name)
    along = np.concatenate([surface_points(shape) for shape in link.shapes]).mean(axis=0)
    if np.linalg.norm(along) < SHORT and link.parent is not None:
        # a ball at the end of the forearm
        along = rotate(conjugate(body.turned(name)), body.at(name) - body.at(link.parent))
    unit: Floats = along / max(float(np.linalg.norm(along)), 1e-12)
    return unit


def _on_points(
    body: Rested, name: str, tip: tuple[Point, ...], stands: Mask, firm: bool = False
) -> Foot:
    """A hand that stands on points of its tip; a firm one does not turn about a single one."""
    local, normal = _in_hand(body, name, tip), _along(body, name)
    if len(tip) > 2:
        # across the plane of its points
        across = np.linalg.svd(local - local.mean(axis=0))[2][2]
        normal = across * np.sign(across @ normal)
    turned = body.turned(name)
    level = multiply(rotation.between(rotate(turned, normal), DOWN), turned)
    if firm and len(tip) < 3:
        local = local.mean(axis=0) + rotate(conjugate(level), PAD)
    laid = rotate(level, local)
    middle = laid.mean(axis=0)
    sole = Sole(body.index[name], level, laid, middle, middle, body.body.frame[:, 1])
    none = np.zeros(len(stands), dtype=bool)
    return Foot(name, sole, local, np.zeros(0, dtype=np.int64), stands, none, True, (), tip)
