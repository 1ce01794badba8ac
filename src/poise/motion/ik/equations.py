"""Misses of goals and what they ask of the links, all goals and frames at once.

The miss e of a goal changes with the twist t = (linear, angular) of its link by a matrix E: that of
a point at r from c by linear + angular x r, that of a rotation by the angular part, that of an aim
along d by what of it is across d. A link and all that hangs on it then ask, about c,

    G = sum w E^T E  (6, 6),   f = sum w E^T e  (6,)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poise.math import rotation
from poise.math.arrays import Floats
from poise.motion.ik.goals import Above, Aim, Checked, Place, Turn
from poise.motion.ik.kinematics import Placed, Tree, cross

Frames = NDArray[np.int64] | slice


class Equations:
    """The goals of some frames.

    Args:
        tree: The character's tree.
        goals: The goals, checked.
        k: Number of frames.
    """

    def __init__(self, tree: Tree, goals: Sequence[Checked], k: int) -> None:
        self.goals = goals
        self.points = _Group(tree, [x for x in goals if isinstance(x.goal, Place | Above)], k)
        self.turns = _Group(tree, [x for x in goals if isinstance(x.goal, Turn)], k)
        self.aims = _Group(tree, [x for x in goals if isinstance(x.goal, Aim)], k)
        at = [x.goal.point for x in self.points.goals if isinstance(x.goal, Place | Above)]
        self.point = np.array(at, dtype=np.float64).reshape(-1, 3)
        self.above = np.array([isinstance(x.goal, Above) for x in self.points.goals], dtype=bool)
        # a height is the third of three coordinates
        self.place = np.zeros((k, len(at), 3))
        for i, item in enumerate(self.points.goals):
            self.place[:, i, 3 - item.target.shape[1] :] = item.target
        self.turn = self.turns.target(4)
        self.aim = self.aims.target(3)
        along = [x.goal.along for x in self.aims.goals if isinstance(x.goal, Aim)]
        unit = np.array(along, dtype=np.float64).reshape(-1, 3)
        self.along = unit / np.linalg.norm(unit, axis=1, keepdims=True)

    def cost(self, placed: Placed, frames: Frames) -> Floats:
        """Weighted squared misses of the frames (k,)."""
        found: Floats = np.zeros(len(placed.p))
        for group, e in self._misses(placed, frames):
            found += np.einsum("kn,kni,kni->k", group.weight[frames], e, e)
        return found

    def sums(self, placed: Placed, frames: Frames) -> tuple[Floats, Floats, Floats]:
        """Cost (k,), and of each link with what hangs on it G (k, links, 6, 6), f (k, links, 6).

        All about the origin of the first link.
        """
        (_, e), (_, turn), (_, aim) = self._misses(placed, frames)
        k, n = placed.p.shape[:2]
        w = self.points.weight[frames]
        r = self._at(placed) - placed.p[:, :1]
        # rows of E^T, (k, goals, 6, 3): a point's velocity is linear + angular x r
        E = np.zeros((*r.shape[:2], 6, 3))
        E[..., [0, 1, 2], [0, 1, 2]] = 1.0
        E[..., 4, 0], E[..., 5, 0] = r[..., 2], -r[..., 1]
        E[..., 3, 1], E[..., 5, 1] = -r[..., 2], r[..., 0]
        E[..., 3, 2], E[..., 4, 2] = r[..., 1], -r[..., 0]
        # what is above its height asks nothing
        E[:, self.above, :, :2] = 0.0
        E[:, self.above] *= e[:, self.above, None, 2:] > 0.0
        wE = w[..., None, None] * E
        each = wE @ E.transpose(0, 1, 3, 2)
        G = (self.points.within @ each.reshape(k, -1, 36)).reshape(k, n, 6, 6)
        f = self.points.within @ (wE @ e[..., None])[..., 0]
        w_turn, w_aim = self.turns.weight[frames], self.aims.weight[frames]
        f[..., 3:] += self.turns.within @ (w_turn[..., None] * turn)
        f[..., 3:] += self.aims.within @ (w_aim[..., None] * aim)
        d = self._directions(placed)
        across = w_aim[..., None, None] * d[..., :, None] * d[..., None, :]
        G[..., 3:, 3:] -= (self.aims.within @ across.reshape(k, -1, 9)).reshape(k, n, 3, 3)
        about = self.turns.within @ w_turn[..., None] + self.aims.within @ w_aim[..., None]
        G[..., [3, 4, 5], [3, 4, 5]] += about
        cost = np.einsum("kn,kni,kni->k", w, e, e)
        cost += np.einsum("kn,kni,kni->k", w_turn, turn, turn)
        cost += np.einsum("kn,kni,kni->k", w_aim, aim, aim)
        return cost, G, f

    def misses(self, placed: Placed) -> Floats:
        """How far goals are missed, 0 where the weight is, shape (goals, k) [m, rad]."""
        found = {}
        for group, e in self._misses(placed, slice(None)):
            far = np.where(group.weight > 0.0, np.linalg.norm(e, axis=-1), 0.0)
            found.update({id(x): far[:, i] for i, x in enumerate(group.goals)})
        return np.array([found[id(x)] for x in self.goals]).reshape(len(self.goals), len(placed.p))

    def _misses(self, placed: Placed, frames: Frames) -> list[tuple[_Group, Floats]]:
        """Of points, turns and aims: the group, and its misses (k, goals, 3) [m, rad]."""
        e = self.place[frames] - self._at(placed)
        e[:, self.above, :2] = 0.0
        e[:, self.above] = np.maximum(e[:, self.above], 0.0)
        back = rotation.conjugate(placed.quat[:, self.turns.links])
        turn = rotation.log(rotation.multiply(self.turn[frames], back))
        aim = _rotation_between(self._directions(placed), self.aim[frames])
        return [(self.points, e), (self.turns, turn), (self.aims, aim)]

    def _at(self, placed: Placed) -> Floats:
        """Points of the goals in the world [m], shape (k, goals, 3)."""
        i = self.points.links
        at: Floats = placed.p[:, i] + (placed.R[:, i] @ self.point[:, :, None])[..., 0]
        return at

    def _directions(self, placed: Placed) -> Floats:
        """Directions that aim, in the world, shape (k, goals, 3)."""
        at: Floats = (placed.R[:, self.aims.links] @ self.along[:, :, None])[..., 0]
        return at


class _Group:
    """Goals of one kind: their links, weights (k, n), and which links they hang on (links, n)."""

    def __init__(self, tree: Tree, goals: list[Checked], k: int) -> None:
        self.goals = goals
        self.links = np.array([x.link for x in goals], dtype=np.int64)
        self.weight = np.zeros((k, len(goals)))
        for i, item in enumerate(goals):
            self.weight[:, i] = item.weight
        self.within = tree.within[:, self.links].astype(np.float64)

    def target(self, width: int) -> Floats:
        """Targets of all (k, n, width)."""
        out = np.zeros((*self.weight.shape, width))
        for i, item in enumerate(self.goals):
            out[:, i] = item.target
        return out


def _rotation_between(d: Floats, target: Floats) -> Floats:
    """Rotation vectors (..., 3) [rad] that bring directions d to their targets."""
    over = cross(d, target)
    sine = np.linalg.norm(over, axis=-1, keepdims=True)
    angle = np.arctan2(sine, np.sum(d * target, axis=-1, keepdims=True))
    turn: Floats = np.where(sine > 1e-9, angle / np.maximum(sine, 1e-9), 0.0) * over
    back = (sine <= 1e-9) & (angle > 1.0)
    if back.any():
        # straight back: any axis across will do
        side = cross(d, np.where(np.abs(d[..., :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
        turn = np.where(back, angle * side, turn)
    return turn
