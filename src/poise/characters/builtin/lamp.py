"""The lamp: a hopper on one foot, for the non-humanoids of Macchietto 2008, section 7.5.

A desk lamp with a heavy base, two arms and a shade: 4 links and 15 degrees of freedom, a free root
and three ball joints. As in the thesis, it is roughly crafted, and of water, but for the shade,
which is hollow; all numbers are ours. It stands on z = 0 and looks along +x; the frame of each
link sits in the joint that moves it, with the axes of the world.
"""

from __future__ import annotations

import math

from poise.model.character import Character, Joint, Link, Shape, Vector

DENSITY = 1000.0  # that of water [kg/m^3]
HOLLOW = 300.0  # of the shade, as if it were filled evenly [kg/m^3]

BASE: Vector = (0.12, 0.10, 0.022)  # half sizes [m]
NECK = 0.06  # height of the lower joint above the ground [m]
LOWER: Vector = (-0.13, 0.0, 0.25)  # from joint to joint [m]
UPPER: Vector = (0.17, 0.0, 0.22)

PAINT: Vector = (0.86, 0.60, 0.18)
STEEL: Vector = (0.55, 0.57, 0.60)
BULB: Vector = (1.00, 0.97, 0.85)

# axis and limits (swing, lower twist, upper twist) of the ball joints [rad]; the axis turns forward
FORWARD: Vector = (0.0, 1.0, 0.0)
RANGES: dict[str, Vector] = {
    "ankle": (0.35, -0.70, 1.10),
    "elbow": (0.25, -1.00, 1.60),
    "head": (0.70, -1.20, 1.00),
}


def lamp() -> Character:
    """Make the lamp."""
    base = [
        Shape("box", BASE, (0.0, 0.0, BASE[2] - NECK), color=PAINT),
        Shape.capsule((0.0, 0.0, 0.0), (0.0, 0.0, BASE[2] - NECK), 0.022, STEEL),
    ]
    root = Link.from_shapes(
        "base", None, base, density=DENSITY, pos=(0.0, 0.0, NECK), joints=[Joint("root", "free")]
    )
    links = (
        root,
        _link("lower_arm", "base", (0.0, 0.0, 0.0), "ankle", DENSITY, _rod(LOWER)),
        _link("upper_arm", "lower_arm", LOWER, "elbow", DENSITY, _rod(UPPER)),
        _link("shade", "upper_arm", UPPER, "head", HOLLOW, *_shade()),
    )
    limbs = {"leg": ("base", "lower_arm"), "torso": ("upper_arm",), "head": ("shade",)}
    return Character("lamp", links, limbs)


def _shade() -> list[Shape]:
    """A cone without its tip that opens forward and down, and the bulb in it."""
    corners = [
        (radius * math.cos(angle), radius * math.sin(angle), z)
        for radius, z in ((0.038, -0.01), (0.095, 0.115))
        for angle in (math.pi * i / 12 for i in range(24))
    ]
    # +z of the cone turned down to 35 degrees below the horizon
    half = math.radians(90.0 + 35.0) / 2
    quat = (math.cos(half), 0.0, math.sin(half), 0.0)
    along = (math.sin(2 * half), 0.0, math.cos(2 * half))
    bulb = tuple(0.105 * x for x in along)
    return [
        Shape.mesh(corners, quat=quat, color=PAINT),
        Shape("sphere", (0.035,), bulb, color=BULB),
    ]


def _rod(end: Vector) -> Shape:
    return Shape.capsule((0.0, 0.0, 0.0), end, 0.018, STEEL)


def _link(name: str, parent: str, pos: Vector, joint: str, density: float, *shapes: Shape) -> Link:
    joints = [Joint(joint, "ball", axis=FORWARD, limits=RANGES[joint])]
    return Link.from_shapes(name, parent, shapes, density=density, pos=pos, joints=joints)
