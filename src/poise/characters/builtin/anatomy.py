"""What the built-in people share: published proportions, masses, and ranges of motion.

Lengths are fractions of stature in Winter, *Biomechanics and Motor Control of Human Movement* (4th
ed. 2009), Figure 4.1 (after Drillis and Contini). Masses are fractions of body mass in de Leva
1996, *Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters*, Table 4; so are the
height of the neck's lowest point and the proportions of the trunk. Ranges of motion are those of
the American Academy of Orthopaedic Surgeons, *Joint Motion* (1965), rounded to 0.05 rad, where the
joint is named there.

All stand along +z and look along +x, with their arms down. Limits of ball joints are a cone and a
twist. Where a joint mostly flexes, its axis is the one it flexes about, with flexion positive, so
that the twist is the flexion and the cone what else it gives way; where it swings to all sides,
the axis lies along the bone.
"""

from __future__ import annotations

from poise.character import Joint, Vector

# heights above the ground, by stature: Winter
ANKLE = 0.039
KNEE = 0.285
HIP = 0.530
SHOULDER = 0.818

# the neck's lowest point, by stature: de Leva, vertex to cervicale 242.9 mm of 1741 mm
NECK = 1.0 - 242.9 / 1741.0

# lengths by stature: Winter
UPPER_ARM = 0.186
FOREARM = 0.146
HAND = 0.108
FOOT = 0.152
FOOT_WIDTH = 0.055

# halves of the widths between the joints, by stature; ours: the joints lie inside of what Winter
# measures from outside (shoulders 0.259, hips 0.191)
HIP_Y = 0.051
SHOULDER_Y = 0.1145

# where navel and breastbone's end divide the trunk, from hip to neck: de Leva, segments of 145.7,
# 215.5 and 242.1 mm
_TRUNK = 145.7 + 215.5 + 242.1
NAVEL = HIP + (NECK - HIP) * 145.7 / _TRUNK
BREAST = HIP + (NECK - HIP) * (145.7 + 215.5) / _TRUNK

# fractions of body mass [%]: de Leva
MALE = {
    "head": 6.94,
    "chest": 15.96,
    "spine": 16.33,
    "pelvis": 11.17,
    "upper_arm": 2.71,
    "forearm": 1.62,
    "hand": 0.61,
    "thigh": 14.16,
    "shin": 4.33,
    "foot": 1.37,
}
FEMALE = {
    "head": 6.68,
    "chest": 15.45,
    "spine": 14.65,
    "pelvis": 12.47,
    "upper_arm": 2.55,
    "forearm": 1.38,
    "hand": 0.56,
    "thigh": 14.78,
    "shin": 4.81,
    "foot": 1.29,
}


def masses(fractions: dict[str, float], mass: float) -> dict[str, float]:
    """Masses of the segments; they add up to the whole, which rounded fractions miss by 0.01 %."""
    trunk = ("head", "chest", "spine", "pelvis")
    total = sum(x * (1.0 if name in trunk else 2.0) for name, x in fractions.items())
    return {name: mass * x / total for name, x in fractions.items()}


# axis and limits (swing, lower twist, upper twist) of the ball joints [rad]
BACKWARD: Vector = (0.0, 1.0, 0.0)  # turns a hanging limb backward
FORWARD: Vector = (0.0, -1.0, 0.0)  # turns a hanging limb forward, and lifts the toes
UP: Vector = (0.0, 0.0, 1.0)
DOWN: Vector = (0.0, 0.0, -1.0)
RANGES: dict[str, tuple[Vector, Vector]] = {
    "spine": (UP, (0.60, -0.40, 0.40)),
    "chest": (UP, (0.60, -0.40, 0.40)),
    "neck": (UP, (0.80, -1.20, 1.20)),
    "hip": (FORWARD, (0.80, -0.50, 2.10)),  # flexion 120, extension 30; abduction, rotation 45 deg
    "knee": (BACKWARD, (0.15, -0.05, 2.35)),  # flexion 135 deg
    "ankle": (FORWARD, (0.60, -0.85, 0.35)),  # flexion 20 up, 50 down; to the sides 35 deg
    "shoulder": (DOWN, (2.60, -1.55, 1.55)),  # rotation 90 deg; in front and sideways nearly up
    "elbow": (FORWARD, (0.15, -0.05, 2.60)),  # flexion 150 deg
    "wrist": (DOWN, (1.30, -1.40, 1.40)),  # flexion 75 deg; the forearm's rotation 80 deg
}


def ball(name: str, side: str = "") -> Joint:
    """A ball joint with the range of motion of its name; of one side, if one is given."""
    axis, limits = RANGES[name]
    return Joint(f"{side}_{name}" if side else name, "ball", axis=axis, limits=limits)
