"""Soft limits of joints (M 6.2): tracking stiffens as a joint leaves its range.

    k_s' = k_s + l_s (e_axis + e_twist),   k_d' = k_d + l_d (e_axis + e_twist)

A ball turns by q = q_a q_t, q_t about its axis a, q_a taking a to a' = q a q^-1. e_axis is the
angle by which a' is outside its cone, e_twist that by which φ = 2 atan2(q_vec·a, q_w), wrapped to
(-π, π], is outside its bounds; both are 0 inside (the thesis prints an e_twist that is not). The
cone is the joint's: round, of the angle `swing`. A hinge or slide has one bound on each side.
"""

from __future__ import annotations

import numpy as np

from poise.math.arrays import Floats
from poise.model.character import Character


class SoftLimits:
    """How far joints are outside of their range.

    Args:
        character: The character.
        stiffness: l_s [1/s² per rad].
        damping: l_d [1/s per rad].
    """

    def __init__(self, character: Character, stiffness: float, damping: float) -> None:
        self.stiffness, self.damping = stiffness, damping
        bounded = [joint for joint in character.joints if joint.limits is not None]
        balls = [joint for joint in bounded if joint.kind == "ball"]
        others = [joint for joint in bounded if joint.kind != "ball"]
        start = [character.q_slice(joint).start for joint in balls]
        single = [(character.q_slice(j).start, character.v_slice(j).start) for j in others]
        low, high = ([j.limits[i] for j in others if j.limits] for i in range(2))
        axes, bounds = [joint.axis for joint in balls], [joint.limits for joint in balls]
        at = [character.v_slice(joint).start for joint in balls]
        self._q = np.array(start, dtype=int)[:, None] + np.arange(4)
        self._axis = np.array(axes, dtype=np.float64).reshape(-1, 3)
        self._bound = np.array(bounds, dtype=np.float64).reshape(-1, 3)
        self._v = np.array(at, dtype=int)
        self._one = np.array(single, dtype=int).reshape(-1, 2)
        self._low, self._high = np.array(low), np.array(high)
        self.table: Floats = np.zeros((len(balls) + len(others), 9))
        """For the core, a row per joint: 1 of a ball, where its q and v begin, its axis, and swing
        and twist, or 0 and low and high."""
        for row, joint in zip(self.table, [*balls, *others], strict=True):
            row[:3] = (
                joint.kind == "ball",
                character.q_slice(joint).start,
                character.v_slice(joint).start,
            )
            row[3:6] = joint.axis if joint.kind == "ball" else 0.0
            row[6:] = joint.limits if joint.kind == "ball" else (0.0, *(joint.limits or ()))

    def excess(self, q: Floats) -> tuple[Floats, Floats]:
        """e_axis + e_twist of each ball, and how far hinges and slides are out, for one q (nq,)."""
        turn = q[self._q]
        w, u = turn[:, 0], turn[:, 1:]
        along = np.einsum("ij,ij->i", u, self._axis)
        twist = 2.0 * np.arctan2(along, w)
        twist -= 2.0 * np.pi * np.round(twist / (2.0 * np.pi))
        # |a' - a| is 2 sin(swing / 2), and the part of u across a is that by cos of half the twist
        swing = 2.0 * np.arctan2(
            np.sqrt(np.maximum((u * u).sum(axis=1) - along**2, 0.0)), np.hypot(w, along)
        )
        out = np.maximum(swing - self._bound[:, 0], 0.0)
        out += np.maximum(np.maximum(self._bound[:, 1] - twist, twist - self._bound[:, 2]), 0.0)
        x = q[self._one[:, 0]]
        return out, np.maximum(np.maximum(self._low - x, x - self._high), 0.0)

    def stiffen(self, q: Floats, k_s: Floats, k_d: Floats) -> tuple[Floats, Floats]:
        """Gains of tracking at one q (nq,), shape (nv,) each."""
        ball, single = self.excess(q)
        if not ball.any() and not single.any():
            return k_s, k_d
        more = np.zeros_like(k_s)
        for k in range(3):
            more[self._v + k] = ball
        more[self._one[:, 1]] = single
        return k_s + self.stiffness * more, k_d + self.damping * more
