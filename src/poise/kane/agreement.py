"""Do the equations and the recursions agree? The figures of K10.

Inverse dynamics of the same states, four ways: Kane's equations in symbols (as NumPy functions),
Kane's recursion (the NumPy twin), the Newton-Euler recursion of the core, and the equations as the
thesis prints them, without w x I w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from poise import dynamics
from poise.errors import PoiseError
from poise.kane.equations import Equations
from poise.kane.functions import numpy_functions
from poise.math import rotation
from poise.math.arrays import Floats, count, finite, floats
from poise.model.character import Character, Joint, Link
from poise.reference.kane import kane_inverse_dynamics
from poise.simulation.command import Command
from poise.simulation.state import State
from poise.simulation.world import World


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


# ---- the gyroscopic torque w x I w, which the printed equations lack
#
# Euler's equation for the torque about the center of mass is I al + w x I w. K prints I al alone
# (3.19 and after). The difference grows with the square of the speed. It vanishes where a body
# rotates about a principal axis, and has no component along w, so that hinges in a plane do not
# feel it: the two-link arm of the thesis cannot show it.
#
# The case here can be checked by hand. A plate with principal moments I1, I2, I3 spins steadily
# with w = Ω (1, 0, 1)/√2 in its own frame, about its center of mass. Holding that spin needs the
# torque
#
#     w x I w = (0, Ω² (I1 - I3) / 2, 0)
#
# and the printed equations say zero.

MOMENTS = (0.002, 0.010, 0.012)  # of the plate [kg m^2]
RATES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # [rad/s]
DIRECTION = np.array([1.0, 0.0, 1.0]) / np.sqrt(2.0)


@dataclass(frozen=True)
class FastSpin:
    """The plate at several rates; the joint's torque is in its own frame."""

    rate: Floats  # Ω [rad/s], shape (k,)
    torque: Floats  # that holds the spin [N m], shape (k, 3)
    printed: Floats  # as the thesis prints it [N m], shape (k, 3)
    drift: Floats  # off the steady spin after `duration` under the torque [deg], shape (k,)
    printed_drift: Floats  # the same under the printed torque [deg], shape (k,)
    duration: float  # [s]

    @property
    def missing(self) -> Floats:
        """Torque that the printed equations lack [N m], shape (k,)."""
        size: Floats = np.linalg.norm(self.torque - self.printed, axis=-1)
        return size

    def figure(self) -> Any:
        """Torque and drift over the rate, a matplotlib Figure."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        for torque, label in ((self.torque, "with ω × Iω"), (self.printed, "as printed")):
            left.plot(self.rate, np.linalg.norm(torque, axis=-1), "o-", label=label)
        for drift, label in ((self.drift, "with ω × Iω"), (self.printed_drift, "as printed")):
            right.plot(self.rate, drift, "o-", label=label)
        left.set_ylabel("torque of a steady spin [N·m]")
        right.set_ylabel(f"off the spin after {self.duration:g} s [degrees]")
        for axes in (left, right):
            axes.set_xlabel("rate [rad/s]")
            axes.legend(loc="upper left")
            axes.grid(alpha=0.3)
        return figure


def gyroscopic_torque(character: Character, q: ArrayLike, v: ArrayLike) -> Floats:
    """Joint forces that the printed equations leave out: inverse dynamics minus its printed form.

    They depend on what counts as one body; here links that are welded together do.

    Args:
        character: The character.
        q: Positions, shape (..., nq).
        v: Velocities, shape (..., nv).

    Returns:
        [N m, N], shape (..., nv).
    """
    q, v = floats(q, "q"), floats(v, "v")
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    q, v = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (q, v))
    found, rest = np.zeros((*lead, character.nv)), np.zeros(character.nv)
    for k in np.ndindex(lead):
        right, printed = (
            kane_inverse_dynamics(character, q[k], v[k], rest, as_printed=x) for x in (False, True)
        )
        found[k] = right - printed
    return found


def fast_spin(
    rates: Sequence[float] = RATES,
    *,
    moments: Sequence[float] = MOMENTS,
    duration: float = 0.1,
    steps: int = 1000,
) -> FastSpin:
    """Torque of a steady spin, right and as printed, and where each takes the plate.

    Args:
        rates: Rates Ω of the spin [rad/s].
        moments: Principal moments of the plate [kg m^2].
        duration: How long each torque is played [s].
        steps: Steps of the simulation for that.
    """
    plate = spinning_plate(moments)
    rate = np.atleast_1d(finite(floats(rates, "rates"), "rates"))
    q, spins, none = plate.rest_q, [Ω * DIRECTION for Ω in rate], np.zeros(3)
    # in the frame of the plate the torque of a steady spin is the same all along
    right, printed = (
        np.array([kane_inverse_dynamics(plate, q, v, none, as_printed=x) for v in spins])
        for x in (False, True)
    )
    drift, printed_drift = (
        np.array(
            [_drift(plate, v, tau, duration, steps) for v, tau in zip(spins, torque, strict=True)]
        )
        for torque in (right, printed)
    )
    return FastSpin(rate, right, printed, drift, printed_drift, duration)


def spinning_plate(moments: Sequence[float] = MOMENTS) -> Character:
    """One link on a ball joint at its center of mass."""
    link = Link("plate", joints=(Joint("spin", "ball"),), mass=1.0, inertia=tuple(moments))
    return Character("plate", (link,))


def _drift(plate: Character, v: Floats, torque: Floats, duration: float, steps: int) -> float:
    """Angle between the plate and its steady spin, after it was driven by a torque [degrees]."""
    world = World(plate, dt=duration / steps, ground=False, contact=None)
    world.reset(State(plate.rest_q, v))
    world.step(Command(force=torque), steps=steps)
    steady = rotation.exp(v * duration)
    off = rotation.log(rotation.multiply(rotation.conjugate(steady), world.state.q))
    return float(np.degrees(np.linalg.norm(off)))
