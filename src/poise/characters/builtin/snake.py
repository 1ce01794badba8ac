"""The snakes: a free head and k ball joints in one chain, 6 + 3 k degrees of freedom.

Snake-36, snake-72 and snake-195 have the degrees of freedom and the depth of the three snakes in
Yin and Yin 2020, Table 1; the numbers of a segment are ours. A snake lies stretched on the ground,
z = 0, and looks along +x; the frame of each segment sits in the joint before it, its body trails
along -x. All segments but the head are alike.
"""

from __future__ import annotations

from poise.errors import CharacterError
from poise.model.character import Character, Joint, Link, Shape, Vector

SPACING = 0.10  # between two joints [m]
RADIUS = 0.04  # [m]
DENSITY = 1000.0  # that of water [kg/m^3]
MOST = 30006  # degrees of freedom: ten thousand joints are enough

LIMITS: Vector = (0.50, -0.15, 0.15)  # swing from the segment before, twist about +x [rad]

COLORS: tuple[Vector, Vector] = ((0.30, 0.52, 0.30), (0.72, 0.68, 0.38))
EYES: Vector = (0.08, 0.08, 0.08)


def snake(dof: int) -> Character:
    """Make a snake.

    Args:
        dof: Degrees of freedom, 6 + 3 k for k ball joints.
    """
    if dof < 6 or dof > MOST or dof % 3:
        below = min(max(6, dof - dof % 3), MOST)
        near = ", ".join(f"snake-{n}" for n in (below, below + 3) if n <= MOST)
        raise CharacterError(
            f"no snake has {dof} degrees of freedom; it has 6 + 3 k, from 6 to {MOST}; "
            f"nearest: {near}"
        )
    links = [_segment(i) for i in range((dof - 6) // 3 + 1)]
    return Character(f"snake-{dof}", tuple(links), {"torso": tuple(link.name for link in links)})


def _segment(i: int) -> Link:
    # a colour for two segments, then the other
    color = COLORS[(i + 1) // 2 % 2]
    shapes = [Shape.capsule((0.0, 0.0, 0.0), (-SPACING, 0.0, 0.0), RADIUS, color)]
    joint = Joint(f"spine_{i}", "ball", axis=(1.0, 0.0, 0.0), limits=LIMITS)
    if i == 0:
        joint = Joint("root", "free")
        shapes += _face()
    return Link.from_shapes(
        _name(i),
        _name(i - 1) if i else None,
        shapes,
        density=DENSITY,
        pos=(-SPACING, 0.0, 0.0) if i else (0.0, 0.0, RADIUS),
        joints=[joint],
    )


def _face() -> list[Shape]:
    """A broad snout, and eyes."""
    snout = Shape.capsule((0.026, -0.012, -0.008), (0.026, 0.012, -0.008), 0.026, COLORS[0])
    eyes = [Shape("sphere", (0.009,), (0.022, 0.024 * y, 0.026), color=EYES) for y in (-1.0, 1.0)]
    return [snout, *eyes]


def _name(i: int) -> str:
    return f"segment_{i}" if i else "head"
