"""Do the equations and the recursions agree? The figures of K10.

Inverse dynamics of the same states, four ways: Kane's equations in symbols (as NumPy functions),
Kane's recursion (the NumPy twin), the Newton-Euler recursion of the core, and the equations as the
thesis prints them, without w x I w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from poise import dynamics
from poise.errors import PoiseError
from poise.kane.compiled import numpy_functions
from poise.kane.equations import Equations
from poise.kane.spin import gyroscopic_torque
from poise.math.arrays import Floats, count
from poise.model.character import Character
from poise.reference.kane import kane_inverse_dynamics


@dataclass(frozen=True)
class Agreement:
    """Largest differences from the core's inverse dynamics, over the largest entry of it."""

    symbolic: float
    recursion: float
    printed: float  # without w x I w
    states: int


def agreement(
    character: Character, *, states: int = 20, speed: float = 3.0, seed: int = 0
) -> Agreement:
    """Compare the ways of inverse dynamics on random states.

    Args:
        character: The character.
        states: How many states.
        speed: Deviation of the joints' velocities [rad/s, m/s]; accelerations have twice that.
        seed: Of the random numbers.
    """
    if not isinstance(character, Character):
        raise PoiseError(f"expected a Character, got {character!r:.80}")
    rng, states = np.random.default_rng(seed), count(states, "states")
    q = random_poses(character, rng, states)
    v = speed * rng.normal(size=(states, character.nv))
    a = 2.0 * speed * rng.normal(size=(states, character.nv))
    core = dynamics.inverse_dynamics(character, q, v, a)
    f = numpy_functions(Equations(character), ["inverse_dynamics"])
    recursion = np.array(
        [kane_inverse_dynamics(character, *row) for row in zip(q, v, a, strict=True)]
    )
    largest = float(np.abs(core).max())
    return Agreement(
        symbolic=float(np.abs(f.inverse_dynamics(q, v, a) - core).max()) / largest,
        recursion=float(np.abs(recursion - core).max()) / largest,
        printed=float(np.abs(gyroscopic_torque(character, q, v)).max()) / largest,
        states=states,
    )


def random_poses(character: Character, rng: Generator, n: int) -> Floats:
    """Poses with rotations anywhere and all else within one, shape (n, nq)."""
    q = rng.uniform(-1.0, 1.0, size=(n, character.nq))
    for joint in character.joints:
        if joint.kind in ("free", "ball"):
            turn = rng.normal(size=(n, 4))
            last = character.q_slice(joint).stop
            q[:, last - 4 : last] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
    return q
