"""Which way does a pushed character fall, and what keeps it up?

    python examples/09_balance.py [--out DIR]

First a batch: one push on the head, in four directions, with all objectives and with tracking
alone. Then one character that kicks on one leg and is pushed. Leaves in DIR a plot of its center
of mass, pressure and momentum, a contact sheet, and the recording.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.recording.summary import balance_table, stance_of
from poise.simulation.pushes import Push
from poise.view import recording_sheet, save_image
from poise.view.balance_plots import balance_plot

DT, FORCE = 1 / 120, 220.0  # [s], [N]
WAYS = {"forward": (1, 0, 0), "back": (-1, 0, 0), "left": (0, 1, 0), "right": (0, -1, 0)}
SETS = {"all objectives": ("track", "linear", "angular"), "tracking alone": ("track",)}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/balance"))
out: Path = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)
character = poise.load_character("humanoid-ball")
clip = poise.load_clip("forward-kick", character)

# ---- a batch: it stands, each copy is pushed in its own direction
stance = poise.State(clip.q(0.0), np.zeros(character.nv))
start = poise.State(np.tile(stance.q, (len(WAYS), 1)), np.zeros((len(WAYS), character.nv)))
stood = {}
for name, objectives in SETS.items():
    crowd = poise.World(character, n=len(WAYS), dt=DT, self_collision=False, projectiles=0)
    crowd.reset(start)
    crowd.push("head", FORCE * np.array(list(WAYS.values())), 0.1, at=0.1)
    poise.run(crowd, poise.Balance(crowd, objectives=objectives), stance, 2.6)
    stood[name] = ~measure.fallen(crowd, crowd.state.q, crowd.contacts)
    told = [
        f"{way} {'stands' if up else 'falls'}" for way, up in zip(WAYS, stood[name], strict=True)
    ]
    print(f"{FORCE:g} N on the head, {name}: {', '.join(told)}")

# ---- one that kicks, and is pushed while it stands on one leg
world = poise.World(character, dt=DT, self_collision=False, projectiles=0)
world.reset(clip.state(0.0))
balance = poise.Balance(world, supports=clip)  # its feet stand when the clip's do
push = Push("chest", 60.0, "left", at=2.0)
push.apply(world)
recording = poise.Recording(world)
poise.run(world, balance, clip, clip.duration, record=recording)
recording.save(out / "kick.npz")

# ---- what held it up
found = stance_of(recording)
table = balance_table(found)
balance_plot(out / "balance.png", found, pushes=[push], title="A kick, pushed")
save_image(out / "sheet.png", recording_sheet(recording, columns=6, rows=2, cell=(200, 260)))
foot = table["feet"]["left_foot"]
print(f"it {'stood' if table['stood'] else 'fell'}; its foot moved by {1e3 * foot['moved']:.1f} mm")
print(f"angular momentum up to {table['angular_momentum']['most']:.1f} N·m·s")
for name in ("kick.npz", "balance.png", "sheet.png"):
    print(out / name)

# its own check: all objectives stand in every direction; the kick is finished on the foot
assert stood["all objectives"].all()
assert stood["all objectives"].sum() > stood["tracking alone"].sum()
assert table["stood"]
assert foot["tilted"] < 5.0
