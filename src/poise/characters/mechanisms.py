"""Mechanisms: the snakes, the planks, the two-link arm and the lamp."""

from __future__ import annotations

import math

from poise.errors import CharacterError
from poise.model.character import Character, Joint, Link, Shape, Vector

WATER = 1000.0  # density [kg/m^3]


# ---- snakes
#
# The snakes: a free head and k ball joints in one chain, 6 + 3 k degrees of freedom.
#
# Snake-36, snake-72 and snake-195 have the degrees of freedom and the depth of the three snakes in
# Yin and Yin 2020, Table 1; the numbers of a segment are ours. A snake lies stretched on the
# ground, z = 0, and looks along +x; the frame of each segment sits in the joint before it, its body
# trails along -x. All segments but the head are alike.

SNAKE_SPACING = 0.10  # between two joints [m]
SNAKE_RADIUS = 0.04  # [m]
SNAKE_MOST = 30006  # degrees of freedom: ten thousand joints are enough

SNAKE_LIMITS: Vector = (0.50, -0.15, 0.15)  # swing from the segment before, twist about +x [rad]

SNAKE_COLORS: tuple[Vector, Vector] = ((0.30, 0.52, 0.30), (0.72, 0.68, 0.38))
SNAKE_EYES: Vector = (0.08, 0.08, 0.08)


def snake(dof: int) -> Character:
    """Make a snake.

    Args:
        dof: Degrees of freedom, 6 + 3 k for k ball joints.
    """
    if dof < 6 or dof > SNAKE_MOST or dof % 3:
        below = min(max(6, dof - dof % 3), SNAKE_MOST)
        near = ", ".join(f"snake-{n}" for n in (below, below + 3) if n <= SNAKE_MOST)
        raise CharacterError(
            f"no snake has {dof} degrees of freedom; it has 6 + 3 k, from 6 to {SNAKE_MOST}; "
            f"nearest: {near}"
        )
    links = [_segment(i) for i in range((dof - 6) // 3 + 1)]
    return Character(f"snake-{dof}", tuple(links), {"torso": tuple(link.name for link in links)})


def _segment(i: int) -> Link:
    # a colour for two segments, then the other
    color = SNAKE_COLORS[(i + 1) // 2 % 2]
    shapes = [Shape.capsule((0.0, 0.0, 0.0), (-SNAKE_SPACING, 0.0, 0.0), SNAKE_RADIUS, color)]
    joint = Joint(f"spine_{i}", "ball", axis=(1.0, 0.0, 0.0), limits=SNAKE_LIMITS)
    if i == 0:
        joint = Joint("root", "free")
        shapes += _face()
    return Link.from_shapes(
        _segment_name(i),
        _segment_name(i - 1) if i else None,
        shapes,
        density=WATER,
        pos=(-SNAKE_SPACING, 0.0, 0.0) if i else (0.0, 0.0, SNAKE_RADIUS),
        joints=[joint],
    )


def _face() -> list[Shape]:
    """A broad snout, and eyes."""
    snout = Shape.capsule((0.026, -0.012, -0.008), (0.026, 0.012, -0.008), 0.026, SNAKE_COLORS[0])
    eyes = [
        Shape("sphere", (0.009,), (0.022, 0.024 * y, 0.026), color=SNAKE_EYES) for y in (-1.0, 1.0)
    ]
    return [snout, *eyes]


def _segment_name(i: int) -> str:
    return f"segment_{i}" if i else "head"


# ---- planks
#
# The planks of Weinstein 2008, Figures 1, 7 and 8: a chain that holds itself level, or curls.
#
# plank-N is N equal planks in a row, hinged to each other and the first to the world: N degrees of
# freedom. The paper gives no numbers; a plank of ours is 25 cm x 10 cm x 2 cm of pine. At q = 0 the
# chain is level and points along +x, high enough to hang free; each hinge turns about -y, so that
# positive angles curl it upward. The frame of each plank sits in the hinge before it.

PLANK_LENGTH = 0.25  # [m]
PLANK_WIDTH = 0.10  # [m]
PLANK_THICKNESS = 0.02  # [m]
PINE = 500.0  # [kg/m^3]
PLANK_LIMIT = 2.6  # of each hinge but the first [rad]
PLANK_MOST = 10000  # planks

PLANK_COLORS: tuple[Vector, Vector] = ((0.72, 0.53, 0.33), (0.82, 0.66, 0.45))


def plank(count: int) -> Character:
    """Make a chain of planks.

    Args:
        count: Number of planks.
    """
    if not 1 <= count <= PLANK_MOST:
        raise CharacterError(f"no chain has {count} planks; it has 1 to {PLANK_MOST}, as plank-8")
    links = [_plank(i, count) for i in range(count)]
    return Character(f"plank-{count}", tuple(links), {"chain": tuple(x.name for x in links)})


def _plank(i: int, count: int) -> Link:
    # a gap between the planks, so that they do not touch where they are hinged
    half = (PLANK_LENGTH / 2 - PLANK_THICKNESS / 4, PLANK_WIDTH / 2, PLANK_THICKNESS / 2)
    shape = Shape("box", half, (PLANK_LENGTH / 2, 0.0, 0.0), color=PLANK_COLORS[i % 2])
    limits = (-PLANK_LIMIT, PLANK_LIMIT) if i else None
    joint = Joint(f"hinge_{i + 1}", "hinge", axis=(0.0, -1.0, 0.0), limits=limits)
    height = max(1.0, (count + 1) * PLANK_LENGTH)
    return Link.from_shapes(
        f"plank_{i + 1}",
        f"plank_{i}" if i else None,
        [shape],
        density=PINE,
        pos=(PLANK_LENGTH, 0.0, 0.0) if i else (0.0, 0.0, height),
        joints=[joint],
    )


# ---- two-link arm
#
# The two-link arm of Kavafoglu 2018, Figure 3.3: two cylinders that swing in a vertical plane.
#
# Each is 30 cm long, 7 cm in diameter and 1.54 kg of uniform mass; the thesis calls the upper one
# rigid body A and the lower one B. The arm hangs from a fixed point along -z at q = 0 and swings in
# the x-z plane, each hinge about +y. To draw and collide it has capsules of that length and width.

ARM_LENGTH = 0.30  # [m]
ARM_RADIUS = 0.035  # [m]
ARM_MASS = 1.54  # [kg]
ARM_HEIGHT = 1.0  # of the fixed point above the ground [m], ours

ARM_UPPER: Vector = (0.26, 0.45, 0.66)
ARM_LOWER: Vector = (0.88, 0.58, 0.24)


def two_link() -> Character:
    """Make the two-link arm."""
    links = (
        _cylinder("upper", None, (0.0, 0.0, ARM_HEIGHT), "shoulder", ARM_UPPER),
        _cylinder("lower", "upper", (0.0, 0.0, -ARM_LENGTH), "elbow", ARM_LOWER),
    )
    return Character("two-link", links, {"arm": ("upper", "lower")})


def _cylinder(name: str, parent: str | None, pos: Vector, joint: str, color: Vector) -> Link:
    across = ARM_MASS * (ARM_RADIUS**2 / 4.0 + ARM_LENGTH**2 / 12.0)
    along = ARM_MASS * ARM_RADIUS**2 / 2.0
    return Link(
        name,
        parent,
        pos,
        joints=(Joint(joint, "hinge", axis=(0.0, 1.0, 0.0)),),
        mass=ARM_MASS,
        com=(0.0, 0.0, -ARM_LENGTH / 2.0),
        inertia=(across, across, along),
        shapes=(
            Shape.capsule(
                (0.0, 0.0, -ARM_RADIUS), (0.0, 0.0, ARM_RADIUS - ARM_LENGTH), ARM_RADIUS, color
            ),
        ),
    )


# ---- lamp
#
# The lamp: a hopper on one foot, for the non-humanoids of Macchietto 2008, section 7.5.
#
# A desk lamp with a heavy base, two arms and a shade: 4 links and 15 degrees of freedom, a free
# root and three ball joints. As in the thesis, it is roughly crafted, and of water, but for the
# shade, which is hollow; all numbers are ours. It stands on z = 0 and looks along +x; the frame of
# each link sits in the joint that moves it, with the axes of the world.

LAMP_HOLLOW = 300.0  # of the shade, as if it were filled evenly [kg/m^3]

LAMP_BASE: Vector = (0.12, 0.10, 0.022)  # half sizes [m]
LAMP_NECK = 0.06  # height of the lower joint above the ground [m]
LAMP_LOWER: Vector = (-0.13, 0.0, 0.25)  # from joint to joint [m]
LAMP_UPPER: Vector = (0.17, 0.0, 0.22)

LAMP_PAINT: Vector = (0.86, 0.60, 0.18)
LAMP_STEEL: Vector = (0.55, 0.57, 0.60)
LAMP_BULB: Vector = (1.00, 0.97, 0.85)

# axis and limits (swing, lower twist, upper twist) of the ball joints [rad]; the axis turns forward
LAMP_FORWARD: Vector = (0.0, 1.0, 0.0)
LAMP_RANGES: dict[str, Vector] = {
    "ankle": (0.35, -0.70, 1.10),
    "elbow": (0.25, -1.00, 1.60),
    "head": (0.70, -1.20, 1.00),
}


def lamp() -> Character:
    """Make the lamp."""
    base = [
        Shape("box", LAMP_BASE, (0.0, 0.0, LAMP_BASE[2] - LAMP_NECK), color=LAMP_PAINT),
        Shape.capsule((0.0, 0.0, 0.0), (0.0, 0.0, LAMP_BASE[2] - LAMP_NECK), 0.022, LAMP_STEEL),
    ]
    root = Link.from_shapes(
        "base", None, base, density=WATER, pos=(0.0, 0.0, LAMP_NECK), joints=[Joint("root", "free")]
    )
    links = (
        root,
        _lamp_link("lower_arm", "base", (0.0, 0.0, 0.0), "ankle", WATER, _lamp_rod(LAMP_LOWER)),
        _lamp_link("upper_arm", "lower_arm", LAMP_LOWER, "elbow", WATER, _lamp_rod(LAMP_UPPER)),
        _lamp_link("shade", "upper_arm", LAMP_UPPER, "head", LAMP_HOLLOW, *_lamp_shade()),
    )
    limbs = {"leg": ("base", "lower_arm"), "torso": ("upper_arm",), "head": ("shade",)}
    return Character("lamp", links, limbs)


def _lamp_shade() -> list[Shape]:
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
        Shape.mesh(corners, quat=quat, color=LAMP_PAINT),
        Shape("sphere", (0.035,), bulb, color=LAMP_BULB),
    ]


def _lamp_rod(end: Vector) -> Shape:
    return Shape.capsule((0.0, 0.0, 0.0), end, 0.018, LAMP_STEEL)


def _lamp_link(
    name: str, parent: str, pos: Vector, joint: str, density: float, *shapes: Shape
) -> Link:
    joints = [Joint(joint, "ball", axis=LAMP_FORWARD, limits=LAMP_RANGES[joint])]
    return Link.from_shapes(name, parent, shapes, density=density, pos=pos, joints=joints)
