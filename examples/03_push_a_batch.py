"""How hard a push does a standing humanoid take? Eighty copies answer in one batch.

    python examples/03_push_a_batch.py

Each copy of the world gets a push of its own direction and strength. A servo tracks joint angles
and does not balance: compare with examples/08_balance.py.
"""

import numpy as np

import poise
from poise import measure

DIRECTIONS = {"forward": (1, 0, 0), "back": (-1, 0, 0), "left": (0, 1, 0), "right": (0, -1, 0)}
impulses = np.linspace(2.0, 40.0, 20)  # [N s], each within 0.1 s

humanoid = poise.load_character("humanoid")
force = np.array([np.array(way) * p / 0.1 for way in DIRECTIONS.values() for p in impulses])

world = poise.World(humanoid, n=len(force), dt=1 / 60)
servo = poise.StablePD(world, frequency=60.0)
stance = poise.Target(humanoid.rest_q)

world.push("chest", force, duration=0.1, at=0.5)
poise.run(world, servo, stance, 4.0)

fallen = measure.fallen(world, world.state.q).reshape(len(DIRECTIONS), -1)
# the strongest push below the first that makes it fall
strongest = {name: impulses[row.argmax() - 1] for name, row in zip(DIRECTIONS, fallen, strict=True)}
for name, impulse in strongest.items():
    print(f"pushed {name:<8} it stands up to {impulse:.0f} N s")
