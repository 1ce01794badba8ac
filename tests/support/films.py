"""Short recordings to make pictures of."""

from __future__ import annotations

import numpy as np
from objects import SOLIDS, body

from poise import HeightField, Recording, Shape, StablePD, State, Target, World, load_character, run
from poise.model.character import free_object

HUMANOID = load_character("humanoid")
STONE = Shape("box", (0.2, 0.4, 0.1), pos=(0.5, 0.8, 0.1), color=(0.5, 0.4, 0.3))


def held(seconds: float = 0.5, push: float = 0.0) -> Recording:
    """A humanoid that keeps its rest pose on the ground; pushed to the left at 0.1 s [N]."""
    world = World(HUMANOID, dt=1 / 60)
    recording = Recording(world)
    if push:
        world.push("chest", (0.0, push, 0.0), 0.1, at=0.1)
    run(world, StablePD(world, root="soft"), world.state, seconds, record=recording)
    return recording


def crowd(n: int = 1, frames: int = 12) -> Recording:
    """A character, a box, a gem and a cylinder on hills beside a stone; a ball is thrown."""
    x = np.linspace(0, 2 * np.pi, 12)
    hills = HeightField(0.1 * np.add.outer(np.sin(x), np.cos(x)), 0.5)
    things = [
        free_object(name, SOLIDS[name], mass=1.0, pos=(0.6 * k, -0.6, 0.8))
        for k, name in enumerate(("box", "mesh", "cylinder"))
    ]
    world = World(
        [load_character("lamp"), *things], n=n, dt=1 / 60, ground=hills, obstacles=[STONE]
    )
    recording = Recording(world)
    recording.append()
    for k in range(frames - 1):
        if k == 3:
            world.throw((1.0, 0.0, 1.0), (-1.0, 0.0, 2.0))
        world.step()
        recording.append()
    return recording


def resting(frames: int = 20) -> Recording:
    """A box that lies on the ground."""
    world = World(body(SOLIDS["box"], mass=10.0, pos=(0.0, 0.0, 0.3)), dt=1 / 60)
    recording = Recording(world)
    for _ in range(frames):
        world.step()
        recording.append()
    return recording


def ball(n: int = 1, frames: int = 10, speed: float = 1.0) -> Recording:
    """A ball that flies along x, each copy faster than the one before; asked to be 0.1 m higher."""
    world = World(body(SOLIDS["sphere"]), n=n, dt=1 / 60, gravity=(0.0, 0.0, 0.0))
    v = np.zeros((n, 6))
    v[:, 0] = speed * (1 + np.arange(n))
    world.reset(State(world.state.q, v if n > 1 else v[0]))
    recording = Recording(world)
    goal = Target(np.array([0.0, 0.0, 1.1, 1.0, 0.0, 0.0, 0.0]))
    recording.append()
    for _ in range(frames - 1):
        world.step()
        recording.append(goal)
    return recording
