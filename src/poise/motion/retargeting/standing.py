"""When and on what the feet of a target stand, as those of its source do.

Feet are matched by limb. A foot of the target stands while any point of the source's foot does;
whether on its heel, its toes or both says its own pitch (see `footing`).
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from poise.anatomy.body import Body
from poise.anatomy.contact_schedule import Contacts
from poise.anatomy.feet import SOLE, Point
from poise.errors import ClipError, shorten
from poise.math import rotation
from poise.math.arrays import Floats, Mask
from poise.math.rotation import conjugate, multiply, rotate
from poise.model.character import Character
from poise.model.geometry import surface_points
from poise.motion.clip import Clip
from poise.motion.foot_contact.detect import detect_contacts
from poise.motion.foot_contact.planting import STEP, Sole, pitch_of, planted, tidied, turning
from poise.motion.retargeting.matching import Match
from poise.motion.retargeting.rested import Rested, sole_points
from poise.motion.retargeting.transfer import Wanted

SETTLE = 0.4
"""The ground is the mean over standing feet within about this time [s]."""

LEAN = 0.5
"""Soles that lean by more than this while they stand are not taken for level [rad]."""

UP = np.array([0.0, 0.0, 1.0])

SHORT = 0.04
"""A sole shorter than this has no heel and toes of its own [m]."""


@dataclass(frozen=True, eq=False)
class Foot:
    """A foot of the target, and when it stands.

    Attributes:
        name: Its link.
        sole: Its sole, without toes that are links of their own.
        local: Points of the sole in the link's frame [m], shape (n, 3).
        side: Of each of the character's sole points, whether it stands on the heel's side (-1),
            the toes' (1) or, as the ball before toes of their own, only with both (0).
        stands: When it stands, shape (k,).
        flat: When heel and toes of the source stand, shape (k,).
        level: Whether it is level whenever it stands.
        toes: Links that hang on it and touch the ground, with their level orientation (4,).
        tip: Of a hand, the points by which it stands, all at once; of a foot none.
    """

    name: str
    sole: Sole
    local: Floats
    side: NDArray[np.int64]
    stands: Mask
    flat: Mask
    level: bool
    toes: tuple[tuple[str, Floats], ...]
    tip: tuple[Point, ...] = ()


def feet_of_match(
    clip: Clip, found: Match, wanted: Wanted, level: bool, required: bool
) -> list[Foot]:
    """Feet of the target, and when they stand, as the source's do."""
    source, body = Rested(found.source), Rested(found.target)
    points = body.points
    theirs = source.points if clip.contacts is None else clip.contacts.points
    pairs, odd = _same_feet(found, points, theirs)
    if odd or not pairs:
        why = _no_feet(odd, body.character, source.character)
        text = f"feet are not kept in place: {why}; {found.in_line()}"
        if required:
            raise ClipError(text)
        warnings.warn(text, stacklevel=outside())
    if not pairs:
        return []
    contacts = clip.contacts or detect_contacts(clip, theirs)
    feet = []
    for ours, other in pairs.items():
        heel, toe = _heel_and_toe(contacts, other, source)
        foot = _make_foot(body, ours, points, heel | toe, heel & toe, level)
        i = foot.sole.link
        stands = tidied(foot.sole, wanted.p[:, i], wanted.R[:, i], foot.stands, clip.fps)
        part_at_cuts(stands, wanted, clip.fps)
        feet.append(replace(foot, stands=stands))
    return feet


def part_at_cuts(stands: Mask, wanted: Wanted, fps: float) -> None:
    """No foot stands across a cut, nor in what is too short to stand in, as a T-pose; in place."""
    for a, b in wanted.pieces:
        if a > 0:
            stands[a - 1 : a + 1] = False
        if b - a < STEP * fps and b - a < len(stands):
            stands[a:b] = False


def contacts_of(feet: list[Foot], body: Body, wanted: Wanted, fps: float) -> Contacts | None:
    """Which points of the target's soles stand, and of its hands."""
    if not feet:
        return None
    points = sole_points(body)
    on = np.zeros((len(wanted.p), len(points)), dtype=bool)
    tips = []
    for foot in feet:
        R = wanted.R[:, foot.sole.link]
        pitch = pitch_of(foot.sole, R, foot.level)
        stands = foot.stands
        if len(foot.local) > 1:  # one point may turn in place
            stands = stands & ~turning(foot.sole, R, stands, fps)
        for i, point in enumerate(points):
            if point.foot == foot.name and not foot.tip:
                on[:, i] = stands & (pitch * foot.side[i] >= 0.0)
                if foot.side[i] == 0:
                    on[:, i] &= pitch == 0.0
        tips += [(point, stands) for point in foot.tip]
    on = np.concatenate([on, *(stands[:, None] for _, stands in tips)], axis=1)
    return Contacts((*points, *(point for point, _ in tips)), on)


def _no_feet(odd: dict[str, str], one: Character, other: Character) -> str:
    """Why feet of two characters do not match."""
    if odd:
        pairs = shorten([f"{ours!r} with {theirs!r}" for ours, theirs in odd.items()], 8)
        return f"only one of each pair is a foot, of {one.name!r} and {other.name!r}: {pairs}"
    for who in (one, other):
        if [joint.kind for joint in who.links[0].joints] != ["free"]:
            return f"{who.name!r} does not stand, its root is fixed"
    return f"in their rest poses no feet of {one.name!r} match feet of {other.name!r}"


def outside() -> int:
    """The stack level, for the caller's warning, of the code that called this package."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("poise."):
        level, frame = level + 1, frame.f_back
    return max(level, 1)


def _same_feet(
    found: Match, ours: tuple[Point, ...], theirs: tuple[Point, ...]
) -> tuple[dict[str, str], dict[str, str]]:
    """Feet of the target by those of the source of the same limb, and pairs that are no such.

    A character without feet stands on its shins; these follow no feet, nor feet them.
    """
    limbs: dict[tuple[str, str] | None, str] = {}
    for point in theirs:
        limbs.setdefault(found.source.limb_of(point.foot), point.foot)
    pairs: dict[str, str] = {}
    odd: dict[str, str] = {}
    for point in ours:
        limb = found.target.limb_of(point.foot)
        if limb in limbs and ends_limb(found.target, point.foot):
            other = limbs[limb]
            same = is_foot(found.target, point.foot) == is_foot(found.source, other)
            (pairs if same else odd)[point.foot] = other
    return pairs, odd


def ends_limb(body: Body, foot: str) -> bool:
    """Whether what stands belongs to a leg or an arm, so that it can be put where it shall be."""
    limb = body.limb_of(foot)
    return limb is not None and limb[0] in ("leg", "arm")


def is_foot(body: Body, name: str) -> bool:
    """Whether a link is the end of a limb: no shin, and no forearm."""
    where = body.where(name)
    return where is None or where[2] in ("foot", "toe", "hand")


def _along(body: Rested, points: list[Point]) -> Floats:
    """How far points are to the front at rest [m], shape (n,)."""
    forward = body.sole(points[0].foot)[:, 0]
    at = [body.at(x.link) + rotate(body.turned(x.link), np.array(x.pos)) for x in points]
    ahead: Floats = np.array(at) @ forward
    return ahead


def _heel_and_toe(contacts: Contacts, foot: str, body: Rested) -> tuple[Mask, Mask]:
    """When heel and toes of a foot of the source stand."""
    own = contacts.of(foot)
    ahead = _along(body, [contacts.points[i] for i in own])
    on = contacts.on[:, own]
    if np.ptp(ahead) < SHORT:
        stands: Mask = np.asarray(on.any(axis=1))
        return stands, stands
    front = ahead > (ahead.min() + ahead.max()) / 2.0
    return np.asarray(on[:, ~front].any(axis=1)), np.asarray(on[:, front].any(axis=1))


def _make_foot(
    body: Rested, name: str, points: tuple[Point, ...], stands: Mask, flat: Mask, level: bool
) -> Foot:
    """A foot with its sole as seen from its link."""
    axes = body.sole(name)
    # turn the sole so that it is level
    lay = rotation.between(axes[:, 2], UP)
    turned = multiply(lay, body.turned(name))
    forward, left = rotate(lay, axes[:, 0]), rotate(lay, axes[:, 1])
    own = _corners(body, name, turned, forward, left)
    laid = rotate(turned, own)
    ahead = laid @ forward
    if np.ptp(ahead) < SHORT:
        heel = toe = laid.mean(axis=0)
        level = True
        middle = np.inf
    else:
        middle = (ahead.min() + ahead.max()) / 2.0
        heel, toe = laid[ahead <= middle].mean(axis=0), laid[ahead > middle].mean(axis=0)
    toes = tuple(dict.fromkeys(x.link for x in points if x.foot == name and x.link != name))
    height = 0.0
    where = np.array([rotate(turned, np.array(x.pos)) @ forward for x in points])
    side = np.where(where > middle, 0 if toes else 1, -1)
    if toes:
        joint = np.mean([body.at(x) for x in toes], axis=0) - body.at(name)
        toe = rotate(lay, joint)
        height = float(toe[2] - heel[2])
        side[[x.link in toes for x in points]] = 1
    sole = Sole(body.index[name], turned, laid, heel, toe, left, height)
    level_toes = tuple((x, multiply(lay, body.turned(x))) for x in toes)
    return Foot(name, sole, own, side, stands, flat, level, level_toes)


def _corners(body: Rested, name: str, turned: Floats, forward: Floats, left: Floats) -> Floats:
    """Corners of a link's sole in its frame [m], (n, 3): its lowest points when it is level."""
    shapes = body.character.link(name).shapes
    points = np.concatenate([surface_points(shape) for shape in shapes])
    laid = rotate(turned, points)
    low = np.flatnonzero(laid[:, 2] < laid[:, 2].min() + SOLE)
    x, y = laid[low] @ forward, laid[low] @ left
    picked = {int(low[np.argmax(a * x + b * y)]) for a in (1.0, -1.0) for b in (1.0, -1.0)}
    return points[sorted(picked)]


def level_soles(feet: list[Foot], wanted: Wanted) -> None:
    """Turn each foot by a constant so that it is level, on the average, while all of it stands.

    What a rig calls its foot need not be level at rest.
    """
    for foot in feet:
        if foot.flat.sum() < 3:
            continue
        R = wanted.R[:, foot.sole.link]
        D = multiply(R[foot.flat], conjugate(foot.sole.level))
        up = rotate(conjugate(D), UP)
        lean = rotation.between(np.median(up, axis=0), UP)
        if 2.0 * np.arccos(min(abs(float(lean[0])), 1.0)) < LEAN:
            turn = multiply(conjugate(lean), foot.sole.level)
            wanted.R[:, foot.sole.link] = multiply(R, multiply(conjugate(foot.sole.level), turn))


def settle(feet: list[Foot], wanted: Wanted, fps: float) -> None:
    """Shift the motion up or down so that what stands is on the ground, on the average.

    Floors of captures slope, so the shift follows the feet, slowly. What a cut leaves too short to
    stand in is shifted by itself.
    """
    _settle(feet, wanted, fps)
    for a, b in wanted.pieces:
        if b - a < STEP * fps and b - a < len(wanted.p):
            wanted.p[a:b, :, 2] -= _lowest(feet, wanted)[a:b].min()


def _lowest(feet: list[Foot], wanted: Wanted) -> Floats:
    """Height of the lowest point of the soles [m], shape (k,)."""
    low = []
    for foot in feet:
        i = foot.sole.link
        at = wanted.p[:, i, None] + rotate(wanted.R[:, i, None], foot.local[None])
        low.append(at[..., 2].min(axis=1))
    return np.asarray(np.min(low, axis=0))


def _settle(feet: list[Foot], wanted: Wanted, fps: float) -> None:
    k = len(wanted.p)
    total, count = np.zeros(k), np.zeros(k)
    for foot in feet:
        i, stands = foot.sole.link, foot.stands
        p, _ = planted(
            foot.sole, wanted.p[:, i], wanted.R[:, i], stands, fps, foot.level, wanted.pieces
        )
        total += np.where(stands, p[:, 2] - wanted.p[:, i, 2], 0.0)
        count += stands
    if not count.any():
        wanted.p[..., 2] -= _lowest(feet, wanted).min()
        return
    middle = float(np.median(total[count > 0] / count[count > 0]))
    # a mean over the standing frames near in time; far from all of them, over all
    rise = gaussian_filter1d(total - middle * count, SETTLE * fps, mode="constant")
    weight = gaussian_filter1d(count, SETTLE * fps, mode="constant")
    wanted.p[..., 2] += (middle + rise / (weight + 1e-3))[:, None]
