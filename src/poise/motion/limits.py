"""Joint limits of poses, for many frames at once: how far outside, and back to the nearest inside.

A hinge or slide has a lower and an upper bound, a ball a largest swing and two bounds of its twist
(see `Joint`). With a the axis in the child's frame and b the parent's axis seen from the child,
b = R^T a, a small turn w of the child changes swing and twist by

    d swing = -w . (a x b) / |a x b|,    d twist = w . (a + b) / (1 + a . b)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character


class Excess(NamedTuple):
    """How far a bound is exceeded; below zero is inside.

    Attributes:
        joint: Name of the joint.
        what: "lower", "upper", "swing", "lower twist" or "upper twist".
        v: Where the joint is in v.
        value: [rad, m], shape (k,).
        slope: Change of the value with a step, shape (k, n) with n the joint's freedoms.
    """

    joint: str
    what: str
    v: slice
    value: Floats
    slope: Floats


def excesses(character: Character, q: ArrayLike) -> list[Excess]:
    """How far each bound is exceeded in poses (k, nq)."""
    q = np.asarray(q, dtype=np.float64)
    found = []
    for joint in character.joints:
        if joint.limits is None:
            continue
        x, v = q[:, character.q_slice(joint)], character.v_slice(joint)
        if joint.kind == "ball":
            swing, twist, d_swing, d_twist = swing_twist(x, np.array(joint.axis))
            widest, low, high = joint.limits
            found.append(Excess(joint.name, "swing", v, swing - widest, d_swing))
            name = " twist"
        else:
            (low, high), twist, name = joint.limits, x[:, 0], ""
            d_twist = np.ones((len(q), 1))
        found.append(Excess(joint.name, "lower" + name, v, low - twist, -d_twist))
        found.append(Excess(joint.name, "upper" + name, v, twist - high, d_twist))
    return found


def largest_excesses(character: Character, q: ArrayLike, beyond: float) -> dict[str, float]:
    """Largest excess of each joint that turns, in poses (k, nq), if it is larger [degrees]."""
    found: dict[str, float] = {}
    for one in excesses(character, q):
        most = float(np.degrees(one.value.max()))
        if most > beyond and character.joint(one.joint).kind != "slide":
            found[one.joint] = max(most, found.get(one.joint, 0.0))
    return found


def clamp(character: Character, q: ArrayLike) -> Floats:
    """Poses (k, nq) with every joint brought back to its bounds, each by itself."""
    q = np.array(q, dtype=np.float64)
    for joint in character.joints:
        if joint.limits is None:
            continue
        at = character.q_slice(joint)
        if joint.kind != "ball":
            q[:, at] = np.clip(q[:, at], joint.limits[0], joint.limits[1])
            continue
        axis = np.array(joint.axis)
        swing, twist, _, _ = swing_twist(q[:, at], axis)
        widest, low, high = joint.limits
        out = (swing > widest) | (twist < low) | (twist > high)
        if not out.any():
            continue
        whole = q[out, at]
        spin = rotation.turn(axis, twist[out])
        arc = rotation.log(rotation.multiply(whole, rotation.conjugate(spin)))
        fraction = np.minimum(1.0, widest / np.maximum(swing[out], 1e-12))
        kept = rotation.turn(axis, np.clip(twist[out], low, high))
        back = rotation.multiply(rotation.exp(arc * fraction[:, None]), kept)
        same = np.sum(back * whole, axis=1, keepdims=True) >= 0.0
        q[out, at] = np.where(same, back, -back)
    return q


def swing_twist(q: Floats, axis: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Swing and twist of quaternions (k, 4) about an axis [rad], (k,), and their slopes (k, 3)."""
    twist = 2.0 * np.arctan2(q[:, 1:] @ axis, q[:, 0])
    twist = (twist + np.pi) % (2.0 * np.pi) - np.pi
    b = rotation.rotate(rotation.conjugate(q), axis)
    across = np.cross(axis, b)
    sine = np.linalg.norm(across, axis=1)
    cosine = b @ axis
    swing = np.arctan2(sine, cosine)
    d_swing = -across / np.maximum(sine, 1e-9)[:, None]
    d_twist = (axis + b) / np.maximum(1.0 + cosine, 1e-3)[:, None]
    return swing, twist, d_swing, d_twist
