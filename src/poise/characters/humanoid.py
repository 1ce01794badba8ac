"""The humanoid: 34 degrees of freedom, depth 13 (Yin and Yin 2020, Table 1).

A grown person of 1.66 m and 60 kg. Masses are the fractions of body mass in Winter, *Biomechanics
and Motor Control of Human Movement* (4th ed. 2009), Table 4.1 (after Dempster). Heights of hip,
knee, ankle and shoulder, and the lengths of arm and foot, are the fractions of stature in its
Figure 4.1 (after Drillis and Contini), rounded to the millimetre; ranges of motion are those of
`anatomy`, but that the knees bend by 150 degrees, ours, so that it can kneel; the rest is ours.
Centres and inertias are those of the shapes.

At q = 0 it stands upright and looks along +x, arms down, soles on z = 0. Knees and elbows flex with
positive angles. The frame of each link sits in the joint that moves it.
"""

from __future__ import annotations

from poise.anatomy.strength import ball
from poise.model.character import Character, Joint, Link, Shape, Vector

MASS = 60.0  # [kg]

# fractions of body mass: Winter, Table 4.1; the chest is his thorax and abdomen, the head includes
# the neck, the forearm the hand
FRACTION = {
    "pelvis": 0.142,
    "chest": 0.355,
    "head": 0.081,
    "thigh": 0.100,
    "shin": 0.0465,
    "foot": 0.0145,
    "upper_arm": 0.028,
    "forearm": 0.022,
}

# heights above the ground [m]; those of pelvis, spine and neck are ours
PELVIS = 0.940
SPINE = 1.040
NECK = 1.410
SHOULDER = 1.358
HIP = 0.880
KNEE = 0.473
ANKLE = 0.065

# lengths of the arm [m]
UPPER_ARM = 0.309
FOREARM = 0.242

# halves of the widths between the joints [m]; the shoulder's center lies inside of the acromion
HIP_Y = 0.085
SHOULDER_Y = 0.190

SKIN: Vector = (0.86, 0.68, 0.56)
HAIR: Vector = (0.30, 0.21, 0.15)
SHIRT: Vector = (0.25, 0.45, 0.65)
TROUSERS: Vector = (0.27, 0.29, 0.34)
SHOES: Vector = (0.80, 0.38, 0.22)


def humanoid() -> Character:
    """Make the humanoid."""
    links = [*_trunk(), *_side("left", 1.0), *_side("right", -1.0)]
    limbs = {"torso": ("pelvis", "chest"), "head": ("head",)}
    for limb, names in (("arm", ("upper_arm", "forearm")), ("leg", ("thigh", "shin", "foot"))):
        for side in ("left", "right"):
            limbs[f"{side}_{limb}"] = tuple(f"{side}_{name}" for name in names)
    return Character("humanoid", tuple(links), limbs)


def _trunk() -> list[Link]:
    pelvis = [
        Shape.capsule((0.0, -0.07, -0.02), (0.0, 0.07, -0.02), 0.095, TROUSERS),
        Shape.capsule((0.0, -0.05, 0.07), (0.0, 0.05, 0.07), 0.085, SHIRT),
    ]
    chest = [
        *(
            Shape.capsule((0.0, 0.045 * y, 0.05), (0.0, 0.080 * y, 0.235), 0.092, SHIRT)
            for y in (-1.0, 0.0, 1.0)
        ),
        Shape.capsule((0.0, -0.135, 0.290), (0.0, 0.135, 0.290), 0.068, SHIRT),
    ]
    head = [
        Shape.capsule((0.0, 0.0, 0.0), (0.005, 0.0, 0.06), 0.048, SKIN),
        Shape.capsule((0.024, 0.0, 0.105), (0.018, 0.0, 0.140), 0.076, SKIN),
        Shape("sphere", (0.088,), (-0.002, 0.0, 0.162), color=HAIR),
    ]
    return [
        _link("pelvis", None, (0.0, 0.0, PELVIS), Joint("root", "free"), pelvis),
        _link("chest", "pelvis", (0.0, 0.0, SPINE - PELVIS), ball("chest", kind="trunk"), chest),
        _link("head", "chest", (0.0, 0.0, NECK - SPINE), ball("neck"), head),
    ]


def _side(side: str, y: float) -> list[Link]:
    """The leg and the arm of one side; y is the sign of that side."""

    to_knee, to_ankle = KNEE - HIP, ANKLE - KNEE
    thigh = [
        Shape.capsule((0.0, 0.0, -0.02), (0.0, 0.0, -0.20), 0.077, TROUSERS),
        Shape.capsule((0.0, 0.0, -0.16), (0.0, 0.0, to_knee + 0.01), 0.057, TROUSERS),
    ]
    shin = [
        Shape.capsule((-0.008, 0.0, -0.07), (-0.012, 0.0, -0.17), 0.053, TROUSERS),
        Shape.capsule((0.0, 0.0, -0.02), (0.0, 0.0, to_ankle + 0.02), 0.042, TROUSERS),
    ]
    foot = [
        Shape("box", (0.126, 0.045, 0.021), (0.066, 0.0, 0.021 - ANKLE), color=SHOES),
        Shape.capsule((-0.005, 0.0, -0.005), (0.090, 0.0, -0.035), 0.028, SHOES),
    ]
    arm = [Shape.capsule((0.0, 0.0, -0.01), (0.0, 0.0, 0.01 - UPPER_ARM), 0.045, SHIRT)]
    forearm = [
        Shape.capsule((0.0, 0.0, -0.01), (0.0, 0.0, -0.11), 0.039, SKIN),
        Shape.capsule((0.0, 0.0, -0.08), (0.0, 0.0, -FOREARM), 0.032, SKIN),
        Shape("box", (0.038, 0.015, 0.044), (0.0, 0.0, -FOREARM - 0.050), color=SKIN),
        Shape("box", (0.034, 0.012, 0.040), (0.004, 0.0, -FOREARM - 0.120), color=SKIN),
    ]
    knee = Joint(f"{side}_knee", "hinge", axis=(0.0, 1.0, 0.0), limits=(-0.05, 2.6))
    elbow = Joint(f"{side}_elbow", "hinge", axis=(0.0, -1.0, 0.0), limits=(-0.05, 2.6))
    hip, ankle, shoulder = (ball(name, side) for name in ("hip", "ankle", "shoulder"))

    def limb(name: str, parent: str, pos: Vector, joint: Joint, shapes: list[Shape]) -> Link:
        return _link(f"{side}_{name}", parent, pos, joint, shapes)

    return [
        limb("thigh", "pelvis", (0.0, y * HIP_Y, HIP - PELVIS), hip, thigh),
        limb("shin", f"{side}_thigh", (0.0, 0.0, to_knee), knee, shin),
        limb("foot", f"{side}_shin", (0.0, 0.0, to_ankle), ankle, foot),
        limb("upper_arm", "chest", (0.0, y * SHOULDER_Y, SHOULDER - SPINE), shoulder, arm),
        limb("forearm", f"{side}_upper_arm", (0.0, 0.0, -UPPER_ARM), elbow, forearm),
    ]


def _link(name: str, parent: str | None, pos: Vector, joint: Joint, shapes: list[Shape]) -> Link:
    mass = MASS * FRACTION[name.removeprefix("left_").removeprefix("right_")]
    return Link.from_shapes(name, parent, shapes, mass=mass, pos=pos, joints=[joint])
