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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from poise.anatomy.body import Body
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import SOLE, ContactPoint, has_free_root, positions, tip_of
from poise.errors import ClipError, shorten, warn_user
from poise.math import rotation
from poise.math.arrays import Floats, Mask, runs
from poise.math.filtering import lowpass
from poise.math.rotation import conjugate, exp, multiply, rotate
from poise.model import configuration
from poise.model.character import Character
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
from poise.motion.retargeting.transfer import DesiredMotion

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
        stands: When it stands, shape (k,).
        flat: When heel and toes of the source stand, shape (k,).
        side: Of each of the character's sole points, whether it stands on the heel's side (-1),
            the toes' (1) or, as the ball before toes of their own, only with both (0).
        toes: Links that hang on it and touch the ground, with their level orientation (4,).
        tip: Of a hand, the points by which it stands, all at once; of a foot none.
    """

    name: str
    sole: Sole
    stands: Mask
    flat: Mask
    side: NDArray[np.int64] | None = None
    toes: tuple[tuple[str, Floats], ...] = ()
    tip: tuple[ContactPoint, ...] = ()

    def plant(self, desired: DesiredMotion) -> tuple[Floats, Floats]:
        """Positions (k, 3) and orientations (k, 4) of its link that stand still."""
        p, R = desired.p[:, self.sole.link], desired.R[:, self.sole.link]
        return plant_foot(self.sole, p, R, self.stands, desired.fps, desired.pieces)

    def turns(self, desired: DesiredMotion) -> Floats:
        """Desired rotations of its sole from level, shape (k, 4)."""
        return self.sole.turns(desired.R[:, self.sole.link])


def match_feet(
    clip: Clip, found: Match, desired: DesiredMotion, level: bool, required: bool
) -> list[StandingFoot]:
    """Feet of the target, and when they stand, as the source's do."""
    theirs = found.source.sole_points if clip.contacts is None else clip.contacts.points
    pairs, odd = _pair_feet(found, theirs)
    if odd or not pairs:
        why = _why_no_feet(odd, found.target.character, found.source.character)
        _report(f"feet are not kept in place: {why}; {found.in_line()}", required)
    if not pairs:
        return []
    contacts = clip.contacts or detect_contacts(clip, theirs)
    feet = []
    for ours, other in pairs.items():
        heel, toe = _heel_and_toe(contacts, other, found.source)
        foot = _make_foot(found.target, ours, heel | toe, heel & toe, level)
        feet.append(replace(foot, stands=_closed_standings(foot, desired)))
    return feet


def _report(text: str, required: bool) -> None:
    """Raises an error if feet are required to stand, else warns."""
    if required:
        raise ClipError(text)
    warn_user(text, UserWarning)


def _closed_standings(foot: StandingFoot, desired: DesiredMotion) -> Mask:
    """When a foot stands, without short gaps.

    No foot stands across a cut, nor in what is too short to stand in, as a T-pose.
    """
    p, R = desired.p[:, foot.sole.link], desired.R[:, foot.sole.link]
    stands = close_gaps(foot.sole, p, R, foot.stands, desired.fps)
    for a, b in desired.pieces:
        if a > 0:
            stands[a - 1 : a + 1] = False
        if b - a < STEP * desired.fps and b - a < len(stands):
            stands[a:b] = False
    return stands


def target_schedule(
    feet: list[StandingFoot], body: Body, desired: DesiredMotion
) -> ContactSchedule | None:
    """Which points of the target's soles stand, and of its hands."""
    if not feet:
        return None
    points = list(body.sole_points)
    on = [np.zeros(len(desired.p), dtype=bool) for _ in points]
    for foot in feet:
        D = foot.turns(desired)
        stands = foot.stands
        if len(foot.sole.local) > 1:  # one point may turn in place
            stands = stands & ~is_pivoting(D, stands, desired.fps)
        if foot.side is not None:
            pitch = pitch_of(foot.sole, D)
            for i, side in enumerate(foot.side):
                if points[i].foot == foot.name:
                    on[i] = stands & (pitch * side >= 0.0 if side else pitch == 0.0)
        points += foot.tip
        on += [stands for _ in foot.tip]
    return ContactSchedule(tuple(points), np.stack(on, axis=1))


def _why_no_feet(odd: dict[str, str], one: Character, other: Character) -> str:
    """Why feet of two characters do not match."""
    if odd:
        pairs = shorten([f"{ours!r} with {theirs!r}" for ours, theirs in odd.items()], 8)
        return f"only one of each pair is a foot, of {one.name!r} and {other.name!r}: {pairs}"
    for each in (one, other):
        if not has_free_root(each):
            return f"{each.name!r} does not stand, its root is fixed"
    return f"in their rest poses no feet of {one.name!r} match feet of {other.name!r}"


def _pair_feet(
    found: Match, theirs: tuple[ContactPoint, ...]
) -> tuple[dict[str, str], dict[str, str]]:
    """Feet of the target by those of the source of the same limb, and pairs that are no such.

    A character without feet stands on its shins; these follow no feet, nor feet them.
    """
    limbs: dict[tuple[str, str] | None, str] = {}
    for point in theirs:
        limbs.setdefault(found.source.limb_of(point.foot), point.foot)
    pairs: dict[str, str] = {}
    odd: dict[str, str] = {}
    for point in found.target.sole_points:
        limb = found.target.limb_of(point.foot)
        if limb in limbs and is_on_limb(found.target, point.foot):
            other = limbs[limb]
            same = found.target.is_end(point.foot) == found.source.is_end(other)
            (pairs if same else odd)[point.foot] = other
    return pairs, odd


def is_on_limb(body: Body, foot: str) -> bool:
    """Whether a foot ends a leg or an arm, which can move it to its place."""
    return (body.limb_of(foot) or ("",))[0] in ("leg", "arm")


def _heel_and_toe(contacts: ContactSchedule, foot: str, body: Body) -> tuple[Mask, Mask]:
    """When heel and toes of a foot of the source stand."""
    own = contacts.of(foot)
    points = [contacts.points[i] for i in own]
    at = positions(body.character, points, body.character.rest_q)
    ahead = at @ body.sole_axes(foot)[:, 0]
    on = contacts.on[:, own]
    if np.ptp(ahead) < SHORT:
        stands = contacts.standing(foot)
        return stands, stands
    front = ahead > (ahead.min() + ahead.max()) / 2.0
    return np.asarray(on[:, ~front].any(axis=1)), np.asarray(on[:, front].any(axis=1))


def _make_foot(body: Body, name: str, stands: Mask, flat: Mask, level: bool) -> StandingFoot:
    """A foot with its sole as seen from its link."""
    axes, rest, points = body.sole_axes(name), body.rest, body.sole_points
    # turn the sole so that it is level
    lay = rotation.between(axes[:, 2], UP)
    turned = multiply(lay, rest.orientation(name))
    forward, left = rotate(lay, axes[:, 0]), rotate(lay, axes[:, 1])
    local = _corners(rest.surface(name), turned, forward, left)
    laid = rotate(turned, local)
    ahead = laid @ forward
    short = bool(np.ptp(ahead) < SHORT)
    if short:
        heel = toe = laid.mean(axis=0)
        middle = np.inf
    else:
        middle = (ahead.min() + ahead.max()) / 2.0
        heel, toe = laid[ahead <= middle].mean(axis=0), laid[ahead > middle].mean(axis=0)
    toes = tuple(dict.fromkeys(x.link for x in points if x.foot == name and x.link != name))
    height = 0.0
    where = np.array([rotate(turned, np.array(x.pos)) @ forward for x in points])
    side = np.where(where > middle, 0 if toes else 1, -1)
    if toes:
        joint = np.mean([rest.position(x) for x in toes], axis=0) - rest.position(name)
        toe = rotate(lay, joint)
        height = float(toe[2] - heel[2])
        side[[x.link in toes for x in points]] = 1
    sole = Sole(rest.index[name], turned, local, heel, toe, left, height, level or short)
    level_toes = tuple((x, multiply(lay, rest.orientation(x))) for x in toes)
    return StandingFoot(name, sole, stands, flat, side, level_toes)


def _corners(points: Floats, turned: Floats, forward: Floats, left: Floats) -> Floats:
    """Corners of a sole (n, 3): the lowest of a link's points when it is turned level."""
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
        up = rotate(conjugate(foot.turns(desired)[foot.flat]), UP)
        lean = rotation.between(np.median(up, axis=0), UP)
        if 2.0 * np.arccos(min(abs(float(lean[0])), 1.0)) < LEAN:
            R, level = desired.R[:, foot.sole.link], foot.sole.level
            turn = multiply(conjugate(lean), level)
            desired.R[:, foot.sole.link] = multiply(R, multiply(conjugate(level), turn))


def shift_to_ground(feet: list[StandingFoot], desired: DesiredMotion) -> None:
    """Shift the motion up or down so that what stands is on the ground, on the average.

    Floors of captures slope, so the shift follows the feet, slowly. What a cut leaves too short to
    stand in is shifted by itself.
    """
    k = len(desired.p)
    total, count = np.zeros(k), np.zeros(k)
    for foot in feet:
        rise = foot.plant(desired)[0][:, 2] - desired.p[:, foot.sole.link, 2]
        total += np.where(foot.stands, rise, 0.0)
        count += foot.stands
    if count.any():
        middle = float(np.median(total[count > 0] / count[count > 0]))
        # a mean over the standing frames near in time; far from all of them, over all
        width = SETTLE * desired.fps
        rise = gaussian_filter1d(total - middle * count, width, mode="constant")
        weight = gaussian_filter1d(count, width, mode="constant")
        desired.p[..., 2] += (middle + rise / (weight + 1e-3))[:, None]
    else:
        desired.p[..., 2] -= _lowest(feet, desired).min()
    for a, b in desired.pieces:
        if b - a < STEP * desired.fps and b - a < k:
            desired.p[a:b, :, 2] -= _lowest(feet, desired)[a:b].min()


def _lowest(feet: list[StandingFoot], desired: DesiredMotion) -> Floats:
    """Height of the lowest point of the soles [m], shape (k,)."""
    low = []
    for sole in (foot.sole for foot in feet):
        at = desired.p[:, sole.link, None] + rotate(desired.R[:, sole.link, None], sole.local[None])
        low.append(at[..., 2].min(axis=1))
    return np.asarray(np.min(low, axis=0))


# hands

UPRIGHT = 0.35
"""A hand that leans by more than this while it stands does so on one point [rad]."""

FLAT = 0.005
"""A tip whose corners are this far from level is round [m]."""

SHORT_HAND = 0.01
"""A hand whose middle is this near to its joint has no direction of its own [m]."""

PAD = 0.03 * np.array([(1.0, 1.0, 0.0), (1.0, -1.0, 0.0), (-1.0, 1.0, 0.0), (-1.0, -1.0, 0.0)])
"""Corners of the level square that a round tip is held by [m], shape (4, 3)."""


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
    limbs = {found.target.limb_of(foot.name) for foot in feet}
    first = {found.source.limb_of(name): name for name in reversed(contacts.feet)}
    hands, left = [], []
    for name in contacts.feet:
        limb = found.source.limb_of(name)
        if not contacts.standing(name).any():
            continue
        end = _end_of_arm(found.target, limb)
        if limb not in limbs and _end_of_arm(found.source, limb) == name and end is not None:
            limbs.add(limb)
            hands.append(_make_hand(found.target, end, contacts, name, desired))
        # of a foot, its first link says when it stands; a toe of its own says no more
        elif limb not in limbs or not (first[limb] == name or found.source.is_end(name)):
            left.append(name)
    if left:
        ours, theirs = found.target.character.name, found.source.character.name
        _report(
            f"not kept in place: {shorten([repr(name) for name in left], 8)} of {theirs!r} that "
            f"stand; {ours!r} has no such foot or hand; {found.in_line()}",
            required,
        )
    return hands


def _end_of_arm(body: Body, limb: tuple[str, str] | None) -> str | None:
    """The last link of an arm that has a shape: its hand, or its forearm; None without one."""
    if limb is None or limb[0] != "arm":
        return None
    ends = [name for role in ("forearm", "hand") for name in body.get(*limb, role)]
    solid = [name for name in ends if body.character.link(name).shapes]
    return solid[-1] if solid else None


def _make_hand(
    body: Body, name: str, contacts: ContactSchedule, other: str, desired: DesiredMotion
) -> StandingFoot:
    """A hand that stands when that of the source does."""
    tip = _tip(body, name)
    hand = _on_points(body, name, tip, contacts.standing(other))
    stands = _closed_standings(hand, desired)
    up = rotate(hand.turns(desired)[stands], UP)
    whole = contacts.on[hand.stands][:, contacts.of(other)].all()
    upright = bool(whole and (up[:, 2] > np.cos(UPRIGHT)).all())
    if not upright and stands.any():
        R = desired.R[stands, hand.sole.link]
        low = int(np.argmin(rotate(R[:, None], hand.sole.local)[..., 2].mean(axis=0)))
        tip = tip[low : low + 1]
    return _on_points(body, name, tip, stands, upright)


def _tip(body: Body, name: str) -> tuple[ContactPoint, ...]:
    """The corners of a flat end of a hand, or the one point in which a round one or a finger ends.

    Fingers of their own stay as they are at rest.
    """
    points = [
        ContactPoint(name, link, tuple(pos))
        for link in body.rest.subtree(name)
        for pos in body.rest.surface(link).tolist()
    ]
    along = _hand_direction(body, name)
    far = _in_hand(body, name, points) @ along
    corners = tip_of(body.character, name)
    if far.max() - min(float(along @ corner.pos) for corner in corners) < FLAT:
        return tuple(corners)
    return (points[int(np.argmax(far))],)


def _in_hand(body: Body, name: str, points: Sequence[ContactPoint]) -> Floats:
    """Where points are at rest in the frame of a hand [m], shape (n, 3)."""
    placed = positions(body.character, points, body.character.rest_q)
    return rotate(conjugate(body.rest.orientation(name)), placed - body.rest.position(name))


def _hand_direction(body: Body, name: str) -> Floats:
    """Direction of a hand, in its frame (3,)."""
    along, parent = body.rest.surface(name).mean(axis=0), body.rest.parent[name]
    if np.linalg.norm(along) < SHORT_HAND and parent is not None:
        # a ball at the end of the forearm
        step = body.rest.position(name) - body.rest.position(parent)
        along = rotate(conjugate(body.rest.orientation(name)), step)
    unit: Floats = along / max(float(np.linalg.norm(along)), 1e-12)
    return unit


def _on_points(
    body: Body, name: str, tip: tuple[ContactPoint, ...], stands: Mask, upright: bool = False
) -> StandingFoot:
    """A hand that stands on points of its tip; upright, it does not turn about a single one."""
    local, normal = _in_hand(body, name, tip), _hand_direction(body, name)
    if len(tip) > 2:
        # across the plane of its points
        across = np.linalg.svd(local - local.mean(axis=0))[2][2]
        normal = across * np.sign(across @ normal)
    turned = body.rest.orientation(name)
    level = multiply(rotation.between(rotate(turned, normal), -UP), turned)
    if upright and len(tip) < 3:
        local = local.mean(axis=0) + rotate(conjugate(level), PAD)
    middle = rotate(level, local).mean(axis=0)
    left = body.frame[:, 1]
    sole = Sole(body.rest.index[name], level, local, middle, middle, left, always_level=True)
    return StandingFoot(name, sole, stands, np.zeros(len(stands), dtype=bool), tip=tip)


# ankles

RAMP = 0.05
"""Time before and after it stands in which a foot goes over to what its ankle allows [s]."""

SLOW = 8.0
"""It does so without what is faster [Hz]."""

FARTHEST = 1.6
"""A foot that would have to turn back farther flips about [rad]: it stays as its source has it."""


def limit_ankles(
    body: Body, feet: list[StandingFoot], desired: DesiredMotion, start: Floats
) -> DesiredMotion:
    """Limits the desired orientation of feet in the air to what their ankles allow.

    Args:
        body: The body of the character.
        feet: Its feet, and when they stand.
        desired: Desired motion of the character.
        start: Poses that do it, shape (k, nq).
    """
    p, R = desired.p.copy(), desired.R.copy()
    character, fps = body.character, desired.fps
    step = configuration.difference(character, clamp(character, start), start)
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
        i = foot.sole.link
        turned = multiply(desired.R[:, i], exp(change))
        by = multiply(turned, conjugate(desired.R[:, i]))
        for j in (body.rest.index[name] for name in body.rest.subtree(foot.name)):
            p[:, j] = desired.p[:, i] + rotate(by, desired.p[:, j] - desired.p[:, i])
            R[:, j] = multiply(by, desired.R[:, j])
    return replace(desired, p=p, R=R)
