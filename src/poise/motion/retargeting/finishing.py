"""What is left to do once each frame is solved by itself: calm in time, and out of the ground.

Inverse kinematics that solves frames one by one jerks where a foot comes down, a knee is stretched
or a limit begins to push. What it changed is therefore freed of what is fast, and feet are brought
back to their places from there, which takes little. Links other than feet that would go into the
ground are kept above it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np

from poise import dynamics
from poise.anatomy.body import SIDES, Body
from poise.anatomy.feet import has_free_root
from poise.math import rotation
from poise.math.arrays import Floats, Progress
from poise.math.filtering import lowpass
from poise.math.rotation import multiply, rotate
from poise.model import configuration
from poise.model.character import Character
from poise.model.geometry import swept_points
from poise.motion import ik
from poise.motion.foot_contact.planting import spread_in_time

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
