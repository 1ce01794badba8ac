"""Frames that ground forces at their own feet explain: all of them together, smooth in time.

Solved one by one, poses that meet a joint limit stop at once, and forces cannot follow. So all
frames move together (`authoring.spacetime`), in two stages:

1. Poses: standing points stay at their places, hands and swinging feet above the ground, joints
   within their limits, and the center of mass goes to its desired place. Where ankles are at their
   limits the trunk leans; where joints cannot bend deep enough the pose bends less.
2. Forces: the ground explains the motion, by forces inside the soles. It is left out where the
   ground does so already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint, positions, tip_of
from poise.math.arrays import Floats, Mask, Progress, runs
from poise.model.character import Character
from poise.motion.authoring import ground_forces, terms
from poise.motion.authoring.spacetime import Motion, Term, optimize
from poise.motion.clip import Clip
from poise.motion.foot_contact.planting import frames_from

RATE = 30.0
"""Frames per second that are moved; those between follow."""

UPDATES, POSES, FORCES = 3, 8, 45
"""Updates of the goal of the center of mass, and most iterations of each and of stage 2."""

SPACING = 2
"""Frames between the knots of the steps."""

KEEP, LEGS, FOOT, PATH, LEAN, STIFF = 0.6, 0.15, 0.08, 0.05, 0.6, 10.0
"""Weights of 0.1 rad or 10 cm off the clip: of joints, of those of legs, of the last before a foot,
of the root's path and lean; and by how much more a knee counts across its axis."""

HARDLY = 0.3
"""A ball that swings less is all but a hinge [rad]."""

STAND, SWING, ABOVE, LIMITS, CENTER = 10.0, 1.0, 5.0, 30.0, 1.0
"""Weights of a centimetre of a standing and of a swinging point, and below the ground; of 0.1 rad
beyond a limit; of a centimetre of the center of mass."""

JERK, PULL, TORQUE = (1.0, 0.3), 1.0, 0.05
"""Weights of 1000 rad/s³ in the two stages, of a percent of body weight unexplained, and of joint
torques as `authoring.terms.ground` has them."""

INSIDE = 0.04
"""How far inside of the soles the ground pushes, at most half their size [m]."""

CLEAR, SWINGS, RISE = 0.03, 0.05, 0.2
"""Heights of hands and of feet that do not stand [m], and the time in which a foot rises [s]."""

REST, SLOWLY = 5.0, 0.5
"""Weight of 1 rad/s or 1 m/s at an end of the clip that moves less than this on the average."""

UNEXPLAINED, FRICTION = 0.05, 0.6
"""Parts of body weight that the ground may leave unexplained, and the friction it counts on."""

Goal = Callable[[Floats, float], tuple[Floats, Mask]]
"""Desired center of mass of frames (k, nq) at a rate [m], (k, 2), and when it counts, (k,)."""


class FootTargets(NamedTuple):
    """Desired places of sole points.

    Attributes:
        points: The points.
        on: Which stand, shape (k, points).
        at: Their places [m], shape (k, points, 3).
        least: Heights of those that do not stand [m], -inf of others, shape (k, points).
    """

    points: tuple[ContactPoint, ...]
    on: Mask
    at: Floats
    least: Floats


def make_consistent(
    clip: Clip, contacts: ContactSchedule, goal: Goal, progress: Progress
) -> tuple[Floats, float]:
    """Makes frames (k, nq) that ground forces explain; returns them and the unexplained fraction.

    Frames that the ground explains worse afterwards are returned unchanged: a motion in flight or
    upside down cannot be balanced. The fraction is of body weight.

    Args:
        clip: The motion.
        contacts: When its feet stand.
        goal: The desired center of mass.
        progress: Called with the finished fraction, 0 to 1.
    """
    count = max(round(clip.duration * RATE), 3) + 1 if clip.fps > RATE else len(clip)
    time = np.linspace(0.0, clip.duration, count)
    start, fps = clip.q(time), (count - 1) / clip.duration
    on = np.asarray(contacts.on)[np.rint(time * clip.fps).astype(int)]
    character = clip.character
    stand = FootTargets(
        contacts.points,
        on,
        _foot_places(character, contacts.points, on, start),
        _least_heights(on, fps),
    )
    keep = keep_weights(character, contacts)
    motion = Motion(character, start, fps)
    ends = terms.at_rest(_resting_ends(motion), weight=REST)
    for i in range(UPDATES):
        desired, required = goal(motion.q, fps)
        over = _com_term(desired, required)
        pose_terms = _pose_terms(character, stand, start, keep)
        motion = optimize(
            motion,
            [*pose_terms, over, ends, terms.smooth(JERK[0])],
            spacing=SPACING,
            iterations=POSES,
        )
        progress(0.4 * (i + 1) / UPDATES)
    inner = inner_points(stand.points)
    left = _unexplained(motion, inner, on)
    if left > UNEXPLAINED:
        pull = terms.ground(inner, on, weight=PULL, torque=TORQUE, friction=FRICTION)
        pose_terms = _pose_terms(character, stand, motion.q, keep)
        motion = optimize(
            motion,
            [*pose_terms, pull, ends, terms.smooth(JERK[1])],
            spacing=SPACING,
            iterations=FORCES,
            watch=lambda k, cost: progress(0.4 + 0.6 * (k + 1) / FORCES),
        )
        left = _unexplained(motion, inner, on)
    progress(1.0)
    before = _unexplained(Motion(character, start, fps), inner, on)
    if left > max(before, UNEXPLAINED):
        return clip.frames, before
    return Clip(character, motion.q, fps).q(np.arange(len(clip)) / clip.fps), left


def keep_weights(character: Character, contacts: ContactSchedule) -> Floats:
    """Weights of velocities that lead away from the clip, shape (nv,)."""
    weights = np.full(character.nv, KEEP)
    parents = {link.name: link.parent for link in character.links}
    legs: dict[str, float] = {}
    for foot in contacts.feet:
        link: str | None = foot
        while link is not None and parents[link] is not None:
            legs[link] = FOOT if link == foot else LEGS
            link = parents[link]
    for each in character.links:
        for joint in each.joints:
            at = character.v_slice(joint)
            if joint.kind == "free":
                weights[at] = [PATH] * 3 + [LEAN] * 3
                continue
            weights[at] = legs.get(each.name, KEEP)
            if joint.kind == "ball" and joint.limits is not None and joint.limits[0] < HARDLY:
                # a knee bends about one axis
                weights[at] *= np.where(np.abs(joint.axis) > 0.5, 1.0, STIFF)
    return weights


def inner_points(points: Sequence[ContactPoint]) -> tuple[ContactPoint, ...]:
    """The points moved inwards, where ground forces may act."""
    out = list(points)
    for link in dict.fromkeys(point.link for point in points):
        mine = [i for i, point in enumerate(points) if point.link == link]
        middle = np.mean([points[i].pos for i in mine], axis=0)
        for i in mine:
            away = np.array(points[i].pos) - middle
            by = np.sign(away) * np.minimum(INSIDE, 0.5 * np.abs(away))
            x, y, z = (np.array(points[i].pos) - by).tolist()
            out[i] = points[i]._replace(pos=(x, y, z))
    return tuple(out)


def _foot_places(
    character: Character, points: Sequence[ContactPoint], on: Mask, q: Floats
) -> Floats:
    """Desired places of points (k, points, 3): on the ground where they stand, else as they are."""
    at = positions(character, points, q)
    for i in range(len(points)):
        for a, b in runs(on[:, i]):
            at[a:b, i] = at[a:b, i].mean(axis=0)
            at[a:b, i, 2] = 0.0
    return at


def _least_heights(on: Mask, fps: float) -> Floats:
    """How high points must be that do not stand: the higher, the longer before and after, -inf of
    those that do, shape (k, points)."""
    away = frames_from(on) - 1.0
    return np.where(on, -np.inf, SWINGS * np.minimum(away / (RISE * fps), 1.0))


def _pose_terms(
    character: Character, stand: FootTargets, sketch: Floats, keep: Floats
) -> list[Term]:
    """Terms of the poses in all stages."""
    weights = np.where(stand.on, STAND, SWING)[..., None] * np.ones(3)
    required = [
        terms.standing(stand.points, stand.at, weights),
        terms.above(stand.points, stand.least, weight=ABOVE),
        terms.near(sketch, keep),
        terms.limits(weight=LIMITS),
    ]
    hands = _hands(character, stand)
    if hands:
        least = np.full((len(sketch), len(hands)), CLEAR)
        required.append(terms.above(hands, least, weight=ABOVE))
    return required


def _hands(character: Character, stand: FootTargets) -> tuple[ContactPoint, ...]:
    """Outer ends of the body that never stand."""
    parents = {link.parent for link in character.links}
    known = {point.link for point in stand.points} | {point.foot for point in stand.points}
    ends = [link for link in character.links if link.name not in parents | known]
    return tuple(p for link in ends if link.shapes for p in tip_of(character, link.name))


def _resting_ends(motion: Motion) -> list[int]:
    """Those of the first and the last frame that hardly move: they come to rest, so that it can be
    held before and after."""
    speed = np.sqrt(np.mean(motion.v**2, axis=1))
    return [i for i in (0, len(speed) - 1) if speed[i] < SLOWLY]


def _com_term(desired: Floats, required: Mask) -> Term:
    """The center of mass at its desired place, in the horizontal plane."""
    weights = np.zeros((len(desired), 3))
    weights[required, :2] = CENTER
    return terms.center_over(np.column_stack([desired, np.zeros(len(desired))]), weights)


def _unexplained(motion: Motion, points: Sequence[ContactPoint], on: Mask) -> float:
    """What the ground does not explain of a motion, at worst, in parts of body weight."""
    found = ground_forces.find_ground_forces(
        motion.character, motion.q, motion.v, motion.a, points, on, friction=FRICTION
    )
    return float(np.linalg.norm(found.residual, axis=1).max())
