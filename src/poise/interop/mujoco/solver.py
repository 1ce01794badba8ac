"""The solve behind stable PD: worlds of the core without contact, one for each size of batch.

A step of such a world solves (M + K) a = Q - h + load, with springs and dampers of the joints on
both sides. It takes gains that are laid out once, and threads for a batch. Where the step leads is
not looked at.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from poise import _core
from poise.arrays import Floats
from poise.control.gains import Gains
from poise.errors import PoiseError
from poise.scene import Scene

SMALLEST = 1e-300
"""Torques below this are zero [N m]."""


class Solver:
    """Torques Q - K a of a drive, for states of one scene.

    Args:
        scene: The scene.
        gains: Its gains.
        form: Number of the form in `poise.dynamics.FORMS`.
        method: Number of the method in `poise.dynamics.METHODS`.
        threads: At most this many for a batch; None takes the cores.
    """

    def __init__(
        self, scene: Scene, gains: Gains, form: int, method: int, threads: int | None
    ) -> None:
        self.scene, self.gains = scene, gains
        self.threads = threads
        # steps, rows, form, method, embedded, feedforward
        self._how = (1, 0, form, method, True, False)
        self._dt, self._gravity = 0.0, b""
        self._worlds: dict[int, tuple[Any, Floats]] = {}  # and their clocks, by number of copies

    def torque(
        self,
        q: Floats,
        v: Floats,
        n: int,
        target: tuple[Floats, Floats | None],
        load: Floats | None,
        dt: float,
        gravity: Floats,
    ) -> Floats:
        """Torques (n, nv).

        Args:
            q: Positions (nq,), or (n, nq).
            v: Velocities (nv,), or (n, nv).
            n: Number of states.
            target: Positions and velocities, one row or n; None is rest.
            load: Generalized forces beside the torques (nv,) or (n, nv), or None.
            dt: Time step [s].
            gravity: [m/s^2], shape (3,).
        """
        if dt != self._dt or gravity.tobytes() != self._gravity:
            self._worlds.clear()
            self._dt, self._gravity = dt, gravity.tobytes()
        world, clock = self._worlds.get(n) or self._made(n, gravity)
        world.write(q, v, clock, None, None)
        core, (tq, tv) = self.gains.core, target
        if world.step(core, tq, tv, None, None, None, load, None, *self._how):
            raise _lost(world)
        tau: Floats = world.torque()
        return tau if load is None else self._own(tau, load)

    def _made(self, n: int, gravity: Floats) -> tuple[Any, Floats]:
        """A world of n copies, without contact."""
        threads = self.threads
        if threads is None:
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
            threads = min(cores or os.cpu_count() or 1, max(1, n // 32))
        model = self.scene.model
        world = _core.World(model, model, n, self._dt, False, threads, gravity, None, None)
        self._worlds[n] = world, np.zeros(n)
        return self._worlds[n]

    def _own(self, tau: Floats, load: Floats) -> Floats:
        """The drive's part of the torques; the core keeps the sum with the load within limits."""
        own: Floats = tau - load
        forest = self.scene.forest
        if np.isinf(forest.effort).all():
            return own
        size = np.abs(own)
        for b in np.flatnonzero((forest.kind == 1) & (forest.effort_per_axis == 0)):
            at = slice(forest.v_adr[b], forest.v_adr[b] + 3)
            size[:, at] = np.linalg.norm(own[:, at], axis=1, keepdims=True)
        return own * np.minimum(1.0, forest.effort / np.maximum(size, SMALLEST))


def _lost(world: Any) -> PoiseError:
    """What to say of states that cannot be solved."""
    copies, joints, _, singular = world.faults()
    where = f" of state {copies[0]}" if len(copies) > 1 or copies[0] else ""
    if singular[0]:
        return PoiseError(
            f"the mass matrix is singular at joint {joints[0]!r}{where}: axes in line, or nothing "
            "to move; give the joint some armature"
        )
    return PoiseError(
        f"joint {joints[0]!r}{where} would reach a million rad/s: the simulation has diverged"
    )
