"""Free objects, and what the tests of contact ask of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise import Character, Recording, State, World, dynamics, free_object, load_recording
from poise.model.shape import Shape

Array = NDArray[np.float64]

G = 9.81
DT = 1 / 60
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def body(
    shape: Shape,
    mass: float = 1.0,
    name: str = "thing",
    pos: Sequence[float] = (0.0, 0.0, 1.0),
    quat: Sequence[float] = UPRIGHT,
) -> Character:
    """One free link with one shape of even density, whose rest pose is where it starts."""
    return free_object(name, shape, mass=mass, pos=tuple(pos), quat=tuple(quat))


def gem(size: float = 0.1, corners: int = 20, seed: int = 0) -> Shape:
    """A convex mesh about its center: the hull of random points on an ellipsoid."""
    x = np.random.default_rng(seed).normal(size=(corners, 3))
    x *= size / np.linalg.norm(x, axis=1, keepdims=True) * (1.0, 0.8, 0.6)
    return Shape.mesh(x - Shape.mesh(x).center)


SOLIDS = {
    "sphere": Shape("sphere", (0.1,)),
    "capsule": Shape("capsule", (0.1, 0.2)),
    "box": Shape("box", (0.1, 0.2, 0.3)),
    "cylinder": Shape("cylinder", (0.1, 0.02)),
    "mesh": gem(),
}


def turned(degrees: float, axis: Sequence[float] = (0.0, 1.0, 0.0)) -> tuple[float, ...]:
    """The quaternion of a turn about an axis."""
    half = 0.5 * math.radians(degrees)
    unit = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    return (math.cos(half), *(math.sin(half) * unit).tolist())


def random_turns(rng: np.random.Generator, n: int) -> Array:
    """Quaternions drawn evenly, shape (n, 4)."""
    x = rng.normal(size=(n, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def deepest(world: World) -> float:
    """The deepest of the contacts of the last step [m]; 0 where nothing touches."""
    return float(max(0.0, *world.contacts.depth, 0.0))


def energy(world: World) -> Array:
    """Kinetic and potential energy of each copy [J], shape () or (n,), as free steps keep it.

    Velocities of a semi-implicit step belong to its middle: the potential is taken there, too.
    """
    state = world.state
    kinetic, potential = dynamics.energy(world, state.q, state.v, gravity=world.gravity)
    A, _ = dynamics.centroidal_momentum(world, state.q, state.v)
    momentum = np.einsum("...ij,...j->...i", A, state.v)[..., :3]
    half = 0.5 * world.dt * (momentum @ world.gravity)
    return np.asarray(kinetic + potential + half)


def started(world: World, v: Sequence[float] | Array, q: Array | None = None) -> World:
    """The world with this velocity, in its rest pose or in q."""
    world.reset(State(world.scene.forest.rest_q if q is None else q, v))
    return world


def recorded_and_resumed(world: World, path: Path, steps: int, after: int) -> World:
    """A world that goes on from a saved recording of this one, and ends when this one does.

    Args:
        world: One copy; it takes the steps and is recorded in each.
        path: Where the recording is saved.
        steps: How many steps it takes.
        after: After how many of them the other goes on alone.
    """
    recording = Recording(world, fps=round(1 / world.dt))
    for _ in range(steps):
        world.step()
        recording.append()
    recording.save(path)
    read = load_recording(path)
    again = read.world()
    again.reset(read.state(after - 1))
    again.step(steps=steps - after)
    return again


def distances(model: Any, q: Array) -> tuple[Array, Array]:
    """Distances of the first two geoms of a MuJoCo model, and unit vectors between them."""
    import mujoco

    data: Any = mujoco.MjData(model)
    distance, way = np.zeros(len(q)), np.zeros((len(q), 3))
    for i, pose in enumerate(q):
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        ends = np.zeros((6, 1))
        distance[i] = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, ends)
        way[i] = (ends[:3] - ends[3:])[:, 0] * np.sign(distance[i])
    return distance, way / np.linalg.norm(way, axis=1, keepdims=True)
