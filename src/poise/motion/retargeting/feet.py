"""Feet and hands of a target that stand as those of its source do, and feet in the air.

Feet are matched by limb. A foot of the target stands while any point of the source's foot does;
its own pitch decides whether on its heel, its toes or both (`foot_contact.planting`).

Hands that stand, as in a cartwheel, are held in place as feet are. Only a clip's own contacts have
standing hands; detected contacts are those of feet. A hand is the end of an arm, and stands on its
tip. If the source's does so with all of its points, upright within some degrees, the target's tip
lies level; else it stands on its lowest point alone and may turn about it.

Feet in the air turn no farther than their ankles allow. Captures lose feet: in somersaults and
cartwheels they are bent by 90 degrees and more against the shin. The ground determines a standing
foot; one in the air follows its source as far as the joints of the target reach.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from poise.anatomy.body import Body
from poise.anatomy.contact_schedule import Contacts
from poise.anatomy.feet import SOLE, Point, positions, tip_of
from poise.errors import ClipError, shorten
from poise.math import rotation
from poise.math.arrays import Floats, Mask, runs
from poise.math.filtering import lowpass
from poise.math.rotation import conjugate, exp, multiply, rotate
from poise.model import configuration
from poise.model.character import Character
from poise.model.geometry import surface_points
from poise.motion.clip import Clip
from poise.motion.foot_contact.detect import detect_contacts
from poise.motion.foot_contact.planting import (
    STEP,
    Sole,
    close_gaps,
    closeness,
    is_pivoting,
    pitch_of,
    plant_foot,
)
from poise.motion.limits import clamp
from poise.motion.retargeting.matching import Match
from poise.motion.retargeting.transfer import DesiredMotion, RestPose, sole_points

# feet

SETTLE = 0.4
"""The ground is the mean over standing feet within about this time [s]."""

LEAN = 0.5
"""Soles that lean by more than this while they stand are not taken for level [rad]."""

UP = np.array([0.0, 0.0, 1.0])

SHORT = 0.04
"""A sole shorter than this has no heel and toes of its own [m]."""


@dataclass(frozen=True, eq=False)
class StandingFoot:
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


def match_feet(
    clip: Clip, found: Match, desired: DesiredMotion, level: bool, required: bool
) -> list[StandingFoot]:
    """Feet of the target, and when they stand, as the source's do."""
    source, body = RestPose(found.source), RestPose(found.target)
    points = body.points
    theirs = source.points if clip.contacts is None else clip.contacts.points
    pairs, odd = _pair_feet(found, points, theirs)
    if odd or not pairs:
        why = _why_no_feet(odd, body.character, source.character)
        text = f"feet are not kept in place: {why}; {found.in_line()}"
        if required:
            raise ClipError(text)
        warnings.warn(text, stacklevel=caller_stack_level())
    if not pairs:
        return []
    contacts = clip.contacts or detect_contacts(clip, theirs)
    feet = []
    for ours, other in pairs.items():
        heel, toe = _heel_and_toe(contacts, other, source)
        foot = _make_foot(body, ours, points, heel | toe, heel & toe, level)
        i = foot.sole.link
        stands = close_gaps(foot.sole, desired.p[:, i], desired.R[:, i], foot.stands, clip.fps)
        clear_standing_at_cuts(stands, desired, clip.fps)
        feet.append(replace(foot, stands=stands))
    return feet


def clear_standing_at_cuts(stands: Mask, desired: DesiredMotion, fps: float) -> None:
    """No foot stands across a cut, nor in what is too short to stand in, as a T-pose; in place."""
    for a, b in desired.pieces:
        if a > 0:
            stands[a - 1 : a + 1] = False
        if b - a < STEP * fps and b - a < len(stands):
            stands[a:b] = False


def target_schedule(
    feet: list[StandingFoot], body: Body, desired: DesiredMotion, fps: float
) -> Contacts | None:
    """Which points of the target's soles stand, and of its hands."""
    if not feet:
        return None
    points = sole_points(body)
    on = np.zeros((len(desired.p), len(points)), dtype=bool)
    tips = []
    for foot in feet:
        R = desired.R[:, foot.sole.link]
        pitch = pitch_of(foot.sole, R, foot.level)
        stands = foot.stands
        if len(foot.local) > 1:  # one point may turn in place
            stands = stands & ~is_pivoting(foot.sole, R, stands, fps)
        for i, point in enumerate(points):
            if point.foot == foot.name and not foot.tip:
                on[:, i] = stands & (pitch * foot.side[i] >= 0.0)
                if foot.side[i] == 0:
                    on[:, i] &= pitch == 0.0
        tips += [(point, stands) for point in foot.tip]
    on = np.concatenate([on, *(stands[:, None] for _, stands in tips)], axis=1)
    return Contacts((*points, *(point for point, _ in tips)), on)


def _why_no_feet(odd: dict[str, str], one: Character, other: Character) -> str:
    """Why feet of two characters do not match."""
    if odd:
        pairs = shorten([f"{ours!r} with {theirs!r}" for ours, theirs in odd.items()], 8)
        return f"only one of each pair is a foot, of {one.name!r} and {other.name!r}: {pairs}"
    for each in (one, other):
        if [joint.kind for joint in each.links[0].joints] != ["free"]:
            return f"{each.name!r} does not stand, its root is fixed"
    return f"in their rest poses no feet of {one.name!r} match feet of {other.name!r}"


def caller_stack_level() -> int:
    """The stack level, for the caller's warning, of the code that called this package."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("poise."):
        level, frame = level + 1, frame.f_back
    return max(level, 1)


def _pair_feet(
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
        if limb in limbs and is_limb_end(found.target, point.foot):
            other = limbs[limb]
            same = is_foot(found.target, point.foot) == is_foot(found.source, other)
            (pairs if same else odd)[point.foot] = other
    return pairs, odd


def is_limb_end(body: Body, foot: str) -> bool:
    """Whether a foot ends a leg or an arm, which can move it to its place."""
    limb = body.limb_of(foot)
    return limb is not None and limb[0] in ("leg", "arm")


def is_foot(body: Body, name: str) -> bool:
    """Whether a link is the end of a limb: no shin, and no forearm."""
    where = body.where(name)
    return where is None or where[2] in ("foot", "toe", "hand")


def _forward_distance(body: RestPose, points: list[Point]) -> Floats:
    """How far points are to the front at rest [m], shape (n,)."""
    forward = body.sole(points[0].foot)[:, 0]
    at = [body.at(x.link) + rotate(body.turned(x.link), np.array(x.pos)) for x in points]
    ahead: Floats = np.array(at) @ forward
    return ahead


def _heel_and_toe(contacts: Contacts, foot: str, body: RestPose) -> tuple[Mask, Mask]:
    """When heel and toes of a foot of the source stand."""
    own = contacts.of(foot)
    ahead = _forward_distance(body, [contacts.points[i] for i in own])
    on = contacts.on[:, own]
    if np.ptp(ahead) < SHORT:
        stands: Mask = np.asarray(on.any(axis=1))
        return stands, stands
    front = ahead > (ahead.min() + ahead.max()) / 2.0
    return np.asarray(on[:, ~front].any(axis=1)), np.asarray(on[:, front].any(axis=1))


def _make_foot(
    body: RestPose, name: str, points: tuple[Point, ...], stands: Mask, flat: Mask, level: bool
) -> StandingFoot:
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
    return StandingFoot(name, sole, own, side, stands, flat, level, level_toes)


def _corners(body: RestPose, name: str, turned: Floats, forward: Floats, left: Floats) -> Floats:
    """Corners of a link's sole in its frame [m], (n, 3): its lowest points when it is level."""
    shapes = body.character.link(name).shapes
    points = np.concatenate([surface_points(shape) for shape in shapes])
    laid = rotate(turned, points)
    low = np.flatnonzero(laid[:, 2] < laid[:, 2].min() + SOLE)
    x, y = laid[low] @ forward, laid[low] @ left
    picked = {int(low[np.argmax(a * x + b * y)]) for a in (1.0, -1.0) for b in (1.0, -1.0)}
    return points[sorted(picked)]


def level_soles(feet: list[StandingFoot], desired: DesiredMotion) -> None:
    """Turn each foot by a constant so that it is level, on the average, while all of it stands.

    What a rig calls its foot need not be level at rest.
    """
    for foot in feet:
        if foot.flat.sum() < 3:
            continue
        R = desired.R[:, foot.sole.link]
        D = multiply(R[foot.flat], conjugate(foot.sole.level))
        up = rotate(conjugate(D), UP)
        lean = rotation.between(np.median(up, axis=0), UP)
        if 2.0 * np.arccos(min(abs(float(lean[0])), 1.0)) < LEAN:
            turn = multiply(conjugate(lean), foot.sole.level)
            desired.R[:, foot.sole.link] = multiply(R, multiply(conjugate(foot.sole.level), turn))


def shift_to_ground(feet: list[StandingFoot], desired: DesiredMotion, fps: float) -> None:
    """Shift the motion up or down so that what stands is on the ground, on the average.

    Floors of captures slope, so the shift follows the feet, slowly. What a cut leaves too short to
    stand in is shifted by itself.
    """
    _shift_slowly(feet, desired, fps)
    for a, b in desired.pieces:
        if b - a < STEP * fps and b - a < len(desired.p):
            desired.p[a:b, :, 2] -= _lowest(feet, desired)[a:b].min()


def _lowest(feet: list[StandingFoot], desired: DesiredMotion) -> Floats:
    """Height of the lowest point of the soles [m], shape (k,)."""
    low = []
    for foot in feet:
        i = foot.sole.link
        at = desired.p[:, i, None] + rotate(desired.R[:, i, None], foot.local[None])
        low.append(at[..., 2].min(axis=1))
    return np.asarray(np.min(low, axis=0))


def _shift_slowly(feet: list[StandingFoot], desired: DesiredMotion, fps: float) -> None:
    k = len(desired.p)
    total, count = np.zeros(k), np.zeros(k)
    for foot in feet:
        i, stands = foot.sole.link, foot.stands
        p, _ = plant_foot(
            foot.sole, desired.p[:, i], desired.R[:, i], stands, fps, foot.level, desired.pieces
        )
        total += np.where(stands, p[:, 2] - desired.p[:, i, 2], 0.0)
        count += stands
    if not count.any():
        desired.p[..., 2] -= _lowest(feet, desired).min()
        return
    middle = float(np.median(total[count > 0] / count[count > 0]))
    # a mean over the standing frames near in time; far from all of them, over all
    rise = gaussian_filter1d(total - middle * count, SETTLE * fps, mode="constant")
    weight = gaussian_filter1d(count, SETTLE * fps, mode="constant")
    desired.p[..., 2] += (middle + rise / (weight + 1e-3))[:, None]


# hands

UPRIGHT = 0.35
"""A hand that leans by more than this while it stands does so on one point [rad]."""

FLAT = 0.005
"""A tip whose corners are this far from level is round [m]."""

SHORT_HAND = 0.01
"""A hand whose middle is this near to its joint has no direction of its own [m]."""

ENDS = ("forearm", "hand")
"""What may be the end of an arm."""

PAD = 0.03 * np.array([(1.0, 1.0, 0.0), (1.0, -1.0, 0.0), (-1.0, 1.0, 0.0), (-1.0, -1.0, 0.0)])
"""Corners of the level square that a round tip is held by [m], shape (4, 3)."""

DOWN = np.array([0.0, 0.0, -1.0])


def match_hands(
    clip: Clip, found: Match, desired: DesiredMotion, feet: Sequence[StandingFoot], required: bool
) -> list[StandingFoot]:
    """Hands of the target that stand because the source's do.

    Warns of what else stands in the source and does not in the target, or raises if `required`.

    Args:
        clip: The source.
        found: Which link moves which.
        desired: Desired motion of the target.
        feet: Its feet, which are looked after.
        required: Whether all that stands must be held.
    """
    contacts = clip.contacts
    if contacts is None or contacts.detected or contacts.sliding:
        return []
    body = RestPose(found.target)
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
                hands.append(_make_hand(body, end, contacts, name, desired, clip.fps))
                continue
        # of a foot, its first link says when it stands; a toe of its own says no more
        if limb not in limbs or not (first[limb] == name or is_foot(found.source, name)):
            left.append(name)
    if left:
        _report_left(found, left, required)
    return hands


def _report_left(found: Match, left: list[str], required: bool) -> None:
    ours, theirs = found.target.character.name, found.source.character.name
    text = (
        f"not kept in place: {shorten([repr(name) for name in left], 8)} of {theirs!r} that "
        f"stand; {ours!r} has no such foot or hand; {found.in_line()}"
    )
    if required:
        raise ClipError(text)
    warnings.warn(text, stacklevel=caller_stack_level())


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
    body: RestPose, name: str, contacts: Contacts, other: str, desired: DesiredMotion, fps: float
) -> StandingFoot:
    """A hand that stands when that of the source does."""
    tip = _tip(body, name)
    hand = _on_points(body, name, tip, contacts.standing(other))
    i = hand.sole.link
    stands = close_gaps(hand.sole, desired.p[:, i], desired.R[:, i], hand.stands, fps)
    clear_standing_at_cuts(stands, desired, fps)
    R = desired.R[stands, i]
    up = rotate(multiply(R, conjugate(hand.sole.level)), -DOWN)
    own = contacts.on[hand.stands][:, contacts.of(other)]
    firm = bool(own.all() and (up[:, 2] > np.cos(UPRIGHT)).all())
    if not firm and len(R):
        low = int(np.argmin(rotate(R[:, None], hand.local)[..., 2].mean(axis=0)))
        tip = tip[low : low + 1]
    return _on_points(body, name, tip, stands, firm)


def _tip(body: RestPose, name: str) -> tuple[Point, ...]:
    """The corners of a flat end of a hand, or the one point in which a round one or a finger ends.

    Fingers of their own stay as they are at rest.
    """
    points, along = _outline(body, name), _hand_direction(body, name)
    at = _in_hand(body, name, points)
    far = at @ along
    corners = tip_of(body.character, name)
    if far.max() - min(float(along @ corner.pos) for corner in corners) < FLAT:
        return tuple(corners)
    return (points[int(np.argmax(far))],)


def _outline(body: RestPose, name: str) -> list[Point]:
    """Points of the shapes of a hand and of what hangs on it."""
    inside, points = {name}, []
    for link in body.character.links:  # parents come first
        if link.name == name or link.parent in inside:
            inside.add(link.name)
            for shape in link.shapes:
                cloud = surface_points(shape).tolist()
                points += [Point(name, link.name, tuple(pos)) for pos in cloud]
    return points


def _in_hand(body: RestPose, name: str, points: Sequence[Point]) -> Floats:
    """Where points are at rest in the frame of a hand [m], shape (n, 3)."""
    placed = positions(body.character, points, body.character.rest_q)
    return rotate(conjugate(body.turned(name)), placed - body.at(name))


def _hand_direction(body: RestPose, name: str) -> Floats:
    """Direction of a hand, in its frame (3,)."""
    link = body.character.link(name)
    along = np.concatenate([surface_points(shape) for shape in link.shapes]).mean(axis=0)
    if np.linalg.norm(along) < SHORT_HAND and link.parent is not None:
        # a ball at the end of the forearm
        along = rotate(conjugate(body.turned(name)), body.at(name) - body.at(link.parent))
    unit: Floats = along / max(float(np.linalg.norm(along)), 1e-12)
    return unit


def _on_points(
    body: RestPose, name: str, tip: tuple[Point, ...], stands: Mask, firm: bool = False
) -> StandingFoot:
    """A hand that stands on points of its tip; a firm one does not turn about a single one."""
    local, normal = _in_hand(body, name, tip), _hand_direction(body, name)
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
    return StandingFoot(name, sole, local, np.zeros(0, dtype=np.int64), stands, none, True, (), tip)


# ankles

RAMP = 0.05
"""Time before and after it stands in which a foot goes over to what its ankle allows [s]."""

SLOW = 8.0
"""It does so without what is faster [Hz]."""

FARTHEST = 1.6
"""A foot that would have to turn back farther flips about [rad]: it stays as its source has it."""


def limit_ankles(
    character: Character,
    feet: list[StandingFoot],
    desired: DesiredMotion,
    start: Floats,
    fps: float,
) -> DesiredMotion:
    """Limits the desired orientation of feet in the air to what their ankles allow.

    Args:
        character: The character.
        feet: Its feet, and when they stand.
        desired: Desired motion of the character.
        start: Poses that do it, shape (k, nq).
        fps: Frames per second.
    """
    p, R = desired.p.copy(), desired.R.copy()
    step = configuration.difference(character, clamp(character, start), start)
    index = {link.name: i for i, link in enumerate(character.links)}
    for foot in feet:
        joints = character.link(foot.name).joints
        if foot.tip or len(joints) != 1 or joints[0].kind != "ball":
            continue
        change = step[:, character.v_slice(joints[0])]
        change = change * (1.0 - closeness(foot.stands, RAMP * fps))[:, None]
        for a, b in runs(change.any(axis=1)):
            if np.linalg.norm(change[a:b], axis=1).max() > FARTHEST:
                change[a:b] = 0.0
        if not change.any():
            continue
        for a, b in desired.pieces:
            if b - a > 3:
                change[a:b] = lowpass(change[a:b], min(SLOW, 0.4 * fps), fps)
        i = index[foot.name]
        turned = multiply(desired.R[:, i], exp(change))
        by = multiply(turned, conjugate(desired.R[:, i]))
        for j in _descendants(character, i):
            p[:, j] = desired.p[:, i] + rotate(by, desired.p[:, j] - desired.p[:, i])
            R[:, j] = multiply(by, desired.R[:, j])
    return replace(desired, p=p, R=R)


def _descendants(character: Character, i: int) -> list[int]:
    """A link and all that hang on it."""
    found, names = [i], {character.links[i].name}
    for j, link in enumerate(character.links):
        if j > i and link.parent in names:
            found.append(j)
            names.add(link.name)
    return found
