"""The planks of Weinstein 2008, Figures 1, 7 and 8: a chain that holds itself level, or curls.

plank-N is N equal planks in a row, hinged to each other and the first to the world: N degrees of
freedom. The paper gives no numbers; a plank of ours is 25 cm x 10 cm x 2 cm of pine. At q = 0 the
chain is level and points along +x, high enough to hang free; each hinge turns about -y, so that
positive angles curl it upward. The frame of each plank sits in the hinge before it.
"""

from __future__ import annotations

from poise.errors import CharacterError
from poise.model.character import Character, Joint, Link, Shape, Vector

LENGTH = 0.25  # [m]
WIDTH = 0.10  # [m]
THICKNESS = 0.02  # [m]
DENSITY = 500.0  # of pine [kg/m^3]
LIMIT = 2.6  # of each hinge but the first [rad]
MOST = 10000  # planks

COLORS: tuple[Vector, Vector] = ((0.72, 0.53, 0.33), (0.82, 0.66, 0.45))


def plank(count: int) -> Character:
    """Make a chain of planks.

    Args:
        count: Number of planks.
    """
    if not 1 <= count <= MOST:
        raise CharacterError(f"no chain has {count} planks; it has 1 to {MOST}, as plank-8")
    links = [_plank(i, count) for i in range(count)]
    return Character(f"plank-{count}", tuple(links), {"chain": tuple(x.name for x in links)})


def _plank(i: int, count: int) -> Link:
    # a gap between the planks, so that they do not touch where they are hinged
    half = (LENGTH / 2 - THICKNESS / 4, WIDTH / 2, THICKNESS / 2)
    shape = Shape("box", half, (LENGTH / 2, 0.0, 0.0), color=COLORS[i % 2])
    limits = (-LIMIT, LIMIT) if i else None
    joint = Joint(f"hinge_{i + 1}", "hinge", axis=(0.0, -1.0, 0.0), limits=limits)
    height = max(1.0, (count + 1) * LENGTH)
    return Link.from_shapes(
        f"plank_{i + 1}",
        f"plank_{i}" if i else None,
        [shape],
        density=DENSITY,
        pos=(LENGTH, 0.0, 0.0) if i else (0.0, 0.0, height),
        joints=[joint],
    )
