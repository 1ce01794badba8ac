"""The two-link arm of Kavafoglu 2018, Figure 3.3: two cylinders that swing in a vertical plane.

Each is 30 cm long, 7 cm in diameter and 1.54 kg of uniform mass; the thesis calls the upper one
rigid body A and the lower one B. The arm hangs from a fixed point along -z at q = 0 and swings in
the x-z plane, each hinge about +y. To draw and collide it has capsules of that length and width.
"""

from __future__ import annotations

from poise.model.character import Character, Joint, Link, Shape, Vector

LENGTH = 0.30  # [m]
RADIUS = 0.035  # [m]
MASS = 1.54  # [kg]
HEIGHT = 1.0  # of the fixed point above the ground [m], ours

UPPER: Vector = (0.26, 0.45, 0.66)
LOWER: Vector = (0.88, 0.58, 0.24)


def two_link() -> Character:
    """Make the two-link arm."""
    links = (
        _cylinder("upper", None, (0.0, 0.0, HEIGHT), "shoulder", UPPER),
        _cylinder("lower", "upper", (0.0, 0.0, -LENGTH), "elbow", LOWER),
    )
    return Character("two-link", links, {"arm": ("upper", "lower")})


def _cylinder(name: str, parent: str | None, pos: Vector, joint: str, color: Vector) -> Link:
    across = MASS * (RADIUS**2 / 4.0 + LENGTH**2 / 12.0)
    along = MASS * RADIUS**2 / 2.0
    return Link(
        name,
        parent,
        pos,
        joints=(Joint(joint, "hinge", axis=(0.0, 1.0, 0.0)),),
        mass=MASS,
        com=(0.0, 0.0, -LENGTH / 2.0),
        inertia=(across, across, along),
        shapes=(Shape.capsule((0.0, 0.0, -RADIUS), (0.0, 0.0, RADIUS - LENGTH), RADIUS, color),),
    )
