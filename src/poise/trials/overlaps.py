"""Links that a clip moves through each other.

Drawn and captured motions do that: the shapes of a body are stiff, flesh is not. In a physical
world such links would be pressed apart, against the motion that they shall follow.
"""

from __future__ import annotations

import numpy as np

from poise.motion.clip import Clip
from poise.simulation.state import State
from poise.simulation.world import World

DEEPEST = 1e-4
"""Links that overlap by less can be kept apart [m]. More is pressed apart by stiff joints, 1.5 mm
at the hips of tail-biped-dance with eleven times its weight."""

MOST_POSES = 256
"""That are looked at, evenly over the clip."""


def overlapping_links(clip: Clip, deepest: float = DEEPEST) -> dict[tuple[str, str], float]:
    """Pairs of links that overlap in a clip, and how deep at most [m].

    Args:
        clip: The motion.
        deepest: Less than this does not count [m].
    """
    times = np.linspace(0.0, clip.duration, min(len(clip), MOST_POSES))
    # one short step of a world without forces tells what touches what in each pose
    world = World(
        clip.character, n=len(times), dt=1e-6, ground=False, gravity=(0, 0, 0), projectiles=0
    )
    q = clip.q(times)
    world.reset(State(q if world.n > 1 else q[0]))
    world.step()
    touches, names = world.contacts, world.scene.forest.link_names
    found: dict[tuple[str, str], float] = {}
    for one, two, depth in zip(touches.link, touches.other, touches.depth, strict=True):
        pair = names[min(one, two)], names[max(one, two)]
        found[pair] = max(found.get(pair, 0.0), float(depth))
    return {pair: depth for pair, depth in found.items() if depth > deepest}
