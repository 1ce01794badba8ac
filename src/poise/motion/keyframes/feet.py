"""Standing feet of keyframes: every point of a sole that stands, on its foothold.

Three things keep the leg from jumping. Where only heel or toe stands, the other part comes down and
goes up smoothly. In the air, the correction is led from one foothold to the next. And a leg that
still jumps, since its joints are at their limits, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from poise import dynamics
from poise.anatomy.feet import positions
from poise.errors import ClipError
from poise.math import rotation
from poise.math.arrays import Floats, runs
from poise.model import configuration
from poise.model.character import Link, Vector
from poise.motion.authoring.spacetime import powers
from poise.motion.ik.goals import Place
from poise.motion.keyframes.stands import stances_of
from poise.motion.keyframes.targets import (
    FIRM,
    MISS,
    freedoms_of,
    limb_of,
    solved_by,
    tight_in,
    tip,
    unreachable,
)

if TYPE_CHECKING:
    from poise.motion.keyframes.keys import Keyframes, Stand

FASTEST = 12.0
"""Corrections of a standing limb that change faster are jumps [rad/s, m/s]."""

SOFT = 1e-4
"""Weight of a part of the foot that is up, as a fraction: joint limits are stiffer."""


def footed(keys: Keyframes, times: Floats, q: Floats) -> Floats:
    """Poses (k, nq) with every standing foot that has a foothold on it."""
    stands = [stand for stand in keys.stands if stand.foothold is not None]
    if not stands:
        return q
    character = keys.character
    goals: list[Place] = []
    asked: list[Stand] = []
    for stand in stands:
        for goal in _of_stand(keys, stand, times):
            goals.append(goal)
            asked.append(stand)
    feet = dict.fromkeys(stand.foot for stand in stands)
    free = {foot: limb_of(character, foot) for foot in feet}
    moving = [link for limb in free.values() for link in limb]
    solved, miss = solved_by(character, q, goals, moving)
    soft = [goal for foot in feet for goal in _rolling(keys, foot, times, solved)]
    if soft:
        solved, miss = solved_by(character, q, [*goals, *soft], moving, len(goals))
    worst = int(miss.max(axis=1).argmax())
    if miss[worst].max() > MISS:
        i, stand, goal = int(miss[worst].argmax()), asked[worst], goals[worst]
        target = tuple(np.asarray(goal.target)[i].tolist())
        raise unreachable(
            f"{keys.source}:{stand.foothold_line}: foothold of {stand.foot!r} at {times[i]:.3f} s",
            character, solved[i], goal.link, goal.point, target, float(miss[worst, i]),
        )  # fmt: skip
    step = configuration.difference(character, q, solved)
    for foot, limb in free.items():
        of = [s for s in stands if s.foot == foot]
        on = np.any([keys.standing(s, times).any(axis=1) for s in of], axis=0)
        v = [i for x in limb for i in freedoms_of(character, x)]
        _check_steady(keys, foot, limb, times, solved, step[:, v], on)
        step[:, v] = _bridged(step[:, v], on, keys.loop is not None)
    return configuration.integrate(character, q, step)


def _rolling(keys: Keyframes, foot: str, times: Floats, q: Floats) -> list[Place]:
    """Goals by which heel and toe, where one of them is up, come down and go up smoothly.

    Args:
        keys: The keyframes.
        foot: Name of the foot.
        times: Of the frames [s].
        q: Poses with the parts that are down in their places, shape (k, nq).
    """
    of = keys.points_of(foot)
    stands = [s for s in keys.stands if s.foot == foot and s.foothold is not None]
    if not any(stand.part for stand in stands):
        return []
    on = np.zeros((len(times), len(of)), dtype=bool)
    for stand in stands:
        part = [of.index(i) for i in keys.points_of(foot, stand.part)]
        down = np.asarray(keys.standing(stand, times).any(axis=1))
        on[:, part] |= down[:, None]
    share = _share(on, keys.loop is not None)
    at = positions(keys.character, [keys.points[i] for i in of], q)
    goals = []
    for stance in stances_of(stands):
        start, stop = min(s.start for s in stance), max(s.stop for s in stance)
        whole = _of_stand(keys, replace(stance[0], part="", start=start, stop=stop), times)
        for i, goal in enumerate(whole):
            flat = np.asarray(goal.target)
            target = flat + share[:, None] * (at[:, i] - flat)
            up = ~on[:, i] & (share < 1.0)
            goals.append(Place(goal.link, target, goal.point, np.asarray(goal.weight) * up * SOFT))
    return goals


def _share(on: NDArray[np.bool_], loop: bool) -> Floats:
    """How free a foot is (k,): 0 next to frames in which all of it stands, to 1 at the far end."""
    k = len(on)
    if loop:
        on = np.concatenate([on[:-1], on[:-1], on[:-1]])
    flat = np.asarray(on.all(axis=1))
    some = on.any(axis=1) & ~flat
    share = np.ones(len(on))
    for a, b in runs(some):
        way = np.arange(1, b - a + 1) / (b - a + 1)
        for edge, x in ((a - 1, way), (b, way[::-1])):
            if 0 <= edge < len(on) and flat[edge]:
                share[a:b] *= x * x * (3.0 - 2.0 * x)
    return share[k - 1 : 2 * k - 1] if loop else share


def _check_steady(
    keys: Keyframes,
    foot: str,
    limb: Sequence[Link],
    times: Floats,
    q: Floats,
    step: Floats,
    on: NDArray[np.bool_],
) -> None:
    """Refuse a limb that jumps from frame to frame to stay on its foothold."""
    both = on[1:] & on[:-1]
    turn = np.abs(np.diff(step, axis=0)).max(axis=1) * both
    if not both.any() or turn.max() < FASTEST * (times[1] - times[0]):
        return
    i = int(turn.argmax()) + int(tight_in(keys.character, q[turn.argmax() + 1], limb) != [])
    line = next(
        s.foothold_line
        for s in keys.stands
        if s.foot == foot and keys.standing(s, times[i : i + 1]).any()
    )
    names = ", ".join(tight_in(keys.character, q[i], limb)) or "none"
    raise ClipError(
        f"{keys.source}:{line}: foothold of {foot!r}: the limb jumps by "
        f"{np.degrees(turn.max()):.0f} degrees at {times[i]:.3f} s to stay on it; joints at their "
        f"limits: {names}. Let the heel or the foot go earlier, or move the root"
    )


def _of_stand(keys: Keyframes, stand: Stand, times: Floats) -> list[Place]:
    """Goals of a stand's points."""
    assert stand.foothold is not None
    character = keys.character
    on = keys.standing(stand, times)
    x, y, *yaw = stand.foothold
    spots: list[tuple[str, Vector, Floats]] = []
    if yaw:
        points = [keys.points[i] for i in keys.points_of(stand.foot, stand.part)]
        rest = positions(character, points, character.rest_q)
        whole = [keys.points[i] for i in keys.points_of(stand.foot)]
        ground = positions(character, whole, character.rest_q)[:, 2].min()
        index = [link.name for link in character.links].index(stand.foot)
        origin = dynamics.forward_kinematics(character, character.rest_q)[0][index]
        flat = rest - [origin[0], origin[1], ground]
        flat = rotation.rotate(rotation.turn((0.0, 0.0, 1.0), yaw[0]), flat) + [x, y, 0.0]
        spots = [(p.link, p.pos, spot) for p, spot in zip(points, flat, strict=True)]
    else:
        spots = [(stand.foot, tip(character, stand.foot), np.array([x, y, 0.0]))]
    goals = []
    for link, point, spot in spots:
        target = np.tile(spot, (len(times), 1))
        for cycle in (-1, 1):
            if keys.loop is not None and on[:, cycle + 1].any():
                shift, angle = powers(keys.loop, cycle)
                turn = rotation.turn((0.0, 0.0, 1.0), angle)
                target[on[:, cycle + 1]] = rotation.rotate(turn, spot) + shift
        goals.append(Place(link, target, point, FIRM * on.any(axis=1)))
    return goals


def _bridged(step: Floats, on: NDArray[np.bool_], loop: bool) -> Floats:
    """Steps (k, n), zero where not on, led smoothly from one stretch of on to the next."""
    k = len(step)
    if on.all():
        return step
    if loop:
        # the last frame is the first one
        at = np.flatnonzero(on[:-1])
        known = np.concatenate([at + cycle * (k - 1) for cycle in (-1, 0, 1)])
        values = np.tile(step[at], (3, 1))
    else:
        at = np.flatnonzero(on | (np.arange(k) == 0) | (np.arange(k) == k - 1))
        known, values = at, step[at]
    if len(known) < 2:
        return step
    out: Floats = step.copy()
    out[~on] = CubicSpline(known, values)(np.flatnonzero(~on))
    return out
