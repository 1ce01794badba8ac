"""Free objects, and what the tests of contact ask of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poise import Character, State, World, dynamics, free_object
from poise.shape import Shape

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
    """A convex mesh about its centre: the hull of random points on an ellipsoid."""
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
