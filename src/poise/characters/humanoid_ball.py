"""The humanoid of Macchietto 2008, chapter 7: 65 kg, ball joints throughout, a box for each link.

The thesis gives the mass, boxes of the density of water, ball joints with limits on axis and twist
(section 6.2), and about 45 degrees of freedom (section 5): 14 links have 3 * 14 + 3 = 45, so the
hand belongs to the forearm. It takes the links' masses from NASA's Man-Systems Integration
Standards, but prints neither them nor the sizes; here masses and trunk are those of de Leva 1996
for a man, and the lengths those of Winter 2009 (see `anatomy`). The height is ours: that of a man
of 65 kg. Each box is as long as its link, and as thick as its mass requires.

At q = 0 it stands upright and looks along +x, arms down, soles on z = 0. The frame of each link
sits in the joint that moves it, that of the pelvis between the hips.
"""

from __future__ import annotations

import math
from itertools import pairwise

from poise.anatomy import strength
from poise.anatomy.strength import MALE, ball
from poise.model.character import Character, Joint, Link, Shape, Vector

MASS = 65.0  # [kg]
HEIGHT = 1.73  # [m]
DENSITY = 1000.0  # that of water [kg/m^3]

MASSES = MALE.masses(MASS)

# depth by width of each box, the trunk's upwards first, ours
DEPTH = {
    "pelvis": 0.57,
    "spine": 0.64,
    "chest": 0.44,
    "head": 1.25,
    "thigh": 1.05,
    "shin": 1.05,
    "upper_arm": 1.10,
    "forearm": 1.25,
}

TRUNK: Vector = (0.36, 0.52, 0.50)
LIMBS: Vector = (0.86, 0.84, 0.78)
ENDS: Vector = (0.93, 0.62, 0.30)


def humanoid_ball() -> Character:
    """Make the humanoid of ball joints."""
    links = [*_trunk(), *_side("left", 1.0), *_side("right", -1.0)]
    limbs = {"torso": ("pelvis", "spine", "chest"), "head": ("head",)}
    for side in ("left", "right"):
        limbs[f"{side}_arm"] = tuple(f"{side}_{x}" for x in ("upper_arm", "forearm"))
        limbs[f"{side}_leg"] = tuple(f"{side}_{x}" for x in ("thigh", "shin", "foot"))
    return Character("humanoid-ball", tuple(links), limbs)


def _trunk() -> list[Link]:
    """Pelvis, spine, chest and head, each from its joint to the next."""
    heights = [HEIGHT * x for x in (strength.HIP, MALE.navel, MALE.breast, MALE.neck, 1.0)]
    joints = (Joint("root", "free"), ball("spine"), ball("chest"), ball("neck"))
    links: list[Link] = []
    parent, below = None, 0.0
    for name, joint, (low, high) in zip(DEPTH, joints, pairwise(heights), strict=False):
        box = _box(name, high - low, ENDS if name == "head" else TRUNK)
        links.append(_link(name, parent, (0.0, 0.0, low - below), joint, box))
        parent, below = name, low
    return links


def _side(side: str, y: float) -> list[Link]:
    """The leg and the arm of one side; y is the sign of that side."""
    thigh = HEIGHT * (strength.HIP - strength.KNEE)
    shin = HEIGHT * (strength.KNEE - strength.ANKLE)
    upper_arm = HEIGHT * strength.UPPER_ARM
    forearm = HEIGHT * (strength.FOREARM + strength.HAND)
    up = HEIGHT * (strength.SHOULDER - MALE.breast)
    sole = _sole()
    # the shin ends on the foot, which is lower than the ankle
    to_foot = HEIGHT * strength.KNEE - 2.0 * sole.size[2]

    def limb(name: str, parent: str, pos: Vector, joint: str, shape: Shape) -> Link:
        return _link(f"{side}_{name}", parent, pos, ball(joint, side), shape)

    hip, shoulder = y * HEIGHT * strength.HIP_Y, y * HEIGHT * strength.SHOULDER_Y
    arm, hand = _box("upper_arm", -upper_arm, LIMBS), _box("forearm", -forearm, ENDS)
    return [
        limb("thigh", "pelvis", (0.0, hip, 0.0), "hip", _box("thigh", -thigh, LIMBS)),
        limb("shin", f"{side}_thigh", (0.0, 0.0, -thigh), "knee", _box("shin", -to_foot, LIMBS)),
        limb("foot", f"{side}_shin", (0.0, 0.0, -shin), "ankle", sole),
        limb("upper_arm", "chest", (0.0, shoulder, up), "shoulder", arm),
        limb("forearm", f"{side}_upper_arm", (0.0, 0.0, -upper_arm), "elbow", hand),
    ]


def _mass(name: str) -> float:
    return MASSES["forearm"] + MASSES["hand"] if name == "forearm" else MASSES[name]


def _box(name: str, length: float, color: Vector) -> Shape:
    """A box from z = 0 to z = length that has the mass of its link."""
    area = _mass(name) / (DENSITY * abs(length))
    width = math.sqrt(area / DEPTH[name])
    half = (DEPTH[name] * width / 2, width / 2, abs(length) / 2)
    return Shape("box", half, (0.0, 0.0, length / 2), color=color)


def _sole() -> Shape:
    """A foot of Winter's length and width, a quarter of it behind the ankle; low: it is light."""
    length, width = HEIGHT * strength.FOOT, HEIGHT * strength.FOOT_WIDTH
    half = (length / 2, width / 2, _mass("foot") / (DENSITY * length * width) / 2)
    return Shape("box", half, (length / 4, 0.0, half[2] - HEIGHT * strength.ANKLE), color=ENDS)


def _link(name: str, parent: str | None, pos: Vector, joint: Joint, shape: Shape) -> Link:
    return Link.from_shapes(name, parent, [shape], density=DENSITY, pos=pos, joints=[joint])
