"""The motion of one character as another would make it, if joints and ground had no say.

For every matched link the source's rotation from its rest pose is turned over to the target:

    R_t(t) = R_s(t) R_s0^-1 A R_t0

A aligns the target at rest with the source at rest, so that they need not rest alike:
- the trunk and head by which way the characters look;
- limbs by the direction of their bones, and by the axis of knee or elbow: that of the target's
  joint with the one about which the source in fact bends;
- soles by being level.
Places follow along the target's own bones; the hips follow the source's, scaled by the legs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poise import dynamics
from poise.anatomy.body import Body
from poise.anatomy.rest_pose import size_of
from poise.math import rotation
from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply, quat_from_matrix, rotate
from poise.motion.clip import Clip
from poise.motion.editing.smoothing import uncut_segments
from poise.motion.retargeting.matching import Match, Pair

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
        fps: Frames per second.
        scale: Size of the target by that of the source.
        pieces: Stretches of frames without a cut: first, and after the last.
    """

    p: Floats
    R: Floats
    fps: float
    scale: float
    pieces: list[tuple[int, int]]


def transfer(clip: Clip, match: Match, scale: float | None = None) -> DesiredMotion:
    """Desired motion of the target, from the source alone."""
    source, target = match.source.rest, match.target.rest
    p, R = dynamics.forward_kinematics(clip.character, clip.frames)
    if scale is None:
        scale = size_ratio(match.source, match.target)
    pairs = {pair.target: pair for pair in match.pairs}
    aligned = alignments(match, R)
    out_p, out_R = (np.empty((len(clip), len(target.index), n)) for n in (3, 4))
    for i, link in enumerate(match.target.character.links):
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
            hips = p[:, 0] + _hips(match.source, R[:, 0])
            out_p[:, i] = scale * hips - _hips(match.target, out_R[:, i])
        else:
            offset = rotate(conjugate(target.R[above]), target.p[i] - target.p[above])
            out_p[:, i] = out_p[:, above] + rotate(out_R[:, above], offset)
    return DesiredMotion(out_p, out_R, clip.fps, scale, uncut_segments(clip))


def size_ratio(source: Body, target: Body) -> float:
    """Size of the target by that of the source: legs by legs, else height by height."""
    legs = source.leg_length(), target.leg_length()
    if legs[0] and legs[1]:
        return legs[1] / legs[0]
    return size_of(target.character) / max(size_of(source.character), 1e-9)


def _hips(body: Body, R: Floats) -> Floats:
    """From the root to the point between the hips [m], (k, 3), of root orientations R (k, 4)."""
    return rotate(multiply(R, conjugate(body.rest.R[0])), body.hips())


def alignments(match: Match, R: Floats) -> dict[str, Floats]:
    """Rotation (4,) that aligns each matched link of the target at rest with its source.

    Args:
        match: Which link moves which.
        R: Orientations of the source's links, shape (k, links, 4).
    """
    source, target = match.source, match.target
    whole = quat_from_matrix(source.frame @ target.frame.T)
    found = {}
    for pair in match.pairs:
        found[pair.target] = whole
        if pair.target in target.sole_links and pair.limb in ("leg", "arm"):
            if pair.source in source.sole_links:
                axes = source.sole_axes(pair.source) @ target.sole_axes(pair.target).T
                found[pair.target] = quat_from_matrix(axes)
            continue
        # a hand continues the forearm: what a rig calls its end may be a thumb
        by = (match.pair("arm", pair.side, "forearm") or pair) if pair.role == "hand" else pair
        ours, theirs = match.bones(by)
        turned = rotate(whole, ours)
        trunk = pair.limb not in ("arm", "leg", "tail")
        alike = trunk and float(turned @ theirs) > np.cos(BENT)
        if not (alike or pair.role == "pelvis") and ours.any() and theirs.any():
            found[pair.target] = multiply(rotation.between(turned, theirs), whole)
    for limb, side in target.links:
        if limb in ("arm", "leg"):
            roles = ("thigh", "shank") if limb == "leg" else ("arm", "forearm")
            upper, lower = (match.pair(limb, side, role) for role in roles)
            if upper is not None and lower is not None:
                _align_flexion(match, upper, lower, R, found)
    return found


def _align_flexion(
    match: Match, upper: Pair, lower: Pair, R: Floats, found: dict[str, Floats]
) -> None:
    """Turns upper and lower links about their bones so that their flexion axes agree, in place."""
    ours, theirs = flexion_axis(match.target, lower.target), _bend_axis(match, upper, lower, R)
    if ours is None or theirs is None:
        return
    axis, sign = ours
    for pair in (upper, lower):
        bone = match.bones(pair)[1]
        now = rotate(found[pair.target], axis)
        if not sign and float(now @ theirs) < 0.0:
            now = -now
        a, b = (x - (x @ bone) * bone for x in (now, theirs))
        if min(np.linalg.norm(a), np.linalg.norm(b)) > 0.3:
            angle = np.arctan2(np.cross(a, b) @ bone, a @ b)
            found[pair.target] = multiply(rotation.turn(bone, angle), found[pair.target])


def flexion_axis(body: Body, lower: str) -> tuple[Floats, bool] | None:
    """Axis on which a knee or elbow bends, in world axes at rest, and whether its sign is known."""
    link = body.character.link(lower)
    if len(link.joints) != 1:
        return None
    joint = link.joints[0]
    axis = rotate(body.rest.orientation(lower), np.array(joint.axis))
    if joint.kind == "hinge":
        middle = sum(joint.limits) if joint.limits else 0.0
        return (axis if middle >= 0.0 else -axis), abs(middle) > 1e-6
    if joint.kind == "ball" and joint.limits is not None and joint.limits[0] < 0.5:
        return (axis if sum(joint.limits[1:]) >= 0.0 else -axis), True
    return None


def _bend_axis(match: Match, upper: Pair, lower: Pair, R: Floats) -> Floats | None:
    """Axis about which a limb of the source bends, fixed in its upper link, at rest (3,)."""
    rest = match.source.rest
    i, j = (rest.index[pair.source] for pair in (upper, lower))
    from_rest = [multiply(R[:, x], conjugate(rest.R[x])) for x in (i, j)]
    a, b = (
        rotate(turn, match.bones(pair)[1])
        for turn, pair in zip(from_rest, (upper, lower), strict=True)
    )
    bends = rotate(conjugate(from_rest[0]), np.cross(a, b))
    total = bends.sum(axis=0)
    size = float(np.linalg.norm(total))
    if size < STRAIGHT * len(R) or size < 0.5 * float(np.linalg.norm(bends, axis=1).sum()):
        return None
    axis: Floats = total / size
    return axis
