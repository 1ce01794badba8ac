"""K9: what the inverse dynamics of the humanoid of 51 degrees of freedom costs."""

from __future__ import annotations

import numpy as np

import poise
from poise.experiments.report import Claim, Item, Table
from poise.math.arrays import Progress
from poise.trials.timing import best_of

STEP, STIFFNESS = 1 / 100, 500.0  # [s], [1/s²]
MANY = 1024  # states in a batch


def k9(progress: Progress) -> Item:
    """Inverse dynamics of 51 degrees of freedom."""
    character = poise.load_character("humanoid-51")
    rng = np.random.default_rng(9)
    q, v, a = character.rest_q, rng.normal(size=character.nv), rng.normal(size=character.nv)
    many = [np.tile(x, (MANY, 1)) for x in (q, v, a)]
    world = poise.World(character, dt=STEP, contact=None, ground=False)
    servo = poise.InverseDynamics(world, STIFFNESS, root="held")
    state, target = world.state, poise.Target(q, v, a)
    kane = poise.dynamics.kane_inverse_dynamics
    took = best_of(
        {
            "kane_inverse_dynamics, one state": lambda: kane(character, q, v, a),
            f"the same for {MANY} states, each": lambda: kane(character, *many),
            "InverseDynamics, target to command": lambda: servo(state, target),
        },
        windows=60,
        most=5.0,
    )
    one, each, whole = (1e6 * seconds for seconds in took.values())
    each /= MANY
    item = Item(
        "K9",
        "Cost of the inverse dynamics",
        "section 3.9",
        "The recursion for the humanoid of 51 degrees of freedom, called from Python, best of many "
        "windows by the thread's clock.",
    )
    item.claims = [
        Claim("51 degrees of freedom in real time", "under 1000 µs",
              f"{one:.1f} µs; {each:.2f} µs in a batch", "under 10 µs", one < 10.0)
    ]  # fmt: skip
    rows = [[name, x] for name, x in zip(took, (one, each, whole), strict=True)]
    item.tables = [Table("time", ["", "µs"], rows)]
    return item
