"""Makes walk.gif, the moving picture of the README: python docs/images/readme.py

A humanoid walks, is pushed, and is hit by balls; its root is soft, so it comes back.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import poise
from poise.simulation.pushes import Push
from poise.view.video import save_video

HERE = Path(__file__).parent
MOST = 1_000_000  # [bytes]
PUSH = Push("chest", 900.0, (0.0, 1.0, 0.0), at=0.7)
BALLS = {1.2: (0.8, 1.7, 0.1), 1.9: (0.5, -1.8, 0.1), 2.4: (1.9, 0.6, 0.2)}
"""When a ball is thrown, and from where, seen from the chest that it shall hit [s], [m]."""
FLIGHT = 0.25  # how long it flies [s]


def throw(world: poise.World, clip: poise.Clip, since: tuple[float, ...]) -> None:
    """Throw a ball at where the chest will be."""
    chest = clip.q(float(world.time) + FLIGHT)[:3] + (0.0, 0.0, 0.25)
    way = -np.array(since)
    world.throw(chest - way, way / FLIGHT + (0.0, 0.0, 0.5 * 9.81 * FLIGHT))


def walk() -> poise.Recording:
    """What happens."""
    humanoid = poise.load_character("humanoid")
    clip = poise.load_clip("walk", humanoid)
    world = poise.World(humanoid, dt=1 / 240)
    world.reset(clip.state(0.0))
    PUSH.apply(world)
    servo = poise.StablePD(world, root="soft", frequency=16.0)
    recording = poise.Recording(world, fps=60)
    balls = dict(BALLS)
    for t in world.until(clip.duration):
        for at in [at for at in balls if at <= t]:
            throw(world, clip, balls.pop(at))
        target = clip.target(t + world.dt)
        world.step(servo(world.state, target))
        recording.append(target)
    return recording


if __name__ == "__main__":
    path = HERE / "walk.gif"
    save_video(path, walk(), size=(320, 250), fps=12, pushes=[PUSH], stamp=False)
    size = path.stat().st_size
    print(f"{path}: {size / 1e6:.2f} MB")
    assert size < MOST, "too large for a README"
