"""Feet in the air, turned no farther than their ankles let them.

Captures lose feet: in somersaults and cartwheels they are bent by 90 degrees and more against the
shin. A foot that stands is told by the ground; one in the air follows its source as far as the
joints of the target reach.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poise.math.arrays import Floats, runs
from poise.math.rotation import conjugate, exp, multiply, rotate
from poise.model import configuration
from poise.model.character import Character
from poise.motion.editing.smoothing import lowpass
from poise.motion.foot_contact.planting import near
from poise.motion.limits import clamped
from poise.motion.retargeting.standing import Foot
from poise.motion.retargeting.transfer import Wanted

RAMP = 0.05
"""Time before and after it stands in which a foot goes over to what its ankle allows [s]."""

SLOW = 8.0
"""It does so without what is faster [Hz]."""

FARTHEST = 1.6
"""A foot that would have to turn back farther flips about [rad]: it stays as its source has it."""


def within_reach(
    character: Character, feet: list[Foot], wanted: Wanted, start: Floats, fps: float
) -> Wanted:
    """What a character shall do, its feet in the air within the limits of their ankles.

    Args:
        character: The character.
        feet: Its feet, and when they stand.
        wanted: What it shall do.
        start: Poses that do it, shape (k, nq).
        fps: Frames per second.
    """
    p, R = wanted.p.copy(), wanted.R.copy()
    step = configuration.difference(character, start, clamped(character, start))
    index = {link.name: i for i, link in enumerate(character.links)}
    for foot in feet:
        joints = character.link(foot.name).joints
        if foot.tip or len(joints) != 1 or joints[0].kind != "ball":
            continue
        change = step[:, character.v_slice(joints[0])]
        change = change * (1.0 - near(foot.stands, RAMP * fps))[:, None]
        for a, b in runs(change.any(axis=1)):
            if np.linalg.norm(change[a:b], axis=1).max() > FARTHEST:
                change[a:b] = 0.0
        if not change.any():
            continue
        for a, b in wanted.pieces:
            if b - a > 3:
                change[a:b] = lowpass(change[a:b], min(SLOW, 0.4 * fps), fps)
        i = index[foot.name]
        turned = multiply(wanted.R[:, i], exp(change))
        by = multiply(turned, conjugate(wanted.R[:, i]))
        for j in _outer(character, i):
            p[:, j] = wanted.p[:, i] + rotate(by, wanted.p[:, j] - wanted.p[:, i])
            R[:, j] = multiply(by, wanted.R[:, j])
    return replace(wanted, p=p, R=R)


def _outer(character: Character, i: int) -> list[int]:
    """A link and all that hang on it."""
    found, names = [i], {character.links[i].name}
    for j, link in enumerate(character.links):
        if j > i and link.parent in names:
            found.append(j)
            names.add(link.name)
    return found


__all__ = ["within_reach"]
