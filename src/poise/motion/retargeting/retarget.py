"""Retargets any clip to any character: match, transfer, planted feet, inverse kinematics.

`retarget` computes the desired motion of the target (`transfer`), detects on the source when its
feet stand, plants the target's feet and hands on the ground for each standing (`feet`,
`foot_contact.planting`), and solves for its joints (`ik`): limbs point as the source's do, the hips
follow its path, and feet are at their places. Finally corrections of single frames are smoothed in
time (`smooth_corrections`). Weights are of squared radians and metres: a standing foot may be off
by a tenth of a millimetre for a degree of a limb, the hips by a centimetre for ten degrees.

`on_rig` puts a motion on the rig of a file: same joints, offsets and order, so both overlay.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from poise import dynamics
from poise.anatomy.body import SIDES, Body
from poise.anatomy.feet import has_free_root
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats, Progress
from poise.math.filtering import lowpass
from poise.math.rotation import conjugate, multiply, rotate
from poise.model import configuration
from poise.model.character import Character, Link
from poise.model.geometry import swept_points
from poise.motion import ik, load_clip
from poise.motion.clip import Clip
from poise.motion.foot_contact.planting import closeness, pitch_of, spread_in_time
from poise.motion.retargeting.feet import (
    StandingFoot,
    level_soles,
    limit_ankles,
    match_feet,
    match_hands,
    shift_to_ground,
    target_schedule,
)
from poise.motion.retargeting.matching import MapLike, Match, match
from poise.motion.retargeting.transfer import DesiredMotion, transfer

STAND, SWING = 3e4, 1e3
"""Weights of a foot's points while it stands and while it swings [1/m^2], of all its points."""

LOOSE = 1.0
"""Weight of a hand's points while it does not stand [1/m^2]: directions of its arm outweigh it."""

HIPS = 300.0
"""Weight of the hips' path [1/m^2]."""

RAMP = 0.1
"""Time in which the weight of a foot rises before it stands [s]."""

TURNS = {"pelvis": 5.0, "trunk": 0.7, "neck": 0.3, "head": 0.7, "hand": 0.3, "toe": 0.3}
"""Weights of a link's whole orientation [1/rad^2]."""

SPIN = 0.1
"""Weight of the turn of a limb about its bone [1/rad^2]; knees and elbows that bend outweigh it."""

SOFT = 0.3
"""Weight of joint limits [1/rad^2]: people go beyond what tables say, and feet come first."""

FIRST = 0.6
"""Fraction of the work that is done when each frame is solved by itself."""

BACKWARD = 1.5
"""A foot that reaches this much farther behind its joint than before it points backward."""


@dataclass(frozen=True, eq=False)
class Retargeted:
    """A retargeted clip with what was found on the way.

    Attributes:
        clip: The clip.
        match: Which link moved which.
        report: What the inverse kinematics left over.
        scale: Size of the target by that of the source.
    """

    clip: Clip
    match: Match
    report: ik.Report
    scale: float


def retarget(
    clip: Clip,
    character: Character,
    *,
    map: MapLike = None,
    scale: float | None = None,
    level_feet: bool = False,
    keep_feet: bool | None = None,
    limits: bool | float = SOFT,
    progress: Progress | None = None,
) -> Retargeted:
    """Give a clip's motion to another character.

    Args:
        clip: The motion.
        character: The character that gets the motion.
        map: Which link moves which, where names and shape are not enough: see `matching`.
        scale: Size of the target by that of the source; None takes it from the legs.
        level_feet: Make feet that stand flat, heel and toes on the ground.
        keep_feet: Keep standing feet in their place, and hands that the clip's own contacts say
            stand. None does if both have them, and warns if not; True raises ClipError then.
        limits: Weight of what is beyond the joints' limits [1/rad^2]; True keeps them, also where
            the source goes beyond, at the expense of all but the feet.
        progress: Called with the finished fraction, 0 to 1.
    """
    if not isinstance(character, Character):
        raise ClipError(
            f"a clip is retargeted to a Character, got {character!r:.80}; see load_character"
        )
    if scale is not None and not (np.isfinite(scale) and scale > 0.0):
        raise ClipError(f"scale must be a positive number, got {scale!r:.40}")
    found = match(clip.character, character, map)
    _check_sides(found.source)
    _check_sides(found.target)
    if map is None:
        _check_stance(found)
    desired = transfer(clip, found, scale)
    feet: list[StandingFoot] = []
    if keep_feet is not False:
        feet = match_feet(clip, found, desired, level_feet, bool(keep_feet))
    if feet:
        feet += match_hands(clip, found, desired, feet, bool(keep_feet))
        level_soles(feet, desired)
        shift_to_ground(feet, desired)
        desired = limit_ankles(found.target, feet, desired, pose_of(character, desired))
    start = pose_of(character, desired)
    body_goals = _body_goals(character, found, desired)
    first_goals = _first_goals(character, feet, start, desired)
    report_progress = progress or (lambda fraction: None)
    q, first = ik.solve(
        character,
        bend_elbows(found.target, start, first_goals, clip.fps),
        body_goals + first_goals,
        limits=limits,
        posture=1e-3,
        iterations=16,
        tolerance=1e-3,
        near=True,
        progress=lambda done: report_progress(FIRST * done),
    )
    q = smooth_corrections(
        found.target,
        start,
        q,
        first_goals,
        clip.fps,
        pieces=desired.pieces,
        limits=limits is True,
        progress=lambda done: report_progress(FIRST + (1.0 - FIRST) * done),
    )
    _, report = ik.solve(character, q, body_goals + first_goals, limits=False, iterations=0)
    report = replace(report, iterations=first.iterations)
    contacts = target_schedule(feet, found.target, desired)
    made = clip.replace(character=character, q=q, source=None, contacts=contacts)
    return Retargeted(made, found, report, desired.scale)


def _check_stance(found: Match) -> None:
    """Refuses to put a two-legged motion on four legs, or the other way round."""
    bodies = (found.target, found.source)
    four = [body.kind == "quadruped" for body in bodies]
    if four[0] != four[1]:
        names = [body.character.name for body in bodies]
        one, other = names if four[0] else names[::-1]
        raise ClipError(
            f"{one!r} stands on four legs and {other!r} does not; a map can say what follows what; "
            f"{found.in_line()}"
        )


def _check_sides(body: Body) -> None:
    """Refuse a body whose toes point backward as its names of left and right have it."""
    rest, backward = body.rest, []
    for side in SIDES:
        for foot in body.get("leg", side, "foot")[:1]:
            links = rest.subtree(foot)
            outline = [*map(rest.world_surface, links), *(rest.position(x)[None] for x in links)]
            ahead = (np.concatenate(outline) - rest.position(foot)) @ body.frame[:, 0]
            backward.append(-ahead.min() > BACKWARD * max(ahead.max(), 0.0) + 0.02)
    if len(backward) == 2 and all(backward):
        names = [body.chain("leg", side)[0] for side in SIDES]
        raise ClipError(
            f"character {body.character.name!r}: its feet point backward if {names[0]!r} is on the "
            f"left and {names[1]!r} on the right; are the names of left and right swapped?"
        )


# goals


def _body_goals(character: Character, found: Match, desired: DesiredMotion) -> list[ik.Goal]:
    """Directions of limbs, orientations of the rest, the path of the hips."""
    body, rest = found.target, found.target.rest
    root = character.links[0].name
    hips = rotate(conjugate(rest.R[0]), body.hips())
    path = desired.p[:, 0] + rotate(desired.R[:, 0], hips)
    goals: list[ik.Goal] = [ik.Place(root, path, tuple(hips.tolist()), HIPS, name="hips")]
    for pair in found.pairs:
        i = rest.index[pair.target]
        if not character.links[i].joints:
            continue
        if pair.role in TURNS or not pair.role:
            weight = TURNS.get(pair.role, 0.5)
            goals.append(ik.Turn(pair.target, desired.R[:, i], weight))
            continue
        bone = found.bones(pair)[0]
        if pair.target in body.sole_links or not bone.any():
            goals.append(ik.Turn(pair.target, desired.R[:, i], 0.1))
            continue
        along = rotate(conjugate(rest.R[i]), bone)
        goals.append(ik.Aim(pair.target, tuple(along), rotate(desired.R[:, i], along), 1.0))
        goals.append(ik.Turn(pair.target, desired.R[:, i], SPIN))
    return goals


def _first_goals(
    character: Character, feet: list[StandingFoot], start: Floats, desired: DesiredMotion
) -> list[ik.Goal]:
    """Goals that come first: feet and hands where they stand, and nothing in the ground."""
    if not feet:
        return []
    own = [foot for foot in feet if not foot.tip]
    soles = {name for foot in own for name in (foot.name, *(toe for toe, _ in foot.toes))}
    goals = [goal for foot in feet for goal in _foot_goals(foot, desired)]
    return goals + clearance_goals(character, start, soles)


def _foot_goals(foot: StandingFoot, desired: DesiredMotion) -> list[ik.Goal]:
    """Places of the points of a sole."""
    p, R = foot.plant(desired)
    close = closeness(foot.stands, RAMP * desired.fps)
    swing = LOOSE if foot.tip else SWING
    weight = swing * (STAND / swing) ** close / len(foot.sole.local)
    goals: list[ik.Goal] = [
        ik.Place(foot.name, p + rotate(R, local), tuple(local.tolist()), weight, name=foot.name)
        for local in foot.sole.local
    ]
    # toes stay level when the heel rises
    bend = -close * np.maximum(pitch_of(foot.sole, foot.turns(desired)), 0.0)
    D = multiply(foot.sole.turns(R), rotation.turn(foot.sole.left, bend))
    return goals + [ik.Turn(name, multiply(D, flat), 30.0 * close) for name, flat in foot.toes]


# poses


def pose_of(character: Character, desired: DesiredMotion) -> Floats:
    """Poses (k, nq) whose links are turned as desired, as far as each joint by itself can."""
    k = len(desired.p)
    q = np.tile(character.rest_q, (k, 1))
    now: dict[str | None, Floats] = {None: np.tile([1.0, 0.0, 0.0, 0.0], (k, 1))}
    for i, link in enumerate(character.links):
        base = multiply(now[link.parent], link.quat)
        R = multiply(conjugate(base), desired.R[:, i])
        if link.joints and link.joints[0].kind == "free":
            at = character.q_slice(link.joints[0])
            q[:, at] = np.concatenate([desired.p[:, i], desired.R[:, i]], axis=1)
            now[link.name] = desired.R[:, i]
            continue
        turned = multiply(base, _turn_joints(character, link, R, q))
        # base conj(base) R is |base|^2 R: along a chain the length's rounding error doubles by link
        now[link.name] = turned / np.linalg.norm(turned, axis=-1, keepdims=True)
    return q


def _turn_joints(character: Character, link: Link, R: Floats, q: Floats) -> Floats:
    """Set a link's joints so that it turns by R as near as can be; returns how it is turned."""
    done = np.tile([1.0, 0.0, 0.0, 0.0], (len(q), 1))
    for joint in link.joints:
        left = multiply(conjugate(done), R)
        at = character.q_slice(joint)
        if joint.kind == "ball":
            q[:, at] = left
            done = multiply(done, left)
        elif joint.kind == "hinge":
            axis = np.array(joint.axis)
            angle = np.unwrap(2.0 * np.arctan2(left[:, 1:] @ axis, left[:, 0]))
            if joint.limits is not None:
                middle = (joint.limits[0] + joint.limits[1]) / 2.0
                angle -= 2.0 * np.pi * np.round((np.median(angle) - middle) / (2.0 * np.pi))
            q[:, at] = angle[:, None]
            done = multiply(done, rotation.turn(axis, angle))
    return done


# rig of a file


def on_rig(
    clip: Clip,
    like: Clip | str | os.PathLike[str],
    *,
    map: MapLike = None,
    progress: Progress | None = None,
) -> Clip:
    """A clip as a motion of another one's rig; saved, it has that rig's joints.

    Args:
        clip: The motion.
        like: A clip that has the rig, or the file it is in.
        map: Which link moves which: see `matching`.
        progress: Called with the finished fraction, 0 to 1.
    """
    if not isinstance(like, Clip):
        like = load_clip(like)
    if not clip.character.same_body(like.character):
        clip = retarget(clip, like.character, map=map, progress=progress).clip
    return clip.replace(character=like.character, source=like.source)


# smoothing in time, and clearance from the ground
#
# Inverse kinematics that solves frames one by one jerks where a foot comes down, a knee is
# stretched or a limit begins to push. Its corrections are therefore low-pass filtered, and feet are
# brought back to their places from there, which takes little. Links other than feet that would go
# into the ground are kept above it.

SLOW = 8.0
"""Corrections that change faster than this go [Hz]."""

LARGEST = 2.5
"""Corrections that turn a joint farther are left as they are [rad]."""

KEEP, KEEP_PATH, KEEP_HEADING = 1.0, 100.0, 10.0
"""Weights of keeping joints [1/rad^2], the root's place [1/m^2] and its turn [1/rad^2]."""

GROUND = 3e4
"""Weight of a point that would be in the ground [1/m^2]."""

EARLY = 0.03
"""Time before and after in which an arm that would go into the ground is bent [s]."""

CLOSE = 0.01
"""A link that comes as near to the ground is watched [m]."""


def smooth_corrections(
    body: Body,
    start: Floats,
    q: Floats,
    goals: Sequence[ik.Goal],
    fps: float,
    *,
    pieces: Sequence[tuple[int, int]],
    limits: bool,
    progress: Progress,
) -> Floats:
    """Poses (k, nq) that were made from a start to meet goals, without jerks.

    Args:
        body: The character's body.
        start: Smooth poses, shape (k, nq).
        q: Poses made from them, shape (k, nq).
        goals: What must be met all the same.
        fps: Frames per second.
        pieces: Stretches of frames without a cut: first, and after the last.
        limits: Keep joint limits.
        progress: Called with the finished fraction, 0 to 1.
    """
    character = body.character
    keep = np.full(character.nv, KEEP)
    if has_free_root(character):
        keep[:3], keep[3:6] = KEEP_PATH, KEEP_HEADING
    slow = min(SLOW, 0.4 * fps)
    # hands that meet the ground jerk once more
    rounds = 2 if any(isinstance(goal, ik.Above) for goal in goals) else 1
    for done in range(rounds):
        change = configuration.difference(character, q, start)
        for a, b in pieces:
            # a turn of about half a circle has no direction to smooth
            calm = (np.abs(change[a:b]) < LARGEST).all(axis=0)
            if b - a > 3:
                change[a:b, calm] = lowpass(change[a:b, calm], slow, fps)
        q, _ = ik.solve(
            character,
            bend_elbows(body, configuration.integrate(character, start, change), goals, fps),
            goals,
            limits=limits,
            posture=keep,
            iterations=12,
            tolerance=1e-3,
            near=True,
            progress=partial(_report_round, progress, done, rounds),
        )
    return q


def _report_round(progress: Progress, done: int, rounds: int, part: float) -> None:
    """Reports the progress of one of several rounds."""
    progress((done + part) / rounds)


def clearance_goals(character: Character, q: Floats, without: Collection[str]) -> list[ik.Goal]:
    """Goals that keep links above the ground, of those that come near it in poses q (k, nq).

    Args:
        character: The character.
        q: The poses.
        without: Links that are looked after.
    """
    p, R = dynamics.forward_kinematics(character, q)
    goals: list[ik.Goal] = []
    for i, link in enumerate(character.links):
        if link.name in without:
            continue
        for shape in link.shapes:
            points, radius = swept_points(shape)
            z = p[:, i, None, 2] + rotate(R[:, i, None], points)[..., 2] - radius
            goals += [
                ik.Above(link.name, (radius,), tuple(point.tolist()), GROUND, f"{link.name} above")
                for point, low in zip(points, z.min(axis=0), strict=True)
                if low < CLOSE
            ]
    return goals


def bend_elbows(body: Body, q: Floats, goals: Sequence[ik.Goal], fps: float) -> Floats:
    """Poses with elbows bent where a hand would be in the ground, and shortly before and after.

    A straight arm does not know which way to bend, and its elbow would break as well as bend.

    Args:
        body: The character's body.
        q: Its poses, shape (k, nq).
        goals: Those of `clearance_goals`; others do not count.
        fps: Frames per second.
    """
    watched = [goal for goal in goals if isinstance(goal, ik.Above)]
    if not watched:
        return q
    q = q.copy()
    where = body.rest.index
    p, R = dynamics.forward_kinematics(body.character, q)
    for side in SIDES:
        arm, lower = (body.get("arm", side, role) for role in ("arm", "forearm"))
        if not (arm and lower):
            continue
        shoulder, elbow = (p[:, where[names[0]]] for names in (arm, lower))
        bend = np.zeros(len(q))
        for goal in (x for x in watched if body.limb_of(x.link) == ("arm", side)):
            i = where[goal.link]
            tip = p[:, i] + rotate(R[:, i], np.array(goal.point))
            depth = np.maximum(np.asarray(goal.target)[0] - tip[:, 2], 0.0)
            bend = np.maximum(bend, _shortening(shoulder, elbow, tip, depth))
        if bend.any():
            _bend(body.character, lower[0], spread_in_time(bend, EARLY * fps), q)
    return q


def _shortening(shoulder: Floats, elbow: Floats, tip: Floats, by: Floats) -> Floats:
    """By how much more an elbow bends so that the arm is shorter (k,) [rad].

    That of an arm of two like halves.
    """
    both = np.linalg.norm(elbow - shoulder, axis=1) + np.linalg.norm(tip - elbow, axis=1)
    far = np.linalg.norm(tip - shoulder, axis=1)
    now, then = (2.0 * np.arccos(np.clip(x / both, 0.3, 1.0)) for x in (far, far - by))
    more: Floats = np.maximum(then - now, 0.0)
    return more


def _bend(character: Character, name: str, angle: Floats, q: Floats) -> None:
    """Bend the one joint of a link by angles (k,) [rad], as its limits say it bends, in place."""
    joints = character.link(name).joints
    joint = joints[0] if joints else None
    if joint is None or len(joints) > 1 or joint.limits is None:
        return
    at = character.q_slice(joint)
    angle = angle * (1.0 if sum(joint.limits[-2:]) >= 0.0 else -1.0)
    if joint.kind == "hinge":
        q[:, at] += angle[:, None]
    elif joint.kind == "ball":
        q[:, at] = multiply(q[:, at], rotation.turn(np.array(joint.axis), angle))
