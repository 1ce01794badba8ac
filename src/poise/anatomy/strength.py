"""The human body in published numbers: proportions, masses, ranges of motion, strength.

Lengths are fractions of stature in Winter, *Biomechanics and Motor Control of Human Movement* (4th
ed. 2009), Figure 4.1 (after Drillis and Contini 1966). Masses, and the heights of what divides the
trunk, are those of de Leva 1996, *Adjustments to Zatsiorsky-Seluyanov's segment inertia
parameters*, J. Biomech. 29:1223, Table 4. Ranges of motion are those of the American Academy of
Orthopaedic Surgeons, *Joint Motion* (1965), as it is quoted since, rounded to 0.05 rad. Where a
figure is ours, or could not be confirmed, it says so.

All stand along +z and look along +x, with their arms down. Limits of ball joints are a cone and a
twist. Where a joint mostly flexes, its axis is the one it flexes about, with flexion positive, so
that the twist is the flexion and the cone what else it gives way; where it swings to all sides,
the axis lies along the bone.
"""

from __future__ import annotations

from dataclasses import dataclass

from poise.model.character import Joint, Vector

# heights above the ground, by stature: Winter, Figure 4.1
ANKLE = 0.039
KNEE = 0.285
HIP = 0.530
SHOULDER = 0.818

# lengths by stature: Winter, Figure 4.1
UPPER_ARM = 0.186
FOREARM = 0.146
HAND = 0.108
FOOT = 0.152
FOOT_WIDTH = 0.055

# halves of the widths between the joints, by stature; ours: the joints lie inside of what Winter's
# Figure 4.1 measures from outside (shoulders 0.259, hips 0.191)
HIP_Y = 0.051
SHOULDER_Y = 0.1145


@dataclass(frozen=True)
class Build:
    """How mass and trunk are shared out in one sex.

    Args:
        fractions: Part of each segment in the body mass [%], one of each pair.
        stature: Of the sample [mm].
        head: From the crown to the spine of the seventh neck vertebra (VERT-CERV) [mm].
        trunk: From hips to navel, to the breastbone's end, to that vertebra (MIDH-OMPH-XYPH-CERV)
            [mm].
    """

    fractions: dict[str, float]
    stature: float
    head: float
    trunk: Vector

    @property
    def neck(self) -> float:
        """Height of the neck's lowest joint, by stature."""
        return 1.0 - self.head / self.stature

    @property
    def navel(self) -> float:
        """Height of the navel, by stature, with Winter's height of the hips."""
        return HIP + (self.neck - HIP) * self.trunk[0] / sum(self.trunk)

    @property
    def breast(self) -> float:
        """Height of the breastbone's lower end, by stature, with Winter's height of the hips."""
        return HIP + (self.neck - HIP) * (self.trunk[0] + self.trunk[1]) / sum(self.trunk)

    def masses(self, mass: float) -> dict[str, float]:
        """Masses of the segments [kg], which add up to the whole; rounded fractions nearly do."""
        total = sum(x * (1.0 if name in MIDDLE else 2.0) for name, x in self.fractions.items())
        return {name: mass * x / total for name, x in self.fractions.items()}


MIDDLE = ("head", "chest", "spine", "pelvis")
PAIRED = ("upper_arm", "forearm", "hand", "thigh", "shin", "foot")
"""Segments of the body: those of the middle, and one of each pair."""


def _build(fractions: Vector, stature: float, head: float, trunk: Vector) -> Build:
    return Build(dict(zip(MIDDLE + PAIRED, fractions, strict=True)), stature, head, trunk)


# de Leva, Table 4; chest, spine and pelvis are his upper, middle and lower part of the trunk
MALE = _build(
    (6.94, 15.96, 16.33, 11.17, 2.71, 1.62, 0.61, 14.16, 4.33, 1.37),
    stature=1741.0,
    head=242.9,
    trunk=(145.7, 215.5, 242.1),
)
FEMALE = _build(
    (6.68, 15.45, 14.65, 12.47, 2.55, 1.38, 0.56, 14.78, 4.81, 1.29),
    stature=1735.0,
    head=243.7,
    trunk=(181.5, 205.3, 228.0),
)


# axis and limits (swing, lower twist, upper twist) of the ball joints [rad]; in degrees the
# Academy's figures. One cone cannot hold ranges that differ by direction: what it is, is ours
BACKWARD: Vector = (0.0, 1.0, 0.0)  # turns a hanging limb backward
FORWARD: Vector = (0.0, -1.0, 0.0)  # turns a hanging limb forward, and lifts the toes
UP: Vector = (0.0, 0.0, 1.0)
DOWN: Vector = (0.0, 0.0, -1.0)
RANGES: dict[str, tuple[Vector, Vector]] = {
    # thorax and loins together: flexion 80, extension 25, to the sides 35, rotation 45
    "trunk": (UP, (1.20, -0.80, 0.80)),
    "spine": (UP, (0.60, -0.40, 0.40)),  # one half of it
    "chest": (UP, (0.60, -0.40, 0.40)),  # the other
    "neck": (UP, (0.80, -1.05, 1.05)),  # flexion, extension, to the sides 45, rotation 60
    # flexion 120, extension 30; abduction 45, adduction 30, rotation 45
    "hip": (FORWARD, (0.80, -0.50, 2.10)),
    "knee": (BACKWARD, (0.15, -0.05, 2.35)),  # flexion 135
    "ankle": (FORWARD, (0.60, -0.85, 0.35)),  # flexion 20 up, 50 down; inversion 35, eversion 15
    # forward and sideways 180, backward 60; rotation 90 outward, 70 inward
    "shoulder": (DOWN, (2.60, -1.55, 1.55)),
    "elbow": (FORWARD, (0.15, -0.05, 2.60)),  # flexion 150
    # flexion 80, extension 70, to the sides 20 and 30; the twist is the forearm's, 80 and 80
    "wrist": (DOWN, (1.30, -1.40, 1.40)),
}


def ball(name: str, side: str = "", kind: str = "") -> Joint:
    """A ball joint with the range of motion of its kind, which is its name unless given."""
    axis, limits = RANGES[kind or name]
    return Joint(f"{side}_{name}" if side else name, "ball", axis=axis, limits=limits)


# The largest moments that muscles of young men hold or slowly move against, each in its best
# posture [N m per kg of body mass], by what they do. Figures without a body mass are divided by
# 75 kg, ours. People differ by a quarter to a third (standard deviation). Women have about as much
# per kg in the legs (Anderson) and less in the arms (Harbo). A muscle that is stretched holds 1.0
# to 1.4 times as much, one that shortens fast far less.
# The characters themselves have no limits of effort: the gains of the papers need more.
MOMENTS: dict[str, dict[str, float]] = {
    # Sagittal: Anderson, Madigan and Nussbaum 2007, J. Biomech. 40:3105, Table 3, C1 of men of 18
    # to 25 (0.161, 0.113), by weight and stature, here of 1.75 m. Abduction: Sugimoto et al. 2014,
    # Clin. J. Sport Med. 24:422, athletes at 60 deg/s; adductors are stronger than abductors, and
    # rotators weakest (Cahalan et al. 1989, Clin. Orthop. 246:136)
    "hip": {
        "extension": 2.76,
        "flexion": 1.94,
        "abduction": 1.29,
        "adduction": 1.40,
        "internal": 0.60,
        "external": 0.60,
    },
    "knee": {"extension": 2.80, "flexion": 1.49},  # as the hip: 0.163, 0.087
    # Sagittal as the hip: 0.095, 0.033, with the knee bent; with a straight one the calf has a
    # fifth more. To the sides: Kruger, van Wyk and du Toit 1995, 306 men at 30 deg/s
    "ankle": {"plantarflexion": 1.63, "dorsiflexion": 0.57, "inversion": 0.43, "eversion": 0.31},
    # Lategan 2002, normative isokinetic torque values, men of 16 to 29 of 71.5 kg, at 60 deg/s, as
    # quoted by others. Abduction: Harbo, Brincks and Andersen 2012, Eur. J. Appl. Physiol. 112:267,
    # Table 5, 62 N m. Adduction: Holzbaur et al. 2007, J. Biomech. 40, 67.9 N m of women and men
    "shoulder": {
        "flexion": 1.13,
        "extension": 1.22,
        "abduction": 0.83,
        "adduction": 0.91,
        "internal": 0.71,
        "external": 0.55,
    },
    "elbow": {"flexion": 0.80, "extension": 0.75},  # Lategan; Harbo's Table 5 has 0.71 and 0.63
    # Flexion: Harbo, Table 5, 22.5 N m. Extension: Holzbaur, 10.2 N m. To the sides: Delp, Grierson
    # and Buchanan 1996, J. Biomech. 29, 11.0 and 9.5 N m of ten men
    "wrist": {
        "flexion": 0.30,
        "extension": 0.14,
        "radial": 0.15,
        "ulnar": 0.13,
        "pronation": 0.07,
        "supination": 0.12,
    },
    # Upright. Extension to flexion is 1.3 to 1: Beimborn and Morrissey 1988, Spine 13:655. Bent
    # forward the back holds more than twice as much, its passive tissue included
    "trunk": {"extension": 3.00, "flexion": 2.30, "lateral": 1.75, "rotation": 1.25},
    # Fice, Siegmund and Blouin 2014, Ann. Biomed. Eng. 42: 51, 30, 32, 13 N m of nine men
    "neck": {"extension": 0.68, "flexion": 0.40, "lateral": 0.43, "rotation": 0.17},
}

# of these no published figure has been seen: they are sizes that others work with
UNCONFIRMED = frozenset(
    {
        ("hip", "adduction"),
        ("hip", "internal"),
        ("hip", "external"),
        ("wrist", "pronation"),
        ("wrist", "supination"),
        *(("trunk", x) for x in ("extension", "flexion", "lateral", "rotation")),
    }
)
