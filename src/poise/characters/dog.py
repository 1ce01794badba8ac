"""The dog: 72 degrees of freedom, depth 24 (Yin and Yin 2020, Table 1).

A free root and 22 ball joints, at most six in a row. It is of medium size, 0.6 m at the withers.
All numbers are ours: lengths drawn for looks, masses from the volume of the shapes. It stands on
z = 0 and looks along +x; the frame of each link sits in the joint that moves it, with the axes of
the world.
"""

from __future__ import annotations

from poise.model.character import Character, Joint, Link, Shape, Vector

DENSITY = 800.0  # less than water, because the shapes overlap at the joints [kg/m^3]

FUR: Vector = (0.62, 0.44, 0.26)
DARK: Vector = (0.36, 0.24, 0.15)
PALE: Vector = (0.88, 0.78, 0.62)
BLACK: Vector = (0.10, 0.09, 0.09)

# axis and limits (swing, lower twist, upper twist) of the ball joints by the last word of their
# names [rad], ours. In the legs the axis is the one they flex about, and positive angles swing
# what is below forward; in trunk and tail it lies along the bone
FORWARD: Vector = (0.0, -1.0, 0.0)
ALONG: Vector = (1.0, 0.0, 0.0)
RANGES: dict[str, tuple[Vector, Vector]] = {
    "spine": (ALONG, (0.50, -0.30, 0.30)),
    "chest": (ALONG, (0.50, -0.30, 0.30)),
    "neck": (ALONG, (1.00, -0.60, 0.60)),
    "head": (ALONG, (0.90, -0.70, 0.70)),
    "tail": (ALONG, (1.30, -0.40, 0.40)),
    "tip": (ALONG, (1.00, -0.40, 0.40)),
    "scapula": (FORWARD, (0.25, -0.50, 0.50)),
    "shoulder": (FORWARD, (0.40, -0.80, 0.90)),
    "elbow": (FORWARD, (0.15, -0.50, 1.70)),
    "wrist": (FORWARD, (0.25, -1.80, 0.60)),
    "hip": (FORWARD, (0.50, -0.90, 0.90)),
    "knee": (FORWARD, (0.15, -1.20, 0.90)),
    "hock": (FORWARD, (0.20, -0.60, 1.40)),
    "toes": (FORWARD, (0.30, -1.20, 0.90)),
}


def dog() -> Character:
    """Make the dog."""
    links = [*_trunk(), *_tail()]
    limbs = {
        "torso": ("pelvis", "spine", "chest"),
        "head": ("neck", "head"),
        "tail": ("tail", "tail_tip"),
    }
    for side, y in (("left", 1.0), ("right", -1.0)):
        for end, leg in (("front", _front_leg(side, y)), ("hind", _hind_leg(side, y))):
            links += leg
            limbs[f"{end}_{side}_leg"] = tuple(link.name for link in leg)
    return Character("dog", tuple(links), limbs)


def _trunk() -> list[Link]:
    pelvis = Shape.capsule((-0.06, 0.0, 0.02), (0.08, 0.0, 0.025), 0.078, FUR)
    chest = Shape.capsule((0.03, 0.0, -0.03), (0.20, 0.0, -0.04), 0.112, FUR)
    head = [
        Shape("sphere", (0.073,), (0.03, 0.0, 0.02), color=FUR),
        Shape.capsule((0.08, 0.0, -0.005), (0.16, 0.0, -0.02), 0.035, PALE),
        Shape("sphere", (0.016,), (0.19, 0.0, -0.005), color=BLACK),
        *(shape for y in (-1.0, 1.0) for shape in _ear_and_eye(y)),
    ]
    root, height, neck = [Joint("root", "free")], (0.0, 0.0, 0.50), (0.13, 0.0, 0.13)
    return [
        Link.from_shapes("pelvis", None, [pelvis], density=DENSITY, pos=height, joints=root),
        _link("spine", "pelvis", "spine", (0.10, 0.0, 0.03), _bone((0.17, 0.0, -0.01), 0.084)),
        _link("chest", "spine", "chest", (0.18, 0.0, 0.0), chest),
        _link("neck", "chest", "neck", (0.24, 0.0, 0.03), _bone(neck, 0.066)),
        _link("head", "neck", "head", neck, *head),
    ]


def _ear_and_eye(y: float) -> list[Shape]:
    """What the head has on either side; y is the sign of the side."""
    return [
        Shape.capsule((0.005, 0.055 * y, 0.065), (-0.005, 0.082 * y, -0.005), 0.017, DARK),
        Shape("sphere", (0.011,), (0.086, 0.030 * y, 0.043), color=BLACK),
    ]


def _tail() -> list[Link]:
    first, second = (-0.14, 0.0, -0.02), (-0.13, 0.0, 0.08)
    return [
        _link("tail", "pelvis", "tail", (-0.12, 0.0, 0.05), _bone(first, 0.022)),
        _link("tail_tip", "tail", "tail_tip", first, _bone(second, 0.018, PALE)),
    ]


def _front_leg(side: str, y: float) -> list[Link]:
    """Shoulder blade, upper arm, forearm, paw; y is the sign of the side."""
    leg = f"front_{side}_"
    blade, upper_arm, forearm = (0.07, 0.035 * y, -0.13), (-0.08, 0.0, -0.13), (0.01, 0.0, -0.19)
    # the carpus is 0.11 m above the ground
    sole = Shape("box", (0.045, 0.03, 0.015), (0.035, 0.0, -0.095), color=PALE)
    paw, place = _bone((0.015, 0.0, -0.08), 0.022, PALE), (0.15, 0.045 * y, 0.03)
    return [
        _link(f"{leg}scapula", "chest", f"{leg}scapula", place, _bone(blade, 0.040)),
        _link(f"{leg}upper_arm", f"{leg}scapula", f"{leg}shoulder", blade, _bone(upper_arm, 0.038)),
        _link(f"{leg}forearm", f"{leg}upper_arm", f"{leg}elbow", upper_arm, _bone(forearm, 0.026)),
        _link(f"{leg}paw", f"{leg}forearm", f"{leg}wrist", forearm, paw, sole),
    ]


def _hind_leg(side: str, y: float) -> list[Link]:
    """Thigh, shin, metatarsus, paw; y is the sign of the side."""
    leg = f"hind_{side}_"
    thigh, shin, metatarsus = (0.07, 0.0, -0.17), (-0.14, 0.0, -0.16), (0.02, 0.0, -0.12)
    # the toes' joint is 0.04 m above the ground
    sole = Shape("box", (0.05, 0.03, 0.02), (0.03, 0.0, -0.02), color=PALE)
    return [
        _link(f"{leg}thigh", "pelvis", f"{leg}hip", (0.0, 0.07 * y, -0.01), _bone(thigh, 0.058)),
        _link(f"{leg}shin", f"{leg}thigh", f"{leg}knee", thigh, _bone(shin, 0.03)),
        _link(f"{leg}metatarsus", f"{leg}shin", f"{leg}hock", shin, _bone(metatarsus, 0.02, PALE)),
        _link(f"{leg}paw", f"{leg}metatarsus", f"{leg}toes", metatarsus, sole),
    ]


def _bone(end: Vector, radius: float, color: Vector = FUR) -> Shape:
    """A capsule from the link's origin to the next joint."""
    return Shape.capsule((0.0, 0.0, 0.0), end, radius, color)


def _link(name: str, parent: str, joint: str, pos: Vector, *shapes: Shape) -> Link:
    axis, limits = RANGES[joint.rpartition("_")[2]]
    joints = [Joint(joint, "ball", axis=axis, limits=limits)]
    return Link.from_shapes(name, parent, shapes, density=DENSITY, pos=pos, joints=joints)
