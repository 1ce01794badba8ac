"""Inverse kinematics of keyframes: limbs to their targets.

Only the limb of a link moves; root and trunk stay as they are keyed. Feet: `contacts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poise import dynamics
from poise.anatomy.feet import ContactPoint, positions, tip_middle
from poise.anatomy.rest_pose import rest_pose
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats, Mask
from poise.model import configuration
from poise.model.character import Character, Link
from poise.motion import ik, limits
from poise.motion.ik.goals import Place

if TYPE_CHECKING:
    from poise.motion.keyframes.keys import Keyframes, Track

TOLERANCE = 0.002
"""A target with a larger residual is out of reach [m]."""

NEAR = np.radians(0.5)
"""A joint this close to its limit is at it [rad]."""

CLOSE = 1e-6
"""A target that is met so closely needs no further round [m]."""

WEIGHT = 1e5
"""Weight of a target [1/m^2]; that of a step of the limb is 1e-3, of all else as good as fixed."""


def meet_reaches(keys: Keyframes, times: Floats, q: Floats) -> Mapping[str, Track]:
    """The joints' tracks with keys where the limbs reach their targets.

    Args:
        keys: The keyframes.
        times: All times of reaches [s], shape (k,).
        q: Poses at these times, shape (k, nq).
    """
    from poise.motion.keyframes.keys import Track

    character = keys.character
    goals: list[Place] = []
    moving: dict[str, Mask] = {}
    for reach in keys.reaches:
        at = np.isclose(times, reach.time, atol=1e-9)
        target = np.tile(np.array(reach.target), (len(times), 1))
        goals.append(Place(reach.link, target, tip_middle(character, reach.link), WEIGHT * at))
        for link in limb_of(character, reach.link):
            moving.setdefault(link.name, np.zeros(len(times), dtype=bool))[at] = True
    free = [character.link(name) for name in moving]
    q, residual = solve_limbs(character, q, goals, free)
    for reach, goal, far in zip(keys.reaches, goals, residual.max(axis=1), strict=True):
        if far > TOLERANCE:
            i = int(np.abs(times - reach.time).argmin())
            where = f"{keys.source}:{reach.line}: reach of {reach.link!r} at {reach.time:g} s"
            raise unreachable_error(where, character, q[i], goal, i, far)
    out = dict(keys.joints)
    for link in free:
        at = moving[link.name]
        lines = tuple(
            next(reach.line for reach in keys.reaches if abs(reach.time - t) < 1e-9)
            for t in times[at]
        )
        for joint in link.joints:
            new = Track(times[at], q[at, character.q_slice(joint)], np.ones(len(lines)), lines)
            old = out.get(joint.name)
            out[joint.name] = old.with_keys(new) if old else new
    return out


def joints_at_limit(character: Character, q: Floats, limb: Sequence[Link]) -> list[str]:
    """Joints of a limb that are at their limit in a pose (nq,)."""
    ours = {joint.name for link in limb for joint in link.joints}
    # a hinge made of a ball never swings
    over = [x for x in limits.excesses(character, q[None]) if x.what != "swing"]
    return list(dict.fromkeys(x.joint for x in over if x.joint in ours and x.value[0] > -NEAR))


def limb_of(character: Character, name: str) -> list[Link]:
    """The links that move to bring a link somewhere, outermost last: its limb down to it."""
    above = reversed(rest_pose(character).ancestors(name))
    chain = [character.link(link) for link in (*above, name)]
    limbs = [set(limb) for limb in character.limbs.values() if name in limb]
    if limbs:
        smallest = min(limbs, key=len)
        chain = [link for link in chain if link.name in smallest]
    else:
        parents = [link.parent for link in character.links]
        forks = [i for i, link in enumerate(chain[:-1]) if parents.count(link.name) > 1]
        chain = chain[forks[-1] + 1 if forks else 0 :]
    return [link for link in chain if all(joint.kind != "free" for joint in link.joints)]


def solve_limbs(
    character: Character,
    q: Floats,
    goals: Sequence[Place],
    free: Sequence[Link],
    required: int | None = None,
) -> tuple[Floats, Floats]:
    """Poses that meet the goals by moving the free links alone; residuals (goals, k) [m].

    Only the first `required` goals must be met and have residuals; all unless given.
    """
    required = len(goals) if required is None else required
    posture = np.full(character.nv, 1e9)
    posture[[i for link in free for i in dofs_of_link(character, link)]] = 1e-3
    fixed = np.ones(character.nq, dtype=bool)
    for joint in (joint for link in free for joint in link.joints):
        fixed[character.q_slice(joint)] = False
    best: tuple[Floats, Floats] | None = None
    # a stretched limb may be pushed against its stops: then all frames start again, bent
    for start in (q, _bend(character, q, free)):
        out, residual, open_ = start.copy(), np.empty((required, len(q))), np.arange(len(q))
        for _ in range(3):
            # again from where it came to, so that the posture does not pull
            selected = [_at(goal, open_) for goal in goals]
            new, _ = ik.solve(
                character, out[open_], selected, posture=posture, iterations=60, tolerance=1e-9
            )
            # ik cuts all joints to their limits; those that are not ours stay as keyed
            new[:, fixed] = q[open_][:, fixed]
            out[open_], residual[:, open_] = new, _residuals(character, selected[:required], new)
            open_ = np.flatnonzero(residual.max(axis=0) > CLOSE)
            if not len(open_):
                break
        if best is None or residual.max() < best[1].max():
            best = out, residual
        if residual.max() < TOLERANCE:
            break
    assert best is not None
    return best


def _at(goal: Place, frames: NDArray[np.int64]) -> Place:
    """A goal in some of its frames."""
    target, weight = np.asarray(goal.target)[frames], np.asarray(goal.weight)[frames]
    return Place(goal.link, target, goal.point, weight)


def _residuals(character: Character, goals: Sequence[Place], q: Floats) -> Floats:
    """Distances from the goals (goals, k) [m], 0 where their weight is 0."""
    at = positions(character, [ContactPoint(x.link, x.link, x.point) for x in goals], q)
    off = np.array([x.target for x in goals]) - at.transpose(1, 0, 2)
    on = np.array([x.weight for x in goals]) > 0.0
    return np.asarray(np.linalg.norm(off, axis=2) * on)


def _bend(character: Character, q: Floats, free: Sequence[Link]) -> Floats:
    """Poses with the joints that bend one way, as knees and elbows, bent by up to 30 degrees."""
    step = np.zeros((len(q), character.nv))
    for joint in (joint for link in free for joint in link.joints):
        if joint.limits is None:
            continue
        at, v = q[:, character.q_slice(joint)], character.v_slice(joint)
        low, high = joint.limits[-2:]
        if max(low, -high) < -np.radians(15.0):
            continue
        axis = np.array(joint.axis) if joint.kind == "ball" else np.ones(1)
        now = limits.swing_twist(at, axis)[1] if joint.kind == "ball" else at[:, 0]
        toward = np.clip((low + high) / 2.0 - now, -np.radians(30.0), np.radians(30.0))
        step[:, v] = toward[:, None] * axis
    return configuration.integrate(character, q, step)


def dofs_of_link(character: Character, link: Link) -> list[int]:
    slices = [character.v_slice(joint) for joint in link.joints]
    return [i for v in slices for i in range(v.start, v.stop)]


def unreachable_error(
    at: str, character: Character, q: Floats, goal: Place, frame: int, residual: float
) -> ClipError:
    """An error with the residual of a goal in a frame, of pose q (nq,), and its limb's reach."""
    chain = limb_of(character, goal.link)
    p, R = dynamics.forward_kinematics(character, q)
    index = rest_pose(character).index
    joints = [(index[link.name], joint) for link in chain for joint in link.joints]
    fixed = [(i, joint.pos) for i, joint in joints] + [(index[goal.link], goal.point)]
    spots = np.array([p[i] + rotation.rotate(R[i], np.array(point)) for i, point in fixed])
    # of the stretched limb
    length = float(np.linalg.norm(np.diff(spots, axis=0), axis=1).sum())
    far = float(np.linalg.norm(np.asarray(goal.target)[frame] - spots[0]))
    first = joints[0][1].name if joints else "nothing"
    text = (
        f"{at} is off by {1000 * residual:.0f} mm: it lies {far:.3f} m from joint {first!r}, "
        f"and the largest reach is {length:.3f} m"
    )
    if far > length:
        return ClipError(text)
    tight = joints_at_limit(character, q, chain)
    names = f": at its limit: {', '.join(tight)}" if tight else ""
    return ClipError(f"{text}; the joints do not bend so{names}")
