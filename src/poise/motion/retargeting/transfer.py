"""The motion of one character as another would make it, if joints and ground had no say.

For every matched link the source's rotation from its rest pose is turned over to the target:

    R_t(t) = R_s(t) R_s0^-1 A R_t0

A aligns the target at rest with the source at rest, so that they need not rest alike:
- the trunk and head by which way the characters look;
- limbs by the direction of their bones, and by the axis of knee or elbow: that of the target's
  joint with the one about which the source in fact bends;
- soles by being level.
Places follow along the target's own bones; the hips follow the source's, scaled by the legs.

A body in its rest pose: where its links are, how they are turned, where its bones point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.anatomy.body import SIDES, Body, size_of
from poise.anatomy.feet import ContactPoint, feet_of
from poise.math import rotation
from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply, quat_matrix, rotate
from poise.model.geometry import surface_points
from poise.motion.clip import Clip
from poise.motion.editing.smoothing import uncut_segments
from poise.motion.retargeting.matching import Match, Pair

# rest pose

UP = np.array([0.0, 0.0, 1.0])


class RestPose:
    """A body in its rest pose: places, orientations, bones.

    Attributes:
        body: The body.
        p: Places of the links [m], shape (links, 3).
        R: Orientations of the links, shape (links, 4).
        points: Points of the soles.
        soles: Links that carry them.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        self.character = body.character
        self.index = {link.name: i for i, link in enumerate(self.character.links)}
        self.p, self.R = dynamics.forward_kinematics(self.character, self.character.rest_q)
        self.points = sole_points(body)
        self.soles = {point.link for point in self.points}

    def at(self, name: str) -> Floats:
        """Place of a link [m]."""
        place: Floats = self.p[self.index[name]]
        return place

    def turned(self, name: str) -> Floats:
        """Orientation of a link."""
        turned: Floats = self.R[self.index[name]]
        return turned

    def bone(self, pair: Pair, name: str) -> Floats:
        """Direction of a link's bone: to the next link of its limb, or to where it ends."""
        chain = self.body.chain(pair.limb, pair.side) if pair.limb else []
        after = chain[chain.index(name) + 1 :] if name in chain else []
        own = self.at(name)
        along = np.zeros(3)
        for other in after:
            along = self.at(other) - own
            if np.linalg.norm(along) > 1e-3:
                break
        if np.linalg.norm(along) <= 1e-3:
            along = self._far(name) if pair.role == "head" else self._end(name)
        size = float(np.linalg.norm(along))
        return along / size if size > 1e-6 else np.zeros(3)

    def _end(self, name: str) -> Floats:
        i = self.index[name]
        shapes = self.character.links[i].shapes
        if not shapes:
            return np.zeros(3)
        points = np.concatenate([surface_points(shape) for shape in shapes])
        middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
        return rotate(self.R[i], middle)

    def _far(self, name: str) -> Floats:
        """From a link to the points of its shapes that are farthest, in world axes [m]."""
        i = self.index[name]
        shapes = self.character.links[i].shapes
        if not shapes:
            return np.zeros(3)
        points = np.concatenate([surface_points(shape) for shape in shapes])
        far = np.linalg.norm(points, axis=1)
        return rotate(self.R[i], points[far > 0.9 * far.max()].mean(axis=0))

    def reach(self, name: str, direction: Floats) -> tuple[float, float]:
        """How far a link and those on it reach along a direction, least and most [m]."""
        along, inside = [0.0], {name}
        for i, link in enumerate(self.character.links):  # parents come first
            if link.name != name and link.parent not in inside:
                continue
            inside.add(link.name)
            own = self.p[i] - self.at(name)
            along.append(float(own @ direction))
            for shape in link.shapes:
                points = own + rotate(self.R[i], surface_points(shape))
                along += (points @ direction).tolist()
        return min(along), max(along)

    def sole(self, name: str) -> Floats:
        """Forward, left and up of a sole as columns (3, 3): level, but for legs that rest apart."""
        i = self.index[name]
        up = UP
        for shape in self.character.links[i].shapes:
            if shape.kind == "box":
                axes = quat_matrix(multiply(self.R[i], shape.quat))
                k = int(np.argmax(np.abs(axes[2])))
                if abs(axes[2, k]) > np.cos(0.6):
                    up = axes[:, k] * np.sign(axes[2, k])
                break
        forward = self.body.frame[:, 0]
        ahead = self._end(name)
        ahead = ahead - (ahead @ up) * up
        if np.linalg.norm(ahead) > 0.02 and ahead @ forward > 0.8 * np.linalg.norm(ahead):
            forward = ahead
        forward = forward - (forward @ up) * up
        forward = forward / np.linalg.norm(forward)
        return np.stack([forward, np.cross(up, forward), up], axis=1)

    def leg_length(self) -> float | None:
        """Length of a leg from the hip to the sole, the mean of both [m]; None without legs."""
        legs = []
        for side in SIDES:
            chain = [self.body.get("leg", side, role) for role in ("thigh", "shank", "foot")]
            if all(chain):
                points = [self.at(names[0]) for names in chain]
                bones = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
                legs.append(bones + self._sole_depth(chain[2][0]))
        return sum(legs) / len(legs) if legs else None

    def _sole_depth(self, foot: str) -> float:
        """How far the sole is below a foot's joint [m]."""
        tips = [
            self.p[self.index[point.link]] + rotate(self.R[self.index[point.link]], point.pos)
            for point in self.points
            if foot in (point.foot, point.link)
        ]
        up = self.sole(foot)[:, 2]
        own = self.at(foot)
        low = [float((own - tip) @ up) for tip in tips]
        return max(low) if low else max(float(own[2] - self.p[:, 2].min()), 0.0)

    def hips(self) -> Floats:
        """The point between the hips, from the root link, in world axes at rest (3,) [m]."""
        thighs = [n for side in SIDES for n in self.body.get("leg", side, "thigh")[:1]]
        root = self.character.links[0].name
        if len(thighs) != 2 or any(self.character.link(n).parent != root for n in thighs):
            return np.zeros(3)
        middle: Floats = np.mean([self.at(n) for n in thighs], axis=0) - self.p[0]
        return middle


def sole_points(body: Body) -> tuple[ContactPoint, ...]:
    """The points by which a body stands: `feet_of`, but a shin that reaches low is no foot."""
    points = feet_of(body.character)
    ends = ("foot", "toe", "hand")
    foot: dict[tuple[str, str], str] = {}
    for point in points:
        limb, side, role = body.where(point.link) or ("", "", "")
        if role in ends:
            foot.setdefault((limb, side), point.link)
    kept = []
    for point in points:
        limb, side, role = body.where(point.link) or ("", "", "")
        own = foot.get((limb, side))
        if own is None:
            kept.append(point)
        elif role in ends:
            kept.append(ContactPoint(own, point.link, point.pos))
    # toes whose names say nothing hang on what is kept
    names = {point.foot for point in kept}
    return tuple(
        point if body.where(point.link) else ContactPoint(_above(body, point, names), *point[1:])
        for point in kept
    )


def _above(body: Body, point: ContactPoint, feet: set[str]) -> str:
    """The foot that a toe hangs on."""
    at: str | None = point.link
    while at is not None:
        if at in feet and body.where(at):
            return at
        at = body.character.link(at).parent
    return point.foot


# transfer

BENT = 0.6
"""Bones of trunk and neck that differ at rest by more than this are aligned by their bones, not by
which way the body looks [rad]: the neck of a dog that holds its head up."""

STRAIGHT = 0.06
"""A limb that on the average bends by less than this has no clear bending axis [rad]."""


@dataclass(frozen=True, eq=False)
class DesiredMotion:
    """Desired motion of the target's links.

    Attributes:
        p: Places of its links [m], shape (k, links, 3).
        R: Orientations of its links, shape (k, links, 4).
        scale: Size of the target by that of the source.
        pieces: Stretches of frames without a cut: first, and after the last.
    """

    p: Floats
    R: Floats
    scale: float
    pieces: list[tuple[int, int]]


def transfer(clip: Clip, match: Match, scale: float | None = None) -> DesiredMotion:
    """Desired motion of the target, from the source alone."""
    source, target = RestPose(match.source), RestPose(match.target)
    p, R = dynamics.forward_kinematics(clip.character, clip.frames)
    if scale is None:
        scale = size_ratio(source, target)
    pairs = {pair.target: pair for pair in match.pairs}
    aligned = alignments(source, target, match, p, R)
    character = target.character
    k = len(clip)
    out_p, out_R = np.empty((k, len(character.links), 3)), np.empty((k, len(character.links), 4))
    for i, link in enumerate(character.links):
        above = None if link.parent is None else target.index[link.parent]
        if link.name in pairs:
            s = source.index[pairs[link.name].source]
            turn = multiply(conjugate(source.R[s]), multiply(aligned[link.name], target.R[i]))
            out_R[:, i] = multiply(R[:, s], turn)
        elif above is None:
            out_R[:, i] = target.R[i]
        else:
            local = multiply(conjugate(target.R[above]), target.R[i])
            out_R[:, i] = multiply(out_R[:, above], local)
        if above is None:
            out_p[:, i] = _root_path(source, target, p, R, out_R[:, i], scale)
        else:
            offset = rotate(conjugate(target.R[above]), target.p[i] - target.p[above])
            out_p[:, i] = out_p[:, above] + rotate(out_R[:, above], offset)
    return DesiredMotion(out_p, out_R, scale, uncut_segments(clip))


def size_ratio(source: RestPose, target: RestPose) -> float:
    """Size of the target by that of the source: legs by legs, else height by height."""
    legs = source.leg_length(), target.leg_length()
    if legs[0] and legs[1]:
        return legs[1] / legs[0]
    return size_of(target.character) / max(size_of(source.character), 1e-9)


def _root_path(
    source: RestPose, target: RestPose, p: Floats, R: Floats, turned: Floats, scale: float
) -> Floats:
    """Places of the target's root (k, 3): its hips where the scaled hips of the source are."""
    hips = p[:, 0] + rotate(multiply(R[:, 0], conjugate(source.R[0])), source.hips())
    back = rotate(multiply(turned, conjugate(target.R[0])), target.hips())
    path: Floats = scale * hips - back
    return path


def alignments(
    source: RestPose, target: RestPose, match: Match, p: Floats, R: Floats
) -> dict[str, Floats]:
    """Of each matched link of the target, the turn (4,) that brings it at rest to its source."""
    whole = _quaternion(match.source.frame @ match.target.frame.T)
    found = {}
    for pair in match.pairs:
        if pair.target in target.soles and pair.limb in ("leg", "arm"):
            if pair.source in source.soles:
                found[pair.target] = _quaternion(
                    source.sole(pair.source) @ target.sole(pair.target).T
                )
            else:
                found[pair.target] = whole
            continue
        # a hand continues the forearm: what a rig calls its end may be a thumb
        by = (match.pair("arm", pair.side, "forearm") or pair) if pair.role == "hand" else pair
        ours, theirs = target.bone(by, by.target), source.bone(by, by.source)
        turned = rotate(whole, ours)
        trunk = pair.limb not in ("arm", "leg", "tail")
        alike = trunk and float(turned @ theirs) > np.cos(BENT)
        if alike or pair.role == "pelvis" or not (ours.any() and theirs.any()):
            found[pair.target] = whole
        else:
            found[pair.target] = multiply(rotation.between(turned, theirs), whole)
    for limb, side in match.target.links:
        if limb in ("arm", "leg"):
            _align_bend(source, target, match, limb, side, p, R, found)
    return found


def _align_bend(
    source: RestPose,
    target: RestPose,
    match: Match,
    limb: str,
    side: str,
    p: Floats,
    R: Floats,
    found: dict[str, Floats],
) -> None:
    """Turn upper and lower links about their bones so that the axes on which they bend agree."""
    upper, lower = (match.pair(limb, side, role) for role in _bending(limb))
    if upper is None or lower is None:
        return
    ours = flexion_axis(target, lower)
    if ours is None:
        return
    axis, sign = ours
    theirs = _bend_of(source, upper, lower, R)
    if theirs is None:
        return
    for pair in (upper, lower):
        bone = source.bone(pair, pair.source)
        now = rotate(found[pair.target], axis)
        if not sign and float(now @ theirs) < 0.0:
            now = -now
        a, b = (x - (x @ bone) * bone for x in (now, theirs))
        if min(np.linalg.norm(a), np.linalg.norm(b)) > 0.3:
            angle = np.arctan2(np.cross(a, b) @ bone, a @ b)
            found[pair.target] = multiply(rotation.turn(bone, angle), found[pair.target])


def _bending(limb: str) -> tuple[str, str]:
    return ("thigh", "shank") if limb == "leg" else ("arm", "forearm")


def flexion_axis(target: RestPose, lower: Pair) -> tuple[Floats, bool] | None:
    """Axis on which a knee or elbow bends, in world axes at rest, and whether its sign is known."""
    link = target.character.link(lower.target)
    if len(link.joints) != 1:
        return None
    joint = link.joints[0]
    axis = rotate(target.turned(lower.target), np.array(joint.axis))
    if joint.kind == "hinge":
        middle = sum(joint.limits) if joint.limits else 0.0
        return (axis if middle >= 0.0 else -axis), abs(middle) > 1e-6
    if joint.kind == "ball" and joint.limits is not None and joint.limits[0] < 0.5:
        return (axis if sum(joint.limits[1:]) >= 0.0 else -axis), True
    return None


def _bend_of(source: RestPose, upper: Pair, lower: Pair, R: Floats) -> Floats | None:
    """Axis about which a limb of the source bends, fixed in its upper link, at rest (3,)."""
    i, j = source.index[upper.source], source.index[lower.source]
    from_rest = [multiply(R[:, x], conjugate(source.R[x])) for x in (i, j)]
    a = rotate(from_rest[0], source.bone(upper, upper.source))
    b = rotate(from_rest[1], source.bone(lower, lower.source))
    bends = rotate(conjugate(from_rest[0]), np.cross(a, b))
    total = bends.sum(axis=0)
    size = float(np.linalg.norm(total))
    if size < STRAIGHT * len(R) or size < 0.5 * float(np.linalg.norm(bends, axis=1).sum()):
        return None
    axis: Floats = total / size
    return axis


def limb_bones(match: Match) -> list[tuple[Pair, Floats, Floats]]:
    """Pairs with their bones: the pair, and the bone's direction in each link's frame.

    A foot's is along its sole. Hands and toes are left out: what a rig calls so may be a thumb.
    """
    source, target = RestPose(match.source), RestPose(match.target)
    found = []
    for pair in match.pairs:
        if pair.role in ("", "hand", "toe"):
            continue
        ours, theirs = _bone(target, pair, pair.target), _bone(source, pair, pair.source)
        if ours.any() and theirs.any():
            local = rotate(conjugate(target.turned(pair.target)), ours)
            found.append((pair, local, rotate(conjugate(source.turned(pair.source)), theirs)))
    return found


def limb_directions(match: Match, source: ArrayLike, target: ArrayLike) -> dict[str, Floats]:
    """Angle between each link's bone and that of its source, frame by frame [degrees].

    Upper and lower arms and legs, feet, trunk and head count, as far as both characters have them.
    Trunks are not built alike: an angle that is the same in all frames is of the rigs.

    Args:
        match: Which link follows which: `poise.motion.retargeting.matching.match`.
        source: Frames of the source, shape (k, nq).
        target: Frames of the target, shape (k, nq).

    Returns:
        By link of the target, shape (k,).
    """
    ours, theirs = match.target.character, match.source.character
    R_t = dynamics.forward_kinematics(ours, target)[1]
    R_s = dynamics.forward_kinematics(theirs, source)[1]
    at = {link.name: i for i, link in enumerate(ours.links)}
    where = {link.name: i for i, link in enumerate(theirs.links)}
    found = {}
    for pair, mine, other in limb_bones(match):
        a = rotation.rotate(R_t[:, at[pair.target]], mine)
        b = rotation.rotate(R_s[:, where[pair.source]], other)
        cross = np.linalg.norm(np.cross(a, b), axis=-1)
        found[pair.target] = np.degrees(np.arctan2(cross, np.sum(a * b, axis=-1)))
    return found


def _bone(body: RestPose, pair: Pair, name: str) -> Floats:
    """Direction of a link's bone, or of its sole, in world axes at rest (3,)."""
    return body.sole(name)[:, 0] if name in body.soles else body.bone(pair, name)


def _quaternion(R: Floats) -> Floats:
    """Quaternion of a rotation matrix (3, 3), w not negative."""
    w = np.sqrt(max(0.0, 1.0 + np.trace(R))) / 2.0
    if w > 0.1:
        v = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4.0 * w)
        return np.array([w, *v])
    k = int(np.argmax(np.diagonal(R)))
    axis = (R + R.T) / 2.0 + np.eye(3) * (1.0 - np.trace(R)) / 2.0
    v = axis[:, k] / np.linalg.norm(axis[:, k])
    sine = np.sqrt(1.0 - w * w)
    skew = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return np.array([w, *(sine * v * (1.0 if skew @ v >= 0.0 else -1.0))])
