"""Limp humanoids fall on hills, all in one batch, and one picture of where they came to rest.

    python examples/04_ragdolls.py [--out DIR] [--n COPIES]

Copies of a world never touch, so they may be dropped anywhere on the same ground. Their joints are
limp, with a little damping as flesh has, and stop at their limits. Leaves two pictures in DIR.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.view import drawing_of, follow, render, save_image
from poise.view.drawing import static_drawing

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/ragdolls"))
parser.add_argument("--n", type=int, default=20)
arguments = parser.parse_args()
out: Path = arguments.out
out.mkdir(parents=True, exist_ok=True)
n: int = arguments.n

# hills of half a metre, a grid point every 30 cm
rng = np.random.default_rng(4)
x, y = np.meshgrid(0.3 * np.arange(-24, 25), 0.3 * np.arange(-24, 25))
heights = 0.25 * (np.sin(1.1 * x) * np.cos(0.9 * y) + np.sin(0.5 * x + 0.8 * y))
hills = poise.HeightField(heights + rng.uniform(-0.02, 0.02, heights.shape), spacing=0.3)

humanoid = poise.load_character("humanoid")
world = poise.World(humanoid, n=n, dt=1 / 60, ground=hills, projectiles=0)
q, v = np.tile(humanoid.rest_q, (n, 1)), np.zeros((n, humanoid.nv))
columns = int(np.ceil(np.sqrt(1.25 * n)))
q[:, 0] = 2.0 * (np.arange(n) // columns) - 3.5
q[:, 1] = 2.0 * (np.arange(n) % columns) - (columns - 1.0)
q[:, 2] = rng.uniform(1.8, 2.5, n)
turn = rng.normal(size=(n, 4))
q[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
v[:, 3:6] = rng.normal(0.0, 3.0, (n, 3))
world.reset(poise.State(q, v))

# no stiffness, a little damping in the joints, nothing on the root
damping = np.full(humanoid.nv, 0.5)
damping[:6] = 0.0
limp = poise.Command(
    drive=poise.Drive(poise.Gains(humanoid, 0.0, damping), poise.Target(humanoid.rest_q))
)


def picture(name: str) -> None:
    """All copies on their hills."""
    bodies = [thing for row in world.state.q for thing in drawing_of(humanoid, row)]
    ground = static_drawing(world.settings)
    camera = follow(bodies, azimuth=0.5, elevation=0.5, size=(1280, 720))
    save_image(
        out / name, render([*bodies, *ground], camera=camera, size=(1280, 720), ground=False)
    )
    print(out / name)


picture("start.png")
deepest = 0.0
for _ in world.until(8.0):
    world.step(limp)
    deepest = max(deepest, float(np.nanmax(measure.sinking(world.contacts, copies=n), initial=0)))
speed = np.linalg.norm(world.state.v[:, :3], axis=1)
lies = float(measure.sinking(world.contacts, copies=n).max())
print(f"{n} falls: {1e3 * deepest:.1f} mm deep on the way, {1e3 * lies:.1f} mm where they lie")
picture("rest.png")

# its own check: nobody is lost, nobody sinks, all lie still
assert not world.diverged
assert deepest < 0.02
assert lies < 0.002
assert speed.max() < 0.05
