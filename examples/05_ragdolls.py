"""Twenty ragdolls fall on hills, all in one batch.

    python examples/05_ragdolls.py

Copies of a world do not touch each other, so they may share the ground. Joints have no stiffness, a
little damping, and their limits. Writes a picture before and after to out/ragdolls.
"""

from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.view import drawing_of, follow, render, save_image, static_drawing

out = Path("out/ragdolls")
out.mkdir(parents=True, exist_ok=True)
n, rng = 20, np.random.default_rng(4)

x, y = np.meshgrid(0.3 * np.arange(-24, 25), 0.3 * np.arange(-24, 25))
heights = 0.25 * (np.sin(1.1 * x) * np.cos(0.9 * y) + np.sin(0.5 * x + 0.8 * y))
hills = poise.HeightField(heights, spacing=0.3)

humanoid = poise.load_character("humanoid")
world = poise.World(humanoid, n=n, dt=1 / 60, ground=hills)

q, v = np.tile(humanoid.rest_q, (n, 1)), np.zeros((n, humanoid.nv))
q[:, 0] = 2.0 * (np.arange(n) // 5) - 3.5
q[:, 1] = 2.0 * (np.arange(n) % 5) - 4.0
q[:, 2] = rng.uniform(1.8, 2.5, n)
turn = rng.normal(size=(n, 4))
q[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
v[:, 3:6] = rng.normal(0.0, 3.0, (n, 3))
world.reset(poise.State(q, v))

damping = np.full(humanoid.nv, 0.5)  # [N m s/rad]
damping[:6] = 0.0  # the root is free
limp = poise.Drive(poise.Gains(humanoid, 0.0, damping), poise.Target(humanoid.rest_q))


def draw(name: str) -> None:
    """Draws all copies on the hills."""
    bodies = [shape for row in world.state.q for shape in drawing_of(humanoid, row)]
    camera = follow(bodies, azimuth=0.5, elevation=0.5, size=(1280, 720))
    scene = [*bodies, *static_drawing(world.settings)]
    save_image(out / name, render(scene, camera=camera, size=(1280, 720), ground=False))


draw("start.png")
world.step(poise.Command(drive=limp), steps=round(8.0 / world.dt))
draw("rest.png")
depth = measure.sinking(world).max()
speed = np.linalg.norm(world.state.v[:, :3], axis=1).max()
print(f"{n} ragdolls at rest: {1e3 * depth:.1f} mm deep at most, {1e3 * speed:.1f} mm/s at most")
print(*sorted(out.iterdir()), sep="\n")
