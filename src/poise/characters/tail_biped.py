"""The tail-biped: two legs and a long tail, for the non-humanoids of Macchietto 2008, section 7.5.

A runner like a small theropod, 1.2 m high, without arms: what a person does with arms, it must do
with its tail. 16 links and 51 degrees of freedom: a free root and 15 ball joints. As in the
thesis, the skeleton is roughly crafted and its density that of water; all numbers are ours. It
stands on z = 0, its center of mass above its feet, and looks along +x; the frame of each link sits
in the joint that moves it, with the axes of the world.
"""

from __future__ import annotations

from poise.model.character import Character, Joint, Link, Shape, Vector

DENSITY = 1000.0  # that of water [kg/m^3]

# the tail's links: where each ends, from its joint, and its radius [m]
TAIL: tuple[tuple[Vector, float], ...] = (
    ((-0.15, 0.0, 0.005), 0.075),
    ((-0.15, 0.0, 0.0), 0.062),
    ((-0.15, 0.0, -0.005), 0.050),
    ((-0.15, 0.0, 0.0), 0.040),
    ((-0.15, 0.0, 0.01), 0.032),
    ((-0.15, 0.0, 0.02), 0.024),
)

HIDE: Vector = (0.32, 0.52, 0.50)
BACK: Vector = (0.22, 0.38, 0.40)
FEET: Vector = (0.85, 0.66, 0.32)
EYES: Vector = (0.10, 0.10, 0.10)

# axis and limits (swing, lower twist, upper twist) of the ball joints [rad]; legs as in `anatomy`:
# the twist is the flexion
ALONG: Vector = (1.0, 0.0, 0.0)
FORWARD: Vector = (0.0, -1.0, 0.0)
BACKWARD: Vector = (0.0, 1.0, 0.0)
RANGES: dict[str, tuple[Vector, Vector]] = {
    "chest": (ALONG, (0.50, -0.30, 0.30)),
    "neck": (ALONG, (0.90, -0.60, 0.60)),
    "head": (ALONG, (0.80, -0.60, 0.60)),
    "tail": (ALONG, (0.60, -0.25, 0.25)),
    "hip": (FORWARD, (0.60, -1.00, 1.10)),
    "knee": (BACKWARD, (0.20, -0.70, 1.40)),
    "ankle": (FORWARD, (0.40, -1.00, 0.90)),
}


def tail_biped() -> Character:
    """Make the tail-biped."""
    links = [*_trunk(), *_tail()]
    limbs = {
        "torso": ("pelvis", "chest"),
        "head": ("neck", "head"),
        "tail": tuple(f"tail_{i + 1}" for i in range(len(TAIL))),
    }
    for side, y in (("left", 1.0), ("right", -1.0)):
        leg = _leg(side, y)
        links += leg
        limbs[f"{side}_leg"] = tuple(link.name for link in leg)
    return Character("tail-biped", tuple(links), limbs)


def _trunk() -> list[Link]:
    pelvis = Shape.capsule((-0.08, 0.0, 0.0), (0.07, 0.0, 0.01), 0.115, HIDE)
    root, height = [Joint("root", "free")], (0.0, 0.0, 0.78)
    chest = Shape.capsule((0.03, 0.0, 0.01), (0.20, 0.0, 0.08), 0.115, HIDE)
    neck = Shape.capsule((0.0, 0.0, 0.0), (0.10, 0.0, 0.16), 0.060, HIDE)
    head = [
        Shape.capsule((0.01, 0.0, 0.03), (0.08, 0.0, 0.03), 0.070, HIDE),
        Shape.capsule((0.10, 0.0, 0.015), (0.22, 0.0, -0.01), 0.045, BACK),
        *(Shape("sphere", (0.018,), (0.08, y, 0.065), color=EYES) for y in (-0.052, 0.052)),
    ]
    return [
        Link.from_shapes("pelvis", None, [pelvis], density=DENSITY, pos=height, joints=root),
        _link("chest", "pelvis", "chest", (0.14, 0.0, 0.03), chest),
        _link("neck", "chest", "neck", (0.26, 0.0, 0.12), neck),
        _link("head", "neck", "head", (0.10, 0.0, 0.16), *head),
    ]


def _tail() -> list[Link]:
    links: list[Link] = []
    parent = "pelvis"
    pos: Vector = (-0.14, 0.0, 0.015)
    for i, (end, radius) in enumerate(TAIL):
        name = f"tail_{i + 1}"
        color = BACK if i % 2 else HIDE
        links.append(_link(name, parent, name, pos, _bone(end, radius, color)))
        parent, pos = name, end
    return links


def _leg(side: str, y: float) -> list[Link]:
    """Thigh, shin and a foot that stands on its toes; y is the sign of the side."""
    thigh, shin = (0.16, 0.0, -0.29), (-0.19, 0.0, -0.28)
    # the ankle is 0.19 m above the ground
    foot = [
        Shape.capsule((0.0, 0.0, 0.0), (0.07, 0.0, -0.14), 0.034, FEET),
        Shape("box", (0.12, 0.055, 0.022), (0.11, 0.0, -0.168), color=FEET),
    ]
    hip = (0.02, 0.12 * y, -0.02)
    return [
        _link(f"{side}_thigh", "pelvis", f"{side}_hip", hip, _bone(thigh, 0.075, HIDE)),
        _link(f"{side}_shin", f"{side}_thigh", f"{side}_knee", thigh, _bone(shin, 0.046, HIDE)),
        _link(f"{side}_foot", f"{side}_shin", f"{side}_ankle", shin, *foot),
    ]


def _bone(end: Vector, radius: float, color: Vector) -> Shape:
    """A capsule from the link's origin to the next joint."""
    return Shape.capsule((0.0, 0.0, 0.0), end, radius, color)


def _link(name: str, parent: str, joint: str, pos: Vector, *shapes: Shape) -> Link:
    kind = joint.removeprefix("left_").removeprefix("right_").partition("_")[0]
    axis, limits = RANGES[kind]
    joints = [Joint(joint, "ball", axis=axis, limits=limits)]
    return Link.from_shapes(name, parent, shapes, density=DENSITY, pos=pos, joints=joints)
