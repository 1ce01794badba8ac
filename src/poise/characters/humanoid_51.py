"""The humanoid of Kavafoglu 2018, section 3.9: 16 bodies, 51 degrees of freedom, 52 kg, 1.6 m.

The thesis names the bodies (Table 3.3), which all hang together by ball joints, their number, the
mass and the height; all else comes from `anatomy`: the sixteen bodies are the sixteen segments of
de Leva 1996, with a woman's fractions of the mass and of the trunk, which fit height and weight
better than a man's. The shapes are ours; centers of mass and inertias are those of the shapes.

At q = 0 it stands upright and looks along +x, arms down, soles on z = 0. The frame of each link
sits in the joint that moves it, that of the pelvis between the hips.
"""

from __future__ import annotations

from poise.anatomy import strength
from poise.anatomy.strength import FEMALE, ball
from poise.model.character import Character, Joint, Link, Shape, Vector

MASS = 52.0  # [kg]
HEIGHT = 1.6  # [m]

# the thesis' names of the segments
SEGMENT = {
    "lower_arm": "forearm",
    "upper_leg": "thigh",
    "lower_leg": "shin",
}
MASSES = FEMALE.masses(MASS)

SKIN: Vector = (0.85, 0.65, 0.52)
HAIR: Vector = (0.23, 0.16, 0.12)
SHIRT: Vector = (0.80, 0.32, 0.28)
TROUSERS: Vector = (0.22, 0.25, 0.36)
SHOES: Vector = (0.92, 0.91, 0.88)

THIGH = HEIGHT * (strength.HIP - strength.KNEE)
SHIN = HEIGHT * (strength.KNEE - strength.ANKLE)
ANKLE = HEIGHT * strength.ANKLE
UPPER_ARM = HEIGHT * strength.UPPER_ARM
FOREARM = HEIGHT * strength.FOREARM
HAND = HEIGHT * strength.HAND
FOOT = HEIGHT * strength.FOOT


def humanoid_51() -> Character:
    """Make the humanoid of 51 degrees of freedom."""
    links = [*_trunk(), *_side("left", 1.0), *_side("right", -1.0)]
    limbs = {"torso": ("pelvis", "spine", "chest"), "head": ("head",)}
    for side in ("left", "right"):
        limbs[f"{side}_arm"] = tuple(f"{side}_{x}" for x in ("upper_arm", "lower_arm", "hand"))
        limbs[f"{side}_leg"] = tuple(f"{side}_{x}" for x in ("upper_leg", "lower_leg", "foot"))
    return Character("humanoid-51", tuple(links), limbs)


def _trunk() -> list[Link]:
    hip, navel, breast, neck = (
        HEIGHT * x for x in (strength.HIP, FEMALE.navel, FEMALE.breast, FEMALE.neck)
    )
    top = HEIGHT - neck
    pelvis = [_across(0.025, 0.078, 0.090, TROUSERS), _across(0.105, 0.052, 0.078, TROUSERS)]
    spine = _flanks((0.048, 0.01), (0.050, 0.15), 0.074)
    chest = [*_flanks((0.050, 0.01), (0.070, 0.105), 0.083), _across(0.135, 0.122, 0.060, SHIRT)]
    head = [
        Shape.capsule((0.0, 0.0, 0.0), (0.005, 0.0, 0.06), 0.045, SKIN),
        Shape.capsule((0.023, 0.0, 0.092), (0.018, 0.0, top - 0.104), 0.073, SKIN),
        Shape("sphere", (0.084,), (-0.001, 0.0, top - 0.084), color=HAIR),
    ]
    return [
        _link("pelvis", None, (0.0, 0.0, hip), Joint("root", "free"), *pelvis),
        _link("spine", "pelvis", (0.0, 0.0, navel - hip), ball("spine"), *spine),
        _link("chest", "spine", (0.0, 0.0, breast - navel), ball("chest"), *chest),
        _link("head", "chest", (0.0, 0.0, neck - breast), ball("neck"), *head),
    ]


def _side(side: str, y: float) -> list[Link]:
    """The leg and the arm of one side; y is the sign of that side."""
    hip = (0.0, y * HEIGHT * strength.HIP_Y, 0.0)
    up = HEIGHT * (strength.SHOULDER - FEMALE.breast)
    shoulder = (0.0, y * HEIGHT * strength.SHOULDER_Y, up)
    upper_leg = [
        Shape.capsule((0.0, 0.0, -0.02), (0.0, 0.0, -0.19), 0.076, TROUSERS),
        Shape.capsule((0.0, 0.0, -0.15), (0.0, 0.0, 0.01 - THIGH), 0.055, TROUSERS),
    ]
    lower_leg = [
        Shape.capsule((-0.008, 0.0, -0.07), (-0.012, 0.0, -0.17), 0.050, TROUSERS),
        Shape.capsule((0.0, 0.0, -0.02), (0.0, 0.0, 0.02 - SHIN), 0.040, TROUSERS),
    ]
    arm = [Shape.capsule((0.0, 0.0, -0.005), (0.0, 0.0, 0.01 - UPPER_ARM), 0.042, SHIRT)]
    forearm = [
        Shape.capsule((0.0, 0.0, -0.01), (0.0, 0.0, -0.11), 0.037, SKIN),
        Shape.capsule((0.0, 0.0, -0.08), (0.0, 0.0, 0.01 - FOREARM), 0.030, SKIN),
    ]
    hand = [
        Shape("box", (0.036, 0.014, 0.042), (0.0, 0.0, -0.045), color=SKIN),
        Shape("box", (0.032, 0.011, 0.040), (0.004, 0.0, 0.040 - HAND), color=SKIN),
    ]

    def limb(name: str, parent: str, pos: Vector, joint: str, shapes: list[Shape]) -> Link:
        return _link(f"{side}_{name}", parent, pos, ball(joint, side), *shapes)

    return [
        limb("upper_leg", "pelvis", hip, "hip", upper_leg),
        limb("lower_leg", f"{side}_upper_leg", (0.0, 0.0, -THIGH), "knee", lower_leg),
        limb("foot", f"{side}_lower_leg", (0.0, 0.0, -SHIN), "ankle", _foot()),
        limb("upper_arm", "chest", shoulder, "shoulder", arm),
        limb("lower_arm", f"{side}_upper_arm", (0.0, 0.0, -UPPER_ARM), "elbow", forearm),
        limb("hand", f"{side}_lower_arm", (0.0, 0.0, -FOREARM), "wrist", hand),
    ]


def _foot() -> list[Shape]:
    """A sole of the foot's length and width, a quarter of it behind the ankle, and an instep."""
    half = (FOOT / 2, HEIGHT * strength.FOOT_WIDTH / 2, 0.020)
    return [
        Shape("box", half, (FOOT / 4, 0.0, half[2] - ANKLE), color=SHOES),
        Shape.capsule((-0.005, 0.0, -0.005), (0.085, 0.0, -0.035), 0.026, SHOES),
    ]


def _flanks(low: tuple[float, float], high: tuple[float, float], radius: float) -> list[Shape]:
    """Three capsules side by side, the outer ones from a distance and height to another."""
    return [
        Shape.capsule((0.0, y * low[0], low[1]), (0.0, y * high[0], high[1]), radius, SHIRT)
        for y in (-1.0, 0.0, 1.0)
    ]


def _across(z: float, half: float, radius: float, color: Vector) -> Shape:
    """A capsule from right to left at a height."""
    return Shape.capsule((0.0, -half, z), (0.0, half, z), radius, color)


def _link(name: str, parent: str | None, pos: Vector, joint: Joint, *shapes: Shape) -> Link:
    segment = name.removeprefix("left_").removeprefix("right_")
    mass = MASSES[SEGMENT.get(segment, segment)]
    return Link.from_shapes(name, parent, shapes, mass=mass, pos=pos, joints=[joint])
